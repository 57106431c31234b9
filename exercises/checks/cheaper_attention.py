"""Checks for the chapter Cheaper attention."""

import functools

import torch

from exercises.checks import Part, exercise, expect, judged, values
from transformer_lib.beyond import sparse

by_hand = values(
    1,
    "by_hand",
    hint=(
        "the answer is three whole numbers",
        "the token in the middle sees itself and 10 tokens on each side",
        "for all the scores, take 101 rows of full width and subtract what is missing at each "
        "end, 10 + 9 + ... + 1. Information travels 10 places per layer",
    ),
    links=Part(
        21,
        "count the places in reach on the left, the token itself, and those on the right",
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
        "how many times do 10 places fit between the first token and the last?",
        {
            "information travels 10 places a layer, not 21: it comes from one side at a time": 5,
            "from place 0 to place 100 there are 100 steps, not 101 or more": 11,
        },
    ),
)


def _as_mask(rule, block, summary):
    """A rule of i and j as a mask of four blocks."""
    place = torch.arange(4 * block)
    mask = rule(place[:, None], place[None, :])
    expect(
        isinstance(mask, torch.Tensor),
        "your rule must return a tensor of booleans: True where a query may see a key",
    )
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
    inputs=[(4, 1), (2, 1), (8, 2), (5, 3)],
    hint=(
        "you need two conditions joined by |, and a third added with &; i // block is the block "
        "that i is in",
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
        "your rule looks ahead, but this pattern is causal": (
            _rule(lambda own, end, causal, *rest: own | end)
        ),
        "your rule sees only its own block: the summaries are missing": (
            _rule(lambda own, end, causal, *rest: own & causal)
        ),
        "one place too few: the last `summary` places begin at block - summary itself": _rule(
            lambda own, end, causal, i, j, block, summary: (
                (own | (j % block > block - summary)) & causal
            )
        ),
        "a query sees its own block, not a window: everything before the block is hidden, however "
        "near it is": _rule(
            lambda own, end, causal, i, j, block, summary: ((i - j < block) | end) & causal
        ),
        "your rule sees only the summaries: the query's own block is missing": (
            _rule(lambda own, end, causal, *rest: end & causal)
        ),
        "you require both conditions at once; one is enough: own block OR summary": (
            _rule(lambda own, end, causal, *rest: own & end & causal)
        ),
        "the summaries are at the end of a block, not at its beginning": _rule(
            lambda own, end, causal, i, j, block, summary: (own | (j % block < summary)) & causal
        ),
        "it is the key that must be a summary, not the query": _rule(
            lambda own, end, causal, i, j, block, summary: (
                (own | (i % block >= block - summary)) & causal
            )
        ),
        "your summaries look ahead: & binds more tightly than |, so put brackets around the |": (
            _rule(lambda own, end, causal, *rest: own & causal | end)
        ),
        "one place too many: only the last `summary` places of a block are summaries": _rule(
            lambda own, end, causal, i, j, block, summary: (
                (own | (j % block >= block - summary - 1)) & causal
            )
        ),
        "the summaries are causal, but within its own block a query can still see the future": (
            _rule(lambda own, end, causal, *rest: own | end & causal)
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
        "the weights are still divided by the sum over all keys, including those in the future": (
            lambda q, k, v: _read(q, k, v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
        "nothing is divided now: the weights of a row must sum to 1": _read,
        "now both sums run over all keys: the future leaks": (
            lambda q, k, v: q @ (k.mT @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
        "a query sees its own key, too: the sums run up to it and include it": (
            lambda q, k, v: (q @ k.mT).tril(-1) @ v
            / (q @ k.mT).tril(-1).sum(-1, keepdim=True).clamp(min=1e-6)
        ),
        "divide by the sum of the weights, not by their number": (
            lambda q, k, v: _read(q, k, v) / torch.arange(1, q.size(-2) + 1)[:, None]
        ),
        "the sum over the places is axis -2; yours runs over the features": (
            lambda q, k, v: _read(q, k, v) / (q * k.cumsum(-1)).sum(-1, keepdim=True)
        ),
        "your divisor contains only the token's own key; it should be the sum of all keys up to "
        "it": (
            lambda q, k, v: _read(q, k, v) / (q * k).sum(-1, keepdim=True)
        ),
        "a token reads itself, too: its own key and value are missing from the memory": (
            lambda q, k, v: (
                _read(q, k, v) - (q * k).sum(-1, keepdim=True) * v
            ) / (q * k.cumsum(-2)).sum(-1, keepdim=True)
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
    hint="you need the shares of the two parts: take a softmax over their log sums",
    wrong="the output differs from attention over all keys",
    shape="one output per query",
    gradients=True,
    tolerance=1e-4,
    slips={
        "you average the halves: the one with the larger scores must count more": (
            lambda a, log_a, b, log_b: (a + b) / 2
        ),
        "you add the halves: the shares must sum to 1": lambda a, log_a, b, log_b: a + b,
        "you use the logarithms as weights: exponentiate them first": (
            lambda a, log_a, b, log_b: (a * log_a + b * log_b) / (log_a + log_b)
        ),
        "you gave each half the share that belongs to the other": (
            lambda a, log_a, b, log_b: a * (log_b - log_a).sigmoid() + b * (log_a - log_b).sigmoid()
        ),
        "with log sums of 500 you get NaN: e to the power of 500 is infinite, so take the "
        "difference or the maximum first": _overflowing,
        "each half must be multiplied by its own e^log before the division": (
            lambda a, log_a, b, log_b: (a + b) / (
                (log_a - torch.maximum(log_a, log_b)).exp()
                + (log_b - torch.maximum(log_a, log_b)).exp()
            )
        ),
        "the softmax runs over the two halves, separately for each query, not over the queries": (
            lambda a, log_a, b, log_b: (
                torch.cat([log_a, log_b], -1).softmax(1)[..., :1] * a
                + torch.cat([log_a, log_b], -1).softmax(1)[..., 1:] * b
            )
        ),
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
        "keep the global token, and take something else away",
        "don't ask who reads the global token; ask whether it reads everybody",
        "let every token read place 0, let place 0 read only itself, and add just a few other "
        "links",
    ),
    example=sparse.causal(sparse.any_of(sparse.local(1), sparse.with_global(1))),
)
def overturned(answer):
    size = 32
    place = torch.arange(size)
    mask = answer(place[:, None], place[None, :])
    expect(isinstance(mask, torch.Tensor), "return a rule: a function of i and j")
    mask = mask.expand(size, size)
    expect(mask.diagonal().all(), "every token must see itself")
    expect(
        mask[:, 0].all(),
        "the token at place 0 is not global any more: every other must see it",
    )
    count = sparse.layers_to_hear_all(mask[None, None])
    expect(
        count != 1,
        "one layer already reaches everything, so that's full attention: take links away",
    )
    expect(
        count != 2,
        "two layers still reach everything; what must the token at place 0 be kept from doing?",
    )


def _texts(B=2, T=5, S=7, K=4, V=3, tile=3, sharp=1.0, apart=0.0, rising=0.0):
    k = torch.randn(B, S, K) + rising * torch.arange(S)[:, None] / S
    q = sharp * torch.randn(B, T, K) + apart * torch.arange(B)[:, None, None]
    return q, k, torch.randn(B, S, V), tile


TEXTS = (
    dict(B=1, T=3, S=8, tile=2, V=5),
    dict(T=4, S=4, K=9, tile=9),
    dict(sharp=200.0, S=9, tile=2),
    dict(B=3, T=2, S=6, tile=1, apart=40.0, rising=6.0),
)
LONG = dict(B=2, T=512, S=512, K=8, V=8, tile=16)
TILES = LONG["B"] * LONG["T"] * LONG["tile"]  # numbers in one tile of scores


def _no_table(make):
    """The law that the table of scores is never held, on the arguments of make(**LONG)."""

    def law(answer):
        from exercises.checks.held import holds  # not in the page, which cannot watch tensors

        whole, tile = LONG["B"] * LONG["T"] * LONG["S"], LONG["tile"]
        sizes = f"The whole table of scores has {whole:,}; one tile of {tile} keys has {TILES:,}"
        holds(
            answer,
            make(**LONG),
            (TILES, f"{sizes}, and that's the most you may hold in one tensor"),
            (16 * TILES, f"{sizes}: add each tile to what you have, then let it go"),
        )

    return law


def _tiled(
    scale=lambda K: K**-0.5,
    shift=True,
    old_sum="corrected",
    old_output="corrected",
    last=True,
    divide=True,
    log_sum=lambda total, largest: total.log() + largest,
):
    """Attention in tiles from its steps, each of which may be done wrong."""

    def attention(q, k, v, tile):
        B, T, K = q.shape
        largest = q.new_full((B, T, 1), -torch.inf)
        total, summed = q.new_zeros(B, T, 1), q.new_zeros(B, T, v.size(-1))
        stop = k.size(1) if last else max(k.size(1) // tile, 1) * tile
        for at in range(0, stop, tile):
            scores = q @ k[:, at : at + tile].mT * scale(K)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            new = new if shift else torch.zeros_like(new)
            weights, correction = (scores - new).exp(), (largest - new).exp()
            if at and not shift:
                correction = torch.ones_like(new)
            total = total * (correction if old_sum == "corrected" else 1)
            summed = summed * (correction if old_output == "corrected" else 1)
            total = total + weights.sum(-1, keepdim=True)
            summed, largest = summed + weights @ v[:, at : at + tile], new
        return summed / total if divide else summed, log_sum(total, largest)

    return attention


def _mean_of_tiles(q, k, v, tile):
    scores = [q @ part.mT / q.size(-1) ** 0.5 for part in k.split(tile, 1)]
    parts = [s.softmax(-1) @ x for s, x in zip(scores, v.split(tile, 1), strict=True)]
    return sum(parts) / len(parts), torch.cat(scores, -1).logsumexp(-1, keepdim=True)


@exercise(
    7,
    inputs=_texts,
    vary=TEXTS,
    hint=(
        "exercise 4 merges two halves; here the first half is what you have, the second the next "
        "tile",
        "keep three things for each query: the largest score so far, the sum of e^(score - "
        "largest), and the same sum with the values",
        "when a tile raises the largest score, multiply both sums by e^(old largest - new largest)",
    ),
    parts=("output", "log_sum"),
    wrong="the numbers differ from those of attention over all keys",
    tolerance=1e-4,
    forbid=("scaled_dot_product_attention",),
    laws=_no_table(_texts),
    slips={
        "each of your tiles has a softmax of its own, so every tile counts the same; the one with "
        "the larger scores must count more": _mean_of_tiles,
        "a tile that raises the largest score must shrink both sums so far; yours stay as they "
        "were": _tiled(old_sum="kept", old_output="kept"),
        "you shrink the sum of the weights, but not the sum with the values: both were taken with "
        "the old largest score": _tiled(old_output="kept"),
        "you shrink the sum with the values, but not the sum of the weights: both were taken with "
        "the old largest score": _tiled(old_sum="kept"),
        "nothing is subtracted before e^: with large scores that is infinite, and infinity over "
        "infinity is NaN": _tiled(shift=False),
        "the scores are not divided by sqrt(K)": _tiled(scale=lambda K: 1),
        "you divide the scores by K; the divisor is its square root": _tiled(scale=lambda K: 1 / K),
        "the keys after the last full tile are missing: the last tile may be shorter": (
            _tiled(last=False)
        ),
        "the output is not divided by the sum of the weights yet": _tiled(divide=False),
        "`log_sum` lacks the largest score, which you subtracted before e^": (
            _tiled(log_sum=lambda total, largest: total.log())
        ),
        "`log_sum` is the logarithm of the sum; you return the sum itself": (
            _tiled(log_sum=lambda total, largest: total * largest.exp())
        ),
        "`log_sum` is your sum and the largest score, added: take the logarithm of the sum first": (
            _tiled(log_sum=lambda total, largest: total + largest)
        ),
    },
)
def tiled(q, k, v, tile):
    return _tiled()(q, k, v, tile)


@functools.wraps(_texts)
def _backward_texts(**sizes):
    q, k, v, tile = _texts(**sizes)
    output, log_sum = _tiled()(q, k, v, tile)
    return q, k, v, output, log_sum, torch.randn_like(output), tile


def _gradients(
    weights=lambda scores, log_sum: (scores - log_sum).exp(),
    inner=lambda weights, d_weights, output, d_output: (output * d_output).sum(-1, keepdim=True),
    scale=lambda K: K**-0.5,
    to_q=True,
    to_k=True,
    of_softmax=lambda weights, d: weights * d,
    last=True,
    adds=True,
):
    """The backward pass in tiles from its steps, each of which may be done wrong."""

    def backward(q, k, v, output, log_sum, d_output, tile):
        root, d_q = q.size(-1) ** -0.5, torch.zeros_like(q)
        d_k, d_v = torch.zeros_like(k), torch.zeros_like(v)
        stop = k.size(1) if last else max(k.size(1) // tile, 1) * tile
        for at in range(0, stop, tile):
            near = slice(at, at + tile)
            p = weights(q @ k[:, near].mT * root, log_sum)
            d_p = d_output @ v[:, near].mT
            d_scores = of_softmax(p, d_p - inner(p, d_p, output, d_output))
            d_q = d_q * adds + d_scores @ k[:, near] * (root if to_q else 1)
            d_k[:, near] = d_scores.mT @ q * (root if to_k else 1)
            d_v[:, near] = p.mT @ d_output
        return d_q, d_k, d_v

    return backward


@exercise(
    8,
    inputs=_backward_texts,
    vary=TEXTS,
    hint=(
        "`log_sum` gives a tile's weights at once: e^(scores - log_sum), with no second pass",
        "with p the weights: d_v = pᵀ d_output, and d_p = d_output vᵀ; a softmax gives d_scores = "
        "p · (d_p - the sum of p · d_p over all keys)",
        "that sum runs over all keys, yet no table is needed: it is the sum of output · d_output "
        "over the numbers of a query",
    ),
    parts=("d_q", "d_k", "d_v"),
    wrong="the gradients differ from those of attention over all keys",
    tolerance=1e-4,
    forbid=("backward", "grad", "scaled_dot_product_attention"),
    shrinks="sizes",  # `output` and `log_sum` belong to q, k and v
    laws=_no_table(_backward_texts),
    slips={
        "your weights are a softmax over the tile only; e^(scores - log_sum) are the shares "
        "among all keys": _gradients(weights=lambda scores, log_sum: scores.softmax(-1)),
        "your weights are e^scores, not divided by their sum: subtract `log_sum` first": (
            _gradients(weights=lambda scores, log_sum: scores.exp())
        ),
        "the softmax is missing in `d_scores`: subtract the sum of p · d_p, then multiply by p": (
            _gradients(inner=lambda *_: 0, of_softmax=lambda weights, d: d)
        ),
        "`d_scores` is p · d_p: the shares of a row sum to 1, so raising one score lowers the "
        "others. Subtract the sum of p · d_p": _gradients(inner=lambda *_: 0),
        "the sum of p · d_p runs over the keys of the tile only; over all of them, it is the sum "
        "of output · d_output": _gradients(
            inner=lambda weights, d_weights, *_: (weights * d_weights).sum(-1, keepdim=True)
        ),
        "you subtract the sum of output · d_output, but don't multiply by p": (
            _gradients(of_softmax=lambda weights, d: d)
        ),
        "the division by sqrt(K) is in the scores, so it is in `d_q` and `d_k`, too": (
            _gradients(to_q=False, to_k=False)
        ),
        "`d_q` contains only the last tile's part: add up what each tile contributes": (
            _gradients(adds=False)
        ),
        "`d_k` lacks the division by sqrt(K)": _gradients(to_k=False),
        "`d_q` lacks the division by sqrt(K)": _gradients(to_q=False),
        "the keys after the last full tile get no gradient: the last tile may be shorter": (
            _gradients(last=False)
        ),
    },
)
def tiled_backward(q, k, v, output, log_sum, d_output, tile):
    return _gradients()(q, k, v, output, log_sum, d_output, tile)
