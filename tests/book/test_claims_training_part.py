"""What the chapters on data and on looking inside say is made from what they recorded."""

import ast
import contextlib
import copy
import io
import itertools
import json
from pathlib import Path

import pytest
import torch

from recordings.claims import batches as batches_grid
from recordings.claims import heads as heads_grid

ROOT = Path(__file__).resolve().parents[2]


GRIDS = [batches_grid, heads_grid]
# Of each page: the cells that tell what is recorded, and those that they need.
TELLS = {
    batches_grid: ("216bff43", "price-figure-14", "price-says-14"),
    heads_grid: (
        "95deee0e", "odd-head-recorded-18", "odd-head-others-18", "together-figure-18",
        "together-says-18",
    ),
}


def cells(grid):
    page = json.loads((ROOT / "book" / f"{grid.PAGE}.ipynb").read_text(encoding="utf8"))
    return {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}


def recording(grid):
    return json.loads(grid.OUT.read_text(encoding="utf8"))


def found(recorded, part, translator=None, **settings):
    """The records of a part, of the page's own model or of another translator."""
    wanted = ({"part": part} | settings).items()
    records = [r for r in recorded["records"] if r["settings"].get("translator") == translator]
    return [r for r in records if wanted <= r["settings"].items()]


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What a page prints for a recording: a function of the grid and the recording."""

    def tell(grid, recorded):
        (tmp_path / "claims").mkdir(exist_ok=True)
        (tmp_path / "claims" / grid.OUT.name).write_text(json.dumps(recorded))
        monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
        names, text, source = {}, io.StringIO(), cells(grid)
        if grid is heads_grid:
            names["KINDS"] = {
                "encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross"
            }
            names["FIRST"] = "decoder.layers.0.cross_attention"
        with contextlib.redirect_stdout(text):
            for cell in TELLS[grid]:
                lines, shown = ast.parse(source[cell]).body, None
                if isinstance(lines[-1], ast.Expr):
                    *lines, shown = lines
                exec(compile(ast.Module(lines, []), cell, "exec"), names)
                value = shown and eval(compile(ast.Expression(shown.value), cell, "eval"), names)
                if hasattr(value, "_repr_html_") and not hasattr(value, "to_dict"):  # a table
                    print(value._repr_html_())
        return text.getvalue()

    return tell


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.PAGE)
def test_the_whole_grid_is_recorded(grid):
    recorded = recording(grid)
    assert [r["settings"] for r in recorded["records"]] == [s for s, _ in grid.grid()]
    assert grid.OUT.stat().st_size < 400_000
    assert sum(r["seconds"] for r in recorded["records"]) < 15 * 60


# ---- the pages' own code gives what is recorded ---------------------------------------------


def test_damage_is_measured_against_the_whole_model(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(5, 15, (heads_grid.COUNT,), generator=generator).float()

    def losses(removed, _translator):
        return torch.stack([counts * (1.0 + 0.1 * len(removed)), counts], dim=1)

    monkeypatch.setattr(heads_grid, "losses", losses)
    heads_grid.damage.cache_clear()
    two = heads_grid.together((("a", 0), ("a", 1)))
    heads_grid.damage.cache_clear()
    assert two["damage"] == pytest.approx([0.2] * 3, abs=1e-5)
    assert two["sum"] == pytest.approx(0.2, abs=1e-5)
    assert two["less_sum"] == pytest.approx([0.0] * 3, abs=1e-5)
    assert two["less_largest"] == pytest.approx([0.1] * 3, abs=1e-5)


# ---- what the pages say is made from the files ----------------------------------------------


def numbers(text):
    return {line for line in text.splitlines() if any(x.isdigit() for x in line)}


def test_other_batches_are_told_otherwise(told):
    recorded = recording(batches_grid)
    other = copy.deepcopy(recorded)
    for r in other["records"]:
        loose = r["settings"]["order"] == "longer side"
        again = r["settings"]["pool"] / 2000
        r |= {"padding": [0.77 - again if loose else 0.22 - again / 9], "again": again}
    text, changed = told(batches_grid, recorded), told(batches_grid, other)
    assert not {x for x in numbers(text) & numbers(changed) if "run size" not in x}
    assert "in 0 of" in changed


def test_the_order_bought_dearly_holds():
    """What the prose beside the figure says of the second key."""
    rows = {
        (r["settings"]["order"], r["settings"]["pool"]): r
        for r in found(recording(batches_grid), "padding", fill="tokens")
    }
    loose, exact = rows["longer side", 1000], rows["the library's", 1000]
    assert loose["again"] < exact["again"] / 3 and max(loose["padding"]) < 0.1
    assert f"{loose['again']:.0%} {exact['again']:.0%} {max(loose['padding']):.0%}" == "10% 43% 6%"
    assert all(max(exact["padding"]) < max(r["padding"]) for r in rows.values() if r is not exact)


@pytest.mark.parametrize(("budget", "wins"), [(512, 3), (2048, 4), (8192, 4)])
def test_the_looser_order_wins_in_other_sizes_but_for_one_pool(budget, wins):
    """Padding at the same share met again, between the points of the library's order."""
    of = {"longer side": [], "the library's": []}
    for r in recording(batches_grid)["records"]:
        s = r["settings"]
        if s["fill"] == "tokens" and s.get("budget", 2048) == budget and s["order"] in of:
            of[s["order"]].append((r["again"], sum(r["padding"]) / 2, s["pool"]))
    exact, gains = sorted(of["the library's"]), []
    for again, padding, pool in of["longer side"]:
        if pool >= 10:
            (a, high, _), (b, low, _) = next(
                (p, q) for p, q in zip(exact, exact[1:], strict=False) if p[0] <= again <= q[0]
            )
            gains.append(high + (again - a) / (b - a) * (low - high) - padding)
    assert len(gains) == 4 and sum(gain > 0 for gain in gains) == wins
    assert wins == 4 or -0.001 < min(gains) < 0  # level


def test_other_heads_are_told_otherwise(told):
    recorded = recording(heads_grid)
    other = copy.deepcopy(recorded)
    for r in found(other, "pair"):
        r |= {"sum": 5.5, "largest": 3.3, "less_sum": [2.2, 2.0, 2.4], "less_largest": [4, 3, 5]}
    translators = (None, *heads_grid.OTHERS)
    for part, translator in itertools.product(("whole", "alone", "attention"), translators):
        for r in found(other, part, translator):
            r |= {"repeats": 33, "words": 4444, "damage": [0.55, 0.44, 0.66]}
    text, changed = told(heads_grid, recorded), told(heads_grid, other)
    assert not {x for x in numbers(text) & numbers(changed) if "run size" not in x}
    assert f"more than the sum: {len(found(recorded, 'pair'))} pairs" in changed


def test_the_findings_about_heads_hold():
    """What the prose and the exercise say of the recorded model."""
    recorded = recording(heads_grid)
    ranked = sorted(found(recorded, "alone"), key=lambda r: -r["damage"][0])
    worst, others = ranked[0], ranked[1:]
    assert (worst["settings"]["name"], worst["settings"]["head"]) == (heads_grid.ATTENTIONS[8], 2)
    assert worst["damage"][1] > max(r["damage"][2] for r in others)
    assert worst["repeats"] == 28 and max(r["repeats"] for r in others) == 17
    whole = next(r for r in recorded["records"] if r["settings"]["part"] == "whole")
    assert (whole["repeats"], whole["texts"]) == (10, 150)
    # The rival: heads that never see the source bring as many repeats at less damage.
    (rival,) = found(recorded, "attention", name="decoder.layers.1.self_attention")
    assert rival["repeats"] == 25 and rival["damage"][2] < worst["damage"][1]
    assert len([r for r in found(recorded, "pair") if r["less_sum"][1] > 0]) == 14
    cheaper = [r["settings"] for r in found(recorded, "pair") if r["less_largest"][2] < 0]
    assert len(cheaper) == 3 and all(2 in s["heads"] for s in cheaper)
    (four,) = found(recorded, "attention", name=heads_grid.ATTENTIONS[8])
    assert four["less_largest"][2] < 0 and four["repeats"] == 19


def test_what_recurs_in_other_translators_is_the_rival():
    """Not the famous head, and not the pairs that cost less than one of them."""
    recorded = recording(heads_grid)
    (famous,) = found(recorded, "alone", name=heads_grid.ATTENTIONS[8], head=2)
    more = {}
    for translator in (None, *heads_grid.OTHERS):
        each = found(recorded, "attention", translator)
        loud = max(each, key=lambda r: r["repeats"])
        assert loud["settings"]["name"].startswith("decoder") and "self" in loud["settings"]["name"]
        assert loud is not max(each, key=lambda r: r["damage"][0])
        pairs = found(recorded, "pair", translator)
        more[translator] = sum(r["less_sum"][1] > 0 for r in pairs), len(pairs)
        if translator:
            alone = found(recorded, "alone", translator)
            assert max(r["damage"][0] for r in alone) < famous["damage"][0] / 2
            assert not [r for r in pairs if r["less_largest"][2] < 0]
    repeats = sorted(r["repeats"] for r in found(recorded, "attention", "multi30k-en-de"))
    assert repeats[-2:] == [10, 12]
    assert more == {None: (14, 48), "multi30k-de-en-short": (19, 24), "multi30k-en-de": (16, 48)}
