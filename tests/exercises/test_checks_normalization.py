"""Every check of chapter 07 accepts the right answer and names what is wrong with others."""

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import normalization as ch


def norm_with(dim=-1, unbiased=False, outside=False, root=True):
    """A LayerNorm with the slips that its arguments choose."""

    def norm(x, weight, bias, eps=1e-5):
        variance = x.var(dim, keepdim=True, unbiased=unbiased)
        spread = (variance.sqrt() + eps) if outside else (variance + eps).sqrt()
        return (x - x.mean(dim, keepdim=True)) / (
            spread if root else variance + eps
        ) * weight + bias

    return norm


def rms_with(dim, root):
    def norm(x, weight, eps=1e-5):
        square = x.pow(2).mean(dim, keepdim=True) + eps
        return x / (square.sqrt() if root else square) * weight

    return norm


def masked(x, real, eps=1e-5):
    tokens = x[real]
    return (x - tokens.mean(0)) / (tokens.var(0, unbiased=False) + eps).sqrt()


def count(kind, b, t, d):
    return (d, b * t) if kind == "layer" else (b * t, d)


NORMAL = [-1, -1, 1, 1]
def mirrored(x):
    return 2 * x.mean(1, keepdim=True) - x


def norm_gradient_by_matrix(x, gradient, eps=1e-5):
    """Every token's whole Jacobian, (D, D), times its gradient."""
    D = x.size(-1)
    distance = x - x.mean(-1, keepdim=True)
    sigma = ((distance**2).mean(-1, keepdim=True) + eps) ** 0.5
    normed = distance / sigma
    jacobian = torch.eye(D) - 1 / D - normed[..., :, None] * normed[..., None, :] / D
    return (jacobian / sigma[..., None] @ gradient[..., None])[..., 0]


def by_autograd(x, gradient, eps=1e-5):
    leaf = x.clone().requires_grad_()
    normed = (leaf - leaf.mean(-1, keepdim=True)) / (leaf.var(-1, keepdim=True, unbiased=False)
                                                     + eps).sqrt()
    return torch.autograd.grad(normed, leaf, gradient)[0]


CASES = [
    (ch.by_hand, ([NORMAL, NORMAL],), True, "Right"),
    (ch.by_hand, ([..., ...],), None, "Not attempted"),
    (ch.by_hand, ([NORMAL, [-10, -10, 10, 10]],), False, "so is its deviation"),
    (ch.layer_norm, (norm_with(),), True, "Right"),
    (ch.layer_norm, (lambda x, w, b: ...,), None, "Not attempted"),
    (ch.layer_norm, (norm_with(unbiased=True, outside=True),), False, "and your epsilon"),
    (ch.layer_norm, (norm_with(dim=(0, 1)),), False, "BatchNorm"),
    (ch.layer_norm, (lambda x, w, b: F.layer_norm(x, (8,)),), False, "gain and bias"),
    (ch.rms_norm, (rms_with(-1, True),), True, "Right"),
    (ch.rms_norm, (lambda x, w: ...,), None, "Not attempted"),
    (ch.rms_norm, (rms_with(1, False),), False, "over the tokens (dim=1), and"),
    (ch.count, (count,), True, "Right"),
    (ch.count, (lambda kind, b, t, d: (..., ...),), None, "Not attempted"),
    (ch.masked_batch_norm, (masked,), True, "Right"),
    (ch.masked_batch_norm, (lambda x, real: ...,), None, "Not attempted"),
    # Wrong in a way that no message foresees: the comparison at the end must catch it.
    (ch.layer_norm, (lambda x, w, b: 2 * F.layer_norm(x, (8,), w, b),), False, "from PyTorch's"),
    (ch.rms_norm, (lambda x, w: 2 * rms_with(-1, True)(x, w),), False, "from PyTorch's"),
    (
        ch.count,
        (lambda kind, b, t, d: (d, 1) if kind == "layer" else (b * t, d),),
        False,
        "Layer",
    ),
    (
        ch.count,
        (lambda kind, b, t, d: (d, b * t) if kind == "layer" else (t, d),),
        False,
        "Batch",
    ),
    (ch.masked_batch_norm, (lambda x, real: 2 * masked(x, real),), False, "aren't normalised"),
    (ch.padding_that_does_nothing, (mirrored,), True, "Right"),
    (ch.padding_that_does_nothing, (lambda x: x.flip(1),), True, "Right"),
    (ch.padding_that_does_nothing, (lambda x: ...,), None, "Not attempted"),
    (ch.padding_that_does_nothing, (lambda x: 0 * x,), False, "still changes"),
    (ch.padding_that_does_nothing, (lambda x: x.mean(1, True).expand_as(x),), False, "still"),
    (ch.padding_that_does_nothing, (lambda x: x[:, :2],), False, "five vectors"),
    (ch.norm_gradient, (norm_gradient_by_matrix,), True, "Right"),
    (ch.norm_gradient, (lambda x, gradient, eps=1e-5: ...,), None, "Not attempted"),
    (ch.norm_gradient, (lambda x, g: norm_gradient_by_matrix(x, g) + 0.1,), False, "autograd"),
    (ch.norm_gradient, (lambda x, g: norm_gradient_by_matrix(x, g, 1e-5).mT,), False, "shape of x"),
    (ch.norm_gradient, (lambda x, g, eps=0: norm_gradient_by_matrix(x, g),), False, "use 1e-5"),
    (ch.norm_gradient, (by_autograd,), False, "rules out"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_a_masked_norm_may_do_anything_to_padding():
    def zeroed(x, real):
        return torch.where(real[..., None], masked(x, real), torch.zeros(()))

    assert ch.masked_batch_norm(zeroed) is True
