"""How much an update computes, and how fast a device multiplies: a run's time comes from both."""

import time
import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.fast import products
from transformer_lib.runs.device import uses_bf16


def update_flops(
    model: nn.Module, loss: Callable[[nn.Module, tuple[Tensor, ...]], Tensor], batch: tuple
) -> int:
    """Floating-point operations of one batch, forward and backward, as torch counts them: those of
    the matrix products (a multiplication and an addition are two). The gradients are cleared.
    """
    # Unfused, attention is two products, which the counter knows on every device.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss(model, batch).backward()
    model.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def launches(update: Callable[[], object]) -> int:
    """How many operations a call hands to the device, one after the other: all that torch computes
    in it, forward and backward; views, which compute nothing, are left out."""
    counter = _Launches()
    with counter:
        update()
    return counter.n


class _Launches(TorchDispatchMode):
    n = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.n += not operation.is_view
        return operation(*args, **(kwargs or {}))


class PeakMemory(TorchDispatchMode):
    """The most bytes that the tensors made inside this block hold at one time: `peak`.

    Views hold nothing of their own, and what a fused kernel uses inside is not seen.
    """

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self.known = weakref.WeakSet()

    def made(self, tensor: Tensor) -> None:
        """Called for each new tensor; does nothing here."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if _tensor(t)}
        result = function(*args, **(kwargs or {}))
        for tensor in filter(_tensor, tree_leaves(result)):
            storage = tensor.untyped_storage()
            if storage._cdata not in given and storage not in self.known:  # new, not a view
                self.known.add(storage)
                self.now += storage.nbytes()
                weakref.finalize(storage, self._gone, storage.nbytes())
                self.made(tensor)
        self.peak = max(self.peak, self.now)
        return result

    def _gone(self, n_bytes):
        self.now -= n_bytes


def _tensor(x):
    return isinstance(x, torch.Tensor)


def product_speed(
    rows: int,
    inner: int,
    columns: int,
    device: torch.device,
    precision: str = "auto",
    seconds: float = 0.3,
    fast: bool = False,
) -> float:
    """FLOP a second of the product of (rows, inner) and (inner, columns) random numbers here, the
    best of several measurements within about so many seconds. It is the product that a run with
    this TrainConfig.precision and TrainConfig.fast computes, with as many rows in a batch."""
    bf16 = uses_bf16(precision, device)
    half = bf16 and device.type != "cpu"
    kind = {"device": device, "dtype": torch.bfloat16 if half else torch.float32}
    a, b = torch.randn(rows, inner, **kind), torch.randn(inner, columns, **kind)

    def measured(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            result = torch.mm(a, b)
        float(result[0, 0])  # waits for the device
        return time.perf_counter() - begin

    with torch.no_grad(), products(device, bf16, rows if fast else 0):
        measured(3)
        times = max(1, int(0.1 * seconds / max(measured(1), 1e-6)))
        best, end = float("inf"), time.perf_counter() + seconds
        while best == float("inf") or time.perf_counter() < end:
            best = min(best, measured(times) / times)
    return 2 * rows * inner * columns / best


def format_seconds(seconds: float) -> str:
    """Seconds in a reader's units: "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
