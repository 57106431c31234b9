"""Record what the chapter on the whole model claims about starts.

    make record ONLY=starts

Six ways to start a small translator on the `mini` corpus, by learning rate and steps. The
experiment is the one that the page prints, in its cells tagged `recorded`. Resumable; about four
minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, page_code, seed_by_seed
from transformer_lib.models import transformer

OUT = RESULTS / "starts.json"
PAGE = "11_whole_model"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE, library=transformer))
GATE = Gate(
    chance=math.log(page.tokenizer.get_vocab_size()), arms=("start",), edge={"rate": (0.001, 0.01)},
    differs={"parameters": "with almost twice the parameters"},
    did_not_learn=tuple(
        ({"start": start, "rate": 0.0003}, "they've hardly begun to learn after 360 steps")
        for start in ("stacks x 10", "W with standard deviation 1")
    ),
)

RATES = (0.0003, 0.001, 0.003, 0.01, 0.03)
LOOKS = (120, 360)  # steps


def learning(start: str, rate: float, seed: int) -> dict:
    """The first loss, and the mean of the last twenty, at some of the steps."""
    losses = page.train_from(start, seed, LOOKS[-1], rate)
    last = [losses[:steps][-20:] for steps in LOOKS]
    return {"first": losses[0], "steps": LOOKS, "loss": [sum(x) / len(x) for x in last]}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("starts", learning, SEEDS, start=page.STARTS, rate=RATES)
