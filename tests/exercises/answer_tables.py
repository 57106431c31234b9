"""Answers that follow from the declaration of an exercise: right, and wrong in general ways."""

import torch

from exercises.checks import EXERCISES
from exercises.checks.framework import Exercise, Judged, Values, clone

__all__ = ["EXERCISES", "Exercise", "Judged", "Values", "in_double", "only_printing",
           "right_answer", "spoiled", "spoiling"]


def right_answer(check):
    """A right answer of any check, as the learner would hand it in."""
    if isinstance(check, Judged):
        return check.example if isinstance(check.example, tuple) else (check.example,)
    if isinstance(check, Values):
        right = [part.right for part in check.parts.values()]
        if not check.packed:
            return tuple(right)
        spoken = check.packed == "names"
        return (dict(zip(check.parts, right, strict=True)),) if spoken else (right,)
    if check.adapt is None:
        return (check.reference,)
    return check.right if isinstance(check.right, tuple) else (check.right,)


def in_double(answer):
    def double(*args):
        result = answer(*args)
        parts = result if isinstance(result, tuple) else (result,)
        parts = tuple(
            part.double() if isinstance(part, torch.Tensor) and part.is_floating_point() else part
            for part in parts
        )
        return parts if isinstance(result, tuple) else parts[0]

    return double


def spoiled(value):
    """Change an argument in place, if it can be."""
    if isinstance(value, torch.Tensor) and value.numel():
        return bool(value.data.copy_(~value if value.dtype == torch.bool else value + 1).numel())
    if isinstance(value, list) and value:
        value.append(value[0])
        return True
    return False


def spoiling(check, changed=None):
    """A right answer that changes its inputs; `changed` collects whether they could be."""

    def answer(*args):
        result = clone(check.reference(*args))
        done = [spoiled(value) for value in args]
        if changed is not None:
            changed.append(done)
        return result

    return answer


def only_printing(check):
    def answer(*args):
        print(check.reference(*args))

    return answer
