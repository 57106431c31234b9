"""What the checks say of answers whose authors had not seen them (tests/unseen_answers).

Right ones are accepted and wrong ones refused; a mistake that a message names stays named; and the
rates of all of them hold.
"""

import collections
import warnings

import pytest

from exercises.checks import diagnosis, framework
from tests.unseen_answers import CHAPTERS, answers_of, judged, verdicts

KINDS = {"accepted", "named", "helps", "none", "wrong cause"}


@pytest.fixture(scope="module")
def recorded():
    return verdicts()


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    """Endless loops and slow code are stopped early, and small examples not looked for long."""
    monkeypatch.setattr(framework, "LIMIT", 0.2)
    monkeypatch.setattr(framework, "PATIENCE", 0.1)
    monkeypatch.setattr(diagnosis, "PATIENCE", 0.02)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_right_answer_is_refused_and_no_wrong_one_accepted(chapter, recorded):
    wrong_verdicts, lost = [], []
    for answer in answers_of(chapter):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict, message = judged(answer)
        about = f"{answer.exercise} {answer.mistake!r}: {message.strip() or verdict}"
        if verdict is not answer.right:
            wrong_verdicts.append(about)
        elif not answer.right:
            said = recorded[answer.exercise][answer.mistake].get("said", "")
            if said not in message:
                lost.append(f"{said!r} is not said of {about}")
    assert not wrong_verdicts, "\n".join(wrong_verdicts)
    assert not lost, "\n".join(lost)


def test_each_wrong_answer_has_its_verdict(recorded):
    wrong = [(a.exercise, a.mistake) for c in CHAPTERS for a in answers_of(c) if not a.right]
    assert len(set(wrong)) == len(wrong), "two wrong answers of one exercise with one mistake"
    assert set(wrong) == {(e, mistake) for e, known in recorded.items() for mistake in known}
    for known in recorded.values():
        for mistake, verdict in known.items():
            assert {verdict["first"], verdict["now"]} <= KINDS, mistake
            assert verdict["now"] != "accepted", mistake
            assert (verdict["now"] == "named") <= bool(verdict.get("said")), mistake


def test_the_rates_hold(recorded):
    now = collections.Counter(v["now"] for known in recorded.values() for v in known.values())
    total = sum(now.values())
    assert total > 850
    assert now["accepted"] <= 0.01 * total
    assert now["named"] >= 0.6 * total
    assert now["none"] + now["wrong cause"] <= 0.03 * total
