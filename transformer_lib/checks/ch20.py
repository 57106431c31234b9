"""Checks for chapter 20, decoder-only models."""

import math

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("20.1", hint="count row by row: how many tokens does each one read?")
def links_of(answer):
    for s, t in ((4, 4), (3, 5), (6, 1)):
        given = answer(s, t)
        expect(isinstance(given, (tuple, list)) and len(given) == 2, "return two numbers")
        causal, prefix = given
        n = s + t
        expect(causal is not ..., ...)
        where = f"for s = {s} and t = {t}"
        expect(causal != n * n, f"{where}: that is every pair; a token reads none after it")
        expect(
            causal != n * (n - 1) // 2,
            f"{where}: you count the links to earlier tokens; a token reads itself, too",
        )
        expect(causal == n * (n + 1) // 2, f"{where}: token i, counted from 1, reads i tokens")
        expect(prefix != causal, f"{where}: the prefix stream reads more: its source looks ahead")
        expect(
            prefix != s * s + t * (t + 1) // 2,
            f"{where}: the links from the target to the source are missing",
        )
        expect(
            prefix == causal + s * (s - 1) // 2,
            f"{where}: the causal links, and those from each source token to the later ones",
        )


@exercise("20.2", hint="two conditions joined by |: not later, or in the source")
def prefix_mask(answer):
    for n_source, size in ((3, 6), (1, 4), (5, 5)):
        given = answer(n_source, size)
        expect_shape(given, (size, size))
        expect(
            torch.as_tensor(given).dtype == torch.bool,
            "a mask is bool, True = may read: compare numbers instead of adding them",
        )
        place = torch.arange(size)
        i, j = place[:, None], place[None, :]
        causal = j <= i
        slips = {
            "that is the causal mask: the source may look ahead within itself": causal,
            "you turned it round: rows read, columns are read": (causal | (j < n_source)).T,
            "the first target token is no source: count places from 0": causal | (j <= n_source),
            "source rows now read the target, too: it is the column that must be in the source": (
                causal | (i < n_source)
            ),
            "True means may read; yours is the opposite": ~(causal | (j < n_source)),
        }
        right = causal | (j < n_source)
        for message, slip in slips.items():
            if not same(slip, right):
                expect(not same(given, slip), message)
        expect_close(given, right, "not later, or in the source")


@exercise("20.3", given=0xA02800E7)
def stream_of(answer):
    for source, target in (([5, 6, 2], [1, 7, 8, 9, 2]), ([4, 2], [1, 3, 2])):
        given = answer(list(source), list(target))
        expect(isinstance(given, (tuple, list)) and len(given) == 2, "return read and predicted")
        read, predicted = (list(row) for row in given)
        expect(read == source + target[:-1], "what is read was right: source + target[:-1]")
        expect(
            len(predicted) == len(read),
            f"{len(predicted)} predictions for {len(read)} places: each place needs one",
        )
        expect(
            predicted != [0] * (len(source) + 1) + target[2:],
            "nothing is asked at <bos>, so the first word of a translation is never learned",
        )
        expect(
            predicted != [0] * len(source) + target[:-1],
            "each place predicts the token that it reads; it should be the one after it",
        )
        expect(
            predicted != (source + target)[1:],
            "the source is to be predicted, too; here only the translation counts",
        )
        expect(
            predicted == [0] * len(source) + target[1:],
            "0 for each source token, then the target without <bos>",
        )


@exercise("20.4", hint="the total loss, in bits, by the bytes")
def bits_per_byte(answer):
    for loss, tokens, size in ((2.0, 300, 1000), (0.7, 50, 60)):
        given = float(answer(loss, tokens, size))
        total = loss * tokens
        slips = {
            "that is in nats: one bit is ln 2 nats, so divide by ln 2": total / size,
            "multiplying by ln 2 turns bits into nats: divide": total / size * math.log(2),
            "that is per token, whose number depends on the tokenizer": loss / math.log(2),
            "the tokens and the bytes have changed places": loss * size / tokens / math.log(2),
            "that is the perplexity per byte; the bits are its logarithm to base 2": math.exp(
                total / size
            ),
        }
        for message, slip in slips.items():
            expect(abs(given - slip) > 1e-6, message)
        expect_close(given, total / size / math.log(2), "total loss / ln 2 / bytes", 1e-6)


@exercise("20.5", hint="normalise once, use it twice")
def parallel_layer(answer):
    x, a, b = torch.randn(2, 3, 4), torch.randn(4, 4), torch.randn(4, 4)
    norm, attention, network = (
        lambda y: y / y.norm(dim=-1, keepdim=True),
        lambda y: (y @ a).cumsum(1),
        lambda y: (y @ b).relu(),
    )
    given = answer(x, norm, attention, network)
    expect_shape(given, (2, 3, 4))
    y = norm(x)
    between = x + attention(y)
    slips = {
        "the residual is missing: add x": attention(y) + network(y),
        "that is the usual layer, one after the other": between + network(norm(between)),
        "the network reads what attention has written; let it read norm(x)": between
        + network(norm(attention(y))),
        "the network reads attention's output; side by side both read norm(x)": x
        + network(attention(y)),
        "nothing is normalised": x + attention(x) + network(x),
        "the network reads x itself; both read norm(x)": between + network(x),
        "x is added twice": 2 * x + attention(y) + network(y),
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    expect_close(given, between + network(y), "x, and what both make of norm(x)")


@exercise("20.6", hint="make the tokens of the first model small and many")
def overturn(answer):
    given = answer()
    expect(isinstance(given, (tuple, list)) and len(given) == 4, "return the four numbers")
    expect(all(value is not ... for value in given), ...)
    loss, tokens, other_loss, other_tokens = map(float, given)
    expect(min(loss, other_loss) > 0, "a mean loss is above 0 unless the text is certain")
    expect(
        all(1 <= n <= 1000 for n in (tokens, other_tokens)),
        "1,000 bytes make 1 to 1,000 tokens, if a token has one byte at least",
    )
    expect(loss != other_loss, "the first needs the lower perplexity per token; yours are equal")
    expect(loss < other_loss, "the first needs the lower perplexity per token: a lower loss")
    expect(
        tokens > other_tokens,
        "with no more tokens and a lower loss for each, the first predicts the text better: let it "
        "have more",
    )
    expect(
        loss * tokens > other_loss * other_tokens,
        f"the first still predicts the text better, {loss * tokens:.0f} nats in all against "
        f"{other_loss * other_tokens:.0f}: more tokens, or losses nearer to each other",
    )
