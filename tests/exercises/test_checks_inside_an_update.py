"""The account of an update: right within its tolerances, and each usual mistake by its factor."""

import pytest

from exercises.checks import inside_an_update as ch

RIGHT = ch.account.example


def with_(**changed):
    return {**RIGHT, **changed}


CASES = [
    (RIGHT, True, "by what factor you were off: parameters 2,349,568 (1.00)"),
    (dict.fromkeys(RIGHT, ...), None, "Not attempted"),
    (with_(flops=RIGHT["flops"] / 3), False, "flops: too low by a factor of 3"),
    (with_(flops=RIGHT["flops"] / 3), False, "That is the forward pass"),
    (with_(flops=RIGHT["flops"] / 2), False, "A multiplication and an addition are two"),
    (with_(flops=RIGHT["flops"] / 32), False, "the batch has 32"),
    (with_(state=8 * RIGHT["parameters"]), False, "That is two numbers for each parameter"),
    (with_(state=RIGHT["parameters"]), False, "That is the number of parameters"),
    (with_(parameters=2 * RIGHT["parameters"]), False, "parameters: too high by a factor of 2"),
    (with_(kept=RIGHT["kept"] / 4), False, "kept: too low by a factor of"),
    (with_(seconds=1000.0), False, "seconds: "),
    (with_(seconds=0), False, "`seconds` must be a number above 0; yours is 0"),
    ({"flops": 1.0}, False, "give a dictionary with parameters, flops, state, kept, seconds"),
]


@pytest.mark.parametrize("answer, verdict, message", CASES)
def test_check(answer, verdict, message, capsys):
    assert ch.account(answer) is verdict
    assert message in capsys.readouterr().out


def test_several_mistakes_are_told_at_once(capsys):
    assert ch.account(with_(flops=1.0, state=1.0)) is False
    assert capsys.readouterr().out.count("Not yet") == 2
