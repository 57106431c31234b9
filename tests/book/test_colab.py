"""Every notebook as Colab runs it, and every link that leads there.

A bare environment stands for Colab's runtime: it has packages that Colab comes with, and neither
this project nor what the setup cell installs. The setup cell runs in it once, with nothing there
yet: it installs what is missing and fetches the book. Git reads the configured address as a
repository made here from the tracked files, edits included. Then every notebook runs in a folder
of its own, which holds that copy of the book and nothing else.

`make book` runs them alone in a folder, too, but with the book's own packages. What it holds up to
date would do here what it did there unless Colab lacks a package: so of those one in SPARES runs,
and of all it is asked whether Colab has what they import. The same holds for the labs' masters,
which run in `make test-labs`. The weekly tests start without a build, and run all.
"""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from filelock import FileLock
from jupyter_cache import get_cache
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import execute as build
from tools import repository, setup_cell, sync

ROOT = Path(__file__).resolve().parents[2]


# A student's lab stops at the first unanswered task, so its master runs instead.
STUDENTS = ROOT / "book" / "labs"
SOLUTIONS = ROOT / "book" / "solutions"
FOUND = sync.find_notebooks()
MASTERS = list(sync.find_masters())
PAGES_OF_THE_BOOK = [path for path in FOUND if path.parent == ROOT / "book"]
NOTEBOOKS = [
    *(pytest.param(path, id=path.stem) for path in PAGES_OF_THE_BOOK),
    *(pytest.param(path, id=path.stem, marks=pytest.mark.weekly) for path in MASTERS),
]
SHORT = sorted(path for path in FOUND if path.parent == SOLUTIONS)  # several share a kernel
SPARES = 8
SPARE = {*PAGES_OF_THE_BOOK[::SPARES], *SHORT[::5][::SPARES]}

# Packages that Colab comes with; what they require is there too. Colab has many more. Leaving
# them out means that the setup cell installs more here than there, and that a notebook which
# needs another of them fails.
COLAB_HAS = ["altair", "datasets", "gymnasium", "ipykernel", "matplotlib", "numpy", "pip",
             "requests", "safetensors", "scikit-learn", "tokenizers", "torch", "tqdm",
             "transformers"]
COLAB_LACKS = ["bertviz", "sacrebleu", "sacremoses"]  # and the book uses


# ---- the runtime -------------------------------------------------------------------------------

def with_requirements(names: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The distributions of this environment with these names, and all that they require."""
    found, waiting = {}, list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        for line in found[name].requires or []:
            requirement = Requirement(line)
            if not requirement.marker or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def make_environment(folder: Path, python: Path):
    """An environment with Colab's packages, `python`, and a Jupyter kernel that starts it.

    The packages are links to those of this environment, in a folder outside the new one. So they
    take no space, and pip puts a newer version before them and leaves their files alone.
    """
    links = folder / "packages"
    links.mkdir(parents=True)
    for distribution in with_requirements(COLAB_HAS).values():
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (links / top).exists():
                (links / top).symlink_to(distribution.locate_file(top))
    venv.create(python.parents[1], symlinks=True)
    [site] = python.parents[1].glob("lib/python*/site-packages")
    (site / "colab.pth").write_text(f"{links}\n")
    (site / "google" / "colab").mkdir(parents=True)
    (site / "google" / "colab" / "__init__.py").write_text('"""Stands for Colab\'s own."""\n')
    kernel = folder / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Colab", "language": "python",
    }))


def outer_environment() -> dict[str, str]:
    """The variables of this process, without those that would lead back into this project."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("GIT_", "JUPYTER", "PYTEST", "PYTHON", "VIRTUAL_ENV"))}


def tracked_files() -> bytes:
    """The paths of all tracked files, each followed by a zero byte."""
    command = ["git", "ls-files", "-z"]
    return subprocess.run(
        command, cwd=ROOT, env=outer_environment(), check=True, capture_output=True
    ).stdout


def make_origin(folder: Path):
    """A repository with one commit: the tracked files as they lie here now."""
    def git(*arguments, **options):
        settings = ["-c", "user.name=test", "-c", "user.email=test@example.org",
                    "-c", "commit.gpgsign=false"]
        command = ["git", *settings, *arguments]
        subprocess.run(command, cwd=ROOT, env=outer_environment(), check=True, **options)

    there = [f"--git-dir={folder}", f"--work-tree={ROOT}"]
    git("init", "--quiet", "--bare", folder)
    git(*there, "update-index", "--add", "--remove", "-z", "--stdin", input=tracked_files())
    git(*there, "commit", "--quiet", "--no-verify", "--message=The book")


def packages(runtime) -> dict[str, str]:
    """Name and version of everything that the runtime's Python finds, and where torch lies."""
    code = (
        "import importlib.metadata as m, importlib.util as u, json\n"
        "names = {d.name for d in m.distributions()}\n"
        "found = {name: m.version(name) for name in names}\n"
        "print(json.dumps(found | {'file of torch': u.find_spec('torch').origin}))"
    )
    answer = subprocess.run(
        [runtime.python, "-c", code], env=runtime.variables, check=True, capture_output=True,
        cwd=runtime.folder,
    ).stdout
    return json.loads(answer)


FIRST_RUN = """
import google.colab
import {lacking}          # at once, in the process that installed them
import transformer_lib
"""


def run_setup_cell(runtime, folder: Path, **variables) -> subprocess.CompletedProcess:
    code = setup_cell.setup_cell() + FIRST_RUN.format(lacking=", ".join(COLAB_LACKS))
    return subprocess.run(
        [runtime.python, "-c", code], cwd=folder, env=runtime.variables | variables,
        capture_output=True, text=True,
    )


@pytest.fixture(scope="session")
def first_run(tmp_path_factory):
    """The runtime, and what the setup cell did to it. Made once, also for several workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "colab"
    runtime = SimpleNamespace(folder=folder, python=folder / "environment" / "bin" / "python")
    runtime.variables = outer_environment() | {
        "HOME": str(folder / "home"),
        "PATH": f"{runtime.python.parent}{os.pathsep}{os.environ['PATH']}",
        # Downloads are kept where they always are: the data, and what pip fetched.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "BOOK_SCALE": os.environ.get("BOOK_SCALE", "smoke"),
        "COLAB_RELEASE_TAG": "stand-in",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder / 'origin'}.insteadOf",
        "GIT_CONFIG_VALUE_0": setup_cell.repository_url(),
        "GIT_ALLOW_PROTOCOL": "file",  # no other address can be reached
    }
    done = folder / "first_run.json"
    with FileLock(shared / "colab.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed on the way
            make_environment(folder, runtime.python)
            make_origin(folder / "origin")
            work = folder / "first_run"
            for needed in (work, folder / "home"):
                needed.mkdir()
            before = packages(runtime)
            result = run_setup_cell(runtime, work)
            done.write_text(json.dumps({
                "before": before, "after": packages(runtime), "problem": None if
                result.returncode == 0 else result.stdout + result.stderr,
            }))
    runtime.__dict__.update(json.loads(done.read_text()))
    return runtime


@pytest.fixture
def runtime(first_run, monkeypatch):
    """A runtime in which the setup cell has installed what was missing."""
    if first_run.problem:
        pytest.fail("the setup cell itself fails: see test_setup_cell_...", pytrace=False)
    monkeypatch.setenv("JUPYTER_PATH", str(first_run.folder / "jupyter"))
    return first_run


# ---- the notebooks -----------------------------------------------------------------------------

@pytest.mark.slow
def test_setup_cell_installs_what_colab_lacks_and_nothing_else(first_run):
    """A failure without a network is meant: skipped, it would hide that nothing was tested."""
    assert not first_run.problem, (
        f"the setup cell fails (it needs a package index that pip reaches):\n{first_run.problem}"
    )
    before, after = first_run.before, first_run.after
    assert "torch" in before and not before.keys() & {*COLAB_LACKS, "transformer-lib"}
    assert set(COLAB_LACKS) <= after.keys()
    # Only what the book uses and Colab lacks, and what that cannot do without: bertviz asks for
    # boto3 and more, which would put other versions in the place of Colab's.
    brought = after.keys() - before.keys()
    assert not brought & {"boto3", "botocore", "sentencepiece", "s3transfer"}, brought
    replaced = {name: (old, after[name]) for name, old in before.items() if after[name] != old}
    assert not replaced, f"packages that Colab came with were replaced: {replaced}"


def clone_with(monkeypatch, tmp_path, git):
    """Run the setup cell, in a folder of its own, where `git` stands for the program."""
    code, ran = setup_cell.setup_cell(), []

    def run(command, check):
        ran.append(command)
        git(command) if command[0] == "git" else None

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    exec(code, {})
    return ran


def clone(command):
    (Path(command[-1]) / "transformer_lib").mkdir(parents=True)
    (Path(command[-1]) / ".git").mkdir()


def interrupted(command):
    (Path(command[-1]) / ".git").mkdir(parents=True)
    raise KeyboardInterrupt


def test_an_interrupted_clone_heals(monkeypatch, tmp_path):
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            clone_with(monkeypatch, tmp_path, interrupted)
    (tmp_path / "transformer-book" / ".git").mkdir(parents=True)  # as an older cell left it
    clone_with(monkeypatch, tmp_path, clone)
    assert [path.name for path in tmp_path.iterdir()] == ["transformer-book"]
    assert (tmp_path / "transformer-book" / "transformer_lib").is_dir()
    assert clone_with(monkeypatch, tmp_path, clone)[0][0] != "git"  # it is there


def test_a_folder_of_the_readers_own_is_not_removed(monkeypatch, tmp_path):
    (tmp_path / "transformer-book").mkdir()
    (tmp_path / "transformer-book" / "notes.txt").write_text("mine")
    with pytest.raises(OSError):
        clone_with(monkeypatch, tmp_path, clone)
    assert (tmp_path / "transformer-book" / "notes.txt").exists()


def test_bertviz_comes_alone(monkeypatch, tmp_path):
    commands = clone_with(monkeypatch, tmp_path, clone)
    assert [command for command in commands if "bertviz" in command] == [
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "bertviz"]
    ]


@pytest.mark.slow
def test_setup_cell_works_again_after_a_restart(runtime):
    """A new kernel in the same folder finds what is there; the address is not asked again."""
    result = run_setup_cell(runtime, runtime.folder / "first_run", GIT_ALLOW_PROTOCOL="none")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_colab_has_what_notebooks_import(runtime):
    lines = set()
    for path in (*PAGES_OF_THE_BOOK, *SHORT, *MASTERS):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code" and "setup" not in cell.metadata.get("tags", []):
                lines |= {ast.unparse(node) for node in ast.walk(ast.parse(plain(cell.source)))
                          if isinstance(node, (ast.Import, ast.ImportFrom))}
    assert len(lines) > 100
    result = subprocess.run(
        [runtime.python, "-c", setup_cell.setup_cell() + "\n" + "\n".join(sorted(lines))],
        cwd=runtime.folder / "first_run", env=runtime.variables, capture_output=True, text=True,
    )
    assert result.returncode == 0, result.stderr


def plain(source: str) -> str:
    """The cell without IPython's own lines."""
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.split("\n"))


def built(path: Path) -> bool:
    """Whether `make book` has run this notebook, and nothing that it depends on has changed."""
    try:
        record = get_cache(build.CACHE).match_cache_notebook(nbformat.read(path, as_version=4))
    except (KeyError, FileNotFoundError):
        return False
    return build.up_to_date(record)


def spared(*paths: Path):
    if build.CACHE.exists() and not SPARE & {*paths} and all(map(built, paths)):
        pytest.skip("`make book` has run it, in a folder of its own, and nothing has changed")


def execute(notebook, runtime, tmp_path):
    # A clone for each would be the same files; this is a link to the first one.
    (tmp_path / "transformer-book").symlink_to(runtime.folder / "first_run" / "transformer-book")
    notebook.cells.append(nbformat.v4.new_code_cell(
        "import transformer_lib\n"
        f"assert transformer_lib.__file__.startswith({str(tmp_path)!r}), transformer_lib.__file__"
    ))
    client = NotebookClient(
        notebook, kernel_name="colab", timeout=240, resources={"metadata": {"path": str(tmp_path)}}
    )
    try:
        client.execute(env=runtime.variables)
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[\d;]*m", "", str(error))  # without its colours
        raise pytest.fail.Exception(plain, pytrace=False) from None


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS)
def test_notebook_runs_as_in_colab(path, runtime, tmp_path):
    spared(path)
    execute(nbformat.read(path, as_version=4), runtime, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(SHORT), 5), ids=lambda i: SHORT[i].stem)
def test_solutions_run_as_in_colab(first, runtime, tmp_path):
    """Five in one kernel, which saves the imports; each begins without the names of the last."""
    spared(*SHORT[first : first + 5])
    together = nbformat.v4.new_notebook()
    for path in SHORT[first : first + 5]:
        together.cells.append(nbformat.v4.new_code_cell("%reset -f"))
        together.cells += nbformat.read(path, as_version=4).cells
        together.cells[-1].source += f"\n# {path.stem}"
    execute(together, runtime, tmp_path)


def test_every_notebook_is_among_them():
    listed = {param.values[0] for param in NOTEBOOKS} | {*SHORT}
    assert 7 < len(SPARE) < len(PAGES_OF_THE_BOOK) / 3
    assert listed == {*MASTERS, *(path for path in FOUND if path.parent != STUDENTS)}


# ---- the addresses -----------------------------------------------------------------------------

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
COLAB = CONFIG["launch_buttons"]["colab_url"]
BRANCH = CONFIG["repository"]["branch"]
SITE = ROOT / "_build" / "html"
PAGES = [path.relative_to(ROOT) for path in sync.find_notebooks()]


def colab_address(path: Path) -> str:
    """Where Colab opens a notebook, given by its path in the repository."""
    return f"{COLAB}/github/{repository.slug(setup_cell.repository_url())}/blob/{BRANCH}/{path}"


def colab_links(text: str) -> set[str]:
    return set(re.findall(rf"{re.escape(COLAB)}/[^\s\"\')>\]]+", text))


@pytest.mark.parametrize("path", PAGES, ids=map(str, PAGES))
def test_page_has_its_colab_button(path):
    page = SITE / path.with_suffix(".html")
    if not page.exists():
        pytest.skip("this page is not built: run `make book`")
    links = colab_links(page.read_text(encoding="utf8"))
    assert colab_address(path) in links, f"{links}; is the site older than the address?"


def test_other_links_to_colab_lead_to_a_notebook():
    known = {colab_address(path) for path in PAGES}
    links = set()
    for path in [*repository.texts(), *sync.find_notebooks(), *sync.find_masters()]:
        links |= colab_links(path.read_text(encoding="utf8"))
    assert links and links <= known, links - known


# ---- torch -------------------------------------------------------------------------------------

def test_nothing_pins_torch():
    """Any newer torch will do, so that the build which a hosted runtime came with stays."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    ranges = [requirement.specifier for lines in lists for requirement in map(Requirement, lines)
              if requirement.name == "torch"]
    assert ranges
    assert all(part.operator in (">=", ">") for specifier in ranges for part in specifier), ranges
    assert "torch" not in setup_cell.setup_cell()
