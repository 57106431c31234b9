"""How many small faults do the tests find? Break the library in random places, one at a time.

    python -m tools.mutants                      300 random mutants of the library's printed modules
    python -m tools.mutants --count 40 --seed 1 --modules masks attention

Each mutant changes one operator, comparison, constant, keyword or statement of one module, in a
copy of the repository, and runs the tests that concern that module until one fails. A process that
has already imported torch and pytest forks for each group of tests, so neither has to start again.
What was found goes into `_build/mutants-<seed>.json`; the same command goes on where it was
interrupted.
A survivor is a fault that no test sees, or a change that changes nothing: only reading tells.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "transformer_lib"
# Tests that say something about every part of the model, tried after the module's own.
GENERAL = ["test_defaults", "test_laws", "test_equivalence", "test_families"]
OWN = {
    "fast.decoding": "test_fast_decoding",
    "fast.training": "test_fast_training",
    "one_file": "test_museum",  # beside test_one_file: the laws of the museum
}
# About exercises and commands, and with limits of time that a busy machine breaks.
NOT_THE_LIBRARY = ("test_checks", "test_experiments", "test_gpu")
# For one group of tests; a hang counts as found. The processor's time, which other programs do not
# lengthen, and by the clock for a process that only waits.
SECONDS, CLOCK = 240, 1200

SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.USub: ast.UAdd,
}


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The ways to break this one node: (what was done, the node to stand in its place)."""

    def changed(**fields):
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return new

    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in SWAPS:
        other = SWAPS[type(node.op)]
        yield f"{type(node.op).__name__} -> {other.__name__}", changed(op=other())
    if isinstance(node, ast.BinOp):
        yield "left operand only", node.left
        yield "right operand only", node.right
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        other = SWAPS[type(node.ops[0])]
        yield f"{type(node.ops[0]).__name__} -> {other.__name__}", changed(
            ops=[other(), *node.ops[1:]]
        )
    if isinstance(node, ast.BoolOp):
        yield "and <-> or", changed(op=SWAPS[type(node.op)]())
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield f"without {type(node.op).__name__}", node.operand
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value} -> {not node.value}", changed(value=not node.value)
        elif isinstance(node.value, (int, float)):
            yield f"{node.value} -> {node.value + 1}", changed(value=node.value + 1)
            if node.value not in (0, 1):
                yield f"{node.value} -> 0", changed(value=0)
    if isinstance(node, ast.Call):
        for i, keyword in enumerate(node.keywords):
            rest = node.keywords[:i] + node.keywords[i + 1 :]
            yield f"without {keyword.arg}=", changed(keywords=rest)
        if len(node.args) == 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
            yield "arguments exchanged", changed(args=node.args[::-1])
    if isinstance(node, ast.If):
        yield "condition always true", changed(test=ast.Constant(True))
        yield "condition always false", changed(test=ast.Constant(False))
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and not (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ):
        yield "statement left out", ast.copy_location(ast.Pass(), node)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _interesting(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes inside functions; messages of errors and annotations are left alone."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            skipped.update(map(id, ast.walk(node)))
        if isinstance(node, ast.AnnAssign):
            skipped.update(map(id, ast.walk(node.annotation)))
        if isinstance(node, (ast.FunctionDef, ast.arg)):
            for note in (getattr(node, "returns", None), getattr(node, "annotation", None)):
                if note is not None:
                    skipped.update(map(id, ast.walk(note)))
    for node in ast.walk(tree):
        if id(node) not in skipped:
            yield node


def sites(tree: ast.AST) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Every place to break a module: (old node, what is done, new node), in a fixed order."""
    for node in _interesting(tree):
        for what, new in changes(node):
            yield node, what, new


def mutant(source: str, index: int) -> tuple[int, str, str]:
    """The mutant number `index` of a module: (line, what was done, the new source)."""
    tree = ast.parse(source)
    old, what, new = next(islice(sites(tree), index, None))
    broken = ast.fix_missing_locations(_Replace(old, new).visit(tree))
    return getattr(old, "lineno", 0), what, ast.unparse(broken)


def module_name(path: Path) -> str:
    """models.transformer for .../transformer_lib/models/transformer.py"""
    return ".".join(path.relative_to(LIBRARY).with_suffix("").parts)


def tests_of(name: str) -> list[list[str]]:
    """The module's own tests, the general ones, and those that name it: tried in this order."""
    last = name.rsplit(".", 1)[-1]
    every = [path for folder in ("tests", "tests/exercises")
             for path in sorted((ROOT / folder).glob("test_*.py"))]
    own = [path for path in every if path.stem in (f"test_{last}", OWN.get(name))]
    naming = [path for path in every if last in path.read_text(encoding="utf8")
              and not path.stem.startswith(NOT_THE_LIBRARY)]
    general = [ROOT / "tests" / f"{stem}.py" for stem in GENERAL]
    naming = [path for path in naming if path not in own + general]
    groups = [own, [path for path in general if path.exists()], naming]
    return [[str(path.relative_to(ROOT)) for path in group] for group in groups if group]


# What the tests import from elsewhere: imported once, before the first fork.
WARM = ["altair", "hypothesis", "matplotlib.pyplot", "numpy", "pytest", "sacrebleu",
        "safetensors.torch", "tokenizers", "torch.testing", "torch.utils.checkpoint", "tqdm"]


def pytest_in_a_fork(folder: Path, arguments: list[str]) -> tuple[int, str]:
    """pytest in a copy of the repository: (its exit code, what it printed).

    The code is negative if the process was ended: by a signal, or because it took too long.
    """
    said = folder / "said.txt"
    process = os.fork()
    if process == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            with open(said, "w", encoding="utf8") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.setsid()  # so that a hang ends with all that it started
            os.chdir(folder)
            os.environ |= {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
            sys.path[:] = [str(folder), *(p for p in sys.path if p and Path(p).resolve() != ROOT)]
            for name in [name for name in sys.modules if name.split(".")[0] == "tools"]:
                del sys.modules[name]
            code = int(sys.modules["pytest"].main(
                ["-p", "no:cacheprovider", "-p", "no:xdist", *arguments]))
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + CLOCK
    while True:
        gone, status = os.waitpid(process, os.WNOHANG)
        if gone:
            break
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(status), said.read_text(encoding="utf8", errors="replace")


def verdict(folder: Path, tests: list[list[str]]) -> str:
    """What these tests say in a copy of the repository: "survived", or which one failed first.

    The quick ones are asked first: nearly every fault is found by one of them.
    """
    quick = ["--quick", "--cases", "4"]
    for options, group in [*((quick, group) for group in tests), *(([], group) for group in tests)]:
        code, said = pytest_in_a_fork(
            folder, ["-x", "-q", "-m", "not weekly", "--timeout=0", *options, *group])
        if code < 0:
            return "found: hangs"
        if code not in (0, 5):  # 5: a group without quick tests
            failed = re.search(r"^(?:FAILED|ERROR) (.+)", said, re.MULTILINE)
            return f"found: {failed[1][:150] if failed else f'exit code {code}'}"
    return "survived"


def copy_repository(folder: Path) -> None:
    """A copy to break, without history, environments and what was made: they're at the root.

    Raises RuntimeError where the tests can't even be read before anything is broken: they would
    "find" every mutant.
    """

    def left_out(parent: str, names: list[str]) -> set[str]:
        made = {".git", "_build", "runs"} if Path(parent) == ROOT else set()
        return {name for name in names if name in made | {".venv", ".venv-grade", "__pycache__"}}

    shutil.copytree(ROOT, folder, ignore=left_out)
    code, said = pytest_in_a_fork(
        folder, ["-q", "--collect-only", "tests", "--ignore=tests/browser"])
    if code:
        raise RuntimeError(f"the tests fail before anything is broken: {said[-2000:]}")


def run(modules: list[str], count: int, seed: int) -> dict:
    """Try `count` random mutants; returns what is written to the results file."""
    paths = {module_name(path): path for path in sorted(LIBRARY.rglob("*.py"))}
    sources = {name: paths[name].read_text(encoding="utf8") for name in modules}
    every = [
        (name, index)
        for name, source in sources.items()
        for index in range(sum(1 for _ in sites(ast.parse(source))))
    ]
    chosen = random.Random(seed).sample(every, min(count, len(every)))
    out = ROOT / "_build" / f"mutants-{seed}.json"
    out.parent.mkdir(exist_ok=True)
    results = json.loads(out.read_text(encoding="utf8")) if out.exists() else {}
    os.environ["OMP_NUM_THREADS"] = "1"  # torch's threads wouldn't survive a fork
    for name in WARM:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "book"
        copy_repository(folder)
        for number, (name, index) in enumerate(chosen, start=1):
            line, what, text = mutant(sources[name], index)
            key = f"{name}:{line} {what} #{index}"
            if key not in results:
                place = folder / paths[name].relative_to(ROOT)
                start = time.perf_counter()
                try:
                    place.write_text(text + "\n", encoding="utf8")
                    results[key] = verdict(folder, tests_of(name))
                finally:
                    place.write_text(sources[name], encoding="utf8")
                seconds = time.perf_counter() - start
                print(f"{number}/{len(chosen)} {seconds:4.0f} s  {key}  {results[key]}", flush=True)
                out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf8")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="+", help="default: the printed modules")
    options = parser.parse_args()
    folders = LIBRARY, LIBRARY / "models", LIBRARY / "fast"
    printed = [path for folder in folders for path in folder.glob("*.py")]
    machinery = {"__init__", "__main__", "run_size", "models.__init__", "fast.__init__"}
    modules = options.modules or sorted({module_name(path) for path in printed} - machinery)
    results = run(modules, options.count, options.seed)
    survivors = [key for key, said in results.items() if said == "survived"]
    print(f"{len(results) - len(survivors)} of {len(results)} found; survivors:")
    print(*survivors, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
