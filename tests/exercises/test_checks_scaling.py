"""The checks of the page on scaling laws accept right answers and name what is wrong."""

import json

import pytest

from exercises.checks import scaling as ch


def by_bisection(A, alpha, B, beta, budget):
    """Where 1 % more parameters stop being worth more than 1 % more tokens."""
    low, high = 1e-3, budget / 6e-3
    for _ in range(300):
        N = (low * high) ** 0.5
        D = budget / 6 / N
        low, high = (N, high) if alpha * A / N**alpha > beta * B / D**beta else (low, N)
    return [N, D]


def terms_equal(A, alpha, B, beta, budget):
    N = (A / B) ** (1 / (alpha + beta)) * (budget / 6) ** (beta / (alpha + beta))
    return N, budget / 6 / N


def six_is_forgotten(A, alpha, B, beta, budget):
    return by_bisection(A, alpha, B, beta, 6 * budget)


CASES = [
    (ch.spend, (by_bisection,), True, "Right"),
    (ch.spend, (lambda *given: (..., ...),), None, "Not attempted"),
    (ch.spend, (terms_equal,), False, "it isn't the two terms"),
    (ch.spend, (six_is_forgotten,), False, "six operations"),
    (ch.spend, (lambda *given: by_bisection(*given)[::-1],), False, "swapped"),
    (ch.spend, (lambda A, a, B, b, C: ((C / 6) ** 0.5,) * 2,), False, "same number of parameters "
                                                                      "and tokens"),
    (ch.spend, (lambda A, a, B, b, C: ((C / 120) ** 0.5, (C / 0.3) ** 0.5),), False, "20 tokens"),
    (ch.spend, (lambda *given: by_bisection(*given)[0],), False, "return two values"),
    (ch.floors, (0.2, 2.4, 0.03, 1.28), True, "width 256"),
    (ch.floors, (0, 2.5, 0.05, 1.5), True, "width 256"),
    (ch.floors, (0.2, 1.9, 0.03, 1.28), False, "at least 2 nats"),
    (ch.floors, (2.4, 0.2, 0.03, 1.28), False, "at least 2 nats"),
    (ch.floors, (0.2, 2.7, 0.03, 1.28), False, "this grid can tell"),
    (ch.floors, (0.2, 3, 0.03, 1.28), False, "lowest loss"),
    (ch.floors, (-1, 2, 0.03, 1.28), False, "lowest loss"),
    (ch.floors, (0.2, 2.4, 0.5, 1.28), False, "`near` isn't 0.5, it's less"),
    (ch.floors, (0.2, 2.4, 0.03, 2.2), False, "`far` isn't 2.2, it's less"),
    (ch.floors, (0.2, 2.4, 0.03, 0.6), False, "`far` isn't 0.6, it's more"),
    (ch.floors, (0.2, 2.4, 0.03, -1.28), False, "without a sign"),
    (ch.floors, ("0", 2.4, 0.03, 1.28), False, "must be a number"),
    (ch.floors, (..., ..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out


def test_the_check_has_the_runs_of_the_recording():
    from transformer_lib.runs.pretrained import results_dir  # not in a page, where no file is

    text = (results_dir() / "beyond" / "scaling.json").read_text(encoding="utf8")
    grid = [r for r in json.loads(text)["records"] if r["settings"]["part"] == "grid"]
    recorded = {(r["parameters"], r["tokens"]): r["loss"] for r in grid}
    assert recorded == {
        (N, D): loss for N, row in ch.RUNS for D, loss in zip(ch.TOKENS, row, strict=True)
    }
    assert len(recorded) == len(grid)
