"""Checks for the page What the vectors know."""

import torch
from torch.nn import functional as F

from exercises.checks import expect, judged

WORDS, DRAWS = 400, 3
FIRST, ALLOWED = 0.9, 40


def rotate_noise(size, pairs):
    """(share of the fitted pairs that come first, median rank of the others), of random vectors.

    Two tables of WORDS unit vectors that have nothing in common; a rotation is fitted on the first
    `pairs` rows, as the page fits one on two thirds of its dictionary. Means of DRAWS draws.
    """
    found = []
    for seed in range(DRAWS):
        chance = torch.Generator().manual_seed(seed)
        one, other = (
            F.normalize(torch.randn(WORDS, size, generator=chance), dim=-1) for _ in range(2)
        )
        u, _, v_t = torch.linalg.svd(one[:pairs].T @ other[:pairs])
        similarity = one @ (u @ v_t) @ other.T  # (WORDS, WORDS)
        ranks = (similarity > similarity.diagonal()[:, None]).sum(1) + 1
        first = (ranks[:pairs] == 1).float().mean()
        found.append((first.item(), ranks[pairs:].float().median().item()))
    return tuple(sum(values) / DRAWS for values in zip(*found, strict=True))


@judged(
    1,
    hint=(
        "a rotation of D numbers has D * (D - 1) / 2 free parameters; how many pairs is that "
        "enough to fit?",
        "so the larger the vectors, the more pairs it can learn by heart; with 64 numbers, 128 "
        "pairs are easy",
        "what has been learned by heart says nothing about a pair that wasn't fitted: there, the "
        "translation may rank anywhere among the 400 words",
    ),
    example=(64, 128, 200),
)
def by_heart(size, pairs, unseen):
    for name, given, low, high in (
        ("size", size, 2, 128), ("pairs_fitted", pairs, 10, WORDS - 100),
        ("unseen", unseen, 1, WORDS),
    ):
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
        whole = name == "unseen" or given == int(given)
        expect(whole, f"{name} is a whole number; you gave {given:g}")
        expect(low <= given <= high, f"{name} lies between {low} and {high}; you gave {given:g}")
    size, pairs = int(size), int(pairs)
    expect(
        pairs >= 2 * size,
        f"{pairs} pairs of {size} numbers: give at least twice as many pairs as numbers, so that "
        "nobody can say there were too few",
    )
    first, rank = rotate_noise(size, pairs)
    expect(
        first >= FIRST,
        f"of {pairs} fitted pairs with {size} numbers each, {first:.0%} come first: not 90 % yet",
    )
    expect(
        abs(unseen - rank) <= ALLOWED,
        f"the rotation has learned {first:.0%} of its pairs by heart, so you've refuted the claim; "
        f"but the median rank of unfitted pairs isn't {unseen:g}, it's "
        f"{'lower' if rank < unseen else 'higher'}",
    )
    return (
        f"The partner comes first in {first:.0%} of {pairs} fitted pairs, though the vectors, "
        f"{size} random numbers each, have nothing in common; in unfitted ones it has a median "
        f"rank of {rank:.0f} of {WORDS}."
    )
