"""Answers to the exercises of chapter 01, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: path_lengths
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (100, 50, 1)
""",
        right=False,
        mistake="counts the tokens of the chain and not the steps between them",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (99, 20, 1)
""",
        right=False,
        mistake="takes it that a convolution of width 5 reaches 5 tokens to the left",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (99, 25, 1)
""",
        right=False,
        mistake="takes it that a centred convolution reaches width - 1 tokens to one side",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (99, 99 // 2, 1)
""",
        right=False,
        mistake="rounds the number of convolution layers down",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (99, 50, 0)
""",
        right=False,
        mistake="does not count attention's one layer as a step",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
answer = (99, 99 / 2, 1)
""",
        right=False,
        mistake="leaves half a layer standing",
    ),
    Answer(
        exercise="why_attention.1",
        check="path_lengths",
        code="""
first, last = 0, 99
distance = float(last - first)
answer = (distance, -(-distance // 2), 1)
""",
        right=True,
        mistake="computed, and two of the numbers are floats",
    ),
    # Exercise 2: soft_lookup
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
def my_lookup(query, keys, values, sharpness):
    scores = -sharpness * (query - keys).abs()
    return scores.softmax(-1) @ values


answer = my_lookup
""",
        right=False,
        mistake="takes the distance and not its square",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
def my_lookup(query, keys, values, sharpness):
    scores = sharpness * (query - keys) ** 2
    return scores.softmax(-1) @ values


answer = my_lookup
""",
        right=False,
        mistake="forgets the minus sign, so far keys win",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
def my_lookup(query, keys, values, sharpness):
    scores = -((sharpness * (query - keys)) ** 2)
    return scores.softmax(-1) @ values


answer = my_lookup
""",
        right=False,
        mistake="squares the sharpness together with the distance",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
import torch


def my_lookup(query, keys, values, sharpness):
    weights = torch.exp(-sharpness * (query - keys) ** 2)
    weights = weights / weights.sum()
    return (weights * values).sum()


answer = my_lookup
""",
        right=False,
        mistake="far from all keys every weight underflows to 0, and 0 / 0 is no number",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
import torch


def my_lookup(query, keys, values, sharpness):
    weights = torch.softmax(-sharpness * (query - keys) ** 2, dim=0)
    return weights * values


answer = my_lookup
""",
        right=False,
        mistake="forgets to add up the weighted values",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
def my_lookup(query, keys, values, sharpness):
    return values[((query - keys) ** 2).argmin()]


answer = my_lookup
""",
        right=False,
        mistake="takes the value of the nearest key",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
from torch.nn import functional as F


def my_lookup(query, keys, values, sharpness):
    weights = F.softmax(-((keys - query) ** 2) / sharpness, dim=-1)
    return weights.dot(values)


answer = my_lookup
""",
        right=False,
        mistake="divides by the sharpness, as if it were a width",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
import math


def my_lookup(query, keys, values, sharpness):
    scores = [-sharpness * (float(query) - key) ** 2 for key in keys.tolist()]
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    total = sum(shares)
    return sum(share / total * value for share, value in zip(shares, values.tolist()))


answer = my_lookup
""",
        right=True,
        mistake="plain Python with a shifted exponential",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
import numpy as np


def my_lookup(query, keys, values, sharpness):
    scores = -sharpness * np.square(float(query) - np.asarray(keys, dtype=np.float64))
    weights = np.exp(scores - scores.max())
    return float(np.average(np.asarray(values, dtype=np.float64), weights=weights))


answer = my_lookup
""",
        right=True,
        mistake="numpy, in double precision",
    ),
    Answer(
        exercise="why_attention.2",
        check="soft_lookup",
        code="""
import torch


def my_lookup(query, keys, values, sharpness):
    keys, values = keys.double(), values.double()
    scores = sharpness * keys * (2 * query - keys)
    return torch.softmax(scores, 0).dot(values).item()


answer = my_lookup
""",
        right=True,
        mistake="one expanded square: the query's own part cancels in the softmax",
    ),
    # Exercise 3: repaired_self_attention
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
import math


def repaired(x):
    scores = x @ x.T / math.sqrt(x.size(-1))
    weights = scores.softmax(-1)
    return weights @ x


answer = repaired
""",
        right=False,
        mistake="divides by the root of d, which this chapter does not",
    ),
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
def repaired(x):
    scores = x.T @ x
    weights = scores.softmax(-1)
    return x @ weights.T


answer = repaired
""",
        right=False,
        mistake="compares features with features",
    ),
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
def repaired(x):
    scores = x @ x.T
    weights = scores.flatten().softmax(0).view_as(scores)
    return weights @ x


answer = repaired
""",
        right=False,
        mistake="normalises the whole table to 1",
    ),
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
def repaired(x):
    scores = x @ x.T
    weights = scores / scores.sum(-1, keepdim=True)
    return weights @ x


answer = repaired
""",
        right=False,
        mistake="leaves the exponential out and divides scores by their sum",
    ),
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
def repaired(x):
    scores = x @ x.T
    weights = scores.softmax(0)
    return weights.T @ x


answer = repaired
""",
        right=True,
        mistake="keeps softmax(0) and turns the table, as scores are symmetric",
    ),
    Answer(
        exercise="why_attention.3",
        check="repaired_self_attention",
        code="""
import torch


def repaired(x):
    return torch.stack([torch.softmax(x @ row, 0) @ x for row in x])


answer = repaired
""",
        right=True,
        mistake="one row after the other",
    ),
    # Exercise 4: convolution_weights
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    half = len(kernel) // 2
    A = torch.zeros(n, n)
    for i in range(n):
        for j in range(n):
            if abs(i - j) <= half:
                A[i, j] = kernel[i - j + half]
    return A


answer = convolution_weights
""",
        right=False,
        mistake="the kernel is mirrored",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    half = len(kernel) // 2
    A = torch.zeros(n, n)
    for i in range(n):
        for m in range(len(kernel)):
            j = i + m - half
            if j < n:
                A[i, j] = kernel[m]
    return A


answer = convolution_weights
""",
        right=False,
        mistake="negative indices wrap round to the other end",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    A = torch.zeros(n, n)
    width = len(kernel)
    for i in range(n):
        for m in range(width):
            j = i + m - (width - 1)
            if 0 <= j < n:
                A[i, j] = kernel[m]
    return A


answer = convolution_weights
""",
        right=False,
        mistake="the window hangs to the left and is not centred",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    half = len(kernel) // 2
    A = torch.zeros(n, n)
    for i in range(n):
        for j in range(max(0, i - half), min(n, i + half + 1)):
            A[i, j] = kernel[j - i + half]
    return A / A.sum(-1, keepdim=True)


answer = convolution_weights
""",
        right=False,
        mistake="makes every row sum to 1, as attention's weights do",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    left, middle, right = kernel[0], kernel[len(kernel) // 2], kernel[-1]
    A = torch.eye(n) * middle
    for i in range(n - 1):
        A[i + 1, i] = left
        A[i, i + 1] = right
    return A


answer = convolution_weights
""",
        right=False,
        mistake="right for a width of three alone",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import numpy as np
import torch


def convolution_weights(kernel, n):
    half = len(kernel) // 2
    A = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in range(n):
            if -half <= j - i <= half:
                A[i][j] = kernel[j - i + half]
    return torch.tensor(A).float()


answer = convolution_weights
""",
        right=False,
        mistake="a table of whole numbers cuts off what is behind the point",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch
from torch.nn import functional as F


def convolution_weights(kernel, n):
    kernel = torch.as_tensor(kernel, dtype=torch.float32)
    basis = torch.eye(n).unsqueeze(1)  # (n, 1, n): one unit vector for each column of A
    columns = F.conv1d(basis, kernel.view(1, 1, -1), padding=len(kernel) // 2)
    return columns.squeeze(1).T


answer = convolution_weights
""",
        right=True,
        mistake="PyTorch's own convolution, run on the identity",
    ),
    Answer(
        exercise="why_attention.4",
        check="convolution_weights",
        code="""
import torch


def convolution_weights(kernel, n):
    kernel = torch.as_tensor(kernel, dtype=torch.float32)
    half = len(kernel) // 2
    place = torch.arange(n)
    which = place[None, :] - place[:, None] + half
    inside = (which >= 0) & (which < len(kernel))
    return torch.where(inside, kernel[which.clamp(0, len(kernel) - 1)], torch.zeros(()))


answer = convolution_weights
""",
        right=True,
        mistake="looks every entry up, with a mask for what is out of reach",
    ),
    # Exercise 5: cost_ratio
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
def cost_ratio(n, d):
    return d / n


answer = cost_ratio
""",
        right=False,
        mistake="upside down",
    ),
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
def cost_ratio(n, d):
    return (n * n * d) // (n * d * d)


answer = cost_ratio
""",
        right=False,
        mistake="whole division",
    ),
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
def cost_ratio(n, d):
    return (n * n * d + 3 * n * d * d) / (n * d * d)


answer = cost_ratio
""",
        right=False,
        mistake="adds the projections, which this count leaves out",
    ),
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
def cost_ratio(n, d):
    return n**2 * d / d**2


answer = cost_ratio
""",
        right=False,
        mistake="forgets that recurrence has n steps, too",
    ),
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
def cost_ratio(n, d):
    return n > d


answer = cost_ratio
""",
        right=False,
        mistake="answers the title, whether attention is dearer",
    ),
    Answer(
        exercise="why_attention.5",
        check="cost_ratio",
        code="""
from fractions import Fraction


def cost_ratio(n, d):
    return Fraction(n, d)


answer = cost_ratio
""",
        right=True,
        mistake="an exact fraction",
    ),
]
