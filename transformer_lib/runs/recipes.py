"""Recipes: all settings of a training run, under one name.

A notebook, the command (`train --recipe short`, `train --like multi30k-de-en`) and the comparison
with what was recorded take a recipe from here, so that they can't disagree.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

from transformer_lib.config import ModelConfig, TrainConfig, from_dict, to_dict
from transformer_lib.data import Pairs
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.pretrained import results_dir, run_info
from transformer_lib.runs.settings import WATCHING, with_current_defaults

# Set by the tokenizer, or fixed.
NOT_CHOSEN = {"vocab_size", "pad_id"}
# Settings of two runs that may differ while they train the same model: where and how a run is
# computed and measured, and the seed.
FREE = WATCHING | {"precision", "checkpoint_every", "validate_every", "validation_bleu", "seed"}
FILM = Path(__file__).resolve().parents[2] / "book" / "_static" / "live" / "film.json"


@dataclass(frozen=True)
class Recipe:
    """All settings of a run except the device and the precision, which are "auto".

    data: source, src, tgt, tokenizer (kind), vocab_size, as a run's config.json has them under
    "data". model: fields of ModelConfig without the vocabulary. train: as for one process.
    """

    name: str
    data: dict
    model: dict
    train: TrainConfig

    def model_config(self, vocab_size: int) -> ModelConfig:
        """The model's sizes, with the vocabulary size that the tokenizer ended up with."""
        return ModelConfig(vocab_size, **self.model)

    def data_info(self, pairs: Pairs) -> dict:
        """What `training.train` should record about the data; source is what was really loaded."""
        return self.data | {"source": pairs.source}


@dataclass(frozen=True)
class Record:
    """A run that was trained by a recipe: the entries of its log, and what it ran on."""

    metrics: list[dict]
    environment: dict
    config: dict


# The short recipe: a small model, even steps, and a rate that falls over the run's second half.
# The page "A translator in ten minutes" says how it came about.
SHORT = Recipe(
    "short",
    data={"source": "multi30k", "src": "de", "tgt": "en", "tokenizer": "bpe", "vocab_size": 5000},
    model={
        "d_model": 128,
        "n_heads": 4,
        "d_ff": 256,
        "n_encoder_layers": 3,
        "n_decoder_layers": 2,
        "dropout": 0.2,
        "positional": "rotary",
        "tie_embeddings": False,
    },
    train=TrainConfig(
        max_steps=3000,
        max_tokens=2048,
        peak_lr=0.015,
        optimizer="muon",
        warmup=200,
        cooldown=1500,
        average=1,
        checkpoint_every=250,
        validate_every=750,
        fast=True,
    ),
)
RECIPES = {recipe.name: recipe for recipe in (SHORT,)}


def find(name: str | Path) -> Recipe:
    """A recipe by its name, or the recipe of a recorded run or a run folder.

    Device and precision are "auto", whatever the run was trained with: not every device has that
    precision. Raises ValueError for a run that does not hold a recipe.
    """
    if str(name) in RECIPES:
        return RECIPES[str(name)]
    try:
        about = run_info(name)
    except ValueError as error:
        raise ValueError(f"{error} Recipes by name: {', '.join(RECIPES)}.") from None
    data = about.get("data", {})
    if "train" not in about or not {"source", "src", "tgt"} <= data.keys():
        raise ValueError(
            f"{name} was not trained by this command: its config.json holds no recipe."
        )
    about = with_current_defaults(about)
    model = to_dict(from_dict(ModelConfig, about["model"], f"{name}/config.json"))
    batches = about["train"]["accumulate"] * about.get("processes", 1)  # in one update
    known = {"tokenizer": "bpe", "vocab_size": model["vocab_size"]} | data
    for key, kind in {"source": str, "src": str, "tgt": str, "vocab_size": int}.items():
        if not isinstance(known[key], kind) or isinstance(known[key], bool):
            raise ValueError(
                f"{name}/config.json is damaged: {key!r} of its 'data' is {known[key]!r:.60}; "
                f"expected {'a string' if kind is str else 'a whole number'}."
            )
    if known["tokenizer"] not in ("bpe", "word"):
        raise ValueError(
            f"{name}/config.json names the tokenizer {known['tokenizer']!r:.60}, which no command "
            "trains; expected 'bpe' or 'word'."
        )
    return Recipe(
        Path(name).name,
        {key: known[key] for key in ("source", "src", "tgt", "tokenizer", "vocab_size")},
        {key: value for key, value in model.items() if key not in NOT_CHOSEN},
        from_dict(
            TrainConfig,
            about["train"] | {"accumulate": batches, "device": "auto", "precision": "auto"},
            str(name),
        ),
    )


def differences(recipe: Recipe, config: dict) -> list[str]:
    """The settings in a run's config.json that make its model differ from the recipe's, as text."""
    about = with_current_defaults(config)
    about["train"]["accumulate"] *= about.get("processes", 1)  # as for one process
    model = to_dict(recipe.model_config(about["model"]["vocab_size"]))
    told = {"model": model, "train": to_dict(recipe.train), "data": recipe.data}
    del model["vocab_size"]  # it's in the data, as it was asked for
    free = FREE
    if recipe.train.average > 1:
        free = FREE - {"checkpoint_every"}  # decides what is averaged
    return [
        f"{name} {about[part][name]!r}, not {value!r}"
        for part, settings in told.items()
        for name, value in json.loads(json.dumps(settings)).items()
        if name not in free and about.get(part, {}).get(name, value) != value
    ]


def record(recipe: Recipe) -> Record | None:
    """The recorded run of a recipe: the one in results/ of its name (`short` or
    `multi30k-de-en-short`), else the one of the film; None where none has these settings."""
    for name in (recipe.name, f"multi30k-{recipe.data['src']}-{recipe.data['tgt']}-{recipe.name}"):
        folder = results_dir() / name
        if (folder / "metrics.jsonl").exists():
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            if not differences(recipe, config):
                environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
                return Record(read_json_lines(folder / "metrics.jsonl"), environment, config)
    if not FILM.exists():
        return None
    film = json.loads(FILM.read_text(encoding="utf-8"))
    config = {"model": film["model"], "train": film["train"]}
    config["data"] = {"source": "multi30k", "src": "de", "tgt": "en",
                      "vocab_size": film["model"]["vocab_size"]}
    if differences(recipe, config):
        return None
    metrics = [{"step": point["step"], "validation_loss": point["loss"],
                "validation_bleu": point["bleu"]} for point in film["validation"]]
    return Record(metrics, film["environment"], config)


def smaller(recipe: Recipe, model: dict, train: dict, vocab_size: int) -> Recipe:
    """The same recipe at another size, for a test that takes seconds.

    model, train: settings to change, by the names of ModelConfig and TrainConfig. Raises ValueError
    for a name that neither of them has, and for settings that don't make a model.
    """
    for given, cls in ((model, ModelConfig), (train, TrainConfig)):
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(given) - known):
            raise ValueError(
                f"{unknown[0]!r} is not a setting of {cls.__name__}; it has "
                f"{', '.join(sorted(known))}."
            )
    made = Recipe(
        f"{recipe.name}, made small",
        recipe.data | {"vocab_size": vocab_size},
        recipe.model | model,
        replace(recipe.train, **train),
    )
    made.model_config(vocab_size)  # refuses sizes that don't make a model
    return made
