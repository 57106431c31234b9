"""Checks for chapter 16, training on Multi30k."""

import copy
import json

import torch
from torch import nn

from exercises.checks import (
    NotAttempted,
    Part,
    exercise,
    expect,
    expect_close,
    fingerprint,
    judged,
    same,
    values,
)
from exercises.checks.framework import REPAIR_IT

EPOCHS = 8000 * 250 / 29_000
epochs = values(
    1,
    "epochs",
    hint=(
        "divide, then round to whole numbers",
        "an epoch reads every pair once",
        "the epochs are 8,000 updates divided by the updates of one epoch",
    ),
    updates_per_epoch=Part(
        116,
        "29,000 pairs in batches of 250 don't make that many batches",
        {
            "an update uses a whole batch, not one pair: divide by the pairs in a batch": 29_000,
            "250 is the size of a batch; you were asked how many batches 29,000 pairs make": 250,
            "that is the number of epochs; the number of updates in one epoch comes "
            "first": [68, 69],
        },
    ),
    epochs=Part(
        69,
        "8,000 updates don't make that many epochs",
        {
            "an update isn't an epoch: divide the updates by those of one epoch": (
                lambda given: given < 10 or given == 32
            ),
            "250 is the size of a batch; divide the updates by the updates of one epoch": 250,
            "8,000 / 116 is 68.97: round it to the nearest whole number": (
                lambda given: abs(given - EPOCHS) < 2
            ),
        },
    ),
)


def _rate(power=-0.5, warm=True, cool=lambda left, length: left / length, off=1):
    """The schedule with one thing done in another way."""

    def rate(step, peak, warmup, max_steps, length):
        value = peak * (step / warmup) ** power
        if warm:
            value = peak * min(step / warmup, (step / warmup) ** power)
        left = max_steps + off - step
        return value * (min(1.0, cool(left, length)) if length else 1.0)

    return rate


def _continuous(answer):
    before, after = (answer(step, 0.005, 1000, 8000, 2000) for step in (6000, 6001))
    expect(
        abs(before - after) < 1e-3 * before,
        f"the rate jumps where the cooldown begins, from {before:.6f} to {after:.6f}",
    )


@exercise(
    2,
    inputs=[
        (1, 0.005, 2000, 8000, 2000), (2000, 0.005, 2000, 8000, 2000),
        (4500, 0.004, 500, 6000, 1000), (7001, 0.004, 1000, 8000, 1000),
        (8000, 0.005, 2000, 8000, 2000), (7500, 0.003, 100, 8000, 800), (900, 0.004, 200, 900, 0),
        (700, 0.01, 900, 1000, 500),
    ],
    hint=(
        "you need a rise, a root, and a factor for the end",
        "peak * min(step / warmup, (warmup / step) ** 0.5), times min(1, (max_steps - step + 1) / "
        "cooldown)",
    ),
    wrong="that isn't the learning rate of this update",
    tolerance=1e-7,
    shrinks=False,
    laws=_continuous,
    slips={
        "the warm-up is missing: the rate rises in a straight line to its peak": _rate(warm=False),
        "the rate falls with the root of the update number, not with the number": _rate(power=-1.0),
        "the cooldown is missing": _rate(cool=lambda left, length: 1.0),
        "the last update still has 1 / cooldown of the rate, not 0: count from max_steps + 1": (
            _rate(off=0)
        ),
        "the factor falls in a straight line, not with the root": (
            _rate(cool=lambda left, length: min(1.0, left / length) ** 0.5)
        ),
    },
)
def rate(step, peak, warmup, max_steps, cooldown):
    value = peak * min(step / warmup, (warmup / step) ** 0.5)
    return value * min(1.0, (max_steps + 1 - step) / max(cooldown, 1))


def _total(losses, token_counts):
    return sum(loss * n for loss, n in zip(losses, token_counts, strict=True))


@exercise(
    3,
    inputs=[
        ([2.0, 4.0], [300, 100]), ([1.0, 2.0, 3.0], [1, 1, 2]), ([2.75], [7]),
        ([0.3, 5.1, 2.2], [17, 240, 95]),
    ],
    hint=(
        "a long batch must count for more than a short one",
        "divide the sum of loss times count by the sum of the counts",
    ),
    wrong="that isn't the mean loss per token",
    shrinks=False,
    slips={
        "that is the plain mean: 300 tokens must count three times as much as 100": (
            lambda losses, counts: sum(losses) / len(losses)
        ),
        "that is the total loss; divide it by the total number of tokens": _total,
        "divide by the number of tokens, not of batches": (
            lambda losses, counts: _total(losses, counts) / len(losses)
        ),
        "weight each loss by its tokens; you divide by them": (
            lambda losses, counts: sum(loss / n for loss, n in zip(losses, counts, strict=True))
            / sum(1 / n for n in counts)
        ),
    },
)
def combine(losses, token_counts):
    return _total(losses, token_counts) / sum(token_counts)


def _snapshot(model, optimizer, step):
    return copy.deepcopy(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    )


def _resume(model, optimizer, saved):
    saved = copy.deepcopy(saved)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


@judged(
    4, example=(_snapshot, _resume), mutates=True,
    hint=(
        REPAIR_IT,
        "look at what changes while training goes on, and at what Adam remembers",
        "state_dict() returns the tensors themselves, which go on changing: copy them, both when "
        "you save and when you resume",
    ),
)
def resumed(snapshot, resume):
    given = [fingerprint(getattr(f, "args", [f])[0]) for f in (snapshot, resume)]
    if given == [0x3943E4C1, 0xF531780F]:  # both as the exercise prints them
        raise NotAttempted
    def fresh(seed):
        torch.manual_seed(seed)
        model = nn.Linear(3, 2)
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    def train(model, optimizer, start, stop):
        for step in range(start, stop):
            optimizer.zero_grad()
            inputs = torch.randn(4, 3, generator=torch.Generator().manual_seed(step))
            model(inputs).pow(2).sum().backward()
            optimizer.step()

    def weights(model):
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    model, optimizer = fresh(0)
    train(model, optimizer, 0, 4)
    at_four, saved = weights(model), snapshot(model, optimizer, 4)
    expect(torch.equal(weights(model), at_four), "your snapshot changed the model")
    train(model, optimizer, 4, 9)
    for seed, which in ((1, "a run that is resumed"), (2, "a second run that is resumed")):
        other, its_optimizer = fresh(seed)
        step = resume(other, its_optimizer, saved)
        expect(step == 4, f"the snapshot was taken after 4 updates; you go on from {step}")
        start = weights(other)
        expect(
            not same(start, weights(model), 1e-6),
            "the snapshot went on training: it holds the tensors themselves, which every update "
            "changes in place. Keep copies",
        )
        expect_close(
            start, at_four,
            f"{which} does not start from the weights of the snapshot", 1e-6,
        )
        train(other, its_optimizer, step, 9)
        expect(
            same(weights(other), weights(model), 1e-5),
            f"{which} starts from the right weights but ends elsewhere: Adam's averages "
            + ("are lost" if seed == 1 else "changed in the first run, so load a copy"),
        )


def _states(n=3):
    return ([{"w": torch.randn(2, 2), "b": torch.randn(3) + i} for i in range(n)],)


def _told_states(given, expected, states):
    if not isinstance(given, dict):
        return "return a dictionary from name to tensor"
    if set(given) != set(expected):
        return f"the names must be those of the states; yours are {sorted(given)}"
    wrong = [
        n for n in expected if torch.as_tensor(given[n]).shape == expected[n].shape
        and not torch.allclose(torch.as_tensor(given[n]).float(), expected[n])
    ]
    for name, tensor in expected.items():
        shape = tuple(torch.as_tensor(given[name]).shape)
        if shape != tuple(tensor.shape):
            return f"`{name}` should keep its shape {tuple(tensor.shape)}; yours is {shape}"
    return f"the mean of the tensors `{wrong[0] if wrong else 'w'}` is not right"


@exercise(
    5,
    inputs=_states,
    vary=(dict(n=2), dict(n=5), dict(n=1)),
    hint=(
        "add tensor by tensor, then divide by the number of states",
        "start from a copy, or you'll change the first state as you add",
    ),
    tell=_told_states,
    in_place="start from a copy, or from zero",
    slips={
        "that is the sum: divide by the number of states": (
            lambda states: {name: sum(state[name] for state in states) for name in states[0]}
        ),
        "that is the last state, not the mean": lambda states: dict(states[-1]),
        "that is the first state, not the mean": lambda states: dict(states[0]),
        "you halve at every state: the last ones count for more": lambda states: _halved(states),
    },
)
def averaging(states):
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def _halved(states):
    mean = dict(states[0])
    for state in states[1:]:
        mean = {name: (mean[name] + state[name]) / 2 for name in mean}
    return mean


@judged(7, hint=(
        "write down a BLEU score before you look",
        "how much did validation gain? Will the test set gain as much?",
        "expect at most the score before plus the gain on validation: how much of it will be left?",
    ), example=39.9)
def further_training(guess):
    from transformer_lib.runs.pretrained import results_dir  # not in a page, which has no files

    path = results_dir() / "further-training.json"
    further = json.loads(path.read_text(encoding="utf-8"))
    before = {split: further["before"][split]["bleu"] for split in ("validation", "test")}
    after = {
        split: sum(seed[split]["bleu"] for seed in further["with_teachers"])
        / len(further["with_teachers"])
        for split in before
    }
    gain = after["validation"] - before["validation"]
    found = f"the test score was {after['test']:.2f}"
    number = isinstance(guess, (int, float)) and not isinstance(guess, bool)
    expect(number, f"write down one number; yours is {type(guess).__name__} {guess!r:.40}")
    expect(
        1 < guess < 100,
        f"give the BLEU score in per cent, 0 to 100; the original run has {before['test']:.2f}",
    )
    expect(
        guess < before["test"] + gain or guess > before["test"] + 10,
        "that assumes the same gain as on the validation set, but the test set had no part in "
        f"the choices: {found}",
    )
    expect(
        abs(guess - after["test"]) < 1,
        f"{found}, close to the {before['test']:.2f} of the original run",
    )
    return f"{found.capitalize()}, where the original run had {before['test']:.2f}."


def _lost(cost, between, every):
    """The share of time that goes into saving and into updates made twice."""
    return cost / every + every / (2 * between)


def _save_every(best):
    return lambda cost, between: (best(cost, between), _lost(cost, between, best(cost, between)))


@exercise(
    8,
    inputs=[
        (2.0, 10_000.0), (20.0, 144_000.0), (0.5, 900.0), (8.0, 6_400.0), (100.0, 2_000_000.0),
        (3.0, 500.0),
    ],
    hint=(
        "what does saving every n updates cost per update? And how many updates does a "
        "crash lose, on average, if it may come at any of the n?",
        "per update, cost / n goes into saving, and n / 2 updates are lost once in `between`",
        "set the derivative of cost / n + n / (2 * between) with respect to n to zero",
    ),
    wrong="a different number of updates between two saves loses less",
    shape="return two numbers: the updates between two saves, and the share that's lost",
    parts=("every", "share"),
    tolerance=1e-4,
    shrinks=False,
    slips={
        "on average a crash comes half-way between two saves: it loses n / 2 updates, not n": [
            _save_every(lambda cost, between: (cost * between) ** 0.5),
            lambda cost, between: ((cost * between) ** 0.5, 2 * (cost / between) ** 0.5),
        ],
        "the share has two parts: the saves, and the updates that have to be made again": [
            lambda cost, between: (
                (2 * cost * between) ** 0.5, (cost / (2 * between)) ** 0.5
            ),
        ],
        "the derivative of cost / n is -cost / n²: n² is what you found, so take its root": (
            _save_every(lambda cost, between: 2 * cost * between)
        ),
        "the more a save costs, the less often you save: cost goes in the numerator": (
            _save_every(lambda cost, between: (2 * between / cost) ** 0.5)
        ),
        "a crash every `between` updates costs n / 2 of them: the 2 goes in the numerator": (
            _save_every(lambda cost, between: (cost * between / 2) ** 0.5)
        ),
        "the cost of a save is missing": _save_every(lambda cost, between: (2 * between) ** 0.5),
        "that is what is lost between two saves; the share is what is lost per update": (
            lambda cost, between: ((2 * cost * between) ** 0.5, 2 * cost)
        ),
        "they're swapped: the updates between two saves come first, then the share": (
            lambda cost, between: ((2 * cost / between) ** 0.5, (2 * cost * between) ** 0.5)
        ),
    },
)
def save_every(cost, between):
    every = (2 * cost * between) ** 0.5
    share = cost / every + every / (2 * between)
    return every, share
