"""The size at which the book runs an experiment: "smoke", "cpu" or "full".

The environment variable BOOK_SCALE decides. Without it the size is "cpu", because a GPU does not
help with the small networks of a chapter, which stay on the processor. The size is "full" only in
a notebook that calls `on_gpu()`, because it trains on a GPU, and only if there is one. "smoke" is
for tests (each notebook within a minute), "cpu" for every reader (within three), "full" for the
real run.
"""

import os

SIZES = ("smoke", "cpu", "full")
_large = False  # this notebook trains on a GPU, and there is one


def on_gpu() -> None:
    """Declare that this notebook trains on a GPU if there is one: its size is then "full"."""
    import torch

    global _large
    _large = torch.cuda.is_available()


def run_size() -> str:
    """The size in force. Raises ValueError when BOOK_SCALE is none of SIZES."""
    asked = os.environ.get("BOOK_SCALE")
    if asked and asked not in SIZES:
        raise ValueError(f"BOOK_SCALE is {asked!r}; it must be one of {SIZES}, or unset.")
    return asked or ("full" if _large else "cpu")


def choose(smoke, cpu, full):
    """The value for the size in force: choose(smoke=2, cpu=20, full=100)."""
    return {"smoke": smoke, "cpu": cpu, "full": full}[run_size()]
