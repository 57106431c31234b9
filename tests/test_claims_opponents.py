"""What the chapters say of other settings is made from recordings of their cells."""

import ast
import contextlib
import copy
import importlib.util
import io
import json
import math
import random
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "claims"))

# Of each grid: the cells of its page that tell it, behind those that they need.
TELL = {
    "remember": ("7de88c4f", "remember-01-figure", "remember-01-says"),
    "game": ("8bdb43e9", "8f458cb7", "game-figure-03", "game-says-03"),
    "beyond": ("7cd56cf4", "beyond-longer-06"),
    "hunt": ("a2e684f0", "b0dc2947", "hunt-says-09"),
    "wirings": ("980decad", "aeb19353"),
    "starts": ("4a1b4da6", "85d9182a", "089027ee", "starts-says-11"),
    "shift": ("e2224d40", "ana-says-12"),
    "toys": ("e3e33266", "3f45f1b8", "patch-recorded-13", "827edd7d", "generalisation-says-13"),
    "beams": ("ac6b154b", "7af57be2", "006cb8b8", "which-alpha-sweep"),
}
CHARTS = {
    "remember-01-figure",
    "game-figure-03",
    "b0dc2947",
    "aeb19353",
    "089027ee",
    "827edd7d",
    "7af57be2",
}
grids = pytest.mark.parametrize("name", TELL)
MODULES = {}


@pytest.fixture(autouse=True)
def gradients_stay_on():
    with torch.enable_grad():
        yield


def module(name):
    """tools/claims/<name>.py, whatever else has that name."""
    if name not in MODULES:
        path = ROOT / "tools" / "claims" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"claims_{name}", path)
        MODULES[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(MODULES[name])
    return MODULES[name]


def recording(name):
    return json.loads(module(name).OUT.read_text(encoding="utf8"))


@grids
def test_the_whole_grid_is_recorded(name):
    records = recording(name)["records"]
    assert [r["settings"] for r in records] == [settings for settings, _ in module(name).grid()]
    assert module(name).OUT.stat().st_size < 100_000
    assert sum(r["seconds"] for r in records) < 15 * 60


@pytest.mark.parametrize("name", ["remember", "game", "hunt", "wirings", "starts", "toys"])
def test_the_first_number_is_made_again(name, monkeypatch):
    """After a step or two: the page's code, seeds and data are those of the recording."""
    monkeypatch.setattr(module(name), "LOOKS", (2,))
    settings, measure = next(iter(module(name).grid()))
    (r,) = [r for r in recording(name)["records"] if r["settings"] == settings]
    assert measure()["first"] == pytest.approx(r["first"], rel=0.05, abs=0.01)


def told(name, recorded, folder, monkeypatch):
    """What the cells print, and what their charts say."""
    (folder / "claims").mkdir(exist_ok=True)
    (folder / "claims" / f"{name}.json").write_text(json.dumps(recorded))
    monkeypatch.setenv("RESULTS_DIR", str(folder))
    monkeypatch.setenv("BOOK_SCALE", "smoke")
    page = json.loads((ROOT / "book" / f"{module(name).PAGE}.ipynb").read_text(encoding="utf8"))
    source = {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}
    names, text, charts = {}, io.StringIO(), []
    with contextlib.redirect_stdout(text):
        for cell in TELL[name]:
            lines, last = source[cell], None
            if cell in CHARTS:
                *lines, last = ast.parse(source[cell]).body
                lines = ast.Module(lines, [])
            exec(compile(lines, cell, "exec"), names)
            if last:
                chart = eval(compile(ast.Expression(last.value), cell, "eval"), names).to_dict()
                charts.append(json.dumps([chart["title"], chart["description"]]))
    return text.getvalue(), charts


def other(value, rng):
    """The same with other numbers: results are floats, settings and counts are not."""
    if isinstance(value, dict):
        return {k: v if k in ("settings", "seconds") else other(v, rng) for k, v in value.items()}
    if isinstance(value, list):
        return [other(x, rng) for x in value]
    return rng.uniform(0.2, 0.9) if isinstance(value, float) else value


@grids
def test_another_recording_is_told_otherwise(name, tmp_path, monkeypatch):
    """Every finding follows the numbers: none is written by hand."""
    recorded = recording(name)
    text, charts = told(name, recorded, tmp_path, monkeypatch)
    changed = copy.deepcopy(recorded)
    changed["records"] = other(changed["records"], random.Random(0))
    other_text, other_charts = told(name, changed, tmp_path, monkeypatch)
    assert len(charts) == len(CHARTS & set(TELL[name]))
    for chart, other_chart in zip(charts, other_charts, strict=True):
        assert chart != other_chart
    assert text != other_text or TELL[name][-1] in CHARTS


def values(name, value, **settings):
    """What all recorded seeds gave, at all steps."""
    found = [r for r in recording(name)["records"] if settings.items() <= r["settings"].items()]
    return [x for r in found for x in r[value]]


def test_what_the_page_says_of_the_game_holds():
    """Without a mask it cheats and plays badly; with the answer hidden it cheats and plays well."""
    cheats, honest = ("A: no mask", "C: the answer hidden"), "B: the future hidden"
    best_possible = 3 / 8 * math.log(10)
    for model in cheats:
        assert max(values("game", "loss", model=model)) < best_possible / 2
    assert min(values("game", "loss", model=honest)) > best_possible - 0.02
    assert max(values("game", "right", model=cheats[0])) < 0.2
    assert min(values("game", "right", model=cheats[1])) > 0.95


def test_what_the_pages_say_of_depth_and_of_starts_holds():
    """Two looks learn what no single look learns; the gate that keeps is what a GRU needs."""
    one, two = ("1 layer", "1 layer, wide", "1 layer, wider"), ("1 layer, run twice", "2 layers")
    single = [x for encoder in one for x in values("hunt", "right", encoder=encoder)]
    late = [r["right"][-1] for e in two for r in recording("hunt")["records"]
            if r["settings"]["encoder"] == e]  # fmt: skip
    assert max(single) < 0.7 and min(late) > 0.95
    assert min(values("remember", "right", kind="GRU, keeping gate")) > 0.9
    assert max(values("remember", "right", kind="GRU")) < 0.7
