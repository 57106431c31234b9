"""The family tree of models: the directive `family-tree`, from one data file.

Where it stands, the page gets the interactive figure (book/_static/live/figure_family.js) and the
same models as tables, one for each branch, for readers without JavaScript, for print and search.
"""

import html
import json
from pathlib import Path

from docutils import nodes
from measures import table
from reading_order import pages
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DATA = Path(__file__).resolve().parents[1] / "_static" / "live" / "family.json"
HEADER = ["Year", "Model", "What changed", "Parameters", "Data"]


def family() -> dict:
    """{"branches": {key: name}, "varies": {key: name}, "models": [row, ...]}, oldest first."""
    return json.loads(DATA.read_text(encoding="utf8"))


def address(source: str) -> str:
    """Where a source can be read: "arXiv:1706.03762" or an address."""
    return source.replace("arXiv:", "https://arxiv.org/abs/")


def lines_of(model: dict, built: list[str]) -> str:
    """The place in the book that shows the change, relative to book/; "" while it is not there."""
    page, anchor = model["page"], model["anchor"]
    return f"{page}.html#{anchor}" if page and f"book/{page}" in built else ""


def figure(data: dict, built: list[str]) -> str:
    """The mount of the figure. data-pages: to which pages its cards may link."""
    names = sorted({model["page"] for model in data["models"] if lines_of(model, built)})
    return (
        f'<figure class="live-figure live-wide" data-live="figure_family" data-first="family.json"'
        f' data-pages="{html.escape(" ".join(names))}"><div class="live-still"><p>With JavaScript, '
        "there's a tree here that you can search and filter. The tables below show the same models."
        "</p></div><figcaption>Each line leads from a model to one that changed it. Colours and "
        "letters show the branch.</figcaption></figure>"
    )


def row(model: dict, built: list[str]) -> list:
    """The cells of one model, the name with its parent, source and link."""
    lines = lines_of(model, built)
    name = nodes.inline("", "", nodes.strong("", model["name"]))
    name += nodes.Text(f", from {model['parent']}. " if model["parent"] else ". ")
    name += nodes.Text(f"{model['authors']}, ")
    source = model["source"] if model["source"].startswith("arXiv:") else "source"
    name += nodes.reference("", source, refuri=address(model["source"]), internal=False)
    changed = nodes.inline("", model["changed"])
    if lines:
        changed += nodes.Text(" ")
        changed += nodes.reference("", "See the lines", refuri=lines, internal=True)
    return [str(model["year"]), name, changed, model["parameters"] or "–", model["data"]]


class FamilyTree(SphinxDirective):
    """`{family-tree}` with no arguments."""

    def run(self):
        self.env.note_dependency(str(DATA))
        data, built = family(), pages()
        found = [nodes.raw("", figure(data, built), format="html")]
        for branch, title in data["branches"].items():
            models = [model for model in data["models"] if model["branch"] == branch]
            if not models:
                continue
            section = nodes.section("", nodes.title("", title), ids=[f"family-{branch}"])
            section["names"] = [f"family-{branch}"]
            listed = table(HEADER, [row(model, built) for model in models])
            listed["classes"] = ["colwidths-auto", "family-table"]
            section += listed
            found.append(section)
        return found


def setup(app: Sphinx) -> dict:
    app.add_directive("family-tree", FamilyTree)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
