"""Record what the chapter on schedules claims about warm-up, and its side page about clipping.

    make record ONLY=warm_up

A constant rate and one with warm-up, by the highest rate and the place of the norm; with warm-up
also without clipping, and with Adam's default beta 2. Losses are kept after 100 updates, and after
200 unless the rate is the lowest or the model is pre-norm. The experiment is that of the page,
in its cells tagged `recorded`. Resumable; five minutes on one core.
"""

import math
import statistics
from types import SimpleNamespace

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "warm_up.json"
PAGE = "12_batches_loss_schedule"
SEEDS = (0, 1, 2)
N, LONGER, WARM = 100, 200, 40  # updates; in the last of them the rate rises
page = SimpleNamespace(**page_code(PAGE))
GATE = Gate(
    chance=math.log(page.tokenizer.get_vocab_size()),
    arms=("schedule", "change", "beta_2", "part"), edge={"rate": (0.001, 0.01)},
)

SCHEDULES = {  # name -> the rate of a step as a share of the highest
    "constant": lambda step: 1.0,
    "warm-up, then constant": lambda step: min(step / WARM, 1),
}
CLIP = {"nothing": 1.0, "no clipping": math.inf}


def training(schedule, norm_first, rate, beta_2, change, seed) -> dict:
    """Losses of one training run: the first, and means of four after N and, where it goes on, after
    LONGER updates; and the median and the largest length of its first N gradients.
    """
    model, share = page.new_model(seed, norm_first=norm_first), SCHEDULES[schedule]
    updates = LONGER if goes_on(norm_first, rate) else N
    rows = page.train(
        model, updates, lambda step: rate * share(step), seed, beta_2=beta_2, clip=CLIP[change]
    )
    losses, norms = ([row[name] for row in rows] for name in ("loss", "norm"))
    found = {"first_loss": losses[0], "last": sum(losses[N - 4 : N]) / 4}
    if updates == LONGER:
        found["later"] = sum(losses[-4:]) / 4
    return found | {"norms": [statistics.median(norms[:N]), max(norms[:N])]}


def goes_on(norm_first: bool, rate: float) -> bool:
    """Whether a run has LONGER updates: those in which warm-up and a constant rate come close."""
    return not norm_first and rate > 0.001


def grid():
    """(settings, function) of every cell."""
    both, warmed = tuple(SCHEDULES), ("warm-up, then constant",)
    plan = [  # part, place of the norm, rates, schedules, beta 2, change
        ("rates", False, (0.01, 0.005, 0.003), both, 0.98, "nothing"),
        ("clip", False, (0.01, 0.005), warmed, 0.98, "no clipping"),
        ("rates", False, (0.001,), both, 0.98, "nothing"),
        ("rates", True, (0.01,), both, 0.98, "nothing"),
        ("beta", False, (0.005,), warmed, 0.999, "nothing"),
        ("rates", False, (0.0003, 0.03), both, 0.98, "nothing"),  # beyond the page's own
        ("rates", True, (0.003, 0.03), both, 0.98, "nothing"),
    ]
    return [
        cell(part, training, schedule=schedule, seed=seed, norm_first=norm_first, rate=rate,
             beta_2=beta_2, change=change)
        for part, norm_first, rates, schedules, beta_2, change in plan
        for rate in rates for schedule in schedules for seed in SEEDS
    ]
