"""Loss against parameters and tokens: the fit that the chapter prints, and the runs behind it."""

import json
import math
from pathlib import Path

import pytest
import torch

from recordings.beyond import scaling

ROOT = Path(__file__).resolve().parents[1]


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
    grid = scaling.settings("grid")
    cells = {(run["width"], run["share"]) for run in grid}
    assert cells == {(w, s) for w in scaling.WIDTHS for s in scaling.SHARES}
    costs = [run["width"] ** 2 / run["share"] for run in grid]
    assert costs == sorted(costs), "small runs first, so that stopping early leaves a small grid"


def test_a_control_has_its_run_of_the_grid():
    grid = scaling.settings("grid")
    for changed in ("rate", "epochs"):
        for run in scaling.settings(changed):
            assert run[changed] != 1
            assert run | {changed: 1} in grid


def test_the_recorded_runs_belong_together():
    records = json.loads(scaling.OUT.read_text(encoding="utf8"))["records"]
    assert [r["settings"] for r in records] == [settings for settings, _ in scaling.grid()]
    for r in records:
        assert r["embedding"] == scaling.VOCABULARY * r["settings"]["width"] < r["parameters"]
        assert r["parameters"] == r["run"]["parameters"]
        assert r["loss"] < math.log(scaling.VOCABULARY), "no better than a guess"
