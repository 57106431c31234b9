"""The encoder: every source token gathers what it needs from the whole source (sec. 3.1)."""

from torch import Tensor, nn

from transformer_lib.blocks import Residual, final_norm, make_attention, make_feed_forward
from transformer_lib.config import BlockConfig


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside a residual (figure 1, left)."""

    def __init__(self, config: BlockConfig):
        super().__init__()
        self.self_attention = make_attention(config)
        self.feed_forward = make_feed_forward(config)
        self.residuals = nn.ModuleList([Residual(config) for _ in range(2)])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (B, S, D); mask: bool, broadcastable to (B, H, S, S). Returns (B, S, D)."""
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, y, mask)[0])
        return self.residuals[1](x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers; its output is the memory that the decoder reads."""

    def __init__(self, config: BlockConfig):
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.n_encoder_layers)])
        self.norm = final_norm(config)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (B, S, D) embedded source; mask: bool, (B, 1, 1, S). Returns memory (B, S, D)."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
