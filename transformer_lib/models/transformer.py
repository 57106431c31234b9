"""The whole Transformer: embed, encode, decode, project (figure 1)."""

import torch
from torch import Tensor, nn

from transformer_lib.blocks import init_weights
from transformer_lib.cache import DecoderCache, DecodingState
from transformer_lib.config import ModelConfig
from transformer_lib.decoder import Decoder
from transformer_lib.embeddings import Embed, TokenEmbedding
from transformer_lib.encoder import Encoder
from transformer_lib.masks import decoder_mask, padding_mask


class Transformer(nn.Module):
    """An encoder-decoder Transformer from token ids to logits (figure 1).

    Raises ValueError for ids outside the vocabulary and for sequences longer than
    config.max_len.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        size = (config.vocab_size, config.d_model)
        self.src_embedding = TokenEmbedding(*size, config.scale_embeddings)
        self.tgt_embedding = TokenEmbedding(*size, config.scale_embeddings)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.embed = Embed(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        init_weights(self.encoder, self.decoder)
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.tie_embeddings:  # sec. 3.4: one matrix in three places
            self.tgt_embedding.lookup.weight = self.src_embedding.lookup.weight
            self.output.weight = self.src_embedding.lookup.weight

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """src_ids: (B, S), tgt_ids: (B, T) -> logits (B, T, V); position t predicts token t + 1.

        Masks are bool, True = may attend; by default src_mask hides the source's padding,
        and tgt_mask the target's padding and future.
        """
        src_mask, tgt_mask = self.default_masks(src_ids, tgt_ids, src_mask, tgt_mask)
        memory = self.encode(src_ids, src_mask)
        return self.project(self.decode(tgt_ids, memory, src_mask, tgt_mask))

    def default_masks(self, src_ids, tgt_ids, src_mask=None, tgt_mask=None):
        """The two masks: by default, src_mask hides padding, and tgt_mask padding and future."""
        if len(src_ids) != len(tgt_ids):
            raise ValueError(
                f"a batch of {len(src_ids)} sources and one of {len(tgt_ids)} targets do not fit: "
                "every source needs its target."
            )
        src_mask = padding_mask(src_ids) if src_mask is None else src_mask
        tgt_mask = decoder_mask(tgt_ids) if tgt_mask is None else tgt_mask
        return src_mask, tgt_mask

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """src_ids: (B, S) -> memory (B, S, D). src_mask defaults to hiding the padding."""
        x = self.embed(self.src_embedding(src_ids))
        return self.encoder(x, padding_mask(src_ids) if src_mask is None else src_mask)

    def decode(
        self,
        tgt_ids: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """tgt_ids: (B, T), memory: (B, S, D) -> hidden (B, T, D).

        Without src_mask every memory position is read: pass the source's padding mask when the
        batch is padded. tgt_mask defaults to hiding padding and future. With a cache, tgt_ids holds
        only the new tokens, and memory may hold one row for several hypotheses of a sentence.
        """
        start = 0 if cache is None else cache.length
        x = self.embed(self.tgt_embedding(tgt_ids), start)
        if tgt_mask is None:
            tgt_mask = decoder_mask(tgt_ids, start)
        return self.decoder(x, memory, src_mask, tgt_mask, cache)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden: (..., D) -> logits (..., V)."""
        return self.output(hidden)

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """Encode the sources; return the first ids, (B, 1), and the state of the decoding."""
        ids = torch.full((len(src_ids), 1), bos_id, device=src_ids.device)
        cache = self.new_cache() if use_cache else None
        return ids, DecodingState(cache, self.encode(src_ids), padding_mask(src_ids))

    def step(self, ids: Tensor, state: DecodingState) -> Tensor:
        """ids: (B, T), those not yet in the state -> logits (B, V) of the next token."""
        hidden = self.decode(ids, state.memory, state.src_mask, cache=state.cache)
        return self.project(hidden[:, -1])

    def new_cache(self) -> DecoderCache:
        """An empty cache for `decode`."""
        return DecoderCache(self.config.n_decoder_layers)

    def count_parameters(self) -> int:
        """The number of trained weights; a shared matrix counts once."""
        return sum(p.numel() for p in self.parameters())
