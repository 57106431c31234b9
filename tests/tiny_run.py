"""A training run of a second: 36 mini pairs, a model of a few thousand numbers."""

import json
from functools import cache
from pathlib import Path

from transformer_lib import ModelConfig, TrainConfig, Transformer, tokenization, training
from transformer_lib.data import load_parallel
from transformer_lib.runs.files import read_json_lines

MODEL = dict(
    d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, dropout=0.2, max_len=64,
)
TRAIN = dict(
    max_steps=12, max_tokens=200, warmup=4, checkpoint_every=2, keep_checkpoints=3, average=2,
    validate_every=6, validation_bleu=False, log_every=3, device="cpu", progress=False,
)


@cache
def data():
    """(pairs, tokenizer): an epoch is about eight batches of 200 tokens."""
    pairs = load_parallel("mini")
    pairs["train"], pairs["validation"] = pairs["train"][:36], pairs["validation"][:8]
    texts = [text for pair in pairs["train"] for text in pair]
    return pairs, tokenization.train_tokenizer(texts, 150)


def run(folder, on_log=None, pairs=None, tokenizer=None, model=None, **changes):
    """Train in `folder`; returns (the model, its metrics). changes: fields of either config."""
    sizes = MODEL | {name: changes.pop(name) for name in list(changes) if name in MODEL}
    pairs, tokenizer = pairs or data()[0], tokenizer or data()[1]
    training.set_seed(changes.get("seed", 0))
    if model is None:
        model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **sizes))
    config = TrainConfig(**(TRAIN | changes))
    return model, training.train(model, tokenizer, pairs, config, folder, on_log)


def without_timings(entries: list[dict]) -> list[dict]:
    """Metrics that must not depend on the machine."""
    return [
        {k: v for k, v in e.items() if k not in ("seconds", "tokens_per_second")} for e in entries
    ]


def contents(folder) -> dict:
    """All that a run left and that must not depend on when it was interrupted, by file name."""
    folder = Path(folder)
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name == "environment.json":
            continue
        if name == "checksums.json":
            found[name] = [*json.loads(path.read_bytes())["files"]]  # logs and dates have their own
            continue
        if path.suffix == ".safetensors":
            found[name] = path.read_bytes()
        elif path.name == "metrics.jsonl":
            found[name] = without_timings(read_json_lines(path))
        else:
            found[name] = json.loads(path.read_text(encoding="utf-8"))
            if path.name == "state.json":
                for timing in ("seconds", "log", "sha256"):
                    found[name].pop(timing)
    return found


def assert_same_run(one, other):
    """Two folders hold the same run, bit for bit apart from timings."""
    one, other = contents(one), contents(other)
    assert sorted(one) == sorted(other)
    assert [name for name in one if one[name] != other[name]] == []
