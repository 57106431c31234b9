"""Record what the first chapter claims of recurrent models: `python tools/claims/memory.py [part]`.

Parts, both by default: remember (one symbol over a distance, by start and steps) and repeat (a
sentence through one vector, or with attention). The experiments are those that the page prints, in
its cells tagged `recorded`. Resumable; about eight minutes on one core. `make claims` runs it.
"""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "memory.json"
PAGE = "01_why_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

STARTS = (
    *(("RNN", orthogonal, 0.0) for orthogonal in (False, True)),
    *(("GRU", *start) for start in itertools.product((False, True), (0.0, 2.0))),
    ("attention", False, 0.0),
)
TOKENS = (40,)
LOOKS = (150, 300)  # steps


def remember(kind: str, orthogonal: bool, keep: float, tokens: int, seed: int) -> dict:
    """Share of symbols remembered, as the page takes it after so many steps."""
    start = {"orthogonal": orthogonal, "keep": keep}
    right = page.shares_right(kind, tokens, seed, LOOKS[-1], **start)
    ends = [page.end_of(right[:steps]) for steps in LOOKS]
    return {"first": right[0], "steps": LOOKS, "right": ends}


REPEAT_LOOKS = (400, 1200)  # steps


def repeat(reads: str, seed: int) -> dict:
    """Share of symbols repeated right by the length of the sentence, at some of the steps."""
    training = page.repeater_training(reads == "attention", seed)
    first, *right = [
        {str(n): page.repeats(net, n) for n in page.LENGTHS}
        for step, net in zip(range(1, REPEAT_LOOKS[-1] + 1), training, strict=False)
        if step in (1, *REPEAT_LOOKS)
    ]
    return {"first": first, "steps": REPEAT_LOOKS, "right": right}


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed in SEEDS:
        for reads in ("one vector", "attention"):
            settings = {"reads": reads, "seed": seed}
            yield {"part": "repeat"} | settings, lambda s=settings: repeat(**s)
    for seed, (kind, orthogonal, keep), tokens in itertools.product(SEEDS, STARTS, TOKENS):
        settings = {"kind": kind, "orthogonal": orthogonal, "keep": keep, "tokens": tokens}
        settings |= {"seed": seed}
        yield {"part": "remember"} | settings, lambda s=settings: remember(**s)


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
