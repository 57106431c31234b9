"""Makes a folder OUT with written answers to mark, without running anything.

    python labs/tests/marking_page.py OUT [lab] [answer ...]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nbgrader.utils import is_grade, is_solution  # noqa: E402

from labs.grader import grade, pages  # noqa: E402
from labs.grader.records import Records  # noqa: E402

ANSWERS = ["The rows are `nan`, since $0 \\times \\mathrm{nan}$ is `nan`.", "It is a bug.\n\nYes.",
           "<script>document.title = 'hacked'</script> $\\text{<script>1</script>}$ $\\frac{$"]


def make(out: Path, lab: str = "lab2_masks_and_heads", texts: list[str] = ANSWERS):
    labs = grade.load_labs(grade.MASTERS)
    records = Records(out)
    for number, text in enumerate(texts):
        graded = {}
        for cell in labs[lab]["cells"].cells:
            if is_grade(cell):
                of = cell.metadata.nbgrader.points
                written = is_solution(cell)
                graded[cell.metadata.nbgrader.grade_id] = {
                    "type": "markdown" if written else "code", "of": of, "given": False,
                    "id": cell.metadata.nbgrader.grade_id, "source": text if written else "",
                    "points": None if written else of, "text": "", "images": []}
        records.keep({
            "student": f"student {number}", "id": str(1000 + number), "lab": lab, "folder": "in",
            "file": f"s_{number}_9_{lab}.ipynb", "status": "graded", "note": "", "late": False,
            "time": [0, 0, ""], "automatic": 16, "automatic_of": 16, "written_of": 4,
            "graded": graded, "result": {"cells": list(graded.values()), "notes": []}})
    records.read_marks()
    pages.write_all(records, labs)


if __name__ == "__main__":
    folder, *more = sys.argv[1:]
    make(Path(folder), *more[:1], *([more[1:]] if more[1:] else []))
