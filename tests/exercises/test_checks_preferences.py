"""Every check of the chapter Preferences accepts the right answer and names what is wrong."""

import math

import pytest

from exercises.checks import preferences as ch


def loss(log_p, log_before, reward, price):
    earned = reward - price * (log_p.detach() - log_before)
    return ((earned.mean() - earned) * log_p).mean()


def repaired_loss(log_p, log_before, reward, price):
    advantage = reward - reward.mean()
    kl = (log_p - log_before).mean()
    return -(advantage * log_p).mean() + price * kl


def kept(p, reward, n):
    order = reward.argsort()
    up_to = p[order].cumsum(0) ** n
    found = p.clone()
    found[order[0]] = up_to[0]
    found[order[1:]] = up_to[1:] - up_to[:-1]
    return found


THREE = ([0.49, 0.49, 0.02], [0, 1, -3], [0, 1, 2])
CASES = [
    (ch.by_hand, ([0.25, 0.25, 0.5], 0.667), True, "Right"),
    (ch.by_hand, ([1 / 7, 2 / 7, 4 / 7], 0.667), False, "forgot the reference"),
    (ch.by_hand, ([0.5, 0.5, 1.0], 0.667), False, "divide by the sum"),
    (ch.by_hand, ([0.25, 0.25, 0.5], 0.333), False, "second is chosen"),
    (ch.predicted, (0.69, 3.17), True, "Right"),
    (ch.predicted, (0.5, 3.17), False, "minus its logarithm"),
    (ch.predicted, (0.693, 4.159), False, "second term"),
    (ch.predicted, (0.693, 5.02), False, "natural"),
    (ch.repaired_loss, (loss,), True, "Right"),
    (ch.repaired_loss, (repaired_loss,), None, "Not attempted"),
    (ch.repaired_loss, (lambda *x: repaired_loss(*x) + 0,), False, "belongs to what a text earns"),
    (ch.repaired_loss, (lambda p, b, r, c: -((r - r.mean()) * p).mean(),), False, "missing"),
    (ch.best_of, (kept,), True, "Right"),
    (ch.best_of, (lambda p, reward, n: ...,), None, "Not attempted"),
    (ch.best_of, (lambda p, reward, n: p,), False, "n-th power"),
    (ch.best_of, (lambda p, reward, n: 1 - (1 - p) ** n,), False, "among the n at all"),
    (ch.misled, THREE, True, "Right"),
    (ch.misled, (THREE[0], THREE[1], [0, 1, -3]), False, "nobody was misled"),
    (ch.misled, ([0.4, 0.3, 0.3], THREE[1], THREE[2]), False, "90 %"),
    (ch.misled, ([0.5, 0.5, 0.5], THREE[1], THREE[2]), False, "sum to"),
    (ch.misled, (THREE[0], [1, 1, 0], THREE[2]), False, "different"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out


def test_the_numbers_by_hand():
    assert math.log(64) - 63 / 64 == pytest.approx(3.17, abs=0.01)
