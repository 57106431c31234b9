"""Dropout: leave numbers out at random while training (sec. 5.4)."""

from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each number with probability p in training, and scale the rest by 1 / (1 - p)."""

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout is {p!r}; it must be in [0, 1).")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x: any shape -> the same shape."""
        return nn.functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
