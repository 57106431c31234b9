"""The feed-forward sublayer (sec. 3.3, eq. 2): the same small network at every token."""

import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Widen to d_ff, apply a non-linearity, come back to d_model.

    activation: "relu" (the paper, eq. 2), "gelu" (BERT, GPT), or "swiglu" (Shazeer 2020, eq. 6),
    where a second projection gates the first; with it, take two thirds of d_ff for an equal
    number of parameters.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu"):
        super().__init__()
        if activation not in ("relu", "gelu", "swiglu"):
            raise ValueError(
                f"activation is {activation!r}; it must be 'relu', 'gelu' or 'swiglu'."
            )
        self.activation = activation
        self.expand = nn.Linear(d_model, d_ff)
        self.gate = nn.Linear(d_model, d_ff) if activation == "swiglu" else None
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D); each position on its own."""
        hidden = self.expand(x)  # (B, T, D) -> (B, T, d_ff)
        if self.activation == "relu":
            hidden = F.relu(hidden)
        elif self.activation == "gelu":
            hidden = F.gelu(hidden)
        else:
            hidden = F.silu(self.gate(x)) * hidden
        return self.contract(hidden)  # (B, T, d_ff) -> (B, T, D)
