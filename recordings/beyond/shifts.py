"""Do moved training pictures harm a ViT, or was it only stopped too soon?

    make record ONLY=shifts        # about five minutes of one core; stops and goes on

Each network reads the 1,200 training digits as they are, moved a batch at a time, or moved each by
a step of its own; with few updates, with many, and with twice as many.
"""

import math
from pathlib import Path

import torch

from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond import digits

PAGE = "21_vision_transformer"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "shifts.json"
MAKE = {"ViT": digits.vision_transformer, "convolutions": digits.conv_net}
CHANGES = {
    "as they are": lambda images: images,
    "the batch moved": digits.shift_batch,
    "each moved": digits.shift,
}
GATE = Gate(
    chance=math.log(10),
    arms=("network", "change"),
    edge={"updates": (3000, 3000)},
)


def read(network: str, change: str, updates: int, rate: float, seed: int) -> dict:
    train, validation, test = digits.load_digits()
    torch.manual_seed(seed)
    model = MAKE[network]()
    digits.train(model, train, updates, rate, CHANGES[change])
    sets = {"train": train, "validation": validation, "test": test}
    return {name: digits.accuracy(model, data) for name, data in sets.items()}


def grid():
    for seed in range(3):
        for change in ("each moved", "as they are"):
            yield cell("shifts", read, network="ViT", change=change, updates=3000, rate=3e-3,
                       seed=seed)
    for change in CHANGES:
        yield cell("shifts", read, network="ViT", change=change, updates=500, rate=3e-3, seed=0)
    for network, change in (("ViT", "the batch moved"), ("convolutions", "as they are"),
                            ("convolutions", "each moved")):
        yield cell("shifts", read, network=network, change=change, updates=3000, rate=3e-3, seed=0)
    for change in ("each moved", "as they are"):
        yield cell("shifts", read, network="ViT", change=change, updates=6000, rate=3e-3, seed=0)
