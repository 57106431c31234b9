"""Every check of States accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import states as ch


def right_left(log_decay):
    size = len(log_decay)
    rows = [
        [math.exp(log_decay.detach()[j + 1 : i + 1].sum()) if j <= i else 0.0 for j in range(size)]
        for i in range(size)
    ]
    return torch.tensor(rows)


def by_token(q, k, v, log_decay):
    state, outputs = torch.zeros(k.size(1), v.size(1)), []
    for t in range(len(q)):
        state = log_decay[t].exp() * state + k[t, :, None] * v[t]
        outputs.append(q[t] @ state)
    return torch.stack(outputs)


def unfading(q, k, v, log_decay):
    return ch._chunks(lambda q, left, own: q, ch._right_carry)(q, k, v, log_decay)


def keys(*rows):
    return lambda: torch.tensor(rows)


CASES = [
    (ch.by_hand, (11, 7, 8.12), True, "Right"),
    (ch.by_hand, (11, 5.5, 8.12), False, "fades before the write"),
    (ch.by_hand, (11, 7, 11), False, "only what is missing"),
    (ch.by_hand, (..., ..., ...), None, "Not attempted"),
    (ch.left, (right_left,), True, "Right"),  # it needs no gradient
    (ch.left, (lambda d: (d.cumsum(0)[:, None] - d.cumsum(0)).exp().tril(),), True, "Right"),
    (
        ch.left,
        (lambda d: (d.cumsum(0)[:, None] - d.cumsum(0)).exp(),),
        False,
        "future isn't hidden",
    ),
    (ch.left, (lambda d: ...,), None, "Not attempted"),
    (ch.repaired_chunks, (by_token,), True, "Right"),
    (ch.repaired_chunks, (unfading,), False, "it fades inside"),
    (ch.overturned, (keys([1.0, 0.0], [0.8, 0.6]),), True, "Right"),
    (ch.overturned, (keys([1.0, 0.0], [-0.8, 0.6]),), False, "off by 0.16"),
    (ch.overturned, (keys([1.0, 0.0], [0.0, 1.0]),), False, "right angles"),
    (ch.overturned, (keys([1.0, 0.0], [1.0, 0.0]),), False, "nearly one direction"),
    (ch.overturned, (keys([1.0, 0.0], [1.0, 1.0]),), False, "length 1"),
    (ch.overturned, (keys([1.0, 0.0]),), False, "two keys"),
]


@pytest.mark.parametrize("check, answers, verdict, said", CASES)
def test_verdicts(check, answers, verdict, said, capsys):
    assert check(*answers) is verdict
    assert said in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistake.
    def repaired(q, k, v, log_decay):
        state, outputs = torch.zeros(k.size(1), v.size(1)), []
        parts = (x.split(4) for x in (q, k, v, log_decay))
        for q, k, v, log_decay in zip(*parts, strict=True):
            total = log_decay.cumsum(0)  # (t, 1)
            mask = (total - total.T).exp().tril()  # (t, t)
            outputs.append((q @ k.T * mask) @ v + q @ state)
            state = total[-1].exp() * state + (k * (total[-1] - total).exp()).T @ v
        return torch.cat(outputs)

    assert ch.repaired_chunks(repaired) is None
    assert "Not attempted" in capsys.readouterr().out
