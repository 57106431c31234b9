"""The command train."""

import contextlib
import json
from collections import Counter
from pathlib import Path

from tokenizers import Tokenizer

from transformer_lib import data, tokenization, training
from transformer_lib.cli.options import NOT_OFFERED, fields_of, recorded_by, two_languages
from transformer_lib.config import ModelConfig, TrainConfig, to_dict
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs import checksums, recipes
from transformer_lib.runs.device import of_torchrun, pick_device


def run(options) -> int:
    """Train, or go on with an interrupted run."""
    two_languages(options.src, options.tgt)
    first = of_torchrun("RANK", 0) == 0
    with contextlib.nullcontext() if first else contextlib.redirect_stdout(None):
        # Bad options are rejected before the data are read.
        config = TrainConfig(**fields_of(TrainConfig, options))
        pick_device(config.device)
        sizes = fields_of(ModelConfig, options, NOT_OFFERED)
        ModelConfig(options.vocab_size, **sizes)
        run_dir = Path(options.run or f"runs/{options.src}-{options.tgt}")
        like = None if options.like in recipes.RECIPES else options.like
        recorded = like and options.data == recipes.find(like).data["source"]
        with recorded_by(like if recorded else None, options.data):
            pairs = data.load_parallel(options.data, options.src, options.tgt)
        if not pairs.get("train"):
            raise ValueError(
                f"there are no train pairs to train on: {options.data} has "
                f"{' and '.join(sorted(pairs))}; give it a split 'train'."
            )
        saved = run_dir / "tokenizer.json"
        if saved.exists():
            checksums.require(run_dir, saved.name)
            tokenizer = tokenization.load_tokenizer(saved)
        else:
            texts = [text for pair in pairs["train"] for text in pair]
            tokenizer = tokenization.train_tokenizer(texts, options.vocab_size, options.tokenizer)
            if options.tokenizer == "bpe" and (warning := _unknown_warning(tokenizer, texts)):
                print(warning)
        training.set_seed(config.seed)
        n_tokens = tokenizer.get_vocab_size()
        model = Transformer(ModelConfig(n_tokens, **sizes))
        print(f"{model.count_parameters():,} parameters, {n_tokens:,} tokens; {run_dir}")
        described = {
            "source": pairs.source,
            "src": options.src,
            "tgt": options.tgt,
            "tokenizer": options.tokenizer,
            "vocab_size": options.vocab_size,
        }
        metrics = training.train(model, tokenizer, pairs, config, run_dir, data_info=described)
        if metrics:
            print("Done:", json.dumps(metrics[-1]))
        print(f"Translate with: python -m transformer_lib translate --run {run_dir} ...")
    return 0


def _unknown_warning(tokenizer: Tokenizer, texts: list[str]) -> str:
    """A warning if the vocabulary is too small for the characters of the texts, or ''."""
    characters = Counter(tokenizer.normalizer.normalize_str("".join(texts)).replace(" ", ""))
    unknown = characters.keys() - tokenizer.get_vocab().keys()
    if not unknown:
        return ""
    share = sum(characters[it] for it in unknown) / characters.total()
    return (
        f"warning: a vocabulary of {tokenizer.get_vocab_size()} tokens has no room for "
        f"{len(unknown)} of the {len(characters)} characters in the training text, {share:.1%} of "
        "the text: they're read as <unk>, and never written. A larger --vocab-size has room."
    )


def recipe_options(name: str, own_batches: bool) -> dict:
    """The options that repeat a recipe or a run; own_batches: --accumulate is given."""
    recipe, processes = recipes.find(name), of_torchrun("WORLD_SIZE", 1)
    batches = recipe.train.accumulate  # in one update
    if batches % processes and not own_batches:
        raise ValueError(
            f"{name} used {batches} batches for an update; {processes} processes cannot share "
            "them equally. Start fewer processes, or give --accumulate and --max-tokens yourself."
        )
    model = to_dict(recipe.model_config(recipe.data["vocab_size"]))
    data = {("data" if key == "source" else key): value for key, value in recipe.data.items()}
    return (
        {key: value for key, value in model.items() if key not in NOT_OFFERED}
        | to_dict(recipe.train)
        | {"accumulate": max(1, batches // processes), "run": f"runs/{recipe.name}"}
        | data
    )
