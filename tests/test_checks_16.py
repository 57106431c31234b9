"""Every check of chapter 16 accepts the right answer and names what is wrong with others."""

import pytest

from transformer_lib.checks import ch16


def accumulate(first_batch_steps=False, divide=True, zero=True):
    def loop(model, optimizer, batches, every):
        for i, batch in enumerate(batches):
            loss = model(batch) / (every if divide else 1)
            loss.backward()
            if (i if first_batch_steps else i + 1) % every == 0:
                optimizer.step()
                if zero:
                    optimizer.zero_grad()

    return loop


def mean_of(states):
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def accumulate_clearing(when):
    def loop(model, optimizer, batches, every):
        for i, batch in enumerate(batches):
            if when == "each batch":
                optimizer.zero_grad()
            (model(batch) / every).backward()
            if (i + 1) % every == 0:
                if when == "before the step":
                    optimizer.zero_grad()
                optimizer.step()
                if when == "as torch does":
                    optimizer.zero_grad(set_to_none=True)

    return loop


def accumulate_over_all(model, optimizer, batches, every):
    accumulate()(lambda batch: model(batch) * every / len(batches), optimizer, batches, every)


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


CASES = [
    (ch16.epochs, (116, 69), True, "Right"),
    (ch16.epochs, (..., ...), None, "Not attempted"),
    (ch16.epochs, (29_000, 8000 / 29_000), False, "whole batch"),
    (ch16.epochs, (116, 250), False, "size of a batch"),
    (ch16.epochs, (116, 68), False, "nearest whole number"),
    (ch16.epochs, (116, 70), False, "nearest whole number"),
    (ch16.epochs, (116, 33), False, "not that many epochs"),
    (ch16.shift, (lambda ids: (ids[:, :-1], ids[:, 1:]),), True, "Right"),
    (ch16.shift, (lambda ids: ...,), None, "Not attempted"),
    (ch16.shift, (lambda ids: (ids[:, 1:], ids[:, 1:]),), False, "must predict"),
    (ch16.shift, (lambda ids: (ids, ids),), False, "nothing was shifted"),
    (ch16.shift, (lambda ids: (ids[:, 1:], ids[:, :-1]),), False, "swapped"),
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
    (ch16.accumulation, (accumulate(),), True, "Right"),
    (ch16.accumulation, (accumulate(first_batch_steps=True, divide=False),), False, "very first"),
    (ch16.accumulation, (accumulate(first_batch_steps=True),), False, "very first"),
    (ch16.accumulation, (accumulate_clearing("as torch does"),), True, "Right"),
    (ch16.accumulation, (accumulate_clearing("each batch"),), False, "only the last batch"),
    (ch16.accumulation, (accumulate_clearing("before the step"),), False, "gradient is gone"),
    (ch16.accumulation, (accumulate_over_all,), False, "divide by all batches"),
    (ch16.accumulation, (accumulate(divide=False),), False, "not divided"),
    (ch16.accumulation, (accumulate(zero=False),), False, "zero_grad"),
    (ch16.averaging, (mean_of,), True, "Right"),
    (ch16.averaging, (lambda states: ...,), None, "Not attempted"),
    (ch16.averaging, (lambda s: {n: sum(x[n] for x in s) for n in s[0]},), False, "the sum"),
    (ch16.averaging, (lambda s: dict(s[-1]),), False, "the last state"),
    (ch16.averaging, (mean_in_place,), False, "in place"),
    (ch16.averaging, (mean_into_the_last,), False, "in place"),
    (ch16.averaging, (lambda s: mean_of(s) | {"b": s[0]["b"]},), False, "of the tensors `b`"),
    (ch16.averaging, (lambda s: {n: t.double() for n, t in mean_of(s).items()},), True, "Right"),
    (ch16.averaging, (lambda s: {n: t.numpy() for n, t in mean_of(s).items()},), True, "Right"),
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
