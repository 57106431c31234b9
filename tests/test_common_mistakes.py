"""Each common mistake that a page shows asserts, where it is shown, that it still fails.

The notebooks run with the tests, so a mistake that a change of the library mends stops its page.
"""

import json
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[1] / "book"
# Pages whose mistakes only print what they do. The list may only get shorter.
PRINT_ONLY = {
    "13_toy_tasks",
}
HEADING = "## Common mistakes"


def shown(path: Path) -> list[tuple[str, str]]:
    """(id, code) of the cells under the heading, up to the next one."""
    found, inside = [], False
    for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            headings = [line for line in source.splitlines() if line.startswith("## ")]
            inside = headings[-1] == HEADING if headings else inside
        elif inside:
            found.append((cell["id"], source))
    return found


PAGES = {path.stem: path for path in sorted(BOOK.glob("[0-9]*.ipynb")) if shown(path)}


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
    if name in PRINT_ONLY:
        assert silent(PAGES[name]), f"{name} asserts all of its mistakes: take it off the list."
    else:
        assert not silent(PAGES[name])


def test_the_cells_are_found():
    assert PRINT_ONLY <= PAGES.keys()
    assert sum(len(shown(path)) for name, path in PAGES.items() if name < "12") > 35
