"""An encoder that reads a picture: its patches are the tokens."""

import torch
from torch import Tensor, nn

from transformer_lib.blocks import init_weights
from transformer_lib.config import BlockConfig
from transformer_lib.embeddings import Embed
from transformer_lib.encoder import Encoder


class VisionTransformer(nn.Module):
    """A Vision Transformer (Dosovitskiy et al. 2021), n_encoder_layers deep, for n_classes classes.

    A picture is cut into squares of `patch` by `patch` pixels, and a linear map turns each into a
    vector. A learned vector in front of them gathers what the head reads. config.max_len: at least
    the number of patches plus one.
    """

    def __init__(self, config: BlockConfig, n_classes: int, patch: int, channels: int = 1):
        super().__init__()
        self.config, self.patch, self.channels = config, patch, channels
        self.project_patches = nn.Linear(channels * patch * patch, config.d_model)
        self.first = nn.Parameter(torch.zeros(1, 1, config.d_model))
        self.embed = Embed(config)
        self.encoder = Encoder(config)
        self.output = nn.Linear(config.d_model, n_classes)
        init_weights(self.encoder)

    def patches(self, images: Tensor) -> Tensor:
        """images: (B, C, height, width) -> (B, N, C * patch * patch), row by row."""
        fits = images.dim() == 4 and images.size(1) == self.channels
        if not fits or images.size(2) % self.patch or images.size(3) % self.patch:
            raise ValueError(
                f"images have shape {tuple(images.shape)}; expected (batch, channels "
                f"{self.channels}, height, width) with sides that are multiples of {self.patch}."
            )
        return nn.functional.unfold(images, self.patch, stride=self.patch).transpose(1, 2)

    def forward(self, images: Tensor) -> Tensor:
        """images: (B, C, height, width) -> logits (B, n_classes)."""
        x = self.project_patches(self.patches(images))  # (B, N, D)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)  # (B, 1 + N, D)
        return self.output(self.encoder(self.embed(x))[:, 0])
