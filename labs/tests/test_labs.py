"""`make labs`: what it takes out of a master, what it refuses, what it calls stale."""

import copy
import json
import subprocess
import sys

import nbformat
import pytest
import small_lab

from labs.grader import masters as labs


def changed(cell_id, old, new):
    master = copy.deepcopy(small_lab.MASTER)
    cell = master.cells[small_lab.place(master, cell_id)]
    assert old in cell.source
    cell.source = cell.source.replace(old, new)
    return master


def test_the_small_lab_is_right():
    assert labs.problems(small_lab.MASTER) == []


def test_answers_hidden_tests_and_rubric_are_taken_out():
    cells = {cell.id: cell.source for cell in labs.student_version(small_lab.MASTER).cells}
    assert cells["double"].endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    assert cells["double-hidden"] == "# Hidden tests of task 1 (5 points): run by the teacher."
    assert cells["why"] == "YOUR ANSWER HERE"
    assert "return 2 * x" in small_lab.MASTER.cells[3].source  # the master is as it was


@pytest.mark.parametrize("master, message", [
    (changed("square", "# Task 2: square", "# My answer"), "'# Task N: name'"),
    (changed("square", "# Task 2: square", "# Task 1: double"), "'# Task N: name'"),
    (changed("square-hidden", "### END HIDDEN TESTS", "### END HIDDEN TESTS\nassert square(5)"),
     "square_hidden: only a comment"),
    (changed("square", "# Task 2: square\n", "# Task 2: square\n### BEGIN  SOLUTION\n"), ""),
    (changed("task-2", "Square it.", "**Rubric** Square it."), "the rubric stays"),
])
def test_a_wrong_master_is_refused(master, message):
    found = labs.problems(master)
    assert bool(found) == bool(message)
    assert message in "\n".join(found)


def test_points_and_tests_are_counted():
    assert "8 automatic and 4 written" in labs.problems(
        small_lab.without(copy.deepcopy(small_lab.MASTER), "square-check", "square-hidden"))[0]
    assert "0 written" in labs.problems(
        small_lab.without(copy.deepcopy(small_lab.MASTER), "why"))[0]
    assert "Task 2: square: no test" in labs.problems(
        small_lab.without(copy.deepcopy(small_lab.MASTER), "square-check", "square-hidden"))[1]


def test_stale_notebooks_are_named_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(labs, "ROOT", tmp_path)
    monkeypatch.setattr(labs, "MASTERS", tmp_path / "labs")
    monkeypatch.setattr(labs, "STUDENTS", tmp_path / "book")
    labs.MASTERS.mkdir()
    master, student = labs.MASTERS / "lab9_small.ipynb", labs.STUDENTS / "lab9_small.ipynb"
    nbformat.write(small_lab.MASTER, master)

    assert labs.main(["--check"]) == 1 and not student.exists()
    assert "book/lab9_small.ipynb: stale" in capsys.readouterr().out
    assert labs.main([]) == 1  # something was stale: a build that runs this stops
    assert "book/lab9_small.ipynb: was stale, written now" in capsys.readouterr().out
    assert labs.main([]) == labs.main(["--check"]) == 0
    text = student.read_text(encoding="utf8")
    assert "return 2 * x" not in text and "assert_close(double" not in text

    student.write_text(text.replace("Double it.", "Doubel it."), encoding="utf8")
    assert labs.main(["--check"]) == 1
    assert labs.main([]) == 1 and student.read_text(encoding="utf8") == text
    master.rename(labs.MASTERS / "lab8_small.ipynb")
    assert labs.main([]) == 1
    assert "book/lab9_small.ipynb: has no master" in capsys.readouterr().out


def test_what_students_get_keeps_its_locks():
    """Jupyter then refuses to change a test, and to delete a test or an answer."""
    text = labs.text_of(labs.student_version(small_lab.MASTER), "lab9_small")
    locks = {cell["id"]: cell["metadata"] for cell in json.loads(text)["cells"]}
    for name in ("double-check", "double-hidden"):
        assert locks[name]["editable"] is False and locks[name]["deletable"] is False
    for name in ("double", "why"):
        assert locks[name]["deletable"] is False and locks[name].get("editable", True)
    assert locks["imports"].get("deletable", True)


def test_a_notebook_is_graded_without_a_grammar_of_addresses():
    """It would be compiled for each submission anew, and take longer than a small notebook."""
    command = "import sys, labs.grader.one; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], cwd=labs.ROOT).returncode == 0
