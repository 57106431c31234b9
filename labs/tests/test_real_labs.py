"""Every lab of the book: graded perfect, empty, partly right, and wrong in each planned way.

The planned wrong answers are in wrong_answers/NAME.py: for each answer a list of (description,
source, points), those of the check, of the hidden tests and, where there are any, of the hidden
edge cases. So that they all run in one kernel, a longer lab is made, in which a task and its tests
are repeated for each of its wrong answers.
"""

import copy
import functools
import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from conftest import UNCONTAINED, rows_of
from nbgrader.utils import is_grade, is_solution

from labs.grader import grade
from labs.grader import masters as labs

MASTERS = {path.stem: labs.read(path) for path in sorted(labs.MASTERS.glob("lab*.ipynb"))}


def wrong_answers(name) -> dict[str, list]:
    path = Path(__file__).parent / "wrong_answers" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.WRONG


WRONG = {name: wrong_answers(name) for name in MASTERS}
PLANNED = [(name, answer, number) for name, answers in WRONG.items()
           for answer, wrong in answers.items() for number in range(len(wrong))]


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def groups(master) -> dict[str, list]:
    """For each answer: its cell and the cells after it, up to its last test."""
    found, current = {}, None
    for cell in master.cells:
        if is_solution(cell):
            current, waiting = (None if is_grade(cell) else grade_id(cell)), []
            if current:
                found[current] = []
        if current:
            waiting.append(cell)
            if is_grade(cell) or is_solution(cell):
                found[current] += waiting
                waiting = []
    return found


def test_points(master, answer) -> list[tuple[str, float]]:
    """(check's id, points) and (hidden tests' id, points), in this order."""
    tests = [cell for cell in groups(master)[answer] if is_grade(cell)]
    tests.sort(key=lambda cell: "HIDDEN TESTS" in cell.source)
    return [(grade_id(cell), cell.metadata.nbgrader.points) for cell in tests]


test_points.__test__ = False


def answered(master, changes):
    """The student's notebook with the master's answers, but for those in `changes`."""
    notebook = labs.student_version(master)
    for cell, solved in zip(notebook.cells, master.cells, strict=True):
        if is_solution(cell):
            cell.source = changes.get(grade_id(cell), solved.source)
    return notebook


def longer(name):
    """The lab with all planned wrong answers, and a submission that gives them."""
    master = copy.deepcopy(MASTERS[name])
    cells, changes, group_of = [], {}, groups(master)
    for cell in master.cells:
        for number, (_, source, _) in enumerate(WRONG[name].get(grade_id(cell), [])):
            for old in group_of[grade_id(cell)]:
                new = copy.deepcopy(old)
                new.id = f"{old.id}-{number}"
                if grade_id(old):
                    new.metadata.nbgrader.grade_id += f"_{number}"
                if is_solution(old):
                    title, line, rest = old.source.partition("\n")
                    new.source = f"{title} ({number}){line}{rest}"
                    changes[grade_id(new)] = source
                cells.append(new)
        cells.append(cell)
    master.cells = cells
    return master, answered(master, changes)


def partly(name) -> dict[str, int]:
    """Every other answer is wrong: for those, which of the planned wrong answers."""
    return {answer: 0 for answer in list(WRONG[name])[::2]}


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """A function of a lab's name: points by student and test. A lab is graded if asked for."""

    @functools.cache
    def graded(name) -> dict[tuple[str, str], float]:
        found, master = {}, MASTERS[name]
        some_wrong = {answer: WRONG[name][answer][0][1] for answer in partly(name)}
        many, all_wrong = longer(name)
        for kind, lab, hand_in in (
            ("as it is", master, {"perfect": answered(master, {}),
                                  "partly": answered(master, some_wrong),
                                  "empty": labs.student_version(master)}),
            ("longer", many, {"wrong": all_wrong}),
        ):
            folder, masters, out = (tmp_path_factory.mktemp(part) for part in ("in", "labs", "out"))
            nbformat.write(lab, masters / f"{name}.ipynb")
            for student, notebook in hand_in.items():
                nbformat.write(notebook, folder / f"{student}_{name}.ipynb")
            grade.main([str(folder), "--out", str(out), "--labs", str(masters), "--jobs", "2",
                        "--cell", "180", "--grace", "30",  # the machine may be busy
                        "--quick", *UNCONTAINED])
            if kind == "as it is":
                notes = {row["note"] for row in rows_of(out / "grades.csv")}
                assert notes == {"", "no written answer"}
            for row in rows_of(out / "tasks.csv"):
                if row["points"]:  # a written answer waits for the teacher
                    found[row["student"], row["test"]] = float(row["points"])
        return found

    return graded


def given(points, student, lab):
    return {test: got for (who, test), got in points(lab).items() if who == student}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", MASTERS)
def test_the_masters_answers_get_all_points(points, name):
    full = {test: of for answer in groups(MASTERS[name])
            for test, of in test_points(MASTERS[name], answer)}
    assert given(points, "perfect", name) == full
    assert sum(full.values()) == labs.AUTOMATIC


@pytest.mark.parametrize("name", MASTERS)
def test_the_empty_notebook_gets_none(points, name):
    assert set(given(points, "empty", name).values()) == {0}


@pytest.mark.parametrize("name, answer, number", PLANNED)
def test_a_planned_wrong_answer_gets_what_it_deserves(points, name, answer, number):
    description, _, deserved = WRONG[name][answer][number]
    got = [points(name)["wrong", f"{test}_{number}"]
           for test, _ in test_points(MASTERS[name], answer)]
    assert got == list(deserved), description


@pytest.mark.parametrize("name", MASTERS)
def test_a_wrong_answer_costs_its_own_task_alone(points, name):
    wrong, got = partly(name), given(points, "partly", name)
    for answer in groups(MASTERS[name]):
        for place, (test, full) in enumerate(test_points(MASTERS[name], answer)):
            deserved = WRONG[name][answer][wrong[answer]][2][place] if answer in wrong else full
            assert got[test] == deserved, test


@pytest.mark.parametrize("name", MASTERS)
def test_every_task_has_wrong_answers_and_some_reach_the_hidden_tests(name):
    assert set(WRONG[name]) == set(groups(MASTERS[name]))
    assert all(len(wrong) >= 2 for wrong in WRONG[name].values())
    assert any(check and not any(hidden) for wrong in WRONG[name].values()
               for _, _, (check, *hidden) in wrong)


@pytest.mark.parametrize("name", MASTERS)
def test_the_students_notebook_tells_nothing(name):
    """No answer, no hidden test, no rubric: neither marks nor lines of them."""
    text = (labs.STUDENTS / f"{name}.ipynb").read_text(encoding="utf8")
    assert "BEGIN SOLUTION" not in text and "HIDDEN TESTS" not in text and "Rubric" not in text
    student = nbformat.reads(text, as_version=4)
    shown = "\n".join(cell.source for cell in student.cells)
    for cell in MASTERS[name].cells:
        if "BEGIN HIDDEN TESTS" in cell.source:
            body = cell.source.split("### BEGIN HIDDEN TESTS")[1].split("### END HIDDEN TESTS")[0]
            assert body.strip() and body.strip() not in shown
        elif is_grade(cell) and is_solution(cell):
            assert cell.source not in shown


@pytest.mark.parametrize("name", MASTERS)
def test_a_test_is_worth_one_point_and_tells_apart(name):
    """With the check and up to two hidden cells, a task has three marks, and each can be lost."""
    for answer in groups(MASTERS[name]):
        cells = test_points(MASTERS[name], answer)
        assert all(points == 1 for _, points in cells)
        for place, (test, _) in enumerate(cells):
            assert any(not deserved[place] for _, _, deserved in WRONG[name][answer]), test


@pytest.mark.parametrize("name", MASTERS)
def test_stated_minutes_are_the_tasks_sum_and_a_star_awaits_the_fast(name):
    text = "\n".join(cell.source for cell in MASTERS[name].cells if cell.cell_type == "markdown")
    stated = int(re.search(r"\*\*Time\*\* (?:about )?(\d+) minutes", text)[1])
    reading = sum(map(int, re.findall(r"of which about (\d+) are for reading", text)))
    each = [int(found) for found in re.findall(r"^\*(?:\w+, )?(\d+) minutes, \d points", text,
                                               re.MULTILINE)]
    assert len(each) == len(labs.tasks(MASTERS[name]))
    assert abs(stated - reading - sum(each)) <= 2, f"{stated} stated, the tasks take {sum(each)}"
    assert text.count("**A starred task, for no points.**") == 1


def test_a_right_answer_of_another_number_type_is_right():
    """torch.allclose and assert_close refuse it: "Double did not match Float"."""
    for master in MASTERS.values():
        for cell in master.cells:
            if is_grade(cell):
                assert "allclose(" not in cell.source and "assert_close(" not in cell.source


def test_make_labs_has_nothing_to_do():
    assert labs.main(["--check"]) == 0
