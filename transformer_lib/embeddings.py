"""Turn token ids into vectors (sec. 3.4), ready for the first layer (sec. 3.5, 5.4)."""

import math

from torch import Tensor, nn

from transformer_lib.config import BlockConfig
from transformer_lib.dropout import Dropout
from transformer_lib.normalization import make_norm
from transformer_lib.positional import make_positions


class TokenEmbedding(nn.Module):
    """One learned row of d_model numbers per token, scaled by sqrt(d_model).

    The rows start small (standard deviation 1 / sqrt(d_model)), because the same matrix may serve
    as the output projection, where larger rows would give huge logits. The factor brings them
    back to the size of the positional encoding that is added next (sec. 3.4). scale=False leaves
    the factor out, as GPT and BERT do.
    """

    def __init__(self, vocab_size: int, d_model: int, scale: bool = True):
        super().__init__()
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.lookup = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.lookup.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) integers below vocab_size -> (B, T, D)."""
        _check_ids(ids)
        try:
            return self.lookup(ids) * self.scale
        except IndexError:
            low, high = int(ids.min()), int(ids.max())
            raise ValueError(
                f"token id {low if low < 0 else high} is outside the vocabulary of "
                f"{self.lookup.num_embeddings} (valid ids: 0 to {self.lookup.num_embeddings - 1}); "
                "encode the text with the tokenizer that the model was built for."
            ) from None


def _check_ids(ids: Tensor) -> None:
    if ids.dim() != 2 or ids.is_floating_point():
        raise ValueError(
            f"token ids have shape {tuple(ids.shape)} and dtype {ids.dtype}; "
            "expected integers of shape (batch, tokens)."
        )


class Embed(nn.Module):
    """Make the input of the first layer: token vectors plus positions, then dropout (sec. 5.4).

    norm: normalise the sum, as in BERT, where every layer reads normalised vectors.
    """

    def __init__(self, config: BlockConfig, norm: bool = False):
        super().__init__()
        self.max_len = config.max_len
        self.positions = make_positions(config, "add")  # other schemes act inside attention
        self.norm = make_norm(config.norm, config.d_model, config.eps) if norm else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, T, D), the first token at position `start` -> (B, T, D)."""
        if start + x.size(1) > self.max_len:
            raise ValueError(
                f"a sequence of {start + x.size(1)} tokens is longer than max_len {self.max_len}: "
                "shorten it, or build the model with a larger max_len."
            )
        return self.dropout(self.norm(self.positions.add(x, start)))
