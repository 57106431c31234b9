"""The grid of the chapter on the Vision Transformer: digits read by a ViT and by convolutions.

    make record ONLY=vision        # about six minutes on one core; resumable

Seed 0 of all arms comes first.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond import digits

PAGE = "21_vision_transformer"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "vision.json"
GATE = Gate(
    chance=math.log(10), arms=("model", "change"),
    edge={"rate": (0.003, 0.003), "updates": (None, 500)},
)
UPDATES, RATE, SEEDS = 500, 3e-3, 3
ORDER, OTHER = (
    torch.randperm(16, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)
)
PIXELS = torch.randperm(64, generator=torch.Generator().manual_seed(1))


def shuffled(images):
    return digits.shuffle_patches(images, ORDER)


def pixels_shuffled(images):
    """No pixel keeps a neighbour, except by chance: patches of one pixel change places."""
    return digits.shuffle_patches(images, PIXELS, patch=1)


MAKE = {
    "vit": digits.vision_transformer,
    "conv": digits.conv_net,
    "vit with a stem": digits.with_stem,
    "vit without positions": lambda: digits.vision_transformer("none"),
}
MAIN = [  # model, change, training pictures, rate, updates
    (model, change, n, RATE, UPDATES)
    for n in (1200, 100, 300)
    for model, change in (
        ("vit", "as they are"), ("conv", "as they are"), ("vit", "shifted"), ("conv", "shifted"),
        ("vit with a stem", "as they are"), ("vit", "shuffled"), ("conv", "shuffled"),
        ("vit without positions", "as they are"),
    )
    if n == 1200 or not ((model, change) == ("vit", "shuffled") or "without" in model)
]
LONG = [
    (model, change, 1200, RATE, 3 * UPDATES)
    for model, change in (("vit", "shifted"), ("vit", "as they are"), ("conv", "as they are"))
]
OTHER_RATES = [
    (model, "as they are", n, rate, UPDATES)
    for rate in (RATE / 3, 0.01)
    for model in ("vit", "conv")
    for n in (1200, 100, 300)
]  # the control for the learning rate: seed 0 only
STRANGERS = [
    (model, "pixels shuffled", n, RATE, UPDATES)
    for model in ("conv", "vit") for n in (1200, 100, 300)
]
STRANGERS_AT_OTHER_RATES = [
    ("conv", "pixels shuffled", n, rate, UPDATES)
    for rate in (RATE / 3, 0.01) for n in (1200, 100, 300)
]  # seed 0 only
PLAN = [
    (*arm, seed) for arms in (MAIN, LONG, STRANGERS) for seed in range(SEEDS) for arm in arms
]
PLAN += [(*arm, 0) for arm in OTHER_RATES + STRANGERS_AT_OTHER_RATES]
KEY = ("model", "change", "n_train", "rate", "updates", "seed")
CHANGES = {
    "as they are": lambda images: images, "shifted": digits.shift_batch, "shuffled": shuffled,
    "pixels shuffled": pixels_shuffled,
}


def reading(model: str, change: str, n_train: int, rate: float, updates: int, seed: int) -> dict:
    """Train a network on some of the digits: the shares that it gets right."""
    train, validation, test = digits.load_digits(n_train)
    torch.manual_seed(seed)
    network = MAKE[model]()
    losses = digits.train(network, train, updates, rate, CHANGES[change])

    seen = CHANGES[change] if "shuffled" in change else CHANGES["as they are"]

    def right(data, order):
        return round(digits.accuracy(network, data._replace(images=order(data.images))), 4)

    row = {
        "last_loss": round(sum(losses[-20:]) / 20, 4), "train": right(train, seen),
        "validation": right(validation, seen), "test": right(test, seen),
        "test_other_order": right(test, lambda images: digits.shuffle_patches(images, OTHER)),
    }
    if model == "vit" and n_train == 1200:
        places = F.normalize(network.embed.positions.table.detach()[1:], dim=-1)
        row["similarity"] = [[round(x, 3) for x in line] for line in (places @ places.T).tolist()]
    return row


def grid():
    """(settings, function) of every cell."""
    return [cell("digits", reading, **dict(zip(KEY, arm, strict=True))) for arm in PLAN]
