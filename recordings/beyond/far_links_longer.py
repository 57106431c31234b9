"""Did ETC only lack time to learn to pass news on? Five times the updates of `far_links`.

    make record ONLY=far_links_longer        # about five minutes on one core; resumable

ETC as in `far_links`, and ETC with as many global tokens as Longformer has, 24, and as narrow a
window. Both are tested every 300 updates. Two other learning rates of the first are at the end.
"""

import math

import torch

from recordings.beyond.far_links import BATCH, SIZE, WARMUP
from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond import far_links, sparse
from transformer_lib.beyond.learning import learn

OUT = ROOT / "results" / "beyond" / "far-links-longer.json"
PAGE = "cheap_tested"
UPDATES, RATE, N_FACTS = 1500, 0.003, 24
GATE = Gate(
    chance=math.log(far_links.N_VALUES), arms=("n_global",), edge={"rate": (RATE, RATE)},
    did_not_learn=(
        ({"n_global": 24}, "stays near the loss of guessing"),
        ({"rate": 0.01}, "its loss never gets below that of guessing"),
    ),
)


def etc(n_global: int) -> far_links.Reader:
    """ETC at about 32 scores per query: n_global extra tokens, and a window for the rest."""
    if n_global == 8:
        return far_links.reader("ETC", SIZE, N_FACTS)
    rule = sparse.any_of(sparse.local((32 - n_global) // 2), sparse.with_global(n_global))
    return far_links.Reader(SIZE, links=far_links.Links(SIZE + n_global, rule), n_extra=n_global)


def find(n_global: int, seed: int, rate: float) -> dict:
    """Train one model, and test it every 300 updates: {update: right answers by distance}."""
    torch.manual_seed(seed)
    model, generator = etc(n_global), torch.Generator().manual_seed(seed)
    test = far_links.draw(128, SIZE, N_FACTS, torch.Generator().manual_seed(10_000 + seed))
    right = {}

    def look(update):
        if update % 300 == 0:
            right[update] = far_links.right_by_distance(model, test)

    def loss():
        return far_links.answer_loss(model, far_links.draw(BATCH, SIZE, N_FACTS, generator))

    learn(model, loss, UPDATES, rate, WARMUP, after=look)
    return {"right": right}


def grid():
    """(settings, function) of every cell."""
    cells = [(n_global, seed, RATE) for seed in (0, 1, 2) for n_global in (8, 24)]
    cells += [(8, 0, rate) for rate in (0.001, 0.01)]
    return [cell("longer", find, n_global=n, seed=seed, rate=rate) for n, seed, rate in cells]
