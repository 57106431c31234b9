"""Importing the library is cheap: what is heavy is imported where it is used."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import transformer_lib

ROOT = Path(__file__).resolve().parents[1]

HEAVY = (
    "altair",
    "bertviz",
    "datasets",
    "matplotlib",
    "pandas",
    "sacrebleu",
    "tensorboard",
    "transformers",
)


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


TIMED = """
import time, torch
start = time.process_time()
import transformer_lib
from transformer_lib import ModelConfig, Transformer, Translator, load_pretrained
print(time.process_time() - start)
"""


def test_the_public_names_cost_less_than_a_third_of_a_second_beyond_torch():
    # The processor's time, best of three: other programs on the machine do not count.
    assert min(float(run(TIMED)) for _ in range(3)) < 0.3


def test_nothing_heavy_is_imported_before_it_is_used():
    code = "import sys, transformer_lib\n"
    code += "import importlib, pkgutil\n"
    code += "found = pkgutil.walk_packages(transformer_lib.__path__, 'transformer_lib.')\n"
    code += "assert [importlib.import_module(module.name) for module in found]\n"
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code).strip() == "[]"


def test_the_package_alone_does_not_import_torch():
    assert run("import sys, transformer_lib; print('torch' in sys.modules)").strip() == "False"


def test_every_listed_name_exists():

    assert set(transformer_lib.__all__) <= set(dir(transformer_lib))
    for name in dir(transformer_lib):
        assert getattr(transformer_lib, name) is not None
    try:
        _ = transformer_lib.nothing
    except AttributeError as error:
        assert "'nothing'" in str(error)
    else:
        raise AssertionError("an unknown name must be an AttributeError")


def test_the_library_needs_nothing_that_stands_around_it():
    around = {"exercises", "recordings", "labs", "course", "tools", "benchmarks", "tests"}
    for path in (ROOT / "transformer_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & around, f"{path}:{node.lineno}"


def test_the_readme_draws_the_folders_that_there_are():
    tree = (ROOT / "README.md").read_text(encoding="utf-8").split("```")
    tree = next(block for block in tree if "one_file.py" in block and "_toc.yml" in block)
    above, last, drawn = "", "", set()
    for line in tree.strip().splitlines():
        indent, names = re.match(r"( *)(\S+(?: \S+)*)", line).groups()
        if len(indent) > 2:
            continue  # the end of a sentence
        above = (above or last) if indent else ""
        last = names.split()[0]
        drawn |= {above + name for name in names.split()}
    assert not [name for name in drawn if not (ROOT / name).exists()]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    folders = {
        "/".join(parts[:depth]) + "/"
        for parts in (name.split("/") for name in tracked.splitlines())
        for depth in (1, 2) if len(parts) > depth and (depth == 1 or parts[0] == "transformer_lib")
    }
    assert folders - drawn <= {".ci/", ".devcontainer/", ".github/"}
