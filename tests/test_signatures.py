"""Signatures say what a function takes and returns."""

import ast
import re
from pathlib import Path

import pytest

from transformer_lib.guards.limits import TYPES

LIBRARY = Path(__file__).parents[1] / "transformer_lib"
# Where an argument's type is still in guards/limits.py, or the same as in the class above. A
# module that isn't named here is annotated, and so is a new one.
WITHOUT = {
    "attention", "beyond", "blocks", "cli", "config", "corpora/mini", "decoder", "decoding",
    "fast/compiled", "fast/decoding", "guards", "masks", "models", "one_file", "optimizers",
    "positional", "run_size", "runs/to_ctranslate2",
}


def name_of(path):
    return path.relative_to(LIBRARY).with_suffix("").as_posix()


def is_exempt(path):
    return bool({name_of(path), name_of(path).split("/")[0]} & WITHOUT)


def bare(source, public=True):
    """What lacks an annotation: "function(argument)", or "function ->" for what it returns."""
    found = []

    def look(body, inside):
        for node in body:
            private = getattr(node, "name", "_").startswith("_")
            if isinstance(node, ast.ClassDef) and not (public and private):
                look(node.body, f"{node.name}.")
            if not isinstance(node, ast.FunctionDef) or (
                public and private and node.name not in ("__init__", "__call__")
            ):
                continue
            of = node.args
            given = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
            given = [one for one in given if one and not (inside and one.arg in ("self", "cls"))]
            name = inside + node.name
            found.extend(f"{name}({one.arg})" for one in given if one.annotation is None)
            if node.returns is None and node.name != "__init__":
                found.append(f"{name} ->")

    look(ast.parse(source).body, "")
    return found


@pytest.mark.parametrize(
    "path", [p for p in sorted(LIBRARY.rglob("*.py")) if not is_exempt(p)], ids=name_of
)
def test_public_functions_are_annotated(path):
    assert not bare(path.read_text(encoding="utf-8"))


def test_evaluation_is_annotated_to_the_last_function():
    assert not bare((LIBRARY / "evaluation.py").read_text(encoding="utf-8"), public=False)


def test_whatever_is_exempt_needs_it():
    complete = {
        name for name in WITHOUT
        if not any(
            bare(path.read_text(encoding="utf-8"))
            for path in [LIBRARY / f"{name}.py", *LIBRARY.joinpath(name).rglob("*.py")]
            if path.is_file()
        )
    }
    assert not complete, "annotated by now: take them off the list"


def test_the_table_of_types_names_nothing_that_a_signature_does():
    found = {
        re.sub(r"(\.(__init__|__call__|forward))?\((\w+)\)$", r".\3", one)
        for path in LIBRARY.rglob("*.py") for one in bare(path.read_text(encoding="utf-8"))
    }
    assert TYPES.keys() <= found | {one.rpartition(".")[2] for one in found}


def test_an_annotation_that_is_missing_is_found():
    source = (
        "def f(a: int, *b, c=1) -> int: ...\nclass A:\n    def __init__(self, x): ...\n"
        "    def g(self): ...\n    def _h(self, y): ...\ndef _k(z): ...\n"
    )
    assert bare(source) == ["f(c)", "f(b)", "A.__init__(x)", "A.g ->"]
    assert "_k(z)" in bare(source, public=False) and "A._h(y)" in bare(source, public=False)
