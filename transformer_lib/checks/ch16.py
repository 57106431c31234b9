"""Checks for chapter 16, training on Multi30k."""

import json

import torch
from torch import nn

from transformer_lib.checks import Part, exercise, expect, judged, values
from transformer_lib.runs.pretrained import results_dir

EPOCHS = 8000 * 250 / 29_000
epochs = values(
    "16.1",
    "epochs",
    hint="divide, and round to whole numbers",
    updates_per_epoch=Part(
        116,
        "29,000 pairs in batches of 250 are not that many batches",
        {
            "an update uses a whole batch, not one pair: divide by the pairs in a batch": 29_000,
            "250 is the size of a batch; asked is how many batches 29,000 pairs make": 250,
            "that is the number of epochs; the updates of one epoch come first": [68, 69],
        },
    ),
    epochs=Part(
        69,
        "8,000 updates are not that many epochs",
        {
            "an update is no epoch: divide the updates by those of one epoch": (
                lambda given: given < 10 or given == 32
            ),
            "250 is the size of a batch; divide the updates by the updates of one epoch": 250,
            "8,000 / 116 is 68.97: round it to the nearest whole number": (
                lambda given: abs(given - EPOCHS) < 2
            ),
        },
    ),
)


def _target_rows(B=2, T=4):
    ids = torch.randint(4, 9, (B, T))
    ids[:, 0], ids[0, -1], ids[-1, T - T // 2 :] = 1, 2, 0
    return (ids,)


@exercise(
    "16.2",
    inputs=_target_rows,
    vary=(dict(B=3, T=6), dict(B=5, T=5)),
    hint="return a pair: all but the last token, all but the first",
    parts=("what is read", "what is predicted"),
    wrong="the decoder reads all but the last token and predicts all but the first",
    slips={
        "both are as long as the input: nothing was shifted, so the decoder reads the answer": (
            lambda ids: (ids, ids)
        ),
        "the two are equal: the decoder would read the very token that it must predict": [
            lambda ids: (ids[:, 1:], ids[:, 1:]), lambda ids: (ids[:, :-1], ids[:, :-1])
        ],
        "the two are swapped: the decoder reads from <bos> on and predicts what comes after": (
            lambda ids: (ids[:, 1:], ids[:, :-1])
        ),
        "you cut rows, not columns: the tokens are on axis 1": lambda ids: (ids[:-1], ids[1:]),
    },
)  # fmt: skip
def shift(tgt_ids):
    return tgt_ids[:, :-1], tgt_ids[:, 1:]


def _total(losses, token_counts):
    return sum(loss * n for loss, n in zip(losses, token_counts, strict=True))


@exercise(
    "16.3",
    inputs=[
        ([2.0, 4.0], [300, 100]), ([1.0, 2.0, 3.0], [1, 1, 2]), ([2.75], [7]),
        ([0.3, 5.1, 2.2], [17, 240, 95]),
    ],
    hint="a long batch must count for more than a short one",
    wrong="the mean loss per token is another",
    shrinks=False,
    slips={
        "that is the plain mean: a batch of 300 tokens must count three times": (
            lambda losses, counts: sum(losses) / len(losses)
        ),
        "that is the total loss; divide it by the total number of tokens": _total,
        "divide by the number of tokens, not of batches": (
            lambda losses, counts: _total(losses, counts) / len(losses)
        ),
        "weigh each loss by its tokens; you divide by them": (
            lambda losses, counts: sum(loss / n for loss, n in zip(losses, counts, strict=True))
            / sum(1 / n for n in counts)
        ),
    },
)  # fmt: skip
def combine(losses, token_counts):
    return _total(losses, token_counts) / sum(token_counts)


class _Linear(nn.Module):
    """A model whose loss is weight * batch, so that the batch is its gradient."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, batch):
        return (self.weight * batch).sum()


class _Recorder(torch.optim.SGD):
    """An optimizer that notes the gradient at each step."""

    def __init__(self, model):
        super().__init__(model.parameters(), lr=0.1)
        self.seen = []

    def step(self, closure=None):
        gradient = self.param_groups[0]["params"][0].grad
        self.seen.append(torch.zeros(2) if gradient is None else gradient.clone())
        super().step(closure)


def _recorded(loop):
    """The learner's loop as a function: the gradients at its steps, one row a step."""

    def run(batches, every):
        model = _Linear()
        optimizer = _Recorder(model)
        loop(model, optimizer, [batch.clone() for batch in batches], every)
        expect(len(optimizer.seen) > 0, "the optimizer never takes a step")
        return torch.stack(optimizer.seen)

    return run


def _loop(first=False, divide=lambda every, batches: every, clear="after"):
    """The accumulation loop with one thing done in another way."""

    def loop(model, optimizer, batches, every):
        for i, batch in enumerate(batches):
            if clear == "each":
                optimizer.zero_grad()
            (model(batch) / divide(every, batches)).backward()
            if (i if first else i + 1) % every == 0:
                if clear == "before":
                    optimizer.zero_grad()
                optimizer.step()
                if clear == "after":
                    optimizer.zero_grad()

    return loop


FIRST = (
    "it steps on the very first batch, before `every` batches have been added up: "
    "test (i + 1) % every"
)


@exercise(
    "16.4",
    inputs=lambda n=6, every=2: (list(torch.randn(n, 2)), every),
    vary=(dict(every=3), dict(n=4, every=1), dict(n=8, every=4)),
    given=0x7595F9C6,
    adapt=_recorded,
    right=_loop(),
    shrinks=False,
    tell=lambda given, expected, batches, every: (
        "the gradients at the steps are not the means of the groups"
    ),
    shape="with every=2 six batches are three steps",
    slips={
        FIRST: [_loop(first=True, divide=lambda every, batches: 1), _loop(first=True)],
        "the gradient is gone when the optimizer steps: call zero_grad after step": (
            _loop(clear="before")
        ),
        "only the last batch of each group is left: call zero_grad after step, not for every "
        "batch": [_loop(clear="each"), _loop(clear="each", divide=lambda every, batches: 1)],
        "you divide by all batches; one step adds up `every` of them": (
            _loop(divide=lambda every, batches: len(batches))
        ),
        "the gradients are added but not divided, so their sum is `every` times too large: "
        "divide each loss by `every`": _loop(divide=lambda every, batches: 1),
        "the gradient of the first group is still there in the second: call zero_grad after step": (
            [_loop(clear="never"), _loop(clear="never", divide=lambda every, batches: 1)]
        ),
    },
)
def accumulation(batches, every):
    groups = torch.stack(batches).unflatten(0, (-1, every))  # (steps, every, 2)
    return groups.mean(1)


def _states(n=3):
    return ([{"w": torch.randn(2, 2), "b": torch.randn(3) + i} for i in range(n)],)


def _told_states(given, expected, states):
    if not isinstance(given, dict):
        return "return a dictionary from name to tensor"
    if set(given) != set(expected):
        return f"the names must be those of the states, yours are {sorted(given)}"
    wrong = [
        n for n in expected if torch.as_tensor(given[n]).shape == expected[n].shape
        and not torch.allclose(torch.as_tensor(given[n]).float(), expected[n])
    ]  # fmt: skip
    for name, tensor in expected.items():
        shape = tuple(torch.as_tensor(given[name]).shape)
        if shape != tuple(tensor.shape):
            return f"`{name}` keeps its shape {tuple(tensor.shape)}, yours is {shape}"
    return f"the mean of the tensors `{wrong[0] if wrong else 'w'}` is not right"


@exercise(
    "16.5",
    inputs=_states,
    vary=(dict(n=2), dict(n=5), dict(n=1)),
    hint="add tensor by tensor, then divide by the number of states",
    tell=_told_states,
    in_place="start from a copy or from zero",
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


@judged("16.7", hint="write down a BLEU score before you look", example=39.9)
def further_training(guess):
    path = results_dir() / "further-training.json"
    further = json.loads(path.read_text(encoding="utf-8"))
    before = {split: further["before"][split]["bleu"] for split in ("validation", "test")}
    after = {
        split: sum(seed[split]["bleu"] for seed in further["with_teachers"])
        / len(further["with_teachers"])
        for split in before
    }
    gain, found = after["validation"] - before["validation"], f"it was {after['test']:.2f}"
    number = isinstance(guess, (int, float)) and not isinstance(guess, bool)
    expect(number, f"write down one number, yours is {type(guess).__name__} {guess!r:.40}")
    expect(
        1 < guess < 100,
        f"a BLEU score is given in per cent, 0 to 100; the run before has {before['test']:.2f}",
    )
    expect(
        guess < before["test"] + gain or guess > before["test"] + 10,
        f"that passes the gain on the validation set on to the test set, which had no part in "
        f"the choices: {found}",
    )
    expect(
        abs(guess - after["test"]) < 1,
        f"{found}, close to the {before['test']:.2f} of the run before",
    )
    return f"{found.capitalize()}, where the run before had {before['test']:.2f}."
