"""Token ids to vectors (sec. 3.4 of the paper)."""

import math

from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """One learned row of d_model numbers per token, scaled by sqrt(d_model).

    The rows start small (standard deviation 1 / sqrt(d_model)), because the same matrix may serve
    as the output projection, where larger rows would give huge logits. The factor brings them
    back to the size of the positional encoding that is added next (sec. 3.4).
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.lookup = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.lookup.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) integers below vocab_size -> (B, T, D)."""
        try:
            return self.lookup(ids) * self.scale
        except IndexError:
            raise ValueError(
                f"token id {int(ids.max())} or {int(ids.min())} is outside the vocabulary of "
                f"{self.lookup.num_embeddings} (valid ids: 0 to {self.lookup.num_embeddings - 1}); "
                "encode the text with the tokenizer that the model was built for."
            ) from None
