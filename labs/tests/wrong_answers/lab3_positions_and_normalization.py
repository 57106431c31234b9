"""Planned wrong answers of lab 3, and the points that each deserves: check, hidden, edge cases."""

WRONG = {
    "order_gap": [
        (
            "the output is not shuffled: measures invariance",
            """# Task 1: does a layer see the order?
def order_gap(layer, x, order):
    return (layer(x[:, order]) - layer(x)).abs().max().item()
""",
            (0, 0),
        ),
        (
            "the output is shuffled a second time instead of the other one",
            """# Task 1: does a layer see the order?
def order_gap(layer, x, order):
    return (layer(x[:, order])[:, order] - layer(x)).abs().max().item()
""",
            (0, 0),
        ),
        (
            "the sentences of the batch are shuffled",
            """# Task 1: does a layer see the order?
def order_gap(layer, x, order):
    return (layer(x[order]) - layer(x)[order]).abs().max().item()
""",
            (0, 0),
        ),
        (
            "the mean difference",
            """# Task 1: does a layer see the order?
def order_gap(layer, x, order):
    return (layer(x[:, order]) - layer(x)[:, order]).abs().mean().item()
""",
            (0, 0),
        ),
        (
            "no absolute value, right where the largest difference is positive",
            """# Task 1: does a layer see the order?
def order_gap(layer, x, order):
    return (layer(x[:, order]) - layer(x)[:, order]).max().item()
""",
            (1, 0),
        ),
    ],
    "position_table": [
        (
            "sines left, cosines right",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    speed = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = torch.arange(length)[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], dim=1)
""",
            (0, 0, 0),
        ),
        (
            "the exponent is i / d_model",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    speed = 10000.0 ** (-torch.arange(d_model // 2) / d_model)
    angle = torch.arange(length)[:, None] * speed
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
""",
            (0, 0, 0),
        ),
        (
            "the exponent is the column",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    speed = 10000.0 ** (-torch.arange(d_model) / d_model)
    angle = torch.arange(length)[:, None] * speed
    table = angle.sin()
    table[:, 1::2] = angle.cos()[:, 1::2]
    return table
""",
            (0, 0, 0),
        ),
        (
            "positions start at 1",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    speed = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = torch.arange(1, length + 1)[:, None] * speed
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
""",
            (0, 0, 0),
        ),
        (
            "the two speeds of the example, for every width",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    angle = torch.arange(length)[:, None] * torch.tensor([1.0, 0.01])
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
""",
            (1, 0, 0),
        ),
        (
            "the library's table",
            """# Task 2: the sinusoidal table
def position_table(length, d_model):
    return sinusoidal_table(length, d_model)
""",
            (1, 0, 0),
        ),
    ],
    "shift_matrix": [
        (
            "the matrix for columns: moves backwards",
            """# Task 3: moving is a rotation
def shift_matrix(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        angle = k * 10000.0 ** (-2 * i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cos, sin], [-sin, cos]]))
    return torch.block_diag(*blocks)
""",
            (0, 0, 0),
        ),
        (
            "one speed for all pairs",
            """# Task 3: moving is a rotation
def shift_matrix(k, d_model):
    cos, sin = math.cos(k), math.sin(k)
    block = torch.tensor([[cos, -sin], [sin, cos]])
    return torch.block_diag(*[block] * (d_model // 2))
""",
            (0, 0, 0),
        ),
        (
            "k left out",
            """# Task 3: moving is a rotation
def shift_matrix(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        angle = 10000.0 ** (-2 * i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cos, -sin], [sin, cos]]))
    return torch.block_diag(*blocks)
""",
            (0, 0, 0),
        ),
        (
            "one step, k times: nothing happens for negative k",
            """# Task 3: moving is a rotation
def shift_matrix(k, d_model):
    blocks = []
    for i in range(d_model // 2):
        angle = 10000.0 ** (-2 * i / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cos, -sin], [sin, cos]]))
    result = torch.eye(d_model)
    for _ in range(k):
        result = result @ torch.block_diag(*blocks)
    return result
""",
            (1, 1, 0),
        ),
    ],
    "rotary_score": [
        (
            "turned clockwise",
            """# Task 4: rotary positions for one pair
def rotary_score(q, k, m, n, speed):
    def turn(x, angle):
        a, b = x[..., 0], x[..., 1]
        cos, sin = math.cos(angle), math.sin(angle)
        return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1)

    return (turn(q, m * speed) * turn(k, n * speed)).sum(-1)
""",
            (0, 0),
        ),
        (
            "the key is turned the other way",
            """# Task 4: rotary positions for one pair
def rotary_score(q, k, m, n, speed):
    def turn(x, angle):
        a, b = x[..., 0], x[..., 1]
        cos, sin = math.cos(angle), math.sin(angle)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)

    return (turn(q, m * speed) * turn(k, -n * speed)).sum(-1)
""",
            (0, 0),
        ),
        (
            "the speed is ignored in the angle",
            """# Task 4: rotary positions for one pair
def rotary_score(q, k, m, n, speed):
    def turn(x, angle):
        a, b = x[..., 0], x[..., 1]
        cos, sin = math.cos(angle), math.sin(angle)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)

    return (turn(q, m) * turn(k, n)).sum(-1)
""",
            (0, 0),
        ),
        (
            "not summed over the pair",
            """# Task 4: rotary positions for one pair
def rotary_score(q, k, m, n, speed):
    def turn(x, angle):
        a, b = x[..., 0], x[..., 1]
        cos, sin = math.cos(angle), math.sin(angle)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1)

    return turn(q, m * speed) * turn(k, n * speed)
""",
            (0, 0),
        ),
        (
            "right for one query and one key only",
            """# Task 4: rotary positions for one pair
def rotary_score(q, k, m, n, speed):
    def turn(x, angle):
        a, b = x[0], x[1]
        cos, sin = math.cos(angle), math.sin(angle)
        return torch.stack([a * cos - b * sin, a * sin + b * cos])

    return (turn(q, m * speed) * turn(k, n * speed)).sum()
""",
            (1, 0),
        ),
    ],
    "mended_layer_norm": [
        (
            "the broken function again",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    return broken_layer_norm(x, gain, bias, eps)
""",
            (0, 0, 0),
        ),
        (
            "epsilon still outside the root",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (std + eps) + bias
""",
            (0, 0, 0),
        ),
        (
            "variance still unbiased",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(x.var(-1, keepdim=True) + eps) + bias
""",
            (0, 0, 0),
        ),
        (
            "two roots",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (std + eps**0.5) + bias
""",
            (0, 0, 0),
        ),
        (
            "statistics over all tokens",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    variance = x.var(unbiased=False)
    return gain * (x - x.mean()) / torch.sqrt(variance + eps) + bias
""",
            (0, 0, 0),
        ),
        (
            "PyTorch's ready-made function",
            """# Task 5: the fixed LayerNorm
def mended_layer_norm(x, gain, bias, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)
""",
            (1, 0, 0),
        ),
    ],
    "company_gap": [
        (
            "the neighbour is cut instead of padding the sentence",
            """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    n_real = sentence.size(1)
    together = norm(torch.cat([sentence, neighbour[:, :n_real]]))
    return (together[:1] - norm(sentence)).abs().max().item()
""",
            (0, 0, 0),
        ),
        (
            "compared with the sentence itself",
            """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    n_real = sentence.size(1)
    padded = F.pad(sentence, (0, 0, 0, neighbour.size(1) - n_real))
    together = norm(torch.cat([padded, neighbour]))
    return (together[:1, :n_real] - sentence).abs().max().item()
""",
            (0, 0, 0),
        ),
        (
            "padded in front",
            """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    n_real = sentence.size(1)
    padded = F.pad(sentence, (0, 0, neighbour.size(1) - n_real, 0))
    together = norm(torch.cat([padded, neighbour]))
    return (together[:1, :n_real] - norm(sentence)).abs().max().item()
""",
            (0, 0, 0),
        ),
        (
            "normalised one at a time",
            """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    alone = norm(sentence)
    together = torch.cat([norm(sentence), norm(neighbour)[:, : sentence.size(1)]])
    return (together[:1] - alone).abs().max().item()
""",
            (0, 0, 0),
        ),
        (
            "no absolute value, right where the largest difference is positive",
            """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    n_real = sentence.size(1)
    padded = F.pad(sentence, (0, 0, 0, neighbour.size(1) - n_real))
    together = norm(torch.cat([padded, neighbour]))
    return (together[:1, :n_real] - norm(sentence)).max().item()
""",
            (1, 0, 0),
        ),
    ],
}

PARTIAL = (
    "Pass the visible check and fail the hidden tests: a maximum without absolute value "
    "(order_gap, company_gap), numbers of the example built in (position_table), the library's "
    "table or PyTorch's ready-made norm (position_table, mended_layer_norm), a loop that does "
    "nothing for negative k (shift_matrix), one query and one key only (rotary_score)."
)
