"""The checks of the page on speculative decoding accept the right answer and name what is wrong."""

import pytest
import torch

from exercises.checks import speculative as ch


def right(p, q):
    kept = torch.minimum(p, q)
    rest = torch.relu(p - q)
    return torch.stack([kept, rest / rest.sum() * (q - kept).sum()])


def rest_is_not_scaled(p, q):
    return torch.stack([torch.minimum(p, q), (p - q).clamp(min=0)])


def divides(p, q):
    return torch.stack([q * (p / q).clamp(max=1), torch.relu(p - q)])


CASES = [
    (ch.by_hand, (2.44, 0.7, 1), True, "Right"),
    (ch.by_hand, (1.44, 0.7, 1), False, "one token of the model's own"),
    (ch.by_hand, (2.6, 0.7, 1), False, "those before it"),
    (ch.by_hand, (2.44, 0.41, 1), False, "two draws"),
    (ch.by_hand, (2.44, 0.7, 0.3), False, "sum to 1"),
    (ch.two_ways, (right,), True, "Right"),
    (ch.two_ways, (lambda p, q: ...,), None, "Not attempted"),
    # What p has more than q sums to the share that goes, so it needs no scaling at all.
    (ch.two_ways, (rest_is_not_scaled,), True, "Right"),
    (ch.two_ways, (divides,), False, "0 by 0"),
    (ch.two_ways, (lambda p, q: torch.stack([q, 0 * p]),), False, ""),
    (ch.two_ways, (lambda p, q: right(q, p),), False, "exchanged"),
    (ch.two_ways, (lambda p, q: p,), False, "(2, V)"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
