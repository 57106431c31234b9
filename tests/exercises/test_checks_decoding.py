"""Every check of chapter 15 accepts the right answer and names what is wrong with others."""

import math

import numpy as np
import pytest
import torch

from exercises.checks import decoding as ch


def top_k(logits, k):
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], -math.inf)


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
}
HONEST = {(): {"A": 1.0}, ("A",): {"x": 0.5, "y": 0.5}, **LAST}


CASES = [
    (ch.positions, (1275, 50), True, "Right"),
    (ch.positions, (1275, 1275), False, "read, not computed again"),
    (ch.positions, (1225, 50), False, "one position already"),
    (ch.top_k, (top_k,), True, "Right"),
    (ch.top_k, (lambda logits, k: ...,), None, "Not attempted"),
    (ch.top_k, (smallest,), False, "kept the smallest"),
    (ch.top_k, (in_place,), False, "work on a copy"),
    (ch.top_k, (shifted,), False, "kept logits have changed"),
    (ch.top_k, (lambda logits, k: logits.topk(k).values,), False, "same shape"),
    (ch.pencil, ([0.2, 0.21, 0.25],), True, "Right"),
    (ch.pencil, ([0.2, 0.25, 0.25],), False, "dropped C"),
    (ch.pencil, ([0.2, 0.2, 0.25],), False, "B x is better"),
    (ch.pencil, ([0.2, 0.21, 0.21],), False, "sees every sentence"),
    (ch.nucleus, (nucleus(lambda r, p: r.cumsum(-1) - r < p),), True, "Right"),
    (ch.nucleus, (lambda probabilities, p: ...,), None, "Not attempted"),
    (ch.nucleus, (in_numpy,), True, "Right"),
    (ch.wider_is_worse, (GOOD,), True, "Right"),
    (ch.wider_is_worse, (HONEST,), False, "the wider beam should do worse"),
    (ch.wider_is_worse, (HONEST | {("A",): {"x": 0.5}},), False, "sum to 0.5"),
    (ch.wider_is_worse, (HONEST | {("A",): {"q": 1.0}},), False, "is missing"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
