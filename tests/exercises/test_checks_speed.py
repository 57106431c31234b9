"""The checks of the page How fast it is accept right answers and name what is wrong."""

import math

import pytest

from exercises.checks import speed as ch


def tried_out(weights, cached, rate, bandwidth):
    for batch in range(1, 1000):
        operations = 2 * batch * (weights + cached)
        if operations / rate >= 4 * (weights + batch * cached) / bandwidth:
            return batch
    return 0


def roofline(weights, cached, rate, bandwidth):
    return math.ceil(2 * rate / bandwidth)


def never_zero(weights, cached, rate, bandwidth):
    return tried_out(weights, cached, rate, bandwidth) or 1


TWO = [[127, 5, -3], [100, 50, 7]]

CASES = [
    (ch.batch_to_fill, (tried_out,), True, "Right"),
    (ch.batch_to_fill, (lambda *given: ...,), None, "Not attempted"),
    (ch.batch_to_fill, (roofline,), False, "for any model"),
    (ch.batch_to_fill, (lambda *given: tried_out(*given) + 1,), False, ""),
    (ch.batch_to_fill, (lambda w, c, r, m: tried_out(w, c, r / 2, m / 2),), True, "Right"),
    (ch.batch_to_fill, (lambda w, c, r, m: tried_out(w, c, r, 4 * m),), False, "four bytes"),
    (ch.batch_to_fill, (lambda w, c, r, m: tried_out(w, c, 2 * r, m),), False, "with an addition"),
    (ch.batch_to_fill, (never_zero,), False, "return 0"),
    (ch.rows_are_worse, (TWO, 0.394, 0), True, "0.394"),
    (ch.rows_are_worse, ([[254, 2, 4], [100, 50, 8]], 0.394, 0), True, "Right"),
    (ch.rows_are_worse, (TWO, 0.2, 0), False, "by_row isn't 0.2, it's more"),
    (ch.rows_are_worse, (TWO, 0.394, 0.5), False, "by_matrix isn't 0.5, it's less"),
    (ch.rows_are_worse, (TWO, -0.394, 0), False, "without a sign"),
    (ch.rows_are_worse, ([[127, 5], [127, 6]], 0, 0), False, "rows differ"),
    (ch.rows_are_worse, ([[0.5, -0.25], [0.03, 0.01]], 0, 0), False, "more than twice"),
    (ch.rows_are_worse, ([[127, 5], [0, 0]], 0, 0), False, "row of zeros"),
    (ch.rows_are_worse, ([[127, 5], [3]], 0, 0), False, "equally many"),
    (ch.rows_are_worse, ([[127, "5"], [3, 4]], 0, 0), False, "isn't a number"),
    (ch.rows_are_worse, (..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out


def test_the_errors_are_those_of_the_export():
    import torch

    from transformer_lib.runs.export import round_rows  # not in a page

    matrix = torch.tensor(TWO, dtype=torch.float32)
    found = []
    for part in (matrix, matrix.view(1, -1)):
        rounded, scale = round_rows(part)
        found.append((rounded * scale[:, None] - part).abs().max().item())
    assert found == pytest.approx(ch._errors(TWO), abs=1e-5)
