"""From GPT-2 to Llama, one part at a time: language models of captions.

    make record ONLY=modern_parts        # about forty minutes on one core; resumable

Each arm changes one setting of a small GPT-2 and reads the same English captions of Multi30k in the
same order, each caption at most once. The control: half and twice the learning rate.
"""

import math
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from recordings.beyond import scaling
from recordings.beyond.decoder_only import RESULTS, fast_loss, mean_loss
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import ModelConfig, TrainConfig, to_dict
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.training import fit

OUT = RESULTS / "modern-parts.json"
PAGE = "20_decoder_only"
UPDATES, MAX_TOKENS, PEAK = 500, 1024, 4e-3
GPT2 = {
    "d_model": 128, "n_heads": 4, "d_ff": 384, "n_encoder_layers": 0, "n_decoder_layers": 2,
    "dropout": 0.0, "positional": "learned", "activation": "gelu", "norm": "layer", "bias": True,
    "scale_embeddings": False, "max_len": 160,
}
SWIGLU = {"activation": "swiglu", "d_ff": 256}  # three matrices of two thirds: as many numbers
ARMS = {
    "as GPT-2": {},
    "rotary": {"positional": "rotary"},
    "RMSNorm": {"norm": "rms"},
    "SwiGLU": SWIGLU,
    "grouped queries (2)": {"n_kv_heads": 2},
    "multi-query (1)": {"n_kv_heads": 1},
    "no biases": {"bias": False},
    "all, as Llama": {
        "positional": "rotary", "norm": "rms", **SWIGLU, "n_kv_heads": 2, "bias": False
    },
}
RATES = {1.0: (0, 1, 2), 0.5: (0,), 2.0: (0,)}  # factor of the rate -> seeds
GATE = Gate(
    chance=math.log(scaling.VOCABULARY), arms=("arm",), edge={"rate": (1, 1)},
    differs={"parameters": "\"all, as Llama\" has 12 % fewer parameters than GPT-2's settings"},
)


def measure(arm: str, rate: float, seed: int) -> dict:
    """Train one model, `rate` times the learning rate: its loss on captions it has not read."""
    captions, held_out, _ = scaling.texts()
    config = TrainConfig(
        max_steps=UPDATES, max_tokens=MAX_TOKENS, peak_lr=rate * PEAK, warmup=UPDATES // 10,
        cooldown=UPDATES // 3, average=1, checkpoint_every=UPDATES, keep_checkpoints=1,
        validate_every=UPDATES, log_every=20, seed=seed, device="cpu", label_smoothing=0.0,
        precision="bf16", fast=True, progress=False,
    )
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(scaling.VOCABULARY, **GPT2 | ARMS[arm]))
    batches = stream_batches([[]] * len(captions), captions, MAX_TOKENS, seed)
    with TemporaryDirectory() as folder:
        fit(model, batches, partial(fast_loss, smoothing=0.0), config, Path(folder))
    loss = mean_loss(model, stream_batches([[]] * len(held_out), held_out, 4096, 0))
    return {
        "parameters": sum(p.numel() for p in model.parameters()), "loss": loss,
        "perplexity": math.exp(loss), "model": to_dict(model.config),
    }


def grid():
    """(settings, function) of every cell: each arm's first seed first."""
    return [
        cell("parts", measure, arm=arm, rate=rate, seed=seed)
        for rate, seeds in RATES.items() for seed in seeds for arm in ARMS
    ]
