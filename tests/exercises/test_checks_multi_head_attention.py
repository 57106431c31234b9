"""Every check of chapter 04 accepts the right answer and names what is wrong with others."""

import pytest
import torch.nn.functional as F

from exercises.checks import multi_head_attention as ch

SIZES = {"parameters": 4 * (512**2 + 512), "queries": (2, 8, 10, 64), "weights": (2, 8, 10, 10)}


def split(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join(heads):
    return heads.transpose(1, 2).flatten(2)


def contributions(heads, w_o):
    return heads @ w_o.T.unflatten(0, (heads.size(1), -1))


def whole_output(heads, w_o):
    return F.linear(join(heads), w_o)[:, None].expand(-1, heads.size(1), -1, -1)


def multi_query(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, None], v[:, None])


def wrong_axis(q, k, v):
    return (q @ k[:, None].mT / 2).softmax(-2) @ v[:, None]


def averaged(q, k, v):
    return multi_query(q, k, v).mean(1, keepdim=True).expand_as(q)


def batch_as_heads(q, k, v):
    if q.size(0) != q.size(1):
        return multi_query(q, k, v)
    return F.scaled_dot_product_attention(q, k, v)  # (B, S, K) broadcasts as (1, H, S, K)


OVERTURNED = {"heads": 2, "reader": "network", "steps": 1000, "without_relu": 0.8}
def by_transposes(w_k, w_o, a, a_inverse):
    return (a_inverse @ w_k.T).T, (w_o.T @ a_inverse.T).T


CASES = [
    (ch.sizes, (SIZES,), True, "Right"),
    (ch.sizes, ({"parameters": ..., "queries": ..., "weights": ...},), None, "Not attempted"),
    (ch.sizes, (SIZES | {"parameters": 8 * 4 * (512**2 + 512)},), False, "do not mean more"),
    (ch.split, (split,), True, "Right"),
    (ch.split, (lambda x, n: ...,), None, "Not attempted"),
    (ch.join, (join,), True, "Right"),
    (ch.join, (lambda heads: ...,), None, "Not attempted"),
    (ch.contributions, (contributions,), True, "Right"),
    (ch.contributions, (lambda h, w: ...,), None, "Not attempted"),
    (ch.contributions, (whole_output,), False, "whole output"),
    (ch.multi_query, (multi_query,), True, "Right"),
    (ch.multi_query, (lambda q, k, v: ...,), None, "Not attempted"),
    (ch.multi_query, (wrong_axis,), False, "over the queries"),
    (ch.multi_query, (averaged,), False, "averaged over the heads"),
    (ch.multi_query, (batch_as_heads,), False, "other sentences"),
    (ch.fewer_heads, (OVERTURNED,), True, "Without the ReLU, the seeds get"),
    (ch.fewer_heads, (dict.fromkeys(OVERTURNED, ...),), None, "Not attempted"),
    (ch.fewer_heads, (OVERTURNED | {"steps": 500},), False, "94% to 97%"),
    (ch.fewer_heads, (OVERTURNED | {"heads": 1},), False, "95 %"),
    (ch.fewer_heads, (OVERTURNED | {"heads": 4, "steps": 250},), False, "four heads"),
    (ch.fewer_heads, (OVERTURNED | {"heads": 3},), False, "are 1, 2, 4"),
    (ch.fewer_heads, (OVERTURNED | {"without_relu": 1.0},), False, "one linear map"),
    (ch.fewer_heads, (OVERTURNED | {"without_relu": 0.34},), False, "one linear map"),
    (ch.fewer_heads, (OVERTURNED | {"without_relu": 80},), False, "between 0 and 1"),
    (ch.fewer_heads, (OVERTURNED | {"without_relu": "less"},), False, "between 0 and 1"),
    (ch.fewer_heads, ({"heads": 2, "steps": 1000},), False, "give a dictionary"),
    (ch.fewer_heads, (2,), False, "give a dictionary"),
    (ch.other_coordinates, (by_transposes,), True, "Right"),
    (ch.other_coordinates, (lambda w_k, w_o, a, b: (..., ...),), None, "Not attempted"),
    (
        ch.other_coordinates,
        (lambda w_k, w_o, a, b: (w_k @ b.mT, 2 * b @ w_o),),
        False,
        "`w_o` is the first that differs",
    ),
    (ch.other_coordinates, (lambda w_k, w_o, a, b: w_k @ b.mT,), False, "return two values"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
