"""How much of the library the book prints: `python -m tools.printed`.

The top level of transformer_lib, with models/, is what a reader of the chapters knows line by line;
the other subpackages are machinery. A definition is printed if a cell of the book carries its tag
`lib:<module>.<Name>`. A constant is printed if it has such a cell, if a printed definition of its
module uses it, or if a cell of the book says the same.
"""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """The modules that the book is to print: {"masks": path, "models.transformer": path, ...}."""
    library = root / "transformer_lib"
    paths = [*sorted(library.glob("*.py")), *sorted(library.glob("models/*.py"))]
    return {
        ".".join(path.relative_to(library).with_suffix("").parts): path
        for path in paths
        if path.name != "__init__.py"
    }


def code_cells(root: Path = ROOT):
    """(tags, source) of every code cell of the book; solutions and labs aren't chapters."""
    for path in sorted((root / "book").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
            if cell["cell_type"] == "code":
                yield cell["metadata"].get("tags", []), "".join(cell["source"])


def assigned(node: ast.stmt) -> list[str]:
    """The names that a statement assigns, for X = ..., X: int = ... and A, B = ..."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [name.id for target in targets if target is not None
            for name in ast.walk(target) if isinstance(name, ast.Name)]


def uses(node: ast.stmt) -> set[str]:
    """Every name that a statement reads."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def lines(node: ast.stmt) -> range:
    """The lines of a statement, decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return range(first, node.end_lineno + 1)


def inspect_module(name: str, path: Path, tags: set[str], said: set[str]) -> dict:
    """{"missing": names that are not printed, "printed": lines that are, "lines": all of them}.

    tags: what the book's cells show. said: the statements of its cells, as `ast.unparse` has them.
    Blank lines do not count, nor do the module's docstring and its imports, which no cell holds.
    """
    text = path.read_text(encoding="utf8").splitlines()
    body = [node for node in ast.parse("\n".join(text)).body
            if not isinstance(node, (ast.Import, ast.ImportFrom))
            and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    definitions = {node.name: node for node in body
                   if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    constants = [node for node in body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    shown, used = set(), set()
    missing = []
    for defined, node in definitions.items():
        if f"{name}.{defined}" in tags:
            shown.update(lines(node))
            used |= uses(node)
            continue
        missing.append(defined)
        for method in node.body if isinstance(node, ast.ClassDef) else []:
            if f"{name}.{defined}.{getattr(method, 'name', '')}" in tags:
                shown.update(lines(method))
    for node in reversed(constants):  # one that only another constant uses stands above it
        names = set(assigned(node))
        if names & used or ast.unparse(node) in said or {f"{name}.{one}" for one in names} & tags:
            shown.update(lines(node))
            used |= uses(node)
        else:
            missing += sorted(target for target in names if not target.startswith("__"))
    code = {number for node in body for number in lines(node) if text[number - 1].strip()}
    return {"missing": missing, "printed": len(shown & code), "lines": len(code)}


def report(root: Path = ROOT) -> dict[str, dict]:
    """inspect_module for each module that the book is to print."""
    cells = list(code_cells(root))
    tags = {tag.removeprefix("lib:") for cell_tags, _ in cells for tag in cell_tags
            if tag.startswith("lib:")}
    said = set()
    for _, source in cells:
        try:
            said.update(ast.unparse(node) for node in ast.parse(source).body)
        except SyntaxError:  # a %magic or !command
            continue
    return {name: inspect_module(name, path, tags, said)
            for name, path in modules(root).items()}


def main() -> int:
    found = report()
    for name, module in found.items():
        missing = ", ".join(module["missing"])
        print(f"{name:22} {module['printed']:5} of {module['lines']:5} lines   {missing}")
    printed = sum(module["printed"] for module in found.values())
    total = sum(module["lines"] for module in found.values())
    print(f"{'the top level':22} {printed:5} of {total:5} lines, {printed / total:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
