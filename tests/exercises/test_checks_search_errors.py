"""The check of the page on search errors accepts the right answer and names what is wrong."""

import pytest
import torch

from exercises.checks import search_errors as ch


def right(own, lengths, other, source, weight):
    return own / lengths - weight * (own / lengths - other / source)


def one_by_one(log_p, ids, pad_id):
    found = []
    for scores, row in zip(log_p, ids.tolist(), strict=True):
        row = [i for i in row if i != pad_id]
        found.append(sum(scores[t, i] for t, i in enumerate(row)) / len(row))
    return torch.stack(found)


def padding_is_counted(log_p, ids, pad_id):
    chosen = log_p.gather(-1, ids[..., None]).squeeze(-1)  # (n, T)
    chosen = chosen.masked_fill(ids == pad_id, 0.0)
    return chosen.mean(-1)


SIX = [0.2, *[0.16] * 5]

CASES = [
    (ch.both, (right,), True, "Right"),
    (ch.both, (lambda *args: ...,), None, "Not attempted"),
    (ch.both, (lambda own, n, other, s, w: (1 - w) * own + w * other,), False, "pays for each"),
    (ch.both, (lambda own, n, other, s, w: w * own / n + (1 - w) * other / s,), False, "swapped"),
    (ch.both, (lambda own, n, other, s, w: ((1 - w) * own + w * other) / n,), False,
     "source's length"),
    (ch.both, (lambda own, n, other, s, w: own / n,), False, ""),
    (ch.both, (lambda own, n, other, s, w: right(own, n, other, s, w).argmax(),), False, ""),
    (ch.by_hand, (2, 3, 3), True, "Right"),
    (ch.by_hand, (3, 3, 3), False, "per token"),
    (ch.by_hand, (2, 2, 3), False, "divide by the token counts"),
    (ch.by_hand, (2, 3, 1), False, "the captions one by one"),
    (ch.repaired_score, (one_by_one,), True, "Right"),
    (ch.repaired_score, (padding_is_counted,), False, "still counted"),
    (ch.repaired_score, (lambda log_p, ids, pad: log_p.amax(-1).mean(-1),), False, ""),
    (ch.overturned, (SIX, 0.2, 0.84), True, "4.2 times"),
    (ch.overturned, (torch.tensor([0.19, *[0.15] * 5, 0.06]), 0.19, 0.79), True, "4.2 times"),
    (ch.overturned, ([0.2, 0.2, 0.2], 0.2, 0.6), False, "sum to 1"),
    (ch.overturned, (0.5, 0.5, 1.0), False, "a list of probabilities"),
    (ch.overturned, ([1.5, -0.5], 1.5, 1.0), False, "a list of probabilities"),
    (ch.overturned, ([0.2] * 5, 0.2, 1.0), False, "times as likely as the second"),
    (ch.overturned, ([1.0], 1.0, 1.0), False, "times as likely as the second"),
    (ch.overturned, ([0.5, 0.25, 0.25], 0.5, 1.0), False, "four times"),
    (ch.overturned, (SIX, 0.16, 0.84), False, "`chosen` is"),
    (ch.overturned, (SIX, 0.2, 1.0), False, "`oracle` is"),
    (ch.overturned, (SIX, "often", 0.84), False, "must be a number"),
    (ch.overturned, ([0.2, *[0.18] * 4, 0.08], 0.2, 0.92), False, "1.2 times as likely"),
    (ch.overturned, ([0.22, *[0.13] * 6], 0.22, 0.74), False, "four times"),
    (ch.overturned, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
