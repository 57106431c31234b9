"""Record what the chapter on the decoder claims about a source in one vector:
`make record ONLY=one_vector`.

Parts: rows (a row for each token), vector (one vector, by width and updates), and edge (both at
other rates, and wider vectors; three seeds). The experiment is that of the page, in its cells
tagged `recorded`. Resumable; six minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "one_vector.json"
PAGE = "10_decoder"
SEEDS = (0, 1, 2, 3, 4, 5)
STEPS = (150, 300, 600, 1200)
page = SimpleNamespace(**page_code(PAGE))
# Guessing: ten symbols and <eos>.
GATE = Gate(
    chance=math.log(11), arms=("part", "squeeze", "width"),
    edge={"rate": (0.004, 0.004), "width": (None, 64)},
    missing={"width below": "we didn't try fewer than 32"}, differs={"parameters": "a wider model"},
)


def training(squeeze: bool, width: int, rate: float, steps: int, seed: int) -> dict:
    """Shares of sentences without an error, by length, at some of the updates."""
    at, whole = [], []

    def look(step, net):
        if step in STEPS:
            at.append(step)
            state = page.torch.get_rng_state()  # the test must not change the batches
            page.torch.manual_seed(99)
            whole.append({str(n): x for n, x in page.whole_sentences(net, squeeze).items()})
            page.torch.set_rng_state(state)

    page.train_reverser(squeeze, seed, steps, width, rate, look)
    return {"steps": at, "whole": whole}


def grid():
    """(settings, function) of every cell."""
    few = SEEDS[:3]
    plan = [
        ("rows", False, 32, 0.004, STEPS[2], SEEDS),
        ("vector", True, 64, 0.004, STEPS[2], SEEDS),
        ("vector", True, 32, 0.004, STEPS[3], SEEDS),
        ("edge", True, 128, 0.004, STEPS[2], few),
        *(("edge", True, width, 0.002, STEPS[2], few) for width in (64, 128)),
        *(
            ("edge", squeeze, 32, rate, STEPS[2], few)
            for rate in (0.002, 0.01) for squeeze in (False, True)
        ),
    ]
    return [
        cell(part, training, squeeze=squeeze, width=width, rate=rate, steps=steps, seed=seed)
        for part, squeeze, width, rate, steps, seeds in plan for seed in seeds
    ]
