"""The tables of book/course.md, made by course/plan.py from the plan, the chapters and the labs."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from course import plan  # noqa: E402

PAGE = "book/course"


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        app.env.note_reread()  # the chapters' minutes and the labs' points may have changed
        source[0] = plan.filled(source[0])


def setup(app: Sphinx) -> dict:
    app.connect("source-read", fill, priority=400)  # before the Markdown twin is kept
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
