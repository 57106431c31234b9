"""Record what the page on recurrence says about remembering: `make record ONLY=remember`.

A model reads 40 symbols (or 5) and then has to name the first of them: recurrent models as PyTorch
initialises them, with each part of a better initialisation and with both, and attention, at three
learning rates. The experiment is in the page's cells tagged `recorded`. Resumable; about four
minutes on one core.
"""

import itertools
import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "remember.json"
PAGE = "recurrence"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

FAR, NEAR = 40, 5  # tokens
KINDS = ("RNN", "GRU", "GRU, orthogonal", "GRU, gate bias", "GRU, both", "attention")
RATES = (0.01, 0.003, 0.03)
LOOKS = (150, 450)  # updates
AT_CHANCE = (
    "the GRU as PyTorch initialises it and the one with orthogonal matrices are still at chance"
)
GATE = Gate(
    chance=math.log(8),
    arms=("kind",),
    edge={"rate": (0.01, 0.01)},
    did_not_learn=(
        ({"part": "far", "kind": "RNN"}, "it doesn't get beyond 20 % at any of the three rates"),
        ({"kind": "GRU", "rate": 0.003}, AT_CHANCE),
        ({"kind": "GRU, orthogonal", "rate": 0.003}, AT_CHANCE),
        ({"kind": "GRU", "rate": 0.01}, "that one depends on the seed"),
        ({"kind": "GRU, orthogonal", "rate": 0.01}, "orthogonal matrices are no substitute for it"),
    ),
    differs={"parameters": "each GRU has 10,056 parameters, the RNN 5,832 and attention 3,720"},
)


def remember(kind: str, tokens: int, rate: float, seed: int) -> dict:
    """Share right over the last ten batches, at some of the updates."""
    right = list(itertools.islice(page.remembering(kind, tokens, seed, rate), LOOKS[-1]))
    ends = [sum(right[updates - 10 : updates]) / 10 for updates in LOOKS]
    return {"first": right[0], "updates": LOOKS, "right": ends}


def grid():
    """(settings, function) of every cell."""
    near = {"rate": RATES[:2], "tokens": (NEAR,), "kind": ("RNN", "GRU")}
    far = {"rate": RATES, "tokens": (FAR,), "kind": KINDS}
    return [
        *seed_by_seed("near", remember, SEEDS, **near),
        *seed_by_seed("far", remember, SEEDS, **far),
    ]
