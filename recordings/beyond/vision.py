"""The grid of the chapter on the Vision Transformer: digits read by a ViT and by convolutions.

    make record ONLY=vision        # about five minutes of one core; stops and goes on

Writes results/beyond/vision.json after every run, seed 0 of all arms first. A run that is there
is not done again.
"""

from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from recordings.record import record_runs
from transformer_lib.beyond import digits

FILE = Path(__file__).resolve().parents[2] / "results" / "beyond" / "vision.json"
UPDATES, RATE, SEEDS = 500, 3e-3, 3
ORDER, OTHER = (
    torch.randperm(16, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)
)


def shuffled(images):
    return digits.shuffle_patches(images, ORDER)


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
SLOW = [
    (model, "as they are", n, RATE / 3, UPDATES)
    for model in ("vit", "conv")
    for n in (1200, 100, 300)
]  # the control for the learning rate: seed 0 alone
PLAN = [(*arm, seed) for arms in (MAIN, LONG) for seed in range(SEEDS) for arm in arms]
PLAN += [(*arm, 0) for arm in SLOW]
KEY = ("model", "change", "n_train", "rate", "updates", "seed")
CHANGES = {
    "as they are": lambda images: images, "shifted": digits.shift_batch, "shuffled": shuffled,
}


def run(model_name, change, n_train, rate, updates, seed):
    train, validation, test = digits.load_digits(n_train)
    torch.manual_seed(seed)
    model = MAKE[model_name]()
    losses = digits.train(model, train, updates, rate, CHANGES[change])

    def right(data, order=None):
        images = data.images if order is None else digits.shuffle_patches(data.images, order)
        return round(digits.accuracy(model, data._replace(images=images)), 4)

    seen = ORDER if change == "shuffled" else None
    row = {
        "model": model_name, "change": change, "n_train": n_train, "rate": rate,
        "updates": updates, "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "last_loss": round(sum(losses[-20:]) / 20, 4), "train": right(train, seen),
        "validation": right(validation, seen), "test": right(test, seen),
        "test_other_order": right(test, OTHER),
    }
    if model_name == "vit" and n_train == 1200:
        places = F.normalize(model.embed.positions.table.detach()[1:], dim=-1)
        row["similarity"] = [[round(x, 3) for x in line] for line in (places @ places.T).tolist()]
    return row


def record_all():
    task = {"updates": UPDATES, "rate": RATE, "batch": 64, "test": 397,
            "order": ORDER.tolist(), "other_order": OTHER.tolist()}
    cells = [(dict(zip(KEY, arm, strict=True)), partial(run, *arm)) for arm in PLAN]
    record_runs(FILE, cells, also={"task": task})
