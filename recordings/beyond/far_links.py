"""Which cheap attention still finds a far answer? The grid of the chapter "Cheaper attention".

    make record ONLY=far_links        # about twenty-five minutes on one core; resumable

Every mechanism of `transformer_lib.beyond.far_links` learns the same task with the same updates;
it is tested then, and again when it has spent the arithmetic of full attention. (Of most runs the
file keeps the loss of every 25th update, of the newest the mean of every 20.)
"""

import math

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import far_links
from transformer_lib.beyond.learning import learn

OUT = ROOT / "results" / "beyond" / "far-links.json"
PAGE = "cheap_tested"
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
    {"seed": 0, **BASE, "rate": 0.01},
]
GATE = Gate(
    chance=math.log(far_links.N_VALUES), arms=("mechanism",),
    edge={"rate": (0.003, 0.003), "n_facts": (24, None), "budget": (None, 32)},
    missing={"n_facts above": "We tried no more than 24 facts",
             "budget below": "no budget below 32"},
    did_not_learn=(
        ({"mechanism": "RFA"}, "stay at the loss of guessing in every setting that we tried"),
        ({"mechanism": "Linformer"}, "stay at the loss of guessing in every setting that we tried"),
        ({"mechanism": "ETC"}, "and ETC and BigBird in some seeds and settings"),
        ({"mechanism": "BigBird"}, "and ETC and BigBird in some seeds and settings"),
        ({"mechanism": "Performer"}, "except for the Performer in one seed"),
        ({"rate": 0.001}, "most of the others, linear attention included, have barely started"),
        ({"rate": 0.01}, "neither of these two had learned much"),
    ),
    differs={
        "parameters": "The Linformer has 10 % more parameters",
        "updates": "up to 1.4 times the updates", "tokens": "up to 1.4 times the updates",
    },
)


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

    learn(model, loss, max(UPDATES, same_flops), rate, WARMUP, after=look)
    return {"cells": model.cells, "updates_of_same_flops": same_flops,
            "same_updates": right[UPDATES], "same_flops": right[same_flops]}


def grid():
    """(settings, function) of every cell."""
    return [cell("facts", find, mechanism=name, **setting)
            for setting in SETTINGS for name in far_links.NAMES]
