"""Feedback for the exercises of the chapters: what is wrong, in a sentence, and never a traceback.

A learner replaces the `...` in an answer cell and runs the next cell:

    from transformer_lib import checks
    checks.ch02.softmax_by_hand(answer)      # ✗ 02.1 Not yet: your rows sum to 2.0, not to 1

The check prints one of three lines and returns True (right), False (wrong) or None (not attempted
yet). It does not raise, so a notebook runs from top to bottom with no exercise done, and a
solution page proves itself with `assert checks.ch02.softmax_by_hand(answer)`.

**How to write a check.** Each chapter has its module, `checks/ch01.py` to `checks/ch18.py`, loaded
on first use. A check is a function of the learner's answer under `@exercise("<chapter>.<number>")`:

    from transformer_lib.checks import exercise, expect, expect_close

    @exercise("02.1", hint="exp first, then divide each row by its sum")
    def softmax_by_hand(answer):
        x = torch.randn(3, 4)
        result = answer(x)
        expect_close(result.sum(-1), torch.ones(3), "each row must sum to 1")
        expect_close(result, x.softmax(-1), "the rows sum to 1, but differ from softmax")

- Test for the likely mistakes first, the most telling one first, and name the mistake in the
  message ("your mask lets position 2 see position 3"). End with the comparison that proves the
  answer right, on values that the exercise did not show.
- `expect` and `expect_close` stop at the first failure. A check may also `yield` messages, to
  report several mistakes at once.
- An answer that is `...` or None, or a function that returns one of them, raises
  NotImplementedError or computes with a `...` that is still there, counts as not attempted.
- So does code with a bug to be found, as long as nobody has changed it: `given` is its
  `fingerprint`.
- Each check starts from the same random seed and leaves the learner's random state alone.

**How a check is tested.** `tests/test_checks_<chapter>.py` gives every check the right answer
(True), `...` (None) and at least two plausible wrong answers (False), and asserts that each
message names the mistake that was made. `EXERCISES` holds every check that has been loaded.
"""

import functools
import importlib
import inspect
import linecache
import pkgutil
import traceback
import types
import zlib
from pathlib import Path

import numpy as np
import torch

EXERCISES = {}  # "02.1" -> the check, for each chapter module loaded so far


class Wrong(Exception):
    """The answer is wrong; the message says how."""


class NotAttempted(Exception):
    """There is no answer yet."""


def exercise(number, hint=None, given=None):
    """Turn `check(*answers)` into a check that prints its verdict and returns True, False or None.

    number: "02.1" is the first exercise of chapter 2. hint: shown while there is no answer.
    given: the fingerprint of the code that a learner is asked to repair.
    """
    if hint is None:
        hint = "replace the ... with your answer, then run this cell again"
        if given is not None:
            hint = "find what is wrong, change the code, then run this cell again"

    def decorate(check):
        @functools.wraps(check)
        def run(*answers):
            try:
                if given is not None and any(fingerprint(answer) == given for answer in answers):
                    raise NotAttempted
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)
                    mistakes = _mistakes(check, answers)
            except NotAttempted:
                print(f"○ {number} Not attempted yet: {hint}.")
                return None
            for mistake in mistakes:
                print(f"✗ {number} Not yet: {mistake}")
            if mistakes:
                return False
            print(f"✓ {number} Right.")
            return True

        known = EXERCISES.setdefault(number, run)
        if (known.__module__, known.__name__) != (check.__module__, check.__name__):
            raise ValueError(
                f"exercise {number} is already checked by {known.__module__}.{known.__name__}: "
                f"give {check.__name__} a number of its own."
            )
        EXERCISES[number] = run
        run.number = number
        return run

    return decorate


def fingerprint(function):
    """A checksum of a function's code without its spacing; None where the code is not known."""
    try:
        source = inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return None
    return zlib.crc32("".join(source.split()).encode())


def expect(condition, message):
    """Stop the check with `message` unless the condition holds."""
    if condition is ...:
        raise NotAttempted
    if not condition:
        raise Wrong(message)


def expect_shape(actual, shape, message="the result has the wrong shape"):
    """Stop the check unless `actual` (a tensor, array, number or nested list) has this shape."""
    given = _numbers(actual).shape
    expect(given == tuple(shape), f"{message}: yours is {given}, expected {tuple(shape)}")


def expect_close(actual, expected, message, tolerance=1e-5):
    """Stop the check unless the numbers are equal up to the tolerance.

    actual, expected: tensors, arrays, numbers, booleans or nested lists of them, of one shape.
    tolerance: absolute for numbers below 1, relative above. The message is completed by what
    differs: the shape, a NaN, or the place and size of the largest difference.
    """
    actual, expected = _numbers(actual), _numbers(expected)
    if actual.shape != expected.shape:
        raise Wrong(f"{message}. Your shape is {actual.shape}, expected {expected.shape}")
    unwanted = np.isnan(actual) & ~np.isnan(expected)
    if unwanted.any():
        raise Wrong(f"{message}. You have NaN{_place(unwanted)}")
    equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    size = np.where(np.isfinite(expected), np.maximum(1.0, np.abs(expected)), 1.0)
    with np.errstate(invalid="ignore"):  # inf - inf
        difference = np.where(equal, 0.0, np.abs(actual - expected) / size)
    difference = np.nan_to_num(difference, nan=np.inf)  # a number where NaN is expected
    if (difference > tolerance).any():
        at = np.unravel_index(difference.argmax(), difference.shape)
        place = _place(difference == difference.max())
        raise Wrong(f"{message}. Yours is {actual[at]:.6g}{place}, expected {expected[at]:.6g}")


def same(actual, expected, tolerance=1e-5):
    """Whether two answers are the same numbers, be they tensors, arrays or lists of any dtype."""
    actual, expected = _numbers(actual), _numbers(expected)
    return actual.shape == expected.shape and np.allclose(
        actual, expected, rtol=1e-5, atol=tolerance, equal_nan=True
    )


def close(actual, expected, rtol=1e-5, atol=1e-8):
    """torch.allclose for tensors of two dtypes: a right answer in float64 is right."""
    dtype = torch.promote_types(actual.dtype, expected.dtype)
    return torch.allclose(actual.to(dtype), expected.to(dtype), rtol=rtol, atol=atol)


def _place(where):
    """Where the first True is, in words; nothing for a single number."""
    return f" at {list(map(int, np.argwhere(where)[0]))}" if where.ndim else ""


def _numbers(value):
    _require_attempt(value)
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().numpy()
    try:
        return np.array(
            [_numbers(item) for item in value] if isinstance(value, (list, tuple)) else value,
            dtype=float,
        )
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise Wrong(f"expected numbers of one regular shape, got {kind}: {value!r:.60}") from None


def _require_attempt(value):
    if value is None or value is ...:
        raise NotAttempted
    if isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            if part is ...:
                raise NotAttempted


def _mistakes(check, answers):
    """Messages about what is wrong with the answers, empty when nothing is."""
    mistakes = []
    for answer in answers:
        _require_attempt(answer)
    try:
        found = check(*map(_watched, answers))
        if inspect.isgenerator(found):
            for message in found:
                mistakes.append(message)
    except (NotAttempted, NotImplementedError):
        raise NotAttempted from None
    except Wrong as mistake:
        mistakes.append(str(mistake))
    except Exception as error:
        if "ellipsis" in str(error).lower():  # computed with a ... that nobody replaced yet
            raise NotAttempted from None
        mistakes.append(_explain(error, check))
    return mistakes


def _watched(answer):
    """A learner's function that says so when it gives back nothing."""
    if not isinstance(answer, types.FunctionType):
        return answer

    @functools.wraps(answer)
    def watched(*args, **kwargs):
        result = answer(*args, **kwargs)
        _require_attempt(result)
        return result

    return watched


def _explain(error, check):
    """One sentence for an exception: its name, its message and the learner's line."""
    not_theirs = (
        str(Path(__file__).parents[1]),
        "site-packages",
        "dist-packages",
        str(Path(linecache.__file__).parent),  # the standard library
    )
    steps = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code is not check.__code__
        and not any(part in frame.f_code.co_filename for part in not_theirs)
    ]
    message = " ".join(str(error).split()) or "no message"
    problem = f"{type(error).__name__} ({message:.200})"
    if not steps:
        return f"the check cannot use your answer, which leads to {problem}"
    frame, line = steps[-1]
    source = linecache.getline(frame.f_code.co_filename, line).strip()
    return f"your code stops with {problem} in line {line} of its cell" + (
        f", `{source}`" if source else ""
    )


def _chapters():
    return [module.name for module in pkgutil.iter_modules(__path__)]


def __getattr__(name):
    # `checks.ch02` loads checks/ch02.py when it is first asked for.
    if name in _chapters():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no {name!r}; chapters with checks: {', '.join(_chapters())}."
    )


def __dir__():
    return [*globals(), *_chapters()]
