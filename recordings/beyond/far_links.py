"""Which cheap attention still finds a far answer? The grid of the chapter "Cheaper attention".

    make record ONLY=far_links

Every mechanism of `transformer_lib.beyond.far_links` learns the same task with the same updates;
it is tested then, and again when it has spent the arithmetic of full attention. A run that is in
results/beyond/far-links.json already is not made again.
"""

import functools

import torch

from recordings.record import ROOT, record_runs, rounded
from transformer_lib.beyond import far_links
from transformer_lib.beyond.learning import learn

FILE = ROOT / "results" / "beyond" / "far-links.json"
SIZE, BATCH, UPDATES, WARMUP = 128, 8, 300, 50
# In order of importance: seeds, and what a rival would change.
BASE = {"rate": 0.003, "n_facts": 24, "budget": 32}
SETTINGS = [
    {"seed": 0, **BASE},
    {"seed": 1, **BASE},
    {"seed": 2, **BASE},
    {"seed": 0, **BASE, "rate": 0.001},
    {"seed": 0, **BASE, "budget": 96},
    {"seed": 0, **BASE, "n_facts": 8},
]


def find(mechanism: str, seed: int, rate: float, n_facts: int, budget: int) -> dict:
    """Train one model and test it twice."""
    torch.manual_seed(seed)
    model = far_links.reader(mechanism, SIZE, n_facts, budget)
    full = far_links.flops(far_links.reader("full", SIZE, n_facts))
    same_flops = round(UPDATES * full / far_links.flops(model))
    generator = torch.Generator().manual_seed(seed)
    test = far_links.draw(128, SIZE, n_facts, torch.Generator().manual_seed(10_000 + seed))
    right = {}

    def look(update):
        if update in (UPDATES, same_flops):
            right[update] = far_links.right_by_distance(model, test)

    def loss():
        return far_links.answer_loss(model, far_links.draw(BATCH, SIZE, n_facts, generator))

    losses = learn(model, loss, max(UPDATES, same_flops), rate, WARMUP, after=look)
    return rounded(
        {"cells": model.cells, "updates_of_same_flops": same_flops,
         "same_updates": right[UPDATES], "same_flops": right[same_flops], "losses": losses[24::25]}
    )


def record_all(wrap=lambda measure: measure):
    """Every run that the file lacks."""
    cells = [
        ({"mechanism": name, **setting},
         wrap(functools.partial(find, mechanism=name, **setting)))
        for setting in SETTINGS for name in far_links.NAMES
    ]
    task = {"length": SIZE, "batch": BATCH, "updates": UPDATES, "warmup": WARMUP}
    record_runs(FILE, cells, also={"task": task})
