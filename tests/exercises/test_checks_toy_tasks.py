"""Every check of chapter 13 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import toy_tasks as ch


def exact_share(written, right):
    width = max(written.size(1), right.size(1))
    written, right = (F.pad(x, (0, width - x.size(1))) for x in (written, right))
    return ((written == right) | (right == 0)).all(1).float().mean()


def holds(source, answers):
    return source == answers[:, None]


def answer_weight(weights, source, answers):
    return (weights * holds(source, answers)).sum(1)


CASES = [
    (ch.place, (lambda n, t: n if t == n else n - 1 - t,), True, "Right"),
    (ch.place, (lambda n, t: ...,), None, "Not attempted"),
    (ch.place, (lambda n, t: n - 2 - t,), False, "should come from"),
    (ch.exact_share, (exact_share,), True, "Right"),
    (ch.exact_share, (lambda w, r: ...,), None, "Not attempted"),
    (ch.reverse_pair, (lambda s: (s + [2], [1] + s[::-1] + [2]),), True, "Right"),
    (ch.reverse_pair, (lambda s: ...,), None, "Not attempted"),
    (ch.reverse_pair, (lambda s: (s + [2], [1] + (s + [2])[::-1]),), False, "reversed too"),
    (ch.reverse_pair, (lambda s: (s + [2], s[::-1] + [2]),), False, "<bos> is missing"),
    (ch.reverse_pair, (lambda s: (s + [2], [1] + s + [2]),), False, "no longer reversed"),
    (ch.answer_weight, (answer_weight,), True, "Right"),
    (ch.answer_weight, (lambda w, s, a: answer_weight(w, s, a).numpy() * 1.0,), True, "Right"),
    (ch.answer_weight, (lambda w, s, a: answer_weight(w.double(), s, a),), True, "Right"),
    (ch.answer_weight, (lambda w, s, a: ...,), None, "Not attempted"),
    (ch.answer_weight, (lambda w, s, a: (w * holds(s, a)).mean(1),), False, "average over"),
    (
        ch.answer_weight,
        (lambda w, s, a: answer_weight(w, s, a) / holds(s, a).sum(1),),
        False,
        "mean weight per matching place",
    ),
    (ch.answer_weight, (lambda w, s, a: w.amax(1),), False, "largest weight"),
    (
        ch.answer_weight,
        (lambda w, s, a: torch.stack([w[t, s == a[t]].sum() for t in range(len(a))]),),
        True,
        "Right",
    ),
    (ch.bag_copies, (lambda n: 1 / math.factorial(n),), True, "Right"),
    (ch.bag_copies, (lambda n: 1 / torch.arange(1, n + 1).prod(),), True, "Right"),
    (ch.bag_copies, (lambda n: ...,), None, "Not attempted"),
    (ch.bag_copies, (math.factorial,), False, "at most 1"),
    (ch.lucky_bag, (2, 3, 0.3), True, "Right"),
    (ch.lucky_bag, (10, 3, 0.1), False, "copies 2"),
    (ch.lucky_bag, (1, 3, 1.0), False, "at least 2"),
    (ch.lucky_bag, (20, 8, 0.0), False, "too many"),
    (ch.lucky_bag, (2, 3, 0.5), False, "it's less"),
    (ch.lucky_bag, (3, 3, 0.1), False, "it's more"),
    (ch.lucky_bag, (3, 3, 19), False, "between 0 and 1"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
