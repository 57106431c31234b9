"""Record how each specimen of the bug museum looks: `python -m recordings.museum [name ...]`.

Trains and uses the healthy program and every specimen for a few seconds each, and writes
results/museum.json. With names, only these are done again; "wings" are the three wings.
"""

import json
import sys
import time
from pathlib import Path

import torch

from exercises.museum.specimens import SPECIMENS
from exercises.museum.symptoms import observe, observe_wing
from exercises.museum.wings import wings
from transformer_lib.runs.files import write_text

ROOT = Path(__file__).resolve().parents[1]



OUT = ROOT / "results" / "museum.json"


def main(names):
    torch.set_num_threads(1)
    records = json.loads(OUT.read_text(encoding="utf8")) if names else {}
    start = time.perf_counter()
    for name in names or ("healthy", *SPECIMENS, "wings"):
        began = time.process_time()
        if name == "wings":
            records[name] = {title: observe_wing(wing) for title, wing in wings().items()}
        else:
            records[name] = observe(SPECIMENS.get(name))
        print(f"{name:26} {time.process_time() - began:5.1f} s", flush=True)
        done = [name for name in ("healthy", *SPECIMENS, "wings") if name in records]
        lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in done]
        write_text(OUT, "{\n" + ",\n".join(lines) + "\n}\n")  # a line for each specimen
    print(f"{len(done) - 1} of them in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
