"""Record what the chapter on toy tasks claims: `python tools/claims/toys.py [part]`.

Parts, both by default: learn (tasks and kinds of positions), longer (three times as many updates).
Each cell trains one model as the page does and keeps three things: whole sequences right by length,
at several updates; how much of the right letter returns when one vector of a clean run is put into
a corrupted one; and how much of it is left when one place is hidden instead.
Resumable; under ten minutes on one core. `make claims` runs it.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import torch  # noqa: E402
from _record import RESULTS, page_code, record  # noqa: E402

OUT = RESULTS / "toys.json"
PAGE = "13_toy_tasks"
page = SimpleNamespace(**page_code(PAGE))

SEEDS = (0, 1, 2)
UPDATES = 500  # as on the page, without a GPU
LENGTHS = (3, 4, 6, 8, 9, 10, 12, 14)  # of the test sequences; training knows 3 to 8
LOOKS = (125, 250, 500, 1000, 1500)  # updates at which they are tested
# What the chapter asks of each kind of positions. (A bag cannot copy or reverse.)
TRAINED = [
    ("copy", "rotary"), ("copy", "sinusoidal"), ("sort", "sinusoidal"), ("reverse", "sinusoidal"),
    ("sort", "none"), ("copy", "learned"), ("reverse", "rotary"), ("sort", "rotary"),
]  # fmt: skip
# The place of the exchanged letter; the answer stands at place 4.
CHANGED = {"its letter": 4, "the letter before": 3}


def exact(model, task) -> list[float]:
    """The share of whole sequences right, for each length."""
    return [page.exact_match(model.eval(), task, n, n=200) for n in LENGTHS]


@torch.no_grad()
def hiding(model, task) -> list[float]:
    """Probability of the right letter when the decoder cannot look at one place: for each."""
    clean, _, read, step, answer = page.twins(task, CHANGED["its letter"])
    rows, found = torch.arange(len(answer)), []
    for place in range(clean.size(1)):
        src_mask = (torch.arange(clean.size(1)) != place)[None, None, None]  # (1, 1, 1, S)
        logits = model.project(model.decode(read, model.encode(clean), src_mask))
        found.append(logits[rows, step].softmax(-1)[rows, answer].mean().item())
    return found


def learn(task: str, positional: str, seed: int, updates: int) -> dict:
    looks, curve = [step for step in LOOKS if step <= updates], []

    def watch(step, model):
        if step in looks:
            curve.append(exact(model, task))
            model.train()

    model, losses = page.train(task, seed, positional, watch, updates)
    patched = {}
    for name, place in CHANGED.items():
        clean, corrupted, table = page.patching(model, task, place)
        patched[name] = {"clean": clean, "corrupted": corrupted, "table": table}
    return {
        "first_loss": losses[0],
        "looks": looks,
        "lengths": LENGTHS,
        "exact": curve,
        "patched": patched,
        "hidden": hiding(model, task),
    }


def grid():
    """(settings, function) of every cell."""

    def cell(part, **settings):
        return {"part": part, **settings}, lambda: learn(**settings)

    cells = [
        cell("learn", task=task, positional=positional, seed=seed, updates=UPDATES)
        for seed in SEEDS for task, positional in TRAINED
    ]  # fmt: skip
    cells += [
        cell("longer", task=task, positional=positional, seed=0, updates=3 * UPDATES)
        for task, positional in (("copy", "rotary"), ("copy", "sinusoidal"))
    ]
    return cells


if __name__ == "__main__":
    record(OUT, grid(), sys.argv[1:])
