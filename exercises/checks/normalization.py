"""Checks for chapter 07, normalisation."""

import torch
import torch.nn.functional as F
from torch import nn

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
from exercises.checks.framework import parameters_of
from transformer_lib.normalization import BatchNorm

RIGHT = [-1.0, -1.0, 1.0, 1.0]


def _norm_both():
    rows = torch.tensor([[1.0, 1, 3, 3], [10, 10, 30, 30]])
    return dict(zip(("first", "second"), F.layer_norm(rows, (4,), eps=0.0).tolist(), strict=True))


by_hand = values(
    1,
    "by_hand",
    measure=_norm_both,
    hint=(
        "give two lists of four numbers",
        "work out the mean, then the standard deviation (divide by 4, not by 3)",
        "multiplying the input by ten multiplies the mean and the deviation by ten: what stays "
        "the same?",
    ),
    packed=True,
    first=Part(
        RIGHT,
        "the mean is 2 and the variance is 1",
        {
            "you divided the squared distances by 3; LayerNorm divides by all 4 numbers": (
                [[-0.866, -0.866, 0.866, 0.866]]
            ),
            "the mean of a normalised token is 0": lambda given: abs(sum(given)) > 0.04,
        },
        tolerance=1e-2,
    ),
    second=Part(RIGHT, "if the token is ten times as large, so is its deviation", tolerance=1e-2),
)


def _affine(B=3, T=4, D=8, size=0.01, shift=0.0):
    # Small numbers first, so that the place of epsilon shows.
    return size * torch.randn(B, T, D) + shift, torch.randn(D), torch.randn(D)


def _normed(dim=-1, unbiased=False, outside=False, root=True, centre=True, gain=1, shift=1):
    """A LayerNorm with one thing done in another way."""

    def norm(x, weight, bias, eps=1e-5):
        mean = x.mean(dim, keepdim=True) if centre else 0.0
        variance = x.var(dim, keepdim=True, unbiased=unbiased)
        scale = (variance + eps).sqrt() if not outside else variance.sqrt() + eps
        x = (x - mean) / (scale if root else variance + eps)
        return (x * weight if gain else x) + (bias if shift else 0.0)

    return norm


def _with_another_epsilon(reference, *args):
    """A law: the answer uses the `eps` that it is given, if it takes one."""

    def law(answer):
        if parameters_of(answer) > len(args):
            expect(
                not same(answer(*args, 0.5), reference(*args, 1e-5), 1e-4),
                "you use 1e-5, whatever `eps` you're given",
            )
            expect_close(answer(*args, 0.5), reference(*args, 0.5), "with eps = 0.5 it is wrong")

    return law


_keeps_epsilon = _with_another_epsilon(
    lambda x, w, b, eps: F.layer_norm(x, (6,), w, b, eps),
    torch.linspace(-1, 2, 12).view(1, 2, 6) ** 2, torch.arange(6.0), torch.ones(6),
)


def _layer_norm_laws(answer):
    _keeps_epsilon(answer)
    x = torch.linspace(-1, 1, 6).view(1, 1, 6)
    near, far = (answer(x + mean, torch.ones(6), torch.zeros(6)) for mean in (0.0, 4000.0))
    expect_close(
        far, near, "right near 0, but adding 4,000 to each number changes the result: the mean of "
        "the squares minus the square of the mean loses all digits; subtract the mean, then square",
        tolerance=0.02,
    )


@exercise(
    2,
    inputs=_affine,
    vary=(dict(size=1.0, shift=3.0), dict(B=2, T=5, D=6, size=0.02), dict(B=4, T=4, D=4, size=2.0)),
    hint="subtract the mean, divide by the root of the variance, then apply the gain and the bias",
    wrong="the output differs from PyTorch's",
    shape="the norm keeps the shape",
    tolerance=1e-4,
    gradients=True,
    forbid=("layer_norm", "native_layer_norm", "batch_norm", "rms_norm"),
    laws=_layer_norm_laws,
    slips={
        "your variance divides by d - 1; LayerNorm divides by d (unbiased=False)": (
            _normed(unbiased=True)
        ),
        "your epsilon is outside the root; it belongs inside": _normed(outside=True),
        "your variance divides by d - 1 and your epsilon is outside the root: use "
        "unbiased=False, and put epsilon inside": _normed(unbiased=True, outside=True),
        "you divided by the variance; divide by its root": _normed(root=False),
        "you forgot to subtract the mean": _normed(centre=False),
        "gain and bias are missing": _normed(gain=0, shift=0),
        "the bias is missing": _normed(shift=0),
        "the gain is missing": _normed(gain=0),
        "your statistics run over the batch: that is BatchNorm; take them over dim=-1": (
            _normed(dim=(0, 1))
        ),
        "your statistics run over the tokens of a sentence; take them over the features, dim=-1": (
            _normed(dim=1)
        ),
        "your statistics run over the sentences; take them over the features, dim=-1": (
            _normed(dim=0)
        ),
        "your statistics run over tokens and features together; each token is on its own, dim=-1": (
            _normed(dim=(1, 2))
        ),
        "epsilon is missing: a token of equal numbers would divide by 0": (
            lambda x, weight, bias: _normed()(x, weight, bias, 0.0)
        ),
        "the gain comes before the bias: the bias isn't multiplied": (
            lambda x, weight, bias: _normed(gain=0, shift=0)(x, weight, bias) * weight
            + bias * weight
        ),
        "that is RMSNorm: LayerNorm also subtracts the mean": (
            lambda x, weight, bias: _rms()(x, weight) + bias
        ),
        "the variance is the mean square of what is left without the mean; yours is that of x": (
            lambda x, weight, bias: (x - x.mean(-1, keepdim=True))
            / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias
        ),
        "the gain is `weight` itself, not 1 + weight": (
            lambda x, weight, bias: _normed()(x, 1 + weight, bias)
        ),
    },
)
def layer_norm(x, weight, bias):
    mean = x.mean(-1, keepdim=True)  # (B, T, 1)
    variance = x.var(-1, keepdim=True, unbiased=False)  # (B, T, 1)
    normed = (x - mean) / (variance + 1e-5).sqrt()
    return normed * weight + bias


def _rms(dim=-1, root=True, eps=1e-5):
    def norm(x, weight):
        mean_square = x.pow(2).mean(dim, keepdim=True) + eps
        return x / (mean_square.sqrt() if root else mean_square) * weight

    return norm


@exercise(
    3,
    inputs=lambda B=3, T=4, D=8, size=1.0, shift=0.5: (
        size * torch.randn(B, T, D) + shift, torch.randn(D)
    ),
    vary=(dict(B=2, T=5, D=6, size=0.01, shift=0.0), dict(B=4, T=4, D=4)),
    given=0xB32530BA,
    wrong="the output differs from PyTorch's",
    shape="the norm keeps the shape",
    tolerance=1e-4,
    gradients=True,
    laws=_with_another_epsilon(
        lambda x, w, eps: F.rms_norm(x, (6,), w, eps),
        torch.linspace(-1, 2, 12).view(1, 2, 6) ** 2, torch.arange(6.0),
    ),
    slips={
        "the mean runs over the tokens (dim=1), and the root is missing": _rms(1, False),
        "one bug left: the mean runs over the tokens; each token must be normalised over its "
        "own features": _rms(1),
        "one bug left: the root is missing, so a token twice as large comes out half as large": (
            _rms(-1, False)
        ),
        "that is LayerNorm: RMSNorm does not subtract the mean": (
            lambda x, weight: _normed(shift=0)(x, weight, None)
        ),
        "the gain is missing": lambda x, weight: _rms()(x, torch.ones_like(weight)),
        "epsilon is missing": _rms(eps=0.0),
        "the mean runs over tokens and features together; each token is on its own, dim=-1": (
            _rms((1, 2))
        ),
        "you multiply by the root; divide by it": (
            lambda x, weight: x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight
        ),
        "your epsilon is outside the root; it belongs inside": (
            lambda x, weight: x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-5) * weight
        ),
    },
)
def rms_norm(x, weight):
    mean_square = x.pow(2).mean(-1, keepdim=True)  # (B, T, 1)
    normed = x / (mean_square + 1e-5).sqrt()
    return normed * weight


def _either(layer, batch):
    """Counts of the two kinds, from functions of B, T and D."""
    return lambda kind, B, T, D: (layer if kind == "layer" else batch)(B, T, D)


def _layer(B, T, D):
    return D, B * T


def _batch(B, T, D):
    return B * T, D


@exercise(
    4,
    inputs=[("layer", 4, 5, 16), ("batch", 4, 5, 16), ("layer", 2, 9, 8), ("batch", 2, 9, 8)],
    hint=(
        "each line returns two numbers: how many numbers each mean averages over, and how many "
        "means there are",
        "LayerNorm takes one mean for each token; BatchNorm takes one for each feature, over "
        "everything else",
    ),
    tell=lambda given, expected, kind, *sizes: (
        f"for {kind.capitalize()}Norm on shape {sizes}: how many numbers does each mean average "
        "over, and how many means are there?"
    ),
    shape="return a pair of numbers for each kind",
    shrinks=False,
    slips={
        "you have swapped the two norms, or the two numbers of each pair": _either(_batch, _layer),
        "BatchNorm averages a feature over the tokens of every sentence, not over the batch "
        "axis alone: T counts too": [
            _either(_layer, lambda B, T, D: (B, T * D)),
            _either(_layer, lambda B, T, D: (B, D)),
        ],
        "LayerNorm does not average over the tokens of a sentence: each token is on its own": [
            _either(lambda B, T, D: (T * D, B), batch)
            for batch in (_batch, lambda B, T, D: (T * D, B))
        ],
        "both kinds give the same pair: LayerNorm and BatchNorm average over different axes": [
            _either(_layer, _layer), _either(_batch, _batch)
        ],
        "LayerNorm takes a mean for each token of every sentence: B counts too": (
            _either(lambda B, T, D: (D, T), _batch)
        ),
    },
)
def count(kind, B, T, D):
    return (D, B * T) if kind == "layer" else (B * T, D)


def _padded(B=3, T=5, D=4, size=1.0):
    x = size * (torch.randn(B, T, D) + 2)  # padding is not zero
    lengths = torch.randint(1, T + 1, (B,))
    lengths[0], lengths[-1] = T, max(1, T // 2)
    return x, torch.arange(T) < lengths[:, None]


def _real_tokens(output, x, real):
    expect_shape(output, x.shape, "the norm keeps the shape, padding included")
    return torch.as_tensor(output)[real]  # what stands at padding does not matter


def _by(statistics):
    """A norm from a function (x, real) -> mean, variance."""

    def norm(x, real, eps=1e-5):
        mean, variance = statistics(x, real)
        return (x - mean) / (variance + eps).sqrt()

    return norm


def _zeroed(x, real):
    return x * real[..., None]


def _of_sentence(x, real):
    n = real.sum(1)[:, None, None]
    mean = _zeroed(x, real).sum(1, keepdim=True) / n
    return mean, _zeroed((x - mean) ** 2, real).sum(1, keepdim=True) / n


@exercise(
    5,
    inputs=_padded,
    vary=(dict(B=2, T=6, D=3, size=0.01), dict(B=4, T=3, D=5), dict(B=4, T=4, D=4)),
    hint="x[real] has shape (number of real tokens, D)",
    wrong="the real tokens aren't normalised correctly",
    view=_real_tokens,
    tolerance=1e-4,
    gradients="flow",
    laws=_with_another_epsilon(
        lambda x, real, eps: (x - 1.5) / (1.25 + eps) ** 0.5,
        torch.arange(4.0).view(1, 4, 1), torch.ones(1, 4).bool(),
    ),
    slips={
        "padding still counts in your mean and variance": [
            _by(lambda x, real: (x.mean((0, 1)), x.var((0, 1), unbiased=False))),
            _by(lambda x, real: (_zeroed(x, real).mean((0, 1)),
                                 _zeroed(x, real).var((0, 1), unbiased=False))),
        ],
        "padding still counts in your variance": _by(
            lambda x, real: (x[real].mean(0), x.var((0, 1), unbiased=False))
        ),
        "you set padding to zero in the mean, but the variance still counts it": _by(
            lambda x, real: (x[real].mean(0), _zeroed(x, real).var((0, 1), unbiased=False))
        ),
        "that is LayerNorm over the features; BatchNorm takes each feature over the tokens": (
            lambda x, real: F.layer_norm(x, x.shape[-1:])
        ),
        "you took the statistics of each sentence separately; take them over the whole batch": (
            _by(_of_sentence)
        ),
        "divide by the number of real tokens, not by one less (unbiased=False)": _by(
            lambda x, real: (x[real].mean(0), x[real].var(0))
        ),
        "you took the statistics over all features together; each feature has its own": _by(
            lambda x, real: (x[real].mean(), x[real].var(unbiased=False))
        ),
        "the mean divides by all tokens, padding included; divide by the real ones": _by(
            lambda x, real: (
                mean := _zeroed(x, real).mean((0, 1)), _zeroed(x - mean, real).pow(2).mean((0, 1))
            )
        ),
        "those are the statistics of the padding; True marks the real tokens": _by(
            lambda x, real: (x[~real].mean(0), x[~real].var(0, unbiased=False))
        ),
        "the variance adds up padding's distances too": _by(
            lambda x, real: (
                x[real].mean(0), (x - x[real].mean(0)).pow(2).sum((0, 1)) / real.sum()
            )
        ),
    },
)
def masked_batch_norm(x, real):
    tokens = x[real]  # (real tokens, D)
    mean, variance = tokens.mean(0), tokens.var(0, unbiased=False)
    return (x - mean) / (variance + 1e-5).sqrt()


@judged(
    6,
    hint=(
        "BatchNorm uses just two numbers for each feature, and the padding can have the same two",
        "the mean and variance of each feature over the batch must stay as they were",
        "what if the padding is the sentence itself, in whatever order you like?",
    ),
    example=lambda x: x.clone(),
)
def padding_that_does_nothing(padding):
    for seed in range(3):
        torch.manual_seed(seed)
        sentence = 3 * torch.randn(1, 5, 16) + torch.arange(16.0)
        added = torch.as_tensor(padding(sentence))
        expect_shape(added, (1, 5, 16), "the padding should be five vectors of 16 numbers")
        layer = BatchNorm(16).train()
        nn.init.normal_(layer.weight), nn.init.normal_(layer.bias)
        alone, padded = layer(sentence), layer(torch.cat([sentence, added], 1))[:, :5]
        change = (padded - alone).abs().max().item()
        expect(
            change < 1e-3,
            f"your padding still changes a real token, by up to {change:.2f}",
        )


def _backwards(centre=True, along=1.0, over=1.0, dim=-1, add=torch.mean, unbiased=False, unit=True):
    """The gradient through a norm, with one step of the derivation done in another way."""

    def back(x, gradient, eps=1e-5):
        distance = x - x.mean(dim, keepdim=True)
        spread = (x.var(dim, keepdim=True, unbiased=unbiased) + eps).sqrt()
        normed = distance / spread if unit else distance
        found = gradient - (add(gradient, dim, keepdim=True) if centre else 0.0)
        found = found - along * normed * add(gradient * normed, dim, keepdim=True)
        return found / spread**over

    return back


def _loss_on_norm(B=1, T=4, pairs=4, size=1.0, shift=0.5):
    D = 2 * pairs  # with two features every normalised token is (-1, 1): there is no gradient
    return size * torch.randn(B, T, D) + shift, torch.randn(B, T, D) + 0.5


@exercise(
    7,
    inputs=_loss_on_norm,
    vary=(dict(B=2, T=5, pairs=3, size=0.01, shift=0.0), dict(B=4, T=4, pairs=2, size=3.0)),
    hint=(
        "each number of x acts on the result in three ways: directly, through the mean, and "
        "through sigma; write down the three derivatives",
        "the derivative of the mean is 1 / D, that of sigma is normed / D; the chain rule adds up "
        "three terms",
        "every sum over the token comes with a 1 / D: it's a mean. One such mean belongs "
        "to mu, one to sigma",
    ),
    wrong="the gradient differs from the one that autograd finds",
    shape="the gradient has the shape of x",
    tolerance=1e-4,
    forbid=("grad", "backward", "layer_norm", "native_layer_norm"),
    laws=_with_another_epsilon(
        lambda x, gradient, eps: _backwards()(x, gradient, eps),
        torch.linspace(-1, 2, 12).view(1, 2, 6) ** 2, torch.arange(12.0).view(1, 2, 6) ** 0.5,
    ),
    slips={
        "you treated mean and deviation as constants; both change with every number of the token": (
            _backwards(centre=False, along=0.0)
        ),
        "sigma depends on x, too: a term along the normalised token is missing": (
            _backwards(along=0.0)
        ),
        "the mean depends on x, too: the mean of the gradient must be subtracted": (
            _backwards(centre=False)
        ),
        "the sign of sigma's term is wrong: 1 / sigma becomes smaller where sigma grows": (
            _backwards(along=-1.0)
        ),
        "sigma is a root: its derivative is normed / D, since the 2 of the square and the 1/2 of "
        "the root cancel": [_backwards(along=2.0), _backwards(along=0.5)],
        "those are sums; the mean and the variance divide by D, and so do their derivatives": (
            _backwards(add=torch.sum)
        ),
        "sigma is missing: the normalised token changes by 1 / sigma when x changes by 1": (
            _backwards(over=0.0)
        ),
        "divide by sigma rather than multiply: the same step moves a larger token less": (
            _backwards(over=-1.0)
        ),
        "you divided by sigma twice": _backwards(over=2.0),
        "in sigma's term the token must be the normalised one, (x - mean) / sigma": (
            _backwards(unit=False)
        ),
        "your variance divides by d - 1; LayerNorm divides by d (unbiased=False)": (
            _backwards(unbiased=True)
        ),
        "your means run over the batch; each token is on its own, dim=-1": _backwards(dim=(0, 1)),
        "your means run over the tokens of a sentence; take them over the features, dim=-1": (
            _backwards(dim=1)
        ),
        "epsilon is missing in sigma": (
            lambda x, gradient: _backwards()(x, gradient, 0.0)
        ),
    },
)
def norm_gradient(x, gradient):
    spread = (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()  # (B, T, 1)
    normed = (x - x.mean(-1, keepdim=True)) / spread
    through_mean = gradient.mean(-1, keepdim=True)  # (B, T, 1)
    through_spread = normed * (gradient * normed).mean(-1, keepdim=True)
    return (gradient - through_mean - through_spread) / spread
