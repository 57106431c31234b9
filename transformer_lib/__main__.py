"""The command line: python -m transformer_lib train | translate | evaluate."""

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path

EXAMPLES = {
    "train": """\
examples:
  python -m transformer_lib train                        # German to English, Multi30k or mini
  python -m transformer_lib train --src en --tgt de --run runs/en-de
  python -m transformer_lib train --data my_folder --max-steps 2000 --d-model 256 --d-ff 1024
  torchrun --nproc-per-node 2 -m transformer_lib train   # two GPUs, half of each batch on each
A run that was interrupted goes on when the same command is given again.""",
    "translate": """\
examples:
  python -m transformer_lib translate "Zwei Hunde spielen im Schnee."
  python -m transformer_lib translate --run runs/en-de --beam-size 1 "Two dogs play in the snow."
  cat sentences.txt | python -m transformer_lib translate""",
    "evaluate": """\
examples:
  python -m transformer_lib evaluate                     # the shipped model on its test set
  python -m transformer_lib evaluate --run runs/en-de --split validation --save""",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib", description="Train and use a small translation Transformer."
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
    train.add_argument("--data", default="auto", help="auto, multi30k, mini, a folder, or a hub name")
    train.add_argument("--src", default="de", help="source language (default: de)")
    train.add_argument("--tgt", default="en", help="target language (default: en)")
    train.add_argument("--run", default=None, help="run folder (default: runs/<src>-<tgt>)")
    train.add_argument("--tokenizer", default="bpe", choices=["bpe", "word"])
    train.add_argument("--vocab-size", type=int, default=10_000, help="tokens (default: 10000)")
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
    evaluate.add_argument("--data", default=None, help="as for train (default: the run's own)")
    evaluate.add_argument("--split", default="test", choices=["train", "validation", "test"])
    evaluate.add_argument(
        "--save", action="store_true", help="write scores.json and translations.jsonl into the run"
    )
    for command in (translate, evaluate):
        command.add_argument(
            "--run", default="multi30k-de-en", help="a name in results/ or a run folder"
        )
        command.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
        command.add_argument("--length-penalty", type=float, default=1.0, help="(default: 1.0)")
        command.add_argument("--device", default="auto", help="auto, cpu, cuda (default: auto)")
    return parser


def _add_fields(parser, cls, defaults: dict, skip: set[str], title: str) -> None:
    """One option per field of a configuration class, with its type and default."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(cls):
        if field.name in skip:
            continue
        default = defaults.get(field.name, field.default)
        options = {"default": default, "help": f"(default: {default})"}
        if isinstance(default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, tuple):
            options |= {"nargs": len(default), "type": float}
        else:
            options["type"] = type(default)
        group.add_argument("--" + field.name.replace("_", "-"), **options)


def _fields(cls, options) -> dict:
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in vars(options).items() if name in names}


def _train(options) -> int:
    from transformer_lib import data, tokenization, training
    from transformer_lib.config import ModelConfig, TrainConfig
    from transformer_lib.model import Transformer

    config = TrainConfig(**_fields(TrainConfig, options))
    run_dir = Path(options.run or f"runs/{options.src}-{options.tgt}")
    pairs = data.load_parallel(options.data, options.src, options.tgt)
    saved = run_dir / "tokenizer.json"
    if saved.exists():
        tokenizer = tokenization.load_tokenizer(saved)
    else:
        texts = [text for pair in pairs["train"] for text in pair]
        tokenizer = tokenization.train_tokenizer(texts, options.vocab_size, options.tokenizer)
    training.set_seed(config.seed)
    sizes = _fields(ModelConfig, options) | {"vocab_size": tokenizer.get_vocab_size()}
    model = Transformer(ModelConfig(**sizes))
    print(f"{model.count_parameters():,} parameters, {tokenizer.get_vocab_size():,} tokens; {run_dir}")
    described = {"source": pairs.source, "src": options.src, "tgt": options.tgt}
    metrics = training.train(model, tokenizer, pairs, config, run_dir, data_info=described)
    print("Done:", json.dumps(metrics[-1]))
    print(f"Translate with: python -m transformer_lib translate --run {run_dir} ...")
    return 0


def _load(options):
    from transformer_lib.training import pick_device
    from transformer_lib.translator import load_pretrained

    return load_pretrained(options.run, device=str(pick_device(options.device)))


def _translate(options) -> int:
    lines = options.text or [line.strip() for line in sys.stdin]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError("nothing to translate: give sentences as arguments or on standard input.")
    translator = _load(options)
    for result in translator.translate(
        lines, options.beam_size, options.length_penalty, attention=False
    ):
        print(result.text)
    return 0


def _evaluate(options) -> int:
    from transformer_lib import data
    from transformer_lib.config import write_json
    from transformer_lib.evaluation import score
    from transformer_lib.translator import find_run, run_info

    about = run_info(options.run).get("data", {})
    source = options.data or about.get("source", "auto")
    pairs = data.load_parallel(source, about.get("src", "de"), about.get("tgt", "en"))
    if options.split not in pairs:
        raise ValueError(f"the data has no {options.split} split; it has {sorted(pairs)}.")
    sources, references = zip(*pairs[options.split], strict=True)
    translator = _load(options)
    start = time.perf_counter()
    results = translator.translate(
        list(sources), options.beam_size, options.length_penalty, attention=False
    )
    seconds = time.perf_counter() - start
    hypotheses = [result.text for result in results]
    scores = dataclasses.asdict(score(hypotheses, list(references)))
    for name, value in scores.items():
        print(f"{name:>9}  {value:.2f}" if isinstance(value, float) else f"{name:>9}  {value}")
    print(f"{len(results):,} sentences in {seconds:.1f} s")
    if options.save:
        folder = find_run(options.run)
        settings = {
            "split": options.split,
            "sentences": len(results),
            "beam_size": options.beam_size,
            "length_penalty": options.length_penalty,
        }
        write_json(folder / "scores.json", settings | scores)
        with open(folder / "translations.jsonl", "w", encoding="utf-8") as file:
            for index, result in enumerate(results):
                row = {"index": index, "translation": result.text, "score": round(result.score, 4)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
