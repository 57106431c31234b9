"""Checks for chapter 07, normalisation."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("07.1", hint="give two lists of four numbers")
def by_hand(answer):
    expect_shape(answer, (2, 4), "there are two tokens of four numbers")
    first, second = torch.as_tensor(answer[0]).float(), torch.as_tensor(answer[1]).float()
    expect_close(first.mean(), 0.0, "the mean of a normalised token is 0", tolerance=1e-2)
    unbiased = torch.tensor([-0.866, -0.866, 0.866, 0.866])
    expect(
        not same(first, unbiased, 0.01),
        "you divided the squared distances by 3; LayerNorm divides by all 4 numbers",
    )
    right = [-1.0, -1.0, 1.0, 1.0]
    expect_close(first, right, "the mean is 2 and the variance is 1", tolerance=1e-2)
    expect_close(
        second, right, "ten times the token is ten times the deviation, too", tolerance=1e-2
    )


def _expect_no_slip(output, slips):
    """Name the usual slip by recomputing it."""
    for message, slip in slips.items():
        expect(not same(slip, output, 1e-6), message)


@exercise("07.2", hint="mean, variance, divide, then gain and bias")
def layer_norm(answer):
    # Small numbers, so that the place of epsilon shows.
    x, weight, bias = 0.01 * torch.randn(3, 4, 8), torch.randn(8), torch.randn(8)
    output = answer(x, weight, bias)
    expect_shape(output, x.shape, "the norm keeps the shape")
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, unbiased=False)
    unbiased = x.var(-1, keepdim=True)
    right = centred / (variance + 1e-5).sqrt()
    over_batch = (x - x.mean((0, 1))) / (x.var((0, 1), unbiased=False) + 1e-5).sqrt()
    over_tokens = (x - x.mean(1, keepdim=True)) / (
        x.var(1, keepdim=True, unbiased=False) + 1e-5
    ).sqrt()
    slips = {
        "your variance divides by d - 1; LayerNorm divides by d (unbiased=False)": (
            centred / (unbiased + 1e-5).sqrt() * weight + bias
        ),
        "your epsilon is outside the root; it belongs inside": (
            centred / (variance.sqrt() + 1e-5) * weight + bias
        ),
        "your variance divides by d - 1 and your epsilon is outside the root: use "
        "unbiased=False, and put epsilon inside": centred / (unbiased.sqrt() + 1e-5) * weight
        + bias,
        "you divided by the variance; divide by its root": (
            centred / (variance + 1e-5) * weight + bias
        ),
        "you forgot to subtract the mean": x / (variance + 1e-5).sqrt() * weight + bias,
        "gain and bias are missing": right,
        "the bias is missing": right * weight,
        "your statistics run over the batch: that is BatchNorm; take them over dim=-1": (
            over_batch * weight + bias
        ),
        "your statistics run over the tokens of a sentence; take them over the features, dim=-1": (
            over_tokens * weight + bias
        ),
    }
    _expect_no_slip(output, slips)
    expect_close(output, F.layer_norm(x, (8,), weight, bias), "the output differs from PyTorch's")


@exercise("07.3", given=0xB32530BA)
def rms_norm(answer):
    x, weight = torch.randn(3, 4, 8), torch.randn(8)
    output = answer(x, weight)
    expect_shape(output, x.shape, "the norm keeps the shape")
    features, tokens = x.pow(2).mean(-1, keepdim=True), x.pow(2).mean(1, keepdim=True)
    slips = {
        "the mean runs over the tokens (dim=1), and the root is missing": (
            x / (tokens + 1e-5) * weight
        ),
        "one bug left: the mean runs over the tokens; each token must be normalised over its "
        "own features": x / (tokens + 1e-5).sqrt() * weight,
        "one bug left: the root is missing, so a token twice as large comes out half as large": (
            x / (features + 1e-5) * weight
        ),
        "that is LayerNorm: RMSNorm does not subtract the mean": F.layer_norm(x, (8,), weight),
    }
    _expect_no_slip(output, slips)
    expect_close(output, F.rms_norm(x, (8,), weight, 1e-5), "the output differs from PyTorch's")


@exercise("07.4", hint="each line returns two numbers: averaged over, and how many means")
def count(answer):
    for size in ((4, 5, 16), (2, 9, 8)):
        b, t, d = size
        layer, batch = answer("layer", *size), answer("batch", *size)
        swapped = tuple(layer) == (b * t, d) and tuple(batch) == (d, b * t)
        expect(not swapped, "you have swapped the two norms, or the two numbers of each pair")
        expect(
            tuple(batch) not in ((b, t * d), (b, d * t), (b, d)),
            "BatchNorm averages a feature over the tokens of every sentence, not over the batch "
            "axis alone: T counts too",
        )
        expect(
            tuple(layer) != (t * d, b),
            "LayerNorm does not average over the tokens of a sentence: each token is alone",
        )
        expect_close(
            layer, (d, b * t), f"LayerNorm on shape {size}: averaged over, number of means", 0
        )
        expect_close(
            batch, (b * t, d), f"BatchNorm on shape {size}: averaged over, number of means", 0
        )


@exercise("07.5", hint="x[real] has shape (number of real tokens, D)")
def masked_batch_norm(answer):
    x = torch.randn(3, 5, 4) + 2
    real = torch.arange(5) < torch.tensor([[5], [2], [3]])  # (3, 5)
    x = torch.where(real[..., None], x, torch.zeros(()))  # padding holds zeros
    output = answer(x, real)
    expect_shape(output, x.shape, "the norm keeps the shape, padding included")
    tokens = x[real]  # (real tokens, D)

    def normalised(mean, variance):
        return (x - mean) / (variance + 1e-5).sqrt()

    all_mean, all_variance = x.mean((0, 1)), x.var((0, 1), unbiased=False)
    half = (x.sum((0, 1)) / real.sum(), all_variance)
    per_sentence = x.sum(1, keepdim=True) / real.sum(1)[:, None, None]
    distance = (x - per_sentence).pow(2) * real[..., None]
    sentence_variance = distance.sum(1, keepdim=True) / real.sum(1)[:, None, None]
    slips = {
        "padding still counts in your mean and variance": normalised(all_mean, all_variance),
        "padding still counts in your variance": normalised(tokens.mean(0), all_variance),
        "the mean skips padding, the variance does not": normalised(*half),
        "that is LayerNorm over the features; BatchNorm takes each feature over the tokens": (
            F.layer_norm(x, (4,))
        ),
        "you took the statistics of each sentence alone; take them over the whole batch": (
            normalised(per_sentence, sentence_variance)
        ),
        "divide by the number of real tokens, not by one less (unbiased=False)": (
            normalised(tokens.mean(0), tokens.var(0))
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip[real], output[real]), message)
    right = normalised(tokens.mean(0), tokens.var(0, unbiased=False))
    expect_close(output[real], right[real], "the real tokens are not right")
