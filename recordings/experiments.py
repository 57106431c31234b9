"""Training runs that belong together: several seeds of one recipe, or one change at a time.

    python -m recordings.experiments seeds multi30k-en-de --seeds 0 1 2
    python -m recordings.experiments seeds my-run --like multi30k-de-en --src en --tgt de
    python -m recordings.experiments ablations --jobs 8
    python -m recordings.experiments ablations --only "no label smoothing" --seeds 0
    python -m recordings.experiments ladder --seeds 0 1
    python -m recordings.experiments arms --seeds 0
    python -m recordings.experiments reverted --seeds 0 1
    python -m recordings.experiments tries --seeds 0

`seeds` passes every other option on to `train`; with --scores-only it keeps no weights, only
results/<run>.json.

Each run is one call of `python -m transformer_lib train` in its own process and its own folder
under runs/, so any of them can be interrupted, and goes on when you give this command again.
Choices are made on the validation set. `seeds` looks at the test set once for each seed, when the
best is chosen; the others never do. All add to what results/ already holds.
"""

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import accumulate
from pathlib import Path
from threading import Lock

from recordings.gate import recipe_lacks
from tools.arguments import count
from transformer_lib.runs import checksums, recipes
from transformer_lib.runs.files import read_json_lines, write_json
from transformer_lib.runs.folder import stale_scores
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.runs.settings import WATCHING, with_current_defaults

ROOT = Path(__file__).resolve().parents[1]


RUNS = ROOT / "runs"
SHIPPED = (
    "config.json environment.json metrics.jsonl tokenizer.json model.safetensors "
    "scores-validation.json scores.json translations.jsonl"
).split()

# A smaller model and a far shorter run than the recorded ones: minutes on one CPU core, so that
# many fit into an evening. What is small here need not be small after ten times the updates.
BASE = (
    "--data multi30k --n-encoder-layers 2 --n-decoder-layers 2 --vocab-size 4000 --dropout 0.1 "
    "--max-tokens 2048 --max-steps 900 --warmup 200 --cooldown 250 --peak-lr 0.004 --average 5 "
    "--checkpoint-every 25 --validate-every 900 --no-progress"
)
# What is changed against BASE, one thing at a time.
VARIANTS = {
    "unchanged": "",
    "no label smoothing": "--label-smoothing 0",
    "no cooldown": "--cooldown 0",
    "constant rate": "--schedule constant --cooldown 0",
    "paper's schedule": "--schedule noam --cooldown 0",
    "post-norm": "--no-norm-first",
    "BatchNorm": "--norm batch",
    "RMSNorm": "--norm rms",
    "untied embeddings": "--no-tie-embeddings",
    "words": "--tokenizer word --vocab-size 10000",
    "BPE 1,000": "--vocab-size 1000",
    "BPE 10,000": "--vocab-size 10000",
    "no positions": "--positional none",
    "learned positions": "--positional learned",
    "rotary positions": "--positional rotary",
    "ALiBi": "--positional alibi",
    "no dropout": "--dropout 0",
    "dropout 0.3": "--dropout 0.3",
    "no averaging": "--average 1",
}
# How the short recipe came about: each rung keeps the changes of those before it. A sixth of
# its updates, so that several seeds are affordable.
GROUND = (
    "--data multi30k --n-encoder-layers 3 --n-decoder-layers 2 --vocab-size 5000 --dropout 0.2 "
    "--max-tokens 2048 --max-steps 400 --warmup 100 --cooldown 200 --peak-lr 0.005 --average 1 "
    "--checkpoint-every 400 --validate-every 400 --no-progress"
)
CHANGES = {
    "start": "",
    "rotary positions": "--positional rotary",
    "Muon": "--optimizer muon",
    "untied embeddings": "--no-tie-embeddings",
    "three times the rate": "--peak-lr 0.015",
}
RUNGS = dict(zip(CHANGES, accumulate(CHANGES.values(), "{} {}".format), strict=True))
# The control for the last rung: its rate, without Muon.
CONTROL = "Adam at three times the rate"
RUNGS[CONTROL] = "--positional rotary --no-tie-embeddings --peak-lr 0.015"
# The settings of the short recipe that have no rung, each put back alone to the value in the long
# recipe, from the top rung. (The ladder's warm-up is a quarter of its run, longer than in either
# recipe: it's put to the share that the short recipe has, a sixteenth.)
TOP = f"{GROUND}{RUNGS['three times the rate']} --precision bf16"
REVERTED = {
    "the top rung": "",
    "4 encoder layers": "--n-encoder-layers 4",
    "4 decoder layers": "--n-decoder-layers 4",
    "10,000 subwords": "--vocab-size 10000",
    "dropout 0.3": "--dropout 0.3",
    "batches of 4,096": "--max-tokens 4096 --max-steps 200 --warmup 50 --cooldown 100",
    "a shorter warm-up": "--warmup 25",
    "5 checkpoints averaged": "--average 5 --checkpoint-every 15",
    "half as many updates": "--max-steps 200 --warmup 50 --cooldown 100",
}
# What a recipe for a GPU could be, in both directions: a third of the long recipe's updates.
LONG = (
    "--data multi30k --positional rotary --n-encoder-layers 4 --n-decoder-layers 4 --dropout 0.3 "
    "--max-tokens 4096 --max-steps 2000 --warmup 200 --cooldown 800 --both-directions 4 "
    "--average 5 --checkpoint-every 50 --validate-every 100 --no-validation-bleu --no-progress"
)
OPTIMIZERS = {
    "Adam": "--optimizer adam --peak-lr 0.004 --vocab-size 10000",
    "Muon": "--optimizer muon --peak-lr 0.01 --vocab-size 10000",
    "Muon, untied": "--optimizer muon --peak-lr 0.01 --vocab-size 8000 --no-tie-embeddings",
}
ARMS = {
    f"{src} to {tgt}, {name}{more}": f"--src {src} --tgt {tgt} {options}{r_drop}"
    for src, tgt in (("de", "en"), ("en", "de"))
    for name, options in OPTIMIZERS.items()
    for more, r_drop in (("", ""), (", R-Drop", " --r-drop 5"))
}
# What ten minutes of two newer cores could be spent on: the short recipe for longer, or a larger
# model for fewer updates. All of them take about the same time.
QUICK = "--recipe short --precision bf16 --optimizer muon --no-progress"
LONGER = "--peak-lr 0.015 --max-steps 5000 --cooldown 2500 --validate-every 1000"
LARGER = (
    "--vocab-size 10000 --tie-embeddings --max-tokens 4096 --peak-lr 0.012 --warmup 150 "
    "--validate-every 400 --n-encoder-layers 4"
)
TRIES = {
    "short recipe, 5,000 updates": LONGER,
    "the same with dropout 0.3": f"{LONGER} --dropout 0.3",
    "4 + 4 layers, 10,000 subwords": (
        f"{LARGER} --n-decoder-layers 4 --max-steps 1600 --cooldown 800"
    ),
    "4 + 2 layers, 10,000 subwords": (
        f"{LARGER} --n-decoder-layers 2 --max-steps 2100 --cooldown 1000"
    ),
    # For five minutes.
    "4 + 2 layers, dropout 0.1": (
        f"{LARGER} --validate-every 300 --n-decoder-layers 2 --max-steps 950 --cooldown 500 "
        "--dropout 0.1"
    ),
    "3 + 2 wider layers, dropout 0.1": (
        "--vocab-size 5000 --tie-embeddings --max-tokens 4096 --peak-lr 0.012 --warmup 120 "
        "--validate-every 300 --d-model 192 --n-heads 6 --d-ff 384 --max-steps 780 --cooldown 400 "
        "--dropout 0.1"
    ),
}
# What the grids lack, in the words of the pages that show them; results/<grid>.json says so, too.
MISSING = {
    "ablations": {
        "rate": "All these runs have one learning rate",
        "curve": "No training curve was kept",
        "edge": "that's the most we tried",  # of the vocabulary
    },
    "ladder": {
        "curve": "no training curve was kept", "edge": "no rate above 0.015 was tried",
    },
    "reverted": {
        "rate": "All of them have one learning rate", "edge": "each setting has one other value",
        "curve": "no training curve was kept",
    },
    "arms": {
        "rate": "we gave each optimiser only one learning rate",
        "seeds": "With one seed, that could be luck",
        "edge": "We tried only one weight for R-Drop's term",
    },
    "tries": {
        "seeds": "each recipe has one seed here", "edge": "we tried no deeper model than these",
    },
}
# What the seeds of a single recipe lack, in the words of the pages that show their scores.
MISSING_OF_A_RECIPE = {
    "rate": "Each of our recipes has one learning rate",
    "edge": "no recipe setting was tried with both lower and higher values",
    "seeds": "a single seed",
    "curve": "we didn't keep the training curve of every seed",
}
BEAM_SIZES = (1, 2, 3, 5, 10)
CURVE = ("step", "validation_loss", "validation_bleu")  # of each validation of a seed
LENGTH_PENALTIES = (0.5, 1, 1.5, 2, 2.5)  # of which each seed takes the best on validation


def command(*arguments: str, log: Path) -> None:
    """One call of the command line, in a process of its own; raises with the end of its log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf8") as file:
        code = subprocess.run(
            [sys.executable, "-m", "transformer_lib", *arguments],
            stdout=file, stderr=subprocess.STDOUT, cwd=ROOT,
        ).returncode
    if code:
        end = log.read_text(encoding="utf8")[-500:]
        raise RuntimeError(f"{shlex.join(arguments)} ended with {code}:\n{end}")


def train(folder: Path, options: list[str], penalties: tuple[float, ...] = (1,)) -> Path:
    """Train in `folder` (or go on, or find it done), then score the validation set by beam 5,
    with the best of these length penalties."""
    log = folder / "log.txt"
    # A finished run is only read, and one of other settings is refused.
    command("train", *options, "--run-dir", str(folder), log=log)
    if not scored(folder, "scores-validation.json"):
        choice = ["--length-penalty", *map(str, penalties)]
        command(
            "evaluate", "--run", str(folder), "--split", "validation", *choice, "--save", log=log
        )
    print(f"{folder.relative_to(RUNS)}: validation BLEU {read(folder)['bleu']:.2f}", flush=True)
    return folder


def scored(folder: Path, name: str) -> bool:
    """Whether these scores are there, and belong to the weights that are there."""
    scores, weights = folder / name, folder / "model.safetensors"
    if not scores.exists() or name in stale_scores(folder):
        return False
    return scores.stat().st_mtime_ns >= weights.stat().st_mtime_ns


def read(folder: Path, name: str = "scores-validation.json") -> dict:
    return json.loads((folder / name).read_text(encoding="utf8"))


def at_once(jobs: int, function, *arguments) -> list:
    """function over the arguments, `jobs` at a time; all are tried before an error is raised.

    After Ctrl-C no other begins; those under way get the signal, too, and end by themselves.
    """
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(function, *these) for these in zip(*arguments, strict=True)]
            wait(futures)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def spread(values: list[float]) -> dict:
    """Mean and standard deviation over seeds (None for a single one)."""
    return {
        "mean": statistics.mean(values),
        "sd": statistics.stdev(values) if len(values) > 1 else None,
    }


def seeds(
    run: str, numbers: list[int], options: list[str], jobs: int, scores_only: bool = False
) -> None:
    """Train every seed, choose on validation, then score the test set once for each.

    Seeds that results/<run> already holds are kept, so that a recipe may get its seeds in several
    sittings. The weights there are always those of the best seed on validation.
    scores_only: into results/<run>.json, without weights.
    """
    goal = results_dir() / run
    settle(goal)
    if scores_only:
        goal = goal.with_suffix(".json")
        rows = recorded_scores(goal, shlex.join(options))
    else:
        rows = recorded_seeds(goal)
    numbers = [seed for seed in numbers if seed not in rows]
    folders = {seed: RUNS / run / f"seed-{seed}" for seed in numbers}
    like = scores_only or any(option.split("=")[0] == "--like" for option in options)
    if not like and ((goal / "config.json").exists() or not options):
        options = ["--like", run, *options]
    given = [[*options, "--seed", str(seed)] for seed in numbers]
    at_once(jobs, train, folders.values(), given, [LENGTH_PENALTIES] * len(numbers))
    for folder in folders.values():
        if rows and not scores_only and (changed := other_settings(goal, folder)):
            raise ValueError(
                f"{goal} holds seeds of another recipe: {changed}. Nothing there was changed and "
                f"{folder} is kept. Give the new recipe another name, or move {goal} away."
            )
    validation = {seed: row["validation"]["bleu"] for seed, row in rows.items()}
    validation |= {seed: read(folder)["bleu"] for seed, folder in folders.items()}
    best = max(validation, key=validation.get)
    for seed, folder in folders.items():
        if not scored(folder, "scores.json"):
            command("evaluate", "--run", str(folder), "--save", log=folder / "log.txt")
        rows[seed] = seed_row(folder)
    ordered = [rows[seed] | {"seed": seed, "chosen": seed == best} for seed in sorted(rows)]
    summary = {
        "test_bleu": spread([row["test"]["bleu"] for row in ordered]),
        "missing": {what: MISSING_OF_A_RECIPE[what] for what in sorted(recipe_lacks(ordered))},
        "seeds": ordered,
    }
    if scores_only:
        write_json(goal, {"options": shlex.join(options)} | summary)
    else:
        publish(goal, folders.get(best), summary)
    print(f"{run}: test BLEU {summary['test_bleu']}; best on validation: seed {best}")


def publish(goal: Path, chosen: Path | None, summary: dict) -> None:
    """Give results/<run> its seeds.json and, where a new seed is the best, the files of that run.

    The new folder is built next to the old one and takes its place when it is complete: whatever
    stops this half-way, the scores in seeds.json are those of the weights next to them.
    """
    new, old = beside(goal, "new"), beside(goal, "old")
    try:
        if goal.exists():
            shutil.copytree(goal, new)
        new.mkdir(parents=True, exist_ok=True)
        for name in SHIPPED if chosen else ():
            shutil.copy(chosen / name, new / name)
        write_json(new / "seeds.json", summary)
        checksums.write(new, [path.name for path in new.iterdir() if path.name != checksums.NAME])
        if goal.exists():
            goal.rename(old)
        new.rename(goal)
    finally:
        settle(goal)


def settle(goal: Path) -> None:
    """Clear away what `publish` left; if it stopped between its renames, bring the old one back."""
    if beside(goal, "old").exists() and not goal.exists():
        beside(goal, "old").rename(goal)
    shutil.rmtree(beside(goal, "old").parent, ignore_errors=True)


def beside(goal: Path, name: str) -> Path:
    """Where a folder waits to take the place of `goal`, and where the replaced one goes."""
    return goal.parent / f".{goal.name}.partial" / name


def recorded_scores(goal: Path, options: str) -> dict[int, dict]:
    """The seeds that results/<run>.json holds, by number, all trained with these options."""
    if not goal.exists():
        return {}
    found = json.loads(goal.read_text(encoding="utf8"))
    if found["options"] != options:
        raise ValueError(
            f"{goal} holds seeds of {found['options']!r}, not of {options!r}: give the new recipe "
            "another name, or move that file away."
        )
    return {row["seed"]: row for row in found["seeds"]}


def recorded_seeds(goal: Path) -> dict[int, dict]:
    """The seeds that results/<run> holds, by number. A run without seeds.json is one seed."""
    if (goal / "seeds.json").exists():
        return {row["seed"]: row for row in read(goal, "seeds.json")["seeds"]}
    if not (goal / "config.json").exists():
        return {}
    for name in ("scores-validation.json", "scores.json"):
        if not (goal / name).exists():
            raise ValueError(
                f"{goal} has no {name}, by which its seed would be compared; "
                "`python -m transformer_lib evaluate --save` writes it."
            )
    return {read(goal, "config.json")["train"]["seed"]: seed_row(goal)}


def seed_row(folder: Path) -> dict:
    """The scores of a finished run, and how it got there."""
    where = read(folder, "environment.json")
    return {
        "training_seconds": where["training_seconds"],
        "on": {key: where[key] for key in ("device", "torch", "commit") if key in where},
        "validation": read(folder),
        "test": read(folder, "scores.json"),
        "curve": curve(folder),
    }


def curve(folder: Path) -> list[dict]:
    """What a run measured at each of its validations."""
    return [
        {key: value for key, value in entry.items() if key in CURVE}
        for entry in read_json_lines(folder / "metrics.jsonl")
        if "validation_loss" in entry and "averaged" not in entry
    ]


def other_settings(*folders: Path) -> list[str]:
    """The settings, other than the seed, in which two runs differ."""
    one, two = (with_current_defaults(read(folder, "config.json")) for folder in folders)
    return [
        f"{name} = {one[part][name]!r}, not {two[part][name]!r}"
        for part in ("model", "train", "data")
        for name in sorted(one[part].keys() & two[part].keys() - WATCHING - {"seed"})
        if one[part][name] != two[part][name]
    ]


def ablations(names: list[str], numbers: list[int], jobs: int) -> None:
    """Train each variant with each seed and write results/ablations.json with all that is done."""
    grid("ablations", BASE, VARIANTS, names, numbers, jobs)


def ladder(names: list[str], numbers: list[int], jobs: int) -> None:
    """The same for the rungs to the short recipe, into results/ladder.json."""
    grid("ladder", GROUND, RUNGS, names, numbers, jobs)


def reverted(names: list[str], numbers: list[int], jobs: int) -> None:
    """The same for settings of the short recipe put back, into results/reverted.json."""
    grid("reverted", TOP, REVERTED, names, numbers, jobs)


def arms(names: list[str], numbers: list[int], jobs: int) -> None:
    """The same for the arms of a longer recipe, with their curves, into results/arms.json."""
    grid("arms", LONG, ARMS, names, numbers, jobs, LENGTH_PENALTIES)


def tries(names: list[str], numbers: list[int], jobs: int) -> None:
    """The same for recipes that take ten or five minutes, with curves, into results/tries.json."""
    grid("tries", QUICK, TRIES, names, numbers, jobs, LENGTH_PENALTIES)


def grid(
    kind: str,
    base: str,
    variants: dict[str, str],
    names: list[str],
    numbers: list[int],
    jobs: int,
    penalties: tuple[float, ...] = (1,),
) -> None:
    """Train the named variants of a base, each with each seed, into results/<kind>.json."""
    unknown = sorted(set(names) - set(variants))
    if unknown:
        raise ValueError(f"no variant {unknown}; there are {sorted(variants)}.")
    pairs = [(name, seed) for seed in numbers for name in names]  # each seed through all variants
    folders = [RUNS / kind / name.replace(" ", "-") / f"seed-{seed}" for name, seed in pairs]
    options = [shlex.split(f"{base} {variants[name]} --fast --seed {seed}") for name, seed in pairs]
    goal = results_dir() / f"{kind}.json"
    done = {}
    if goal.exists():
        before = read(results_dir(), goal.name)
        done = {(row["variant"], row["seed"]): row for row in before["runs"]}
        other = {name for (name, _), row in done.items() if row["options"] != variants.get(name)}
        if before["base"] != base or other:
            raise ValueError(
                f"{goal} holds runs with other settings ({sorted(other) or 'another base'}), which "
                f"cannot be compared. Move it and runs/{kind} away to train them all again."
            )
    writing = Lock()  # runs that end together would write the same file

    def one(name, seed, folder, options):
        if (name, seed) not in done:
            if name == "no averaging":
                share_training(RUNS / kind / "unchanged" / folder.name, folder)
            train(folder, options, penalties)
            found = row(name, variants[name], seed, folder)
            with writing:
                done[name, seed] = found
                order = sorted(done, key=lambda key: (list(variants).index(key[0]), key[1]))
                rows = [done[key] for key in order]
                write_json(goal, {"base": base, "missing": MISSING[kind], "runs": rows})

    at_once(jobs, one, *zip(*pairs, strict=True), folders, options)


def share_training(unchanged: Path, folder: Path) -> None:
    """Copy a finished run, to average other checkpoints of it: only its end is computed again."""
    if folder.exists() or not (unchanged / "model.safetensors").exists():
        return
    partial = folder.with_name(f"{folder.name}.partial")  # half a copy must not look like a run
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(unchanged / "checkpoints", partial / "checkpoints")
    shutil.copy(unchanged / "tokenizer.json", partial)
    config = read(unchanged, "config.json")
    config["train"]["average"] = 1
    write_json(partial / "config.json", config)
    lines = (unchanged / "metrics.jsonl").read_text(encoding="utf8").splitlines(keepends=True)
    (partial / "metrics.jsonl").write_text("".join(lines[:-1]), encoding="utf8")  # no "averaged"
    partial.rename(folder)


def row(name: str, options: str, seed: int, folder: Path) -> dict:
    """What a finished run says about itself."""
    where = read(folder, "environment.json")
    last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf8").splitlines()[-1])
    found = {
        "variant": name,
        "options": options,
        "seed": seed,
        "validation_bleu": read(folder)["bleu"],
        "validation_chrf": read(folder)["chrf"],
        "validation_loss": last["validation_loss"],
        "seconds": where["training_seconds"],
        "device": where["device"],
        "commit": where["commit"],
    }
    if name in ARMS | TRIES:
        found["curve"] = curve(folder)
    if name == "unchanged":
        found["beam"] = {size: beam(folder, size) for size in BEAM_SIZES}
    return found


def beam(folder: Path, size: int) -> float:
    """Validation BLEU of a run with another beam."""
    from transformer_lib import data, evaluation, load_pretrained

    settings = read(folder, "config.json")["data"]
    rows = data.load_parallel(settings["source"], settings["src"], settings["tgt"])["validation"]
    sources, references = zip(*rows, strict=True)
    found = load_pretrained(folder).translate(list(sources), size, attention=False)
    return evaluation.score([result.text for result in found], list(references)).bleu


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    grids = {
        "ablations": (ablations, VARIANTS),
        "ladder": (ladder, RUNGS),
        "arms": (arms, ARMS),
        "reverted": (reverted, REVERTED),
        "tries": (tries, TRIES),
    }
    kinds = parser.add_subparsers(required=True, dest="kind", metavar=" | ".join(("seeds", *grids)))
    for kind in ("seeds", *grids):
        # An abbreviation could be an option of `train`, which has to be passed on.
        part = kinds.add_parser(kind, allow_abbrev=False)
        part.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
        part.add_argument("--jobs", type=count, default=1, help="runs at a time (default: 1)")
        if kind == "seeds":
            part.add_argument("run", help="name in results/, e.g. multi30k-de-en")
            part.add_argument("--scores-only", action="store_true", help="keep no weights")
        else:
            part.add_argument("--only", nargs="+", default=list(grids[kind][1]), metavar="VARIANT")
    given, options = parser.parse_known_args(arguments)
    if given.kind != "seeds" and options:
        parser.error(f"{given.kind} takes no {shlex.join(options)}; its settings are fixed.")
    try:
        if given.kind == "seeds":
            if not options and not (RUNS / given.run).exists():
                recipes.find(given.run)  # says what is missing before a folder is made for it
            seeds(given.run, given.seeds, options, given.jobs, given.scores_only)
        else:
            grids[given.kind][0](given.only, given.seeds, given.jobs)
    except (ValueError, RuntimeError, OSError) as error:
        print("error:", error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. What was trained is kept; the same command continues.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
