"""The command line: python -m transformer_lib train | translate | evaluate."""

import argparse
import contextlib
import dataclasses
import inspect
import json
import os
import re
import sys
import time
from pathlib import Path

EXAMPLES = {
    "train": """\
examples:
  python -m transformer_lib train                        # German to English, Multi30k or mini
  python -m transformer_lib train --src en --tgt de --run runs/en-de
  python -m transformer_lib train --data my_folder --max-steps 2000 --d-model 256 --d-ff 1024
  python -m transformer_lib train --like multi30k-de-en  # a recorded run again, same settings
  python -m transformer_lib train --start-from multi30k-de-en --data my_folder --peak-lr 0.001
  torchrun --nproc-per-node 2 -m transformer_lib train --run-dir runs/two   # two GPUs share a batch
A run that was interrupted goes on when the same command is given again.""",
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
The last command chooses a length penalty; the run then keeps it, for its test set, too.""",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    parser, train = _parser()
    options = parser.parse_args(arguments)
    try:
        if getattr(options, "like", None):
            given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
            given.add_argument("--accumulate")
            own_batches = given.parse_known_args(arguments)[0].accumulate is not None
            # What the command line gives comes first.
            train.set_defaults(**_recipe(options.like, own_batches))
            options = parser.parse_args(arguments)
        elif getattr(options, "start_from", None):
            train.set_defaults(**_start(options.start_from))
            options = parser.parse_args(arguments)
        return options.command(options)
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)  # torch's span lines
        return 1


def _parser() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser, and that of the command train, whose defaults a recipe may change."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib",
        description="Train and use a small translation Transformer.",
    )
    commands = parser.add_subparsers(required=True, metavar="train | translate | evaluate")

    def add(name, function, about):
        command = commands.add_parser(
            name,
            help=about,
            description=about,
            epilog=EXAMPLES[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=function)
        return command

    train = add("train", _train, "Train a model on sentence pairs.")
    train.add_argument("--like", metavar="RUN", help="take every setting not given from this run")
    train.add_argument(
        "--data",
        default="auto",
        help="auto, multi30k, mini, a folder, or a hub name (default: auto)",
    )
    train.add_argument("--src", default="de", help="source language (default: de)")
    train.add_argument("--tgt", default="en", help="target language (default: en)")
    train.add_argument(  # torchrun reads --run as one of its own options
        "--run", "--run-dir", help="run folder (default: runs/<like or src-tgt>)"
    )
    train.add_argument(
        "--tokenizer", default="bpe", choices=["bpe", "word"], help="kind of tokens (default: bpe)"
    )
    train.add_argument("--vocab-size", type=int, default=10_000, help="tokens (default: 10000)")
    train.add_argument(
        "--start-from", metavar="RUN", help="start with this run's weights, sizes and tokenizer"
    )
    train.add_argument(
        "--teachers", metavar="RUN", nargs="+", default=[],
        help="train also on the pairs that these runs write by translating the training set",
    )  # fmt: skip
    # The defaults are those of Transformer-Tiny, the size that suits 29,000 pairs.
    sizes = {
        "d_model": 128,
        "n_heads": 4,
        "d_ff": 256,
        "n_encoder_layers": 4,
        "n_decoder_layers": 4,
        "dropout": 0.3,
    }
    from transformer_lib.config import ModelConfig, TrainConfig

    _add_fields(train, ModelConfig, sizes, skip={"vocab_size", "pad_id"}, title="model")
    _add_fields(train, TrainConfig, {}, skip=set(), title="training")

    translate = add("translate", _translate, "Translate sentences with a trained model.")
    translate.add_argument("text", nargs="*", help="sentences; without any, one per line of input")
    evaluate = add("evaluate", _evaluate, "Translate a data split and score it.")
    evaluate.add_argument("--data", help="as for train (default: the run's own)")
    evaluate.add_argument("--src", help="source language (default: the run's own)")
    evaluate.add_argument("--tgt", help="target language (default: the run's own)")
    evaluate.add_argument(
        "--split", default="test", choices=["train", "validation", "test"], help="(default: test)"
    )
    evaluate.add_argument(
        "--save",
        action="store_true",
        help="write scores.json and translations.jsonl into the run "
        "(for other splits than test, scores-<split>.json and so on)",
    )
    penalty = "exponent; default: what the run chose on its validation set, else 1"
    translate.add_argument("--length-penalty", type=float, help=penalty)
    evaluate.add_argument(
        "--length-penalty", type=float, nargs="+", help=f"{penalty}; of several the best is taken"
    )
    for command in (translate, evaluate):
        command.add_argument(
            "--run", default="multi30k-de-en", help="a name in results/ or a run folder"
        )
        command.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
        command.add_argument("--device", default="auto", help="auto, cpu, cuda (default: auto)")
    return parser, train


def _add_fields(parser, cls, defaults: dict, skip: set[str], title: str) -> None:
    """One option per field of a configuration class: its type, default, and comment as help."""
    source = "".join(inspect.getsource(c) for c in cls.__mro__ if dataclasses.is_dataclass(c))
    comments = dict(re.findall(r"^    (\w+):.*?  # (.*)$", source, re.MULTILINE))
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(cls):
        if field.name in skip:
            continue
        default = defaults.get(field.name, field.default)
        about = comments.get(field.name, "").replace("%", "%%")
        options = {"default": default, "help": f"{about} (default: {default})".strip()}
        if isinstance(default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, tuple):
            options |= {"nargs": len(default), "type": float, "metavar": "X"}
        else:
            options |= {"type": int if default is None else type(default), "metavar": "X"}
        group.add_argument("--" + field.name.replace("_", "-"), **options)


def _fields(cls, options) -> dict:
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in vars(options).items() if name in names}


def _recipe(run: str, own_batches: bool) -> dict:
    """The options that repeat a run, from its config.json; own_batches: --accumulate is given."""
    from transformer_lib.config import recorded
    from transformer_lib.translator import run_info

    about = run_info(run)
    data = about.get("data", {})
    if "train" not in about or not {"source", "src", "tgt"} <= data.keys():
        raise ValueError(f"{run} was not trained by this command: its config.json holds no recipe.")
    about = recorded(about)
    processes = int(os.environ.get("WORLD_SIZE", 1))
    batches = about["train"]["accumulate"] * about.get("processes", 1)  # in one update
    if batches % processes and not own_batches:
        raise ValueError(
            f"{run} used {batches} batches for an update; {processes} processes cannot share them. "
            "Start fewer processes, or give --accumulate and --max-tokens yourself."
        )
    return (
        about["model"]
        | about["train"]
        | {
            "accumulate": max(1, batches // processes),
            "data": data["source"],
            "src": data["src"],
            "tgt": data["tgt"],
            "tokenizer": data.get("tokenizer", "bpe"),
            "vocab_size": data.get("vocab_size", about["model"]["vocab_size"]),
            "start_from": data.get("start_from"),
            "teachers": data.get("teachers", []),
            "run": f"runs/{Path(run).name}",
        }
    )


def _start(run: str) -> dict:
    """The options that fit the weights of a run."""
    from transformer_lib.translator import run_info

    about = run_info(run)
    return about["model"] | {"tokenizer": about.get("data", {}).get("tokenizer", "bpe")}


def _load_start(options):
    """The trained model to start from; its sizes and tokens must be those of the options."""
    from transformer_lib.translator import load_pretrained

    given = vars(options)
    # Dropout may be another: it has no weights.
    other = [
        f"{name} = {value!r}, not {given[name]!r}"
        for name, value in _start(options.start_from).items()
        if value != given[name] and "dropout" not in name
    ]
    if other:
        raise ValueError(
            f"the run to start from, {options.start_from}, has {'; '.join(other)}: leave out the "
            "options for the model and its tokens, which then are those of the run."
        )
    return load_pretrained(options.start_from)


def _two_languages(src: str, tgt: str) -> None:
    if src == tgt:
        raise ValueError(
            f"source and target are both {src!r}; give both languages, as in --src en --tgt de."
        )


def _train(options) -> int:
    from transformer_lib import data, tokenization, training
    from transformer_lib.config import ModelConfig, TrainConfig
    from transformer_lib.diversification import diversify
    from transformer_lib.models.transformer import Transformer

    _two_languages(options.src, options.tgt)
    first = int(os.environ.get("RANK", 0)) == 0
    with contextlib.nullcontext() if first else contextlib.redirect_stdout(None):
        config = TrainConfig(**_fields(TrainConfig, options))
        run_dir = Path(options.run or f"runs/{options.src}-{options.tgt}")
        pairs = data.load_parallel(options.data, options.src, options.tgt)
        if not pairs.get("train"):
            raise ValueError(
                f"there are no train pairs to train on: {options.data} has "
                f"{' and '.join(sorted(pairs))}; give it a split 'train'."
            )
        start = _load_start(options) if options.start_from else None
        saved = run_dir / "tokenizer.json"
        if saved.exists():
            tokenizer = tokenization.load_tokenizer(saved)
        elif start:
            tokenizer = start.tokenizer
        else:
            texts = [text for pair in pairs["train"] for text in pair]
            tokenizer = tokenization.train_tokenizer(texts, options.vocab_size, options.tokenizer)
        if options.teachers:
            device = str(training.pick_device(config.device))
            pairs = diversify(pairs, options.teachers, options.src, options.tgt, device)
        training.set_seed(config.seed)
        sizes = _fields(ModelConfig, options) | {"vocab_size": tokenizer.get_vocab_size()}
        model = Transformer(ModelConfig(**sizes))
        if start:
            model.load_state_dict(start.model.state_dict())
        print(f"{model.count_parameters():,} parameters, {sizes['vocab_size']:,} tokens; {run_dir}")
        described = {
            "source": pairs.source,
            "src": options.src,
            "tgt": options.tgt,
            "tokenizer": options.tokenizer,
            "vocab_size": options.vocab_size,
            "start_from": options.start_from,
            "teachers": options.teachers,
        }
        metrics = training.train(model, tokenizer, pairs, config, run_dir, data_info=described)
        if metrics:
            print("Done:", json.dumps(metrics[-1]))
        print(f"Translate with: python -m transformer_lib translate --run {run_dir} ...")
    return 0


def _load(options):
    from transformer_lib.training import pick_device
    from transformer_lib.translator import load_pretrained

    return load_pretrained(options.run, device=str(pick_device(options.device)))


def _translate(options) -> int:
    for stream, encoding in ((sys.stdin, "utf-8-sig"), (sys.stdout, "utf-8")):
        if hasattr(stream, "reconfigure") and not stream.isatty():  # a pipe on Windows is not UTF-8
            stream.reconfigure(encoding=encoding)
    lines = [line.strip() for line in options.text or sys.stdin]
    if not any(lines):
        raise ValueError("nothing to translate: give sentences as arguments or on standard input.")
    for line in lines:
        try:
            line.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{line!a} is not valid UTF-8 text: convert it to UTF-8.") from None
    translator = _load(options)
    results = translator.translate(
        [line for line in lines if line], options.beam_size, options.length_penalty, attention=False
    )
    texts = iter(result.text for result in results)
    for line in lines:  # an empty line stays one, so that input and output can be laid side by side
        print(next(texts) if line else "")
    return 0


def _evaluate(options) -> int:
    from transformer_lib import data
    from transformer_lib.config import write_json
    from transformer_lib.evaluation import lowercased_tokenised_bleu, score
    from transformer_lib.translator import find_run, run_info

    # The run's own data: "auto" could take another corpus and score that.
    about = run_info(options.run).get("data", {})
    source = None if options.data == "auto" else options.data
    given = {"source": source, "src": options.src, "tgt": options.tgt}
    chosen = {name: value or about.get(name) for name, value in given.items()}
    missing = [name for name, value in chosen.items() if not value]
    if missing:
        raise ValueError(
            f"{options.run} does not record its data ({', '.join(missing)}); "
            "say which with --data, --src and --tgt."
        )
    _two_languages(chosen["src"], chosen["tgt"])
    pairs = data.load_parallel(chosen["source"], chosen["src"], chosen["tgt"])
    if options.split not in pairs:
        raise ValueError(f"the data has no {options.split} split; it has {sorted(pairs)}.")
    scored_on = {"source": pairs.source, "src": chosen["src"], "tgt": chosen["tgt"]}
    other = [f"{name} {scored_on[name]}, not {about[name]}" for name in scored_on
             if about.get(name, scored_on[name]) != scored_on[name]]  # fmt: skip
    if options.save and other:
        raise ValueError(
            f"--save keeps the scores of {options.run} on its own data, and this is other data "
            f"({'; '.join(other)}): leave out --save."
        )
    sources, references = zip(*pairs[options.split], strict=True)
    translator = _load(options)
    penalties = options.length_penalty or [translator.length_penalty]
    if len(penalties) > 1 and options.split == "test":
        raise ValueError(
            f"{len(penalties)} length penalties for the test set would choose by what should only "
            "measure: choose with --split validation --save, which the run then keeps."
        )
    start = time.perf_counter()
    tried = {}  # penalty -> (scores, translations)
    for penalty in penalties:
        results = translator.translate(list(sources), options.beam_size, penalty, attention=False)
        tried[penalty] = score([result.text for result in results], list(references)), results
        if len(penalties) > 1:
            print(f"length penalty {penalty:g}: BLEU {tried[penalty][0].bleu:.2f}", flush=True)
    seconds = time.perf_counter() - start
    penalty = max(tried, key=lambda penalty: tried[penalty][0].bleu)
    scores, results = dataclasses.asdict(tried[penalty][0]), tried[penalty][1]
    hypotheses = [result.text for result in results]
    with contextlib.suppress(ImportError):  # the kind of BLEU in older papers; needs sacremoses
        scores["lowercased_tokenised_bleu"] = lowercased_tokenised_bleu(
            hypotheses, list(references), chosen["tgt"]
        )
    for name, value in scores.items():
        print(f"{name:>25}  {value:.2f}" if isinstance(value, float) else f"{name:>25}  {value}")
    if len(tried) > 1:
        print(f"{'length penalty':>25}  {penalty:g}")
    print(f"{len(results):,} sentences in {seconds:.1f} s")
    if options.save:
        folder = find_run(options.run)
        suffix = "" if options.split == "test" else f"-{options.split}"
        settings = {
            "data": pairs.source,
            "src": chosen["src"],
            "tgt": chosen["tgt"],
            "split": options.split,
            "sentences": len(results),
            "beam_size": options.beam_size,
            "length_penalty": penalty,
        }
        if len(tried) > 1:
            settings["length_penalties_tried"] = [
                {"length_penalty": penalty, "bleu": scored.bleu}
                for penalty, (scored, _) in tried.items()
            ]
        path = folder / f"translations{suffix}.jsonl"
        partial = path.with_name(path.name + ".partial")
        with open(partial, "w", encoding="utf-8") as file:
            for index, result in enumerate(results):
                row = {"index": index, "translation": result.text, "score": round(result.score, 4)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        partial.replace(path)
        write_json(folder / f"scores{suffix}.json", settings | scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
