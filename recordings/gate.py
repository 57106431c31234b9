"""What has to be true of a recording before a page may conclude anything from it.

Many conclusions drawn from small experiments fall at the first changed default. There are only a
few ways to fall, so every recording can be tested for each of them (tests/test_recordings.py):

began     The training loss of every run ends below what guessing costs, by a margin. An arm that
          never does is named in `did_not_learn`, and the page says so in these words.
fair      Arms that are compared agree in parameters, updates and tokens read. Where they do not,
          `differs` says so, in words that the page uses too.
edge      The weakest knob of the finding is named, and it was turned beyond the values that the
          page talks about: nothing is concluded from a grid that ends where the finding does.
rates     What is trained is trained at two learning rates or more.
missing   Where a grid has one rate, or ends on one side, its own file says so, and the page does.
          A single recipe is such a grid, too: `recipe_lacks`.
complete  Each record of a training run has its parameters, updates, tokens, curve and seconds,
          and the file has its threads, versions and command.

Verdicts themselves come from `transformer_lib.scoring.verdict.compare_runs`.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARGIN = 0.1  # the share of the guessing loss that a run must shed to count as begun
TOLERANCE = {"parameters": 0.1, "updates": 0.0, "tokens": 0.1}  # relative
RUN = {"parameters", "updates", "tokens", "curve"}
RATES = ("rate", "times")  # settings that are learning rates, or shares of one
IN_THE_CURVE = {"updates below", "steps below", "epochs below"}


@dataclass(frozen=True)
class Gate:
    """What a module of recordings claims about its own grid.

    chance: the loss of guessing, a number or a function of a cell's settings; None if the grid
    trains nothing and only measures a trained model.
    arms: the settings that the page compares; all others are held fixed in a comparison.
    edge: setting -> (lowest, highest) value that the page's sentence talks about; the grid must go
    beyond on each side that is not None. Where values have no order: setting -> {value, ...} that
    the finding was not made for, and that must be recorded, too.
    measures: parts of the grid that train nothing.
    did_not_learn: [(settings, words of the page), ...] of arms of which some or all runs stay at
    chance.
    differs: "parameters", "updates" or "tokens" -> words of the page that admit the difference.
    ends: sides of knobs beyond which there is nothing, such as "beam below": one is the least.
    missing: what the grid lacks ("rate", or a knob's side, "price above") -> words of the page that
    admit it. The file has the same words in `made`.
    began: where a loss says nothing (rewards, or a start from a trained model, which is far below
    chance at once): whether a record shows that its run began to learn.
    """

    chance: float | Callable[[dict], float] | None = None
    arms: tuple[str, ...] = ()
    edge: dict[str, tuple | set] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    did_not_learn: tuple[tuple[dict, str], ...] = ()
    differs: dict[str, str] = field(default_factory=dict)
    began: Callable[[dict], bool] | None = None
    ends: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def trains(self) -> bool:
        return self.chance is not None or self.began is not None

    def lacks(self, record: dict) -> bool:
        """Whether a record has to be made again to be complete."""
        return self.trained(record) and not record.get("run", {}).keys() >= RUN

    def trained(self, record: dict) -> bool:
        return self.trains and record["settings"].get("part") not in self.measures

    def guessing(self, settings: dict) -> float:
        return self.chance(settings) if callable(self.chance) else self.chance


def learned(record: dict, gate: Gate) -> bool:
    """Whether the training loss ended below the loss of guessing by MARGIN, or as `began` says."""
    if gate.began is not None:
        return gate.began(record)
    return record["run"]["curve"][-1][1] < (1 - MARGIN) * gate.guessing(record["settings"])


def faults(recorded: dict, gate: Gate, page: str) -> list[str]:
    """What keeps a page from concluding anything from a recording; [] if nothing does.

    recorded: the file. page: the source of the page's cells.
    """
    records = recorded["records"]
    found = [f"`made` has no {key}" for key in ("device", "python", "torch", "threads", "command")
             if key not in recorded.get("made", {})]
    if lacking := [r["settings"] for r in records if gate.lacks(r)]:
        return [*found, f"{len(lacking)} records have no training curve, the first {lacking[0]}"]
    if trained := [r for r in records if gate.trained(r)]:
        found += _not_begun(trained, gate, page) + _unfair(trained, gate, page)
    return found + _edges(records, gate) + _not_said(recorded, gate, page)


def not_said(lacking: set[str], missing: dict[str, str], recorded: dict, page: str) -> list[str]:
    """What a recording lacks and does not say, or says and does not lack; [] if all is said.

    missing: as in a Gate. recorded: where the file says it, in its key "missing".
    """
    found = [f"no second {what}, and `missing` does not say so" if what == "rate" else
             f"{what}: nothing is recorded, and `missing` does not say so"
             for what in sorted(lacking - missing.keys())]
    found += [f"{what} is not missing, as `missing` says"
              for what in sorted(missing.keys() - lacking)]
    found += [f"the page does not say: {words}" for words in missing.values() if words not in page]
    if recorded.get("missing", {}) != missing:
        found.append(f"the file does not say what it lacks: {missing}")
    return found


def recipe_lacks(seeds: list[dict]) -> set[str]:
    """What the scores of a single recipe lack, given those of its seeds.

    A recipe is one point: it has one rate, and an edge all around it.
    """
    lacking = {"rate", "edge"}
    lacking |= {"seeds"} if len(seeds) < 2 else set()
    return lacking | ({"curve"} if any("curve" not in row for row in seeds) else set())


def _not_said(recorded, gate, page) -> list[str]:
    trained = [r["settings"] for r in recorded["records"] if gate.trained(r)]
    rates = {settings[name] for settings in trained for name in RATES if name in settings}
    lacking = {"rate"} if trained and len(rates) < 2 else set()
    for name, limits in gate.edge.items():
        if not isinstance(limits, set):
            lacking |= {f"{name} {side}" for side, limit in
                        zip(("below", "above"), limits, strict=True) if limit is None}
    return not_said(lacking - IN_THE_CURVE - set(gate.ends), gate.missing, recorded["made"], page)


def _not_begun(records, gate, page) -> list[str]:
    found = []
    for settings, words in gate.did_not_learn:
        if words not in page:
            found.append(f"the page does not say: {words}")
        if all(learned(r, gate) for r in records if settings.items() <= r["settings"].items()):
            found.append(f"{settings} is said not to learn, but learns")
    said = [settings.items() for settings, _ in gate.did_not_learn]
    return found + [
        f"never began: {r['settings']}, last loss {r['run']['curve'][-1][1]}"
        for r in records
        if not learned(r, gate) and not any(s <= r["settings"].items() for s in said)
    ]


def _unfair(records, gate, page) -> list[str]:
    found = [f"the page does not say: {words}" for words in gate.differs.values()
             if words not in page]
    unequal = set()

    def rest(record):
        settings = record["settings"].items()
        return json.dumps([(k, v) for k, v in sorted(settings) if k not in (*gate.arms, "seed")])

    for _, group in itertools.groupby(sorted(records, key=rest), rest):
        runs = [r["run"] for r in group]
        for what, allowed in TOLERANCE.items():
            values = [run[what] for run in runs if run[what] is not None]
            if values and max(values) > (1 + allowed) * min(values):
                unequal.add(what)
    found += [f"arms differ in {what}, and `differs` does not say so"
              for what in sorted(unequal - gate.differs.keys())]
    return found + [f"arms do not differ in {what}, as `differs` says"
                    for what in sorted(gate.differs.keys() - unequal)]


def _edges(records, gate) -> list[str]:
    found = [] if gate.edge else ["no knob is named whose edge was crossed"]
    for name, limits in gate.edge.items():
        values = [r["settings"][name] for r in records if r["settings"].get(name) is not None]
        if isinstance(limits, set):
            found += [f"{name}: {v} is not recorded" for v in sorted(limits - set(values))]
            continue
        low, high = limits
        if low is not None and not any(value < low for value in values):
            found.append(f"{name}: nothing below {low} is recorded")
        if high is not None and not any(value > high for value in values):
            found.append(f"{name}: nothing above {high} is recorded")
    return found


def page_source(*names: str) -> str:
    """All cells of these pages, one after the other."""
    found = []
    for name in names:
        page = json.loads((ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf8"))
        found += ["".join(cell["source"]) for cell in page["cells"]]
    return "\n".join(found)
