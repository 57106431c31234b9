"""Sparse attention: a rule says which pairs are linked, and the other pairs are never computed.

A rule takes the positions of queries and keys, two integer tensors that broadcast. It returns bool,
True = may attend. A rule has three uses: `as_mask` turns it into a mask, `plan_blocks` finds the
blocks of keys that each block of queries needs, and FlexAttention takes it as its `mask_mod`.
"""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lib.attention import scaled_dot_product_attention

Rule = Callable[[Tensor, Tensor], Tensor]


def local(window: int) -> Rule:
    """Links to keys at most `window` positions away, on either side."""
    return lambda i, j: (i - j).abs() <= window


def dilated(window: int, dilation: int) -> Rule:
    """Links to as many keys as `local(window)`, but `dilation` tokens apart, to reach further."""
    return lambda i, j: ((i - j).abs() <= window * dilation) & ((i - j) % dilation == 0)


def strided(stride: int) -> Rule:
    """Links to nearby keys and every `stride`-th beyond (Sparse Transformer, Child et al. 2019)."""
    return lambda i, j: ((i - j).abs() < stride) | ((i - j) % stride == 0)


def blockwise(block: int, size: int, shift: int = 0) -> Rule:
    """Cuts the text into blocks; a query sees the block `shift` blocks ahead (Qiu et al. 2020).

    Each head has its own shift, so that several heads together cover several blocks.
    """
    n_blocks = -(-size // block)
    return lambda i, j: (i // block + shift) % n_blocks == j // block


def with_global(n_global: int) -> Rule:
    """The first `n_global` tokens see all others and are seen by all (ETC, Longformer)."""
    return lambda i, j: (i < n_global) | (j < n_global)


def random_links(size: int, block: int, n_links: int, seed: int = 0) -> Rule:
    """Each block of queries sees `n_links` random blocks, or all if there are fewer (BigBird)."""
    n_blocks = -(-size // block)
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(n_blocks, n_blocks, generator=generator).argsort(-1)
    linked = torch.zeros(n_blocks, n_blocks, dtype=torch.bool)
    linked.scatter_(1, order[:, :n_links], True)
    return lambda i, j: linked.to(i.device)[i // block, j // block]


def any_of(*rules: Rule) -> Rule:
    """A rule that links a pair if any of the given rules links it."""
    return lambda i, j: functools.reduce(operator.or_, (rule(i, j) for rule in rules))


def causal(rule: Rule) -> Rule:
    """The rule without the links that look ahead."""
    return lambda i, j: rule(i, j) & (j <= i)


def as_mask(rule: Rule, size: int) -> Tensor:
    """The rule as a mask for any attention in this book: (1, 1, T, T) bool, True = may attend."""
    place = torch.arange(size)
    return rule(place[:, None], place[None, :]).expand(size, size)[None, None]


def layers_to_hear_all(mask: Tensor) -> int | None:
    """How many layers until every token has heard from every other; None if that never happens.

    mask: (..., T, T) bool. A layer adds one step along the links, and the residual connection
    keeps what is known already.
    """
    links = mask.flatten(0, -3)[0] | torch.eye(mask.size(-1), dtype=torch.bool)  # (T, T)
    heard, n_layers = links, 1
    while not heard.all():
        further = (heard.float() @ links.float()) > 0  # (T, T)
        if torch.equal(further, heard):
            return None
        heard, n_layers = further, n_layers + 1
    return n_layers


class BlockPlan(NamedTuple):
    """The blocks that `sparse_attention` computes, planned once for a rule and a length."""

    block: int
    order: Tensor | None  # (T,) positions in the order in which blocks are cut; None: as they come
    groups: list  # (rows (R,), keys (R, M), allowed (R, block, M * block)): R blocks of queries
    n_cells: int  # scores that are computed, out of T * T


def plan_blocks(rule: Rule, size: int, block: int, order: Tensor | None = None) -> BlockPlan:
    """Find the blocks of keys that each block of queries needs.

    size must be a multiple of block. order: a permutation of the tokens; one that brings linked
    tokens together saves blocks. Query blocks that need the same number of key blocks form a group.
    """
    if size % block:
        raise ValueError(
            f"size {size} is not a multiple of block {block}: pad the text, or change block."
        )
    place = torch.arange(size) if order is None else order
    rows = [rule(part[:, None], place).expand(block, size) for part in place.split(block)]
    needed = torch.stack([row.unflatten(1, (-1, block)).any(2).any(0) for row in rows])  # (N, N)
    groups, n_cells = [], 0
    for count in needed.sum(1).unique().tolist():
        of_count = (needed.sum(1) == count).nonzero()[:, 0]  # (R,)
        keys = [needed[row].nonzero()[:, 0] for row in of_count]  # R times (M,)
        allowed = torch.stack(
            [
                rows[row].unflatten(1, (-1, block))[:, near].flatten(1)  # (block, M * block)
                for row, near in zip(of_count, keys, strict=True)
            ]
        )
        groups.append((of_count, torch.stack(keys), allowed))
        n_cells += allowed.numel()
    return BlockPlan(block, order, groups, n_cells)


def sparse_attention(q: Tensor, k: Tensor, v: Tensor, plan: BlockPlan) -> Tensor:
    """Masked attention that skips the blocks without a link. q, k, v, result: (B, H, T, K)."""
    if plan.order is not None:
        q, k, v = (x[:, :, plan.order] for x in (q, k, v))
    q, k, v = (x.unflatten(2, (-1, plan.block)) for x in (q, k, v))  # (B, H, N, block, K)
    output = torch.zeros_like(q)
    for rows, keys, allowed in plan.groups:
        near_k, near_v = (x[:, :, keys].flatten(3, 4) for x in (k, v))  # (B, H, R, M * block, K)
        found = scaled_dot_product_attention(q[:, :, rows], near_k, near_v, allowed)[0]
        output = output.index_copy(2, rows, found)
    output = output.flatten(2, 3)  # (B, H, T, K)
    return output if plan.order is None else output[:, :, plan.order.argsort()]
