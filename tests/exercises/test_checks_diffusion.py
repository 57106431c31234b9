"""Every check of the page on masked diffusion accepts the right answer and names what is wrong."""

import math

import pytest

from exercises.checks import diffusion as ch


def loss(nats, hidden, rate):
    return ((nats * hidden).sum(-1) / rate).mean() / nats.size(-1)


def repaired_loss(nats, hidden, rate):
    return (nats * hidden).sum() / hidden.sum()


def kept(score, masked, left):
    found = masked.clone()
    for row, here, text in zip(found, masked, score, strict=True):
        n = math.ceil(here.sum().item() / left)
        best = sorted(here.nonzero()[:, 0].tolist(), key=lambda i: -text[i])[:n]
        row[:] = False
        row[best] = True
    return found


CASES = [
    (ch.by_hand, (0.0833, 24, 136), True, "Right"),
    (ch.by_hand, (1 / 6, 24, 136), False, "6 such sets"),
    (ch.by_hand, (1 / 30, 24, 136), False, "without the division"),
    (ch.by_hand, (1 / 12, 4, 136), False, "a product"),
    (ch.by_hand, (1 / 12, 24, 17), False, "whole text"),
    (ch.repaired_loss, (loss,), True, "Right"),
    (ch.repaired_loss, (repaired_loss,), None, "Not attempted"),
    (ch.repaired_loss, (lambda n, h, r: repaired_loss(n, h, r) + 0,), False, "BERT's loss"),
    (ch.repaired_loss, (lambda n, h, r: (n * h).mean(),), False, "rate is missing"),
    (ch.keep, (kept,), True, "Right"),
    (ch.keep, (lambda score, masked, left: ...,), None, "Not attempted"),
    (ch.keep, (lambda score, masked, left: masked,), False, ""),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
