"""Fair timing on a machine that does other things too."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def alternate(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each contestant in each round: A B A B, never A A B B.

    What slows the machine for a while then slows all of them. One call each beforehand, not
    counted, warms caches and allocators.
    """
    for function in contestants.values():
        function()
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, function in contestants.items():
            taken[name].append(seconds(function))
    return taken


def rounds_for(rounds: int, length: int) -> int:
    """How often to measure texts of this length: those that take minutes, once."""
    return rounds if length < 256 else 1


@dataclass
class Row:
    """One comparison. ratio above 1: ours is the better by that factor.

    ours, peer: medians over rounds, in `unit`. low, high: the smallest and largest ratio of a
    single round. A row without numbers says in `note` why.
    """

    what: str
    against: str
    unit: str = ""
    ours: float | None = None
    peer: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    target: str = ""
    note: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)


def compare(
    what: str, against: str, unit: str, ours: list[float], peer: list[float], target="", note=""
) -> Row:
    """A Row from the rates (work per second) of both in each round.

    The ratio is the median of the rounds' ratios, for neighbours in time saw the same machine.
    """
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return Row(
        what, against, unit, median(ours), median(peer), median(ratios), min(ratios), max(ratios),
        target, note, {"ours": ours, "peer": peer},
    )


def rates(work: float, taken: list[float]) -> list[float]:
    """Work per second in each round."""
    return [work / t for t in taken]
