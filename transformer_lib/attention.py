"""Attention: every query takes a weighted average of the values (sec. 3.2).

`scaled_dot_product_attention` is eq. 1 written out, and returns its weights. `MultiHeadAttention`
(sec. 3.2.2) runs several of them side by side, through PyTorch's fused kernel when nobody asks
for the weights. Tests hold the two to the same numbers.
"""

import math
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.positional import AlibiBias, RotaryEmbedding


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout_p: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v, with its weights (eq. 1; figure 2, left): the teaching version.

    q: (..., T_query, K); k: (..., T_key, K); v: (..., T_key, K_v). mask: bool, True = may attend,
    or a float to add to the scores; broadcastable to (..., T_query, T_key).
    Returns the output (..., T_query, K_v) and the weights (..., T_query, T_key). A query that may
    attend to nothing gets weights and output of zero.
    """
    if q.size(-1) != k.size(-1) or k.size(-2) != v.size(-2):
        raise ValueError(
            f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)} do not fit: q and k must "
            "share their last size (d_k), k and v their second last (the number of keys)."
        )
    if mask is not None and mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(
            f"mask has dtype {mask.dtype}; expected bool, True = may attend: use mask.bool()."
        )
    # The scores of unit-variance q and k have variance d_k; the root brings it back to 1.
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (..., T_query, T_key)
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    # A row of only -inf has no softmax (0 / 0 = NaN): such a query attends to nothing.
    nothing = scores.isneginf().all(-1, keepdim=True)  # (..., T_query, 1)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), dim=-1).masked_fill(nothing, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """n_heads attentions in parallel on slices of d_model / n_heads features (sec. 3.2.2).

    position: a RotaryEmbedding or AlibiBias that acts inside this attention, or None.
    Raises ValueError when d_model is not divisible by n_heads, or inputs are not d_model wide.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        position: RotaryEmbedding | AlibiBias | None = None,
    ):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(
                f"d_model {d_model} is not divisible by n_heads {n_heads}: each head gets "
                "d_model / n_heads numbers, so choose sizes that divide."
            )
        self.d_model, self.n_heads, self.dropout = d_model, n_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.position = position

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        need_weights: bool = False,
        cache: "KeyValueCache | None" = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Queries attend to keys and take their values.

        query: (B, T_query, D); key, value: (B, T_key, D); mask: bool, True = may attend,
        broadcastable to (B, n_heads, T_query, T_key). With a cache, keys and values of earlier
        calls are put before those of this call.
        Returns (B, T_query, D), and the weights (B, n_heads, T_query, T_key) if need_weights.
        """
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 3 or x.size(-1) != self.d_model:
                raise ValueError(
                    f"{name} has shape {tuple(x.shape)}; expected (batch, tokens, {self.d_model})."
                )
        if key.shape != value.shape or query.size(0) != key.size(0):
            raise ValueError(
                f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)} "
                "do not fit: all need one batch size, and every key its value."
            )
        start = 0 if cache is None else cache.length
        q = self.split_heads(self.w_q(query))  # (B, H, T_query, K)
        k = self.split_heads(self.w_k(key))  # (B, H, T_key, K)
        v = self.split_heads(self.w_v(value))  # (B, H, T_key, K)
        if isinstance(self.position, RotaryEmbedding):
            q, k = self.position(q, start), self.position(k, start)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.attend(q, k, v, mask, need_weights, start)

    def attend(self, q, k, v, mask=None, need_weights=False, start=0):
        """Attention of split heads, (B, H, T, K) each, the heads joined again: (B, T_query, D)."""
        if isinstance(self.position, AlibiBias):
            bias = self.position(q.size(-2), k.size(-2), start)  # (1, H, T_query, T_key)
            mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        dropout_p = self.dropout if self.training else 0.0
        if need_weights:
            output, weights = scaled_dot_product_attention(q, k, v, mask, dropout_p)
        else:
            output, weights = F.scaled_dot_product_attention(q, k, v, mask, dropout_p), None
        return self.w_o(self.join_heads(output)), weights

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, K): each head gets its own slice of the features."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """(B, H, T, K) -> (B, T, D): the slices side by side again."""
        return x.transpose(1, 2).flatten(2)


class KeyValueCache:
    """Keys and values of the tokens already seen, so that a decoding step computes only the new.

    With the causal mask, earlier tokens never look at later ones, so what was computed for them
    stays right. One cache serves one attention. keys, values: (B, H, length, K) or None.
    """

    def __init__(self):
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return 0 if self.keys is None else self.keys.size(2)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add (B, H, T_new, K) keys and values; returns all of them, (B, H, length, K)."""
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows named by `rows` (integers, repeats allowed), in that order."""
        if self.keys is not None:
            self.keys = self.keys.index_select(0, rows)
            self.values = self.values.index_select(0, rows)


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
