"""What the recorded short runs say of a change: one rule, and every page asks it."""

import json
from pathlib import Path

import numpy as np
import pytest

from transformer_lib.scoring import ablations
from transformer_lib.scoring.verdict import BETTER, TIE, WORSE

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    str(path.relative_to(ROOT)): [
        "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
    ]
    for folder in ("book", "book/solutions", "labs")
    for path in sorted((ROOT / folder).glob("*.ipynb"))
}


def test_no_page_has_a_rule_of_its_own():
    """Who can't read the scores can't judge them: the file is opened in one place."""
    for name, cells in PAGES.items():
        for cell in cells:
            assert 'results_dir() / "ablations.json"' not in cell, f"{name}: ask scoring.ablations"


def test_every_page_says_under_which_conditions():
    asking = [name for name, cells in PAGES.items() if any("ablations.cells(" in c for c in cells)]
    assert len(asking) >= 7
    for name in asking:
        for cell in PAGES[name]:
            if "ablations.cells(" in cell:
                assert "ablations.conditions()" in cell, name
    for words in ("900 updates", "one learning rate (0.004)", "all 18 recorded changes"):
        assert words in ablations.conditions()


def test_where_pages_disagreed():
    """By every metric; each of these had another verdict on another page."""
    said = {
        variant: [ablations.change(variant, metric).word for metric in ablations.METRICS]
        for variant in ("ALiBi", "words", "paper's schedule", "no cooldown")
    }
    assert said == {
        "ALiBi": [TIE, TIE, BETTER],
        "words": [TIE, TIE, BETTER],  # of other tokens, so the loss compares nothing
        "paper's schedule": [TIE, TIE, BETTER],
        "no cooldown": [TIE, TIE, TIE],
    }
    assert ablations.change("BatchNorm").word == WORSE


def test_shuffled_labels_give_no_winner_95_times_in_100(tmp_path, monkeypatch):
    """Where a label means nothing, hardly any of the 18 changes may look like one."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(100):
        level = rng.normal(size=3)  # what a seed does to every variant
        rows = [
            {"variant": variant, "seed": seed, "validation_bleu": level[seed] + rng.normal()}
            for variant in ["unchanged", *map(str, range(18))] for seed in range(3)
        ]
        text = json.dumps({"base": "", "runs": rows})
        (tmp_path / "ablations.json").write_text(text, encoding="utf8")
        alarms += any(ablations.change(str(i)).word != TIE for i in range(18))
    assert alarms <= 9  # of 100, with the luck of the draw


def test_what_is_not_recorded_is_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="'GeLU' is not a recorded variant; there are: unchanged"):
        ablations.change("GeLU")
    with pytest.raises(ValueError, match="'GeLU' is not a recorded variant; there are: unchanged"):
        ablations.base_of("GeLU")
    with pytest.raises(ValueError, match="metric must be one of BLEU, chrF, loss"):
        ablations.scores("perplexity")
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    assert ablations.runs() == [] and ablations.scores() == {}
