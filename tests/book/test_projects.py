"""The projects: what the page promises, and that each first step runs and gives its number."""

import csv
import re

import pytest

from course import first_steps
from tools.setup_cell import ROOT

PAGE = (ROOT / "book" / "projects.md").read_text(encoding="utf8")
PROJECTS = re.findall(r"^## \d\. (.+?)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)


def test_six_projects_each_with_all_that_a_pair_must_know():
    assert len(PROJECTS) == 6
    for title, text in PROJECTS:
        for part in ("Question.", "First step.", "Evidence.", "Scope on a CPU.",
                     "Four marks for evidence"):
            assert text.count(f"- **{part}") == 1, (title, part)
        assert "Control" in text, title


def test_each_first_step_is_named_once_and_exists():
    named = re.findall(r"`python -m course\.first_steps (\w+)", PAGE)
    assert sorted(named) == sorted(first_steps.STEPS)


def test_the_rubric_gives_twenty_marks():
    rows = re.findall(r"^\| \*\*[a-z ]+\*\* \|(.+)\|$", PAGE, re.MULTILINE)
    assert len(rows) == 5 and all(row.count("|") == 2 for row in rows)
    assert "| | 4 | 2 | 0 |" in PAGE and "There are twenty marks, four for each line" in PAGE


def test_a_verdict_of_two_seeds_is_a_tie():
    verdict = first_steps.ablation(updates=4, seeds=(0, 1), n_pairs=40, dropout=0.3)
    assert verdict.pairs == 2 and verdict.word == "cannot be told apart"


def test_the_same_setting_under_another_name_changes_nothing():
    verdict = first_steps.ablation(updates=4, seeds=(0, 1, 2), n_pairs=40, dropout=0.1)
    assert verdict.difference == 0


def test_silenced_heads_give_nothing_and_only_while_they_are():
    found = first_steps.heads(captions=2)
    assert len(found) == len({name for *_, name in found}) == 48
    assert found == sorted(found, reverse=True) and found[0][0] > 0


def test_the_sheet_is_blind_and_the_key_opens_it(tmp_path):
    sheet, key = first_steps.judge(tmp_path, n=6)
    shown = list(csv.DictReader(sheet.open(encoding="utf8")))
    hidden = list(csv.DictReader(key.open(encoding="utf8")))
    assert len(shown) == len(hidden) == 6
    assert "multi30k" not in sheet.read_text(encoding="utf8")
    for row, truth in zip(shown, hidden, strict=True):
        assert row["first"] and row["second"]
        assert {truth["first"], truth["second"]} == {"multi30k-de-en", "multi30k-de-en-short"}


def test_far_facts_are_counted_by_seed():
    verdict = first_steps.far(updates=2, seeds=(0, 1, 2), size=32, n_facts=4)
    assert verdict.pairs == 3


def test_bits_per_byte_of_each_vocabulary():
    found = first_steps.tokens(updates=2, sizes=(60, 120), n_captions=60)
    assert list(found) == [60, 120] and all(2 < bits[0] < 12 for bits in found.values())


@pytest.mark.parametrize("name", ["hunt", "game", "shift", "warm_up", "toys"])
def test_the_claims_that_the_page_names_are_recorded_and_small(name):
    tried = first_steps.edge(name)
    assert "seed" in tried and len(tried) > 2
    assert (ROOT / "recordings" / "claims" / f"{name}.py").exists()


def test_the_command_knows_its_steps(capsys):
    first_steps.main(["edge"])
    assert "python -m recordings.record hunt" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        first_steps.main(["seven"])
