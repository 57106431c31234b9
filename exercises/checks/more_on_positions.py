"""Checks for the page More on positions."""

import itertools
import math

import torch

from exercises.checks import exercise, expect, judged


def _shares(T=5, low=0.1, high=0.9):
    found = low + (high - low) * torch.rand(T)
    found[0] = 1.0  # the first token can only look at itself
    return (found,)


def _numbers(weight, take=torch.log):
    """The numbers for each distance from weights built up place by place."""

    def answer(shares):
        weights = [1.0]
        for share in shares.tolist()[1:]:
            weights.append(weight(share, weights))
        return take(torch.tensor(weights))

    return answer


def _odds(share, weights):
    return share / (1 - share) * sum(weights)


@exercise(
    1,
    inputs=_shares,
    vary=(dict(T=3), dict(T=8), dict(T=6, low=0.4), dict(T=4, high=0.3)),
    tolerance=1e-4,
    hint=(
        "at place t the distances are 0, 1, ..., t, and only <bos> is at distance t: what share "
        "of e^b(0) + ... + e^b(t) is e^b(t)?",
        "let W be the sum before e^b(t), and w = e^b(t): the share is s = w / (W + w); solve for "
        "w, then add it to W for the next place",
        "w = W * s / (1 - s), starting with w = W = 1 for the distance 0; the number is log(w)",
    ),
    wrong="with these numbers, <bos> doesn't get those shares",
    shape="return one number for each distance, (T,)",
    slips={
        "the scores go through a softmax, which takes e to their power: return the logarithms": (
            _numbers(_odds, take=lambda w: w)
        ),
        "the other tokens add up: compare <bos> with the sum of all nearer ones, not with one": (
            _numbers(lambda s, w: s / (1 - s))
        ),
        "compare <bos> with all nearer tokens, not only with the one a step nearer": (
            _numbers(lambda s, w: s / (1 - s) * w[-1])
        ),
        "the share is of a sum that contains <bos> itself: w / (W + w) is the share, not w / W": (
            _numbers(lambda s, w: s * sum(w))
        ),
        "the softmax divides by the sum over the distances up to here, so the logarithm of the "
        "share alone isn't enough": lambda shares: shares.log(),
        "the share of all the others is 1 - s; you have the two swapped": (
            _numbers(lambda s, w: (1 - s) / s * sum(w))
        ),
        "all t nearer tokens count, but each with its own number from before, not with 1": (
            _numbers(lambda s, w: s / (1 - s) * len(w))
        ),
    },
)
def clock(shares):
    numbers, total = torch.zeros(len(shares)), torch.tensor(1.0)
    for t in range(1, len(shares)):
        weight = total * shares[t] / (1 - shares[t])
        numbers[t] = weight.log()
        total = total + weight
    return numbers


SPEEDS, BACK, LEAST = (1.0, 0.01), 3, 0.5
PAIRS = (3, 0), (0, 3), (5, 4), (0, 9), (6, 6), (2, 5), (8, 1), (4, 0)


def _place(p):
    return [f(p * speed) for speed in SPEEDS for f in (math.sin, math.cos)]


def _score(M, m, n):
    q, k = _place(m), _place(n)
    return sum(q[i] * M[i][j] * k[j] for i in range(4) for j in range(4))


@judged(
    2,
    hint=(
        "with the identity the score is cos(m - n) + cos(0.01 (m - n)): it doesn't depend on the "
        "place, but it's the same on both sides",
        "sin(m - n) = sin m cos n - cos m sin n is different on both sides: which two entries of "
        "M produce it?",
        "M[0][1] = 1 and M[1][0] = -1 give sin(m - n) for the first two numbers; at m - n = 3, "
        "that's sin 3",
    ),
    example=([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], 0.1411),
)
def overturned(M, score):
    M = M.tolist() if hasattr(M, "tolist") else M
    rows = isinstance(M, (list, tuple)) and len(M) == 4 and all(
        isinstance(row, (list, tuple)) and len(row) == 4 for row in M
    )
    expect(rows, f"M has four rows of four numbers; yours is {M!r:.60}")
    for x in [*(x for row in M for x in row), score]:
        number = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
        expect(number, f"M must hold numbers, and score must be a number; you gave {x!r:.30}")
    for (m, n), later in itertools.product(PAIRS, (20, 7)):
        here, there = _score(M, m, n), _score(M, m + later, n + later)
        expect(
            abs(here - there) < 1e-4,
            f"the score of the places {m} and {n} is {here:.3f}, and {later} places later "
            f"{there:.3f}: which products of sines and cosines depend only on the distance?",
        )
    one, other = _score(M, 1, 0), _score(M, 0, 1)
    expect(
        abs(one - other) >= LEAST,
        f"no score changes, but one place before the query and one place after it get {one:.2f} "
        f"and {other:.2f}, which must differ by at least {LEAST}: "
        "cosines are the same on both sides",
    )
    right, turned = _score(M, BACK, 0), _score(M, 0, BACK)
    if abs(score - right) > 0.005 + 0.005 * abs(right):
        side = abs(score - turned) < 0.005 + 0.005 * abs(turned)
        expect(False, "your M does refute the claim. But with the key three places before the "
                      f"query, the score isn't {score:.3g}"
               + (": that's for the key three places after it" if side else ". The angles are 3 "
                  "and 0.03 radians: add up what each entry of M gives"))
    return (
        f"At every place, a key three places back gets {right:.2f}, and one three ahead gets "
        f"{turned:.2f}."
    )
