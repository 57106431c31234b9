"""T5's objective, trained: lost spans with named gaps as pretraining, then few pairs of Multi30k.

    make record ONLY=t5_spans        # about fifteen minutes on one core; resumable

The same captions, pairs, updates and seeds as the denoising runs of `encoder_decoders`. More than
half of what the decoder writes is gaps and <eos>, which are learned at once and hide in the
training loss whether the lost words are. `words` measures these by themselves.
"""

import math
import random
from functools import cache
from pathlib import Path
from shutil import rmtree

import torch
from torch import Tensor

from recordings.beyond.encoder_decoders import (
    FEW,
    LANGUAGES,
    RUNS,
    Captions,
    begin,
    pretrain,
    translation,
)
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond.denoising import span_corruption
from transformer_lib.config import BOS, EOS
from transformer_lib.tokenization import encode_source

PAGE = "22_encoder_decoders"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "t5-spans.json"
KINDS = {1000: "span", 4000: "span longer"}  # updates of pretraining


@cache
def captions() -> Captions:
    return Captions("multi30k")


def spans(pretraining: int, seed: int) -> dict:
    """Pretrain from the beginning: for a resumed run, `run` would hold only the rest."""
    kind = KINDS[pretraining].replace(" ", "-")
    rmtree(RUNS / "pretraining" / f"multi30k-{kind}-{seed}", ignore_errors=True)
    pretrain(captions(), KINDS[pretraining], seed)
    return {}


@torch.no_grad()
def words(pretraining: int, seed: int) -> dict:
    """Nats of a lost word on 800 held-out captions: read in its own caption, in another, and by
    the frequencies of the training captions; and the share that is guessed right."""
    data, rng = captions(), random.Random(seed)
    model = begin(data, KINDS[pretraining], seed).eval()
    count, rows = torch.full((data.vocab_size,), 0.5), []
    for language in LANGUAGES:
        for ids in encode_source(data.tokenizer, data.texts("train", language)):
            count += torch.bincount(torch.tensor(ids[:-1]), minlength=data.vocab_size)
        for ids in encode_source(data.tokenizer, data.texts("validation", language))[:400]:
            rows.append((data.tags[language], *span_corruption(ids[:-1], data.first_gap, rng)))
    by_frequency = (count / count.sum()).log()

    def log_p(row, source) -> Tensor:
        target = torch.tensor([[BOS, *row[2]]])
        return model(torch.tensor([[row[0], *source, EOS]]), target).log_softmax(-1)[0, :-1]

    nats, right = torch.zeros(3), []
    for row, (_, other, _) in zip(rows, rows[7:] + rows[:7], strict=True):
        written = torch.tensor(row[2])
        lost = written < data.first_gap
        own, wrong = log_p(row, row[1])[lost], log_p(row, other)[lost]
        target = written[lost]
        each = torch.stack([own.gather(1, target[:, None])[:, 0],
                            wrong.gather(1, target[:, None])[:, 0], by_frequency[target]])
        nats -= each.sum(1)
        right += (own.argmax(-1) == target).tolist()
    names = "own caption", "another caption", "frequencies"
    return dict(zip(names, (nats / len(right)).tolist(), strict=True)) | {
        "right": sum(right) / len(right), "words": len(right)}


def few(pretraining: int, rate: float, seed: int) -> dict:
    found = translation(captions(), KINDS[pretraining], *FEW["multi30k"], rate, seed)
    return {split: found[split] for split in ("validation", "test")}


def grid():
    for updates in KINDS:
        yield cell("pretraining", spans, pretraining=updates, seed=0)
        yield cell("words", words, pretraining=updates, seed=0)
        for rate in (5e-3, 2e-3, 1e-2):
            yield cell("few pairs", few, pretraining=updates, rate=rate, seed=0)


GATE = Gate(
    chance=math.log(3000), arms=("pretraining",), edge={"rate": (5e-3, 5e-3)}, measures={"words"},
    differs={"updates": "four times the updates", "tokens": "four times the updates"},
)
