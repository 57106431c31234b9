"""The paper, mapped: where the book explains, shows, implements, tests and measures each part.

book/paper-map.yml lists the parts of "Attention Is All You Need" and says what each of them says.
The links are collected from tags where the things themselves stand:

    a Markdown cell tagged  paper:eq1           the text under its last heading explains equation 1
    a code cell tagged      paper:eq1           shows it; with a lib: tag beside it, implements it
    any cell tagged         paper-measured:...  measures what the paper reports
    any cell tagged         paper-later:...     shows what a later model does in its place
    a test marked           @pytest.mark.paper("eq1")

The line `<!-- paper -->` of a page gives way to the map. A tag that names no part, and a part that
lacks a link it needs, stop the build.
"""

import ast
import importlib
import inspect
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from reading_order import ROOT, name, pages
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MARK = "<!-- paper -->"
# What a part cannot do without. "nowhere" in its entry says why the book leaves it out.
NEEDED = {
    "section": ("explained",),
    "equation": ("explained", "implemented", "tested"),
    "table": ("explained", "measured"),
    "figure": ("explained", "shown"),
}
LABELS = {
    "explained": "Explained", "shown": "Shown", "implemented": "Lines", "tested": "Proved by",
    "measured": "Measured", "later": "Changed since",
}


@dataclass
class Part:
    """One section, equation, table or figure of the paper, and what the book has on it."""

    id: str
    kind: str
    title: str
    says: str
    departures: str = ""
    nowhere: str = ""
    links: dict[str, list[str]] = field(default_factory=lambda: {role: [] for role in LABELS})

    def add(self, role: str, link: str) -> None:
        if link not in self.links[role]:
            self.links[role].append(link)


def slug(title: str) -> str:
    """The anchor that MyST gives to a heading; mathematics leaves nothing behind."""
    words = re.sub(r"\$[^$]*\$", "", title.strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def headings(text: str) -> list[str]:
    """The headings of a Markdown cell."""
    return re.findall(r"^#{1,4} (.+)$", text, re.MULTILINE)


def of_library(tag: str, root: Path) -> str:
    """`lib:module.Name` as a link to the API page, with its line."""
    path = tag.removeprefix("lib:")
    module, _, definition = path.rpartition(".")
    found = getattr(importlib.import_module(f"transformer_lib.{module}"), definition)
    lines, line = inspect.getsourcelines(found)
    line += next(i for i, text in enumerate(lines) if text.startswith(("def ", "class ")))
    file = module.replace(".", "/")
    where = f"transformer_lib/{file}.py, line {line}"
    if definition.startswith("_"):
        return f"`{path}` ({where})"
    return f"{{py:obj}}`{path} <transformer_lib.{path}>` ({where})"


def of_cells(parts: dict[str, Part], page: str, cells: list[dict], root: Path) -> None:
    """Add what the tags of one notebook tell."""
    title, file = name(page), f"{page.removeprefix('book/')}.ipynb"
    heading = title
    for cell in cells:
        if cell["cell_type"] == "markdown":
            heading = ([heading] + headings("".join(cell["source"])))[-1]
        tags = cell["metadata"].get("tags", [])
        library = [tag for tag in tags if tag.startswith("lib:")]
        for tag in tags:
            kind, _, part = tag.partition(":")
            if kind not in ("paper", "paper-measured", "paper-later"):
                continue
            if part not in parts:
                raise ExtensionError(f"{file}: the tag {tag} names no part of book/paper-map.yml")
            anchor = "" if heading == title else f"#{slug(heading)}"
            link = f"[{heading}]({file}{anchor})" + (f" in *{title}*" if anchor else "")
            if kind != "paper":
                parts[part].add(kind.removeprefix("paper-"), link)
            elif cell["cell_type"] == "markdown":
                parts[part].add("explained", link)
            elif library:
                parts[part].add("implemented", of_library(library[0], root))
            else:
                parts[part].add("shown", link)


def of_tests(parts: dict[str, Part], path: Path) -> None:
    """Add the tests of one file that are marked."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.paper":
                for argument in mark.args:
                    if argument.value not in parts:
                        raise ExtensionError(
                            f"{path.name}: the mark {argument.value!r} of {node.name} names no part"
                        )
                    says = node.name.removeprefix("test_").replace("_", " ")
                    parts[argument.value].add("tested", f"{says} (`tests/{path.name}`)")


def collect(root: Path = ROOT) -> list[Part]:
    """Every part with its links. Raises ExtensionError for a wrong tag or a part left bare."""
    entries = yaml.safe_load((root / "book/paper-map.yml").read_text(encoding="utf8"))
    parts = {entry["id"]: Part(**entry) for entry in entries}
    for page in pages(root):
        path = root / f"{page}.ipynb"
        text = path.read_text(encoding="utf8") if path.exists() else ""
        if '"paper' in text:  # most pages have none, and reading JSON takes its time
            of_cells(parts, page, json.loads(text)["cells"], root)
    for path in sorted((root / "tests").rglob("test_*.py")):
        of_tests(parts, path)
    for part in parts.values():
        missing = [role for role in NEEDED[part.kind] if not part.links[role]]
        if missing and not part.nowhere:
            raise ExtensionError(f"the paper's {part.title}: nothing is tagged as {missing}")
    return list(parts.values())


def markdown(parts: list[Part]) -> str:
    """The map as Markdown."""
    lines = []
    for part in parts:
        lines += [f"{'##' if part.kind == 'section' else '###'} {part.title}", "", part.says, ""]
        for role, label in LABELS.items():
            if part.links[role]:
                lines += [label, ": " + "; ".join(part.links[role]), ""]
        if part.departures:
            lines += ["Elsewhere", f": {part.departures.strip()}", ""]
        if part.nowhere:
            lines += ["Not here", f": {part.nowhere.strip()}", ""]
    return "\n".join(lines)


def write_map(app: Sphinx, docname: str, source: list[str]) -> None:
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, markdown(collect()))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write_map)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
