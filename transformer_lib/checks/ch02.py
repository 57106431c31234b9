"""Checks for chapter 02, scaled dot-product attention."""

import math

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("02.1", hint="give a list of four numbers")
def equal_keys(answer):
    expect_shape(answer, (4,), "there are four keys, so four weights")
    expect_close(sum(answer), 1.0, "attention weights of a query sum to 1", tolerance=1e-3)
    expect_close(
        answer,
        [0.25] * 4,
        "equal keys give equal scores for every query, so no key can get more than another",
        tolerance=1e-3,
    )


def _diagnose(output, q, k, v):
    """Name the usual slip by recomputing it."""
    d_k = q.size(-1)
    scores = q @ k.transpose(-2, -1)
    expect_shape(output, v.shape[:-2] + (q.size(-2), v.size(-1)), "one output per query")
    slips = {
        "you forgot to divide the scores by sqrt(d_k)": scores.softmax(-1) @ v,
        "you divided by d_k; the divisor is its square root": (scores / d_k).softmax(-1) @ v,
        "you divided after the softmax, so the rows no longer sum to 1; divide the scores, "
        "before it": scores.softmax(-1) / math.sqrt(d_k) @ v,
        "your softmax runs over the queries; it must run over the keys, dim=-1": (
            (scores / math.sqrt(d_k)).softmax(-2) @ v
        ),
        "you averaged without the softmax: the scores themselves are not shares": (
            scores / math.sqrt(d_k) @ v
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expect_close(
        output, F.scaled_dot_product_attention(q, k, v), "the output differs from PyTorch's"
    )


@exercise("02.2", hint="score, scale, softmax, weighted sum")
def attention(answer):
    # As many queries as keys first, so that a softmax over the wrong axis can be told apart.
    square = torch.randn(3, 2, 6, 8)
    _diagnose(answer(*square), *square)
    q, k, v = torch.randn(2, 5, 8), torch.randn(2, 7, 8), torch.randn(2, 7, 3)
    _diagnose(answer(q, k, v), q, k, v)


@exercise("02.3", given=0xA69B2E63)
def repaired_attention(answer):
    square = torch.randn(3, 2, 6, 8)
    _diagnose(answer(*square), *square)


@exercise("02.4", hint="divide the scores by the temperature, then softmax")
def temperature(weights_at, tau):
    scores = torch.tensor([2.0, 1.0, 0.0])
    at_two = weights_at(scores, 2.0)
    expect(
        not same(at_two, (scores * 2).softmax(-1), 1e-4),
        "you multiply by the temperature; divide, so that a higher one flattens the weights",
    )
    expect(
        not same(at_two, scores.softmax(-1) / 2, 1e-4),
        "divide the scores, not the weights: your weights no longer sum to 1",
    )
    expect_close(at_two, (scores / 2).softmax(-1), "at temperature 2 the weights are not right")
    first = float((scores / tau).softmax(-1)[0])
    hint = "lower" if first < 0.5 else "raise"
    expect(
        abs(first - 0.5) < 0.005,
        f"at your temperature the first key gets {first:.3f}, not 0.50: {hint} it",
    )


@exercise("02.5", hint="count Q K^T, then weights times V")
def multiplications(answer):
    given, expected = answer(10, 4), 2 * 10 * 10 * 4
    expect(
        given != expected // 2, "that is one of the two products; the weighted sum costs as much"
    )
    expect(given != 2 * 10 * 4, "every query meets every key: count pairs of tokens")
    expect(
        given != 2 * 10 * 4 * 4,
        "that is what the projections cost; Q K^T has one sum of d products per pair of tokens",
    )
    expect_close(given, expected, "for n = 10 and d = 4 the count is not right", tolerance=0)
    expect_close(answer(7, 3), 2 * 7 * 7 * 3, "for n = 7 and d = 3 the count is not right", 0)
