"""Runs an exercise in the browser: the reader's cell, then the cell with its check.

What the chapter imports is there, and so is what was defined by answers that were right. `run` is
called by book/_static/run/worker.js with the text of both cells, and returns what to show.
"""

import contextlib
import io
import json
import linecache
import re
import sys
import time
import traceback

import torch

from exercises import checks
from exercises.checks import diagnosis, framework
from exercises.page import own

CELL = "<your answer>"
PRELUDE = """
import math
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from exercises import checks
from exercises.page import own
"""
CALL = re.compile(r"checks\.(?!hint\b)\w+\.\w+")
PART = re.compile(r'own\.hand_in\("(\w+)"')
WORD = re.compile(r"[^\W\d]\w*")
# What was asked for and isn't here; PyTorch itself, where a site has it, keeps no such list.
MISSED = getattr(getattr(torch, "_tensor", None), "MISSED", [])

diagnosis.PATIENCE = 0.3  # seconds: nobody wants to wait long at a page

_deadlines = []
_kept = {}  # what the right answers of this page defined


def _watch():
    """Raise TimeUp in the reader's code when its time is up: a browser has no timer that could.

    Only the reader's own lines and loops are watched, so that nothing else gets slower.
    """
    tool, events = 3, sys.monitoring.events  # 3: of no debugger or profiler
    sys.monitoring.use_tool_id(tool, "time limit")

    def begin(code, offset):
        if diagnosis.is_theirs(code):
            sys.monitoring.set_local_events(tool, code, events.LINE | events.JUMP)
        return sys.monitoring.DISABLE

    def look(code, where, *_):
        if _deadlines and time.monotonic() > _deadlines[-1]:
            _deadlines[-1] = float("inf")  # once
            raise framework.TimeUp

    for event, callback in ((events.PY_START, begin), (events.LINE, look), (events.JUMP, look)):
        sys.monitoring.register_callback(tool, event, callback)
    sys.monitoring.set_events(tool, events.PY_START)

    @contextlib.contextmanager
    def time_limit(seconds):
        _deadlines.append(time.monotonic() + seconds)
        try:
            yield
        finally:
            _deadlines.pop()

    framework.time_limit = time_limit


if hasattr(sys, "monitoring"):  # Python 3.12; tests of this module may run on an older one
    _watch()


def error_lines(error):
    """An error of the reader's cell itself, in a line or two."""
    if isinstance(error, framework.TimeUp):
        return f"✗ {framework.too_long(error)}"
    if isinstance(error, SyntaxError):
        line = (error.text or "").rstrip()
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})\n    {line.strip()}"
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__)
             if frame.f_code.co_filename == CELL]
    where = f" (line {lines[-1]})" if lines else ""
    shown = linecache.getline(CELL, lines[-1]).strip() if lines else ""
    return f"{type(error).__name__}: {error}{where}" + (f"\n    {shown}" if shown else "")


def _names(answer, check, imports):
    """What the reader's cell finds: as in the notebook, whatever stands above it."""
    names = {"__name__": "__main__"}
    exec(PRELUDE, names)
    used = set(WORD.findall(answer))
    for line in imports.splitlines():
        if WORD.findall(line)[-1] in used:
            with contextlib.suppress(Exception):  # of what a page doesn't have
                exec(line, names)
    asked = set(WORD.findall(check))  # an answer that was deleted is no longer one
    return names | {name: value for name, value in _kept.items() if name not in asked}


def run(answer, check, imports=""):
    """What both cells print, as JSON: text, verdict (True, False or None), lacks (names).

    imports: the chapter's import statements, each of one name, one a line.
    """
    printed, verdict = io.StringIO(), None
    names = _names(answer, check, imports)
    MISSED.clear()
    linecache.cache[CELL] = (len(answer), None, answer.splitlines(True), CELL)
    before = dict(names)
    with contextlib.redirect_stdout(printed):
        try:
            with framework.time_limit(framework.LIMIT):
                exec(compile(answer, CELL, "exec"), names)
            made = {k: v for k, v in names.items() if before.get(k) is not v}
            *first, last = check.strip().rstrip(";").splitlines()
            exec("\n".join(first), names)
            verdict = eval(last, names)
        except (Exception, SystemExit, framework.TimeUp) as error:
            print(error_lines(error))
    if verdict is True:
        _kept.update(made)
    return answered(printed.getvalue(), verdict)


def answered(text, verdict):
    """What the page is told, as JSON; without a verdict if something was missing for one."""
    lacks = sorted(set(MISSED)) if verdict is not True else []
    if lacks:
        verdict, text = None, ""
    return json.dumps({"text": text, "verdict": verdict, "lacks": lacks})


def hint(check):
    """The next hint of the exercise whose check is called in this cell."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if part := PART.search(check):
            own.hint(part[1])
        else:
            checks.hint(eval(CALL.search(check)[0], {"checks": checks}))
    return printed.getvalue()


def warm_up():
    """Load what the first run would wait for."""
    torch.manual_seed(0)
    (torch.randn(2, 3) @ torch.randn(3, 2)).softmax(-1)
