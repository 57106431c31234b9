"""What the recorded short runs say of one change to the recipe, by one rule for all pages.

results/ablations.json holds two or three seeds of each variant of a small recipe. Several chapters
conclude something from them, and all of them ask here, so that no two can answer differently.
"""

import json
from collections.abc import Sequence

from transformer_lib.runs.pretrained import results_dir
from transformer_lib.scoring.verdict import Verdict, compare_runs, pooled_spread

UNCHANGED = "unchanged"
# Every metric of a run: its name in the file, and which way is better.
METRICS = {
    "BLEU": ("validation_bleu", "higher"),
    "chrF": ("validation_chrf", "higher"),
    "loss": ("validation_loss", "lower"),
}
# What differs from "unchanged" in two choices is compared with a variant that has one of them.
BASES = {
    "words": "BPE 10,000",
    "constant rate": "no cooldown",
    "paper's schedule": "no cooldown",
}
UNTRAINED = {"no averaging"}  # other weights of the unchanged runs: their luck would count twice


def recorded() -> dict:
    """The file: its `base` options, and its `runs`."""
    path = results_dir() / "ablations.json"
    if not path.exists():
        return {"base": "", "runs": []}
    return json.loads(path.read_text(encoding="utf8"))


def runs() -> list[dict]:
    """The recorded runs; [] where none are recorded."""
    return recorded()["runs"]


def scores(metric: str = "BLEU") -> dict[str, dict[int, float]]:
    """{variant: {seed: score}}, in the order of the file. Raises ValueError for another metric."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    found: dict[str, dict[int, float]] = {}
    for run in runs():
        found.setdefault(run["variant"], {})[run["seed"]] = run[METRICS[metric][0]]
    return found


def base_of(variant: str) -> str:
    """The variant from which this one differs in a single choice."""
    _require_recorded(variant, scores())
    return BASES.get(variant, UNCHANGED)


def _require_recorded(variant: str, found: dict) -> None:
    if variant not in found:
        known = ", ".join(found) or "none"
        raise ValueError(f"{variant!r} is not a recorded variant; there are: {known}.")


def luck(metric: str = "BLEU") -> tuple[float, int]:
    """(s, f): how far one run scatters by this metric, from all variants, with seeds as blocks."""
    trained = [of for variant, of in scores(metric).items() if variant not in UNTRAINED]
    return pooled_spread(trained)


def change(variant: str, metric: str = "BLEU", base: str | None = None) -> Verdict:
    """What all the runs together allow to say about one change.

    base: the variant to compare with; by default the one that differs in a single choice.

    A variant has two or three seeds, whose own spread is hardly known. So the spread comes from
    all variants, and as a reader looks for winners among all of them, the 5 % are shared by all
    changes, whichever of them a page shows. Raises ValueError for a variant that isn't recorded.
    """
    found, base = scores(metric), base_of(variant) if base is None else base
    for one in (variant, base):
        _require_recorded(one, found)
    return compare_runs(
        found[variant], found[base], METRICS[metric][1], among=len(found) - 1, spread=luck(metric)
    )


def cells(
    variant: str, base: str | None = None, metrics: Sequence[str] = tuple(METRICS)
) -> list[str]:
    """A table's cell for each metric, such as "+1.90 (+1.08 to +2.71), better".

    Where a variant is its own base, the mean of its seeds.
    """
    found, base = [], base_of(variant) if base is None else base
    for metric in metrics:
        v, of_seeds = change(variant, metric, base), scores(metric)[variant].values()
        interval = f"{v.difference:+.2f} ({v.low:+.2f} to {v.high:+.2f}), {v.word}"
        found.append(f"{sum(of_seeds) / len(of_seeds):.2f}" if variant == base else interval)
    return found


def conditions() -> str:
    """Under which conditions all of this holds, for the caption of a table."""
    words = recorded()["base"].split()
    updates, rate = (words[words.index(option) + 1] for option in ("--max-steps", "--peak-lr"))
    n = len(scores()) - 1
    return (
        f"validation set, {updates} updates, one learning rate ({rate}), two or three seeds; 95 % "
        f"intervals for all {n} recorded changes at once"
    )
