"""Record what the chapter on toy tasks claims: `make record ONLY=toys`.

Each cell trains a model as the page does, for a task and a kind of positions, three times as long,
and keeps: whole sequences right by length, at two numbers of updates; how much of the right letter
returns when one vector of a clean run is put into a corrupted one; and how much of it is left when
its place is hidden instead. Resumable; about six minutes on one core.
"""

from types import SimpleNamespace

from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "toys.json"
PAGE = "13_toy_tasks"
page = SimpleNamespace(**page_code(PAGE, lengths=(3, 8)))  # of the letters in training

SEEDS = (0, 1, 2)
LOOKS = (500, 1500)  # updates; the page makes 500 without a GPU
LENGTHS = (4, 6, 8, 9, 10, 12)  # of the test sequences
# What the chapter asks of each kind of positions. (A bag cannot copy or reverse.)
TRAINED = [
    ("copy", "rotary"), ("copy", "sinusoidal"), ("copy", "learned"), ("reverse", "sinusoidal"),
    ("sort", "sinusoidal"), ("sort", "none"),
]
ASKED, BEFORE = 4, 3  # the places of the letter asked for, and of the one before it


def patched(model, task: str, changed: int) -> dict:
    """Right letter in the clean and the corrupted run, and what a key and a value give back."""
    clean, corrupted, table = page.patching(model, task, changed)
    found = dict(zip(page.STAGES, table, strict=True))
    return {"clean": clean, "corrupted": corrupted} | {
        stage: found[stage][ASKED] for stage in ("as a key", "as a value")
    }


def learning(task: str, positions: str, seed: int) -> dict:
    exact, surgery = [], []

    def watch(step, model):
        if step in LOOKS:
            exact.append([page.exact_match(model.eval(), task, n, n=100) for n in LENGTHS])
            surgery.append(
                {"itself": patched(model, task, ASKED), "before": patched(model, task, BEFORE)}
                | {"hidden": page.left_when_hidden(model, task, ASKED)}
            )
            model.train()

    _, losses = page.train(task, seed, positions, watch, LOOKS[-1])
    return {
        "first": losses[0], "steps": LOOKS, "lengths": LENGTHS, "exact": exact, "surgery": surgery
    }


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    for seed in SEEDS:
        for task, positions in TRAINED:
            yield cell("toys", learning, task=task, positions=positions, seed=seed)
