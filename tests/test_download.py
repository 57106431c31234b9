"""An installation without results/: the shipped runs are fetched, or it is said what to do."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from transformer_lib import load_pretrained
from transformer_lib.corpora.cache import cache_dir
from transformer_lib.runs import download, pretrained

ROOT = Path(__file__).resolve().parents[1]
RUN = "multi30k-de-en"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """As after `pip install` of the wheel: no results/, an empty cache, a repository nearby."""
    (tmp_path / "repository").mkdir()
    shutil.copytree(ROOT / "results" / RUN, tmp_path / "repository" / "results" / RUN)
    address = {"repository": (tmp_path / "repository").as_uri()}
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shipped = download.shipped() | address
    monkeypatch.setattr(download, "shipped", lambda: shipped)
    return tmp_path


def test_a_shipped_run_is_fetched_once(installed):
    text = ["Zwei Hunde spielen im Schnee ."]
    first = load_pretrained(RUN).translate(text)[0].text
    assert first == load_pretrained(ROOT / "results" / RUN).translate(text)[0].text
    shutil.rmtree(installed / "repository")
    assert load_pretrained(RUN).translate(text)[0].text == first
    assert pretrained.find_run(RUN) == installed / "cache" / "transformer_lib" / "results" / RUN


def test_a_damaged_copy_is_fetched_again_and_a_damaged_source_refused(installed):
    load_pretrained(RUN)
    kept = cache_dir("results") / RUN / "model.safetensors"
    content = kept.read_bytes()
    kept.write_bytes(content[:-9])
    assert load_pretrained(RUN) and kept.read_bytes() == content
    source = installed / "repository" / "results" / RUN / "model.safetensors"
    source.write_bytes(content[:-1] + b"x")
    kept.unlink()
    with pytest.raises(ValueError, match="is not the file that .*SHA-256 differs.*clone"):
        load_pretrained(RUN)
    assert not kept.exists()
    source.unlink()
    with pytest.raises(ConnectionError, match="cannot be fetched .*clone the book's repository"):
        load_pretrained(RUN)


def test_an_address_that_is_not_set_is_said(installed, monkeypatch):
    about = download.shipped() | {"repository": "https://github.com/OWNER/" + "REPOSITORY"}
    monkeypatch.setattr(download, "shipped", lambda: about)
    message = f"{RUN} is not part of this installation, and the address .* not set: clone the book"
    where = "RESULTS_DIR names .*none, a folder that does not exist; and "
    with pytest.raises(ValueError, match=where + message):
        load_pretrained(RUN)
    with pytest.raises(ValueError, match="there is no trained run 'other'"):
        load_pretrained("other")
    about["repository"] = "https://github.com/you/book"
    assert download.raw_address(about) == "https://raw.githubusercontent.com/you/book/main"


@pytest.mark.slow
def test_the_wheel_holds_what_it_needs(tmp_path):
    """Built from a copy of all tracked code, installed beside nothing, asked to translate."""
    source = tmp_path / "source"
    tracked = ["git", "ls-files", "-z", "*.py", "transformer_lib", "exercises", "course",
               "pyproject.toml", "README.md", "LICENSE"]
    names = subprocess.run(tracked, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(names).split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path]
    built = subprocess.run([*pip, source], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    missing = {path.relative_to(source) for package in ("transformer_lib", "exercises")
               for path in source.glob(f"{package}/**/*")
               if path.is_file() and not (site / path.relative_to(source)).exists()}
    assert not missing
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    about = f"transformer_lib-{version}.dist-info"
    assert sorted(path.name for path in site.iterdir()) == ["exercises", "transformer_lib", about]
    environment = os.environ | {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("RESULTS_DIR", None)
    command = [sys.executable, "-m", "transformer_lib", "translate", "Ein Hund."]
    about = json.loads((site / "transformer_lib/runs/shipped.json").read_text())
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    if "OWNER" in about["repository"].split("/"):
        assert done.returncode == 1 and "clone the book's repository" in done.stderr
    about["repository"] = ROOT.as_uri()
    (site / "transformer_lib/runs/shipped.json").write_text(json.dumps(about))
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "dog" in done.stdout, done.stderr
