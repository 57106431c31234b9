"""The options of each command, with their help."""

import argparse
import contextlib
import dataclasses
import difflib
import math
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from transformer_lib.config import ModelConfig, TrainConfig
from transformer_lib.guards import choices
from transformer_lib.runs import recipes
from transformer_lib.runs.device import pick_device
from transformer_lib.runs.pretrained import find_run, load_pretrained
from transformer_lib.translator import Translator

EXAMPLES = {
    "train": """\
examples:
  python -m transformer_lib train                        # German to English, Multi30k or mini
  python -m transformer_lib train --src en --tgt de --run runs/en-de
  python -m transformer_lib train --data my_folder --max-steps 2000 --d-model 256 --d-ff 1024
  python -m transformer_lib train --recipe short         # minutes on a CPU: the book's short recipe
  python -m transformer_lib train --like multi30k-de-en  # repeat a recorded run, same settings
  python -m transformer_lib train --like multi30k-de-en --data my_folder --seed 1
  torchrun --nproc-per-node 2 -m transformer_lib train --run-dir runs/two   # two GPUs share a batch
To go on with an interrupted run, give the same command again.""",
    "translate": """\
examples:
  python -m transformer_lib translate "Zwei Hunde spielen im Schnee."
  python -m transformer_lib translate --run runs/en-de --beam-size 1 "Two dogs play in the snow."
  cat sentences.txt | python -m transformer_lib translate""",
    "evaluate": """\
examples:
  python -m transformer_lib evaluate                     # the shipped model on its test set
  python -m transformer_lib evaluate --run runs/en-de --split validation --save
  python -m transformer_lib evaluate --split validation --length-penalty 0.5 1 1.5 2 --save
The last command chooses a length penalty, which the run keeps, and uses on its test set too.""",
    "export": """\
examples:
  python -m transformer_lib export multi30k-de-en --out translator.bin
  python -m transformer_lib export runs/en-de --out en-de.bin --score --save
  python -m transformer_lib export runs/en-de --format ctranslate2 --out en-de-ctranslate2
One file: the weights as int8 numbers, the tokenizer, a checksum. The page Translator runs it, and
transformer_lib.runs.export.load_exported reads it back. The second command says what the rounding
costs on the run's own validation and test sets. The third writes a folder for CTranslate2, with
weights in float32.""",
    "verify": """\
examples:
  python -m transformer_lib verify                       # the shipped model
  python -m transformer_lib verify runs/my-first-translator
✓ holds, ✗ doesn't, ? could not be checked. The exit code is 1 if something doesn't hold.""",
}


# Fields of ModelConfig without an option: set by the tokenizer, fixed, or (eps) named like Adam's.
NOT_OFFERED = recipes.NOT_CHOSEN | {"eps"}
# Help for each other field of ModelConfig and of TrainConfig.
HELP = {
    "d_model": "D: width of every token's vector",
    "n_heads": "H: each head works on d_model / n_heads numbers",
    "d_ff": "width inside the feed-forward sublayer",
    "n_encoder_layers": "layers that read the source",
    "n_decoder_layers": "layers that write the target",
    "dropout": "share of numbers set to zero, in each sublayer's output and in the embeddings",
    "attention_dropout": "share of attention weights set to zero",
    "max_len": "longest sequence, in tokens",
    "norm_first": "normalise before each sublayer (pre-norm), not after it",
    "norm": "how each token's vector is normalised",
    "positional": "how the model knows the order of the tokens",
    "rotary_base": "base of the wavelengths of rotary positions",
    "activation": "nonlinearity inside the feed-forward sublayer",
    "bias": "biases in the linear maps of the attention and the feed-forward network",
    "n_kv_heads": "heads for keys and values; None: the same number as for queries",
    "tie_embeddings": "one matrix for source, target and output",
    "scale_embeddings": "multiply embeddings by the root of d_model",
    "max_steps": "number of updates of the weights",
    "max_tokens": "tokens in one batch, padding included",
    "accumulate": "batches whose gradients are added before an update",
    "both_directions": "epochs at the start in which each pair is also translated backwards",
    "schedule": "how the learning rate changes during training",
    "peak_lr": "highest learning rate; noam uses that of the paper's formula instead",
    "warmup": "updates at the start, over which the learning rate rises",
    "cooldown": "updates at the end, over which a factor takes the rate almost to zero",
    "optimizer": "muon trains the matrices of the layers, adam the rest",
    "betas": "decay rates of Adam's two moving averages",
    "eps": "what Adam adds to its denominator",
    "weight_decay": "L2 regularisation: how much of each weight is added to its gradient",
    "label_smoothing": "share of the target's probability spread over the vocabulary",
    "r_drop": "weight of the distance between two passes with different dropout (R-Drop); 0: off",
    "clip_norm": "largest norm of the gradient; 0 turns clipping off",
    "average": "how many of the last checkpoints are averaged in the end; 1: no averaging",
    "checkpoint_every": "updates between checkpoints",
    "keep_checkpoints": "how many checkpoints stay on the disk",
    "validate_every": "updates between validations",
    "validation_bleu": "at each validation, decode the validation set greedily and score it",
    "log_every": "updates between log entries",
    "seed": "random seed of weights, batches and dropout",
    "device": "auto, cpu, cuda, cuda:1 or mps",
    "precision": "auto is bf16 on a GPU that has it, else fp32",
    "fast": "the same training, in less time",
    "tensorboard": "write TensorBoard logs into the run folder",
    "progress": "a progress bar on the terminal or in the notebook",
}


class Parser(argparse.ArgumentParser):
    """A parser that says what an option takes, not what Python calls it."""

    def parse_known_args(self, args=None, namespace=None):
        """Each command reports the arguments that it doesn't know, with its own usage."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            meant = [option for given in unknown for option in self._meant(given)]
            hint = f" (did you mean {' or '.join(dict.fromkeys(meant))}?)" if meant else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def _meant(self, given: str) -> list[str]:
        """The options that contain all the words of an unknown one, or are spelt almost like it."""
        name = given.partition("=")[0].strip("-").replace("_", "-")
        if not given.startswith("-") or not name:
            return []
        known = [option for action in self._actions
                 for option in action.option_strings or [f"{action.dest}, without dashes"]]
        words = {*name.split("-")}
        return ([option for option in known if words <= {*re.findall(r"\w+", option)}]
                or difflib.get_close_matches(f"--{name}", known, cutoff=0.8))

    def error(self, message: str):
        found = re.fullmatch("(.*): invalid (int|float) value: (.*)", message, re.DOTALL)
        if found:
            kind = {"int": "whole number", "float": "number"}[found[2]]
            message = f"{found[1]}: {found[3]} is not a {kind}"
        found = re.fullmatch("argument (-h)/(--help): ignored explicit argument '(.*)'", message)
        if found:
            message = f"unrecognized arguments: {found[1]}{found[3]} (did you mean {found[2]}?)"
        super().error(message)


def parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser, and the one for `train`, whose defaults a recipe may change."""
    parser = Parser(
        prog="python -m transformer_lib",
        description="Train and use a small translation Transformer.",
    )
    commands = parser.add_subparsers(
        required=True, metavar="train | translate | evaluate | export | verify"
    )
    train = _command(commands, "train", "training", "Train a model on sentence pairs.")
    _train_options(train)
    about = "Translate sentences with a trained model."
    _translate_options(_command(commands, "translate", "translation", about))
    about = "Translate a data split and score it."
    _evaluate_options(_command(commands, "evaluate", "evaluation", about))
    about = "Write a trained model as one small file, or as a folder for CTranslate2."
    _export_options(_command(commands, "export", "export", about))
    about = "Check a run's files, its scores and its translations."
    verify = _command(commands, "verify", "verification", about)
    verify.add_argument("run", nargs="?", default="multi30k-de-en", type=_name, help=RUN)
    return parser, train


def _command(commands, name: str, module: str, about: str) -> argparse.ArgumentParser:
    """The parser of a command, which cli.<module>.run carries out."""
    command = commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=module)
    return command


def _train_options(train: argparse.ArgumentParser) -> None:
    whole = train.add_mutually_exclusive_group()
    whole.add_argument(
        "--recipe",
        choices=[*recipes.RECIPES],
        help="take from this recipe every setting that you don't give",
    )
    whole.add_argument(
        "--like", metavar="RUN", type=_name,
        help="take from this run every setting that you don't give",
    )
    train.add_argument(
        "--data",
        default="auto",
        type=_name,
        help="auto, multi30k, mini, a folder, or a hub name (default: auto)",
    )
    train.add_argument("--src", default="de", type=_name, help="source language (default: de)")
    train.add_argument("--tgt", default="en", type=_name, help="target language (default: en)")
    train.add_argument(  # torchrun reads --run as one of its own options
        "--run", "--run-dir", type=_name,
        help="run folder (default: runs/<recipe, like or src-tgt>)",
    )
    train.add_argument(
        "--tokenizer", default="bpe", choices=["bpe", "word"], help="kind of tokens (default: bpe)"
    )
    train.add_argument(
        "--vocab-size", type=_vocabulary, default=10_000,
        help="tokens in the vocabulary (default: 10000)",
    )
    # The defaults are those of Transformer-Tiny, the size that suits 29,000 pairs.
    sizes = {
        "d_model": 128,
        "n_heads": 4,
        "d_ff": 256,
        "n_encoder_layers": 4,
        "n_decoder_layers": 4,
        "dropout": 0.3,
    }
    _add_fields(train, ModelConfig, sizes, skip=NOT_OFFERED, title="model")
    _add_fields(train, TrainConfig, {}, skip=set(), title="training")


RUN = "a name in results/, or a run folder (default: multi30k-de-en)"
PENALTY = "exponent; default: the one that was chosen on the run's validation set, else 1"


def _translate_options(translate: argparse.ArgumentParser) -> None:
    translate.add_argument(
        "text", nargs="*", help="sentences; if there are none, each line of standard input is one"
    )
    translate.add_argument("--length-penalty", type=_penalty, help=PENALTY)
    _model_options(translate)


def _evaluate_options(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument("--data", type=_name, help="as for train (default: the run's own)")
    evaluate.add_argument("--src", type=_name, help="source language (default: the run's own)")
    evaluate.add_argument("--tgt", type=_name, help="target language (default: the run's own)")
    evaluate.add_argument(
        "--split", default="test", choices=["train", "validation", "test"], help="(default: test)"
    )
    evaluate.add_argument(
        "--save",
        action="store_true",
        help="write scores.json and translations.jsonl into the run "
        "(for splits other than test, scores-<split>.json and so on)",
    )
    evaluate.add_argument(
        "--length-penalty", type=_penalty, nargs="+",
        help=f"{PENALTY}; the best of several is used",
    )
    _model_options(evaluate)


def _model_options(command: argparse.ArgumentParser) -> None:
    """Which model translates, and how."""
    command.add_argument(
        "--run",
        default="multi30k-de-en",
        type=_name,
        help="a name in results/ or a run folder",
    )
    command.add_argument("--beam-size", type=_beam, default=5, help="1 is greedy (default: 5)")
    command.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default: auto)")


def _export_options(export: argparse.ArgumentParser) -> None:
    export.add_argument(
        "run",
        nargs="?",
        default="multi30k-de-en",
        type=_name,
        help=RUN,
    )
    export.add_argument(
        "--format",
        default="page",
        choices=["page", "ctranslate2"],
        help="page: one file for the book's translator; ctranslate2: a folder (default: page)",
    )
    export.add_argument(
        "--out", type=_name, help="the file (default: <run>.bin), or folder (<run>-ctranslate2)"
    )
    export.add_argument(
        "--score",
        action="store_true",
        help="also translate the run's validation and test sets with both models, and compare",
    )
    export.add_argument("--beam-size", type=_beam, help="for --score (default: 5)")
    export.add_argument(
        "--save", action="store_true",
        help="with --score: keep the comparison in the run, as shipping.json",
    )


def _within(kind: type, least: float, most: float, what: str) -> Callable[[str], float]:
    """The type of an option that takes a number between two others."""
    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if least <= kind(text) <= most:
                return kind(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what}")

    return number


_beam = _within(int, 1, math.inf, "whole number of at least 1")
_penalty = _within(float, -100, 100, "number from -100 to 100")
_vocabulary = _within(int, 5, 10**6, "whole number from 5, one more than the special tokens, to "
                                     "1,000,000; a few thousand suits sentence pairs")


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give a name, or leave the option out")
    if "\0" in text:
        raise argparse.ArgumentTypeError("it holds a NUL character, which no name can have")
    try:
        text.encode()
    except UnicodeEncodeError:  # the environment's locale isn't UTF-8
        raise argparse.ArgumentTypeError(
            f"{text!a} holds characters that this locale cannot read: set PYTHONUTF8=1"
        ) from None
    return text


def _add_fields(parser, cls, defaults: dict, skip: set[str], title: str) -> None:
    """One option per field of a configuration class, with its type and default."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(cls):
        if field.name in skip:
            continue
        default = defaults.get(field.name, field.default)
        known = ", ".join(choices(field))
        about = HELP[field.name] + (f": {known}" if known else "")
        about = f"{about} (default: {default})".strip()
        options = {"default": default, "help": about.replace("%", "%%")}
        if isinstance(default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, tuple):
            options |= {"nargs": len(default), "type": float, "metavar": "X"}
        else:
            options |= {"type": int if default is None else type(default), "metavar": "X"}
        group.add_argument("--" + field.name.replace("_", "-"), **options)


def fields_of(cls, options, skip=frozenset()) -> dict:
    """What the options say about a configuration's fields."""
    names = {field.name for field in dataclasses.fields(cls)} - skip
    return {name: value for name, value in vars(options).items() if name in names}


def two_languages(src: str, tgt: str) -> None:
    """Raise ValueError for a language that would be translated into itself."""
    if src == tgt:
        raise ValueError(
            f"source and target are both {src!r}; give both languages, as in --src en --tgt de."
        )


@contextlib.contextmanager
def recorded_by(run: str | None, source: str):
    """If this data can't be read, say that the run's config.json names it. run None: it doesn't."""
    try:
        yield
    except (ValueError, TypeError, ConnectionError) as error:
        if run is None:
            raise
        raise ValueError(
            f"{find_run(run) / 'config.json'} names {source} as its data: "
            f"{str(error).rstrip('.')}. Or give --data."
        ) from None


def require_writable(folder: Path) -> None:
    """Raise OSError if --save will fail: before minutes of translation, not after them."""
    try:
        # A file without a name: two processes that try at once would remove each other's.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--save cannot write to {folder} ({error.strerror}).") from None


def load(options) -> Translator:
    """The model that --run names, on the device that --device names."""
    return load_pretrained(options.run, device=str(pick_device(options.device)))
