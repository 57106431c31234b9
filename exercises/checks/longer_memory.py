"""Checks for the chapter Longer memory."""

import math

import torch

from exercises.checks import (
    Part,
    exercise,
    expect,
    expect_close,
    expect_shape,
    judged,
    same,
    values,
)
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond.neighbours import nearest_attention

by_hand = values(
    1,
    "by_hand",
    hint=(
        "the answer is two whole numbers",
        "in a recurrent stack, each layer looks back as far as its memory goes, and the layers "
        "add up",
        "at rate 3, one compressed place covers three old ones, so you have 100 plain places and "
        "50 * 3",
    ),
    stack=Part(
        900,
        "each layer adds one memory, so it's layers x memory",
        {
            "that is one layer; what it finds there has itself looked further back": 150,
            "each layer looks over the whole memory of 150 places, not 50": 300,
            "the segment itself counts at most once, and the question asks for what lies beyond "
            "it": 1200,
        },
    ),
    layer=Part(
        250,
        "add the 100 places as they are and 3 for each of the 50",
        {
            "each compressed place stands for 3 older ones": 150,
            "only 50 of the 150 places are compressed": 450,
            "the 50 compressed places are among the 150, not in addition to them": 300,
        },
    ),
)


@judged(
    2,
    hint=(
        "for each neighbour, take e to the power of minus the squared distance; then divide by the "
        "sum of all three",
        "the neighbours' share for dog: (e^0 + e^-2) over (e^0 + e^-2 + e^-0.5)",
        "then mix: 0.75 * 0.2 + 0.25 * that share",
    ),
    example=0.312958,
)
def of_dog(answer):
    near, far, cat = 1.0, math.exp(-2), math.exp(-0.5)
    found = (near + far) / (near + far + cat)
    expect(0 <= float(answer) <= 1, f"a probability lies between 0 and 1; yours is {answer:.4g}")
    rooted, squared = (1 + math.exp(-(2**p)) for p in (0.5, 2))
    slips = {
        "the distances are squared already: take e to the power of minus 2, with no root": (
            0.75 * 0.2 + 0.25 * rooted / (rooted + math.exp(-(0.5**0.5)))
        ),
        "the distances are squared already: do not square them again": (
            0.75 * 0.2 + 0.25 * squared / (squared + math.exp(-(0.5**2)))
        ),
        "the share isn't simply two of three neighbours: near ones count "
        "more": 0.75 * 0.2 + 0.25 * 2 / 3,
        "that's the neighbours' probability only; the model has a share of 0.75": found,
        "you gave the model the neighbours' share": 0.25 * 0.2 + 0.75 * found,
        "both neighbours that name the dog count, not only the nearest": (
            0.75 * 0.2 + 0.25 * near / (near + far + cat)
        ),
        "a near neighbour counts more, not less: mind the sign": (
            0.75 * 0.2 + 0.25 * (1 + math.exp(2)) / (1 + math.exp(2) + math.exp(0.5))
        ),
    }
    for message, slip in slips.items():
        expect(abs(float(answer) - slip) > 1e-3, message)
    right = abs(float(answer) - 0.75 * 0.2 - 0.25 * found) < 1e-3
    expect(
        right,
        "mix the two probabilities of dog: take three quarters of one and a quarter of the other",
    )


def _keep(memory, x, reach):
    together = torch.cat([memory, x.detach()], dim=1)
    return together[:, max(0, together.size(1) - reach) :]


@judged(3, given=0x8F9D4714, example=_keep,
    hint=(
        "what does a slice [-0:] return?",
        "what else does a memory carry from segment to segment, if nobody cuts it off?",
    ),
)
def keep(answer):
    memory = torch.randn(2, 5, 3)
    x = torch.randn(2, 4, 3, requires_grad=True)
    together = torch.cat([memory, x.detach()], dim=1)
    none = answer(memory, x, 0)
    everything = none.shape == (2, 9, 3)
    expect_shape(
        none, (2, 0, 3),
        "with reach 0, nothing should be "
        "kept" + (", but [-0:] keeps everything" if everything else ""),
    )
    for reach in (3, 6, 12, 20):
        kept = answer(memory, x, reach)
        expected = together[:, max(0, 9 - reach) :]
        expect_shape(kept, expected.shape, f"with reach {reach}, what is kept has the wrong shape")
        expect(
            not same(kept, together[:, :reach]) or reach > 8, "you keep the oldest, not the newest"
        )
        expect_close(kept, expected, f"with reach {reach} the kept places differ")
    kept = answer(memory, x, 6)
    expect(
        not kept.requires_grad,
        "the gradient still flows through the memory into all segments before: detach it",
    )


def _flat():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 64, 4)
    return q, k, torch.randn(1, 1, 64, 4, generator=generator)


@judged(4, hint=(
        "what if all 64 keys count the same?",
        "if all keys match equally well, the exact output is the mean of 64 values",
        "let the 8 values that are taken point one way and the mean of all be small",
    ), example=_flat)
def overturned(answer):
    found = answer()
    expect(isinstance(found, (tuple, list)) and len(found) == 3, "return three tensors: q, k and v")
    q, k, v = found
    expect_shape(k[..., :1], (1, 1, 64, 1), "there must be 64 keys")
    expect_shape(v[..., :1], (1, 1, 64, 1), "there must be 64 values")
    exact = scaled_dot_product_attention(q, k, v)[0]
    error = ((nearest_attention(q, k, v, 8) - exact).norm() / exact.norm().clamp(min=1e-9)).item()
    weights = scaled_dot_product_attention(q, k, v)[1]
    best = weights.topk(8).values.sum(-1).mean().item()
    expect(
        error > 0.5,
        f"the best 8 hold {best:.0%} of the weight and the error is {error:.2f}; let the weight be "
        "spread over many keys whose values do not agree",
    )


def _guessed(N=6, size=1.0, share=0.25):
    """A share, and two probabilities of the right token at N places."""
    return share, (size * torch.randn(N)).sigmoid(), (size * torch.randn(N)).sigmoid()


def _mixture(share, model, neighbours):
    return (1 - share) * model + share * neighbours


@exercise(
    5,
    inputs=_guessed,
    vary=(
        dict(share=0.0, N=4), dict(share=1.0, N=5), dict(N=9, size=3.0, share=0.5),
        dict(N=3, share=0.9),
    ),
    hint=(
        "the mixture gives the right token (1 - share) * model + share * neighbours: take the "
        "mean of its logarithm, then the derivative with respect to share",
        "the derivative of a logarithm is that of its argument, divided by the argument",
        "at each place: (neighbours - model) / mixture; then the mean over the places",
    ),
    wrong="that isn't the right slope",
    shape="return one number",
    tolerance=1e-4,
    slips={
        "the logarithm of a mixture is not the mixture of logarithms": (
            lambda share, model, neighbours: (neighbours.log() - model.log()).mean()
        ),
        "that is the slope of the probability; the logarithm divides it by the mixture": (
            lambda share, model, neighbours: (neighbours - model).mean()
        ),
        "the model's part shrinks as the share grows: the numerator needs - model": (
            lambda share, model, neighbours: (
                neighbours / _mixture(share, model, neighbours)
            ).mean()
        ),
        "that is the slope at a share of 0; divide by the mixture at this share": (
            lambda share, model, neighbours: (neighbours / model).mean() - 1
        ),
        "the sign is the wrong way round: that is the slope of the loss": (
            lambda share, model, neighbours: (
                (model - neighbours) / _mixture(share, model, neighbours)
            ).mean()
        ),
        "the share belongs to the neighbours, and 1 - share to the model": (
            lambda share, model, neighbours: (
                (neighbours - model) / _mixture(1 - share, model, neighbours)
            ).mean()
        ),
        "take the mean over the places, not the sum": lambda share, model, neighbours: (
            (neighbours - model) / _mixture(share, model, neighbours)
        ).sum(),
        "divide at each place, then take the mean: a mean of ratios isn't a ratio of means": (
            lambda share, model, neighbours: (
                (neighbours - model).mean() / _mixture(share, model, neighbours).mean()
            )
        ),
    },
)
def slope(share, model, neighbours):
    mixture = (1 - share) * model + share * neighbours  # (N,)
    return ((neighbours - model) / mixture).mean()
