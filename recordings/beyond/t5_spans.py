"""T5's objective, trained: lost spans with named gaps as pretraining, then few pairs of Multi30k.

    make record ONLY=t5_spans        # about eight minutes of one core; stops and goes on

The same captions, pairs, updates and seeds as the denoising runs of `encoder_decoders`.
"""

import math
from functools import cache
from pathlib import Path

from recordings.beyond.encoder_decoders import FEW, Captions, pretrain, translation
from recordings.gate import Gate
from recordings.record import cell

PAGE = "22_encoder_decoders"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "t5-spans.json"


@cache
def captions() -> Captions:
    return Captions("multi30k")


def spans(seed: int) -> dict:
    """Pretrain; how many tokens the decoder wrote is in `run`."""
    pretrain(captions(), "span", seed)
    return {}


def few(rate: float, seed: int) -> dict:
    found = translation(captions(), "span", *FEW["multi30k"], rate, seed)
    return {split: found[split] for split in ("validation", "test")}


def grid():
    yield cell("pretraining", spans, seed=0)
    for rate in (5e-3, 2e-3, 1e-2):
        yield cell("few pairs", few, rate=rate, seed=0)
    for seed in (1, 2):
        yield cell("pretraining", spans, seed=seed)
        yield cell("few pairs", few, rate=5e-3, seed=seed)


GATE = Gate(chance=math.log(3000), edge={"rate": (5e-3, None)})
