"""What the tests of recorded grids share: a grid's module, its recording, what its page tells."""

import ast
import contextlib
import functools
import importlib
import io
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def module(name: str):
    """recordings/claims/<name>.py."""
    return importlib.import_module(f"recordings.claims.{name}")


def recording(name: str) -> dict:
    return json.loads(module(name).OUT.read_text(encoding="utf8"))


def told(name: str, cells, recorded: dict, folder: Path, monkeypatch):
    """What these cells of the page print for a recording, and (title, description) of each chart:
    the value of a cell's last line, as a reader sees it.
    """
    (folder / "claims").mkdir(exist_ok=True)
    (folder / "claims" / f"{name}.json").write_text(json.dumps(recorded))
    monkeypatch.setenv("RESULTS_DIR", str(folder))
    monkeypatch.setenv("BOOK_SCALE", "smoke")
    page = json.loads((ROOT / "book" / f"{module(name).PAGE}.ipynb").read_text(encoding="utf8"))
    source = {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}
    names, text, charts = {}, io.StringIO(), []
    with contextlib.redirect_stdout(text):
        for cell in cells:
            lines, shown = ast.parse(source[cell]).body, None
            if isinstance(lines[-1], ast.Expr):
                *lines, last = lines
                shown = ast.Expression(last.value)
            exec(compile(ast.Module(lines, []), cell, "exec"), names)
            value = shown and eval(compile(shown, cell, "eval"), names)
            if hasattr(value, "to_dict"):
                chart = value.to_dict()
                charts.append((chart["title"], chart["description"]))
            elif hasattr(value, "_repr_html_"):  # a table
                print(value._repr_html_())
    return text.getvalue(), charts
