"""Checks for chapter 09, the encoder."""

import functools
import math
from collections import Counter

import torch
import torch.nn.functional as F

from exercises.checks import Part, exercise, expect, values
from transformer_lib.config import BlockConfig
from transformer_lib.encoder import Encoder


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
    1,
    "reach",
    measure=_change_token_3,
    hint=(
        "give two lists of row numbers between 0 and 4",
        "without a mask every row looks at every row, so which rows can be affected?",
        "with the causal mask, a row looks only at itself and at earlier ones",
    ),
    packed="names",
    both_ways=Part(
        [0, 1, 2, 3, 4],
        "both ways: without a mask, nothing stops any of the five rows from reading token 3",
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
            "causal: those are the rows that token 3 may read; you were asked for the rows that "
            "may read it": lambda rows: rows in ([0, 1, 2, 3], [0, 1, 2]),
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


def _calls_each_part_once(answer):
    x, *parts = _layer_parts()
    calls = Counter()

    def counted(i, part):
        def call(x):
            calls[i] += 1
            return part(x)

        return call

    answer(x, *(counted(i, part) for i, part in enumerate(parts)))
    names = ("norm_1", "attend", "norm_2", "feed_forward")
    for i, name in enumerate(names):
        expect(
            calls[i] == 1,
            f"the numbers are right, but you call `{name}` {calls[i]} times; with dropout "
            f"inside, every call gives a different result. Keep the first one",
        )


@exercise(
    2,
    inputs=_layer_parts,
    vary=(dict(B=3, S=5, D=4), dict(B=1, S=3, D=3)),
    laws=_calls_each_part_once,
    hint="there are two sublayers: each normalises, computes, and adds its result to x",
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
        "nothing is added to x: each sublayer's output has to be added to x": (
            _sublayers(_alone, _alone)
        ),
        "the feed-forward network must read what comes out of attention, not the original x": [
            lambda x, n1, attend, n2, forward: x + attend(n1(x)) + forward(n2(x)),
            lambda x, n1, attend, n2, forward: x + forward(n2(x)),
        ],
        "the second sum adds to the original x, so what attention added is lost": (
            lambda x, n1, attend, n2, forward: x + forward(n2(x + attend(n1(x))))
        ),
        "your sublayers read x without a norm": [
            _sublayers(_no_norm, _no_norm), _sublayers(_no_norm, _pre), _sublayers(_pre, _no_norm),
        ],
        "the second sublayer has a norm of its own, norm_2": (
            lambda x, n1, attend, n2, forward: _sublayers(_pre, _pre)(x, n1, attend, n1, forward)
        ),
        "the two norms are swapped": (
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
)
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
    3,
    inputs=_stack_parts,
    vary=(dict(B=3, S=5, D=4, n_layers=2), dict(S=3, n_layers=4)),
    given=0xECFFA09A,
    wrong="the output is not that of the layers one after another",
    shape="a stack keeps the shape of x",
    gradients=True,
    slips={
        "every layer reads the original x, so only the last layer counts: feed each layer the "
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
        "the norm belongs after the last layer, not after each one": (
            lambda x, mask, layers, norm: _stacked(
                x, mask, [lambda y, m, layer=layer: norm(layer(y, m)) for layer in layers]
            )
        ),
        "you run the layers in reverse order": (
            lambda x, mask, layers, norm: norm(_stacked(x, mask, layers[::-1]))
        ),
        "only the first layer runs: your return is inside the loop": (
            lambda x, mask, layers, norm: norm(layers[0](x, mask))
        ),
    },
)
def stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
    return norm(x)


@functools.cache
def _small_encoder(seed):
    torch.manual_seed(seed)
    config = BlockConfig(8, 2, 16, 2, dropout=0.0)
    encoder = Encoder(config).eval()
    for p in encoder.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return encoder.requires_grad_(False)


def _sentences(lengths=(3, 5, 1), seed=1):
    encoder = _small_encoder(seed)
    return lambda x, mask=None: encoder(x, mask), [torch.randn(n, 8) for n in lengths]


def _rows_of(result, encoder, sentences):
    """All rows of the list of memories."""
    expect(isinstance(result, (list, tuple)), "return a list, one memory for each sentence")
    expect(all(x.dim() == 2 for x in result), "each memory has the shape (S, D)")
    return torch.cat(list(result))


def _in_one_row(mask_of):
    """All sentences in one row, with a mask made from the number of each token's sentence."""

    def encode(encoder, sentences):
        owner = torch.cat([torch.full((len(x),), i) for i, x in enumerate(sentences)])
        mask = mask_of(owner)
        memory = encoder(torch.cat(sentences)[None], None if mask is None else mask[None, None])
        return list(memory[0].split([len(x) for x in sentences]))

    return encode


def _same(owner):
    return owner[:, None] == owner[None, :]


def _one_call(answer):
    calls = []

    def encoder(x, mask=None):
        calls.append(tuple(x.shape))
        return _small_encoder(1)(x, mask)

    sentences = [torch.randn(n, 8) for n in (2, 4, 3)]
    memories = answer(encoder, sentences)
    given, wanted = ([tuple(x.shape) for x in several] for several in (memories, sentences))
    expect(given == wanted, f"the memories should have the shapes {wanted}, yours have {given}")
    expect(
        len(calls) == 1,
        f"the result is right, but the encoder ran {len(calls)} times: once is enough",
    )
    expect(
        calls[0] == (1, 9, 8),
        f"right, but the encoder read {calls[0]}: 9 tokens in one row, (1, 9, 8), are enough",
    )


@exercise(
    4,
    inputs=_sentences,
    vary=(dict(lengths=(2, 2), seed=2), dict(lengths=(4,), seed=3), dict(lengths=(1, 2, 6, 3))),
    hint="you need one row with all the tokens, and a mask that says which belong to the same "
         "sentence",
    wrong="the memories aren't those you'd get for each sentence on its own",
    view=_rows_of,
    laws=_one_call,
    shrinks=False,
    tolerance=1e-4,
    slips={
        "the sentences read each other: without a mask, the row is one long sentence": (
            _in_one_row(lambda owner: None)
        ),
        "your mask is inverted: each sentence reads only the others": (
            _in_one_row(lambda owner: ~_same(owner))
        ),
        "your mask is causal too: an encoder looks both ways": (
            _in_one_row(lambda owner: _same(owner).tril())
        ),
        "a sentence also reads those before it: the numbers must be equal, not smaller": (
            _in_one_row(lambda owner: owner[:, None] >= owner[None, :])
        ),
    },
)
def encode_packed(encoder, sentences):
    owner = torch.cat([torch.full((len(x),), i) for i, x in enumerate(sentences)])
    mask = owner[:, None] == owner[None, :]  # (S, S)
    memory = encoder(torch.cat(sentences)[None], mask[None, None])[0]
    return list(memory.split([len(x) for x in sentences]))


@exercise(
    5,
    inputs=[(notes,) for notes in (1, 2, 3, 4, 5, 8, 9, 64, 65)],
    hint=(
        "start with one note and double until it is enough",
        "how many doublings of 1 give at least `notes`? Watch out for notes = 1",
    ),
    wrong="that isn't the right number of layers",
    large=(10**9 + 1,),
    slips={
        "that is one layer for each further note; every layer doubles the reach": (
            lambda notes: notes - 1
        ),
        "that is one layer for each note; every layer doubles the reach": lambda notes: notes,
        "for three notes one layer is too few, since it reaches only two: round up": [
            lambda notes: int(math.log2(notes)), lambda notes: round(math.log2(notes))
        ],
        "your reach grows by a fixed number of notes with each layer; every layer doubles it": [
            lambda notes: notes // 2, lambda notes: (notes + 1) // 2
        ],
        "to count doublings, take the logarithm to base 2, not the natural one": [
            lambda notes: math.ceil(math.log(notes)), lambda notes: int(math.log(notes)),
            lambda notes: round(math.log(notes)),
        ],
        "for one note you need no layer: the place already knows its own note": (
            lambda notes: max(1, (notes - 1).bit_length())
        ),
        "that is one too many: with n layers 2^n notes are in reach": (
            lambda notes: notes.bit_length()
        ),
        "the answer is a whole number: round up": math.log2,
    },
)
def layers_needed(notes):
    return (notes - 1).bit_length()
