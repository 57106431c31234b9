"""Gates instead of the sum in a residual connection, so that a deep stack can start out doing
almost nothing.
"""

import torch
from torch import Tensor, nn

from transformer_lib.config import BlockConfig
from transformer_lib.dropout import Dropout
from transformer_lib.guards import returns_alike
from transformer_lib.normalization import make_norm


class OutputGate(nn.Module):
    """x + sigmoid(W x - bias) * y: the sum of the residual connection, with a gate on y."""

    def __init__(self, d_model: int, bias: float = 2.0):
        super().__init__()
        self.from_x = nn.Linear(d_model, d_model)
        nn.init.constant_(self.from_x.bias, -bias)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x, y: (..., D), the stream and a sublayer's output -> (..., D)."""
        return x + self.from_x(x).sigmoid() * y


class GruGate(nn.Module):
    """One step of a gated recurrent unit, with x as its memory and y as its input (Parisotto et
    al. 2020, sec. 3.2). A large bias closes the gate: the output is then x.
    """

    def __init__(self, d_model: int, bias: float = 2.0):
        super().__init__()
        self.from_y = nn.Linear(d_model, 3 * d_model, bias=False)
        self.from_x = nn.Linear(d_model, 2 * d_model, bias=False)
        self.from_kept = nn.Linear(d_model, d_model, bias=False)
        self.bias = nn.Parameter(torch.full((d_model,), float(bias)))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """x, y: (..., D), the stream and a sublayer's output -> (..., D)."""
        reset_y, update_y, new_y = self.from_y(y).chunk(3, -1)
        reset_x, update_x = self.from_x(x).chunk(2, -1)
        reset = (reset_y + reset_x).sigmoid()  # how much of x the new value may see
        update = (update_y + update_x - self.bias).sigmoid()  # how far the gate is open
        new = (new_y + self.from_kept(reset * x)).tanh()
        return (1 - update) * x + update * new


class GatedResidual(nn.Module):
    """A `Residual` with a gate instead of its sum; a norm precedes the sublayer, a ReLU follows it.
    """

    def __init__(self, config: BlockConfig, gate: nn.Module):
        super().__init__()
        self.norm = make_norm(config.norm, config.d_model, config.eps)
        self.dropout = Dropout(config.dropout)
        self.gate = gate

    def forward(self, x: Tensor, sublayer) -> Tensor:
        """x: (B, T, D); sublayer: a function (B, T, D) -> (B, T, D). Returns (B, T, D)."""
        return self.gate(x, self.dropout(sublayer(self.norm(x)).relu()))


def add_gates(stack: nn.Module, config: BlockConfig, gate=GruGate, bias: float = 2.0) -> None:
    """Put a gate into every residual of an `Encoder` or a `Decoder`, built with pre-norm."""
    if not config.norm_first:
        raise ValueError("gates need norm_first=True: before a post-norm, no gate is the identity.")
    for layer in stack.layers:
        for i in range(len(layer.residuals)):
            layer.residuals[i] = GatedResidual(config, gate(config.d_model, bias))


GatedResidual.forward = returns_alike(GatedResidual.forward)
