"""What chapters say of residuals, one vector and warm-up is made from recordings of their cells."""

import ast
import contextlib
import io
import json
import random
import re
from pathlib import Path

import pytest

from recordings.claims import one_vector, residuals, warm_up
from transformer_lib.scoring.verdict import BETTER, compare_runs

ROOT = Path(__file__).resolve().parents[2]


# Grid: the cells that tell of it, behind those that they need.
TELLS = {
    residuals: ("17ca51d7", "facts-says-08", "reverse-grid-08", "reverse-says-08"),
    one_vector: ("980decad", "vector-grid-10", "vector-says-10"),
    warm_up: ("e2224d40", "smoothing-multi30k-12", "warm-grid-12", "warm-says-12"),
}
# Of each grid, the setting of its page.
OF_THE_PAGE = {
    residuals: {"part": "learning", "residual": True, "layers": 6, "rate": 0.003, "gain": 1.0},
    one_vector: {"part": "vector", "squeeze": True, "width": 32, "rate": 0.004},
    warm_up: {"schedule": "constant", "norm_first": False, "rate": 0.01, "beta_2": 0.98},
}
each_grid = pytest.mark.parametrize("grid", TELLS, ids=lambda grid: grid.OUT.stem)


def recorded(grid):
    return json.loads(grid.OUT.read_text(encoding="utf8"))


def found(grid, **settings):
    return [r for r in recorded(grid)["records"] if settings.items() <= r["settings"].items()]


@each_grid
def test_the_whole_grid_is_recorded(grid):
    records = recorded(grid)["records"]
    assert [r["settings"] for r in records] == [settings for settings, _ in grid.grid()]
    assert grid.OUT.stat().st_size < 200_000
    assert sum(r["seconds"] for r in records) < 15 * 60
    for r in found(grid, **OF_THE_PAGE[grid]):
        others = r["settings"] | {"seed": None}
        seeds = [o["settings"]["seed"] for o in records if o["settings"] | {"seed": None} == others]
        assert sorted(seeds) == list(grid.SEEDS)


def test_the_first_losses_are_made_again():
    for residual in (True, False):
        settings = {"layers": 6, "rate": 0.003, "gain": 1.0, "seed": 0}
        (r,) = found(residuals, part="learning", residual=residual, **settings)
        curve = residuals.page.train_reverser(residual, 0, 1)
        assert curve[0]["loss"] == pytest.approx(r["first_loss"], rel=1e-3)
    (r,) = found(warm_up, seed=0, change="nothing", **OF_THE_PAGE[warm_up])
    model = warm_up.page.new_model(0, norm_first=False)
    (row,) = warm_up.page.train(model, 1, lambda step: 0.01)
    assert row["loss"] == pytest.approx(r["first_loss"], rel=1e-3)


def test_the_shares_of_sentences_are_shares():
    for r in found(one_vector):
        steps = r["settings"]["steps"]
        assert r["steps"] == [step for step in one_vector.STEPS if step <= steps]
        for shares in r["whole"]:
            assert list(shares) == [str(n) for n in range(2, one_vector.page.LONGEST + 1)]
            assert all(0 <= share <= 1 for share in shares.values())


def test_one_vector_learns_long_sentences_later_and_is_not_full():
    """More updates and more numbers help it; a row for each token is far ahead of both."""

    def eight(squeeze, width, updates, rate=0.004):
        runs = found(one_vector, squeeze=squeeze, width=width, rate=rate)
        return {
            r["settings"]["seed"]: r["whole"][r["steps"].index(updates)]["8"]
            for r in runs if updates in r["steps"]
        }

    vector, longer, wider = eight(True, 32, 600), eight(True, 32, 1200), eight(True, 64, 600)
    rows = eight(False, 32, 600)
    assert max(vector.values()) < 0.065 and min(rows.values()) > 0.785
    for better in (longer, wider):
        assert compare_runs(better, vector).word == BETTER and max(better.values()) < 0.2
        assert compare_runs(rows, better).word == BETTER
    # At this rate, a still wider one is no better than the narrow one; at half of it, it is.
    widest = eight(True, 128, 600).values()
    assert f"{min(widest):.0%} {max(widest):.0%}" == "1% 5%"
    at_half = [eight(True, width, 600, 0.002).values() for width in (32, 64, 128)]
    said = [f"{min(found):.0%} {max(found):.0%}" for found in at_half]
    assert said == ["2% 4%", "4% 12%", "13% 14%"]
    worst = [min(eight(False, 32, 600, rate).values()) for rate in (0.002, 0.01)]
    best = [max(eight(True, 32, 600, rate).values()) for rate in (0.002, 0.01)]
    assert [f"{share:.0%}" for share in worst] == ["51%", "19%"] and max(best) < 0.055


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What the page prints for a recording: a function of grid and recording."""

    def tell(grid, recording):
        (tmp_path / "claims").mkdir(exist_ok=True)
        (tmp_path / "claims" / grid.OUT.name).write_text(json.dumps(recording))
        (tmp_path / "ablations.json").write_bytes((ROOT / "results/ablations.json").read_bytes())
        monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
        page = json.loads((ROOT / "book" / f"{grid.PAGE}.ipynb").read_text(encoding="utf8"))
        source = {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}
        names, text = {}, io.StringIO()
        with contextlib.redirect_stdout(text):
            for cell in TELLS[grid]:
                exec(compile(source[cell], cell, "exec"), names)
                last = ast.parse(source[cell]).body[-1]
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), cell, "eval"), names)
                    if hasattr(value, "_repr_html_"):  # a table
                        for row in re.findall("<tr>.*?</tr>", value.data, re.S):
                            print(re.sub("<[^>]+>", "|", row) + ":" * ("<td>" not in row))
        return text.getvalue()

    return tell


@each_grid
def test_another_recording_is_told_otherwise(grid, told):
    """Every sentence follows the numbers: no finding is written by hand."""
    text, other, rng = told(grid, recorded(grid)), recorded(grid), random.Random(0)
    for r in other["records"]:
        if "held" in r:
            r["held"] = rng.random()
        if "losses" in r:
            r["losses"] = [rng.uniform(0, 3) for _ in r["losses"]]
        if "whole" in r:
            r["whole"] = [{n: rng.random() for n in shares} for shares in r["whole"]]
        for measure in ("last", "later"):
            if measure in r:
                r[measure] = rng.uniform(0, 6)
    changed = told(grid, other)
    same = {line for line in text.splitlines() if any(x.isdigit() for x in line)}
    same &= set(changed.splitlines())
    # Headings say what is measured; scores of whole translators are recorded elsewhere.
    others = ("BLEU", "chrF", "||with smoothing||", "||without||")
    assert not [line for line in same if line[-1] != ":" and not any(x in line for x in others)]


def test_what_the_page_says_of_random_facts_holds():
    """At equal parameters SwiGLU is ahead where something is left to learn; width doubles facts."""

    def held(activation, **settings):
        settings |= {"part": "facts", "activation": activation}
        return [r["held"] for r in found(residuals, **settings)]

    ahead = [dict(rate=0.01, steps=200, factor=f) for f in (1, 2, 4)]
    ahead += [dict(rate=0.01, steps=800, factor=f) for f in (1, 2)]
    ahead += [dict(rate=0.003, steps=200, factor=4)]
    for setting in ahead:
        for other in ("relu", "gelu"):
            assert min(held("swiglu", **setting)) > max(held(other, **setting))
    for activation in ("relu", "gelu", "swiglu"):
        assert min(held(activation, rate=0.01, steps=800, factor=4)) > 0.99
        narrow, wide = (sum(held(activation, rate=0.01, steps=800, factor=f)) for f in (1, 2))
        assert 1.8 < wide / narrow < 2.2
