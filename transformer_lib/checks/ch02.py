"""Checks for chapter 02, scaled dot-product attention."""

import math

import torch

from transformer_lib.checks import Part, exercise, expect, expect_close, judged, same, values


def _attend_equal_keys():
    """Weights of a random query over four copies of a random key."""
    scores = torch.randn(5) @ torch.randn(5).expand(4, 5).T
    return {"weights": [round(weight, 3) for weight in scores.softmax(-1).tolist()]}


equal_keys = values(
    "02.1",
    "equal_keys",
    measure=_attend_equal_keys,
    hint="give a list of four numbers",
    weights=Part(
        [0.25] * 4,
        "equal keys give equal scores for every query, so no key can get more than another",
        {
            "there are four keys, so four weights": lambda given: len(given) != 4,
            "attention weights of a query sum to 1": lambda given: abs(sum(given) - 1) > 1e-3,
        },
        tolerance=1e-3,
    ),
)


def _qkv(B=2, T=5, S=5, K=8, V=8):
    # As many queries as keys first, so that a softmax over the wrong axis can be told apart.
    return torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, V)


def _from_scores(how):
    return lambda q, k, v: how(q @ k.mT, math.sqrt(q.size(-1))) @ v


SLIPS = {
    "you forgot to divide the scores by sqrt(d_k)": _from_scores(lambda s, root: s.softmax(-1)),
    "you divided by d_k; the divisor is its square root": (
        _from_scores(lambda s, root: (s / root**2).softmax(-1))
    ),
    "you multiplied by sqrt(d_k); divide": _from_scores(lambda s, root: (s * root).softmax(-1)),
    "you divided after the softmax, so the rows no longer sum to 1; divide the scores, before it": (
        _from_scores(lambda s, root: s.softmax(-1) / root)
    ),
    "your softmax runs over the queries; it must run over the keys, dim=-1": (
        _from_scores(lambda s, root: (s / root).softmax(-2))
    ),
    "you averaged without the softmax: the scores themselves are not shares": (
        _from_scores(lambda s, root: s / root)
    ),
    "the values were never averaged: what you return are the weights": (
        lambda q, k, v: (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    ),
    "the divisor is the root of d_k, the last axis of q, not of the number of keys": (
        lambda q, k, v: (q @ k.mT / math.sqrt(k.size(-2))).softmax(-1) @ v
    ),
}
WRONG = "the output is not that of scaled dot-product attention"


@exercise(
    "02.2", inputs=_qkv, vary=(dict(T=4, S=7, K=6, V=3), dict(B=3, T=6, S=2, K=5, V=4)),
    slips=SLIPS, hint="score, scale, softmax, weighted sum", wrong=WRONG, gradients=True,
    forbid=("scaled_dot_product_attention", "multi_head_attention_forward"),
    shape="one output per query",
)  # fmt: skip
def attention(q, k, v):
    scores = q @ k.mT  # (B, T, S)
    scaled = scores / math.sqrt(q.size(-1))
    weights = scaled.softmax(-1)
    return weights @ v


@exercise(
    "02.3", inputs=_qkv, vary=(dict(T=4, S=7, K=6, V=3),), slips=SLIPS, given=0xA69B2E63,
    wrong=WRONG, gradients=True, shape="one output per query",
)  # fmt: skip
def repaired_attention(q, k, v):
    scores = q @ k.mT  # (B, T, S)
    scaled = scores / math.sqrt(q.size(-1))
    weights = scaled.softmax(-1)
    return weights @ v


@judged(
    "02.4",
    hint="divide the scores by the temperature, then softmax",
    example=(lambda scores, t: (scores / t).softmax(-1), 2.0780869),
)
def temperature(weights_at, tau):
    for scores in (torch.tensor([2.0, 1.0, 0.0]), torch.randn(2, 5)):
        for t in (2.0, 0.5):
            given = weights_at(scores, t)
            expect(
                not same(given, (scores * t).softmax(-1), 1e-4),
                "you multiply by the temperature; divide, so that a higher one flattens the "
                "weights",
            )
            expect(
                not same(given, scores.softmax(-1) / t, 1e-4),
                "divide the scores, not the weights: your weights no longer sum to 1",
            )
            expect_close(
                given, (scores / t).softmax(-1), f"at temperature {t} the weights are not right"
            )
    first = float((torch.tensor([2.0, 1.0, 0.0]) / tau).softmax(-1)[0])
    hint = "lower" if first < 0.5 else "raise"
    expect(
        abs(first - 0.5) < 0.005,
        f"at your temperature the first key gets {first:.3f}, not 0.50: {hint} it",
    )


@exercise(
    "02.5",
    inputs=[(10, 4), (7, 3), (1, 6)],
    hint="count Q K^T, then weights times V",
    wrong="the count is not right",
    large=(100_000, 512),
    slips={
        "that is one of the two products; the weighted sum costs as much": lambda n, d: n * n * d,
        "every query meets every key: count pairs of tokens": lambda n, d: 2 * n * d,
        "that grows with d * d, as the projections do; Q K^T has one sum of d products for each "
        "pair of tokens": (
            lambda n, d: 2 * n * d * d
        ),
    },
)
def multiplications(n, d):
    return 2 * n * n * d
