"""Record what the chapter on data claims about batches: `make record ONLY=batches`.

For each order of the sentences, each size of the pool that is sorted, and two ways to fill a batch:
the padding on Multi30k, and how many of its batch-mates a sentence meets again in the next epoch.
Part sizes has smaller and larger batches, for the two orders that the page compares.
Resumable; about a minute on one core. Needs Multi30k.
"""

import functools

from recordings.gate import Gate
from recordings.record import RESULTS, cell, page_code
from transformer_lib import batching, load_pretrained
from transformer_lib.data import load_parallel
from transformer_lib.tokenization import encode_pairs

OUT = RESULTS / "batches.json"
PAGE = "14_multi30k_data"
GATE = Gate(edge={"budget": (2048, 2048)})  # it trains nothing
page = page_code(PAGE)  # its functions read `lengths`

SIZE = 128  # sentences
BUDGET = 2048  # tokens of the longer side
BUDGETS = (512, 8192)  # smaller and larger ones
POOLS = (1, 3, 10, 30, 100, 1000)  # batches; the last is the whole corpus
SEEDS = (0, 1)  # of two epochs
ORDERS = {
    "source": lambda source, target: source,
    "source, then target": lambda source, target: (source, target),
    "source, then target to and fro": lambda source, target: (source, target * (-1) ** source),
    "sum": lambda source, target: source + target,
    "longer side": max,
    "longer side, then difference": lambda source, target: (max(source, target), source - target),
    "the library's": batching._place,
}


@functools.cache
def lengths() -> list[tuple[int, int]]:
    """Of each training pair: the ids of the source, and those that the decoder reads."""
    tokenizer = load_pretrained("multi30k-de-en").tokenizer
    src, tgt = encode_pairs(tokenizer, load_parallel("multi30k")["train"])
    return [(len(a), len(b) - 1) for a, b in zip(src, tgt, strict=True)]


def filled(rows: list[int], budget: int) -> list[list[int]]:
    """Rows in their order, cut where width times rows would exceed the budget."""
    batches, batch, width = [], [], 0
    for i in rows:
        wider = max(width, *lengths()[i])
        if batch and wider * (len(batch) + 1) > budget:
            batches.append(batch)
            batch, wider = [], max(lengths()[i])
        batch, width = [*batch, i], wider
    return [*batches, batch]


def batches(order: str, pool: int, fill: str, budget: int = BUDGET) -> dict:
    page["lengths"] = lengths()
    epochs = []
    for seed in SEEDS:
        made = page["pooled_batches"](pool, SIZE, seed, key=lambda i: ORDERS[order](*lengths()[i]))
        if fill == "tokens":
            made = filled([i for batch in made for i in batch], budget)
        epochs.append(made)
    shares = [batching.padding_share(lengths(), made) for made in epochs]
    return {
        "padding": shares,
        "batches": [len(made) for made in epochs],
        "again": page["met_again"](*epochs),
    }


def grid():
    """(settings, function) of every cell."""
    return [
        cell("padding", batches, order=order, pool=pool, fill=fill)
        for fill in ("sentences", "tokens") for pool in POOLS for order in ORDERS
    ] + [
        cell("sizes", batches, order=order, pool=pool, fill="tokens", budget=budget)
        for budget in BUDGETS for pool in POOLS for order in ("longer side", "the library's")
    ]
