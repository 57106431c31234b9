"""Checks for the page Replicate a table."""

import math

from exercises.checks import exercise

BETTER, WORSE, TIE = "better", "worse", "cannot be told apart"

PREDICTIONS = [
    ([WORSE], [0.7], [WORSE]),
    ([TIE, BETTER], [0.9, 0.6], [WORSE, BETTER]),
    ([WORSE, WORSE, TIE], [0.5, 0.8, 1.0], [TIE, WORSE, TIE]),
    ([BETTER, TIE, WORSE, TIE], [0.34, 0.9, 0.75, 0.6], [TIE, TIE, BETTER, WORSE]),
    ([TIE, WORSE, BETTER, TIE, WORSE], [1.0, 0.4, 0.95, 0.7, 0.55], [TIE] * 5),
]


def _right(predicted, verdicts):
    return [float(one == other) for one, other in zip(predicted, verdicts, strict=True)]


def _scored(of):
    """The share that's right, and a mean over the rows of `of`(how sure, right or not)."""

    def score(predicted, sure, verdicts):
        right = _right(predicted, verdicts)
        parts = [of(p, r) for p, r in zip(sure, right, strict=True)]
        return sum(right) / len(right), sum(parts) / len(parts)

    return score


@exercise(
    1,
    inputs=PREDICTIONS,
    hint=(
        "for each row, write down a 1 if the prediction matches the verdict, and a 0 if it doesn't",
        "the Brier score is the mean of (sure - right)², with that 1 or 0 for right",
        "wrong rows count, too: (0.7 - 0)² = 0.49",
    ),
    wrong="these aren't the share of right rows and the Brier score",
    shape="return two numbers, the share of right rows and the Brier score",
    parts=("share", "brier"),
    shrinks=False,
    slips={
        "a wrong row costs sure², not (1 - sure)²: the further you leaned, the more it costs": (
            _scored(lambda p, r: (1 - p) ** 2)
        ),
        "the difference is squared": _scored(lambda p, r: abs(p - r)),
        "without the square, being too sure in one row and not sure enough in another cancel out": (
            _scored(lambda p, r: p - r)
        ),
        "divide by the number of rows: a mean, not a sum": [
            lambda predicted, sure, verdicts: (
                _scored(lambda p, r: 0)(predicted, sure, verdicts)[0],
                sum((p - r) ** 2 for p, r in zip(sure, _right(predicted, verdicts), strict=True)),
            ),
            lambda predicted, sure, verdicts: (
                sum(_right(predicted, verdicts)),
                _scored(lambda p, r: (p - r) ** 2)(predicted, sure, verdicts)[1],
            ),
        ],
        "the wrong rows are left out: being sure of them is what costs most": (
            _scored(lambda p, r: r * (p - r) ** 2)
        ),
        "only the wrong rows count: a right one costs (sure - 1)²": (
            _scored(lambda p, r: (1 - r) * (p - r) ** 2)
        ),
        "that's the root of the mean; the Brier score has no root": (
            lambda predicted, sure, verdicts: (
                _scored(lambda p, r: 0)(predicted, sure, verdicts)[0],
                _scored(lambda p, r: (p - r) ** 2)(predicted, sure, verdicts)[1] ** 0.5,
            )
        ),
        "they're swapped: the share of right rows comes first": (
            lambda *given: _scored(lambda p, r: (p - r) ** 2)(*given)[::-1]
        ),
    },
)
def score(predicted, sure, verdicts):
    right = [one == other for one, other in zip(predicted, verdicts, strict=True)]
    brier = sum((p - r) ** 2 for p, r in zip(sure, right, strict=True)) / len(sure)
    return sum(right) / len(right), brier


def _least(of, up=math.ceil):
    return lambda spread, difference, t: max(1, up(of(spread, difference, t)))


@exercise(
    2,
    inputs=[
        (1.8, 0.9, 3.1), (0.4, 0.5, 2.0), (0.05, 0.1, 3.1), (1.0, 0.25, 2.2), (3.0, 1.0, 2.7),
        (0.2, 2.0, 2.0),
    ],
    hint=(
        "the difference of two means of n runs has the standard deviation spread * sqrt(2 / n)",
        "the interval reaches t times that to each side, which may be at most the difference",
        "solve t * spread * sqrt(2 / n) <= difference for n, and round up",
    ),
    wrong="that isn't the smallest number of seeds",
    shape="return one whole number",
    shrinks=False,
    slips={
        "luck plays a part in both arms, so a difference has twice the variance of one run": (
            _least(lambda s, d, t: (t * s / d) ** 2)
        ),
        "the 2 belongs inside the root: variances add up, not standard deviations": (
            _least(lambda s, d, t: (2 * t * s / d) ** 2)
        ),
        "n is under a root, so square both sides": (
            _least(lambda s, d, t: 2**0.5 * t * s / d)
        ),
        "round up: with fewer seeds than that, the interval reaches beyond the difference": [
            _least(lambda s, d, t: 2 * (t * s / d) ** 2, up=math.floor),
            _least(lambda s, d, t: 2 * (t * s / d) ** 2, up=round),
        ],
        "t is missing: one standard deviation to each side isn't a 95 % interval": (
            _least(lambda s, d, t: 2 * (s / d) ** 2)
        ),
        "seeds are counted in whole numbers: round up": (
            lambda spread, difference, t: 2 * (t * spread / difference) ** 2
        ),
        "the smaller the difference, the more seeds it takes: it goes in the denominator": (
            _least(lambda s, d, t: 2 * (t * d / s) ** 2)
        ),
        "that's for half the difference: take half the interval's width, not the whole width": (
            _least(lambda s, d, t: 8 * (t * s / d) ** 2)
        ),
    },
)
def seeds_needed(spread, difference, t):
    n = 2 * (t * spread / difference) ** 2
    return max(1, math.ceil(n))
