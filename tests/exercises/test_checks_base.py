"""The machinery of the exercises, apart from any exercise: verdicts, diagnoses, limits, hints."""

import json
import linecache
import math
import re
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch

from exercises import checks
from exercises.checks import (
    EXERCISES,
    Part,
    diagnosis,
    exercise,
    expect,
    expect_close,
    expect_shape,
    framework,
    judged,
    values,
)
from exercises.checks.diagnosis import relation


@pytest.fixture(autouse=True)
def no_trace_left():
    """Exercises declared here go away again; limits are short."""
    yield
    for name in [name for name in EXERCISES if name.startswith(("test_checks_base.", "gain."))]:
        del EXERCISES[name]


@pytest.fixture(autouse=True)
def short_limit(monkeypatch):
    monkeypatch.setattr(framework, "LIMIT", 0.3)


def learner(source, monkeypatch):
    """The names that a cell with this source defines, as in a notebook."""
    name = "<the learner's cell>"
    monkeypatch.setitem(
        linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name)
    )
    names = {}
    exec(compile(source, name, "exec"), names)
    return names


def a_softmax_average(**options):
    @exercise(
        1,
        inputs=lambda T=3, S=4, D=2: (torch.randn(T, S), torch.randn(S, D)),
        vary=(dict(T=5, S=5),),
        hint="exp first, then divide",
        wrong="not the average",
        slips={"your shares do not sum to 1": lambda scores, values: scores.exp() @ values},
        **options,
    )
    def average(scores, values):
        weights = scores.softmax(-1)  # (T, S)
        return weights @ values

    return average


def told(check, answer, capsys):
    """(verdict, the printed lines)"""
    verdict = check(answer)
    return verdict, capsys.readouterr().out


# ------------------------------------------------------------------------------------- verdicts


def test_a_right_answer_is_true(capsys):
    assert told(a_softmax_average(), lambda s, v: s.softmax(-1) @ v, capsys) == (
        True, "✓ Exercise 1. Right.\n"
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda s, v: s.exp() @ v,
            "✗ Exercise 1. Not yet: your shares do not sum to 1\n    With scores",
        ),
        (lambda s, v: 3 * s.softmax(-1) @ v, "Each of your numbers is 3 times what is expected"),
        (lambda s, v: (s.softmax(-1) @ v).T, "Yours is the transpose"),
        (lambda s, v: (s.softmax(-1) @ v)[0], "Yours is only the first row"),
        (lambda s, v: "softmax", "expected numbers, got str"),
        (lambda s, v: (s - torch.inf).softmax(-1) @ v, "Yours has NaN"),
        (lambda s, v: print("hello"), "prints hello but gives nothing back"),
        (lambda s: s, "TypeError"),
        (3.0, "needs the function itself"),
        (torch.eye(2), "needs the function itself"),
    ],
)
def test_a_wrong_answer_is_named(capsys, wrong, said):
    verdict, out = told(a_softmax_average(), wrong, capsys)
    assert verdict is False and out.startswith("✗ Exercise 1. Not yet: ")
    assert said in re.sub("`[^`]*`", "", out)  # it may quote the row above, and with it the words


def unfinished(s, v):
    scores = ...
    return scores / s


def half(s, v):
    weights = s.softmax(-1)  # noqa: F841
    return ...


def passes(s, v):
    """Nothing yet."""
    pass


def not_implemented(s, v):
    raise NotImplementedError


class Unfinished(torch.nn.Module):
    def forward(self, s, v):
        pass


@pytest.mark.parametrize(
    "nothing",
    [..., None, (1, ...), lambda s, v: ..., lambda s, v: (..., ...), lambda s, v: None, unfinished,
     half, passes, not_implemented, Unfinished()],
)
def test_no_answer_is_none_with_a_hint(capsys, nothing):
    assert told(a_softmax_average(), nothing, capsys) == (
        None, "○ Exercise 1. Not attempted yet: exp first, then divide.\n"
    )


def forgets(s, v):
    result = s.softmax(-1) @ v  # noqa: F841


def test_a_finished_function_without_a_return_is_no_missing_answer(capsys):
    verdict, out = told(a_softmax_average(), forgets, capsys)
    assert verdict is False and "gives nothing back: does every path" in out


def test_what_a_right_answer_prints_is_shown_once(capsys):
    def chatty(s, v):
        print("here")
        return s.softmax(-1) @ v

    assert told(a_softmax_average(), chatty, capsys)[1] == "here\n✓ Exercise 1. Right.\n"


def test_an_exception_is_explained_with_the_learners_line(capsys):
    def shape_mistake(s, v):
        return s @ s  # (3, 4) @ (3, 4)

    out = told(a_softmax_average(), shape_mistake, capsys)[1]
    assert "your code stops with RuntimeError" in out and "`return s @ s" in out
    assert "With scores (3, 4), values (4, 2)." in out


FRACTIONS = [
    lambda s, v: s.reshape(3, len(v) / 2, 2), lambda s, v: s.view(3, len(v) / 2, 2),
    lambda s, v: s.unflatten(-1, (len(v) / 2, 2)), lambda s, v: torch.zeros(3, len(v) / 2),
    lambda s, v: s.split(len(v) / 2), lambda s, v: s.chunk(len(v) / 2),
    lambda s, v: range(len(v) / 2),
]


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_size_that_is_a_fraction_is_said_in_our_own_words(fraction, capsys):
    out = told(a_softmax_average(), fraction, capsys)[1]
    assert "your code stops with TypeError (a size, place or count is a float: " in out
    assert "divide with //)" in out and "tuple of ints" not in out


# ------------------------------------------------------------------------- rules that go unsaid


def test_an_answer_that_ends_python_does_not_end_the_notebook(capsys):
    def quits(s, v):
        sys.exit("done")

    assert a_softmax_average()(quits) is False
    assert "your code stops with SystemExit (done)" in capsys.readouterr().out


def test_a_changed_input_is_named_with_its_line(capsys, monkeypatch):
    cell = "def f(scores, v):\n    scores -= 1\n    return scores.softmax(-1) @ v\n"
    out = told(a_softmax_average(), learner(cell, monkeypatch)["f"], capsys)[1]
    assert "you changed `scores` in place, in line 2, `scores -= 1`" in out


def test_a_wrong_answer_that_changes_its_input_hears_both(capsys):
    def both(scores, v):
        scores.mul_(2)
        return scores.softmax(-1) @ v

    out = told(a_softmax_average(), both, capsys)[1]
    assert "not the average" in out and "in place" in out


@pytest.mark.parametrize("thread", [False, True])
def test_an_endless_loop_is_stopped(capsys, monkeypatch, thread):
    source = "def f(scores, v):\n    n = 0\n    while n < 1:\n        n -= 1\n"
    check, answer = a_softmax_average(), learner(source, monkeypatch)["f"]
    found = []
    if thread:  # no signals there: the clock is looked at in every line
        runner = threading.Thread(target=lambda: found.append(check(answer)))
        runner.start()
        runner.join(20)
    else:
        found.append(check(answer))
    assert found == [False]
    out = capsys.readouterr().out
    assert "still running after 0.3 seconds, in line" in out and "does its loop end?" in out


def test_an_endless_loop_cannot_catch_the_limit(capsys, monkeypatch):
    source = (
        "def f(scores, v):\n    while True:\n        try:\n            pass\n"
        "        except Exception:\n            pass\n"
    )
    assert told(a_softmax_average(), learner(source, monkeypatch)["f"], capsys)[0] is False


def test_a_timer_of_somebody_else_goes_on():
    import signal

    rang = []
    old = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    before = signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        with framework.time_limit(5):
            pass
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, old)


def test_a_limit_that_rings_in_a_finalizer_is_silent_there_and_rings_again(monkeypatch):
    class Slow:
        def __del__(self):
            begin = time.process_time()
            while time.process_time() < begin + 0.4:
                pass
            raise KeyError("of the answer")

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: reported.append(it.exc_type))
    with pytest.raises(framework.TimeUp), framework.time_limit(0.2):
        Slow()
        while True:
            pass
    assert reported == []  # Python would print "Exception ignored in ... TimeUp"
    with framework.time_limit(5):
        Slow()
    assert reported == [KeyError]


def test_a_slow_answer_is_right_and_told_so(capsys):
    def loops(scores, v):
        if len(scores) > 100:
            while True:
                pass
        return scores.softmax(-1) @ v

    large = (torch.randn(200, 8), torch.randn(8, 2))
    out = told(a_softmax_average(large=large), loops, capsys)[1]
    assert "Right. But it's far too slow for larger inputs" in out


def test_a_forbidden_call_is_named_a_namesake_is_not(capsys):
    check = a_softmax_average(forbid=("matmul", "einsum"))
    out = told(check, lambda s, v: torch.einsum("ts,sd->td", s.softmax(-1), v), capsys)[1]
    assert "your code calls `einsum`, which this exercise rules out" in out

    def einsum(s, v):
        return (s.softmax(-1)[..., None] * v).sum(-2)

    assert told(check, einsum, capsys)[0] is True


@pytest.mark.parametrize(
    "cut",
    [
        lambda s, v: torch.tensor((s.softmax(-1) @ v).tolist()),
        lambda s, v: (s.softmax(-1) @ v).detach(),
        lambda s, v: s.softmax(-1).detach() @ v,
        lambda s, v: torch.from_numpy(s.softmax(-1).numpy()) @ v,
    ],
)
def test_a_cut_gradient_is_seen(cut, capsys):
    out = told(a_softmax_average(gradients=True), cut, capsys)[1]
    assert "the numbers are right, but no gradient" in out
    assert told(a_softmax_average(), cut, capsys)[0] is True


# ------------------------------------------------------------------------------------ diagnoses


def test_a_slip_must_fit_every_input_if_one_does():
    @exercise(
        2, inputs=[(2,), (3,)],
        slips={"you double": lambda n: 2 * n + 1, "you square": lambda n: n * n + 1},
    )
    def plain(n):
        return n

    assert plain.judge((lambda n: n * n + 1,))[1][0][0] == "you square"
    assert plain.judge((lambda n: 2 * n + 1,))[1][0][0] == "you double"


def test_a_slip_is_not_named_where_the_answer_is_right_and_the_slip_goes_wrong():
    slips = {"you take one too many": lambda n: n + 1}

    @exercise(3, inputs=[(4,), (7,), (5,)], slips=slips, wrong="no")
    def same_number(n):
        return n

    assert same_number.judge((lambda n: n + 1,))[1][0][0] == "you take one too many"
    assert same_number.judge((lambda n: n if n == 5 else n + 1,))[1][0][0] == "no"


def test_where_an_answer_stops_on_some_inputs_the_others_tell_the_slip(capsys):
    slips = {"you add y as it comes": lambda x, y: x + y}
    shapes = [(2, 3), (3, 3), (4, 4)]

    @exercise(4, inputs=[(torch.ones(a), torch.ones(b)) for a, b in shapes], slips=slips)
    def sum_of(x, y):
        return x + 2 * y.sum()

    assert sum_of(lambda x, y: x + 0 + y) is False
    assert "you add y as it comes" in capsys.readouterr().out


def test_an_answer_that_stops_is_told_where_it_was_right(capsys):
    @exercise(5, inputs=[(torch.ones(2, 2),), (torch.ones(2, 3),)])
    def turned(x):
        return x.T

    def square_only(x):
        return (x @ torch.eye(2)).T

    assert turned(square_only) is False
    assert "It was right with x (2, 2)." in capsys.readouterr().out


def test_a_slip_that_is_right_on_an_input_is_not_named_there():
    @exercise(2, inputs=[(0,), (3,)], slips={"you double": lambda n: 2 * n}, wrong="no")
    def plain(n):
        return n

    assert plain.judge((lambda n: n if n == 0 else 7,))[1][0][0] == "no"


def test_the_first_step_that_differs_is_named_with_the_learners_line(capsys, monkeypatch):
    @exercise(2, inputs=lambda T=4, S=4, K=8: (torch.randn(T, K), torch.randn(S, K)))
    def attend(q, k):
        scores = q @ k.T
        scaled = scores / math.sqrt(q.size(-1))
        weights = scaled.softmax(-1)
        return weights @ k

    cell = (
        "def f(queries, keys):\n    s = queries @ keys.T\n    w = (s / 8).softmax(-1)\n"
        "    return w @ keys\n"
    )
    out = told(attend, learner(cell, monkeypatch)["f"], capsys)[1]
    assert "`scores` comes out right; the first step that differs is `scaled`: line 3" in out
    assert "0.3536 times what is expected (1/√8)" in out
    cell = (
        "def f(q, k):\n    out = (q @ k.T / 8**0.5).softmax(-1) @ k\n    print(out.sum())\n"
        "    return k\n"
    )
    out = told(attend, learner(cell, monkeypatch)["f"], capsys)[1]
    assert "he right result occurs in your code, line 2" in out


def test_a_counterexample_is_small(capsys):
    def wrong(scores, values):
        return scores.sigmoid() @ values

    out = told(a_softmax_average(), wrong, capsys)[1]
    (line,) = [line for line in out.splitlines() if "With scores" in line]
    assert len(line) < 100 and re.search(r"scores = \[\[[-\d.]+\]\]", line)


def test_items_are_left_out_until_it_no_longer_fails():
    fails = lambda args: 7 in args[0]  # noqa: E731
    assert diagnosis.shrink(([3, 7, 5, 7],), fails) == ([7],)
    assert diagnosis.shrink(("abc", {"x": 1, "y": 2}), lambda args: "y" in args[1]) == (
        "c", {"y": 2}
    )


B = torch.tensor([[1.5, -2.5, 4.0], [0.5, 3.5, -1.0], [2.0, 6.0, 7.5]])


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        (-B, B, "the sign is the wrong way round"),
        (B.T, B, "transpose"),
        (B * 8**0.5, B, "2.828 times what is expected (√8)"),
        (B / 8, B, "0.125 times what is expected (1/8)"),
        (B / math.log(2), B, "bits for nats"),
        (B.trunc(), B, "whole numbers"),
        (B + 3, B, "differs by +3 everywhere"),
        (B**2, B, "the square"),
        (1 / B, B, "one over"),
        (B.exp(), B, "e to the power"),
        (B.softmax(-1), B, "probabilities where logits"),
        (B.flip(0), B, "reverse order along axis 0"),
        (B.roll(1, 1), B, "shifted by one along axis 1"),
        (torch.cat([B[:1], B[1:] + B[1:] ** 3]), B, "only the first row is right"),
        (B.flatten(), B, "in another shape"),
        (B[None], B, "only the axes differ"),
        (B.sum(0), B, "summed over one axis"),
        (B.softmax(0), B.softmax(-1), "columns sum to 1"),
        (B.sigmoid(), B.softmax(-1), "your rows should sum to 1"),
        (B > 0, B <= 0, "True and False are swapped"),
        (torch.full((3, 3), 2.0), B, "each of your numbers is 2"),
        (6, 5, "one too many"),
        (B + B**3, B, None),
        ("text", B, None),
    ],
)
def test_relations(given, expected, said):
    found = relation(given, expected, sizes=(8,))
    assert found is None if said is None else said in found


def test_what_is_right_has_no_relation_that_accuses():
    assert diagnosis.same(B.double(), B) and diagnosis.same(B.numpy(), B)
    assert diagnosis.same(B.tolist(), B) and not diagnosis.same(B + 1e-3, B)
    assert diagnosis.same([1, "a", {2}], (1, "a", {2})) and not diagnosis.same("1", 1)
    assert not diagnosis.same(10**9 + 1, 10**9) and diagnosis.same(True, torch.tensor(True))


# ------------------------------------------------------------------------------- values and laws


def a_prediction(**options):
    return values(
        3, "prediction", **options,
        count=Part(3, "count again", {"that is one too many": 4, "far off": lambda n: n > 100}),
        shape=Part((2, 3), "the shape is wrong", {"the axes are exchanged": (3, 2)}),
    )


def test_values_are_judged_one_by_one(capsys):
    check = a_prediction()
    for answers, said in (
        ((4, (2, 3)), "that is one too many"), ((200, (2, 3)), "far off"),
        ((5, (2, 3)), "count again; yours is 5"), ((3, [3, 2]), "the axes are exchanged"),
        ((3, 7), "2 numbers are expected here; you gave one, 7"),
        (("3", (2, 3)), "count again; yours is '3'"),
    ):
        assert check(*answers) is False
        assert said in capsys.readouterr().out
    assert check(3, ...) is None and check(..., ...) is None
    assert check(3, torch.Size([2, 3])) is True
    assert "Your first guess was (4, (2, 3))" in capsys.readouterr().out


def test_packed_values_have_names_or_an_order(capsys):
    check = a_prediction(packed=True)
    assert check({"count": 3, "shape": (2, 3)}) is True and check([3, (2, 3)]) is True
    assert check({"count": 3}) is None
    assert check([3]) is False and "2 values are expected" in capsys.readouterr().out
    assert check(3) is False and "2 values are expected" in capsys.readouterr().out


def test_a_prediction_that_runs_says_what_came_out(capsys):
    assert a_prediction(measure=lambda: {"count": 3})(3, (2, 3)) is True
    assert "Right. Computed just now: count 3." in capsys.readouterr().out


def test_a_law_judges_and_its_functions_are_guarded(capsys):
    @judged(4, example=lambda x: x + 1)
    def larger(answer):
        expect((answer(torch.zeros(2)) > 0).all(), "not larger")

    assert larger(lambda x: x + 1) is True and larger(lambda x: x) is False
    assert larger(lambda x: ...) is None
    assert larger(lambda x: x.add_(1)) is False
    assert "you changed your argument in place" in capsys.readouterr().out


def test_a_law_may_report_several_mistakes(capsys):
    @judged(3)
    def check(answer):
        if answer < 10:
            yield "too small"
        if answer % 2:
            yield "odd"

    assert check(3) is False
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "too small", "odd"
    ]
    assert check(12) is True


def test_a_check_repeats_itself_and_leaves_the_random_state_alone():
    seen = []

    @judged(4)
    def check(answer):
        seen.append(torch.rand(3))

    torch.manual_seed(5)
    expected = torch.rand(2, 3)
    torch.manual_seed(5)
    first = torch.rand(3)
    check(1)
    assert torch.equal(torch.stack([first, torch.rand(3)]), expected)
    check(1)
    assert torch.equal(*seen)


def message_of(function, *args, **kwargs):
    with pytest.raises(checks.Wrong) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_expect_close_says_what_differs():
    a = torch.zeros(3, 5)
    b = a.clone()
    b[1, 2] = 0.5
    said = message_of(expect_close, b, a, "zeros")
    assert said == "zeros: yours is 0.5 at [1, 2], expected 0. Rows [0, 2] of 3 are right"
    assert message_of(expect_close, 1.5, 2, "x") == "x: yours is 1.5, expected 2"
    assert "(5, 3), expected (3, 5)" in message_of(expect_close, a.T, a, "x")
    assert "str" in message_of(expect_close, "four", 4, "x")
    assert "list" in message_of(expect_close, [[1, 2], [3]], torch.zeros(2, 2), "x")


def test_expect_close_tolerates_rounding_but_no_more():
    expect_close(torch.tensor([1.0, 1000.0]), [1.0 + 9e-6, 1000.009], "x")
    expect_close(True, torch.tensor(True), "x")
    message_of(expect_close, 1.0, 1.0 + 2e-5, "x")
    expect_close(1.0, 1.01, "x", tolerance=0.02)


def test_expect_close_knows_infinity_and_nan():
    inf, nan = float("inf"), float("nan")
    expect_close([-inf, nan, 1.0], [-inf, nan, 1.0], "x")
    for given, right in (([-inf, nan], [-inf, 0.0]), ([0.0], [-inf]), ([inf], [-inf]),
                         ([-inf], [0.0]), ([0.0], [nan])):
        message_of(expect_close, given, right, "x")


def test_expect_takes_a_false_value_for_wrong_and_a_placeholder_for_no_answer():
    expect(torch.tensor(True), "x")
    assert message_of(expect, None, "no match") == "no match"
    with pytest.raises(checks.NotAttempted):
        expect(..., "x")


def test_expect_shape():
    expect_shape(torch.zeros(2, 3), (2, 3))
    assert "yours is (2, 3), expected (3, 2)" in message_of(expect_shape, torch.zeros(2, 3), (3, 2))


# --------------------------------------------------------------------------------- hints, chapters


def test_hints_come_only_when_asked_for_and_one_at_a_time(capsys):
    check = a_softmax_average()
    check(lambda s, v: s @ v)
    assert "Hint" not in capsys.readouterr().out
    given = []
    for _ in range(4):
        checks.hint("test_checks_base.1")
        given.append(capsys.readouterr().out)
    assert given[0] == "Exercise 1, hint 1 of 3: exp first, then divide\n"
    assert "`weights` (3, 4)" in given[1]
    assert "should give" in given[2] and given[2] == given[3]
    checks.hint("masks.77")
    assert "no check 'masks.77'" in capsys.readouterr().out


def test_two_exercises_cannot_share_a_number():
    @judged(5)
    def one(answer):
        pass

    with pytest.raises(ValueError, match="test_checks_base.5"):

        @judged(5)
        def two(answer):
            pass


def test_a_chapter_loads_on_first_use_and_an_unknown_one_is_named(monkeypatch, tmp_path):
    (tmp_path / "just_added.py").write_text(
        "from exercises.checks import expect, judged\n"
        "@judged(1)\ndef four(answer):\n    expect(answer == 4, 'not four')\n"
    )
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    assert "just_added.1" not in EXERCISES and "just_added" in dir(checks)
    assert checks.just_added.four(4) is True
    assert isinstance(checks.just_added, types.ModuleType)
    assert EXERCISES["just_added.1"] is checks.just_added.four
    with pytest.raises(AttributeError, match="no 'never_added'.*just_added"):
        _ = checks.never_added
    del sys.modules["exercises.checks.just_added"], checks.just_added


# ---------------------------------------------------------------------- code with a bug to be found


def bugs_to_find():
    """(number, the cell of code, the cell of the check) of each "find the bug" of the chapters."""
    found = []
    for path in sorted((Path(__file__).parents[2] / "book").glob("[0-9][0-9]*_*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells]
        for i, text in enumerate(texts):
            found += [
                (f"{path.stem}.{number}", texts[i + 1], texts[i + 2])
                for number in re.findall(r"\*\*Exercise (\d+)\.[^*]*\*\* \(find the bug", text)
            ]
    return found


def test_every_chapter_has_a_bug_to_find():
    """The instructions of one exercise begin `**Exercise 2. Find the bug** (find the bug, ...)`."""
    chapters = (Path(__file__).parents[2] / "book").glob("[0-9][0-9]*_*.ipynb")
    have = {number.split(".")[0] for number, _, _ in bugs_to_find()}
    assert sorted({chapter.stem for chapter in chapters} - have) == []


@pytest.mark.parametrize(("number", "code", "check"), bugs_to_find())
def test_code_with_a_bug_counts_as_not_attempted_until_it_is_changed(
    number, code, check, monkeypatch, capsys
):
    """If this fails after a change in the notebook: give the check the new `fingerprint`."""
    call = check[check.index("checks.") :].rstrip("; \n")
    untouched = learner(code, monkeypatch)
    assert eval(call, untouched | {"checks": checks}) is None
    hint = "find what is wrong, change the code"
    assert f". Not attempted yet: {hint}" in capsys.readouterr().out
    changed = learner(code.rstrip() + "  # seen\n", monkeypatch)
    assert eval(call, changed | {"checks": checks}) is False, "the bug is still there"
    assert "✗" in capsys.readouterr().out


def test_code_without_a_source_is_checked():
    names = {}
    exec("def answer(x): return x", names)
    assert checks.fingerprint(names["answer"]) is None
    assert checks.fingerprint(3) is None


# ------------------------------------------------------------- relations over several inputs


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (lambda n, d: 2 * n * n * d + n * n, "Yours is n * n too large, on every input."),
        (lambda n, d: 2 * n * n * d - 3 * d, "Yours is 3 * d too small, on every input."),
        (lambda n, d: 2 * n * d, "Yours is 1 / n times what is expected, on every input."),
        (lambda n, d: 8 * n * n, "Your result is the same whatever `d` is."),
        (lambda n, d: n > d, "Yours is True or False where a number is expected."),
    ],
)
def test_a_count_is_compared_as_a_formula(count, said, capsys):
    check = exercise(7, inputs=[(10, 4), (7, 3), (6, 5)])(lambda n, d: 2 * n * n * d)
    assert told(check, count, capsys)[0] is False
    assert said in told(check, count, capsys)[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((B / 4).softmax(-1), "your shares come from scores that are 0.25 times the right ones"),
        (torch.full((3, 3), 0.3), "each of your numbers is 0.3"),
        (B.softmax(-1)[:1].expand(3, 3), "yours is the same for all 3 places of axis 0"),
        ((B.softmax(-1), 1), "you return 2 values, and number 1 of them is right"),
        (B.softmax(-1) + B.abs() / 10, "your rows should sum to 1"),
    ],
)
def test_shares_are_compared_as_shares(given, said):
    assert said in relation(given, B.softmax(-1))


def test_a_graph_that_is_cut_in_place_is_a_change():
    x = torch.ones(2, requires_grad=True)
    assert framework.unchanged(framework.clone(x), x)
    assert not framework.unchanged(framework.clone(x).detach_(), x)


def test_a_busy_machine_is_no_endless_loop():
    with framework.time_limit(0.1):
        time.sleep(0.3)  # no time of the processor
    with pytest.raises(framework.TimeUp), framework.time_limit(0.1):
        while True:
            pass
