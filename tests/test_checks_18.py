"""Every check of chapter 18 accepts the right answer and names what is wrong with others."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.checks import ch18


def between(weights, target, source, out_mean=True, in_mean=False):
    out = F.one_hot(torch.tensor(target)).float()
    into = F.one_hot(torch.tensor(source)).float()
    out = out / out.sum(0) if out_mean else out
    into = into / into.sum(0) if in_mean else into
    return out.T @ weights @ into


def nearest(table, i, k):
    unit = F.normalize(table, dim=-1)
    similarity = unit @ unit[i]
    similarity[i] = -2
    return similarity.topk(k).indices.tolist()


def by_dot_product(table, i, k):
    similarity = table @ table[i]
    similarity[i] = -1e9
    return similarity.topk(k).indices.tolist()


def by_distance(table, i, k):
    distance = (table - table[i]).norm(dim=-1)
    distance[i] = 1e9
    return distance.topk(k, largest=False).indices.tolist()


def with_itself(table, i, k):
    unit = F.normalize(table, dim=-1)
    return (unit @ unit[i]).topk(k).indices.tolist()


def farthest(table, i, k):
    unit = F.normalize(table, dim=-1)
    similarity = unit @ unit[i]
    similarity[i] = 2
    return similarity.topk(k, largest=False).indices.tolist()


def silence(x, head, n_heads):
    size = x.size(-1) // n_heads
    x = x.clone()
    x[..., head * size : (head + 1) * size] = 0
    return x


def silence_in_place(x, head, n_heads):
    size = x.size(-1) // n_heads
    x[..., head * size : (head + 1) * size] = 0
    return x


def strided(x, head, n_heads):
    x = x.clone()
    x[..., head::n_heads] = 0
    return x


def wrong_start(x, head, n_heads):
    x = x.clone()
    x[..., head : head + x.size(-1) // n_heads] = 0
    return x


def aer(found, true):
    total = len(found) + len(true)
    return 1 - 2 * len(found & true) / total if total else 0.0


CASES = [
    (ch18.count_heads, (96, 72), True, "Right"),
    (ch18.count_heads, (..., ...), None, "Not attempted"),
    (ch18.count_heads, (72, 72), False, "two attentions"),
    (ch18.count_heads, (12, 9), False, "each attention has 8"),
    (ch18.count_heads, (96, 48), False, "cross-attention"),
    (ch18.count_heads, (96, 24), False, "encoder's own"),
    (ch18.count_heads, (96, 96), False, "only the translation"),
    (ch18.between_words, (between,), True, "Right"),
    (ch18.between_words, (lambda w, t, s: ...,), None, "Not attempted"),
    (ch18.between_words, (lambda *a: between(*a, out_mean=False),), False, "take their mean"),
    (ch18.between_words, (lambda *a: between(*a, in_mean=True),), False, "weights are shares"),
    (ch18.between_words, (lambda *a: between(*a, False, True),), False, "exchanged"),
    (ch18.between_words, (lambda w, t, s: w,), False, "expected (4, 3)"),
    (ch18.neighbours, (nearest,), True, "Right"),
    (ch18.neighbours, (lambda *a: ...,), None, "Not attempted"),
    (ch18.neighbours, (by_dot_product,), False, "dot products"),
    (ch18.neighbours, (by_distance,), False, "distances"),
    (ch18.neighbours, (with_itself,), False, "itself"),
    (ch18.neighbours, (farthest,), False, "farthest first"),
    (ch18.silent_head, (silence,), True, "Right"),
    (ch18.silent_head, (lambda *a: ...,), None, "Not attempted"),
    (ch18.silent_head, (silence_in_place,), False, "you changed `x` in place"),
    (ch18.silent_head, (strided,), False, "every n-th column"),
    (ch18.silent_head, (wrong_start,), False, "times the size of a head"),
    (ch18.alignment_error, (aer,), True, "Right"),
    (ch18.alignment_error, (lambda *a: ...,), None, "Not attempted"),
    (ch18.alignment_error, (lambda f, t: 1 - aer(f, t),), False, "1 minus it"),
    (ch18.alignment_error, (lambda f, t: 1 - len(f & t) / len(f),), False, "missing link"),
    (ch18.alignment_error, (lambda f, t: 1 - len(f & t) / len(t),), False, "false links"),
    (ch18.alignment_error, (lambda f, t: 1 - len(f & t) / len(f | t),), False, "union"),
    (
        ch18.alignment_error,
        (lambda f, t: 1 - len(f & t) / (len(f) + len(t)),),
        False,
        "counts twice",
    ),
    (ch18.two_heads, (("cross", 0, 0, 2), ("cross", 0, 0, 3)), True, "Right"),
    (ch18.two_heads, (["cross", 0, 2, 0], ["cross", 0, 3, 0]), True, "Right"),
    (ch18.two_heads, (..., ...), None, "Not attempted"),
    (ch18.two_heads, (("cross", 0, 0, 3), ("cross", 0, 0, 3)), False, "costs less is wanted"),
    (ch18.two_heads, (("cross", 0, 0, 2), ("cross", 0, 0, 2)), False, "an interval above 0"),
    (ch18.two_heads, (("cross", 0, 2), ("cross", 0, 0, 3)), False, "a kind, a layer and two"),
    (ch18.two_heads, (("memory", 0, 0, 2), ("cross", 0, 0, 3)), False, "the kinds are"),
    (ch18.two_heads, (("cross", 4, 0, 2), ("cross", 0, 0, 3)), False, "from 0 to 3"),
    (ch18.two_heads, (("cross", 0, 2, 2), ("cross", 0, 0, 3)), False, "not two heads"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
