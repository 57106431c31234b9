"""Planned wrong answers of lab 4, and the points that each deserves: check, hidden, edge cases."""

ENCODER = """# Task 3: the encoder layer and its mask
def encoder_layer(x, src_ids, norms, attention, network):
"""

DECODER = """# Task 4: the decoder layer and its two masks
def decoder_layer(
    x, memory, src_ids, tgt_ids, norms, self_attention, cross_attention, network
):
"""

LEAK = """# Task 6: prove the laws
def leak(layer, x, secret):
    changed = x.clone()
    changed[:, secret] = torch.randn_like(changed[:, secret])
    return (layer(changed) - layer(x))[:, ~secret].abs().max().item()


"""

SILENCE = """

def silence(layer):
    for part in layer.modules():
        if isinstance(part, (MultiHeadAttention, FeedForward)):
            last = part.w_o if isinstance(part, MultiHeadAttention) else part.contract
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
"""

WRONG = {
    "feed_forward": [
        (
            "without the nonlinearity",
            """# Task 1: the feed-forward network
def feed_forward(x, w1, b1, w2, b2):
    return (x @ w1 + b1) @ w2 + b2
""",
            (0, 0),
        ),
        (
            "a nonlinearity on the output, too",
            """# Task 1: the feed-forward network
def feed_forward(x, w1, b1, w2, b2):
    return ((x @ w1 + b1).relu() @ w2 + b2).relu()
""",
            (0, 0),
        ),
        (
            "without the second bias",
            """# Task 1: the feed-forward network
def feed_forward(x, w1, b1, w2, b2):
    return (x @ w1 + b1).relu() @ w2
""",
            (0, 0),
        ),
        (
            "the weights are taken out of the graph: no gradient",
            """# Task 1: the feed-forward network
def feed_forward(x, w1, b1, w2, b2):
    hidden = (x @ w1.data + b1.data).relu()
    return hidden @ w2.data + b2
""",
            (1, 0),
        ),
    ],
    "residual": [
        (
            "the broken function again",
            """# Task 2: the fixed residual
def residual(x, sublayer, norm, drop):
    return broken_residual(x, sublayer, norm, drop)
""",
            (0, 0, 0),
        ),
        (
            "only the dropout is fixed: adds the normalised input",
            """# Task 2: the fixed residual
def residual(x, sublayer, norm, drop):
    x = norm(x)
    return x + drop(sublayer(x))
""",
            (0, 0, 0),
        ),
        (
            "only the sum is fixed: drops from the sum",
            """# Task 2: the fixed residual
def residual(x, sublayer, norm, drop):
    return drop(x + sublayer(norm(x)))
""",
            (0, 0, 0),
        ),
        (
            "post-norm",
            """# Task 2: the fixed residual
def residual(x, sublayer, norm, drop):
    return norm(x + drop(sublayer(x)))
""",
            (0, 0, 0),
        ),
        (
            "changes the caller's x",
            """# Task 2: the fixed residual
def residual(x, sublayer, norm, drop):
    x += drop(sublayer(norm(x)))
    return x
""",
            (1, 1, 0),
        ),
    ],
    "encoder_layer": [
        (
            "no mask",
            ENCODER
            + """    y = norms[0](x)
    x = x + attention(y, y, y)[0]
    return x + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "the mask hides the rows of padding",
            ENCODER
            + """    mask = (src_ids != 0)[:, None, :, None].expand(-1, -1, -1, x.size(1))
    y = norms[0](x)
    x = x + attention(y, y, y, mask)[0]
    return x + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "an inverted mask",
            ENCODER
            + """    mask = (src_ids == 0)[:, None, None, :]
    y = norms[0](x)
    x = x + attention(y, y, y, mask)[0]
    return x + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "a mask of shape (B, S)",
            ENCODER
            + """    y = norms[0](x)
    x = x + attention(y, y, y, src_ids != 0)[0]
    return x + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "only the query is normalised",
            ENCODER
            + """    mask = masks.padding_mask(src_ids, 0)
    x = x + attention(norms[0](x), x, x, mask)[0]
    return x + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "the normalised tokens are added",
            ENCODER
            + """    mask = masks.padding_mask(src_ids, 0)
    x = norms[0](x)
    x = x + attention(x, x, x, mask)[0]
    x = norms[1](x)
    return x + network(x)
""",
            (0, 0, 0),
        ),
        (
            "both sublayers read the layer's input",
            ENCODER
            + """    mask = masks.padding_mask(src_ids, 0)
    y = norms[0](x)
    return x + attention(y, y, y, mask)[0] + network(norms[1](x))
""",
            (0, 0, 0),
        ),
        (
            "counts the real tokens and assumes that padding is at the end",
            ENCODER
            + """    lengths = (src_ids != 0).sum(1)
    mask = (torch.arange(x.size(1)) < lengths[:, None])[:, None, None, :]
    y = norms[0](x)
    x = x + attention(y, y, y, mask)[0]
    return x + network(norms[1](x))
""",
            (1, 0, 0),
        ),
    ],
    "decoder_layer": [
        (
            "no causal mask",
            DECODER
            + """    src_mask, tgt_mask = masks.padding_mask(src_ids, 0), masks.padding_mask(tgt_ids, 0)
    y = norms[0](x)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    x = x + cross_attention(norms[1](x), memory, memory, src_mask)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "the two masks swapped",
            DECODER
            + """    src_mask = masks.padding_mask(src_ids, 0)
    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    y = norms[0](x)
    x = x + self_attention(y, y, y, src_mask)[0]
    x = x + cross_attention(norms[1](x), memory, memory, tgt_mask)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "cross-attention the wrong way round",
            DECODER
            + """    src_mask = masks.padding_mask(src_ids, 0)
    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    y = norms[0](x)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    y = norms[1](x)
    x = x + cross_attention(memory, y, y, src_mask)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "the memory is normalised once more",
            DECODER
            + """    src_mask = masks.padding_mask(src_ids, 0)
    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    y, memory = norms[0](x), norms[1](memory)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    x = x + cross_attention(norms[1](x), memory, memory, src_mask)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "no mask for the cross-attention",
            DECODER
            + """    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    y = norms[0](x)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    x = x + cross_attention(norms[1](x), memory, memory)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "cross-attention before self-attention",
            DECODER
            + """    src_mask = masks.padding_mask(src_ids, 0)
    tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1))
    x = x + cross_attention(norms[1](x), memory, memory, src_mask)[0]
    y = norms[0](x)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    return x + network(norms[2](x))
""",
            (0, 0, 0),
        ),
        (
            "causal mask without the target's padding: wrong when padding comes first",
            DECODER
            + """    src_mask = masks.padding_mask(src_ids, 0)
    tgt_mask = masks.causal_mask(tgt_ids.size(1))
    y = norms[0](x)
    x = x + self_attention(y, y, y, tgt_mask)[0]
    x = x + cross_attention(norms[1](x), memory, memory, src_mask)[0]
    return x + network(norms[2](x))
""",
            (1, 1, 0),
        ),
    ],
    "layer_parameters": [
        (
            "no norms",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    n = 1 if kind == "encoder" else 2
    return n * 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model
""",
            (0, 0),
        ),
        (
            "no biases in the attention",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    n = 1 if kind == "encoder" else 2
    network = 2 * d_model * d_ff + d_ff + d_model
    return n * 4 * d_model**2 + network + (n + 1) * 2 * d_model
""",
            (0, 0),
        ),
        (
            "the decoder has only two norms",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    n = 1 if kind == "encoder" else 2
    network = 2 * d_model * d_ff + d_ff + d_model
    return n * 4 * (d_model**2 + d_model) + network + 4 * d_model
""",
            (0, 0),
        ),
        (
            "the decoder is counted as an encoder",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    network = 2 * d_model * d_ff + d_ff + d_model
    return 4 * (d_model**2 + d_model) + network + 4 * d_model
""",
            (0, 0),
        ),
        (
            "d_ff is taken to be 4 * d_model",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    n = 1 if kind == "encoder" else 2
    network = 8 * d_model**2 + 5 * d_model
    return n * 4 * (d_model**2 + d_model) + network + (n + 1) * 2 * d_model
""",
            (1, 0),
        ),
        (
            "builds the layer and counts",
            """# Task 5: count the parameters
def layer_parameters(kind, d_model, d_ff):
    config = ModelConfig(2, d_model=d_model, n_heads=1, d_ff=d_ff)
    layer = EncoderLayer(config) if kind == "encoder" else DecoderLayer(config)
    return sum(p.numel() for p in layer.parameters())
""",
            (1, 0),
        ),
    ],
    "laws": [
        (
            "the secret positions are not left out",
            """# Task 6: prove the laws
def leak(layer, x, secret):
    changed = x.clone()
    changed[:, secret] = torch.randn_like(changed[:, secret])
    return (layer(changed) - layer(x)).abs().max().item()
"""
            + SILENCE,
            (0, 0, 1),
        ),
        (
            "adds 10 to every feature, which a norm takes out",
            """# Task 6: prove the laws
def leak(layer, x, secret):
    changed = x.clone()
    changed[:, secret] += 10
    return (layer(changed) - layer(x))[:, ~secret].abs().max().item()
"""
            + SILENCE,
            (0, 0, 1),
        ),
        (
            "changes the caller's x",
            """# Task 6: prove the laws
def leak(layer, x, secret):
    before = layer(x)
    x[:, secret] = torch.randn_like(x[:, secret])
    return (layer(x) - before)[:, ~secret].abs().max().item()
"""
            + SILENCE,
            (0, 0, 1),
        ),
        (
            "the biases are not silenced",
            LEAK
            + """def silence(layer):
    layer.self_attention.w_o.weight.data.zero_()
    layer.feed_forward.contract.weight.data.zero_()
    if hasattr(layer, "cross_attention"):
        layer.cross_attention.w_o.weight.data.zero_()
""",
            (0, 1, 0),
        ),
        (
            "puts zeros at the secret positions: blind where there were zeros already",
            """# Task 6: prove the laws
def leak(layer, x, secret):
    changed = x.clone()
    changed[:, secret] = 0
    return (layer(changed) - layer(x))[:, ~secret].abs().max().item()
"""
            + SILENCE,
            (1, 0, 1),
        ),
        (
            "sets everything to zero, the norms and the first maps, too",
            LEAK
            + """def silence(layer):
    for p in layer.parameters():
        p.data.zero_()
""",
            (1, 1, 0),
        ),
        (
            "forgets the cross-attention",
            LEAK
            + """def silence(layer):
    for last in (layer.self_attention.w_o, layer.feed_forward.contract):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
""",
            (1, 1, 0),
        ),
    ],
}

PARTIAL = (
    "Pass the visible check and fail the hidden tests: no gradient to the weights "
    "(feed_forward), a changed argument (residual), padding taken to stand at the end "
    "(encoder_layer, decoder_layer), d_ff taken as 4 * d_model or a layer built and counted "
    "(layer_parameters), zeros in place of random numbers, too much or too little silenced (laws)."
)
