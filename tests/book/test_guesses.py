"""Guesses are kept, settled once, and scored by what was said before the answer."""

import random

import pytest

from exercises import guesses


@pytest.fixture(autouse=True)
def _own_file(tmp_path, monkeypatch):
    monkeypatch.setattr(guesses, "_chosen", tmp_path / "deep" / "mine.json")


def settled(*pairs):
    for i, (sure, right) in enumerate(pairs):
        guesses.keep(f"{len(guesses.all_kept())} {i}", "yes", sure=sure)
        guesses.settle(guesses.all_kept()[-1].name, right=right)


def test_one_guess_is_no_plural(capsys):
    settled((0.7, True))
    assert str(guesses.calibration()).startswith("1 guess, 100% right")


def test_the_score_by_hand(capsys):
    settled((0.7, True), (0.7, False), (0.9, True), (0.5, False), (1.0, True))
    found = guesses.calibration()
    assert found.n == 5 and found.hits == pytest.approx(0.6) and found.sure == pytest.approx(0.76)
    assert found.brier == pytest.approx((0.09 + 0.49 + 0.01 + 0.25 + 0) / 5)
    assert [group[:3] for group in found.groups] == [
        (0.5, 0, 1), (0.7, 0.5, 2), (0.9, 1, 1), (1, 1, 1)
    ]
    said = capsys.readouterr().out
    assert "5 guesses, 60% right, 76% sure on average. Brier score 0.168" in said
    assert "mostly luck" in said


@pytest.mark.parametrize(("truth", "word"), [(0.9, "every group"), (0.4, "overconfident")])
def test_who_says_90_percent_is_held_to_it(truth, word, capsys):
    right = [i < round(truth * 40) for i in range(40)]
    random.Random(0).shuffle(right)
    settled(*((0.9, one) for one in right))
    guesses.calibration()
    assert word in capsys.readouterr().out


def test_who_is_right_more_often_than_they_say_is_underconfident(capsys):
    settled(*((0.5, True) for _ in range(20)))
    guesses.calibration()
    assert "underconfident" in capsys.readouterr().out


def test_a_guess_can_be_changed_until_it_is_settled(capsys):
    guesses.keep("heads", 4, sure=0.6)
    guesses.keep("heads", 8, sure=0.8)
    (only,) = guesses.all_kept()
    assert (only.guess, only.sure, only.right) == ("8", 0.8, None)
    guesses.settle("heads", right=False)
    assert "You guessed 8, 80% sure, and you were wrong" in capsys.readouterr().out
    with pytest.raises(ValueError, match="is settled: you were wrong"):
        guesses.keep("heads", 2, sure=1)


@pytest.mark.parametrize("sure", [70, -0.1, True, "high", float("nan")])
def test_how_sure_is_a_number_from_0_to_1(sure):
    with pytest.raises(ValueError, match="0.7 means 70 % sure"):
        guesses.keep("heads", 4, sure=sure)
    assert guesses.all_kept() == []


def test_a_guess_has_a_name_and_a_file(tmp_path):
    with pytest.raises(ValueError, match="name is ' '; expected a few words to find it by"):
        guesses.keep(" ", 4, sure=0.7)
    with pytest.raises(ValueError, match="is a folder; expected the name of a file"):
        guesses.keep_in(tmp_path)


def test_settling_what_is_not_kept_names_what_waits():
    guesses.keep("heads", 4, sure=0.6)
    with pytest.raises(ValueError, match="those that wait for an answer: 'heads'"):
        guesses.settle("head", right=True)
    with pytest.raises(ValueError, match="expected True or False"):
        guesses.settle("heads", right="yes")


def test_nothing_to_score_is_told(capsys):
    assert guesses.calibration() is None
    assert "Nothing is kept yet in" in capsys.readouterr().out
    guesses.keep("heads", 4, sure=0.6)
    assert guesses.calibration() is None
    assert "1 guess kept, none settled" in capsys.readouterr().out


@pytest.mark.parametrize("content", [
    '[{"title": 1}]', '[{"name": "heads", "guess": "4", "sure": "much"}]',
])
def test_a_broken_file_is_left_alone(content):
    guesses.file().parent.mkdir(parents=True)
    guesses.file().write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="move it away"):
        guesses.keep("heads", 4, sure=0.6)
    assert guesses.file().read_text(encoding="utf-8") == content


def test_the_chart_has_a_dot_for_each_group():
    settled((0.7, True), (0.7, False), (0.9, True))
    chart = guesses.calibration().chart().to_dict()
    assert "3 guesses, 67% right" in chart["description"]
    names = [layer["data"]["name"] for layer in chart["layer"] if "name" in layer["data"]]
    held = chart["datasets"][names[-1]] if names else chart["layer"][-1]["data"]["values"]
    seen = [(row["sure"], row["right"], row["guesses"]) for row in held]
    assert seen == [(0.7, 0.5, 2), (0.9, 1, 1)]


def test_the_interval_is_wilsons():
    assert guesses.wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-3)
    assert guesses.wilson(0, 4)[0] == 0 and guesses.wilson(4, 4)[1] == pytest.approx(1)
