"""Grade one submission in a process of its own. grade.py starts it; nobody else has to.

Standard input brings a job (the submission, the lab with its hidden tests, the limits), standard
output takes the result, both as JSON. Every attempt to run the notebook gets an empty folder as
home and working folder.

nbgrader runs the cells, finds duplicates and gives the marks. Its own `autograde` would keep all
marks and all hidden tests in one database beside the running notebook, and gives up a notebook
whose kernel dies. So this file adds: the lab's cells put back without a database, limits, and a
second run without the cell that ended the kernel.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time

import nbformat
import psutil
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.filters import strip_ansi
from nbformat.v4 import new_code_cell, new_output
from nbgrader.preprocessors import DeduplicateIds, Execute
from nbgrader.utils import determine_grade, is_grade, is_locked, is_solution

from labs import first_line

OUTPUT_LIMIT = 300_000  # characters a cell
SHOWN = 50_000  # characters of a cell's source on the feedback page
START = 120  # seconds for the kernel to start and import torch
FILE_LIMIT = 200 * 2**20  # bytes that a submission may write into one file
CHANGED = "changed before a test:"  # how the kernel reports what PRELUDE put back

# Runs first in every kernel. A notebook that assigns to torch.allclose, by accident or not, must
# not change what the tests use: each test first calls _restore_tools. `exit` would end the kernel
# a moment after its cell; as an exception it costs no other cell.
PRELUDE = f"""
def _prelude():
    import builtins, sys, torch, torch.nn.functional, torch.testing
    tools = [(module, name, value)
             for module in (builtins, torch, torch.nn.functional, torch.testing)
             for name, value in vars(module).items()
             if callable(value) and not name.startswith("_") and name != "input"]

    def restore():
        changed = []
        for module, name, value in tools:
            now = vars(module).get(name)
            by_torch = str(getattr(now, "__module__", "")).startswith("torch")  # it wraps its own
            if now is not value and not by_torch:
                changed.append((module, name, value))
        for tool in changed:
            setattr(*tool)
        for module, name, value in changed:
            print("{CHANGED}", f"{{module.__name__}}.{{name}}")

    builtins._restore_tools = restore
    get_ipython().user_ns.update(exit=sys.exit, quit=sys.exit)

_prelude()
del _prelude
"""
# Runs last, and must fail. Where it does not, the notebook hides errors, those of the tests too.
CANARY = "raise AssertionError('as it should be')"


# ------------------------------------------------------------------------- what is going to be run


def origins(cells: list, lab: list) -> list[int | None]:
    """For each cell of a submission, the number of the lab's cell that it stems from.

    Found by nbgrader's id; else, where a tool removed the metadata, by the cell's id, by the first
    line of a graded cell, or by the same source.
    """
    found = [None] * len(cells)
    for key in (
        lambda cell: cell.metadata.get("nbgrader", {}).get("grade_id"),
        lambda cell: cell.get("id"),
        lambda cell: first_line(cell) if cell.cell_type == "code" else None,
        lambda cell: cell.source,
    ):
        numbers = {}
        for number, cell in enumerate(lab):
            numbers.setdefault(key(cell), []).append(number)
        taken = set(found)
        for place, cell in enumerate(cells):
            known = numbers.get(key(cell), []) if key(cell) else []
            if found[place] is None and len(known) == 1 and known[0] not in taken:
                found[place] = known[0]
    for number, cell in enumerate(lab):  # a written answer without metadata follows its question
        if is_grade(cell) and is_solution(cell) and number not in found and number - 1 in found:
            place = found.index(number - 1) + 1
            if place < len(cells) and found[place] is None and cells[place].cell_type == "markdown":
                found[place] = number
    return found


def restored(submission, lab) -> tuple[nbformat.NotebookNode, list[str]]:
    """The student's cells with the lab's own tests and whatever was deleted; and notes on this."""
    notes, cells = [], []
    found = origins(submission.cells, lab.cells)
    for cell, origin in zip(submission.cells, found, strict=True):
        cell.metadata = {} if origin is None else nbformat.from_dict(lab.cells[origin].metadata)
    submission, _ = DeduplicateIds().preprocess(submission, {})  # empties all but the last
    for cell, origin in zip(submission.cells, found, strict=True):
        if cell.metadata.get("nbgrader") == {}:
            notes.append(f"{grade_id(lab.cells[origin])} occurs more than once, the last counts")
            origin = None
        elif is_locked(cell):
            if cell.source.strip() != cell.metadata.shown:
                notes.append(f"{grade_id(cell)} had been changed, the original was run")
            cell = nbformat.from_dict(lab.cells[origin])
        elif is_solution(cell) and cell.cell_type != lab.cells[origin].cell_type:
            cell = nbformat.from_dict(lab.cells[origin] | {"source": cell.source})
        cells.append((cell, origin))
    for number, cell in enumerate(lab.cells):
        answer = is_solution(cell) and not is_grade(cell)
        if number in found or (cell.cell_type == "markdown" and not is_grade(cell)):
            continue
        if "nbgrader" in cell.metadata:
            notes.append(f"{grade_id(cell)} was missing" + ("" if answer else ", put back"))
        if not answer:  # after the cell that stood before it in the lab, or the nearest one left
            before = [(origin, place) for place, (_, origin) in enumerate(cells)
                      if origin is not None and origin < number]
            _, place = max(before, default=(None, -1))
            cells.insert(place + 1, (nbformat.from_dict(cell), number))
    for cell, origin in cells:
        same = origin is not None and cell.source == lab.cells[origin].source
        cell.metadata["given"] = same and not is_solution(cell)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    submission.cells = [cell for cell, _ in cells]
    submission.metadata = lab.metadata
    return submission, notes


def grade_id(cell) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "a cell without points")


# ------------------------------------------------------------------------------------------ running


class Runner(Execute):
    """nbgrader's Execute, with bounded output and a deadline for the whole notebook."""

    deadline: float
    current = None  # the cell that runs
    size = 0  # characters that it has put out

    def preprocess_cell(self, cell, resources, index):
        self.current, self.size = cell, 0
        reason = cell.metadata.get("stopped")
        if time.monotonic() > self.deadline:
            reason = "not run: the time of the whole notebook was used up"
        if reason and cell.cell_type == "code":
            cell.outputs = [new_output("error", ename="Stopped", evalue=reason)]
            return cell, resources
        source = cell.source
        if is_grade(cell) and cell.cell_type == "code":
            cell.source = "_restore_tools()\n" + source
        super().preprocess_cell(cell, resources, index)
        cell.source = source
        for output in cell.get("outputs", []):
            if output.output_type == "error" and (
                output.ename == "MemoryError" or "can't allocate memory" in output.evalue
            ):
                raise MemoryError  # what it keeps would make the cells after it fail
        return cell, resources

    def output(self, outs, msg, display_id, cell_index):
        content = msg["content"]
        if msg["msg_type"] == "error":
            content["evalue"] = content["evalue"][:2000]
            content["traceback"] = ["\n".join(content["traceback"])[-20_000:]]
        else:
            allowed = self.size <= OUTPUT_LIMIT
            self.size += len(content.get("text", "")) + len(str(content.get("data", "")))
            if self.size > OUTPUT_LIMIT:
                if not allowed:
                    return None
                msg["msg_type"] = "stream"
                msg["content"] = {"name": "stdout", "text": content.get("text", "")[:OUTPUT_LIMIT]
                                  + "\n... the rest of the output was cut\n"}
        return super().output(outs, msg, display_id, cell_index)


def run(notebook, limits: dict) -> tuple[nbformat.NotebookNode, bool]:
    """Run all cells; again, without the cell at fault, when one ends the kernel.

    The second value says whether a wanted error came through, as it must.
    """
    deadline = time.monotonic() + limits["notebook"]
    while True:
        attempt = nbformat.from_dict(notebook)
        for number, cell in enumerate(attempt.cells):
            cell.metadata["number"] = number
        attempt.cells = [new_code_cell(PRELUDE), *attempt.cells, new_code_cell(CANARY)]
        too_long = f"this cell ran longer than {limits['cell']:g} s"
        runner = Runner(
            timeout_func=lambda cell: limits["cell"] if "number" in cell.metadata else START,
            iopub_timeout=limits["grace"], startup_timeout=START, shutdown_kernel="immediate",
            error_on_timeout={"ename": "CellTimeoutError", "evalue": too_long, "traceback": []},
        )  # fmt: skip
        runner.deadline = deadline
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ["HOME"] = os.environ["TMPDIR"] = folder
            try:
                runner.preprocess(attempt, {"metadata": {"path": folder}})
                _, *attempt.cells, canary = attempt.cells
                return attempt, any(output.output_type == "error" for output in canary.outputs)
            except DeadKernelError:
                reason = "this cell ended the kernel, so it was left out"
            except CellTimeoutError:
                reason = f"{too_long} and could not be stopped"
            except MemoryError:
                reason = f"this cell needed more than {limits['memory']:g} GB of memory"
            finally:
                end_children()
        if "number" not in runner.current.metadata:
            raise RuntimeError(f"before the first cell or after the last: {reason}")
        notebook.cells[runner.current.metadata["number"]].metadata["stopped"] = reason


def end_children():
    """End whatever the notebook started and left running."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


# ------------------------------------------------------------------------------------------- marks


def report(cell) -> dict:
    """What grade.py has to know of a cell that was run."""
    entry = {"type": cell.cell_type, "source": cell.source[:SHOWN],
             "given": cell.metadata["given"]}  # fmt: skip
    outputs, texts, images = cell.get("outputs", []), [], []
    for output in outputs:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            entry["error"] = f"{output.ename}: {output.evalue}".removesuffix(": ")
            entry["traceback"] = strip_ansi("\n".join(output.traceback))
        elif "image/png" in output.data:
            images.append(output.data["image/png"])
        elif set(output.data) - {"text/plain"}:
            texts.append("(a figure, to be seen in the notebook)\n")
        else:
            texts.append(str(output.data.get("text/plain", "")) + "\n")
    lines = strip_ansi("".join(texts)).splitlines()
    entry["changed"] = [line.removeprefix(CHANGED).strip() for line in lines
                        if line.startswith(CHANGED)]
    entry["text"] = "\n".join(line for line in lines if not line.startswith(CHANGED))
    entry["images"] = images
    if "nbgrader" in cell.metadata:
        entry["id"] = grade_id(cell)
    if is_grade(cell):
        # nbgrader takes the marks away for anything on stderr. A warning is no failure.
        if cell.cell_type == "code":
            cell.outputs = [output for output in outputs if output.get("name") != "stderr"]
        entry["points"], entry["of"] = determine_grade(cell)
    return entry


def grade(job: dict) -> dict:
    """The result of one job: cells with points, and notes for the teacher."""
    submission, lab = nbformat.from_dict(job["submission"]), nbformat.from_dict(job["lab"])
    notebook, notes = restored(submission, lab)
    notebook, errors_seen = run(notebook, job["limits"])
    cells = [report(cell) for cell in notebook.cells]
    for entry in cells:
        if entry.get("error", "").startswith(("Stopped", "CellTimeoutError")):
            notes.append(f"{entry.get('id', 'a cell without points')}: {entry['error']}")
        for name in entry["changed"]:
            notes.append(f"{name} had been changed, put back before {entry.get('id')}")
    if not errors_seen:
        notes.append("the notebook hides errors: no test can be trusted, so it gets no points")
        for entry in cells:
            if entry.get("points"):
                entry["points"] = 0
    return {"cells": cells, "notes": list(dict.fromkeys(notes))}


def set_limits(limits: dict):
    """Of memory and of files; the kernel inherits them. Orphans become children of this process."""
    for kind, most in (
        (resource.RLIMIT_DATA, int(limits["memory"] * 2**30)),  # what is used, not what is mapped
        (resource.RLIMIT_FSIZE, FILE_LIMIT),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # a system may know less, or allow less
            resource.setrlimit(kind, (most, most))
    if sys.platform == "linux":
        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main():
    job = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w", encoding="utf8")  # not inherited by the kernel
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large is an OSError
    set_limits(job["limits"])
    try:
        result = grade(job)
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"}
    finally:
        end_children()
    with answer:
        json.dump(result, answer)


if __name__ == "__main__":
    main()
