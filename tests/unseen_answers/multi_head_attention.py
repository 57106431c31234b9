"""Answers to the exercises of chapter 04, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: sizes
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 4 * 512 * 512, "queries": (2, 8, 10, 64), "weights": (2, 8, 10, 10)}
""",
        right=False,
        mistake="forgets the biases",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 3 * (512 * 512 + 512), "queries": (2, 8, 10, 64), "weights": (2, 8, 10, 10)}
""",
        right=False,
        mistake="forgets the output map",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 1_050_624, "queries": (2, 10, 8, 64), "weights": (2, 8, 10, 10)}
""",
        right=False,
        mistake="the axes of tokens and heads before the transpose",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 1_050_624, "queries": (2, 8, 10, 64), "weights": (2, 10, 10)}
""",
        right=False,
        mistake="the weights of all heads in one table",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 1_050_624, "queries": (2, 8, 10, 512), "weights": (2, 8, 10, 10)}
""",
        right=False,
        mistake="every head keeps the full width",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
answer = {"parameters": 4 * (512 * 512 + 8), "queries": (2, 8, 10, 64), "weights": (2, 8, 10, 10)}
""",
        right=False,
        mistake="a bias for each head's map and not for each of its numbers",
    ),
    Answer(
        exercise="multi_head_attention.1",
        check="sizes",
        code="""
import torch

from transformer_lib.attention import MultiHeadAttention

layer = MultiHeadAttention(512, 8)
x = torch.randn(2, 10, 512)
answer = {
    "parameters": sum(p.numel() for p in layer.parameters()),
    "queries": list(layer.split_heads(layer.w_q(x)).shape),
    "weights": list(layer(x, x, x, need_weights=True)[1].shape),
}
""",
        right=True,
        mistake="read off the library's layer, shapes as lists",
    ),
    # Exercise 2: split
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    B, T, D = x.shape
    return x.reshape(B, n_heads, T, D // n_heads)


answer = split
""",
        right=False,
        mistake="reshapes straight away, so heads get other tokens",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, n_heads, D // n_heads)


answer = split
""",
        right=False,
        mistake="forgets to put the heads before the tokens",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)


answer = split
""",
        right=False,
        mistake="each head gets every H-th feature and not a slice",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).transpose(1, 2)


answer = split
""",
        right=False,
        mistake="the number of heads serves as the size of a head",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, n_heads, -1).transpose(1, 2).flip(1)


answer = split
""",
        right=False,
        mistake="the heads come back in the opposite order",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    T, D = x.shape[1:]
    return x[0].view(T, n_heads, D // n_heads).transpose(0, 1).unsqueeze(0)


answer = split
""",
        right=False,
        mistake="keeps the first sentence alone",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
def split(x, n_heads):
    B, T, D = x.shape
    return x.view(B, T, n_heads, D / n_heads).transpose(1, 2)


answer = split
""",
        right=False,
        mistake="the division makes a float, which view refuses",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
import torch


def split(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


answer = split
""",
        right=True,
        mistake="a stack of chunks",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
import torch


def split(x, n_heads):
    size = x.size(-1) // n_heads
    return torch.cat([x[:, None, :, h * size : (h + 1) * size] for h in range(n_heads)], dim=1)


answer = split
""",
        right=True,
        mistake="slices in a comprehension",
    ),
    Answer(
        exercise="multi_head_attention.2",
        check="split",
        code="""
import torch


def split(x, n_heads):
    B, T, D = x.shape
    K = D // n_heads
    b, h, t, k = torch.meshgrid(*map(torch.arange, (B, n_heads, T, K)), indexing="ij")
    return torch.take(x, (b * T + t) * D + h * K + k)


answer = split
""",
        right=True,
        mistake="an index for every number, then one gather by take",
    ),
    # Exercise 3: join
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
def join(heads):
    B, H, T, K = heads.shape
    return heads.permute(0, 2, 3, 1).reshape(B, T, H * K)


answer = join
""",
        right=False,
        mistake="moves the heads behind the features, so they interleave",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
def join(heads):
    B, H, T, K = heads.shape
    return heads.transpose(1, 2).view(B, T, H * K)


answer = join
""",
        right=False,
        mistake="view refuses a transposed tensor",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
def join(heads):
    B, H, T, K = heads.shape
    return heads.transpose(2, 3).reshape(B, T, H * K)


answer = join
""",
        right=False,
        mistake="transposes tokens with features instead of heads",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
import torch


def join(heads):
    B, H, T, K = heads.shape
    return torch.cat([heads[:, h] for h in range(H)], dim=1).view(B, T, H * K)


answer = join
""",
        right=False,
        mistake="puts the heads under one another and calls it a row",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
def join(heads):
    B, H, T, K = heads.shape
    return heads.permute(2, 0, 1, 3).reshape(B, T, H * K)


answer = join
""",
        right=False,
        mistake="transposes the batch with the tokens",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
import torch


def join(heads):
    return torch.cat(heads.unbind(1), dim=-1)


answer = join
""",
        right=True,
        mistake="concatenates the heads",
    ),
    Answer(
        exercise="multi_head_attention.3",
        check="join",
        code="""
def join(heads):
    B, H, T, K = heads.shape
    out = heads.new_empty(B, T, H * K)
    for h in range(H):
        out[..., h * K : h * K + K] = heads[:, h]
    return out


answer = join
""",
        right=True,
        mistake="fills an empty tensor",
    ),
    # Exercise 4: contributions
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
def contributions(heads, w_o):
    B, H, T, K = heads.shape
    return heads @ w_o.reshape(H, K, -1)


answer = contributions
""",
        right=False,
        mistake="cuts the weight by rows, which runs as the number of entries fits",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
def contributions(heads, w_o):
    K = heads.size(-1)
    return heads @ w_o[:, :K].T


answer = contributions
""",
        right=False,
        mistake="gives every head the map of the first one",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
import torch


def contributions(heads, w_o):
    B, H, T, K = heads.shape
    return torch.einsum("bhtk,dkh->bhtd", heads, w_o.view(-1, K, H))


answer = contributions
""",
        right=False,
        mistake="takes every H-th column for a head",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
def contributions(heads, w_o):
    B, H, T, K = heads.shape
    whole = heads.transpose(1, 2).flatten(2) @ w_o.T
    return (whole / H).unsqueeze(1).expand(B, H, T, w_o.size(0))


answer = contributions
""",
        right=False,
        mistake="shares the whole output out evenly",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
import torch


def contributions(heads, w_o):
    B, H, T, K = heads.shape
    return torch.einsum("bhtk,dhk->btd", heads, w_o.view(-1, H, K))


answer = contributions
""",
        right=False,
        mistake="adds the heads up",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
import torch


def contributions(heads, w_o):
    B, H, T, K = heads.shape
    parts = [heads[:, h] @ w_o[h * K : (h + 1) * K] for h in range(H)]
    return torch.stack(parts, dim=1)


answer = contributions
""",
        right=False,
        mistake="multiplies by the weight the wrong way round, right shape if D is H * K",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
import torch
from torch.nn import functional as F


def contributions(heads, w_o):
    B, H, T, K = heads.shape
    parts = []
    for h in range(H):
        alone = torch.zeros_like(heads)
        alone[:, h] = heads[:, h]
        parts.append(F.linear(alone.transpose(1, 2).reshape(B, T, H * K), w_o))
    return torch.stack(parts, dim=1)


answer = contributions
""",
        right=True,
        mistake="silences all heads but one and maps the rest",
    ),
    Answer(
        exercise="multi_head_attention.4",
        check="contributions",
        code="""
import torch


def contributions(heads, w_o):
    slices = torch.stack(w_o.split(heads.size(-1), dim=1))  # (H, D, K)
    return heads @ slices.mT


answer = contributions
""",
        right=True,
        mistake="a stack of slices, broadcast",
    ),
    # Exercise 5: multi_query
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import math


def multi_query_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.softmax(-1) @ v


answer = multi_query_attention
""",
        right=False,
        mistake="no axis for the heads: right for a batch of one alone",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import math


def multi_query_attention(q, k, v):
    k, v = k[:, None], v[:, None]
    width = q.size(1) * q.size(-1)
    return (q @ k.transpose(-2, -1) / math.sqrt(width)).softmax(-1) @ v


answer = multi_query_attention
""",
        right=False,
        mistake="divides by the root of the full width",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import math


def multi_query_attention(q, k, v):
    shared = q.mean(1)
    out = (shared @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).softmax(-1) @ v
    return out.unsqueeze(1).expand_as(q)


answer = multi_query_attention
""",
        right=False,
        mistake="averages the queries of the heads first",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import math

import torch


def multi_query_attention(q, k, v):
    scores = torch.einsum("bhtk,bsk->bhts", q, k) / math.sqrt(q.size(-1))
    return torch.einsum("bhts,bsk->bhtk", scores.softmax(1), v)


answer = multi_query_attention
""",
        right=False,
        mistake="normalises over the heads",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import math


def multi_query_attention(q, k, v):
    k, v = k.unsqueeze(1), v.unsqueeze(1)
    out = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) @ v
    return out.transpose(1, 2).flatten(2)


answer = multi_query_attention
""",
        right=False,
        mistake="joins the heads at the end",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import torch


def multi_query_attention(q, k, v):
    weights = torch.softmax(q @ k.unsqueeze(1).transpose(2, 3), dim=-1)
    return weights @ v.unsqueeze(1)


answer = multi_query_attention
""",
        right=False,
        mistake="forgets the scale",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import torch


def multi_query_attention(q, k, v):
    B, H, T, K = q.shape
    scores = torch.bmm(q.reshape(B, H * T, K), k.mT) / K**0.5
    return torch.bmm(scores.softmax(-1), v).reshape(B, H, T, K)


answer = multi_query_attention
""",
        right=True,
        mistake="lays the heads' queries end to end as more tokens",
    ),
    Answer(
        exercise="multi_head_attention.5",
        check="multi_query",
        code="""
import torch

from transformer_lib.attention import scaled_dot_product_attention


def multi_query_attention(q, k, v):
    outputs = [scaled_dot_product_attention(q[:, h], k, v)[0] for h in range(q.size(1))]
    return torch.stack(outputs, 1)


answer = multi_query_attention
""",
        right=True,
        mistake="the library's attention, head by head",
    ),
]
