"""Record what the page on recurrence says about one vector: `make record ONLY=memory`.

A sentence is repeated through one vector, or with attention, by length, learning rate and steps.
The experiment is the one that the page prints, in its cells tagged `recorded`. Resumable; five
minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "memory.json"
PAGE = "recurrence"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(chance=math.log(8), arms=("reads",), edge={"rate": (0.003, 0.003)})

RATES = (0.003, 0.001, 0.01)
REPEAT_LOOKS = (400, 1200)  # steps


def repeat(reads: str, rate: float, seed: int) -> dict:
    """Share of symbols repeated right by the length of the sentence, at some of the steps."""
    training = page.repeater_training(reads == "attention", seed, rate)
    first, *right = [
        {str(n): page.repeats(net, n) for n in page.LENGTHS}
        for step, net in zip(range(1, REPEAT_LOOKS[-1] + 1), training, strict=False)
        if step in (1, *REPEAT_LOOKS)
    ]
    return {"first": first, "steps": REPEAT_LOOKS, "right": right}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("repeat", repeat, SEEDS, rate=RATES, reads=("one vector", "attention"))
