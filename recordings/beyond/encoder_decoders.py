"""The recorded runs of the chapter on encoder-decoders. Resumable: the same command continues.

    python -m recordings.beyond.encoder_decoders tune few some all --seeds 0
    python -m recordings.beyond.encoder_decoders tags layers --data mini

Groups of runs: `tune` picks each start's learning rate (seed 0, validation); `few`, `some` and
`all` translate with 1,000, 5,000 and all pairs of Multi30k; `more` and `longer` add arms to these,
`parts` keeps a part of the pretrained weights. `tags` trains one model for two directions, `layers`
lets the decoder read other encoder layers, `handed` does so with a trained one. Each run has its
folder in runs/beyond/; what all of them found is written to results/beyond/. `rates` repeats arms
of each finding at learning rates beyond those that the pages talk about.
"""

import argparse
import datetime
import json
import math
import random
import shutil
from functools import cache, partial
from pathlib import Path

import torch
from safetensors.torch import load_file

from recordings import record
from recordings.gate import Gate
from transformer_lib import fast
from transformer_lib.batching import Batches
from transformer_lib.beyond.denoising import (
    DamagedBatches,
    span_corruption,
    text_infilling,
)
from transformer_lib.beyond.layer_memory import reads_layers
from transformer_lib.config import ModelConfig, TrainConfig, to_dict
from transformer_lib.data import load_parallel
from transformer_lib.evaluation import score
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import write_json
from transformer_lib.runs.pretrained import load_pretrained
from transformer_lib.runs.translation import translate_ids
from transformer_lib.tokenization import encode_source, encode_target, train_tokenizer
from transformer_lib.training import fit, translation_batches, validation_loss

ROOT = Path(__file__).resolve().parents[2]


RUNS, RESULTS = ROOT / "runs" / "beyond", ROOT / "results" / "beyond"
LANGUAGES = ("de", "en")
N_GAPS = 8
SIZES = {
    "d_model": 128, "n_heads": 4, "d_ff": 256, "positional": "rotary", "dropout": 0.2,
    "n_encoder_layers": 3, "n_decoder_layers": 2,
}
TRAIN = TrainConfig(
    max_steps=1000, max_tokens=1024, peak_lr=5e-3, warmup=300, cooldown=330, average=1,
    checkpoint_every=100, keep_checkpoints=1, validate_every=100, log_every=20, device="cpu",
    precision="bf16", fast=True, progress=False,
)
# Data: sizes, vocabulary, settings of the training.
DATA = {
    "multi30k": (SIZES, 3000, to_dict(TRAIN)),
    "mini": (SIZES | {"d_model": 64, "d_ff": 128, "dropout": 0.1}, 400,
             to_dict(TRAIN) | {"max_tokens": 512}),
}
PRETRAINING = {  # updates
    "copy": 1000, "infill": 1000, "span": 1000, "span longer": 4000, "infill apart": 1000,
}
RATES, BEYOND = (2e-3, 5e-3), (2e-3, 1e-2)  # tried for each start; beyond what the pages tell of
FEW = {"multi30k": (1000, 200), "mini": (200, 150)}  # pairs, updates
SOME = {"multi30k": (5000, 400), "mini": (1000, 300)}
ALL = {"multi30k": (None, 600), "mini": (None, 600)}
PARTS = ("embeddings", "encoder", "decoder", "cross-attention", "without cross-attention")


def arms(group: str, data: str) -> list[tuple[str, int | None, int]]:
    """The runs of a group: (start, number of pairs or None for all, updates).

    A start from scratch has also a run with the updates of pretraining and translation together.
    """
    few, some, every = FEW[data], SOME[data], ALL[data]
    more = PRETRAINING["infill"]
    return {
        "few": [(start, *few) for start in ("scratch", "infill", "copy")]
        + [("scratch", few[0], few[1] + more)],
        "some": [(start, *some) for start in ("scratch", "infill", "copy")]
        + [("scratch", some[0], some[1] + more)],
        "all": [("scratch", None, every[1] + more), ("infill", *every), ("copy", *every)],
        "longer": [("infill", None, every[1] + more), ("scratch", None, every[1] + 2 * more)],
        "more": [("span", *few), ("infill apart", *few), ("span", *some), ("span", *every)],
        "parts": [(f"infill: {part}", *few) for part in PARTS],
    }[group]


# What each of three decoder layers reads: numbers of encoder layers, 0 for the embeddings.
LAYERS = {
    "the last": (3, 3, 3), "its own": (1, 2, 3), "reversed": (3, 2, 1), "the first": (1, 1, 1),
    "the embeddings": (0, 0, 0), "a learned mixture": None,
}


TAGS = ("one", "two", "two of half the size", "three ways", "three ways, no tag")
GROUPS = ("tune", "few", "some", "all", "longer", "more", "parts", "tags", "layers", "rates",
          "handed")


def guessing(settings: dict) -> float:
    """The loss of guessing among all tokens."""
    return math.log(DATA[settings["data"]][1])


GATES = {  # file: page, gate
    "encoder-decoders-denoising": ("22_encoder_decoders", Gate(
        guessing, arms=("start",), edge={"rate": (RATES[1], RATES[1])},
    )),
    "encoder-decoders-layers": ("which_layers", Gate(
        guessing, arms=("arm",), edge={"rate": (RATES[1], RATES[1])}, measures=("handed",),
    )),
    "encoder-decoders-tags": ("many_directions", Gate(
        guessing, arms=("arm",), edge={"rate": (RATES[1], RATES[1])},
        differs={"parameters": "which together have twice its parameters"},
    )),
}


class Captions:
    """Sentence pairs as ids, with tags and gaps above the tokenizer's own ids."""

    def __init__(self, data: str):
        self.data = data
        self.sizes, vocab_size, self.settings = DATA[data]
        self.pairs = load_parallel(data)
        texts = [text for pair in self.pairs["train"] for text in pair]
        self.tokenizer = train_tokenizer(texts, vocab_size)
        known = self.tokenizer.get_vocab_size()
        self.tags = {language: known + i for i, language in enumerate(LANGUAGES)}
        self.first_gap = known + len(LANGUAGES)
        self.vocab_size = self.first_gap + N_GAPS

    def texts(self, split: str, language: str) -> list[str]:
        return [pair[LANGUAGES.index(language)] for pair in self.pairs[split]]

    def sources(self, split: str, src: str, tgt: str, tagged: bool = True) -> list[list[int]]:
        """Each with the tag of the language to write in front."""
        tag = [self.tags[tgt]] if tagged else []
        return [tag + ids for ids in encode_source(self.tokenizer, self.texts(split, src))]

    def targets(self, split: str, tgt: str) -> list[list[int]]:
        return encode_target(self.tokenizer, self.texts(split, tgt))

    def train_config(self, seed: int, updates: int, rate: float = 5e-3, **changes) -> TrainConfig:
        """A third of the updates to warm up, at most 300, and a third to cool down."""
        third = min(300, updates // 3)
        given = {"seed": seed, "max_steps": updates, "peak_lr": rate, "warmup": third}
        return TrainConfig(**self.settings | given | {"cooldown": third} | changes)

    def scores(self, model, src: str, tgt: str, tagged: bool = True) -> dict:
        """BLEU and chrF of greedy translations, and the first five of the validation split."""
        found = {}
        for split in ("validation", "test"):
            sources = self.sources(split, src, tgt, tagged)
            said = translate_ids(model, self.tokenizer, sources)
            result = score(said, self.texts(split, tgt))
            found[split] = {"bleu": result.bleu, "chrf": result.chrf}
            if split == "validation":
                found["said"] = said[:5]
        return found


def damaging(kind: str, captions: Captions):
    """The damage of a kind of pretraining: (ids, rng) -> (source, target)."""
    if kind == "copy":
        return lambda ids, rng: (ids, ids)
    if kind.startswith("span"):
        return lambda ids, rng: span_corruption(ids, captions.first_gap, rng)
    return lambda ids, rng: (text_infilling(ids, captions.first_gap, rng), ids)


def text_batches(captions: Captions, kind: str, seed: int, max_tokens: int) -> DamagedBatches:
    """What a kind of pretraining reads: captions of both languages, without their translations."""
    texts, tags = [], []
    for i, language in enumerate(LANGUAGES):
        rows = captions.texts("train", language)
        if kind.endswith("apart"):  # no caption together with its translation
            rows = rows[i :: len(LANGUAGES)]
        texts += [ids[:-1] for ids in encode_source(captions.tokenizer, rows)]
        tags += [captions.tags[language]] * len(rows)
    return DamagedBatches(texts, tags, damaging(kind, captions), max_tokens, seed)


def pair_batches(
    captions: Captions, ways: list, seed: int, max_tokens: int, tagged=True, n_pairs: int = 0
) -> Batches:
    """Pairs of each way, such as ("de", "en"). n_pairs: so many of them, drawn with the seed."""
    sources, targets = [], []
    for src, tgt in ways:
        sources += captions.sources("train", src, tgt, tagged)
        targets += captions.targets("train", tgt)
    if n_pairs:
        some = random.Random(seed).sample(range(len(sources)), n_pairs)
        sources, targets = [sources[i] for i in some], [targets[i] for i in some]
    return translation_batches(sources, targets, max_tokens, seed)


@cache
def captions_of(data: str) -> Captions:
    return Captions(data)


def what_was_read(settings: dict) -> list[tuple[Batches, int]]:
    """The batches of a recorded run, once more, and how many of them it read (recordings.replay).

    Two models were trained where an arm says so.
    """
    captions, seed = captions_of(settings["data"]), settings["seed"]
    n, ways = captions.settings["max_tokens"], [("de", "en"), ("en", "de")]
    updates = settings["updates"]
    if settings["part"] == "pretraining":
        return [(text_batches(captions, settings["start"], seed, n), updates)]
    if settings["part"] == "translation":
        return [(pair_batches(captions, ways[:1], seed, n, n_pairs=settings["pairs"]), updates)]
    if settings["part"] == "layers":
        return [(pair_batches(captions, ways[:1], seed, n), updates)]
    arm = settings["arm"]
    if arm.startswith("two"):
        return [(pair_batches(captions, [way], seed, n), updates // 2) for way in ways]
    if arm.startswith("three"):
        ways = [*ways, ("de", "de")]
    return [(pair_batches(captions, ways, seed, n, "no tag" not in arm), updates)]


def recorded(folder: Path, train) -> dict:
    """What `train` found, from the run's folder if it is there. One that was stopped begins again:
    for a resumed run, `run` would hold only the rest."""
    found = folder / "result.json"
    if not found.exists():
        shutil.rmtree(folder, ignore_errors=True)
        result = train(folder)
        where = environment(torch.device("cpu"))
        result |= {"device": where["device"], "commit": where["commit"]}
        result["date"] = datetime.date.today().isoformat()
        folder.mkdir(parents=True, exist_ok=True)
        write_json(found, result)
    return json.loads(found.read_text(encoding="utf8"))


def trained(model, batches, config: TrainConfig, folder: Path, validate=None, **named) -> dict:
    """Train with the book's loop; what is kept of it: seconds, settings, losses, tokens."""
    with record.watch() as seen:
        loss = partial(fast.translation_loss, smoothing=config.label_smoothing)
        metrics = fit(model, batches, loss, config, folder, validate, data_info=named)
    return {
        "seconds": sum(entry.get("seconds", 0) for entry in metrics),
        "train": to_dict(config),
        "validation_losses": [
            [entry["step"], entry["validation_loss"]]
            for entry in metrics if "validation_loss" in entry
        ],
        "run": seen.run(),
    }


def pretrain(captions: Captions, kind: str, seed: int) -> Path:
    """Train on captions alone; returns the folder with the weights."""
    folder = RUNS / "pretraining" / f"{captions.data}-{kind.replace(' ', '-')}-{seed}"

    def run(folder):
        config = captions.train_config(seed, PRETRAINING[kind], validate_every=10_000)
        batches = text_batches(captions, kind, seed, config.max_tokens)
        texts = batches.columns[0]
        torch.manual_seed(seed)
        model = Transformer(ModelConfig(captions.vocab_size, **captions.sizes))
        told = trained(model, batches, config, folder, pretraining=kind)
        english = captions.sources("validation", "de", "en")[:5]
        return {
            "part": "pretraining", "data": captions.data, "start": kind, "seed": seed,
            "updates": config.max_steps,
            "texts": len(texts), "tokens": sum(map(len, texts)),
            "said": translate_ids(model, captions.tokenizer, english),
        } | told

    recorded(folder, run)
    return folder


def begin(captions: Captions, start: str, seed: int) -> Transformer:
    """A model of random weights, or with the pretrained ones that `start` names."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(captions.vocab_size, **captions.sizes))
    kind, _, part = start.partition(": ")
    if kind == "scratch":
        return model
    state = load_file(pretrain(captions, kind, seed) / "model.safetensors")
    wanted = {
        "": lambda name: True,
        "embeddings": lambda name: "embedding" in name or name.startswith("output"),
        "encoder": lambda name: name.startswith("encoder"),
        "decoder": lambda name: name.startswith("decoder"),  # with its cross-attention
        "cross-attention": lambda name: "cross_attention" in name,
        "without cross-attention": lambda name: "cross_attention" not in name,
    }[part]
    state = {name: weight.float() for name, weight in state.items() if wanted(name)}
    model.load_state_dict(model.state_dict() | state)
    return model


def translation(captions, start, n_pairs, updates, rate, seed) -> dict:
    """Train one arm of German -> English."""
    name = f"{captions.data}-{start}-{n_pairs or 'all'}-{updates}-{rate:g}-{seed}".replace(
        ": ", "-"
    )
    folder = RUNS / "denoising" / name.replace(" ", "-")

    def run(folder):
        model = begin(captions, start, seed)
        every = len(captions.pairs["train"])
        config = captions.train_config(seed, updates, rate)
        batches = pair_batches(captions, [("de", "en")], seed, config.max_tokens,
                               n_pairs=n_pairs or every)
        held_out = captions.sources("validation", "de", "en"), captions.targets("validation", "en")
        told = trained(
            model, batches, config, folder,
            lambda: {"validation_loss": validation_loss(model, *held_out)}, arm=name,
        )
        kind = start.partition(":")[0]
        return {
            "part": "translation", "data": captions.data, "start": start,
            "pairs": n_pairs or every, "updates": updates, "rate": rate, "seed": seed,
            "pretraining_updates": PRETRAINING.get(kind, 0),
        } | captions.scores(model, "de", "en") | told

    return recorded(folder, run)


def best_rate(data: str, start: str) -> float:
    """The rate with the best validation BLEU among the runs of `tune`."""
    kind = start.split(":")[0].split()[0]
    kind = "infill" if kind == "span" else kind
    n_pairs, updates = FEW[data]
    runs = [
        json.loads(path.read_text(encoding="utf8"))
        for path in (RUNS / "denoising").glob(f"{data}-{kind}-{n_pairs}-{updates}-*-0/result.json")
    ]
    runs = [run for run in runs if run["rate"] in RATES]
    if len(runs) < len(RATES):
        raise SystemExit(f"the rates of {kind} are not tried yet: run the group `tune` first.")
    return max(runs, key=lambda run: run["validation"]["bleu"])["rate"]


def directions(captions: Captions, arm: str, seed: int, rate: float = 5e-3) -> dict:
    """German -> English and English -> German: in one model, or in two."""
    name = f"{captions.data}-{arm.replace(', ', '-').replace(' ', '-')}-{rate:g}-{seed}"
    folder = RUNS / "tags" / name
    ways = [("de", "en"), ("en", "de")]
    tagged = "no tag" not in arm

    def train(folder, ways, updates, changes, untrained=()):
        config = captions.train_config(seed, updates, rate)
        batches = pair_batches(captions, ways, seed, config.max_tokens, tagged)
        torch.manual_seed(seed)
        model = Transformer(ModelConfig(captions.vocab_size, **captions.sizes | changes))
        told = trained(model, batches, config, folder, arm=arm)
        found = {
            f"{src}-{tgt}": captions.scores(model, src, tgt, tagged)
            for src, tgt in (*ways, *untrained)
        }
        return found | told | {"parameters": model.count_parameters()}

    def run(folder):
        found = {"part": "tags", "data": captions.data, "arm": arm, "rate": rate, "seed": seed}
        if arm.startswith("three ways"):  # the fourth is never trained
            found |= train(folder, [*ways, ("de", "de")], 1500, {}, untrained=[("en", "en")])
            return found | {"updates": 1500}
        if arm.startswith("one"):
            return found | train(folder, ways, 1000, {}) | {"updates": 1000}
        changes = {"n_encoder_layers": 1, "n_decoder_layers": 1} if "half" in arm else {}
        each = [train(folder / way[0], [way], 500, changes) for way in ways]
        total = {key: sum(part[key] for part in each) for key in ("seconds", "parameters")}
        both = {key: sum(part["run"][key] for part in each)  # its curve is the second model's
                for key in ("parameters", "updates", "tokens")}
        found |= each[0] | each[1] | total | {"updates": 1000}
        return found | {"run": found["run"] | both}

    return recorded(folder, run)


def layers(captions: Captions, arm: str, seed: int, rate: float = 5e-3) -> dict:
    """German -> English with a decoder that reads other encoder layers."""
    folder = RUNS / "layers" / f"{captions.data}-{arm.replace(' ', '-')}-{rate:g}-{seed}"

    def run(folder):
        sizes = captions.sizes | {"n_encoder_layers": 3, "n_decoder_layers": 3}
        mixture = torch.eye(4)[list(LAYERS[arm])] if LAYERS[arm] else None
        torch.manual_seed(seed)
        model = reads_layers(ModelConfig(captions.vocab_size, **sizes), mixture)
        held_out = captions.sources("validation", "de", "en"), captions.targets("validation", "en")
        updates = 500 if captions.data == "mini" else 1600
        config = captions.train_config(seed, updates, rate)
        batches = pair_batches(captions, [("de", "en")], seed, config.max_tokens)
        told = trained(
            model, batches, config, folder,
            lambda: {"validation_loss": validation_loss(model, *held_out)}, arm=arm,
        )
        return {
            "part": "layers", "data": captions.data, "arm": arm, "rate": rate, "seed": seed,
            "updates": config.max_steps, "shares": model.decoder.shares().tolist(),
            "parameters": model.count_parameters(),
        } | captions.scores(model, "de", "en") | told

    return recorded(folder, run)


def handed() -> dict:
    """The book's trained translator, whose decoder is handed other encoder layers at decoding."""
    folder = RUNS / "layers" / "handed"

    def run(folder):
        translator = load_pretrained("multi30k-de-en")
        config, state = translator.model.config, translator.model.state_dict()
        german, english = zip(*load_parallel("multi30k")["test"], strict=True)
        sources, found = encode_source(translator.tokenizer, german), {}
        for layer in range(config.n_encoder_layers + 1):
            rows = torch.eye(config.n_encoder_layers + 1)[[layer] * config.n_decoder_layers]
            model = reads_layers(config, rows)
            model.load_state_dict(state | {"decoder.mixture": rows})
            said = translate_ids(model, translator.tokenizer, sources)
            found[layer] = score(said, list(english)).bleu
        return {"part": "handed", "translator": "multi30k-de-en", "bleu_by_layer": found}

    return recorded(folder, run)


def as_record(run: dict) -> dict:
    """A run as a file has it: what was asked for is in its `settings`."""
    names = ("part", "data", "arm", "start", "pairs", "updates", "rate", "seed")
    settings = {name: run[name] for name in names if name in run}
    return {"settings": settings} | {k: v for k, v in run.items() if k not in settings}


def collect() -> None:
    """Add what all runs found to results/beyond/; what was recorded elsewhere stays."""
    for topic, folders in (("denoising", ("pretraining", "denoising")), ("tags", ("tags",)),
                           ("layers", ("layers",))):
        path = RESULTS / f"encoder-decoders-{topic}.json"
        found = [
            as_record(json.loads(path.read_text(encoding="utf8")))
            for folder in folders
            for path in sorted((RUNS / folder).glob("*/result.json"))
        ]
        if found:
            record.add(path, found, "encoder_decoders")


def main(arguments=None):
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("groups", nargs="+", choices=GROUPS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--data", choices=list(DATA), default="multi30k")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    RESULTS.mkdir(parents=True, exist_ok=True)
    if "handed" in options.groups:
        print(handed()["bleu_by_layer"])
        return collect()
    captions = Captions(options.data)
    for seed in options.seeds:
        for group in options.groups:
            if group == "tune":
                todo = [
                    partial(translation, captions, start, *FEW[options.data], rate, 0)
                    for start in ("scratch", "infill", "copy")
                    for rate in RATES
                ]
            elif group == "rates" and options.data == "mini":
                todo = [
                    partial(measure, captions, arm, 0, rate) for rate in BEYOND
                    for measure, arm in ((layers, "the last"), (layers, "the embeddings"),
                                         (directions, "one"), (directions, "two"))
                ]
            elif group == "rates":
                todo = [partial(translation, captions, *arm, BEYOND[1], 0)
                        for arm in arms("few", options.data)]
            elif group == "tags":
                todo = [partial(directions, captions, arm, seed) for arm in TAGS]
            elif group == "layers":
                todo = [partial(layers, captions, arm, seed) for arm in LAYERS]
            else:
                todo = [
                    partial(translation, captions, *arm, best_rate(options.data, arm[0]), seed)
                    for arm in arms(group, options.data)
                ]
            for run in todo:
                found = run()
                where = found.get("start") or found["arm"]
                scores = {k: round(v["bleu"], 2) for k, v in found.items()
                          if isinstance(v, dict) and "bleu" in v}
                print(group, where, found.get("pairs"), found["updates"], found.get("rate"), seed,
                      scores, round(found["seconds"]), flush=True)
                collect()


def record_all():
    main(["tune", "few", "some", "all", "parts"])
    main(["rates", "--seeds", "0"])
    main(["tune", "few", "parts", "tags", "layers", "--data", "mini"])
    main(["rates", "--seeds", "0", "--data", "mini"])
    main(["handed"])


if __name__ == "__main__":
    main()
