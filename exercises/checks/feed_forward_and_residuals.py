"""Checks for chapter 08, feed-forward networks and residuals."""

import torch
from torch import nn

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
from exercises.checks.recorded import ends_lower, expect_one_of, recorded, span
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.feed_forward import FeedForward


def _count_layer():
    """The two halves of an encoder layer of the paper's base model."""
    halves = {"network": FeedForward(512, 2048), "attention": MultiHeadAttention(512, 8)}
    found = {name: sum(p.numel() for p in half.parameters()) for name, half in halves.items()}
    return found | {"share": round(found["network"] / sum(found.values()), 3)}


NETWORK, ATTENTION = 2 * 512 * 2048 + 2048 + 512, 4 * (512 * 512 + 512)

parameters = values(
    1,
    "parameters",
    measure=_count_layer,
    hint=(
        "give two whole numbers and a share between 0 and 1",
        "the network has two maps, from 512 to 2,048 and back, each with its bias",
        "attention has four maps from 512 to 512, each with its bias; the heads don't change that",
    ),
    network=Part(
        NETWORK,
        "the network is two matrices of 512 x 2048, plus a bias for each map",
        {
            "those are the two matrices; the biases are missing": 2 * 512 * 2048,
            "that is only the first map; count the second one, too": 512 * 2048 + 2048,
            "the second bias belongs to the output, so it has 512 numbers, not 2048": (
                2 * 512 * 2048 + 2 * 2048
            ),
            "the first bias belongs to the hidden units, so it has 2048 numbers, not 512": (
                2 * 512 * 2048 + 2 * 512
            ),
            "a ReLU network has no gate: two maps, not three": (
                3 * 512 * 2048 + 2 * 2048 + 512
            ),
        },
    ),
    attention=Part(
        ATTENTION,
        "attention is four square maps with their biases, whatever the number of heads",
        {
            "the four biases are missing": 4 * 512 * 512,
            "the heads are mixed by a fourth map, W_O": 3 * (512 * 512 + 512),
        },
    ),
    share=Part(
        NETWORK / (NETWORK + ATTENTION),
        "the share is network / (network + attention)",
        {
            "that is the attention's share; you were asked for the network's": (
                ATTENTION / (NETWORK + ATTENTION)
            ),
            "you divided by attention alone; divide by both together": NETWORK / ATTENTION,
        },
        tolerance=0.006,
    ),
)


@judged(
    2,
    hint=(
        "let one unit count the ones, and the other notice that both are 1",
        "relu(a + b) is 0, 1, 1, 2 for the four inputs; what must be taken away at 2?",
        "the second unit is relu(a + b - 1), which is 1 only for two; give that one the weight -2",
    ),
    example=([[1, 1], [1, 1]], [0, -1], [1, -2]),
)
def exactly_one(w1, b1, w2):
    expect_shape(w1, (2, 2), "w1 has one row for each of two units")
    expect_shape(b1, (2,), "b1 has one bias for each unit")
    expect_shape(w2, (2,), "w2 has one weight for each unit")
    w1, b1, w2 = (torch.as_tensor(given).float() for given in (w1, b1, w2))
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    wanted = torch.tensor([0.0, 1, 1, 0])
    hidden = x @ w1.T + b1  # (4, 2)
    output = hidden.relu() @ w2
    expect(
        not same(output, torch.tensor([0.0, 1, 1, 2]), 1e-4),
        "your network counts the ones; the second unit must take 2 away when both are 1",
    )
    expect(
        not same(output, torch.tensor([0.0, 1, 1, 1]), 1e-4),
        "your network answers 'at least one'; when both are 1 it must come back to 0",
    )
    expect(
        not (hidden >= 0).all(),
        "no unit is ever negative, so ReLU changes nothing: your network is linear, and a linear "
        "one can't do it",
    )
    for case, right, given in zip(x.int().tolist(), wanted.tolist(), output.tolist(), strict=True):
        expect(
            abs(given - right) < 1e-3, f"for (a, b) = {case} it gives {given:.3g}, not {right:.0f}"
        )


def _parts(B=2, T=4, D=8):
    w = torch.randn(D, D)

    def sublayer(y):
        return (y @ w).relu()

    def norm(y):
        return torch.nn.functional.layer_norm(y, (D,))

    def drop(y):  # not random, so that its place can be seen
        return y * (torch.arange(D) % 3 > 0) * 1.5

    return 3 * torch.randn(B, T, D) + 1, sublayer, norm, drop


@exercise(
    3,
    inputs=_parts,
    vary=(dict(B=3, T=5, D=6), dict(B=1, T=2, D=7)),
    hint="normalise, apply the sublayer, drop, then add",
    wrong="the result is not x plus the sublayer's output for norm(x), after dropout",
    shape="a residual connection keeps the shape",
    in_place="write x + ..., not x += ...",
    gradients=True,
    slips={
        "you add the normalised x: the identity path is gone; add x itself": (
            lambda x, sublayer, norm, drop: norm(x) + drop(sublayer(norm(x)))
        ),
        "that is post-norm; here the norm comes before the sublayer": [
            lambda x, sublayer, norm, drop: norm(x + drop(sublayer(x))),
            lambda x, sublayer, norm, drop: norm(x + sublayer(x)),
        ],
        "the norm is missing: the sublayer reads norm(x)": (
            lambda x, sublayer, norm, drop: x + drop(sublayer(x))
        ),
        "the norm comes after the sublayer; it must come before": (
            lambda x, sublayer, norm, drop: x + drop(norm(sublayer(x)))
        ),
        "you drop from the sum, which wears x away; drop only what the sublayer adds": (
            lambda x, sublayer, norm, drop: drop(x + sublayer(norm(x)))
        ),
        "you drop what the sublayer reads; drop what it returns": (
            lambda x, sublayer, norm, drop: x + sublayer(drop(norm(x)))
        ),
        "dropout is missing": lambda x, sublayer, norm, drop: x + sublayer(norm(x)),
        "the sum is missing: x itself must be in the result": (
            lambda x, sublayer, norm, drop: drop(sublayer(norm(x)))
        ),
        "x is added twice": lambda x, sublayer, norm, drop: 2 * x + drop(sublayer(norm(x))),
        "you subtract the sublayer's output; add it": (
            lambda x, sublayer, norm, drop: x - drop(sublayer(norm(x)))
        ),
    },
)
def residual(x, sublayer, norm, drop):
    normed = norm(x)
    update = sublayer(normed)
    dropped = drop(update)
    return x + dropped


def _dropout(x, p):
    return x * (torch.rand_like(x) >= p) / (1 - p)


@judged(4, given=0x387625A2, example=_dropout,
    hint=(
        "torch.rand is below p with probability p: is that the share that stays?",
        "the mean should stay the same, so divide by the share that is kept",
    ),
)
def dropout(answer):
    for p, size in ((0.2, (200_000,)), (0.6, (400, 500))):
        x = torch.rand(size) + 1
        x[..., ::2] *= -1
        output = torch.as_tensor(answer(x, p))
        expect_shape(output, x.shape, "dropout keeps the shape")
        dropped = output == 0
        zeros = dropped.float().mean().item()
        expect(
            abs(zeros - (1 - p)) > 0.02,
            f"with p = {p} you drop {zeros:.0%} of the numbers: you keep what should be dropped",
        )
        expect(
            abs(zeros - p) < 0.02, f"with p = {p} you drop {zeros:.0%} of the numbers, not {p:.0%}"
        )
        factor = (output / x)[~dropped]
        expect(
            not same(factor, torch.ones_like(factor)),
            "the survivors are not scaled up, so the mean becomes smaller",
        )
        expect(
            not same(factor, torch.full_like(factor, 1 / p)),
            "you divide by p; a share of 1 - p survives, so divide by that",
        )
        right = torch.full_like(factor, 1 / (1 - p))
        expect_close(factor, right, "the numbers that survive have the wrong size")
        if x.dim() == 2:
            rates = torch.cat([dropped.float().mean(0), dropped.float().mean(1)])
            expect(
                (rates - p).abs().max() < 0.2, "you drop whole rows or columns together: draw "
                                               "each number on its own",
            )
            other = torch.as_tensor(answer(x, p))
            torch.manual_seed(1)
            third = torch.as_tensor(answer(x, p))
            expect(
                not torch.equal(other, third) or not torch.equal(output, third),
                "you drop the same numbers at every call: draw new ones each time",
            )


@exercise(
    5,
    inputs=[(512, 2048), (16, 64), (100, 10), (64, 512)],
    hint=(
        "the ReLU network has two matrices, SwiGLU has three",
        "2 * d * d_ff = 3 * d * width",
    ),
    wrong="that isn't the right width",
    slips={
        "that is too wide: SwiGLU has one matrix more, so each must be narrower": (
            lambda d, d_ff: round(d_ff * 3 / 2)
        ),
        "half the width is too little: it's three matrices against two, not four against two": (
            lambda d, d_ff: d_ff // 2
        ),
        "at the same width, SwiGLU has half as many weights again": lambda d, d_ff: d_ff,
        "round to a whole number": lambda d, d_ff: 2 * d_ff / 3,
        "round to the nearest whole number, not up": lambda d, d_ff: -(-2 * d_ff // 3),
        "round to the nearest whole number, not down": lambda d, d_ff: 2 * d_ff // 3,
    },
)
def fair_width(d, d_ff):
    return round(2 * d_ff / 3)


def _own_share(gain, seed, n_layers=12, d=32):
    """The gradient at the token's own input over that at another's, as in the chapter."""
    torch.manual_seed(seed)
    attention = [MultiHeadAttention(d, 4) for _ in range(n_layers)]
    network = [FeedForward(d, 4 * d) for _ in range(n_layers)]
    for p in nn.ModuleList(attention + network).parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    start = torch.randn(1, 10, d, requires_grad=True)
    x, norm = start, nn.LayerNorm(d, elementwise_affine=False)
    for attend, digest in zip(attention, network, strict=True):
        y = norm(x)
        x = x + gain * attend(y, y, y)[0]
        x = x + gain * digest(norm(x))
    (gradient,) = torch.autograd.grad(norm(x)[0, 3] @ torch.randn(d), start)
    sizes = gradient[0].norm(dim=-1)  # (10,)
    return (sizes[3] / (sizes.sum() - sizes[3]) * 9).item()


AT_A_TENTH = 17.2  # the median of `_own_share` with the factor 0.1 (tests hold it)


@judged(7, hint=(
        "x is one of 25 summands: make the others large",
        "the path carries x with a gradient of 1, whatever the sublayers add",
        "a factor well above 1 drowns that out; try 3, then 10. With the factor 0.1, each "
        "sublayer adds about a tenth of what it adds with 1",
    ), example=(20.0, 20))
def gain(value, at_a_tenth):
    for name, given in dict(factor=value, at_a_tenth=at_a_tenth).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` is one number; yours is {given!r:.40}")
    expect(0 < value <= 1000, "give a factor between 0 and 1000")
    ratios = sorted(_own_share(float(value), seed) for seed in range(5))
    expect(
        ratios[2] < 1.4,
        f"with the factor {value:g} the token's own input still gets {ratios[2]:.1f} times the "
        "gradient of another's (the median of five seeds)",
    )
    expect(
        AT_A_TENTH / 2 <= at_a_tenth <= 2 * AT_A_TENTH,
        f"the factor is right; but with 0.1 it isn't {at_a_tenth:g} times, it's "
        f"{'less' if at_a_tenth > AT_A_TENTH else 'more'}: which gradients go through a sublayer?",
    )
    return (
        f"With your factor, the token's own gradient is {ratios[2]:.2f} times another's; "
        f"with 0.1, {AT_A_TENTH:.0f} times."
    )


@judged(8, hint=(
        "what is the residual sum for, and where isn't it needed?",
        "in a shallow network the gradient has a short path anyway",
        "take the fewest layers in the grid, and check whether all the seeds agree",
    ), example=(1, 0.003, 80, "with"))
def sums_in_the_way(layers, rate, updates, with_two_layers):
    records = recorded("residuals", part="learning", gain=1.0)
    expect_one_of("layers", layers, (r["settings"]["layers"] for r in records))
    expect_one_of("rate", rate, (r["settings"]["rate"] for r in records))
    expect_one_of("updates", updates, (step for r in records for step in r["steps"]))

    def ends_at(layers):
        ends = {True: [], False: []}
        for r in records:
            if (r["settings"]["layers"], r["settings"]["rate"]) == (layers, rate):
                ends[r["settings"]["residual"]].append(r["losses"][r["steps"].index(updates)])
        with_sums, without = span(ends[True]), span(ends[False])
        return ends, f"with sums, the losses end at {with_sums}; without them, at {without}"

    ends, told = ends_at(layers)
    expect(max(ends[True]) >= min(ends[False]), f"{told}: there the sums are ahead")
    expect(
        max(ends[False]) < min(ends[True]), f"{told}: the seeds disagree, so they can't settle it"
    )
    two, told_two = ends_at(2)
    expect_one_of("with_two_layers", with_two_layers, ("with", "without", "undecided"))
    expect(
        with_two_layers == ends_lower(two[True], two[False], ("with", "without")),
        "the setting is right, but the prediction for two layers, at the same rate and number of "
        "updates, isn't. Which has the longer way to go, a gradient through one layer or through "
        "two?",
    )
    return f"{told[0].upper()}{told[1:]}. With two layers: {told_two}."
