"""The check of the page on search errors accepts the right answer and names what is wrong."""

import pytest

from exercises.checks import search_errors as ch


def right(own, lengths, other, source, weight):
    return own / lengths - weight * (own / lengths - other / source)


CASES = [
    (right, True, "Right"),
    (lambda *args: ..., None, "Not attempted"),
    (lambda own, n, other, s, w: (1 - w) * own + w * other, False, "pays for each"),
    (lambda own, n, other, s, w: w * own / n + (1 - w) * other / s, False, "exchanged"),
    (lambda own, n, other, s, w: ((1 - w) * own + w * other) / n, False, "source's length"),
    (lambda own, n, other, s, w: own / n, False, ""),
    (lambda own, n, other, s, w: right(own, n, other, s, w).argmax(), False, ""),
]


@pytest.mark.parametrize(("answer", "verdict", "word"), CASES)
def test_verdict(answer, verdict, word, capsys):
    assert ch.both(answer) is verdict
    assert word in capsys.readouterr().out
