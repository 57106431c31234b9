"""At which learning rates a small model of letters learns, with a norm on queries and keys.

    make record ONLY=qk_norm

The letters of captions, and the model that the spans of Longer memory were trained in. About
two minutes on one core.
"""

import math

import torch
import torch.nn.functional as F

from recordings.beyond.spans import SIZE, letters
from recordings.gate import Gate
from recordings.record import ROOT, seed_by_seed
from transformer_lib.beyond.caches import QueryKeyNorm
from transformer_lib.beyond.learning import learn
from transformer_lib.config import ModelConfig
from transformer_lib.models.language_model import LanguageModel

OUT = ROOT / "results" / "beyond" / "qk-norm.json"
PAGE = "more_decoders"
UPDATES, BATCH, SEEDS, RATES = 150, 8, range(5), (0.003, 0.005, 0.01, 0.03)
EDGES = (0.001, 0.1)
GATE = Gate(
    chance=3.3,  # nats: a letter by its frequency, wherever it stands
    arms=("norm",),
    edge={"rate": (0.003, 0.03)},
)


def reads(norm: bool, rate: float, seed: int) -> dict:
    """Bits per letter of held-out captions, and the largest score at the end."""
    data, cut = letters()
    torch.manual_seed(seed)
    config = ModelConfig(128, 64, 4, 128, 0, 2, 0.0, max_len=256, positional="rotary")
    model = LanguageModel(config)
    attentions = [layer.self_attention for layer in model.decoder.layers]
    if norm:
        for attention in attentions:
            attention.positions = QueryKeyNorm(attention.d_head, attention.positions)
    generator = torch.Generator().manual_seed(seed)

    def loss_of(low, high, rows, generator):
        start = torch.randint(low, high - SIZE - 1, (rows, 1), generator=generator)
        ids = data[start + torch.arange(SIZE + 1)]  # (B, T + 1)
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    learn(model, lambda: loss_of(0, cut, BATCH, generator), UPDATES, rate, warmup=30)
    largest = []
    for attention in attentions:
        attend = attention.attend

        def noted(q, k, *rest, attend=attend):
            largest.append((q @ k.mT / q.size(-1) ** 0.5).abs().max().item())
            return attend(q, k, *rest)

        attention.attend = noted
    test = torch.Generator().manual_seed(99)
    with torch.no_grad():
        loss = sum(loss_of(cut, len(data), 16, test) for _ in range(8)).item() / 8
    return {"bits": loss / math.log(2), "largest_score": max(largest)}


def grid():
    """(settings, function) of every cell."""
    return list(
        seed_by_seed("letters", reads, SEEDS, rate=(*RATES, *EDGES), norm=(False, True))
    )
