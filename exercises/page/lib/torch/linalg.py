import math

import torch
from torch._ops import amax, matmul, norm  # noqa: F401


def vector_norm(x, ord=2, dim=None, keepdim=False):
    return norm(x, ord, dim, keepdim)


def matrix_exp(A):
    """The sum of A^k / k! of square matrices (..., n, n): halved first, then squared back."""
    x = A.double()
    largest = float(x.detach().abs().sum(-1).max()) if x.numel() else 0.0
    halvings = max(0, math.frexp(largest)[1] + 1)
    x = x / 2**halvings
    total = power = torch.eye(x.shape[-1], dtype=x.dtype)
    for k in range(1, 16):  # below 0.5 the next term adds less than 1e-18
        power = power @ x / k
        total = total + power
    for _ in range(halvings):
        total = total @ total
    return total.to(A.dtype)


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.linalg")
