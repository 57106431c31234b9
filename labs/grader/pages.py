"""Everything that people read, made from the records: tables, feedback, marking and class pages."""

import csv
import io
import json
import secrets
import zipfile
from collections import Counter
from pathlib import Path

import jinja2
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from .maths import line_with_maths, markdown_with_maths, text_with_maths
from .records import MARKS, Records, slug, table, write

GRADES = ["student", "lab", "file", "automatic", "automatic_of", "written", "written_of", "total",
          "total_of", "status", "note", "comment", "id", "folder"]
TASKS = ["student", "lab", "task", "test", "points", "of", "id"]


def template(name: str):
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(Path(__file__).parent))
    environment.filters |= {
        "python": lambda source: highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)),
        "points": lambda points: f"{points:g}",
        "markdown": markdown_with_maths,  # of masters only, never of what a student wrote
        "line": line_with_maths,
        "maths": text_with_maths,
    }
    return environment.get_template(name)


def write_all(records: Records, labs: dict, late_loss: float = 0) -> list[dict]:
    """All files for the teacher and the students, from what is known now; the graded notebooks.

    late_loss: percent of its points that a late notebook loses.
    """
    out, graded = records.out, []
    for record in records.graded.values():
        if record["lab"] not in labs:
            continue
        written, comment = records.mark(record)
        record = record | {"written": written, "comment": comment,
                           "criteria": records.criteria(record),
                           "written_of": float(record["written_of"])}
        record["total_of"] = record["automatic_of"] + record["written_of"]
        record["total"] = None if written is None else record["automatic"] + written
        if record["total"] is not None and record.get("late") and late_loss:
            record["total"] = round(record["total"] * (1 - late_loss / 100), 2)
            record["note"] += f"; {late_loss:g} % less for lateness"
        if records.changed_after_marking(record):
            record["note"] = "; ".join(filter(None, [
                record["note"], "the written answer changed after it had been marked"]))
        graded.append(record)
    graded.sort(key=lambda record: (record["student"].lower(), record["id"], record["lab"]))

    rows = graded + list(records.others.values())
    rows.sort(key=lambda row: (row["student"].lower(), row["lab"], row["folder"], row["file"]))
    names = [name for name in GRADES if name != "comment"]
    write(out / "results" / "written.json", json.dumps(
        {f"{row['folder']}|{row['file']}": f"{row['written']:g}" for row in graded
         if row["written"] is not None}))
    write(out / "grades.csv", table([*names, "comment"], rows))
    write(out / "tasks.csv", table(TASKS, [row for record in graded
                                           for row in task_rows(record, labs[record["lab"]])]))
    for row in records.others.values():
        if not row["note"].startswith("handed in more"):
            write(out / "feedback" / f"{slug(row['student'], row['id'], 'not-graded')}.html",
                  not_graded_page(row))
    for record in graded:
        page = feedback_page(record, labs[record["lab"]])
        write(out / "feedback" / page_name(record), page)
    marking_pages(records, labs)
    write(out / "class.html", template("class.html").render(
        labs=[class_of(name, lab, [record for record in graded if record["lab"] == name])
              for name, lab in labs.items() if any(one["lab"] == name for one in graded)]))
    uploads(out / "upload", graded, labs)
    waiting = sum(record["written"] is None for record in graded)
    print(f"Notebooks graded so far: {len(graded)}; written answers without points: {waiting}."
          + (f" Open {out / 'marking'}." if waiting else ""))
    return graded


def page_name(record: dict) -> str:
    return f"{slug(record['student'], record['id'], record['lab'])}.html"


def task_rows(record: dict, lab: dict) -> list[dict]:
    """One row for each graded cell, in the lab's order. Points of written answers stay empty."""
    rows = []
    for test, task in lab["task_of"].items():
        cell = record["graded"].get(test)
        if cell is None:  # the lab has changed since
            continue
        points = "" if cell["type"] == "markdown" else cell["points"]
        rows.append({"student": record["student"], "id": record["id"], "lab": record["lab"],
                     "task": task, "test": test, "points": points, "of": cell["of"]})
    return rows


def feedback_page(record: dict, lab: dict) -> str:
    """A page of the student's points, the failed tests and the notebook as it was run."""
    return template("feedback.html").render(submission=record, lab=lab,
                                            rows=task_rows(record, lab))


def not_graded_page(row: dict) -> str:
    """What a student is told if their file could not be graded."""
    return template("not_graded.html").render(row=row)


def marking_pages(records: Records, labs: dict):
    """For each written question all answers in a row, in an order that gives no names away."""
    answers = {}
    for row in records.answers():
        if row["lab"] in labs and row["question"] in labs[row["lab"]]["questions"]:
            answers.setdefault((row["lab"], row["question"]), []).append(row)
    for (name, question), rows in answers.items():
        rows = [row | {name: records.marks[row["code"]].get(name, "")
                       for name in ("points", "criteria", "comment")}
                for row in sorted(rows, key=lambda row: row["code"])]
        page = template("marking.html").render(
            lab=labs[name], name=name, question=question, columns=MARKS[:-1],
            text=labs[name]["questions"][question],
            rows=[row for row in rows if not row["empty"]],
            empty=sum(row["empty"] for row in rows), nonce=secrets.token_urlsafe(16))
        write(records.out / "marking" / f"{slug(name, question)}.html", page)


def class_of(name: str, lab: dict, graded: list[dict]) -> dict:
    """Of one lab: for each task the mean and the mistakes, by how many made them."""
    found = []
    titles = dict.fromkeys(lab["task_of"].values())
    for title in titles:
        tests = [test for test, task in lab["task_of"].items() if task == title]
        cells = [[record["graded"][test] for test in tests if test in record["graded"]]
                 for record in graded]
        of = sum(cell["of"] for cell in cells[0])
        criteria = []
        if any(cell["type"] == "markdown" for cell in cells[0]):
            criteria = criteria_met(tests[0], lab, graded)
            got = [record["written"] for record in graded if record["written"] is not None]
            mistakes = Counter("no answer" for row in cells for cell in row if cell["points"] == 0)
        else:
            got = [sum(cell["points"] for cell in row) for row in cells]
            mistakes = Counter(message for row in cells for message in dict.fromkeys(
                mistake(cell) for cell in row if cell["points"] < cell["of"]))
        found.append({"title": title, "of": of, "mean": sum(got) / len(got) if got else None,
                      "full": sum(points == of for points in got), "n": len(got),
                      "criteria": criteria, "mistakes": mistakes.most_common(8)})
    totals = sorted(record["total"] for record in graded if record["total"] is not None)
    return {"title": lab["title"], "n": len(graded), "tasks": found, "totals": totals,
            "automatic": sorted(record["automatic"] for record in graded)}


def criteria_met(question: str, lab: dict, graded: list[dict]) -> list[tuple[str, int, int]]:
    """Of each criterion of a written question: its text, how many met it, of how many judged."""
    judged = [record["criteria"].get(question) for record in graded]
    judged = [found.split() for found in judged if found]
    return [(text, sum(str(number) in found for found in judged), len(judged))
            for number, text in enumerate(lab["questions"][question]["criteria"], start=1)]


def mistake(cell: dict) -> str:
    """A failed test's message without what differs from student to student."""
    kind, _, message = cell.get("error", "").partition(": ")
    message = message.partition("\n")[0]
    message = message.partition(" (raised by your code")[0].partition(" [in the case")[0]
    if "NotImplementedError" in kind:
        return "not attempted"
    own = kind not in ("AssertionError", "Wrong")
    return f"{kind}: {message}"[:160] if own else message[:160] or "the test failed"


# -------------------------------------------------------------------------- for Canvas and Moodle


def plain_table(rows: list[list]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    return file.getvalue().encode("utf8")


def uploads(folder: Path, graded: list[dict], labs: dict):
    """Feedback in one archive a lab, named as the files were, and a table for Canvas.

    Moodle takes grades in its own worksheet only (sheets.py). Its file names hold
    `assignsubmission_file` and one number, Canvas's two numbers.
    """
    canvas, titles = {}, []
    for name, lab in labs.items():
        of_lab = [record for record in graded if record["lab"] == name]
        if not of_lab:
            continue
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for record in of_lab:
                path = Path(record["file"]).with_suffix(".html")
                file.writestr(str(path), feedback_page(record, lab))
        write(folder / f"feedback-{name}.zip", archive.getvalue())
        marked = [record for record in of_lab if record["id"] and record["total"] is not None]
        moodle = [record for record in marked if "assignsubmission" in record["file"]]
        if len(marked) > len(moodle):
            titles.append(lab["title"])
        for record in marked:
            if record not in moodle:
                canvas.setdefault((record["student"], record["id"]), {})
                canvas[record["student"], record["id"]][lab["title"]] = f"{record['total']:g}"
    if canvas:
        most = {lab["title"]: next((f"{record['total_of']:g}" for record in graded
                                    if record["lab"] == name), "") for name, lab in labs.items()}
        write(folder / "canvas.csv", plain_table(
            [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles],
             ["    Points Possible", "", "", "", "", *(most[title] for title in titles)]]
            + [[student, number, "", "", "", *(points.get(title, "") for title in titles)]
               for (student, number), points in sorted(canvas.items())]))
