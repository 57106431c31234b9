"""A place to link to at each cell that prints a definition of the library.

The cell tagged `lib:beyond.sparse.local` of a chapter gets the anchor `lib-beyond-sparse-local`.
Headings have theirs already, so that `anchors` lists all that another page may point to. Where such
a cell is folded, its line names the definition, and folded cells in a row share one line.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

NAMED = 4  # definitions that the line of a group names, at most
ROOT = Path(__file__).resolve().parents[2]


def library_tags(metadata: dict) -> list[str]:
    return [tag for tag in metadata.get("tags", []) if tag.startswith("lib:")]


def add_anchors(app: Sphinx, doctree: nodes.document) -> None:
    taken = set()  # `Reader` and `reader` would share an anchor: it leads to the first
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            tags = library_tags(cell.get("cell_metadata", {}))
            cell["ids"] += [one for one in map(nodes.make_id, tags) if one not in taken]
            taken.update(cell["ids"])
            if tags and cell.get("hide_mode"):  # the folded line says what is behind it
                name = tags[0].removeprefix("lib:")
                cell["prompt_show"], cell["prompt_hide"] = f"Show {name}", f"Hide {name}"
                cell["classes"].append("library-cell")
    for cells in folded_in_a_row(doctree):
        fold_together(cells)


def folded_in_a_row(doctree: nodes.document) -> list[list[nodes.container]]:
    """The folded library cells that have nothing between them, where there are two or more."""
    rows = []
    for cell in doctree.findall(nodes.container):
        if "library-cell" in cell["classes"]:
            if rows and rows[-1][-1].next_node(descend=False, siblings=True) is cell:
                rows[-1].append(cell)
            else:
                rows.append([cell])
    return [row for row in rows if len(row) > 1]


def names_of(full: list[str]) -> str:
    """"a.b.c" and "a.b.d" as "a.b: c, d"; of many, the first three and how many more there are."""
    modules = {name.rpartition(".")[0] for name in full}
    if len(modules) == 1:
        (module,) = modules
        heading, names = f"{module}: ", [name.rpartition(".")[2] for name in full]
    else:
        heading, names = "", full
    if len(names) > NAMED:
        return f"{heading}{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} more"
    return heading + ", ".join(names)


def fold_together(cells: list[nodes.container]) -> None:
    """Put the cells behind one line. It has their anchors: a link leads to the closed line."""
    tags = [library_tags(cell["cell_metadata"])[0] for cell in cells]
    names = names_of([tag.removeprefix("lib:") for tag in tags])
    group = nodes.container(classes=["cell", "library-cell"])
    fold = HideCodeCellNode(prompt_show=f"Show {names}", prompt_hide=f"Hide {names}")
    fold["classes"].append("above-input")
    parent = cells[0].parent
    parent.insert(parent.index(cells[0]), group)
    for cell in cells:
        parent.remove(cell)
        group["ids"] += cell["ids"]
        cell["ids"], cell["hide_mode"] = [], None
        cell["classes"].remove("library-cell")
        fold += cell
    group += fold


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
