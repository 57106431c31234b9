"""A decoder-only model: each token of a text predicts the next one."""

from torch import Tensor, nn

from transformer_lib.blocks import init_weights
from transformer_lib.cache import DecoderCache, DecodingState
from transformer_lib.config import PAD, ModelConfig
from transformer_lib.decoder import Decoder
from transformer_lib.embeddings import Embed, TokenEmbedding
from transformer_lib.masks import causal_mask


class LanguageModel(nn.Module):
    """A decoder-only Transformer (Radford et al. 2019, GPT-2), n_decoder_layers deep.

    With norm "rms", positional "rotary", activation "swiglu", and bias, tie_embeddings and
    scale_embeddings False, it is Llama (Touvron et al. 2023); n_kv_heads adds the grouped queries
    of its successors. Padding on the right needs no mask, since every real token comes before it.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, config.scale_embeddings)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.embed = Embed(config)
        self.decoder = Decoder(config, cross_attention=False)
        init_weights(self.decoder)
        nn.init.normal_(self.output.weight, std=config.d_model**-0.5)
        if config.tie_embeddings:
            self.output.weight = self.embedding.lookup.weight

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> logits (B, T, V); position t predicts token t + 1."""
        return self.project(self.decode(ids))

    def decode(self, ids: Tensor, cache: DecoderCache | None = None) -> Tensor:
        """ids: (B, T), only the new ones if there is a cache -> hidden (B, T, D)."""
        start = 0 if cache is None else cache.length
        x = self.embed(self.embedding(ids), start)
        return self.decoder(x, tgt_mask=self.mask(ids, start), cache=cache)

    def mask(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids: (B, T), the first at position start -> bool (1, 1, T, start + T), causal."""
        return causal_mask(start + ids.size(1), device=ids.device)[:, :, start:]

    def project(self, hidden: Tensor) -> Tensor:
        """hidden: (..., D) -> logits (..., V)."""
        return self.output(hidden)

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """src_ids: (B, T) prompts of one length, each with <bos> if the model has one. Returns
        the ids to continue from (src_ids itself) and the decoding state.
        """
        if not src_ids.size(1) or (src_ids == PAD).any():
            raise ValueError(
                "a prompt is empty or holds padding: all prompts in a batch must have the same "
                "length, so give those of each length a batch of their own."
            )
        cache = DecoderCache(self.config.n_decoder_layers) if use_cache else None
        return src_ids, DecodingState(cache)

    def step(self, ids: Tensor, state: DecodingState) -> Tensor:
        """ids: (B, T), those not yet in the state -> logits (B, V) of the next token."""
        return self.project(self.decode(ids, state.cache)[:, -1])
