"""The command line: python -m transformer_lib train | translate | evaluate | export."""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

EXAMPLES = {
    "train": """\
examples:
  python -m transformer_lib train                        # German to English, Multi30k or mini
  python -m transformer_lib train --src en --tgt de --run runs/en-de
  python -m transformer_lib train --data my_folder --max-steps 2000 --d-model 256 --d-ff 1024
  python -m transformer_lib train --recipe short         # minutes on a CPU: the book's short recipe
  python -m transformer_lib train --like multi30k-de-en  # a recorded run again, same settings
  python -m transformer_lib train --like multi30k-de-en --data my_folder --seed 1
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
    "export": """\
examples:
  python -m transformer_lib export multi30k-de-en --out translator.bin
  python -m transformer_lib export runs/en-de --out en-de.bin --score --save
One file: the weights as int8 numbers, the tokenizer, a checksum. The page Translator runs it, and
transformer_lib.runs.export.load_exported reads it back. The second command says what the rounding
costs on the run's own validation and test sets.""",
}

RECIPES = ["short"]  # as in runs.recipes, which this module imports only when it trains
# Fields of ModelConfig without an option: set by the tokenizer, fixed, or (eps) named like Adam's.
NOT_OFFERED = {"vocab_size", "pad_id", "eps"}
# Help for each other field of ModelConfig and of TrainConfig.
HELP = {
    "d_model": "D: width of every token's vector",
    "n_heads": "H: each head works on d_model / n_heads numbers",
    "d_ff": "width inside the feed-forward sublayer",
    "n_encoder_layers": "layers that read the source",
    "n_decoder_layers": "layers that write the target",
    "dropout": "share of numbers left out, on each sublayer's output and on the embeddings",
    "attention_dropout": "share of attention weights left out",
    "max_len": "longest sequence, in tokens",
    "norm_first": "normalise before each sublayer (pre-norm), not after it",
    "norm": "layer, rms or batch",
    "positional": "sinusoidal, learned, rotary, alibi or none",
    "rotary_base": "of the wavelengths of rotary positions",
    "activation": "relu, gelu, gelu_tanh or swiglu",
    "bias": "in the linear maps of attention and feed-forward network",
    "n_kv_heads": "heads of keys and values; None: as many as of queries",
    "tie_embeddings": "one matrix for source, target and output",
    "scale_embeddings": "multiply embeddings by the root of d_model",
    "max_steps": "updates of the weights",
    "max_tokens": "tokens in one batch, padding included",
    "accumulate": "batches whose gradients are added before an update",
    "schedule": "inverse_sqrt, noam or constant",
    "peak_lr": "highest rate; noam takes that of the paper's formula instead",
    "warmup": "updates",
    "cooldown": "the last updates, over which the rate falls in a line, almost to zero",
    "optimizer": "adam, or muon for the matrices of the layers",
    "betas": "Adam's two memories",
    "eps": "what Adam adds to its divisor",
    "weight_decay": "share of the weights that is taken away, by L2 regularisation",
    "label_smoothing": "share of the target that is spread over the vocabulary",
    "clip_norm": "longest gradient; 0 turns clipping off",
    "average": "the last checkpoints, averaged into the final weights; 1: no averaging",
    "checkpoint_every": "updates",
    "keep_checkpoints": "checkpoints left on the disk",
    "validate_every": "updates",
    "validation_bleu": "greedy decoding of the validation set at each validation",
    "log_every": "updates",
    "seed": "of weights, batches and dropout",
    "device": "auto, cpu, cuda or cuda:1",
    "precision": "auto (bf16 on a GPU that has it, else fp32), fp32 or bf16",
    "fast": "the same training in less time",
    "tensorboard": "write TensorBoard logs into the run folder",
    "progress": "a progress bar on the terminal or in the notebook",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed (for `translate`, also: a line was
    left out), 2 wrong usage, 130 interrupted, 141 when nobody reads the output any more.
    """
    parser, train = _parser()
    options = parser.parse_args(arguments)
    try:
        if name := getattr(options, "recipe", None) or getattr(options, "like", None):
            given = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
            given.add_argument("--accumulate")
            own_batches = given.parse_known_args(arguments)[0].accumulate is not None
            # What the command line gives comes first.
            train.set_defaults(**_recipe(name, own_batches))
            options = parser.parse_args(arguments)
        code = options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # as in `translate | head -1`: not a word
        with contextlib.suppress(OSError, ValueError):  # Python's last flush goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)  # torch's span lines
        return 1


def _parser() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser, and that of the command train, whose defaults a recipe may change."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib",
        description="Train and use a small translation Transformer.",
    )
    commands = parser.add_subparsers(required=True, metavar="train | translate | evaluate | export")

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
    whole = train.add_mutually_exclusive_group()
    whole.add_argument(
        "--recipe", choices=RECIPES, help="take every setting not given from this recipe"
    )
    whole.add_argument(
        "--like", metavar="RUN", type=_name, help="take every setting not given from this run"
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
    )  # fmt: skip
    train.add_argument(
        "--tokenizer", default="bpe", choices=["bpe", "word"], help="kind of tokens (default: bpe)"
    )
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

    _add_fields(train, ModelConfig, sizes, skip=NOT_OFFERED, title="model")
    _add_fields(train, TrainConfig, {}, skip=set(), title="training")

    translate = add("translate", _translate, "Translate sentences with a trained model.")
    translate.add_argument("text", nargs="*", help="sentences; without any, one per line of input")
    evaluate = add("evaluate", _evaluate, "Translate a data split and score it.")
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
        "(for other splits than test, scores-<split>.json and so on)",
    )
    penalty = "exponent; default: what the run chose on its validation set, else 1"
    translate.add_argument("--length-penalty", type=float, help=penalty)
    evaluate.add_argument(
        "--length-penalty", type=float, nargs="+", help=f"{penalty}; of several the best is taken"
    )
    for command in (translate, evaluate):
        command.add_argument(
            "--run",
            default="multi30k-de-en",
            type=_name,
            help="a name in results/ or a run folder",
        )
        command.add_argument("--beam-size", type=int, default=5, help="1 is greedy (default: 5)")
        command.add_argument("--device", default="auto", help="auto, cpu, cuda (default: auto)")

    export = add("export", _export, "Write a trained model as one small file, to ship it.")
    export.add_argument(
        "run",
        nargs="?",
        default="multi30k-de-en",
        type=_name,
        help="a name in results/ or a run folder (default: multi30k-de-en)",
    )
    export.add_argument("--out", type=_name, help="the file (default: <run>.bin)")
    export.add_argument(
        "--score",
        action="store_true",
        help="also translate the run's validation and test sets with both, and compare",
    )
    export.add_argument("--beam-size", type=int, default=5, help="for --score (default: 5)")
    export.add_argument(
        "--save", action="store_true", help="with --score: keep it in the run, as shipping.json"
    )
    return parser, train


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give a name, or leave the option out")
    return text


def _add_fields(parser, cls, defaults: dict, skip: set[str], title: str) -> None:
    """One option per field of a configuration class, with its type and default."""
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(cls):
        if field.name in skip:
            continue
        default = defaults.get(field.name, field.default)
        about = f"{HELP[field.name]} (default: {default})".strip()
        options = {"default": default, "help": about.replace("%", "%%")}
        if isinstance(default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif isinstance(default, tuple):
            options |= {"nargs": len(default), "type": float, "metavar": "X"}
        else:
            options |= {"type": int if default is None else type(default), "metavar": "X"}
        group.add_argument("--" + field.name.replace("_", "-"), **options)


def _fields(cls, options, skip=frozenset()) -> dict:
    names = {field.name for field in dataclasses.fields(cls)} - skip
    return {name: value for name, value in vars(options).items() if name in names}


def _recipe(name: str, own_batches: bool) -> dict:
    """The options that repeat a recipe or a run; own_batches: --accumulate is given."""
    from transformer_lib.config import to_dict
    from transformer_lib.runs import recipes

    recipe, processes = recipes.find(name), int(os.environ.get("WORLD_SIZE", 1))
    batches = recipe.train.accumulate  # in one update
    if batches % processes and not own_batches:
        raise ValueError(
            f"{name} used {batches} batches for an update; {processes} processes cannot share "
            "them. Start fewer processes, or give --accumulate and --max-tokens yourself."
        )
    model = to_dict(recipe.model_config(recipe.data["vocab_size"]))
    data = {("data" if key == "source" else key): value for key, value in recipe.data.items()}
    return (
        {key: value for key, value in model.items() if key not in NOT_OFFERED}
        | to_dict(recipe.train)
        | {"accumulate": max(1, batches // processes), "run": f"runs/{recipe.name}"}
        | data
    )


def _two_languages(src: str, tgt: str) -> None:
    if src == tgt:
        raise ValueError(
            f"source and target are both {src!r}; give both languages, as in --src en --tgt de."
        )


def _train(options) -> int:
    from transformer_lib import data, tokenization, training
    from transformer_lib.config import ModelConfig, TrainConfig
    from transformer_lib.models.transformer import Transformer
    from transformer_lib.runs import checksums

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
        saved = run_dir / "tokenizer.json"
        if saved.exists():
            checksums.require(run_dir, saved.name)
            tokenizer = tokenization.load_tokenizer(saved)
        else:
            texts = [text for pair in pairs["train"] for text in pair]
            tokenizer = tokenization.train_tokenizer(texts, options.vocab_size, options.tokenizer)
        training.set_seed(config.seed)
        n_tokens = tokenizer.get_vocab_size()
        model = Transformer(ModelConfig(n_tokens, **_fields(ModelConfig, options, NOT_OFFERED)))
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


def _load(options):
    from transformer_lib.runs.device import pick_device
    from transformer_lib.runs.pretrained import load_pretrained

    return load_pretrained(options.run, device=str(pick_device(options.device)))


def _translate(options) -> int:
    """What cannot be translated is named: of the arguments it stops the command, of the lines of
    standard input it leaves an empty line, and the others are translated.
    """
    if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # a pipe on Windows is not UTF-8
    translator, number, left_out, nothing = None, 0, 0, True
    groups = [[text.encode(errors="surrogateescape") for text in options.text]]
    for group in groups if options.text else _lines(sys.stdin):
        texts = [line.decode(errors="surrogateescape").strip("\ufeff\r\n\t ") for line in group]
        if translator is None and any(texts):
            translator, nothing = _load(options), False
        for i, text in enumerate(texts):
            number += 1
            if problem := _not_text(text) or (text and translator.problem(text)):
                if options.text:
                    raise ValueError(problem)
                print(f"error: line {number}: {problem}", file=sys.stderr, flush=True)
                texts[i], left_out = "", left_out + 1
        settings = options.beam_size, options.length_penalty
        found = [text for text in texts if text]
        if found:
            found = translator.translate(found, *settings, attention=False)
        results = iter(found)
        for text in texts:  # an empty line stays one: input and output can be laid side by side
            print(next(results).text if text else "")
        if sys.stdout is not None:
            sys.stdout.flush()
    if nothing:
        raise ValueError("nothing to translate: give sentences as arguments or on standard input.")
    return 1 if left_out else 0


def _lines(stream):
    """Lists of lines, in bytes: at each time those that are there, so that a pipe is answered."""
    if stream is None:  # closed
        return
    binary = getattr(stream, "buffer", None)
    if binary is None:
        yield [line.encode(errors="surrogateescape") for line in stream]
        return
    rest = b""
    while chunk := binary.read1(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        for start in range(0, len(lines), 128):
            yield lines[start : start + 128]
    if rest:
        yield [rest]


def _not_text(text: str) -> str:
    """What is wrong with a text that is not valid UTF-8, else nothing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{text[:60]!a} is not valid UTF-8 text: convert it to UTF-8."
    return ""


def _require_writable(folder: Path) -> None:
    """Before minutes of translation, not after them."""
    trial = folder / "writable.partial"
    try:
        trial.write_bytes(b"")
        trial.unlink()
    except OSError as error:
        raise OSError(f"--save cannot write to {folder} ({error.strerror}).") from None


def _evaluate(options) -> int:
    from transformer_lib import data
    from transformer_lib.evaluation import lowercased_tokenised_bleu, score
    from transformer_lib.runs import checksums
    from transformer_lib.runs.files import sha256, write_json, write_json_lines
    from transformer_lib.runs.pretrained import find_run, run_info

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
    if options.save:
        _require_writable(find_run(options.run))
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
            "weights": sha256(folder / checksums.WEIGHTS),
        }
        if len(tried) > 1:
            settings["length_penalties_tried"] = [
                {"length_penalty": penalty, "bleu": scored.bleu}
                for penalty, (scored, _) in tried.items()
            ]
        rows = [
            {"index": index, "translation": result.text, "score": round(result.score, 4)}
            for index, result in enumerate(results)
        ]
        names = f"translations{suffix}.jsonl", f"scores{suffix}.json"
        with checksums.changing(folder, names):
            write_json_lines(folder / names[0], rows)
            write_json(folder / names[1], settings | scores)
    return 0


def _export(options) -> int:
    from transformer_lib.runs import checksums, export, shipping
    from transformer_lib.runs.files import write_json
    from transformer_lib.runs.pretrained import find_run

    if options.save and not options.score:
        raise ValueError("--save keeps what --score finds: give --score as well.")
    folder = find_run(options.run)
    if options.save:
        _require_writable(folder)
    out = Path(options.out or f"{folder.name}.bin")
    if out.is_dir():
        raise ValueError(f"{out} is a folder: --out names a file, as in --out {folder.name}.bin.")
    header = export.export_live(folder, out)
    export.load_exported(out)  # what was written can be read
    held = shipping.sizes(folder, out, header["parameters"])
    print(f"{out}: {header['parameters']:,} parameters and the tokenizer")
    for name, size in held.items():
        about = {"float32": "weights in float32", "exported": str(out)}.get(name, name)
        print(f"{about:>25}  {size:>12,} bytes")
    if not options.score:
        return 0
    found = shipping.compare(folder, out, options.beam_size)
    for split in shipping.SPLITS:
        scores = found[split]
        print(
            f"{split:>25}  BLEU {scores['float32']['bleu']:.2f} in float32, "
            f"{scores['int8']['bleu']:.2f} in int8; {scores['same']:,} of "
            f"{scores['sentences']:,} translations are the same"
        )
    times = found["milliseconds"]
    print(
        f"{'one sentence':>25}  {times['float32']:.0f} ms in float32, {times['int8']:.0f} ms from "
        f"int8; median of {times['sentences']}, each by itself"
    )
    if options.save:
        with checksums.changing(folder, ["shipping.json"]):
            write_json(folder / "shipping.json", found)
    return 0
