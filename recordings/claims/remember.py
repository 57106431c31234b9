"""Record what the first chapter claims of remembering: `make record ONLY=remember`.

Over 40 tokens: recurrent models as PyTorch starts them, with each part of the better start alone
and with both, and attention, by steps. The experiment is the one that the page prints, in
its cells tagged `recorded`. Resumable; about a minute on one core.
"""

import itertools
from types import SimpleNamespace

from recordings.record import RESULTS, page_code, seed_by_seed

OUT = RESULTS / "remember.json"
PAGE = "01_why_attention"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))

TOKENS = 40
KINDS = (
    "RNN", "GRU", "GRU, orthogonal weights", "GRU, keeping gate", "GRU, better start", "attention",
)
RATES = (0.01,)
LOOKS = (150, 450)  # steps


def remember(kind: str, rate: float, seed: int) -> dict:
    """Share right over the last ten batches, at some of the steps."""
    right = list(itertools.islice(page.remembering(kind, TOKENS, seed, rate), LOOKS[-1]))
    ends = [sum(right[steps - 10 : steps]) / 10 for steps in LOOKS]
    return {"first": right[0], "steps": LOOKS, "right": ends}


def grid():
    """(settings, function) of every cell."""
    return seed_by_seed("remember", remember, SEEDS, kind=KINDS, rate=RATES)
