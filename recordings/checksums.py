"""List what the files in results/ hold, after a recording: `python -m recordings.checksums`.

Each run there has a list of its own, and results/checksums.json lists every other file. Files are
listed as they are, so look at `git diff results/` first. `--check` names those that differ.
transformer_lib/runs/shipped.json says the same about the runs, for installations without results/.
"""

import sys
from pathlib import Path

from tools.setup_cell import repository_url
from transformer_lib.runs import checksums, download
from transformer_lib.runs.files import write_json

ROOT = Path(__file__).resolve().parents[1]


RESULTS = ROOT / "results"


def lists(results: Path = RESULTS) -> dict[Path, list[str]]:
    """Folder -> the names of the files, relative to it, that its checksums.json should list."""
    runs = [path.parent for path in sorted(results.glob("*/config.json"))]
    found = {run: [path.name for path in sorted(run.iterdir())] for run in runs}
    loose = (path for path in sorted(results.rglob("*"))
             if path.is_file() and not set(runs) & set(path.parents))
    found[results] = [path.relative_to(results).as_posix() for path in loose]
    return {folder: [name for name in names if name != checksums.NAME and name[0] != "."]
            for folder, names in found.items()}


def problems(results: Path = RESULTS) -> list[str]:
    """The files that are not listed, or that are not what the list says."""
    found = []
    for folder, names in lists(results).items():
        listed = checksums.read(folder) or {}
        found += [f"{folder / name} is not listed" for name in names if name not in listed]
        found += [f"{folder / name} is listed, but missing" for name in listed
                  if name not in names]
        found += [f"{folder / name} differs" for name in checksums.differing(folder)]
    return found


def shipped() -> dict:
    """What shipped.json should hold."""
    runs = {folder.name: checksums.read(folder) for folder in lists() if folder != RESULTS}
    files = {name: {file: known[file] for file in download.FILES} for name, known in runs.items()
             if set(download.FILES) <= known.keys()}
    return {"repository": repository_url(), "branch": "main", "runs": files}


if __name__ == "__main__":
    if "--check" in sys.argv:
        found = problems() + ["shipped.json differs"] * (shipped() != download.shipped())
        print("\n".join(found) or "all files are as listed")
        sys.exit(bool(found))
    for folder, names in lists().items():
        checksums.write(folder, names)
    write_json(download.SHIPPED, shipped())
