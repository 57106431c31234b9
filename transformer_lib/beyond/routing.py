"""Attention within learned clusters: the Routing Transformer (Roy et al. 2021).

With about sqrt(T) clusters of about sqrt(T) tokens each, the cost grows as T ** 1.5.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.attention import scaled_dot_product_attention


def routing_attention(
    q: Tensor, k: Tensor, v: Tensor, centroids: Tensor, members: int, causal: bool = False
) -> Tensor:
    """Each centroid takes its nearest queries and keys, and these queries attend to these keys.

    q, k, v, result: (B, H, T, K); centroids: (H, C, K). All clusters get the same number of
    members, so a token can be in several (its outputs are averaged) or in none (its output is
    zero). With one cluster of T members this is full attention.
    """

    def nearest(x):  # (B, H, T, K) -> (B, H, C, members): positions in the text's order
        likeness = centroids @ F.normalize(x, dim=-1).transpose(-2, -1)  # (B, H, C, T)
        return likeness.topk(members, dim=-1).indices.sort(-1).values

    def take(x, places):  # (B, H, T, K) -> (B, H, C, members, K)
        flat = places.flatten(2)[..., None].expand(-1, -1, -1, x.size(-1))
        return x.gather(2, flat).unflatten(2, places.shape[2:])

    of_q, of_k = nearest(q), nearest(k)
    mask = of_k[..., None, :] <= of_q[..., None] if causal else None  # positions, as sorted
    found = scaled_dot_product_attention(take(q, of_q), take(k, of_k), take(v, of_k), mask)[0]
    at = of_q.flatten(2)[..., None]  # (B, H, C * members, 1)
    # A last column of ones counts how many clusters each query was in.
    found = F.pad(found.flatten(2, 3), (0, 1), value=1.0)  # (B, H, C * members, K + 1)
    total = F.pad(torch.zeros_like(v), (0, 1))  # (B, H, T, K + 1)
    total = total.scatter_add(2, at.expand_as(found), found)
    return total[..., :-1] / total[..., -1:].clamp(min=1)


@torch.no_grad()
def move_centroids(centroids: Tensor, x: Tensor, rate: float = 0.1) -> None:
    """One step of k-means, in place: each centroid moves towards the vectors nearest to it.

    centroids: (H, C, K), x: (B, H, T, K). Called in training with the queries and the keys.
    """
    x = F.normalize(x, dim=-1).transpose(0, 1).flatten(1, 2)  # (H, B * T, K)
    mine = F.one_hot((x @ centroids.mT).argmax(-1), centroids.size(1)).to(x)  # (H, B * T, C)
    count = mine.sum(1)[..., None]  # (H, C, 1)
    mean = mine.mT @ x / count.clamp(min=1)
    centroids.lerp_(torch.where(count > 0, mean, centroids), rate)
    centroids.copy_(F.normalize(centroids, dim=-1))
