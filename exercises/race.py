"""The race: what a student wrote, against the book's own code on the same machine.

    python -m exercises.race bpe my_bpe.py --name Ana
    python -m exercises.race decoding my_decoding.py --name Ben
    python -m exercises.race translator runs/my-translator --name "Ana and Ben"

- bpe: a file with `learn_bpe(cut, n_merges)`, called as in the chapter on tokens. The same merges
  as the chapter's, in less time.
- decoding: a file with `decode(model, sentences)`: lists of ids -> lists of ids, those that
  `greedy_decode` writes for the recorded translator, up to <eos> and without it. More sentences a
  second.
- translator: a run folder that keeps to the rules of the page on the ten-minute translator and that
  `verify` finds nothing wrong with. The more BLEU on the test set.

A file and the reference are timed in turn, on texts that are new every time. What counts is the
ratio of the two times, so a faster machine gains nothing, and the time is that of the processor, so
other programs cost nothing and a second core gains nothing. An entry that returns another result
gets no time. The file's code is run: read the winner's before you give the prize.
"""

import argparse
import datetime
import importlib.util
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from exercises.checks.framework import TimeUp, clone, time_limit
from exercises.wording import counted
from transformer_lib.decoding import greedy_decode
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import read_json_lines, sha256, write_text
from transformer_lib.tokenization import BOS, EOS, PAD

TURNS = 5  # of each, and one before that doesn't count
LIMIT = 120.0  # seconds of one call
SECONDS, MEGABYTES = 600, 6  # of the ten-minute translator
TABLE = Path("race.json")


class Refused(Exception):
    """An entry that gets no place; the message says why."""


# ------------------------------------------------------------------------------------ BPE training


def learn_bpe(cut: dict[tuple[str, ...], int], n_merges: int):
    """The chapter's own: {word in symbols: count} -> (merges in order, the words afterwards)."""

    def merge(symbols, pair):
        merged, i = [], 0
        while i < len(symbols):
            both = symbols[i : i + 2] == pair
            merged.append("".join(pair) if both else symbols[i])
            i += 2 if both else 1
        return tuple(merged)

    merges = []
    for _ in range(n_merges):
        pairs = Counter()
        for symbols, count in cut.items():
            for pair in zip(symbols, symbols[1:], strict=False):
                pairs[pair] += count
        pair = max(pairs.items(), key=lambda item: item[1])[0]  # of equals, the one met first
        cut = {merge(symbols, pair): count for symbols, count in cut.items()}
        merges.append(pair)
    return merges, cut


@cache
def german(source: str) -> list[str]:
    """The German sentences of a training set."""
    from transformer_lib.data import load_parallel

    return [sentence for sentence, _ in load_parallel(source)["train"]]


def bpe_task(turn: int):
    """(words in symbols, merges to learn): other captions in each turn."""
    drawn = random.Random(turn).sample(german("mini"), 400)
    words = Counter(word for caption in drawn for word in caption.lower().split())
    return {tuple("▁" + word): count for word, count in words.items()}, 120


# ---------------------------------------------------------------------------------------- decoding


def decode(model, sentences: list[list[int]]) -> list[list[int]]:
    """The reference: greedy decoding with a cache, 32 sentences at a time, in the given order."""
    written = []
    for start in range(0, len(sentences), 32):
        batch = sentences[start : start + 32]
        longest = max(map(len, batch))
        src = torch.tensor([[*ids, *[PAD] * (longest - len(ids))] for ids in batch])
        for row in greedy_decode(model, src, bos_id=BOS, eos_id=EOS).tolist():
            written.append(list(itertools.takewhile(lambda token: token not in (EOS, PAD), row)))
    return written


def decoding_task(turn: int):
    """(the recorded translator's model, sentences as ids): other sentences in each turn."""
    from transformer_lib import load_pretrained
    from transformer_lib.tokenization import encode_source

    translator = load_pretrained("multi30k-de-en-short")
    drawn = random.Random(turn).sample(german("auto"), 64)
    return translator.model, encode_source(translator.tokenizer, drawn)


# discipline: (the entry's function, the reference, the task of a turn, share that must be equal)
TIMED: dict[str, tuple[str, Callable, Callable, float]] = {
    "bpe": ("learn_bpe", learn_bpe, bpe_task, 1.0),
    # Sums in another order may change a token where the two best are equally good.
    "decoding": ("decode", decode, decoding_task, 0.98),
}


# --------------------------------------------------------------------------------------- measuring


def load_entry(path: Path, name: str) -> Callable:
    """The function that an entry's file defines."""
    path = Path(path)
    if not path.is_file():
        raise Refused(f"{path} isn't a file; give the Python file that defines {name}")
    spec = importlib.util.spec_from_file_location("entry", path)
    module = importlib.util.module_from_spec(spec)
    try:
        with time_limit(LIMIT):
            spec.loader.exec_module(module)
    except (Exception, SystemExit, TimeUp) as error:
        raise Refused(f"{path} can't be imported: {type(error).__name__} {error}") from None
    if not callable(getattr(module, name, None)):
        raise Refused(f"{path} defines no function {name}")
    return getattr(module, name)


def spent() -> float:
    """Seconds of processor time, including those of processes that were started and have ended."""
    return time.process_time() + os.times().children_user + os.times().children_system


def timed(function: Callable, task: tuple):
    """(what it returns, seconds of processor time) on a copy of the task."""
    task = clone(task)
    start = spent()
    try:
        with time_limit(LIMIT):
            result = function(*task)
    except (Exception, SystemExit) as error:
        raise Refused(f"it stops with {type(error).__name__}: {error}") from None
    except TimeUp:
        raise Refused(f"it was still running after {LIMIT:g} seconds") from None
    return result, spent() - start


def require_equal(discipline: str, given, right, share: float) -> None:
    """Refuse a result that isn't the reference's, with the first difference."""
    if discipline == "bpe":
        given, right = (result[0] if isinstance(result, tuple) else result
                        for result in (given, right))  # the merges count
        right = [tuple(pair) for pair in right]
    try:
        given = [tuple(item) for item in given]
    except TypeError:
        raise Refused(
            f"it returns {given!r:.60}; expected a list like {right[:2]!r:.80}"
        ) from None
    right = [tuple(item) for item in right]
    what = "merge" if discipline == "bpe" else "sentence"
    if len(given) != len(right):
        raise Refused(f"it returns {counted(len(given), what)}; {len(right)} are expected")
    wrong = [i for i, pair in enumerate(zip(given, right, strict=True)) if pair[0] != pair[1]]
    if len(wrong) > (1 - share) * len(right):
        i = wrong[0]
        raise Refused(
            f"{what}s that differ: {len(wrong)} of {len(right)}. The first is number {i}: "
            f"{given[i]!r:.80}, where the reference has {right[i]!r:.80}"
        )


def against_the_reference(discipline: str, path: Path, turns: int = TURNS) -> dict:
    """How many times faster the entry is than the reference: the median of the turns, and their
    range. Raises Refused where a result differs.
    """
    name, reference, task_of, share = TIMED[discipline]
    entry = load_entry(path, name)
    torch.set_num_threads(1)
    ratios, seconds = [], []
    for turn in range(turns + 1):
        task = task_of(turn)
        order = [reference, entry] if turn % 2 else [entry, reference]
        found = {function: timed(function, task) for function in order}
        require_equal(discipline, found[entry][0], found[reference][0], share)
        if turn:  # the first warms both up
            ratios.append(found[reference][1] / found[entry][1])
            seconds.append(found[entry][1])
    return {
        "score": statistics.median(ratios), "low": min(ratios), "high": max(ratios),
        "seconds": statistics.median(seconds), "unit": "times as fast as the reference",
        "sha256": sha256(path),
    }


def translator(folder: Path, verify=None) -> dict:
    """BLEU of a run folder that keeps the rules. Raises Refused where it does not."""
    from transformer_lib.runs.verification import verify as library_verify

    folder = Path(folder)
    if (folder / "config.json").exists() and not (folder / "scores.json").exists():
        raise Refused(
            f"{folder} has no score on the test set yet: `python -m transformer_lib evaluate --run "
            f"{folder} --save` gives it one"
        )
    try:
        findings = list((verify or library_verify)(folder))
        about = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        metrics = list(read_json_lines(folder / "metrics.jsonl"))
        weights = (folder / "model.safetensors").stat().st_size / 1e6
    except (OSError, ValueError) as error:
        raise Refused(str(error)) from None
    doubtful = [str(finding) for finding in findings if finding.holds is not True]
    if doubtful:
        raise Refused("verify finds: " + "; ".join(doubtful))
    seconds = sum(entry.get("seconds", 0.0) for entry in metrics)
    if seconds > SECONDS:
        raise Refused(f"it trained for {seconds:.0f} seconds; {SECONDS} are allowed")
    if weights > MEGABYTES:
        raise Refused(f"its weights take {weights:.1f} MB; {MEGABYTES} are allowed")
    said = "{src} to {tgt} on {split} of {data}"
    wanted = {"src": "de", "tgt": "en", "split": "test", "data": "multi30k"}
    if any(about[key] != value for key, value in wanted.items()):
        raise Refused(
            f"its score is {said.format(**about)}; the race is {said.format(**wanted)}"
        )
    return {"score": about["bleu"], "seconds": seconds, "unit": "BLEU", "sha256": about["weights"]}


# --------------------------------------------------------------------------------------- the table


def read_table(path: Path) -> list[dict]:
    """The entries so far."""
    path = Path(path)
    if not path.exists():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        assert all(entry.keys() >= {"discipline", "name", "score"} for entry in entries)
    except (ValueError, AttributeError, AssertionError):
        raise Refused(
            f"{path} isn't a table of a race: move it away, or name another with --table"
        ) from None
    return entries


def show(entries: list[dict]) -> str:
    """The table, best first in each discipline."""
    lines = []
    for discipline in (*TIMED, "translator"):
        held = sorted((e for e in entries if e["discipline"] == discipline),
                      key=lambda e: -e["score"])
        if held:
            lines.append(f"{discipline} ({held[0]['unit']})")
        for place, entry in enumerate(held, start=1):
            spread = f"  {entry['low']:.2f} to {entry['high']:.2f}" if "low" in entry else ""
            lines.append(f"  {place:2}. {entry['score']:7.2f}{spread}  {entry['seconds']:8.3g} s  "
                         f"{entry['name']}, {entry['date']}")
    return "\n".join(lines) or "No entries yet."


def main(arguments=None) -> int:
    """Measure an entry, add it to the table, print the table; 1 if it is refused."""
    parser = argparse.ArgumentParser(prog="python -m exercises.race", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("discipline", nargs="?", choices=[*TIMED, "translator"])
    parser.add_argument("entry", nargs="?", type=Path, help="a Python file, or a run folder")
    parser.add_argument("--name", help="your name in the table")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    try:
        entries = read_table(options.table)
        if options.discipline:
            if not options.entry or not options.name:
                parser.error("give the entry and your name: bpe my_bpe.py --name Ana")
            measure = translator if options.discipline == "translator" else (
                lambda path: against_the_reference(options.discipline, path)
            )
            found = measure(options.entry)
            entries.append({
                "discipline": options.discipline, "name": options.name, **found,
                "date": datetime.date.today().isoformat(),
                "device": environment(torch.device("cpu"))["device"],
            })
            rows = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
            write_text(options.table, f"[\n{rows}\n]\n")
    except Refused as refused:
        print(f"No place: {refused}.", file=sys.stderr)
        return 1
    print(show(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
