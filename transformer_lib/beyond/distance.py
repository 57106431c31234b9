"""Distance inside the attention: as a factor of the scores, and as a span that each head learns.

ALiBi, distance as a term, is `positional.AlibiBias`.
"""

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.models.language_model import LanguageModel


def places_between(n_queries: int, n_keys: int, start: int = 0, device=None) -> Tensor:
    """(n_queries, n_keys) distances; the first query stands at place `start`."""
    query = torch.arange(start, start + n_queries, device=device)
    return (query[:, None] - torch.arange(n_keys, device=device)).abs()


def distance_factor(distance: Tensor, weight: Tensor, height: Tensor) -> Tensor:
    """(1 + e^height) / (1 + e^(height - weight * distance)): 1 at distance 0 (Wu et al. 2021).

    A positive weight lets far keys count more, up to 1 + e^height; a negative one lets them count
    less, down to 0; weight 0 leaves all as it is.
    """
    return (1 + height.exp()) / (1 + (height - weight * distance).exp())


def distance_attention(
    q: Tensor, k: Tensor, v: Tensor, weight: Tensor, height: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attention whose scores are cut off below 0 and multiplied by the distance factor.

    q, k, v: (B, H, T, K); weight, height: (H, 1, 1), learned, one for each head.
    """
    scores = (q @ k.mT / q.size(-1) ** 0.5).relu()  # a factor could not lower a negative score
    distance = places_between(q.size(2), k.size(2), device=q.device)
    scores = scores * distance_factor(distance, weight, height)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def soft_span(distance: Tensor, span: Tensor, ramp: float) -> Tensor:
    """1 up to the span, then down to 0 over `ramp` places (Sukhbaatar et al. 2019, eq. 6)."""
    return ((ramp + span - distance) / ramp).clamp(0, 1)


class SpanAttention(MultiHeadAttention):
    """Causal self-attention in which each head learns how far back it looks.

    longest: the largest span there can be. The loss adds a price for `spans().mean()`.
    """

    def __init__(self, d_model: int, n_heads: int, longest: int, ramp: float = 8.0, start=0.5):
        super().__init__(d_model, n_heads)
        self.longest, self.ramp = longest, ramp
        self.share = nn.Parameter(torch.full((n_heads, 1, 1), float(start)))  # of the longest

    def spans(self) -> Tensor:
        """How many places back each head looks with full weight: (H, 1, 1)."""
        return self.share.clamp(0, 1) * self.longest

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        """As MultiHeadAttention, over one text: query, key and value the same (B, T, D)."""
        q, k, v = (
            self.split_heads(w(x))
            for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        scores = q @ k.mT / self.d_head**0.5  # (B, H, T, T)
        scores = scores.masked_fill(~mask, -torch.inf)
        distance = places_between(q.size(2), k.size(2), device=q.device)
        span = soft_span(distance, self.spans(), self.ramp)
        # The mask multiplies e^score: what is left is shared out again.
        weights = scores.softmax(-1) * span  # (B, H, T, T)
        weights = weights / weights.sum(-1, keepdim=True)
        return self.w_o(self.join_heads(weights @ v)), weights if need_weights else None


def with_spans(model: LanguageModel, longest: int) -> LanguageModel:
    """The model with a SpanAttention in every layer, in place."""
    sizes = model.config.d_model, model.config.n_heads
    for layer in model.decoder.layers:
        layer.self_attention = SpanAttention(*sizes, longest)
    return model
