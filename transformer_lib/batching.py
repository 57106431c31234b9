"""Turn sentences into padded tensors, with little padding.

Sentences of similar length go into one batch, and a batch has a budget of tokens rather than of
sentences: it holds many short ones or a few long ones, which is the same amount of work.
"""

import random
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from transformer_lib.config import PAD


class TokenBatchSampler:
    """Batches of sentence indices whose padded size stays within `max_tokens`.

    lengths: one number of tokens per sentence, or one (source, target) pair of numbers; for
    pairs, the longer side counts. Each epoch (see `set_epoch`) shuffles sentences of equal
    length among themselves, and the order of the batches; without `shuffle`, batches go from short
    to long. The same seed and epoch give the same batches.
    Raises ValueError if there are no sentences, or if a single one exceeds the budget.
    """

    def __init__(
        self,
        lengths: Sequence[int] | Sequence[tuple[int, int]],
        max_tokens: int,
        shuffle: bool = True,
        seed: int = 0,
    ):
        self.lengths = [
            tuple(n) if isinstance(n, Sequence) else (int(n), int(n)) for n in lengths
        ]  # (source, target)
        self.max_tokens, self.shuffle, self.seed, self.epoch = max_tokens, shuffle, seed, 0
        for index, pair in enumerate(self.lengths):
            if min(pair) < 0:
                raise ValueError(
                    f"sentence {index} has the length {min(pair)}; expected its number of tokens."
                )
        if not self.lengths:
            raise ValueError("no sentences to batch: the data set is empty.")
        index, longest = max(enumerate(map(max, self.lengths)), key=lambda pair: pair[1])
        if longest > max_tokens:
            raise ValueError(
                f"sentence {index} has {longest} tokens, more than max_tokens {max_tokens}: "
                "raise max_tokens or shorten the sentence."
            )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, which determines the shuffle of the next iteration."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches())

    def __len__(self) -> int:
        return len(self.batches())

    def batches(self) -> list[list[int]]:
        """All batches of the current epoch."""
        # A fresh generator per epoch, so that an interrupted run can resume from seed and epoch.
        rng = random.Random(f"{self.seed}-{self.epoch}")
        order = list(range(len(self.lengths)))
        if self.shuffle:
            rng.shuffle(order)
        # The sort is stable: sentences of equal lengths keep their shuffled order.
        order.sort(key=lambda i: _place(*self.lengths[i]))
        batches, batch, width = [], [], 0
        for i in order:
            new_width = max(width, *self.lengths[i])
            if batch and new_width * (len(batch) + 1) > self.max_tokens:
                batches.append(batch)
                batch, new_width = [], max(self.lengths[i])
            batch, width = batch + [i], new_width
        batches.append(batch)
        if self.shuffle:
            rng.shuffle(batches)
        return batches


def _place(source: int, target: int) -> tuple[int, int]:
    """The sort key of a pair: the length of its longer side, then how much longer the source is.

    The second part rises within one length and falls within the next, so that a batch with the
    end of one length and the start of the next contains pairs of similar shape.
    """
    longer = max(source, target)
    return longer, (source - target) * (-1) ** longer


def pad(sequences: Sequence[Sequence[int]], pad_id: int = PAD) -> Tensor:
    """Id lists of different lengths -> (B, longest) int64, padded on the right."""
    longest = max(map(len, sequences))
    rows = [[*ids, *[pad_id] * (longest - len(ids))] for ids in sequences]
    return torch.tensor(rows, dtype=torch.int64)  # one call for the whole batch: (B, longest)


def padding_share(lengths: Sequence[tuple[int, int]], batches: list[list[int]]) -> float:
    """The share of the tokens in these batches that is padding, both sides counted: 0 to 1."""
    real = total = 0
    for batch in batches:
        for side in zip(*(lengths[i] for i in batch), strict=True):
            real += sum(side)
            total += max(side) * len(side)
    return 1 - real / total


class Batches:
    """An endless stream of batches, epoch after epoch, whose place can be saved.

    columns: for each input of the loss, one list of ids per example. lengths: the lengths that the
    sampler uses. counts: how many tokens of each example the loss counts. The last `extra` examples
    are used in the first `extra_epochs` epochs only.
    """

    def __init__(
        self,
        columns: list[list],
        lengths: list,
        counts: list[int],
        max_tokens: int,
        seed: int,
        extra: int = 0,
        extra_epochs: int = 0,
    ):
        self.columns, self.counts, self.extra_epochs = columns, counts, extra_epochs
        sampler = partial(TokenBatchSampler, max_tokens=max_tokens, shuffle=True, seed=seed)
        self.sampler = sampler(lengths[: len(lengths) - extra])
        self.with_extra = sampler(lengths) if extra else self.sampler
        self.epoch, self.next_batch, self.per_epoch = 0, 0, 1

    def __iter__(self) -> Iterator[list[int]]:
        """Yield each batch as the indices of its examples, so that skipping one is cheap."""
        while True:
            sampler = self.with_extra if self.epoch < self.extra_epochs else self.sampler
            sampler.set_epoch(self.epoch)
            batches = sampler.batches()
            self.per_epoch = len(batches)
            for batch in batches[self.next_batch :]:
                self.next_batch += 1
                yield batch
            self.epoch, self.next_batch = self.epoch + 1, 0

    def n_tokens(self, batch: list[int]) -> int:
        """The number of tokens in this batch that the loss counts."""
        return sum(self.counts[i] for i in batch)

    def tensors(self, batch: list[int], device: torch.device) -> tuple[Tensor, ...]:
        """One padded (B, longest) tensor per column."""
        tensors = [pad([column[i] for i in batch]) for column in self.columns]
        pinned = torch.device(device).type not in ("cpu", "mps")  # Apple's GPU shares the memory
        if pinned:  # copied while the GPU computes
            tensors = [tensor.pin_memory() for tensor in tensors]
        return tuple(tensor.to(device, non_blocking=pinned) for tensor in tensors)

    def epochs(self) -> float:
        """How many epochs have passed."""
        return self.epoch + self.next_batch / self.per_epoch

    def state(self) -> dict:
        """The place in the stream, as plain numbers."""
        return {"epoch": self.epoch, "next_batch": self.next_batch}

    def restore(self, state: dict) -> None:
        """Continue from the place recorded in `state`."""
        self.epoch, self.next_batch = state["epoch"], state["next_batch"]
