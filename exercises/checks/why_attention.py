"""Checks for chapter 01, why attention."""

import torch

from exercises.checks import Part, exercise, values


def _travel(links):
    """How often news must pass the links (n, n) until token 99 has heard of token 0."""
    heard, rounds = torch.eye(100)[0], 0
    while heard[-1] == 0:
        heard, rounds = ((heard @ links) > 0).float(), rounds + 1
    return rounds


def _measure_paths():
    place = torch.arange(100)
    distance = place[None, :] - place[:, None]
    return {
        "recurrent": _travel(((distance >= 0) & (distance <= 1)).float()),
        "convolution": _travel((distance.abs() <= 2).float()),
        "attention": _travel(torch.ones(100, 100)),
    }


path_lengths = values(
    1,
    "path_lengths",
    measure=_measure_paths,
    hint=(
        "give three whole numbers",
        "from 0 to 99 there are 99 steps; a window of width 5 reaches 2 further on each side",
        "in attention, every token meets every other in one layer; a convolution needs 99 / 2, "
        "rounded up",
    ),
    recurrent=Part(
        99,
        "a recurrent model moves on by one token at each step",
        {"from token 0 to token 99 the chain has 99 steps, not 100": 100},
    ),
    convolution=Part(
        50,
        "each layer of width 5 moves information by 2 tokens",
        {
            "a centred window of width 5 reaches 2 tokens to each side, not the whole width": (
                [20, 25]
            ),
            "that is one token per layer; a window of width 5 reaches further": 99,
            "49 layers of 2 tokens get only as far as token 98: you need one more layer": 49,
        },
    ),
    attention=Part(1, "every token reads every other directly"),
)


def _shares(weights):
    return weights / weights.sum()


def _lookup(query=2.5, sharpness=0.5, n=4, far=0.0):
    return query, 3 * torch.rand(n) + query - 1 + far, torch.randn(n), sharpness


@exercise(
    2,
    inputs=_lookup,
    vary=(dict(query=-1.0, sharpness=2.0, n=6), dict(sharpness=0.0), dict(query=0.3, n=1),
          dict(far=40.0, n=3)),
    hint="compute the scores, take the softmax, and form the weighted sum of the values",
    wrong="your answer isn't the weighted average of the values",
    shape="you should return one number",
    slips={
        "your weights grow with the distance: the agreement is minus the squared distance": (
            lambda query, keys, values, sharpness: (
                (sharpness * (query - keys) ** 2).softmax(-1) @ values
            )
        ),
        "your weights do not sum to 1: use a softmax, not exp alone": (
            lambda query, keys, values, sharpness: (-sharpness * (query - keys) ** 2).exp() @ values
        ),
        "far from all the keys, each exp comes out as 0, and 0 / 0 isn't a number: use a softmax": (
            lambda query, keys, values, sharpness: (
                _shares((-sharpness * (query - keys) ** 2).exp()) @ values
            )
        ),
        "you took only the nearest key; average over all the keys": (
            lambda query, keys, values, sharpness: values[((query - keys) ** 2).argmin()]
        ),
        "you left the sharpness out": (
            lambda query, keys, values, sharpness: (-((query - keys) ** 2)).softmax(-1) @ values
        ),
        "use the squared distance, not the distance": (
            lambda query, keys, values, sharpness: (
                (-sharpness * (query - keys).abs()).softmax(-1) @ values
            )
        ),
        "you averaged the keys; the answer is an average of the values": (
            lambda query, keys, values, sharpness: (
                (-sharpness * (query - keys) ** 2).softmax(-1) @ keys
            )
        ),
        "multiply the scores by the sharpness, not the answer": (
            lambda query, keys, values, sharpness: (
                sharpness * ((-((query - keys) ** 2)).softmax(-1) @ values)
            )
        ),
        "you returned one number per key; sum the weighted values into one answer": (
            lambda query, keys, values, sharpness: (
                (-sharpness * (query - keys) ** 2).softmax(-1) * values
            )
        ),
    },
)
def soft_lookup(query, keys, values, sharpness):
    distances = (query - keys) ** 2
    scores = -sharpness * distances  # (n,)
    weights = scores.softmax(-1)
    return weights @ values


@exercise(
    3,
    inputs=lambda n=5, d=3: (torch.randn(n, d),),
    vary=(dict(n=4, d=4), dict(n=2, d=6)),
    given=0xC164AA45,
    wrong="the output is not that of self-attention",
    shape="return one vector per word",
    slips={
        "the columns still sum to 1: each word must share out its own attention, so the rows must "
        "sum to 1": lambda x: (x @ x.T).softmax(0) @ x,
        "there is no softmax left, so these aren't shares": lambda x: x @ x.T @ x,
        "you average all the words equally and don't use the scores": (
            lambda x: x.mean(0).expand_as(x)
        ),
    },
)
def repaired_self_attention(x):
    scores = x @ x.T  # (n, n)
    weights = scores.softmax(-1)
    return weights @ x


def _band(kernel, n, shift=0):
    """(n, n): kernel[m] at column - row = m - half + shift."""
    A = torch.zeros(n, n)
    for m, weight in enumerate(kernel):
        offset = m - len(kernel) // 2 + shift
        if abs(offset) < n:
            A += weight * torch.diag(torch.ones(n - abs(offset)), offset)
    return A


@exercise(
    4,
    inputs=lambda width=3, n=6: (torch.randn(width), n),
    vary=(dict(width=5, n=7), dict(width=1, n=4), dict(width=7, n=8)),
    hint=(
        "entry (i, j) depends only on j - i",
        "row i holds kernel[j - i + width // 2] at column j, and 0 outside the kernel",
    ),
    wrong="A @ x is not the convolution",
    shape="return one row for each output and one column for each input",
    slips={
        "your kernel is flipped: kernel[0] belongs to the left neighbour, below the diagonal": (
            lambda kernel, n: _band(kernel, n).T
        ),
        "your window wraps around: beyond the ends there are zeros": lambda kernel, n: sum(
            w * torch.eye(n).roll(m - len(kernel) // 2, 1) for m, w in enumerate(kernel)
        ),
        "your window starts at the position itself; centre it": (
            lambda kernel, n: _band(kernel, n, shift=len(kernel) // 2)
        ),
        "your window ends at the position itself; centre it": (
            lambda kernel, n: _band(kernel, n, shift=-(len(kernel) // 2))
        ),
        "your window holds only one "
        "place": lambda kernel, n: kernel[len(kernel) // 2] * torch.eye(n),
    },
)
def convolution_weights(kernel, n):
    return _band(kernel, n)


@exercise(
    5,
    inputs=[(10, 40), (64, 64), (300, 7)],
    hint=(
        "divide n * n * d by n * d * d, and simplify",
        "the paper's table gives n^2 d for attention and n d^2 for recurrence",
    ),
    wrong="that isn't the right ratio",
    slips={
        "you have it upside down: attention is the numerator": lambda n, d: d / n,
        "that is only the cost of attention; divide it by that of recurrence": (
            lambda n, d: n * n * d
        ),
        "recurrence costs n * d * d: each step multiplies by a d x d matrix": lambda n, d: n,
    },
)
def cost_ratio(n, d):
    return n / d
