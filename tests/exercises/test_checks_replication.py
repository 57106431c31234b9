"""The checks of the page Replicate a table accept right answers and name what is wrong."""

import pytest

from exercises.checks import replication as ch


def in_one_pass(predicted, sure, verdicts):
    hits = brier = 0
    for word, p, verdict in zip(predicted, sure, verdicts, strict=True):
        hits += word == verdict
        brier += (1 - p) ** 2 if word == verdict else p**2
    return hits / len(sure), brier / len(sure)


def tried_out(spread, difference, t):
    n = 1
    while t * spread * (2 / n) ** 0.5 > difference:
        n += 1
    return n


CASES = [
    (ch.score, in_one_pass, True, "Right"),
    (ch.score, lambda *given: ..., None, "Not attempted"),
    (ch.score, lambda p, s, v: in_one_pass(p, s, v)[::-1], False, "swapped"),
    (ch.score, lambda p, s, v: (in_one_pass(p, s, v)[0], 0.222), False, ""),
    (ch.seeds_needed, tried_out, True, "Right"),
    (ch.seeds_needed, lambda *given: ..., None, "Not attempted"),
    (ch.seeds_needed, lambda s, d, t: tried_out(s, d, t) - 1, False, ""),
    (ch.seeds_needed, lambda s, d, t: tried_out(s, d, t / 2**0.5), False, "twice the variance"),
    (ch.seeds_needed, lambda s, d, t: 2 * (t * s / d) ** 2, False, "whole numbers"),
]


@pytest.mark.parametrize(("check", "answer", "verdict", "word"), CASES)
def test_verdict(check, answer, verdict, word, capsys):
    assert check(answer) is verdict
    assert word in capsys.readouterr().out
