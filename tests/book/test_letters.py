"""The models that the page runs on letters are those that the chapter on toy tasks recorded."""

import json

import pytest
import torch

from recordings.claims import crossing
from recordings.make_letters import LIVE, MODELS
from transformer_lib.runs.export import load_exported

RECORDS = json.loads(crossing.OUT.read_text(encoding="utf8"))["records"]


def shipped(task):
    return load_exported(LIVE / f"letters-{task}.weights").model.eval()


@pytest.mark.parametrize("task", MODELS)
def test_the_file_holds_the_recorded_model(task):
    """Seed 0 at the end of its recording, but for the rounding: it answers every swap alike."""
    model = shipped(task)
    settings = {"task": task, "positions": MODELS[task], "seed": 0, "rate": 0.003}
    (record,) = [r for r in RECORDS if settings.items() <= r["settings"].items()]
    assert model.count_parameters() == record["run"]["parameters"]
    for name, other in crossing.OTHERS.items():
        found = crossing.page.moved(model, task, other)
        assert found == pytest.approx(record["moved"][-1][name], abs=0.02)
    assert crossing.page.sure_of(model, task) == pytest.approx(record["sure"][-1], abs=0.01)


def test_three_algorithms_are_told_apart():
    """`moved` gives each of them away: models that count, follow and cross off by construction."""

    class Rule:
        """Reverses 8 letters by a rule: (source, three letters written) -> the place to read."""

        def __init__(self, rule):
            self.rule = rule

        def __call__(self, source, read):
            logits = torch.zeros(*read.shape, 14)
            given = zip(source.tolist(), read.tolist(), strict=True)
            for row, (letters, before) in enumerate(given):
                logits[row, 3, letters[self.rule(letters[:8], before[1:4])]] = 20.0
            return logits

    def follow(letters, written):
        return letters.index(written[-1]) - 1

    def cross_off(letters, written):
        return max(i for i in range(8) if letters[i] not in written)

    def count(letters, written):
        return 7 - len(written)

    def favourite(rule, other):
        """0: the right letter, 1: the newcomer, 2: the follower."""
        odds = crossing.page.moved(Rule(rule), "reverse", other, n=20)
        assert max(odds) > 0.99
        return odds.index(max(odds))

    other, written = crossing.OTHERS["still to come"], crossing.OTHERS["written"]
    assert [favourite(count, step) for step in (other, written)] == [0, 0]
    assert [favourite(follow, step) for step in (other, written)] == [2, 2]
    assert [favourite(cross_off, step) for step in (other, written)] == [1, 0]
