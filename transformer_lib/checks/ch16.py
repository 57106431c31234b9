"""Checks for chapter 16, training on Multi30k."""

import inspect
import json

import torch
from torch import nn

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same
from transformer_lib.runs.pretrained import results_dir


@exercise("16.1", hint="divide, and round to whole numbers")
def epochs(updates_per_epoch, epochs):
    expect(
        updates_per_epoch != 29_000,
        "an update uses a whole batch, not one pair: divide by the pairs in a batch",
    )
    expect(
        abs(updates_per_epoch - 29_000 / 250) < 1,
        f"29,000 pairs in batches of 250 are not {updates_per_epoch} batches",
    )
    expect(
        abs(epochs - 250) > 1,
        "250 is the size of a batch; divide the updates by the updates of one epoch",
    )
    expect(
        abs(epochs - 8000 * 250 / 29_000) < 0.51 or abs(epochs - 8000 * 250 / 29_000) > 2,
        "8,000 / 116 is 68.97: round it to the nearest whole number",
    )
    expect_close(
        epochs, 8000 * 250 / 29_000, "8,000 updates are not that many epochs", tolerance=0.02
    )


@exercise("16.2", hint="return a pair: all but the last token, all but the first")
def shift(answer):
    ids = torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]])
    result = answer(ids)
    expect(
        isinstance(result, tuple | list) and len(result) == 2,
        "return two tensors, what is read and what is predicted",
    )
    read, wanted = result
    expect(
        tuple(read.shape) != (2, 4) or tuple(wanted.shape) != (2, 4),
        "both are as long as the input: nothing was shifted, so the decoder reads the answer",
    )
    expect(
        read.shape != wanted.shape or not torch.equal(read, wanted),
        "the two are equal: the decoder would read the very token that it must predict",
    )
    expect(
        not (read.shape == (2, 3) and torch.equal(read, ids[:, 1:])),
        "the two are swapped: the decoder reads from <bos> on and predicts what comes after",
    )
    expect_close(read, ids[:, :-1], "the decoder reads all but the last token")
    expect_close(wanted, ids[:, 1:], "it predicts all but the first token")


@exercise("16.3", hint="a long batch must count for more than a short one")
def combine(answer):
    losses, counts = [2.0, 4.0], [300, 100]
    given = float(answer(losses, counts))
    expect(
        abs(given - 3.0) > 1e-6,
        "that is the plain mean: a batch of 300 tokens must count three times",
    )
    expect(
        abs(given - 1000.0) > 1e-6,
        "that is the total loss; divide it by the total number of tokens",
    )
    expect_close(given, 2.5, "for losses [2, 4] with [300, 100] tokens the mean is not right")
    expect_close(answer([1.0, 2.0, 3.0], [1, 1, 2]), 2.25, "for three batches it is not right")


@exercise("16.4", given=0x7595F9C6)
def accumulation(answer):
    """Run the loop on a linear model whose gradients are known."""

    class Recorder:
        """Stands in for an optimizer: notes the gradient at each step."""

        def __init__(self, parameter):
            self.parameter, self.seen, self.after = parameter, [], []

        def step(self):
            gradient = self.parameter.grad
            self.seen.append(0.0 if gradient is None else gradient.item())
            self.after.append(len(read))

        def zero_grad(self, set_to_none=True):
            self.parameter.grad = None

    weight, read = nn.Parameter(torch.zeros(())), []
    optimizer = Recorder(weight)

    def model(batch):
        read.append(batch)
        return weight * batch

    loop = inspect.unwrap(answer)  # returning nothing is no sign of a missing answer here
    loop(model, optimizer, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], every=2)
    seen = optimizer.seen
    expect(len(seen) > 0, "the optimizer never takes a step")
    expect(
        not (len(seen) == 3 and optimizer.after[0] == 1),
        "it steps on the very first batch, before `every` batches have been added up: "
        "test (i + 1) % every",
    )
    expect(len(seen) == 3, f"6 batches with every=2 are 3 steps, yours takes {len(seen)}")
    expect(any(seen), "the gradient is gone when the optimizer steps: call zero_grad after step")
    expect(
        seen not in ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]),
        "only the last batch of each group is left: call zero_grad after step, not for every batch",
    )
    expect(
        abs(seen[0] - 0.5) > 1e-6, "you divide by all batches; one step adds up `every` of them"
    )
    expect(
        abs(seen[0] - 3.0) > 1e-6,
        "the gradients are added but not divided, so their sum is `every` times too large: "
        "divide each loss by `every`",
    )
    expect(
        abs(seen[1] - 3.5) < 1e-6 or abs(seen[1] - 5.0) > 1e-6,
        "the gradient of the first group is still there in the second: call zero_grad after step",
    )
    expect_close(
        seen, [1.5, 3.5, 5.5], "the gradients at the steps are not the means of the groups"
    )


@exercise("16.5", hint="add tensor by tensor, then divide by the number of states")
def averaging(answer):
    states = [
        {"w": torch.full((2, 2), value), "b": torch.tensor([value])} for value in (1.0, 2.0, 6.0)
    ]
    result = answer(states)
    expect(isinstance(result, dict), "return a dictionary from name to tensor")
    expect(
        set(result) == {"w", "b"},
        f"the names must be those of the states, yours are {sorted(result)}",
    )
    expect_shape(result["w"], (2, 2), "the mean of tensors has their shape")
    expect(
        not same(result["w"], torch.full((2, 2), 9.0)),
        "that is the sum: divide by the number of states",
    )
    expect(
        not same(result["w"], torch.full((2, 2), 6.0)),
        "that is the last state, not the mean",
    )
    expect_close(result["w"], torch.full((2, 2), 3.0), "the mean of 1, 2 and 6 is 3")
    expect_close(result["b"], [3.0], "the mean of the second tensor, b, is not right")
    for state, value in zip(states, (1.0, 2.0, 6.0), strict=True):
        expect_close(
            state["w"],
            torch.full((2, 2), value),
            "a state was changed by adding to it in place: start from a copy or from zero",
        )


@exercise("16.7", hint="write down a BLEU score before you look")
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
    expect(
        0 < guess < 100,
        f"a BLEU score lies between 0 and 100; the run before has {before['test']:.2f}",
    )
    expect(
        guess < before["test"] + gain / 2 or guess > before["test"] + 10,
        f"that passes the gain on the validation set on to the test set, which had no part in "
        f"the choices: {found}",
    )
    expect(
        abs(guess - after["test"]) < 0.5,
        f"{found}, close to the {before['test']:.2f} of the run before",
    )
