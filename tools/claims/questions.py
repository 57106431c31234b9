"""Record what the chapter on many heads claims: `python tools/claims/questions.py`.

How many questions the heads of one attention answer, by what reads them, rate and steps. The
experiment is the one that the page prints, in its cells tagged `recorded`. Resumable; about six
minutes on one core. `make claims` runs it.
"""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "questions.json"
PAGE = "04_multi_head_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

QUESTIONS = "four questions"  # fewer are easy, and the page shows them
HEADS = (1, 2, 4)
READERS = ("linear map", "network")
LOOKS = (250, 500, 1000)  # steps


def circle(heads: int, reader: str, seed: int) -> dict:
    """Share of right answers on circles that were not trained on, at some of the steps."""
    offsets = page.QUESTIONS[QUESTIONS]
    training = page.neighbour_training(heads, offsets, seed, reader == "network")
    first, *right = [
        page.share_right(net, offsets)
        for step, net in zip(range(1, LOOKS[-1] + 1), training, strict=False)
        if step in (1, *LOOKS)
    ]
    return {"first": first, "steps": LOOKS, "right": right}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed, heads, reader in itertools.product(SEEDS, HEADS, READERS):
        settings = {"heads": heads, "reader": reader, "seed": seed}
        yield {"part": "circle"} | settings, lambda s=settings: circle(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
