"""Grade one submission in a process of its own. grade.py starts it; nobody else has to.

Standard input brings a job (the submission, the lab with its hidden tests, the limits), standard
output takes the result, both as JSON. The notebook runs twice, each time in a new kernel behind the
walls of contain.py, in an empty folder:

- for the page, without the hidden tests, so that nothing it shows can hold them;
- for the marks, with them. Of this run only points, messages and cases are kept.

nbgrader runs the cells and finds duplicates. Its own `autograde` would keep all marks and all
hidden tests in one database next to the running notebook, and gives up on one whose kernel dies.
So this file adds: the lab's cells put back without a database, walls, limits, and another attempt
without the cell that ended the kernel. A test earns its points if it ends in the answer to a
challenge that only guard.py knows, and in no error.
"""

import ast
import contextlib
import copy
import ctypes
import hashlib
import json
import os
import re
import resource
import secrets
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_core.utils import run_sync
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.filters import strip_ansi
from nbformat.v4 import new_code_cell, new_output
from nbgrader.preprocessors import DeduplicateIds, Execute
from nbgrader.utils import determine_grade, is_grade, is_locked, is_solution

from .contain import command
from .guard import WRONG_REFERENCE
from .masters import first_line

OUTPUT_LIMIT = 300_000  # characters of text a cell
FIGURE_LIMIT = 3_000_000  # characters of pictures a cell, as base64
SHOWN = 50_000  # characters of a cell's source on the feedback page
MESSAGE = 300  # characters of a hidden test's message
THEIRS = 100  # of an error inside the student's code, which may choose the text
START = 120  # seconds for the kernel to start and import torch
AGAIN = 10  # seconds for a cell that calls what has timed out before
PROCESSES = 256  # of one notebook, at the same time
DISK = 2**30  # bytes of all files that a notebook may write
FILE_LIMIT = 200 * 2**20  # bytes that a submission may write into one file
GUARD = Path(__file__).with_name("guard.py").read_text(encoding="utf8")
# Runs last, and must fail. If it doesn't, the notebook hides errors, those of the tests too.
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
            notes.append(f"{grade_id(lab.cells[origin])} occurs more than once; the last counts")
            origin = None
        elif is_locked(cell):
            if cell.source.strip() != cell.metadata.shown:
                notes.append(f"{grade_id(cell)} had been changed; the original was run instead")
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


class Guard:
    """Asks guard.py, inside the kernel, and knows its answers. A new one for each kernel."""

    def __init__(self):
        self.name, self.secret = f"_lab_{secrets.token_hex(8)}", secrets.token_hex(16)
        self.start = ("import builtins\n"
                      f"exec(compile({GUARD!r}, 'guard', 'exec'), names := "
                      "{'__builtins__': dict(vars(builtins)), 'get_ipython': get_ipython})\n"
                      f"names['_install']({self.name!r}, {self.secret!r})\n"
                      "del builtins, names")

    def challenge(self, decoy: bool = False) -> str:
        """A new one. Only those who know the secret can tell whether it is a decoy's."""
        while True:
            text = secrets.token_hex(8)
            digest = hashlib.sha256(f"{self.secret} decoy {text}".encode()).digest()
            if digest[0] % 2 == decoy:
                return text

    def question(self, what: str, cell, loops=()) -> str:
        """A line of code, to run before or after the cell's test, or where the test fails."""
        more = f", {loops}" if loops else ""
        return f"{self.name}({what!r}, {cell.metadata.challenge!r}{more})"

    def answer(self, what: str, cell) -> str:
        text = f"{self.secret} {what} {cell.metadata.challenge}"
        return hashlib.sha256(text.encode()).hexdigest()

    def around(self, cell) -> str:
        """The source of a test as a function of its own, with the questions in it.

        What it imports and computes are then its locals, which no answer can replace, nor read but
        through the frames of the calls. So what it calls `expected` goes through the guard, which
        moves it in a decoy. A check that isn't hidden gives its locals to the cells after it,
        once it has passed.
        """
        end = self.question("after", cell)
        name, loops = f"_{secrets.token_hex(8)}", []
        result = "pass" if is_hidden(cell) else "return dict(locals())"
        for _ in range(2):  # the second time with the lines of the loops as they are in the first
            tree = ast.parse(
                f"def {name}():\n    try:\n        pass\n    except BaseException:\n        "
                f"{self.question('case', cell, loops)}\n        raise\n    else:\n        {end}\n"
                f"    {result}\n"
                f"{'' if is_hidden(cell) else 'globals().update'}({name}())\ndel {name}")
            tree.body[0].body[0].body = Expected(
                f"{self.name}('reference', {cell.metadata.challenge!r}, expected)").visit(
                    ast.parse(cell.source)).body
            source = ast.unparse(ast.fix_missing_locations(tree))
            loops = loops_of(source)
        return source


class Expected(ast.NodeTransformer):
    """After each `expected = ...` of a test, let it be what a line of code gives."""

    def __init__(self, line: str):
        self.line = line

    def visit_Assign(self, node):
        if [ast.unparse(target) for target in node.targets] != ["expected"]:
            return node
        return [node, *ast.parse(f"expected = {self.line}").body]


def is_hidden(cell) -> bool:
    return cell.cell_type == "code" and is_grade(cell) and "HIDDEN TESTS" in cell.source


def loops_of(source: str) -> list[tuple[int, int, list[str]]]:
    """First line, last line and names of each loop of a test."""
    return [(node.lineno, node.end_lineno, [name.id for name in ast.walk(node.target)
                                            if isinstance(name, ast.Name)])
            for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For)]


def defined(source: str) -> list[str]:
    """Names of the functions and classes of an answer, even of one with a wrong syntax."""
    return re.findall(r"^\s*(?:async )?(?:def|class) (\w+)", source, re.MULTILINE)


class Runner(Execute):
    """nbgrader's Execute, with walls, bounded output and a deadline for the whole notebook."""

    deadline: float
    folder: Path
    walls: str | None
    guard: Guard
    limits: dict
    for_marks = True  # tests are functions of their own, and decoys follow them
    over = ""  # why the watch ended the kernel
    current = tested = None  # the cell that runs, and the last test
    size = pictures = 0  # characters that it has put out

    def __init__(self, **named):
        super().__init__(**named)
        self.own, self.slow = [], set()  # names that the answers define; those that never return

    def seconds(self, cell) -> float:
        """The limit of a cell. Where an answer has timed out, later calls of it get less."""
        if "number" not in cell.metadata:
            return START
        words = set(re.findall(r"\w+", cell.source))
        return min(self.limits["cell"], AGAIN) if words & self.slow else self.limits["cell"]

    def failed(self, number: int) -> bool:
        """Whether the test of this number has run and failed."""
        return bool(self.tested and self.tested.metadata.number == number and error_of(self.tested))

    async def async_execute_cell(self, cell, cell_index, execution_count=None, store_history=True):
        """Tests and questions leave no source behind in the notebook's history."""
        kept = "number" in cell.metadata and "asks" not in cell.metadata and not (
            self.for_marks and "challenge" in cell.metadata)
        return await super().async_execute_cell(cell, cell_index, execution_count, kept)

    execute_cell = run_sync(async_execute_cell)

    def create_kernel_manager(self):
        self.km = AsyncKernelManager(
            transport="ipc", ip=str(self.folder / "socket"),
            connection_file=str(self.folder / "kernel.json"),
        )
        # A signal would reach the walls and not the kernel behind them, so interrupts are messages.
        self.km._kernel_spec = KernelSpec(
            argv=[*command(self.walls, self.folder), sys.executable, "-m", "ipykernel_launcher",
                  "-f", "{connection_file}"],
            display_name="Python 3", language="python", interrupt_mode="message",
        )
        return self.km

    def preprocess_cell(self, cell, resources, index):
        self.current, self.size, self.pictures = cell, 0, 0
        reason = cell.metadata.get("stopped")
        if time.monotonic() > self.deadline:
            reason = "not run: the time for the whole notebook was used up"
        if reason and cell.cell_type == "code":
            cell.outputs = [new_output("error", ename="Stopped", evalue=reason)]
            return cell, resources
        source = cell.source
        if "asks" in cell.metadata:
            cell.source = self.guard.question("before", cell)
        elif "challenge" in cell.metadata and self.for_marks:
            if "decoy" in cell.metadata and self.failed(cell.metadata.number):
                cell.outputs = [new_output("error", ename="Stopped", evalue="the test failed")]
                return cell, resources
            cell.source = self.guard.around(cell)
            if "decoy" not in cell.metadata:
                self.tested = cell
        elif "challenge" in cell.metadata:
            cell.source = f"{source}\n{self.guard.question('after', cell)}"
        elif not cell.metadata.get("given", True):
            self.own += defined(source)
        super().preprocess_cell(cell, resources, index)
        cell.source = source
        if error_of(cell).startswith("CellTimeoutError"):
            self.slow |= set(self.own) & set(re.findall(r"\w+", source))
        for output in cell.get("outputs", []):
            if output.output_type == "error" and (
                output.ename == "MemoryError" or "can't allocate memory" in output.evalue
            ):
                raise MemoryError  # what it keeps would make the cells after it fail
        return cell, resources

    def output(self, outs, msg, display_id, cell_index):
        content, kind = msg["content"], msg["msg_type"]
        challenge = self.current.metadata.get("challenge")
        if kind == "stream" and challenge:  # before anything is cut
            text = content["text"]
            for line in text.splitlines():
                if line.startswith(challenge) or re.fullmatch("[0-9a-f]{64}", line):
                    self.current.metadata.setdefault("answers", []).append(line[:500])
        if kind == "error":
            content["evalue"] = content["evalue"][:2000]
            content["traceback"] = ["\n".join(content["traceback"])[-20_000:]]
            return super().output(outs, msg, display_id, cell_index)
        data = content.get("data", {})
        pictures = len(str(data.get("image/png", "")))
        allowed = self.size <= OUTPUT_LIMIT
        self.pictures += pictures
        self.size += len(content.get("text", "")) + len(str(data)) - pictures
        if self.size <= OUTPUT_LIMIT and self.pictures <= FIGURE_LIMIT:
            return super().output(outs, msg, display_id, cell_index)
        if self.size <= OUTPUT_LIMIT:
            text = "(a figure too large for this page)\n"
            self.pictures -= pictures
        elif allowed:
            text = (content.get("text", "") or str(data.get("text/plain", "")))[:OUTPUT_LIMIT]
            text += "\n... the rest of the output was cut\n"
        else:
            return None
        # nbformat reads the kind of a message in its header.
        msg = {"msg_type": "stream", "header": {"msg_type": "stream"}, "metadata": {},
               "parent_header": msg["parent_header"], "content": {"name": "stdout", "text": text}}
        return super().output(outs, msg, display_id, cell_index)


def run(notebook, limits: dict, for_marks: bool = True) -> tuple[nbformat.NotebookNode, bool]:
    """Run all cells; again, without the cell at fault, when one ends the kernel.

    For the marks each test has a decoy, before it or after it: the same test with another number
    for what it calls `expected`, and an end that nobody can reach.

    Each test's metadata then say whether it ran to its end (`proved`), and what guard.py said. The
    second value says whether a wanted error came through, as it must.
    """
    deadline = time.monotonic() + limits["notebook"]
    while True:
        guard, cells = Guard(), []
        if for_marks:  # only names and messages of errors are kept, and decoys always end in one
            guard.start += "\nget_ipython().InteractiveTB.set_mode('Minimal')"
        attempt = nbformat.from_dict(notebook)
        for number, cell in enumerate(attempt.cells):
            cell.metadata["number"] = number
            if cell.cell_type != "code" or not is_grade(cell):
                cells.append(cell)
                continue
            cell.metadata["challenge"] = guard.challenge()
            tests = [cell]
            if for_marks and "stopped" not in cell.metadata:
                decoy = new_code_cell(cell.source, metadata=dict(
                    cell.metadata, decoy=True, challenge=guard.challenge(decoy=True)))
                tests.insert(secrets.randbelow(2), decoy)  # no answer can count its calls
            for test in tests:
                before = new_code_cell("asks", metadata={
                    "asks": True, "number": number, "challenge": secrets.token_hex(8)})
                if "stopped" in cell.metadata:
                    before.metadata["stopped"] = cell.metadata.stopped
                cells += [before, test]
        attempt.cells = [new_code_cell(guard.start), *cells, new_code_cell(CANARY)]
        too_long = f"this cell ran longer than {limits['cell']:g} s"
        runner = Runner(
            timeout_func=None,
            iopub_timeout=limits["grace"], startup_timeout=START, shutdown_kernel="immediate",
            error_on_timeout={"ename": "CellTimeoutError", "evalue": too_long, "traceback": []},
        )
        runner.deadline, runner.guard, runner.walls = deadline, guard, limits.get("walls")
        runner.timeout_func = runner.seconds
        runner.limits, runner.for_marks = limits, for_marks
        with tempfile.TemporaryDirectory(prefix="k", ignore_cleanup_errors=True) as folder:
            runner.folder = Path(folder)
            (runner.folder / "home").mkdir()
            try:
                with watch(runner):
                    runner.preprocess(attempt, {"metadata": {"path": folder}})
                first, *cells, canary = attempt.cells
                if error := error_of(first):
                    raise RuntimeError(f"the guard could not start: {error}")
                decoys = {cell.metadata.number: cell for cell in cells if "decoy" in cell.metadata}
                before, asked = None, []
                for cell in cells:
                    answers = cell.metadata.get("answers", [])
                    if "asks" in cell.metadata:
                        before = cell
                        asked += answers
                    elif "challenge" in cell.metadata and "decoy" not in cell.metadata:
                        if decoy := decoys.get(cell.metadata.number):
                            cell.metadata["forged"] = not error_of(decoy) or guard.answer(
                                "after", decoy) in decoy.metadata.get("answers", [])
                            cell.metadata["echoed"] = WRONG_REFERENCE in error_of(decoy)
                        proved = guard.answer("before", before) in before.metadata.get(
                            "answers", []) and guard.answer("after", cell) in answers
                        cell.metadata["proved"] = proved
                        told, asked = asked + answers, []
                        cell.metadata["told"] = [line.split(" ", 2)[1:] for line in told
                                                 if line.count(" ") >= 2]
                attempt.cells = [cell for cell in cells
                                 if not {"asks", "decoy"} & set(cell.metadata)]
                return attempt, any(output.output_type == "error" for output in canary.outputs)
            except DeadKernelError:
                reason = runner.over or "this cell ended the kernel, so it was left out"
            except CellTimeoutError:
                reason = f"{too_long} and could not be stopped"
            except MemoryError:
                reason = f"this cell needed more than {limits['memory']:g} GB of memory"
            finally:
                end_children()
        if "number" not in runner.current.metadata:
            raise RuntimeError(f"before the first cell or after the last: {reason}")
        notebook.cells[runner.current.metadata["number"]].metadata["stopped"] = reason


@contextlib.contextmanager
def watch(runner):
    """End the kernel where its processes together pass a limit. Limits of the system are for each
    process, or for all of a user, so that they cannot say this.
    """
    done, memory = threading.Event(), 2 * runner.limits["memory"] * 2**30

    def look():
        while not done.wait(0.5):
            used, number = 0, 0
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    found = process.memory_info()
                    used, number = used + found.rss - getattr(found, "shared", 0), number + 1
            written = 0
            for path in runner.folder.rglob("*"):
                with contextlib.suppress(OSError):
                    written += path.lstat().st_size
            if number > PROCESSES:
                runner.over = f"this cell started more than {PROCESSES} processes"
            elif used > memory:
                runner.over = f"its processes needed more than {memory / 2**30:g} GB of memory"
            elif written > DISK:
                runner.over = f"it wrote more than {DISK >> 20} MB"
            if runner.over:
                return end_children()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def end_children():
    """End whatever the notebook started and left running."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


# ------------------------------------------------------------------------------------------- marks


def points_of(cell) -> tuple[float | None, float]:
    """The points of a graded cell that was run, None for a written answer, and its maximum."""
    if cell.cell_type != "code":
        return determine_grade(cell)
    most = float(cell.metadata.nbgrader.points)
    failed = any(output.output_type == "error" for output in cell.outputs)
    passed = cell.metadata.get("proved") and not failed and not cell.metadata.get("echoed")
    return (most if passed else 0.0), most


def error_of(cell) -> str:
    """The last error of a cell that was run, as "name: message"."""
    errors = [output for output in cell.get("outputs", []) if output.output_type == "error"]
    return f"{errors[-1].ename}: {errors[-1].evalue}".removesuffix(": ") if errors else ""


def message_of_hidden(cell) -> str:
    """What a student may read of a hidden test that failed.

    Whatever a message holds may come from the student's own code, which may have looked at the
    test. So it is short, and shown only if it repeats no line of the test beyond its texts.
    """
    message = error_of(cell)
    if cell.metadata.get("stopped"):
        return message
    told = dict(pair for pair in cell.metadata.get("told", [])
                if pair[0] in ("where", "call", "raised"))
    if "raised" in told:
        message = message.partition(":")[0]  # the text may be anything, the hidden test too
    if call := told.get("call"):
        message = f"{message[:THEIRS]} (raised by your code, in {call[:120]})"
    if where := told.get("where"):
        message = f"{message} [in the case {where[:120]}]"
    squeezed = "".join(message.split())
    code = "".join(re.sub(r"""(["'])(?:\\.|(?!\1).)*\1""", "\0", ast.unparse(
        ast.parse(cell.source))).split())  # without its texts
    pieces = [piece for piece in code.split("\0")]
    for piece in pieces:
        for start in range(max(0, len(piece) - 24)):
            if piece[start : start + 25] in squeezed:
                return "The test failed. (Its message repeats the test, so it is not shown.)"
    return message[: MESSAGE + 300]


# What leads to a test or to its tools from within, and what lets a result pass for any other.
SUSPECT = re.compile(
    r"\bglobals?\b|\b_thread\b|\b(?:In|_ih)\b|ExecutionResult|BdbQuit|UsageError|\b_C\b|"
    r"Torch(?:Function|Dispatch)Mode|__clo\b|get_ipython|user_ns|_getframe|sys\.modules|/proc\b|set(?:trace|profile|attr)\b|"
    r"[ft]b?_(?:back|frame|locals|globals|code|lineno)\b|\b(?:builtins|ctypes|gc|inspect|linecache|threading)\b|"
    r"(?<![.\w])(?:exec|eval)\(|__(?:array|bool|builtins|class|closure|code|defaults|dict|eq|"
    r"getattribute|globals|import|kwdefaults|subclasses|torch_function|wrapped)__"
)


def reaches(cell) -> list[str]:
    """What no answer of a lab needs, and what ways around the tests do: a person should look."""
    return list(dict.fromkeys(found.rstrip("(") for found in SUSPECT.findall(cell.source)))


def report(cell) -> dict:
    """What grade.py has to know of a cell that was run for the page."""
    entry = {"type": cell.cell_type, "source": cell.source[:SHOWN],
             "given": cell.metadata["given"]}
    outputs, texts, images = cell.get("outputs", []), [], []
    for output in outputs:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            entry["traceback"] = strip_ansi("\n".join(output.traceback))
        elif "image/png" in output.data:
            images.append(output.data["image/png"])
        elif set(output.data) - {"text/plain"}:
            texts.append("(a figure: see the notebook)\n")
        else:
            texts.append(str(output.data.get("text/plain", "")) + "\n")
    if error := error_of(cell):
        entry["error"] = error
    challenge = cell.metadata.get("challenge", "\0")
    entry["text"] = "\n".join(
        line for line in strip_ansi("".join(texts)).splitlines()
        if not line.startswith(challenge) and not re.fullmatch("[0-9a-f]{64}", line)).strip("\n")
    entry["images"] = images
    if "nbgrader" in cell.metadata:
        entry["id"] = grade_id(cell)
    return entry


def grade(job: dict) -> dict:
    """The result of one job: cells with points, notes, and which code the teacher should read."""
    submission, lab = nbformat.from_dict(job["submission"]), nbformat.from_dict(job["lab"])
    limits = job["limits"]
    notebook, notes = restored(submission, lab)
    notebook.cells = list(notebook.cells)
    for_page = copy.deepcopy(notebook)
    for cell in for_page.cells:
        if is_hidden(cell):
            cell.source = cell.metadata.shown
    marked, errors_seen = run(notebook, limits)
    if job.get("page", True):
        for cell, shown in zip(marked.cells, for_page.cells, strict=True):
            error = error_of(cell).partition(": ")[2]
            if error_of(cell).startswith(("Stopped", "CellTimeoutError")) and not is_hidden(cell):
                shown.metadata["stopped"] = error  # once is enough
        for_page, _ = run(for_page, limits, for_marks=False)
    cells, to_read = [], []
    for cell, shown in zip(marked.cells, for_page.cells, strict=True):
        entry = report(shown)
        if is_grade(cell):
            entry["points"], entry["of"] = points_of(cell)
            entry["hidden"] = is_hidden(cell)
            if cell.cell_type == "code" and entry["points"] < entry["of"]:
                told = message_of_hidden(cell) if entry["hidden"] else error_of(cell)[:2000]
                entry["error"] = told or "The test did not run to its end."
                entry["call"] = next((text for kind, text in cell.metadata.get("told", [])
                                      if kind == "call"), "")
            elif cell.cell_type == "code":
                entry.pop("error", None)
                entry.pop("traceback", None)
        cells.append(entry)
        name = entry.get("id", "a cell without points")
        for run_cell in (cell, shown):
            error = error_of(run_cell)
            if error.startswith(("Stopped", "CellTimeoutError")):
                notes.append(f"{name}: {error}")
        for kind, text in cell.metadata.get("told", []):
            if kind == "changed":
                notes.append(f"{text[:80]} had been changed, and was put back before {name}")
            if kind == "meanwhile":
                notes.append(f"{text[:80]} was changed while {name} ran: no points")
        if cell.metadata.get("echoed") and cell.metadata.get("proved"):
            notes.append(f"{name} passed with a wrong reference, too: no points, read the code")
        if cell.metadata.get("proved") is False and not error_of(cell):
            notes.append(f"{name} did not run to its end, though no error was seen: read the code")
        if cell.cell_type == "code" and not cell.metadata["given"] and (found := reaches(cell)):
            to_read.append(f"{name} uses {', '.join(found[:4])}: read the code")
    if forged := [grade_id(cell) for cell in marked.cells if cell.metadata.get("forged")]:
        notes.insert(0, f"passed a test that nobody can pass ({', '.join(forged[:3])}): "
                     "no points, read the code")
        for entry in cells:
            if entry.get("points"):
                entry["points"] = 0
    if not errors_seen:
        notes.append("the notebook hides errors: no test can be trusted, so it gets no points")
        for entry in cells:
            if entry.get("points"):
                entry["points"] = 0
    notes = list(dict.fromkeys(notes))
    if len(notes) > 12:
        notes = [*notes[:12], f"and {len(notes) - 12} more"]
    return {"cells": cells, "notes": notes, "to_read": to_read[:4]}


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
    with open(os.devnull, "wb") as nothing:
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
