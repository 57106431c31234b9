"""Checks for chapter 03, masks."""

import math

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("03.1", hint="give a shape such as (2, 6), and a whole number")
def combined(shape, true_values):
    shape = tuple(shape)
    expect(
        shape != (2, 6, 6), "one axis is missing: the same mask serves every head, so it has size 1"
    )
    expect(
        shape not in ((2, 1, 1, 6), (1, 1, 6, 6)),
        f"{shape} is the shape of one of the two masks; broadcasting takes the larger size of each "
        "axis",
    )
    expect(
        shape == (2, 1, 6, 6), f"the shape is not {shape}: line the two shapes up from the right"
    )
    slips = {
        21: "21 is the causal mask alone: keys 4 and 5 of the first target are padding",
        24: "24 is the padding mask alone: row i sees only keys 0 to i",
        10: "you also hid the padding's own queries; their rows still see the real keys",
        39: "39 counts both targets; only the first was asked for",
    }
    expect(true_values not in slips, slips.get(true_values))
    expect_close(true_values, 18, "count row by row: 1, 2, 3, 4, and then?", tolerance=0)


def _expect_bool(mask):
    expect(isinstance(mask, torch.Tensor), f"give back a tensor, not {type(mask).__name__}")
    expect(
        mask.dtype == torch.bool,
        f"the mask must be boolean, yours is {mask.dtype}: compare, and combine with &",
    )


def _diagnose(mask, expected, slips):
    """The mistake by its name if it is a known one, else the first wrong pair."""
    for message, slip in slips.items():
        expect(not torch.equal(mask, slip), message)
    expect_shape(mask, expected.shape)
    wrong = (mask != expected).nonzero()
    if len(wrong):
        sentence, _, i, j = wrong[0].tolist()
        may = "lets" if mask[tuple(wrong[0])] else "does not let"
        expect(False, f"in sentence {sentence} your mask {may} position {i} see position {j}")


@exercise("03.2", hint="(ids != pad_id) with two new axes, and a triangle, joined by &")
def decoder_mask(answer):
    ids = torch.tensor([[1, 5, 6, 2, 0, 0], [1, 5, 6, 7, 8, 2]])
    mask = answer(ids, 0)
    _expect_bool(mask)
    expect(
        tuple(mask.shape) != (2, 6, 6),
        "the axis for the heads is missing: (B, 1, T, T), so that it fits (B, n_heads, T, T)",
    )
    real = (ids != 0)[:, None, None, :]  # (B, 1, 1, T)
    causal = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    _diagnose(
        mask,
        real & causal,
        {
            "you hid the padding but not the future": real,
            "you hid the future but not the padding": causal,
            "your mask is upside down: True must mean 'may attend'": ~(real & causal),
            "your triangle points the wrong way: position i sees the future, not the past": (
                real & causal.mT
            ),
            "you hid the padding's queries (rows); hide its keys (columns)": real.mT & causal,
            "position i must also see itself: keep the diagonal": real & causal.tril(-1),
        },
    )
    other = answer(torch.tensor([[1, 0, 9, 9]]), 9)
    expected = [[True, False, False, False]] + 3 * [[True, True, False, False]]
    expect_close(other[0, 0], expected, "use pad_id: with pad_id 9, id 0 is a word like any other")


@exercise("03.3", given=0x27E0033A)
def repaired_mask(answer):
    q, k, v = torch.randn(3, 2, 4, 6, 8)
    mask = (torch.rand(2, 4, 6, 6) < 0.6) | torch.eye(6, dtype=torch.bool)  # no empty row
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    output = answer(q, k, v, mask)
    expect_shape(output, v.shape, "one output per query")
    slips = {
        "the -1e9 still goes to the pairs that may attend: True must stay as it is": (
            (scores + mask.float() * -1e9).softmax(-1) @ v
        ),
        "you hide the pairs that may attend: True means 'may attend', so fill where ~mask": (
            scores.masked_fill(mask, -math.inf).softmax(-1) @ v
        ),
        "no pair is hidden now; is the result of your mask used?": scores.softmax(-1) @ v,
        "you deleted weights after the softmax, so the rows no longer sum to 1": (
            scores.softmax(-1) * mask @ v
        ),
        "a score of 0 is not hidden, as exp(0) = 1: use minus infinity": (
            (scores * mask).softmax(-1) @ v
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    expect_close(output, expected, "the output differs from PyTorch's")


@exercise("03.4", hint="the distance i - j must lie between 0 and window - 1")
def window_mask(answer):
    for size, window in ((6, 3), (5, 1), (4, 9)):
        mask = answer(size, window)
        _expect_bool(mask)
        expect_shape(mask, (1, 1, size, size))
        place = torch.arange(size)
        distance = (place[:, None] - place[None, :])[None, None]  # query minus key
        slips = {
            f"you let {window + 1} tokens through: the token itself counts as one of the window": (
                (distance >= 0) & (distance <= window)
            ),
            "you left the token itself out of its window": ((distance > 0) & (distance <= window)),
            "your window reaches into the future: the key must not stand after the query": (
                distance.abs() < window
            ),
            "that is the plain causal mask: tokens too far back must be hidden": distance >= 0,
            "your window looks ahead instead of back: swap query and key": (
                (-distance >= 0) & (-distance < window)
            ),
        }
        expected = (distance >= 0) & (distance < window)
        slips = {m: s for m, s in slips.items() if not torch.equal(s, expected)}
        _diagnose(mask, expected, slips)


@exercise("03.5", hint="compare segments[:, :, None] with segments[:, None, :]")
def packed_mask(answer):
    segments = torch.tensor([[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 3, 3, 3]])
    mask = answer(segments)
    _expect_bool(mask)
    expect(
        tuple(mask.shape) != (2, 7, 7),
        "the axis for the heads is missing: (B, 1, T, T), so that it fits (B, n_heads, T, T)",
    )
    expect_shape(mask, (2, 1, 7, 7))
    same = (segments[:, :, None] == segments[:, None, :])[:, None]  # (B, 1, T, T)
    real = (segments != 0)[:, None, None, :]
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    _diagnose(
        mask,
        same & real & causal,
        {
            "padding sees padding: segment 0 is not a sentence": same & causal,
            "each sentence sees its own future: the causal mask is missing": same & real,
            "each sentence sees the sentences before it: compare the segments": real & causal,
        },
    )
