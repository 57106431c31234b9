"""What the grading keeps in its folder OUT, so that nothing entered or graded is ever lost.

    OUT/results/*.json    one file for each student and lab: the result, from which pages are made
    OUT/marks.csv         points and comments for written answers: the teacher edits this one
    OUT/marks-*.csv       the same, saved by a marking page; merged into marks.csv, then kept in
                          OUT/results/merged/

A row of marks.csv is known by a code made from student, lab, question and answer. It tells no name,
and it stays the same when the lab is graded again. An answer that changed has a new code, and the
row of the old one remains. The column `criteria` has the numbers of those met, "1 3", or 0.
"""

import base64
import csv
import hashlib
import io
import json
import os
import re
import time
from pathlib import Path

MARKS = ["code", "lab", "question", "of", "points", "criteria", "comment", "answer"]


class Unreadable(ValueError):
    """A file of marks holds something that isn't a mark; the message says where."""


def write(path: Path, text: str | bytes):
    """The whole file or nothing: a full disk or Ctrl-C leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # as root, a device would become a file
        raise OSError(f"{path} isn't a regular file: choose another name.")
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(text if isinstance(text, bytes) else text.encode("utf8"))
    os.replace(partial, path)


def table(names: list[str], rows: list[dict]) -> bytes:
    """A CSV that a spreadsheet can read, and in which it finds no formulas."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(names)
    for row in rows:
        values = [row.get(name, "") for name in names]
        texts = ["" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
                 for value in values]
        writer.writerow(f"'{text}" if text.startswith(tuple("=+-@\t\r")) else text
                        for text in texts)
    return file.getvalue().encode("utf-8-sig")


def rows_of(path: Path) -> list[dict]:
    """The rows of a CSV as spreadsheets save it: comma, semicolon or tab; UTF-8 or Latin."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    return [{name: (value or "").removeprefix("'") for name, value in row.items()
             if isinstance(name, str) and not isinstance(value, list)} for row in rows]


def slug(*names: str) -> str:
    """A file name for these names; different names give different files."""
    text = "_".join(name for name in names if name)
    plain = re.sub(r"[^\w.-]+", "-", text)[:100]
    if plain == text:
        return plain
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def code_of(record: dict, question: str, answer: str) -> str:
    """The code of a written answer, without a name in it."""
    text = "\0".join([record["student"], record["id"], record["lab"], question, answer.strip()])
    return base64.b32encode(hashlib.sha256(text.encode()).digest())[:7].decode()


def number(text: str, most: float, where: str) -> float | None:
    """Points as a teacher writes them, "2,5" too; None where there are none."""
    if not text.strip():
        return None
    try:
        points = float(text.strip().replace(",", "."))
    except ValueError:
        message = f"{where}: {text!r} isn't a number; expected points up to {most:g}"
        raise Unreadable(message) from None
    if not 0 <= points <= most:
        raise Unreadable(f"{where}: {text} points; expected 0 to {most:g}")
    return points


class Records:
    """Everything known in one folder OUT."""

    def __init__(self, out: Path):
        self.out, self.results = out, out / "results"
        self.graded: dict[tuple, dict] = {}  # (student, id, lab) -> record
        self.others: dict[tuple, dict] = {}  # (folder, file) -> row of a file not graded
        self.marks: dict[str, dict] = {}  # code -> row of marks.csv
        for path in sorted(self.results.glob("*.json")):
            kept = json.loads(path.read_text(encoding="utf8"))
            if path.name == "others.json":
                self.others = {(row["folder"], row["file"]): row for row in kept}
            elif path.name != "written.json":
                self.graded[key(kept)] = kept

    def keep(self, record: dict):
        """Add a graded notebook, in place of an older one by the same student."""
        old = self.graded.get(key(record))
        if old and (old["folder"], old["file"]) != (record["folder"], record["file"]):
            self.other(old | {
                "status": "not graded", "note": "handed in more than once; the newest file counts: "
                f"{record['folder']}/{record['file']}"})
        if old:  # marks of an answer that has changed since stay known
            codes = [row["code"] for row in self.answers() if row["record"] is old]
            self.graded[key(record)] = record
            new = [row["code"] for row in self.answers() if row["record"] is record]
            record["older"] = sorted({*old.get("older", []), *codes} - {*new})
        self.others.pop((record["folder"], record["file"]), None)
        self.graded[key(record)] = record
        write(self.results / f"{slug(*key(record))}.json", json.dumps(record))

    def other(self, row: dict):
        """Add a file that is not graded, and why."""
        names = ("student", "id", "lab", "folder", "file", "status", "note")
        self.others[row["folder"], row["file"]] = {name: row.get(name, "") for name in names}
        write(self.results / "others.json", json.dumps(list(self.others.values())))

    # ------------------------------------------------------------------------ marks by hand

    def answers(self) -> list[dict]:
        """Every written answer, as a row of marks.csv with points and comment still empty."""
        rows = []
        for record in self.graded.values():
            for question, cell in record["graded"].items():
                if cell["type"] == "markdown":
                    empty = cell["points"] == 0
                    answer = "" if empty else cell["source"]
                    rows.append({"code": code_of(record, question, answer), "lab": record["lab"],
                                 "question": question, "of": cell["of"], "points": "",
                                 "comment": "", "answer": " ".join(answer.split())[:60],
                                 "record": record, "empty": empty, "text": answer})
        return rows

    def read_marks(self, more: list[Path] = ()):
        """Collect the marks from everywhere a teacher may have entered them.

        Later files win over earlier ones, and an empty field never wins.
        """
        most = {row["code"]: row for row in self.answers()}
        saved = [*self.out.glob("marks-*.csv"), *more]
        paths = [path for path in (self.out / "marks.csv", *saved) if path.exists()]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime):
            for line, row in enumerate(rows_of(path), start=2):
                if not any(row.values()):
                    continue
                if "code" not in row or "points" not in row:
                    raise Unreadable(f"{path}: needs the columns code and points")
                where = f"{path}, line {line}"
                of = float(most.get(row["code"], {}).get("of") or number(
                    row.get("of", ""), 1e9, where) or 1e9)
                points = number(row["points"], of, where)
                mark = self.marks.setdefault(row["code"], {name: row.get(name, "")
                                                           for name in MARKS} | {"points": None})
                if points is not None:
                    mark["points"] = points
                if points is not None or row.get("criteria", "").strip():
                    mark["criteria"] = " ".join(re.findall(r"\d+", row.get("criteria", "")))
                    if points is None:  # a criterion is a point
                        met = [found for found in mark["criteria"].split() if found != "0"]
                        mark["points"] = number(str(len(met)), of, where)
                if row.get("comment", "").strip():
                    mark["comment"] = row["comment"].strip()
        self.adopt(most)
        for code, row in most.items():
            mark = self.marks.setdefault(code, {"points": None, "criteria": "", "comment": ""})
            mark |= {name: row[name] for name in ("code", "lab", "question", "of", "answer")}
        write(self.out / "marks.csv", table(MARKS, sorted(
            self.marks.values(), key=lambda row: (row["lab"], row["question"], row["code"]))))
        for path in saved:
            if path.exists() and path.parent == self.out:
                kept = self.results / "merged" / f"{time.time_ns()}-{path.name}"
                kept.parent.mkdir(exist_ok=True)
                path.rename(kept)

    def adopt(self, answers: dict[str, dict]):
        """Marks typed into the column `written` of grades.csv since it was written."""
        grades, before = self.out / "grades.csv", self.results / "written.json"
        if not grades.exists():
            return
        last = json.loads(before.read_text(encoding="utf8")) if before.exists() else {}
        for line, row in enumerate(rows_of(grades), start=2):
            name = "|".join(row.get(column, "") for column in ("folder", "file"))
            if not row.get("written", "").strip() or row["written"] == last.get(name, ""):
                continue
            found = [code for code, answer in answers.items()
                     if (answer["record"]["folder"], answer["record"]["file"])
                     == (row.get("folder"), row["file"])]
            if len(found) == 1:
                points = number(row["written"], float(answers[found[0]]["of"]),
                                f"{grades}, line {line}")
                mark = self.marks.setdefault(found[0], {"comment": ""})
                mark["points"] = points

    def mark(self, record: dict) -> tuple[float | None, str]:
        """Points and comment for the record's written answers; None while one is not marked."""
        own = [row for row in self.answers() if row["record"] is record]
        marks = [self.marks.get(row["code"], {}) for row in own]
        points = [0.0 if row["empty"] and mark.get("points") is None else mark.get("points")
                  for row, mark in zip(own, marks, strict=True)]
        comment = "\n".join(mark["comment"] for mark in marks if mark.get("comment"))
        return (None if None in points else sum(points)), comment

    def criteria(self, record: dict) -> dict[str, str]:
        """{question: numbers of the criteria that the answer meets}, of the answers judged so."""
        return {row["question"]: self.marks[row["code"]].get("criteria", "")
                for row in self.answers() if row["record"] is record and row["code"] in self.marks}

    def changed_after_marking(self, record: dict) -> bool:
        """Whether an older answer of this student has a mark that does not count any more."""
        return bool(record.get("older")) and any(
            self.marks.get(code, {}).get("points") is not None for code in record["older"])


def key(record: dict) -> tuple:
    return record["student"], record["id"], record["lab"]
