"""Every check of chapter 15 accepts the right answer and names what is wrong with others."""

import math

import numpy as np
import pytest
import torch

from transformer_lib.checks import ch15


def top_k(logits, k):
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], -math.inf)


def zeros_instead(logits, k):
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], 0.0)


def one_threshold(logits, k):
    return logits.masked_fill(logits < logits.flatten().topk(k).values[-1], -math.inf)


def smallest(logits, k):
    return logits.masked_fill(logits > logits.topk(k, largest=False).values[:, -1:], -math.inf)


def in_place(logits, k):
    return logits.masked_fill_(logits < logits.topk(k).values[:, -1:], -math.inf)


def shifted(logits, k):
    return top_k(logits, k) * 2


def nucleus(keep):
    def filtered(probabilities, p):
        ranked, order = probabilities.sort(-1, descending=True)
        ranked = ranked.masked_fill(~keep(ranked, p), 0.0)
        kept = torch.zeros_like(probabilities).scatter(-1, order, ranked)
        return kept / kept.sum(-1, keepdim=True)

    return filtered


def first_always(ranked, p):
    keep = ranked.cumsum(-1) <= p
    keep[:, 0] = True
    return keep


def unordered(probabilities, p):
    kept = nucleus(lambda r, p: r.cumsum(-1) - r < p)(probabilities, p)
    return kept.sort(-1, descending=True).values


def unscaled(probabilities, p):
    kept = nucleus(lambda r, p: r.cumsum(-1) - r < p)(probabilities, p) > 0
    return probabilities * kept


def in_numpy(probabilities, p):
    rows = probabilities.double().numpy()
    order = np.argsort(-rows, axis=-1, kind="stable")
    ranked = np.take_along_axis(rows, order, -1)
    kept = np.where(ranked.cumsum(-1) - ranked < p, ranked, 0.0)
    result = np.zeros_like(rows)
    np.put_along_axis(result, order, kept, -1)
    return result / result.sum(-1, keepdims=True)


LAST = {("A", word): {"end": 1.0} for word in "xy"}
GOOD = {
    (): {"A": 0.52, "B": 0.48},
    ("A",): {"x": 0.42, "y": 0.36, "z": 0.22},
    ("B",): {"x": 0.5, "y": 0.5},
    **LAST, ("A", "z"): {"end": 1.0},
    **{("B", word): dict.fromkeys("abcd", 0.25) for word in "xy"},
}  # fmt: skip
HONEST = {(): {"A": 1.0}, ("A",): {"x": 0.5, "y": 0.5}, **LAST}


CASES = [
    (ch15.positions, (1275, 50), True, "Right"),
    (ch15.positions, (..., ...), None, "Not attempted"),
    (ch15.positions, (2500, 50), False, "step t sees only t"),
    (ch15.positions, (50, 50), False, "computed again"),
    (ch15.positions, (1275, 1275), False, "read, not computed again"),
    (ch15.positions, (1225, 50), False, "1 + 2"),
    (ch15.top_k, (top_k,), True, "Right"),
    (ch15.top_k, (lambda logits, k: ...,), None, "Not attempted"),
    (ch15.top_k, (zeros_instead,), False, "still has a probability"),
    (ch15.top_k, (one_threshold,), False, "each row needs its own"),
    (ch15.top_k, (smallest,), False, "kept the smallest"),
    (ch15.top_k, (in_place,), False, "use a copy"),
    (ch15.top_k, (shifted,), False, "kept logits have changed"),
    (ch15.top_k, (lambda logits, k: logits.topk(k).values,), False, "same shape"),
    (ch15.pencil, ([0.2, 0.21, 0.25],), True, "Right"),
    (ch15.pencil, (...,), None, "Not attempted"),
    (ch15.pencil, ([0.25, 0.25, 0.25],), False, "greedy"),
    (ch15.pencil, ([0.2, 0.25, 0.25],), False, "dropped C"),
    (ch15.pencil, ([0.2, 0.2, 0.25],), False, "B x is better"),
    (ch15.pencil, ([0.2, 0.21, 0.21],), False, "sees every sentence"),
    (ch15.nucleus, (nucleus(lambda r, p: r.cumsum(-1) - r < p),), True, "Right"),
    (ch15.nucleus, (lambda probabilities, p: ...,), None, "Not attempted"),
    (ch15.nucleus, (nucleus(lambda r, p: r.cumsum(-1) <= p),), False, "must always stay"),
    (ch15.nucleus, (nucleus(lambda r, p: r.cumsum(-1) - r <= p),), False, "reaches p = 0.5"),
    (ch15.nucleus, (nucleus(first_always),), False, "crosses p"),
    (ch15.nucleus, (unordered,), False, "the place of its token"),
    (ch15.nucleus, (unscaled,), False, "the first is enough"),
    (ch15.nucleus, (in_numpy,), True, "Right"),
    (ch15.wider_is_worse, (GOOD,), True, "Right"),
    (ch15.wider_is_worse, (...,), None, "Not attempted"),
    (ch15.wider_is_worse, (HONEST,), False, "the wider beam should do worse"),
    (ch15.wider_is_worse, (HONEST | {("A",): {"x": 0.5}},), False, "sum to 0.5"),
    (ch15.wider_is_worse, (HONEST | {("A",): {"q": 1.0}},), False, "is missing"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
