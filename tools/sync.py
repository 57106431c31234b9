"""Keep the notebooks in step with the library: `make sync`.

For every notebook under book/ and every lab master under labs/ this
- writes the setup cell, where the first code cell has the tag `setup`;
- writes the library's own source into each cell tagged `lib:<module>.<Name>`
  (a function, a class, Class.method, or a constant);
- writes how many minutes a page takes to read, where it states a **Time** (tools/lengths.py);
- removes outputs, execution counts and editor metadata, and gives each cell a stable id.

    python -m tools.sync                  write all notebooks
    python -m tools.sync book/03*.ipynb   write these
    python -m tools.sync --check          write nothing; name what differs and exit with 1
"""

import argparse
import ast
import importlib
import importlib.util
import inspect
import json
import sys
import textwrap
from pathlib import Path

from tools import lengths
from tools.setup_cell import ROOT, setup_cell

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_NOTEBOOK_METADATA = ("mystnb", "execution")
KEPT_CELL_METADATA = ("tags", "mystnb", "nbgrader", "deletable", "editable")


def find_notebooks() -> list[Path]:
    """Every notebook of the book, in reading order of their paths."""
    return sorted(
        path for path in (ROOT / "book").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
    )


def find_masters() -> list[Path]:
    """The masters of the labs. The students' notebooks in book/labs come from them."""
    return sorted((ROOT / "labs").glob("*.ipynb"))


def library_source(name: str) -> str:
    """Source of transformer_lib's object `name`, e.g. "attention.MultiHeadAttention.forward" or
    "models.transformer.Transformer"."""
    parts, module_name = name.split("."), "transformer_lib"
    while parts and importlib.util.find_spec(f"{module_name}.{parts[0]}"):
        module_name += f".{parts.pop(0)}"
        if not hasattr(importlib.import_module(module_name), "__path__"):
            break  # a module, not a package: what follows are its objects
    if not parts:
        raise ValueError(f"lib:{name} names no object; expected lib:<module>.<Name>")
    found = importlib.import_module(module_name)
    for attribute in parts:
        if not hasattr(found, attribute):
            raise ValueError(f"lib:{name}: {module_name} has no {attribute!r}")
        found = getattr(found, attribute)
    if inspect.isroutine(found) or inspect.isclass(found):
        return textwrap.dedent(inspect.getsource(found)).rstrip("\n")
    return constant_source(importlib.import_module(module_name), parts[-1])


def constant_source(module, name: str) -> str:
    """The statement that assigns a constant, with what stands behind it on its last line."""
    text = inspect.getsource(module)
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(
            isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id == name
            for part in ast.walk(node)
        ):
            return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
    raise ValueError(f"{module.__name__} assigns no {name!r}; tag a function, class or constant")


def kept(metadata: dict, keys: tuple) -> dict:
    """The part of a metadata dictionary that belongs in the repository."""
    return {key: metadata[key] for key in keys if key in metadata}


def synced(notebook: dict, stem: str) -> dict:
    """The notebook as it should be on disk. `stem` is used for ids of cells that have none."""
    code_cells_seen = 0
    ids = set()
    cells = []
    for number, old in enumerate(notebook["cells"]):
        metadata = old.get("metadata", {})
        tags = metadata.get("tags", [])
        source = "".join(old["source"])
        if old["cell_type"] == "code":
            code_cells_seen += 1
            if "setup" in tags and code_cells_seen == 1:
                source = setup_cell()
                tags = list(dict.fromkeys([*tags, "remove-cell"]))  # hidden on the site
            for tag in tags:
                if tag.startswith("lib:"):
                    source = library_source(tag.removeprefix("lib:"))
        cell_id = old.get("id")
        if not cell_id or cell_id in ids:
            cell_id = f"{stem[:40]}-{number:03d}"
            while cell_id in ids:
                cell_id += "x"
        ids.add(cell_id)
        cell = {
            "cell_type": old["cell_type"],
            "id": cell_id,
            "metadata": kept(metadata | ({"tags": tags} if tags else {}), KEPT_CELL_METADATA),
            "source": source.splitlines(keepends=True),
        }
        if old["cell_type"] == "code":
            cell["execution_count"] = None
            cell["outputs"] = []
        cells.append(dict(sorted(cell.items())))
    minutes = lengths.reading_minutes(list(map(lengths.plain_cell, cells)))
    for cell in cells:
        if cell["cell_type"] == "markdown":
            stated = lengths.STATED.sub(str(minutes), "".join(cell["source"]))
            cell["source"] = stated.splitlines(keepends=True)
    metadata = KERNEL | kept(notebook["metadata"], KEPT_NOTEBOOK_METADATA)
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def differences(before: dict, after: dict) -> list[str]:
    """One line for each thing that `make sync` would change."""
    lines = []
    for number, (old, new) in enumerate(zip(before["cells"], after["cells"], strict=True)):
        if "".join(old["source"]) != "".join(new["source"]):
            lines.append(f"cell {number} ({', '.join(old['metadata'].get('tags', []))}): source")
        elif old.get("outputs") or old.get("execution_count"):
            lines.append(f"cell {number}: outputs")
        elif old != new:
            lines.append(f"cell {number}: metadata or id")
    if not lines and before != after:
        lines.append("notebook metadata")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of them")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if stale")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    problems = 0
    for path in options.notebooks or find_notebooks() + find_masters():
        text = path.read_text(encoding="utf8")
        before = json.loads(text)
        try:
            after = synced(before, path.stem)
        except (ImportError, ValueError) as error:
            print(f"{path}: {error}")
            problems += 1
            continue
        new_text = json.dumps(after, indent=1, ensure_ascii=False) + "\n"
        if new_text == text:
            continue
        changes = differences(before, after) or ["layout of the file"]
        if options.check:
            problems += 1
            for change in changes:
                print(f"{path}: {change} differs; run `make sync`")
        else:
            path.write_text(new_text, encoding="utf8")
            print(f"{path}: wrote {len(changes)} change(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
