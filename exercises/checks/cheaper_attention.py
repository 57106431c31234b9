"""Checks for the chapter Cheaper attention."""

import torch

from exercises.checks import Part, exercise, expect, judged, values
from transformer_lib.beyond import sparse

by_hand = values(
    1,
    "by_hand",
    hint=(
        "three whole numbers",
        "the token in the middle sees itself and 10 on each side",
        "all scores: 101 rows of the full width, less what is missing at both ends, 10 + 9 + ... +"
        " 1 each; news travels 10 places a layer",
    ),
    links=Part(
        21,
        "count the near places to the left, the token, and to the right",
        {
            "10 is one side only, and the token itself is missing": 10,
            "the token sees itself, too": 20,
        },
    ),
    scores=Part(
        2011,
        "take 21 for each token, less what falls off at both ends",
        {
            "21 for each of 101 tokens is too many: a window ends where the text ends, and the "
            "first and the last ten tokens see fewer": 2121
        },
    ),
    layers=Part(
        10,
        "how often do 10 places fit between the first token and the last?",
        {
            "news walks 10 places a layer, not 21: a token hears one side at a time": 5,
            "from place 0 to place 100 there are 100 steps, not 101 or more": 11,
        },
    ),
)


def _as_mask(rule, block, summary):
    """A rule of i and j as a mask of four blocks."""
    place = torch.arange(4 * block)
    mask = rule(place[:, None], place[None, :])
    expect(isinstance(mask, torch.Tensor), "your rule must return a tensor of booleans")
    return mask.expand(4 * block, 4 * block)


def _rule(seen):
    """A pattern from seen(own, end, causal, i, j, block, summary)."""

    def pattern(block, summary):
        def rule(i, j):
            own, end = i // block == j // block, j % block >= block - summary
            return seen(own, end, j <= i, i, j, block, summary)

        return rule

    return pattern


@exercise(
    2,
    inputs=[(2, 1), (4, 1), (8, 2), (5, 3)],
    hint=(
        "two conditions joined by |, and one by &; i // block is the block of i",
        "the last places of a block are those where j % block >= block - summary; the future is j "
        "> i",
    ),
    view=_as_mask,
    dtype=torch.bool,
    shrinks=False,
    tell=lambda mask, expected, block, summary: (
        "with block {} your rule {} place {} see place {}".format(
            block,
            "lets" if mask[tuple((mask != expected).nonzero()[0])] else "does not let",
            *(mask != expected).nonzero()[0].tolist(),
        )
    ),
    slips={
        "your rule looks ahead: the pattern is causal": (
            _rule(lambda own, end, causal, *rest: own | end)
        ),
        "your rule sees only its own block: the summaries are missing": (
            _rule(lambda own, end, causal, *rest: own & causal)
        ),
        "your rule sees only the summaries: the own block is missing": (
            _rule(lambda own, end, causal, *rest: end & causal)
        ),
        "both conditions at once are too much: own block OR summary": (
            _rule(lambda own, end, causal, *rest: own & end & causal)
        ),
        "the summaries stand at the end of a block, not at its beginning": _rule(
            lambda own, end, causal, i, j, block, summary: (own | (j % block < summary)) & causal
        ),
        "it is the key that must be a summary, not the query": _rule(
            lambda own, end, causal, i, j, block, summary: (
                (own | (i % block >= block - summary)) & causal
            )
        ),
        "the summaries look ahead: & binds more tightly than |, so put the | into brackets": (
            _rule(lambda own, end, causal, *rest: own & causal | end)
        ),
    },
)
def fixed(block, summary):
    return _rule(lambda own, end, causal, *rest: (own | end) & causal)(block, summary)


def _features(B=2, H=3, T=6, M=5, K=4):
    return torch.rand(B, H, T, M) + 0.1, torch.rand(B, H, T, M) + 0.1, torch.randn(B, H, T, K)


def _read(q, k, v):
    memory = (k[..., None] * v[..., None, :]).cumsum(-3)  # (B, H, T, M, K)
    return (q[..., None, :] @ memory)[..., 0, :]


@exercise(
    3,
    inputs=_features,
    vary=(dict(B=1, T=4, M=3), dict(H=2, T=5, M=4, K=4)),
    given=0x3552A473,
    wrong="the output differs from that of the recurrent network",
    shape="one output per query",
    gradients=True,
    slips={
        "the weights are still divided by the sum over all keys, also those in the future": (
            lambda q, k, v: _read(q, k, v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
        "nothing divides now: the weights of a row must sum to 1": _read,
        "now both sums run over all keys: the future leaks": (
            lambda q, k, v: q @ (k.mT @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
        "the divisor holds the own key alone; it is the sum up to it": (
            lambda q, k, v: _read(q, k, v) / (q * k).sum(-1, keepdim=True)
        ),
    },
)
def repaired_causal(q, k, v):
    read = _read(q, k, v)  # (B, H, T, K)
    total = k.cumsum(-2)  # (B, H, T, M)
    return read / (q * total).sum(-1, keepdim=True)


def _halves(B=2, T=5, S=8, K=3, shift=0.0, apart=0.0):
    scores, v = torch.randn(B, T, S), torch.randn(B, S, K)
    scores = scores + apart * torch.arange(B)[:, None, None]  # rows of a batch far from each other
    first = 3 * S // 4
    found = []
    for part, value in zip(
        scores.split([first, S - first], -1), v.split([first, S - first], -2), strict=True
    ):
        found += [part.softmax(-1) @ value, part.logsumexp(-1, keepdim=True) + shift]
    return found


def _overflowing(a, log_a, b, log_b):
    return (a * log_a.exp() + b * log_b.exp()) / (log_a.exp() + log_b.exp())


@exercise(
    4,
    inputs=_halves,
    vary=(dict(B=3, T=4, S=6, K=5), dict(shift=500.0), dict(T=3, shift=-500.0), dict(apart=300.0)),
    hint="shares of the two parts: a softmax over their log sums",
    wrong="the output differs from attention over all keys",
    shape="one output per query",
    gradients=True,
    tolerance=1e-4,
    slips={
        "you average the halves: the one with the larger scores must count more": (
            lambda a, log_a, b, log_b: (a + b) / 2
        ),
        "you add the halves: the shares must sum to 1": lambda a, log_a, b, log_b: a + b,
        "you weigh by the logarithms: take e to their power first": (
            lambda a, log_a, b, log_b: (a * log_a + b * log_b) / (log_a + log_b)
        ),
        "you gave each half the other's share": (
            lambda a, log_a, b, log_b: a * (log_b - log_a).sigmoid() + b * (log_a - log_b).sigmoid()
        ),
        "with log sums of 500 you get NaN: e to the power of 500 is infinite, so take the "
        "difference or the maximum first": _overflowing,
        "the shares are not divided by their sum": (
            lambda a, log_a, b, log_b: a * log_a.exp() + b * log_b.exp()
        ),
    },
)
def merge(a, log_a, b, log_b):
    share = (log_a - log_b).sigmoid()  # (B, T, 1)
    return share * a + (1 - share) * b


@judged(
    5,
    hint=(
        "keep the global token, and take away something else",
        "who hears the global token isn't the question: does it hear everybody?",
        "let all read place 0, and let place 0 read only itself, with few other links besides",
    ),
    example=sparse.causal(sparse.any_of(sparse.local(1), sparse.with_global(1))),
)
def overturned(answer):
    size = 32
    place = torch.arange(size)
    mask = answer(place[:, None], place[None, :])
    expect(isinstance(mask, torch.Tensor), "give back a rule: a function of i and j")
    mask = mask.expand(size, size)
    expect(mask.diagonal().all(), "every token must see itself")
    expect(
        mask[:, 0].all(),
        "the token at place 0 is not global any more: every other must see it",
    )
    count = sparse.layers_to_hear_all(mask[None, None])
    expect(count != 1, "one layer reaches everything: that is full attention; drop links, not add")
    expect(count != 2, "two layers still reach everything; what must the token at place 0 not do?")
