"""An autograder for Gradescope: `make gradescope LAB=lab1` writes gradescope/lab1_attention.zip.

The zip holds what Gradescope's container runs: setup.sh when the image is built, run_autograder for
each submission, and this grader with the library and one lab. It marks as `make grade` does, and
writes /autograder/results/results.json (gradescope-autograders.readthedocs.io/en/latest/specs).

    python -m labs.grader.gradescope zip lab1 --out gradescope [--seed word]
    python -m labs.grader.gradescope run /autograder
"""

import argparse
import io
import json
import os
import sys
import time
import zipfile
from pathlib import Path

import nbformat

from . import contain, grade
from .masters import MASTERS, ROOT, read
from .variants import variant

SETUP = """#!/usr/bin/env bash
set -e
cd /autograder/source
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv bubblewrap
python3 -m venv /autograder/venv
/autograder/venv/bin/python -m pip install --quiet -r labs/requirements.txt
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
export PYTHONPATH=/autograder/source OMP_NUM_THREADS=1
exec "${GRADER_PYTHON:-/autograder/venv/bin/python}" -m labs.grader.gradescope run /autograder
"""
LIMITS = {"cell": 30, "notebook": 480, "memory": 3, "grace": 10, "quick": True}


def sources() -> list[Path]:
    """What the zip holds of the repository, besides the lab."""
    folders = [ROOT / "labs" / "grader", ROOT / "transformer_lib", ROOT / "exercises"]
    found = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return [ROOT / "labs" / "requirements.txt", *(
        path for path in found if "__pycache__" not in path.parts and path.suffix != ".so")]


def make(lab: str, out: Path, seed: str = "") -> Path:
    """The zip of one lab, or of its variant. Raises SystemExit if there is no such lab."""
    paths = [path for path in MASTERS.glob("lab*.ipynb")
             if path.stem == lab or path.stem.startswith(f"{lab}_")]
    if len(paths) != 1:
        sys.exit(f"there is no lab {lab!r}")
    master = read(paths[0])
    if seed:
        master = variant(master, paths[0].stem, seed)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN)):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            file.writestr(entry, text)
        for path in sources():
            file.write(path, path.relative_to(ROOT))
        file.writestr(f"labs/{paths[0].name}", nbformat.writes(master))
    out.mkdir(parents=True, exist_ok=True)
    made = out / f"{paths[0].stem}.zip"
    made.write_bytes(data.getvalue())
    return made


def run(root: Path) -> dict:
    """Grade what is in root/submission, with the one lab that is here; write the results."""
    start = time.monotonic()
    for private in (root / "source" / "labs", root / "results"):
        if private.is_dir():
            os.chmod(private, 0o700)  # a submission is another user's, where nothing else holds it
    labs = grade.load_labs(MASTERS)
    walls = contain.methods() or ["user"] * (os.geteuid() == 0)
    if not walls:
        raise RuntimeError("neither bwrap nor unshare works here, and this isn't root")
    submissions, rows = grade.collect(root / "submission", labs)
    if submissions:
        name = submissions[0]["lab"]
        done = grade.grade(submissions[0], labs[name], LIMITS | {"walls": walls[0]})
        results = results_of(done, labs[name])
    else:
        notes = "; ".join(f"{row['file']}: {row['note']}" for row in rows) or "there is no file"
        results = {"score": 0, "output": f"Nothing could be graded: {notes}", "tests": []}
    results["execution_time"] = round(time.monotonic() - start)
    (root / "results").mkdir(exist_ok=True)
    (root / "results" / "results.json").write_text(json.dumps(results, indent=1), "utf8")
    return results


def results_of(done: dict, lab: dict) -> dict:
    """Results as Gradescope wants them. Hidden tests show when the grades are published."""
    if done["status"] != "graded":
        raise RuntimeError(done["note"])  # Gradescope then says that the autograder failed
    tests = []
    for test, task in lab["task_of"].items():
        cell = done["graded"][test]
        if cell["type"] == "markdown":
            continue  # marked by hand, as a question of its own
        error = cell.get("error", "")
        kind = ("check" if not cell["hidden"] else "hidden edge cases" if test.endswith("_edges")
                else "hidden tests")
        tests.append({
            "name": f"{task}: {kind}",
            "score": cell["points"], "max_score": cell["of"], "output": error,
            "status": "passed" if cell["points"] == cell["of"] else "failed",
            "visibility": "after_published" if cell["hidden"] else "visible"})
    for_teacher = done["result"].get("to_read", [])
    if for_teacher:
        tests.append({"name": "For the teacher", "score": 0, "max_score": 0,
                      "output": "\n".join(for_teacher), "visibility": "hidden"})
    output = "\n".join([
        *done["result"]["notes"],
        f"Up to {done['written_of']:g} more points are given by hand for the written question."])
    return {"output": output, "tests": tests, "stdout_visibility": "hidden"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    zipped = commands.add_parser("zip", help="make the zip of a lab")
    zipped.add_argument("lab")
    zipped.add_argument("--out", type=Path, default=Path("gradescope"))
    zipped.add_argument("--seed", default="", help="of a variant that everybody had")
    ran = commands.add_parser("run", help="grade a submission, inside the container")
    ran.add_argument("root", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "zip":
        made = make(options.lab, options.out, options.seed)
        print(f"{made}: {made.stat().st_size / 2**20:.1f} MB. Upload it as the autograder.")
    else:
        run(options.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
