"""Checks for the page A scaling law, and where it breaks."""

import math

from exercises.checks import exercise, expect, judged


def _split(of, six=6):
    """Parameters by `of`(A, alpha, B, beta, how much N * D may be), the rest into tokens."""

    def spend(A, alpha, B, beta, budget):
        product = budget / six
        parameters = of(A, alpha, B, beta, product)
        return parameters, product / parameters

    return spend


def _best(A, alpha, B, beta, product):
    together = alpha + beta
    return (alpha * A / (beta * B)) ** (1 / together) * product ** (beta / together)


@exercise(
    1,
    inputs=[
        (30.0, 0.5, 200.0, 0.4, 6e9), (400.0, 0.34, 410.0, 0.28, 6e20), (8.0, 0.2, 90.0, 0.5, 3e12),
        (500.0, 0.35, 2000.0, 0.37, 6e23), (20.0, 1.0, 20.0, 0.5, 6e6),
    ],
    hint=(
        "put D = budget / (6 N) into the law, so that only N is left",
        "where the loss is lowest, 1 % more parameters gain as much as 1 % fewer tokens lose",
        "so alpha * A / N^alpha = beta * B / D^beta; solve it together with 6 N D = budget",
    ),
    wrong="a different split of the budget has a lower loss",
    shape="return two numbers, the parameters and the tokens",
    parts=("parameters", "tokens"),
    shrinks=False,
    slips={
        "it isn't the two terms that are equal there, but what 1 % more of each gains: alpha * A / "
        "N^alpha and beta * B / D^beta": _split(
            lambda A, a, B, b, product: (A / B) ** (1 / (a + b)) * product ** (b / (a + b))
        ),
        "each parameter and token costs six operations, so N * D is budget / 6": _split(
            _best, six=1
        ),
        "the exponents are swapped: the larger alpha is, the sooner parameters have given what "
        "they can, so N grows with beta / (alpha + beta)": _split(
            lambda A, a, B, b, product: (a * A / (b * B)) ** (1 / (a + b))
            * product ** (a / (a + b))
        ),
        "the factor is upside down: the larger A is, the more parameters are worth": _split(
            lambda A, a, B, b, product: (b * B / (a * A)) ** (1 / (a + b))
            * product ** (b / (a + b))
        ),
        "the exponents of the budget are right, but the factor in front is missing": _split(
            lambda A, a, B, b, product: product ** (b / (a + b))
        ),
        "that gives the same number of parameters and tokens; the law doesn't treat them "
        "alike": _split(
            lambda A, a, B, b, product: product**0.5
        ),
        "one more parameter and one more token don't cost the same; compare 1 % more of each": (
            _split(
                lambda A, a, B, b, product: (a * A / (b * B)) ** (1 / (a + b + 2))
                * product ** ((b + 1) / (a + b + 2))
            )
        ),
        "20 tokens per parameter comes from a law for other models; this one may give another "
        "number": _split(lambda A, a, B, b, product: (product / 20) ** 0.5),
        "they're swapped: the parameters come first": (
            lambda *given: _split(_best)(*given)[::-1]
        ),
    },
)
def spend(A, alpha, B, beta, budget):
    product = budget / 6
    together = alpha + beta
    parameters = (alpha * A / (beta * B)) ** (1 / together) * product ** (beta / together)
    return parameters, product / parameters


TOKENS = 135063, 266198, 555998
RUNS = [  # of the page's grid: parameters, and the losses with so many tokens
    (22592, (4.121, 3.867, 3.679)), (57472, (3.901, 3.622, 3.367)),
    (164096, (3.768, 3.43, 3.129)), (524800, (3.659, 3.299, 2.956)),
]
NEAR, FAR = (1836032, 135063), (117e6, 1e9)
APART, WORST = 2, 0.046


def fit_above(floor):
    """(mean error, loss(N, D)) of the best law on the grid whose E is `floor`."""
    points = [(N, D, loss) for N, row in RUNS for D, loss in zip(TOKENS, row, strict=True)]
    N0, D0 = (math.exp(sum(math.log(p[i]) for p in points) / len(points)) for i in (0, 1))
    exponents = [0.02 * k for k in range(1, 61)]
    sizes, texts = (
        {x: [(p[i] / mean) ** -x for p in points] for x in exponents}
        for i, mean in ((0, N0), (1, D0))
    )

    def dot(one, other):
        return sum(x * y for x, y in zip(one, other, strict=True))

    y, best = [loss - floor for *_, loss in points], (math.inf,)
    ofs = {(id(of), x): (dot(u, u), dot(u, y)) for of in (sizes, texts) for x, u in of.items()}
    for alpha, u in sizes.items():
        uu, uy = ofs[id(sizes), alpha]
        for beta, v in texts.items():
            vv, vy = ofs[id(texts), beta]
            uv = dot(u, v)
            a, b = (uy * vv - vy * uv, vy * uu - uy * uv)
            a, b = a / (uu * vv - uv**2), b / (uu * vv - uv**2)
            left = dot(y, y) - a * uy - b * vy
            if a >= 0 and b >= 0 and left < best[0]:
                best = left, alpha, beta, a, b
    left, alpha, beta, a, b = best
    error = math.sqrt(max(left, 0) / len(points))
    return error, lambda N, D: floor + a * (N / N0) ** -alpha + b * (D / D0) ** -beta


@judged(
    2,
    hint=(
        "with a given floor, fit the losses minus the floor: `fit_law` with floor=False",
        "the mean error hardly changes between 0 and 2.5; beyond that, it begins to grow",
        "the model of width 256 is just outside the grid, where two laws that agree on it can't "
        "differ "
        "much; with unlimited parameters and tokens, only the floors would be left",
    ),
    example=(0.2, 2.4, 0.07, 1.35),
)
def floors(low, high, near, far):
    for name, given in dict(low=low, high=high, near=near, far=far).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    lowest = min(min(row) for _, row in RUNS)
    for floor in (low, high):
        expect(
            0 <= floor < lowest,
            f"a floor lies between 0 and {lowest}, the lowest loss of the grid; you gave {floor:g}",
        )
    expect(high - low >= APART, f"`high` must be at least {APART} nats above `low`")
    fits = [fit_above(floor) for floor in (low, high)]
    for floor, (error, _) in zip((low, high), fits, strict=True):
        expect(
            error <= WORST,
            f"with the floor {floor:g} the mean error is {error:.4f} nats: this grid can tell",
        )
    gaps = [abs(fits[0][1](*place) - fits[1][1](*place)) for place in (NEAR, FAR)]
    for name, given, gap, allowed in zip(
        ("near", "far"), (near, far), gaps, (0.05, 0.2), strict=True
    ):
        expect(
            given >= 0,
            f"`{name}` is the size of a difference, without a sign; you gave {given:g}",
        )
        expect(
            abs(given - gap) <= allowed,
            f"both floors fit, so you've refuted the claim; but `{name}` isn't {given:g}, it's "
            f"{'less' if gap < given else 'more'} than that",
        )
    return (
        f"Mean errors {fits[0][0]:.4f} and {fits[1][0]:.4f} nats; for width 256 the two laws "
        f"differ by {gaps[0]:.2f} nats, for GPT's size by {gaps[1]:.2f}."
    )
