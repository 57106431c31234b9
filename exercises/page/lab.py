"""Runs a task of a lab in the browser: the reader's answer, then the task's visible check.

A check uses what stands above it: imports, models, answers to earlier tasks. As in a notebook that
was run from the top, the newest definition counts; but only what the answer or the check asks for
is run, and no loop, training run or figure. `run` is called by book/_static/run/worker.js.
"""

import ast
import contextlib
import io
import json
import linecache
import re
import traceback
import types

from exercises.checks import framework
from exercises.page import runner

LIMIT = 20  # seconds for an answer with its check
ABOVE = "<a cell above>"
CHECK = "<string>"  # a name that the checks' own machinery doesn't take for the reader's code
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign)


def _asked(code) -> set[str]:
    """The global names that code asks for, with those of the functions in it."""
    inner = (_asked(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def _definitions(cell):
    """(what is defined, the statement) of each definition; imports come name by name."""
    try:
        body = ast.parse(cell).body
    except SyntaxError:
        return
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                one = type(node)(**{**vars(node), "names": [name]})
                yield {name.asname or name.name.partition(".")[0]}, one
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield {node.name}, node
        elif isinstance(node, DEFINES):
            targets = getattr(node, "targets", None) or [node.target]
            yield {one.id for target in targets for one in ast.walk(target)
                   if isinstance(one, ast.Name)}, node


def needed(above: list[str], asked: set[str]) -> list:
    """The definitions in the cells above, compiled, that lead to the names asked for, in order."""
    found, asked = [], set(asked)
    for cell in reversed(above):
        for made, node in reversed([*_definitions(cell)]):
            if made & asked:
                code = compile(ast.Module([node], []), ABOVE, "exec")
                asked |= _asked(code)
                found.append(code)
    return found[::-1]


def _judged(title, error):
    """(verdict, sentence) for whatever ended the answer or the check."""
    where = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    theirs = where.co_filename in (runner.CELL, ABOVE)
    if isinstance(error, framework.TimeUp):
        return False, f"✗ {title}. Not yet: {framework.too_long(error, LIMIT)}"
    if isinstance(error, SyntaxError):
        return None, runner.error_lines(error)
    if isinstance(error, NotImplementedError) and theirs:
        called = "" if where.co_filename == runner.CELL else " It belongs to a task above."
        return None, f"○ {title}. `{where.co_name}` isn’t written yet.{called}"
    if isinstance(error, framework.NotAttempted):
        return False, (f"✗ {title}. Not yet: your answer is None or has a `...` in it. Is a "
                       "`return` missing?")
    if isinstance(error, AssertionError | framework.Wrong) and not theirs:
        return False, f"✗ {title}. Not yet: {error}"
    return False, f"✗ {title}. Not yet: {framework.stopped(error)}"


def run(answer, check, above="[]"):
    """What the check says, as JSON: text, verdict (True, False or None), lacks (names).

    above: the page's code cells above the answer, as a JSON list.
    """
    title = re.search(r"Task \d+", check)[0]
    printed, names = io.StringIO(), {"__name__": "__main__"}
    runner.MISSED.clear()
    linecache.cache[runner.CELL] = (len(answer), None, answer.splitlines(True), runner.CELL)
    with contextlib.redirect_stdout(printed):
        try:
            cells = compile(answer, runner.CELL, "exec"), compile(check, CHECK, "exec")
            with framework.time_limit(LIMIT):
                for code in needed(json.loads(above), _asked(cells[0]) | _asked(cells[1])):
                    with contextlib.suppress(Exception):  # of what a page doesn't have
                        exec(code, names)
                for code in cells:
                    exec(code, names)
            verdict = True
        except (Exception, SystemExit, framework.TimeUp) as error:
            verdict, sentence = _judged(title, error)
            print(sentence)
    said = printed.getvalue().replace(f"{title}: visible", f"✓ {title}: visible")
    return runner.answered(said, verdict)
