"""Record rows A to C of the paper's table 3, in small: `make record ONLY=replication`.

Heads, the width of keys, layers and widths, each changed by itself in a small translator of short
captions. Parts: rows (each with three seeds at one rate, and with one seed at half and at twice
that rate; then all seeds at the rate that suits a row better, and one beyond it), longer (base and
four layers for twice as many updates).
The experiment is the one that the page prints, in its cells tagged `recorded`.
Resumable; about twenty minutes on one core. Needs Multi30k.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "replication.json"
PAGE = "replication"
SEEDS, UPDATES, RATE, OTHER_RATES = (0, 1, 2), 600, 0.01, (0.005, 0.02)
SUITED = {"C: 1 layer": 0.02, "C: d_model 64": 0.005, "C: d_ff 512": 0.005}  # by seed 0
BEYOND = {"C: 1 layer": (0.04,), "C: d_model 64": (0.0025,), "C: d_ff 512": (0.0025,)}
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(1000),  # of the vocabulary's tokens
    arms=("row",),
    edge={"rate": (min(SUITED.values()), max(SUITED.values())), "updates": (None, UPDATES)},
    differs={"parameters": "rows B and C have more or fewer parameters"},
)


def trained(row: str, rate: float, updates: int, seed: int) -> dict:
    """Loss, BLEU, chrF and length of a row on the short captions of the validation set."""
    return page.train_row(row, rate, seed, updates)


def grid():
    """(settings, function) of every cell: all rows, those that another rate suits, and longer."""
    for rate, seeds in ((RATE, SEEDS), *((other, SEEDS[:1]) for other in OTHER_RATES)):
        yield from seed_by_seed(
            "rows", trained, seeds, rate=(rate,), updates=(UPDATES,), row=page.ROWS
        )
    for row, rates in BEYOND.items():
        yield from seed_by_seed(
            "rows", trained, SEEDS[:1], rate=rates, updates=(UPDATES,), row=(row,)
        )
    for row, rate in SUITED.items():
        yield from seed_by_seed(
            "rows", trained, SEEDS[1:], rate=(rate,), updates=(UPDATES,), row=(row,)
        )
    yield from seed_by_seed(
        "longer", trained, SEEDS, rate=(RATE,), updates=(2 * UPDATES,), row=("base", "C: 4 layers")
    )
