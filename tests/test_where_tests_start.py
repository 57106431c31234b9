"""The tests start where a user may start them: in a shell's background, where Ctrl-C is ignored, in
a locale without UTF-8, and from a checkout in which nothing may be written."""

import ast
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="of POSIX: signals, locales, permissions")


def pytest_in(root, *arguments, env=None, **options):
    """The outcome of pytest in a process of its own, which keeps nothing."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    kept = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, cwd=root, env=os.environ | kept | (env or {}), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          **options)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_where_ctrl_c_is_ignored():
    """As a shell starts what runs in the background; a child inherits it.

    The test that runs presses Ctrl-C where only Python's own handler listens: training sets one of
    its own, which hears it anyway."""
    out = pytest_in(ROOT, "tests/test_experiments.py", "-k", "after_ctrl_c_no_other",
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert "1 passed" in out


def test_in_a_locale_without_utf8():
    """A test reads a diagram that holds more than ASCII. The next test asks of all other code."""
    out = pytest_in(ROOT, "tests/test_visualize.py", "-k", "on_a_phone and paths", env=WITHOUT_UTF8)
    assert "1 passed" in out


def without_encoding(path):
    """The lines of a file of code that read or write text in whatever encoding the locale has."""
    for call in ast.walk(ast.parse(path.read_bytes())):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        method = isinstance(call.func, ast.Attribute)
        named = {keyword.arg for keyword in call.keywords}
        if None in named or named & {"encoding", "errors"}:  # **options are not looked into
            continue
        places = {"read_text": 1, "write_text": 2} if method else {"open": 4}
        texts = [one.value for one in call.args[1:2] if isinstance(one, ast.Constant)]
        binary = name == "open" and any("b" in str(mode) for mode in texts)
        process = name in ("run", "Popen", "check_output") and named & {"text"}
        if process or not binary and len(call.args) < places.get(name, 0):
            yield call.lineno


def test_all_that_is_text_is_read_and_written_in_a_named_encoding(tmp_path):
    found = []
    for folder in ("transformer_lib", "exercises", "labs/grader", "recordings", "tools", "book"):
        paths = [path for path in (ROOT / folder).rglob("*.py") if "lib" not in path.parts]
        assert paths
        found += [f"{path.relative_to(ROOT)}:{line}" for path in paths
                  for line in without_encoding(path)]
    assert not found, "give encoding='utf-8', since a locale may have another"

    path = tmp_path / "code.py"
    path.write_text("a.read_text()\na.write_text(x)\nopen(a)\nopen(a, 'w')\nrun(a, text=True)\n"
                    "open(a, 'rb')\na.read_text('utf8')\nwrite_text(a, x)\na.open()\nrun(a)\n")
    assert [*without_encoding(path)] == [1, 2, 3, 4, 5]


def without_roots_rights():
    """Root may write everywhere, unless it gives up CAP_DAC_OVERRIDE (Linux alone has that)."""
    if os.geteuid() == 0 and sys.platform == "linux":
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP: what is started next is without


@pytest.mark.weekly
def test_all_are_found_in_a_locale_without_utf8():
    assert "error" not in pytest_in(ROOT, "--collect-only", "tests", "--ignore=tests/browser",
                                    env=WITHOUT_UTF8).splitlines()[-1]


def test_from_a_checkout_in_which_nothing_may_be_written(tmp_path):
    """A copy without the right to write."""
    copy, home = tmp_path / "checkout", tmp_path / "home"
    names = ["conftest.py", "test_masks.py", "test_data.py", "tiny_run.py"]
    for name in ("transformer_lib", "pyproject.toml", *(f"tests/{name}" for name in names)):
        source, goal = ROOT / name, copy / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, goal)
    home.mkdir()
    there = {path.relative_to(copy) for path in copy.rglob("*")}
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        found = pytest_in(copy, "tests/test_masks.py", "tests/test_data.py", "-k",
                          "causal or json_lines", "--basetemp", str(home / "tmp"),
                          env={"HOME": str(home), "TMPDIR": str(home)},
                          preexec_fn=without_roots_rights)
    finally:
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert " passed" in found
    assert {path.relative_to(copy) for path in copy.rglob("*")} == there
