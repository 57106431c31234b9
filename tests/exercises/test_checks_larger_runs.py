"""The checks of the page Larger runs accept right answers and name what is wrong."""

import itertools
import math

import pytest

from exercises.checks import larger_runs as ch


def counted(n, m, comparisons):
    """Every order of n + m runs looked at."""
    orders = list(itertools.combinations(range(n + m), n))
    apart = sum(max(one) - min(one) == n - 1 and (0 in one or n + m - 1 in one) for one in orders)
    none = 1.0
    for _ in range(comparisons):
        none *= 1 - apart / len(orders)
    return 1 - none


def factorials(n, m, comparisons):
    p = 2 * math.factorial(n) * math.factorial(m) / math.factorial(n + m)
    return 1 - (1 - p) ** comparisons


CASES = [
    (ch.by_luck, (counted,), True, "Right"),
    (ch.by_luck, (factorials,), True, "Right"),
    (ch.by_luck, (lambda n, m, k: ...,), None, "Not attempted"),
    (ch.by_luck, (lambda n, m, k: 1 - (1 - 1 / math.comb(n + m, n)) ** k,), False, "either arm"),
    (ch.by_luck, (lambda n, m, k: factorials(n, m, 1),), False, "a single comparison"),
    (ch.by_luck, (lambda n, m, k: k * factorials(n, m, 1),), False, "above 1"),
    (ch.by_luck, (lambda n, m, k: 1 - (1 - 2 * 0.5 ** (n * m)) ** k,), False, ""),
    (ch.by_luck, (lambda n, m, k: factorials(n, n, k),), False, "whatever `m` is"),
    (ch.overturned, (0.5, 90, 2.8636), True, "2.86 times as far"),
    (ch.overturned, (0.5, 180, 2.2), True, "16 times as near"),
    (ch.overturned, (0.3, 120, 20.97), True, "20.97 times"),
    (ch.overturned, (1, 90, 0.2), False, "0.20 times as far"),
    (ch.overturned, (0.9, 60, 0.7), False, "what makes the last one so good"),
    (ch.overturned, (0.5, 90, 0.3492), False, "upside down"),
    (ch.overturned, (0.5, 90, 14.318), False, "sum of the five"),
    (ch.overturned, (0.5, 90, 6.2), False, "different directions"),
    (ch.overturned, (0.5, 90, 0.17898), False, "relative to the first"),
    (ch.overturned, (0.5, 90, 3.3), False, "x and y separately"),
    (ch.overturned, (0.1, 90, 20), False, "between 0.2 and 1"),
    (ch.overturned, (1.2, 90, 20), False, "between 0.2 and 1"),
    (ch.overturned, (0.5, 20, 20), False, "between 60 and 180"),
    (ch.overturned, (0.5, 200, 20), False, "between 60 and 180"),
    (ch.overturned, ("half", 90, 2), False, "must be a number"),
    (ch.overturned, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
