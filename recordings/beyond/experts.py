"""What experts buy, at equal work for each token and at equal parameters.

    make record ONLY=experts

The letters of captions, and one small language model whose feed-forward networks are replaced.
Untrained: whom its router asks before the first update. A quarter of an hour on one core.
"""

import math

import torch
import torch.nn.functional as F

from recordings.beyond.spans import letters
from recordings.gate import Gate
from recordings.record import ROOT, cell
from transformer_lib.beyond.experts import ExpertLanguageModel
from transformer_lib.beyond.learning import learn
from transformer_lib.config import ModelConfig
from transformer_lib.models.language_model import LanguageModel

OUT = ROOT / "results" / "beyond" / "experts.json"
PAGE = "experts"
SIZE, BATCH, WIDTH, LOOKED_AT = 64, 8, 64, 29
# arm -> (width of a network, how many experts, the other settings)
ARMS = {
    "narrow": (WIDTH, 0, {}),
    "wide": (8 * WIDTH, 0, {}),
    "one of 8": (WIDTH, 8, {"weighting": "one"}),
    "one of 8, times its probability": (WIDTH, 8, {"weighting": "probability"}),
    "two of 16 half as wide": (WIDTH // 2, 16, {"k": 2}),
    "one of 8, fixed for each letter": (WIDTH, 8, {"hashed": True}),
    "one of 8, router left as drawn": (WIDTH, 8, {"weighting": "one", "frozen": True}),
}
FROZEN = "one of 8, router left as drawn"  # it looks as a learned one does, and never learns
BASE = {"price": 0.01, "updates": 300, "rate": 0.005}
GATE = Gate(
    chance=3.0,  # nats: a letter by its frequency, wherever it stands
    arms=("arm",),
    edge={"updates": (None, 300), "price": (0.01, None), "rate": (0.005, 0.005)},
    missing={"price above": "We didn't try a price for balance above 0.01"},
    differs={"parameters": "about a third of the parameters"},
    measures=("untrained",),
)


def writes(arm, price, updates, rate, seed) -> dict:
    """Bits per letter of held-out captions, and who asked which expert there."""
    data, cut = letters()
    width, n_experts, settings = ARMS[arm]
    settings = dict(settings)
    frozen = settings.pop("frozen", False)
    torch.manual_seed(seed)
    config = ModelConfig(128, 64, 4, width, 0, 2, 0.0, max_len=256, positional="rotary")
    mixed = n_experts > 0
    model = ExpertLanguageModel(config, n_experts, **settings) if mixed else LanguageModel(config)
    if frozen:
        for layer in model.decoder.layers:
            layer.feed_forward.router.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)

    def texts(low, high, rows, generator):
        start = torch.randint(low, high - SIZE - 1, (rows, 1), generator=generator)
        return data[start + torch.arange(SIZE + 1)]  # (B, T + 1)

    def nats(ids):
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def loss():
        found = nats(texts(0, cut, BATCH, generator))
        if mixed and not settings.get("hashed"):
            found = found + price * model.balance()
        return found

    learn(model, loss, updates, rate, warmup=50, cooldown=3)
    test = torch.Generator().manual_seed(99)
    total, asked, read = 0.0, [], []
    with torch.no_grad():
        for _ in range(8):
            ids = texts(cut, len(data), 64, test)
            total += nats(ids).item() / 8 / math.log(2)
            read.append(ids[:, :-1].flatten())
            if mixed:
                layers = [layer.feed_forward.asked for layer in model.decoder.layers]
                asked.append(torch.stack([x.flatten(0, 1) for x in layers]))  # (L, N, k)
    found = {"bits": total}
    if mixed:
        found |= asked_by_letter(torch.cat(asked, 1), torch.cat(read), n_experts, seed == 0)
    return found


def asked_by_letter(asked, read, n_experts, whole) -> dict:
    """Of each layer: the share of the busiest expert, and how many tokens ask the expert that
    their letter asks most. whole: the counts of the most frequent letters, too.
    """
    found, frequent = {"busiest": [], "by_letter": []}, read.bincount(minlength=128).topk(LOOKED_AT)
    for layer in asked:
        counts = torch.zeros(128, n_experts)
        for one in layer.T:
            counts.index_put_((read, one), torch.ones(len(read)), accumulate=True)
        found["busiest"].append((counts.sum(0).max() / counts.sum()).item())
        found["by_letter"].append((counts.max(1).values.sum() / counts.sum()).item())
        if whole:
            found.setdefault("counts", []).append(counts[frequent.indices].int().tolist())
    if whole:
        found["letters"] = "".join(map(chr, frequent.indices.tolist()))
    return found


def grid():
    """(settings, function) of every cell."""

    def arms(which, seeds, **change):
        return [
            cell("letters", writes, arm=arm, **(BASE | change), seed=seed)
            for seed in seeds
            for arm in which
        ]

    six = [arm for arm in ARMS if arm != FROZEN]
    learned = [arm for arm in six if ARMS[arm][1] and not ARMS[arm][2].get("hashed")]
    return [
        *arms(six, range(9)),
        *arms(learned, range(9), price=0),  # nothing asks the router to share the work out
        *arms(six, (0,), updates=600),
        *(run for rate in (0.0025, 0.01) for run in arms(six, range(3), rate=rate)),
        *(cell("untrained", writes, arm="one of 8", price=0.01, updates=0, rate=0.005, seed=seed)
          for seed in range(9)),
        *arms([FROZEN], range(5)),
    ]
