"""The labs' visible checks in the page: they give the points that the labs' own tests expect.

Every planned wrong answer, the masters' answers and the empty ones are judged as a lab's page does
it, with PyTorch and with the page's small tensor library, in a process each.
"""

import json
from pathlib import Path

import pytest
from turns import one_in

from exercises.page import lab
from tests.book.page_labs import EMPTY, SOLUTION, planned
from tests.book.test_page import MOST, on_both, page_python, run_here

ROOT = Path(__file__).resolve().parents[2]
LABS = {name.removeprefix("labs/"): left_out for name, left_out in run_here.LABS.items()}


@pytest.mark.parametrize("name", one_in(3, LABS))
def test_every_answer_of_a_lab_gets_the_verdict_and_the_sentence_that_it_deserves(name):
    there, here = on_both("page_labs", name, LABS[name])
    tasks = {task for task, _ in here}
    assert len(tasks) == len(planned(name)) - len(LABS[name])
    assert all((task, what) in here for task in tasks for what in (SOLUTION, EMPTY))
    wrong, others = ({key: found for key, found in answers.items() if found[1] != found[0]}
                     for answers in (here, there))
    assert not others
    said = {key: (found[2], there[key][2]) for key, found in here.items()
            if found[2] != there[key][2]}
    print(f"{name}: {len(here)} answers, {len(wrong)} verdicts and {len(said)} sentences differ")
    # It adds in double precision, so a test of the reader's that forgives no rounding may pass.
    assert len(wrong) <= (1 - MOST) * len(here), wrong
    assert len(said) - len(wrong) <= (1 - MOST) * len(here), said


def test_every_lab_is_in_the_page():
    assert set(LABS) == {path.stem for path in (ROOT / "labs").glob("lab*.ipynb")}


CHECK = """assert double(4) == 8, f"twice 4 is 8, yours is {double(4)}"
assert answer == 42
print("Task 2: visible check passed.")
"""
ABOVE = [
    "from transformer_lib import visualize, masks\nimport math\nvisualize.use_theme()",
    "def helper(x):\n    return 1 / 0",
    "while True:\n    answer = 0",
    "answer = 42\nnever = [1 / 0]",
    "def helper(x):\n    return 2 * x",
]


def run(answer, above=ABOVE, check=CHECK):
    return json.loads(lab.run(answer, check, json.dumps(above)))


def test_only_what_is_asked_for_runs_and_the_newest_definition_counts():
    """Neither the loop without end nor the line that fails; of two helpers the second."""
    found = run("def double(x):\n    return helper(x)\n")
    assert found == {"text": "✓ Task 2: visible check passed.\n", "verdict": True, "lacks": []}
    assert len(lab.needed(ABOVE, {"helper", "answer"})) == 3
    assert len(lab.needed(ABOVE, {"masks"})) == 1  # without `visualize`, which a page doesn't have
    assert lab.needed(ABOVE, {"unheard"}) == []


@pytest.mark.parametrize(("answer", "verdict", "said"), [
    ("def double(x):\n    return x + 1\n", False, "✗ Task 2. Not yet: twice 4 is 8, yours is 5"),
    ("def double(x):\n    raise NotImplementedError()\n", None, "`double` isn’t written yet.\n"),
    ("def double(x)\n    return x\n", None, "SyntaxError: expected ':' (line 1)"),
    ("def double(x):\n    return missing\n", False, "your code stops with NameError"),
    ("def double(x):\n    assert x > 9\n", False, "your code stops with AssertionError"),
    ("print('bye')\nraise SystemExit\n", False, "bye\n✗ Task 2. Not yet: your code stops with"),
])
def test_what_is_wrong_is_said_in_a_sentence(answer, verdict, said):
    found = run(answer)
    assert found["verdict"] is verdict and said in found["text"]


def test_an_answer_above_that_is_not_written_is_named():
    above = [*ABOVE, "def helper(x):\n    raise NotImplementedError()"]
    found = run("def double(x):\n    return helper(x)\n", above)
    assert found["verdict"] is None
    assert "`helper` isn’t written yet. It belongs to a task above." in found["text"]


def test_a_missing_return_and_a_loop_without_end(monkeypatch):
    check = ("from exercises.checks import expect_shape\nexpect_shape(double(4), (1,))\n"
             'print("Task 2: visible check passed.")')
    assert "Is a `return` missing?" in run("def double(x):\n    2 * x\n", check=check)["text"]
    monkeypatch.setattr(lab, "LIMIT", 0.5)
    found = run("def double(x):\n    while True:\n        pass\n")
    assert found["verdict"] is False and "does its loop end?" in found["text"]


def test_what_the_page_lacks_gives_no_verdict():
    code = ("import json\nfrom exercises.page import lab\n"
            "print(lab.run('import torch\\ndef double(x):\\n    return torch.fft.fft(x)\\n', "
            f"{CHECK!r}, json.dumps({ABOVE!r})))")
    assert json.loads(page_python(code)) == {"text": "", "verdict": None, "lacks": ["torch.fft"]}
