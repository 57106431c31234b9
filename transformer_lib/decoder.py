"""The decoder: every target token looks back at the target so far, and across at the source."""

from torch import Tensor, nn

from transformer_lib.attention import KeyValueCache, MultiHeadAttention
from transformer_lib.config import ModelConfig
from transformer_lib.encoder import Residual, final_norm, self_attention
from transformer_lib.feed_forward import FeedForward


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, feed-forward (figure 1, right)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.self_attention = self_attention(config)
        self.cross_attention = MultiHeadAttention(
            config.d_model, config.n_heads, config.attention_dropout
        )
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.residuals = nn.ModuleList([Residual(config) for _ in range(3)])

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: "LayerCache | None" = None,
    ) -> Tensor:
        """x: (B, T, D); memory: (B, S, D); src_mask: bool, (B, 1, 1, S); tgt_mask: bool,
        broadcastable to (B, H, T, T). Returns (B, T, D).
        """
        own = None if cache is None else cache.own
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, y, tgt_mask, cache=own)[0])
        x = self.residuals[1](x, lambda y: self.read_memory(y, memory, src_mask, cache))
        return self.residuals[2](x, self.feed_forward)

    def read_memory(self, x, memory, src_mask, cache):
        """Cross-attention: queries from the target, keys and values from the source."""
        if cache is None:
            return self.cross_attention(x, memory, memory, src_mask)[0]
        attention = self.cross_attention
        if cache.memory is None:  # the memory never changes: project it once
            cache.memory = (
                attention.split_heads(attention.w_k(memory)),
                attention.split_heads(attention.w_v(memory)),
            )
        # Several hypotheses of one sentence (beam search) share its memory: they enter as further
        # queries of that sentence instead of copies of it.
        queries = x.reshape(memory.size(0), -1, x.size(-1))  # (B * beam, T, D) -> (B, beam * T, D)
        q = attention.split_heads(attention.w_q(queries))
        return attention.attend(q, *cache.memory, src_mask)[0].view_as(x)


class LayerCache:
    """What one decoder layer keeps between decoding steps.

    own: keys and values of the target so far; memory: those of the source, computed once.
    """

    def __init__(self):
        self.own = KeyValueCache()
        self.memory: tuple[Tensor, Tensor] | None = None


class DecoderCache:
    """A LayerCache for each decoder layer; pass the same one to every decoding step."""

    def __init__(self, n_layers: int):
        self.layers = [LayerCache() for _ in range(n_layers)]

    @property
    def length(self) -> int:
        """Target tokens seen so far."""
        return self.layers[0].own.length if self.layers else 0

    def select(self, rows: Tensor) -> None:
        """Reorder the hypotheses: keep these rows of the target's keys and values."""
        for layer in self.layers:
            layer.own.select(rows)

    def select_sentences(self, rows: Tensor) -> None:
        """Keep these sentences of the memory; the caller keeps the same rows of memory itself."""
        for layer in self.layers:
            if layer.memory is not None:
                layer.memory = tuple(x[rows] for x in layer.memory)


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.n_decoder_layers)])
        self.norm = final_norm(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """x: (B, T, D) embedded target; the rest as in DecoderLayer. Returns (B, T, D)."""
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, src_mask, tgt_mask, None if cache is None else cache.layers[i])
        return self.norm(x)
