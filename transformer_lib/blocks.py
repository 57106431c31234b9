"""The parts that encoder and decoder layers share: the residual connection, the attention and the
norm that a configuration names, and the initialisation of the weights.
"""

from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.config import BlockConfig
from transformer_lib.dropout import Dropout
from transformer_lib.feed_forward import FeedForward
from transformer_lib.guards import returns_alike
from transformer_lib.normalization import make_norm
from transformer_lib.positional import make_positions


class Residual(nn.Module):
    """x plus a sublayer's output for x, with norm and dropout (sec. 3.1, 5.4).

    Pre-norm: x + dropout(sublayer(norm(x))); the path of x itself is never touched.
    Post-norm, as the paper draws it: norm(x + dropout(sublayer(x))).
    """

    def __init__(self, config: BlockConfig):
        super().__init__()
        self.norm = make_norm(config.norm, config.d_model, config.eps)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm_first

    def forward(self, x: Tensor, sublayer) -> Tensor:
        """x: (B, T, D); sublayer: a function (B, T, D) -> (B, T, D). Returns (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def make_attention(config: BlockConfig, to_itself: bool = True) -> MultiHeadAttention:
    """Make an attention layer of these sizes. One that attends to its own sequence gets the
    positions that act inside attention; one that attends to a memory gets none.
    """
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.attention_dropout,
        config.bias,
        make_positions(config, "turn", "bias") if to_itself else None,
        config.n_kv_heads,
    )


def make_feed_forward(config: BlockConfig) -> FeedForward:
    """Make the feed-forward network of these sizes."""
    return FeedForward(config.d_model, config.d_ff, config.activation, config.bias)


def final_norm(config: BlockConfig) -> nn.Module:
    """Make the last norm of a stack: pre-norm leaves the sum unnormalised; post-norm needs none."""
    if not config.norm_first:
        return nn.Identity()
    return make_norm(config.norm, config.d_model, config.eps)


def init_weights(*stacks: nn.Module) -> None:
    """Fill each matrix by Xavier's rule, so that activations and gradients keep their variance."""
    for stack in stacks:
        for parameter in stack.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)


Residual.forward = returns_alike(Residual.forward)
