"""Time, memory and arithmetic of each attention against the length: "Cheaper attention".

    make record ONLY=attention_cost        # about ten minutes on one core

One thread, one head of 64 numbers, no gradients. In each round all mechanisms run once, one after
another, so that a busy moment affects them all, and a round during which another program had the
core does not count. Kept are the median over the rounds of the processor time, and the fastest.
Memory is the largest sum of the tensors that are alive at once, inputs and plan left out; what a
fused kernel uses inside is not seen. FlexAttention is compiled, which is not timed, and needs a
C++ compiler. Operations are those of the matrix products, which no machine changes.
"""

import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond import flash, linear, low_rank, lsh, routing, sparse
from transformer_lib.runs.speed import PeakMemory

OUT = ROOT / "results" / "beyond" / "attention-cost.json"
PAGE = "23_cheaper_attention"
LENGTHS, ROUNDS = [2**n for n in range(5, 15)], 7
K, BUDGET = 64, 128  # numbers of a head; keys, rank or features for each query
GATE = Gate(edge={"length": (128, 2048)})  # where the page sees one overtake another


def mechanisms(size: int) -> dict:
    """Name -> a function of q, k, v, (1, 1, T, K) each. What depends only on T is made before."""
    generator = torch.Generator().manual_seed(0)
    block = min(64, size // 2)
    local = sparse.local(block)
    # Two blocks to be seen by all: the text's first block, and one drawn at random for each block.
    bigbird = sparse.any_of(
        local, sparse.with_global(block), sparse.random_links(size, block, n_links=1)
    )
    near, far = (sparse.plan_blocks(rule, size, block) for rule in (local, bigbird))
    by_column = torch.arange(size).view(-1, 64 if size > 64 else 1).T.flatten()
    column = sparse.plan_blocks(lambda i, j: (i - j) % 64 == 0, size, block, by_column)
    rank = min(BUDGET, size)
    mix = torch.randn(rank, size, generator=generator) / size**0.5
    directions = linear.orthogonal_directions(BUDGET, K, generator)
    n_clusters = max(1, round(size**0.5))
    centroids = F.normalize(torch.randn(1, n_clusters, K, generator=generator), dim=-1)

    def performer(q, k, v):
        q, k = (linear.positive_features(x / K**0.25, directions) for x in (q, k))
        return linear.linear_attention(q, k, v)

    def rfa(q, k, v):
        q, k = (linear.fourier_features(F.normalize(x, dim=-1), directions[::2]) for x in (q, k))
        return linear.linear_attention(q, k, v)

    return {
        "full": lambda q, k, v: scaled_dot_product_attention(q, k, v)[0],
        "PyTorch's fused kernel": F.scaled_dot_product_attention,
        "FlashAttention in Python": lambda q, k, v: flash.flash_attention(q, k, v, 512),
        "local": lambda q, k, v: sparse.sparse_attention(q, k, v, near),
        "strided, by columns": lambda q, k, v: sparse.sparse_attention(q, k, v, column),
        "BigBird": lambda q, k, v: sparse.sparse_attention(q, k, v, far),
        "Reformer": lambda q, k, v: lsh.lsh_attention(q, v, max(2, size // 64), min(64, size)),
        "Routing": lambda q, k, v: routing.routing_attention(
            q, k, v, centroids, size // n_clusters
        ),
        "Linformer": lambda q, k, v: low_rank.linformer_attention(q, k, v, mix, mix),
        "RFA": rfa,
        "Performer": performer,
        "linear": lambda q, k, v: linear.linear_attention(
            linear.elu_features(q), linear.elu_features(k), v
        ),
    }


def flex_local(size: int):
    """PyTorch's FlexAttention with the same rule as "local", compiled for this length."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.compiler.reset()
    rule = sparse.local(min(64, size // 2))
    blocks = create_block_mask(lambda b, h, i, j: rule(i, j), None, None, size, size, device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=blocks)


@torch.no_grad()
def measure(length: int, rounds: int = ROUNDS, flex: bool = True) -> dict:
    """rows: the time and memory of each mechanism at this length."""
    q, k, v = torch.randn(3, 1, 1, length, K, generator=torch.Generator().manual_seed(length))
    functions = mechanisms(length)
    if flex:
        functions["FlexAttention, local"] = flex_local(length)
    peak, kept = {}, []
    for name, function in functions.items():  # also the warm-up
        if name.startswith("Flex"):  # compiled code shows no tensors; the rule is that of "local"
            torch.testing.assert_close(function(q, k, v), functions["local"](q, k, v))
            continue
        with PeakMemory() as memory:
            function(q, k, v)
        peak[name] = memory.peak
    for _ in range(20 * rounds):
        wall, taken = time.perf_counter(), {}
        for name, function in functions.items():
            start = time.process_time()
            function(q, k, v)
            taken[name] = time.process_time() - start
        if time.perf_counter() - wall < 1.1 * sum(taken.values()):
            kept.append(taken)
        if len(kept) == rounds:
            break
    else:
        raise RuntimeError(
            f"{length} tokens: other programs had the core in all but {len(kept)} of {20 * rounds} "
            "rounds. Time this on a machine that does nothing else."
        )
    return {
        "rows": [
            {
                "mechanism": name,
                "ms": 1000 * statistics.median(taken[name] for taken in kept),
                "ms_min": 1000 * min(taken[name] for taken in kept),
                "MB": peak[name] / 1e6 if name in peak else None,
            }
            for name in functions
        ]
    }


@torch.no_grad()
def count(length: int) -> dict:
    """operations: mechanism -> multiplications and additions of its matrix products."""
    q, k, v = torch.randn(3, 1, 1, length, K, generator=torch.Generator().manual_seed(length))
    found = {}
    for name, function in mechanisms(length).items():
        # Unfused, attention is two products, which the counter knows.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            function(q, k, v)
        found[name] = counter.get_total_flops()
    return {"operations": found}


def grid():
    """(settings, function) of every cell."""
    return [cell(part, measured, length=length)
            for part, measured in (("operations", count), ("timing", measure))
            for length in LENGTHS]
