"""The checks of the page More on positions accept right answers and name what is wrong."""

import math

import pytest
import torch

from exercises.checks import more_on_positions as ch


def by_products(shares):
    """The sum up to t is the product of 1 / (1 - share)."""
    sums = [1.0]
    for share in shares[1:].tolist():
        sums.append(sums[-1] / (1 - share))
    return torch.tensor([math.log(s * w) for s, w in zip(shares.tolist(), sums, strict=True)])


def matrix(first, second=(0, 0)):
    (a, b), (c, d) = first, second
    return [[a, b, 0, 0], [-b, a, 0, 0], [0, 0, c, d], [0, 0, -d, c]]


def only(i, j):
    M = [[0] * 4 for _ in range(4)]
    M[i][j] = 1
    return M


SIN, COS = math.sin(3), math.cos(3)

CASES = [
    (ch.clock, (by_products,), True, "Right"),
    (ch.clock, (lambda shares: ...,), None, "Not attempted"),
    (ch.clock, (lambda shares: by_products(shares).exp(),), False, "return the logarithms"),
    (ch.clock, (lambda shares: shares.log(),), False, "isn't enough"),
    (ch.clock, (lambda shares: by_products(shares)[1:],), False, "(T,)"),
    (ch.clock, (lambda shares: -by_products(shares),), False, ""),
    (ch.overturned, (matrix((0, 1)), SIN), True, "0.14, and one three ahead gets -0.14"),
    (ch.overturned, (torch.tensor(matrix((1, 2.0))), COS + 2 * SIN), True, "Right"),
    (ch.overturned, (matrix((0, 1), (3, 1)), SIN + 3 * math.cos(0.03) + math.sin(0.03)), True, ""),
    (ch.overturned, (matrix((1, 0)), COS), False, "the same on both sides"),
    (ch.overturned, (matrix((0, 0), (0, 5)), 0.15), False, "differ by at least 0.5"),
    (ch.overturned, (only(0, 1), SIN), False, "20 places later"),
    (ch.overturned, (only(0, 2), SIN), False, "20 places later"),
    (ch.overturned, (matrix((0, 1)), -SIN), False, "three places after it"),
    (ch.overturned, (matrix((0, 1)), 0.05), False, "angles are 3"),
    (ch.overturned, ([[1, 2], [3, 4]], 0.05), False, "four rows"),
    (ch.overturned, (matrix((0, 1)), "little"), False, "hold numbers"),
    (ch.overturned, (..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
