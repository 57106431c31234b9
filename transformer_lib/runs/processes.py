"""Several processes that train one model together, started by torchrun; or one alone."""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer_lib.runs.device import named, of_torchrun

PATIENCE = 120  # seconds after which a process says that it's waiting for the others


class Processes:
    """The processes of torchrun, or this one alone: rank 0 of a world of 1."""

    def __init__(self, device: str = "auto"):
        """device: that of TrainConfig; decides how the processes talk to each other."""
        named(device)
        self.rank, self.world = 0, 1
        if (world := of_torchrun("WORLD_SIZE", 1)) > 1:
            if not dist.is_initialized():
                _require_torchrun(world)
                gpu = device != "cpu" and torch.cuda.is_available()
                if gpu:
                    torch.cuda.set_device(of_torchrun("LOCAL_RANK", 0))
                dist.init_process_group("nccl" if gpu else "gloo")
                atexit.register(dist.destroy_process_group)
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.first = self.rank == 0
        self._since: float | None = None  # when it began to wait for the others
        if self.world > 1:
            threading.Thread(target=self._watch, daemon=True).start()

    @contextlib.contextmanager
    def _with_others(self):
        """Around an operation that ends only once the others have taken part."""
        before, self._since = self._since, self._since or time.monotonic()
        try:
            yield
        finally:
            self._since = before

    def _watch(self) -> None:
        """Say so, once for each wait, when the others keep this process waiting."""
        said = None
        while True:
            time.sleep(1)
            since = self._since
            if since not in (None, said) and time.monotonic() - since > PATIENCE:
                said = since
                print(
                    f"Process {self.rank} has waited {PATIENCE} s for the others. If none of them "
                    "is scoring or saving, one is frozen: end them all and start the same command "
                    "again, which goes on from the newest checkpoint.",
                    file=sys.stderr,
                    flush=True,
                )

    def loss_of(self, model: nn.Module, loss: Callable, device: torch.device) -> Callable:
        """batch -> loss(model, batch); its gradients become the mean over all processes."""
        if self.world == 1:
            return partial(loss, model)
        ids = [device.index] if device.type == "cuda" else None
        return DistributedDataParallel(_LossOfModel(model, loss), device_ids=ids)

    def exchange_gradients(self, loss_of: Callable, now: bool) -> AbstractContextManager:
        """Around a batch. now: its gradients, and those added before, go to all processes."""
        if self.world == 1:
            return contextlib.nullcontext()
        return self._with_others() if now else loss_of.no_sync()

    def share_weights(self, model: nn.Module) -> None:
        """Give every process the weights of the first."""
        if self.world > 1:
            with self._with_others():
                for tensor in model.state_dict().values():
                    dist.broadcast(tensor, 0)

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        tensor = tensor.clone()
        if self.world > 1:
            with self._with_others():
                dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is set in any process."""
        return bool(self.total(torch.tensor(float(flag), device=device)))

    def gather(self, value: object) -> list:
        """The value of each process, in the order of their ranks."""
        values = [value]
        if self.world > 1:
            values = [None] * self.world
            with self._with_others():
                dist.all_gather_object(values, value)
        return values

    def lost(self, error: BaseException | None) -> bool:
        """Whether an error says that another process has ended."""
        if self.world == 1 or not isinstance(error, RuntimeError):
            return False
        words = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer")
        return isinstance(error, dist.DistError) or any(word in str(error) for word in words)

    def wait(self) -> None:
        """Wait until all processes have come this far."""
        if self.world > 1:
            with self._with_others():
                dist.barrier()


def _require_torchrun(world: int) -> None:
    """Raise ValueError unless torchrun started this process; it would wait for others in vain."""
    names = "RANK", "MASTER_ADDR", "MASTER_PORT"
    missing = [name for name in names if name not in os.environ]
    rank, port = of_torchrun("RANK", 0), of_torchrun("MASTER_PORT", 0)
    if missing or rank >= world or port > 65_535:
        what = f"but no {missing[0]}" if missing else f"RANK={rank} and MASTER_PORT={port}"
        raise ValueError(
            f"the environment has WORLD_SIZE={world}, {what}, which is not how torchrun starts a "
            "process: unset WORLD_SIZE to train with one, or start them with torchrun."
        )


class _LossOfModel(nn.Module):
    """DistributedDataParallel wants a module, and takes the gradients of its output."""

    def __init__(self, model: nn.Module, loss: Callable):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch) -> Tensor:
        return self.loss(self.model, batch)
