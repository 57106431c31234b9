"""Notebooks run side by side; one runs again only where something that it reads has changed."""

import signal
import subprocess
import sys

import nbformat
import pytest
from jupyter_cache import get_cache

from tools import build, execute, kernels


def notebook(path, *cells, **metadata):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata.update(metadata)
    nbformat.write(made, path)
    return path


def outputs(path) -> list[str]:
    """What the cache holds for the notebook."""
    cache = get_cache(execute.CACHE)
    _, found = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
    return [output.text.strip() for cell in found.cells for output in cell.outputs]


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A repository with a package `small`, a recorded result, and room for notebooks."""
    for folder in ("book", "small", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "requirements.txt").write_text("# none but\nipykernel==1\n")
    (tmp_path / "_config.yml").write_text("execute: {timeout: 60}")
    (tmp_path / "small" / "__init__.py").write_text("from small.one import ONE")
    (tmp_path / "small" / "one.py").write_text("ONE = 1")
    (tmp_path / "small" / "two.py").write_text("TWO = 2")
    (tmp_path / "results" / "run.json").write_text("[3]")
    monkeypatch.setattr(execute, "ROOT", tmp_path)
    monkeypatch.setattr(execute, "CACHE", tmp_path / "_build" / ".jupyter_cache")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MULTI30K_DIR", str(tmp_path / "none"))
    return tmp_path


def run(*paths, capsys) -> int:
    """Execute the notebooks as a new process would; return how many were not up to date."""
    execute.file_digest.cache_clear()
    execute.surroundings.cache_clear()
    capsys.readouterr()
    assert execute.main(list(map(str, paths))) == 0
    return int(capsys.readouterr().out.split(" up to date, ")[1].split()[0])


@pytest.mark.slow
def test_a_notebook_runs_again_where_something_that_it_reads_has_changed(book, capsys, monkeypatch):
    imports = notebook(book / "book" / "a.ipynb", "import small; print(small.ONE)")
    run_json = book / "results" / "run.json"
    reads = notebook(book / "book" / "b.ipynb", f"print(open({str(run_json)!r}).read())")
    assert run(imports, reads, capsys=capsys) == 2
    assert outputs(imports) == ["1"] and outputs(reads) == ["[3]"]
    assert run(imports, reads, capsys=capsys) == 0

    (book / "small" / "two.py").write_text("TWO = 22")  # nobody imports it
    assert run(imports, reads, capsys=capsys) == 0
    (book / "small" / "one.py").write_text("ONE = 11")
    assert run(imports, reads, capsys=capsys) == 1
    assert outputs(imports) == ["11"]
    run_json.write_text("[4]")
    assert run(imports, reads, capsys=capsys) == 1
    assert outputs(reads) == ["[4]"]

    notebook(imports, "import small; print(small.ONE + 1)")
    assert run(imports, reads, capsys=capsys) == 1
    assert outputs(imports) == ["12"]
    monkeypatch.setenv("BOOK_SCALE", "cpu")
    assert run(imports, reads, capsys=capsys) == 2


@pytest.mark.slow
def test_what_a_process_started_by_a_notebook_reads_counts(book, capsys):
    code = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', " \
           "'import small.two; print(small.two.TWO)']).decode())"
    starts = notebook(book / "book" / "a.ipynb", code)
    assert run(starts, capsys=capsys) == 1 and outputs(starts) == ["2"]
    (book / "small" / "two.py").write_text("TWO = 22")
    assert run(starts, capsys=capsys) == 1 and outputs(starts) == ["22"]


@pytest.mark.slow
def test_a_notebook_that_fails_fails_the_command(book, capsys):
    fails = notebook(book / "book" / "a.ipynb", "1 / 0")
    late = notebook(book / "book" / "b.ipynb", "import time; time.sleep(60)",
                    execution={"timeout": 1})
    works = notebook(book / "book" / "c.ipynb", "print('fine')")
    assert execute.main([str(fails), str(late), str(works)]) == 1
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said and "CellTimeoutError" in said
    assert outputs(works) == ["fine"]
    for path in (fails, late):  # nothing of it is kept
        with pytest.raises(KeyError):
            outputs(path)


@pytest.mark.slow
def test_a_notebook_runs_in_an_empty_folder_as_in_colab(book, capsys):
    looks = notebook(book / "book" / "a.ipynb", "import os; print(os.listdir())")
    assert run(looks, capsys=capsys) == 1 and outputs(looks) == ["[]"]


def test_files_beside_weights_count(book):
    """Rust reads weights and tokenizers, which Python does not notice."""
    run_dir = book / "results" / "run"
    run_dir.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (run_dir / name).write_text("{}")
    noted = {str(run_dir / "config.json"),
             str(book / "small" / "__pycache__" / "one.cpython-311.pyc"),
             str(book / ".venv" / "site-packages" / "torch.py")}
    assert execute.depends_on(noted) == [
        "results/run/config.json", "results/run/model.safetensors", "results/run/tokenizer.json",
        "small/one.py",
    ]


def test_a_page_is_found_by_how_its_name_begins():
    assert build.find_page("03") == "book/03_masks"
    assert build.find_page("masks") == "book/03_masks"
    assert build.find_page("solutions/03") == "book/solutions/03_masks"
    assert build.find_page("gloss") == "book/glossary"
    assert build.find_page("speed") == "book/speed"  # and not speedrun, which begins so
    with pytest.raises(SystemExit, match="nothing.*book/03_masks"):
        build.find_page("nothing")


@pytest.mark.slow
@pytest.mark.skipif(not kernels.AVAILABLE, reason="kernels are forks on Linux only")
def test_a_forked_kernel_has_torch_and_shares_nothing_else_with_the_next(book):
    told = (
        "import os, random, sys; print('torch' in sys.modules, 'tools' in sys.modules, "
        "os.path.basename(os.getcwd()), os.getpid() == os.getpgid(0)); {}"
        "print(random.random(), sys.modules['numpy'].random.rand())"
    )
    first, second = (
        notebook(book / "book" / f"{name}.ipynb", told.format(f"os.environ['{name}'] = '1';"))
        for name in "ab"
    )
    assert execute.main(["--jobs=1", str(first), str(second)]) == 0  # one process forks both
    facts, numbers = outputs(first)[0].split("\n")
    others, other_numbers = outputs(second)[0].split("\n")
    assert facts == others == "True False alone True"
    assert set(numbers.split()).isdisjoint(other_numbers.split())


@pytest.mark.slow
def test_a_kernel_that_dies_fails_its_notebook_and_not_the_next(book, capsys):
    dies = notebook(book / "book" / "a.ipynb", "import os; os._exit(3)")
    lives = notebook(book / "book" / "b.ipynb", "print(1)")
    assert execute.main([str(dies), str(lives)]) == 1
    assert "DeadKernelError" in capsys.readouterr().err and outputs(lives) == ["1"]


def test_a_fork_is_ended_and_one_that_has_ended_is_left_alone():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    fork = kernels.Fork(child.pid)
    assert fork.poll() is None
    fork.terminate()
    assert child.wait(10) == -signal.SIGTERM and fork.poll() == 0
    fork.terminate(), fork.kill()  # between asking whether it runs and ending it, it may have ended
