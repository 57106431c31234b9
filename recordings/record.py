"""One recorder for everything in results/claims and results/beyond, and one command.

    make record                       # whatever is missing; stop it at any time; it's resumable
    make record ONLY="hunt masks"     # these recordings
    python -m recordings.record hunt --parts hunt

A module in recordings/claims names its page, its file (`OUT`), its grid (settings and a function
for each thing to measure) and its `GATE`: what has to be true of the recording before the page may
conclude anything from it (recordings/gate.py). `record` measures what is not in the file yet and
writes the file after each cell of the grid. A cell whose settings changed is measured again; one
that left the grid is dropped.

While a cell trains, `watch` looks over its shoulder, so every record keeps, whatever the page's own
code returns: parameters, updates, tokens read, and the whole training curve.
"""

import argparse
import importlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook

from transformer_lib.runs.device import environment
from transformer_lib.runs.files import make_folder, write_text

ROOT = Path(__file__).resolve().parents[1]
TAG = "recorded"  # of the cells whose code a recording runs
RESULTS = ROOT / "results" / "claims"
POINTS = 20  # of a training curve


# ---- what a grid is made of ---------------------------------------------------------------------


def page_code(name: str, **given) -> dict:
    """What the cells of book/<name>.ipynb tagged `recorded` define: the page's own experiment.

    given: names that they take from other cells of the page.
    """
    page = json.loads((ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf8"))
    defined: dict = dict(given)
    with torch.set_grad_enabled(torch.is_grad_enabled()):  # a page may turn it off
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


# ---- what is kept of a training run -------------------------------------------------------------


class Watched:
    """What `watch` saw: for each optimiser its losses, one an update, and its parameters."""

    def __init__(self):
        self.losses: dict[int, list[float]] = {}
        self.parameters: dict[int, int] = {}
        self.tokens: dict[int, int] = {}
        self.optimizers: list = []  # kept alive, so that no id is used twice
        self._pending: list[float] = []
        self._read = 0

    def _backward(self, loss):
        self._pending.append(float(loss.detach()))

    def _embedded(self, ids):
        self._read += ids.numel()

    def _stepped(self, optimizer):
        key = id(optimizer)
        if key not in self.losses:
            self.optimizers.append(optimizer)
            self.losses[key], self.tokens[key] = [], 0
            groups = optimizer.param_groups
            self.parameters[key] = sum(p.numel() for g in groups for p in g["params"])
        if self._pending:  # several, where gradients are accumulated
            self.losses[key].append(sum(self._pending) / len(self._pending))
        self.tokens[key] += self._read
        self._pending, self._read = [], 0

    def run(self) -> dict | None:
        """The longest training run that was seen, or None."""
        if not self.losses:
            return None
        key = max(self.losses, key=lambda k: len(self.losses[k]))
        return {
            "parameters": self.parameters[key],
            "updates": len(self.losses[key]),
            # Ids looked up in embeddings, padding included; None where a page reads vectors.
            "tokens": self.tokens[key] or None,
            "curve": curve(self.losses[key]),
        }


def curve(losses: list[float]) -> list[list]:
    """[[update, mean loss since the point before], ...] in at most POINTS points."""
    size = max(1, -(-len(losses) // POINTS))
    parts = [losses[i : i + size] for i in range(0, len(losses), size)]
    ends = itertools.accumulate(len(part) for part in parts)
    return [
        [end, float(f"{sum(part) / len(part):.4g}")] for end, part in zip(ends, parts, strict=True)
    ]


@contextmanager
def watch():
    """Note every training run inside: yields a Watched."""
    seen, backward, embedding = Watched(), torch.Tensor.backward, F.embedding

    def noted_backward(tensor, *args, **kwargs):
        if tensor.numel() == 1 and kwargs.get("inputs") is None:  # else a side loss, for a part
            seen._backward(tensor)
        return backward(tensor, *args, **kwargs)

    def noted_embedding(ids, *args, **kwargs):
        if torch.is_grad_enabled():
            seen._embedded(ids)
        return embedding(ids, *args, **kwargs)

    hook = register_optimizer_step_post_hook(lambda optimizer, *_: seen._stepped(optimizer))
    torch.Tensor.backward, F.embedding = noted_backward, noted_embedding
    try:
        yield seen
    finally:
        torch.Tensor.backward, F.embedding = backward, embedding
        hook.remove()


# ---- files --------------------------------------------------------------------------------------


def rounded(value, digits: int = 4):
    """Numbers of a result, to so many significant digits."""
    if isinstance(value, dict):
        return {key: rounded(x, digits) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(x, digits) for x in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def read(path: Path) -> list[dict]:
    """The records of a file: each with its `settings`, its `seconds` and what came out.

    A record of a training run has `run`, too: parameters, updates, tokens and the training curve.
    """
    return json.loads(path.read_text(encoding="utf8"))["records"] if path.exists() else []


def record(
    path: Path, grid: Iterable[tuple[dict, Callable[[], dict]]], parts=(),
    again=lambda found: False, name: str = "", missing: dict | None = None,
) -> None:
    """Measure each (settings, function) that `path` does not hold yet, and keep what it returns.

    parts: only cells whose settings name one of these parts are measured; by default all.
    again: whether an existing record lacks something and has to be made again.
    name: of the module, for the command that the file keeps; by default the file's own.
    missing: what the grid lacks, in the page's words (recordings/gate.py).
    """
    torch.set_num_threads(1)
    make_folder(path.parent)
    grid, known = list(grid), read(path)
    made = {key: environment(torch.device("cpu"))[key] for key in ("device", "python", "torch")}
    made |= {"threads": 1, "command": f"make record ONLY={name or path.stem}"}
    made |= {"missing": missing} if missing else {}
    records = [next((r for r in known if r["settings"] == settings), None) for settings, _ in grid]
    todo = [
        i for i, r in enumerate(records)
        if (r is None or again(r)) and (not parts or grid[i][0]["part"] in parts)
    ]
    print(f"{path.name}: {len(todo)} of {len(grid)} cells to record")
    for i in todo:
        settings, measure = grid[i]
        began = time.process_time()
        with watch() as seen:
            found = rounded(measure())
        seconds = round(time.process_time() - began, 1)
        records[i] = {"settings": settings, "seconds": seconds, **found}
        if run := seen.run():
            records[i]["run"] = run
        said = ", ".join(f"{key} {value}" for key, value in settings.items())
        print(f"{seconds:6.1f} s  {said}", flush=True)
        write(path, made, records)
    if [r for r in records if r] != known:
        write(path, made, records)  # something left the grid, or moved within it
    print(f"{sum(r['seconds'] for r in records if r):.0f} s of one core in all")


def write(path: Path, made: dict, records: list) -> None:
    """A line for each record, so that a change can be read."""
    lines = [json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records if r]
    text = f'{{"made": {json.dumps(made)},\n"records": [\n' + ",\n".join(lines) + "\n]}\n"
    write_text(path, text)


def add(path: Path, found: list[dict], name: str) -> None:
    """Write records into a file, each in the place of one with the same settings; others stay.

    name: of the module, for the command that the file keeps.
    """
    make_folder(path.parent)
    records = {json.dumps(r["settings"]): r for r in (*read(path), *found)}
    where = environment(torch.device("cpu"))
    made = {key: where[key] for key in ("device", "python", "torch")}
    if path.exists():  # keep what it says it lacks
        before = json.loads(path.read_text(encoding="utf8")).get("made", {})
        made |= {"missing": before["missing"]} if "missing" in before else {}
    write(path, made | {"threads": 1, "command": f"make record ONLY={name}"}, [*records.values()])


# ---- the command --------------------------------------------------------------------------------


def names() -> list[str]:
    """What can be recorded: the modules of recordings/claims and recordings/beyond."""
    folder = ROOT / "recordings"
    return sorted(
        f"{part}.{path.stem}"
        for part in ("claims", "beyond")
        for path in (folder / part).glob("[a-z]*.py")
    )


def module(name: str):
    """recordings.<name>, such as "claims.hunt"."""
    return importlib.import_module(f"recordings.{name}")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    every = names()
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of: {', '.join(every)}")
    parser.add_argument("--new", action="store_true", help="only what is not recorded at all")
    parser.add_argument("--parts", nargs="+", default=(), help="of one recording's grid")
    options = parser.parse_args()
    chosen = [n for n in every if not options.only or {n, n.split(".")[1]} & set(options.only)]
    known = {part for n in every for part in (n, n.split(".")[1])}
    if unknown := set(options.only) - known:
        parser.error(f"no recording is called {', '.join(sorted(unknown))}: see --help.")
    if options.parts:
        if len(chosen) != 1 or not hasattr(module(chosen[0]), "OUT"):
            parser.error("--parts are of one recording with a grid: name it.")
        parts = {settings.get("part") for settings, _ in module(chosen[0]).grid()}
        if unknown := set(options.parts) - parts:
            parser.error(f"{chosen[0]} has no part {', '.join(sorted(unknown))}; it has "
                         f"{', '.join(sorted(filter(None, parts))) or 'none'}.")
    for name in chosen:
        grid = module(name)
        if hasattr(grid, "OUT"):
            gate = getattr(grid, "GATE", None)
            again = gate.lacks if gate and not options.new else lambda _: False
            missing = gate.missing if gate else None
            record(grid.OUT, grid.grid(), options.parts, again, name.split(".")[1], missing)
        else:
            grid.record_all()  # a module of several files


if __name__ == "__main__":
    main()
