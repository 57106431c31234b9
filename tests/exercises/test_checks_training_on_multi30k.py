"""Every check of chapter 16 accepts the right answer and names what is wrong with others."""

import copy
import math

import pytest

from exercises.checks import training_on_multi30k as ch


def mean_of(states):
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def mean_into_the_last(states):
    total = dict(states[-1])
    for state in states[:-1]:
        for name in total:
            total[name] += state[name]
    return {name: tensor / len(states) for name, tensor in total.items()}


def mean_in_place(states):
    total = states[0]
    for state in states[1:]:
        for name in total:
            total[name] += state[name]
    return {name: tensor / len(states) for name, tensor in total.items()}


def rate(step, peak, warmup, max_steps, cooldown, last=1):
    factor = 1.0
    if step > max_steps - cooldown:
        factor = (max_steps + last - step) / cooldown
    return (peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)) * factor


def snapshot(model, optimizer, step):
    averages = copy.deepcopy(optimizer.state_dict())
    return {name: p.clone() for name, p in model.state_dict().items()}, averages, step


def resume(model, optimizer, saved, copied=True, averages=True):
    model.load_state_dict(saved[0])
    if averages:
        optimizer.load_state_dict(copy.deepcopy(saved[1]) if copied else saved[1])
    return saved[2]


def live(model, optimizer, step):
    return model.state_dict(), optimizer.state_dict(), step


CASES = [
    (ch.epochs, (116, 69), True, "Right"),
    (ch.epochs, (29_000, 8000 / 29_000), False, "whole batch"),
    (ch.epochs, (116, 33), False, "don't make that many epochs"),
    (
        ch.combine,
        (lambda loss, n: sum(x * k for x, k in zip(loss, n, strict=True)) / sum(n),),
        True,
        "Right",
    ),
    (ch.combine, (lambda loss, n: ...,), None, "Not attempted"),
    (
        ch.combine,
        (lambda loss, n: sum(x * k for x, k in zip(loss, n, strict=True)),),
        False,
        "total loss",
    ),
    (ch.averaging, (mean_of,), True, "Right"),
    (ch.averaging, (lambda states: ...,), None, "Not attempted"),
    (ch.averaging, (lambda s: dict(s[-1]),), False, "the last state"),
    (ch.averaging, (mean_in_place,), False, "in place"),
    (ch.averaging, (mean_into_the_last,), False, "in place"),
    (ch.averaging, (lambda s: mean_of(s) | {"b": s[0]["b"]},), False, "of the tensors `b`"),
    (ch.averaging, (lambda s: {n: t.double() for n, t in mean_of(s).items()},), True, "Right"),
    (ch.averaging, (lambda s: {n: t.numpy() for n, t in mean_of(s).items()},), True, "Right"),
    (ch.rate, (rate,), True, "Right"),
    (ch.rate, (lambda *a: ...,), None, "Not attempted"),
    (ch.rate, (lambda *a: rate(*a, last=0),), False, "not 0"),
    (ch.rate, (lambda *a: rate(*a[:4], 0),), False, "cooldown is missing"),
    (ch.rate, (lambda *a: 2 * rate(*a),), False, "isn't the learning rate"),
    (ch.resumed, (snapshot, resume), True, "Right"),
    (ch.resumed, (lambda *a: ..., lambda *a: ...), None, "Not attempted"),
    (ch.resumed, (live, resume), False, "went on training"),
    (ch.resumed, (snapshot, lambda *a: resume(*a, averages=False)), False, "averages are lost"),
    (ch.resumed, (snapshot, lambda *a: resume(*a, copied=False)), False, "load a copy"),
    (ch.resumed, (snapshot, lambda *a: 5), False, "you go on from 5"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("guess", "said"),
    [(39.9, "Right"), (40.2, "Right"),
     (40.9, "had no part in the choices: the test score was 39.94"),
     (38.0, "the test score was 39.94, close to the 40.21"),
     (60, "the test score was 39.94"), (140, "0 to 100"),
     (..., "Not attempted")],
)
def test_further_training(capsys, guess, said):
    assert ch.further_training(guess) is {"Right": True, "Not attempted": None}.get(said, False)
    assert said in capsys.readouterr().out
