"""Variants of the labs: honest answers keep all points, wrong ones theirs, those of others none."""

import ast
import random
import re
from itertools import combinations
from types import SimpleNamespace

import nbformat
import pytest
import quick
from conftest import UNCONTAINED, rows_of
from nbgrader.utils import is_grade, is_solution
from test_real_labs import MASTERS, WRONG, answered, grade_id, groups, test_points
from test_sheets import ENGLISH, worksheet

from labs.grader import drawn, grade, sheets, variants
from labs.grader import masters as labs

FEW = [(name, f"seed {number}") for name in MASTERS
       for number in range(1 if name.startswith("lab6") else 2)]
SEEDS = {"lab6_debug_a_transformer": 40}  # its tests train models: 14 s a seed and run
MANY = [(name, f"{number}") for name in MASTERS for number in range(SEEDS.get(name, 200))]


def full_marks(master) -> dict[str, float]:
    return {grade_id(cell): cell.metadata.nbgrader.points for cell in master.cells
            if is_grade(cell) and not is_solution(cell)}


def with_answers(made, answers):
    """A copy of a variant's master with other answers, {id: source}."""
    made = nbformat.from_dict(made)
    for cell in made.cells:
        if is_solution(cell) and not is_grade(cell):
            cell.source = answers.get(grade_id(cell), cell.source)
    return made


def prove(name, seed):
    """What has to hold of one variant; returns the answers at which another's failed.

    One of them at least: two variants may share the names of nearly all functions by chance. How
    often that happens is counted below.
    """
    master = MASTERS[name]
    made = variants.variant(master, name, seed)
    assert labs.problems(made) == []
    right = quick.graded(made)
    assert right == full_marks(master), f"the master's answers, seed {seed}"

    # One planned wrong answer in each task, another one for each seed, in the variant's own form.
    changes, rng = variants.changes(name, seed), random.Random(f"wrong {seed}")
    chosen = {answer: rng.choice(planned) for answer, planned in WRONG[name].items()}
    got = quick.graded(with_answers(made, {answer: changes.text(source)
                                           for answer, (_, source, _) in chosen.items()}))
    for answer, (description, _, deserved) in chosen.items():
        own = [got[test] for test, _ in test_points(master, answer)]
        assert own == list(deserved), f"seed {seed}, {answer}: {description}"

    # The answers of another variant, or of the master itself.
    other = variants.variant(master, name, f"not {seed}") if rng.random() < 0.8 else master
    theirs = {grade_id(cell): cell.source for cell in other.cells
              if is_solution(cell) and not is_grade(cell)}
    copied = quick.graded(with_answers(made, theirs))
    lost = [answer for answer in groups(master)
            if sum(copied[test] for test, _ in test_points(master, answer))
            < sum(of for _, of in test_points(master, answer))]
    assert lost, f"seed {seed}: another's answers get all points"
    return lost


def prove_statements(name, seeds):
    """What students read: each seed's differs from all others, and is as well formed as the lab."""
    plain = "\n".join(cell.source for cell in MASTERS[name].cells)
    seen = {}
    for seed in seeds:
        made = variants.variant(MASTERS[name], name, seed)
        assert labs.problems(made) == [], seed
        student = labs.student_version(made)
        text = "\n".join(cell.source for cell in student.cells)
        text = text.replace(f"*Variant {variants.tag_of(made)}*", "")
        assert seen.setdefault(text, seed) == seed, f"seeds {seen[text]} and {seed} are the same"
        for found in (r"<\w+>", r"\d\.\d{4,}", r"\b(?:nan|inf)\b"):
            new = set(re.findall(found, text)) - set(re.findall(found, plain))
            assert not new, f"seed {seed} brings {new}"
        for cell in made.cells:
            if cell.cell_type == "code":
                ast.parse(cell.source)
            else:
                assert cell.source.count("$") % 2 == 0, cell.source


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name, seed", FEW)
def test_a_variant_is_as_fair_as_the_lab(name, seed):
    prove(name, seed)


@pytest.mark.weekly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name, seed", MANY)
def test_hundreds_of_variants(name, seed):
    prove(name, seed)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", MASTERS)
def test_statements_differ_and_are_well_formed(name):
    prove_statements(name, [f"{number}" for number in range(8)])


@pytest.mark.weekly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MASTERS)
def test_hundreds_of_statements(name):
    prove_statements(name, [f"{number}" for number in range(200)])


@pytest.mark.parametrize("name", MASTERS)
def test_two_variants_nearly_always_differ_in_two_functions(name):
    """By name or by the order of arguments. Bugs, hidden numbers and the file's tag come on top."""
    made = [variants.changes(name, f"{number}") for number in range(200)]
    same = 0
    for one, two in combinations(made, 2):
        differ = {key for key in one.names if one.names[key] != two.names[key]}
        differ |= {key for key in one.orders if one.orders[key] != two.orders[key]}
        same += len(differ) < 2
    assert same / (200 * 199 / 2) < 0.02, "labs/README.md says how often"


def test_every_slip_of_the_residual_has_a_number_of_its_own():
    """Else the check of lab 4 would name the wrong one."""
    rng = random.Random(0)
    for _ in range(300):
        slips = drawn.residual_slips(drawn.residual_numbers(rng))
        results = {round(slips[key], 6) for key in slips.keys() - {"normed", "read"}}
        assert len(results) == len(slips) - 2


def test_a_seed_makes_the_same_variant_again_and_others_differ():
    for name, master in MASTERS.items():
        texts = {seed: "\n".join(cell.source for cell in
                                 variants.variant(master, name, seed).cells) for seed in "abcde"}
        again = variants.variant(master, name, "a")
        assert "\n".join(cell.source for cell in again.cells) == texts["a"]
        assert len(set(texts.values())) == 5


def test_arguments_change_places_wherever_a_function_is_called():
    assert variants.reordered('f(a, g(b, "c, d"), [1, 2], key=f)', "f", [2, 0, 1]) == (
        'f([1, 2], a, g(b, "c, d"), key=f)')
    assert variants.reordered("def f(a, b, c=1):\n    x.f(a, b)", "f", [1, 0]) == (
        "def f(b, a, c=1):\n    x.f(a, b)")
    assert variants.reordered("f(\n    a,  # first\n    b == 1,\n)", "f", [1, 0]).count("b == 1,")
    for wrong in ("f(*given, 1)", "f(a=1, b=2)", "f(1)"):
        with pytest.raises(ValueError, match="cannot reorder"):
            variants.reordered(wrong, "f", [1, 0])


def test_a_list_that_does_not_fit_its_master_is_an_error():
    master = nbformat.from_dict(MASTERS["lab1_attention"])
    for cell in master.cells:
        cell.source = cell.source.replace("| lemonade |", "| juice |")
    with pytest.raises(ValueError, match="drawn.py expects '| lemonade"):
        variants.variant(master, "lab1_attention", "a")


def test_everybody_gets_a_variant_and_is_graded_by_it(tmp_path):
    """From a Moodle sheet to grades: the right person's answers, and the same handed on."""
    sheet, out = tmp_path / "sheet.csv", tmp_path / "variants"
    sheet.write_bytes(worksheet(ENGLISH, "Participant"))
    assert labs.main(["--seed", "word", "--sheet", str(sheet), "--out", str(out)]) == 0
    people = sheets.people(sheet)
    assert len(list(out.glob("*/lab*.ipynb"))) == len(people) * len(MASTERS)
    name, first, second = "lab3_positions_and_normalization", people[0][1], people[1][1]
    solved = variants.variant(MASTERS[name], name, variants.personal("word", first))
    handed = answered(solved, {})
    for person, number in people[:2]:
        folder = tmp_path / "in" / f"{person}_{number}_assignsubmission_file"
        folder.mkdir(parents=True)
        nbformat.write(handed, folder / f"{name}.ipynb")
    assert grade.main([str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--seed", "word",
                       "--each", "--quick", "--jobs", "1", "--cell", "120", *UNCONTAINED]) == 0
    rows = {row["id"]: SimpleNamespace(**row) for row in rows_of(tmp_path / "out" / "grades.csv")}
    assert rows[first].automatic == "16" and "variant" not in rows[first].note
    assert float(rows[second].automatic) < 16 and "of the lab handed in" in rows[second].note
