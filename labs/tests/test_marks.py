"""From points entered by hand to totals, feedback, the class page and what Canvas and Moodle take.

The results that the tests of a notebook would give are made up here, so that nothing has to run.
"""

import csv
import io
import os
import re
import zipfile

import nbformat
import pytest
import small_lab
from conftest import rows_of

from labs.grader import grade, maths, pages
from labs.grader.records import Records, Unreadable, slug

FILES = {  # file -> (written answer, whether the last test fails)
    "annaschmidt_12345_67890_lab9_small-1.ipynb": ("Because it is so.", False),
    "Bob Ray_777_assignsubmission_file_/lab9_small.ipynb": ("I <b>think</b>\nso.", True),
    "cara/lab9_small.ipynb": ("", False),
}


@pytest.fixture
def labs(tmp_path):
    folder = tmp_path / "labs"
    folder.mkdir()
    nbformat.write(small_lab.MASTER, folder / f"{small_lab.NAME}.ipynb")
    return folder


@pytest.fixture(autouse=True)
def no_kernel(monkeypatch):
    """Each notebook's result comes from its answers, without running them."""
    def result(submission, lab, limits):
        cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell
                 for cell in submission["notebook"].cells}
        written = cells["why"].source
        wrong = "return 0" in cells["square"].source
        shown = {"type": "code", "source": "", "given": True, "text": "", "images": []}
        graded = [shown | {"id": test, "of": of, "points": 0 if wrong and test == "square_hidden"
                           else of, "hidden": "hidden" in test, "error": "AssertionError: 9 it is"}
                  for test, of in zip(("double_check", "double_hidden", "square_check",
                                       "square_hidden"), small_lab.FULL, strict=True)]
        graded.append(shown | {"type": "markdown", "id": "why", "source": written, "of": 4.0,
                               "points": None if written else 0, "given": False})
        return {"cells": graded, "notes": []}
    monkeypatch.setattr(grade, "run_one", result)


def hand_in(folder, files=FILES, age=0):
    for name, (written, wrong) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        square = "# Task 2: square\ndef square(x):\n    return 0" if wrong else small_lab.SQUARE
        nbformat.write(small_lab.filled(small_lab.MASTER, small_lab.RIGHT | {
            "square": square, "why": written}), path)
        os.utime(path, (10**9 + age, 10**9 + age))
    return folder


def run(tmp_path, labs, *arguments):
    return grade.main([*map(str, arguments), "--out", str(tmp_path / "out"), "--labs", str(labs),
                       "--uncontained", "--jobs", "1"])


@pytest.fixture
def out(tmp_path, labs):
    assert run(tmp_path, labs, hand_in(tmp_path / "in")) == 0
    return tmp_path / "out"


def grades(out):
    return {row["student"]: row for row in rows_of(out / "grades.csv")}


def enter(out, name="marks.csv", separator=",", encoding="utf-8-sig", **marks):
    """Points and comment for the answers that begin with a word, as a teacher enters them."""
    rows = rows_of(out / "marks.csv")
    for row in rows:
        for word, (points, comment) in marks.items():
            if row["answer"].startswith(word):
                row["points"], row["comment"] = points, comment
    with open(out / name, "w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)


def page_of(out, student):
    row = grades(out)[student]
    return (out / "feedback" / pages.page_name(row)).read_text(encoding="utf8")


def test_before_marking_there_is_no_total(out):
    row = grades(out)["annaschmidt"]
    assert (row["automatic"], row["written"], row["total"], row["total_of"]) == ("16", "", "", "20")
    assert (row["id"], row["folder"]) == ("12345", "in")
    assert grades(out)["cara"]["total"] == "16"  # nothing was written: nothing to mark
    assert "Not marked yet" in page_of(out, "annaschmidt")


def test_points_and_comments_reach_marks_and_feedback(tmp_path, labs, out):
    enter(out, Because=("2,5", "Why *is* it so?"), I=("4", ""))
    assert run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["total"] == "18.5"
    assert grades(out)["Bob Ray"]["total"] == "15"
    page = page_of(out, "annaschmidt")
    assert "<strong>18.5 of 20 points</strong>" in page and "Why *is* it so?" in page
    assert "<p>Why?</p>" in page  # the question
    rows = {row["answer"][:1]: row for row in rows_of(out / "marks.csv")}
    assert (rows["B"]["points"], rows["B"]["comment"]) == ("2.5", "Why *is* it so?")


@pytest.mark.parametrize("separator, encoding", [(";", "utf-8-sig"), ("\t", "utf8"),
                                                 (";", "cp1252")])
def test_spreadsheets_save_in_many_ways(tmp_path, labs, out, separator, encoding):
    enter(out, separator=separator, encoding=encoding, Because=("3", "größer"))
    assert run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["comment"] == "größer"


def test_a_file_saved_by_the_marking_page_is_merged_once(tmp_path, labs, out):
    enter(out, "marks-lab9_small-why.csv", Because=("1", "first"))
    assert run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["written"] == "1"
    assert not list(out.glob("marks-*"))
    enter(out, Because=("2", "second thoughts"))
    assert run(tmp_path, labs) == run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["written"] == "2"
    elsewhere = tmp_path / "Downloads" / "marks.csv"
    elsewhere.parent.mkdir()
    enter(out, elsewhere, I=("3", "x"))
    assert run(tmp_path, labs, "--marks", elsewhere) == 0
    assert grades(out)["Bob Ray"]["written"] == "3" and elsewhere.exists()


def test_late_files_are_added_and_nothing_is_lost(tmp_path, labs, out):
    enter(out, Because=("3", "good"), I=("1", ""))
    late = hand_in(tmp_path / "late", {"dora_LATE_55_66_lab9_small.ipynb": ("Late.", False)})
    assert run(tmp_path, labs, late) == 0
    found = grades(out)
    assert {name: row["total"] for name, row in found.items()} == {
        "annaschmidt": "19", "Bob Ray": "12", "cara": "16", "dora": ""}
    assert found["dora"]["folder"] == "late"
    assert run(tmp_path, labs, tmp_path / "in") == 0  # the first folder once more
    assert grades(out)["annaschmidt"]["total"] == "19"
    assert len(list((out / "feedback").iterdir())) == 4


def test_points_typed_into_grades_csv_are_taken_over(tmp_path, labs, out):
    text = (out / "grades.csv").read_text(encoding="utf-8-sig")
    assert ",16,16,,4,,20,graded" in text
    (out / "grades.csv").write_text(text.replace(",16,16,,4,,20,graded", ",16,16,3,4,,20,graded"),
                                    encoding="utf8")
    late = hand_in(tmp_path / "late", {"dora/lab9.ipynb": ("Late.", False)})
    assert run(tmp_path, labs, late) == 0
    assert grades(out)["annaschmidt"]["total"] == "19"
    enter(out, Because=("1", ""))  # later, and elsewhere: the old number must not come back
    assert run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["total"] == "17"


def test_a_newer_hand_in_counts_and_its_answer_is_marked_anew(tmp_path, labs, out):
    enter(out, Because=("3", "good"))
    name = "annaschmidt_LATE_12345_99999_lab9_small-2.ipynb"
    assert run(tmp_path, labs, hand_in(tmp_path / "late", {name: ("Better.", False)}, age=9)) == 0
    rows = [row for row in rows_of(out / "grades.csv") if row["student"] == "annaschmidt"]
    new, old = sorted(rows, key=lambda row: row["status"])
    assert (new["file"], new["written"]) == (name, "")
    assert "changed after it had been marked" in new["note"]
    assert "handed in more than once" in old["note"] and old["automatic"] == ""
    assert "good" in (out / "marks.csv").read_text(encoding="utf8")
    older = {name.replace("99999", "11111"): ("Oldest.", False)}
    assert run(tmp_path, labs, hand_in(tmp_path / "older", older, age=-9)) == 0
    assert [row["file"] for row in rows_of(out / "grades.csv")
            if row["student"] == "annaschmidt" and row["status"] == "graded"] == [name]


@pytest.mark.parametrize("points, message", [("5", "expected 0 to 4"), ("-1", "expected 0 to 4"),
                                             ("good", "isn't a number"), ("nan", "expected")])
def test_a_wrong_mark_stops_before_anything_is_written(tmp_path, labs, out, capsys, points,
                                                       message):
    enter(out, Because=(points, ""))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run(tmp_path, labs) == 1
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_criteria_typed_into_the_table_are_points(tmp_path, labs, out):
    rows = rows_of(out / "marks.csv")
    for row in rows:
        row["criteria"] = {"B": "1, 3", "I": "0"}.get(row["answer"][:1], "")
    with open(out / "marks.csv", "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert run(tmp_path, labs) == run(tmp_path, labs) == 0
    assert grades(out)["annaschmidt"]["written"] == "2" and grades(out)["Bob Ray"]["written"] == "0"
    found = {row["answer"][:1]: row["criteria"] for row in rows_of(out / "marks.csv")}
    assert (found["B"], found["I"]) == ("1 3", "0")


def test_the_criteria_of_every_lab_are_its_points():
    for name, lab in grade.load_labs(grade.MASTERS).items():
        for question in lab["questions"].values():
            assert len(question["criteria"]) == 4, name
            assert not any("wrong answers" in text for text in question["criteria"])


def test_formulas_are_drawn_and_what_cannot_be_read_stays():
    assert "<mfrac>" in maths.text_with_maths("a $\\tfrac12$ b") and maths.text_with_maths(
        "3 $ and 4 $, \\$5$ & <b>") == "3 $ and 4 $, \\$5$ &amp; &lt;b&gt;"
    for hostile in ("$\\text{<script>alert(1)</script>}$", "$\\text{<a href='x'>b</a>}$",
                    "$\\frac{$", "$\\href{javascript:alert(1)}{x}$", "$$\\style{color:red}{x}$$"):
        made = maths.text_with_maths(hostile)
        assert not re.search("<(script|a)\\b|<[^>]*(href|style)=", made), made
    for lab in grade.load_labs(grade.MASTERS).values():
        for question in lab["questions"].values():
            assert "$" not in maths.markdown_with_maths(question["rubric"] + question["text"])


def test_the_marking_page_has_all_answers_and_no_name(out):
    page, = (out / "marking").iterdir()
    text = page.read_text(encoding="utf8")
    assert page.name == "lab9_small_why.html"
    assert "I &lt;b&gt;think&lt;/b&gt;" in text and "Because it is so." in text
    assert "<p>Why?</p>" in text and "Rubric" in text and "1 of the class left the question" in text
    assert not re.search("anna|schmidt|Bob|Ray|cara|777|12345", text)
    assert text.count("<script") == 1 and "default-src 'none'" in text


def test_what_canvas_and_moodle_import(tmp_path, labs, out):
    enter(out, Because=("3", ""), I=("1", 'He said "so"'))
    assert run(tmp_path, labs) == 0
    rows = list(csv.reader(io.StringIO((out / "upload/canvas.csv").read_text(encoding="utf8"))))
    assert rows == [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 9: Small"],
                    ["    Points Possible", "", "", "", "", "20"],
                    ["annaschmidt", "12345", "", "", "", "19"]]
    sheet = tmp_path / "moodle.csv"
    head = "Identifier,Full name,Grade,Maximum Grade,Last modified (grade),Feedback comments\n"
    sheet.write_text(head + "Participant 777,Bob Ray,,20.00,-,\nParticipant 778,Zoe,,20.00,-,\n")
    assert run(tmp_path, labs, "--sheet", sheet) == 0
    rows = rows_of(out / "upload" / "moodle.csv")
    assert [(row["Grade"], row["Feedback comments"]) for row in rows] == [
        ("12.00", 'He said "so"'), ("", "")]
    with zipfile.ZipFile(out / "upload" / f"feedback-{small_lab.NAME}.zip") as file:
        assert set(file.namelist()) == {name.replace(".ipynb", ".html") for name in FILES}
        assert b"19 of 20 points" in file.read("annaschmidt_12345_67890_lab9_small-1.html")


def test_the_class_page_counts_mistakes_and_names_nobody(out):
    text = (out / "class.html").read_text(encoding="utf8")
    assert "3 notebooks" in text and "1 × 9 it is" in text and "1 × no answer" in text
    assert not re.search("anna|Bob|cara", text)


def test_names_that_look_alike_get_files_of_their_own():
    assert len({slug("a b", "", "lab1"), slug("a-b", "", "lab1"), slug("a/b", "", "lab1")}) == 3


def test_an_interrupted_run_keeps_what_was_graded(tmp_path, labs, monkeypatch):
    """Ctrl-C after the first notebook: its result is there, and a later run goes on from it."""
    results, real = [], grade.run_one

    def stop(*given):
        if results:
            raise KeyboardInterrupt
        results.append(1)
        return real(*given)

    monkeypatch.setattr(grade, "run_one", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, labs, hand_in(tmp_path / "in"))
    assert len(Records(tmp_path / "out").graded) == 1


def test_a_table_without_codes_is_refused(tmp_path, labs, out):
    (out / "marks-x.csv").write_text("name,points\nanna,3\n", encoding="utf8")
    with pytest.raises(Unreadable, match="needs the columns code and points"):
        Records(out).read_marks()


def test_what_has_not_changed_is_not_graded_again(tmp_path, labs, monkeypatch, capsys):
    run(tmp_path, labs, hand_in(tmp_path / "in"))
    calls, real = [], grade.run_one
    monkeypatch.setattr(grade, "run_one", lambda *given: calls.append(1) or real(*given))
    run(tmp_path, labs, tmp_path / "in")
    assert not calls and "3 notebooks have not changed" in capsys.readouterr().out
    run(tmp_path, labs, tmp_path / "in", "--cell", "7")  # other limits, other results
    assert len(calls) == 3
    hand_in(tmp_path / "in", {"cara/lab9_small.ipynb": ("Now.", False)}, age=5)
    run(tmp_path, labs, tmp_path / "in", "--cell", "7")
    assert len(calls) == 4
    master = nbformat.read(labs / f"{small_lab.NAME}.ipynb", as_version=4)
    master.cells[4].source += "\n# another check"
    nbformat.write(master, labs / f"{small_lab.NAME}.ipynb")
    run(tmp_path, labs, tmp_path / "in", "--cell", "7")
    assert len(calls) == 7


def test_a_link_is_not_followed_and_its_owner_is_told(tmp_path, labs):
    folder = hand_in(tmp_path / "in")
    (folder / "mallory").mkdir()
    (folder / "mallory" / "lab9_small.ipynb").symlink_to(folder / "cara/lab9_small.ipynb")
    (folder / "eve").symlink_to(folder / "cara")
    assert run(tmp_path, labs, folder) == 0
    rows = {row["student"]: row for row in rows_of(tmp_path / "out" / "grades.csv")}
    for name in ("mallory", "eve"):
        assert rows[name]["status"] == "not graded" and "symbolic link" in rows[name]["note"]
        page = (tmp_path / "out" / "feedback" / f"{name}_not-graded.html").read_text("utf8")
        assert "symbolic link" in page and "default-src 'none'" in page
    assert rows["cara"]["status"] == "graded"


def test_only_the_lab_that_was_asked_for(tmp_path, labs, capsys):
    other = nbformat.from_dict(small_lab.MASTER)
    other.cells = [nbformat.v4.new_markdown_cell("# Lab 8: Other", id="t")]
    nbformat.write(other, labs / "lab8_other.ipynb")
    assert run(tmp_path, labs, hand_in(tmp_path / "in"), "--lab", "lab8") == 0
    rows = rows_of(tmp_path / "out" / "grades.csv")
    assert {row["note"] for row in rows} == {"this is lab9_small, but lab8_other was asked for"}
    with pytest.raises(SystemExit):
        run(tmp_path, labs, tmp_path / "in", "--lab", "lab7")
    assert "there is no lab 'lab7'" in capsys.readouterr().err


def test_a_late_notebook_loses_what_the_policy_says(tmp_path, labs):
    files = {"anna_LATE_1_2_lab9_small.ipynb": ("", False), "ben_3_4_lab9_small.ipynb": ("", False)}
    assert run(tmp_path, labs, hand_in(tmp_path / "in", files), "--late-loss", "25") == 0
    rows = {row["student"]: row for row in rows_of(tmp_path / "out" / "grades.csv")}
    assert (rows["anna"]["total"], rows["ben"]["total"]) == ("12", "16")
    assert "late; " in rows["anna"]["note"] and "25 % less" in rows["anna"]["note"]
    assert "late" not in rows["ben"]["note"]
