"""The card of a run of one's own: what was one's own, how it learned, what it says, its score."""

import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from transformer_lib.runs.files import read_json_lines, sha256, write_json

PENALTY = 1.0  # of the lengths in beam search: nothing is chosen on the validation set


@dataclass
class RunCard:
    """What `run_card` found; printed, the card. `curve` has a dictionary for each log entry."""

    run: str
    parts: list[str]  # yours
    n_parts: int
    updates: int
    seconds: float  # of training
    data: str
    split: str
    sentences: list[dict]  # ten: source, yours, reference
    n_scored: int
    bleu: float
    low: float  # 95 % of the bootstrap's resamples lie between low and high
    high: float
    signature: str
    recorded: list[float]  # test BLEU of the book's seeds, empty if the data is other
    curve: list[dict] = field(repr=False)

    def __str__(self):
        lines = [
            f"Run card of {self.run}",
            _wrapped(
                f"{len(self.parts)} of {self.n_parts} parts: "
                f"{', '.join(self.parts) or 'none, so this is the library alone'}",
                "  yours     ",
            ),
            f"  training  {self.updates:,} updates on {self.data}, {self.seconds / 60:.1f} minutes",
        ]
        # The average of the last weights is measured as well, and is no point of the curve.
        losses = [e for e in self.curve if "validation_loss" in e and "averaged" not in e]
        if losses:
            told = [f"{e['validation_loss']:.2f} at {e['step']:,}" for e in _some(losses, 4)]
            lines.append(_wrapped(f"validation loss {', '.join(told)}", "  curve     "))
        lines.append(
            f"  BLEU      {self.bleu:.1f} on {self.n_scored:,} sentences of {self.split}, "
            f"95 % between {self.low:.1f} and {self.high:.1f}"
        )
        if self.recorded:
            scores = ", ".join(f"{score:.1f}" for score in self.recorded)
            lines.append(f"  beside    {scores}: the book's recorded seeds, trained far longer")
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
    """At most four lines of 76 characters, the further ones as far to the right as the first."""
    return textwrap.fill(
        text, 76, initial_indent=first, subsequent_indent=" " * len(first), max_lines=4,
        placeholder=" …",
    )  # fmt: skip


def _some(entries: list, n: int) -> list:
    """At most n entries, evenly spread, the first and the last among them."""
    if len(entries) <= n:
        return entries
    return [entries[round(i * (len(entries) - 1) / (n - 1))] for i in range(n)]


def run_card(
    run_dir: str | Path, pairs, split: str = "test", limit: int | None = None,
    beam_size: int = 5, where: str | Path | None = None,
) -> RunCard:  # fmt: skip
    """Translate a split with your parts and the run's weights, score it, and tell the run.

    limit: how many of its sentences are translated and scored; None: all. where: the folder of
    your parts. Leaves card.json and scores.json in run_dir; the exported file carries the scores.
    """
    from transformer_lib import evaluation, own

    run_dir = Path(run_dir)
    model, tokenizer = own.load(run_dir, where)
    sources, references = map(list, zip(*pairs[split][:limit], strict=True))
    translated = own.translate(model, tokenizer, sources, beam_size, PENALTY)
    scores = evaluation.score(translated, references)
    interval = evaluation.bootstrap(translated, references)
    config = json.loads((run_dir / "config.json").read_text(encoding="utf-8"))
    curve = read_json_lines(run_dir / "metrics.jsonl")
    environment = json.loads((run_dir / "environment.json").read_text(encoding="utf-8"))
    data = getattr(pairs, "source", "your pairs")
    step = max(1, len(sources) // 10)
    card = RunCard(
        run=run_dir.name,
        parts=[name for name in own.PARTS if name in config.get("data", {}).get("parts", [])],
        n_parts=len(own.PARTS),
        updates=config["train"]["max_steps"],
        seconds=environment.get("training_seconds", 0.0),
        data=data,
        split=split,
        sentences=[
            {"source": sources[i], "yours": translated[i], "reference": references[i]}
            for i in range(0, len(sources), step)
        ][:10],
        n_scored=len(sources),
        bleu=scores.bleu,
        low=interval.low,
        high=interval.high,
        signature=scores.signature.split(";")[0],
        recorded=_recorded(config["data"], data, split),
        curve=curve,
    )
    told = {name: value for name, value in vars(card).items() if name != "curve"}
    write_json(run_dir / "card.json", told)
    write_json(
        run_dir / "scores.json",
        {
            "data": data, "src": config["data"].get("src"), "tgt": config["data"].get("tgt"),
            "split": split, "sentences": len(sources), "beam_size": beam_size,
            "length_penalty": PENALTY, "weights": sha256(run_dir / "model.safetensors"),
            "bleu": scores.bleu, "chrf": scores.chrf, "signature": scores.signature,
        },
    )  # fmt: skip
    return card


def _recorded(about: dict, data: str, split: str) -> list[float]:
    """Scores of the seeds of the recorded run between the same languages, on the same data."""
    from transformer_lib.runs.pretrained import results_dir

    path = results_dir() / f"multi30k-{about.get('src')}-{about.get('tgt')}" / "seeds.json"
    if data != "multi30k" or split != "test" or not path.exists():
        return []
    seeds = json.loads(path.read_text(encoding="utf-8"))["seeds"]
    return [seed["test"]["bleu"] for seed in seeds]
