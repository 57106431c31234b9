"""Time and memory of each attention against the length: the measurement behind "Cheaper attention".

    python -m benchmarks.attention_cost                 128 to 16,384 tokens, about ten minutes
    python -m benchmarks.attention_cost --lengths 128 512

One thread, one head of 64 numbers, no gradients. In each round all mechanisms run once, one after
another, so that a busy moment meets them all; the median over the rounds of the processor time is
kept. Memory is the largest sum of the tensors that are alive at once, inputs and plan left out;
what a fused kernel uses inside is not seen. FlexAttention is compiled, which is not timed, and
needs a C++ compiler. Written to results/beyond/attention-cost.json.
"""

import argparse
import platform
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond import flash, linear, low_rank, lsh, routing, sparse
from transformer_lib.runs.files import write_json
from transformer_lib.runs.speed import PeakMemory

FILE = Path(__file__).resolve().parents[1] / "results" / "beyond" / "attention-cost.json"
LENGTHS = [2**n for n in range(7, 15)]
K, BUDGET = 64, 128  # numbers of a head; keys, rank or features for each query


def mechanisms(size: int) -> dict:
    """Name -> a function of q, k, v, (1, 1, T, K) each. What depends on T alone is made before."""
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
def measure(size: int, rounds: int, flex: bool = False) -> list[dict]:
    """One row for each mechanism at this length."""
    q, k, v = torch.randn(3, 1, 1, size, K, generator=torch.Generator().manual_seed(size))
    functions = mechanisms(size) | ({"FlexAttention, local": flex_local(size)} if flex else {})
    seconds = {name: [] for name in functions}
    peak = {}
    for name, function in functions.items():  # also the warm-up
        if name.startswith("Flex"):  # compiled code shows no tensors; the rule is that of "local"
            torch.testing.assert_close(function(q, k, v), functions["local"](q, k, v))
            continue
        with PeakMemory() as memory:
            function(q, k, v)
        peak[name] = memory.peak
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function(q, k, v)
            seconds[name].append(time.process_time() - start)
    return [
        {
            "mechanism": name,
            "length": size,
            "ms": round(statistics.median(seconds[name]) * 1000, 4),
            "ms_min": round(min(seconds[name]) * 1000, 4),
            "MB": round(peak[name] / 1e6, 4) if name in peak else None,
        }
        for name in functions
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for size in options.lengths:
        rows += measure(size, options.rounds, flex=True)
        for row in rows[-13:]:
            print(row, flush=True)
        write_json(
            FILE,
            {
                "environment": {"torch": torch.__version__, "python": platform.python_version(),
                                "machine": platform.machine(), "threads": 1},
                "settings": {"heads": 1, "d_k": K, "budget": BUDGET, "rounds": options.rounds},
                "rows": rows,
            },
        )


if __name__ == "__main__":
    main()
