"""Make the students' notebooks from the masters of the labs: `make labs`.

A master, labs/labN_*.ipynb, holds the answers, the hidden tests and the rubric of the written
question. nbgrader takes them out, and what remains is book/labs/labN_*.ipynb. Masters and student
notebooks are written in the form of `make sync`, so that git shows only what changed.

    python -m labs.grader.masters            write what differs; exit with 1 if anything did
    python -m labs.grader.masters --check    write nothing; name what differs and exit with 1
    python -m labs.grader.masters --seed word    a variant of each lab into --out
    python -m labs.grader.masters --seed word --sheet worksheet.csv    one for each person
"""

import argparse
import json
import re
import sys
from pathlib import Path

import nbformat
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from nbgrader.utils import is_grade, is_solution

ROOT = Path(__file__).resolve().parents[2]
MASTERS = ROOT / "labs"
STUDENTS = ROOT / "book" / "labs"
AUTOMATIC, WRITTEN = 16, 4  # points of every lab
ANSWER = re.compile(r"# Task \d+: \S.*")  # the first line of every answer
# What `nbgrader generate_assignment` does, less the steps that need its database.
STEPS = [
    LockCells, ClearSolutions, ClearOutput, CheckCellMetadata,
    ClearHiddenTests, ClearMarkScheme, ComputeChecksums, CheckCellMetadata,
]


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def text_of(notebook: dict, stem: str) -> str:
    """A notebook as it should be on disk."""
    from tools.sync import synced

    return json.dumps(synced(notebook, stem), indent=1, ensure_ascii=False) + "\n"


def student_version(master: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without answers, hidden tests and rubric. The master stays as it is."""
    notebook = nbformat.from_dict(master)
    for step in STEPS:
        notebook, _ = step().preprocess(notebook, {})
    return notebook


def first_line(cell) -> str:
    return cell.source.partition("\n")[0].strip()


def tasks(master: nbformat.NotebookNode) -> dict[str, list]:
    """The graded cells of each task. A test belongs to the answer before it.

    A task is named by the first line of its answer. Written questions are a task of their own.
    """
    found, title = {}, None
    for cell in master.cells:
        if is_grade(cell) and is_solution(cell):
            found.setdefault("Written question", []).append(cell)
        elif is_solution(cell):
            title = first_line(cell).removeprefix("# ")
            found[title] = []
        elif is_grade(cell):
            found[title].append(cell)
    return found


def problems(master: nbformat.NotebookNode) -> list[str]:
    """What is wrong with a master, one line each."""
    lines = []
    points = {True: 0, False: 0}
    titles = [first_line(cell) for cell in master.cells
              if is_solution(cell) and not is_grade(cell)]
    for title in titles:
        if not ANSWER.fullmatch(title) or titles.count(title) > 1:
            lines.append(f"an answer must begin with its own line '# Task N: name', not {title!r}")
    for old, new in zip(master.cells, student_version(master).cells, strict=True):
        name = old.metadata.get("nbgrader", {}).get("grade_id", "cell without id")
        if is_grade(old):
            points[is_solution(old)] += old.metadata.nbgrader.points
        if "HIDDEN TESTS" in old.source and not all(
            line.startswith("#") for line in new.source.strip().splitlines()
        ):
            lines.append(f"{name}: only a comment may be outside the hidden tests")
        if is_solution(old):
            stub = "YOUR ANSWER HERE" if is_grade(old) else "raise NotImplementedError()"
            if stub not in new.source or new.source == old.source:
                lines.append(f"{name}: has no answer, or it stays in the student's notebook")
        if re.search("(BEGIN|END) (SOLUTION|HIDDEN)|Rubric", new.source):
            lines.append(f"{name}: a mark or the rubric stays in the student's notebook")
    if (points[False], points[True]) != (AUTOMATIC, WRITTEN):
        lines.append(f"{points[False]} automatic and {points[True]} written points, "
                     f"expected {AUTOMATIC} and {WRITTEN}")
    for title, cells in tasks(master).items():
        if not cells:
            lines.append(f"{title}: no test follows the answer")
    return lines


def write_variants(seed: str, out: Path, sheet: Path | None) -> int:
    """The students' notebooks of the seed's variants; with a sheet a folder for each person."""
    from .records import slug
    from .sheets import people
    from .variants import personal, variant

    folders = {out: seed}
    if sheet:
        folders = {out / slug(name, number): personal(seed, number)
                   for name, number in people(sheet)}
    for folder, own in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(MASTERS.glob("lab*.ipynb")):
            made = student_version(variant(read(path), path.stem, own))
            (folder / path.name).write_text(text_of(made, path.stem), encoding="utf8")
    print(f"Variants of each lab: {len(folders)}, in {out}. Grade them with the same seed.")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if stale")
    parser.add_argument("--seed", help="a word that nobody knows: make variants of the labs")
    parser.add_argument("--out", type=Path, default=Path("variants"), help="default: variants")
    parser.add_argument("--sheet", type=Path, help="Moodle's worksheet or Canvas's gradebook: a "
                        "variant for each person in it")
    options = parser.parse_args(arguments)
    if options.seed:
        return write_variants(options.seed, options.out, options.sheet)
    check = options.check
    wrong, wanted = [], {}
    for path in sorted(MASTERS.glob("lab*.ipynb")):
        master = read(path)
        try:
            wrong += [f"{path.relative_to(ROOT)}: {line}" for line in problems(master)]
            wanted[path] = text_of(master, path.stem)
            wanted[STUDENTS / path.name] = text_of(student_version(master), path.stem)
        except Exception as error:  # nbgrader's: unbalanced marks, ids used twice
            wrong.append(f"{path.relative_to(ROOT)}: {error}")
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf8") != text:
            wrong.append(f"{path.relative_to(ROOT)}: " + (
                "stale; run `make labs`" if check else "was stale, written now; commit it"))
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf8")
    for path in set(STUDENTS.glob("lab*.ipynb")) - {STUDENTS / old.name for old in wanted}:
        wrong.append(f"{path.relative_to(ROOT)}: has no master in labs/; delete it")
    print("\n".join(wrong) or f"{len(wanted) // 2} labs, nothing stale")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
