"""The encoder: every source token gathers what it needs from the whole source (sec. 3.1)."""

from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.config import ModelConfig
from transformer_lib.dropout import Dropout
from transformer_lib.feed_forward import FeedForward
from transformer_lib.normalization import make_norm
from transformer_lib.positional import AlibiBias, RotaryEmbedding


class Residual(nn.Module):
    """x plus a sublayer of x, with dropout on the sublayer's output (sec. 3.1, 5.4).

    Pre-norm: x + dropout(sublayer(norm(x))); the path of x itself is never touched.
    Post-norm, as the paper draws it: norm(x + dropout(sublayer(x))).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.norm = make_norm(config.norm, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def forward(self, x: Tensor, sublayer) -> Tensor:
        """x: (B, T, D); sublayer: a function (B, T, D) -> (B, T, D). Returns (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def self_attention(config: ModelConfig) -> MultiHeadAttention:
    """A self-attention of this model, with its relative positions if it has such."""
    position = None
    if config.positional == "rotary":
        position = RotaryEmbedding(config.d_model // config.n_heads)
    elif config.positional == "alibi":
        position = AlibiBias(config.n_heads)
    return MultiHeadAttention(
        config.d_model, config.n_heads, config.attention_dropout, position=position
    )


def final_norm(config: ModelConfig) -> nn.Module:
    """Pre-norm leaves a stack's sum unnormalised, so one norm closes it; post-norm needs none."""
    return make_norm(config.norm, config.d_model) if config.norm_first else nn.Identity()


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside a residual (figure 1, left)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.self_attention = self_attention(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.residuals = nn.ModuleList([Residual(config) for _ in range(2)])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (B, S, D); mask: bool, broadcastable to (B, H, S, S). Returns (B, S, D)."""
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, y, mask)[0])
        return self.residuals[1](x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers; its output is the memory that the decoder reads."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.n_encoder_layers)])
        self.norm = final_norm(config)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (B, S, D) embedded source; mask: bool, (B, 1, 1, S). Returns memory (B, S, D)."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
