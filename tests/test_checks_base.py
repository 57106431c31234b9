"""The feedback of exercises: right, wrong and not attempted, and never a traceback."""

import functools
import importlib
import json
import linecache
import re
import sys
import types
from pathlib import Path

import pytest
import torch

from transformer_lib import checks
from transformer_lib.checks import EXERCISES, exercise, expect, expect_close, expect_shape


@pytest.fixture
def softmax_check():
    @exercise("99.1", hint="exp first, then divide")
    def softmax_by_hand(answer):
        x = torch.randn(3, 4)
        result = answer(x)
        expect_close(result.sum(-1), torch.ones(3), "each row must sum to 1")
        expect_close(result, x.softmax(-1), "the rows sum to 1, but differ from softmax")

    yield softmax_by_hand
    del EXERCISES["99.1"]


def test_a_right_answer_is_true(softmax_check, capsys):
    assert softmax_check(lambda x: x.softmax(-1)) is True
    assert capsys.readouterr().out == "✓ 99.1 Right.\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x: x.exp(), "each row must sum to 1"),
        (lambda x: x.exp() / x.exp().sum(0), "each row must sum to 1"),
        (lambda x: x / x.sum(-1, keepdim=True), "the rows sum to 1, but differ"),
        (lambda x: x.softmax(-1)[:2], "Your shape is (2,), expected (3,)"),
        (lambda x: (x - torch.inf).softmax(-1), "You have NaN at [0]"),
        (lambda x: "softmax", "AttributeError"),
    ],
)
def test_a_wrong_answer_is_false_and_named(softmax_check, capsys, wrong, said):
    assert softmax_check(wrong) is False
    out = capsys.readouterr().out
    assert out.startswith("✗ 99.1 Not yet: ")
    assert said in out


def unfinished(x):
    scores = ...
    return scores / x


def not_implemented(x):
    raise NotImplementedError


class Unfinished(torch.nn.Module):
    def forward(self, x):
        pass


@pytest.mark.parametrize(
    "nothing",
    [..., None, (1, ...), lambda x: ..., lambda x: None, unfinished, not_implemented],
)
def test_no_answer_is_none_with_a_hint(softmax_check, capsys, nothing):
    assert softmax_check(nothing) is None
    assert capsys.readouterr().out == "○ 99.1 Not attempted yet: exp first, then divide.\n"


def test_a_module_that_returns_nothing_is_no_answer(capsys):
    @exercise("99.2")
    def check(answer):
        expect_close(answer(torch.ones(2)), torch.ones(2), "the identity")

    assert check(Unfinished()) is None
    assert check(torch.nn.Identity()) is True
    del EXERCISES["99.2"]


def test_an_exception_is_explained_with_the_learners_line(softmax_check, capsys):
    def shape_mistake(x):
        return x @ x  # (3, 4) @ (3, 4)

    assert softmax_check(shape_mistake) is False
    out = capsys.readouterr().out
    assert "your code stops with RuntimeError" in out
    assert "`return x @ x" in out
    assert len(out.splitlines()) == 1


def test_a_wrong_type_is_explained_without_blaming_a_line(softmax_check, capsys):
    assert softmax_check(3.0) is False
    assert "the check cannot use your answer, which leads to TypeError" in capsys.readouterr().out


def test_a_generator_reports_every_mistake(capsys):
    @exercise("99.3")
    def check(answer):
        if answer < 10:
            yield "too small"
        if answer % 2:
            yield "odd"
        expect(answer != 3, "three")

    assert check(3) is False
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "too small",
        "odd",
        "three",
    ]
    assert check(12) is True
    del EXERCISES["99.3"]


def test_a_check_repeats_itself_and_leaves_the_random_state_alone():
    seen = []

    @exercise("99.4")
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
    del EXERCISES["99.4"]


def message_of(function, *args, **kwargs):
    with pytest.raises(checks.Wrong) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_expect_close_says_what_differs():
    a = torch.zeros(2, 3)
    b = a.clone()
    b[1, 2] = 0.5
    message = message_of(expect_close, b, a, "zeros")
    assert message == "zeros. Yours is 0.5 at [1, 2], expected 0"
    assert message_of(expect_close, 1.5, 2, "x") == "x. Yours is 1.5, expected 2"
    assert "(3, 2), expected (2, 3)" in message_of(expect_close, a.T, a, "x")
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
    assert "NaN at [1]" in message_of(expect_close, [-inf, nan], [-inf, 0.0], "x")
    message_of(expect_close, [0.0], [-inf], "x")
    message_of(expect_close, [inf], [-inf], "x")
    message_of(expect_close, [-inf], [0.0], "x")
    message_of(expect_close, [0.0], [nan], "x")


def test_expect_takes_a_false_value_for_wrong_and_a_placeholder_for_no_answer():
    expect(torch.tensor(True), "x")
    assert message_of(expect, None, "no match") == "no match"
    with pytest.raises(checks.NotAttempted):
        expect(..., "x")


def test_expect_shape():
    expect_shape(torch.zeros(2, 3), (2, 3))
    assert "yours is (2, 3), expected (3, 2)" in message_of(expect_shape, torch.zeros(2, 3), (3, 2))


def test_two_exercises_cannot_share_a_number():
    @exercise("99.5")
    def one(answer):
        pass

    with pytest.raises(ValueError, match="99.5"):

        @exercise("99.5")
        def two(answer):
            pass

    del EXERCISES["99.5"]


def test_a_chapter_loads_on_first_use_and_an_unknown_one_is_named(monkeypatch, tmp_path):
    (tmp_path / "ch98.py").write_text(
        "from transformer_lib.checks import exercise, expect\n"
        "@exercise('98.1')\ndef four(answer):\n    expect(answer == 4, 'not four')\n"
    )
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    assert "98.1" not in EXERCISES and "ch98" in dir(checks)
    assert checks.ch98.four(4) is True
    assert isinstance(checks.ch98, types.ModuleType)
    assert EXERCISES["98.1"] is checks.ch98.four
    with pytest.raises(AttributeError, match="no 'ch97'.*ch98"):
        _ = checks.ch97
    del EXERCISES["98.1"], sys.modules["transformer_lib.checks.ch98"], checks.ch98


# ---------------------------------------------------------------------- code with a bug to be found


def bugs_to_find():
    """(number, the cell of code, the cell of the check) of each "find the bug" of the chapters."""
    found = []
    for path in sorted((Path(__file__).parents[1] / "book").glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells]
        for i, text in enumerate(texts):
            found += [
                (f"{path.stem}.{number}", texts[i + 1], texts[i + 2])
                for number in re.findall(r"\*\*Exercise (\d+)\.[^*]*\*\* \(find the bug", text)
            ]
    return found


def learner(source, monkeypatch):
    """The names that a cell with this source defines, as in a notebook."""
    name = "<the learner's cell>"
    monkeypatch.setitem(
        linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name)
    )
    names = {}
    exec(compile(source, name, "exec"), names)
    return names


def test_every_chapter_has_a_bug_to_find():
    chapters = (Path(__file__).parents[1] / "book").glob("[0-9][0-9]_*.ipynb")
    assert {number.split(".")[0] for number, _, _ in bugs_to_find()} == {
        chapter.stem for chapter in chapters
    }


@pytest.mark.parametrize(("number", "code", "check"), bugs_to_find())
def test_code_with_a_bug_counts_as_not_attempted_until_it_is_changed(
    number, code, check, monkeypatch, capsys
):
    """If this fails after a change in the notebook: give the check the new `fingerprint`."""
    call = check[check.index("checks.ch") :].rstrip("; \n")
    untouched = learner(code, monkeypatch)
    assert eval(call, untouched | {"checks": checks}) is None
    hint = "find what is wrong, change the code"
    assert f" Not attempted yet: {hint}" in capsys.readouterr().out
    changed = learner(code.rstrip() + "  # seen\n", monkeypatch)
    assert eval(call, changed | {"checks": checks}) is False, "the bug is still there"
    assert "✗" in capsys.readouterr().out


def test_code_without_a_source_is_checked():
    names = {}
    exec("def answer(x): return x", names)
    assert checks.fingerprint(names["answer"]) is None
    assert checks.fingerprint(3) is None


def test_numbers_of_any_kind_are_compared():
    ones = torch.ones(2, dtype=torch.float64)
    assert checks.same(ones, torch.ones(2)) and checks.same(ones.numpy(), [1, 1])
    assert not checks.same(ones, [1, 1.1]) and not checks.same(ones, torch.ones(2, 1))


CASES_OF = sorted(path.stem[-2:] for path in Path(__file__).parent.glob("test_checks_[0-9]*.py"))


@pytest.mark.parametrize("chapter", CASES_OF)
def test_a_verdict_does_not_depend_on_the_precision(chapter, monkeypatch, capsys):
    # Whoever works in float64, as numpy does, is as right, and hears of the same mistake.
    watched = checks._watched

    def in_double(answer):
        checked = watched(answer)
        if checked is answer:  # no function
            return answer

        @functools.wraps(checked)
        def double(*args, **kwargs):
            result = checked(*args, **kwargs)
            parts = result if isinstance(result, tuple) else (result,)
            parts = tuple(
                part.double()
                if isinstance(part, torch.Tensor) and part.is_floating_point()
                else part
                for part in parts
            )
            return parts if isinstance(result, tuple) else parts[0]

        return double

    monkeypatch.setattr(checks, "_watched", in_double)
    cases = importlib.import_module(f"test_checks_{chapter}").CASES
    for check, answer, verdict, message in cases:
        assert check(*answer) is verdict, message
        assert message in capsys.readouterr().out


def test_close_forgives_the_dtype_and_nothing_else():
    third = torch.tensor([1 / 3])
    assert checks.close(third.double(), third) and checks.close(third, third.double())
    assert not checks.close(third.double(), third + 1e-3)
    assert checks.close(third.double(), third + 1e-3, atol=1e-2)
