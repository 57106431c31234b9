"""The page Replicate a table: its recording is the whole grid, and its verdicts follow it."""

import copy

from claims_pages import module, recording, told

CELLS = (
    "replication-imports", "replication-imports-page", "replication-rows", "replication-load",
    "replication-table-says",
)


def test_the_whole_grid_is_recorded():
    grid = [settings for settings, _ in module("replication").grid()]
    assert [r["settings"] for r in recording("replication")["records"]] == grid


def test_each_row_has_all_seeds_at_the_rate_that_suits_it():
    recorder, records = module("replication"), recording("replication")["records"]
    first = {}
    for r in records:
        wanted = r["settings"]
        if wanted["part"] == "rows" and wanted["seed"] == 0:
            first.setdefault(wanted["row"], {})[wanted["rate"]] = r["loss"]
    for row, losses in first.items():
        best = min(losses, key=losses.get)
        assert best == recorder.SUITED.get(row, recorder.RATE), row
        assert min(losses) < best < max(losses), f"{row}: the best rate lies at the grid's end"


def test_other_losses_get_another_verdict(tmp_path, monkeypatch):
    recorded = recording("replication")
    text, _ = told("replication", CELLS, recorded, tmp_path, monkeypatch)
    changed = copy.deepcopy(recorded)
    for r in changed["records"]:
        if r["settings"]["row"] == "C: d_model 64":
            r["loss"] += 1.0
    other, _ = told("replication", CELLS, changed, tmp_path, monkeypatch)
    assert "better: −0.37" in text and "worse: +0.63" in other and "better: −0.37" not in other
