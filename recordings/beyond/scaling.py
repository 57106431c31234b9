"""Loss against parameters, tokens and compute: a grid of small recorded runs. Resumable.

    python -m recordings.beyond.scaling grid --seeds 0
    python -m recordings.beyond.scaling rate epochs --seeds 0

grid: language models of five widths read a quarter, a half or all of the English captions of
Multi30k, each caption once. Each run has a schedule of its own length, and small runs come first.
rate: half and twice the learning rate. epochs: a quarter of the captions, read six times.
Written to results/beyond/scaling.json.
"""

import argparse
import datetime
import json
from functools import partial
from pathlib import Path

import torch

from recordings.beyond.decoder_only import RESULTS, RUNS, fast_loss, mean_loss
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import ModelConfig, TrainConfig, to_dict
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import write_json
from transformer_lib.tokenization import encode_target, train_tokenizer
from transformer_lib.training import fit

ROOT = Path(__file__).resolve().parents[2]


WIDTHS, SHARES, EPOCHS, VOCABULARY, MAX_TOKENS = (16, 32, 64, 128, 256), (4, 2, 1), 6, 1000, 512
KINDS = {
    "grid": [{"width": w, "share": s} for w in WIDTHS for s in SHARES],  # share 4: a quarter
    "rate": [{"width": w, "share": 4, "rate": r} for w in WIDTHS[::2] for r in (0.5, 2)],
    "epochs": [{"width": w, "share": 4, "epochs": EPOCHS} for w in WIDTHS[:3]],
}


def settings(kind: str, seed: int) -> list[dict]:
    """The runs of one kind and seed, by what they cost."""
    plain = {"kind": kind, "seed": seed, "rate": 1, "epochs": 1}
    runs = [plain | run for run in KINDS[kind]]
    return sorted(runs, key=lambda run: run["width"] ** 2 * run["epochs"] / run["share"])


def measure(run: dict, texts: list[list[int]], held_out: list[list[int]], n_bytes: int) -> dict:
    """Train one model; returns the settings and what came out."""
    name = "-".join(f"{key}{value}" for key, value in run.items())
    folder = RUNS / "scaling" / name
    found = folder / "result.json"
    if found.exists():
        return json.loads(found.read_text(encoding="utf8"))
    width, texts = run["width"], texts[: len(texts) // run["share"]]
    empty = [[]] * len(texts)
    batches = stream_batches(empty, texts, MAX_TOKENS, run["seed"])
    steps = run["epochs"] * sum(1 for _ in batches.sampler.batches())
    config = TrainConfig(
        max_steps=steps, max_tokens=MAX_TOKENS, peak_lr=run["rate"] / width,
        warmup=steps // 10, cooldown=steps // 3, average=1, checkpoint_every=200,
        keep_checkpoints=1, validate_every=steps, log_every=20, seed=run["seed"], device="cpu",
        label_smoothing=0.0, precision="bf16", fast=True, progress=False,
    )
    torch.manual_seed(run["seed"])
    model = LanguageModel(ModelConfig(
        VOCABULARY, d_model=width, n_heads=width // 16, d_ff=4 * width, n_encoder_layers=0,
        n_decoder_layers=2, dropout=0.0, positional="rotary", activation="gelu", max_len=160,
    ))
    metrics = fit(model, batches, partial(fast_loss, smoothing=0.0), config, folder)
    loss = mean_loss(model, stream_batches([[]] * len(held_out), held_out, 4096, 0))
    tokens, total = (sum(len(text) - 1 for text in some) for some in (texts, held_out))
    where = environment(torch.device("cpu"))
    embedding = VOCABULARY * width
    result = run | {
        "parameters": sum(p.numel() for p in model.parameters()), "embedding": embedding,
        "captions": len(texts), "tokens": tokens * run["epochs"], "updates": steps,
        "loss": loss, "bits_per_byte": loss * total / n_bytes / 0.6931471805599453,
        "seconds": sum(entry.get("seconds", 0) for entry in metrics),
        "device": where["device"], "commit": where["commit"],
        "date": datetime.date.today().isoformat(), "train": to_dict(config),
    }
    write_json(found, result)
    return result


def collect() -> None:
    """Add what the runs found to results/beyond/scaling.json, settings that all share once.

    What was recorded elsewhere stays.
    """
    path = RESULTS / "scaling.json"
    before = json.loads(path.read_text(encoding="utf8"))["runs"] if path.exists() else []
    files = sorted((RUNS / "scaling").glob("*/result.json"))
    found = [json.loads(path.read_text(encoding="utf8")) for path in files]
    train = found[0]["train"]
    own = ("max_steps", "peak_lr", "warmup", "cooldown", "validate_every", "seed")
    shared = {name: value for name, value in train.items() if name not in own}
    shared |= {"vocabulary": VOCABULARY, "layers": 2, "data": "multi30k"}
    for run in found:
        run |= {"peak_lr": run.pop("train")["peak_lr"]}
    names = ("kind", "seed", "width", "tokens", "rate")
    runs = {tuple(run[name] for name in names): run for run in (*before, *found)}
    write_json(path, {"shared": shared, "runs": [runs[key] for key in sorted(runs)]})


def main(arguments=None):
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("kinds", nargs="+", choices=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--widths", nargs="+", type=int, default=WIDTHS, choices=WIDTHS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pairs = load_parallel("multi30k")
    parts = "train", "validation"
    captions, held_out = ([english for _, english in pairs[part]] for part in parts)
    tokenizer = train_tokenizer(captions, VOCABULARY)
    texts, unseen = encode_target(tokenizer, captions), encode_target(tokenizer, held_out)
    n_bytes = sum(len(text.encode()) + 1 for text in held_out)  # each ends with an end
    for seed in options.seeds:
        for run in [run for kind in options.kinds for run in settings(kind, seed)]:
            if run["width"] in options.widths:
                found = measure(run, texts, unseen, n_bytes)
                print(run, f"{found['loss']:.3f}", f"{found['seconds']:.0f} s", flush=True)
                collect()


def record_all():
    main(["grid", "rate", "epochs"])


if __name__ == "__main__":
    main()
