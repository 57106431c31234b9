"""How large an experiment of the book runs: "smoke", "cpu" or "full".

The environment variable BOOK_SCALE decides; without it, a GPU means "full" and its absence "cpu".
"smoke" is for tests (each notebook within a minute), "cpu" for a reader without a GPU (within
three), "full" for the real run.
"""

import os

from transformer_lib.guards import guard

SIZES = ("smoke", "cpu", "full")


def run_size() -> str:
    """The size in force. Raises ValueError when BOOK_SCALE names no size."""
    asked = os.environ.get("BOOK_SCALE")
    if asked and asked not in SIZES:
        raise ValueError(f"BOOK_SCALE is {asked!r}; it must be one of {SIZES}, or unset.")
    if asked:
        return asked
    import torch

    return "full" if torch.cuda.is_available() else "cpu"


def choose(smoke, cpu, full):
    """The value for the size in force: choose(smoke=2, cpu=20, full=100)."""
    return {"smoke": smoke, "cpu": cpu, "full": full}[run_size()]


guard(__name__)
