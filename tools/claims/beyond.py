"""Record what long windows do to a letter model: `python tools/claims/beyond.py`.

The loss by place of small letter models, trained on windows of 32 letters and read at 128, by the
kind of positions and the steps. The experiment is the one that the page prints, in its cells tagged
`recorded`. Resumable; about six minutes on one core. Needs Multi30k. `make claims` runs it.
"""

import functools
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "beyond.json"
PAGE = "06_positional_encodings"
SEEDS = (0, 1, 2)
STEPS = (300, 1000)
KINDS = ("sinusoidal", "learned", "rotary", "alibi", "none")


@functools.cache
def page() -> SimpleNamespace:
    """The page's experiment, on Multi30k."""
    found = page_code(PAGE)
    found["code"], found["train_ids"], found["test_ids"] = found["letters"]()
    if len(found["train_ids"]) < 400_000:
        raise SystemExit("this is recorded on Multi30k: name its folder in MULTI30K_DIR.")
    return SimpleNamespace(**found)


def reading(positions: str, steps: int, seed: int) -> dict:
    """Loss (nats per letter) at places 0 to 7, 8 to 15, and so on."""
    return {"loss": page().loss_by_place(page().train_letters(positions, seed, steps))}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed, steps, kind in itertools.product(SEEDS, STEPS, KINDS):
        settings = {"positions": kind, "steps": steps, "seed": seed}
        yield {"part": "beyond"} | settings, lambda s=settings: reading(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
