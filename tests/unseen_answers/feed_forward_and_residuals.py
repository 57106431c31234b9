"""Answers to the exercises of chapter 08, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 2: exactly_one
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, 1], [1, 1]], [0, -1], [1, -1]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="answers 1 for both, as an or does",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, 1], [1, 1]], [-0.5, -1.5], [1, -1]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="thresholds of a step function, not of a ReLU",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, 1], [1, 1]], [0, 1], [1, -2]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="a bias with the wrong sign",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, 2], [1, 2]], [0, -2], [1, -1]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="a column for each hidden unit instead of a row",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, -1], [1, -1]], [0, 0], [0.5, 0.5]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="both units look one way, so b alone is missed",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1.0, -1.0], [-1.0, 1.0]], [0.0, 0.0], [-1.0, 1.0]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="the difference, with a minus where a alone is on",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, 1], [-1, -1]], [-1, 1], [-1, -1]
answer = (w1, b1, w2)
""",
        right=False,
        mistake="gives 1 - |a + b - 1| without the 1, which wants a second bias",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
w1, b1, w2 = [[1, -1], [-1, 1]], [0, 0], [1, 1]
answer = (w1, b1, w2)
""",
        right=True,
        mistake="the absolute difference",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
import torch

w1 = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
b1 = torch.tensor([-0.5, -1.0])
w2 = torch.tensor([2.0, -3.0])
answer = (w1, b1, w2)
""",
        right=True,
        mistake="other kinks on the sum, as tensors",
    ),
    Answer(
        exercise="feed_forward_and_residuals.2",
        check="exactly_one",
        code="""
answer = (((1, 1), (2, 2)), (0, -2), (1, -1))
""",
        right=True,
        mistake="the second unit is scaled up",
    ),
    # Exercise 3: residual
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return norm(x + drop(sublayer(x)))


answer = my_residual
""",
        right=False,
        mistake="the norm at the end: post-norm",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return drop(x + sublayer(norm(x)))


answer = my_residual
""",
        right=False,
        mistake="drops from the sum",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return x + sublayer(drop(norm(x)))


answer = my_residual
""",
        right=False,
        mistake="drops before the sublayer",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return x + drop(norm(sublayer(x)))


answer = my_residual
""",
        right=False,
        mistake="norms what the sublayer gives",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    x = norm(x)
    return x + drop(sublayer(x))


answer = my_residual
""",
        right=False,
        mistake="adds to the normalised x",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return x + sublayer(norm(x))


answer = my_residual
""",
        right=False,
        mistake="forgets the dropout",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    x += drop(sublayer(norm(x)))
    return x


answer = my_residual
""",
        right=False,
        mistake="changes the caller's x",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
def my_residual(x, sublayer, norm, drop):
    return norm(x + drop(sublayer(norm(x))))


answer = my_residual
""",
        right=False,
        mistake="norms twice",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
import functools

import torch


def my_residual(x, sublayer, norm, drop):
    return torch.add(x, functools.reduce(lambda y, f: f(y), (norm, sublayer, drop), x))


answer = my_residual
""",
        right=True,
        mistake="a fold over the three functions",
    ),
    Answer(
        exercise="feed_forward_and_residuals.3",
        check="residual",
        code="""
class Residual:
    def __call__(self, x, sublayer, norm, drop):
        change = drop(sublayer(norm(x)))
        return change + x
answer = Residual()
""",
        right=True,
        mistake="a class with a static call",
    ),
    # Exercise 4: dropout
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand_like(x) < p
    return x * keep / (1 - p)


answer = repaired
""",
        right=False,
        mistake="only the scale is repaired",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand_like(x) >= p
    return x * keep / p


answer = repaired
""",
        right=False,
        mistake="only the mask is repaired",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand(*x.shape[:-1], 1) >= p
    return x * keep / (1 - p)


answer = repaired
""",
        right=False,
        mistake="one draw for all the numbers of a token",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.randn_like(x) > p
    return x * keep / (1 - p)


answer = repaired
""",
        right=False,
        mistake="draws from a normal law, so another share is dropped",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    generator = torch.Generator().manual_seed(0)
    keep = torch.rand(x.shape, generator=generator) >= p
    return x * keep / (1 - p)


answer = repaired
""",
        right=False,
        mistake="the same numbers are dropped at every call",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand_like(x) > p
    return x * keep


answer = repaired
""",
        right=False,
        mistake="does not scale, as the first paper did at training time",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
def repaired(x, p):
    keep = x.abs() > x.abs().flatten().quantile(p)
    return x * keep / (1 - p)


answer = repaired
""",
        right=False,
        mistake="drops the smallest numbers",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand_like(x) >= p
    return x * keep * (1 - p)


answer = repaired
""",
        right=False,
        mistake="multiplies by 1 - p, the factor for use",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    keep = torch.rand_like(x) >= p
    return torch.where(keep, x * (x.sum() / (x * keep).sum()), torch.zeros_like(x))


answer = repaired
""",
        right=False,
        mistake="divides by the share that was kept, so a number is not alone in its fate",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    return x * torch.full_like(x, 1 - p).bernoulli_() / (1 - p)


answer = repaired
""",
        right=False,
        mistake="bernoulli_ in place takes no notice of the shares: it keeps half",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import torch


def repaired(x, p):
    return x * torch.bernoulli(torch.full_like(x, 1 - p)).div(1 - p)


answer = repaired
""",
        right=True,
        mistake="Bernoulli draws",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
from torch import nn


def repaired(x, p):
    return nn.Dropout(p).train()(x)


answer = repaired
""",
        right=True,
        mistake="PyTorch's own",
    ),
    Answer(
        exercise="feed_forward_and_residuals.4",
        check="dropout",
        code="""
import random

import torch


def repaired(x, p):
    factors = [0.0 if random.random() < p else 1 / (1 - p) for _ in range(x.numel())]
    return x * torch.tensor(factors).view(x.shape)


answer = repaired
""",
        right=True,
        mistake="Python's random numbers, one by one",
    ),
    # Exercise 5: fair_width
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return 2 * d_ff // 3


answer = fair_width
""",
        right=False,
        mistake="rounds down",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
import math


def fair_width(d, d_ff):
    return math.ceil(2 * d_ff / 3)


answer = fair_width
""",
        right=False,
        mistake="rounds up",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return round(3 * d_ff / 2)


answer = fair_width
""",
        right=False,
        mistake="makes it wider",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return d_ff * 2 / 3


answer = fair_width
""",
        right=False,
        mistake="does not round",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return round(0.67 * d_ff)


answer = fair_width
""",
        right=False,
        mistake="two thirds as 0.67",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    total = 2 * d * d_ff + d_ff + d
    return round((total - d) / (3 * d + 2))


answer = fair_width
""",
        right=False,
        mistake="counts the biases",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return 8 * round(2 * d_ff / 3 / 8)


answer = fair_width
""",
        right=False,
        mistake="the next multiple of 8, as real models do",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return round(8 * d / 3)


answer = fair_width
""",
        right=False,
        mistake="takes d_ff for 4 d",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    return min(range(d_ff + 1), key=lambda width: abs(3 * d * width - 2 * d * d_ff))


answer = fair_width
""",
        right=True,
        mistake="searches for the nearest number of weights",
    ),
    Answer(
        exercise="feed_forward_and_residuals.5",
        check="fair_width",
        code="""
def fair_width(d, d_ff):
    weights = 2 * d * d_ff
    return (2 * weights + 3 * d) // (6 * d)


answer = fair_width
""",
        right=True,
        mistake="whole numbers only",
    ),
]
