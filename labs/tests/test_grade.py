"""`make grade` with broken, hostile and oddly named submissions of a small lab.

All are graded once, side by side, in two folders; each test then looks at the row of one of them.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import attacks
import nbformat
import psutil
import pytest
import small_lab
from conftest import UNCONTAINED, rows_of

from labs.grader import contain, grade, masters, one, pages

STUDENT = masters.student_version(small_lab.MASTER)
CASES = small_lab.submissions(STUDENT)
CHEATS = attacks.all_cases(STUDENT)
LEAKS = attacks.leaks(STUDENT)
TO_BE_READ = {name: attacks.attack(STUDENT, code) for name, code in attacks.TO_BE_READ.items()}
BEYOND = list(attacks.beyond(STUDENT, Path(), 0))
# These run twice, for a page too. The others need only marks.
WITH_PAGE = ["perfect", "empty", "partly", "prints", "long-error", "hides-errors", "exits",
             "a large figure", "a long last line", "a display", *LEAKS, *BEYOND]
TESTS = ("double_check", "double_hidden", "square_check", "square_hidden")
# Short limits, yet long enough for a machine that is busy with other work.
LIMITS = ["--cell", "20", "--grace", "6", "--memory", "1", "--jobs", "2", *UNCONTAINED]
contained = pytest.mark.skipif(bool(UNCONTAINED), reason="neither bwrap nor unshare works here")


def write(folder, name, notebook):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def lab_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labs")
    write(folder, f"{small_lab.NAME}.ipynb", small_lab.MASTER)
    return folder


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """What a submission must not reach: a folder, a process with a secret, a server."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "secret.txt").write_text("ANNAS-ANSWER", encoding="utf8")
    server, hits = socket.create_server(("127.0.0.1", 0)), []

    def serve():
        while True:
            connection, _ = server.accept()
            hits.append(connection.recv(100))
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    secret = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                              env={"LAB_SECRET": "1"})
    yield {"folder": folder, "port": server.getsockname()[1], "hits": hits}
    secret.kill()


@pytest.fixture(scope="module")
def out(tmp_path_factory, lab_folder, outside):
    """The folder of marks after two folders of cases and some files that are no submissions."""
    quick, whole = (tmp_path_factory.mktemp(name) for name in ("quick", "whole"))
    notebooks = {name: case[0] for name, case in (CASES | CHEATS).items()} | LEAKS | TO_BE_READ
    if not UNCONTAINED:
        notebooks |= attacks.beyond(STUDENT, outside["folder"], outside["port"])
    for name, notebook in notebooks.items():
        folder = whole if name in WITH_PAGE else quick
        write(folder, f"{name.replace('/', ' ')}/my notebook.ipynb", notebook)
    late = small_lab.filled(CASES["perfect"][0], {})
    late.cells.append(nbformat.v4.new_code_cell(
        "import os\nget_ipython().input_transformers_post.append("
        "lambda lines: os._exit(0) if 'as it should' in lines[0] else lines)", id="late"))
    write(quick, "=late.ipynb", late)
    (quick / "torn.ipynb").write_text('{"cells": [', encoding="utf8")
    (quick / "list.ipynb").write_text("[]", encoding="utf8")
    (quick / "essay.pdf").write_bytes(b"%PDF-1.4")
    write(quick, "other.ipynb", nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import torch", id="a")]))
    (whole / "perfect" / ".ipynb_checkpoints").mkdir()
    write(whole, "perfect/.ipynb_checkpoints/old.ipynb", CASES["empty"][0])
    old = write(whole, "perfect/first try.ipynb", CASES["empty"][0])
    os.utime(old, (1, 1))
    out = tmp_path_factory.mktemp("graded")
    for folder, options in ((quick, ["--quick"]), (whole, [])):
        assert grade.main([str(folder), "--out", str(out), "--labs", str(lab_folder), *LIMITS,
                           *options]) == 0
    return out


@pytest.fixture(scope="module")
def rows(out):
    return rows_of(out / "grades.csv")


@pytest.fixture(scope="module")
def points(out):
    return {(row["student"], row["test"]): row["points"] for row in rows_of(out / "tasks.csv")}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
def test_each_submission_gets_the_marks_it_deserves(rows, points, name):
    _, deserved, words = CASES[name]
    row, = (row for row in rows if row["student"] == name and row["status"] == "graded")
    assert tuple(float(points[name, test]) for test in TESTS) == deserved, row["note"]
    assert (float(row["automatic"]), float(row["automatic_of"])) == (sum(deserved), 16)
    nothing = "no written answer" in row["note"]  # which is worth no points; the others wait
    assert (row["written"], float(row["written_of"])) == ("0" if nothing else "", 4)
    for part in words:
        assert part in row["note"]
    if not words:
        assert not row["note"]


@pytest.mark.parametrize("file, note", [
    ("torn.ipynb", "cannot be read as a notebook"),
    ("list.ipynb", "cannot be read as a notebook"),
    ("essay.pdf", "not a notebook"),
    ("other.ipynb", "isn't one of the labs"),
    ("'=late.ipynb", "before the first cell or after the last"),
    ("perfect/first try.ipynb", "handed in more than once; the newest file counts: perfect/my not"),
])
def test_a_file_that_is_not_graded_has_a_row_that_says_why(rows, file, note):
    row, = (row for row in rows if row["file"] == file)
    assert (row["status"], row["automatic"]) == ("not graded", "")
    assert note in row["note"]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_gets_nothing_and_an_unusual_notebook_everything(rows, points, name):
    if UNCONTAINED and ("on disk" in name or "/proc" in name):
        pytest.skip("neither bwrap nor unshare works here")
    row, = (row for row in rows if row["student"] == name.replace("/", " "))
    assert tuple(float(points[row["student"], test]) for test in TESTS) == CHEATS[name][1], row


@pytest.mark.parametrize("name", [*attacks.FULL_MARKS, *attacks.WHILE_A_TEST_RUNS,
                                  *attacks.SHARED, *attacks.TO_BE_READ, *LEAKS])
def test_a_cheat_is_noted(rows, name):
    if "on disk" in name:
        pytest.skip("nothing was there to be read")
    row, = (row for row in rows if row["student"] == name.replace("/", " "))
    assert re.search("read the code|had been changed|hides errors|no points", row["note"]), row


def test_no_answer_of_ours_needs_to_be_read():
    for path in masters.MASTERS.glob("lab*.ipynb"):
        for cell in masters.read(path).cells:
            if cell.cell_type == "code" and masters.is_solution(cell):
                assert one.reaches(cell) == [], cell.source


@pytest.mark.parametrize("name", LEAKS)
def test_a_hidden_test_does_not_reach_the_page(out, points, name):
    page = (out / "feedback" / pages.page_name(
        {"student": name, "id": "", "lab": small_lab.NAME})).read_text(encoding="utf8")
    assert "number * number" not in page and "for number in" not in page
    assert float(points[name, "square_hidden"]) == 0


@contained
@pytest.mark.parametrize("name", BEYOND)
def test_a_submission_stays_behind_its_walls(out, rows, outside, name):
    row, = (row for row in rows if row["student"] == name)
    assert (row["status"], float(row["automatic"])) == ("graded", 16), row["note"]
    page = (out / "feedback" / pages.page_name(
        {"student": name, "id": "", "lab": small_lab.NAME})).read_text(encoding="utf8")
    for word in ("ANNAS-ANSWER", "TOKEN-SEEN", "REACHED", ".bashrc"):
        assert word not in page.split('class="output"', 1)[-1]
    assert not outside["hits"]
    assert os.listdir(outside["folder"]) == ["secret.txt"]
    installed = subprocess.run([sys.executable, "-c", "import lab_attack"], capture_output=True)
    assert b"No module named 'lab_attack'" in installed.stderr


def test_nothing_else_is_in_the_tables(rows, points):
    number = len(CASES) + len(CHEATS) + len(LEAKS) + len(TO_BE_READ)
    number += 0 if UNCONTAINED else len(BEYOND)
    assert len(rows) == number + 6
    assert len(points) == number * (len(TESTS) + 1)  # and the written answer


def test_nothing_that_a_submission_started_still_runs(out):
    assert not [process for process in psutil.process_iter(["cmdline"])
                if {"98764", "98765"} & {*(process.info["cmdline"] or [])}]


@pytest.mark.parametrize("name", [name for name in CASES])
def test_feedback_page(out, name):
    """Small, asks no other host for anything, and keeps the hidden tests to itself."""
    page = (out / "feedback" / f"{name}_{small_lab.NAME}.html").read_text(encoding="utf8")
    assert len(page) < 500_000
    assert "default-src 'none'" in page and '<html lang="en">' in page
    assert not re.search(r"<script|<link|src=\"(?!data:)|url\(", page)
    assert "number * number" not in page and "Rubric" not in page
    assert f"<strong>{sum(CASES[name][1])} of 16</strong>" in page


def test_feedback_shows_messages_answers_question_and_the_written_text(out):
    page = (out / "feedback" / f"partly_{small_lab.NAME}.html").read_text(encoding="utf8")
    assert "3 times itself is not right" in page  # the message of the hidden test that failed
    assert "Because it *is*." in page and "<p>Why?</p>" in page
    assert 'class="marks"' in page and ">passed</pre>" in page
    page = (out / "feedback" / f"empty_{small_lab.NAME}.html").read_text(encoding="utf8")
    assert "No answer was written." in page


def test_a_large_figure_is_on_the_page(out):
    page = (out / "feedback" / pages.page_name(
        {"student": "a large figure", "id": "", "lab": small_lab.NAME})).read_text(encoding="utf8")
    assert "data:image/png;base64," in page


@pytest.mark.parametrize("square, message", [
    ("torch.ones(2, 3) @ torch.ones(2, 3) if x == 5 else x * x",
     "(raised by your code, in square(x: 5)) [in the case number = 5]"),
    ("x * x if x < 4 else 0", "5 times itself is not right [in the case number = 5]"),
])
def test_a_failed_hidden_test_names_its_case(lab_folder, square, message):
    notebook = small_lab.filled(STUDENT, small_lab.RIGHT | {
        "square": f"# Task 2: square\ndef square(x):\n    return {square}"})
    result = run_one(notebook, lab_folder, quick=True)
    cell, = (cell for cell in result["cells"] if cell.get("id") == "square_hidden")
    assert cell["points"] == 0 and cell["error"].endswith(message)


@pytest.mark.parametrize("how", ["bwrap", "unshare"])
def test_both_ways_to_contain(lab_folder, outside, how):
    """The same notebook behind each kind of wall that works here: nothing seen, all points."""
    if how not in contain.methods():
        pytest.skip(f"{how} does not work here")
    notebook = small_lab.filled(STUDENT, small_lab.RIGHT)
    for name, reaching in attacks.beyond(STUDENT, outside["folder"], outside["port"]).items():
        if name != "pip":
            more = [cell for cell in reaching.cells if cell.id == "double"]
            more[0].id, more[0].metadata = f"reach-{len(notebook.cells)}", {}
            notebook.cells += more
    result = run_one(notebook, lab_folder, walls=how)
    assert sum(cell.get("points") or 0 for cell in result["cells"]) == 16, result["notes"]
    shown = " ".join(cell.get("text", "") for cell in result["cells"])
    assert not re.search("ANNAS-ANSWER|TOKEN-SEEN|REACHED|bashrc", shown)
    assert not outside["hits"] and os.listdir(outside["folder"]) == ["secret.txt"]


def test_without_walls_nothing_runs_unless_allowed(monkeypatch, capsys, tmp_path, lab_folder):
    monkeypatch.setattr(contain, "methods", lambda: [])
    monkeypatch.setattr(grade, "grade_folder", lambda *given: None)
    write(tmp_path, "anna.ipynb", CASES["perfect"][0])
    command = [str(tmp_path), "--out", str(tmp_path / "out"), "--labs", str(lab_folder)]
    with pytest.raises(SystemExit):
        grade.main(command)
    assert "cannot be contained" in capsys.readouterr().err
    assert grade.main([*command, "--uncontained"]) == 0
    assert "with all your rights" in capsys.readouterr().err


def test_markup_in_an_answer_is_shown_and_not_obeyed(tmp_path, lab_folder):
    lab = grade.load_labs(lab_folder)[small_lab.NAME]
    cell = {"type": "markdown", "given": False, "source": "<script>alert(1)</script>",
            "id": "why", "of": 4, "points": None, "text": "", "images": [], "changed": []}
    tests = {test: {"type": "code", "points": 0, "of": 1} for test in TESTS}
    page = pages.feedback_page({
        "student": "<b>x</b>", "lab": small_lab.NAME, "file": "x", "automatic": 0,
        "automatic_of": 16, "written_of": 4, "id": "", "graded": tests | {"why": cell},
        "result": {"cells": [cell], "notes": []}}, lab)
    assert "<script>" not in page and "<b>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("path, student", [
    ("anna/whatever.ipynb", "anna"),
    ("anna/deep/er/lab9.ipynb", "anna"),
    ("anna_lab9_small.ipynb", "anna"),
    ("lab9_small_anna.ipynb", "anna"),
    ("lab9_small_anna (1).ipynb", "anna"),
    ("Anna Schmidt_1234_assignsubmission_file_lab9_small.ipynb", "Anna Schmidt"),
    ("Anna Schmidt_1234_assignsubmission_file/lab9_small.ipynb", "Anna Schmidt"),
    ("schmidtanna_12345_67890_lab9_small-1.ipynb", "schmidtanna"),
    ("schmidtanna_LATE_12345_67890_lab9_small.ipynb", "schmidtanna"),
    ("Anna-Schmidt-lab9.ipynb", "Anna-Schmidt"),
    ("lab9_small.ipynb", "lab9_small"),
    ("lab9_small (2).ipynb", "lab9_small (2)"),  # nobody's name: each file stands for a student
    ("lab9/anna.ipynb", "anna"),
    ("lab9_small/anna/notebook.ipynb", "anna"),
    ("student-1_lab9.ipynb", "student-1"),
    ("lab9_small_student-2.ipynb", "student-2"),
    ("anna (1).ipynb", "anna (1)"),
])
def test_the_student_is_found_in_the_name(tmp_path, path, student):
    assert grade.student_of(tmp_path / path, tmp_path, [small_lab.NAME])[0] == student


def test_two_students_of_one_name_are_kept_apart(tmp_path, lab_folder):
    for number in (11111, 22222):
        write(tmp_path, f"anna_{number}_assignsubmission_file_x.ipynb", CASES["perfect"][0])
    submissions, others = grade.collect(tmp_path, grade.load_labs(lab_folder))
    assert [row["student"] for row in submissions] == ["anna_11111_x", "anna_22222_x"]
    assert not others


@pytest.mark.parametrize("change, found", [
    (lambda notebook: notebook, small_lab.NAME),
    (small_lab.stripped, small_lab.NAME),
    (lambda notebook: small_lab.without(notebook, "title", "double"), small_lab.NAME),
    (lambda notebook: small_lab.without(small_lab.stripped(notebook), "new-0", "new-3", "new-7"),
     None),
])
def test_the_lab_is_found_from_the_contents(lab_folder, change, found):
    notebook = change(small_lab.filled(CASES["perfect"][0], {}))
    assert grade.which_lab(notebook, grade.load_labs(lab_folder)) == found


@pytest.mark.parametrize("change", [
    lambda cell: cell.pop("id"),  # Colab
    lambda cell: cell.update(id="the same"),
    lambda cell: cell.pop("metadata"),
    lambda cell: cell.update(metadata=[]),
    lambda cell: cell.update(metadata={"nbgrader": "yes"}, id=None),
    lambda cell: cell.pop("outputs", None),
    lambda cell: cell.update(outputs="torn"),
], ids=range(7))
def test_a_notebook_whose_source_is_whole_can_be_graded(tmp_path, lab_folder, change):
    path = write(tmp_path, "anna.ipynb", CASES["perfect"][0])
    notebook = json.loads(path.read_text(encoding="utf8"))
    for cell in notebook["cells"]:
        change(cell)
    path.write_text(json.dumps(notebook), encoding="utf8")
    loaded = grade.load_labs(lab_folder)
    submissions, others = grade.collect(tmp_path, loaded)
    assert not others
    lab = loaded[small_lab.NAME]["cells"]
    restored, notes = one.restored(submissions[0]["notebook"], lab)
    assert not notes
    assert [one.grade_id(cell) for cell in restored.cells] == [
        one.grade_id(cell) for cell in lab.cells]


@pytest.mark.parametrize("make, message", [
    (lambda folder: folder / "nowhere", "there is no folder"),
    (lambda folder: folder, "is empty"),
])
def test_a_wrong_folder_is_named(tmp_path, capsys, make, message):
    with pytest.raises(SystemExit) as stop:
        grade.main([str(make(tmp_path))])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option, said", [
    (["--jobs", "0"], "'0' isn't a whole number from 1"),
    (["--jobs", "many"], "'many' isn't a whole number from 1"),
    (["--cell", "-1"], "'-1'; expected a number above 0"),
    (["--notebook", "inf"], "'inf'; expected a number above 0"),
    (["--memory", "0"], "'0'; expected a number above 0"),
    (["--grace", "nan"], "'nan'; expected a number above 0"),
    (["--out", __file__], "is a file; expected a folder"),
])
def test_a_wrong_option_is_named(tmp_path, capsys, option, said):
    (tmp_path / "text").write_text("a folder that is not empty")
    with pytest.raises(SystemExit) as stop:
        grade.main([str(tmp_path), *option])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def run_one(submission, lab_folder, walls=None, quick=False, **limits):
    lab = grade.load_labs(lab_folder)[small_lab.NAME]
    walls = walls or (None if UNCONTAINED else contain.methods()[0])
    return grade.run_one({"notebook": submission}, lab, {
        "cell": 60, "notebook": 250, "memory": 2, "grace": 10, "walls": walls, "quick": quick}
        | limits)


def test_the_time_of_a_notebook_is_bounded(lab_folder):
    """What ran before the time was used up keeps its points."""
    notebook = small_lab.filled(CASES["perfect"][0], {
        "square": "# Task 2: square\nimport time\ntime.sleep(40)"})
    result = run_one(notebook, lab_folder, quick=True, notebook=35)
    points = {cell["id"]: cell["points"] for cell in result["cells"] if "points" in cell}
    assert [points[test] for test in TESTS] == [3, 5, 0, 0]
    assert json.dumps(result).count("not run: the time for the whole notebook was used up") >= 2


def test_a_function_that_never_returns_costs_seconds(lab_folder):
    """The check takes the whole limit, the hidden tests less, and the page run nothing."""
    notebook = small_lab.filled(STUDENT, small_lab.RIGHT | {
        "square": "# Task 2: square\ndef square(x):\n    while True:\n        pass"})
    start = time.monotonic()
    result = run_one(notebook, lab_folder, cell=15)
    points = {cell["id"]: cell["points"] for cell in result["cells"] if "points" in cell}
    assert [points[test] for test in TESTS] == [3, 5, 0, 0]
    assert any("square_check: CellTimeoutError" in note for note in result["notes"])
    assert time.monotonic() - start < 15 + one.AGAIN + 60  # two kernels, and no third wait


@contained
@pytest.mark.parametrize("code, note", [
    ("import subprocess, time\nfor _ in range(400):\n    subprocess.Popen(['sleep', '98764'])\n"
     "time.sleep(20)", "more than 256 processes"),
    ("import subprocess, sys, time\nfor _ in range(5):\n    subprocess.Popen([sys.executable, "
     "'-c', 'x = bytearray(900 * 2**20); import time; time.sleep(30)'])\ntime.sleep(20)",
     "GB of memory"),
    ("for i in range(8):\n    open(f'f{i}', 'wb').write(bytes(150 * 2**20))", None),
])
def test_processes_memory_and_disk_together_are_limited(lab_folder, code, note):
    notebook = small_lab.filled(STUDENT, small_lab.RIGHT | {
        "square": f"{small_lab.SQUARE}\n{code}"})
    result = run_one(notebook, lab_folder, quick=True, memory=1)
    points = {cell["id"]: cell["points"] for cell in result["cells"] if "points" in cell}
    if note:
        assert any(note in text for text in result["notes"])
        assert [points[test] for test in TESTS] == [3, 5, 0, 0]
    else:  # the disk in memory is full: an error of this cell, and no file outside
        assert [points[test] for test in TESTS] == [3, 5, 3, 5]
