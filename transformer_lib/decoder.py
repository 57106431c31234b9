"""The decoder: every target token looks back at the target so far, and across at the source."""

from torch import Tensor, nn

from transformer_lib.blocks import Residual, final_norm, make_attention, make_feed_forward
from transformer_lib.cache import DecoderCache, LayerCache
from transformer_lib.config import BlockConfig


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, feed-forward (figure 1, right).

    cross_attention=False: a layer of a decoder-only model, which has no memory to read.
    """

    def __init__(self, config: BlockConfig, cross_attention: bool = True):
        super().__init__()
        self.self_attention = make_attention(config)
        self.cross_attention = make_attention(config, to_itself=False) if cross_attention else None
        self.feed_forward = make_feed_forward(config)
        n_sublayers = 3 if cross_attention else 2
        self.residuals = nn.ModuleList([Residual(config) for _ in range(n_sublayers)])

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """x: (B, T, D); memory: (B, S, D); src_mask: bool, (B, 1, 1, S); tgt_mask: bool,
        broadcastable to (B, H, T, T). Returns (B, T, D).

        Several hypotheses for one sentence (beam search) may share its row of the memory.
        """
        own, kept = (None, None) if cache is None else (cache.own, cache.memory)
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, y, tgt_mask, cache=own)[0])
        if self.cross_attention is not None:
            x = self.residuals[1](x, lambda y: self.read_memory(y, memory, src_mask, kept))
        return self.residuals[-1](x, self.feed_forward)

    def read_memory(self, y, memory, src_mask, cache):
        """Cross-attention: queries from the target, keys and values from the source."""
        if memory is None:
            raise ValueError("no memory to read: pass one, or build with cross_attention=False.")
        # Hypotheses that share a memory only add queries: the memory isn't copied.
        queries = y.reshape(len(memory), -1, y.size(-1))  # (B * beam, T, D) -> (B, beam * T, D)
        if cache is not None and cache.length:
            memory = None  # the memory never changes: its keys and values are in the cache
        return self.cross_attention(queries, memory, memory, src_mask, cache=cache)[0].view_as(y)


class Decoder(nn.Module):
    """A stack of decoder layers. cross_attention=False: the stack of a decoder-only model."""

    def __init__(self, config: BlockConfig, cross_attention: bool = True):
        super().__init__()
        self.layers = nn.ModuleList(
            [DecoderLayer(config, cross_attention) for _ in range(config.n_decoder_layers)]
        )
        self.norm = final_norm(config)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """x: (B, T, D) embedded target; the rest as in DecoderLayer. Returns (B, T, D)."""
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, src_mask, tgt_mask, None if cache is None else cache.layers[i])
        return self.norm(x)
