"""Checks for chapter 20, decoder-only models."""

import math

import torch

from exercises.checks import exercise, expect, judged
from exercises.checks.masks import tell_pair
from exercises.wording import counted


def _links(s, t):
    causal = (s + t) * (s + t + 1) // 2
    return causal, causal + s * (s - 1) // 2


@exercise(
    1,
    inputs=[(4, 4), (3, 5), (6, 1), (1, 2)],
    hint=(
        "count row by row: how many tokens does each one read?",
        "causal: 1 + 2 + ... + (s + t); prefix: each of the s source tokens reads s, and the "
        "target's tokens as many as before",
    ),
    parts=("causal", "prefix"),
    tell=lambda given, expected, s, t: (
        f"for s = {s} and t = {t}: token i, counted from 1, reads i tokens"
        if given[0] != expected[0]
        else f"for s = {s} and t = {t}: the causal links, and those from each source token to the "
        "later ones"
    ),
    slips={
        "that is every pair; a token reads none of those after it": [
            lambda s, t: ((s + t) ** 2, _links(s, t)[1]), lambda s, t: ((s + t) ** 2, 0),
        ],
        "you count the links to earlier tokens; a token reads itself, too": [
            lambda s, t: ((s + t) * (s + t - 1) // 2, _links(s, t)[1]),
            lambda s, t: ((s + t) * (s + t - 1) // 2, 0),
            lambda s, t: tuple(links - s - t for links in _links(s, t)),
        ],
        "the prefix stream reads more: its source looks ahead": (
            lambda s, t: (_links(s, t)[0], _links(s, t)[0])
        ),
        "the links from the target to the source are missing": (
            lambda s, t: (_links(s, t)[0], s * s + t * (t + 1) // 2)
        ),
        "the two are swapped: first the causal stream": lambda s, t: _links(s, t)[::-1],
    },
)
def links_of(s, t):
    return _links(s, t)


def _places(size):
    place = torch.arange(size)
    return place[:, None], place[None, :]  # who reads, what is read


def _causal(size):
    reads, is_read = _places(size)
    return is_read <= reads


def _prefix(n_source, size):
    return _causal(size) | (_places(size)[1] < n_source)


@exercise(
    2,
    inputs=[(2, 3), (3, 6), (1, 4), (5, 5), (0, 3)],
    hint="you need two conditions joined by |: not later, or in the source",
    view=lambda mask, *args: torch.as_tensor(mask),
    dtype=torch.bool,
    tell=tell_pair,
    slips={
        "that is the causal mask: the source may look ahead within itself": (
            lambda n_source, size: _causal(size)
        ),
        "you have it the wrong way round: the rows do the reading, the columns are read": (
            lambda n_source, size: _prefix(n_source, size).T
        ),
        "the first target token isn't part of the source: count places from 0": (
            lambda n_source, size: _prefix(n_source + 1, size)
        ),
        "source rows now read the target, too: it's the column that must lie in the source": (
            lambda n_source, size: _causal(size) | (_places(size)[0] < n_source)
        ),
        "True means 'may read'; yours is the opposite": (
            lambda n_source, size: ~_prefix(n_source, size)
        ),
        "every token reads itself, too: allow every key that isn't later, not just earlier ones": (
            lambda n_source, size: _causal(size).tril(-1) | (_places(size)[1] < n_source)
        ),
    },
)
def prefix_mask(n_source, size):
    reads, is_read = _places(size)
    return (is_read <= reads) | (is_read < n_source)


@exercise(
    3,
    inputs=[([5, 6, 2], [1, 7, 8, 9, 2]), ([4, 2], [1, 3, 2]), ([2], [1, 2])],
    given=0xA02800E7,
    shrinks=False,  # a target begins with <bos>
    parts=("read", "predicted"),
    tell=lambda given, expected, source, target: (
        "what is read was right: source + target[:-1]"
        if list(given[0]) != expected[0]
        else f"{counted(len(given[1]), 'prediction')} for {counted(len(given[0]), 'place')}: each "
        "place needs one"
        if len(given[1]) != len(given[0])
        else "0 for each source token, then the target without <bos>"
    ),
    slips={
        "you predict nothing at <bos>, so the first word of a translation is never "
        "learned": (
            lambda source, target: (source + target[:-1], [0] * (len(source) + 1) + target[2:])
        ),
        "each place predicts the token that it reads; it should be the one after it": (
            lambda source, target: (source + target[:-1], [0] * len(source) + target[:-1])
        ),
        "you have the model predict the source, too; here only the translation counts": (
            lambda source, target: (source + target[:-1], (source + target)[1:])
        ),
        "the predictions begin one place too early: <bos> is given, not predicted": (
            lambda source, target: (source + target[:-1], [0] * (len(source) - 1) + target)
        ),
        "<eos> has to be predicted, too: the model must learn to stop": (
            lambda source, target: (source + target[:-1], [0] * len(source) + target[1:-1] + [0])
        ),
    },
    hint=(
        "which place is the first that has to predict a word of the translation? Compare read and "
        "predicted there",
    ),
)
def stream_of(source, target):
    return source + target[:-1], [0] * len(source) + target[1:]


@exercise(
    4,
    inputs=[(2.0, 300, 1000), (0.7, 50, 60), (3.1, 17, 17)],
    hint=(
        "take the total loss in bits, and divide it by the number of bytes",
        "nats become bits when you divide by the logarithm of 2; multiply by the tokens before you"
        " divide by the bytes",
    ),
    wrong="that is not the total loss / ln 2 / bytes",
    tolerance=1e-6,
    slips={
        "that is in nats: one bit is ln 2 nats, so divide by ln 2": (
            lambda loss, tokens, size: loss * tokens / size
        ),
        "multiplying by ln 2 turns bits into nats: you need to divide": (
            lambda loss, tokens, size: loss * tokens / size * math.log(2)
        ),
        "that is per token, and how many tokens there are depends on the tokenizer": (
            lambda loss, tokens, size: loss / math.log(2)
        ),
        "the tokens and the bytes are swapped": (
            lambda loss, tokens, size: loss * size / tokens / math.log(2)
        ),
        "that is the perplexity per byte; the bits are its logarithm to base 2": (
            lambda loss, tokens, size: math.exp(loss * tokens / size)
        ),
        "that is the total; divide it by the bytes": (
            lambda loss, tokens, size: loss * tokens / math.log(2)
        ),
        "n_bytes counts bytes already: don't divide by 8": (
            lambda loss, tokens, size: loss * tokens / math.log(2) / size / 8
        ),
        "the loss is a logarithm already: divide it by ln 2, don't take its logarithm": (
            lambda loss, tokens, size: math.log2(loss) * tokens / size
        ),
    },
)
def bits_per_byte(loss, n_tokens, n_bytes):
    return loss * n_tokens / math.log(2) / n_bytes


def _side_by_side(B=2, T=3, D=4):
    a, b = torch.randn(D, D), torch.randn(D, D)
    return (
        torch.randn(B, T, D),
        lambda y: y / y.norm(dim=-1, keepdim=True),
        lambda y: (y @ a).cumsum(1),
        lambda y: (y @ b).relu(),
    )


@exercise(
    5,
    inputs=_side_by_side,
    vary=(dict(B=3, T=5, D=6), dict(B=1, T=4, D=3)),
    hint="normalise once, and use the result twice",
    wrong="the result is not x plus both outputs for norm(x)",
    gradients=True,
    slips={
        "the residual is missing: add x": (
            lambda x, norm, attention, network: attention(norm(x)) + network(norm(x))
        ),
        "that is the usual layer, one after the other": (
            lambda x, norm, attention, network: (
                x + attention(norm(x)) + network(norm(x + attention(norm(x))))
            )
        ),
        "the network reads what attention has written; let it read norm(x)": (
            lambda x, norm, attention, network: (
                x + attention(norm(x)) + network(norm(attention(norm(x))))
            )
        ),
        "the network reads attention's output; side by side, both read norm(x)": [
            lambda x, norm, attention, network: x + network(attention(norm(x))),
            lambda x, norm, attention, network: (
                x + attention(norm(x)) + network(attention(norm(x)))
            ),
        ],
        "nothing is normalised": (
            lambda x, norm, attention, network: x + attention(x) + network(x)
        ),
        "the network reads x itself; both read norm(x)": (
            lambda x, norm, attention, network: x + attention(norm(x)) + network(x)
        ),
        "attention reads x itself; both read norm(x)": (
            lambda x, norm, attention, network: x + attention(x) + network(norm(x))
        ),
        "x is added twice": (
            lambda x, norm, attention, network: 2 * x + attention(norm(x)) + network(norm(x))
        ),
        "what is added on top is x, not norm(x)": (
            lambda x, norm, attention, network: norm(x) + attention(norm(x)) + network(norm(x))
        ),
        "add both outputs for norm(x); you add their mean": (
            lambda x, norm, attention, network: x + (attention(norm(x)) + network(norm(x))) / 2
        ),
        "that is post-norm: the norm comes first, and x is added without it": (
            lambda x, norm, attention, network: norm(x + attention(x) + network(x))
        ),
    },
)
def parallel_layer(x, norm, attention, network):
    y = norm(x)
    attended, digested = attention(y), network(y)
    return x + attended + digested


@judged(
    6,
    hint=(
        "let the first model have many small tokens",
        "perplexity per token is exp(loss); per byte it's exp(loss * tokens / 1000)",
        "say, 500 tokens at a loss of 1 against 100 tokens at a loss you choose",
    ),
    example=lambda: (1.5, 1000, 4.0, 250),
)
def overturn(answer):
    given = answer()
    expect(isinstance(given, (tuple, list)) and len(given) == 4, "return the four numbers")
    expect(all(value is not ... for value in given), ...)
    loss, tokens, other_loss, other_tokens = map(float, given)
    expect(
        min(loss, other_loss) > 0,
        "a mean loss is above 0, unless the model is certain of every token",
    )
    expect(
        all(1 <= n <= 1000 for n in (tokens, other_tokens)),
        "1,000 bytes make 1 to 1,000 tokens, if a token has at least one byte",
    )
    expect(tokens == int(tokens) and other_tokens == int(other_tokens), "tokens are whole numbers")
    for mean, n in ((loss, tokens), (other_loss, other_tokens)):
        guessed = 1000 / n * math.log(256)  # nats for a token whose bytes are guessed
        expect(
            mean < 2 * guessed,
            f"a mean loss of {mean:.4g} nats for a token of {1000 / n:.3g} bytes? Guessing its "
            f"bytes costs {guessed:.3g}. Give losses, not perplexities, in the order loss, tokens, "
            "loss, tokens",
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
        f"{other_loss * other_tokens:.0f}: give it more tokens, or bring the losses closer",
    )
