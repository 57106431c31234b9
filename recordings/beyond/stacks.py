"""Stacks of one kind of block, put together in other ways: what each is worth at a small size.

    make record ONLY=stacks        # about seven minutes of one core; stops and goes on

pixels: digits written pixel by pixel by layers that see so many pixels back (Image Transformer).
bands: captions, where every layer, every second or no layer is near-sighted (GPT-3, GPT-Neo).
deep: captions letter by letter in eight layers, with positions once or in front of each layer, and
with a loss behind the last layer or behind each (Al-Rfou et al. 2019).
"""

import math
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond import digits
from transformer_lib.beyond.one_stream import stream_batches, stream_loss
from transformer_lib.beyond.stacks import (
    BandedLanguageModel,
    DeepLanguageModel,
    losses_of_layers,
    pixels_as_text,
)
from transformer_lib.config import ModelConfig
from transformer_lib.data import load_parallel
from transformer_lib.tokenization import encode_target, train_tokenizer

PAGE = "more_decoders"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "stacks.json"
SIZES = {
    "d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 0, "dropout": 0.0,
    "activation": "gelu", "max_len": 400,
}
SHADES, WHOLE = 17, 65


def descend(model, batches, loss, updates: int, rate: float):
    """Adam with a short warm-up and a straight fall; loss(model, batch, progress)."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(updates):
        share = min((step + 1) / 20, 1 - step / updates)
        optimizer.param_groups[0]["lr"] = rate * share
        value = loss(model, next(batches), step / updates)
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()


def pixel_loss(model, ids, progress=0.0):
    """Mean loss a pixel; ids: (B, 1 + P), of pixels_as_text."""
    logits = model(ids[:, :-1])  # (B, P, V)
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def draws(window: int, seed: int, updates: int = 400, rate: float = 3e-3) -> dict:
    """Bits a pixel of unseen digits, by layers that each see `window` tokens."""
    train, validation, test = digits.load_digits()
    torch.manual_seed(seed)
    config = ModelConfig(SHADES + 11, **SIZES, n_decoder_layers=3, positional="learned")
    model = BandedLanguageModel(config, window, every=1)
    ids = pixels_as_text(train.images, train.labels)
    endless = iter(lambda: ids[torch.randint(len(ids), (32,))], None)
    descend(model, endless, pixel_loss, updates, rate)
    with torch.no_grad():
        found = {name: pixel_loss(model, pixels_as_text(*data)).item() / math.log(2)
                 for name, data in (("validation", validation), ("test", test))}
    return found


@cache
def captions(vocabulary: int):
    pairs = load_parallel("multi30k")
    texts = [[en for _, en in pairs[split]] for split in ("train", "validation")]
    tokenizer = train_tokenizer(texts[0], vocabulary)
    return tokenizer.get_vocab_size(), *(encode_target(tokenizer, some) for some in texts)


def endless_batches(texts, seed: int, max_tokens: int):
    batches = stream_batches([[]] * len(texts), texts, max_tokens, seed)
    while True:
        for batch in batches.sampler.batches():
            yield batches.tensors(batch, torch.device("cpu"))
        batches.sampler.epoch = getattr(batches.sampler, "epoch", 0) + 1


@torch.no_grad()
def mean_loss(model, texts) -> float:
    batches = stream_batches([[]] * len(texts), texts, 4096, 0)
    total = count = 0
    for batch in batches.sampler.batches():
        tokens = batches.n_tokens(batch)
        total += stream_loss(model, batches.tensors(batch, torch.device("cpu"))).item() * tokens
        count += tokens
    return total / count


def bands(arm: str, seed: int, rate: float = 3e-3) -> dict:
    """Loss a token on unseen captions; four layers, a window of 4 tokens."""
    size, train, held_out = captions(1000)
    torch.manual_seed(seed)
    config = ModelConfig(size, **SIZES, n_decoder_layers=4, positional="learned")
    window, every = {"none near-sighted": (400, 1), "every second layer": (4, 2),
                     "every layer": (4, 1)}[arm]
    model = BandedLanguageModel(config, window, every)
    loss = lambda model, batch, _: stream_loss(model, batch)  # noqa: E731
    descend(model, endless_batches(train, seed, 1024), loss, 400, rate)
    return {"loss": mean_loss(model, held_out)}


def deep(arm: str, seed: int, rate: float = 1e-3) -> dict:
    """Bits a letter on unseen captions, by eight layers."""
    size, train, held_out = captions(100)
    torch.manual_seed(seed)
    sizes = SIZES | {"n_decoder_layers": 8}
    config = ModelConfig(size, **sizes, positional="none")
    model = DeepLanguageModel(config)
    if "once" in arm:
        for places in model.places[1:]:
            torch.nn.init.zeros_(places.table).requires_grad_(False)
    loss = losses_of_layers if "each loss" in arm else lambda m, batch, _: stream_loss(m, batch)
    descend(model, endless_batches(train, seed, 1024), loss, 300, rate)
    return {"bits": mean_loss(model, held_out[:300]) / math.log(2)}


WINDOWS = (2, 9, 17, WHOLE)
BANDS = ("none near-sighted", "every second layer", "every layer")
DEEP = ("places once, last loss", "places in each, last loss", "places once, each loss",
        "places in each, each loss")


def grid():
    for seed in range(3):
        for window in WINDOWS:
            yield cell("pixels", draws, window=window, seed=seed)
    for seed in range(2):
        for arm in BANDS:
            yield cell("bands", bands, arm=arm, seed=seed)
        for arm in DEEP:
            yield cell("deep", deep, arm=arm, seed=seed)


def guessing(settings: dict) -> float:
    return {"pixels": math.log(SHADES), "bands": math.log(1000), "deep": math.log(100)}[
        settings["part"]
    ]


GATE = Gate(
    chance=guessing,
    arms=("arm", "window"),
    edge={"window": (9, 17)},
)
