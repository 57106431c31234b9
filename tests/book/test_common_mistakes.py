"""Each common mistake that a page shows asserts, where it is shown, that it still fails.

The notebooks run with the tests, so a mistake that a change of the library mends stops its page. A
page shows its mistakes under a heading, or a single one in a paragraph that begins in bold with
"A common mistake", above the cell that makes it.
"""

import json
import re
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
HEADING = re.compile(r"## (Common mistakes|A common mistake|A puzzle: five runs, four mistakes)$")
ALONE = re.compile(r"^\*\*A common mistake", re.MULTILINE)


def shown(path: Path) -> list[tuple[str, str]]:
    """(id, code) of the cells under the heading up to the next one, and of those below a mistake
    that stands alone."""
    found, inside, alone = [], False, False
    for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            headings = [line for line in source.splitlines() if line.startswith("## ")]
            inside = bool(HEADING.match(headings[-1])) if headings else inside
            alone = bool(ALONE.search(source))
        elif inside or alone:
            found.append((cell["id"], source))
            alone = False
    return found


PAGES = {path.stem: path for path in sorted(BOOK.glob("*.ipynb")) if shown(path)}


def silent(path: Path) -> list[str]:
    """The cells that neither assert nor show an error; one that only defines leads to the next."""
    cells = shown(path)
    return [
        name for i, (name, code) in enumerate(cells)
        if "assert" not in code and "except " not in code
        and ("print(" in code or i + 1 == len(cells))
    ]


@pytest.mark.parametrize("name", PAGES)
def test_every_common_mistake_asserts_that_it_fails(name):
    assert not silent(PAGES[name])


def test_the_cells_are_found():
    assert sum(len(shown(path)) for name, path in PAGES.items() if name < "12") > 35
    alone = {"17_evaluation", "18_looking_inside", "diffusion", "links_by_content"}
    assert alone | {"13_toy_tasks", "16_training_on_multi30k"} <= PAGES.keys()


def test_a_page_that_names_a_mistake_is_looked_at():
    named = re.compile(r"^(#+ .*|\*\*A )common mistake", re.MULTILINE | re.IGNORECASE)
    for path in BOOK.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf8"))["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        assert not named.search(text) or path.stem in PAGES, path.stem


def test_a_mistake_that_only_prints_is_found(tmp_path):
    page = tmp_path / "page.ipynb"
    cells = [
        {"cell_type": "markdown", "source": "Text.\n\n**A common mistake** is this."},
        {"cell_type": "code", "id": "a", "source": "print(1)"},
        {"cell_type": "code", "id": "b", "source": "print(2)"},
    ]
    page.write_text(json.dumps({"cells": cells}), encoding="utf8")
    assert silent(page) == ["a"]
    cells[1]["source"] += "\nassert True"
    page.write_text(json.dumps({"cells": cells}), encoding="utf8")
    assert silent(page) == []
