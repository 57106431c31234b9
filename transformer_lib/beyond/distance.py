"""Distance inside the attention: as a factor on the scores, and as a span that each head learns.

ALiBi, which adds a term for the distance, is `positional.AlibiBias`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.beyond.exchange import masked_softmax


def places_between(n_queries: int, n_keys: int, start: int = 0, device=None) -> Tensor:
    """(n_queries, n_keys) distances; the first query is at position `start`."""
    query = torch.arange(start, start + n_queries, device=device)
    return (query[:, None] - torch.arange(n_keys, device=device)).abs()


def distance_factor(distance: Tensor, weight: Tensor, height: Tensor) -> Tensor:
    """(1 + e^height) / (1 + e^(height - weight * distance)): 1 at distance 0 (Wu et al. 2021).

    A positive weight lets far keys count more, up to 1 + e^height; a negative one lets them count
    less, down to 0; weight 0 leaves everything as it is.
    """
    return (1 + height.exp()) / (1 + (height - weight * distance).exp())


class DistanceAttention(MultiHeadAttention):
    """Attention whose scores are cut off below 0 and multiplied by the distance factor (Wu et al.
    2021, DA-Transformer). Each head learns a weight and a height.

    It takes boolean masks only: the factor would distort a bias on the scores (ALiBi).
    """

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.weight = nn.Parameter(torch.zeros(self.n_heads, 1, 1))  # 0: no effect at first
        self.height = nn.Parameter(torch.zeros(self.n_heads, 1, 1))

    def attend(self, q, k, v, mask=None, need_weights=False):
        """As in MultiHeadAttention; the last query is at the last key's position."""
        if mask is not None and mask.dtype != torch.bool:
            raise ValueError("DistanceAttention multiplies scores and takes no bias: no ALiBi.")
        # Cut off first: a factor meant to raise a negative score would lower it.
        scores = (q @ k.mT / self.d_head**0.5).relu()  # (B, H, T_query, T_key)
        distance = places_between(q.size(2), k.size(2), k.size(2) - q.size(2), q.device)
        scores = scores * distance_factor(distance, self.weight, self.height)
        weights = F.dropout(masked_softmax(scores, mask), self.dropout, self.training)
        return weights @ v, weights if need_weights else None


def soft_span(distance: Tensor, span: Tensor, ramp: float) -> Tensor:
    """1 up to the span, then down to 0 over `ramp` positions (Sukhbaatar et al. 2019, eq. 6)."""
    return ((ramp + span - distance) / ramp).clamp(0, 1)


class SpanAttention(MultiHeadAttention):
    """Self-attention in which each head learns how far it looks.

    longest: the largest possible span. The loss should add a price times `spans().mean()`.
    """

    def __init__(self, *sizes, longest: int, ramp: float = 8.0, start: float = 0.5):
        super().__init__(*sizes)
        self.longest, self.ramp = longest, ramp
        # The parameter is a share of the longest span.
        self.share = nn.Parameter(torch.full((self.n_heads, 1, 1), float(start)))

    def spans(self) -> Tensor:
        """How far each head looks with full weight, in positions: (H, 1, 1)."""
        return self.share.clamp(0, 1) * self.longest

    def attend(self, q, k, v, mask=None, need_weights=False):
        """As in MultiHeadAttention; the last query is at the last key's position."""
        _, weights = scaled_dot_product_attention(q, k, v, mask)  # (B, H, T_query, T_key)
        distance = places_between(q.size(2), k.size(2), k.size(2) - q.size(2), q.device)
        weights = weights * soft_span(distance, self.spans(), self.ramp)
        # The span multiplies e^score, so what is left is normalised again.
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
        weights = F.dropout(weights, self.dropout, self.training)
        return weights @ v, weights if need_weights else None
