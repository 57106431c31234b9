"""Every check of chapter 02 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import scaled_dot_product_attention as ch


def right(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1) @ v


def unscaled(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


def scaled_too_late(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) / math.sqrt(q.size(-1)) @ v


def weights_at(scores, temperature):
    return (scores / temperature).softmax(-1)


def by_autograd_of_steps(q, k, v, g):
    """The same gradients, the softmax written out as a matrix for each row."""
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    to_scores = (jacobian @ (g @ v.mT)[..., None])[..., 0] / math.sqrt(q.size(-1))
    return [to_scores @ k, to_scores.mT @ q, weights.mT @ g]


def with_autograd(q, k, v, g):
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(right(*leaves), leaves, g)


def alike(n, d_k):
    return torch.randn(n, 1).expand(n, d_k), torch.randn(n, 1).expand(n, d_k)


# The temperature at which softmax([2, 1, 0] / tau)[0] is 1/2: with x = exp(-1 / tau),
# 1 = x + x^2, so x is the golden ratio's inverse.
TAU = -1 / math.log((math.sqrt(5) - 1) / 2)

CASES = [
    (ch.equal_keys, ([0.25] * 4,), True, "Right"),
    (ch.equal_keys, ([1, 0, 0, 0],), False, "equal scores"),
    (ch.attention, (right,), True, "Right"),
    (ch.attention, (lambda q, k, v: ...,), None, "Not attempted"),
    (ch.attention, (unscaled,), False, "forgot to divide"),
    (ch.repaired_attention, (right,), True, "Right"),
    (ch.repaired_attention, (scaled_too_late,), False, "after the softmax"),
    (ch.temperature, (weights_at, TAU), True, "Right"),
    (ch.temperature, (lambda s, t: ..., ...), None, "Not attempted"),
    (ch.temperature, (lambda s, t: (s * t).softmax(-1), TAU), False, "multiply"),
    (ch.temperature, (lambda s, t: s.softmax(-1) / t, TAU), False, "not the weights"),
    (ch.temperature, (weights_at, 1.0), False, "raise it"),  # too sharp
    (ch.temperature, (weights_at, 4.0), False, "lower it"),
    (ch.attention_backward, (by_autograd_of_steps,), True, "Right"),
    (ch.attention_backward, (lambda *a: (..., ..., ...),), None, "Not attempted"),
    (ch.attention_backward, (with_autograd,), False, "rules out"),
    (ch.attention_backward, (lambda q, k, v, g: (q, k, v),), False, "is the first that differs"),
    (ch.attention_backward, (lambda *a: by_autograd_of_steps(*a)[:2],), False, "three values"),
    (ch.drawn, (alike,), True, "Right"),
    (ch.drawn, (lambda n, d: (..., ...),), None, "Not attempted"),
    (ch.drawn, (lambda n, d: (torch.randn(n, d), torch.randn(n, d)),), False, "still holds"),
    (ch.drawn, (lambda n, d: [3 * x for x in alike(n, d)],), False, "has the variance"),
    (ch.drawn, (lambda n, d: [x + 1 for x in alike(n, d)],), False, "has the mean 0.99"),
    (ch.drawn, (lambda n, d: alike(n, 4),), False, "one row of d_k numbers"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
