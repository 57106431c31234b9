"""The check of the page What the vectors know accepts right answers and names what is wrong."""

import pytest

from exercises.checks import vectors as ch

CASES = [
    (ch.by_heart, (64, 128, 200), True, "nothing in common"),
    (ch.by_heart, (128, 300, 200.5), True, "100% of 300"),
    (ch.by_heart, (64, 300, 200), False, "not 90 % yet"),
    (ch.by_heart, (16, 32, 200), False, "not 90 % yet"),
    (ch.by_heart, (128, 200, 200), False, "twice as many"),
    (ch.by_heart, (64, 128, 1), False, "it's higher"),
    (ch.by_heart, (64, 128, 399), False, "it's lower"),
    (ch.by_heart, (256, 300, 200), False, "size lies between"),
    (ch.by_heart, (64, 400, 200), False, "pairs_fitted lies between"),
    (ch.by_heart, (64, 128, 0), False, "unseen lies between"),
    (ch.by_heart, (64.5, 140, 200), False, "whole number"),
    (ch.by_heart, ("64", 128, 200), False, "must be a number"),
    (ch.by_heart, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
