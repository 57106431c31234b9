"""Answers to the exercises as different readers might write them, right and wrong ones.

Whoever wrote them had read the chapters, and had not seen the checks. One module a chapter, each
with a list ANSWERS. What the checks said of them stands in `verdicts.json`: for each wrong answer,
by exercise and mistake,

- `first`: what they said when they met it, before anything was mended: accepted, named (it says
  what was done wrong, or the relation, the step or the argument that is the mistake), helps (a true
  example or place that leads to it), none (it says only that something differs) or wrong cause;
- `now`: what they say today, in the same words;
- `said`: words of today's message that name the mistake, which no later change may lose.
"""

import contextlib
import importlib
import inspect
import io
import json
import linecache
import pkgutil
from dataclasses import dataclass
from pathlib import Path

from exercises import checks
from exercises.checks import framework

HERE = Path(__file__).parent
CHAPTERS = sorted(module.name for module in pkgutil.iter_modules([str(HERE)]))


@dataclass(frozen=True)
class Answer:
    """One answer: `code` is a program of its own that defines the name `answer`."""

    exercise: str  # "masks.3" is the third exercise of the chapter on masks
    check: str  # the name of the check in checks.scaled_dot_product_attention
    code: str
    right: bool
    mistake: str  # what is wrong with it, or, of a right one, what is unusual


def answers_of(chapter):
    return importlib.import_module(f"{__name__}.{chapter}").ANSWERS


def verdicts():
    return json.loads((HERE / "verdicts.json").read_text(encoding="utf-8"))


def takes(check) -> int:
    """How many arguments a check takes; `answer` is a tuple of so many, if more than one."""
    if isinstance(check, framework.Values):
        return 1 if check.packed else len(check.parts)
    asked = check.law if isinstance(check, framework.Judged) else check.adapt
    return len(inspect.signature(asked).parameters) if asked else 1


def judged(answer, name="<an unseen answer>"):
    """(verdict, message) of the check on an answer, which it meets like the cells of a notebook."""
    linecache.cache[name] = (len(answer.code), None, answer.code.splitlines(True), name)
    names, printed = {"__name__": "__main__"}, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(answer.code, name, "exec"), names)
    check = getattr(getattr(checks, answer.exercise.partition(".")[0]), answer.check)
    given = names["answer"] if takes(check) > 1 else (names["answer"],)
    with contextlib.redirect_stdout(printed):
        verdict = check(*given)
    return verdict, printed.getvalue()
