"""Answers to the exercises of chapter 02, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: equal_keys
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
answer = [1.0, 1.0, 1.0, 1.0]
""",
        right=False,
        mistake="the softmax is forgotten: equal scores are read as full weights",
    ),
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
answer = [1.0, 0.0, 0.0, 0.0]
""",
        right=False,
        mistake="takes it that the first of equal keys wins",
    ),
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
answer = [0.125] * 4
""",
        right=False,
        mistake="divides the weights by the root of four once more",
    ),
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
answer = 0.25
""",
        right=False,
        mistake="one number instead of four",
    ),
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
answer = [0.0, 0.0, 0.0, 0.0]
""",
        right=False,
        mistake="gives the scores that equal keys might have",
    ),
    Answer(
        exercise="scaled_dot_product_attention.1",
        check="equal_keys",
        code="""
import torch

keys = torch.randn(8).repeat(4, 1)
answer = (keys @ torch.randn(8)).softmax(-1).tolist()
""",
        right=True,
        mistake="computed with a random query",
    ),
    # Exercise 2: attention
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
def my_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.size(-1)
    return scores.softmax(-1) @ v


answer = my_attention
""",
        right=False,
        mistake="divides by d_k and not by its root",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math

import torch
from torch.nn import functional as F


def my_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
    weights = F.softmax(scores, dim=1)
    return torch.bmm(weights, v)


answer = my_attention
""",
        right=False,
        mistake="normalises over the queries",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import torch


def my_attention(q, k, v):
    batch, tokens, d = k.shape
    scores = q @ k.mT / tokens**0.5
    return torch.softmax(scores, dim=-1) @ v


answer = my_attention
""",
        right=False,
        mistake="divides by the root of the number of tokens",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    batch, tokens, d = k.shape
    scores = q @ k.reshape(batch, d, tokens) / math.sqrt(d)
    return scores.softmax(dim=-1) @ v


answer = my_attention
""",
        right=False,
        mistake="reshapes the keys where it should transpose them",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    scale = int(math.sqrt(q.size(-1)))
    return (q @ k.transpose(-2, -1) / scale).softmax(-1) @ v


answer = my_attention
""",
        right=False,
        mistake="cuts the root to a whole number, so it is right for square d alone",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    d = v.size(-1)
    return (q @ k.transpose(-2, -1) / math.sqrt(d)).softmax(-1) @ v


answer = my_attention
""",
        right=False,
        mistake="takes d_k from the values",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    q0, k0 = q[0], k[0]
    weights = (q0 @ k0.T / math.sqrt(q0.size(-1))).softmax(-1)
    return weights @ v


answer = my_attention
""",
        right=False,
        mistake="attends from the first sentence of the batch alone",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(-1)
    return weights @ v, weights


answer = my_attention
""",
        right=False,
        mistake="returns the weights, too",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math


def my_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    print(scores.softmax(-1) @ v)


answer = my_attention
""",
        right=False,
        mistake="prints the output and returns nothing",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
def my_attention(q, k, v):
    q /= q.size(-1) ** 0.5
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


answer = my_attention
""",
        right=False,
        mistake="scales the caller's queries in place",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import torch


def my_attention(q, k, v):
    scores = torch.einsum("bqd,bkd->bqk", q, k) * q.size(-1) ** -0.5
    return torch.einsum("bqk,bkv->bqv", scores.softmax(-1), v)


answer = my_attention
""",
        right=True,
        mistake="einsum",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math

import torch


def my_attention(q, k, v):
    sentences = []
    for b in range(len(q)):
        rows = []
        for query in q[b]:
            scores = torch.stack([query.dot(key) for key in k[b]]) / math.sqrt(len(query))
            row = 0
            for weight, value in zip(scores.softmax(0), v[b]):
                row = row + weight * value
            rows.append(row)
        sentences.append(torch.stack(rows))
    return torch.stack(sentences)


answer = my_attention
""",
        right=True,
        mistake="three loops",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
import math

import torch


def my_attention(q, k, v):
    scores = torch.baddbmm(
        torch.zeros(1, 1, 1, dtype=torch.float64),
        q.double(),
        k.double().mT,
        beta=0,
        alpha=1 / math.sqrt(k.size(2)),
    )
    e = (scores - scores.amax(2, keepdim=True)).exp()
    return ((e @ v.double()) / e.sum(2, keepdim=True)).to(v.dtype)


answer = my_attention
""",
        right=True,
        mistake="exponentials divided at the end, in double precision",
    ),
    Answer(
        exercise="scaled_dot_product_attention.2",
        check="attention",
        code="""
from torch import nn


class MyAttention(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.softmax(q @ k.mT / q.size(-1) ** 0.5, dim=-1) @ v
my_attention = MyAttention()
answer = my_attention
""",
        right=True,
        mistake="a module, called like a function",
    ),
    # Exercise 3: repaired_attention
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
import math


def repaired(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.softmax(dim=-1) / math.sqrt(q.size(-1))
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="leaves the weights divided and scales the scores, too",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
def repaired(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = scores.softmax(dim=-1)
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="takes the scale out altogether",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
import math


def repaired(q, k, v):
    scores = q @ k.transpose(-2, -1) * math.sqrt(q.size(-1))
    weights = scores.softmax(dim=-1)
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="multiplies by the root instead of dividing",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
import math


def repaired(q, k, v):
    root = math.sqrt(q.size(-1))
    scores = (q / root) @ (k / root).transpose(-2, -1)
    weights = scores.softmax(dim=-1)
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="divides queries and keys by the root each, so by d_k in all",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
import math


def repaired(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = (scores / math.sqrt(q.size(-1))).softmax(dim=-2)
    return weights @ v


answer = repaired
""",
        right=False,
        mistake="repairs the scale and then normalises over the queries",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
def repaired(q, k, v):
    quarter = q.size(-1) ** 0.25
    scores = (q / quarter) @ (k / quarter).transpose(-2, -1)
    return scores.softmax(dim=-1) @ v


answer = repaired
""",
        right=True,
        mistake="the fourth root on each side",
    ),
    Answer(
        exercise="scaled_dot_product_attention.3",
        check="repaired_attention",
        code="""
import torch


def compare(q, k):
    return q @ k.transpose(-2, -1)


def scale(scores, d):
    return scores * d**-0.5


def repaired(q, k, v):
    return torch.matmul(torch.softmax(scale(compare(q, k), k.shape[-1]), -1), v)


answer = repaired
""",
        right=True,
        mistake="a composition of small functions",
    ),
    # Exercise 4: temperature
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
def weights_at(scores, temperature):
    return (scores / temperature).softmax(-1)
tau = 2.0
answer = (weights_at, tau)
""",
        right=False,
        mistake="tau 2 looks right and gives 0.51",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
def weights_at(scores, temperature):
    return (scores * temperature).softmax(-1)
tau = 0.481
answer = (weights_at, tau)
""",
        right=False,
        mistake="multiplies by the temperature, and its tau is the inverse",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
def weights_at(scores, temperature):
    return scores.softmax(-1) / temperature
tau = 1.33
answer = (weights_at, tau)
""",
        right=False,
        mistake="divides the weights and not the scores",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
import torch


def weights_at(scores, temperature):
    return torch.softmax(scores / temperature, dim=0)
tau = 2.08
answer = (weights_at, tau)
""",
        right=False,
        mistake="always normalises the first axis, which a table of scores shows",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
def weights_at(scores, temperature):
    return (scores // temperature).softmax(-1)
tau = 2.08
answer = (weights_at, tau)
""",
        right=False,
        mistake="whole division of the scores",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
import math


def weights_at(scores, temperature):
    return scores.softmax(-1) ** (1 / temperature)
tau = 1 / math.log((1 + math.sqrt(5)) / 2)
answer = (weights_at, tau)
""",
        right=False,
        mistake="raises the weights to a power and does not normalise again",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
import torch


def weights_at(scores, temperature):
    powers = torch.log_softmax(scores, -1).div(temperature)
    powers = (powers - powers.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)
low, high = 0.1, 10.0
while high - low > 1e-6:
    tau = (low + high) / 2
    if weights_at(torch.tensor([2.0, 1.0, 0.0]), tau)[0] > 0.5:
        low = tau
    else:
        high = tau
answer = (weights_at, tau)
""",
        right=True,
        mistake="a power of the weights, normalised again, and tau by halving",
    ),
    Answer(
        exercise="scaled_dot_product_attention.4",
        check="temperature",
        code="""
import math

from torch import nn

weights_at = lambda scores, temperature: nn.Softmax(-1)(scores / temperature)  # noqa: E731
answer = (weights_at, 1 / math.log((1 + 5**0.5) / 2))
""",
        right=True,
        mistake="tau from the golden ratio, exactly",
    ),
]
