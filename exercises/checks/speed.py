"""Checks for the page How fast it is."""

import math

from exercises.checks import exercise, expect, judged


def _smallest(operations, bytes_read, up=math.ceil):
    """The smallest batch B at which operations(B) / rate >= bytes_read(B) / bandwidth, or 0.

    Both are (a fixed part, a part for each sentence).
    """

    def batch(weights, cached, rate, bandwidth):
        fixed, each = (
            work / rate - read / bandwidth
            for work, read in zip(
                operations(weights, cached), bytes_read(weights, cached), strict=True
            )
        )
        if each <= 0:
            return 0
        return max(1, up(-fixed / each))

    return batch


def _crossing(weights, cached, rate, bandwidth):
    """Where the two lines cross, perhaps below 0."""
    return 4 * weights / bandwidth / (2 * (weights + cached) / rate - 4 * cached / bandwidth)


@exercise(
    1,
    inputs=[
        (2.4e6, 1e4, 1e11, 1e10), (7e9, 2.5e8, 3e14, 2e12), (1e9, 1e5, 1e12, 5e10),
        (1e8, 1e4, 1e12, 1e12), (3e6, 2e6, 5e10, 1e10), (1e9, 5e7, 2e13, 9e11),
        (1e7, 2e6, 1e11, 1e11), (1e6, 1e3, 1e9, 1e12),
        # Both take equally long, at 64 sentences and at any number: powers of 2 round nowhere.
        (2.0**24, 2.0**21, 2.0**40, 2.0**38), (7 * 2.0**20, 2.0**20, 2.0**40, 2.0**38),
    ],
    hint=(
        "count two operations for each weight and each cached number, for every one of the B "
        "sentences",
        "count four bytes for each number, but the weights are read once for the whole batch, and "
        "each sentence reads a cache of its own",
        "2 B (weights + cached) / rate >= 4 (weights + B cached) / bandwidth: bring B to one side, "
        "and look at the sign of what it's multiplied by",
    ),
    wrong="that isn't the smallest batch at which the operations take at least as long",
    shape="return one whole number",
    shrinks=False,
    slips={
        "the caches are read, too, and each sentence has one of its own: with enough of them, "
        "reading never stops being the limit": _smallest(
            lambda w, c: (0, 2 * (w + c)), lambda w, c: (4 * w, 0)
        ),
        "attention multiplies each number of the cache as well: two operations for each": (
            _smallest(lambda w, c: (0, 2 * w), lambda w, c: (4 * w, 4 * c))
        ),
        "each sentence reads a cache of its own; without caches, or with one for all, the batch "
        "would be 2 rate / bandwidth for any model": [
            _smallest(lambda w, c: (0, 2 * w), lambda w, c: (4 * w, 0)),
            _smallest(lambda w, c: (0, 2 * (w + c)), lambda w, c: (4 * (w + c), 0)),
        ],
        "if a sentence adds more reading than operations, no batch is large enough: return 0": [
            lambda w, c, rate, bandwidth: max(1, math.ceil(_crossing(w, c, rate, bandwidth))),
            lambda w, c, rate, bandwidth: math.ceil(_crossing(w, c, rate, bandwidth)),
        ],
        "every multiplication comes with an addition, so that's two operations for each "
        "weight": _smallest(
            lambda w, c: (0, w + c), lambda w, c: (4 * w, 4 * c)
        ),
        "a float32 has four bytes": [
            _smallest(lambda w, c: (0, 2 * (w + c)), lambda w, c: (w, c)),
            _smallest(lambda w, c: (0, 2 * (w + c)), lambda w, c: (2 * w, 2 * c)),
        ],
        "at the whole number below, reading still takes longer: round up": _smallest(
            lambda w, c: (0, 2 * (w + c)), lambda w, c: (4 * w, 4 * c), up=math.floor
        ),
    },
)
def batch_to_fill(weights, cached, rate, bandwidth):
    each = 2 * (weights + cached) / rate - 4 * cached / bandwidth  # seconds that a sentence adds
    if each <= 0:
        return 0
    return max(1, math.ceil(4 * weights / bandwidth / each))


BITS = 8


def _rounded(values, scale):
    return [round(value / scale) * scale for value in values] if scale else list(values)


def _errors(matrix):
    """The largest error with a scale for each row, and with one for the whole matrix."""
    most = 2 ** (BITS - 1) - 1
    whole = max(abs(value) for row in matrix for value in row) / most
    found = []
    for scales in ([max(map(abs, row)) / most for row in matrix], [whole] * len(matrix)):
        found.append(max(
            abs(value - back)
            for row, scale in zip(matrix, scales, strict=True)
            for value, back in zip(row, _rounded(row, scale), strict=True)
        ))
    return found


@judged(
    2,
    hint=(
        "an error can be half a scale at most, but it can also be 0: when?",
        "with one scale for all, whole multiples of it are exact: take whole numbers, and 127 as "
        "the largest",
        "in a row whose largest number is 100, the scale is 100 / 127, and most whole numbers fall "
        "between two steps",
    ),
    example=([[127, 5, -3], [100, 50, 7]], 0.394, 0.0),
)
def rows_are_worse(matrix, by_row, by_matrix):
    matrix = matrix.tolist() if hasattr(matrix, "tolist") else matrix
    good = isinstance(matrix, (list, tuple)) and len(matrix) > 1 and all(
        isinstance(row, (list, tuple)) and len(row) == len(matrix[0]) > 1 for row in matrix
    )
    expect(
        good,
        "matrix should be a list of at least two rows, each a list of equally many numbers",
    )
    for value in (*(value for row in matrix for value in row), by_row, by_matrix):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        expect(number and math.isfinite(value), f"{value!r:.40} isn't a number")
    expect(
        all(any(row) for row in matrix),
        "a row of zeros has no scale: give each row at least one number that isn't 0",
    )
    rows, whole = _errors(matrix)
    largest = max(abs(value) for row in matrix for value in row)
    smallest = min(max(abs(value) for value in row) for row in matrix)
    expect(
        smallest < 0.9 * largest,
        "make the rows differ more: the largest absolute value in one must be below "
        "0.9 times that in another",
    )
    expect(
        rows > 2 * whole + 1e-9 * largest,
        f"with a scale for each row the largest error is {rows:.4g}, with one scale {whole:.4g}: "
        "the first must be more than twice the second",
    )
    for name, given, found in (("by_row", by_row, rows), ("by_matrix", by_matrix, whole)):
        expect(given >= 0, f"{name} is the size of an error, without a sign; you gave {given:g}")
        expect(
            abs(given - found) <= 0.1 * rows,
            f"your matrix does refute the claim; but {name} isn't {given:g}, it's "
            f"{'less' if found < given else 'more'}",
        )
    return f"The largest error is {rows:.3g} with a scale for each row, {whole:.3g} with one scale."
