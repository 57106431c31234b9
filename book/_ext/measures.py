"""The table of chapters with their lengths, times and weights: the directive `chapter-table`.

Words and minutes to read are counted (tools/lengths.py), without the exercises, whose minutes are
those that a chapter states at its top. The seconds are those
that its notebook took when this site was built, the weight is that of the page that was written.
"""

import gzip
import re
import sys
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from reading_order import chapters
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).parents[2]))
from tools import lengths  # noqa: E402

STATED = re.compile(r"\*\*Time\*\* (\d+) minutes to read.*?, (\d+) more for the exercises")
HEADER = ["Chapter", "Words", "Reading, min", "Exercises, min", "Run, s", "Page, kB"]
WEIGHT = re.compile(r"weight-of:(\S+?):")


class ChapterTable(nodes.General, nodes.Element):
    """Stands for the table until all notebooks have run."""


class ChapterTableDirective(SphinxDirective):
    """`{chapter-table}` with no arguments."""

    def run(self):
        self.env.note_reread()  # the times differ in every build
        return [ChapterTable()]


class FillChapterTable(SphinxPostTransform):
    """Write the table, once the build knows how long each notebook took."""

    default_priority = 8  # before references are resolved

    def run(self, **_):
        for node in list(self.document.findall(ChapterTable)):
            node.replace_self(chapter_table(self.env))


def chapter_table(env) -> nodes.table:
    """One row for each chapter in reading order, and a row of sums."""
    measured = NbMetadataCollector.get_doc_data(env)
    rows, sums = [], [0, 0, 0, 0.0]
    for docname in filter(env.titles.__contains__, chapters()):  # `make page` builds one page only
        cells = lengths.read_cells(Path(env.doc2path(docname)))
        reading, exercises = map(int, STATED.search(cells[0]["source"]).groups())
        words = round(lengths.words(cells), -2)
        seconds = (measured[docname].get("exec_data") or {}).get("runtime")  # None: was not run
        stated = (words, reading, exercises, seconds or 0)
        sums = [total + x for total, x in zip(sums, stated, strict=True)]
        link = pending_xref(
            "", nodes.inline(text=env.titles[docname].astext()), refdomain="std", reftype="doc",
            reftarget="/" + docname, refdoc=env.docname, refexplicit=True, refwarn=True,
        )
        run = "–" if seconds is None else f"{seconds:.0f}"
        numbers = [f"{words:,}", str(reading), str(exercises), run]
        rows.append([link, *numbers, f"weight-of:{docname}:"])
    rows.append(["All", *[f"{total:,.0f}" for total in sums], ""])
    return table(HEADER, rows)


def table(header: list[str], rows: list[list]) -> nodes.table:
    """A docutils table of strings and nodes."""
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=1) for _ in header]

    def line(cells):
        wrapped = [x if isinstance(x, nodes.Node) else nodes.Text(x) for x in cells]
        return nodes.row("", *[nodes.entry("", nodes.paragraph("", "", x)) for x in wrapped])

    group += nodes.thead("", line(header))
    group += nodes.tbody("", *map(line, rows))
    return nodes.table("", group, classes=["colwidths-auto", "chapter-table"])


def fill_weights(app: Sphinx, exception) -> None:
    """Put in what each page weighs, compressed as a server sends it, now that all are written."""
    if exception or app.builder.name != "html":
        return

    def weight(match: re.Match) -> str:
        page = Path(app.outdir) / f"{match[1]}.html"
        return f"{len(gzip.compress(page.read_bytes())) / 1000:.0f}"

    for page in Path(app.outdir, "book").glob("*.html"):
        before = page.read_text(encoding="utf8")
        after = WEIGHT.sub(weight, before)
        if after != before:
            page.write_text(after, encoding="utf8")


def setup(app: Sphinx) -> dict:
    app.add_node(ChapterTable)
    app.add_directive("chapter-table", ChapterTableDirective)
    app.add_post_transform(FillChapterTable)
    app.connect("build-finished", fill_weights)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
