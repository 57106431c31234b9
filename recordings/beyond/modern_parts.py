"""From GPT-2 to Llama, one part at a time: language models of captions. Resumable.

    make record ONLY=modern_parts

Each arm changes one setting of a small GPT-2 and reads the same English captions of Multi30k in the
same order, each caption at most once. The control: other learning
rates, as factors. Written to results/beyond/modern-parts.json after every run.
"""

import math
from functools import partial
from pathlib import Path

import torch

from recordings.beyond.decoder_only import RESULTS, RUNS, fast_loss, mean_loss
from recordings.record import record_runs
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import ModelConfig, TrainConfig, to_dict
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.tokenization import encode_target, train_tokenizer
from transformer_lib.training import fit

ROOT = Path(__file__).resolve().parents[2]


# Vocabulary, updates, tokens a batch, rate; the small corpus is there to try the script.
DATA = {"multi30k": (1000, 500, 1024, 4e-3), "mini": (400, 60, 512, 4e-3)}
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
RESULT = RESULTS / "modern-parts.json"
RATES = {1.0: (0, 1, 2), 0.5: (0,), 2.0: (0,)}  # factor of the rate -> seeds


def measure(data: str, arm: str, seed: int, rate: float, texts, held_out, n_bytes: int) -> dict:
    """Train one model, `rate` times the learning rate; returns the settings and what came out."""
    vocabulary, steps, max_tokens, peak = DATA[data]
    config = TrainConfig(
        max_steps=steps, max_tokens=max_tokens, peak_lr=rate * peak, warmup=steps // 10,
        cooldown=steps // 3, average=1, checkpoint_every=steps, keep_checkpoints=1,
        validate_every=steps, log_every=20, seed=seed, device="cpu", label_smoothing=0.0,
        precision="bf16", fast=True, progress=False,
    )
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(vocabulary, **GPT2 | ARMS[arm]))
    batches = stream_batches([[]] * len(texts), texts, max_tokens, seed)
    name = "-".join(arm.replace(",", "").replace("(", "").replace(")", "").split())
    folder = RUNS / "modern-parts" / f"{data}-{name}-{rate:g}-{seed}"
    metrics = fit(model, batches, partial(fast_loss, smoothing=0.0), config, folder)
    loss = mean_loss(model, stream_batches([[]] * len(held_out), held_out, 4096, 0))
    total = sum(len(text) - 1 for text in held_out)
    return {
        "data": data, "arm": arm, "seed": seed, "rate": rate, "updates": steps,
        "parameters": sum(p.numel() for p in model.parameters()), "loss": loss,
        "perplexity": math.exp(loss), "perplexity_per_byte": math.exp(loss * total / n_bytes),
        "seconds": sum(entry.get("seconds", 0) for entry in metrics),
        "model": to_dict(model.config), "train": to_dict(config),
    }


def record_all(data: str = "multi30k"):
    pairs = load_parallel(data)
    captions, unseen = ([en for _, en in pairs[part]] for part in ("train", "validation"))
    tokenizer = train_tokenizer(captions, DATA[data][0])
    texts, held_out = encode_target(tokenizer, captions), encode_target(tokenizer, unseen)
    n_bytes = sum(len(text.encode()) + 1 for text in unseen)  # each ends with an end
    record_runs(RESULT, [
        ({"data": data, "arm": arm, "rate": rate, "seed": seed},
         partial(measure, data, arm, seed, rate, texts, held_out, n_bytes))
        for rate, seeds in RATES.items() for seed in seeds for arm in ARMS
    ])
