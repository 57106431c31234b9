"""What the chapters on toys, decoding and heads say is made from what they recorded."""

import contextlib
import copy
import io
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "claims"))

import batches as batches_grid  # noqa: E402
import decoding as decoding_grid  # noqa: E402
import heads as heads_grid  # noqa: E402
import toys  # noqa: E402

GRIDS = [toys, batches_grid, decoding_grid, heads_grid]
# Of each page: the cells that tell what is recorded, and those that they need.
TELLS = {
    toys: ("e3e33266", "3f45f1b8", "patch-run-13", "patch-figure-13", "patch-says-13"),
    batches_grid: ("216bff43", "price-figure-14", "price-says-14"),
    decoding_grid: ("ac6b154b", "40aff095", "beam-says-15", "which-alpha-sweep"),
    heads_grid: ("95deee0e", "together-figure-18", "together-says-18"),
}


def cells(grid):
    page = json.loads((ROOT / "book" / f"{grid.PAGE}.ipynb").read_text(encoding="utf8"))
    return {cell["id"]: "".join(cell["source"]) for cell in page["cells"]}


def recording(grid):
    return json.loads(grid.OUT.read_text(encoding="utf8"))


def found(recorded, part, **settings):
    wanted = ({"part": part} | settings).items()
    return [r for r in recorded["records"] if wanted <= r["settings"].items()]


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What a page prints for a recording: a function of the grid and the recording."""
    grad = torch.is_grad_enabled()  # the page on decoding switches it off

    def tell(grid, recorded):
        (tmp_path / "claims").mkdir(exist_ok=True)
        (tmp_path / "claims" / grid.OUT.name).write_text(json.dumps(recorded))
        monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
        names, text, source = {}, io.StringIO(), cells(grid)
        if grid is heads_grid:
            names["KINDS"] = {
                "encoder.self": "encoder", "decoder.self": "decoder", "decoder.cross": "cross"
            }  # fmt: skip
        with contextlib.redirect_stdout(text):
            for cell in TELLS[grid]:
                exec(compile(source[cell], cell, "exec"), names)
        return text.getvalue()

    yield tell
    torch.set_grad_enabled(grad)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.PAGE)
def test_the_whole_grid_is_recorded(grid):
    recorded = recording(grid)
    assert [r["settings"] for r in recorded["records"]] == [s for s, _ in grid.grid()]
    assert grid.OUT.stat().st_size < 400_000
    assert sum(r["seconds"] for r in recorded["records"]) < 15 * 60


# ---- the pages' own code gives what is recorded ---------------------------------------------


@pytest.mark.parametrize("positional", sorted({kind for _, kind in toys.TRAINED}))
def test_the_first_loss_of_a_toy_is_made_again(positional):
    for r in found(recording(toys), "learn", positional=positional, seed=1):
        _, losses = toys.page.train(r["settings"]["task"], 1, positional, updates=1)
        assert losses[0] == pytest.approx(r["first_loss"], rel=1e-3)


def test_all_places_put_back_are_the_clean_run():
    torch.manual_seed(0)
    model, page = toys.page.new_model("rotary"), toys.page
    clean, corrupted, read, step, answer = page.twins("sort", 4, n=5)
    assert (clean != corrupted).sum(1).tolist() == [1] * 5
    assert torch.equal(read.gather(1, step[:, None] + 1)[:, 0], answer)
    right, _ = page.run(model, clean, read, "the letter")
    for stage in list(page.STAGES)[:3]:
        _, put = page.run(model, clean, read, stage)
        back, _ = page.run(model, corrupted, read, stage, slice(None), put)
        torch.testing.assert_close(back, right)
        same, _ = page.run(model, clean, read, stage, 2, put)
        assert torch.equal(same, right), "its own vector put back changes nothing"
    assert not any(m._forward_hooks for m in model.modules())


def test_sentences_in_batches_keep_their_order():
    rows = [[7, 8, 9, 2], [5, 2], [6, 6, 2], [4, 2]]
    assert decoding_grid.page.in_order(rows, lambda ids: ids, size=2) == rows


def test_damage_is_measured_against_the_whole_model(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(5, 15, (heads_grid.COUNT,), generator=generator).float()

    def losses(removed):
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


def test_other_toys_are_told_otherwise(told):
    recorded = recording(toys)
    other = copy.deepcopy(recorded)
    for r in other["records"]:
        r["hidden"] = [0.123] * 9
        for patched in r["patched"].values():
            patched |= {"clean": 0.9, "corrupted": 0.1, "table": [[0.5] * 9] * 5}
    text, changed = told(toys, recorded), told(toys, other)
    assert not {x for x in numbers(text) & numbers(changed) if "->" not in x}


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
    assert all(max(exact["padding"]) < max(r["padding"]) for r in rows.values() if r is not exact)


def test_other_beams_are_told_otherwise(told):
    recorded = recording(decoding_grid)
    other = copy.deepcopy(recorded)
    for r in found(other, "beam"):
        width = r["settings"]["width"]
        r |= {"BLEU": 10.0 + width, "mean log p": -width, "tokens": 3.21, "words per 100": 55.5}
        r["against"] = dict.fromkeys(r["against"], [7.77, 7.0, 8.0])
    text, changed = told(decoding_grid, recorded), told(decoding_grid, other)
    assert not {x for x in numbers(text) & numbers(changed) if "run size" not in x}
    assert "not up at every step" in changed and "better" in changed


def test_other_heads_are_told_otherwise(told):
    recorded = recording(heads_grid)
    other = copy.deepcopy(recorded)
    for r in found(other, "pair"):
        r |= {"sum": 5.5, "largest": 3.3, "less_sum": [2.2, 2.0, 2.4], "less_largest": [4, 3, 5]}
    text, changed = told(heads_grid, recorded), told(heads_grid, other)
    assert not {x for x in numbers(text) & numbers(changed) if "run size" not in x}
    assert f"more than the sum: {len(found(recorded, 'pair'))} pairs" in changed
