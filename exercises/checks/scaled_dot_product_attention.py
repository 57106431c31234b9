"""Checks for chapter 02, scaled dot-product attention."""

import math

import torch

from exercises.checks import (
    Part,
    exercise,
    expect,
    expect_close,
    expect_shape,
    judged,
    same,
    values,
)


def _attend_equal_keys():
    """Weights of a random query over four copies of a random key."""
    scores = torch.randn(5) @ torch.randn(5).expand(4, 5).T
    return {"weights": [round(weight, 3) for weight in scores.softmax(-1).tolist()]}


equal_keys = values(
    1,
    "equal_keys",
    measure=_attend_equal_keys,
    hint=(
        "give a list of four numbers",
        "equal keys have equal scores with any query",
        "so you need the softmax of four equal numbers",
    ),
    weights=Part(
        [0.25] * 4,
        "equal keys give equal scores for every query, so no key can get more than another",
        {
            "there are four keys, so there are four weights": lambda given: len(given) != 4,
            "the attention weights of a query sum to 1": lambda given: abs(sum(given) - 1) > 1e-3,
        },
        tolerance=1e-3,
    ),
)


def _qkv(B=2, T=5, S=5, K=8, V=8):
    # As many queries as keys first, so that a softmax over the wrong axis can be told apart.
    return torch.randn(B, T, K), torch.randn(B, S, K), torch.randn(B, S, V)


def _from_scores(how):
    return lambda q, k, v: how(q @ k.mT, math.sqrt(q.size(-1))) @ v


SLIPS = {
    "you forgot to divide the scores by sqrt(d_k)": _from_scores(lambda s, root: s.softmax(-1)),
    "you divided by d_k; the divisor is its square root": (
        _from_scores(lambda s, root: (s / root**2).softmax(-1))
    ),
    "you multiplied by sqrt(d_k); divide": _from_scores(lambda s, root: (s * root).softmax(-1)),
    "you divided after the softmax, so the rows no longer sum to 1; divide the scores before it": (
        _from_scores(lambda s, root: s.softmax(-1) / root)
    ),
    "your softmax runs over the queries; it must run over the keys, dim=-1": (
        _from_scores(lambda s, root: (s / root).softmax(-2))
    ),
    "you averaged without the softmax: the scores themselves are not shares": (
        _from_scores(lambda s, root: s / root)
    ),
    "you never averaged the values: what you return is the weights": (
        lambda q, k, v: (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    ),
    "d_k is the width of whatever comes in, not a fixed number: read it from q": [
        lambda q, k, v, root=root: ((q @ k.mT) / root).softmax(-1) @ v for root in (8.0, 8.0**0.5)
    ],
    "you hide later keys from a query, but this exercise has no mask": _from_scores(
        lambda s, root: (
            (s / root).masked_fill(torch.ones_like(s).triu(1) > 0, -math.inf).softmax(-1)
        )
    ),
    "you divide the scores by their sum; the softmax exponentiates them first": (
        _from_scores(lambda s, root: s / s.sum(-1, keepdim=True))
    ),
    "each row of weights is divided by its own sum; you divide by one sum for all of them": [
        _from_scores(lambda s, root: (s / root).exp() / (s / root).exp().sum()),
        _from_scores(lambda s, root: (s / root).exp() / (s / root).exp().sum((1, 2), keepdim=True)),
    ],
    "you divide twice, before the softmax and after it: only the scores need it": (
        _from_scores(lambda s, root: (s / root).softmax(-1) / root)
    ),
    "you multiply after the softmax; divide the scores, before it": (
        _from_scores(lambda s, root: s.softmax(-1) * root)
    ),
    "d_k is the width of q and k; you use that of v": (
        lambda q, k, v: (q @ k.mT / math.sqrt(v.size(-1))).softmax(-1) @ v
    ),
    "your softmax runs over the batch; it must run over the keys, dim=-1": (
        _from_scores(lambda s, root: (s / root).softmax(0))
    ),
    "queries and keys are swapped: row i of the scores belongs to query i": (
        lambda q, k, v: (k @ q.mT / math.sqrt(q.size(-1))).softmax(-1) @ v
    ),
    "the divisor is the root of d_k, the last axis of q, not of the number of keys": (
        lambda q, k, v: (q @ k.mT / math.sqrt(k.size(-2))).softmax(-1) @ v
    ),
}
WRONG = "the output is not that of scaled dot-product attention"


@exercise(
    2, inputs=_qkv, vary=(dict(T=4, S=7, K=6, V=3), dict(B=3, T=6, S=2, K=5, V=4)),
    slips=SLIPS, hint="compute the scores, scale them, take the softmax, and form the weighted "
                      "sum", wrong=WRONG, gradients=True,
    forbid=("scaled_dot_product_attention", "multi_head_attention_forward"),
    shape="one output per query",
)
def attention(q, k, v):
    scores = q @ k.mT  # (B, T, S)
    scaled = scores / math.sqrt(q.size(-1))
    weights = scaled.softmax(-1)
    return weights @ v


@exercise(
    3, inputs=_qkv, vary=(dict(T=4, S=7, K=6, V=3),), slips=SLIPS, given=0xA69B2E63,
    wrong=WRONG, gradients=True, shape="one output per query",
)
def repaired_attention(q, k, v):
    scores = q @ k.mT  # (B, T, S)
    scaled = scores / math.sqrt(q.size(-1))
    weights = scaled.softmax(-1)
    return weights @ v


@judged(
    4,
    hint=(
        "divide the scores by the temperature, then take the softmax",
        "take scores / temperature, then a softmax over the last axis; a higher temperature "
        "flattens the weights",
        "find it by bisection: at 1 the first weight is 0.67, and at 3 it's below 0.5",
    ),
    example=(lambda scores, t: (scores / t).softmax(-1), 2.0780869),
)
def temperature(weights_at, tau):
    for scores in (torch.tensor([2.0, 1.0, 0.0]), torch.randn(2, 5)):
        for t in (2.0, 0.5):
            given = weights_at(scores, t)
            expect(
                not same(given, (scores * t).softmax(-1), 1e-4),
                "you multiply by the temperature; divide, so that a higher one flattens the "
                "weights",
            )
            expect(
                not same(given, scores.softmax(-1) / t, 1e-4),
                "divide the scores, not the weights: your weights no longer sum to 1",
            )
            expect(
                scores.dim() < 2 or not same(given, (scores / t).softmax(0), 1e-4),
                "your softmax runs over the first axis; it must run over the keys, dim=-1",
            )
            together = (scores / t).flatten().softmax(0).view(scores.shape)
            expect(
                scores.dim() < 2 or not same(given, together, 1e-4),
                "the weights of each row should sum to 1; yours sum to 1 over all the rows "
                "together",
            )
            expect_close(
                given, (scores / t).softmax(-1), f"at temperature {t}, the weights aren't right"
            )
    first = float((torch.tensor([2.0, 1.0, 0.0]) / tau).softmax(-1)[0])
    hint = "lower" if first < 0.5 else "raise"
    expect(
        abs(first - 0.5) < 0.005,
        f"at your temperature the first key gets {first:.3f}, not 0.50: {hint} it",
    )


def _qkvg(B=2, T=5, S=5, K=8, V=8):
    return *_qkv(B, T, S, K, V), torch.randn(B, T, V)


def _backward(
    total=True, shared=True, scaled=True, weighted=True, swapped=False, over=-1, turned=True,
    own=False, plain=False, read=True,
):
    """The three gradients with one thing done in another way."""

    def backward(q, k, v, g):
        root = math.sqrt(q.size(-1))
        weights = (q @ k.mT / root).softmax(-1)  # (B, T, S)
        to_weights = g @ v.mT  # (B, T, S)
        mean = (weights * to_weights).sum(over, keepdim=True) if total else 0.0
        mean = weights * to_weights if own else mean
        mean = to_weights.mean(-1, keepdim=True) if plain else mean
        to_scores = (to_weights - mean) * (weights if weighted else 1.0)
        to_scores = to_scores / (root if scaled else 1.0)
        shares = weights if shared else weights.softmax(-1)
        to_v = (shares.mT if read else shares) @ g
        to_q, to_k = to_scores @ k, (to_scores.mT if turned else to_scores) @ q
        return (to_k, to_q, to_v) if swapped else (to_q, to_k, to_v)

    return backward


@exercise(
    5, inputs=_qkvg, vary=(dict(T=4, S=7, K=6, V=3), dict(B=3, T=6, S=2, K=5, V=4)),
    hint="go backwards: from g to the weights and to v, then through the softmax to q and k",
    parts=("to_q", "to_k", "to_v"), tolerance=1e-4,
    wrong="the gradients are not those of autograd",
    forbid=("backward", "grad", "vjp", "_softmax_backward_data"),
    slips={
        "a row of a softmax always sums to 1: from each weight's gradient, subtract the mean "
        "of the row's gradients, weighted by the weights": _backward(total=False),
        "the scores were divided by sqrt(d_k), so their gradient is, too": _backward(scaled=False),
        "a weight near 0 hardly moves: its score's gradient is multiplied by the weight": (
            _backward(weighted=False)
        ),
        "you have swapped the gradients of q and k": _backward(swapped=True),
        "v was averaged with the weights as they are, so don't take a second "
        "softmax": _backward(shared=False),
        "the sum in a softmax's gradient runs over the row, the keys of one query": (
            _backward(over=-2)
        ),
        "a key is read by all queries, so its gradient adds up a column: transpose the "
        "gradient of the scores": (
            _backward(turned=False)
        ),
        "w (1 - w) is what a score does to its own weight; it changes the others of its row, too": (
            _backward(own=True)
        ),
        "the row's mean is weighted by the weights; yours counts every key alike": (
            _backward(plain=True)
        ),
        "a value is read by all queries, so its gradient adds up a column: transpose the weights": (
            _backward(read=False)
        ),
    },
)
def attention_backward(q, k, v, g):
    root = math.sqrt(q.size(-1))
    weights = (q @ k.mT / root).softmax(-1)  # (B, T, S)
    to_weights = g @ v.mT  # (B, T, S)
    mean = (weights * to_weights).sum(-1, keepdim=True)  # (B, T, 1)
    to_scores = weights * (to_weights - mean) / root
    return to_scores @ k, to_scores.mT @ q, weights.mT @ g


def _alike(n, d_k):
    numbers = torch.randn(n, 1)
    return numbers.expand(n, d_k), torch.randn(n, 1).expand(n, d_k)


@judged(7, hint=(
        "besides their variance, the chapter's queries had another property",
        "over the rows, each feature can have mean 0 and variance 1 even if all the features of a "
        "row agree",
        "draw one sign for a row and use it for every feature: what is q @ k then?",
    ),
        example=_alike)
def drawn(draw):
    spreads = []
    for d_k in (16, 256):
        given = draw(4000, d_k)
        expect(isinstance(given, (tuple, list)) and len(given) == 2, "return queries and keys")
        for name, x in zip(("queries", "keys"), given, strict=True):
            x = torch.as_tensor(x).float()
            expect_shape(x, (4000, d_k), f"{name} should be one row of d_k numbers for each pair")
            mean, spread = x.mean(0), x.std(0)  # (d_k,) each
            expect(
                bool((mean.abs() < 0.15).all()),
                f"one of the {name}' features has the mean {mean.abs().max():.2f}; the sentence "
                "is about numbers of mean 0",
            )
            expect(
                bool(((spread - 1).abs() < 0.15).all()),
                f"one of the {name}' features has the variance "
                f"{float(spread[(spread - 1).abs().argmax()] ** 2):.2f}; the sentence is about "
                "numbers of variance 1",
            )
        q, k = (torch.as_tensor(x).float() for x in given)
        spreads.append(float(((q * k).sum(-1) / math.sqrt(d_k)).std()))
    expect(
        spreads[1] > 3,
        f"at d_k = 16 and 256 your scaled scores have standard deviations of {spreads[0]:.2f} and "
        f"{spreads[1]:.2f}: the sentence still holds",
    )
    expect(
        spreads[1] > 2 * spreads[0],
        f"your scores are large, but they do not grow with d_k: {spreads[0]:.2f} at 16 and "
        f"{spreads[1]:.2f} at 256",
    )
