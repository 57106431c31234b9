"""Which cheap attention still finds a far answer? The grid behind the chapter "Cheaper attention".

    python -m benchmarks.far_links                      every run that results/ does not hold yet
    python -m benchmarks.far_links --only local BigBird

Every mechanism of `transformer_lib.beyond.far_links` learns the same task with the same updates;
it is tested then, and again when it has spent the arithmetic of full attention. Runs are added to
results/beyond/far-links.json one by one, so an interrupted grid goes on.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import torch

from transformer_lib.beyond import far_links
from transformer_lib.runs.files import write_json

FILE = Path(__file__).resolve().parents[1] / "results" / "beyond" / "far-links.json"
SIZE, BATCH, UPDATES, WARMUP = 128, 8, 300, 50
# In order of importance: seeds, and what a rival would change.
BASE = {"rate": 0.003, "n_facts": 24, "budget": 32}
SETTINGS = [
    {"seed": 0, **BASE},
    {"seed": 1, **BASE},
    {"seed": 2, **BASE},
    {"seed": 0, **BASE, "rate": 0.001},
    {"seed": 0, **BASE, "budget": 96},
    {"seed": 0, **BASE, "n_facts": 8},
]


def run(name: str, seed: int, rate: float, n_facts: int, budget: int) -> dict:
    """Train one model and test it twice."""
    torch.manual_seed(seed)
    model = far_links.reader(name, SIZE, n_facts, budget)
    full = far_links.flops(far_links.reader("full", SIZE, n_facts))
    same_flops = round(UPDATES * full / far_links.flops(model))
    tests = {UPDATES: "same_updates", same_flops: "same_flops"}
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(seed)
    test = far_links.draw(128, SIZE, n_facts, torch.Generator().manual_seed(10_000 + seed))
    row = {"mechanism": name, "seed": seed, "rate": rate, "n_facts": n_facts, "budget": budget}
    row |= {"cells": model.attention[0].attend.cells, "updates_of_same_flops": same_flops}
    seconds, losses = 0.0, []
    for step in range(1, max(tests) + 1):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, step / WARMUP)
        batch = far_links.draw(BATCH, SIZE, n_facts, generator)
        start = time.perf_counter()
        losses.append(far_links.training_step(model, optimizer, batch))
        seconds += time.perf_counter() - start
        if step in tests:
            right = far_links.right_by_distance(model, test)
            row["same_updates"] = row.get("same_updates", right)
            row["same_flops"] = right  # the last test stands
    row["losses"] = [round(loss, 3) for loss in losses[24::25]]
    row["seconds_per_update"] = round(seconds / len(losses), 4)
    return json.loads(json.dumps(row), parse_float=lambda x: round(float(x), 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=far_links.NAMES, help="mechanisms")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    record = json.loads(FILE.read_text()) if FILE.exists() else {"runs": []}
    record["environment"] = {"torch": torch.__version__, "python": platform.python_version(),
                             "machine": platform.machine(), "threads": 1}
    record["task"] = {"length": SIZE, "batch": BATCH, "updates": UPDATES, "warmup": WARMUP}
    keys = ("mechanism", "seed", "rate", "n_facts", "budget")
    done = {tuple(row[key] for key in keys) for row in record["runs"]}
    for setting in SETTINGS:
        for name in only:
            if (name, *setting.values()) in done:
                continue
            row = run(name, **setting)
            record["runs"].append(row)
            FILE.parent.mkdir(parents=True, exist_ok=True)
            write_json(FILE, record)
            mean = sum(row["same_updates"]) / 8, sum(row["same_flops"]) / 8
            print(f"{name:>10} {setting} right {mean[0]:.0%} {mean[1]:.0%}", flush=True)


if __name__ == "__main__":
    main()
