"""The checks of the page Choices and comparisons accept right answers and name what is wrong."""

import pytest
import torch

from exercises.checks import choices as ch


def by_least_squares(scores):
    """Both spreads from a fit with a level for each variant, and one for each seed."""
    V, n = scores.shape
    total, rows = float(scores.square().sum()), n * float(scores.mean(1).square().sum())
    columns = V * float(scores.mean(0).square().sum())
    middle = V * n * float(scores.mean()) ** 2
    return (
        ((total - rows) / (V * (n - 1))) ** 0.5,
        ((total - rows - columns + middle) / ((V - 1) * (n - 1))) ** 0.5,
    )


def in_double(scores):
    return by_least_squares(scores.double())


def like_numpy(scores):
    own = scores - scores.mean(1, keepdim=True)
    return own.std(correction=0), (own - own.mean(0)).std(correction=0)


def seeds_for_nothing(scores):
    own = scores - scores.mean(1, keepdim=True)
    freedom = len(scores) * (scores.shape[1] - 1)
    return tuple((x.square().sum() / freedom).sqrt() for x in (own, own - own.mean(0)))


DOWN = [9, 8, 8.1, 7.1, 7.2, 6.2, 6.3, 5.3, 5.4, 4.4]
UP = [30, 29.9, 30.9, 30.8, 31.8, 31.7, 32.7, 32.6, 33.6, 33.5]
LINE = list(range(20, 10, -1))

CASES = [
    (ch.spreads, (in_double,), True, "Right"),
    (ch.spreads, (lambda scores: (..., ...),), None, "Not attempted"),
    (ch.spreads, (like_numpy,), False, "its own mean"),
    (ch.spreads, (seeds_for_nothing,), False, "use up degrees"),
    (ch.spreads, (lambda scores: in_double(scores)[::-1],), False, "swapped"),
    (ch.spreads, (lambda scores: in_double(scores.T),), False, "rows are variants"),
    (ch.spreads, (lambda scores: tuple(x**2 for x in in_double(scores)),), False, "variances"),
    (ch.spreads, (lambda scores: scores.std(),), False, "two values"),
    (ch.neighbours, (DOWN, UP, 1), True, "is -0.92 over the run"),
    (ch.neighbours, (DOWN, UP, 0.95), True, "+1.00"),
    (ch.neighbours, (DOWN, UP, -0.92), False, "it's higher"),
    (ch.neighbours, (DOWN, UP, 2), False, "between -1 and 1"),
    (ch.neighbours, (DOWN, UP[::-1], 1), False, "must be -0.9 or lower"),
    (ch.neighbours, (LINE, LINE[::-1], -1), False, "there the claim still holds"),
    (ch.neighbours, (DOWN[:9], UP, 1), False, "needs 10 numbers"),
    (ch.neighbours, (LINE, [1] * 10, 1), False, "no correlation"),
    (ch.neighbours, ([x - 4 for x in DOWN], UP, 1), False, "at least 1"),
    (ch.neighbours, (DOWN, [x + 70 for x in UP], 1), False, "between 0 and 100"),
    (ch.neighbours, (DOWN, [*UP[:9], "high"], 1), False, "isn't a number"),
    (ch.neighbours, (9, UP, 1), False, "must be a list"),
    (ch.neighbours, (DOWN, UP, "one"), False, "a correlation, a number"),
    (ch.neighbours, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out


def test_a_seed_that_shifts_all_variants_is_luck_only_without_blocks():
    scores = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shifted = scores + torch.tensor([0.0, 5.0, -2.0], dtype=torch.float64)
    (s, s_r), (wide, same) = ch.spreads.reference(scores), ch.spreads.reference(shifted)
    assert wide > 3 * s and torch.isclose(s_r, same)
