"""Checks for chapter 09, the encoder."""

import math

import torch

from transformer_lib.checks import NotAttempted, exercise, expect, expect_close, expect_shape, same


@exercise("09.1", hint="give two lists of row numbers, from 0 to 4")
def reach(answer):
    if any(answer.get(key, ...) is ... for key in ("both ways", "causal")):
        raise NotAttempted
    both, causal = (sorted(answer[key]) for key in ("both ways", "causal"))
    expect(
        both != [3],
        "both ways: row 3 is not the only one; every token attends to token 3 and takes its value",
    )
    expect(
        both == [0, 1, 2, 3, 4],
        f"both ways: you say {both}, but no mask keeps any of the five rows from reading token 3",
    )
    expect(
        causal not in ([0, 1, 2, 3], [0, 1, 2]),
        "causal: those are the rows that token 3 may read; asked are the rows that may read it",
    )
    expect(causal != [4], "causal: a token may also attend to itself, so row 3 changes too")
    expect(causal == [3, 4], f"causal: you say {causal}; row i reads tokens 0 to i")


@exercise("09.2", hint="two sublayers: each normalises, computes, and adds to x")
def layer(answer):
    mix = torch.randn(4, 4)
    parts = {
        "norm_1": lambda x: x - x.mean(-1, keepdim=True),
        "attend": lambda x: mix @ x,
        "norm_2": lambda x: x / x.norm(dim=-1, keepdim=True),
        "feed_forward": lambda x: torch.relu(x) * 3 + 1,
    }
    norm_1, attend, norm_2, feed_forward = parts.values()
    x = torch.randn(2, 4, 6)
    given = answer(x, *parts.values())
    expect_shape(given, (2, 4, 6), "a layer keeps the shape of x")
    y = x + attend(norm_1(x))
    right = y + feed_forward(norm_2(y))
    n = norm_1(x)
    added = n + attend(n)
    post = norm_1(x + attend(x))
    slips = {
        "you add the normalised input: x itself must stay untouched, x + attend(norm(x))": (
            [added + feed_forward(norm_2(added)), norm_2(added) + feed_forward(norm_2(added))]
            + [norm_2(y) + feed_forward(norm_2(y))]
        ),
        "that is post-norm, the norm after the sum; here the norm comes before the sublayer": (
            [norm_2(post + feed_forward(post))]
        ),
        "nothing is added to x: each sublayer's output belongs on top of its input": (
            [feed_forward(norm_2(attend(norm_1(x))))]
        ),
        "the feed-forward network must read what attention has left, not the x of the start": (
            [y + feed_forward(norm_2(x)), x + feed_forward(norm_2(x))]
        ),
        "your sublayers read x without a norm": [(x + attend(x)) + feed_forward(x + attend(x))],
        "the second sublayer has a norm of its own, norm_2": [y + feed_forward(norm_1(y))],
        "the feed-forward network is missing its residual, y + feed_forward(norm_2(y))": (
            [feed_forward(norm_2(y))]
        ),
    }
    for message, wrong in slips.items():
        expect(not any(same(given, w) for w in wrong), message)
    expect_close(given, right, "the output is not that of a pre-norm layer")


@exercise("09.3", given=0xECFFA09A)
def stack(answer):
    seen = []

    def make(factor):
        def layer(x, mask=None):
            seen.append(mask)
            return x * factor + 1

        return layer

    layers = [make(2.0), make(3.0), make(5.0)]
    x, mask = torch.randn(2, 4, 6), torch.tensor([True, True, False, True])

    def norm(x):
        return x - x.mean(-1, keepdim=True)

    given = answer(x, mask, layers, norm)
    expect_shape(given, (2, 4, 6), "a stack keeps the shape of x")
    whole = ((x * 2 + 1) * 3 + 1) * 5 + 1
    last = x * 5 + 1
    expect(
        not (same(given, last) or same(given, norm(last))),
        "every layer reads the x of the start, so only the last layer counts: feed each layer the "
        "output of the one before",
    )
    expect(
        not same(given, whole, 1e-4),
        "the final norm is missing: a pre-norm stack ends with a sum that nothing has normalised",
    )
    expect_close(given, norm(whole), "the output is not that of the layers one after another", 1e-4)
    expect(
        len(seen) == 3 and all(m is not None and torch.equal(m, mask) for m in seen),
        "the mask does not reach every layer, so padding leaks in",
    )


@exercise("09.4", hint="four maps of attention, two of the feed-forward network, and the norms")
def parameters(answer):
    def parts(n, d, f):
        attention, forward = 4 * (d * d + d), d * f + f + f * d + d
        return n * attention, n * forward, n * 2 * 2 * d, 2 * d

    size = (3, 10, 40)
    given = answer(*size)
    attention, forward, norms, final = parts(*size)
    n, d, f = size
    slips = {
        "the final norm is missing": attention + forward + norms,
        "the norms are missing: two in each layer and one at the end": attention + forward,
        "the biases of the maps are missing": n * (4 * d * d + 2 * d * f) + norms + final,
        "each layer has two norms, one for each sublayer": (
            attention + forward + n * 2 * d + final
        ),
        "a LayerNorm has a gain and a bias, 2 * d_model numbers": (
            attention + forward + n * 2 * d + d
        ),
        "attention has a fourth map, W_O": n * 3 * (d * d + d) + forward + norms + final,
        "the norms and the maps of one layer count n_layers times": (
            (attention + forward + norms) // n + final
        ),
    }
    for message, wrong in slips.items():
        expect(given != wrong, message)
    expect_close(given, sum(parts(*size)), "for 3 layers, d_model 10, d_ff 40 the count is off", 0)
    expect_close(
        answer(6, 512, 2048), sum(parts(6, 512, 2048)), "for the paper's base sizes it is off", 0
    )


@exercise("09.5", hint="start with one note and double until it is enough")
def layers_needed(answer):
    expect(answer(1) == 0, "for one note no layer is needed: the place knows its own note")
    expect(answer(4) != 3, "that is one layer for each further note; every layer doubles the reach")
    expect(answer(4) != 4, "that is one layer for each note; every layer doubles the reach")
    expect(
        answer(3) != 1,
        "for three notes one layer is too few, since it reaches only two: round up",
    )
    for notes in (1, 2, 3, 4, 5, 8, 9, 64, 65):
        right = math.ceil(math.log2(notes))
        expect_close(answer(notes), right, f"for {notes} notes the number is not right", 0)
