"""The library's model with the reader's parts in the place of its own.

Weights, their names and their first values stay the library's. So weights can be copied, and a run
of such a model is loaded and exported like any other. What is computed with them is the reader's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercises.checks import decoder, encoder
from transformer_lib import masks
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.config import PAD, ModelConfig
from transformer_lib.decoder import DecoderLayer
from transformer_lib.encoder import EncoderLayer
from transformer_lib.feed_forward import FeedForward
from transformer_lib.models.transformer import Transformer
from transformer_lib.normalization import LayerNorm
from transformer_lib.positional import RotaryEmbedding

# The choices that the parts make; every other size is free.
FIXED = {
    "norm_first": (True,), "norm": ("layer",), "positional": ("sinusoidal", "rotary"),
    "activation": ("relu",), "bias": (True,), "n_kv_heads": (None,), "attention_dropout": (0.0,),
    "eps": (1e-5,), "rotary_base": (10000.0,),
}


class OwnTransformer(Transformer):
    """A Transformer that computes with the given parts, and with the library's for the rest.

    parts: {name: function or class}, as `own.parts()` holds them. It decodes without a cache: the
    reader's layers need not know one. Raises ValueError for a choice that the parts do not cover.
    """

    def __init__(self, config: ModelConfig, parts: dict):
        for name, values in FIXED.items():
            if getattr(config, name) not in values:
                raise ValueError(
                    f"{name} is {getattr(config, name)!r}; a model of your own parts has "
                    f"{' or '.join(map(repr, values))}."
                )
        super().__init__(config)  # the same first weights as the library's, from the same seed
        self.own = dict(parts)
        D = config.d_model
        norm = self.own.get("layer_norm")
        feed_forward = self.own.get("feed_forward")
        heads = self.own.get("multi_head_attention", LibraryHeads)
        own_attention = self.own.get("attention", F.scaled_dot_product_attention)

        def attention(q, k, v, mask=None):  # by this name for all, whatever the part calls it
            return own_attention(q, k, v, mask)

        def attention_of(old):  # where positions are rotary, self-attention turns what it compares
            if not isinstance(old.positions, RotaryEmbedding):
                return attention
            turn = self.own.get("rotary", old.positions)
            return lambda q, k, v, mask=None: attention(turn(q, 0), turn(k, 0), v, mask)

        if norm:
            replace(self, LayerNorm, lambda old: norm(D))
        if feed_forward:
            replace(self, FeedForward, lambda old: feed_forward(D, config.d_ff))
        replace(self, MultiHeadAttention, lambda old: heads(D, config.n_heads, attention_of(old)))
        wire = self.own.get("encoder_layer", encoder.layer.reference)
        replace(self, EncoderLayer, lambda old: OwnEncoderLayer(old, wire), copy=False)
        wire_decoder = self.own.get("decoder_layer", decoder.layer.reference)
        replace(self, DecoderLayer, lambda old: OwnDecoderLayer(old, wire_decoder), copy=False)
        if "positional_encoding" in self.own and config.positional == "sinusoidal":
            table = self.own["positional_encoding"](config.max_len, D)  # (max_len, D)
            self.embed.positions.table = torch.as_tensor(table).float()

    def padding_mask(self, ids: Tensor) -> Tensor:
        """ids: (B, S) -> (B, 1, 1, S) bool."""
        own = self.own.get("padding_mask")
        return masks.padding_mask(ids) if own is None else own(ids.cpu(), PAD).to(ids.device)

    def decoder_mask(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> (B, 1, T, T) bool."""
        own = self.own.get("decoder_mask")
        return masks.decoder_mask(ids) if own is None else own(ids.cpu(), PAD).to(ids.device)

    def default_masks(self, src_ids, tgt_ids, src_mask=None, tgt_mask=None):
        src_mask = self.padding_mask(src_ids) if src_mask is None else src_mask
        tgt_mask = self.decoder_mask(tgt_ids) if tgt_mask is None else tgt_mask
        return super().default_masks(src_ids, tgt_ids, src_mask, tgt_mask)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Tensor:
        return super().encode(src_ids, self.padding_mask(src_ids) if src_mask is None else src_mask)

    def decode(self, tgt_ids, memory, src_mask=None, tgt_mask=None, cache=None) -> Tensor:
        if cache is not None:
            raise ValueError("a model of your own parts decodes without a cache: "
                             "pass use_cache=False.")
        n = len(tgt_ids) // len(memory)  # several hypotheses of a sentence share its memory
        if n > 1:
            memory = memory.repeat_interleave(n, 0)
            src_mask = None if src_mask is None else src_mask.repeat_interleave(n, 0)
        tgt_mask = self.decoder_mask(tgt_ids) if tgt_mask is None else tgt_mask
        return super().decode(tgt_ids, memory, src_mask, tgt_mask)

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        ids, state = super().start(src_ids, bos_id, use_cache=False)
        state.src_mask = self.padding_mask(src_ids)
        return ids, state

    def next_logits(self, src_ids: Tensor):
        """The function that a decoding part is given: ids (n, T), <bos> first -> logits (n, V).

        src_ids: (B, S); n is B, or any number if B is 1. Padding is no word: its logit is -inf.
        """
        memory, src_mask = self.encode(src_ids), self.padding_mask(src_ids)

        def next_logits(ids: Tensor) -> Tensor:
            hidden = self.decode(ids.to(memory.device), memory, src_mask)
            logits = self.project(hidden[:, -1])
            logits[:, PAD] = -torch.inf
            return logits.to(ids.device)

        return next_logits


class LibraryHeads(MultiHeadAttention):
    """The library's multi-head attention around a given attention(q, k, v, mask)."""

    def __init__(self, d_model: int, n_heads: int, attention):
        super().__init__(d_model, n_heads)
        self.attention = attention

    def forward(self, query, key, value, mask=None) -> Tensor:
        """query: (B, T, D); key, value: (B, S, D) -> (B, T, D)."""
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        q, k, v = self.split_heads(q), self.split_heads(k), self.split_heads(v)  # (B, H, T, K)
        return self.w_o(self.join_heads(self.attention(q, k, v, mask)))


class OwnEncoderLayer(nn.Module):
    """The modules of a library's layer, joined by the function `wire`."""

    def __init__(self, layer: EncoderLayer, wire):
        super().__init__()
        self.self_attention, self.feed_forward = layer.self_attention, layer.feed_forward
        self.residuals, self.wire = layer.residuals, wire

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        first, second = self.residuals
        return self.wire(
            x,
            first.norm,
            lambda y: first.dropout(self.self_attention(y, y, y, mask)),
            second.norm,
            lambda y: second.dropout(self.feed_forward(y)),
        )


class OwnDecoderLayer(nn.Module):
    """The modules of a library's layer, joined by the function `wire`."""

    def __init__(self, layer: DecoderLayer, wire):
        super().__init__()
        self.self_attention, self.cross_attention = layer.self_attention, layer.cross_attention
        self.feed_forward, self.residuals, self.wire = layer.feed_forward, layer.residuals, wire

    def forward(self, x, memory, src_mask=None, tgt_mask=None, cache=None) -> Tensor:
        first, second, third = self.residuals
        return self.wire(
            x,
            memory,
            src_mask,
            tgt_mask,
            [first.norm, second.norm, third.norm],
            lambda q, k, v, mask: first.dropout(self.self_attention(q, k, v, mask)),
            lambda q, k, v, mask: second.dropout(self.cross_attention(q, k, v, mask)),
            lambda y: third.dropout(self.feed_forward(y)),
        )


def replace(model: nn.Module, kind: type, make, copy: bool = True) -> None:
    """Put make(old) in the place of each module of this kind, with a copy of its weights."""
    for parent in list(model.modules()):
        for name, old in list(parent.named_children()):
            if type(old) is kind:
                new = make(old)
                if copy:
                    new.load_state_dict(old.state_dict())
                setattr(parent, name, new)
