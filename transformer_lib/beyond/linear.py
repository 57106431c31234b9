"""Attention without the T x T scores: e^(q k) becomes a product of features phi(q) phi(k).

Then the sum over keys can be taken before the query is known:
sum_j phi(q) phi(k_j) v_j = phi(q) (sum_j phi(k_j) v_j). The methods differ in their features:
`elu_features` (linear attention), `fourier_features` (Random Feature Attention),
`positive_features` (Performer). All take (..., T, K) and return (..., T, M).
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1: positive, not random, and no approximation of e^(q k) (Katharopoulos 2020)."""
    return F.elu(x) + 1


def orthogonal_directions(n: int, size: int, generator: torch.Generator | None = None) -> Tensor:
    """(n, size) random directions; in each group of `size` they are at right angles to each other.

    Each has the length of a normal random vector, and therefore the distribution of one.
    """
    groups = torch.randn(-(-n // size), size, size, generator=generator)
    q, r = torch.linalg.qr(groups)
    # QR fixes the signs by a rule; multiplying by r's signs undoes it, so no side is favoured.
    q = q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None]
    directions = q.mT.flatten(0, 1)[:n]  # (n, size), length 1
    return directions * torch.randn(n, size, generator=generator).norm(dim=-1, keepdim=True)


def positive_features(x: Tensor, directions: Tensor) -> Tensor:
    """e^(w x - |x|^2/2) / sqrt(M): products are positive and average to e^(q k) (Performer, eq. 7).

    x: queries or keys, already divided by K ** 0.25. directions: (M, K).
    """
    exponent = x @ directions.T - x.square().sum(-1, keepdim=True) / 2  # (..., T, M)
    # A little more than 0, so that a query far from every direction does not divide 0 by 0.
    return exponent.exp() / directions.size(0) ** 0.5 + 1e-6


def fourier_features(x: Tensor, directions: Tensor) -> Tensor:
    """sin and cos of w x: products average to e^(-|q - k|^2 / 2) (Peng et al. 2021, eq. 4).

    If all vectors have the same length, this equals e^(q k) up to a factor that the softmax
    cancels, so RFA gives them all one length. Individual products can be negative.

    directions: (M / 2, K).
    """
    angle = x @ directions.T  # (..., T, M / 2)
    return torch.cat([angle.sin(), angle.cos()], dim=-1) / directions.size(0) ** 0.5


def linear_attention(q_features: Tensor, k_features: Tensor, v: Tensor) -> Tensor:
    """Linear attention in which every query sees every key.

    q_features: (B, H, T, M); k_features: (B, H, S, M); v: (B, H, S, K). Returns (B, H, T, K).
    """
    memory = k_features.transpose(-2, -1) @ v  # (B, H, M, K), whatever T is
    total = q_features @ k_features.sum(-2)[..., None]  # (B, H, T, 1)
    return q_features @ memory / total


class RecurrentAttention:
    """Causal linear attention as a recurrent network: a state of M x K numbers, one token per step.

    A decay below 1 forgets old tokens, like RFA's gate (which is computed from the token).
    """

    def __init__(self, decay: float = 1.0):
        self.decay, self.memory, self.total = decay, 0.0, 0.0

    def step(self, q_features: Tensor, k_features: Tensor, v: Tensor) -> Tensor:
        """Write a key and value, then read. q_features, k_features: (B, H, M), v: (B, H, K)."""
        written = k_features[..., :, None] * v[..., None, :]  # (B, H, M, K)
        self.memory = self.decay * self.memory + written
        self.total = self.decay * self.total + k_features  # (B, H, M)
        weight = (q_features * self.total).sum(-1, keepdim=True)  # (B, H, 1)
        return (q_features[..., None, :] @ self.memory)[..., 0, :] / weight
