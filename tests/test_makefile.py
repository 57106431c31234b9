"""`make` prepares its environment, and mends one that was left half made."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EMPTY = """[project]
name = "empty"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


@pytest.fixture
def project(tmp_path):
    """The Makefile, with nothing to install: a pip that only notes what it was asked for."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text(EMPTY)
    return tmp_path


def prepare(project, *options):
    command = ["make", ".venv/.ready", f"PYTHON3={sys.executable}", *options]
    return subprocess.run(command, cwd=project, capture_output=True, text=True)


def fake_python(project, venv: str) -> str:
    """A Python whose venv module runs `venv`, a line of shell in which $last is the folder."""
    path = project / "python"
    path.write_text(
        f'#!/bin/sh\nfor last; do :; done\ncase "$*" in "-m venv"*) {venv};; *) '
        f'exec {sys.executable} "$@";; esac\n'
    )
    path.chmod(0o755)
    return f"PYTHON3={path}"


MADE = """mkdir -p $last/bin; printf '#!/bin/sh\\necho "$@" >> asked\\n' > $last/bin/python
chmod +x $last/bin/python"""


def test_an_environment_without_pip_is_made_again(project):
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to("/bin/false")  # there, and of no use
    done = prepare(project, fake_python(project, "rm -r $last; " + MADE))
    assert done.returncode == 0, done.stderr
    asked = (project / "asked").read_text()
    assert "-m pip install" in asked and (project / ".venv" / ".ready").exists()


def test_an_environment_that_works_stays(project):
    assert prepare(project, fake_python(project, MADE)).returncode == 0
    (project / ".venv" / "mine").write_text("")
    (project / ".venv" / ".ready").unlink()
    assert prepare(project, fake_python(project, "exit 1")).returncode == 0
    assert (project / ".venv" / "mine").exists()


def test_a_python_without_venv_says_what_to_install(project):
    """As on Debian without python3-venv: a folder without pip would be left."""
    half = "mkdir -p $last/bin; ln -sf /bin/false $last/bin/python; exit 1"
    done = prepare(project, fake_python(project, half))
    assert done.returncode != 0 and "apt install python3-venv" in done.stdout
    assert not (project / ".venv").exists()
    assert prepare(project, fake_python(project, MADE)).returncode == 0


def test_every_package_that_the_book_names_is_pinned():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf8").splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    assert named
    assert not [line for line in named if not re.fullmatch(r"[\w-]+==[\w.]+", line)]
