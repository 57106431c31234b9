"""Checks for chapter 06, positional encodings."""

import math

import torch

from exercises.checks import Part, exercise, expect, judged, values
from exercises.checks.recorded import ends_lower, outcomes
from transformer_lib.positional import sinusoidal_table


def _about(value):
    return lambda given: abs(float(given) - value) < 0.006 * value


slow_wavelength = values(
    1,
    "slow_wavelength",
    hint=(
        "give the number of positions",
        "pair i has the frequency 10000^(-2 i / d_model); with d_model = 4, there are two pairs",
        "a full turn is 2 pi: divide it by the slow pair's frequency",
    ),
    positions=Part(
        200 * math.pi,
        "a full turn is 2 pi, and the speed is 1/100 per step",
        {
            "that is for the fast pair, with speed 1; the slow pair has speed 1/100": (
                _about(2 * math.pi)
            ),
            "after that many steps the angle is 1 radian, but a full turn is 2 pi: multiply by 2 "
            "pi": (
                _about(100)
            ),
            "the exponent of pair 1 is 2 * 1 / 4 = 1/2, so its speed is 1/100, not 1/10000": (
                _about(20_000 * math.pi)
            ),
            "the exponent is 2i / d_model = 2/4, not i / d_model = 1/4": _about(20 * math.pi),
            "a full turn is 2 pi, not pi": _about(100 * math.pi),
        },
        tolerance=2e-4,
    ),
)


def _angles(position, d_model, exponent):
    """(d_model / 2,): the angle of each pair i, with this exponent of 10000."""
    i = torch.arange(d_model // 2, dtype=torch.float64)
    return position * 10000.0 ** -exponent(i, d_model)


def _interleaved(first, second):
    return torch.stack([first, second], 1).flatten()


def _of_angles(angles):
    return _interleaved(angles.sin(), angles.cos())


def _right_angles(position, d_model):
    return _angles(position, d_model, lambda i, d: 2 * i / d)


def _own_speeds(position, d_model):
    index = torch.arange(d_model, dtype=torch.float64)
    angles = position * 10000.0 ** (-index / d_model)
    return torch.where(index % 2 == 0, angles.sin(), angles.cos())


def _without_the_two(position, d_model):
    angles = _angles(position, d_model, lambda i, d: i / d)
    return _interleaved(angles.sin(), angles.cos())


@exercise(
    2,
    inputs=[(3, 4), (7, 12), (0, 6), (41, 8)],
    hint="write a sine and a cosine for each pair, side by side",
    wrong="that isn't the encoding of this position",
    shape="return one number per feature",
    slips={
        "all sines come first; the paper interleaves them: sine, cosine, sine, cosine": (
            lambda p, d: torch.cat([_right_angles(p, d).sin(), _right_angles(p, d).cos()])
        ),
        "sine and cosine are swapped: the even features hold the sine": (
            lambda p, d: _interleaved(_right_angles(p, d).cos(), _right_angles(p, d).sin())
        ),
        "sine and cosine of a pair must share one speed; the exponent of feature 2i + 1 is "
        "2i / d_model too": _own_speeds,
        "the exponent is 2i / d_model, with the 2; yours makes the slowest pair too fast": (
            _without_the_two
        ),
        "you count positions from 1: position p has the angle p, not p + 1": (
            lambda p, d: encode_position.reference(p + 1, d)
        ),
        "a later pair turns more slowly: divide by the power of 10000, don't multiply": (
            lambda p, d: _of_angles(_angles(p, d, lambda i, d: -2 * i / d))
        ),
        "i counts the pairs, 0, 1, 2; yours counts features, so the exponent grows twice as fast": (
            lambda p, d: _of_angles(_angles(p, d, lambda i, d: 4 * i / d))
        ),
        "the angles are radians, not degrees": (
            lambda p, d: _of_angles(_right_angles(p, d) * math.pi / 180)
        ),
        "the slowest pair's exponent is (d_model - 2) / d_model, and never reaches 1": (
            lambda p, d: _of_angles(_angles(p, d, lambda i, d: i / max(d // 2 - 1, 1)))
        ),
    },
)
def encode_position(position, d_model):
    angles = _right_angles(position, d_model)
    sines, cosines = angles.sin(), angles.cos()
    return _interleaved(sines, cosines)


def _positioned(B=3, T=5, D=8, rows=20):
    return torch.randn(B, T, D), torch.randn(rows, D)


def _through_the_batch(x, table):
    rows = torch.arange(x.size(0) * x.size(1)) % len(table)
    return x + table[rows].view(x.shape)


@exercise(
    3,
    inputs=_positioned,
    vary=(dict(B=7, T=2), dict(B=4, T=4, D=6, rows=9), dict(B=2, T=6, rows=6)),
    given=0x5FA5D527,
    wrong="the positions that you add aren't rows 0 to T - 1",
    shape="x plus positions keeps the shape of x",
    gradients=True,
    slips={
        "all tokens of a sentence get the same position: you slice the table by the batch, "
        "x.size(0); the tokens are on axis 1": (
            lambda x, table: x + table[: x.size(0)].unsqueeze(1)
        ),
        "sentences of one batch get different positions; place 0 is place 0 in each of them": (
            _through_the_batch
        ),
        "you add rows 1 to T; the first position is 0": (
            lambda x, table: x + table.roll(-1, 0)[: x.size(1)]
        ),
        "every token gets one and the same position": [
            lambda x, table: x + table[0], lambda x, table: x + table[x.size(1) - 1]
        ],
        "nothing is added": lambda x, table: x,
        "you scale x; here x itself must stay as it is": (
            lambda x, table: x * x.size(-1) ** 0.5 + table[: x.size(1)]
        ),
    },
)
def repaired_addition(x, table):
    positions = table[: x.size(1)]  # (T, D)
    return x + positions


def _turn(a, b):
    """The matrix [[a, b], [-b, a]]."""
    return torch.tensor([[a, b], [-b, a]], dtype=torch.float64)


@exercise(
    4,
    inputs=[(3, 0.4), (1, 1.3), (-2, 0.7), (0, 0.5)],
    hint=(
        "use the angle addition formulas with -k in place of k",
        "sin(a - b) = sin a cos b - cos a sin b, and cos(a - b) = cos a cos b + sin a sin b; read "
        "off the four numbers",
    ),
    wrong="from position p, your matrix doesn't go back by k",
    shape="return a 2 x 2 matrix, for one pair",
    slips={
        "this moves forward by k: sin(-a) = -sin(a)": (
            lambda k, omega: _turn(math.cos(k * omega), math.sin(k * omega))
        ),
        "this isn't a rotation, because its determinant isn't 1: check the signs": [
            lambda k, omega: torch.tensor(
                [[math.cos(k * omega), math.sin(k * omega)]]
                + [[math.sin(k * omega), math.cos(k * omega)]]
            ),
            lambda k, omega: torch.tensor(
                [[math.cos(k * omega), -math.sin(k * omega)]]
                + [[-math.sin(k * omega), math.cos(k * omega)]]
            ),
            lambda k, omega: torch.tensor(
                [[math.cos(k * omega), -math.sin(k * omega)]]
                + [[math.sin(k * omega), -math.cos(k * omega)]]
            ),
        ],
        "sine and cosine are swapped": (
            lambda k, omega: _turn(math.sin(k * omega), -math.cos(k * omega))
        ),
        "the angle is k times omega, not k alone": (
            lambda k, omega: _turn(math.cos(k), -math.sin(k))
        ),
        "the angle is k times omega, not omega alone": (
            lambda k, omega: _turn(math.cos(omega), -math.sin(omega))
        ),
        "the angle is k times omega, not k divided by it": (
            lambda k, omega: _turn(math.cos(k / omega), -math.sin(k / omega))
        ),
    },
)
def shift_back(k, omega):
    sin, cos = math.sin(k * omega), math.cos(k * omega)
    return torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)


@exercise(
    5,
    inputs=[(0.5,), (1 / 256,), (0.25,), (2.0,), (0.7,)],
    hint=(
        "the softmax turns a difference of scores into a ratio of weights",
        "the ratio is exp(-m * distance); for which distances is it below 1 / 100? Then take the "
        "next whole number",
    ),
    wrong="that isn't the right distance",
    slips={
        "the softmax has base e, not 2 or 10: the ratio of two weights is exp(-m * n)": [
            lambda m: math.ceil(math.log2(100) / m),
            lambda m: math.ceil(math.log10(100) / m),
            lambda m: math.floor(math.log2(100) / m) + 1,
            lambda m: math.floor(math.log10(100) / m) + 1,
        ],
        "you solved m * n > 100; the ratio of weights is exp(-m * n)": [
            lambda m: 100 / m,
            lambda m: math.ceil(100 / m),
            lambda m: math.floor(100 / m) + 1,
        ],
        "a weight of 1/100 doesn't mean a score lower by 0.01": lambda m: math.ceil(0.01 / m),
        "round up: at this distance the weight is still above one hundredth": [
            lambda m: math.floor(math.log(100) / m), lambda m: round(math.log(100) / m),
        ],
        "the answer is a whole number: round up": lambda m: math.log(100) / m,
        "a steeper slope means a shorter reach: divide by m": [
            lambda m: math.ceil(math.log(100) * m), lambda m: math.floor(math.log(100) * m) + 1,
        ],
    },
)
def alibi_reach(m):
    return math.ceil(math.log(100) / m)


@judged(7, hint=(
        "look at the dot products for a small width, one distance after the other",
        "a narrow encoding has few wavelengths, so the dot product rises again further out",
        "for d_model = 16, print the product with position 0 for distances up to 100, and look for"
        " a far position with a larger product than a nearer one",
    ),
        example=(64, 48, 100))
def nearer(d_model, near, far):
    expect(
        all(isinstance(given, int) for given in (d_model, near, far)), "give three whole numbers"
    )
    expect(
        16 <= d_model <= 1024 and d_model % 2 == 0,
        "d_model must be even, and lie between 16 and 1024",
    )
    expect(
        0 < near and 2 * near <= far <= 100,
        "`far` must be at least twice `near`, and at most 100",
    )
    table = sinusoidal_table(101, d_model)
    first, second = float(table[0] @ table[near]), float(table[0] @ table[far])
    expect(
        second > first + 0.01 * d_model / 2,
        f"at width {d_model} the product at distance {near} is {first:.2f}, and at {far} it is "
        f"{second:.2f}: the second should be larger by at least 1 % of the largest product, "
        f"{d_model / 2:g}",
    )


@judged(
    8,
    hint=(
        "give the sinusoids the size that suits them, and the learned positions one that "
        "doesn't suit them",
        "a comparison can be made unfair by its starting sizes",
        "learned positions that start far too large recover slowly; give them few steps",
    ),
    example={
        "sinusoidal": 0.71, "learned": 0.02, "sequences": 50, "steps": 200, "fair": "learned"
    },
)
def sinusoids_ahead(setting):
    names = "sinusoidal", "learned", "sequences", "steps", "fair"
    expect(
        isinstance(setting, dict) and set(setting) == set(names),
        f"give a dictionary with {', '.join(map(repr, names))}",
    )

    def compared(**sizes):
        """The accuracy of each seed of both kinds, and a sentence with their spans."""
        found = [
            outcomes(
                "positions", "few", "right", positions=kind, size=size, base=None,
                sequences=setting["sequences"], steps=setting["steps"],
            )
            for kind, size in sizes.items()
        ]
        first, second = (f"{min(shares):.1%} to {max(shares):.1%}" for shares in found)
        return *found, f"the sinusoids get {first}, the learned positions {second}"

    sines, learned, told = compared(**{kind: setting[kind] for kind in names[:2]})
    expect(
        min(sines) > max(learned),
        f"with those settings, {told}: the sinusoids' worst seed must beat the others' best",
    )
    guess = setting["fair"]
    expect(
        guess in (*names[:2], "undecided"),
        f"`fair` is 'sinusoidal', 'learned' or 'undecided'; yours is {guess!r:.40}",
    )
    sines, learned, fair = compared(sinusoidal=0.71, learned=0.71)
    # ends_lower asks who makes fewer mistakes.
    ahead = ends_lower([-share for share in sines], [-share for share in learned], names[:2])
    expect(
        guess == ahead,
        "the comparison is right; but for two tables that both start at 0.71, with those "
        f"numbers of sequences and steps, the answer isn't {guess!r}. What did your comparison "
        "give one of them and not the other?",
    )
    return f"With your settings, {told}. With both at 0.71, {fair}."
