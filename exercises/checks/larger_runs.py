"""Checks for the page Larger runs."""

import cmath
import math

from exercises.checks import exercise, expect, judged


def _same_side(n, m):
    return 2 / math.comb(n + m, n)


def _luck(once, several=lambda p, k: 1 - (1 - p) ** k):
    return lambda n, m, comparisons: several(once(n, m), comparisons)


@exercise(
    1,
    inputs=[(3, 3, 4), (2, 3, 1), (5, 5, 10), (4, 2, 3), (1, 2, 2), (1, 1, 5), (3, 6, 8)],
    hint=(
        "put the n + m scores in order; if nothing but luck decides, every choice of n places is "
        "equally likely to be the first arm's",
        "there are C(n + m, n) ways to pick the places of the first arm; in how many of them don't "
        "the two arms overlap?",
        "that's the probability p for one comparison; the probability that none of them comes out "
        "like that is (1 - p) to the power of comparisons",
    ),
    wrong="that isn't how often luck separates the arms in at least one of the comparisons",
    shape="return one probability",
    shrinks=False,
    tolerance=1e-6,
    slips={
        "either arm may be ahead, so two of the orders count, not one": (
            _luck(lambda n, m: 1 / math.comb(n + m, n))
        ),
        "that's for a single comparison: with more of them, luck gets more tries": (
            _luck(_same_side, lambda p, k: p)
        ),
        "probabilities of several tries don't add up: take 1 minus the probability that none of "
        "them comes out like that": _luck(_same_side, lambda p, k: min(1.0, k * p)),
        "k times p can go above 1, so it isn't a probability: take 1 minus the probability that "
        "none of them comes out like that": _luck(_same_side, lambda p, k: k * p),
        "that's for all of the comparisons at once; one is enough": (
            _luck(_same_side, lambda p, k: p**k)
        ),
        "that's the probability that none of them comes out like that": (
            _luck(_same_side, lambda p, k: (1 - p) ** k)
        ),
        "all n of one arm must beat all m of the other; you compare them in pairs, seed by seed": [
            _luck(lambda n, m: 2 * 0.5 ** min(n, m)), _luck(lambda n, m: 0.5 ** min(n, m)),
            _luck(lambda n, m: min(1.0, 2 * 0.5**n)), _luck(lambda n, m: 0.5**n),
        ],
        "the n * m pairs aren't independent: one lucky run wins all of its pairs": [
            _luck(lambda n, m: min(1.0, 2 * 0.5 ** (n * m))), _luck(lambda n, m: 0.5 ** (n * m)),
        ],
        "the order within an arm doesn't matter: divide by n! and by m!, too": [
            _luck(lambda n, m: 2 / math.factorial(n + m)),
            _luck(lambda n, m: 1 / math.factorial(n + m)),
        ],
        "choose n places out of n + m; C(n + m, 2) is the number of pairs": (
            _luck(lambda n, m: min(1.0, 2 / math.comb(n + m, 2)))
        ),
    },
)
def by_luck(n, m, comparisons):
    once = 2 / math.comb(n + m, n)  # of all orders: the first arm on top, or the second
    return 1 - (1 - once) ** comparisons


AVERAGED, FURTHER = 5, 2


def _ratio(shrink, angle):
    """How many times as far from the centre the mean of the last five is as the last one."""
    step = shrink * cmath.exp(1j * math.radians(angle))
    places = [step**k for k in range(AVERAGED)]
    return abs(sum(places) / AVERAGED) / abs(places[-1])


@judged(
    2,
    hint=(
        "which of the five is the furthest from the centre? A mean gives all five equal weight",
        "let the distances halve: at 180 degrees the five lie at 16, -8, 4, -2 and 1, if the last "
        "one lies at 1",
        "at other angles, add up the x and the y of the five: the distance times the cosine and "
        "the sine of 0, 1, 2, 3, 4 times the angle; then divide by 5",
    ),
    example=(0.5, 90, 2.8636),
)
def overturned(shrink, angle, ratio):
    for name, given in dict(shrink=shrink, angle=angle, ratio=ratio).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    expect(
        0.2 <= shrink <= 1,
        f"shrink lies between 0.2 and 1, where 1 is no cooldown at all; you gave {shrink:g}",
    )
    expect(
        60 <= angle <= 180,
        "angle lies between 60 and 180 degrees, so that the weights really circle; you gave "
        f"{angle:g}",
    )
    right = _ratio(shrink, angle)
    expect(
        right >= FURTHER,
        f"there the mean is {right:.2f} times as far from the centre as the last checkpoint, and "
        f"it has to be at least {FURTHER} times: what makes the last one so good?",
    )
    if abs(ratio - right) > 0.02 * right:
        found = {
            1 / right: "the mean is the one that's further out: you have the ratio upside down",
            AVERAGED * right: "that's the sum of the five: divide it by 5 to get the mean",
            sum(shrink**k for k in range(AVERAGED)) / AVERAGED / shrink ** (AVERAGED - 1): (
                "that's the mean of the five distances; but the five lie in different directions, "
                "and partly cancel out"
            ),
            right * shrink ** (AVERAGED - 1): (
                "that's relative to the first of the five; it should be relative to the last"
            ),
        }
        near = [said for value, said in found.items() if abs(ratio - value) < 0.02 * value]
        expect(False, f"your cooldown does refute the claim. But the ratio isn't {ratio:.3g}"
               + (f": {near[0]}" if near else ": add up the five places, x and y separately"))
    return (
        f"The last checkpoint is {1 / shrink ** (AVERAGED - 1):.3g} times as near to the centre "
        f"as the first of the five, and the mean is {right:.2f} times as far from it as the last."
    )
