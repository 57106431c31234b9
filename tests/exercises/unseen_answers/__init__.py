"""Answers to the exercises as different readers might write them, right and wrong ones.

Whoever wrote them had read the chapters, and had not seen the checks. One text file a chapter, one
answer after another:

    ### 3 padding ✗ hides the rows of padding and not its columns
    named, was helps · you hid the padding's own queries
    def answer(ids): ...

The heading gives the exercise, its check in `checks.<chapter>`, whether the answer is right (✓),
and what is wrong with it or, of a right one, what is unusual. The code is a program of its own that
defines `answer`. Of a wrong answer, the line between says how the check judges it:

- accepted; named (it says what was done wrong, or the relation, the step or the argument that is
  the mistake); helps (a true example or place that leads to it); none (it says only that something
  differs); wrong cause;
- `was`: what it said when it met the answer, before anything was mended, if that was another;
- after the dot, words of today's message that name the mistake, which no later change may lose.
"""

import contextlib
import inspect
import io
import linecache
import re
from dataclasses import dataclass
from pathlib import Path

from exercises import checks
from exercises.checks import framework

HERE = Path(__file__).parent
CHAPTERS = sorted(path.stem for path in HERE.glob("*.txt"))
KIND = "accepted|named|helps|none|wrong cause"
VERDICT = rf"(?P<now>{KIND})(?:, was (?P<first>{KIND}))?(?: · (?P<said>.+))?\n"
HEADING = re.compile(
    rf"^### (?P<number>\d+) (?P<check>\w+) (?:(?P<right>✓)|✗) (?P<mistake>.+)\n"
    rf"(?(right)|{VERDICT})",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Answer:
    """One answer, and how its check judges it."""

    exercise: str  # "masks.3" is the third exercise of the chapter on masks
    check: str  # the name of the check in checks.masks
    code: str
    right: bool
    mistake: str
    first: str | None  # the verdict before anything was mended; None for a right answer
    now: str | None
    said: str  # words of the message, or ""


def answers_of(chapter: str) -> list[Answer]:
    text = (HERE / f"{chapter}.txt").read_text(encoding="utf8")
    found = list(HEADING.finditer(text))
    if len(found) != len(re.findall("^###", text, re.MULTILINE)) or found[0].start():
        raise ValueError(f"{chapter}.txt: a heading or the verdict below it cannot be read")
    ends = [heading.start() for heading in found[1:]] + [len(text)]
    return [
        Answer(
            exercise=f"{chapter}.{heading['number']}", check=heading["check"],
            code=text[heading.end() : end].strip("\n") + "\n", right=bool(heading["right"]),
            mistake=heading["mistake"], first=heading["first"] or heading["now"],
            now=heading["now"], said=heading["said"] or "",
        )
        for heading, end in zip(found, ends, strict=True)
    ]


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
