"""The source of a part, so that it can be kept in a file and read again after a restart.

A part is in a notebook's cell and uses what other cells made: imports, helpers, constants. All that
it needs is gathered into one file, which can be read on its own.
"""

import ast
import hashlib
import inspect
import linecache
import math
import symtable
import sys
import textwrap
import types
from pathlib import Path

PLAIN = (int, float, str, bool, type(None))


def source_of(part) -> str:
    """A module's text that makes `part` again, under the name `part`.

    Raises ValueError, naming it, for something that cannot be written down, such as a model.
    """
    imports, definitions = {}, {}
    gather(part, imports, definitions)
    text = "\n".join([*sorted(imports.values()), *definitions.values()])
    return f"{text}\n\n\npart = {part.__name__}\n"


def gather(part, imports: dict, definitions: dict) -> None:
    """Note the definition of a function or class, and before it all that it uses."""
    definition = definition_of(part)
    definitions[part.__name__] = None  # under way: it may use itself
    for name in free_names(definition):
        space = namespace_of(part)
        if name in definitions or name in imports or name not in space:
            continue  # a builtin, or a name that does not exist: calling it will say so
        value = space[name]
        if line := import_of(name, value):
            imports[name] = line
        elif written_by_reader(value):
            if value.__name__ not in definitions:
                gather(value, imports, definitions)
            if value.__name__ != name:
                definitions[name] = f"{name} = {value.__name__}"
        elif is_plain(value):
            definitions[name] = f"{name} = {literal(value)}"
        else:
            raise ValueError(
                f"{part.__name__} uses `{name}`, a {type(value).__name__} of your notebook, which "
                f"a file cannot keep: make it inside `{part.__name__}`, or pass it as an argument"
            )
    del definitions[part.__name__]  # it comes after what it uses
    definitions[part.__name__] = f"\n\n{definition}"


def is_plain(value) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN)


def literal(value) -> str:
    odd = isinstance(value, float) and not math.isfinite(value)
    return f"float('{value}')" if odd else repr(value)


def import_of(name: str, value) -> str | None:
    """The line that imports a value under this name, if there is one."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", name)
    if module == "__main__" or written_by_reader(value):
        return None
    # Some of torch's functions do not say where they are from.
    for where in (module, module.partition(".")[0]) if module else ("torch", "math"):
        if getattr(sys.modules.get(where), own, None) is value:
            return f"from {where} import {own}" + (f" as {name}" if name != own else "")
    return None


def file_of(part) -> str | None:
    """Where a function or class was written: a file, or a cell as linecache knows it."""
    part = inspect.unwrap(part) if callable(part) else part
    if isinstance(part, type):
        methods = [m for m in vars(part).values() if isinstance(m, types.FunctionType)]
        return methods[0].__code__.co_filename if methods else None
    code = getattr(part, "__code__", None)
    return code and code.co_filename


def written_by_reader(value) -> bool:
    from exercises.checks.diagnosis import NOT_THEIRS

    file = file_of(value)
    return bool(file) and not any(place in file for place in NOT_THEIRS) and file[0] != "<"


def definition_of(part) -> str:
    """The `def` or `class` of a part, without indentation."""
    file = file_of(part)
    lines = linecache.getlines(file) if file else []
    kinds = ast.ClassDef if isinstance(part, type) else (ast.FunctionDef, ast.Lambda)
    found = [
        node for node in ast.walk(parsed("".join(lines)))
        if isinstance(node, kinds) and getattr(node, "name", "<lambda>") == part.__name__
    ]
    if not found or part.__name__ == "<lambda>":
        raise ValueError(
            f"the code of {part.__name__} is not known: write it with `def` or `class` in a cell, "
            "and run the cell"
        )
    first = None if isinstance(part, type) else inspect.unwrap(part).__code__.co_firstlineno
    starts = {min([n.lineno, *(d.lineno for d in n.decorator_list)]): n for n in found}
    start = first if first in starts else max(starts)
    return textwrap.dedent("".join(lines[start - 1 : starts[start].end_lineno])).rstrip()


def parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except SyntaxError:  # a cell with magics: `%time`, `!ls`
        kept = ["pass" if line[:1] in "%!?" else line for line in text.split("\n")]
        return ast.parse("\n".join(kept))


def free_names(definition: str) -> list[str]:
    """The names that a definition takes from around it."""
    found, tables = {}, [symtable.symtable(definition, "part", "exec")]
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            outside = not symbol.is_assigned() if table.get_type() == "module" else True
            if symbol.is_referenced() and symbol.is_global() and outside:
                found[symbol.get_name()] = True
    return list(found)


def namespace_of(part) -> dict:
    """The names that a part sees: those of its cell, and those around a nested function."""
    if isinstance(part, type):
        methods = [m for m in vars(part).values() if isinstance(m, types.FunctionType)]
        return {name: value for m in methods for name, value in namespace_of(m).items()}
    part = inspect.unwrap(part)
    around = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    return part.__globals__ | {name: cell.cell_contents for name, cell in around}


def read(path: Path):
    """The part in a file. Raises whatever its code raises."""
    text = path.read_text(encoding="utf-8")
    name = f"{path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    space = {"__name__": f"own_{path.stem}", "__file__": str(path)}
    shown = str(path.with_name(f"{name}.py"))  # a name of its own: an older text is not shown
    linecache.cache[shown] = len(text), None, text.splitlines(keepends=True), shown
    exec(compile(text, shown, "exec"), space)
    return space["part"]
