"""Everything that needs a GPU, in one command; and a second one that brings the results home.

    make gpu                      (or: python -m recordings.gpu run)
    make gpu-home FROM=folder     (or: python -m recordings.gpu home folder)

`run` works through STEPS, the most valuable first, each in a process of its own with its own log.
A step that is done is not done again; one that was stopped goes on, training from its checkpoints.
So you can give the command as often as you have time: `--minutes 9` stops by itself. Its work is in
`_build/gpu`. If $OUT names a folder, what should come home is also packed into it after each step,
in archives of at most 15 MB.

`home` takes such a folder, packed or not, into results/. What was made on a CPU or at the size of
a rehearsal is refused, unless `--anyway` says that you mean it.

`run --rehearse` does the same on a CPU with the mini corpus, on a small scale: it shows that every
part works, before minutes on a GPU are spent on it.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recordings import experiments
from transformer_lib.runs import checksums
from transformer_lib.runs.files import read_json_lines, write_json
from transformer_lib.runs.pretrained import results_dir, run_info
from transformer_lib.runs.settings import with_current_defaults

ROOT = Path(__file__).resolve().parents[1]


WORK = ROOT / "_build" / "gpu"
SEEDS = 0, 1, 2
GOAL = 42.0  # validation BLEU (greedy) to which the fast recipe is timed
ARCHIVE = 15_000_000  # bytes of one
LIBRARY = [sys.executable, "-m", "transformer_lib"]
# A rehearsal trains this, on the mini corpus.
SMALL = shlex.split(
    "--data mini --d-model 16 --n-heads 2 --d-ff 32 --n-encoder-layers 1 --n-decoder-layers 1 "
    "--vocab-size 200 --max-steps 4 --warmup 2 --cooldown 0 --max-tokens 512 --average 1 "
    "--checkpoint-every 2 --validate-every 4 --no-validation-bleu --device cpu --precision fp32"
)


@dataclass(frozen=True)
class Step:
    """Commands that belong together, run one after another; `name` is that of their log."""

    name: str
    commands: list[list[str]]


# ------------------------------------------------------------------------------------- the steps


def recipe(src: str, tgt: str) -> list[str]:
    """The options that repeat the recorded run from src to tgt.

    A run with a setting that is gone cannot be repeated: then the other direction's recipe is used.
    """
    for one, other in ((src, tgt), (tgt, src)):
        name = f"multi30k-{one}-{other}"
        with contextlib.suppress(ValueError):
            with_current_defaults(run_info(name))
            return ["--like", name, "--src", src, "--tgt", tgt]
    raise ValueError(f"results/ holds no run of {src} and {tgt} that can be trained again.")


def training(work: Path, name: str, options: list[str], small: bool) -> Step:
    """Train; choose the length penalty on the validation set; then look at the test set once."""
    folder = str(work / "runs" / name)
    place = ["--device", "cpu"] if small else ["--device", "cuda"]
    options = [*options, *(SMALL if small else place), "--no-progress"]
    penalties = map(str, (1,) if small else experiments.LENGTH_PENALTIES)
    evaluate = [*LIBRARY, "evaluate", "--run", folder, *place, "--save"]
    return Step(name.replace("/", "-"), [
        [*LIBRARY, "train", *options, "--run-dir", folder],
        [*evaluate, "--split", "validation", "--length-penalty", *penalties],
        evaluate,
    ])


def notebook(work: Path, path: Path) -> Step:
    """Run a notebook from top to bottom; the page with its outputs is kept."""
    return Step(f"notebook-{path.stem}", [
        [sys.executable, __file__, "notebook", str(path), str(work / "notebooks" / path.name)]
    ])


def steps(work: Path = WORK, small: bool = False) -> list[Step]:
    """Everything, the most valuable first."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests = ["tests/test_pretend_device.py", *(["-k", "attention_of_the"] if small else [])]
    bench = [sys.executable, "-m", "benchmarks", *(["--quick"] if small else [])]
    book = ROOT / "book"
    pages = sorted(page for number in (10, 13, 15) for page in book.glob(f"{number}_*.ipynb"))
    return [
        Step("tests", [[*pytest, *tests]]),
        *(
            training(work, f"multi30k-{src}-{tgt}/seed-{seed}",
                     [*recipe(src, tgt), "--seed", str(seed)], small)
            for src, tgt in (("de", "en"), ("en", "de"))
            for seed in SEEDS
        ),
        training(work, "fast/seed-0", [*recipe("de", "en"), "--fast", "--validate-every", "250"],
                 small),
        Step("benchmark", [[*bench, "--out", str(work / "benchmark")]]),
        *(notebook(work, page) for page in (*book.glob("16_*.ipynb"), *pages)),
    ]


# ------------------------------------------------------------------------------------------- run


def run(work: Path, small: bool, minutes: float | None, only: list[str]) -> int:
    """Do what is not done; returns 0, 1 if a step failed, 75 if time ran out before the end.

    A failure does not stop the others.
    """
    where = require_gpu(small)
    end = time.monotonic() + 60 * minutes if minutes else None
    failed = []
    for step in steps(work, small):
        if only and not any(part in step.name for part in only):
            continue
        record = work / "steps" / f"{step.name}.json"
        if record.exists() and json.loads(record.read_text("utf8"))["rehearsed"] == small:
            print(f"{step.name}: done before")
            continue
        print(f"{step.name}: ", end="", flush=True)
        begin = time.monotonic()
        code = perform(step, work, small, end)
        seconds = time.monotonic() - begin
        if code is None:
            print(f"stopped after {seconds:.0f} s, out of time; the same command continues.")
            pack(work)
            return 75
        log = work / "logs" / f"{step.name}.log"
        print(f"{seconds:.0f} s" if not code else f"FAILED ({code}); see {log}", flush=True)
        if code:
            failed.append(step.name)
            continue
        date = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(make(record), where | {"step": step.name, "rehearsed": small, "date": date,
                                          "seconds": round(seconds, 2)})
        pack(work)
    print("failed: " + ", ".join(failed) if failed else f"Everything is done, in {work}.")
    return 1 if failed else 0


def require_gpu(small: bool) -> dict:
    """Where we are. Raises ValueError before minutes are lost: no GPU, or no Multi30k."""
    import torch

    from transformer_lib.data import load_parallel
    from transformer_lib.runs.device import environment

    if not small and not torch.cuda.is_available():
        raise ValueError(
            "torch sees no GPU here. `python -m recordings.gpu run --rehearse` tries all parts on "
            "a CPU."
        )
    load_parallel("mini" if small else "multi30k")
    device = torch.device("cpu" if small else "cuda", None if small else 0)
    known = environment(device)
    return {name: known[name] for name in ("device", "torch", "commit")}


def perform(step: Step, work: Path, small: bool, end: float | None) -> int | None:
    """The exit code of a step's commands; None if time ran out first.

    Then they get the signal of Ctrl-C, after which training saves, and half a minute.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background by a script: the commands would ignore it, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    variables = {"BOOK_SCALE": "smoke" if small else "full", "PYTHONUNBUFFERED": "1",
                 "MY_RUNS": str(work / "my-runs")}
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with open(make(work / "logs" / f"{step.name}.log"), "a", encoding="utf8") as log:
        for command in step.commands:
            print("$", shlex.join(command), file=log, flush=True)
            process = subprocess.Popen(
                command, cwd=ROOT, env=os.environ | variables, stdout=log, stderr=log
            )
            try:
                process.wait(None if end is None else max(1, end - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                if isinstance(reason, KeyboardInterrupt):
                    raise
                return None
            if process.returncode:
                return process.returncode
    return 0


def run_notebook(path: Path, goal: Path) -> None:
    """Execute a notebook in a fresh kernel; keep it with its outputs, also after an error."""
    import nbformat
    from nbclient import NotebookClient

    page = nbformat.read(path, as_version=4)
    client = NotebookClient(page, timeout=None, kernel_name="python3",
                            resources={"metadata": {"path": str(path.parent)}})
    try:
        client.execute()
    finally:
        nbformat.write(page, make(goal))


def make(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# ------------------------------------------------------------------------------------- come home


def worth_keeping(work: Path) -> list[Path]:
    """What comes home: records, logs, pages, and of each run what results/ ships."""
    found = [path for name in ("steps", "logs", "notebooks", "benchmark")
             for path in sorted((work / name).rglob("*")) if path.is_file()]
    names = {*experiments.SHIPPED, checksums.NAME, "translations-validation.jsonl"}
    return found + [path for path in sorted((work / "runs").glob("*/*/*")) if path.name in names]


def pack(work: Path) -> None:
    """Fill $OUT with archives of what is worth keeping; nothing without $OUT."""
    if not os.environ.get("OUT"):
        return
    out, number, size = Path(os.environ["OUT"]), 0, 0
    out.mkdir(parents=True, exist_ok=True)
    archive = None
    for path in worth_keeping(work):
        if archive is None or size + path.stat().st_size > ARCHIVE:
            if archive:
                archive.close()
            archive, size = tarfile.open(out / f"gpu-{number}.tar", "w"), 0
            number += 1
        archive.add(path, path.relative_to(work))
        size += path.stat().st_size
    if archive:
        archive.close()


def unpack(folder: Path, work: Path) -> Path:
    """The folder itself, or `work` with what its archives hold."""
    archives = sorted(folder.glob("gpu-*.tar"))
    for path in archives:
        with tarfile.open(path) as archive:
            if hasattr(tarfile, "data_filter"):  # from 3.11.4 on: nothing lands outside the folder
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(make(work / "runs").parent)
    return work if archives else folder


def home(folder: Path, anyway: bool) -> None:
    """Take finished steps into results/: the runs beside those of a CPU, as <run>-gpu, and the
    rest as results/gpu/steps.json, benchmark.json and fast.json.

    Raises ValueError, and changes nothing, for records of a rehearsal or a CPU.
    """
    work = unpack(folder, folder / "unpacked")
    paths = sorted((work / "steps").glob("*.json"))
    records = [json.loads(path.read_text("utf8")) for path in paths]
    if not records:
        raise ValueError(f"{folder} holds no finished step: neither steps/ nor gpu-*.tar is there.")
    doubtful = [f"{record['step']} was {what}" for record in records for what, is_so in (
        ("a rehearsal", record["rehearsed"]), ("made on " + record["device"], cpu(record["device"]))
    ) if is_so]
    runs: dict[str, dict[int, Path]] = {}  # name -> seed -> folder
    for record in records:
        run, _, seed = record["step"].rpartition("-seed-")
        if seed and run != "fast":
            where = runs.setdefault(run, {})[int(seed)] = work / "runs" / run / f"seed-{seed}"
            device = experiments.read(where, "environment.json")["device"]
            doubtful += [f"{record['step']} was trained on {device}"] if cpu(device) else []
    if doubtful and not anyway:
        raise ValueError(
            f"not the record of a GPU: {'; '.join(doubtful)}. Nothing was taken. "
            "`--anyway` takes it all the same."
        )
    for run, folders in runs.items():
        take_run(results_dir() / f"{run}-gpu", folders)
    kept = results_dir() / "gpu"
    write_json(make(kept / "steps.json"), records)
    if any(record["step"] == "fast-seed-0" for record in records):
        write_json(kept / "fast.json", time_to_goal(work / "runs" / "fast" / "seed-0"))
    if (work / "benchmark" / "bench.json").exists():
        write_json(kept / "benchmark.json", experiments.read(work / "benchmark", "bench.json"))
    print(f"{len(records)} steps are in {results_dir()}: {', '.join(r['step'] for r in records)}")


def cpu(device: str) -> bool:
    return "CPU" in device


def take_run(goal: Path, folders: dict[int, Path]) -> None:
    """Make results/<run>-gpu of the seeds at hand: the best on validation ships its weights."""
    for folder in folders.values():
        checksums.require(folder)
    rows = {seed: experiments.seed_row(folder) for seed, folder in folders.items()}
    best = max(rows, key=lambda seed: rows[seed]["validation"]["bleu"])
    seeds = [
        rows[seed] | {"device": experiments.read(folders[seed], "environment.json")["device"],
                      "seed": seed, "chosen": seed == best}
        for seed in sorted(rows)
    ]
    test = experiments.spread([row["test"]["bleu"] for row in seeds])
    experiments.publish(goal, folders[best], {"test_bleu": test, "seeds": seeds})


def time_to_goal(folder: Path) -> dict:
    """After how many seconds of training the validation BLEU of a run was first at GOAL."""
    seconds, curve = 0.0, []
    for entry in read_json_lines(folder / "metrics.jsonl"):
        seconds += entry.get("seconds", 0)
        if "validation_bleu" in entry and "averaged" not in entry:
            curve.append({"step": entry["step"], "seconds": seconds,
                          "validation_bleu": entry["validation_bleu"]})
    reached = [point["seconds"] for point in curve if point["validation_bleu"] >= GOAL]
    about = experiments.read(folder, "environment.json")
    return {"goal": GOAL, "seconds": reached[0] if reached else None, "curve": curve,
            "test": experiments.read(folder, "scores.json"), "environment": about}


# ----------------------------------------------------------------------------------------- begin


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(required=True, dest="kind", metavar="run | home | notebook")
    part = kinds.add_parser("run", help="do what is not done yet")
    part.add_argument("--minutes", type=float, help="stop after so many (default: at the end)")
    part.add_argument("--rehearse", action="store_true", help="on a small scale, on a CPU")
    part.add_argument("--only", nargs="+", default=[], metavar="PART", help="parts of steps' names")
    part.add_argument("--work", type=Path, default=WORK, help="folder (default: _build/gpu)")
    part = kinds.add_parser("home", help="take results into results/")
    part.add_argument("folder", type=Path, nargs="?", default=WORK)
    part.add_argument("--anyway", action="store_true", help="even from a CPU or a rehearsal")
    part = kinds.add_parser("notebook", help="run one notebook")
    part.add_argument("path", type=Path)
    part.add_argument("goal", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.kind == "run":
            return run(given.work.resolve(), given.rehearse, given.minutes, given.only)
        if given.kind == "notebook":
            run_notebook(given.path, given.goal)
        else:
            home(given.folder.resolve(), given.anyway)
    except (ValueError, RuntimeError, OSError) as error:
        print("error:", error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. What was done is kept; the same command continues.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
