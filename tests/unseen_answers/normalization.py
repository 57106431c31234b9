"""Answers to the exercises of chapter 07, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: by_hand
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
answer = [[-1, -1, 1, 1], [-10, -10, 10, 10]]
""",
        right=False,
        mistake="keeps the tenfold size",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
answer = [[-1.0, -1.0, 1.0, 1.0], [-0.1, -0.1, 0.1, 0.1]]
""",
        right=False,
        mistake="divides by the variance",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
import torch

x = torch.tensor([[1.0, 1, 3, 3], [10, 10, 30, 30]])
answer = ((x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)).tolist()
""",
        right=False,
        mistake="the standard deviation of a sample, over three instead of four",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
answer = [[0, 0, 1, 1], [0, 0, 1, 1]]
""",
        right=False,
        mistake="stretches to the range from 0 to 1",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
import torch

x = torch.tensor([[1.0, 1, 3, 3], [10, 10, 30, 30]])
answer = (x / x.pow(2).mean(-1, keepdim=True).sqrt()).tolist()
""",
        right=False,
        mistake="RMSNorm: does not subtract the mean",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
answer = [[-1, -1, -1, -1], [1, 1, 1, 1]]
""",
        right=False,
        mistake="normalises across the two lists",
    ),
    Answer(
        exercise="normalization.1",
        check="by_hand",
        code="""
import torch

from transformer_lib.normalization import layer_norm

x = torch.tensor([[1.0, 1, 3, 3], [10, 10, 30, 30]])
answer = layer_norm(x, torch.ones(4), torch.zeros(4), eps=0.0).tolist()
""",
        right=True,
        mistake="by the library, with no epsilon",
    ),
    # Exercise 2: layer_norm
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="the variance of a sample",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return weight * (x - mean) / (std + eps) + bias


answer = my_layer_norm
""",
        right=False,
        mistake="epsilon outside the root",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean((1, 2), keepdim=True)
    var = x.var((1, 2), keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="over tokens and features together",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(dim=1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=1, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="over the tokens",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="a fixed epsilon, whatever is passed",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = x.pow(2).mean(-1, keepdim=True) - mean.pow(2)
    return (x - mean) / torch.sqrt(var.clamp(min=0) + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="mean of squares minus square of mean, which cancels for a large mean",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, correction=0)
    return ((x - mean) / torch.sqrt(var + eps) + bias) * weight


answer = my_layer_norm
""",
        right=False,
        mistake="the gain multiplies the bias, too",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    x -= x.mean(-1, keepdim=True)
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="centres the caller's tensor in place",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / (var + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="divides by the variance",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    square = x.pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(square + eps) * weight + bias


answer = my_layer_norm
""",
        right=False,
        mistake="measures the square about zero and not about the mean",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
from torch.nn import functional as F


def my_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.reshape(1, -1, x.size(-1))
    return F.instance_norm(rows, eps=eps).view_as(x) * weight + bias


answer = my_layer_norm
""",
        right=True,
        mistake="instance norm with every token as a channel",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    z = x.double()
    var, mean = torch.var_mean(z, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias.double(), (z - mean) / (var + eps) ** 0.5, weight.double()).to(x)


answer = my_layer_norm
""",
        right=True,
        mistake="numpy-like steps in float64",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def normalise(token, eps):
    d = len(token)
    centred = token - token.sum() / d
    return centred / torch.sqrt(centred @ centred / d + eps)


def my_layer_norm(x, weight, bias, eps=1e-5):
    rows = [torch.stack([normalise(token, eps) for token in sentence]) for sentence in x]
    return torch.stack(rows) * weight + bias


answer = my_layer_norm
""",
        right=True,
        mistake="one token after the other",
    ),
    Answer(
        exercise="normalization.2",
        check="layer_norm",
        code="""
import torch


def my_layer_norm(x, weight, bias, eps=1e-5):
    d = x.size(-1)
    centre = torch.eye(d, dtype=torch.float64) - 1 / d
    y = x.double() @ centre
    y = y / (y.norm(dim=-1, keepdim=True) ** 2 / d + eps).sqrt()
    return (weight * y + bias).to(x.dtype)


answer = my_layer_norm
""",
        right=True,
        mistake="centring as a matrix product",
    ),
    # Exercise 3: rms_norm
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
def repaired(x, weight, eps=1e-5):
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)
    return x / (mean_square + eps) * weight


answer = repaired
""",
        right=False,
        mistake="the axis is repaired and the root is not",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
import torch


def repaired(x, weight, eps=1e-5):
    mean_square = x.pow(2).mean(dim=1, keepdim=True)
    return x / torch.sqrt(mean_square + eps) * weight


answer = repaired
""",
        right=False,
        mistake="the root is repaired and the axis is not",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
def repaired(x, weight, eps=1e-5):
    root = x.pow(2).mean(dim=-1, keepdim=True).sqrt()
    return x / (root + eps) * weight


answer = repaired
""",
        right=False,
        mistake="epsilon outside the root",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
import torch


def repaired(x, weight, eps=1e-5):
    x = x - x.mean(dim=-1, keepdim=True)
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)
    return x / torch.sqrt(mean_square + eps) * weight


answer = repaired
""",
        right=False,
        mistake="subtracts the mean, which is LayerNorm",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
import torch


def repaired(x, weight, eps=1e-5):
    return x / torch.sqrt(x.pow(2).sum(dim=-1, keepdim=True) + eps) * weight


answer = repaired
""",
        right=False,
        mistake="divides by the length of the vector, the root of a sum",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
def repaired(x, weight, eps=1e-5):
    size = x.abs().mean(dim=-1, keepdim=True)
    return x / (size + eps) * weight


answer = repaired
""",
        right=False,
        mistake="the mean of absolute values",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
import torch


def repaired(x, weight, eps=1e-5):
    return x * torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps) * weight


answer = repaired
""",
        right=False,
        mistake="multiplies by the root instead of dividing",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
import torch


def repaired(x, weight, eps=1e-5):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return weight * x * (length**2 / x.shape[-1] + eps) ** -0.5


answer = repaired
""",
        right=True,
        mistake="by the length of the vector",
    ),
    Answer(
        exercise="normalization.3",
        check="rms_norm",
        code="""
from torch.nn import functional as F


def repaired(x, weight, eps=1e-5):
    return F.rms_norm(x, (x.size(-1),), weight, eps)


answer = repaired
""",
        right=True,
        mistake="PyTorch's own",
    ),
    # Exercise 4: count
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    if kind == "layer":
        return B * T, D
    if kind == "batch":
        return D, B * T


answer = averaged_and_means
""",
        right=False,
        mistake="the two kinds exchanged",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    if kind == "layer":
        return T * D, B
    if kind == "batch":
        return B * T, D


answer = averaged_and_means
""",
        right=False,
        mistake="LayerNorm over a whole sentence",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    if kind == "layer":
        return D, B * T
    if kind == "batch":
        return B, T * D


answer = averaged_and_means
""",
        right=False,
        mistake="BatchNorm for each place of its own",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    if kind == "layer":
        return D, T
    if kind == "batch":
        return B * T, D


answer = averaged_and_means
""",
        right=False,
        mistake="forgets the sentences when it counts LayerNorm's means",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    numbers = {"layer": (B * T, D), "batch": (B * T, D)}
    return numbers[kind]


answer = averaged_and_means
""",
        right=False,
        mistake="the pair the wrong way round for both",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    if kind == "layer":
        print(D, B * T)
    if kind == "batch":
        print(B * T, D)


answer = averaged_and_means
""",
        right=False,
        mistake="prints the pair",
    ),
    Answer(
        exercise="normalization.4",
        check="count",
        code="""
def averaged_and_means(kind, B, T, D):
    averaged = D if kind == "layer" else T * B
    return [averaged, B * T * D // averaged]


answer = averaged_and_means
""",
        right=True,
        mistake="what is averaged times the means is always everything",
    ),
    # Exercise 5: masked_batch_norm
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    rows = (x * real[..., None]).reshape(-1, x.size(-1))
    mean, var = rows.mean(0), rows.var(0, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="sets padding to zero and still averages over it",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    tokens = x[real]
    return (x - tokens.mean(0)) / torch.sqrt(tokens.var(0) + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="the variance of a sample",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    m = real[..., None].float()
    n = m.sum(1, keepdim=True)
    mean = (x * m).sum(1, keepdim=True) / n
    var = ((x - mean) ** 2 * m).sum(1, keepdim=True) / n
    return (x - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="each sentence with statistics of its own",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    mean = x[real].mean(0)
    var = (x - mean).pow(2).mean((0, 1))
    return (x - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="the mean skips padding and the variance does not",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    tokens = x.masked_fill(real[..., None], 0.0)
    n = (~real).sum()
    mean = tokens.sum((0, 1)) / n
    var = ((tokens - mean) ** 2 * ~real[..., None]).sum((0, 1)) / n
    return (x - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="the statistics of the padding",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    tokens = x[real]
    mean, var = tokens.mean(), tokens.var(unbiased=False)
    return (x - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="one mean and one variance for all features",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    tokens = x[real]
    mean, var = tokens.mean(0), tokens.var(0, unbiased=False)
    return (tokens - mean) / torch.sqrt(var + eps)


answer = masked_batch_norm
""",
        right=False,
        mistake="returns the real tokens alone, so the shape is lost",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    y = (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps)
    return y * real[..., None]


answer = masked_batch_norm
""",
        right=False,
        mistake="LayerNorm over the features of each token",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch


def masked_batch_norm(x, real, eps=1e-5):
    w = real.to(x.dtype) / real.sum()
    mean = torch.einsum("bt,btd->d", w, x)
    var = torch.einsum("bt,btd->d", w, (x - mean).square())
    return ((x - mean) * (var + eps).rsqrt()).masked_fill(~real.unsqueeze(-1), 0)


answer = masked_batch_norm
""",
        right=True,
        mistake="weighted sums over the real tokens, padding zero in the result",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
import torch
from torch.nn import functional as F


def masked_batch_norm(x, real, eps=1e-5):
    out = torch.zeros_like(x)
    out[real] = F.batch_norm(x[real], None, None, training=True, eps=eps)
    return out


answer = masked_batch_norm
""",
        right=True,
        mistake="PyTorch's batch norm on the real tokens, put back",
    ),
    Answer(
        exercise="normalization.5",
        check="masked_batch_norm",
        code="""
from transformer_lib.normalization import BatchNorm


def masked_batch_norm(x, real, eps=1e-5):
    norm = BatchNorm(x.size(-1), eps=eps, momentum=1.0)
    norm.train()(x[real].unsqueeze(0))
    mean = norm.running_mean
    var = x[real].sub(mean).pow(2).mean(0)
    return (x - mean) / (var + eps) ** 0.5


answer = masked_batch_norm
""",
        right=True,
        mistake="the library's layer, and padding normalised with the same numbers",
    ),
]
