"""A semester, simulated: who hands in what, what the teacher does, what arrives in the systems.

    python labs/tests/semester.py OUT [--students 40] [--labs lab1 lab2] [--kernels]

Students are perfect, partial, late, copied, looping, hostile and absent. Each lab is graded with an
interruption in the middle, marked as the marking page does it, and its grades go into a Moodle
worksheet (odd labs) or a Canvas gradebook (even labs), which is read back by a port of the system's
importer. Where Canvas calls a file late, it loses a fifth of its points. Without --kernels honest
answers are judged by quick.py, each notebook once, and what the real grader gives loops and cheats
is taken from its own tests (test_grade.py).
"""

import argparse
import copy
import csv
import io
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]

import nbformat  # noqa: E402
import quick  # noqa: E402
from attacks import FULL_MARKS  # noqa: E402
from conftest import UNCONTAINED, rows_of  # noqa: E402
from nbgrader.utils import is_grade, is_solution  # noqa: E402
from test_real_labs import MASTERS, WRONG, answered, groups, test_points  # noqa: E402
from test_sheets import ENGLISH, canvas, moodle  # noqa: E402

from labs.grader import copies, grade  # noqa: E402

KINDS = ["perfect", "partial", "late", "copied", "looping", "hostile", "absent"]
SHARES = [10, 16, 5, 2, 2, 2, 3]  # of 40
LATE_LOSS = 20  # percent, of what Canvas calls late
JUDGED: dict[tuple, dict] = {}  # what quick.py says of a notebook's cells


def people(number: int) -> list[tuple[str, str, str]]:
    """Kind, name and number of each student, in the shares of a class."""
    if number < len(KINDS):
        kinds = ["perfect", "late", "absent"][:number]
    else:
        counts = {kind: max(1, share * number // 40)
                  for kind, share in zip(KINDS, SHARES, strict=True)}
        counts["partial"] += number - sum(counts.values())
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
    return [(kind, f"Student {place:02}", f"{1000 + place}") for place, kind in enumerate(kinds)]


def answers_of(kind: str, name: str, rng: random.Random) -> dict[str, str]:
    """What a student of this kind changes in the master's answers to a lab."""
    tasks = list(WRONG[name])
    if kind in ("partial", "late", "copied"):
        chosen = rng.sample(tasks, rng.randint(1, len(tasks) - 1))
        return {task: rng.choice(WRONG[name][task])[1] for task in chosen}
    if kind == "looping":
        solved = {cell.metadata.nbgrader.grade_id: cell.source for cell in MASTERS[name].cells
                  if is_solution(cell) and not is_grade(cell)}
        return {tasks[1]: re.sub(r"(\n\s+)(### BEGIN SOLUTION)", r"\1while True: pass\1\2",
                                 solved[tasks[1]], count=1)}
    if kind == "hostile":
        found = {task: WRONG[name][task][0][1] for task in tasks}
        found[tasks[0]] += next(iter(FULL_MARKS.values()))
        return found
    return {}


def deserved(kind: str, name: str, answers: dict) -> float:
    """Automatic points, from the planned marks."""
    if kind == "hostile":
        return 0
    total = 0
    for task in groups(MASTERS[name]):
        full = [points for _, points in test_points(MASTERS[name], task)]
        planned = [marks for _, source, marks in WRONG[name][task] if source == answers.get(task)]
        total += sum(planned[0]) if planned else 0 if task in answers else sum(full)
    return total


def hand_in(folder: Path, name: str, students: list, system: str, seed: int) -> dict[str, float]:
    """Write everybody's file as the system names it; {number: automatic points deserved}."""
    rng, wanted, before = random.Random(f"{seed} {name}"), {}, None
    for kind, student, number in students:
        if kind == "absent":
            continue
        answers = answers_of(kind, name, rng)
        if kind == "copied":
            before, answers = answers, before or answers
        wanted[number] = deserved(kind, name, answers)
        notebook = answered(MASTERS[name], answers)
        notebook.metadata["kind"] = kind
        if system == "Moodle":
            path = folder / f"{student}_{number}_assignsubmission_file" / f"{name}.ipynb"
        else:
            late = "_LATE" if kind == "late" else ""
            path = folder / f"{student.replace(' ', '').lower()}{late}_{number}_77_{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    return wanted


def without_kernel(submission: dict, lab: dict, limits: dict) -> dict:
    """In place of grade.run_one: quick.py for honest answers, the tests' findings for the rest."""
    handed = copy.deepcopy(lab["cells"])
    source = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source
              for cell in submission["notebook"].cells}
    hostile = any("input_transformers_post" in text for text in source.values())
    loops = [task for task, text in source.items() if task and "while True: pass" in text]
    for cell in handed.cells:
        task = cell.metadata.get("nbgrader", {}).get("grade_id")
        if is_solution(cell):
            cell.source = "raise TimeoutError" if task in loops else source[task]
    key = tuple(cell.source for cell in handed.cells)
    if not hostile and key not in JUDGED:
        JUDGED[key] = quick.graded(handed)
    points = {} if hostile else JUDGED[key]
    cells = []
    for cell in handed.cells:
        if is_grade(cell):
            task, of = cell.metadata.nbgrader.grade_id, cell.metadata.nbgrader.points
            entry = {"id": task, "of": of, "given": False, "text": "", "images": [],
                     "type": cell.cell_type, "source": cell.source if is_solution(cell) else "",
                     "hidden": "HIDDEN TESTS" in cell.source}
            entry["points"] = None if is_solution(cell) else points.get(task, 0)
            cells.append(entry | ({} if entry["points"] in (of, None) else {"error": "not passed"}))
    notes = ["the notebook hides errors: no test can be trusted, so it gets no points"] * hostile
    notes += [f"{task}: CellTimeoutError: this cell ran longer than 30 s" for task in loops]
    return {"cells": cells, "notes": notes}


class Teacher:
    """Counts what a person does: commands, files moved, keys pressed, downloads and uploads."""

    def __init__(self, kernels: bool):
        self.did, self.seconds, self.kernels = Counter(), Counter(), kernels

    def command(self, what: str, call, *arguments):
        start = time.monotonic()
        try:
            return call(*arguments)
        finally:
            self.did["commands"] += 1
            self.seconds[what] += time.monotonic() - start

    def grade(self, folder: Path, out: Path, name: str, *more):
        flags = ["--quick", "--cell", "120", *UNCONTAINED] if self.kernels else ["--uncontained"]
        return self.command("grade", grade.main, [str(folder), "--out", str(out), "--jobs", "1",
                                                  "--late-loss", f"{LATE_LOSS}",
                                                  "--lab", name.partition("_")[0], *flags, *more])

    def mark(self, out: Path, name: str, rng: random.Random) -> dict[str, int]:
        """Enter criteria as the page does: a key each, Enter for the next. {code: points}"""
        rows, given = [row for row in rows_of(out / "marks.csv") if row["lab"] == name], {}
        for row in rows:
            if row["answer"]:
                met = [str(place) for place in range(1, 5) if rng.random() < 0.7]
                row["criteria"], row["points"] = " ".join(met) or "0", str(len(met))
                given[row["code"]] = len(met)
                self.did["keys"] += max(len(met), 1) + 1
        with open(out / f"marks-{name}.csv", "w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        self.did["clicks"] += 2  # open the page, Save
        self.did["files moved"] += 1
        return given


def interrupted(teacher: Teacher, folder: Path, out: Path, name: str, after: int):
    """Ctrl-C after some notebooks; the next call must not run these again."""
    real, ran = grade.run_one, []

    def stops(submission, lab, limits):
        if len(ran) == after:
            raise KeyboardInterrupt
        ran.append(submission["file"])
        return real(submission, lab, limits)

    grade.run_one = stops
    try:
        teacher.grade(folder, out, name)
    except KeyboardInterrupt:
        pass
    finally:
        grade.run_one = real
    return set(ran)


def sheet(system: str, name: str, students: list) -> bytes:
    file = io.StringIO(newline="")
    table = csv.writer(file)
    if system == "Moodle":
        table.writerow(ENGLISH.values())
        for _, student, number in students:
            table.writerow([f"Participant {number}", student, "Submitted for grading", "", "20.00",
                            "Yes", "Monday, 3 March 2025, 10:00 AM", "-", ""])
    else:
        title = grade.load_labs(grade.MASTERS)[name]["title"]
        table.writerow(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{title} (88)"])
        table.writerow(["    Points Possible", "", "", "", "", "20"])
        for _, student, number in students:
            table.writerow([student, number, "", f"u{number}", "A", ""])
    return file.getvalue().encode("utf8")


def one_lab(folder: Path, name: str, students: list, teacher: Teacher, seed: int = 0) -> list[dict]:
    """A lab from hand-in to grades that came home; a row for each student. Asserts on the way."""
    system = "Moodle" if int(name[3]) % 2 else "Canvas"
    handed, out = folder / name, folder / "graded"
    wanted = hand_in(handed, name, students, system, seed)
    teacher.did["clicks"] += 2  # download the files and the sheet
    first = interrupted(teacher, handed, out, name, len(wanted) // 2)
    again, real = [], grade.run_one
    grade.run_one = lambda submission, lab, limits: again.append(submission["file"]) or real(
        submission, lab, limits)
    assert teacher.grade(handed, out, name) == 0
    grade.run_one = real
    assert not first & set(again) and len(first) + len(again) == len(wanted), "resumed"
    given = teacher.mark(out, name, random.Random(f"marks {seed} {name}"))
    path = folder / f"{system}-{name}.csv"
    path.write_bytes(sheet(system, name, students))
    assert teacher.command("marks", grade.main, [
        "--out", str(out), "--sheet", str(path), "--late-loss", f"{LATE_LOSS}",
        "--lab", name.partition("_")[0]]) == 0
    teacher.did["clicks"] += 2  # upload the sheet and the archive
    assert given, "something was marked"

    came = (out / "upload" / path.name).read_bytes()
    if system == "Moodle":
        home = {str(number): points for number, (points, _) in moodle(came, ENGLISH, "20").items()}
    else:
        home = {number: float(points) for (number, _), points in canvas(came).items()}
    rows = [row for row in rows_of(out / "grades.csv") if row["lab"] == name]
    graded = {row["id"]: row for row in rows}
    assert set(graded) == set(wanted) == set(home), "the absent have no grade, all others have one"
    table = []
    for kind, student, number in students:
        if number in graded:
            row = graded[number]
            assert float(row["automatic"]) == wanted[number], (kind, student, row["note"])
            kept = 1 - LATE_LOSS / 100 * (kind == "late" and system == "Canvas")
            total = (float(row["automatic"]) + float(row["written"])) * kept
            assert round(total, 2) == float(row["total"]) == home[number], "what came home"
            table.append({"kind": kind, "lab": name, "automatic": wanted[number],
                          "total": home[number], "note": row["note"]})
    return table


def simulate(folder: Path, number: int, labs: list[str], kernels: bool) -> tuple[list, Teacher]:
    names = [name for name in MASTERS if name.partition("_")[0] in labs]
    students, teacher, rows = people(number), Teacher(kernels), []
    real = grade.run_one
    if not kernels:
        grade.run_one = without_kernel
    try:
        for name in names:
            rows += one_lab(folder, name, students, teacher)
            if any(kind == "copied" for kind, _, _ in students):
                teacher.command("copies", copies.main, [str(folder / name)])
    finally:
        grade.run_one = real
    return rows, teacher


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=40)
    parser.add_argument("--labs", nargs="*", default=[name.partition("_")[0] for name in MASTERS])
    parser.add_argument("--kernels", action="store_true", help="run every notebook for real")
    options = parser.parse_args()
    start = time.monotonic()
    rows, teacher = simulate(options.out, options.students, options.labs, options.kernels)
    print("\n| students | hand-ins | points by tests, mean | total, mean | notes |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        if own:
            mean = [sum(row[key] for row in own) / len(own) for key in ("automatic", "total")]
            noted = sum(bool(row["note"]) for row in own)
            print(f"| {kind} | {len(own)} | {mean[0]:.1f} of 16 | {mean[1]:.1f} of 20 | {noted} |")
    print(f"\n{options.students} students, {len(options.labs)} labs: {dict(teacher.did)}; "
          f"seconds in commands {({key: round(value) for key, value in teacher.seconds.items()})}; "
          f"{time.monotonic() - start:.0f} s in all")


if __name__ == "__main__":
    main()
