"""What the checks say of answers whose authors had not seen them (tests/exercises/unseen_answers).

Right ones are accepted and wrong ones refused; a mistake that a message names stays named; and the
rates of all of them hold.
"""

import collections
import warnings

import pytest
from turns import one_in

from exercises.checks import diagnosis, framework
from tests.exercises import unseen_answers
from tests.exercises.unseen_answers import CHAPTERS, answers_of, judged


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    """Small examples are not looked for long; a busy machine is given its time."""
    monkeypatch.setattr(framework, "ASLEEP", 100)
    monkeypatch.setattr(framework, "PATIENCE", 0.1)
    monkeypatch.setattr(diagnosis, "PATIENCE", 0.02)


@pytest.mark.parametrize("chapter", one_in(3, CHAPTERS))
def test_no_right_answer_is_refused_and_no_wrong_one_accepted(chapter, monkeypatch):
    wrong_verdicts, lost = [], []
    for answer in answers_of(chapter):
        # Endless loops and slow code are stopped early; whatever is to be named has its time.
        ends = answer.right or answer.said and "running" not in answer.said
        monkeypatch.setattr(framework, "LIMIT", 2.0 if ends else 0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict, message = judged(answer)
        about = f"{answer.exercise} {answer.mistake!r}: {message.strip() or verdict}"
        if verdict is not answer.right:
            wrong_verdicts.append(about)
        elif answer.said not in message:
            lost.append(f"{answer.said!r} is not said of {about}")
    assert not wrong_verdicts, "\n".join(wrong_verdicts)
    assert not lost, "\n".join(lost)


def wrong_answers():
    return [answer for chapter in CHAPTERS for answer in answers_of(chapter) if not answer.right]


def test_each_wrong_answer_has_its_verdict():
    wrong = wrong_answers()
    told_apart = {(answer.exercise, answer.mistake) for answer in wrong}
    assert len(told_apart) == len(wrong), "two wrong answers of one exercise with one mistake"
    for answer in wrong:
        assert answer.now != "accepted", answer.mistake
        assert answer.now != "named" or answer.said, answer.mistake


def test_the_rates_hold():
    now = collections.Counter(answer.now for answer in wrong_answers())
    total = sum(now.values())
    assert total > 1150
    assert now["named"] >= 0.6 * total
    assert now["none"] + now["wrong cause"] <= 0.03 * total


def test_a_heading_that_cannot_be_read_is_an_error(monkeypatch, tmp_path):
    good = "### 1 combined ✗ forgets the padding\nnamed · 21 is the causal mask\nanswer = 21\n"
    monkeypatch.setattr(unseen_answers, "HERE", tmp_path)
    for bad in (good.replace("✗", "x"), good.replace("named", "told"), "import torch\n"):
        (tmp_path / "masks.txt").write_text(bad + good, encoding="utf8")
        with pytest.raises(ValueError, match="masks.txt"):
            answers_of("masks")
