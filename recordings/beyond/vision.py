"""The grid of the chapter on the Vision Transformer: digits read by a ViT and by convolutions.

    python -m recordings.beyond.vision        # about five minutes of one core; stops and goes on

Writes results/beyond/vision.json after every run, seed 0 of all arms first. A run that is there
is not done again.
"""

import datetime
import json
import subprocess
import time
from pathlib import Path

import torch
import torch.nn.functional as F

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
CHANGES = {"as they are": lambda images: images, "shifted": digits.shift, "shuffled": shuffled}


def run(model_name, change, n_train, rate, updates, seed):
    train, validation, test = digits.load_digits(n_train)
    torch.manual_seed(seed)
    model = MAKE[model_name]()
    begin = time.process_time()
    losses = digits.train(model, train, updates, rate, CHANGES[change])
    seconds = time.process_time() - begin

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
        "test_other_order": right(test, OTHER), "cpu_seconds": round(seconds, 1),
    }
    if model_name == "vit" and n_train == 1200:
        places = F.normalize(model.embed.positions.table.detach()[1:], dim=-1)
        row["similarity"] = [[round(x, 3) for x in line] for line in (places @ places.T).tolist()]
    return row


def main():
    torch.set_num_threads(1)
    known = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {tuple(row[k] for k in KEY) for row in known}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    for arm in PLAN:
        if arm in done:
            continue
        known.append(run(*arm))
        print({k: known[-1][k] for k in (*KEY, "test", "cpu_seconds")}, flush=True)
        FILE.write_text(json.dumps({
            "task": {"updates": UPDATES, "rate": RATE, "batch": 64, "test": 397,
                     "order": ORDER.tolist(), "other_order": OTHER.tolist()},
            "environment": {"torch": torch.__version__, "device": "one CPU core",
                            "commit": commit.stdout.strip(),
                            "date": datetime.date.today().isoformat()},
            "runs": known,
        }, indent=1) + "\n")


if __name__ == "__main__":
    main()
