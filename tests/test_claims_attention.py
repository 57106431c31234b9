"""What the chapters on attention say of their recorded grids follows the recording."""

import ast
import contextlib
import copy
import functools
import importlib.util
import io
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "claims"))

# Of each grid: the cells of its page that draw and tell it, behind those that they need.
TELL = {
    "memory": ("7de88c4f", "156c6d4e", "repeat-01-train", "repeat-01-figure"),
    "scaling": ("65c5ef46", "scale-grid-02", "scale-says-02"),
    "questions": ("a097327b", "heads-04-figure", "heads-04-says"),
    "positions": ("7cd56cf4", "few-06-figure", "few-06-says"),
}  # fmt: skip
grids = pytest.mark.parametrize("name", TELL)


@functools.cache
def module(name):
    """tools/claims/<name>.py, whatever else has that name."""
    path = ROOT / "tools" / "claims" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"claims_{name}", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def recording(name):
    return json.loads(module(name).OUT.read_text(encoding="utf8"))


@grids
def test_the_whole_grid_is_recorded(name):
    records = recording(name)["records"]
    assert [r["settings"] for r in records] == [settings for settings, _ in module(name).grid()]
    assert module(name).OUT.stat().st_size < 100_000
    assert sum(r["seconds"] for r in records) < 10 * 60


@grids
def test_the_first_number_of_each_kind_is_made_again(name, monkeypatch):
    """After one step: the page's code, seeds and data are those of the recording."""
    for looks in ("LOOKS", "REPEAT_LOOKS"):
        monkeypatch.setattr(module(name), looks, (2,), raising=False)
    seen = set()
    for (settings, measure), r in zip(module(name).grid(), recording(name)["records"], strict=True):
        kind = tuple(v for k, v in settings.items() if isinstance(v, str | bool))
        if kind not in seen:
            seen.add(kind)
            assert measure()["first"] == pytest.approx(r["first"], rel=0.05, abs=0.01)


def told(name, recorded, folder, monkeypatch):
    """What the cells print, and the titles of their charts."""
    (folder / "claims").mkdir(exist_ok=True)
    (folder / "claims" / f"{name}.json").write_text(json.dumps(recorded))
    monkeypatch.setenv("RESULTS_DIR", str(folder))
    monkeypatch.setenv("BOOK_SCALE", "smoke")
    page = json.loads((ROOT / "book" / f"{module(name).PAGE}.ipynb").read_text(encoding="utf8"))
    source = {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}
    names, text, charts = {}, io.StringIO(), []
    with contextlib.redirect_stdout(text):
        for cell in TELL[name]:
            *lines, last = ast.parse(source[cell]).body
            exec(compile(ast.Module(lines, []), cell, "exec"), names)
            if cell.endswith("figure") or "grid" in cell:
                expression = ast.Expression(last.value)
                charts.append(eval(compile(expression, cell, "eval"), names).to_dict())
            else:
                exec(compile(ast.Module([last], []), cell, "exec"), names)
    return text.getvalue(), [(chart["title"], chart["description"]) for chart in charts]


@grids
def test_another_recording_is_told_otherwise(name, tmp_path, monkeypatch):
    recorded = recording(name)
    text, charts = told(name, recorded, tmp_path, monkeypatch)
    other = copy.deepcopy(recorded)
    for i, r in enumerate(other["records"]):
        for key in ("right", "loss"):
            if key in r:
                r[key] = [
                    dict.fromkeys(x, 0.77) if isinstance(x, dict) else 0.77 - 0.001 * (i % 7)
                    for x in r[key]
                ]
    changed, other_charts = told(name, other, tmp_path, monkeypatch)
    for (title, description), (other_title, other_description) in zip(
        charts, other_charts, strict=True
    ):
        assert title != other_title and description != other_description
    if any(cell.endswith("says") or "says" in cell for cell in TELL[name]):
        assert text != changed


def values(name, part, value, steps, **settings):
    """What all seeds gave after so many steps."""
    return [
        r[value][r["steps"].index(steps)]
        for r in recording(name)["records"]
        if ({"part": part} | settings).items() <= r["settings"].items()
    ]


def test_the_findings_hold_in_every_seed():
    """What the prose around the figures says; a new recording may make it wrong."""
    for rate in (0.003, 0.03):  # one start and either rate do for every d_k, when divided
        divided = {"scores": "divided", "start": 1.0, "rate": rate}
        assert max(values("scaling", "averaging", "loss", 500, **divided)) < 0.1
    bare = {"scores": "not divided", "rate": 0.03, "d_k": 256}
    assert min(values("scaling", "averaging", "loss", 500, **bare)) > 0.5
    small = {"scores": "not divided", "rate": 0.003, "start": 0.35}
    assert max(values("scaling", "averaging", "loss", 500, **small)) < 0.1

    circle, alone = ("questions", "circle", "right"), {"heads": 1, "reader": "network"}
    for steps in (250, 500, 1000):
        assert max(values(*circle, steps, heads=1, reader="linear map")) < 0.4
        assert min(values(*circle, steps, heads=4)) > 0.99
    assert max(values(*circle, 250, **alone)) < min(values(*circle, 1000, **alone)) < 0.9

    for steps in (100, 200, 400):
        drowned = {"positions": "sinusoidal", "size": 0.02}
        assert max(values("positions", "few", "right", steps, **drowned)) < 0.4
        for size in (0.02, 0.71):
            for n in (25, 50, 200):
                pair = {"size": size, "sequences": n}
                learned = values("positions", "few", "right", steps, positions="learned", **pair)
                fixed = values("positions", "few", "right", steps, positions="sinusoidal", **pair)
                assert min(fixed) <= max(learned), "no fair pair has the sinusoids ahead"
                assert size < 0.1 or n > 25 or min(learned) > max(fixed)
