"""Every official solution, broken in every place: no check accepts what is broken.

A mutant changes one operator, constant, keyword or statement of a solution (the engine of
`tools/mutants.py`). Those that change nothing stand in `equivalent_mutants.py`, with the reason.
Here the cheap verdict is asked for; `make weekly` composes every message as well.
"""

import ast
import contextlib
import functools
import io
import json
import linecache
import re
import time
from pathlib import Path

import pytest
from equivalent_mutants import EQUIVALENT
from turns import one_in

from exercises import checks
from exercises.checks import framework
from tools import mutants as engine

ROOT = Path(__file__).resolve().parents[2]

SOLUTIONS = [
    *sorted((ROOT / "book" / "solutions").glob("[0-9][0-9]*_*.ipynb")),
    *(
        ROOT / "book" / "solutions" / f"{page}.ipynb"
        for page in (
            "choices", "diffusion", "experts", "exposure", "larger-runs", "more-on-positions",
            "mystery", "replication", "scaling", "search-errors", "speculative", "speed",
            "speedrun", "vectors", "weights-by-hand",
        )
    ),
]


def check_calls(tree):
    """The calls `checks.<chapter>.<name>(...)` of a cell."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and re.match(r"checks\.\w+\.", ast.unparse(node.func))
    ]


def needed_for(arguments, statements):
    """The statements that the arguments of a check come from: prints and figures are left out."""
    wanted = {node.id for text in arguments for node in ast.walk(ast.parse(text))
              if isinstance(node, ast.Name)}
    kept = []
    for statement in reversed(statements):
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        made |= {getattr(statement, "name", None)}  # of a function or class
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or made & wanted:
            wanted |= {node.id for node in names}
            kept.insert(0, statement)
    return kept


@functools.cache
def solutions(path):
    """[(name of the check, what stands before the cell, the answer, the check's arguments)]"""
    cells = [
        cell
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
        if cell["cell_type"] == "code" and "setup" not in cell["metadata"].get("tags", [])
    ]
    before, found = [], []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        for call in check_calls(tree):
            at = next(i for i, node in enumerate(tree.body) if call in list(ast.walk(node)))
            name = ast.unparse(call.func).removeprefix("checks.")
            arguments = [ast.unparse(arg) for arg in call.args]
            answer = "\n".join(map(ast.unparse, needed_for(arguments, tree.body[:at])))
            found.append((name, "\n".join(before), answer, arguments))
        kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
        before += [ast.unparse(node) for node in tree.body if isinstance(node, kept)]
    return found


def verdict_on(name, names, source, arguments, explain=False):
    """What the check says to this source; a source that cannot even run is no answer."""
    chapter, _, function = name.partition(".")
    check = getattr(getattr(checks, chapter), function)
    names = dict(names)
    # As in a notebook, the source is known to those who ask for it.
    linecache.cache["<solution>"] = (len(source), None, source.splitlines(True), "<solution>")
    try:
        with contextlib.redirect_stdout(io.StringIO()), framework.time_limit(2):
            exec(compile(source, "<solution>", "exec"), names)
            answers = [eval(argument, names) for argument in arguments]
    except (Exception, framework.TimeUp):
        return "cannot run"
    if not explain:
        return check.judge(tuple(answers), explain=False)[0]
    with contextlib.redirect_stdout(io.StringIO()):
        return check(*answers)


def each_mutant(source, arguments):
    """(what was changed, the new source, the arguments): of the code and of values in the call."""
    count = sum(1 for _ in engine.sites(ast.parse(source)))
    for index in range(count):
        line, what, text = engine.mutant(source, index)
        yield f"{source.splitlines()[line - 1].strip()} | {what}", text, arguments
    for i, argument in enumerate(arguments):
        for index in range(sum(1 for _ in engine.sites(ast.parse(argument)))):
            _, what, text = engine.mutant(argument, index)
            yield f"{argument} | {what}", source, [*arguments[:i], text, *arguments[i + 1 :]]


def survivors_of(path, explain=False):
    """(number of mutants, {check: [what was changed]} of those that were not refused)."""
    total, survived = 0, {}
    for name, before, source, arguments in solutions(path):
        names = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(before, names)
        start = time.process_time()
        assert verdict_on(name, names, source, arguments) is True, name
        most = max(0.5, 3 * (time.process_time() - start))  # seconds for one that may never end
        for what, text, given in each_mutant(source, arguments):
            total += 1
            with pytest.MonkeyPatch.context() as short:
                short.setattr(framework, "LIMIT", most)
                accepted = verdict_on(name, names, text, given, explain) in (True, None)
            if accepted:
                survived.setdefault(name, []).append(what)
    return total, survived


def assert_none_survives(path, explain):
    total, survived = survivors_of(path, explain)
    listed = EQUIVALENT.get(path.stem.partition("_")[2] or path.stem, {})
    accepted = {what for several in survived.values() for what in several}
    assert total and not accepted - set(listed), f"of {total} mutants these are accepted"
    assert not set(listed) - accepted, "listed as equivalent, but refused or gone"


@pytest.mark.parametrize("path", one_in(2, SOLUTIONS), ids=lambda path: path.stem)
def test_no_broken_solution_is_accepted(path):
    assert_none_survives(path, False)


@pytest.mark.weekly  # accepts no more than the test above; it composes the messages, too
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_every_broken_solution_gets_its_message(path):
    assert_none_survives(path, True)
