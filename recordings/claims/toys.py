"""Record what the chapter on toy tasks claims: `make record ONLY=toys`.

Each cell trains a model as the page does, for a task and a kind of positions, three times as long.
It keeps, at two numbers of updates: whole sequences right by length and by repeated letters; how
much of the right letter returns when one vector of a clean run is put into a corrupted one; what
is left when its place is hidden, and when another letter of the source is exchanged. Resumable;
a quarter of an hour on one core.
"""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import ModelConfig, Transformer
from transformer_lib.embeddings import Embed

OUT = RESULTS / "toys.json"
PAGE = "13_toy_tasks"
page = SimpleNamespace(**page_code(PAGE, lengths=(3, 8)))  # of the letters in training
# Guessing: ten letters and <eos>.
GATE = Gate(
    chance=math.log(11), arms=("positions",),
    edge={"rate": (0.003, 0.003), "positions": {"rotary", "learned"}},
)

SEEDS = (0, 1, 2)
RATES = (0.001, 0.01)  # beyond the page's own, which is 0.003
LOOKS = (500, 1500)  # updates; the page makes 500 without a GPU
LENGTHS = (4, 6, 8, 9, 10, 12)  # of the test sequences
# What the chapter asks of each kind of positions. (A bag cannot copy or reverse.)
TRAINED = [
    ("copy", "rotary"), ("copy", "sinusoidal"), ("copy", "learned"), ("reverse", "sinusoidal"),
    ("sort", "sinusoidal"), ("sort", "none"), ("sort", "encoder only"), ("sort", "decoder only"),
]
# Where the text speaks of an order in time, a rate may change it.
AT_OTHER_RATES = [("reverse", "sinusoidal"), ("copy", "learned")]
OTHERS = (2, 3, 5, 6)  # places of the letters around the one asked for
ASKED, BEFORE = 4, 3  # the places of the letter asked for, and of the one before it


def patched(model, task: str, changed: int) -> dict:
    """Right letter in the clean and the corrupted run, and what a key and a value give back."""
    clean, corrupted, table = page.patching(model, task, changed)
    found = dict(zip(page.STAGES, table, strict=True))
    return {"clean": clean, "corrupted": corrupted} | {
        stage: found[stage][ASKED] for stage in ("as a key", "as a value")
    }


class OneSided(Transformer):
    """Positions in the encoder only, or in the decoder only."""

    def __init__(self, config: ModelConfig, side: str):
        super().__init__(config)
        self.side, self.placed = side, self.embed
        self.bare = Embed(replace(config, positional="none"))

    def encode(self, *given):
        self.embed = self.placed if self.side == "encoder only" else self.bare
        return super().encode(*given)

    def decode(self, *given, **named):
        self.embed = self.placed if self.side == "decoder only" else self.bare
        return super().decode(*given, **named)


def new_model(positional: str):
    """The page's model, or the same with positions on one side only."""
    if not positional.endswith("only"):
        return page.new_model(positional)
    return OneSided(page.new_model().config, positional)


def learning(task: str, positions: str, seed: int, rate: float = 0.003) -> dict:
    exact, surgery, repeated, exchanged = [], [], [], []

    def watch(step, model):
        if step in LOOKS:
            exact.append([page.exact_match(model.eval(), task, n, n=100) for n in LENGTHS])
            surgery.append(
                {"itself": patched(model, task, ASKED), "before": patched(model, task, BEFORE)}
                | {"hidden": page.left_when_hidden(model, task, ASKED)}
            )
            repeated.append(page.by_repeats(model, task))
            exchanged.append([page.right_letter(model, task, place) for place in OTHERS])
            model.train()

    model, losses = page.train(task, seed, positions, watch, LOOKS[-1], new_model, rate)
    return {
        "first": losses[0], "last": sum(losses[-20:]) / 20, "steps": LOOKS,
        "parameters": model.count_parameters(), "lengths": LENGTHS, "exact": exact,
        "surgery": surgery, "by repeats": repeated, "exchanged": exchanged,
    }


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed in SEEDS:
        for task, positions in TRAINED:
            yield cell("toys", learning, task=task, positions=positions, seed=seed)
    for seed, rate in itertools.product(SEEDS, RATES):
        for task, positions in AT_OTHER_RATES:
            yield cell("toys", learning, task=task, positions=positions, seed=seed, rate=rate)
