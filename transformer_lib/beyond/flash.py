"""Exact attention without the T x T table: FlashAttention's online softmax (Dao et al. 2022)."""

import torch
from torch import Tensor


def flash_attention(q: Tensor, k: Tensor, v: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Full attention, one tile of scores at a time.

    q, result: (B, H, T, K); k, v: (B, H, S, K).

    For each query the running maximum, sum and weighted sum are enough. When a tile raises the
    maximum, the sums so far are scaled down to match. Tiles in the future are skipped.
    """
    outputs = []
    for start in range(0, q.size(2), tile):
        queries = q[:, :, start : start + tile]  # (B, H, tile, K)
        largest = queries.new_full((*queries.shape[:3], 1), -torch.inf)  # (B, H, tile, 1)
        total, summed = torch.zeros_like(largest), torch.zeros_like(queries[..., : v.size(-1)])
        place = torch.arange(start, start + queries.size(2), device=q.device)[:, None]
        n_keys = min(start + tile, k.size(2)) if causal else k.size(2)
        for at in range(0, n_keys, tile):
            keys, values = k[:, :, at : at + tile], v[:, :, at : at + tile]
            scores = queries @ keys.transpose(-2, -1) / q.size(-1) ** 0.5  # (B, H, tile, tile)
            if causal:
                future = torch.arange(at, at + keys.size(2), device=q.device) > place
                scores = scores.masked_fill(future, -torch.inf)
            new_largest = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights = (scores - new_largest).exp()
            correction = (largest - new_largest).exp()  # 0 for the first tile
            total = total * correction + weights.sum(-1, keepdim=True)
            summed = summed * correction + weights @ values
            largest = new_largest
        outputs.append(summed / total)
    return torch.cat(outputs, dim=2)
