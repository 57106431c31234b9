"""Record what the chapter on many heads claims: `make record ONLY=questions`.

How many questions the heads of one attention answer, by what reads them, rate and steps. The
experiment is the one that the page prints, in its cells tagged `recorded`. Resumable; about six
minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "questions.json"
PAGE = "04_multi_head_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(16), arms=("heads", "reader"), edge={"heads": (2, 4)},
    missing={"rate": "All of this is at one learning rate"},
    differs={"parameters": "The network more than doubles the parameters"},
)


QUESTIONS = "four questions"  # fewer are easy, and the page shows them
HEADS = (1, 2, 4, 8)
READERS = {"linear map": False, "network": True, "network without ReLU": "linear"}
LOOKS = (250, 500, 1000)  # steps


def circle(heads: int, reader: str, seed: int) -> dict:
    """Share of right answers on circles that were not trained on, at some of the steps."""
    offsets = page.QUESTIONS[QUESTIONS]
    training = page.neighbour_training(heads, offsets, seed, READERS[reader])
    first, *right = [
        page.share_right(net, offsets)
        for step, net in zip(range(1, LOOKS[-1] + 1), training, strict=False)
        if step in (1, *LOOKS)
    ]
    return {"first": first, "steps": LOOKS, "right": right}


def grid():
    """(settings, function) of every cell."""
    *readers, control = READERS
    return [
        *seed_by_seed("circle", circle, SEEDS, heads=HEADS, reader=readers),
        *seed_by_seed("circle", circle, SEEDS, heads=(2,), reader=(control,)),
    ]
