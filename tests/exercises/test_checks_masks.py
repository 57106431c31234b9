"""Every check of chapter 03 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import masks as ch


def triangle(size):
    return torch.ones(size, size, dtype=torch.bool).tril()


def real(ids, pad_id=0):
    return (ids != pad_id)[:, None, None, :]


def right_mask(ids, pad_id):
    return real(ids, pad_id) & triangle(ids.size(1))


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


def added_upside_down(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return (scores + mask.float() * -1e9).softmax(-1) @ v


def distance(size):
    place = torch.arange(size)
    return (place[:, None] - place[None, :])[None, None]


def right_window(size, window):
    return (distance(size) >= 0) & (distance(size) < window)


def same(segments):
    return (segments[:, :, None] == segments[:, None, :])[:, None]


def right_packed(segments):
    return same(segments) & real(segments) & triangle(segments.size(1))


def by_halving(hidden, most):
    """The smallest c, by search instead of a formula."""
    low, high = 0.0, 100.0
    for _ in range(60):
        c = (low + high) / 2
        left = hidden * math.exp(-c)
        low, high = (c, high) if left / (1 - hidden + left) > most else (low, c)
    return high


CASES = [
    (ch.combined, ((2, 1, 6, 6), 18), True, "Right"),
    (ch.combined, ((2, 1, 6, 6), 17), False, "row by row"),
    (ch.decoder_mask, (right_mask,), True, "Right"),
    (ch.decoder_mask, (lambda ids, pad_id: ...,), None, "Not attempted"),
    (ch.decoder_mask, (lambda i, p: right_mask(i, p).float(),), False, "must be boolean"),
    (ch.decoder_mask, (lambda i, p: right_mask(i, p)[:, 0],), False, "axis for the heads"),
    (ch.decoder_mask, (lambda i, p: real(i, p),), False, "not the future"),
    (ch.decoder_mask, (lambda i, p: triangle(i.size(1))[None, None],), False, "not the padding"),
    (ch.decoder_mask, (lambda i, p: right_mask(i, p).tril(-2),), False, "does not let position"),
    (ch.repaired_mask, (attention,), True, "Right"),
    (ch.repaired_mask, (lambda q, k, v, m: ...,), None, "Not attempted"),
    (ch.repaired_mask, (added_upside_down,), False, "still goes to the pairs"),
    (ch.window_mask, (right_window,), True, "Right"),
    (ch.window_mask, (lambda s, w: ...,), None, "Not attempted"),
    (ch.window_mask, (lambda s, w: distance(s) >= 0,), False, "plain causal"),
    (ch.window_mask, (lambda s, w: right_window(s, w)[0, 0],), False, "expected (1, 1, 3, 3)"),
    (ch.packed_mask, (right_packed,), True, "Right"),
    (ch.packed_mask, (lambda s: ...,), None, "Not attempted"),
    (ch.packed_mask, (lambda s: same(s) & triangle(7),), False, "padding sees padding"),
    (ch.packed_mask, (lambda s: real(s) & triangle(7),), False, "sentences before it"),
    (ch.minus_infinity, (by_halving,), True, "Right"),
    (ch.minus_infinity, (lambda hidden, most: ...,), None, "Not attempted"),
    (ch.minus_infinity, (lambda hidden, most: 1 + by_halving(hidden, most),), False, "that isn't"),
    (ch.minus_infinity, (lambda hidden, most: by_halving(hidden, 0.01),), False, "whatever `most`"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
