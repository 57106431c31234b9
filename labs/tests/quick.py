"""A lab's tests without a kernel: a whole lab in seconds, for tests that need hundreds of them.

It says what an honest answer gets. Cheats, limits and what a page shows need the real grader.
"""

import ast
import contextlib
import io

import torch
from nbgrader.utils import is_grade, is_solution

from labs.grader.one import Expected

SLOW = {"practise", "visualize", "train"}  # figures and training runs, which no test needs


def graded(notebook) -> dict[str, float]:
    """{id of a test: points} of a notebook whose tests hold their hidden part, too."""
    names = {"__name__": "__main__"}
    points = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "setup" in cell.metadata.get("tags", []):
            continue
        test = is_grade(cell)
        with contextlib.redirect_stdout(io.StringIO()):
            if test:
                name = cell.metadata.nbgrader.grade_id
                points[name] = cell.metadata.nbgrader.points * passes(cell.source, names)
            elif is_solution(cell):
                with contextlib.suppress(Exception):
                    exec(compile(cell.source, "answer", "exec"), names)
            else:
                given(cell.source, names)
    return points


def passes(source: str, names: dict) -> bool:
    """Whether a test passes, in a function of its own. A check gives its names to later cells.

    As in the grader, a test must also refuse the answer when what it calls `expected` is moved.
    """
    found = names_after(source, names, lambda value: value)
    if found is None:
        return False
    moved = []

    def wrong(value):
        if isinstance(value, bool) or not isinstance(value, (int, float, torch.Tensor)):
            return value
        if getattr(value, "dtype", None) == torch.bool:
            return value
        moved.append(value)
        return value + 321

    if names_after(source, names, wrong) is not None and moved:
        return False
    if "HIDDEN TESTS" not in source:
        names.update(found)
    return True


def names_after(source: str, names: dict, reference) -> dict | None:
    """The names of a test that has passed, else None. reference: what becomes of `expected`."""
    tree = ast.parse("def _test(_reference):\n    pass\n    return dict(locals())")
    tree.body[0].body[:1] = Expected("_reference(expected)").visit(ast.parse(source)).body
    try:
        exec(compile(ast.fix_missing_locations(tree), "test", "exec"), names)
        return names.pop("_test")(reference)
    except Exception:
        return None


def given(source: str, names: dict):
    """What a given cell defines: no loop, nothing that only prints or draws."""
    for node in ast.parse(source).body:
        used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        if isinstance(node, (ast.Expr, ast.For, ast.With)) or used & SLOW:
            continue
        with contextlib.suppress(Exception):
            exec(compile(ast.Module([node], []), "given", "exec"), names)
