"""Every check of Less depth accepts the right answer and names what is wrong."""

import math
from functools import partial

import pytest
import torch

from exercises.checks import less_depth as ch


def right_shares(p, threshold=0.99):
    result, total = torch.zeros_like(p), 0.0
    for i, x in enumerate(p):
        if total + x >= threshold or i == len(p) - 1:
            result[i] = 1 - total
            break
        result[i] = x
        total += x
    return result


def never_the_rest(p, threshold=0.99):
    return p * (p.cumsum(0) - p < threshold)


def right_number(mean, allowed, risk):
    return math.ceil(math.log(1 / risk) / (2 * (allowed - mean) ** 2))


def promise(margin_of, stops, losses, allowed, risk):
    boldest = 0
    for i, damage in enumerate(losses.mean(1).tolist()):
        if math.exp(-2 * losses.size(1) * margin_of(allowed - damage) ** 2) > risk:
            if stops:
                break
            continue
        boldest = i + 1
    return boldest


def above(margin):
    return max(0.0, margin)


CASES = [
    (ch.promised, (partial(promise, above, True),), True, "Right"),
    (ch.promised, (partial(promise, float, True),), False, "squaring loses track"),
    (ch.promised, (partial(promise, above, False),), False, "should have ended the search"),
    (ch.promised, (lambda losses, allowed, risk: 0,), False, "you return 0, expected 4"),
    (ch.shares, (right_shares,), True, "Right"),
    (ch.shares, (lambda p, threshold=0.99: ...,), None, "Not attempted"),
    (ch.shares, (lambda p, threshold=0.99: p,), False, "p itself"),
    (ch.shares, (lambda p, threshold=0.99: p / p.sum(),), False, "divide by the sum"),
    (ch.shares, (never_the_rest,), False, "sum to 1"),
    (ch.shares, (lambda p, threshold=0.99: right_shares(p, 0.99),), False, "stops at once"),
    (ch.sentences_needed, (right_number,), True, "Right"),
    (ch.sentences_needed, (lambda m, a, r: ...,), None, "Not attempted"),
    (
        ch.sentences_needed,
        (lambda m, a, r: math.log(1 / r) / (a - m) ** 2,),
        False,
        "twice as many as you need",
    ),
    (
        ch.sentences_needed,
        (lambda m, a, r: math.log(1 / r) / (2 * (a - m)),),
        False,
        "must be squared",
    ),
    (
        ch.sentences_needed,
        (lambda m, a, r: math.log(1 / r) / (2 * a**2),),
        False,
        "between `allowed` and `mean`",
    ),
    (
        ch.sentences_needed,
        (lambda m, a, r: math.log(1 / r) / (2 * (a - m) ** 2),),
        False,
        "round up",
    ),
    (
        ch.sentences_needed,
        (lambda m, a, r: right_number(m, a, r) - 9,),
        False,
        "too few",
    ),
    (
        ch.sentences_needed,
        (lambda m, a, r: right_number(m, a, r) + 9,),
        False,
        "sentences would be enough",
    ),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
