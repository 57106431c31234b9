"""The checks of the page Exposure accept right answers and name what is wrong."""

import pytest
import torch

from exercises.checks import exposure as ch


def counted(wrong):
    found = torch.zeros(wrong.shape, dtype=torch.long)
    for b, row in enumerate(wrong.tolist()):
        since = 0
        for t, bad in enumerate(row):
            since = 1 if bad else since + (since > 0)
            found[b, t] = since
    return found


def never_started(wrong):
    found = counted(wrong)
    return torch.where(found == 0, torch.arange(wrong.size(1)) + 1, found)


CASES = [
    (ch.distances, (counted,), True, "Right"),
    (ch.distances, (lambda wrong: ...,), None, "Not attempted"),
    (ch.distances, (never_started,), False, "return 0"),
    (ch.distances, (lambda wrong: counted(wrong) - 1,), False, ""),
    (ch.distances, (lambda wrong: (counted(wrong) - 1).clamp(min=0),), False, "not 0"),
    (ch.distances, (lambda wrong: counted(wrong).clamp(max=3),), False, ""),
    (ch.distances, (lambda wrong: counted(wrong.flip(1)).flip(1),), False, "next wrong token"),
    (ch.overturned, (0.05, 0.9, 1 / 3, 10), True, "in series of 10.0"),
    (ch.overturned, (0.02, 0.98, 0.5, 50), True, "50%"),
    (ch.overturned, (0.05, 0.5, 0.0909, 2), False, "not more than a quarter"),
    (ch.overturned, (0.2, 0.9, 2 / 3, 10), False, "at most 0.05"),
    (ch.overturned, (0, 0.9, 0, 10), False, "above 0"),
    (ch.overturned, (0.05, 1, 1, 10), False, "below 1"),
    (ch.overturned, (0.05, 0.9, 0.5, 10), False, "divide by all words"),
    (ch.overturned, (0.05, 0.9, 0.05, 10), False, "right prefix"),
    (ch.overturned, (0.05, 0.9, 0.9, 10), False, "after a wrong word"),
    (ch.overturned, (0.05, 0.9, 0.475, 10), False, "equally often"),
    (ch.overturned, (0.05, 0.9, 2 / 3, 10), False, "share of right words"),
    (ch.overturned, (0.05, 0.9, 0.095, 10), False, "the first word after a slip"),
    (ch.overturned, (0.05, 0.9, 0.3, 10), False, "how many end"),
    (ch.overturned, (0.05, 0.9, 1 / 3, 9), False, "the first wrong word belongs"),
    (ch.overturned, (0.05, 0.9, 1 / 3, 1.11), False, "to divide by"),
    (ch.overturned, (0.05, 0.9, 1 / 3, 20), False, "does it end"),
    (ch.overturned, ("rarely", 0.9, 1 / 3, 20), False, "must be a number"),
    (ch.overturned, (..., ..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
