"""The contract that every notebook of the book keeps (see CONTRIBUTING.md)."""

import ast
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import reading_order
import references
from docutils import nodes
from torch import nn

from tools import printed, repository, setup_cell, sync

ROOT = Path(__file__).resolve().parents[2]

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
    """All Markdown of a notebook or a page, fenced blocks with a plain language name removed."""
    if path.suffix == ".ipynb":
        text = "\n\n".join(cell["source"] for cell in cells(path, "markdown"))
    else:
        text = re.sub("`[^`\n]+`", "", path.read_text(encoding="utf8"))
    return re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@each_synced
def test_is_in_step_with_the_library(path, capsys):
    assert sync.main(["--check", str(path)]) == 0, capsys.readouterr().out


def test_sync_names_what_is_stale(tmp_path):
    """As a command: it exits with 1, names the cell, and leaves the file alone."""
    path = tmp_path / "stale.ipynb"
    path.write_text(json.dumps(a_notebook("stale", ["lib:masks.causal_mask"])))
    before = path.read_text()
    command = [sys.executable, "-m", "tools.sync", "--check", path]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 1 and "cell 0 (lib:masks.causal_mask): source" in result.stdout
    assert path.read_text() == before


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
    assert page in reading_order.pages(), f"add `- file: {page}` to _toc.yml"


CALL = re.compile(r"checks\.(\w+\.\w+)\(")
chapters = [ROOT / f"{page}.ipynb" for page in reading_order.chapters()]


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
    """Exercises 1, 2, ... stand below their heading, and on the page of solutions."""

    def numbered(page, after=""):
        prose = "\n".join(cell["source"] for cell in cells(page, "markdown"))
        assert after in prose, f"{page.name} has no {after!r}"
        found = re.findall(r"^(?:\*\*|## )Exercise (\d+)\.", prose.partition(after)[2], re.M)
        return [int(exercise) for exercise in found]

    told = numbered(path, after="## Exercises")
    assert told == list(range(1, len(told) + 1)) and len(told) >= 3
    assert told == numbered(path.parent / "solutions" / path.name, after="# ")


def test_every_listed_page_exists():
    missing = [page for page in reading_order.pages()
               if not any((ROOT / (page + suffix)).exists() for suffix in (".ipynb", ".md"))]
    assert not missing


# What stands beside the book's text on the library's top level: a module or one of its names.
MACHINERY = {
    "config.to_dict": "a configuration as JSON",
    "config.from_dict": "a configuration from JSON",
    "config._Vocabulary": "one field, so that it comes first",
    "run_size": "reads BOOK_SCALE",
    "one_file": "the whole once more, on a page of its own",
    "_door": "puts the guards in front of a module as it is imported",
}


def public_modules():
    """The lib: tags of every public nn.Module of the library's top level and of its models."""
    found = {}
    for name in printed.modules():
        if name not in MACHINERY:
            module = importlib.import_module(f"transformer_lib.{name}")
            found |= {f"lib:{name}.{key}": value for key, value in vars(module).items()
                      if inspect.isclass(value) and value.__module__ == module.__name__}
    return {tag for tag, value in found.items()
            if issubclass(value, nn.Module) and not tag.split(".")[-1].startswith("_")}


def test_library_objects_are_shown_once():
    """A finished component stands in exactly one chapter; a solution may repeat nothing."""
    shown = {}
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            for tag in cell["metadata"].get("tags", []):
                if tag.startswith("lib:"):
                    shown.setdefault(tag, []).append(path.name)
    assert not {tag: where for tag, where in shown.items() if len(where) > 1}
    missing = public_modules() - set(shown)
    assert not missing, "public model classes that no chapter builds"


def test_every_definition_is_printed_in_a_chapter_or_named_as_machinery():
    missing = {f"{module}.{name}" for module, found in printed.report().items()
               for name in found["missing"]}
    machinery = {name for name in missing if {name, name.split(".")[0]} & set(MACHINERY)}
    assert not missing - machinery, "print it (a cell `lib:...`), move it a floor down, or name it"
    unused = [name for name in MACHINERY if not any(f"{found}.".startswith(f"{name}.")
                                                    for found in missing)]
    assert not unused, f"named as machinery, but printed or gone: {unused}"


def test_the_report_tells_printed_definitions_from_others(tmp_path):
    module = tmp_path / "waves.py"
    module.write_text(
        '"""Doc."""\nimport math\n\nUSED, OTHER = 1, 2\nBELOW = USED\nIDLE = 3\nTOLD = 4\n\n\n'
        "def shown():\n    return BELOW\n\n\ndef hidden():\n    return IDLE\n\n\n"
        "class Half:\n    def seen(self):\n        return 1\n\n"
        "    def unseen(self):\n        pass\n"
    )
    found = printed.inspect_module(
        "waves", module, tags={"waves.shown", "waves.Half.seen"}, said={"TOLD = 4"}
    )
    assert found["missing"] == ["hidden", "Half", "IDLE"]
    assert (found["printed"], found["lines"]) == (7, 13)


# ---- live figures ------------------------------------------------------------------------------


def live_figures():
    """(notebook, the call) of every place where a chapter puts a live figure."""
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            if "visualize.live_figure(" in cell["source"]:
                for node in ast.walk(ast.parse(cell["source"])):
                    called = ast.unparse(node.func) if isinstance(node, ast.Call) else None
                    if called == "visualize.live_figure":
                        yield path, node


def test_every_live_figure_has_a_still_picture_and_a_finding():
    """For those without the script: in Colab, in print, with JavaScript off."""
    found = list(live_figures())
    # The family tree is put on its page by book/_ext/family_tree.py, with its drawing inside.
    assert {call.args[0].value for _, call in found} >= {
        file.stem for file in IN_THE_PAGE if file.stem.startswith("figure_")
    } - {"figure_family"}, "a live figure that stands on no page"
    bare = [
        f"{path.name}: {call.args[0].value} without {name}"
        for path, call in found
        for name in ("still", "finding")
        if not [k for k in call.keywords if k.arg == name and ast.unparse(k.value) != "None"]
    ]
    assert not bare, "draw one in the cell: visualize.sentences, bars, curve, attention_squares"


# ---- chapters are named, not numbered ----------------------------------------------------------

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]
LIBRARY = [path for path in sorted((ROOT / "transformer_lib").rglob("*.py"))
           if path.parent.name != "checks"]  # whose modules have numbers for names
IN_THE_PAGE = sorted((ROOT / "book" / "_static" / "live").glob("*.js"))
NUMBER = re.compile(r"\b[Cc]hapters?[ \n]\[?\d+\b|\[\d+\]\((?:\.\./)?\d\d\w+\.ipynb|"
                    r"\b[Ee]xercises? \d+\.\d")


@pytest.mark.parametrize(
    "path",
    [*NOTEBOOKS, *sync.find_masters(), *PAGES, *LIBRARY, *IN_THE_PAGE],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_chapter_is_called_by_a_number(path):
    """A number in a sentence is wrong as soon as a chapter is inserted."""
    text = path.read_text(encoding="utf8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    found = [match[0] for match in NUMBER.finditer(text)]
    assert not found, f"{found}: write `the chapter [Name](file.ipynb)`, in code the name alone"


def test_no_chapter_has_a_number_in_its_title():
    numbered = [page for page in reading_order.chapters() if reading_order.title(page)[0].isdigit()]
    assert not numbered, "the number is written when the book is built"


def linked_pages():
    """(page, its prose) for everything with links to pages of the book."""
    for path in [*NOTEBOOKS, *sync.find_masters(), *PAGES]:
        yield path, prose_without_code(path)


def test_links_between_pages_lead_to_listed_pages():
    listed = set(reading_order.pages())
    broken = []
    for path, prose in linked_pages():
        folder = ROOT / "book" / "labs" if path.parent == ROOT / "labs" else path.parent
        for target in re.findall(r"\]\(([^)#\s]+\.(?:ipynb|md))(?:#[^)]*)?\)", prose):
            if "://" in target:
                continue
            page = (folder / target).resolve()
            inside = (ROOT / "book") in page.parents
            name = page.relative_to(ROOT).with_suffix("").as_posix() if inside else None
            if not page.exists() or (inside and name not in listed):
                broken.append(f"{path.name} -> {target}")
    assert not broken


def test_a_reference_bears_the_name_of_its_chapter():
    names = {Path(page).stem: reading_order.name(page) for page in reading_order.chapters()}
    wrong = []
    for path, prose in linked_pages():
        for name, target in reading_order.references(prose):
            if name != names.get(Path(target).stem):
                wrong.append(f"{path.name}: [{name}]({target})")
    assert not wrong


def a_toc(folder, *files):
    """A folder with this reading order."""
    text = "format: jb-book\nroot: book/intro\nparts:\n- chapters:\n  - glob: book/solutions/*\n"
    text += "".join(f"  - file: book/{name}\n" for name in files)
    (folder / "_toc.yml").write_text(text)
    return folder


def test_numbers_come_from_the_reading_order(tmp_path):
    (tmp_path / "book" / "solutions").mkdir(parents=True)
    (tmp_path / "book" / "solutions" / "02_b.ipynb").touch()
    a_toc(tmp_path, "01_a", "notation", "19_new", "02_b")
    numbers = reading_order.chapters(tmp_path)
    assert numbers == {"book/01_a": 1, "book/19_new": 2, "book/02_b": 3}
    assert reading_order.number_of("book/solutions/02_b", numbers) == 3
    assert reading_order.number_of("book/notation", numbers) is None
    assert reading_order.pages(tmp_path)[:2] == ["book/intro", "book/solutions/02_b"]


def built(monkeypatch, *parts):
    """The paragraph as the site shows it. A part is text, or (name, address) of a link."""
    monkeypatch.setattr(references, "chapters", lambda: {"book/03_masks": 4, "book/15_x": 16})
    monkeypatch.setattr(references, "name", lambda page: "Masks")
    line = nodes.paragraph()
    for part in parts:
        line += nodes.Text(part) if isinstance(part, str) else nodes.reference(
            "", "", nodes.inline("", part[0]), refuri=part[1])
    app = SimpleNamespace(builder=SimpleNamespace(get_target_uri=lambda page: f"{page}.html"))
    references.number_references(app, line, "book/solutions/01_a")
    return line


MASKS, LATER = ("Masks", "../03_masks.html#a"), ("X", "../15_x.html")
LAB = ("Lab", "../labs/lab1.html")


@pytest.mark.parametrize(("parts", "expected"), [
    (["In the chapter ", MASKS, "."], "In chapter 4."),
    (["The chapter ", MASKS, " measures it."], "Chapter 4 measures it."),
    (["it counts (chapter ", MASKS, ", head 1)"], "it counts (chapter 4, head 1)"),
    (["the chapters ", MASKS, " (both) and ", LATER, " too"], "chapters 4 (both) and 16 too"),
    (["chapters ", MASKS, " to ", LATER], "chapters 4 to 16"),
    (["the chapter ", MASKS, ", ", LAB, " and ", LATER], "chapter 4, Lab and X"),
    (["see ", MASKS, " or the ", LAB], "see Masks or the Lab"),
    (["the chapter ", LAB], "the chapter Lab"),
])
def test_the_site_shows_numbers_for_names(monkeypatch, parts, expected):
    line = built(monkeypatch, *parts)
    assert line.astext() == expected
    written = "".join(p if isinstance(p, str) else f"[{p[0]}]({p[1]})" for p in parts)
    numbered = [link for link in line.findall(nodes.reference) if "reftitle" in link]
    assert len(numbered) == len(reading_order.references(written))


def run_repository(argument, root=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "tools.repository", argument],
        capture_output=True, text=True, cwd=root,
    )


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
])
def test_an_address_is_kept_as_every_reader_can_fetch_it(given):
    assert repository.for_everybody(given) == "https://github.com/you/book"


# ---- the tools themselves ----------------------------------------------------------------------

def a_notebook(source="print(1)", tags=(), **cell):
    code = {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source,
            "outputs": [], "execution_count": None} | cell
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


def test_sync_writes_a_constant():
    assert sync.library_source("config.PAD").startswith("PAD, BOS, EOS, UNK = ")


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
    }
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd=work, env=env)


@pytest.mark.parametrize("path", chapters, ids=lambda path: path.stem)
def test_the_time_for_the_exercises_is_the_sum_of_theirs(path):
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    each = re.findall(r"\*\*Exercise \d+\.[^*]*\*\* \([^)]*?(\d+) minutes\)", text)
    assert re.findall(r"(\d+) more for the exercises", text) == [str(sum(map(int, each)))]


def test_the_bibliography_can_be_read():
    """Each entry closes before the next begins, and has a key of its own."""
    text = (ROOT / "book" / "references.bib").read_text(encoding="utf8")
    entries = re.split(r"^(?=@)", text, flags=re.MULTILINE)[1:]
    keys = [re.match(r"@\w+\{(\w+),", entry)[1] for entry in entries]
    assert len(set(keys)) == len(keys)
    for key, entry in zip(keys, entries, strict=True):
        assert entry.count("{") == entry.count("}"), f"{key}: a brace is missing"


def test_cells_that_the_slides_show_are_there():
    """A deck of course/slides/decks.yml names cells of the chapters: name another, or drop it."""
    from course import slides

    missing = [problem for deck in slides.load() for problem in slides.problems(deck)]
    assert not missing, "mend course/slides/decks.yml:\n" + "\n".join(missing)


def test_chapters_have_questions():
    """A new or renamed chapter: give it items in course/questions, or rename their `chapter`."""
    from course import bank

    gone = {item.chapter for item in bank.load()} - set(bank.chapters())
    assert not gone, f"course/questions has items of chapters that are gone: {sorted(gone)}"
