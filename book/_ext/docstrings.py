"""Show the library's docstrings in the API reference as they are written: plain text.

The docstrings use `single backticks` for code, "- " for lists, lines such as "x: (B, T, D)" for
arguments, and indentation for code. Sphinx would read them as reStructuredText, where |x| and *
mean something else. This hook turns them into reStructuredText that says the same.
"""

import re

from sphinx.application import Sphinx

CODE = re.compile(r"(``?[^`]+``?)")
ITEM = re.compile(r"- |[a-z_][\w, ]*: ")  # "- item" or "name, name: meaning"


def escape(text: str) -> str:
    """Text with code spans marked and every other special character made plain."""
    parts = CODE.split(text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part.strip('`')}``"
            if i + 1 < len(parts) and re.match(r"\w", parts[i + 1]):
                parts[i + 1] = "\\ " + parts[i + 1]
        else:
            parts[i] = re.sub(r"([\\*|_])", r"\\\1", part)
    return "".join(parts)


def paragraph(lines: list[str]) -> list[str]:
    """One paragraph of a docstring as reStructuredText."""
    if lines[0].startswith(" "):
        return ["::", "", *("    " + line for line in lines)]
    items: list[str] = []
    for line in lines:
        if ITEM.match(line) or not items:
            items.append(line)
        else:
            items[-1] += " " + line.strip()
    if len(items) == 1 and not items[0].startswith("- "):
        return [escape(items[0])]
    result = []
    if not ITEM.match(items[0]):
        result = [escape(items.pop(0)), ""]
    return result + ["- " + escape(item.removeprefix("- ")) for item in items]


def on_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    result: list[str] = []
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            result += [*paragraph(block), ""]
            block = []
    lines[:] = result


def setup(app: Sphinx) -> dict:
    app.connect("autodoc-process-docstring", on_docstring)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
