"""The bug museum: the healthy program keeps its laws, each specimen breaks one, the key finds
each of them, and the tests that readers write are graded fairly."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import reading_order

from exercises import checks
from exercises.checks import testing
from exercises.museum import gallery, key, symptoms
from exercises.museum.laws import LAWS, complaint
from exercises.museum.mutants import COMPONENTS
from exercises.museum.specimens import CHAPTERS, HERE, PUBLIC, SPECIMENS, changed, specimen
from exercises.museum.wings import PAGES, wings
from transformer_lib import one_file as program

ROOT = Path(__file__).resolve().parents[2]

each_specimen = pytest.mark.parametrize("specimen", SPECIMENS.values(), ids=lambda s: s.name)
each_component = pytest.mark.parametrize("name", COMPONENTS)


@pytest.fixture(scope="module")
def records():
    return json.loads((ROOT / "results" / "museum.json").read_text(encoding="utf8"))


# ---- specimens and laws --------------------------------------------------------------------------


def test_the_healthy_program_keeps_every_law():
    said = {name: complaint(law, program) for name, law in LAWS.items()}
    assert not {name: text for name, text in said.items() if text}


@each_specimen
def test_a_specimen_breaks_its_law(specimen):
    assert complaint(specimen.caught_by(), specimen.program())
    kinds = {line[:1] for line in specimen.diff().splitlines()}
    assert kinds & {"+", "-"}


def test_every_law_catches_something():
    assert len(SPECIMENS) >= 30
    unused = set(LAWS) - {specimen.law for specimen in SPECIMENS.values()}
    assert unused <= {"the_causal_mask_is_a_triangle"}  # a question of the key


def test_a_change_that_fits_nowhere_is_refused():
    with pytest.raises(ValueError, match="0 times, not once"):
        changed([("no such line", "")])


def test_two_bugs_have_two_names():
    with pytest.raises(ValueError, match="two bugs named 'mask-thrown-away'"):
        specimen("mask-thrown-away", "Again", "03_masks", looks="", why="", hides="", law="")


@each_specimen
def test_a_guess_has_four_answers_and_a_chapter(specimen):
    options = {specimen.name, *specimen.confused_with}
    assert len(options) == 4 and options <= set(SPECIMENS)
    assert specimen.source in (HERE, PUBLIC) or specimen.source.startswith("https://github.com/")
    assert CHAPTERS[specimen.page] == reading_order.name(f"book/{specimen.page}")


# ---- what is recorded ----------------------------------------------------------------------------


@each_specimen
def test_a_symptom_is_recorded_and_differs_from_health(specimen, records):
    record, healthy = records[specimen.name], records["healthy"]
    assert record["breaks"][specimen.law] and not healthy["breaks"]
    for part in {"curve", "outputs", "attention"} & set(specimen.shows):
        assert record[part] != healthy[part], part
    assert specimen.shows
    assert "{" not in gallery.looks(specimen.name)


def test_records_and_specimens_are_the_same(records):
    assert list(records) == ["healthy", *SPECIMENS, "wings"]


@pytest.mark.parametrize("name", ["mask-thrown-away", "step-not-restored", "first-end-ends-all"])
def test_a_record_is_made(name, monkeypatch):
    monkeypatch.setattr(symptoms, "STEPS", 4)
    monkeypatch.setattr(symptoms, "INTERRUPTED_AT", 2)
    symptoms.trained_weights.cache_clear()
    found = symptoms.observe(SPECIMENS[name], all_laws=False)
    symptoms.trained_weights.cache_clear()
    assert found["breaks"].keys() == {SPECIMENS[name].law} and len(found["outputs"]) == 4
    assert ("curve" in found) == (SPECIMENS[name].runs != "used")
    json.dumps(found, allow_nan=False)


# ---- the page and the key ------------------------------------------------------------------------


def leaves(question=key.ROOT, path=()):
    if question is None:
        yield path
        return
    yield from leaves(question.yes, (*path, (question, True)))
    yield from leaves(question.no, (*path, (question, False)))


def test_the_key_reaches_each_specimen_by_the_truth(records):
    found = [key.suspects(path, records) for path in leaves()]
    assert sorted(name for names in found for name in names) == sorted(SPECIMENS)
    assert all(found), "a leaf without a suspect"
    assert max(map(len, found)) <= 8, "a leaf with too many"


def test_every_case_has_a_room():
    rooms = gallery.rooms()
    assert all(rooms.values())
    numbers = sorted(gallery.case_number(name) for name in SPECIMENS)
    assert all(b == a + 1 for a, b in pairwise(numbers))
    for name in rooms:
        for case in rooms[name]:
            markup = gallery._case(case)
            assert markup.count("<details") == markup.count("</details>")
            assert not re.search(r'(points|[xy])="[^"]*nan', markup)
            assert "<bos>" not in markup, "a word that a browser takes for a tag"


def test_the_page_shows_every_room():
    text = (ROOT / "book" / "bug-museum.ipynb").read_text(encoding="utf8")
    for room in key.ROOMS.values():
        assert f'gallery.cabinet(\\"{room}\\")' in text
    for name in COMPONENTS:
        assert f'checks.write_the_test(\\"{name}\\"' in text


# ---- the three wings -----------------------------------------------------------------------------

WINGS = wings()
each_wing = pytest.mark.parametrize("name", WINGS)
each_case = pytest.mark.parametrize(
    "name, case", [(name, case) for name, wing in WINGS.items() for case in wing.cases]
)


@each_wing
def test_a_wings_healthy_program_keeps_its_laws_and_each_catches_something(name):
    wing = WINGS[name]
    said = {law: complaint(check, wing.healthy) for law, check in wing.laws.items()}
    assert not {law: text for law, text in said.items() if text}
    assert {case.law for case in wing.cases.values()} == {*wing.laws}
    assert len(wing.cases) >= 6


@each_case
def test_a_case_breaks_its_law_and_looks_different(name, case, records):
    wing, record = WINGS[name], records["wings"][name]
    bug = wing.cases[case]
    assert complaint(wing.laws[bug.law], wing.program(case)) and record[case]["says"]
    assert {line[:1] for line in wing.diff(case).splitlines()} & {"+", "-"}
    named = set(re.findall(r"{healthy\[(\w+)\]", bug.looks)) or {"second"}
    assert any(record[case]["measured"][one] != record["healthy"][one] for one in named)
    assert "{" not in gallery.wing_looks(name, case)
    options = {case, *bug.confused_with}
    assert len(options) == 4 and options <= {*wing.cases}
    assert PAGES[bug.page] == reading_order.name(f"book/{bug.page}")
    markup = gallery._wing_case(name, case)
    assert markup.count("<details") == markup.count("</details>")


def test_a_case_that_fits_nowhere_is_refused():
    wing = WINGS["machine"]
    broken = type(wing)(wing.title, program, wing.laws, wing.cases, wing.measure)
    with pytest.raises(ValueError, match="0 times, not once"):
        broken.text("workers-alike")


def test_the_wings_are_recorded_as_they_are(records):
    """The machine's clocks are pretended ones, so its numbers can be made again."""
    assert symptoms.observe_wing(WINGS["machine"]) == records["wings"]["machine"]
    assert {name: [*record] for name, record in records["wings"].items()} == {
        name: ["healthy", *wing.cases] for name, wing in WINGS.items()
    }
    names = [*SPECIMENS, *(case for wing in WINGS.values() for case in wing.cases)]
    assert len({*names}) == len(names)


def test_the_page_shows_every_wing():
    text = (ROOT / "book" / "bug-museum.ipynb").read_text(encoding="utf8")
    for name in WINGS:
        assert f'gallery.wing(\\"{name}\\")' in text


# ---- write the test ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def official():
    """The tests of the page of solutions, in the order of the components."""
    page = ROOT / "book" / "solutions" / "bug-museum.ipynb"
    cells = json.loads(page.read_text(encoding="utf8"))["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code" and "setup" not in cell["metadata"]["tags"]:
            exec("".join(cell["source"]).partition("assert checks.")[0], names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    return dict(zip(COMPONENTS, tests, strict=True))


@each_component
def test_the_official_test_catches_all_and_refuses_none(name, official, monkeypatch, capsys):
    monkeypatch.setattr(testing, "LIMIT", 60.0)  # a busy machine is no wrong answer
    assert checks.write_the_test(name, official[name]) is True
    said, count = capsys.readouterr().out, len(COMPONENTS[name].broken)
    assert f"caught {count} of {count} broken versions; rejected 0 of 3 correct ones" in said
    assert count >= 18


@each_component
def test_an_empty_test_catches_nothing(name, capsys):
    assert checks.write_the_test(name, lambda part: None if part else True) is False
    said = capsys.readouterr().out
    assert "caught 0 of" in said and "rejected 0 of 3" in said and "A hint about" in said


def test_a_test_that_refuses_everything_is_told_so(capsys):
    def my_test(part):
        raise AssertionError("never good enough")

    assert checks.write_the_test("loss", my_test) is False
    said = capsys.readouterr().out
    assert "rejects everything" in said and "never good enough" in said


def test_a_test_that_refuses_the_right_one_is_told_so(capsys):
    def my_test(rate):  # counts from zero
        assert rate(1, 16, 10) == 0

    assert checks.write_the_test("schedule", my_test) is False
    said = capsys.readouterr().out
    assert "your test rejects the correct version" in said and "steps from 1" in said


def test_a_test_may_return_false_and_print(capsys):
    def my_test(masks):
        print("looking")
        return masks.causal(3)[0, 0, 0].tolist() == [True, False, False]

    assert checks.write_the_test("masks", my_test) is False
    said = capsys.readouterr().out
    assert "caught 8 of 20" in said and "looking" not in said


def test_a_test_that_is_too_exact_is_told_so(capsys):
    def my_test(LayerNorm):
        assert LayerNorm(4).__class__.__name__ == "LayerNorm"

    assert checks.write_the_test("layer norm", my_test) is False
    assert "rejected 3 of 3 correct ones" in capsys.readouterr().out


def test_a_test_that_hangs_is_stopped(monkeypatch, capsys):
    monkeypatch.setattr(testing, "LIMIT", 0.05)

    def my_test(part):
        while True:
            pass

    assert checks.write_the_test("schedule", my_test) is False
    assert "still running" in capsys.readouterr().out


def test_no_test_yet(capsys):
    def my_test(attention): ...

    for nothing in (my_test, ..., None):
        assert checks.write_the_test("attention", nothing) is None
    assert "no test yet" in capsys.readouterr().out
    assert checks.write_the_test("elephant", my_test) is None
    assert "the components are attention, masks" in capsys.readouterr().out
