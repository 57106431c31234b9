"""Record the track "Build your own Transformer" as a reader runs it: python -m recordings.own_run.

The parts of the solution are handed in, then the cells of the page run at the size `full`: training
on Multi30k with the short recipe, the run card, the export. About 15 minutes on two cores. Leaves
the card and the curve in results/own-run.json, and the run with its exported file in FOLDER. An
interrupted run goes on.
"""

import argparse
import dataclasses
import json
import linecache
import os
import time
from pathlib import Path

from tools.arguments import new_file, new_folder

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: ROOT / "book" / name for name in ("solutions/your-transformer.ipynb",
                                                 "your-transformer.ipynb")}


def cells(page: str):
    """(id, text) of the code cells after the setup cell."""
    for cell in json.loads(PAGES[page].read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "setup" not in cell["metadata"].get("tags", []):
            yield cell["id"], "".join(cell["source"])


def run(name: str, text: str, space: dict) -> None:
    """A cell, whose source can be looked up as in a notebook."""
    file = f"cells/{name}.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), space)


def main(folder: Path, results: Path, size: str) -> None:
    os.environ["BOOK_SCALE"] = size
    from exercises import own

    start = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    solution, page = {"__name__": "__main__"}, {"__name__": "__main__"}
    for name, text in cells("solutions/your-transformer.ipynb"):
        run(name, text, solution)
        own.keep_in(folder / "my-transformer")
    os.chdir(folder)
    for name, text in cells("your-transformer.ipynb"):
        if "own.hand_in(" not in text:  # those are still to be written there
            run(name, text, page)
        if name == "own-data" and size == "full" and page["pairs"].source != "multi30k":
            raise SystemExit("Multi30k is not here: set MULTI30K_DIR, or install datasets.")
    card, run_dir = page["card"], page["run_dir"]
    print(card)
    recorded = {
        "about": "The parts of the page of solutions, trained with the short recipe of the page "
        "Build your own Transformer: python -m recordings.own_run",
        "minutes": (time.perf_counter() - start) / 60,
        "environment": json.loads((run_dir / "environment.json").read_text(encoding="utf-8")),
        "config": json.loads((run_dir / "config.json").read_text(encoding="utf-8")),
        "card": dataclasses.asdict(card),
    }
    results.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(recorded, indent=1, ensure_ascii=False) + "\n"
    results.write_text(text, encoding="utf-8")
    print(f"{recorded['minutes']:.1f} minutes in all; wrote {results}. Next: recordings.checksums")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=new_folder, default=ROOT / "runs" / "own")
    parser.add_argument("--results", type=new_file, default=ROOT / "results" / "own-run.json")
    parser.add_argument("--size", default="full", choices=("smoke", "cpu", "full"))
    options = parser.parse_args()
    main(options.folder.resolve(), options.results.resolve(), options.size)
