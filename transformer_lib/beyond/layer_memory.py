"""A decoder that can read any of the encoder's layers, not only the last."""

import torch
from torch import Tensor, nn

from transformer_lib.cache import DecoderCache
from transformer_lib.config import ModelConfig
from transformer_lib.decoder import Decoder
from transformer_lib.encoder import Encoder
from transformer_lib.models.transformer import Transformer


class EveryLayer(Encoder):
    """An encoder that returns its first layer's input and the output of every layer."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (B, S, D) -> (B, S, (L + 1) D), side by side, each after the final norm."""
        kept = [self.norm(x)]
        for layer in self.layers:
            x = layer(x, mask)
            kept.append(self.norm(x))
        return torch.cat(kept, dim=-1)


class MixedMemory(Decoder):
    """Each decoder layer reads its own mixture of all encoder layers (Bapna et al. 2018).

    mixture: (n_decoder_layers, L + 1), rows that sum to 1; None means learned, equal at first.
    """

    def __init__(self, config: ModelConfig, mixture: Tensor | None = None):
        super().__init__(config)
        shape = config.n_decoder_layers, config.n_encoder_layers + 1
        if mixture is not None and mixture.shape != shape:
            raise ValueError(f"mixture has shape {tuple(mixture.shape)}; expected {shape}.")
        self.register_buffer("mixture", mixture)
        if mixture is None:
            self.logits = nn.Parameter(torch.zeros(shape))

    def shares(self) -> Tensor:
        """How much of each encoder layer each decoder layer reads: (n_decoder_layers, L + 1)."""
        return self.logits.softmax(-1) if self.mixture is None else self.mixture

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """memory: (B, S, (L + 1) D); the rest as in Decoder. Returns (B, T, D)."""
        layers = memory.unflatten(-1, (-1, x.size(-1)))  # (B, S, L + 1, D)
        for i, (layer, share) in enumerate(zip(self.layers, self.shares(), strict=True)):
            own = None if cache is None else cache.layers[i]
            x = layer(x, share @ layers, src_mask, tgt_mask, own)  # (B, S, D) is read
        return self.norm(x)


def reads_layers(config: ModelConfig, mixture: Tensor | None = None) -> Transformer:
    """A Transformer whose decoder reads a mixture of the encoder's layers, as in MixedMemory."""
    model = Transformer(config)
    plain = model.encoder, model.decoder
    model.encoder, model.decoder = EveryLayer(config), MixedMemory(config, mixture)
    for new, old in zip((model.encoder, model.decoder), plain, strict=True):
        new.load_state_dict(old.state_dict(), strict=False)  # same start as a plain model
    return model
