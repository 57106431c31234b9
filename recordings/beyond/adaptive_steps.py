"""The grid of "As many steps as it takes": following arrows, at a price for each step.

    make record ONLY=adaptive_steps        # about six minutes on one core; resumable

Seed 0 of all prices comes first; other rates, and a price beyond the page's own, are at the end.
"""

import itertools
from statistics import mean

import torch

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import arrows
from transformer_lib.beyond.learning import learn

OUT = ROOT / "results" / "beyond" / "adaptive-steps.json"
PAGE = "24a_less_depth"
BATCH, PLACES, HOPS, MAX_STEPS, UPDATES, RATE = 64, 8, 5, 6, 500, 2e-3
PRICES, SEEDS = (0.0, 0.01, 0.03, 0.1, 0.3), (0, 1, 2)
# A single arrow, whatever the number asked for, gives half of the answers. (The loss has the price
# in it, so it says less.)
GATE = Gate(
    arms=("price",), began=lambda record: mean(record["right"]) > 0.55,
    edge={"rate": (RATE, RATE), "price": (0.01, PRICES[-1])},
)


def follows(price: float, rate: float, seed: int) -> dict:
    """Follow the arrows at a price for each step; the price grows over the first half."""
    torch.manual_seed(seed)
    model = arrows.Follower(PLACES, HOPS, MAX_STEPS)
    generator, done = torch.Generator().manual_seed(seed), itertools.count()

    def loss():
        batch = arrows.draw(BATCH, PLACES, HOPS, generator)
        return arrows.arrival_loss(model, batch, price * min(1, 2 * next(done) / UPDATES))

    learn(model, loss, UPDATES, rate, warmup=100, cooldown=3)
    to, hops, arrived = arrows.draw(1000, PLACES, HOPS, torch.Generator().manual_seed(99))
    with torch.no_grad():
        logits, steps, _ = model(to, hops)
    right = (logits.argmax(-1) == arrived).float().mean(1)
    of_hops = [hops == h for h in range(1, HOPS + 1)]
    return {"right": [right[rows].mean().item() for rows in of_hops],
            "steps": [steps[rows].mean().item() for rows in of_hops]}


def grid():
    """(settings, function) of every cell."""
    arms = [(price, RATE, seed) for seed in SEEDS for price in PRICES]
    arms += [(price, rate, seed) for seed in SEEDS for rate in (RATE / 2, 2 * RATE)
             for price in (0.0, 0.1)]
    arms += [(1.0, RATE, 0)]
    return [cell("arrows", follows, price=p, rate=rate, seed=seed) for p, rate, seed in arms]
