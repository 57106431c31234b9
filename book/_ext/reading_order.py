"""The reading order: which pages there are, which of them are chapters, and their numbers.

_toc.yml is the only list. A chapter is a listed notebook of book/ whose file begins with two
digits. Its number is its place among them; the digits only sort the folder.
"""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = re.compile(r"book/\d\d\w*")


def pages(root: Path = ROOT) -> list[str]:
    """Every page of _toc.yml in reading order, e.g. "book/03_masks", patterns written out."""

    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("file", "root"):
                    yield value
                elif key == "glob":
                    yield from sorted(
                        path.relative_to(root).with_suffix("").as_posix()
                        for path in root.glob(value)
                        if path.suffix in (".ipynb", ".md")
                    )
                else:
                    yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return list(walk(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf8"))))


def chapters(root: Path = ROOT) -> dict[str, int]:
    """The number of each chapter, from 1: {"book/01_why_attention": 1, ...}."""
    listed = [page for page in pages(root) if CHAPTER.fullmatch(page)]
    return {page: number for number, page in enumerate(listed, start=1)}


def number_of(page: str, numbers: dict[str, int]) -> int | None:
    """The number of a chapter, or of the chapter that a page of solutions belongs to."""
    return numbers.get(page.replace("book/solutions/", "book/"))


# What stands before the link of a numbered reference, and what may stand between two of them.
BEFORE = re.compile(r"(?:\b([Tt])he )?\b([Cc])(hapters?)\s+$")
BETWEEN = re.compile(r"(\s\([^()]*\))?(,|–|,?\s+and|,?\s+or|\s+to)\s*$")
LINK = re.compile(r"\[([^\]\[]*)\]\(((?:\.\./|book/)?\d\d\w*\.\w+)(?:#[^)\s]*)?\)")


def references(text: str) -> list[tuple[str, str]]:
    """(name, address) of each link of a Markdown text that is shown as a chapter's number."""
    found, end = [], None  # end: of the last such link
    for link in LINK.finditer(text):
        between = end is not None and BETWEEN.fullmatch(text[end : link.start()])
        if between or BEFORE.search(text[: link.start()]):
            found.append((link[1], link[2]))
            end = link.end()
    return found


def title(page: str, root: Path = ROOT) -> str:
    """The first heading of a page, as it is written."""
    path = root / f"{page}.ipynb"
    if path.exists():
        text = "".join(json.loads(path.read_text(encoding="utf8"))["cells"][0]["source"])
    else:
        text = (root / f"{page}.md").read_text(encoding="utf8")
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1].strip()


def name(page: str, root: Path = ROOT) -> str:
    """What other pages call a page: its title without what follows the colon."""
    return title(page, root).partition(":")[0]
