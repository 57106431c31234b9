"""Record what the chapter on scaled attention claims: `python tools/claims/scaling.py`.

What the division by the root of d_k is worth, by d_k, the size of the first weights, rate and
steps. The experiment is the one that the page prints, in its cells tagged `recorded`. Resumable;
about three minutes on one core. `make claims` runs it.
"""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "scaling.json"
PAGE = "02_scaled_dot_product_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

SIZES = (4, 16, 64, 256)  # d_k
STARTS = (0.12, 0.25, 0.35, 0.5, 1.0, 2.0)  # times the page's first weights
RATES = (0.003, 0.03)
LOOKS = (120, 500)  # steps


def averaging(scores: str, d_k: int, start: float, rate: float, seed: int) -> dict:
    """The loss at the end of so many steps, as the page takes it."""
    losses = page.averaging_losses(scores == "divided", seed, d_k, LOOKS[-1], start, rate)
    ends = [page.end_of(losses[:steps]) for steps in LOOKS]
    return {"first": losses[0], "steps": LOOKS, "loss": ends}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed, scores, d_k, start, rate in itertools.product(
        SEEDS, ("divided", "not divided"), SIZES, STARTS, RATES
    ):
        settings = {"scores": scores, "d_k": d_k, "start": start, "rate": rate, "seed": seed}
        yield {"part": "averaging"} | settings, lambda s=settings: averaging(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
