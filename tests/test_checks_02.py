"""Every check of chapter 02 accepts the right answer and names what is wrong with others."""

import math

import pytest

from transformer_lib.checks import ch02


def right(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1) @ v


def unscaled(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


def wrong_axis(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-2) @ v


def scaled_too_late(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) / math.sqrt(q.size(-1)) @ v


def weights_at(scores, temperature):
    return (scores / temperature).softmax(-1)


# The temperature at which softmax([2, 1, 0] / tau)[0] is 1/2: with x = exp(-1 / tau),
# 1 = x + x^2, so x is the golden ratio's inverse.
TAU = -1 / math.log((math.sqrt(5) - 1) / 2)

CASES = [
    (ch02.equal_keys, ([0.25] * 4,), True, "Right"),
    (ch02.equal_keys, (...,), None, "Not attempted"),
    (ch02.equal_keys, ([1, 0, 0, 0],), False, "equal scores"),
    (ch02.equal_keys, ([1, 1, 1, 1],), False, "sum to 1"),
    (ch02.attention, (right,), True, "Right"),
    (ch02.attention, (lambda q, k, v: ...,), None, "Not attempted"),
    (ch02.attention, (unscaled,), False, "forgot to divide"),
    (ch02.attention, (wrong_axis,), False, "over the queries"),
    (ch02.repaired_attention, (right,), True, "Right"),
    (ch02.repaired_attention, (scaled_too_late,), False, "after the softmax"),
    (ch02.repaired_attention, (unscaled,), False, "forgot to divide"),
    (ch02.temperature, (weights_at, TAU), True, "Right"),
    (ch02.temperature, (lambda s, t: ..., ...), None, "Not attempted"),
    (ch02.temperature, (lambda s, t: (s * t).softmax(-1), TAU), False, "multiply"),
    (ch02.temperature, (lambda s, t: s.softmax(-1) / t, TAU), False, "not the weights"),
    (ch02.temperature, (weights_at, 1.0), False, "raise it"),  # too sharp
    (ch02.temperature, (weights_at, 4.0), False, "lower it"),
    (ch02.multiplications, (lambda n, d: 2 * n * n * d,), True, "Right"),
    (ch02.multiplications, (lambda n, d: ...,), None, "Not attempted"),
    (ch02.multiplications, (lambda n, d: n * n * d,), False, "one of the two products"),
    (ch02.multiplications, (lambda n, d: 2 * n * d,), False, "pairs of tokens"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
