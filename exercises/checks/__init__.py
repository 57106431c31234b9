"""Feedback for the exercises of the chapters: what is wrong, in a sentence, and never a traceback.

A learner replaces the `...` in an answer cell and runs the next cell:

    from exercises import checks
    checks.masks.padding(my_mask)        # ✗ Exercise 2. Not yet: you hide the real tokens
    checks.hint(checks.masks.padding)    # its next hint, only for those who ask

The check prints its verdict and returns True (right), False (wrong) or None (not attempted yet).
It does not raise, so a notebook runs from top to bottom with no exercise done, and a solution page
proves itself with `assert checks.masks.padding(answer)`.

**How to write a check.** Each chapter has its module, named like its notebook without the number:
`checks/masks.py` for `03_masks.ipynb`, loaded on first use. It declares its exercises; `framework`
does the rest:

- `@exercise(number, inputs=..., slips={sentence: function})` above a *reference*: the learner's
  function is compared with it on copies of the inputs, truth first. If they differ, the message
  names the slip that gives the same numbers or, failing that, how the two sets of numbers are
  related; then come the smallest input found on which it fails and the first of the reference's
  local variables that the learner's code doesn't make. Changed inputs, missing `return`s, endless
  loops, forbidden calls, cut gradients and arguments without effect are caught without a word in
  the declaration, or with one option. Slow code that is right still counts as right, with a remark
  that it's slow.
- `values(number, name, part=Part(right, wrong, slips))`: numbers and shapes to predict.
- `@judged(number, example=...)` above a law: `expect` and `expect_close` stop at the first failure.
- `hint=("...", "...", "...")`: at least three, each saying more than the one before. For a
  function, the framework adds the reference's steps and an example where it can: one or two may do.

An answer that is `...` or None, or a function whose body still is `...`, counts as not attempted;
so does code with a bug to find, as long as nobody has changed it (`given`, its `fingerprint`).
Each check starts from the same random seed and leaves the learner's random state alone.

**Write the test** turns it round: `write_the_test("attention", my_test)` grades the reader's own
test by broken and by unusual right versions of a component (`testing`, `museum.mutants`).

**How a check is tested** (in `tests/exercises/`). `test_checks_tables.py` takes every declaration:
the reference is right, also in float64; each slip is named with its own sentence; every argument
varies; an answer that changes its inputs or forgets its `return` gets a message that says so.
`test_checks_mutants.py` breaks every official solution in every place: no check accepts what is
broken. The tests named after a chapter contain further answers, including right ones written in
other ways. `unseen_answers/` contains answers by people who hadn't seen the checks, and what the
checks said about them."""

import importlib
import pkgutil

from exercises.checks.framework import (
    EXERCISES,
    NotAttempted,
    Part,
    Wrong,
    exercise,
    expect,
    expect_close,
    expect_shape,
    fingerprint,
    judged,
    same,
    values,
)
from exercises.checks.testing import write_the_test

__all__ = [
    "EXERCISES", "NotAttempted", "Part", "Wrong", "exercise", "expect", "expect_close",
    "expect_shape", "fingerprint", "hint", "judged", "same", "values", "write_the_test",
]


def hint(check):
    """Print the next hint of an exercise, given as its check or by its id, "masks.2"."""
    if isinstance(check, str):
        chapter = check.partition(".")[0]
        if chapter in _chapters():
            importlib.import_module(f"{__name__}.{chapter}")
        if check not in EXERCISES:
            print(f"There is no check {check!r}; the second one for the chapter on masks is "
            f"'masks.2'.")
            return
        check = EXERCISES[check]
    if not hasattr(check, "hint"):
        print(f"{check!r:.60} isn't a check; give one, as in hint(checks.masks.decoder_mask), or "
              "its id, as in hint('masks.2').")
        return
    print(f"{check.title}, hint {check.hint()}")


MACHINERY = {"descendants", "diagnosis", "framework", "held", "own", "recorded", "testing"}


def _chapters():
    """The modules that hold the checks of a chapter."""
    return [m.name for m in pkgutil.iter_modules(__path__) if m.name not in MACHINERY]


def __getattr__(name):
    # `checks.masks` loads checks/masks.py when it is first asked for.
    if name in _chapters():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no {name!r}; chapters with checks: {', '.join(_chapters())}."
    )


def __dir__():
    return [*globals(), *_chapters()]
