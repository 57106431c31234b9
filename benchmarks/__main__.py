"""`python -m benchmarks`: measure everything, print it, save it."""

import argparse
import importlib.metadata
import os
import platform
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks import decoding, startup, training
from benchmarks.timing import Row
from tools.arguments import count, new_folder
from transformer_lib import load_pretrained
from transformer_lib.data import load_parallel
from transformer_lib.runs.files import write_json
from transformer_lib.runs.pretrained import run_info
from transformer_lib.tokenization import encode_pairs, encode_source, train_tokenizer

FULL = dict(
    data="auto", pairs=None, sentences=None, few=200, rounds=7, step_batches=5, epoch_batches=8,
    sizes={1: [32, 64, 128, 256], 5: [16, 32, 64, 128, 256]},  # and all at once
    max_tokens=4096, fixed_batch=128,
    lengths=[8, 16, 32, 64, 128, 256, 512], batch_sizes=[1, 4, 16, 64, 256],
)
QUICK = dict(
    data="mini", pairs=64, sentences=8, few=4, rounds=1, step_batches=1, epoch_batches=1,
    sizes={1: [8], 5: [8]}, max_tokens=128, fixed_batch=8, lengths=[4, 8], batch_sizes=[1, 4],
)


def main(arguments: list[str] | None = None) -> dict:
    """Run the benchmarks; returns what is saved as bench.json."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds long; numbers mean nothing")
    parser.add_argument("--threads", type=count, default=min(2, os.cpu_count() or 1),
                        help="for every contestant (default: %(default)s)")
    parser.add_argument("--rounds", type=count, help="measurements of each contestant")
    parser.add_argument("--run", default="multi30k-de-en", help="trained model that decodes")
    parser.add_argument("--beside", default="not said", help="what else ran, kept with the numbers")
    parser.add_argument("--out", type=new_folder,
                        help="folder of bench.json and bench.md (default: results; "
                        "with --quick: nothing is saved)")
    args = parser.parse_args(arguments)
    size = (QUICK if args.quick else FULL) | ({"rounds": args.rounds} if args.rounds else {})
    warnings.filterwarnings("ignore", message=".*nested_tensor.*")  # torch, about pre-norm
    torch.set_num_threads(args.threads)

    try:
        about = run_info(args.run).get("data", {})
    except ValueError as error:
        parser.error(str(error))
    languages = {key: about.get(key) for key in ("src", "tgt")}
    pairs = load_parallel(size["data"], languages["src"] or "de", languages["tgt"] or "en")
    result = {"environment": environment(args, pairs.source), "rows": [], "curves": []}
    print(" · ".join(f"{key} {value}" for key, value in result["environment"].items()), "\n")

    rows = result["rows"]
    for row in measure(size, pairs, args.run, result["curves"]):
        rows.append(asdict(row))
        print(line(row), flush=True)
    out = args.out or (None if args.quick else "results")
    if out:
        Path(out).mkdir(parents=True, exist_ok=True)
        write_json(Path(out) / "bench.json", result)
        (Path(out) / "bench.md").write_text(markdown(result), encoding="utf-8")
        print(f"\nSaved in {out}/bench.json and {out}/bench.md.")
    return result


def measure(size: dict, pairs, run: str, curves: list[dict]):
    """Yield every row; the cost curves are added to `curves`."""
    rounds, grid = size["rounds"], (size["lengths"], size["batch_sizes"], size["rounds"])
    yield startup.startup_row(rounds)

    train = pairs["train"][: size["pairs"]]
    vocabulary = train_tokenizer([text for pair in train for text in pair],
                                 training.SIZES.vocab_size)
    corpus = training.Corpus(
        *encode_pairs(vocabulary, train),
        size["max_tokens"],
        size["fixed_batch"],
    )
    steps = training.contestants()
    yield from training.step_rows(corpus, steps, size["step_batches"], rounds)
    yield from training.epoch_rows(corpus, steps, size["epoch_batches"], rounds)
    curves += training.cost_curves(steps, *grid)
    del steps

    translator = load_pretrained(run)
    test = [source for source, _ in pairs["test"][: size["sentences"]]]
    sources = encode_source(translator.tokenizer, test)
    yield from decoding.decoding_rows(translator, sources, size["few"], size["sizes"], rounds)
    curves += decoding.cost_curves(translator.model, *grid)


def environment(args, source: str) -> dict:
    """Where, when and with what the numbers were measured."""
    versions = {}
    for name in ("torch", "ctranslate2", "transformers"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": args.threads,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),  # other programs, in the minute before
        "beside": args.beside,
        "processor": processor(),
        "python": platform.python_version(),
        **versions,
        "data": source,
        "run": args.run,
        "quick": args.quick,
    }


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def line(row: Row) -> str:
    """A row as a line of text."""
    head = f"{row.what} / {row.against}: "
    if row.ratio is None:
        return head + row.note
    spread = "" if row.low is None else f" [{row.low:.2f} to {row.high:.2f}]"
    target = f", target {row.target}" if row.target else ""
    note = f" ({row.note})" if row.note else ""
    return (
        f"{head}{row.ratio:.2f} x{spread}{target}; "
        f"{number(row.ours)} and {number(row.peer)} {row.unit}{note}"
    )


def number(x: float) -> str:
    """Three digits or whole thousands: 0.123, 12.3, 1,234."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def markdown(result: dict) -> str:
    """The rows as one table, the environment above, the curves below."""
    text = ["# Speed", ""]
    if result["environment"]["quick"]:
        text += ["A smoke run: these numbers mean nothing.", ""]
    text += [f"- {key}: {value}" for key, value in result["environment"].items()]
    text += [
        "",
        "Medians of rounds that alternate between the contestants. A ratio above 1 means that ours",
        "is better by that factor; in brackets the smallest and largest ratio of a round.",
        "",
        "| what | against | ours | peer | unit | ratio | target | note |",
        "|---|---|--:|--:|---|---|---|---|",
    ]
    for row in result["rows"]:
        ratio = ours = peer = ""
        if row["ratio"] is not None:
            ratio, ours, peer = f"{row['ratio']:.2f}", number(row["ours"]), number(row["peer"])
        if row["low"] is not None:
            ratio += f" [{row['low']:.2f} to {row['high']:.2f}]"
        cells = (row["what"], row["against"], ours, peer, row["unit"], ratio, row["target"],
                 row["note"])
        text.append("| " + " | ".join(cells) + " |")
    text += ["", "| cost of | batch size | length | who | ms |", "|---|--:|--:|---|--:|"]
    for p in result["curves"]:
        text.append(
            f"| {p['what']} | {p['batch_size']} | {p['length']} | {p['who']} | {number(p['ms'])} |"
        )
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    main()
