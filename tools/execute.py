"""Execute the book's notebooks side by side, and keep what they gave.

    python -m tools.execute                  all notebooks of the book that are not up to date
    python -m tools.execute book/03*.ipynb   these
    python -m tools.execute --fresh          forget what was kept first

The outputs go into a jupyter-cache, from which MyST-NB takes them when it builds the pages. As in
Colab, a notebook runs in a folder that holds nothing else, whatever folder it was opened from. A
notebook is executed again when one of these has changed: its code cells; a file of this repository
that it read, directly or by an import; the names of the recorded results; the data set; BOOK_SCALE;
the version of Python or of a required package. Which files it reads is not guessed: its kernel
notes them.
"""

import argparse
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import nbformat
import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.db import NbCacheRecord
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import kernels, sync
from tools.arguments import count, file
from tools.setup_cell import ROOT

CACHE = ROOT / "_build" / ".jupyter_cache"  # where Jupyter Book looks for it
WATCHED = Path(__file__).parent / "watched"
WITHOUT_CODE = ROOT / "book" / "labs"  # the students' notebooks: their answers are missing


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@functools.cache
def file_digest(path: str) -> str:
    """Of the contents; "" for a file that is gone."""
    file = ROOT / path
    return digest(file.read_bytes()) if file.is_file() else ""


def names_in(folder: Path) -> list[str]:
    """Every file below a folder, with its size."""
    return sorted(f"{path.relative_to(folder)} {path.stat().st_size}"
                  for path in folder.rglob("*") if path.is_file())


@functools.cache
def surroundings() -> str:
    """A digest of what may change any notebook's outputs, but for the files that it reads."""
    from transformer_lib.corpora import cache

    data = Path(os.environ.get("MULTI30K_DIR") or cache.cache_dir("multi30k").parent)
    required = re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text("utf8"), re.MULTILINE)
    packages = [f"{name}=={importlib.metadata.version(name)}" for name in required]
    results = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "results").rglob("*"))
    facts = [platform.python_version(), platform.machine(), os.environ.get("BOOK_SCALE", ""),
             str(data), *names_in(data), *packages, *results]
    return digest(json.dumps(facts).encode())


def depends_on(lines: set[str]) -> list[str]:
    """The files, relative to the repository, behind the paths that a kernel noted."""
    files = set()
    for line in lines:
        path = Path(line).relative_to(ROOT)
        if path.parts[0] in (".git", "_build") or {"site-packages", "watched"} & set(path.parts):
            continue
        if path.parent.name == "__pycache__":  # compiled; the source beside it was only looked at
            path = path.parents[1] / f"{path.name.partition('.')[0]}.py"
        beside = (ROOT / path).parent
        if (beside / "model.safetensors").exists():  # read by a library that Python does not watch
            files |= {str(file.relative_to(ROOT)) for file in beside.iterdir() if file.is_file()}
        files.add(str(path))
    return sorted(files)


def up_to_date(record: NbCacheRecord) -> bool:
    """Whether a notebook that was kept would give the same again."""
    return record.data.get("surroundings") == surroundings() and all(
        file_digest(path) == then for path, then in record.data["files"].items()
    )


@functools.cache
def starter() -> dict:
    """How this process starts its kernels, as options of a NotebookClient."""
    if not kernels.AVAILABLE:
        return {}
    return {"kernel_manager_class": kernels.manager(kernels.Forks(surrounding_variables()))}


def surrounding_variables() -> dict[str, str]:
    """The environment of every kernel."""
    search = [str(WATCHED), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"OMP_NUM_THREADS": "1"} | os.environ | {"PYTHONPATH": os.pathsep.join(search)}


def execute(
    path: Path, root: Path, timeout: int
) -> tuple[nbformat.NotebookNode, float, set[str], str]:
    """The notebook with outputs, the seconds, what it read below `root`, and its error or ""."""
    notebook = nbformat.read(path, as_version=4)
    timeout = notebook.metadata.get("execution", {}).get("timeout", timeout)
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "read"
        variables = surrounding_variables() | {
            "READ_LIST": str(noted), "READ_FOLDER": str(root),
            "MY_RUNS": str(Path(folder) / "runs"),  # a training run here starts from its beginning
        }
        alone = Path(folder) / "alone"
        alone.mkdir()
        client = NotebookClient(
            notebook, timeout=timeout, kernel_name="python3", resources={"metadata":
            {"path": str(alone)}}, record_timing=False, extra_arguments=["--log-level=40"],
            **starter(),
        )
        start, error = time.monotonic(), ""
        try:
            client.execute(env=variables)
        except CellExecutionError as stopped:
            error = str(stopped)
        except Exception as stopped:  # a timeout, a kernel that died
            error = f"{type(stopped).__name__}: {stopped}"
        seconds = time.monotonic() - start
        read = set(noted.read_text("utf8").splitlines()) if noted.exists() else set()
    return notebook, seconds, read, error


def execute_all(paths: list[Path], jobs: int) -> list[str]:
    """Execute those that are not up to date, the longest first; return the names that failed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    cache = get_cache(CACHE)
    timeout = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["execute"]["timeout"]
    took = {record.uri: record.data.get("execution_seconds", 0)
            for record in sorted(cache.list_cache_records(), key=lambda record: record.created)}
    waiting = []
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        try:
            if up_to_date(cache.match_cache_notebook(notebook)):
                continue
        except KeyError:
            pass
        waiting.append(path)
    waiting.sort(key=lambda path: (-took.get(str(path), 1e9), -path.stat().st_size))
    print(f"{len(paths) - len(waiting)} notebooks are up to date, {len(waiting)} are executed.",
          flush=True)
    failed = []
    if not waiting:
        return failed
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(execute, path, ROOT, timeout): path for path in waiting}
        for done in as_completed(running):
            path = running[done]
            notebook, seconds, read, error = done.result()
            name = path.relative_to(ROOT / "book").with_suffix("")
            print(f"{seconds:7.1f} s  {name}{'  FAILED' if error else ''}", flush=True)
            if error:
                failed.append(f"{name}\n{error}")
                continue
            data = {"execution_seconds": seconds, "surroundings": surroundings(),
                    "files": {file: file_digest(file) for file in depends_on(read)}}
            bundle = CacheBundleIn(notebook, str(path), data=data)
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=file, help="default: all")
    parser.add_argument("--fresh", action="store_true", help="forget what was kept")
    parser.add_argument("--jobs", type=count, default=2, help="kernels at a time (default: 2)")
    options = parser.parse_args(arguments)
    if options.fresh:
        shutil.rmtree(CACHE, ignore_errors=True)
    paths = [path.resolve() for path in options.notebooks] or [
        path for path in sync.find_notebooks() if path.parent != WITHOUT_CODE
    ]
    failed = execute_all(paths, options.jobs)
    for message in failed:
        print(f"\n{message}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
