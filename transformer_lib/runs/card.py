"""The card of a run: what it was, how it learned, what it writes, its score and its place."""

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from transformer_lib.runs import checksums
from transformer_lib.runs.checkpoint import read_config
from transformer_lib.runs.files import read_json_lines, sha256, write_json


@dataclass
class RunCard:
    """What `run_card` found; printed, the card. `curve` has a dictionary for each log entry."""

    run: str
    updates: int  # made so far
    seconds: float  # of training
    data: str
    split: str
    sentences: list[dict]  # some: source, yours, reference
    n_scored: int
    bleu: float
    low: float  # 95 % of the bootstrap's resamples lie between low and high
    high: float
    signature: str
    recorded: list[float]  # BLEU of the book's seeds on the split, empty for other data
    curve: list[dict] = field(repr=False)
    parts: list[str] | None = None  # of a reader's own Transformer: the parts that are theirs
    n_parts: int = 0
    planned: int = 0  # updates, if the run has not ended
    recorded_updates: int = 0  # of each of those seeds
    same_recipe: bool = False  # whether those seeds were trained by the run's own recipe

    def __str__(self):
        lines = [f"Run card of {self.run}"]
        if self.parts is not None:
            named = ", ".join(self.parts) or "none, so this is the library alone"
            told = f"{len(self.parts)} of {self.n_parts} parts: {named}"
            lines.append(_wrapped(told, "  yours     "))
        of = f" of {self.planned:,}" if self.planned else ""
        lines.append(
            f"  training  {self.updates:,}{of} updates on {self.data}, "
            f"{self.seconds / 60:.1f} minutes"
        )
        # The average of the last weights is measured as well, but isn't a point on the curve.
        losses = [e for e in self.curve if "validation_loss" in e and "averaged" not in e]
        if losses:
            shown = evenly_spaced(losses, 4)
            points = ", ".join(f"{e['validation_loss']:.2f} at {e['step']:,}" for e in shown)
            lines.append(_wrapped(f"validation loss {points}", "  curve     "))
        lines.append(
            f"  BLEU      {self.bleu:.1f} on {self.n_scored:,} sentences of the {self.split} set, "
            f"95 % interval {self.low:.1f} to {self.high:.1f}"
        )
        if self.recorded:
            scores = ", ".join(f"{score:.1f}" for score in self.recorded)
            each = f", {self.recorded_updates:,} updates each" if self.recorded_updates else ""
            recipe = "of this recipe" if self.same_recipe else "of another recipe"
            lines.append(
                _wrapped(f"{scores}: the book's recorded runs {recipe}{each}", "  compare   ")
            )
        for one in self.sentences:
            lines += [
                "",
                _wrapped(one["source"], "  "),
                _wrapped(one["yours"], "  → "),
                _wrapped(f"({one['reference']})", "    "),
            ]
        return "\n".join([*lines, "", f"  {self.signature}"])

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def _wrapped(text: str, first: str) -> str:
    """At most four lines of 76 characters, all indented like the first."""
    return textwrap.fill(
        text, 76, initial_indent=first, subsequent_indent=" " * len(first), max_lines=4,
        placeholder=" …",
    )


def evenly_spaced(entries: list, n: int) -> list:
    """At most n entries, evenly spread, the first and the last among them."""
    if len(entries) <= n:
        return entries
    return [entries[round(i * (len(entries) - 1) / (n - 1))] for i in range(n)]


def run_card(
    run_dir: str | Path,
    pairs: dict,
    translate: Callable[[list[str]], list[str]],
    split: str = "test",
    limit: int | None = None,
    shown: int = 10,
    **told: object,
) -> RunCard:
    """Translate a split with the run's model, score it, and sum the run up.

    pairs: {split: [(source, target), ...]}. translate: the model at work, texts in and texts out.
    limit: how many sentences of the split are translated and scored; None: all. shown: how many of
    them the card shows. told: further fields of RunCard. Leaves card.json in run_dir.
    """
    from transformer_lib import evaluation

    run_dir = Path(run_dir)
    config = read_config(run_dir)
    sources, references = map(list, zip(*pairs[split][:limit], strict=True))
    translated = translate(sources)
    scores = evaluation.score(translated, references)
    interval = evaluation.bootstrap(translated, references)
    checksums.require(run_dir)
    curve = read_json_lines(run_dir / "metrics.jsonl")
    updates, planned = max(entry["step"] for entry in curve), config["train"]["max_steps"]
    data = getattr(pairs, "source", "your pairs")
    recorded, recorded_updates, same_recipe = _recorded(config, data, split)
    step = max(1, len(sources) // shown)
    card = RunCard(
        run=run_dir.name,
        updates=updates,
        planned=0 if updates == planned else planned,
        seconds=sum(entry.get("seconds", 0.0) for entry in curve),
        data=data,
        split=split,
        sentences=[
            {"source": sources[i], "yours": translated[i], "reference": references[i]}
            for i in range(0, len(sources), step)
        ][:shown],
        n_scored=len(sources),
        bleu=scores.bleu,
        low=interval.low,
        high=interval.high,
        signature=scores.signature.split(";")[0],
        recorded=recorded,
        recorded_updates=recorded_updates,
        same_recipe=same_recipe,
        curve=curve,
        **told,
    )
    kept = {name: value for name, value in vars(card).items() if name != "curve"}
    with checksums.changing(run_dir, ["card.json"]):
        write_json(run_dir / "card.json", kept | {"chrf": scores.chrf})
    return card


def keep_scores(run_dir: str | Path, card: RunCard, beam_size: int, length_penalty: float) -> None:
    """Write a card's score as scores.json, next to the weights; an exported file carries it."""
    run_dir = Path(run_dir)
    checksums.require(run_dir)
    config = json.loads((run_dir / "config.json").read_text(encoding="utf-8"))
    kept = json.loads((run_dir / "card.json").read_text(encoding="utf-8"))
    scores = {
        "data": card.data, "src": config["data"].get("src"), "tgt": config["data"].get("tgt"),
        "split": card.split, "sentences": card.n_scored, "beam_size": beam_size,
        "length_penalty": length_penalty, "weights": sha256(run_dir / checksums.WEIGHTS),
        "bleu": card.bleu, "chrf": kept["chrf"], "signature": card.signature,
    }
    with checksums.changing(run_dir, ["scores.json"]):
        write_json(run_dir / "scores.json", scores)


def _recorded(about: dict, data: str, split: str) -> tuple[list[float], int, bool]:
    """Scores of recorded seeds of this run's recipe, or of the long run where none are recorded;
    how many updates they made; and whether it is this run's recipe."""
    from transformer_lib.runs import recipes
    from transformer_lib.runs.pretrained import results_dir

    if data != "multi30k":
        return [], 0, False
    long = f"multi30k-{about['data'].get('src')}-{about['data'].get('tgt')}"
    folders = {name: results_dir() / name for name in (f"{long}-short", long)}
    found = {name: path for name, path in folders.items() if (path / "seeds.json").exists()}
    same = [name for name in found if not recipes.differences(recipes.find(name), about)]
    for name in (*same, long):
        if name in found:
            seeds = json.loads((found[name] / "seeds.json").read_text(encoding="utf-8"))["seeds"]
            config = json.loads((found[name] / "config.json").read_text(encoding="utf-8"))
            scores = [seed[split]["bleu"] for seed in seeds if split in seed]
            return scores, config["train"]["max_steps"], name in same
    return [], 0, False
