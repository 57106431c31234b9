"""Your guesses, how sure you were of each, and whether that was justified.

    guesses.keep("heads for four questions", "4", sure=0.7)      # before you read on
    guesses.settle("heads for four questions", right=False)     # when you know
    guesses.calibration()                                       # after a few of them

If you're well calibrated, you're right in seven out of ten guesses that you were 70 % sure of. The
Brier score is the mean of (sure - right)², where right is 1 or 0: 0 is perfect, and 0.25 is what
"50 % sure" of everything gets.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from exercises.wording import counted
from transformer_lib.guards import require_types
from transformer_lib.runs.files import write_text

__all__ = ["Calibration", "Guess", "all_kept", "calibration", "file", "keep", "keep_in", "settle"]

GROUPS = ((0.0, 0.55), (0.55, 0.75), (0.75, 0.95), (0.95, 1.001))  # of how sure: from, to below
ENOUGH = 10  # guesses before the score says anything

_chosen: Path | None = None  # the file of keep_in


@dataclass
class Guess:
    """One guess: what you thought, how sure you were, and whether it was right, if known."""

    name: str
    guess: str
    sure: float
    right: bool | None = None


# ---------------------------------------------------------------------------- where they are kept


def file() -> Path:
    """Where your guesses are kept: what keep_in chose, else MY_GUESSES, else my-guesses.json in the
    working directory, which the notebooks of the book share.
    """
    return _chosen or Path(os.environ.get("MY_GUESSES", "my-guesses.json"))


def keep_in(path: str | Path) -> None:
    """Keep your guesses in this file, and take them from it."""
    global _chosen
    if not isinstance(path, str | Path):
        raise TypeError(f"path is {path!r:.60}; expected the name of a file.")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; expected the name of a file.")
    _chosen = Path(path)


def all_kept() -> list[Guess]:
    """Your guesses, in the order in which you made them."""
    if not file().exists():
        return []
    try:
        kept = [Guess(**entry) for entry in json.loads(file().read_text(encoding="utf-8"))]
        for guess in kept:
            require_types(guess)
        return kept
    except (ValueError, TypeError):
        raise ValueError(
            f"{file()} does not contain guesses in the form that `keep` writes: move it away, "
            f"and a new one will be started."
        ) from None


def _write(kept: list[Guess]) -> None:
    file().parent.mkdir(parents=True, exist_ok=True)
    entries = ",\n".join(json.dumps(asdict(guess), ensure_ascii=False) for guess in kept)
    write_text(file(), f"[\n{entries}\n]\n")


# ------------------------------------------------------------------------------ making and settling


def keep(name: str, guess, sure: float) -> None:
    """Keep a guess before you know the answer.

    name: what it is about, to find it again. guess: what you think. sure: how sure you are that it
    is right, from 0 to 1; 0.7 is 70 %. A second guess under the same name replaces the first,
    unless the first is settled.
    """
    number = isinstance(sure, int | float) and not isinstance(sure, bool)
    if not number or not 0 <= sure <= 1:
        raise ValueError(f"sure is {sure!r}; give a number from 0 to 1: 0.7 means 70 % sure.")
    if not str(name).strip():
        raise ValueError(f"name is {name!r}; expected a few words to find it by.")
    kept = all_kept()
    old = next((g for g in kept if g.name == name), None)
    if old is not None and old.right is not None:
        raise ValueError(
            f"your guess on {name!r} is settled: you were {_word(old.right)}. Give the new one "
            "another name."
        )
    _write([*(g for g in kept if g is not old), Guess(str(name), str(guess), float(sure))])
    print(f"Kept: {guess}, {sure:.0%} sure. Settle it with guesses.settle({name!r}, right=...).")


def settle(name: str, right: bool) -> None:
    """Say whether a guess was right, now that you know."""
    kept = all_kept()
    found = next((g for g in kept if g.name == name), None)
    if found is None:
        waiting = ", ".join(repr(g.name) for g in kept if g.right is None) or "none"
        raise ValueError(f"no guess on {name!r} is kept; those that wait for an answer: {waiting}.")
    if not isinstance(right, bool):
        raise ValueError(f"right is {right!r}; expected True or False.")
    found.right = right
    _write(kept)
    print(f"You guessed {found.guess}, {found.sure:.0%} sure, and you were {_word(right)}.")


def _word(right: bool) -> str:
    return "right" if right else "wrong"


# ------------------------------------------------------------------------------------- calibration


@dataclass(frozen=True)
class Calibration:
    """What your settled guesses say together; in a notebook, as a chart.

    groups: (mean of how sure you were, share that was right, how many, an interval for the share).
    """

    brier: float
    hits: float  # the share that was right
    sure: float  # the mean of how sure you were
    n: int
    groups: tuple[tuple[float, float, int, tuple[float, float]], ...]

    def __str__(self) -> str:
        lines = [f"{counted(self.n, 'guess', 'guesses')}, {self.hits:.0%} right, "
                 f"{self.sure:.0%} sure on average. "
                 f"Brier score {self.brier:.3f}; always saying {self.hits:.0%} would get "
                 f"{self.hits * (1 - self.hits):.3f}."]
        for sure, hits, n, (low, high) in self.groups:
            lines.append(f"  about {sure:4.0%} sure: {hits:4.0%} right, of {n:2} "
                         f"(in the long run between {low:.0%} and {high:.0%})")
        if self.n < ENOUGH:
            lines.append(f"With fewer than {ENOUGH} guesses, that's mostly luck.")
            return "\n".join(lines)
        off = {"overconfident" if sure > high else "underconfident"
               for sure, _, _, (low, high) in self.groups if not low <= sure <= high}
        lines.append(
            f"You're {' and '.join(sorted(off))} where your confidence is outside that range."
            if off else "Your confidence is within that range in every group."
        )
        return "\n".join(lines)

    def chart(self):
        """A dot for each group: how sure you were, and how often you were right."""
        from transformer_lib.visualize.theme import ROLE_COLOURS, themed_altair

        alt = themed_altair()
        rows = [{"sure": sure, "right": hits, "guesses": n, "low": low, "high": high}
                for sure, hits, n, (low, high) in self.groups]
        share = alt.Scale(domain=[0, 1])
        line = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])).mark_line(
            color="grey", strokeDash=[4, 4]
        ).encode(x="x:Q", y="y:Q")
        base = alt.Chart(alt.InlineData(values=rows), width=320, height=320).encode(
            x=alt.X("sure:Q", title="how sure you were", scale=share, axis=alt.Axis(format="%")),
            tooltip=["sure:Q", "right:Q", "guesses:Q"],
        )
        colour = ROLE_COLOURS["target"]
        bars = base.mark_rule(color=colour).encode(y="low:Q", y2="high:Q")
        dots = base.mark_circle(color=colour, opacity=1).encode(
            y=alt.Y("right:Q", title="how often you were right", scale=share,
                    axis=alt.Axis(format="%")),
            size=alt.Size("guesses:Q", legend=None, scale=alt.Scale(range=[60, 400])),
        )
        return (line + bars + dots).properties(
            title="On the line you are as good as you think", description=str(self)
        )


def wilson(right: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The shares that `right` of `n` does not rule out: a 95 % interval (Wilson 1927)."""
    if not 0 <= right <= n or n < 1:
        raise ValueError(f"{right} right of {n}: expected 0 to n right, with n at least 1.")
    middle = (right + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(right * (n - right) / n + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def calibration() -> Calibration | None:
    """How well you know what you know: prints it, and returns it; None while nothing is settled."""
    kept = all_kept()
    settled = [g for g in kept if g.right is not None]
    if not settled:
        print(
            f"Nothing to score yet: {counted(len(kept), 'guess', 'guesses')} kept, none settled. "
            'Say guesses.settle("its name", right=True) or right=False.' if kept else
            f'Nothing is kept yet in {file()}. Begin with guesses.keep("a name", "your guess", '
            "sure=0.7), before you read the answer."
        )
        return None
    groups = []
    for low, high in GROUPS:
        held = [g for g in settled if low <= g.sure < high]
        if held:
            right = sum(g.right for g in held)
            mean = sum(g.sure for g in held) / len(held)
            groups.append((mean, right / len(held), len(held), wilson(right, len(held))))
    n = len(settled)
    found = Calibration(
        brier=sum((g.sure - g.right) ** 2 for g in settled) / n,
        hits=sum(g.right for g in settled) / n,
        sure=sum(g.sure for g in settled) / n,
        n=n,
        groups=tuple(groups),
    )
    print(found)
    return found
