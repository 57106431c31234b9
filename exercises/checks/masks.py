"""Checks for chapter 03, masks."""

import math

import torch

from exercises.checks import Part, exercise, values
from transformer_lib.masks import causal_mask, padding_mask


def _count_combined():
    """The puzzle's masks, combined by the library."""
    ids = torch.ones(2, 6, dtype=torch.long)
    ids[0, 4:] = 0
    mask = padding_mask(ids, 0) & causal_mask(6)
    return {"shape": tuple(mask.shape), "true_values": int(mask[0].sum())}


combined = values(
    1,
    "combined",
    measure=_count_combined,
    hint=(
        "give a shape such as (2, 6), and a whole number",
        "the padding mask is (2, 1, 1, 6), the causal one (1, 1, 6, 6): what does & make of the "
        "two shapes?",
        "the first target has 4 real keys: rows 0 to 3 see 1, 2, 3 and 4 of them, but what do "
        "rows 4 and 5 see?",
    ),
    shape=Part(
        (2, 1, 6, 6),
        "line the two shapes up from the right: batch, heads, queries, keys",
        {
            "one axis is missing: the same mask serves every head, so it has size 1": (2, 6, 6),
            "that is the shape of one of the two masks; broadcasting takes the larger size of each "
            "axis": [(2, 1, 1, 6), (1, 1, 6, 6)],
        },
    ),
    true_values=Part(
        18,
        "count row by row: 1, 2, 3, 4, and then?",
        {
            "21 comes from the causal mask alone: keys 4 and 5 of the first target are padding": 21,
            "24 comes from the padding mask alone: row i sees only keys 0 to i": 24,
            "you also hid the padding's own queries; their rows still see the real keys": 10,
            "39 counts both targets; the question is about the first one only": 39,
        },
    ),
)


def triangle(size):
    """(T, T) bool: row i may see columns 0 to i."""
    return torch.ones(size, size, dtype=torch.bool).tril()


def tell_pair(mask, expected, *args):
    """The first pair of positions that a mask gets wrong."""
    place = (mask != expected).nonzero()[0].tolist()
    may = "lets" if mask[tuple(place)] else "does not let"
    sentence = f"in sentence {place[0]} " if len(place) > 2 and mask.size(0) > 1 else ""
    return f"{sentence}your mask {may} position {place[-2]} see position {place[-1]}"


def _ids(B=2, T=6, pad_id=0):
    ids = torch.randint(5, 9, (B, T))
    ids[:, 0] = 1
    ids[0, T - T // 3 :] = pad_id
    return ids, pad_id


def _real(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]  # (B, 1, 1, T)


@exercise(
    2,
    inputs=_ids,
    vary=(dict(B=3, T=5, pad_id=7), dict(B=2, T=7, pad_id=9), dict(B=6, T=6)),
    hint="take (ids != pad_id) with two new axes, and a triangle, and join them with &",
    dtype=torch.bool,
    tell=tell_pair,
    shape="the mask must have the shape (B, 1, T, T)",
    forbid=("padding_mask", "causal_mask"),
    slips={
        "the axis for the heads is missing: (B, 1, T, T), so that it fits (B, n_heads, T, T)": (
            lambda ids, pad_id: (_real(ids, pad_id) & triangle(ids.size(1)))[:, 0]
        ),
        "you hid the padding but not the future": [
            _real,
            lambda ids, pad_id: _real(ids, pad_id).expand(-1, -1, ids.size(1), -1),
        ],
        "you hid the future but not the padding": [
            lambda ids, pad_id: triangle(ids.size(1))[None, None],
            lambda ids, pad_id: triangle(ids.size(1)).expand(len(ids), 1, -1, -1),
        ],
        "your mask is upside down: True must mean 'may attend'": (
            lambda ids, pad_id: ~(_real(ids, pad_id) & triangle(ids.size(1)))
        ),
        "your triangle points the wrong way: position i sees the future, not the past": (
            lambda ids, pad_id: _real(ids, pad_id) & triangle(ids.size(1)).mT
        ),
        "you hid the padding's queries (rows); hide only its keys (columns)": (
            lambda ids, pad_id: _real(ids, pad_id).mT & triangle(ids.size(1))
        ),
        "position i must also see itself: keep the diagonal": (
            lambda ids, pad_id: _real(ids, pad_id) & triangle(ids.size(1)).tril(-1)
        ),
        "use pad_id: with pad_id 9, id 0 is a word like any other": (
            lambda ids, pad_id: _real(ids, 0) & triangle(ids.size(1))
        ),
        "combine the two with &: both must allow it": (
            lambda ids, pad_id: _real(ids, pad_id) | triangle(ids.size(1))
        ),
        "True is where the padding is; True must mean 'may attend', so compare with !=": (
            lambda ids, pad_id: ~_real(ids, pad_id) & triangle(ids.size(1))
        ),
        "each sentence has its own padding; you use the first one's for all of them": (
            lambda ids, pad_id: _real(ids[:1], pad_id).expand(len(ids), -1, -1, -1)
            & triangle(ids.size(1))
        ),
    },
)
def decoder_mask(ids, pad_id):
    real = (ids != pad_id)[:, None, None, :]  # (B, 1, 1, T)
    causal = triangle(ids.size(1))
    return real & causal


def _masked(B=2, H=3, T=6, S=6, K=8):
    mask = torch.rand(B, H, T, S) < 0.6
    mask[..., 0] |= ~mask.any(-1)  # no empty row
    return torch.randn(B, H, T, K), torch.randn(B, H, S, K), torch.randn(B, H, S, K), mask


def _scaled(q, k):
    return q @ k.mT / math.sqrt(q.size(-1))


@exercise(
    3,
    inputs=_masked,
    vary=(dict(T=4, S=7), dict(B=3, H=1, K=5)),
    given=0x27E0033A,
    wrong="the output is not that of masked attention",
    shape="one output per query",
    gradients=True,
    slips={
        "a number like -10 still leaves a share, and a score may be lower: use minus infinity": [
            lambda q, k, v, mask, low=low: (
                _scaled(q, k).masked_fill(~mask, low).softmax(-1) @ v
            )
            for low in (-1.0, -5.0, -10.0)
        ],
        "a row of the mask is a query, and a column a key: don't transpose it": [
            lambda q, k, v, mask, low=low: (
                _scaled(q, k).masked_fill(~mask.mT, low).softmax(-1) @ v
            )
            for low in (-1e9, -math.inf)
        ],
        "the -1e9 still goes to the pairs that may attend: True must stay as it is": (
            lambda q, k, v, mask: (_scaled(q, k) + mask.float() * -1e9).softmax(-1) @ v
        ),
        "you hide the pairs that may attend: True means 'may attend', so fill where ~mask": (
            lambda q, k, v, mask: _scaled(q, k).masked_fill(mask, -math.inf).softmax(-1) @ v
        ),
        "no pair is hidden any more; do you use the masked result?": (
            lambda q, k, v, mask: _scaled(q, k).softmax(-1) @ v
        ),
        "you removed weights after the softmax, so the rows no longer sum to 1": (
            lambda q, k, v, mask: _scaled(q, k).softmax(-1) * mask @ v
        ),
        "a score of 0 is not hidden, as exp(0) = 1: use minus infinity": (
            lambda q, k, v, mask: (_scaled(q, k) * mask).softmax(-1) @ v
        ),
        "the scaling by sqrt(d_k) is missing": (
            lambda q, k, v, mask: (q @ k.mT).masked_fill(~mask, -math.inf).softmax(-1) @ v
        ),
        "a hidden score must become hugely negative; you add a large number to it": (
            lambda q, k, v, mask: (_scaled(q, k) + (~mask).float() * 1e9).softmax(-1) @ v
        ),
    },
)
def repaired_mask(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, S)
    hidden = scores.masked_fill(~mask, -math.inf)
    weights = hidden.softmax(-1)
    return weights @ v


def _distance(size):
    place = torch.arange(size)
    return (place[:, None] - place[None, :])[None, None]  # query minus key


@exercise(
    4,
    inputs=[(3, 2), (6, 3), (5, 1), (4, 9), (7, 4)],
    hint="the distance i - j must lie between 0 and window - 1",
    dtype=torch.bool,
    tell=tell_pair,
    shape="the mask must have the shape (1, 1, size, size)",
    slips={
        "you let window + 1 tokens through: the token itself counts towards the window": (
            lambda size, window: (_distance(size) >= 0) & (_distance(size) <= window)
        ),
        "you left the token itself out of its window": [
            lambda size, window: (_distance(size) > 0) & (_distance(size) <= window),
            lambda size, window: (_distance(size) > 0) & (_distance(size) < window),
        ],
        "your window reaches into the future: the key must not come after the query": (
            lambda size, window: _distance(size).abs() < window
        ),
        "that is the plain causal mask: tokens that are too far back must be hidden": (
            lambda size, window: _distance(size) >= 0
        ),
        "your window looks ahead instead of back: swap query and key": (
            lambda size, window: (-_distance(size) >= 0) & (-_distance(size) < window)
        ),
        "nothing hides the future: the key must not come after the query": (
            lambda size, window: (
                torch.ones(1, 1, size, size, dtype=torch.bool).triu(1 - window)
            )
        ),
        "the window moves with each token; you cut the text into blocks": (
            lambda size, window: (
                (torch.arange(size)[:, None] // window == torch.arange(size) // window)
                & (torch.arange(size)[:, None] >= torch.arange(size))
            )[None, None]
        ),
    },
)
def window_mask(size, window):
    distance = _distance(size)
    return (distance >= 0) & (distance < window)


def _same(segments):
    return (segments[:, :, None] == segments[:, None, :])[:, None]  # (B, 1, T, T)


SEGMENTS = [
    (torch.tensor([[1, 1, 0]]),),
    (torch.tensor([[1, 1, 2, 2]]),),
    (torch.tensor([[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 3, 3, 3]]),),
    (torch.tensor([[4, 4, 9, 0], [7, 7, 7, 7], [5, 0, 0, 0], [1, 2, 3, 4]]),),
]


@exercise(
    5,
    inputs=SEGMENTS,
    hint="compare segments[:, :, None] with segments[:, None, :]",
    dtype=torch.bool,
    tell=tell_pair,
    shape="the mask must have the shape (B, 1, T, T)",
    slips={
        "the axis for the heads is missing: (B, 1, T, T), so that it fits (B, n_heads, T, T)": (
            lambda s: (_same(s) & _real(s, 0) & triangle(s.size(1)))[:, 0]
        ),
        "padding sees padding: segment 0 is not a sentence": (
            lambda s: _same(s) & triangle(s.size(1))
        ),
        "each sentence sees its own future: the causal mask is missing": (
            lambda s: _same(s) & _real(s, 0)
        ),
        "each sentence sees the sentences before it: compare the segments": [
            lambda s: _real(s, 0) & triangle(s.size(1)),
            lambda s: _real(s, 0) & _real(s, 0).mT & triangle(s.size(1)),
        ],
        "the triangle points the wrong way: a token sees what follows, not what came before": (
            lambda segments: packed_mask.reference(segments).mT
        ),
    },
)
def packed_mask(segments):
    same = segments[:, :, None] == segments[:, None, :]  # (B, T, T)
    real = (segments != 0)[:, None, :]  # (B, 1, T)
    causal = triangle(segments.size(1))
    return (same & real & causal)[:, None]


def _odds(share):
    return share / (1 - share)


@exercise(
    7,
    inputs=[(0.5, 0.01), (0.999, 1e-6), (0.9, 1e-3), (0.001, 0.01), (0.3, 0.2), (0.2, 1e-4)],
    hint=(
        "adding -c to a score multiplies its exponential by exp(-c); which sum does that change?",
        "the hidden keys keep hidden * exp(-c) / (1 - hidden + hidden * exp(-c)); set it to `most`",
        "in odds it's short: odds(most) = odds(hidden) * exp(-c), with odds(p) = p / (1 - p). And "
        "what if `hidden` is below `most` already?",
    ),
    wrong="that isn't the smallest c",
    shape="return one number",
    slips={
        "exp(-c) changes the sum that softmax divides by, too: compare odds, p / (1 - p)": (
            lambda hidden, most: max(0.0, math.log(hidden / most))
        ),
        "the visible keys' weight grows as well: they end with 1 - most, not with 1 - hidden": (
            lambda hidden, most: max(0.0, math.log(_odds(hidden) / most))
        ),
        "it depends on how much weight the hidden keys had: start from their odds": [
            lambda hidden, most: math.log(1 / most),
            lambda hidden, most: math.log(1 / _odds(most)),
        ],
        "the softmax has base e, not 2 or 10": [
            lambda hidden, most: max(0.0, math.log2(_odds(hidden) / _odds(most))),
            lambda hidden, most: max(0.0, math.log10(_odds(hidden) / _odds(most))),
        ],
        "the hidden share is already small enough: then c is 0, not negative": (
            lambda hidden, most: math.log(_odds(hidden) / _odds(most))
        ),
        "the sign is the wrong way round: c is what is subtracted, so it's positive": [
            lambda hidden, most: math.log(_odds(most) / _odds(hidden)),
            lambda hidden, most: min(0.0, math.log(_odds(most) / _odds(hidden))),
            lambda hidden, most: max(0.0, math.log(_odds(most) / _odds(hidden))),
        ],
        "the exponential is missing: c goes into exp(-c)": (
            lambda hidden, most: max(0.0, _odds(hidden) / _odds(most))
        ),
    },
)
def minus_infinity(hidden, most):
    return max(0.0, math.log(_odds(hidden)) - math.log(_odds(most)))
