"""Answers to the exercises as different readers might write them, right and wrong ones.

Whoever wrote them had read the chapters, and had not seen the checks. One module a chapter, each
with a list ANSWERS.
"""

from dataclasses import dataclass

# These checks take several arguments, and `answer` is the tuple of them. All the others take one.
SEVERAL = {"path_lengths", "temperature", "combined", "exactly_one", "rows", "no_idea"}


@dataclass(frozen=True)
class Answer:
    """One answer: `code` is a program of its own that defines the name `answer`."""

    exercise: str  # "02.3" is exercise 3 of chapter 02
    check: str  # the name of the check in checks.ch02
    code: str
    right: bool
    mistake: str  # what is wrong with it, or, of a right one, what is unusual
