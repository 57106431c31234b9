"""Normalisation: keep every token's vector at a steady size (sec. 3.1, 5.4)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Layer normalisation in plain arithmetic (Ba et al. 2016, eq. 4): the teaching version.

    Each vector along the last axis is shifted to mean 0 and scaled to variance 1, independently of
    all other tokens and sentences. x: (..., D); weight, bias: (D,) -> (..., D).
    """
    mean = x.mean(-1, keepdim=True)  # (..., 1)
    variance = x.var(-1, keepdim=True, unbiased=False)  # (..., 1), divided by D, not D - 1
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias  # eps under the root


class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias per feature; equal to torch.nn.LayerNorm."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., D) -> (..., D)."""
        # One fused kernel that computes the same numbers as layer_norm above.
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Divide by the root mean square, without a mean or a bias (Zhang and Sennrich 2019, eq. 4)."""

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., D) -> (..., D)."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class BatchNorm(nn.Module):
    """Batch normalisation of each feature over all tokens of a batch (Ioffe and Szegedy 2015).

    It is here only for comparison: it mixes sentences, counts padding, and behaves differently in
    training (statistics of the batch) and at inference (running averages). The chapter on
    normalisation measures what that costs. Equal to torch.nn.BatchNorm1d on the flattened tokens.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_var", torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D)."""
        if self.training:
            tokens = x.reshape(-1, x.size(-1))  # (B * T, D)
            if len(tokens) < 2:
                raise ValueError("one token has no variance: BatchNorm trains on two or more.")
            mean, variance = tokens.mean(0), tokens.var(0, unbiased=False)  # (D,), (D,)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(tokens.var(0, unbiased=True), self.momentum)
        else:
            mean, variance = self.running_mean, self.running_var
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


# The names that ModelConfig.norm may take.
NORMS: dict[str, type[nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm, "batch": BatchNorm}


def make_norm(kind: str, d_model: int, eps: float = 1e-5) -> nn.Module:
    """The normalisation named by ModelConfig.norm: "layer", "rms" or "batch"."""
    if kind not in NORMS:
        raise ValueError(f"kind is {kind!r}; it must be one of {tuple(NORMS)}.")
    return NORMS[kind](d_model, eps)
