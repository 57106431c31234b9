"""Masks: which position may look at which.

One meaning everywhere: boolean, True = may attend, broadcastable to
(B, n_heads, T_query, T_key). Combine two masks with `&`.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """True at real tokens, so that no query attends to padding keys.

    ids: (B, T) integers. Returns (B, 1, 1, T) bool: the same keys are hidden from every head and
    every query.
    """
    if ids.dim() != 2:
        raise ValueError(
            f"padding_mask expects ids of shape (B, T), got {tuple(ids.shape)}; "
            "add a batch dimension with ids.unsqueeze(0)."
        )
    return (ids != pad_id)[:, None, None, :]  # (B, T) -> (B, 1, 1, T)


def causal_mask(size: int, device=None) -> Tensor:
    """True on and below the diagonal: position i may attend to positions 0..i (sec. 3.2.3).

    Returns (1, 1, size, size) bool.
    """
    return torch.ones(1, 1, size, size, dtype=torch.bool, device=device).tril()
