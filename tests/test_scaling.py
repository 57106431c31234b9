"""Loss against parameters and tokens: the fit that the chapter prints, and the runs behind it."""

import json
import math
from pathlib import Path

import pytest
import torch

from recordings.beyond import scaling

ROOT = Path(__file__).resolve().parents[1]

RECORDED = ROOT / "results" / "beyond" / "scaling.json"


@pytest.fixture(scope="module")
def fit_law():
    """The function as the notebook prints it."""
    notebook = json.loads((ROOT / "book" / "scaling.ipynb").read_text(encoding="utf8"))
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "scale-fit")
    names = {"torch": torch}
    exec("".join(cell["source"]).partition("\n\n\nlaw = ")[0], names)
    return names["fit_law"]


def runs_of(alpha, beta, floor):
    """A grid that follows the law to the digit."""
    return [
        {"parameters": N, "tokens": D, "loss": floor + 50 * N**-alpha + 80 * D**-beta}
        for N in (2e4, 6e4, 2e5, 5e5)
        for D in (1e5, 3e5, 6e5)
    ]


@pytest.mark.parametrize(("alpha", "beta", "floor"), [(0.5, 0.3, 1.5), (0.2, 0.6, 0.5)])
def test_the_fit_finds_the_law_that_made_the_runs(fit_law, alpha, beta, floor):
    found = fit_law(runs_of(alpha, beta, floor), n=100)
    assert found["alpha"] == pytest.approx(alpha, abs=0.011)  # half a step of the search
    assert found["beta"] == pytest.approx(beta, abs=0.011)
    assert found["E"] == pytest.approx(floor, abs=0.1)
    unseen = floor + 50 * 1e6**-alpha + 80 * 1e6**-beta
    assert found["loss"](1e6, 1e6) == pytest.approx(unseen, abs=0.02)


def test_without_a_floor_the_law_falls_to_nothing(fit_law):
    found = fit_law(runs_of(0.5, 0.3, 0.0), floor=False, n=100)
    assert found["E"] == 0.0 and found["loss"](1e30, 1e30) < 1e-3
    assert found["error"] < 1e-3


def test_a_grid_is_every_width_with_every_amount_of_text():
    grid = scaling.settings("grid", 0)
    cells = {(run["width"], run["share"]) for run in grid}
    assert cells == {(w, s) for w in scaling.WIDTHS for s in scaling.SHARES}
    costs = [run["width"] ** 2 / run["share"] for run in grid]
    assert costs == sorted(costs), "small runs first, so that stopping early leaves a small grid"


def test_a_control_has_its_run_of_the_grid():
    grid = [run | {"kind": ""} for run in scaling.settings("grid", 0)]
    for kind, changed in (("rate", "rate"), ("epochs", "epochs")):
        for run in scaling.settings(kind, 0):
            assert run[changed] != 1
            assert run | {"kind": "", changed: 1} in grid


@pytest.mark.skipif(not RECORDED.exists(), reason="no run is recorded")
def test_the_recorded_runs_belong_together():
    found = json.loads(RECORDED.read_text(encoding="utf8"))
    keys = ("kind", "seed", "width", "share", "rate", "epochs")
    names = [tuple(run[key] for key in keys) for run in found["runs"]]
    assert len(set(names)) == len(names)
    vocabulary = found["shared"]["vocabulary"]
    for run in found["runs"]:
        assert {key: run[key] for key in keys} in scaling.settings(run["kind"], run["seed"])
        assert run["embedding"] == vocabulary * run["width"] < run["parameters"]
        assert run["peak_lr"] == run["rate"] / run["width"]
        assert run["loss"] < math.log(vocabulary), "no better than a guess"
        assert run["date"] and run["commit"] and run["device"] and run["seconds"] > 0


def test_new_runs_are_added_to_what_was_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(scaling, "RESULTS", tmp_path)
    run = {"kind": "grid", "seed": 0, "width": 16, "tokens": 9, "rate": 1}
    old = [run | {"peak_lr": 1}, run | {"width": 32, "peak_lr": 1}]
    (tmp_path / "scaling.json").write_text(json.dumps({"shared": {}, "runs": old}))
    for width in (16, 256):
        folder = tmp_path / "runs" / "scaling" / str(width)
        folder.mkdir(parents=True)
        new = run | {"width": width, "train": {"peak_lr": 2, "seed": 0, "precision": "bf16"}}
        (folder / "result.json").write_text(json.dumps(new))
    scaling.collect()
    found = json.loads((tmp_path / "scaling.json").read_text())
    assert [(run["width"], run["peak_lr"]) for run in found["runs"]] == [(16, 2), (32, 1), (256, 2)]
    assert found["shared"]["precision"] == "bf16" and "seed" not in found["shared"]
