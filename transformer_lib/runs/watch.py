"""What a reader sees while a model trains: the curve, the speed, and the same sentences again and
again, from the first babble on. It is kept in the run folder, so that a resumed run shows it all.
"""

import signal
import statistics
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

from transformer_lib.config import TrainConfig
from transformer_lib.runs import checksums
from transformer_lib.runs.card import evenly_spaced
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.speed import format_seconds

NAME = "sentences.jsonl"
ROW = ("step", "sentences", "translations")  # of a line of that file
LATEST = 8  # speeds, whose median is shown


class Watch:
    """Pass it to `training.train` as on_log.

    translate: texts in, texts out, by the model that trains. sentences: what is translated at each
    validation, and at the first log entry at or after each update of `looks`; the first sentence is
    shown at every look, the others at a few. curve: a visualize.LiveCurve. flops:
    operations of one target token; peak: what a matrix product reaches here, in FLOP per second.
    stop_after: the update after which the run is stopped as by Ctrl-C; None: it goes to its end.
    """

    def __init__(
        self,
        run_dir: str | Path,
        config: TrainConfig,
        translate: Callable[[list[str]], list[str]],
        sentences: list[str],
        curve: object,
        flops: float = 0.0,
        peak: float = 0.0,
        stop_after: int | None = None,
        looks: tuple[int, ...] = (),
    ):
        self.path, self.config, self.translate = Path(run_dir) / NAME, config, translate
        self.sentences, self.curve, self.stop_after = sentences, curve, stop_after
        self.flops, self.peak, self.looks = flops, peak, looks
        self.speeds: list[tuple[float, float]] = []  # (tokens, updates) a second
        self.logged = self.reached = 0
        self.said: dict[int, list[str]] = {}  # update -> translations
        if self.path.exists():
            checksums.require(run_dir, NAME)
            self.said = {
                step: said
                for step, asked, said in map(itemgetter(*ROW), checksums.read_lines(self.path, ROW))
                if asked == sentences
            }
        log = self.path.with_name("metrics.jsonl")
        for entry in read_json_lines(log) if log.exists() else []:
            self.reached = entry["step"]
            if "averaged" not in entry:
                curve._add(entry, curve.points)

    def __call__(self, entry: dict) -> None:
        """An entry of the log."""
        before, step = self.reached, entry["step"]
        self.reached = step
        if "tokens_per_second" in entry and step > self.logged:
            updates = (step - self.logged) / entry["seconds"] if self.logged else 0.0
            self.speeds.append((entry["tokens_per_second"], updates))
            self.logged = step
        if "validation_loss" in entry or any(before < look <= step for look in self.looks):
            self.said[step] = self.translate(self.sentences)
            checksums.write_lines(self.path, [
                dict(zip(ROW, (at, self.sentences, texts), strict=True))
                for at, texts in sorted(self.said.items()) if at <= step
            ])
        self.curve.below = self._below()
        if "averaged" not in entry:
            for name, points in self.curve.points.items():  # after a crash, updates are repeated
                while name in entry and points and points[-1][0] >= step:
                    points.pop()
            self.curve(entry)
        if "loss" in entry and self.stop_after == step:
            signal.raise_signal(signal.SIGINT)

    def tokens_per_second(self) -> float:
        """The median of the latest entries."""
        return statistics.median(speed for speed, _ in self.speeds[-LATEST:])

    def utilisation(self) -> float:
        """Operations achieved, as a share of what a matrix product reaches; 0 if not known."""
        return self.tokens_per_second() * self.flops / self.peak if self.peak else 0.0

    def status(self) -> str:
        """One line: how far, how fast, how much longer."""
        if not self.speeds:
            return f"update {self.reached:,} of {self.config.max_steps:,}"
        parts = [f"update {self.reached:,} of {self.config.max_steps:,}",
                 f"{self.tokens_per_second():,.0f} target tokens a second"]
        if self.peak:
            parts.append(f"utilisation {self.utilisation():.0%}")
        speeds = [updates for _, updates in self.speeds[-LATEST:] if updates]
        left = self.config.max_steps - self.reached
        if speeds and left:
            seconds = left / statistics.median(speeds)
            parts.append(f"time left {format_seconds(seconds)} (training only)")
        return ", ".join(parts)

    def _below(self) -> str:
        from transformer_lib.visualize.stills import moments

        looked = sorted(at for at in self.said if at <= self.reached)
        text = f"<p>{self.status()}</p>"
        # The first sentence is followed closely, the others at a few moments.
        for part, most in ((slice(0, 1), 10), (slice(1, None), 4)):
            if looked and self.sentences[part]:
                shown = [(f"{at:,}", self.said[at][part]) for at in evenly_spaced(looked, most)]
                text += moments(self.sentences[part], shown)
        return text
