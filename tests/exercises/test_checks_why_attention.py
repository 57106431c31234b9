"""Every check of chapter 01 accepts the right answer and names what is wrong with others."""

import pytest
import torch

from exercises.checks import why_attention as ch


def lookup(query, keys, values, sharpness):
    return (-sharpness * (query - keys) ** 2).softmax(-1) @ values


def no_shares(query, keys, values, sharpness):
    return (-sharpness * (query - keys) ** 2).exp() @ values


def band(kernel, n):
    half = len(kernel) // 2
    return sum(
        w * torch.diag(torch.ones(n - abs(m - half)), m - half) for m, w in enumerate(kernel)
    )


def ring(kernel, n):
    half = len(kernel) // 2
    return sum(w * torch.eye(n).roll(m - half, 1) for m, w in enumerate(kernel))


CASES = [
    (ch.path_lengths, (99, 50, 1), True, "Right"),
    (ch.path_lengths, (99, 50, 99), False, "directly"),
    (ch.soft_lookup, (lookup,), True, "Right"),
    (ch.soft_lookup, (lambda q, k, v, s: ...,), None, "Not attempted"),
    (ch.soft_lookup, (no_shares,), False, "do not sum to 1"),
    (ch.soft_lookup, (lambda q, k, v, s: lookup(q, k, v, 1),), False, "sharpness out"),
    (ch.soft_lookup, (lambda q, k, v, s: s * lookup(q, k, v, 1),), False, "not the answer"),
    (ch.soft_lookup, (lambda q, k, v, s: lookup(q, k, k, s),), False, "averaged the keys"),
    (ch.repaired_self_attention, (lambda x: (x @ x.T).softmax(-1) @ x,), True, "Right"),
    (ch.repaired_self_attention, (lambda x: ...,), None, "Not attempted"),
    (ch.repaired_self_attention, (lambda x: (x @ x.T).softmax(0) @ x,), False, "columns still"),
    (ch.repaired_self_attention, (lambda x: (x @ x.T).softmax(1).T @ x,), False, "columns still"),
    (ch.repaired_self_attention, (lambda x: x @ x.T @ x,), False, "no softmax"),
    (ch.repaired_self_attention, (lambda x: x.mean(0).expand_as(x),), False, "use the scores"),
    (ch.convolution_weights, (band,), True, "Right"),
    (ch.convolution_weights, (lambda k, n: ...,), None, "Not attempted"),
    (ch.convolution_weights, (ring,), False, "wraps around"),
    (ch.convolution_weights, (lambda k, n: band(k, n)[:-1],), False, "one row for each output"),
    (ch.cost_ratio, (lambda n, d: n / d,), True, "Right"),
    (ch.cost_ratio, (lambda n, d: ...,), None, "Not attempted"),
    (ch.cost_ratio, (lambda n, d: n,), False, "each step multiplies"),
    (ch.cost_ratio, (lambda n, d: n * n * d,), False, "only the cost of attention"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
