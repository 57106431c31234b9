"""The whole Transformer: embed, encode, decode, project (figure 1)."""

from torch import Tensor, nn

from transformer_lib import masks
from transformer_lib.config import ModelConfig
from transformer_lib.decoder import Decoder, DecoderCache
from transformer_lib.dropout import Dropout
from transformer_lib.embeddings import TokenEmbedding
from transformer_lib.encoder import Encoder
from transformer_lib.positional import LearnedEncoding, SinusoidalEncoding


class Transformer(nn.Module):
    """An encoder-decoder Transformer from token ids to logits (figure 1).

    Raises ValueError for ids outside the vocabulary and for sequences longer than
    config.max_len.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.src_embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.tgt_embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.positional == "sinusoidal":
            self.position = SinusoidalEncoding(config.d_model, config.max_len)
        elif config.positional == "learned":
            self.position = LearnedEncoding(config.d_model, config.max_len)
        else:  # rotary and ALiBi act inside the attentions
            self.position = None
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        # Xavier keeps the variance of activations and gradients steady through a linear map.
        for stack in (self.encoder, self.decoder):
            for parameter in stack.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
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
        """The given masks, or (B, 1, 1, S) padding and (B, 1, T, T) padding and causal ones."""
        _check_ids(src_ids)
        _check_ids(tgt_ids)
        if len(src_ids) != len(tgt_ids):
            raise ValueError(
                f"a batch of {len(src_ids)} sources and one of {len(tgt_ids)} targets do not fit: "
                "every source needs its target."
            )
        if src_mask is None:
            src_mask = masks.padding_mask(src_ids, self.config.pad_id)
        if tgt_mask is None:
            causal = masks.causal_mask(tgt_ids.size(1), device=tgt_ids.device)
            tgt_mask = masks.padding_mask(tgt_ids, self.config.pad_id) & causal
        return src_mask, tgt_mask

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """src_ids: (B, S) -> memory (B, S, D). src_mask defaults to hiding the padding."""
        if src_mask is None:
            src_mask = masks.padding_mask(src_ids, self.config.pad_id)
        return self.encoder(self.embed(self.src_embedding, src_ids), src_mask)

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
        batch is padded. tgt_mask defaults to padding and causal. With a cache, tgt_ids holds only
        the new tokens, and memory may hold one row for several hypotheses of a sentence.
        """
        _check_ids(tgt_ids)
        start = 0 if cache is None else cache.length
        length = tgt_ids.size(1)
        if tgt_mask is None and not (cache is not None and length == 1):
            # A single new token may look at everything before it, so it needs no mask.
            causal = masks.causal_mask(start + length, device=tgt_ids.device)
            tgt_mask = causal[:, :, start:]  # (1, 1, T, start + T)
            if cache is None:
                tgt_mask = tgt_mask & masks.padding_mask(tgt_ids, self.config.pad_id)
        x = self.embed(self.tgt_embedding, tgt_ids, start)
        return self.decoder(x, memory, src_mask, tgt_mask, cache)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden: (..., D) -> logits (..., V)."""
        return self.output(hidden)

    def new_cache(self) -> DecoderCache:
        """An empty cache for `decode`."""
        return DecoderCache(self.config.n_decoder_layers)

    def embed(self, embedding: TokenEmbedding, ids: Tensor, start: int = 0) -> Tensor:
        """ids: (B, T), the first at position `start` -> (B, T, D), with positions and dropout."""
        _check_ids(ids)
        if start + ids.size(1) > self.config.max_len:
            raise ValueError(
                f"a sequence of {start + ids.size(1)} tokens is longer than max_len "
                f"{self.config.max_len}: shorten it, or build the model with a larger max_len."
            )
        x = embedding(ids)
        if self.position is not None:
            x = self.position(x, start)
        return self.dropout(x)

    def count_parameters(self) -> int:
        """Trained numbers, a shared matrix counted once."""
        return sum(p.numel() for p in self.parameters())


def _check_ids(ids: Tensor) -> None:
    if ids.dim() != 2 or ids.is_floating_point():
        raise ValueError(
            f"token ids have shape {tuple(ids.shape)} and dtype {ids.dtype}; "
            "expected integers of shape (batch, tokens)."
        )
