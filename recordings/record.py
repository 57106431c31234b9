"""What the modules beside this one share: the code of a page, and a recording that can go on.

A module names a page, and its grid: settings and a function for each thing to measure. `record`
measures what is not in the file yet, and writes the file after each cell. A cell whose settings
changed is measured again; one that left the grid is dropped.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch

from transformer_lib.runs.device import environment
from transformer_lib.runs.files import make_folder, write_text

ROOT = Path(__file__).resolve().parents[1]



TAG = "recorded"  # of the cells whose code a recording runs
RESULTS = ROOT / "results" / "claims"


def page_code(name: str, **given) -> dict:
    """What the cells of book/<name>.ipynb tagged `recorded` define: the page's own experiment.

    given: names that they take from other cells of the page.
    """
    page = json.loads((ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf8"))
    defined: dict = dict(given)
    for cell in page["cells"]:
        if TAG in cell["metadata"].get("tags", []):
            exec(compile("".join(cell["source"]), f"{name}.ipynb", "exec"), defined)
    return defined


def cell(part: str, measure: Callable[..., dict], **settings) -> tuple[dict, Callable[[], dict]]:
    """A cell of a grid: its settings, and what measures it."""
    return {"part": part} | settings, partial(measure, **settings)


def seed_by_seed(
    part: str, measure: Callable[..., dict], seeds: Iterable[int], **axes: Iterable
) -> Iterator[tuple[dict, Callable[[], dict]]]:
    """A cell for each combination of settings. axes: the values of each setting but the seed.

    Seed 0 of everything comes first, so that a recording that is stopped early is fair.
    """
    for seed, *values in itertools.product(seeds, *axes.values()):
        yield cell(part, measure, **dict(zip(axes, values, strict=True)), seed=seed)


def rounded(value, digits: int = 4):
    """Numbers of a result, to so many significant digits."""
    if isinstance(value, dict):
        return {key: rounded(x, digits) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(x, digits) for x in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def read(path: Path) -> list[dict]:
    """The records of a file: each with its `settings`, its `seconds` and what came out."""
    return json.loads(path.read_text(encoding="utf8"))["records"] if path.exists() else []


def record(path: Path, grid: Iterable[tuple[dict, Callable[[], dict]]], parts=()) -> None:
    """Measure each (settings, function) that `path` does not hold yet, and keep what it returns.

    parts: only cells whose settings name one of these parts are measured; by default all.
    """
    torch.set_num_threads(1)
    make_folder(path.parent)
    grid, known = list(grid), read(path)
    made = {key: environment(torch.device("cpu"))[key] for key in ("device", "python", "torch")}
    records = [next((r for r in known if r["settings"] == settings), None) for settings, _ in grid]
    missing = records.count(None)
    print(f"{path.name}: {len(grid) - missing} of {len(grid)} cells are recorded")
    for i, (settings, measure) in enumerate(grid):
        if records[i] is None and (not parts or settings["part"] in parts):
            began = time.process_time()
            found = rounded(measure())
            seconds = round(time.process_time() - began, 1)
            records[i] = {"settings": settings, "seconds": seconds, **found}
            said = ", ".join(f"{key} {value}" for key, value in settings.items())
            print(f"{seconds:6.1f} s  {said}", flush=True)
            write(path, made, records)
    if [r for r in records if r] != known:
        write(path, made, records)  # something left the grid, or changed its place
    print(f"{sum(r['seconds'] for r in records if r):.0f} s of one core in all")


def write(path: Path, made: dict, records: list) -> None:
    """A line for each record, so that a change can be read."""
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records if r]
    text = f'{{"made": {json.dumps(made)},\n"records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_text(path, text)
