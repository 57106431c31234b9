"""Record what the chapter on masks claims about a model that cheats.

    make record ONLY=game

The game of the puzzle, by mask, learning rate and steps: no mask, the causal one, and one that
hides nothing but the answer. Then without a mask at other widths, because a wider model may read
its answer elsewhere and play well. The experiment is the one that the page prints, in its cells
tagged `recorded`. Resumable; a few minutes on one core.
"""

import math
from types import SimpleNamespace

import torch

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "game.json"
PAGE = "03_masks"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(11), arms=("model",), edge={"rate": (0.01, 0.01), "width": (32, 32)},
    did_not_learn=(
        ({"width": 128, "rate": 0.03},
         "there training falls apart at the highest rate"),
    ),
)


everything = torch.ones(8, 8, dtype=torch.bool)
MASKS = {
    "A: no mask": everything,
    "C: the answer hidden": ~(everything.triu(1) & everything.tril(1)),
    "B: the future hidden": everything.tril(),
}
RATES = (0.003, 0.01, 0.03)
LOOKS = (150, 600)  # steps
WIDTHS = (16, 64, 128)  # beyond the page's 32


def playing(model: str, rate: float, seed: int, width: int = 32) -> dict:
    """The training loss, a mean over ten steps, and the share of digits right in play."""
    mask, right = MASKS[model], []

    def look(step, player):
        if step in LOOKS:
            right.append(page.share_right(player, mask))

    _, losses = page.train(mask, seed, LOOKS[-1], rate, look, width)
    last = [losses[:steps][-10:] for steps in LOOKS]
    ends = [sum(x) / len(x) for x in last]
    return {"first": losses[0], "steps": LOOKS, "loss": ends, "right": right}


def grid():
    """(settings, function) of every cell."""
    yield from seed_by_seed("game", playing, SEEDS, model=MASKS, rate=RATES)
    yield from seed_by_seed(
        "width", playing, range(6), model=("A: no mask",), rate=RATES, width=WIDTHS
    )
