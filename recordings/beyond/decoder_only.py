"""The recorded runs of the chapter on decoder-only models. Resumable: the same command continues.

    python -m recordings.beyond.decoder_only multi30k
    python -m recordings.beyond.decoder_only mini --arms prefix --seeds 0

Each run has its folder in runs/beyond/, and what all of them found is written to results/beyond/.
Seed 0 of every arm comes first, so that stopping early leaves a fair table.
"""

import argparse
import datetime
import itertools
import json
import math
import shutil
from functools import partial
from pathlib import Path

import torch

from recordings import record
from recordings.gate import Gate
from transformer_lib import fast
from transformer_lib.batching import Batches
from transformer_lib.beyond.one_stream import (
    CausalTwoPart,
    PrefixLanguageModel,
    TwoPartLanguageModel,
    stream_batches,
    stream_loss,
    translate_streams,
)
from transformer_lib.config import PAD, ModelConfig, TrainConfig, to_dict
from transformer_lib.data import load_parallel
from transformer_lib.decoding import evaluating
from transformer_lib.evaluation import score
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import write_json
from transformer_lib.runs.translation import translate_ids
from transformer_lib.tokenization import encode_pairs, train_tokenizer
from transformer_lib.training import fit, translation_batches, validation_loss

ROOT = Path(__file__).resolve().parents[2]


RUNS, RESULTS = ROOT / "runs" / "beyond", ROOT / "results" / "beyond"
SIZES = {
    "d_model": 128, "n_heads": 4, "d_ff": 256, "positional": "rotary", "dropout": 0.2,
    "n_encoder_layers": 3, "n_decoder_layers": 2,
}
SMALL = {"d_model": 64, "d_ff": 128, "dropout": 0.1}
STACK = {"n_encoder_layers": 0, "n_decoder_layers": 6}
# Name of the arm: the model, its changes of SIZES, and which parts of the stream the loss counts.
ARMS = {
    "encoder-decoder": (Transformer, {}, None),
    "causal": (LanguageModel, STACK, False),
    "prefix": (PrefixLanguageModel, STACK, False),
    # Half as many layers, of twice the parameters.
    "prefix, own weights": (TwoPartLanguageModel, STACK | {"n_decoder_layers": 3}, False),
    "causal, own weights": (CausalTwoPart, STACK | {"n_decoder_layers": 3}, False),
    # Half the parameters: were the layers too many for so few updates?
    "prefix, 3 layers": (PrefixLanguageModel, STACK | {"n_decoder_layers": 3}, False),
    "causal, both parts": (LanguageModel, STACK, True),
}
TRAIN = TrainConfig(
    max_steps=1000, max_tokens=2048, peak_lr=5e-3, warmup=300, cooldown=330, average=1,
    checkpoint_every=100, keep_checkpoints=1, validate_every=100, log_every=10, device="cpu",
    precision="bf16", fast=True, progress=False,
)
# Data: sizes, vocabulary, settings of the training.
DATA = {
    "multi30k": (SIZES, 5000, to_dict(TRAIN)),
    "mini": (SIZES | SMALL, 400, to_dict(TRAIN) | {
        "max_steps": 400, "max_tokens": 1024, "warmup": 100, "cooldown": 130,
        "validate_every": 50,
    }),
}


def guessing(settings: dict) -> float:
    """The loss of guessing among all tokens."""
    return math.log(DATA[settings["data"]][1])


GATES = {  # file: page, gate
    "one-stream-mini": ("20_decoder_only", Gate(
        guessing, arms=("arm",), edge={"rate": (TRAIN.peak_lr, TRAIN.peak_lr)},
        differs={"parameters": "one set of weights, so half the parameters in its layers"},
    )),
    "one-stream-multi30k": ("20_decoder_only", Gate(
        guessing, arms=("arm",), edge={"rate": (TRAIN.peak_lr, TRAIN.peak_lr)},
    )),
}


def fast_loss(model, batch, smoothing=0.0):
    """beyond.one_stream.stream_loss, with the logits a block at a time."""
    read, predicted = batch
    counted = predicted != PAD
    hidden = model.decode(read)[counted]
    parameters = list(model.parameters())
    return fast.projected_cross_entropy(
        model.project, hidden, predicted[counted], parameters, smoothing
    )


@torch.inference_mode()
def mean_loss(model, batches):
    """Mean loss per counted token over one epoch of batches."""
    total = n = 0
    with evaluating(model):
        for batch in batches.sampler.batches():
            count = batches.n_tokens(batch)
            total += float(stream_loss(model, batches.tensors(batch, "cpu"))) * count
            n += count
    return total / n


def parameters(model):
    """Trained numbers: of the layers, and in all."""
    total = sum(p.numel() for p in model.parameters())
    return total - model.config.vocab_size * model.config.d_model, total


def folder_of(data: str, arm: str, seed: int, rate: float) -> Path:
    """Where the run of an arm is kept."""
    name = f"{arm.replace(', ', '-').replace(' ', '-')}-{rate:g}-{seed}"
    return RUNS / f"one-stream-{data}" / name


def reads(data: str, arm: str, seed: int, pairs):
    """The tokenizer of an arm, and what it reads with one seed."""
    _, vocab_size, settings = DATA[data]
    tokenizer = train_tokenizer((text for pair in pairs["train"] for text in pair), vocab_size)
    ids, (*_, count_source) = encode_pairs(tokenizer, pairs["train"]), ARMS[arm]
    if count_source is None:
        return tokenizer, translation_batches(*ids, settings["max_tokens"], seed)
    return tokenizer, stream_batches(*ids, settings["max_tokens"], seed, count_source)


def what_was_read(settings: dict) -> list[tuple[Batches, int]]:
    """The batches of a recorded run, once more, and how many it read (see recordings/replay.py)."""
    data = settings["data"]
    batches = reads(data, settings["arm"], settings["seed"], load_parallel(data))[1]
    return [(batches, DATA[data][-1]["max_steps"])]


def translation(data: str, arm: str, config: TrainConfig, pairs) -> dict:
    """Train one arm with one seed; returns what is recorded of it."""
    seed, sizes = config.seed, DATA[data][0]
    folder = folder_of(data, arm, seed, config.peak_lr)
    found = folder / "result.json"
    if found.exists():
        return json.loads(found.read_text(encoding="utf8"))
    kind, changes, count_source = ARMS[arm]
    tokenizer, batches = reads(data, arm, seed, pairs)
    held_out = encode_pairs(tokenizer, pairs["validation"])
    torch.manual_seed(seed)
    model = kind(ModelConfig(tokenizer.get_vocab_size(), **{**sizes, **changes}))
    if count_source is None:
        loss, valid = fast.translation_loss, lambda: validation_loss(model, *held_out)
    else:
        english = stream_batches(*held_out, 4096, seed)
        loss, valid = fast_loss, lambda: mean_loss(model, english)
    shutil.rmtree(folder, ignore_errors=True)  # for a resumed run, `run` would hold only the rest
    with record.watch() as seen:
        metrics = fit(
            model,
            batches,
            partial(loss, smoothing=config.label_smoothing),
            config,
            folder,
            lambda: {"validation_loss": valid()},
            data_info={"data": data, "arm": arm},
        )

    def translate(ids):
        if count_source is None:
            return translate_ids(model, tokenizer, ids)
        return tokenizer.decode_batch(translate_streams(model, ids))

    blocks, total = parameters(model)
    result = {
        "data": data, "arm": arm, "rate": config.peak_lr, "seed": seed,
        "block_parameters": blocks, "parameters": total,
        "updates": config.max_steps, "seconds": sum(entry.get("seconds", 0) for entry in metrics),
        "model": to_dict(model.config), "train": to_dict(config),
    }
    for split in ("validation", "test"):
        ids, _ = encode_pairs(tokenizer, pairs[split])
        references = [target for _, target in pairs[split]]
        said = translate(ids)
        scores = score(said, references)
        result[split] = {"bleu": scores.bleu, "chrf": scores.chrf}
        if split == "validation":
            result["bleu_by_source_length"] = by_length(ids, said, references)
            result["said"] = said[:5]
    result["validation_losses"] = [
        [entry["step"], entry["validation_loss"]] for entry in metrics if "validation_loss" in entry
    ]
    result["run"] = seen.run()
    where = environment(torch.device("cpu"))
    result |= {"device": where["device"], "commit": where["commit"]}
    result["date"] = datetime.date.today().isoformat()
    write_json(found, result)
    return result


def by_length(ids, said, references, edges=(0, 13, 18, 100)) -> list[dict]:
    """BLEU of the sentences whose source has [edge, next edge) tokens, <eos> included."""
    found = []
    for low, high in zip(edges, edges[1:], strict=False):
        rows = [i for i, source in enumerate(ids) if low <= len(source) < high]
        bleu = score([said[i] for i in rows], [references[i] for i in rows]).bleu
        found.append({"from": low, "below": high, "sentences": len(rows), "bleu": bleu})
    return found


def as_record(run: dict) -> dict:
    """A run as a file has it: what was asked for is in its `settings`."""
    settings = {name: run[name] for name in ("data", "arm", "rate", "seed")}
    return {"settings": settings} | {k: v for k, v in run.items() if k not in settings}


def collect(topic: str) -> None:
    """Add what the runs of a topic found to results/beyond/; what was recorded elsewhere stays."""
    path = RESULTS / f"{topic}.json"
    found = [
        as_record(json.loads(path.read_text(encoding="utf8")))
        for path in sorted((RUNS / topic).glob("*/result.json"))
    ]
    record.add(path, found, "decoder_only")


def main(arguments=None):
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("data", choices=list(DATA))
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rates", nargs="+", type=float, default=[5e-3])
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pairs, settings = load_parallel(options.data), DATA[options.data][-1]
    for seed, rate, arm in itertools.product(options.seeds, options.rates, options.arms):
        config = TrainConfig(**settings | {"seed": seed, "peak_lr": rate})
        found = translation(options.data, arm, config, pairs)
        print(arm, rate, seed, found["validation"], found["seconds"], flush=True)
        collect(f"one-stream-{options.data}")


def record_all():
    main(["multi30k"])


if __name__ == "__main__":
    main()
