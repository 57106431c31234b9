"""Put another kind of attention into a finished stack: the same weights, a different `attend`."""

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention


def exchange(stack: nn.Module, kind: type[MultiHeadAttention], **settings) -> None:
    """Give every layer of an `Encoder` or a `Decoder` a self-attention of another kind, in place.

    kind: a subclass of MultiHeadAttention that overrides `attend`; settings: the other arguments of
    its constructor. Weights, positions, grouped heads, biases and dropout stay as they are.
    Raises ValueError for a layer whose attention is already a special one.
    """
    for layer in stack.layers:
        old = layer.self_attention
        if type(old) is not MultiHeadAttention:
            raise ValueError(
                f"this layer has a {type(old).__name__} already, whose `attend` would be lost: "
                "exchange the attention of a plain stack."
            )
        n_kv_heads = old.w_k.out_features // old.d_head
        bias = old.w_q.bias is not None
        new = kind(
            old.d_model, old.n_heads, old.dropout, bias, old.positions, n_kv_heads, **settings
        )
        new.load_state_dict(old.state_dict(), strict=False)
        layer.self_attention = new.to(old.w_q.weight.device).train(old.training)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Turn the scores from `attend` into attention weights. Both: (B, H, T_query, T_key).

    mask: bool, True = may attend. A query that may attend to nothing gets zeros, never NaN, as in
    `scaled_dot_product_attention`.
    """
    if mask is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min  # with -inf, the softmax of an empty row would be NaN
    return scores.masked_fill(~mask, lowest).softmax(-1).masked_fill(~mask, 0.0)
