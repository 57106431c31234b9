"""Checks for chapter 04, multi-head attention."""

import torch

from exercises.checks import Part, exercise, expect, judged, values
from exercises.checks.recorded import expect_share, outcomes
from transformer_lib.attention import MultiHeadAttention

D = 512


def _measure_sizes():
    """The library's layer on a batch of these sizes."""
    layer, x = MultiHeadAttention(D, 8), torch.zeros(2, 10, D)
    weights = layer(x, x, x, need_weights=True)[1]
    return {
        "parameters": sum(p.numel() for p in layer.parameters()),
        "queries": tuple(layer.split_heads(layer.w_q(x)).shape),
        "weights": tuple(weights.shape),
    }


sizes = values(
    1,
    "sizes",
    measure=_measure_sizes,
    hint=(
        "give a number and two shapes, for example (2, 10, 512)",
        "four maps, each 512 * 512 + 512 numbers",
        "queries are (batch, heads, tokens, width of a head), weights (batch, heads, tokens, "
        "tokens)",
    ),
    packed="names",
    parameters=Part(
        4 * (D * D + D),
        "the parameters are those of four matrices with their biases",
        {
            "your parameters lack the four biases of d_model numbers each": 4 * D * D,
            "W_Q, W_K and W_V are not all there is: the heads are mixed by a fourth matrix, W_O": (
                [3 * D * D, 3 * D * D + 3 * D]
            ),
            "each head owns only a slice of 64 rows of each matrix, so more heads do not mean "
            "more parameters": [8 * 4 * D * D, 8 * (4 * D * D + 4 * D)],
        },
    ),
    queries=Part(
        (2, 8, 10, 64),
        "the split queries have the shape (B, H, T, d_k)",
        {
            "the head axis comes before the tokens, so that each head is a batch of its own": (
                (2, 10, 8, 64)
            )
        },
    ),
    weights=Part(
        (2, 8, 10, 10),
        "the weights have the shape (B, H, T, T)",
        {
            "every head has its own weights, one for each pair of query and key": (
                [(2, 10, 10), (2, 8, 10, 64)]
            )
        },
    ),
)


@exercise(
    2,
    inputs=lambda B=2, T=5, H=3, K=4: (torch.randn(B, T, H * K), H),
    vary=(dict(B=3, T=3, H=2, K=6), dict(T=4, H=4, K=4), dict(B=1, T=2, H=1, K=5)),
    hint="split the last axis in two, then move the axis of the heads in front of the tokens",
    wrong="the slices aren't where they should be",
    shape="the shape should be (B, H, T, K)",
    gradients=True,
    slips={
        "your tokens still come before the heads: transpose these two axes": (
            lambda x, n_heads: x.unflatten(-1, (n_heads, -1))
        ),
        "a reshape straight to (B, H, T, K) cuts through the tokens: your head 0 holds whole "
        "tokens instead of a slice of every token": (
            lambda x, n_heads: x.reshape(x.size(0), n_heads, x.size(1), -1)
        ),
        "each head takes neighbouring features: split the last axis as (H, K), not (K, H)": (
            lambda x, n_heads: x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)
        ),
        "tokens and features of a head are swapped: the last axis is K": (
            lambda x, n_heads: x.unflatten(-1, (n_heads, -1)).permute(0, 2, 3, 1)
        ),
    },
)
def split(x, n_heads):
    cut = x.unflatten(-1, (n_heads, -1))  # (B, T, D) -> (B, T, H, K)
    return cut.transpose(1, 2)


@exercise(
    3,
    inputs=lambda B=2, H=3, T=5, K=4: (torch.randn(B, H, T, K),),
    vary=(dict(B=3, H=2, T=2, K=6), dict(B=1, H=4, T=4, K=4)),
    given=0x6DF76997,
    wrong="joining does not undo the split",
    shape="the shape should be (B, T, D)",
    gradients=True,
    slips={
        "your output of token 0 holds several tokens of head 0: move the heads behind the tokens, "
        "then flatten": lambda heads: heads.reshape(heads.size(0), heads.size(2), -1),
        "your heads are interleaved; each head's slice must stay together, heads before features": (
            lambda heads: heads.permute(0, 2, 3, 1).flatten(2)
        ),
        "the heads come back in reverse order": lambda heads: _join(heads.flip(1)),
    },
)
def join(heads):
    moved = heads.transpose(1, 2)  # (B, H, T, K) -> (B, T, H, K)
    return moved.flatten(2)


def _join(heads):
    return heads.transpose(1, 2).flatten(2)


def _heads(B=2, H=3, T=5, K=4):
    return torch.randn(B, H, T, K), torch.randn(H * K, H * K)


def _whole(heads, w_o):
    return (_join(heads) @ w_o.T)[:, None].expand(-1, heads.size(1), -1, -1)


@exercise(
    4,
    inputs=_heads,
    vary=(dict(B=3, H=2, T=4, K=5), dict(B=1, H=4, T=4, K=4)),
    hint="cut w_o into blocks of K columns, one for each head",
    wrong="these aren't the separate contributions of the heads",
    shape="return one vector of D numbers for each head and token",
    gradients=True,
    tolerance=1e-4,
    slips={
        "a Linear stores its weight as (outputs, inputs): a head owns columns of w_o, not rows": (
            lambda heads, w_o: heads @ w_o.unflatten(0, (heads.size(1), -1))
        ),
        "each of your heads holds the whole output: give each only its own block of w_o": _whole,
        "your parts have the right sum, but they aren't each head's own": (
            lambda heads, w_o: _whole(heads, w_o) / heads.size(1)
        ),
        "that is the output of the layer: leave the sum over the heads out": (
            lambda heads, w_o: _join(heads) @ w_o.T
        ),
        "each head owns neighbouring columns of w_o; yours are interleaved": (
            lambda heads, w_o: torch.einsum(
                "bhtk,dkh->bhtd", heads, w_o.unflatten(1, (-1, heads.size(1)))
            )
        ),
        "you give every head the first head's columns of w_o": (
            lambda heads, w_o: heads @ w_o[:, : heads.size(-1)].T
        ),
    },
)
def contributions(heads, w_o):
    blocks = w_o.T.unflatten(0, (heads.size(1), -1))  # (H * K, D) -> (H, K, D)
    return heads @ blocks


def _shared(B=2, H=3, T=5, S=5, K=4):
    return torch.randn(B, H, T, K), torch.randn(B, S, K), torch.randn(B, S, K)


def _scores(q, k):
    return q @ k[:, None].mT


def _root(q):
    return q.size(-1) ** 0.5


@exercise(
    5,
    inputs=_shared,
    # As many sentences as heads: broadcasting over the wrong axis would pass unnoticed otherwise.
    vary=(dict(B=3, H=3, T=4, S=6), dict(B=1, H=2, T=3, S=7, K=9), dict(B=1, H=1, T=3, S=2)),
    hint="give k and v a head axis of size 1, and let broadcasting do the rest",
    wrong="the output differs from attention with the keys and values copied",
    shape="return one output for each head and query",
    gradients=True,
    slips={
        "you forgot to divide the scores by sqrt(d_k)": (
            lambda q, k, v: _scores(q, k).softmax(-1) @ v[:, None]
        ),
        "you divided by the wrong size: d_k is the last axis of q": (
            lambda q, k, v: (
                (_scores(q, k) / (q.size(1) * q.size(-1)) ** 0.5).softmax(-1) @ v[:, None]
            )
        ),
        "your softmax runs over the queries; it must run over the keys, dim=-1": (
            lambda q, k, v: (_scores(q, k) / _root(q)).softmax(-2) @ v[:, None]
        ),
        "you averaged over the heads: each head keeps its own output": (
            lambda q, k, v: (
                ((_scores(q, k) / _root(q)).softmax(-1) @ v[:, None])
                .mean(1, keepdim=True)
                .expand_as(q)
            )
        ),
        "with as many sentences as heads, your heads read the keys of other sentences: the new "
        "axis belongs after the batch, k[:, None]": (
            lambda q, k, v: (
                (q @ k.mT / _root(q)).softmax(-1) @ v
                if q.size(0) == q.size(1) or q.size(0) == 1
                else multi_query.reference(q, k, v)
            )
        ),
        "your softmax runs over the heads; it must run over the keys, dim=-1": (
            lambda q, k, v: (_scores(q, k) / _root(q)).softmax(1) @ v[:, None]
        ),
    },
)
def multi_query(q, k, v):
    keys, values = k[:, None], v[:, None]  # (B, 1, S, K)
    scores = q @ keys.mT  # (B, H, T, S)
    scaled = scores / q.size(-1) ** 0.5
    weights = scaled.softmax(-1)
    return weights @ values


NEAR = 0.1  # of the mean over the seeds: a prediction this close is right


@judged(
    7,
    hint=(
        "look at the network's panel, after the most steps",
        "at the end of training, how well do one head and two heads do if the network reads "
        "them?",
        "then predict what remains when the ReLU is gone: can two linear maps do more than one?",
    ),
    example={"heads": 2, "reader": "network", "steps": 1000, "without_relu": 0.8},
)
def fewer_heads(setting):
    names = ("heads", "reader", "steps", "without_relu")
    expect(
        isinstance(setting, dict) and set(setting) == set(names),
        'give a dictionary with "heads", "reader", "steps" and "without_relu"',
    )
    square = {name: setting[name] for name in names[:3]}
    right = outcomes("questions", "circle", "right", **square)
    expect(setting["heads"] < 4, "to refute the claim, you need fewer than four heads")
    expect(
        min(right) >= 0.95,
        f"there the seeds get {min(right):.0%} to {max(right):.0%}; each must get 95 % or more",
    )
    share = setting["without_relu"]
    expect_share(share)
    found = outcomes("questions", "circle", "right", **square | {"reader": "network without ReLU"})
    expect(
        abs(share - sum(found) / len(found)) <= NEAR,
        f"the square is right, but the prediction {share:.0%} is not within 10 points: with "
        "nothing between them, two linear maps in a row are one linear map. Where does the figure "
        "show it?",
    )
    return f"Without the ReLU, the seeds get {min(found):.0%} to {max(found):.0%}."


def _other_coordinates(D=6, K=3):
    """w_k, w_o, an invertible matrix of whole numbers, and its inverse."""
    a, inverse = torch.eye(K), torch.eye(K)
    for i in range(K):
        for j in (i - 1, i - 2):
            if j % K == i:
                continue
            times = float(torch.randint(1, 3, ()))
            a[i] += times * a[j % K]  # a step to the left of a, undone to the right of inverse
            inverse[:, j % K] -= times * inverse[:, i]
    return torch.randn(D, K), torch.randn(K, D), a, inverse


def _keys(w_k, a, inverse):
    return w_k @ inverse.mT


def _values(w_o, a, inverse):
    return inverse @ w_o


def _rewritten(keys=_keys, output=_values):
    return lambda w_k, w_o, a, inverse: (keys(w_k, a, inverse), output(w_o, a, inverse))


@exercise(
    8,
    inputs=_other_coordinates,
    vary=(dict(D=4, K=4), dict(D=8, K=2)),
    parts=("w_k", "w_o"),
    hint=(
        "write the scores with the new w_q and the unknown w_k: which product must not change?",
        "scores are q @ k.mT = x @ w_q @ w_k.mT @ x.mT; so w_q @ a @ new_k.mT must be "
        "w_q @ w_k.mT. The output contains w_v @ w_o",
        "a @ new_k.mT = w_k.mT gives new_k.mT = inverse @ w_k.mT: now transpose both sides. For "
        "w_o there's nothing to transpose",
    ),
    wrong="that's no longer the same head",
    tolerance=1e-4,
    shrinks="sizes",
    slips={
        "the scores contain the keys transposed, so w_k takes the inverse transposed": [
            _rewritten(keys=lambda w, a, inverse: w @ inverse),
            _rewritten(lambda w, a, inverse: w @ inverse, lambda w, a, inverse: inverse.mT @ w),
        ],
        "with the same change on both sides the scores contain a @ a.mT; w_k must undo it": [
            _rewritten(keys=lambda w, a, inverse: w @ a),
            _rewritten(lambda w, a, inverse: w @ a, lambda w, a, inverse: a @ w),
        ],
        "a transposed undoes a only if a is a rotation; any invertible a takes its inverse": [
            _rewritten(keys=lambda w, a, inverse: w @ a.mT),
            _rewritten(output=lambda w, a, inverse: a.mT @ w),
            _rewritten(lambda w, a, inverse: w @ a.mT, lambda w, a, inverse: a.mT @ w),
            _rewritten(lambda w, a, inverse: w @ a, lambda w, a, inverse: a.mT @ w),
        ],
        "w_k must change, too: the scores contain w_q @ w_k.mT": [
            _rewritten(keys=lambda w, a, inverse: w),
            _rewritten(lambda w, a, inverse: w, lambda w, a, inverse: w),
        ],
        "w_k is right; w_o must change, too, because the values have changed": (
            _rewritten(output=lambda w, a, inverse: w)
        ),
        "w_k is right; w_o follows w_v as it is, so the inverse isn't transposed": (
            _rewritten(output=lambda w, a, inverse: inverse.mT @ w)
        ),
        "w_k is right; w_o must undo a, and yours applies it a second time": (
            _rewritten(output=lambda w, a, inverse: a @ w)
        ),
    },
)
def other_coordinates(w_k, w_o, a, a_inverse):
    return w_k @ a_inverse.mT, a_inverse @ w_o
