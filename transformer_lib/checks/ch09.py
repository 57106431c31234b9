"""Checks for chapter 09, the encoder."""

import math

import torch
import torch.nn.functional as F

from transformer_lib.checks import Part, exercise, values


def _change_token_3():
    """Which outputs of attention move when the embedding of token 3 does."""
    x = torch.randn(5, 4)
    y = x.index_add(0, torch.tensor([3]), torch.randn(1, 4))
    found = {}
    for name, mask in {"both_ways": None, "causal": torch.ones(5, 5).bool().tril()}.items():
        one, other = (F.scaled_dot_product_attention(z, z, z, attn_mask=mask) for z in (x, y))
        moved = (one - other).abs().amax(-1) > 1e-6
        found[name] = moved.nonzero().flatten().tolist()
    return found


reach = values(
    "09.1",
    "reach",
    measure=_change_token_3,
    hint="give two lists of row numbers, from 0 to 4",
    packed="names",
    both_ways=Part(
        [0, 1, 2, 3, 4],
        "both ways: no mask keeps any of the five rows from reading token 3",
        {
            "both ways: row 3 is not the only one; every token attends to token 3 and takes its "
            "value": lambda rows: rows == [3]
        },
        read=sorted,
    ),
    causal=Part(
        [3, 4],
        "causal: row i reads tokens 0 to i",
        {
            "causal: those are the rows that token 3 may read; asked are the rows that may read "
            "it": lambda rows: rows in ([0, 1, 2, 3], [0, 1, 2]),
            "causal: a token may also attend to itself, so row 3 changes too": (
                lambda rows: rows == [4]
            ),
        },
        read=sorted,
    ),
)


def _layer_parts(B=2, S=4, D=6):
    mix = torch.randn(S, S)
    parts = (
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x: mix @ x,
        lambda x: x / x.norm(dim=-1, keepdim=True),
        lambda x: torch.relu(x) * 3 + 1,
    )
    return torch.randn(B, S, D), *parts


def _post_norm(x, norm_1, attend, norm_2, feed_forward):
    x = norm_1(x + attend(x))
    return norm_2(x + feed_forward(x))


def _sublayers(first, second):
    """A layer of two sublayers, each a function (x, norm, computation)."""

    def layer(x, norm_1, attend, norm_2, feed_forward):
        return second(first(x, norm_1, attend), norm_2, feed_forward)

    return layer


def _pre(x, norm, compute):
    return x + compute(norm(x))


def _adds_norm(x, norm, compute):
    return norm(x) + compute(norm(x))


def _alone(x, norm, compute):
    return compute(norm(x))


def _no_norm(x, norm, compute):
    return x + compute(x)


@exercise(
    "09.2",
    inputs=_layer_parts,
    vary=(dict(B=3, S=5, D=4), dict(B=1, S=3, D=3)),
    hint="two sublayers: each normalises, computes, and adds to x",
    wrong="the output is not that of a pre-norm layer",
    shape="a layer keeps the shape of x",
    gradients=True,
    slips={
        "you add the normalised input: x itself must stay untouched, x + attend(norm(x))": [
            _sublayers(_adds_norm, _pre), _sublayers(_adds_norm, _adds_norm),
            _sublayers(_pre, _adds_norm),
        ],
        "that is post-norm, the norm after the sum; here the norm comes before the sublayer": (
            _post_norm
        ),
        "nothing is added to x: each sublayer's output belongs on top of its input": (
            _sublayers(_alone, _alone)
        ),
        "the feed-forward network must read what attention has left, not the x of the start": [
            lambda x, n1, attend, n2, forward: x + attend(n1(x)) + forward(n2(x)),
            lambda x, n1, attend, n2, forward: x + forward(n2(x)),
        ],
        "the second sum adds to x of the start, so what attention brought is lost": (
            lambda x, n1, attend, n2, forward: x + forward(n2(x + attend(n1(x))))
        ),
        "your sublayers read x without a norm": [
            _sublayers(_no_norm, _no_norm), _sublayers(_no_norm, _pre), _sublayers(_pre, _no_norm),
        ],
        "the second sublayer has a norm of its own, norm_2": (
            lambda x, n1, attend, n2, forward: _sublayers(_pre, _pre)(x, n1, attend, n1, forward)
        ),
        "the two norms are exchanged": (
            lambda x, n1, attend, n2, forward: _sublayers(_pre, _pre)(x, n2, attend, n1, forward)
        ),
        "the feed-forward network comes second, after attention": [
            lambda x, n1, attend, n2, forward: _sublayers(_pre, _pre)(x, n1, forward, n2, attend),
            lambda x, n1, attend, n2, forward: _sublayers(_pre, _pre)(x, n2, forward, n1, attend),
        ],
        "the feed-forward network is missing its residual, y + feed_forward(norm_2(y))": (
            _sublayers(_pre, _alone)
        ),
        "attention is missing its residual, x + attend(norm_1(x))": _sublayers(_alone, _pre),
        "the feed-forward network is missing": _sublayers(_pre, lambda x, norm, compute: x),
    },
)  # fmt: skip
def layer(x, norm_1, attend, norm_2, feed_forward):
    attended = attend(norm_1(x))
    between = x + attended
    digested = feed_forward(norm_2(between))
    return between + digested


def _stack_parts(B=2, S=4, D=6, n_layers=3):
    def make(factor):
        def layer(x, mask=None):
            seen = torch.ones(S) if mask is None else mask.float()
            return (x * factor + 1).sin() + (seen[:, None] * x).mean(1, keepdim=True)

        return layer

    mask = torch.rand(S) < 0.7
    mask[0], mask[-1] = True, False
    layers = [make(1.0 + i) for i in range(n_layers)]
    return torch.randn(B, S, D), mask, layers, lambda x: x / x.norm(dim=-1, keepdim=True)


def _stacked(x, mask, layers):
    for layer in layers:
        x = layer(x, mask)
    return x


@exercise(
    "09.3",
    inputs=_stack_parts,
    vary=(dict(B=3, S=5, D=4, n_layers=2), dict(S=3, n_layers=4)),
    given=0xECFFA09A,
    wrong="the output is not that of the layers one after another",
    shape="a stack keeps the shape of x",
    gradients=True,
    slips={
        "every layer reads the x of the start, so only the last layer counts: feed each layer the "
        "output of the one before": [
            lambda x, mask, layers, norm: layers[-1](x, mask),
            lambda x, mask, layers, norm: norm(layers[-1](x, mask)),
        ],
        "the final norm is missing: a pre-norm stack ends with a sum that nothing has normalised": (
            lambda x, mask, layers, norm: _stacked(x, mask, layers)
        ),
        "the mask does not reach every layer, so padding leaks in": [
            lambda x, mask, layers, norm: norm(_stacked(x, None, layers)),
            lambda x, mask, layers, norm: norm(_stacked(layers[0](x, mask), None, layers[1:])),
        ],
        "the norm belongs behind the last layer, not behind each": (
            lambda x, mask, layers, norm: _stacked(
                x, mask, [lambda y, m, layer=layer: norm(layer(y, m)) for layer in layers]
            )
        ),
        "the layers run backwards": (
            lambda x, mask, layers, norm: norm(_stacked(x, mask, layers[::-1]))
        ),
        "only the first layer runs: the return stands inside the loop": (
            lambda x, mask, layers, norm: norm(layers[0](x, mask))
        ),
    },
)
def stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
    return norm(x)


def _count(maps=4, map_bias=1, wide_bias=1, norms=2, final=2, halves=2):
    """A count of parameters with one thing counted in another way."""

    def count(n_layers, d_model, d_ff):
        attention = maps * (d_model * d_model + map_bias * d_model)
        forward = 2 * d_model * d_ff + wide_bias * (d_ff + d_model)
        norm = norms * halves * d_model
        return n_layers * (attention + forward + norm) + final * d_model

    return count


@exercise(
    "09.4",
    inputs=[(3, 10, 40), (6, 512, 2048), (1, 7, 5)],
    hint="four maps of attention, two of the feed-forward network, and the norms",
    wrong="the count is off",
    slips={
        "the final norm is missing": _count(final=0),
        "the norms are missing: two in each layer and one at the end": _count(norms=0, final=0),
        "in each layer 4 * d_model numbers are missing: the two norms or the biases of attention": (
            _count(norms=0)
        ),
        "the biases of the maps are missing": _count(map_bias=0, wide_bias=0),
        "the biases of the feed-forward maps are missing": _count(wide_bias=0),
        "each layer has two norms, one for each sublayer": _count(norms=1),
        "a LayerNorm has a gain and a bias, 2 * d_model numbers": [
            _count(halves=1, final=1), _count(final=1)
        ],
        "attention has a fourth map, W_O": _count(maps=3),
        "the norms and the maps of one layer count n_layers times": (
            lambda n, d, f: _count()(1, d, f)
        ),
    },
)  # fmt: skip
def parameters(n_layers, d_model, d_ff):
    return _count()(n_layers, d_model, d_ff)


@exercise(
    "09.5",
    inputs=[(notes,) for notes in (1, 2, 3, 4, 5, 8, 9, 64, 65)],
    hint="start with one note and double until it is enough",
    wrong="the number of layers is not right",
    large=(10**9 + 1,),
    slips={
        "that is one layer for each further note; every layer doubles the reach": (
            lambda notes: notes - 1
        ),
        "that is one layer for each note; every layer doubles the reach": lambda notes: notes,
        "for three notes one layer is too few, since it reaches only two: round up": [
            lambda notes: int(math.log2(notes)), lambda notes: round(math.log2(notes))
        ],
        "your reach grows by one number with each layer; every layer doubles it": [
            lambda notes: notes // 2, lambda notes: (notes + 1) // 2
        ],
        "the doublings are counted by the logarithm to base 2, not by the natural one": [
            lambda notes: math.ceil(math.log(notes)), lambda notes: int(math.log(notes)),
            lambda notes: round(math.log(notes)),
        ],
        "for one note no layer is needed: the place knows its own note": (
            lambda notes: max(1, (notes - 1).bit_length())
        ),
        "that is one too many: with n layers 2^n notes are in reach": (
            lambda notes: notes.bit_length()
        ),
        "a whole number is wanted: round up": math.log2,
    },
)  # fmt: skip
def layers_needed(notes):
    return (notes - 1).bit_length()
