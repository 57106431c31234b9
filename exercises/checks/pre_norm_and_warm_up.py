"""Checks for the chapter on pre-norm, post-norm and warm-up."""

import math

import torch
import torch.nn.functional as F

from exercises.checks import Part, exercise, values


def _walk():
    """Add 24 independent vectors of variance 1 to one of variance 1, and look at the last sum."""
    x = torch.randn(4_000, 64)
    for _ in range(24):
        before, added = x, torch.randn_like(x)
        x = before + added
    size, share = x.std().item(), (added.std() / before.std()).item()
    return {"size": round(size, 2), "share": round(share, 3)}


growing_path = values(
    1,
    "growing_path",
    measure=_walk,
    hint=(
        "the variances of independent vectors add up; give a pair of numbers",
        "after 24 sublayers the variance is 1 + 24; the RMS is its root",
        "before the last sublayer the variance was 24, and that sublayer adds vectors of RMS 1",
    ),
    packed=True,
    size=Part(
        5.0,
        "one vector was there and 24 were added; the RMS is the root of the variance",
        {
            "25 is the sum of the sizes, or the variance; the RMS is the variance's root": 25.0,
            "you counted only the 24 that were added; what was there at the start counts, too": (
                math.sqrt(24)
            ),
            "the sizes do not add up, the variances do: the vectors point in random directions": (
                24.0
            ),
            "the variance grows by 1 per sublayer; it does not double": 2.0**12,
        },
        tolerance=0.004,
    ),
    share=Part(
        1 / math.sqrt(24),
        "the last vector has size 1; before it, the path holds 24 vectors",
        {
            "compare with the path before the last sum, not after it": 1 / 5,
            "that is the share of the variances; the root of it is the share of the sizes": 1 / 24,
            "you divided the path by what is added; divide what is added by the path": (
                math.sqrt(24)
            ),
        },
        tolerance=0.0015,
    ),
)


def _layer_parts(B=2, T=4, D=8):
    w_1, w_2 = torch.randn(2, D, D)
    places = torch.randn(T, T).softmax(-1)

    def attention(y):
        return places @ y @ w_1

    def network(y):
        return (y @ w_2).relu()

    def norm_1(y):
        return F.layer_norm(y, (D,), torch.linspace(0.5, 1.5, D))

    def norm_2(y):
        return F.layer_norm(y, (D,), torch.linspace(2.0, 1.0, D))

    return 3 * torch.randn(B, T, D) + 1, attention, network, norm_1, norm_2


def _post(x, attention, network, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + network(x))


@exercise(
    2,
    inputs=_layer_parts,
    vary=(dict(B=3, T=5, D=6), dict(B=1, T=3, D=7)),
    given=0xD16A2AF5,
    wrong="that isn't the result of two pre-norm sublayers, one after the other",
    shape="a layer keeps the shape",
    in_place="write x = x + ..., not x += ...",
    gradients=True,
    slips={
        "your first sum adds the normalised x; add the x that came in": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_2(y))
            )(norm_1(x) + attention(norm_1(x)))
        ),
        "both sums add a normalised x; add what the sublayer's norm was given": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: norm_2(y) + network(norm_2(y))
            )(norm_1(x) + attention(norm_1(x)))
        ),
        "that is post-norm; here each norm comes before its sublayer": _post,
        "attention reads x itself; it must read norm_1(x)": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_2(y))
            )(x + attention(x))
        ),
        "the two norms are swapped": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_1(y))
            )(x + attention(norm_2(x)))
        ),
        "the network reads the sum without norm_2": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(y)
            )(x + attention(norm_1(x)))
        ),
        "the first sum is missing: x itself must be in it": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_2(y))
            )(attention(norm_1(x)))
        ),
        "norm_1 belongs before attention: it normalises what attention reads, not its output": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_2(y))
            )(x + norm_1(attention(x)))
        ),
        "the network has a norm of its own, norm_2; you use norm_1 for both": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + network(norm_1(y))
            )(x + attention(norm_1(x)))
        ),
        "your second sum adds the normalised x; add what came out of the first sum": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: norm_2(y) + network(norm_2(y))
            )(x + attention(norm_1(x)))
        ),
        "attention comes first, then the network": (
            lambda x, attention, network, norm_1, norm_2: (
                lambda y: y + attention(norm_1(y))
            )(x + network(norm_2(x)))
        ),
        "your two sublayers read the same x; the network should read what came out of the "
        "first sum": (
            lambda x, attention, network, norm_1, norm_2: (
                x + attention(norm_1(x)) + network(norm_2(x))
            )
        ),
    },
)
def pre_norm_layer(x, attention, network, norm_1, norm_2):
    read = norm_1(x)
    between = x + attention(read)
    return between + network(norm_2(between))
