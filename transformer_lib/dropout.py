"""Dropout: in training, some numbers are set to zero at random (sec. 5.4)."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each number with probability p in training, and scale the rest by 1 / (1 - p).

    The scaling keeps the mean, so nothing has to change at inference. This is also what
    torch.nn.Dropout does (Srivastava et al. 2014, sec. 10, "inverted" dropout).
    """

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout is {p!r}; it must be in [0, 1).")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x: any shape -> the same shape."""
        if not self.training or self.p == 0:
            return x
        kept = torch.rand(x.shape, device=x.device) >= self.p
        return x * kept / (1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"
