"""The key: questions with yes or no that lead from a symptom to the suspects.

A question knows how its answer is found, in words for a reader with a bug of their own, and as a
function of a record. So every specimen has its place in the tree by the truth, and a leaf lists
those that answer alike.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    name: str
    asks: str
    how: str  # how to find out
    true_of: Callable  # (record, the healthy record) -> bool


@dataclass(frozen=True)
class Node:
    question: Question
    yes: "Node | Leaf"
    no: "Node | Leaf"


@dataclass(frozen=True)
class Leaf:
    suspects: tuple[str, ...]


def numeric(value):
    return not isinstance(value, str)


def breaks(*laws):
    """A question that a law answers."""
    return lambda record, healthy: any(law in record["breaks"] for law in laws)


def stops(record, healthy):
    said = " ".join(record["breaks"].values())
    ends = ("Error:", "stops with", "overflow", "gets [nan")
    return "stops" in record or not learns(record, healthy) or any(end in said for end in ends)


def learns(record, healthy):
    """The loss stays a number."""
    return all(numeric(loss) for _, loss in record.get("curve", healthy["curve"]))


def low_loss_bad_outputs(record, healthy):
    last = record.get("last", healthy["last"])
    return last < healthy["last"] + 0.1 and record["right"] < healthy["right"] - 0.1


def high_loss(record, healthy):
    return record.get("last", healthy["last"]) > healthy["last"] + 0.1
