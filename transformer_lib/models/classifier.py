"""Encoder-only models: they read a whole text in both directions, and a head makes predictions."""

import torch
from torch import Tensor, nn

from transformer_lib.blocks import init_weights
from transformer_lib.config import ModelConfig
from transformer_lib.dropout import Dropout
from transformer_lib.embeddings import Embed, TokenEmbedding
from transformer_lib.encoder import Encoder
from transformer_lib.feed_forward import ACTIVATIONS
from transformer_lib.masks import padding_mask
from transformer_lib.normalization import make_norm


class EncoderOnly(nn.Module):
    """An encoder that turns token ids into a vector for each token (Devlin et al. 2019, BERT).

    n_segments: how many parts a text may have (BERT: two sentences), each with a learned vector.
    With norm_first=False the embeddings are normalised too, like every other input of a layer.
    """

    def __init__(self, config: ModelConfig, n_segments: int = 0):
        super().__init__()
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model, config.scale_embeddings)
        self.segments = nn.Embedding(n_segments, config.d_model) if n_segments else None
        self.embed = Embed(config, norm=not config.norm_first)
        self.encoder = Encoder(config)
        init_weights(self.encoder)

    def encode(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids: (B, T), padded; segments: (B, T) part numbers -> hidden (B, T, D)."""
        x = self.embedding(ids)
        if self.segments is not None:
            x = x + self.segments(torch.zeros_like(ids) if segments is None else segments)
        return self.encoder(self.embed(x), padding_mask(ids))


class Classifier(EncoderOnly):
    """Assigns each text to one of n_classes, judging by its first token's vector."""

    def __init__(self, config: ModelConfig, n_classes: int, n_segments: int = 0):
        super().__init__(config, n_segments)
        self.pool = nn.Linear(config.d_model, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, n_classes)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids: (B, T) -> logits (B, n_classes)."""
        first = self.encode(ids, segments)[:, 0]  # (B, D)
        return self.output(self.dropout(self.pool(first).tanh()))


class MaskedLanguageModel(EncoderOnly):
    """Predicts the token at every position, even where it is hidden: BERT's training task."""

    def __init__(self, config: ModelConfig, n_segments: int = 0):
        super().__init__(config, n_segments)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = make_norm(config.norm, config.d_model, config.eps)
        self.output = nn.Linear(config.d_model, config.vocab_size)
        if config.tie_embeddings:
            self.output.weight = self.embedding.lookup.weight

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids: (B, T) -> logits (B, T, V)."""
        return self.project(self.encode(ids, segments))

    def project(self, hidden: Tensor) -> Tensor:
        """hidden: (..., D) -> logits (..., V)."""
        return self.output(self.norm(self.activation(self.transform(hidden))))
