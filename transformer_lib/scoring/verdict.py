"""Is one arm of an experiment better than another, or were its seeds just lucky?

`compare_runs` is the only place where this book turns training runs into a verdict. It looks at
pairs of runs with the same random seed, because a seed fixes the initialisation and the order of
the data and so moves both arms in the same direction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

BETTER, WORSE, TIE = "better", "worse", "cannot be told apart"
EXACT_FROM = 6  # pairs; with five, even the clearest sign-flip has p = 2 / 2^5 = 6 %
ALL_FLIPS = 14  # pairs; beyond this, flips are drawn at random


@dataclass(frozen=True)
class Verdict:
    """What runs of arm `a` and arm `b` allow us to say about `a`."""

    word: str  # "better", "worse" or "cannot be told apart"
    difference: float  # the mean of a - b over the pairs, in the metric's own unit
    low: float  # the ends of its confidence interval; infinite if there are too few pairs
    high: float
    pairs: int

    def __str__(self) -> str:
        """One clause, e.g. "better by 2.05 (95 % interval 1.20 to 2.90, 5 pairs)"."""
        n = f"{self.pairs} pair{'s' * (self.pairs != 1)}"
        if not np.isfinite(self.low):
            return f"{self.word} (difference {self.difference:+.3g}, only {n})"
        interval = f"95 % interval {self.low:+.3g} to {self.high:+.3g}, {n}"
        if self.word == TIE:
            return f"{self.word} (difference {self.difference:+.3g}, {interval})"
        return f"{self.word} by {abs(self.difference):.3g} ({interval})"


def compare_runs(
    a: dict[object, float] | Sequence[float],
    b: dict[object, float] | Sequence[float],
    better: str = "higher",
    among: int = 1,
    spread: Sequence[float] | None = None,
) -> Verdict:
    """Is arm `a` better than arm `b`? Returns a Verdict at the 5 % level.

    a, b: the final metric of each run, as {seed: value} or as two sequences in the order of the
    seeds; seeds that only one of them has are left out. better: "higher" (BLEU, accuracy) or
    "lower" (loss). among: how many comparisons the reader will look for a winner in; the 5 % are
    divided by it (Bonferroni). spread: (standard deviation of one run, degrees of freedom) from
    `pooled_spread`, to use what all arms of an experiment say about luck.

    The interval is Student's t on the paired differences. Runs are often all-or-nothing, which is
    far from a normal distribution, so from six pairs on, the exact sign-flip test has to agree
    (Fisher 1935): if the label of an arm meant nothing, each difference could as well have had the
    other sign. With fewer than three pairs and no pooled spread the answer is always "cannot be
    told apart". Raises ValueError if no seed is in both.
    """
    if better not in ("higher", "lower"):
        raise ValueError(f'better must be "higher" or "lower", got {better!r}.')
    if not isinstance(among, int) or among < 1:
        raise ValueError(f"among must be a count of comparisons, 1 or more, got {among!r}.")
    differences = _differences(a, b)
    if not np.isfinite(differences).all():
        raise ValueError("a metric is infinite or not a number: leave out the runs that diverged.")
    n, mean, share = len(differences), float(differences.mean()), 1 - 0.05 / among
    if spread is not None:
        deviation, freedom = spread
        half = _t(freedom, (1 + share) / 2) * deviation * np.sqrt(2 / n) if freedom else np.inf
    elif n < 3:
        half = np.inf
    else:
        half = _t(n - 1, (1 + share) / 2) * differences.std(ddof=1) / np.sqrt(n)
    low, high = float(mean - half), float(mean + half)
    apart = not low <= 0 <= high
    if apart and n >= EXACT_FROM:
        apart = sign_flip_p(differences) <= 0.05 / among
    word = TIE if not apart else BETTER if (mean > 0) == (better == "higher") else WORSE
    return Verdict(word, mean, low, high, n)


def sign_flip_p(differences: Sequence | np.ndarray) -> float:
    """The share of all sign patterns whose mean is at least as far from 0 as the observed one.

    differences: (n,), one per pair. All 2^n patterns up to 14 pairs, then 10,000 random ones.
    """
    differences = np.asarray(differences, float)
    n = len(differences)
    if n == 0:
        raise ValueError("there are no differences, so there is nothing to flip.")
    if n <= ALL_FLIPS:
        signs = np.array(list(product((1, -1), repeat=n)))
    else:
        signs = np.random.default_rng(0).choice((1, -1), size=(10_000, n))
        signs[0] = 1  # the observed pattern is one of them
    means = np.abs(signs @ differences)
    return float((means >= abs(differences.sum()) * (1 - 1e-9)).mean())


def pooled_spread(arms: Iterable) -> tuple[float, int]:
    """(s, f): how far one run scatters, estimated from all arms of an experiment together.

    arms: a sequence of {seed: value}. Each arm and each seed may have a level of its own (a block
    design, Fisher 1925); s is the standard deviation of what is left, f its degrees of freedom.
    Assumes that luck is as large in every arm: leave out arms that failed to learn.
    Raises ValueError where no arm has a run.
    """
    rows = [(i, seed, value) for i, arm in enumerate(arms) for seed, value in arm.items()]
    if not rows:
        raise ValueError("there is no run in any arm, so nothing says how far one scatters.")
    if not all(np.isfinite(value) for *_, value in rows):
        raise ValueError("a metric is infinite or not a number: leave out the runs that diverged.")
    arm, seed, value = (np.array(column) for column in zip(*rows, strict=True))
    levels = [arm == i for i in np.unique(arm)] + [seed == i for i in np.unique(seed)]
    design = np.array(levels, float).T  # (runs, arms + seeds), one column too many
    fit, _, rank, _ = np.linalg.lstsq(design, value, rcond=None)
    freedom = int(len(value) - rank)
    squares = float(((value - design @ fit) ** 2).sum())
    return (np.sqrt(squares / freedom) if freedom else float("nan")), freedom


def _differences(
    a: Mapping | Sequence | np.ndarray, b: Mapping | Sequence | np.ndarray
) -> np.ndarray:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        seeds = [seed for seed in a if seed in b]
        a, b = [a[seed] for seed in seeds], [b[seed] for seed in seeds]
    elif not (isinstance(a, Sequence | np.ndarray) and isinstance(b, Sequence | np.ndarray)):
        raise TypeError("pass two mappings {seed: value}, or two sequences in the order of seeds.")
    if len(a) != len(b):
        raise ValueError(
            f"got {len(a)} and {len(b)} runs: pairs need as many of each. Pass {{seed: value}} to "
            "compare only the seeds that both have."
        )
    if not len(a):
        raise ValueError("no seed is in both arms, so there is no pair to compare.")
    return np.asarray(a, float) - np.asarray(b, float)


@cache
def _t(freedom: int, share: float) -> float:
    """The x below which `share` of Student's t distribution with `freedom` degrees lies.

    With x = sqrt(freedom) tan(angle) its density is cos(angle)^(freedom - 1), up to a factor.
    """
    angle = np.linspace(-np.pi / 2, np.pi / 2, 200_001)[1:-1]
    below = np.cumsum(np.cos(angle) ** (freedom - 1))
    return float(np.sqrt(freedom) * np.tan(np.interp(share, below / below[-1], angle)))
