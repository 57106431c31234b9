"""Checks for chapter 04, multi-head attention."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import NotAttempted, exercise, expect, expect_close, expect_shape, same


@exercise("04.1", hint="give a number and two shapes, for example (2, 10, 512)")
def sizes(answer):
    if any(answer.get(key, ...) is ... for key in ("parameters", "queries", "weights")):
        raise NotAttempted
    d = 512
    given = answer["parameters"]
    expect(given != 4 * d * d, "your parameters lack the four biases of d_model numbers each")
    expect(
        given not in (3 * d * d, 3 * d * d + 3 * d),
        "W_Q, W_K and W_V are not all: the heads are mixed by a fourth matrix, W_O",
    )
    expect(
        given not in (8 * 4 * d * d, 8 * (4 * d * d + 4 * d)),
        "each head owns only a slice of 64 rows of each matrix, so heads do not multiply the "
        "parameters",
    )
    expect(given == 4 * (d * d + d), f"parameters: {given} is not four matrices with their biases")
    queries, weights = tuple(answer["queries"]), tuple(answer["weights"])
    expect(
        queries != (2, 10, 8, 64),
        "the head axis stands before the tokens, so that each head is a batch of its own",
    )
    expect(queries == (2, 8, 10, 64), f"the split queries have shape (B, H, T, d_k), not {queries}")
    expect(
        weights not in ((2, 10, 10), (2, 8, 10, 64)),
        "every head has its own weights, one for each pair of query and key",
    )
    expect(weights == (2, 8, 10, 10), f"the weights have shape (B, H, T, T), not {weights}")


def _sample():
    return torch.arange(2 * 5 * 12, dtype=torch.float32).view(2, 5, 12)  # (B, T, D), all different


@exercise("04.2", hint="split the last axis in two, then move the head axis in front of the tokens")
def split(answer):
    x = _sample()
    B, T, D = x.shape
    right = x.view(B, T, 3, 4).transpose(1, 2)
    given = answer(x, 3)
    expect(
        tuple(given.shape) != (B, T, 3, 4),
        "your tokens still stand before the heads: transpose these two axes",
    )
    expect_shape(given, (B, 3, T, 4), "expected (B, H, T, K)")
    expect(
        not same(given, x.reshape(B, 3, T, 4)),
        "a reshape straight to (B, H, T, K) cuts through the tokens: your head 0 holds whole "
        "tokens instead of a slice of every token",
    )
    expect(
        not same(given, x.view(B, T, 4, 3).permute(0, 3, 1, 2)),
        "each head takes neighbouring features: split the last axis as (H, K), not (K, H)",
    )
    expect_close(given, right, "the slices are not where they should be")
    expect_close(
        answer(x, 2), x.view(B, T, 2, 6).transpose(1, 2), "with 2 heads the result is not right"
    )


@exercise("04.3", given=0x6DF76997)
def join(answer):
    x = _sample()
    heads = x.view(2, 5, 3, 4).transpose(1, 2)  # (B, H, T, K)
    given = answer(heads)
    expect_shape(given, (2, 5, 12), "expected (B, T, D)")
    expect(
        not same(given, heads.reshape(2, 5, 12)),
        "your output of token 0 holds several tokens of head 0: move the heads behind the tokens "
        "before you flatten",
    )
    expect(
        not same(given, heads.permute(0, 2, 3, 1).flatten(2)),
        "your heads are interleaved; each head's slice must stay together, heads before features",
    )
    expect_close(given, x, "joining does not undo the split")


@exercise("04.4", hint="cut w_o into one block of K columns for each head")
def contributions(answer):
    heads, w_o = torch.randn(2, 3, 5, 4), torch.randn(12, 12)
    given = answer(heads, w_o)
    expect_shape(given, (2, 3, 5, 12), "expected one vector of D numbers per head and token")
    blocks = w_o.T.unflatten(0, (3, 4))  # (H, K, D)
    rows = w_o.unflatten(0, (3, 4))  # (H, K, D) of the matrix that was not transposed
    expect(
        not same(given, heads @ rows, 1e-4),
        "a Linear stores its weight as (outputs, inputs): a head owns columns of w_o, not rows",
    )
    mixed = F.linear(heads.transpose(1, 2).flatten(2), w_o)  # (B, T, D)
    expect(
        not same(given.sum(1), 3 * mixed, 1e-3),
        "each of your heads holds the whole output: give each only its own block of w_o",
    )
    expect_close(given.sum(1), mixed, "the contributions do not add up to the output", 1e-4)
    expect_close(given, heads @ blocks, "they add up, but are not each head's own", 1e-4)


@exercise("04.5", hint="give k and v a head axis of size 1, and let broadcasting do the rest")
def multi_query(answer):
    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 6, 4), torch.randn(2, 6, 4)
    given = answer(q, k, v)
    expect_shape(given, (2, 3, 5, 4), "expected one output per head and query")
    keys, values = k[:, None].expand(2, 3, 6, 4), v[:, None].expand(2, 3, 6, 4)
    right = F.scaled_dot_product_attention(q, keys, values)
    scores = q @ keys.mT
    slips = {
        "you forgot to divide the scores by sqrt(d_k)": scores.softmax(-1) @ values,
        "you divided by the wrong size: d_k is the last axis of q": (scores / 12**0.5).softmax(-1)
        @ values,
        "your softmax runs over the queries; it must run over the keys, dim=-1": (
            (scores / 2).softmax(-2) @ values
        ),
        "you averaged the heads: each head keeps its own output": right.mean(
            1, keepdim=True
        ).expand_as(right),
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    expect_close(given, right, "the output differs from attention with the keys and values copied")
    # As many sentences as heads: broadcasting over the wrong axis would pass unnoticed above.
    q, k, v = torch.randn(3, 3, 5, 4), torch.randn(3, 6, 4), torch.randn(3, 6, 4)
    right = F.scaled_dot_product_attention(q, k[:, None], v[:, None])
    expect_close(
        answer(q, k, v),
        right,
        "with as many sentences as heads your heads read the keys of other sentences: the new "
        "axis belongs after the batch, k[:, None]",
    )
