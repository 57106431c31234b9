"""Record what the chapter on schedules claims of warm-up.

    make record ONLY=warm_up

A constant rate and one with warm-up, by the highest rate and the place of the norm. The experiment
is that of the page, in its cells tagged `recorded`. Resumable; a few minutes on one core.
"""

from types import SimpleNamespace

from recordings.record import RESULTS, cell, page_code

OUT = RESULTS / "warm_up.json"
PAGE = "12_batches_loss_schedule"
SEEDS = (0, 1, 2)
N, WARM = 100, 40  # updates that move, and those of them in which the rate rises
page = SimpleNamespace(**page_code(PAGE))

SCHEDULES = {  # name -> the rate of a step as a share of the highest
    "constant": lambda step: 1.0,
    "warm-up, then constant": lambda step: min(step / WARM, 1),
}


def training(schedule, norm_first, rate, beta_2, change, seed) -> dict:
    """Losses of one short training: the first, and the mean of the last four."""
    model, share = page.new_model(seed, norm_first=norm_first), SCHEDULES[schedule]
    rows = page.train(model, N, lambda step: rate * share(step), seed, beta_2=beta_2)
    losses = [row["loss"] for row in rows]
    return {"first_loss": losses[0], "last": sum(losses[-4:]) / 4}


def grid():
    """(settings, function) of every cell."""
    places = ((0.01, False), (0.01, True), (0.003, False), (0.001, False))
    return [
        cell("rates", training, schedule=schedule, seed=seed, norm_first=norm_first, rate=rate,
             beta_2=0.98, change="nothing")
        for rate, norm_first in places for schedule in SCHEDULES for seed in SEEDS
    ]
