"""Where a run computes, how exactly, and from which seed."""

import os
import platform
import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

from transformer_lib.guards.values import DEVICES, computes, is_device


def set_seed(seed: int) -> None:
    """Seed Python's and torch's random numbers (every device) with a number from 0 to 2^63 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed!r:.60}; it must be a whole number, 0 to 2 ** 63 - 1.")
    random.seed(seed)
    torch.manual_seed(seed)


def pick_device(name: str = "auto") -> torch.device:
    """The named device. "auto" takes a GPU: "cuda" (NVIDIA, AMD), else Apple's "mps"; else "cpu".

    Under torchrun each process takes its own GPU. Apple's serves one process, so "auto" passes it
    over there. Raises ValueError for a device that torch doesn't know or that this machine lacks.
    """
    if name == "auto":
        apple = torch.backends.mps.is_available() and not _one_of_many()
        name = "cuda" if torch.cuda.is_available() else "mps" if apple else "cpu"
    device = named(name)
    if device.type not in ("cpu", "cuda", "mps", "meta") and not computes(device):
        raise ValueError(
            f"device is {name!r}, which this torch does not have; choose 'auto' or 'cpu'."
        )
    if device.type == "meta":
        raise ValueError("device is 'meta', which holds no numbers; choose 'auto' or 'cpu'.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but there is no GPU here; choose 'auto' or 'cpu'.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            f"device is {name!r}, but this torch finds no Apple GPU (it needs an Apple silicon Mac "
            "and a torch built for it); choose 'auto' or 'cpu'."
        )
    if device.type == "mps" and _one_of_many():
        raise ValueError(
            f"device is {name!r}, which serves only one process, and torchrun started several. "
            "Choose 'cpu', or run a single process."
        )
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", of_torchrun("LOCAL_RANK", 0))
    if device.type == "cuda" and device.index >= (n := torch.cuda.device_count()):
        raise ValueError(f"device is {name!r}, but the last GPU here is cuda:{n - 1}.")
    return device


def named(name: str) -> torch.device:
    """The device of this name, present or not; "auto" is the CPU. ValueError: no such device."""
    name = "cpu" if name == "auto" else name
    if not is_device(name):
        raise ValueError(f"device is {name!r}; it must be 'auto', {DEVICES}.")
    return torch.device(name)


def _one_of_many() -> bool:
    """Whether torchrun started this process as one of several."""
    return of_torchrun("WORLD_SIZE", 1) > 1


def of_torchrun(name: str, default: int) -> int:
    """A number that torchrun gives each of its processes in the environment, such as RANK."""
    given = os.environ.get(name, str(default))
    if not given.isdecimal() or (name == "WORLD_SIZE" and int(given) == 0):
        raise ValueError(
            f"the environment has {name}={given!r}; expected a whole number, which torchrun sets: "
            f"unset {name}, or start the processes with torchrun."
        )
    return int(given)


def sums_in(device: torch.device) -> torch.dtype:
    """The precision of long sums: float64, or float32 on Apple's GPU, which has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def uses_bf16(precision: str, device: torch.device) -> bool:
    """Whether a run of this TrainConfig.precision rounds to bf16 on this device.

    "auto" does on a GPU that multiplies it; on Apple's GPUs and on CPUs it trains in float32.
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision is {precision!r}; it must be 'auto', 'fp32' or 'bf16'.")
    if precision != "auto":
        return precision == "bf16"
    return device.type == "cuda" and multiplies_bf16(device)


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the device itself multiplies bf16, so that rounding to it saves time.

    GPUs before compute capability 8.0 (a T4, a V100) and processors without AVX512-BF16, AMX or
    Arm's BF16 only emulate it, at up to ten times the time of float32. Apple's GPU: float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    # oneDNN also says yes where it widens bf16 to float32 first (AVX512 without its bf16 part).
    own = not x86 or getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    return own and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def environment(device: torch.device) -> dict:
    """Device, versions, commit and date."""
    if device.type == "cpu":
        name = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    elif device.type == "mps":  # its module can't name it
        name = f"Apple {platform.machine()} GPU"
    else:
        name = torch.get_device_module(device).get_device_name(device)
    return {
        "device": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    try:
        return subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
