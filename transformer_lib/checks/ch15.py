"""Checks for chapter 15, decoding."""

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("15.1", hint="without a cache, step t computes t positions")
def positions(without_cache, with_cache):
    expect(
        without_cache != 50 * 50,
        "50 x 50 would be right if every step saw all 50 tokens; step t sees only t",
    )
    expect(without_cache != 50, "50 are new, but without a cache the old ones are computed again")
    expect_close(without_cache, 1275, "without a cache it is 1 + 2 + ... + 50", tolerance=0)
    expect(
        with_cache != 1275,
        "with a cache the earlier tokens are read, not computed again",
    )
    expect_close(with_cache, 50, "with a cache each step computes one position", tolerance=0)


@exercise("15.2", hint="find the k-th largest logit of each row, hide what is below")
def top_k(answer):
    logits = torch.randn(4, 9)
    given = logits.clone()
    result = answer(given, 3)
    expect_shape(result, (4, 9), "logits go in and logits of the same shape come out")
    expect(torch.equal(given, logits), "you changed the logits that you were given; use a copy")
    keep = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.topk(3).indices, True)
    shares = torch.as_tensor(result).softmax(-1)
    expect(
        not (torch.as_tensor(result)[~keep] == 0).all(),
        "you set the others to 0, but a logit of 0 still has a probability, e^0 over the sum; "
        "use -inf",
    )
    lowest = torch.zeros_like(keep).scatter(-1, logits.topk(3, largest=False).indices, True)
    expect(not (shares[lowest] > 0).all(), "you kept the smallest logits, not the largest")
    left = (shares > 0).sum(-1)
    expect(
        (left == 3).all(),
        f"with k = 3 your rows keep {left.tolist()} tokens; each row needs its own k-th value",
    )
    expect_close(
        shares, logits.masked_fill(~keep, -torch.inf).softmax(-1), "the kept logits have changed"
    )


@exercise("15.3", hint="multiply along each path, and at each step keep the best n prefixes")
def pencil(answer):
    expect_shape(answer, (3,), "one probability for each of the beam sizes 1, 2 and 3")
    one, two, three = (float(x) for x in answer)
    expect(one != 0.25, "beam size 1 is greedy: it takes A and never looks back")
    expect_close(one, 0.20, "beam size 1 takes A, then x or y: multiply", tolerance=1e-3)
    expect(two != 0.25, "C x is the best of all, but beam size 2 has dropped C after step one")
    expect(two != 0.20, "beam size 2 keeps A and B, and B x is better than A x")
    expect_close(two, 0.21, "beam size 2 keeps A and B, then takes the best of four", 1e-3)
    expect_close(three, 0.25, "beam size 3 keeps A, B and C, so it sees every sentence", 1e-3)


@exercise("15.4", given=0x9ACC4F64)
def nucleus(answer):
    sure = torch.tensor([[0.6, 0.3, 0.1]])
    result = torch.as_tensor(answer(sure, 0.5))
    expect(
        not result.isnan().any(),
        "the first token alone is over p, so you drop every token and divide 0 by 0; the most "
        "probable token must always stay",
    )
    expect_close(
        result, [[1.0, 0.0, 0.0]], "for [0.6, 0.3, 0.1] and p = 0.5 the first is enough", 1e-4
    )
    result = torch.as_tensor(answer(torch.tensor([[0.1, 0.4, 0.3, 0.2]]), 0.6))
    expect(
        not same(result, [[4 / 7, 3 / 7, 0, 0]], 1e-4),
        "your probabilities are in sorted order; put each back in the place of its token",
    )
    expect(
        result[0, 2] > 0,
        "the token that crosses p belongs to the nucleus: 0.4 alone does not reach 0.6",
    )
    expect_close(result.sum(-1), [1.0], "the kept probabilities must sum to 1", 1e-4)
    expect_close(
        result, [[0, 4 / 7, 3 / 7, 0]], "for [0.1, 0.4, 0.3, 0.2] and p = 0.6, keep two", 1e-4
    )
    expect_close(
        answer(torch.tensor([[0.5, 0.25, 0.25]]), 0.5),
        [[1.0, 0.0, 0.0]],
        "for [0.5, 0.25, 0.25] the first token reaches p = 0.5, and is enough",
        1e-4,
    )
    rows = torch.randn(5, 12).softmax(-1)
    ranked, order = rows.sort(-1, descending=True)
    kept = ranked.masked_fill(ranked.cumsum(-1) - ranked >= 0.7, 0)
    kept = torch.zeros_like(rows).scatter(-1, order, kept)
    expect_close(answer(rows, 0.7), kept / kept.sum(-1, keepdim=True), "on random rows it differs")


@exercise("15.5", hint="one key and one value per token and layer")
def cache_bytes(answer):
    numbers = 3 * 16 * 5 * 7
    given = answer(3, 16, 4, 5, 7, 8)
    expect(given != numbers * 2, "you count numbers; each takes `bytes_per_number` bytes")
    expect(given != numbers * 2 * 8 * 4, "the heads share d_model among them: do not multiply")
    expect(given != numbers * 8, "that is the keys alone; the values need as much")
    expect(given != numbers * 3 * 8, "queries are not kept: only keys and values")
    expect_close(given, numbers * 2 * 8, "for 3 layers of 16, 5 x 7 tokens, 8 bytes: wrong", 0)
    twice = answer(3, 16, 8, 5, 7, 8)
    expect_close(twice, numbers * 2 * 8, "the number of heads must not matter", 0)
    half = answer(3, 16, 4, 5, 1, 4)
    expect_close(half, numbers // 7 * 2 * 4, "for one token of 4 bytes a number: wrong", 0)
