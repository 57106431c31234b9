"""Runs an exercise in the browser: the reader's cell, then the cell with its check.

`run` is called by book/_static/run/worker.js with the text of both cells, and returns what to show.
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
from torch import _tensor

from exercises import checks
from exercises.checks import diagnosis, framework

CELL = "<your answer>"
PRELUDE = """
import math
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from exercises import checks
"""
CALL = re.compile(r"checks\.(?!hint\b)\w+\.\w+")

framework.LIMIT = 3.0  # seconds: nobody wants to wait longer at a page
diagnosis.PATIENCE = 0.3

_deadlines = []


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


def _error(error):
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


def run(answer, check):
    """What both cells print, as JSON: text, verdict (True, False or None), lacks (names)."""
    printed, verdict = io.StringIO(), None
    _tensor.MISSED.clear()
    linecache.cache[CELL] = (len(answer), None, answer.splitlines(True), CELL)
    names = {"__name__": "__main__"}
    exec(PRELUDE, names)
    with contextlib.redirect_stdout(printed):
        try:
            with framework.time_limit(framework.LIMIT):
                exec(compile(answer, CELL, "exec"), names)
            *before, last = check.strip().rstrip(";").splitlines()
            exec("\n".join(before), names)
            verdict = eval(last, names)
        except (Exception, SystemExit, framework.TimeUp) as error:
            print(_error(error))
    text = printed.getvalue()
    lacks = sorted(set(_tensor.MISSED)) if verdict is not True else []
    if lacks:
        verdict, text = None, ""
    return json.dumps({"text": text, "verdict": verdict, "lacks": lacks})


def hint(check):
    """The next hint of the exercise whose check is called in this cell."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        checks.hint(eval(CALL.search(check)[0], {"checks": checks}))
    return printed.getvalue()


def warm_up():
    """Load what the first run would wait for."""
    torch.manual_seed(0)
    (torch.randn(2, 3) @ torch.randn(3, 2)).softmax(-1)
