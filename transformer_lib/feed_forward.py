"""The feed-forward sublayer (sec. 3.3, eq. 2): the same small network at every token."""

from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

# The names that ModelConfig.activation may take.
ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # as GPT-2 computes it
    "swiglu": F.silu,  # with a gate
}


class FeedForward(nn.Module):
    """Widen to d_ff, apply a nonlinearity, and return to d_model.

    activation: "relu" (the paper, eq. 2), "gelu" (BERT), "gelu_tanh" (GPT-2), or "swiglu" (Shazeer
    2020, eq. 6), where a second projection gates the first; with two thirds of d_ff, it has about
    as many parameters as the others.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", bias: bool = True):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}; it must be one of {[*ACTIVATIONS]}.")
        self.activation = ACTIVATIONS[activation]
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.contract = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D); each position on its own."""
        hidden = self.expand(x)  # (B, T, D) -> (B, T, d_ff)
        if self.gate is None:
            hidden = self.activation(hidden)
        else:
            hidden = self.activation(self.gate(x)) * hidden
        return self.contract(hidden)  # (B, T, d_ff) -> (B, T, D)
