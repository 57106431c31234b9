"""Attention: every query takes a weighted average of the values (sec. 3.2).

`scaled_dot_product_attention` is eq. 1 written out, and returns its weights. `MultiHeadAttention`
(sec. 3.2.2) runs several of them side by side, through PyTorch's fused kernel when nobody asks
for the weights. Tests check that the two agree.
"""

import math
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.cache import KeyValueCache
from transformer_lib.guards import require_mask, require_no_zeros_and_ones
from transformer_lib.positional import PositionalScheme


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout_p: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v, with its weights (eq. 1; figure 2, left): the teaching version.

    q: (..., T_query, K); k: (..., T_key, K); v: (..., T_key, K_v). mask: bool, True = may attend,
    or a float tensor to add to the scores; broadcastable to (..., T_query, T_key).
    Returns the output (..., T_query, K_v) and the weights (..., T_query, T_key). If a query may
    not attend to anything, its weights and its output are zero.
    """
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(
            f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)} do not fit: q and k must "
            "share their last size (d_k), k and v their last but one (the number of keys)."
        )
    if mask is not None and mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(
            f"mask has dtype {mask.dtype}; expected bool, True = may attend: use mask.bool()."
        )
    # The scores of unit-variance q and k have variance d_k; the division brings it back to 1.
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (..., T_query, T_key)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        require_no_zeros_and_ones(mask)
        scores = scores + mask
    # A row of only -inf has no softmax (0 / 0 = NaN): such a query attends to nothing.
    nothing = scores.isneginf().all(-1, keepdim=True)  # (..., T_query, 1)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), dim=-1).masked_fill(nothing, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """n_heads heads side by side, each on a slice of d_model / n_heads features (sec. 3.2.2).

    positions: a scheme that acts inside this attention (RotaryEmbedding, AlibiBias), or None.
    n_kv_heads: the number of heads for keys and values. If there are fewer of them, each serves
    n_heads / n_kv_heads heads of queries (grouped-query attention, Ainslie et al. 2023).
    Raises ValueError if the sizes do not divide evenly or the inputs are not d_model wide.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        positions: PositionalScheme | None = None,
        n_kv_heads: int | None = None,
    ):
        super().__init__()
        n_kv_heads = n_kv_heads or n_heads
        _check_sizes(d_model, n_heads, n_kv_heads, positions)
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.d_head = d_model // n_heads  # K
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.w_v = nn.Linear(d_model, n_kv_heads * self.d_head, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.positions = positions or PositionalScheme()  # which does nothing

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        mask: Tensor | None = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Queries attend to keys and take their values.

        query: (B, T_query, D); key, value: (B, T_key, D); mask: bool, True = may attend,
        broadcastable to (B, n_heads, T_query, T_key). With a cache, the keys and values of earlier
        calls come before those of this one; if key and value are None, only cached ones are read.
        Returns (B, T_query, D), and the weights (B, n_heads, T_query, T_key) if need_weights.
        """
        _check_inputs(self.d_model, query, key, value, cache)
        start = 0 if cache is None else cache.length
        q = self.split_heads(self.w_q(query))  # (B, H, T_query, K)
        if key is None:
            k, v = cache.keys, cache.values
        else:
            k = self.split_heads(self.w_k(key))  # (B, n_kv_heads, T_key, K)
            v = self.split_heads(self.w_v(value))
            q, k = self.positions.turn(q, k, start)
            if cache is not None:
                k, v = cache.append(k, v)
        k, v = self.share_heads(k), self.share_heads(v)  # (B, H, T_key, K)
        require_mask(mask, (*q.shape[:3], k.size(2)))
        bias = self.positions.bias(q.size(-2), k.size(-2), start)  # (1, H, T_query, T_key)
        if bias is not None:
            mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        output, weights = self.attend(q, k, v, mask, need_weights)
        return self.w_o(self.join_heads(output)), weights

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, need_weights=False
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all heads at once. Other kinds of attention override this method.

        q: (B, H, T_query, K); k, v: (B, H, T_key, K); mask: as above, or a float tensor to add to
        the scores. Returns (B, H, T_query, K), and the weights if need_weights.
        """
        dropout_p = self.dropout if self.training else 0.0
        if need_weights:
            return scaled_dot_product_attention(q, k, v, mask, dropout_p)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p), None

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, K): each head gets its own slice of the features."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def share_heads(self, x: Tensor) -> Tensor:
        """(B, n_kv_heads, T, K) -> (B, H, T, K): each head repeated for its query heads."""
        group = self.n_heads // x.size(1)
        return x if group == 1 else x.repeat_interleave(group, dim=1)

    def join_heads(self, x: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D): the slices side by side again."""
        return x.transpose(1, 2).flatten(2)


def _check_sizes(d_model, n_heads, n_kv_heads, positions):
    if d_model % n_heads:
        raise ValueError(
            f"d_model {d_model} is not divisible by n_heads {n_heads}: each head gets "
            "d_model / n_heads numbers, so choose sizes that divide."
        )
    if n_heads % n_kv_heads:
        raise ValueError(
            f"n_heads {n_heads} is not divisible by n_kv_heads {n_kv_heads}: each head of keys "
            "serves n_heads / n_kv_heads heads of queries, so choose numbers that divide."
        )
    if not isinstance(positions, PositionalScheme | None):
        raise TypeError(
            f"positions is {positions!r}; expected a scheme such as RotaryEmbedding(d_head), or "
            "None. (A name goes into ModelConfig(positional=...).)"
        )


def _check_inputs(d_model, query, key, value, cache):
    if key is None and value is None and cache is not None and cache.length:
        key = value = query[:, :0]  # the cache holds them
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x is None or x.dim() != 3 or x.size(-1) != d_model:
            shape = None if x is None else tuple(x.shape)
            raise ValueError(f"{name} has shape {shape}; expected (batch, tokens, {d_model}).")
    if key.shape != value.shape or query.size(0) != key.size(0):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)} "
            "do not fit: all need the same batch size, and every key needs its value."
        )


@contextmanager
def record_attention(module: nn.Module):
    """Collect the attention weights of every MultiHeadAttention inside `module`.

    Within the block, each forward pass stores its weights, (B, H, T_query, T_key), under the
    attention's name in the yielded dictionary:

        with record_attention(model) as weights:
            model(src_ids, tgt_ids)
        weights["encoder.layers.0.self_attention"]
    """
    weights: dict[str, Tensor] = {}

    def ask(_, args, kwargs):
        return args, kwargs | {"need_weights": True}

    def keep(name):
        return lambda _module, _inputs, output: weights.__setitem__(name, output[1].detach())

    handles = []
    for name, part in module.named_modules():
        if isinstance(part, MultiHeadAttention):
            handles.append(part.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(part.register_forward_hook(keep(name)))
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()
