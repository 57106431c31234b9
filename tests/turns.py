"""Which cases of a long test run each time, and which weekly only."""

import pytest


def one_in(n: int, items) -> list:
    """The items as cases of a test: one in n runs each time, the others weekly."""
    weekly = [pytest.mark.weekly]
    return [pytest.param(item, marks=weekly * bool(i % n)) for i, item in enumerate(items)]
