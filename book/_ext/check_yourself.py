"""'Check yourself' at the end of each chapter: three questions of the bank (course/page.py).

No notebook holds them. They're put into the page when it's built, before its sources, as HTML that
can be read without JavaScript; the script and the style are loaded only where there are some. An
EPUB gets plain lists.
"""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from course import bank, page  # noqa: E402

TITLE = "Check yourself"
BEFORE = ("Sources",)  # a section that stays the last one
FORMS = {"epub": page.printed}


def questions(docname: str, form=page.as_html) -> str:
    """The questions of a page of the book; empty where it's no chapter."""
    folder, _, name = docname.rpartition("/")
    return form(name) if folder == "book" and name[:2].isdigit() else ""


def add_section(app: Sphinx, doctree: nodes.document) -> None:
    """Put the section into the page, before Sphinx collects its headings."""
    found = questions(app.env.docname, FORMS.get(app.builder.name, page.as_html))
    top = next(iter(doctree.findall(nodes.section)), None)
    if not found or top is None:
        return
    section = nodes.section("", nodes.title("", TITLE), nodes.raw("", found, format="html"),
                            ids=["check-yourself"], names=["check yourself"])
    places = [i for i, node in enumerate(top.children)
              if isinstance(node, nodes.section) and node[0].astext() in BEFORE]
    top.insert(places[0] if places else len(top.children), section)


def add_assets(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if doctree is not None and questions(pagename):
        app.add_css_file(page.ASSETS[0])
        app.add_js_file(page.ASSETS[1], loading_method="defer")


def note_bank(app: Sphinx, docname: str, source: list[str]) -> None:
    """A page is built again when the questions have changed."""
    if questions(docname):
        for path in bank.FOLDER.glob("*.yml"):
            app.env.note_dependency(str(path))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", note_bank)
    app.connect("doctree-read", add_section, priority=300)
    app.connect("html-page-context", add_assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
