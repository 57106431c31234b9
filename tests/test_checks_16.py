"""Every check of chapter 16 accepts the right answer and names what is wrong with others."""

import copy
import math

import pytest

from transformer_lib.checks import ch16


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
    (ch16.epochs, (116, 69), True, "Right"),
    (ch16.epochs, (..., ...), None, "Not attempted"),
    (ch16.epochs, (29_000, 8000 / 29_000), False, "whole batch"),
    (ch16.epochs, (116, 250), False, "size of a batch"),
    (ch16.epochs, (116, 68), False, "nearest whole number"),
    (ch16.epochs, (116, 70), False, "nearest whole number"),
    (ch16.epochs, (116, 33), False, "not that many epochs"),
    (
        ch16.combine,
        (lambda loss, n: sum(x * k for x, k in zip(loss, n, strict=True)) / sum(n),),
        True,
        "Right",
    ),
    (ch16.combine, (lambda loss, n: ...,), None, "Not attempted"),
    (ch16.combine, (lambda loss, n: sum(loss) / len(loss),), False, "plain mean"),
    (
        ch16.combine,
        (lambda loss, n: sum(x * k for x, k in zip(loss, n, strict=True)),),
        False,
        "total loss",
    ),
    (ch16.averaging, (mean_of,), True, "Right"),
    (ch16.averaging, (lambda states: ...,), None, "Not attempted"),
    (ch16.averaging, (lambda s: {n: sum(x[n] for x in s) for n in s[0]},), False, "the sum"),
    (ch16.averaging, (lambda s: dict(s[-1]),), False, "the last state"),
    (ch16.averaging, (mean_in_place,), False, "in place"),
    (ch16.averaging, (mean_into_the_last,), False, "in place"),
    (ch16.averaging, (lambda s: mean_of(s) | {"b": s[0]["b"]},), False, "of the tensors `b`"),
    (ch16.averaging, (lambda s: {n: t.double() for n, t in mean_of(s).items()},), True, "Right"),
    (ch16.averaging, (lambda s: {n: t.numpy() for n, t in mean_of(s).items()},), True, "Right"),
    (ch16.rate, (rate,), True, "Right"),
    (ch16.rate, (lambda *a: ...,), None, "Not attempted"),
    (ch16.rate, (lambda *a: rate(*a, last=0),), False, "not 0"),
    (ch16.rate, (lambda *a: rate(*a[:4], 0),), False, "cooldown is missing"),
    (ch16.rate, (lambda *a: 2 * rate(*a),), False, "another"),
    (ch16.resumed, (snapshot, resume), True, "Right"),
    (ch16.resumed, (lambda *a: ..., lambda *a: ...), None, "Not attempted"),
    (ch16.resumed, (live, resume), False, "went on training"),
    (ch16.resumed, (snapshot, lambda *a: resume(*a, averages=False)), False, "averages are lost"),
    (ch16.resumed, (snapshot, lambda *a: resume(*a, copied=False)), False, "load a copy"),
    (ch16.resumed, (snapshot, lambda *a: 5), False, "you go on from 5"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("guess", "said"),
    [(39.9, "Right"), (40.2, "Right"), (40.9, "had no part in the choices: it was 39.94"),
     (38.0, "it was 39.94, close to the 40.21"), (60, "it was 39.94"), (140, "0 to 100"),
     (..., "Not attempted")],
)  # fmt: skip
def test_further_training(capsys, guess, said):
    assert ch16.further_training(guess) is {"Right": True, "Not attempted": None}.get(said, False)
    assert said in capsys.readouterr().out
