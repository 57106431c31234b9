"""Planned wrong answers of lab 7: for each task, what a student may hand in and what it earns.

WRONG maps the id of an answer cell to (description, source of the whole cell, expected points), the
points of the visible check, the hidden tests and, if there are any, the hidden edge cases.
"""

PARTIAL = (
    "One answer of each task passes the visible check and fails the hidden tests: texts changed on "
    "the way, one mask for two heads' scores that overflow, an <eos> of the prompt that ends the "
    "text, bytes counted only where a text has some, a cache that is written into, rounding that "
    "loses the choice that was seen."
)

WRONG = {
    "blocks": [
        (
            "the last token of a block is lost: blocks don't overlap",
            """# Task 1: one text, cut into blocks
def blocks(texts, length):
    text = [i for ids in texts for i in [*ids, EOS]]
    rows = [text[i : i + length + 1] for i in range(0, len(text) - 1, length + 1)]
    read = torch.full((len(rows), length), PAD)
    predicted = torch.full((len(rows), length), PAD)
    for row, part in enumerate(rows):
        read[row, : len(part) - 1] = torch.tensor(part[:-1])
        predicted[row, : len(part) - 1] = torch.tensor(part[1:])
    return read, predicted
""",
            (0, 0),
        ),
        (
            "read and predicted are the same",
            """# Task 1: one text, cut into blocks
def blocks(texts, length):
    text = [i for ids in texts for i in [*ids, EOS]]
    n = math.ceil(len(text) / length)
    full = torch.tensor(text + [PAD] * (n * length - len(text))).view(n, length)
    return full, full
""",
            (0, 0),
        ),
        (
            "appends <eos> to the caller's lists",
            """# Task 1: one text, cut into blocks
def blocks(texts, length):
    for ids in texts:
        ids.append(EOS)
    text = [i for ids in texts for i in ids]
    n = math.ceil((len(text) - 1) / length)
    filled = text + [PAD] * (n * length + 1 - len(text))
    read = torch.tensor(filled[:-1]).view(n, length).clone()
    predicted = torch.tensor(filled[1:]).view(n, length)
    read[predicted == PAD] = PAD
    return read, predicted
""",
            (1, 0),
        ),
    ],
    "attention": [
        (
            "the heads are cut without moving an axis",
            """# Task 2: causal attention
def causal_attention(x, w_q, w_k, w_v, w_o, n_heads):
    B, T, D = x.shape
    q, k, v = ((x @ w).reshape(B, n_heads, T, D // n_heads) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(D // n_heads)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    return (weights @ v).reshape(B, T, D) @ w_o
""",
            (0, 0, 0),
        ),
        (
            "divides by the root of the full width",
            """# Task 2: causal attention
def causal_attention(x, w_q, w_k, w_v, w_o, n_heads):
    B, T, D = x.shape
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()
    weights = scores.masked_fill(~allowed, -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o
""",
            (0, 0, 0),
        ),
        (
            "a softmax by hand that overflows for large scores",
            """# Task 2: causal attention
def causal_attention(x, w_q, w_k, w_v, w_o, n_heads):
    B, T, D = x.shape
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(D // n_heads)
    e = scores.exp() * torch.ones(T, T).tril()
    return (e / e.sum(-1, keepdim=True) @ v).transpose(1, 2).flatten(2) @ w_o
""",
            (1, 1, 0),
        ),
    ],
    "write": [
        (
            "returns the prompt, too",
            """# Task 3: write
def write(next_logits, prompt, max_new, temperature=1.0, top_k=None, generator=None):
    ids = list(prompt)
    for _ in range(max_new):
        logits = next_logits(ids)
        if temperature == 0:
            token = int(logits.argmax())
        else:
            p = (logits / temperature).softmax(-1)
            token = int(torch.multinomial(p, 1, generator=generator))
        ids.append(token)
        if token == EOS:
            break
    return ids
""",
            (0, 0, 0),
        ),
        (
            "multiplies by the temperature and ignores top_k",
            """# Task 3: write
def write(next_logits, prompt, max_new, temperature=1.0, top_k=None, generator=None):
    written = []
    while len(written) < max_new and EOS not in written:
        logits = next_logits([*prompt, *written])
        if temperature == 0:
            written.append(int(logits.argmax()))
        else:
            p = (logits * temperature).softmax(-1)
            written.append(int(torch.multinomial(p, 1, generator=generator)))
    return written
""",
            (0, 0, 0),
        ),
        (
            "an <eos> in the prompt ends the text, and ties stay",
            """# Task 3: write
def write(next_logits, prompt, max_new, temperature=1.0, top_k=None, generator=None):
    written = []
    while len(written) < max_new and EOS not in [*prompt, *written]:
        logits = next_logits([*prompt, *written])
        if temperature == 0:
            token = int(logits.argmax())
        else:
            logits = logits / temperature
            if top_k is not None:
                least = logits.topk(min(top_k, len(logits))).values[-1]
                logits = logits.masked_fill(logits < least, -math.inf)
            token = int(torch.multinomial(logits.softmax(-1), 1, generator=generator))
        written.append(token)
    return written
""",
            (1, 1, 0),
        ),
    ],
    "bits": [
        (
            "the colleague's version",
            """# Task 4: find the bugs
def bits_per_byte(losses, texts):
    each = [float(loss.sum()) / len(text) for loss, text in zip(losses, texts)]
    return sum(each) / len(each) / math.log(2)
""",
            (0, 0),
        ),
        (
            "bytes, but still a mean over texts",
            """# Task 4: find the bugs
def bits_per_byte(losses, texts):
    each = [float(loss.sum()) / len(text.encode()) for loss, text in zip(losses, texts)]
    return sum(each) / len(each) / math.log(2)
""",
            (0, 0),
        ),
        (
            "ä, ö and ü are counted as two bytes, everything else as one",
            """# Task 4: find the bugs
def bits_per_byte(losses, texts):
    size = sum(len(text) + sum(letter in "äöüß" for letter in text) for text in texts)
    return float(sum(loss.sum() for loss in losses)) / math.log(2) / size
""",
            (1, 0),
        ),
    ],
    "cached": [
        (
            "the new token doesn't see itself",
            """# Task 5: a cache
def step(x, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    old_k, old_v = cache if cache is not None else (k, v)
    weights = (q @ old_k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1)
    now = (k, v) if cache is None else (torch.cat([old_k, k], 2), torch.cat([old_v, v], 2))
    return (weights @ old_v).transpose(1, 2).flatten(2) @ w_o, now
""",
            (0, 0, 0),
        ),
        (
            "keeps nothing but the last token",
            """# Task 5: a cache
def step(x, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o, (k, v)
""",
            (0, 0, 0),
        ),
        (
            "no mask among new tokens: right for one at a time",
            """# Task 5: a cache
def step(x, cache, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ w_o, (k, v)
""",
            (1, 0, 0),
        ),
    ],
    "signs": [
        (
            "one direction only",
            """# Task 6: what three seeds can tell
def sign_flips(a, b):
    from itertools import product

    d = [a[seed] - b[seed] for seed in a if seed in b]
    mean = sum(d) / len(d)
    all_ = [sum(s * x for s, x in zip(signs, d)) / len(d)
            for signs in product((1, -1), repeat=len(d))]
    return mean, sum(m >= mean for m in all_) / len(all_)
""",
            (0, 0, 0),
        ),
        (
            "pairs by place instead of by seed",
            """# Task 6: what three seeds can tell
def sign_flips(a, b):
    from itertools import product

    d = [x - y for x, y in zip(a.values(), b.values())]
    mean = sum(d) / len(d)
    all_ = [sum(s * x for s, x in zip(signs, d)) / len(d)
            for signs in product((1, -1), repeat=len(d))]
    return mean, sum(abs(m) >= abs(mean) - 1e-9 for m in all_) / len(all_)
""",
            (0, 1, 0),
        ),
        (
            "no error for arms without a common seed",
            """# Task 6: what three seeds can tell
def sign_flips(a, b):
    from itertools import product

    d = [a[seed] - b[seed] for seed in a if seed in b]
    mean = sum(d) / max(len(d), 1)
    all_ = [sum(s * x for s, x in zip(signs, d)) / max(len(d), 1)
            for signs in product((1, -1), repeat=len(d))]
    return mean, sum(abs(m) >= abs(mean) - 1e-9 for m in all_) / len(all_)
""",
            (1, 1, 0),
        ),
    ],
}
