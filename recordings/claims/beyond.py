"""Record what the chapter on positions claims beyond the training length:
`make record ONLY=beyond`.

The loss by place of models that read windows of 32 letters in training and of 128 afterwards, by
their positions, the steps and the learning rate. The experiment is the one that the page prints, in
its cells tagged `recorded`. Resumable; about seven minutes on one core. Needs Multi30k.
"""

from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code

UNIGRAM = 2.87  # nats per letter of English captions

OUT = RESULTS / "beyond.json"
PAGE = "06_positional_encodings"
SEEDS = (0, 1, 2)
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=UNIGRAM, arms=("positions", "size"), edge={"rate": (None, 0.003), "steps": (None, 300)},
    missing={"rate below": "We didn't try a learning rate below 0.003"},
    differs={"parameters": "with 11 % more parameters than the others"},
)


# Positions, and the size at which a learned table starts (None: the library's 0.02).
POSITIONS = [
    ("sinusoidal", None), ("learned", None), ("learned", 0.71), ("rotary", None), ("alibi", None),
    ("none", None),
]
READ_THROUGH_WINDOWS = ("rotary", "alibi", "sinusoidal", "none")
WINDOWS = [4, 8, 16, 24, 32, 40, 48, 64, 128]
TRAINED = [(300, 0.003), (300, 0.01), (1000, 0.003)]  # steps, highest rate


def first(positions: str, size: float | None, steps: int, rate: float, seed: int) -> float:
    """The loss after one step."""
    losses = page.loss_by_place(page.train_letters(positions, seed, 1, rate, size))
    return sum(losses) / len(losses)


def reading(**settings) -> dict:
    """The mean loss of each eight places, from 0 to 127."""
    kind = settings["positions"]
    net = page.train_letters(kind, *(settings[name] for name in ("seed", "steps", "rate", "size")))
    return {"first": first(**settings), "loss": page.loss_by_place(net)}


def windows(positions: str, steps: int, rate: float, seed: int) -> dict:
    """The same, read through windows of many widths at inference: no letter looks further back.

    At 32 no letter looks further than it ever could in training; at 128 it may look at everything.
    """
    net = page.train_letters(positions, seed, steps, rate)
    return {
        "windows": WINDOWS,
        "by_window": [[round(x, 4) for x in page.loss_by_place(net, w)] for w in WINDOWS],
    }


def grid():
    """Seed 0 of everything first, so that a recording that is stopped early is fair."""
    return [
        cell("beyond", reading, positions=positions, size=size, steps=steps, rate=rate, seed=seed)
        for seed in SEEDS for steps, rate in TRAINED for positions, size in POSITIONS
        if steps < 1000 or seed < 2  # the long ones take most of the time
    ] + [
        cell("windows", windows, positions=positions, steps=300, rate=0.003, seed=seed)
        for seed in SEEDS for positions in READ_THROUGH_WINDOWS
    ] + [cell("windows", windows, positions="rotary", steps=1000, rate=0.003, seed=0)]
