"""Two doubts about BERT's recipe, and two models that fill gaps, on the captions of Multi30k.

    make record ONLY=doubts        # about six minutes on one core; resumable

masks: few captions, many epochs, with masks drawn once, in ten copies (as BERT's data were), or
new each time (RoBERTa). pairs: can BERT's and ALBERT's pair tasks be solved by two bags of words?
places: positions added once, or kept apart in every attention (DeBERTa). gaps: a model that reads
both sides and one that reads the left side; `keep` puts their weights where the chapter reads them.
"""

import math
import shutil
from functools import cache
from pathlib import Path

import torch

from recordings.beyond.encoder_only import (
    LOSS,
    RATE,
    UPDATES,
    WORDS,
    Data,
    gap,
    label_loss,
    learn,
    masked_model,
    pair_rows,
    right_labels,
)
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond.deberta import Deberta
from transformer_lib.beyond.encoders import (
    LeftOnly,
    guessing_loss,
    mask_tokens,
)
from transformer_lib.config import to_dict
from transformer_lib.models.classifier import Classifier, MaskedLanguageModel
from transformer_lib.runs.files import write_json

PAGE = "19_encoder_only"
ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "results" / "beyond" / "encoder-doubts.json"
KEPT = ROOT / "results" / "beyond" / "encoder-captions"
SHORT = 600


@cache
def corpus() -> Data:
    return Data("multi30k")


def masks(copies: int, rate: float, seed: int) -> dict:
    """2,000 captions, `copies` of each with masks drawn once; 0: drawn afresh at every reading."""
    data = corpus()
    model, few = masked_model(data, seed), data.train[:2000]
    if not copies:
        columns, loss = [few], LOSS
    else:
        generator = torch.Generator().manual_seed(seed)
        many = few * copies
        spoilt = [mask_tokens(torch.tensor([ids]), model.config.vocab_size - 1, RATE,
                              generator=generator) for ids in many]
        columns = [many, [read[0].tolist() for read, _ in spoilt],
                   [chosen[0].long().tolist() for _, chosen in spoilt]]

        def loss(model, batch):
            ids, read, chosen = batch
            return guessing_loss(model, read, ids, chosen.bool())

    learn(data, f"masks-{copies}-{rate:g}", seed, model, columns, loss, SHORT, rate)
    return {"gap": gap(model, data), "captions": len(few)}


def pairs(task: str, arm: str, rate: float, seed: int) -> dict:
    """How many labels a classifier of pairs gets right, with positions or without any."""
    data = corpus()
    torch.manual_seed(seed)
    positional = "learned" if arm == "with positions" else "none"
    model = Classifier(data.config(positional=positional), 2, n_segments=2)
    columns = [list(column) for column in zip(*pair_rows(data, task, "train", seed), strict=True)]
    name = f"pairs-{task}-{positional}-{rate:g}"
    learn(data, name, seed, model, columns, label_loss, SHORT, rate)
    return {"right": right_labels(model, pair_rows(data, task, "validation", 0))}


def places(arm: str, rate: float, seed: int) -> dict:
    """Hidden tokens found after a short training on all captions."""
    data = corpus()
    if arm == "added once":
        model = masked_model(data, seed)
    else:
        torch.manual_seed(seed)
        model = Deberta(data.config(positional="none"), absolute="absolute" in arm)
    name = f"places-{arm.replace(', ', '-').replace(' ', '-')}-{rate:g}"
    learn(data, name, seed, model, [data.train], LOSS, SHORT, rate)
    return {"gap": gap(model, data)}


def gaps(arm: str, rate: float, seed: int) -> dict:
    """Hidden tokens found by a model of both sides, or of the left one."""
    data, make = corpus(), LeftOnly if arm == "left" else MaskedLanguageModel
    model = masked_model(data, seed, make=make)
    learn(data, f"base-{arm}", seed, model, [data.train], LOSS, UPDATES, rate)
    return {"gap": gap(model, data)}


def keep() -> None:
    """The weights of the two models that the chapter asks to fill gaps."""
    data = corpus()
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in ("both", "left"):
        weights = data.runs / f"base-{name}-0" / "model.safetensors"
        shutil.copy(weights, KEPT / f"{name}.safetensors")
    shutil.copy(data.runs / "english.json", KEPT / "tokenizer.json")
    write_json(KEPT / "config.json", {"model": to_dict(data.config()), "data": data.source})


BAGS = ("with positions", "two bags")
PLACES = ("added once", "apart", "apart, absolute at the end")


def grid():
    for seed in range(3):
        for copies in (1, 10, 0):
            yield cell("masks", masks, copies=copies, rate=3e-3, seed=seed)
        for arm in BAGS:
            yield cell("pairs", pairs, task="next", arm=arm, rate=1e-3, seed=seed)
    for arm in ("both", "left"):
        yield cell("gaps", gaps, arm=arm, rate=3e-3, seed=0)
    for rate in (5e-4, 2e-3):
        for arm in BAGS:
            yield cell("pairs", pairs, task="next", arm=arm, rate=rate, seed=0)
    for arm in PLACES:
        yield cell("places", places, arm=arm, rate=3e-3, seed=0)
    for arm in BAGS:
        yield cell("pairs", pairs, task="order", arm=arm, rate=1e-3, seed=0)
    yield cell("masks", masks, copies=3, rate=3e-3, seed=0)


def guessing(settings: dict) -> float:
    """Even odds for labels, else the vocabulary."""
    return math.log(2) if settings["part"] == "pairs" else math.log(WORDS)


GATE = Gate(
    chance=guessing,
    arms=("arm", "copies"),
    edge={"rate": (1e-3, 1e-3), "copies": {3}},
    did_not_learn=(
        ({"part": "pairs", "rate": 2e-3}, "neither model learns anything at a rate of 0.002"),
    ),
)
