"""A book of a few pages with all the settings and extensions of this one, built in seconds."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
BORROWED = ["book/_ext", "book/_static", "book/_templates", "book/_extra", "images",
            "book/references.bib"]
CHART = """
import altair as alt

alt.Chart(alt.Data(values=[{"x": 1, "y": 2}, {"x": 2, "y": 5}])).mark_line().encode(
    x="x:Q", y="y:Q"
).properties(title="A line that rises", description="A line from 2 up to 5.")
"""
WRAPPED = "whose title is so long that no line of a printed page holds all of its words"
# A chapter with a formula, a chart, printed words, a table and a link to another page.
CHAPTER = [
    ("markdown", "# Masks\n\nA **mask** says who may attend: $\\sqrt{d_k} < \\infty$.\n\n"
                 "$$\\mathrm{softmax}\\left(\\frac{QK^T}{\\sqrt{d_k}}\\right)V$$"),
    ("code", CHART),
    ("markdown", f"## A second section, {WRAPPED}\n\nSee [Notation](notation.md) & the rest."),
    ("code", "print('1 < 2 & 3')"),
]
INTRO = """# Attention, Step by Step

A small book with a drawing.

```{raw} html
:file: ../images/hero.svg
```
"""
NOTATION = """# Notation

One letter keeps one meaning. Chapter [Masks](03_masks.ipynb) uses $B$ and $T$.

| letter | meaning |
|---|---|
| $B$ | sentences in a batch |
| $T$ | tokens |
"""


def notebook(cells) -> dict:
    made = []
    for number, (kind, source) in enumerate(cells):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
        made.append(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def make(folder: Path, base: str = "") -> Path:
    """Write the book's sources into `folder`; base: the site's address."""
    for name in BORROWED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / name)
    config = (ROOT / "_config.yml").read_text(encoding="utf8")
    config = re.sub(r'baseurl: "[^"]*"', f'baseurl: "{base}"', config)
    (folder / "_config.yml").write_text(config, encoding="utf8")
    contents = {"format": "jb-book", "root": "book/intro", "parts": [
        {"caption": "I", "chapters": [{"file": "book/notation"}, {"file": "book/03_masks"}]},
        {"caption": "Back matter", "chapters": [{"file": "book/errata"}]},
    ]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents, sort_keys=False), encoding="utf8")
    book = folder / "book"
    (book / "intro.md").write_text(INTRO, encoding="utf8")
    (book / "notation.md").write_text(NOTATION, encoding="utf8")
    (book / "03_masks.ipynb").write_text(json.dumps(notebook(CHAPTER)), encoding="utf8")
    shutil.copy(ROOT / "book" / "errata.md", book)
    return folder


def build(folder: Path) -> Path:
    """Execute the notebook and build the site; returns its folder."""
    command = [sys.executable, "-m", "jupyter_book.cli.main", "build", str(folder), "--all"]
    code = "import sys; from jupyter_book.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "build", str(folder), "--all"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "_build" / "html"
