"""The grid of the chapter on the Vision Transformer: digits read by a ViT and by convolutions.

    python tools/beyond/vision.py        # about five minutes of one core; stops and goes on

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
ARMS = [
    (model, change, n, rate)
    for rate in (RATE, RATE / 3)
    for n in (1200, 100, 300)
    for model, change in (
        ("vit", "as they are"), ("conv", "as they are"), ("vit", "shifted"), ("conv", "shifted"),
        ("vit with a stem", "as they are"), ("vit", "shuffled"), ("conv", "shuffled"),
        ("vit without positions", "as they are"),
    )
    if (n == 1200 or not (change == "shuffled" or "without" in model))
    and (rate == RATE or (change == "as they are" and model in ("vit", "conv")))
]  # fmt: skip
CHANGES = {"as they are": lambda images: images, "shifted": digits.shift, "shuffled": shuffled}


def run(model_name, change, n_train, rate, seed):
    train, validation, test = digits.load_digits(n_train)
    torch.manual_seed(seed)
    model = MAKE[model_name]()
    begin = time.process_time()
    losses = digits.train(model, train, UPDATES, rate, CHANGES[change])
    seconds = time.process_time() - begin

    def right(data, order=None):
        images = data.images if order is None else digits.shuffle_patches(data.images, order)
        return round(digits.accuracy(model, data._replace(images=images)), 4)

    seen = ORDER if change == "shuffled" else None
    row = {
        "model": model_name, "change": change, "n_train": n_train, "rate": rate, "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "last_loss": round(sum(losses[-20:]) / 20, 4), "train": right(train, seen),
        "validation": right(validation, seen), "test": right(test, seen),
        "test_other_order": right(test, OTHER), "cpu_seconds": round(seconds, 1),
    }  # fmt: skip
    if model_name == "vit" and n_train == 1200:
        places = F.normalize(model.embed.positions.table.detach()[1:], dim=-1)
        row["similarity"] = [[round(x, 3) for x in line] for line in (places @ places.T).tolist()]
    return row


def main():
    torch.set_num_threads(1)
    key = ("model", "change", "n_train", "rate", "seed")
    known = json.loads(FILE.read_text())["runs"] if FILE.exists() else []
    done = {tuple(row[k] for k in key) for row in known}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    for seed in range(SEEDS):
        for arm in ARMS if seed == 0 else [arm for arm in ARMS if arm[3] == RATE]:
            if (*arm, seed) in done:
                continue
            known.append(run(*arm, seed))
            print({k: known[-1][k] for k in (*key, "test", "cpu_seconds")}, flush=True)
            FILE.write_text(json.dumps({
                "task": {"updates": UPDATES, "rate": RATE, "batch": 64, "test": 397,
                         "order": ORDER.tolist(), "other_order": OTHER.tolist()},
                "environment": {"torch": torch.__version__, "device": "one CPU core",
                                "commit": commit.stdout.strip(),
                                "date": datetime.date.today().isoformat()},
                "runs": known,
            }, indent=1) + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
