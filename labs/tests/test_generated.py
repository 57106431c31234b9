"""No answer made from the tests themselves passes one of them (generated.py)."""

import contextlib
import io

import generated
import nbformat
import pytest
import quick
from conftest import UNCONTAINED, rows_of
from nbgrader.utils import is_grade, is_solution
from test_real_labs import MASTERS, answered, grade_id, groups

from labs.grader import grade


def passed(name) -> list[tuple]:
    """(answer, attack, tests it passed): an echo of each name of a test, and the rebind."""
    master, names, found = MASTERS[name], {"__name__": "__main__"}, []
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in master.cells:
            if cell.cell_type != "code" or "setup" in cell.metadata.get("tags", []):
                continue
            if is_grade(cell):
                assert quick.passes(cell.source, names), grade_id(cell)
            elif is_solution(cell):
                tests = [test for test in groups(master)[grade_id(cell)] if is_grade(test)]
                assigned, imported = generated.names_of(tests)
                attacks = {f"echo {one}": generated.echo(cell.source, one) for one in assigned}
                attacks["rebind"] = generated.rebind(cell.source, imported)
                for attack, source in attacks.items():
                    own = dict(names)
                    exec(compile(source, "answer", "exec"), own)
                    found += [(grade_id(cell), attack, grade_id(test)) for test in tests
                              if quick.passes(test.source, own)]
                exec(compile(cell.source, "answer", "exec"), names)
            else:
                quick.given(cell.source, names)
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MASTERS)
def test_nothing_generated_passes_a_test(name):
    assert passed(name) == []


def test_an_echo_of_a_test_that_is_not_careful_is_found():
    test = "right = 3\nassert double(2) == right"
    own = {}
    exec(generated.echo("# Task\ndef double(x):\n    return 2 * x", "right"), own)
    assert quick.passes(test, own) and not quick.passes(test.replace("right", "expected"), own)


@pytest.mark.weekly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MASTERS)
def test_nothing_generated_gets_a_point_from_the_grader(name, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    master, echoes, rebinds = MASTERS[name], {}, {}
    for answer, cells in groups(master).items():
        assigned, imported = generated.names_of(cells)
        solved = cells[0].source
        one = "expected" if "expected" in assigned else assigned[0]
        echoes[answer] = generated.echo(solved, one)
        rebinds[answer] = generated.rebind(solved, imported)
    made = {"echo": echoes, "rebind": rebinds}
    if name in generated.BY_HAND:
        made["byhand"] = generated.BY_HAND[name]
    for attack, answers in made.items():
        nbformat.write(answered(master, answers), folder / f"{attack}_{name}.ipynb")
    assert grade.main([str(folder), "--out", str(out), "--quick", "--jobs", "2", "--cell", "120",
                       *UNCONTAINED]) == 0
    rows = {row["student"]: row for row in rows_of(out / "grades.csv")}
    assert set(rows) == set(made) and {row["status"] for row in rows.values()} == {"graded"}
    tests = {(row["student"], row["test"]): row["points"] for row in rows_of(out / "tasks.csv")}
    gained = [(attack, answer, grade_id(cell), rows[attack]["note"])
              for attack, answers in made.items() for answer in answers
              for cell in groups(master)[answer] if is_grade(cell)
              and float(tests[attack, grade_id(cell)] or 0) > 0]
    assert gained == []
