"""The grid of "Which memory finds the fact again?": facts asked for later, read in segments.

    make record ONLY=recall        # about eight minutes on one core; resumable

Seed 0 of all memories comes first; two other rates for the arms of the finding are at the end.
"""

import math

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import recall
from transformer_lib.beyond.far_links import N_VALUES
from transformer_lib.beyond.learning import learn

OUT = ROOT / "results" / "beyond" / "recall.json"
PAGE = "24_longer_memory"
BATCH, SIZE, FACTS, UPDATES, RATE, SEEDS = 8, 128, 24, 300, 3e-3, (0, 1, 2)
GATE = Gate(
    chance=math.log(N_VALUES), arms=("memory",), edge={"rate": (RATE, RATE)},
    differs={"parameters": "The three compressed ones have nearly twice the parameters"},
    did_not_learn=(({"memory": "none"}, "its loss hardly gets below that of guessing"),),
)


def remembers(memory: str, rate: float, seed: int) -> dict:
    """Share of the questions answered correctly, for each of eight ranges of distance."""
    torch.manual_seed(seed)
    model = recall.reader(memory, SIZE)
    generator = torch.Generator().manual_seed(seed)

    def loss():
        return recall.answer_loss(model, recall.draw(BATCH, SIZE, FACTS, generator))

    learn(model, loss, UPDATES, rate, warmup=50, cooldown=3)
    test = recall.draw(128, SIZE, FACTS, torch.Generator().manual_seed(99))
    return {"right": recall.right_by_distance(model, test)}


def grid():
    """(settings, function) of every cell."""
    arms = [(memory, RATE, seed) for seed in SEEDS for memory in recall.NAMES]
    arms += [(memory, rate, 0) for rate in (1e-3, 1e-2)
             for memory in ("mean", "attention")]
    return [cell("facts", remembers, memory=m, rate=rate, seed=seed) for m, rate, seed in arms]
