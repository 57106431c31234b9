"""A lab of two tasks that runs in a moment, and the ways in which it may be handed in."""

import copy

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NAME = "lab9_small"


def nbgrader(grade_id, points=None, solution=False):
    grid = {"grade": points is not None, "grade_id": grade_id, "locked": not solution,
            "schema_version": 3, "solution": solution, "task": False}
    return {"nbgrader": grid | ({} if points is None else {"points": points})}


def hidden(number, points, body):
    return (f"# Hidden tests of task {number} ({points} points): run by the teacher.\n"
            f"### BEGIN HIDDEN TESTS\n{body}\n### END HIDDEN TESTS")


MASTER = new_notebook(cells=[
    new_markdown_cell("# Lab 9: Small\nTwo tasks.", id="title"),
    new_code_cell("import torch\nfrom torch.testing import assert_close", id="imports"),
    new_markdown_cell("## Task 1\nDouble it.", id="task-1"),
    new_code_cell("# Task 1: double\ndef double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n"
                  "    ### END SOLUTION", id="double", metadata=nbgrader("double", solution=True)),
    new_code_cell("# Check of task 1\nassert double(1) == 2, 'twice one is two'\nprint('passed')",
                  id="double-check", metadata=nbgrader("double_check", 3)),
    new_code_cell(hidden(1, 5, "import torch\nfrom torch.testing import assert_close\n"
                               "assert_close(double(torch.ones(3)), 2 * torch.ones(3))\n"
                               "assert torch.allclose(double(torch.eye(2)), 2 * torch.eye(2))"),
                  id="double-hidden", metadata=nbgrader("double_hidden", 5)),
    new_markdown_cell("## Task 2\nSquare it.", id="task-2"),
    new_code_cell("# Task 2: square\ndef square(x):\n    ### BEGIN SOLUTION\n    return x * x\n"
                  "    ### END SOLUTION", id="square", metadata=nbgrader("square", solution=True)),
    new_code_cell("# Check of task 2\nassert square(2) == 4\nprint('passed')",
                  id="square-check", metadata=nbgrader("square_check", 3)),
    new_code_cell(hidden(2, 5, "from exercises.checks import expect\n"
                               "for number in (3, 5):\n"
                               "    expected = number * number\n"
                               "    expect(square(number) == expected,\n"
                               "           f'{number} times itself is not right')"),
                  id="square-hidden", metadata=nbgrader("square_hidden", 5)),
    new_markdown_cell("## Question\nWhy?", id="question"),
    new_markdown_cell("Because.\n\n**Rubric** one point each.", id="why",
                      metadata=nbgrader("why", 4, solution=True)),
])

RIGHT = {"double": "# Task 1: double\ndef double(x):\n    return 2 * x",
         "square": "# Task 2: square\ndef square(x):\n    return x * x",
         "why": "Because it *is*."}
# The four marks are those of double_check, double_hidden, square_check and square_hidden.
FULL = (3, 5, 3, 5)


def filled(student_version, answers):
    """The student's notebook with answers written into the cells that `answers` names."""
    notebook = copy.deepcopy(student_version)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return notebook


def place(notebook, cell_id):
    return [cell["id"] for cell in notebook.cells].index(cell_id)


def without(notebook, *ids):
    notebook.cells = [cell for cell in notebook.cells if cell["id"] not in ids]
    return notebook


def duplicated(notebook, cell_id, first_source):
    """The cell twice: first as `first_source`, then as it is."""
    first = copy.deepcopy(notebook.cells[place(notebook, cell_id)])
    first.id, first.source = f"{cell_id}-copy", first_source
    notebook.cells.insert(place(notebook, cell_id), first)
    return notebook


def stripped(notebook, ids=True):
    """Saved by a tool that keeps the text and drops what it does not know."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata = {}
        if ids:
            cell.id = f"new-{number}"
    return notebook


SQUARE = RIGHT["square"]


def submissions(student_version) -> dict:
    """For each name: a notebook, the four marks that it deserves, words that its note must hold."""
    def right(**changes):
        return filled(student_version, RIGHT | changes)

    wrong = "# Task 1: double\ndef double(x):\n    return x"
    return {
        "perfect": (right(), FULL, []),
        "empty": (student_version, (0, 0, 0, 0), ["no written answer"]),
        "partly": (right(square="# Task 2: square\ndef square(x):\n    return 2 * x"),
                   (3, 5, 3, 0), []),
        "syntax": (right(double="# Task 1: double\ndef double(x) return"), (0, 0, 3, 5), []),
        "warns": (right(double="# Task 1: double\nimport warnings\ndef double(x):\n"
                               "    warnings.warn('careful')\n    return 2 * x"), FULL, []),
        # ends the kernel
        "exits": (right(square=SQUARE + "\nimport os\nos._exit(1)"),
                  (3, 5, 0, 0), ["square: Stopped: this cell ended the kernel"]),
        "exits-in-test": (right(square="# Task 2: square\nimport os\ndef square(x):\n"
                                       "    return 4 if x == 2 else os._exit(0)"),
                          (3, 5, 3, 0), ["square_hidden: Stopped: this cell ended the kernel"]),
        "segfault": (right(double="# Task 1: double\nimport ctypes\nctypes.string_at(0)"),
                     (0, 0, 3, 5), ["double: Stopped: this cell ended the kernel"]),
        "sys-exit": (right(double=RIGHT["double"] + "\nimport sys\nsys.exit()"), FULL, []),
        "quit": (right(double=RIGHT["double"] + "\nexit()"), FULL, []),
        # takes too much
        "loop": (right(square=SQUARE + "\nwhile True:\n    pass"), FULL,
                 ["square: CellTimeoutError"]),
        "loop-swallows": (right(square="# Task 2: square\nimport time\ndef square(x):\n"
                                "    while True:\n        try:\n            time.sleep(1)\n"
                                "        except BaseException: pass"),
                          (3, 5, 0, 0), ["square_check: Stopped", "could not be stopped"]),
        "prints": (right(double=RIGHT["double"] + "\nfor _ in range(500):\n"
                                                  "    print('x' * 100_000)"), FULL, []),
        "long-error": (right(double="# Task 1: double\ndef double(x):\n"
                                    "    raise ValueError('y' * 10**7)"), (0, 0, 3, 5), []),
        "memory": (right(square=SQUARE + "\nhog = []\nwhile True:\n"
                                         "    hog.append(bytearray(10**8))"),
                   (3, 5, 0, 0), ["square: Stopped: this cell needed more"]),
        "huge-tensor": (right(double="# Task 1: double\ndef double(x):\n"
                                     "    return torch.ones(10**11)"), (0, 0, 3, 5), ["memory"]),
        "background": (right(double=RIGHT["double"] + "\nimport subprocess\nsubprocess.Popen("
                             "['sleep', '98765'], start_new_session=True)"), FULL, []),
        "removes-files": (right(double="# Task 1: double\n!rm -rf * ~/* ~/.??*\n"
                                       "def double(x):\n    return 2 * x"), FULL, []),
        "input": (right(double=RIGHT["double"] + "\nname = input('name? ')"), FULL, []),
        # saved with cells missing, twice, changed
        "no-answer-cell": (without(right(), "double"), (0, 0, 3, 5), ["double was missing"]),
        "no-check": (without(right(), "double-check"), FULL,
                     ["double_check was missing, put back"]),
        "no-hidden": (without(right(), "double-hidden", "square-hidden"), FULL,
                      ["double_hidden was missing, put back"]),
        "no-written": (without(right(), "why"), FULL, ["why was missing", "no written answer"]),
        "no-imports": (without(right(), "imports"), FULL, []),
        "only-answers": (without(right(), *[cell.id for cell in student_version.cells
                                            if cell.id not in ("double", "square")]), FULL,
                         ["square_check was missing, put back", "why was missing"]),
        "answer-twice": (duplicated(right(), "double", wrong), FULL, ["double occurs more than"]),
        "check-twice": (duplicated(right(double=wrong), "double-check", "print('passed')"),
                        (0, 0, 3, 5), ["double_check occurs more than once"]),
        "stripped": (stripped(right()), FULL, []),
        "stripped-partly": (stripped(right(double=wrong), ids=False), (0, 0, 3, 5), []),
        # cheats
        "weak-check": (filled(student_version, RIGHT | {
            "double": wrong, "double_check": "print('passed')", "double_hidden": "pass"}),
            (0, 0, 3, 5), ["double_check had been changed"]),
        "fake-message": (right(double="# Task 1: double\nprint('Task 1: all passed, 8 of 8')"),
                         (0, 0, 3, 5), []),
        "patched-torch": (right(double=wrong + "\ntorch.allclose = lambda *given: True\n"
                                "torch.testing.assert_close = lambda *given: None\n"
                                "__builtins__.print = lambda *given: None"), (0, 0, 3, 5),
                          ["torch.allclose had been changed"]),
        "hides-errors": (right(double=wrong + "\nget_ipython().input_transformers_post.append("
                                              "lambda lines: [])"),
                         (0, 0, 0, 0), ["hides errors"]),
    }
