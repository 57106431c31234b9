"""Every check of Cheaper attention accepts the right answer and names what is wrong with others."""

import pytest

from exercises.checks import cheaper_attention as ch
from transformer_lib.beyond import sparse


def right_fixed(block, c):
    return lambda i, j: ((i // block == j // block) | (j % block >= block - c)) & (j <= i)


def right_causal(q, k, v):
    memory = (k[..., None] * v[..., None, :]).cumsum(-3)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * k.cumsum(-2)).sum(-1, keepdim=True)


def leaky(q, k, v):
    return q @ (k.mT @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)


def right_merge(a, log_a, b, log_b):
    share = (log_a - log_b).sigmoid()
    return a * share + b * (1 - share)


STAR = sparse.any_of(sparse.local(1), sparse.with_global(1))
CASES = [
    (ch.by_hand, (21, 2011, 10), True, "Right"),
    (ch.by_hand, (10, 2011, 10), False, "one side only"),
    (ch.by_hand, (21, 2000, 10), False, "falls off"),
    (ch.by_hand, (21, 2011, 7), False, "first token and the last"),
    (ch.fixed, (right_fixed,), True, "Right"),
    (ch.fixed, (lambda b, c: ...,), None, "Not attempted"),
    (
        ch.fixed,
        (lambda b, c: lambda i, j: (i // b == j // b) | (j % b >= b - c),),
        False,
        "looks ahead",
    ),
    (
        ch.fixed,
        (lambda b, c: lambda i, j: (j % b >= b - c) & (j <= i),),
        False,
        "own block is missing",
    ),
    (ch.fixed, (lambda b, c: lambda i, j: j <= i,), False, "lets place"),
    (ch.repaired_causal, (right_causal,), True, "Right"),
    (ch.repaired_causal, (lambda q, k, v: ...,), None, "Not attempted"),
    (ch.repaired_causal, (leaky,), False, "the future leaks"),
    (ch.merge, (right_merge,), True, "Right"),
    (ch.merge, (lambda a, x, b, y: ...,), None, "Not attempted"),
    (ch.merge, (lambda a, x, b, y: a + b,), False, "you add"),
    (ch.overturned, (sparse.causal(STAR),), True, "Right"),
    (ch.overturned, (STAR,), False, "two layers still"),
    (ch.overturned, (sparse.local(1),), False, "not global any more"),
    (ch.overturned, (sparse.local(32),), False, "full attention"),
    (ch.overturned, (lambda i, j: (i != j) | (i < 0),), False, "see itself"),
    (
        ch.overturned,
        (lambda i, j: (j == 0) | (i == j) | ((i == 0) & (j == 1)),),
        True,
        "Right",
    ),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistake.
    def repaired(q, k, v):
        written = k[..., None] * v[..., None, :]  # (B, H, T, M, K)
        memory, total = written.cumsum(-3), k.sum(-2, keepdim=True)
        return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

    assert ch.repaired_causal(repaired) is None
    assert "Not attempted" in capsys.readouterr().out
