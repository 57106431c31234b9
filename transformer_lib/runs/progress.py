"""What happened since the last entry of the log, and the bar that shows it."""

import contextlib
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lib.runs.device import sums_in
from transformer_lib.runs.processes import Processes


class Meter:
    """Loss, tokens and time since the last entry of the log."""

    def __init__(self, processes: Processes, device: torch.device):
        self.processes = processes
        # Summed on the device: reading the number would make a GPU wait.
        self.loss_sum = torch.zeros((), dtype=sums_in(device), device=device)
        self.n_tokens, self.since = 0, time.perf_counter()

    def add(self, mean_loss: Tensor, n_tokens: int) -> None:
        """Count a batch of this process by its mean loss."""
        self.loss_sum += mean_loss.detach().to(self.loss_sum.dtype) * n_tokens

    def total_loss(self) -> float:
        """Summed over the tokens of all processes."""
        return self.processes.total(self.loss_sum).item()

    def mean_loss(self) -> float:
        """Per token; 0 before there is any."""
        total = self.total_loss()
        return total / self.n_tokens if self.n_tokens else 0.0

    def entry(self) -> dict:
        """The next entry of the log; counting starts again."""
        loss, now = self.mean_loss(), time.perf_counter()
        seconds, tokens = now - self.since, self.n_tokens
        self.loss_sum.zero_()
        self.n_tokens, self.since = 0, now
        rates = {"seconds": seconds, "tokens_per_second": tokens / seconds}
        return {"loss": loss, "tokens": tokens} | rates

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The time that the block takes doesn't count as training."""
        begin = time.perf_counter()
        yield
        self.since += time.perf_counter() - begin

    def state(self) -> dict:
        """What a checkpoint keeps."""
        seconds = time.perf_counter() - self.since
        return {"loss_sum": self.total_loss(), "n_tokens": self.n_tokens, "seconds": seconds}

    def restore(self, state: dict) -> None:
        """Go on from `state`."""
        if self.processes.first:  # the sum of all processes, kept by the first
            self.loss_sum += state["loss_sum"]
        self.n_tokens = state["n_tokens"]
        self.since = time.perf_counter() - state.get("seconds", 0.0)


class ProgressBar:
    """A line of text (widgets would need a live kernel in the built book); shown or not."""

    def __init__(self, total: int, done: int, shown: bool):
        from tqdm import tqdm

        self.bar = tqdm(
            total=total, initial=done, disable=not shown, unit="step", mininterval=1.0
        )
        self.numbers: dict[str, str] = {}

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *_) -> None:
        self.bar.close()

    def show(self, entry: dict) -> None:
        """Show the numbers of a log entry, until the next one."""
        names = {"loss": "loss", "tok/s": "tokens_per_second", "val": "validation_loss",
                 "BLEU": "validation_bleu"}
        self.numbers |= {
            shown: f"{entry[name]:.3g}" if shown == "tok/s" else f"{entry[name]:.2f}"
            for shown, name in names.items()
            if name in entry
        }
        self.bar.set_postfix(self.numbers, refresh=False)

    def update(self) -> None:
        """One more step."""
        self.bar.update()
