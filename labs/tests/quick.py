"""A lab's tests without a kernel: a whole lab in seconds, for tests that need hundreds of them.

It says what an honest answer gets. Cheats, limits and what a page shows need the real grader.
"""

import ast
import contextlib
import io

from nbgrader.utils import is_grade, is_solution

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
    """Whether a test passes, in a function of its own. A check gives its names to later cells."""
    tree = ast.parse("def _test():\n    pass\n    return dict(locals())")
    tree.body[0].body[:1] = ast.parse(source).body
    try:
        exec(compile(ast.fix_missing_locations(tree), "test", "exec"), names)
        found = names.pop("_test")()
    except Exception:
        return False
    if "HIDDEN TESTS" not in source:
        names.update(found)
    return True


def given(source: str, names: dict):
    """What a given cell defines: no loop, nothing that only prints or draws."""
    for node in ast.parse(source).body:
        used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        if isinstance(node, (ast.Expr, ast.For, ast.With)) or used & SLOW:
            continue
        with contextlib.suppress(Exception):
            exec(compile(ast.Module([node], []), "given", "exec"), names)
