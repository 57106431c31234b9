"""Record how the models of the chapter on toy tasks find their letter: `make record ONLY=crossing`.

Three algorithms draw the same map: count places; look for the letter just written and read the one
after it; stay near the place, and cross off what is already written. They differ when the letter
just written changes places with another one in the source: one that is still to come, or one that
is also written already. Each cell trains a model as the page does. Resumable; five minutes on one
core.
"""

import itertools
import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "crossing.json"
PAGE = "13_toy_tasks"
page = SimpleNamespace(**page_code(PAGE, lengths=(3, 8)))  # of the letters in training
# Guessing: ten letters and <eos>.
GATE = Gate(
    chance=math.log(11), arms=("task", "positions"),
    edge={"rate": (0.003, 0.003), "positions": {"rotary", "learned"}},
)

SEEDS = (0, 1, 2)
RATES = (0.001, 0.01)  # beyond the page's own, which is 0.003
LOOKS = (200, 500)  # updates; the page makes 500 without a GPU
TRAINED = [
    ("reverse", "sinusoidal"), ("copy", "rotary"), ("copy", "learned"), ("copy", "sinusoidal"),
]
OTHERS = {"nothing": None, "still to come": 6, "written": 0}  # the step of the letter it swaps with


def looking(task: str, positions: str, seed: int, rate: float) -> dict:
    moved, sure = [], []

    def watch(step, model):
        if step in LOOKS:
            model.eval()
            moved.append({name: page.moved(model, task, other) for name, other in OTHERS.items()})
            sure.append(page.sure_of(model, task))
            model.train()

    page.train(task, seed, positions, watch, LOOKS[-1], page.new_model, rate)
    return {"steps": LOOKS, "moved": moved, "sure": sure}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    plan = [(*kind, seed, 0.003) for seed in SEEDS for kind in TRAINED]
    plan += [(*TRAINED[0], seed, rate) for seed, rate in itertools.product(SEEDS, RATES)]
    for task, positions, seed, rate in plan:
        yield cell("crossing", looking, task=task, positions=positions, seed=seed, rate=rate)
