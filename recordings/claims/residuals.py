"""Record what the chapter on residuals claims: `make record ONLY=residuals`.

Parts: facts (how many a network holds, by width, activation, rate, steps), learning (a stack with
and without residual sums, by depth, rate and start). The experiments are the cells of the page that
are tagged `recorded`. Resumable; a few minutes on one core.
"""

import math
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "residuals.json"
PAGE = "08_feed_forward_and_residuals"
SEEDS = (0, 1, 2)
STEPS, LONGER = (40, 80, 120, 240), (240, 480)  # at which the loss is kept
page = SimpleNamespace(**page_code(PAGE))


def chance(settings):
    """Of 12 symbols, or of 32 labels."""
    return math.log(32 if settings["part"] == "facts" else 12)


STUCK = "Six layers without sums hardly get anywhere"
GATE = Gate(
    chance,
    arms=("residual",),
    edge={"layers": (2, 4), "rate": (0.003, 0.003)},
    did_not_learn=(
        ({"part": "learning", "residual": False, "layers": 6}, STUCK),
        ({"part": "longer", "residual": False}, STUCK),
        ({"part": "learning", "residual": False, "layers": 4}, "Four do little better"),
        ({"part": "facts", "factor": 1, "rate": 0.003, "steps": 50}, "50 updates are too few"),
    ),
)


def facts(activation: str, factor: int, rate: float, steps: int, seed: int) -> dict:
    """Share of the random facts that a network of this width holds after training."""
    return {"held": page.facts_held(activation, factor, seed, steps, rate)}


def learning(
    residual: bool, layers: int, rate: float, gain: float, seed: int, steps=STEPS, identity=False
) -> dict:
    """Losses of the reversal at some of the steps, each a mean of the last four points."""
    curve = page.train_reverser(residual, seed, steps[-1], layers, rate, gain, identity)
    at = {point["step"]: point["loss"] for point in curve}
    losses = [sum(at[step - 5 * k] for k in range(4)) / 4 for step in steps]
    return {"steps": steps, "first_loss": curve[0]["loss"], "losses": losses}


def near_identity(**settings) -> dict:
    """The same, for twice as long, from weights with which each sublayer returns what it reads."""
    return learning(**settings, steps=LONGER, identity=True)


def longer(residual: bool, layers: int, rate: float, gain: float, seed: int) -> dict:
    """The same for twice as long."""
    return learning(residual, layers, rate, gain, seed, LONGER)


def grid():
    """(settings, function) of every cell."""
    cells = [
        cell("learning", learning, residual=residual, layers=layers, rate=rate, gain=1.0, seed=seed)
        for layers in (6, 1, 2, 4) for rate in (0.003, 0.001, 0.01) for seed in SEEDS
        for residual in (True, False)
    ]
    cells += [
        cell("learning", learning, residual=residual, layers=6, rate=0.003, gain=gain, seed=seed)
        for gain in (2.0,) for seed in SEEDS for residual in (True, False)
    ]
    near = [(0.001, seed, False) for seed in range(5)]
    near += [(0.003, seed, residual) for seed in SEEDS for residual in (False, True)][:5]
    cells += [
        cell("near identity", near_identity, residual=residual, layers=6, rate=rate, gain=1.0,
             seed=seed)
        for rate, seed, residual in near
    ]
    cells += [cell("longer", longer, residual=False, layers=6, rate=rate, gain=1.0, seed=seed)
              for rate in (0.003,) for seed in SEEDS]
    cells += [
        cell("facts", facts, activation=bend, factor=factor, rate=rate, steps=steps, seed=seed)
        for rate in (0.01, 0.003) for steps in (200, 50, 800) for factor in (1, 2, 4)
        for bend in ("relu", "gelu", "swiglu") for seed in SEEDS
        if rate == 0.01 or factor in (1, 4)
    ]
    return cells
