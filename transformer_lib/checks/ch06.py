"""Checks for chapter 06, positional encodings."""

import math

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same
from transformer_lib.positional import sinusoidal_table


@exercise("06.1", hint="give a number of positions")
def slow_wavelength(answer):
    expect_shape(answer, (), "one number is wanted")
    slips = {
        "that is the fast pair, with speed 1; the slow pair has speed 1/100": 2 * math.pi,
        "after that many steps the angle is 1 radian; a full turn is 2 pi: multiply by 2 pi": 100,
        "the exponent of pair 1 is 2 * 1 / 4 = 1/2, so its speed is 1/100, not 1/10000": (
            20000 * math.pi
        ),
        "the exponent is 2i / d_model = 2/4, not i / d_model = 1/4": 20 * math.pi,
    }
    for message, slip in slips.items():
        expect(abs(float(answer) - slip) > 0.006 * slip, message)
    expect_close(
        answer, 200 * math.pi, "a full turn is 2 pi, at a speed of 1/100 a step", tolerance=2e-4
    )


@exercise("06.2", hint="a sine and a cosine for each pair, side by side")
def encode_position(answer):
    for position, d_model in ((7, 12), (3, 4)):
        given = answer(position, d_model)
        expect_shape(given, (d_model,), "one number per feature")
        given = torch.as_tensor(given, dtype=torch.float64)
        index = torch.arange(d_model)
        row = sinusoidal_table(position + 1, d_model)[position].double()
        sin, cos = row[0::2], row[1::2]
        # As if every feature, not every pair, had a speed of its own.
        own_speed = position * 10000.0 ** (-index.double() / d_model)
        no_doubling = position * 10000.0 ** (-(index // 2).double() / d_model)
        slips = {
            "all sines come first; the paper interleaves them: sine, cosine, sine, cosine": (
                torch.cat([sin, cos])
            ),
            "sine and cosine are swapped: the even features hold the sine": (
                torch.stack([cos, sin], 1).flatten()
            ),
            "sine and cosine of a pair must share one speed; the exponent of feature 2i + 1 is "
            "2i / d_model too": torch.where(index % 2 == 0, own_speed.sin(), own_speed.cos()),
            "the exponent is 2i / d_model, with the 2; yours makes the slowest pair too fast": (
                torch.where(index % 2 == 0, no_doubling.sin(), no_doubling.cos())
            ),
        }
        for message, slip in slips.items():
            expect(not same(given, slip), message)
        expect_close(given, row, f"position {position} with d_model {d_model} is not right")


@exercise("06.3", given=0x5FA5D527)
def repaired_addition(answer):
    table = sinusoidal_table(20, 8)
    x = torch.randn(3, 5, 8)
    given = answer(x, table)
    expect_shape(given, (3, 5, 8), "x plus positions keeps the shape of x")
    added = torch.as_tensor(given) - x
    expect(
        not same(added, added[:, :1].expand_as(added), 1e-6),
        "all tokens of a sentence get the same position: you slice the table by the batch, "
        "x.size(0); the tokens are on axis 1",
    )
    expect(
        same(added, added[:1].expand_as(added), 1e-6),
        "sentences of one batch get different positions; place 0 is place 0 in each of them",
    )
    expect_close(added, table[:5].expand(3, 5, 8), "the positions added are not rows 0 to T - 1")
    longer = torch.randn(7, 2, 8)
    expect_close(answer(longer, table), longer + table[:2], "with more sentences than tokens")


@exercise("06.4", hint="use the addition theorems with -k in place of k")
def shift_back(answer):
    k, omega = 3, 0.4
    given = answer(k, omega)
    expect_shape(given, (2, 2), "a matrix for one pair")
    given = torch.as_tensor(given, dtype=torch.float64)
    sin, cos = math.sin(k * omega), math.cos(k * omega)
    expect(
        not same(given, torch.tensor([[cos, sin], [-sin, cos]]).double()),
        "this moves forward by k: sin(-a) = -sin(a)",
    )
    expect(
        abs(torch.linalg.det(given).item() - 1) < 1e-4,
        "this is no rotation, its determinant is not 1: check the signs of the two sines",
    )
    pair = lambda p: torch.tensor([math.sin(p * omega), math.cos(p * omega)]).double()  # noqa: E731
    for p in (0, 5, 11):
        expect_close(given @ pair(p), pair(p - k), f"from position {p} it does not go back by {k}")


@exercise("06.5", hint="the softmax turns a difference of scores into a ratio of weights")
def alibi_reach(answer):
    m = 0.5
    given = float(answer(m))
    exact = math.log(100) / m
    slips = {
        "the softmax has base e, not 2 or 10: the ratio of two weights is exp(-m * n)": (
            math.ceil(math.log2(100) / m),
            math.ceil(math.log10(100) / m),
        ),
        "you solved m * n > 100; the ratio of weights is exp(-m * n)": (100 / m, 100 / m + 1),
        "a weight of 1/100 is not a score lower by 0.01": (math.ceil(0.01 / m),),
        "round up: at this distance the weight is still above one hundredth": (math.floor(exact),),
        "a whole number is wanted: round up": (exact,),
    }
    for message, values in slips.items():
        expect(all(abs(given - value) > 1e-6 for value in values), message)
    for slope in (0.5, 1 / 256, 0.25, 2.0):
        wanted = math.ceil(math.log(100) / slope)
        expect_close(answer(slope), wanted, f"for slope {slope} the distance is not right", 0)
