"""Loss against parameters, tokens and compute: a grid of small language models.

    make record ONLY=beyond.scaling        # about eight minutes on one core; resumable

grid: models of four widths read a quarter, a half or all of the English captions of Multi30k, each
caption once. Each run has a schedule of its own length, and small runs come first.
rate: half and twice the learning rate. epochs: a quarter of the captions, read six times. wider:
twice the largest width, for the law to predict, with half and twice the rate.
"""

import math
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from recordings.beyond.decoder_only import RESULTS, fast_loss, mean_loss
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import ModelConfig, TrainConfig
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.tokenization import encode_target, train_tokenizer
from transformer_lib.training import fit

OUT = RESULTS / "scaling.json"
PAGE = "scaling"
WIDTHS, SHARES, EPOCHS, VOCABULARY, MAX_TOKENS = (16, 32, 64, 128), (4, 2, 1), 6, 1000, 512
KINDS = {
    "grid": [{"width": w, "share": s} for w in WIDTHS for s in SHARES],  # share 4: a quarter
    "rate": [{"width": w, "share": 4, "rate": r} for w in WIDTHS[::2] for r in (0.5, 2)],
    "epochs": [{"width": w, "share": 4, "epochs": EPOCHS} for w in WIDTHS[::2]],
    "wider": [{"width": 2 * WIDTHS[-1], "share": s} for s in SHARES[:2]]
    + [{"width": 2 * WIDTHS[-1], "share": 4, "rate": r} for r in (0.5, 2)],
}
GATE = Gate(
    chance=math.log(VOCABULARY), arms=("width",),
    edge={"rate": (1, 1), "width": (32, WIDTHS[-1]), "epochs": (None, 1)},
    differs={"parameters": "with four widths and three amounts of text"},
)


@cache
def texts() -> tuple[list[list[int]], list[list[int]], int]:
    """The ids of the training captions and of the validation captions, and the bytes of these."""
    pairs = load_parallel("multi30k")
    captions, held_out = ([english for _, english in pairs[part]] for part in
                          ("train", "validation"))
    tokenizer = train_tokenizer(captions, VOCABULARY)
    n_bytes = sum(len(text.encode()) + 1 for text in held_out)  # each ends with an end
    return encode_target(tokenizer, captions), encode_target(tokenizer, held_out), n_bytes


def measure(width: int, share: int, rate: float, epochs: int, seed: int) -> dict:
    """Train one model: its loss on captions that it has not read. rate: in units of 1 / width."""
    captions, held_out, n_bytes = texts()
    captions = captions[: len(captions) // share]
    batches = stream_batches([[]] * len(captions), captions, MAX_TOKENS, seed)
    steps = epochs * sum(1 for _ in batches.sampler.batches())
    config = TrainConfig(
        max_steps=steps, max_tokens=MAX_TOKENS, peak_lr=rate / width, warmup=steps // 10,
        cooldown=steps // 3, average=1, checkpoint_every=200, keep_checkpoints=1,
        validate_every=steps, log_every=20, seed=seed, device="cpu", label_smoothing=0.0,
        precision="bf16", fast=True, progress=False,
    )
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(
        VOCABULARY, d_model=width, n_heads=width // 16, d_ff=4 * width, n_encoder_layers=0,
        n_decoder_layers=2, dropout=0.0, positional="rotary", activation="gelu", max_len=160,
    ))
    with TemporaryDirectory() as folder:
        fit(model, batches, partial(fast_loss, smoothing=0.0), config, Path(folder))
    loss = mean_loss(model, stream_batches([[]] * len(held_out), held_out, 4096, 0))
    tokens, total = (sum(len(text) - 1 for text in some) for some in (captions, held_out))
    return {
        "parameters": sum(p.numel() for p in model.parameters()), "embedding": VOCABULARY * width,
        "captions": len(captions), "tokens": tokens * epochs, "loss": loss,
        "bits_per_byte": loss * total / n_bytes / math.log(2),
    }


def settings(kind: str, seed: int = 0) -> list[dict]:
    """The runs of one kind and seed, by what they cost."""
    runs = [{"rate": 1, "epochs": 1} | run | {"seed": seed} for run in KINDS[kind]]
    return sorted(runs, key=lambda run: run["width"] ** 2 * run["epochs"] / run["share"])


def grid():
    """(settings, function) of every cell."""
    return [cell(kind, measure, **run) for kind in KINDS for run in settings(kind)]
