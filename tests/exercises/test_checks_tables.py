"""Every declaration of an exercise keeps what it promises: the table is the test.

The reference is right, each slip is named with its own sentence, every argument varies, and an
answer that changes its inputs, prints instead of returning, or is still `...` is told so.
"""

import importlib

import pytest
from answer_tables import in_double, only_printing, right_answer, spoiling

from exercises import checks
from exercises.checks import EXERCISES
from exercises.checks.framework import Exercise, Values, clone, unchanged

for chapter in checks._chapters():
    importlib.import_module(f"exercises.checks.{chapter}")

# Those of the chapters; a part of one's own Transformer is tested in test_own.py.
ALL = [EXERCISES[name] for name in sorted(EXERCISES) if not name.startswith("own.")]
WRITTEN = [check for check in ALL if isinstance(check, Exercise)]
PLAIN = [check for check in WRITTEN if check.adapt is None]
SLIPS = [
    (check, sentence, slip)
    for check in WRITTEN
    for sentence, slips in check.slips.items()
    for slip in (slips if isinstance(slips, list) else [slips])
]
PARTS = [
    (check, i, sentence, wrong)
    for check in ALL
    if isinstance(check, Values)
    for i, part in enumerate(check.parts.values())
    for sentence, several in part.slips.items()
    if not callable(several)
    for wrong in (several if isinstance(several, list) else [several])
]


def number(value):
    return getattr(value, "number", None) or (value[:40] if isinstance(value, str) else "")


def judge(check, answer):
    return check.judge(answer if isinstance(answer, tuple) else (answer,))


@pytest.mark.parametrize("check", ALL, ids=number)
def test_the_right_answer_is_right(check, capsys):
    assert check(*right_answer(check)) is True
    assert capsys.readouterr().out.startswith(f"✓ {check.title}. Right.")


@pytest.mark.parametrize("check", PLAIN, ids=number)
def test_the_precision_does_not_matter(check):
    assert judge(check, in_double(check.reference)) == (True, [])


MEASURED = [check for check in ALL if getattr(check, "measure", None)]


@pytest.mark.parametrize("check", MEASURED, ids=number)
def test_a_prediction_comes_true_when_it_is_run(check, capsys):
    found = check.measure()
    assert found.keys() == check.parts.keys()
    for name, part in check.parts.items():
        assert part.fits(found[name])
    check(*right_answer(check))
    assert "Computed just now: " in capsys.readouterr().out


@pytest.mark.parametrize("check, sentence, slip", SLIPS, ids=number)
def test_a_slip_is_named(check, sentence, slip):
    verdict, mistakes = judge(check, slip)
    assert verdict is False
    assert mistakes[0][0] == sentence


@pytest.mark.parametrize("check, i, sentence, wrong", PARTS, ids=number)
def test_a_wrong_value_is_named(check, i, sentence, wrong):
    right = [part.right for part in check.parts.values()]
    right[i] = wrong
    verdict, mistakes = check.judge((right,) if check.packed else right)
    assert verdict is False
    assert mistakes[0][0] == sentence


@pytest.mark.parametrize("check", WRITTEN, ids=number)
def test_every_argument_varies_and_the_reference_leaves_it_alone(check):
    for i, name in enumerate(check.names):
        values = [args[i] for args, _ in check.cases]
        several = [
            item for value in values for item in (value if isinstance(value, list) else [value])
        ]
        if several and all(callable(item) for item in several):
            continue  # functions, made anew for each case
        assert not all(unchanged(value, values[0]) for value in values[1:]), f"{name} never varies"
    for args, _ in check.cases:
        before = clone(args)
        check.reference(*args)
        assert check.mutates or unchanged(args, before)


@pytest.mark.parametrize("check", [c for c in PLAIN if not c.mutates], ids=number)
def test_an_answer_that_changes_its_inputs_is_told_so(check):
    changed = []
    verdict, mistakes = judge(check, spoiling(check, changed))
    if any(changed[0]):
        assert verdict is False and "in place" in mistakes[-1][0]
    else:
        assert verdict is True


@pytest.mark.parametrize("check", PLAIN, ids=number)
def test_an_answer_that_only_prints_is_told_so(check):
    verdict, mistakes = judge(check, only_printing(check))
    assert verdict is False and "end it with `return`" in mistakes[0][0]


@pytest.mark.parametrize("check", ALL, ids=number)
def test_no_answer_is_no_attempt(check, capsys):
    assert check(*[...] * len(right_answer(check))) is None
    assert f"○ {check.title}. Not attempted yet" in capsys.readouterr().out
    if isinstance(check, Exercise) and check.adapt is None:
        assert check(lambda *args: ...) is None


@pytest.mark.parametrize("check", ALL, ids=number)
def test_three_hints_come_one_after_the_other(check, capsys):
    check.hints_shown = 0
    given = [check.hint() for _ in range(9)]
    of = int(given[0].split()[2].rstrip(":"))
    assert of >= 3 and len({text.split(": ", 1)[1] for text in given}) == of
