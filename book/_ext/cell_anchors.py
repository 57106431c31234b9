"""A place to link to at each cell that prints a definition of the library.

The cell tagged `lib:beyond.sparse.local` of a chapter gets the anchor `lib-beyond-sparse-local`.
Headings have theirs already, so that `anchors` lists all that another page may point to. Where such
a cell is folded, its line names the definition.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]


def library_tags(metadata: dict) -> list[str]:
    return [tag for tag in metadata.get("tags", []) if tag.startswith("lib:")]


def add_anchors(app: Sphinx, doctree: nodes.document) -> None:
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            tags = library_tags(cell.get("cell_metadata", {}))
            cell["ids"] += map(nodes.make_id, tags)
            if tags and cell.get("hide_mode"):  # the folded line says what is behind it
                name = tags[0].removeprefix("lib:")
                cell["prompt_show"], cell["prompt_hide"] = f"Show {name}", f"Hide {name}"
                cell["classes"].append("library-cell")


def anchors(page: str) -> set[str]:
    """Anchors of the headings and library cells of a notebook, e.g. of "03_masks"."""
    cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    found = re.findall(r"^#{2,4} (.+)$", "\n\n".join(texts), re.MULTILINE)
    found += [tag for cell in cells for tag in library_tags(cell["metadata"])]
    return set(map(nodes.make_id, found))


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", add_anchors)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
