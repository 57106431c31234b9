"""The checks of the page A translator in ten minutes accept right answers and name the others."""

import pytest

from exercises.checks import speedrun as ch


def solved(a):
    c = (-a - 3 * (1 - a)) / 2
    return 1 - a - c, c


def highest(a):
    b, c = solved(a)
    stretches = [i / 10_000 for i in range(10_001)]
    return max(a * s + b * s**3 + c * s**5 for s in stretches)


CASES = [
    (ch.settling, (solved,), True, "Right"),
    (ch.settling, (lambda a: [2.5 - 2 * a, a - 1.5],), True, "Right"),
    (ch.settling, (lambda a: ...,), None, "Not attempted"),
    (ch.settling, (lambda a: solved(a)[::-1],), False, "swapped"),
    (ch.settling, (lambda a: (1 - a, 0),), False, "second condition"),
    (ch.settling, (lambda a: (2.5 - 2 * a, 1.5 - a),), False, "`c` is the first that differs"),
    (ch.settling, (lambda a: a - 1.5,), False, "two"),
    (ch.overturned, (3.4445, 0.5, highest(3.4445)), True, "more than a million"),
    (ch.overturned, (3, 0.63, 1.164), True, "1.16 at the most"),
    (ch.overturned, (4, 0.5, highest(4)), True, "1.41 at the most"),
    (ch.overturned, (2.5, 0.5, 1.061), False, "isn't 0.3 further from 1"),
    (ch.overturned, (3.4445, 0.01, 1.27), False, "isn't 0.3 further from 1"),
    (ch.overturned, (3.4445, 0.5, 0.595), False, "at the highest point"),
    (ch.overturned, (3.4445, 0.5, 0.354), False, "square"),
    (ch.overturned, (3.4445, 0.5, 1), False, "low point"),
    (ch.overturned, (3.4445, 0.5, 1.2344), False, "another stretch gets higher"),
    (ch.overturned, (3.4445, 0.5, 2), False, "where is p'(s) 0?"),
    (ch.overturned, (1.5, 0.5, 1), False, "above 1.5"),
    (ch.overturned, (5, 0.5, 1), False, "at most 4"),
    (ch.overturned, (3.4, 1.5, 1), False, "at most 1"),
    (ch.overturned, (3.4, 0, 1), False, "above 0"),
    (ch.overturned, (3.4, 0.5, "high"), False, "must be a number"),
    (ch.overturned, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
