"""The contract that every notebook of the book keeps (see CONTRIBUTING.md)."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import repository  # noqa: E402
import setup_cell  # noqa: E402
import sync  # noqa: E402

NOTEBOOKS = sync.find_notebooks()
NAMES = [str(path.relative_to(ROOT)) for path in NOTEBOOKS]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
each_synced = pytest.mark.parametrize(
    "path", NOTEBOOKS + sync.find_masters(), ids=lambda path: str(path.relative_to(ROOT))
)


def cells(path: Path, kind: str) -> list[dict]:
    notebook = json.loads(path.read_text(encoding="utf8"))
    return [
        cell | {"source": "".join(cell["source"])}
        for cell in notebook["cells"]
        if cell["cell_type"] == kind
    ]


def prose_without_code(path: Path) -> str:
    """All Markdown of a notebook, fenced code blocks with a plain language name removed."""
    text = "\n\n".join(cell["source"] for cell in cells(path, "markdown"))
    return re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def listed_pages() -> list[str]:
    """Every `file:` and `root:` of _toc.yml, at any depth."""
    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("file", "root"):
                    yield value
                else:
                    yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)
    return list(walk(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))))


@each_synced
def test_is_in_step_with_the_library(path):
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "sync.py", "--check", path],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@each_synced
def test_begins_with_the_setup_cell(path):
    first = cells(path, "code")[0]
    assert {"setup", "remove-cell"} <= set(first["metadata"].get("tags", []))
    assert first["source"] == setup_cell.setup_cell()


@each_notebook
def test_reads_well_in_colab(path):
    prose = prose_without_code(path)
    assert not re.search(r"^\s*[`:]{3,}\s*\{", prose, re.MULTILINE), "a MyST directive"
    assert not re.search(r"\{[\w:-]+\}`", prose), "a MyST role"
    assert not re.search(r"^\(.+\)=$", prose, re.MULTILINE), "a MyST target"
    relative = re.findall(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)", prose)
    assert not relative, f"relative images, use visualize.show_image: {relative}"


@each_notebook
def test_names_no_path_of_one_machine(path):
    text = path.read_text(encoding="utf8")
    found = re.findall(r"(?<![\w.])/(?:home|Users|work|root|tmp|mnt)/[\w./-]+", text)
    assert not found, found


@each_notebook
def test_is_in_the_table_of_contents(path):
    page = str(path.relative_to(ROOT).with_suffix(""))
    assert page in listed_pages(), f"add `- file: {page}` to _toc.yml"


CALL = re.compile(r"checks\.(ch\d\d\.\w+)\(")
chapters = [path for path in NOTEBOOKS if re.match(r"\d\d_", path.name)
            and path.parent.name == "book"]


@pytest.mark.parametrize("path", chapters, ids=[path.name for path in chapters])
def test_every_exercise_has_a_check_that_its_solution_passes(path):
    called = set(CALL.findall("\n".join(cell["source"] for cell in cells(path, "code"))))
    assert called, "no exercise of this chapter has a check"
    solutions = path.parent / "solutions" / path.name
    assert solutions.exists(), f"no solutions page {solutions.relative_to(ROOT)}"
    solved = "\n".join(cell["source"] for cell in cells(solutions, "code"))
    missing = {name for name in called if f"assert checks.{name}(" not in solved}
    assert not missing, f"solutions/{path.name} does not assert {missing}"


@pytest.mark.parametrize("path", chapters, ids=[path.name for path in chapters])
def test_every_exercise_is_told_and_solved(path):
    """Exercises N.1, N.2, ... stand below their heading, and on the page of solutions."""
    number = int(path.name[:2])

    def numbered(page, after=""):
        prose = "\n".join(cell["source"] for cell in cells(page, "markdown"))
        assert after in prose, f"{page.name} has no {after!r}"
        found = re.findall(rf"^(?:\*\*|## ){number}\.(\d+)\b", prose.partition(after)[2], re.M)
        return [int(exercise) for exercise in found]

    told = numbered(path, after="## Exercises")
    assert told == list(range(1, len(told) + 1)) and len(told) >= 3
    assert told == numbered(path.parent / "solutions" / path.name, after="# ")


def test_every_listed_page_exists():
    missing = [page for page in listed_pages()
               if not any((ROOT / (page + suffix)).exists() for suffix in (".ipynb", ".md"))]
    assert not missing


def public_modules():
    """The lib: tags of every public nn.Module of the library."""
    names = [path.stem for path in (ROOT / "transformer_lib").glob("*.py") if path.stem[0] != "_"]
    modules = [importlib.import_module(f"transformer_lib.{name}") for name in names]
    return {
        f"lib:{module.__name__.rsplit('.', 1)[1]}.{name}"
        for module in modules
        for name, found in vars(module).items()
        if inspect.isclass(found) and issubclass(found, nn.Module)
        and found.__module__ == module.__name__ and not name.startswith("_")
    }


def test_library_objects_are_shown_once():
    """A finished component stands in exactly one chapter; a solution may repeat nothing."""
    shown = {}
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            for tag in cell["metadata"].get("tags", []):
                if tag.startswith("lib:"):
                    shown.setdefault(tag, []).append(path.name)
    assert not {tag: where for tag, where in shown.items() if len(where) > 1}
    assert not public_modules() - set(shown), "public model classes that no chapter builds"


def test_links_between_pages_lead_somewhere():
    broken = []
    for path in [*NOTEBOOKS, *sorted((ROOT / "book").glob("*.md"))]:
        prose = prose_without_code(path) if path.suffix == ".ipynb" else path.read_text("utf8")
        for target in re.findall(r"\]\(([^)#\s]+\.(?:ipynb|md))(?:#[^)]*)?\)", prose):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.name} -> {target}")
    assert not broken


def run_repository(argument, root=ROOT):
    return subprocess.run(
        [sys.executable, root / "tools" / "repository.py", argument],
        capture_output=True, text=True,
    )  # fmt: skip


def test_the_repository_has_one_address():
    result = run_repository("--check")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_a_new_address_reaches_every_place(tmp_path):
    """No file names the old address any more; setting it again gives the files of before."""
    answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    names = [name for name in answer.stdout.decode().split("\0") if (ROOT / name).is_file()]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def contents():
        return {name: (tmp_path / name).read_bytes() for name in names}

    before, old = contents(), setup_cell.repository_url()
    assert sum(old.encode() in content for content in before.values()) > len(NOTEBOOKS)
    result = run_repository("https://example.org/ada/engine", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    slug = repository.slug(old).encode()  # what links to Colab and Binder carry
    assert not [name for name, content in contents().items() if slug in content]
    assert run_repository("--check", tmp_path).returncode == 0
    run_repository(old, tmp_path)
    assert [name for name, content in contents().items() if content != before[name]] == []

    with open(tmp_path / "README.md", "a", encoding="utf8") as readme:
        readme.write("https://mybinder.org/v2/gh/ada/engine/main\n")
    assert "README.md has a link to ada/engine" in run_repository("--check", tmp_path).stdout


@pytest.mark.parametrize("given", [
    "https://github.com/you/book/", "https://github.com/you/book.git", "git@github.com:you/book.git"
])  # fmt: skip
def test_an_address_is_kept_as_every_reader_can_fetch_it(given):
    assert repository.for_everybody(given) == "https://github.com/you/book"


# ---- the tools themselves ----------------------------------------------------------------------

def a_notebook(source="print(1)", tags=(), **cell):
    code = {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source,
            "outputs": [], "execution_count": None} | cell  # fmt: skip
    return {"cells": [code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_sync_writes_the_library_source():
    after = sync.synced(a_notebook("stale", ["lib:masks.causal_mask"]), "x")
    source = "".join(after["cells"][0]["source"])
    assert source.startswith("def causal_mask(")
    assert source == sync.library_source("masks.causal_mask")


def test_sync_dedents_a_method():
    source = sync.library_source("attention.MultiHeadAttention.forward")
    assert source.startswith("def forward(")
    compile(source, "cell", "exec")


@pytest.mark.parametrize("name", ["masks", "masks.no_such_name"])
def test_sync_refuses_an_unknown_object(name):
    with pytest.raises(ValueError, match=name.split(".")[-1]):
        sync.library_source(name)


def test_sync_strips_outputs_and_is_stable():
    dirty = a_notebook(execution_count=3, outputs=[{"output_type": "stream", "text": "1"}])
    clean = sync.synced(dirty, "x")
    assert clean["cells"][0]["outputs"] == [] and clean["cells"][0]["execution_count"] is None
    assert clean["cells"][0]["id"]
    assert sync.synced(clean, "x") == clean
    assert sync.differences(dirty, clean) == ["cell 0: outputs"]


def test_setup_cell_does_nothing_where_the_library_is_installed(tmp_path):
    code = setup_cell.setup_cell() + "\nassert 'subprocess' not in dir()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_setup_cell_fetches_the_library_elsewhere(tmp_path):
    """A bare folder and no installed library: the cell clones the configured address."""
    origin, work = tmp_path / "origin", tmp_path / "work"
    work.mkdir()
    package = origin / "transformer_lib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("where = 'clone'\n")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "test"]):
        subprocess.run([*git, *command], cwd=origin, check=True)
    # Git reads the configured address as this local folder; -S hides the installed packages.
    # Every light package is declared present, so that nothing is installed.
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name: real(name) if name == 'transformer_lib' else True\n"
        + setup_cell.setup_cell()
        + "\nimport transformer_lib; assert transformer_lib.where == 'clone'"
        + "\nimport os; assert os.environ['PYTHONPATH'] in transformer_lib.__file__"
    )
    env = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{origin}.insteadOf",
        "GIT_CONFIG_VALUE_0": setup_cell.repository_url(),
    }  # fmt: skip
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=work, env=env)


@pytest.mark.parametrize("path", chapters, ids=lambda path: path.stem)
def test_the_time_for_the_exercises_is_the_sum_of_theirs(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    each = re.findall(r"\*\*\d+\.\d[^*]*\*\* \([^)]*?(\d+) minutes\)", text)
    assert re.findall(r"(\d+) more for the exercises", text) == [str(sum(map(int, each)))]
