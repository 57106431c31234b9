"""Record what the chapter on the decoder claims of its wiring: `python tools/claims/wirings.py`.

Three ways to give the encoder's layers to the decoder's, by learning rate and steps. The experiment
is the one that the page prints, in its cells tagged `recorded`. Resumable; about five minutes on
one core. `make claims` runs it.
"""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "wirings.json"
PAGE = "10_decoder"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

WIRINGS = ("last", "matched", "mean")
RATES = (0.001, 0.004, 0.016)
LOOKS = (300, 900)  # steps


def learning(wiring: str, rate: float, seed: int) -> dict:
    """The first loss, and the mean of the last tenth of the steps, at some of them."""
    losses = page.train_wired(wiring, seed, LOOKS[-1], rate)
    last = [losses[:steps][-max(1, steps // 10) :] for steps in LOOKS]
    return {"first": losses[0], "steps": LOOKS, "loss": [sum(x) / len(x) for x in last]}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed, wiring, rate in itertools.product(SEEDS, WIRINGS, RATES):
        settings = {"wiring": wiring, "rate": rate, "seed": seed}
        yield {"part": "wirings"} | settings, lambda s=settings: learning(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
