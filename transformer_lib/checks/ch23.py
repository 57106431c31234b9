"""Checks for the chapter Cheaper attention."""

import torch

from transformer_lib.beyond import sparse
from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("23.1", hint="three whole numbers")
def by_hand(links, scores, layers):
    expect(links != 10, "10 is one side only, and the token itself is missing")
    expect(links != 20, "the token sees itself, too")
    expect_close(links, 21, "count the near places to the left, the token, and to the right")
    expect(
        scores != 2121,
        "21 for each of 101 tokens is too many: a window ends where the text ends, and the first "
        "and the last ten tokens see fewer",
    )
    expect_close(scores, 2011, "take 21 for each token, less what falls off at both ends")
    expect(layers != 5, "news walks 10 places a layer, not 21: a token hears one side at a time")
    expect(layers != 11, "from place 0 to place 100 there are 100 steps, not 101 or more")
    expect_close(layers, 10, "how often do 10 places fit between the first token and the last?")


@exercise("23.2", hint="two conditions joined by |, and one by &; i // block is the block of i")
def fixed(answer):
    for block, summary, size in ((4, 1, 16), (8, 2, 32), (5, 3, 20)):
        place = torch.arange(size)
        i, j = place[:, None], place[None, :]
        mask = answer(block, summary)(i, j)
        expect(isinstance(mask, torch.Tensor), "your rule must return a tensor of booleans")
        mask = mask.expand(size, size)
        own, end = i // block == j // block, j % block >= block - summary
        slips = {
            "your rule looks ahead: the pattern is causal": own | end,
            "your rule sees only its own block: the summaries are missing": own & (j <= i),
            "your rule sees only the summaries: the own block is missing": end & (j <= i),
            "both conditions at once are too much: own block OR summary": own & end & (j <= i),
            "the summaries stand at the end of a block, not at its beginning": (
                (own | (j % block < summary)) & (j <= i)
            ),
            "it is the key that must be a summary, not the query": (
                (own | (i % block >= block - summary)) & (j <= i)
            ),
        }
        expected = (own | end) & (j <= i)
        for message, slip in slips.items():
            expect(torch.equal(slip, expected) or not torch.equal(mask, slip), message)
        wrong = (mask != expected).nonzero().tolist()
        if wrong:
            a, b = wrong[0]
            may = "lets" if mask[a, b] else "does not let"
            expect(False, f"with block {block} your rule {may} place {a} see place {b}")


def _features():
    return torch.rand(2, 3, 6, 5) + 0.1, torch.rand(2, 3, 6, 5) + 0.1, torch.randn(2, 3, 6, 4)


@exercise("23.3", given=0x3552A473)
def repaired_causal(answer):
    q, k, v = _features()
    memory = (k[..., None] * v[..., None, :]).cumsum(-3)  # (B, H, T, M, K)
    read = (q[..., None, :] @ memory)[..., 0, :]
    expected = read / (q * k.cumsum(-2)).sum(-1, keepdim=True)
    output = answer(q, k, v)
    expect_shape(output, v.shape, "one output per query")
    slips = {
        "the weights are still divided by the sum over all keys, also those in the future": (
            read / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
        "nothing divides now: the weights of a row must sum to 1": read,
        "now both sums run over all keys: the future leaks": (
            q @ (k.mT @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expect_close(output, expected, "the output differs from that of the recurrent network")


@exercise("23.4", hint="shares of the two parts: a softmax over their log sums")
def merge(answer):
    scores, v = torch.randn(2, 5, 8), torch.randn(2, 8, 3)
    halves = [
        (part.softmax(-1) @ values, part.logsumexp(-1, keepdim=True))
        for part, values in zip(scores.split([6, 2], -1), v.split([6, 2], -2), strict=True)
    ]
    (a, log_a), (b, log_b) = halves
    output = answer(a, log_a, b, log_b)
    expect_shape(output, a.shape, "one output per query")
    slips = {
        "you average the halves: the one with the larger scores must count more": (a + b) / 2,
        "you add the halves: the shares must sum to 1": a + b,
        "you weigh by the logarithms: take e to their power first": (
            (a * log_a + b * log_b) / (log_a + log_b)
        ),
        "you gave each half the other's share": (
            a * (log_b - log_a).sigmoid() + b * (log_a - log_b).sigmoid()
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expect_close(output, scores.softmax(-1) @ v, "the output differs from attention over all keys")
    huge = answer(a, log_a + 500, b, log_b + 500)
    expect(
        not bool(torch.isnan(torch.as_tensor(huge)).any()),
        "with log sums of 500 you get NaN: e to the power of 500 is infinite, so take the "
        "difference or the maximum first",
    )
    expect_close(huge, output, "a number added to both log sums must not change anything")


@exercise("23.5", hint="keep the global token, and take away something else")
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
    expect_close(
        mask[0].sum(), 1, "in an autoregressive model place 0 sees nothing but itself", tolerance=0
    )
