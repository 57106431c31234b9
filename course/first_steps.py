"""The first step of each project on the page book/projects.md.

    python -m course.first_steps heads            # one of ablation, heads, judge, far, tokens, edge
    python -m course.first_steps judge --out sheet

Each takes a few minutes of one processor at most, for a first result. Where Multi30k is available,
`heads` and `judge` take its captions; nothing else needs a data set. Copy it, and change it.
"""

import argparse
import csv
import json
import math
import random
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F

from tools.arguments import new_folder
from transformer_lib import ModelConfig, TrainConfig, Transformer, tokenization, training
from transformer_lib.batching import pad
from transformer_lib.beyond import far_links
from transformer_lib.beyond.learning import learn
from transformer_lib.beyond.one_stream import stream_batches, stream_loss
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.pretrained import load_pretrained, results_dir
from transformer_lib.scoring.verdict import Verdict, compare_runs

SMALL = dict(d_model=64, n_heads=4, d_ff=128)


def settings(updates: int, seed: int, **changes) -> TrainConfig:
    """A short, quiet training run."""
    common = dict(max_steps=updates, max_tokens=1024, peak_lr=4e-3, warmup=max(1, updates // 4),
                  average=1, checkpoint_every=updates, device="cpu", progress=False, seed=seed)
    return TrainConfig(**common | changes)


def ablation(updates=300, seeds=(0, 1, 2), n_pairs=None, **changed) -> Verdict:
    """Project 1: does one setting matter? Validation loss of two arms, the same seeds in both."""
    changed = changed or {"dropout": 0.3}
    pairs = load_parallel("mini")
    pairs = {split: part[:n_pairs] for split, part in pairs.items()}
    tokenizer = tokenization.train_tokenizer([t for pair in pairs["train"] for t in pair], 400)
    sizes = SMALL | dict(n_encoder_layers=2, n_decoder_layers=2, dropout=0.1)
    arms = {"unchanged": {}, "changed": changed}
    losses = {arm: {} for arm in arms}
    for arm, change in arms.items():
        for seed in seeds:
            training.set_seed(seed)
            model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **sizes | change))
            config = settings(updates, seed, validate_every=updates, validation_bleu=False)
            with tempfile.TemporaryDirectory() as folder:
                metrics = training.train(model, tokenizer, pairs, config, folder)
            seen = [entry["validation_loss"] for entry in metrics if "validation_loss" in entry]
            losses[arm][seed] = seen[-1]
            print(f"{arm:>10}, seed {seed}: validation loss {seen[-1]:.3f}", flush=True)
    verdict = compare_runs(losses["changed"], losses["unchanged"], better="lower")
    print(f"{changed}: {verdict}")
    return verdict


@contextmanager
def silenced(attention, heads):
    """A multi-head attention whose `heads` give nothing."""
    size = attention.d_model // attention.n_heads

    def silence(_module, inputs):
        kept = inputs[0].clone()
        for head in heads:
            kept[..., head * size : (head + 1) * size] = 0
        return (kept,)

    handle = attention.w_o.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def heads(captions=60) -> list[tuple[float, float, str]]:
    """Project 2: what does each head of the shipped translator cost, on two samples?"""
    translator = load_pretrained("multi30k-de-en")
    model, pairs = translator.model.eval(), load_parallel("auto")["validation"]
    samples = []
    for part in (pairs[:captions], pairs[captions : 2 * captions]):
        source = pad(tokenization.encode_source(translator.tokenizer, [s for s, _ in part]))
        target = pad(tokenization.encode_target(translator.tokenizer, [t for _, t in part]))
        samples.append((source, target))

    def losses():
        return [F.cross_entropy(model(s, t[:, :-1]).mT, t[:, 1:], ignore_index=0).item()
                for s, t in samples]

    whole, found = losses(), []
    for name, attention in model.named_modules():
        if hasattr(attention, "w_o"):
            for head in range(attention.n_heads):
                with silenced(attention, [head]):
                    damage = [a - b for a, b in zip(losses(), whole, strict=True)]
                found.append((*damage, f"{name} head {head}"))
    found.sort(reverse=True)
    for first, second, name in found[:8]:
        print(f"{first:+.3f} nats on one sample, {second:+.3f} on the other: {name}")
    return found


def judge(out=Path("judge"), n=30, seed=0) -> tuple[Path, Path]:
    """Project 3: a blind sheet. Two translators, one sentence each time, the order drawn."""
    systems = ("multi30k-de-en", "multi30k-de-en-short")
    texts = [german for german, _ in load_parallel("auto")["test"][:n]]
    said = [[given.text for given in load_pretrained(name).translate(texts, attention=False)]
            for name in systems]
    draw = random.Random(seed)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    sheet, key = out / "sheet.csv", out / "key.csv"
    with (sheet.open("w", newline="", encoding="utf8") as shown,
          key.open("w", newline="", encoding="utf8") as hidden):
        marks, secret = csv.writer(shown), csv.writer(hidden)
        marks.writerow(["number", "German", "first", "second", "better: 1, 2 or 0 for neither"])
        secret.writerow(["number", "first", "second"])
        for number, (german, *both) in enumerate(zip(texts, *said, strict=True), 1):
            order = draw.sample(range(2), 2)
            marks.writerow([number, german, *(both[i] for i in order), ""])
            secret.writerow([number, *(systems[i] for i in order)])
    print(f"{sheet}: mark it, and only then open {key}.")
    return sheet, key


def far(updates=300, seeds=(0, 1, 2), arms=("local", "linear"), size=128, n_facts=24) -> Verdict:
    """Project 4: which attention finds a distant fact? Right answers of two mechanisms, by seed."""
    found = {arm: {} for arm in arms}
    for arm in arms:
        for seed in seeds:
            torch.manual_seed(seed)
            model = far_links.reader(arm, size, n_facts)
            generator = torch.Generator().manual_seed(seed)
            learn(model, lambda m=model, g=generator: far_links.answer_loss(
                m, far_links.draw(8, size, n_facts, g)), updates, 0.003, warmup=50)
            by_distance = far_links.right_by_distance(
                model, far_links.draw(64, size, n_facts, generator), n_bins=4)
            found[arm][seed] = mean(by_distance)
            shown = " ".join(f"{share:.0%}" for share in by_distance)
            print(f"{arm:>8}, seed {seed}: near to far {shown}", flush=True)
    verdict = compare_runs(found[arms[1]], found[arms[0]])
    print(f"{arms[1]} against {arms[0]}: {verdict}")
    return verdict


def tokens(updates=250, sizes=(100, 200, 400), seeds=(0,), n_captions=None) -> dict[int, list]:
    """Project 5: how many subwords? A language model's bits per byte, by its vocabulary."""
    pairs = load_parallel("mini")
    texts = [english for _, english in pairs["train"]][:n_captions]
    held_out = [english for _, english in pairs["validation"]]
    n_bytes = sum(len(text.encode()) + 1 for text in held_out)  # each ends with an end
    found = {}
    for size in sizes:
        tokenizer = tokenization.train_tokenizer(texts, size)
        vocabulary, found[size] = tokenizer.get_vocab_size(), []
        for seed in seeds:
            training.set_seed(seed)
            model = LanguageModel(ModelConfig(
                vocabulary, **SMALL, n_encoder_layers=0, n_decoder_layers=2, dropout=0.1,
                positional="learned", max_len=200))
            given = tokenization.encode_target(tokenizer, texts)
            batches = stream_batches([[]] * len(given), given, 1024, seed)
            with tempfile.TemporaryDirectory() as folder:
                training.fit(model, batches, partial(stream_loss, smoothing=0.0),
                             settings(updates, seed), folder)
            model.eval()
            asked = tokenization.encode_target(tokenizer, held_out)
            batches, nats = stream_batches([[]] * len(asked), asked, 4096, 0), 0.0
            with torch.no_grad():
                for batch in batches.sampler.batches():
                    loss = stream_loss(model, batches.tensors(batch, torch.device("cpu")))
                    nats += loss.item() * batches.n_tokens(batch)
            found[size].append(nats / math.log(2) / n_bytes)
            print(f"{vocabulary:>5} tokens, seed {seed}: {found[size][-1]:.3f} bits per byte",
                  flush=True)
    return found


def edge(name="hunt") -> dict[str, list]:
    """Project 6: which settings did a recorded claim try? What is beyond them, nobody has seen."""
    path = results_dir() / "claims" / f"{name}.json"
    tried = {}
    for record in json.loads(path.read_text(encoding="utf8"))["records"]:
        for setting, value in record["settings"].items():
            if value not in tried.setdefault(setting, []):
                tried[setting].append(value)
    print(f"results/claims/{name}.json, recorded by recordings/claims/{name}.py:")
    for setting, values in tried.items():
        print(f"{setting:>12}: {', '.join(map(str, values[:12]))}")
    print(f"Run it again with:  python -m recordings.record {name}")
    return tried


STEPS = {step.__name__: step for step in (ablation, heads, judge, far, tokens, edge)}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("project", choices=STEPS)
    parser.add_argument("--out", type=new_folder, help="judge: the folder of the sheet")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    STEPS[options.project](**({"out": options.out} if options.out else {}))


if __name__ == "__main__":
    main()
