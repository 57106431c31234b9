"""Checks for the page Choices and comparisons."""

import torch

from exercises.checks import exercise, expect, judged


def _table(V=5, n=3, block=0.5):
    """Scores of V variants with n seeds each, some seeds luckier than others in all of them."""
    levels = 30 + 2 * torch.randn(V, 1)
    return ((levels + block * torch.randn(n) + 0.4 * torch.randn(V, n)).mul(100).round() / 100,)


def _spreads(shared=None, rest=None, of=lambda scores: scores, blocks=None):
    """The two spreads, with other degrees of freedom or another rest for the seeds."""

    def spreads(scores):
        scores = of(scores)
        V, n = scores.shape
        own = scores - scores.mean(1, keepdim=True)
        left = own - own.mean(0) if blocks is None else blocks(scores, own)
        first, second = V * (n - 1), (V - 1) * (n - 1)
        return (
            (own.square().sum() / (shared(V, n) if shared else first)).sqrt(),
            (left.square().sum() / (rest(V, n) if rest else second)).sqrt(),
        )

    return spreads


@exercise(
    1,
    inputs=_table,
    vary=(dict(V=4, n=5), dict(V=8, n=2), dict(V=15, n=3, block=0.0), dict(V=3, n=4, block=2.0)),
    hint=(
        "first subtract each variant's mean from its row: what's left is luck, and the V means "
        "have used up V of the V * n numbers",
        "then each seed's mean over the variants: what's left has lost n - 1 more",
        "each spread is the root of a sum of squares divided by its degrees of freedom, "
        "V * (n - 1) and (V - 1) * (n - 1)",
    ),
    wrong="these two numbers aren't the spreads",
    shape="return two numbers: the spread without blocks, then the spread with them",
    parts=("s", "s_r"),
    shrinks=False,
    tolerance=1e-3,  # sums of squares around 30 lose digits, and the slips are further away
    slips={
        "each variant spends one of its scores on its own mean: s has V * (n - 1) degrees of "
        "freedom": [
            _spreads(shared=lambda V, n: V * n),
            _spreads(shared=lambda V, n: V * n - 1),
            _spreads(shared=lambda V, n: V * n, rest=lambda V, n: V * n),
            _spreads(shared=lambda V, n: V * n - 1, rest=lambda V, n: V * n - 1),
        ],
        "the seeds use up degrees of freedom, too: with blocks, n - 1 fewer": _spreads(
            rest=lambda V, n: V * (n - 1)
        ),
        "the seeds' means have one sum that the variants already used up: n - 1 fewer, not n": (
            _spreads(rest=lambda V, n: max(V * (n - 1) - n, 1))
        ),
        "take each seed's mean over what's left of the rows; otherwise the variants' level is "
        "taken off twice": _spreads(blocks=lambda scores, own: own - scores.mean(0)),
        "take the seeds' luck off the rows that have lost their own mean; yours still contain "
        "the variants": _spreads(blocks=lambda scores, own: scores - scores.mean(0)),
        "you have swapped rows and columns: the rows are variants, the columns seeds": _spreads(
            of=lambda scores: scores.T
        ),
        "those are variances; the spread is the root": (
            lambda scores: tuple(value**2 for value in _spreads()(scores))
        ),
        "they're swapped: the spread without blocks comes first": (
            lambda scores: _spreads()(scores)[::-1]
        ),
        "a mean of the rows' standard deviations is smaller than the root of their mean variance": [
            lambda scores: (scores.std(1).mean(), _spreads()(scores)[1]),
            lambda scores: (scores.std(1, correction=0).mean(), _spreads()(scores)[1]),
        ],
        "that's the spread of all scores; how much the variants differ isn't luck": (
            lambda scores: (scores.std(), _spreads()(scores)[1])
        ),
    },
)
def spreads(scores):
    V, n = scores.shape
    own = scores - scores.mean(1, keepdim=True)  # (V, n)
    left = own - own.mean(0)  # (V, n)
    s = (own.square().sum() / (V * (n - 1))).sqrt()
    s_r = (left.square().sum() / ((V - 1) * (n - 1))).sqrt()
    return s, s_r


MEASURED = 10


def _correlation(one, other):
    means = sum(one) / len(one), sum(other) / len(other)
    x, y = [a - means[0] for a in one], [b - means[1] for b in other]
    spread = sum(a * a for a in x) * sum(b * b for b in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / spread**0.5 if spread > 1e-18 else None


def _numbers_of(name, given):
    given = given.tolist() if hasattr(given, "tolist") else given
    expect(isinstance(given, (list, tuple)), f"{name} must be a list, yours is {given!r:.40}")
    expect(len(given) == MEASURED, f"{name} needs {MEASURED} numbers; you gave {len(given)}")
    for value in given:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        expect(number, f"{name} contains {value!r:.40}, which isn't a number")
    return [float(value) for value in given]


@judged(
    2,
    hint=(
        "over the whole run one must fall while the other rises; between neighbours both must "
        "move the same way",
        "let large and small steps alternate: perplexity falls by 1 and rises by 0.1",
        "BLEU falls by 0.1 where perplexity falls by 1, and rises by 1 where perplexity rises by "
        "0.1; the nine pairs of changes then lie on two points",
    ),
    example=(
        [9, 8, 8.1, 7.1, 7.2, 6.2, 6.3, 5.3, 5.4, 4.4],
        [30, 29.9, 30.9, 30.8, 31.8, 31.7, 32.7, 32.6, 33.6, 33.5], 1.0,
    ),
)
def neighbours(perplexity, bleu, changes):
    perplexity = _numbers_of("perplexity", perplexity)
    bleu = _numbers_of("bleu", bleu)
    number = isinstance(changes, int | float) and not isinstance(changes, bool)
    expect(number, f"changes is a correlation, a number; yours is {changes!r:.40}")
    expect(min(perplexity) >= 1, "a perplexity is at least 1: at 1, every next token is certain")
    expect(min(bleu) >= 0 and max(bleu) <= 100, "BLEU lies between 0 and 100")
    level = _correlation(perplexity, bleu)
    expect(level is not None, "if one of the two never changes, there is no correlation to compute")
    expect(
        level <= -0.9,
        f"over the run their correlation is {level:.2f}; it must be -0.9 or lower",
    )
    steps = [
        [later - earlier for earlier, later in zip(values, values[1:], strict=False)]
        for values in (perplexity, bleu)
    ]
    for i, (one, other) in enumerate(zip(*steps, strict=True), start=1):
        expect(
            one * other > 0,
            f"from checkpoint {i} to {i + 1} perplexity changes by {one:+.3g} and BLEU by "
            f"{other:+.3g}: there the claim still holds, or one of the two doesn't change",
        )
    found = _correlation(*steps)
    expect(
        found is not None,
        "the claim fails at each step, as it should; but make the steps differ, or their changes "
        "have no correlation",
    )
    expect(-1 <= changes <= 1, f"a correlation lies between -1 and 1; you gave {changes:g}")
    expect(
        abs(changes - found) <= 0.1,
        "the claim fails at each step, as it should; but the changes' correlation isn't "
        f"{changes:g}, it's {'lower' if found < changes else 'higher'}",
    )
    return f"The correlation is {level:.2f} over the run and {found:+.2f} between neighbours."
