"""Attention among tokens that point the same way: the Reformer (Kitaev et al. 2020).

The softmax gives nearly all weight to the keys most like the query. Locality-sensitive hashing
finds them without all the dot products: vectors with similar directions fall into the same bucket.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.attention import scaled_dot_product_attention


def lsh_buckets(x: Tensor, n_buckets: int, generator: torch.Generator | None = None) -> Tensor:
    """The bucket of each vector under one random rotation: (..., T, K) -> (..., T) integers.

    The bucket is the nearest of n_buckets / 2 random directions and their opposites, so
    n_buckets must be even, or 1.
    """
    if n_buckets == 1:
        return torch.zeros(x.shape[:-1], dtype=torch.long, device=x.device)
    if n_buckets % 2:
        raise ValueError(f"n_buckets must be even or 1, got {n_buckets}: directions come in pairs.")
    directions = torch.randn(x.size(-1), n_buckets // 2, generator=generator).to(x)
    towards = x @ directions  # (..., T, n_buckets / 2)
    return torch.cat([towards, -towards], dim=-1).argmax(-1)


def own_place_last(size: int, device=None) -> Tensor:
    """A (T, T) bias for the scores: a token attends to itself only if it sees no other.

    When queries and keys are the same vectors, each token would otherwise find itself first.
    """
    return torch.eye(size, device=device) * -1e5


def lsh_attention(
    qk: Tensor,
    v: Tensor,
    n_buckets: int,
    chunk: int,
    n_rounds: int = 1,
    generator: torch.Generator | None = None,
    causal: bool = False,
) -> Tensor:
    """Attention within buckets, repeated for several hashes. qk, v, result: (B, H, T, K).

    qk serves as query and, divided by its length, as key. The tokens are sorted by bucket and cut
    into chunks; a token attends to those of its bucket in its own chunk and the one before. The
    rounds are averaged in proportion to their sums of e^score, so a pair counts once for each round
    in which the two meet, unlike in the paper's default. With one bucket and chunk = T this is full
    attention. T must be a multiple of chunk.
    """
    size = qk.size(2)
    if size % chunk:
        raise ValueError(f"the length {size} is not a multiple of chunk {chunk}: pad the text.")
    outputs, totals = [], []
    for _ in range(n_rounds):
        bucket = lsh_buckets(qk, n_buckets, generator)  # (B, H, T)
        order = bucket.argsort(dim=-1, stable=True)

        def in_chunks(x, order=order):  # (B, H, T, ...) -> (B, H, N, chunk, ...), sorted
            index = order.reshape(*order.shape, *[1] * (x.dim() - 3)).expand_as(x)
            return x.gather(2, index).unflatten(2, (-1, chunk))

        def with_previous(x):  # (B, H, N, chunk, ...) -> (B, H, N, 2 * chunk, ...)
            return x if x.size(2) == 1 else torch.cat([x.roll(1, dims=2), x], dim=3)

        q, values = in_chunks(qk), with_previous(in_chunks(v))
        k = F.normalize(with_previous(q), dim=-1)
        mine, place = in_chunks(bucket), in_chunks(torch.arange(size).to(order).expand_as(order))
        theirs, their_place = with_previous(mine), with_previous(place)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5  # (B, H, N, chunk, 2 * chunk)
        scores = scores - 1e5 * (place[..., None] == their_place[..., None, :])
        scores = scores.masked_fill(mine[..., None] != theirs[..., None, :], -torch.inf)
        if causal:
            scores = scores.masked_fill(place[..., None] < their_place[..., None, :], -torch.inf)
        total = scores.logsumexp(-1, keepdim=True)  # (B, H, N, chunk, 1)
        found = (scores - total).exp() @ values  # (B, H, N, chunk, K)
        back = order.argsort(-1)[..., None]  # (B, H, T, 1)
        outputs.append(found.flatten(2, 3).gather(2, back.expand_as(v)))
        totals.append(total.flatten(2, 3).gather(2, back))
    shares = torch.stack(totals).softmax(0)  # (rounds, B, H, T, 1)
    return (torch.stack(outputs) * shares).sum(0)


def shared_attention(qk: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The full attention that `lsh_attention` approximates: keys are queries of length 1."""
    bias = own_place_last(qk.size(-2), qk.device)
    if mask is not None:
        bias = bias.masked_fill(~mask, -torch.inf)
    return scaled_dot_product_attention(qk, F.normalize(qk, dim=-1), v, bias)[0]
