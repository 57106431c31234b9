"""The check of the page on search errors accepts the right answer and names what is wrong."""

import pytest

from exercises.checks import search_errors as ch


def right(own, lengths, other, source, weight):
    return own / lengths - weight * (own / lengths - other / source)


CASES = [
    (ch.both, (right,), True, "Right"),
    (ch.both, (lambda *args: ...,), None, "Not attempted"),
    (ch.both, (lambda own, n, other, s, w: (1 - w) * own + w * other,), False, "pays for each"),
    (ch.both, (lambda own, n, other, s, w: w * own / n + (1 - w) * other / s,), False, "exchanged"),
    (ch.both, (lambda own, n, other, s, w: ((1 - w) * own + w * other) / n,), False,
     "source's length"),
    (ch.both, (lambda own, n, other, s, w: own / n,), False, ""),
    (ch.both, (lambda own, n, other, s, w: right(own, n, other, s, w).argmax(),), False, ""),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
