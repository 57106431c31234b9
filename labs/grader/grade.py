"""Grade a folder of notebooks that students handed in: `make grade SUBMISSIONS=folder`.

Each notebook is run by one.py in a process of its own, its kernel behind walls (contain.py), with
limits of time, memory and output. No submission can stop the others. The folder OUT gets

    grades.csv       one row for each student and lab, and one for each file not graded, with notes
    tasks.csv        one row for each test and written question
    marks.csv        points and comments for the written answers: the one file to edit by hand
    marking/         a page for each written question, all answers in a row, without names
    feedback/        one page for each student and lab, which asks no other host for anything
    class.html       which task, which mistake, how many
    upload/          feedback under the original file names, and tables for Canvas and Moodle

More folders may be graded into the same OUT, and `make marks` writes all pages again with the
points entered since: nothing graded or entered before is lost (records.py).

A file belongs to the student after whom its folder is named, or else to the one in its own name,
as Moodle and Canvas write it. The lab is found from what the notebook holds. Of two hand-ins by
one student for one lab, the newer file counts. labs/README.md says more.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
from nbgrader.utils import is_grade, is_locked, is_solution

from . import contain, pages, sheets
from .masters import MASTERS, ROOT, first_line, read, student_version, tasks
from .records import Records, Unreadable, key
from .variants import personal, tag_of, variant

BYTES = 50 * 2**20  # a larger file isn't a lab
LATE = re.compile(r"_LATE(?=_)")  # what Canvas writes into the name of a late file


# ------------------------------------------------------------------------------------------- labs


def load_labs(folder: Path, seed: str = "") -> dict[str, dict]:
    """For each lab its cells as they are graded, its title, its tasks and what it is known by.

    seed: of a variant of the labs (variants.py); without it the labs are the masters.
    """
    labs = {}
    for path in sorted(folder.glob("lab*.ipynb")):
        master = variant(read(path), path.stem, seed) if seed else read(path)
        cells = student_version(master)
        for cell, original in zip(cells.cells, master.cells, strict=True):
            cell.metadata["shown"] = cell.source.strip()
            if is_locked(original):
                cell.source = original.source  # with the hidden tests
        labs[path.stem] = {
            "cells": cells, "title": first_line(cells.cells[0]).lstrip("# "), "marks": marks(cells),
            "questions": questions(master), "tag": tag_of(master),
            "task_of": {cell.metadata.nbgrader.grade_id: title
                        for title, graded in tasks(master).items() for cell in graded},
        }
    return labs


def questions(master) -> dict[str, dict]:
    """For each written question its text and what the master says about marking it."""
    found = {}
    for before, cell in zip(master.cells, master.cells[1:], strict=False):
        if is_grade(cell) and is_solution(cell):
            text = re.sub(r"\A.*?(?=^## )", "", before.source, flags=re.DOTALL | re.MULTILINE)
            rubric = cell.source.partition("**Rubric**")[2].partition("\n**")[0]
            found[cell.metadata.nbgrader.grade_id] = {
                "text": text, "rubric": cell.source,
                "criteria": re.findall(r"^\d+\. (.+)", rubric, re.MULTILINE)}
    return found


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
    """All files handed in, without what systems and Jupyter leave behind.

    Symbolic links are named and not followed: they may lead to the work of others.
    """
    return sorted(
        path for path in folder.rglob("*") if (path.is_file() or path.is_symlink()) and not any(
            part.startswith((".", "__MACOSX")) for part in path.relative_to(folder).parts)
    )


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
    if path.is_symlink():
        raise ValueError("a symbolic link, which is not followed")
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


def collect(folder: Path, labs: dict, only: str | None = None) -> tuple[list[dict], list[dict]]:
    """The submissions to grade, and rows for the files that are not.

    only: the name of the lab that was asked for; notebooks of another lab are not graded.
    """
    newest, rows = {}, []
    for path in find_files(folder):
        student, full = student_of(path, folder, labs)
        row = {"student": student, "file": str(path.relative_to(folder)), "status": "not graded",
               "folder": folder.resolve().name, "late": bool(LATE.search(str(path))),
               "id": (re.findall(r"_(\d+)", full) or [""])[0]}
        rows.append(row)
        try:
            notebook = load(path)
            lab = which_lab(notebook, labs)
            if lab is None:
                raise ValueError("this isn't one of the labs")
            if only and lab != only:
                raise ValueError(f"this is {lab}, but {only} was asked for")
        except ValueError as problem:
            row["note"] = str(problem)
            continue
        row |= {"lab": lab, "notebook": notebook}
        row["bytes"] = hashlib.sha256(path.read_bytes()).hexdigest()
        row["time"] = [path.stat().st_mtime, len(path.name), path.name]
        other = newest.get(key(row))
        if other is None or row["time"] > other["time"]:
            newest[key(row)] = row
    for row in rows:
        if "lab" in row:
            taken = newest[key(row)]
            if row is not taken:
                row["note"] = f"handed in more than once; the newest file counts: {taken['file']}"
    return list(newest.values()), [row for row in rows if "note" in row]


# ---------------------------------------------------------------------------------------- grading


def run_one(submission: dict, lab: dict, limits: dict) -> dict:
    """The result of one.py, or {"failed": why}."""
    job = {"submission": submission["notebook"], "lab": lab["cells"], "limits": limits,
           "page": not limits.get("quick")}
    with tempfile.TemporaryDirectory(prefix="lab", ignore_cleanup_errors=True) as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8",
                       "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, "-m", "labs.grader.one"], cwd=home, env=environment, encoding="utf8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )
        try:
            answer, _ = process.communicate(json.dumps(job), limits["notebook"] * 3 + 120)
            return json.loads(answer)
        except subprocess.TimeoutExpired:
            return {"failed": "it ran longer than a notebook may and was stopped"}
        except json.JSONDecodeError:
            return {"failed": "the process that graded it was killed"}
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
        return submission | {"note": f"could not be graded; a person must look at it: {reason}"}
    graded = {cell["id"]: cell for cell in result["cells"] if "of" in cell}
    automatic = [cell for cell in graded.values() if cell["type"] == "code"]
    written = [cell for cell in graded.values() if cell["type"] == "markdown"]
    handed = tag_of(submission["notebook"])
    if handed != lab["tag"]:
        result["notes"].append(f"variant of the lab handed in: {handed or 'none'}, "
                               f"given out: {lab['tag'] or 'none'}")
    if all(cell["points"] == 0 for cell in written):
        result["notes"].append("no written answer")
    return submission | {
        "result": result, "graded": graded, "status": "graded",
        "note": "; ".join([*["late"] * submission["late"], *result["notes"],
                           *result.get("to_read", [])]),
        "automatic": sum(cell["points"] for cell in automatic),
        "automatic_of": sum(cell["of"] for cell in automatic),
        "written_of": sum(cell["of"] for cell in written),
    }


# ------------------------------------------------------------------------------------------ command


def walls(parser, uncontained: bool) -> str | None:
    """How kernels are contained; ends the program if nothing works and nobody allowed that."""
    if uncontained:
        print("WARNING: --uncontained: submissions run with all your rights. They can read and "
              "delete your files, use the network and find the answers.", file=sys.stderr)
        return None
    if not contain.methods():
        parser.error(
            "submissions cannot be contained here: neither bwrap nor unshare works. Install "
            "bubblewrap (apt-get install bubblewrap), or grade on a Linux machine that has it. "
            "Ubuntu 24.04 also needs: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0. "
            "To run students' code with all your rights nevertheless: --uncontained "
            "(make grade ... ARGS=--uncontained)")
    return contain.methods()[0]


def positive(text: str) -> float:
    """A number above 0, for a limit."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 10**6:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r}; expected a number above 0 and below a million")


def count(text: str) -> int:
    """A whole number, at least 1."""
    if re.fullmatch("[0-9]{1,4}", text) and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} isn't a whole number from 1 to 9,999")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="labs.grader", description=__doc__.split("\n")[0])
    parser.add_argument("submissions", type=Path, nargs="?",
                        help="the folder of notebooks; without it only the pages are made again, "
                        "with the marks entered since")
    parser.add_argument("--out", type=Path, default=Path("graded"), help="default: graded")
    parser.add_argument("--marks", type=Path, nargs="*", default=[],
                        help="files saved by a marking page (those in OUT are found)")
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1,
                        help="notebooks at the same time (as many as there are processors)")
    parser.add_argument("--cell", type=positive, default=30, help="seconds for a cell (30)")
    parser.add_argument("--notebook", type=positive, default=600,
                        help="seconds for a notebook (600)")
    parser.add_argument("--memory", type=positive, default=4, help="GB for a process (4)")
    parser.add_argument("--grace", type=positive, default=10,
                        help="seconds within which a cell must obey an interrupt (10)")
    parser.add_argument("--quick", action="store_true",
                        help="run each notebook once, only for the marks: half the time, and no "
                        "output on the feedback pages")
    parser.add_argument("--uncontained", action="store_true",
                        help="run submissions with all your rights, if nothing can contain them")
    parser.add_argument("--lab", help="grade only this lab, for example lab2")
    parser.add_argument("--seed", default="", help="the word that the variants were made with")
    parser.add_argument("--each", action="store_true",
                        help="with --seed: everybody had their own variant")
    parser.add_argument("--sheet", type=Path, nargs="*", default=[],
                        help="Moodle's grading worksheet or Canvas's gradebook, to be filled in")
    parser.add_argument("--late-loss", type=float, default=0,
                        help="percent of the points that a late hand-in loses (0)")
    parser.add_argument("--labs", type=Path, default=MASTERS, help="the folder of the masters")
    options = parser.parse_args(arguments)
    limits = {name: getattr(options, name)
              for name in ("cell", "notebook", "memory", "grace", "quick")}
    labs = load_labs(options.labs, "" if options.each else options.seed)
    if options.each and not options.seed:
        parser.error("--each needs the --seed with which the variants were made")
    if not labs:
        parser.error(f"there is no lab in {options.labs}")
    only = None
    if options.lab:
        found = [name for name in labs if name == options.lab or name.startswith(f"{options.lab}_")]
        if len(found) != 1:
            parser.error(f"there is no lab {options.lab!r}; there are {', '.join(labs)}")
        only = found[0]
    if not 0 <= options.late_loss <= 100:
        parser.error(f"--late-loss is {options.late_loss:g}; expected a percentage from 0 to 100")
    for path in [*options.marks, *options.sheet]:
        if not path.is_file():
            parser.error(f"there is no file {path}")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"{options.out} is a file; expected a folder for marks and feedback")
    if options.submissions is None:
        if not (options.out / "results").is_dir():
            parser.error(f"nothing has been graded into {options.out}; name a folder of notebooks")
    elif not options.submissions.is_dir():
        parser.error(f"there is no folder {options.submissions}")
    elif not find_files(options.submissions):
        parser.error(f"the folder {options.submissions} is empty")
    else:
        limits["walls"] = walls(parser, options.uncontained)

    records = Records(options.out)
    try:
        records.read_marks(options.marks)  # before anything is written
        if options.submissions is not None:
            own = functools.partial(own_labs, options.labs, options.seed) if options.each else None
            grade_folder(options.submissions, records, labs, limits, options.jobs, only, own)
            records.read_marks()
    except Unreadable as problem:
        print(f"{problem}. Nothing was changed; correct the file and try again.", file=sys.stderr)
        return 1
    graded = pages.write_all(records, labs, options.late_loss)
    try:
        for path in options.sheet:
            sheets.fill(path, options.out / "upload" / path.name, graded, labs, only)
    except sheets.NotASheet as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def conditions(submission: dict, lab: dict, limits: dict) -> str:
    """A name for everything that a result depends on: the file, the lab, the limits, the grader."""
    parts = [submission["bytes"], json.dumps(lab["cells"], sort_keys=True),
             json.dumps(limits, sort_keys=True)]
    parts += [path.read_text(encoding="utf8")
              for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def own_labs(folder: Path, seed: str, submission: dict) -> dict[str, dict]:
    """The labs that this student had: known by the number in the file's name, else by name."""
    return load_labs(folder, personal(seed, submission["id"] or submission["student"]))


def grade_folder(folder: Path, records: Records, labs: dict, limits: dict, jobs: int,
                 only: str | None = None, own=None):
    """Grade all notebooks of a folder and keep what came out, each as soon as it is there.

    A notebook whose result already exists, under the same conditions, is not run again.
    own: a function of a submission that gives the labs of its student, where they differ.
    """
    start = time.monotonic()
    submissions, rows = collect(folder, labs, only)
    same = 0
    for submission in list(submissions):
        old = records.graded.get(key(submission))
        if old and old["time"] > submission["time"]:
            submissions.remove(submission)
            rows.append(submission | {"note": "handed in more than once; the newest file counts: "
                                              f"{old['folder']}/{old['file']}"})
        submission["graded by"] = (own(submission) if own else labs)[submission["lab"]]
        submission["conditions"] = conditions(submission, submission["graded by"], limits)
        if old and old.get("conditions") == submission["conditions"] and (
            (old["folder"], old["file"]) == (submission["folder"], submission["file"])
        ) and submission in submissions:
            submissions.remove(submission)
            same += 1
    if same:
        have = "s have" if same > 1 else " has"
        print(f"{same} notebook{have} not changed since the last grading")
    for row in rows:
        records.other(row)
        print(f"{row['file']}: not graded: {row['note']}")
    graded = 0
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: grade(one, one.pop("graded by"), limits), submissions)
        for number, done in enumerate(results, start=1):
            points = "not graded"
            if done["status"] == "graded":
                graded += 1
                points = f"{done['automatic']:g} of {done['automatic_of']:g}"
                records.keep({name: value for name, value in done.items() if name != "notebook"})
            else:
                records.other(done)
            left = (time.monotonic() - start) / number * (len(submissions) - number)
            print(f"{number} of {len(submissions)}, {left / 60:.0f} min left: "
                  f"{done['student']}, {done['lab']}: {points}"
                  + (f" ({done['note']})" if done["note"] else ""), flush=True)
    print(f"{graded} of {len(rows) + len(submissions) + same} files graded in "
          f"{time.monotonic() - start:.0f} s. Marks and feedback: {records.out}")


if __name__ == "__main__":
    sys.exit(main())
