"""Grade a folder of notebooks that students handed in: `make grade SUBMISSIONS=folder`.

Each notebook is run by grade_one.py in a process and an empty folder of its own, with limits of
time, memory and output. No submission can stop the others. The folder OUT gets

    grades.csv       one row for each student and lab, and one for each file not graded, with notes
    tasks.csv        one row for each test and written question
    feedback/        one page for each student and lab, which asks no other host for anything

A file belongs to the student after whom its folder is named, or else to the one in its own name,
as Moodle and Canvas write it. The lab is found from what the notebook holds. Of two hand-ins by
one student for one lab, the newest file counts. labs/README.md says more.
"""

import argparse
import contextlib
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
import nbformat
import psutil
from nbgrader.utils import is_grade, is_locked, is_solution
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from labs import MASTERS, first_line, read, student_version, tasks

TOOLS = Path(__file__).parent
BYTES = 50 * 2**20  # a larger file is no lab
GRADES = ["student", "lab", "file", "automatic", "automatic_of", "written", "written_of",
          "status", "note"]  # fmt: skip
TASKS = ["student", "lab", "task", "test", "points", "of"]


# ------------------------------------------------------------------------------------------- labs


def load_labs(folder: Path) -> dict[str, dict]:
    """For each lab its cells as they are graded, its title, its tasks and what it is known by."""
    labs = {}
    for path in sorted(folder.glob("lab*.ipynb")):
        master = read(path)
        cells = student_version(master)
        for cell, original in zip(cells.cells, master.cells, strict=True):
            cell.metadata["shown"] = cell.source.strip()
            if is_locked(original):
                cell.source = original.source  # with the hidden tests
        labs[path.stem] = {
            "cells": cells, "title": first_line(cells.cells[0]).lstrip("# "), "marks": marks(cells),
            "task_of": {cell.metadata.nbgrader.grade_id: title
                        for title, graded in tasks(master).items() for cell in graded},
        }  # fmt: skip
    return labs


def marks(notebook) -> set[str]:
    """What a lab is known by: ids of graded cells, its title, the lines that name its tasks."""
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}
    lines = {first_line(cell) for cell in notebook.cells}
    return {name for name in ids if name} | {
        line for line in lines if re.match("# (Lab|Task) ", line)}


def which_lab(notebook, labs: dict) -> str | None:
    """The lab that shares most marks with the notebook; marks of several labs do not count."""
    known = [mark for lab in labs.values() for mark in lab["marks"]]
    own = {mark for mark in marks(notebook) if known.count(mark) == 1}
    shared = {name: len(own & lab["marks"]) for name, lab in labs.items()}
    best = max(shared, key=shared.get)
    return best if shared[best] else None


# ------------------------------------------------------------------------------------ submissions


def find_files(folder: Path) -> list[Path]:
    """All files handed in, without what systems and Jupyter leave behind."""
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and not any(
            part.startswith((".", "__MACOSX")) for part in path.relative_to(folder).parts)
    )  # fmt: skip


def student_of(path: Path, folder: Path, labs: dict) -> tuple[str, str]:
    """The student's name, and the same with the numbers that Moodle or Canvas added.

    Found in the name of the folder, or of the file, whichever says more than the lab's name.
    """
    for name in [*path.relative_to(folder).parts[:-1], path.stem]:
        copied = r"(?: ?\(\d+\)| - Copy)"  # a second download
        for lab in [*labs, *(lab.partition("_")[0] for lab in labs)]:
            lab = rf"(?<![^\W_]){lab}(?![^\W_])(?:-\d+)?{copied}*"
            if re.search(lab, name, re.IGNORECASE):
                name = re.sub(rf"{lab}|{copied}+$", "", name, flags=re.IGNORECASE)
        name = re.sub(r"assignsubmission_file|_LATE(?=_)", "", name)
        full = re.sub(r"[\s_-]*_[\s_-]*", "_", name).strip(" _-")
        if full:
            return re.sub(r"(_\d+)+$", "", full), full
    return path.stem, path.stem


def load(path: Path) -> nbformat.NotebookNode:
    """What counts in a notebook: types, sources and ids. Nothing else in it has to be right."""
    if path.suffix != ".ipynb":
        raise ValueError("not a notebook")
    if path.stat().st_size > BYTES:
        raise ValueError(f"larger than {BYTES >> 20} MB")
    cells = []
    try:
        for old in json.loads(path.read_text(encoding="utf-8-sig"))["cells"]:
            cell = {"cell_type": str(old["cell_type"]), "id": str(old.get("id", "")),
                    "source": "".join(old.get("source", "")), "metadata": {}}
            with contextlib.suppress(KeyError, TypeError):
                name = str(old["metadata"]["nbgrader"]["grade_id"])
                cell["metadata"] = {"nbgrader": {"grade_id": name}}
            cells.append(cell)
    except Exception as error:  # whatever is wrong with it, the others are graded
        raise ValueError(f"cannot be read as a notebook ({type(error).__name__})") from error
    return nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def collect(folder: Path, labs: dict) -> tuple[list[dict], list[dict]]:
    """The submissions to grade, and rows for the files that are not."""
    newest, rows, names = {}, [], {}
    for path in find_files(folder):
        student, full = student_of(path, folder, labs)
        row = {"student": student, "file": str(path.relative_to(folder)), "status": "not graded"}
        rows.append(row)
        try:
            notebook = load(path)
            lab = which_lab(notebook, labs)
            if lab is None:
                raise ValueError("this is none of the labs")
        except ValueError as problem:
            row["note"] = str(problem)
            continue
        names.setdefault(student, set()).add(full)
        row |= {"lab": lab, "notebook": notebook, "full": full}
        row["time"] = (path.stat().st_mtime, len(path.name), path.name)
        other = newest.get((full, lab))
        if other is None or row["time"] > other["time"]:
            newest[full, lab] = row
    for row in rows:
        if "lab" in row:
            taken = newest[row["full"], row["lab"]]
            if row is not taken:
                row["note"] = f"handed in more than once, the newest file counts: {taken['file']}"
    for row in newest.values():  # two students of one name keep their numbers
        same = [other for other in newest.values() if other["lab"] == row["lab"]
                and other["student"] == row["student"]]
        row["same_name"] = len(same) > 1
    for row in newest.values():
        if row["same_name"]:
            row["student"] = row["full"]
    return list(newest.values()), [row for row in rows if "note" in row]


# ---------------------------------------------------------------------------------------- grading


def run_one(submission: dict, lab: dict, limits: dict) -> dict:
    """The result of grade_one.py, or {"failed": why}."""
    job = {"submission": submission["notebook"], "lab": lab["cells"], "limits": limits}
    with tempfile.TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as home:
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                       "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
                       "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, TOOLS / "grade_one.py"], cwd=home, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            answer, _ = process.communicate(json.dumps(job), limits["notebook"] * 1.5 + 60)
            return json.loads(answer)
        except subprocess.TimeoutExpired:
            return {"failed": "it ran longer than the time of a notebook and was stopped"}
        except json.JSONDecodeError:
            return {"failed": "the process that graded it was ended"}
        finally:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
                process.wait()


def grade(submission: dict, lab: dict, limits: dict) -> dict:
    """Adds points, status and note to the submission; keeps the result for the feedback page."""
    result = run_one(submission, lab, limits)
    if "failed" in result:  # once more: the computer may have been short of time or memory
        result = run_one(submission, lab, limits)
    if "failed" in result:
        reason = result["failed"].partition("\n")[0][:200]
        return submission | {"note": f"could not be graded, look at it yourself: {reason}"}
    graded = {cell["id"]: cell for cell in result["cells"] if "of" in cell}
    automatic = [cell for cell in graded.values() if cell["type"] == "code"]
    written = [cell for cell in graded.values() if cell["type"] == "markdown"]
    if all(cell["points"] == 0 for cell in written):
        result["notes"].append("no written answer")
    return submission | {
        "result": result, "graded": graded, "status": "graded", "note": "; ".join(result["notes"]),
        "automatic": sum(cell["points"] for cell in automatic),
        "automatic_of": sum(cell["of"] for cell in automatic),
        "written_of": sum(cell["of"] for cell in written),
    }  # fmt: skip


# ----------------------------------------------------------------------------------------- output


def task_rows(submission: dict, lab: dict) -> list[dict]:
    """One row for each graded cell, in the lab's order. Points of written answers stay empty."""
    rows = []
    for test, task in lab["task_of"].items():
        cell = submission["graded"][test]
        points = "" if cell["type"] == "markdown" else cell["points"]
        rows.append({"student": submission["student"], "lab": submission["lab"], "task": task,
                     "test": test, "points": points, "of": cell["of"]})
    return rows


def write_csv(path: Path, names: list[str], rows: list[dict]):
    """Readable by a spreadsheet, which must not take a student's name for a formula."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            values = [row.get(name, "") for name in names]
            texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
            writer.writerow(f"'{text}" if text.startswith(tuple("=+-@")) else text
                            for text in texts)


def feedback_page(submission: dict, lab: dict) -> str:
    """A page of the student's points, the failed tests and the notebook as it was run."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "python": lambda source: highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)),
        "points": lambda points: f"{points:g}",
    }
    template = environment.from_string((TOOLS / "feedback.html").read_text(encoding="utf8"))
    return template.render(submission=submission, lab=lab, rows=task_rows(submission, lab),
                           hidden=[cell.metadata.nbgrader.grade_id for cell in lab["cells"].cells
                                   if is_grade(cell) and not is_solution(cell)
                                   and "HIDDEN TESTS" in cell.source])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("submissions", type=Path, help="the folder of notebooks")
    parser.add_argument("--out", type=Path, default=Path("graded"), help="default: graded")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at the same time (1)")
    parser.add_argument("--cell", type=float, default=60, help="seconds for a cell (60)")
    parser.add_argument("--notebook", type=float, default=600, help="seconds for a notebook (600)")
    parser.add_argument("--memory", type=float, default=4, help="GB for a process (4)")
    parser.add_argument("--grace", type=float, default=10,
                        help="seconds in which a cell must obey an interrupt (10)")
    parser.add_argument("--labs", type=Path, default=MASTERS, help="the folder of the masters")
    options = parser.parse_args(arguments)
    limits = {name: getattr(options, name) for name in ("cell", "notebook", "memory", "grace")}
    if not options.submissions.is_dir():
        parser.error(f"there is no folder {options.submissions}")
    labs = load_labs(options.labs)
    if not labs:
        parser.error(f"there is no lab in {options.labs}")
    if not find_files(options.submissions):
        parser.error(f"the folder {options.submissions} is empty")

    start = time.monotonic()
    submissions, rows = collect(options.submissions, labs)
    pages = options.out / "feedback"
    pages.mkdir(parents=True, exist_ok=True)
    test_rows = []
    for row in rows:
        print(f"{row['file']}: not graded: {row['note']}")
    with ThreadPoolExecutor(options.jobs) as pool:
        for done in pool.map(lambda one: grade(one, labs[one["lab"]], limits), submissions):
            rows.append({name: done[name] for name in GRADES if name in done})
            lab = labs[done["lab"]]
            points = "not graded"
            if done["status"] == "graded":
                points = f"{done['automatic']:g} of {done['automatic_of']:g}"
                test_rows += task_rows(done, lab)
                name = re.sub(r"[^\w.-]+", "-", f"{done['student']}_{done['lab']}")
                (pages / f"{name}.html").write_text(feedback_page(done, lab), encoding="utf8")
            print(f"{done['student']}, {done['lab']}: {points}"
                  + (f" ({done['note']})" if done["note"] else ""), flush=True)
    rows.sort(key=lambda row: (row["student"].lower(), row.get("lab", ""), row["file"]))
    write_csv(options.out / "grades.csv", GRADES, rows)
    write_csv(options.out / "tasks.csv", TASKS, test_rows)
    count = sum(row["status"] == "graded" for row in rows)
    print(f"{count} of {len(rows)} files graded in {time.monotonic() - start:.0f} s. "
          f"Marks and feedback: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
