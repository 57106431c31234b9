"""Answers written by people who had not read the checks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Answers written by people who had not read the checks."""

    exercise: str
    check: str
    code: str
    right: bool
    mistake: str
