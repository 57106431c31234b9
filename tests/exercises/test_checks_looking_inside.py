"""Every check of chapter 18 accepts the right answer and names what is wrong with others."""

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import looking_inside as ch


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


def silence(x, head, n_heads):
    size = x.size(-1) // n_heads
    x = x.clone()
    x[..., head * size : (head + 1) * size] = 0
    return x


def silence_in_place(x, head, n_heads):
    size = x.size(-1) // n_heads
    x[..., head * size : (head + 1) * size] = 0
    return x


def aer(found, true):
    total = len(found) + len(true)
    return 1 - 2 * len(found & true) / total if total else 0.0


def erased_in_two_steps(output, weight, value):
    rest = output - torch.outer(weight, value)
    return rest / (1 - weight).unsqueeze(-1) - output


CASES = [
    (ch.count_heads, (96, 72), True, "Right"),
    (ch.count_heads, (96, 96), False, "only the translation"),
    (ch.between_words, (between,), True, "Right"),
    (ch.between_words, (lambda w, t, s: ...,), None, "Not attempted"),
    (ch.between_words, (lambda *a: between(*a, in_mean=True),), False, "weights are shares"),
    (ch.between_words, (lambda w, t, s: w,), False, "expected (4, 3)"),
    (ch.neighbours, (nearest,), True, "Right"),
    (ch.neighbours, (lambda *a: ...,), None, "Not attempted"),
    (ch.silent_head, (silence,), True, "Right"),
    (ch.silent_head, (lambda *a: ...,), None, "Not attempted"),
    (ch.silent_head, (silence_in_place,), False, "you changed `x` in place"),
    (ch.alignment_error, (aer,), True, "Right"),
    (ch.alignment_error, (lambda *a: ...,), None, "Not attempted"),
    (ch.alignment_error, (lambda f, t: 1 - len(f & t) / len(f),), False, "missing link"),
    (ch.two_heads, (("cross", 0, 0, 2), 0, ("cross", 0, 0, 3)), True, "Right"),
    (ch.two_heads, (["cross", 0, 2, 0], 0, ["cross", 0, 3, 0]), True, "Right"),
    (ch.two_heads, (("cross", 0, 0, 3), 0, ("cross", 0, 0, 3)), False, "pair that costs less"),
    (ch.two_heads, (("cross", 0, 0, 2), 0, ("cross", 0, 0, 2)), False, "interval must lie above 0"),
    (ch.two_heads, (("cross", 0, 2), 0, ("cross", 0, 0, 3)), False, "a kind, a layer and two"),
    (ch.two_heads, (("encoder", 0, 1, 2), 0, ("cross", 0, 0, 3)), False, "no pairs were recorded"),
    (ch.two_heads, (("memory", 0, 0, 2), 0, ("cross", 0, 0, 3)), False, "the kinds are"),
    (ch.two_heads, (("cross", 4, 0, 2), 0, ("cross", 0, 0, 3)), False, "from 0 to 3"),
    (ch.two_heads, (("cross", 0, 2, 2), 0, ("cross", 0, 0, 3)), False, "two different heads"),
    (ch.two_heads, (("cross", 0, 0, 2), 2, ("cross", 0, 0, 3)), False, "isn't the one that does"),
    (ch.two_heads, (("cross", 0, 0, 2), 3, ("cross", 0, 0, 3)), False, "one of your two heads"),
    (ch.erased_key, (erased_in_two_steps,), True, "Right"),
    (ch.erased_key, (lambda output, weight, value: ...,), None, "Not attempted"),
    (ch.erased_key, (lambda o, w, v: 2 * erased_in_two_steps(o, w, v),), False, "that isn't"),
    (ch.erased_key, (lambda o, w, v: erased_in_two_steps(o, w, v)[0],), False, "one change for"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
