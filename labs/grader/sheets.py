"""Grades into the table that a learning system gave out: Moodle's worksheet, Canvas's gradebook.

Both systems read back only their own table: with their columns, in the site's language, with their
numbers of people and assignments. So nothing is made here. The table goes in as it was downloaded,
two columns of it are filled, and every other field comes out as it was.

Moodle asks for three columns, the participant's number, the grade and the date of the last grade
(mod/assign/feedback/offline/importgradeslib.php), and finds them by names in the site's language.
Here they are found by their content: the number is the first column and ends in digits, the
grade is followed by the highest grade or by the date, and the comments are the last column.
Canvas knows a column by the number after the assignment's title, "Lab 1 (1234)".
"""

import csv
import io
import re
from pathlib import Path

from .records import write


class NotASheet(ValueError):
    """The file is neither Moodle's worksheet nor Canvas's gradebook; the message says why."""


def read(path: Path) -> tuple[list[list[str]], str, bool]:
    """Rows, separator, and whether a byte order mark comes first."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotASheet(f"{path} is not UTF-8: give the file as it was downloaded, "
                        "not saved again by a spreadsheet") from error
    mark, text = text.startswith("\ufeff"), text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    if len(rows) < 2:
        raise NotASheet(f"{path} has no rows; expected a table with one row per student")
    return rows, separator, mark


def written(rows: list[list[str]], separator: str, mark: bool) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(rows)
    return (b"\xef\xbb\xbf" if mark else b"") + file.getvalue().encode("utf-8")


def is_canvas(header: list[str]) -> bool:
    """Canvas writes this header in English on every site, and needs the first two of these."""
    return header[0] == "Student" and "ID" in header


def moodle_columns(rows: list[list[str]], path: Path) -> dict[str, int | None]:
    """Where a worksheet has its number, status, grade, date of the grade and comment."""
    header, body = rows[0], [row for row in rows[1:] if row]
    if not all(re.search(r"\d+$", row[0]) for row in body):
        raise NotASheet(f"{path}: the first column should hold participants' numbers, but holds "
                        f"{next(r[0] for r in body if not re.search(r'[0-9]+$', r[0]))!r}")
    english = {"grade": "Grade", "date": "Last modified (grade)", "comment": "Feedback comments"}
    found = {key: header.index(name) if name in header else None for key, name in english.items()}
    if found["grade"] is None:
        # ..., grade, highest grade, [marking ...,] "can be changed", [dates,] comments
        highest = [column for column in range(2, len(header))
                   if len({row[column] for row in body}) == 1
                   and re.fullmatch(r"\d+([.,]\d+)?", body[0][column])
                   and all(re.fullmatch(r"-|[\d.,]*", row[column - 1]) for row in body)]
        if not highest:
            raise NotASheet(f"{path}: no column with the highest grade was found; expected a "
                            "grading worksheet as Moodle gives it out")
        found["grade"] = highest[0] - 1
        found["comment"] = len(header) - 1
        found["date"] = len(header) - 2
    if found["date"] is None:
        raise NotASheet(f"{path} has no column 'Last modified (grade)', which Moodle needs")
    return found


def people(path: Path) -> list[tuple[str, str]]:
    """Name and number of everybody in a table, the number as it is in the names of their files."""
    rows, _, _ = read(path)
    if is_canvas(rows[0]):
        place = rows[0].index("ID")
        return [(row[0], row[place].strip()) for row in rows[1:]
                if len(row) > place and row[place].strip().isdigit()]
    moodle_columns(rows, path)
    return [(row[1], number(row[0])) for row in filter(None, rows[1:])]


def number(text: str) -> str:
    return re.search(r"\d*$", text)[0]


def fill(path: Path, to: Path, graded: list[dict], labs: dict, only: str | None) -> dict:
    """Write the table with the grades into `to`; returns how many are filled and who is missing."""
    rows, separator, mark = read(path)
    names = {record["lab"] for record in graded}
    if is_canvas(rows[0]):
        filled, missing = fill_canvas(rows, graded, labs, only)
    else:
        if only is None and len(names) != 1:
            raise NotASheet(f"{path}: Moodle has a worksheet for each lab; say which this is "
                            f"(--lab), one of {', '.join(sorted(names))}")
        filled, missing = fill_moodle(
            rows, path, [record for record in graded if record["lab"] == (only or min(names))])
    write(to, written(rows, separator, mark))
    print(f"{to}: grades filled in: {filled}; hand-ins missing: {len(missing)}"
          + (f", from {', '.join(missing)}" if missing else ""))
    return {"filled": filled, "missing": missing}


def fill_moodle(rows: list[list[str]], path: Path, graded: list[dict]) -> tuple[int, list[str]]:
    columns, of = moodle_columns(rows, path), {record["id"]: record for record in graded}
    filled, missing = 0, []
    comma = any("," in row[columns["grade"] + 1] for row in rows[1:] if row)
    for row in filter(None, rows[1:]):
        record = of.get(number(row[0]))
        if record is None:
            missing.append(row[1])
        elif record["total"] is not None:
            # In the scale of the assignment, which need not be the lab's
            most = float(row[columns["grade"] + 1].replace(",", ".") or record["total_of"])
            value = f"{record['total'] * most / record['total_of']:.2f}"
            row[columns["grade"]] = value.replace(".", ",") if comma else value
            if columns["comment"] is not None and record["comment"]:
                row[columns["comment"]] = record["comment"]
            filled += 1
    return filled, missing


def fill_canvas(rows, graded, labs, only) -> tuple[int, list[str]]:
    header, of = rows[0], {(record["id"], record["lab"]): record for record in graded}
    columns = {}
    for name, lab in labs.items():
        found = [place for place, title in enumerate(header)
                 if re.sub(r" \(\d+\)$", "", title) in (lab["title"], name)]
        if len(found) == 1 and only in (None, name):
            columns[name] = found[0]
    if not columns:
        raise NotASheet("no column of the gradebook has a lab's title; name the assignments "
                        + " or ".join(repr(lab["title"]) for lab in labs.values()))
    place, filled, missing = header.index("ID"), 0, []
    for row in rows[1:]:
        if len(row) <= place or not row[place].strip().isdigit():
            continue  # points possible, or the test student
        for name, column in columns.items():
            record = of.get((row[place].strip(), name))
            if record is None:
                missing.append(f"{row[0]} ({name})")
            elif record["total"] is not None:
                row[column] = f"{record['total']:g}"
                filled += 1
    return filled, missing
