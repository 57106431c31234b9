"""Checks for the chapter What a cache costs."""

import torch

from exercises.checks import Part, exercise, expect, expect_shape, judged, values
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond.caches import quantise

by_hand = values(
    1,
    "by_hand",
    hint=(
        "how many numbers does one layer keep for each token?",
        "keys and values, so two vectors for each head that has its own; then times the layers and "
        "the bytes of a number",
        "the latent vector and the turned part are kept once for all heads: 512 + 64 numbers",
    ),
    token=Part(
        163840,
        "multiply keys and values, 8 heads of 128 numbers, 40 layers, 2 bytes each",
        {
            "there are keys and values, so twice as many": 81920,
            "that is one layer out of 40": 4096,
            "that is with 64 heads, but only 8 have keys and values; or with 16 bytes a number, "
            "but 16 bits are 2 bytes": 1310720,
            "16 bits are 2 bytes": [1310720 * 2, 163840 * 4],
        },
    ),
    tokens=Part(
        48828,
        "divide the 8 billion bytes by the bytes of a token, and round down",
        {
            "round down: one token more doesn't fit": 48829,
            "that is with 64 heads of keys and values": 6103,
            "8 GB are 8 times 10 to the power of 9 bytes here": 52428,
        },
    ),
    latent=Part(
        46080,
        "multiply 512 and 64 numbers, 40 layers, 2 bytes each",
        {
            "the turned numbers have to be kept, too": 40960,
            "keys and values are made from one vector, which is kept once": 92160,
            "that is one layer out of 40": 1152,
            "one vector serves all the heads, so it is kept once": [46080 * 8, 46080 * 64],
        },
    ),
)


def _kept(near, is_global=lambda i, every: i % every == every - 1):
    """A count with these tokens in a layer that forgets, and this choice of those that do not."""

    def count(length, window, n_layers, every):
        return sum(
            length if is_global(i, every) else near(length, window) for i in range(n_layers)
        )

    return count


@exercise(
    2,
    inputs=[(100, 10, 6, 3), (7, 20, 4, 2), (500, 32, 7, 3), (64, 64, 5, 4), (90, 8, 3, 5)],
    hint=(
        "count the layers of each kind; what does a layer keep while the text is short?",
        "of n_layers, n_layers // every keep the whole text; the others at most `window` tokens",
        "7 layers with every = 3 means 2 that keep everything and 5 that don't",
    ),
    shrinks=False,
    slips={
        "a text that is shorter than the window fills only a part of it": (
            _kept(lambda length, window: window)
        ),
        "layer 0 keeps a window: the first layer that keeps everything is layer `every - 1`": (
            _kept(min, lambda i, every: i % every == 0)
        ),
        "you swapped the two kinds: one of `every` layers keeps everything": (
            _kept(min, lambda i, every: i % every != every - 1)
        ),
        "none of your layers keeps everything": _kept(min, lambda i, every: False),
        "return the sum over all the layers, not the mean": [
            lambda *args: _kept(min)(*args) / args[2], lambda *args: _kept(min)(*args) // args[2],
        ],
        "n_layers need not be a multiple of `every`: count whole layers, rounded down": [
            lambda length, window, n_layers, every, whole=whole: whole(
                n_layers * min(length, window) + n_layers / every * (length - min(length, window))
            )
            for whole in (float, int, round)
        ]
        + [
            lambda length, window, n_layers, every: (
                n_layers * min(length, window)
                + round(n_layers / every) * (length - min(length, window))
            )
        ],
    },
)
def kept_in_all(length, window, n_layers, every):
    n_global = n_layers // every
    near = min(length, window)
    return n_global * length + (n_layers - n_global) * near


def _latents(H=3, T=5, K=4, R=10):
    return torch.randn(H, T, K), torch.randn(T, R), torch.randn(H, K, R), torch.randn(H, K, R)


def _absorbed(root, last=lambda x, w_v: x @ w_v.mT):
    def attention(q, c, w_k, w_v):
        weights = (q @ w_k @ c.mT / root(q, c)).softmax(-1)
        return last(weights @ c, w_v)

    return attention


@exercise(
    3,
    inputs=_latents,
    vary=(dict(H=1, T=3, K=2, R=6), dict(H=2, T=4, K=6, R=3)),
    given=0xFC3FAACB,
    wrong="the output differs from that of attention with keys and values",
    shape="one output of K numbers for each head and query",
    slips={
        "the scores are divided by the root of the latent vector's width: which product "
        "has K terms?": _absorbed(lambda q, c: c.size(-1) ** 0.5),
        "nothing divides your scores: they need the root of K": _absorbed(lambda q, c: 1.0),
        "divide by the root of K, not by K": _absorbed(lambda q, c: q.size(-1)),
        "each head has scores of its own: take the root of K, not of all the heads' numbers "
        "together": (
            _absorbed(lambda q, c: (q.size(0) * q.size(-1)) ** 0.5)
        ),
        "don't hide the future: the two must be equal without a mask": (
            lambda q, c, w_k, w_v: (
                (q @ w_k @ c.mT / q.size(-1) ** 0.5)
                .masked_fill(torch.ones(len(c), len(c)).triu(1) > 0, -torch.inf)
                .softmax(-1) @ c @ w_v.mT
            )
        ),
        "your softmax runs over the queries; it must run over the keys, the last axis": (
            lambda q, c, w_k, w_v: (q @ w_k @ c.mT / q.size(-1) ** 0.5).softmax(1) @ c @ w_v.mT
        ),
    },
)
def absorbed_attention(q, c, w_k, w_v):
    down = q @ w_k  # (H, T, R)
    weights = (down @ c.mT / q.size(-1) ** 0.5).softmax(-1)  # (H, T, T)
    return weights @ c @ w_v.mT  # (H, T, K)


def _outlier():
    generator = torch.Generator().manual_seed(0)
    k = torch.zeros(1, 1, 16, 8)
    k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1  # each its own signs
    q = 8 * k[:, :, 5:6]  # asks for one key
    k[..., 0] = 100  # nobody asks for this channel, and it sets every step
    return q, k, torch.randn(1, 1, 16, 8, generator=generator)


@judged(
    4,
    hint=(
        "a step is a fifteenth of the distance from the lowest number to the highest",
        "one channel that is large in every key makes all steps of its tokens wide; what the query "
        "looks for can be in the other channels",
        "where a step is wider than what tells two keys apart, both get the same code",
    ),
    example=_outlier,
)
def overturned(answer):
    found = answer()
    expect(isinstance(found, (tuple, list)) and len(found) == 3, "return three tensors: q, k and v")
    q, k, v = found
    expect_shape(q[..., :1], (1, 1, 1, 1), "there must be one query")
    expect_shape(k[..., :1], (1, 1, 16, 1), "there must be 16 keys")
    expect_shape(v[..., :1], (1, 1, 16, 1), "there must be 16 values")
    largest = max(x.abs().max().item() for x in found)
    expect(largest <= 100, f"no number may be above 100; your largest is {largest:.4g}")
    codes, step, low = quantise(k, 4)
    exact = scaled_dot_product_attention(q, k, v)[0]
    rounded = scaled_dot_product_attention(q, codes * step + low, v)[0]
    error = ((rounded - exact).norm() / exact.norm().clamp(min=1e-9)).item()
    expect(
        error > 0.5,
        f"the output moves by {error:.2f} of its norm; a step is {step.mean().item():.2g} wide: "
        "what makes it wide in a key, and does the query have to ask for that?",
    )
