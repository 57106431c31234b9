"""Grades into the systems' own tables, read back by the rules of their importers.

`moodle` follows mod/assign/feedback/offline/importgradeslib.php (init and next), `canvas`
lib/gradebook_importer.rb: columns that must be there, how a row finds its student, what is skipped.
"""

import csv
import io
import re

import pytest

from labs.grader import sheets

ENGLISH = {"id": "Identifier", "name": "Full name", "status": "Status", "grade": "Grade",
           "most": "Maximum Grade", "can": "Grade can be changed",
           "submitted": "Last modified (submission)", "modified": "Last modified (grade)",
           "comment": "Feedback comments"}
GERMAN = {"id": "ID", "name": "Vollständiger Name", "status": "Status", "grade": "Bewertung",
          "most": "Beste Bewertung", "can": "Bewertung kann geändert werden",
          "submitted": "Zuletzt geändert (Abgabe)", "modified": "Zuletzt geändert (Bewertung)",
          "comment": "Feedback als Kommentar"}
LAB = "lab9_small"
LABS = {LAB: {"title": "Lab 9: Small"}, "lab8_other": {"title": "Lab 8: Other"}}
PEOPLE = {"1001": "Anna Müller", "1002": 'Ben "B" O\'Neill', "1003": "Chloé, Dr.", "1004": "Absent"}


def worksheet(words, prefix, most="20.00", separator=","):
    file = io.StringIO(newline="")
    table = csv.writer(file, delimiter=separator)
    table.writerow(words.values())
    for number, name in PEOPLE.items():
        table.writerow([f"{prefix} {number}", name, "Submitted for grading", "", most, "Yes",
                        "Monday, 3 March 2025, 10:00 AM", "-", ""])
    return file.getvalue().encode("utf-8-sig")


def records(totals=(20.0, 7.5, None), lab=LAB):
    return [{"id": number, "student": name, "lab": lab, "total": total, "total_of": 20.0,
             "comment": "Well done,\nsee task 2"}
            for (number, name), total in zip(PEOPLE.items(), totals, strict=False)]


def moodle(data, words, most):
    """{participant: (grade, comment)} as Moodle would take them, or an error as it gives."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    places = {word: place for place, word in enumerate(rows[0])}
    needed = [words[name] for name in ("id", "grade", "modified")]
    if not all(word in places for word in needed):
        raise ValueError(f"invalidgradeimport: missing {[w for w in needed if w not in places]}")
    taken = {}
    for row in rows[1:]:
        number = int(re.search(r"(\d+)$", row[places[needed[0]]])[1])
        grade = row[places[needed[1]]].replace(",", ".")
        if grade == "":
            continue
        assert 0 <= float(grade) <= float(most.replace(",", "."))
        taken[number] = (float(grade), row[places[words["comment"]]])
    return taken


def test_the_oracle_refuses_a_worksheet_without_dates():
    with pytest.raises(ValueError, match="Last modified"):
        moodle(b"Identifier,Full name,Grade,Maximum Grade,Feedback comments\n", ENGLISH, "20")


@pytest.mark.parametrize("words, prefix, most, expected", [
    (ENGLISH, "Participant", "20.00", {1001: 20, 1002: 7.5}),
    (GERMAN, "Teilnehmer/in", "20,00", {1001: 20, 1002: 7.5}),
    (ENGLISH, "Participant", "100.00", {1001: 100, 1002: 37.5}),  # the assignment's own scale
    (GERMAN, "Teilnehmer/in", "100,00", {1001: 100, 1002: 37.5}),
])
def test_moodle_takes_its_worksheet_back(tmp_path, words, prefix, most, expected):
    before = worksheet(words, prefix, most)
    (tmp_path / "in.csv").write_bytes(before)
    result = sheets.fill(tmp_path / "in.csv", tmp_path / "out.csv", records(), LABS, None)
    after = (tmp_path / "out.csv").read_bytes()
    taken = moodle(after, words, most)
    assert {number: grade for number, (grade, _) in taken.items()} == expected
    assert taken[1001][1] == "Well done,\nsee task 2"
    assert result["missing"] == ["Absent"]
    old, new = (list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
                for data in (before, after))
    changed = {words_at for a, b in zip(old, new, strict=True)
               for words_at, x, y in zip(old[0], a, b, strict=True) if x != y}
    assert changed == {words["grade"], words["comment"]}


def test_nothing_to_fill_in_is_the_same_file(tmp_path):
    before = worksheet(ENGLISH, "Participant")
    (tmp_path / "in.csv").write_bytes(before)
    sheets.fill(tmp_path / "in.csv", tmp_path / "out.csv", [], LABS, LAB)
    assert (tmp_path / "out.csv").read_bytes() == before


def canvas(data):
    """{(student's id, assignment's id): points} as Canvas's importer reads them."""
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    header = rows[0]
    assert header[0].strip() == "Student" and "ID" in header[:2], "not a gradebook"
    ids = {place: re.search(r" \((\d+)\)$", title)[1] for place, title in enumerate(header)
           if re.search(r" \((\d+)\)$", title)}
    assert re.match(r"\s*Points Possible", rows[1][0])
    return {(row[header.index("ID")], assignment): row[place] for row in rows[2:]
            for place, assignment in ids.items() if row[place]}


def test_canvas_takes_its_gradebook_back(tmp_path):
    table = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 8: Other (77)",
              "Lab 9: Small (88)", "Current Score"],
             ["    Points Possible", "", "", "", "", "20", "20", "(read only)"]]
    table += [[name, number, "", f"u{number}", "A", "3", "", "15"]
              for number, name in PEOPLE.items()]
    file = io.StringIO(newline="")
    csv.writer(file).writerows(table)
    (tmp_path / "in.csv").write_bytes(file.getvalue().encode("utf-8"))
    result = sheets.fill(tmp_path / "in.csv", tmp_path / "out.csv", records(), LABS, LAB)
    assert canvas((tmp_path / "out.csv").read_bytes()) == {
        **{(number, "77"): "3" for number in PEOPLE}, ("1001", "88"): "20", ("1002", "88"): "7.5"}
    assert result["missing"] == [f"Absent ({LAB})"]


@pytest.mark.parametrize("text, message", [
    ("Name,Points\nAnna,3\n", "participants' numbers"),
    ("Identifier,Full name\n", "no rows"),
    ("Identifier,Full name,Grade,Maximum Grade\nParticipant 1,A,,20\n", "Last modified"),
    ("Student,ID,Lab 7 (1)\nA,1,\n", "no column of the gradebook"),
])
def test_another_table_is_refused(tmp_path, text, message):
    (tmp_path / "in.csv").write_text(text, encoding="utf8")
    with pytest.raises(sheets.NotASheet, match=message):
        sheets.fill(tmp_path / "in.csv", tmp_path / "out.csv", records(), LABS, LAB)
    assert not (tmp_path / "out.csv").exists()
