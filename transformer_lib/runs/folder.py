"""The folder of a run: what it is, what happened, where it stopped, and its result.

config.json and further files (a tokenizer) say what the run is, metrics.jsonl what happened,
checkpoints/ lets it go on after any interruption, model.safetensors is its result. checksums.json
lists the files that no longer change; once the result is among them, the run has ended.
"""

import contextlib
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_lib.config import TrainConfig, to_dict
from transformer_lib.runs import checkpoint, checksums, lock
from transformer_lib.runs.callbacks import require_json, require_measures
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import (
    append_json_line,
    make_folder,
    readable_json_lines,
    sha256,
    sync,
    write_bytes,
    write_json,
    write_json_lines,
    write_text,
)
from transformer_lib.runs.lock import RunLock
from transformer_lib.runs.processes import Processes
from transformer_lib.runs.progress import Meter
from transformer_lib.runs.settings import WATCHING, with_current_defaults

# What checksums.json lists for a finished run, besides the files that it was started with.
RESULT = ("config.json", "environment.json", "metrics.jsonl", "sentences.jsonl", checksums.WEIGHTS)
OWN = (*RESULT, checksums.NAME, "checkpoints", "tensorboard", lock.NAME)  # names that a run uses


def require_own_names(files: dict[str, str]) -> None:
    """Raise ValueError unless each name is a plain one, and not that of a file the run writes."""
    for name in files:
        if name in OWN or name in ("", "..") or Path(name).name != name:
            raise ValueError(
                f"files names {name!r}; expected the plain name of a file in the run's folder, "
                f"but none that the run writes itself: {', '.join(OWN)}."
            )


def log_state(path: Path, entries: int) -> dict:
    """What a checkpoint says about metrics.jsonl: how many entries it held, and their SHA-256."""
    lines = path.read_bytes().split(b"\n")[:entries] if path.exists() else []
    return {"entries": entries, "sha256": sha256(b"".join(line + b"\n" for line in lines))}


def stale_scores(folder: Path) -> list[str]:
    """The score files that belong to other weights or translations than those in the folder."""
    stale = []
    for path in sorted([*folder.glob("scores*.json"), *folder.glob("shipping.json")]):
        try:
            about = json.loads(path.read_bytes())
            scored = {
                checksums.WEIGHTS: about.get("weights"),
                f"translations{path.stem.removeprefix('scores')}.jsonl": about.get("translations"),
            }
        except (ValueError, AttributeError):
            continue  # whatever reads it says what is wrong
        if any(
            known and (folder / name).exists() and known != sha256(folder / name)
            for name, known in scored.items()
        ):
            stale.append(path.name)
    return stale


def said_of_unlisted(folder: Path, names: list[str]) -> str:
    """A sentence about scores and translations that checksums.json does not list."""
    which = "are" if len(names) > 1 else "is"
    return (
        f"{', '.join(names)} in {folder} {which} not listed in {checksums.NAME}, so nothing says "
        "that they are complete and belong together: saving was interrupted. `evaluate --save` "
        "writes them again."
    )


class TrainingDiverged(RuntimeError):
    """The loss or the gradient is no longer a number; earlier checkpoints are intact."""


@dataclass
class TrainingState:
    """Everything that changes while a run trains, except the random number generators."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: object  # with state() and restore()
    meter: Meter


class RunFolder:
    """A run on disk. The first process writes; the others read, and wait for it.

    on_log gets every entry of the log.
    """

    def __init__(
        self,
        path: str | Path,
        config: TrainConfig,
        processes: Processes,
        device: torch.device,
        on_log: Callable[[dict], None] | None = None,
    ):
        self.path, self.config, self.on_log = Path(path), config, on_log
        self.processes, self.device = processes, device
        self.metrics: list[dict] = []
        self.checked = 0  # the last update whose loss and gradient were seen to be numbers
        self.finished = False
        self._lock = RunLock(self.path)
        self._tensorboard = None

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, _kind, error, _trace) -> None:
        if self.processes.lost(error):
            kept = checkpoint.checkpoints(self.path)
            print(
                f"Process {self.processes.rank} can no longer reach the others: one of them has "
                f"ended. {self.path} holds the run up to step "
                f"{checkpoint.step_of(kept[-1]) if kept else 0}; start the same command again.",
                file=sys.stderr,
                flush=True,
            )
        if self._tensorboard:
            self._tensorboard.close()
        self._lock.release()

    # ---- begin, or go on --------------------------------------------------------------------

    def resume(self, state: TrainingState, data_info: dict, files: dict[str, str]) -> int:
        """Go on where an earlier part of this run stopped, bit for bit as if it had not; returns
        that step, 0 in a new folder.

        data_info and files (name -> text) say what the run is, besides the configurations.
        Raises ValueError when the folder holds another run, or a damaged one; RuntimeError when
        another process trains in it.
        """
        require_own_names(files)
        require_json("data_info", data_info)
        settings = {
            "model": to_dict(state.model.config),
            "train": to_dict(self.config),
            "data": data_info,
            "processes": self.processes.world,
        }
        config_path, first = self.path / "config.json", self.processes.first
        if first:
            with self._writing():
                if not self.path.is_dir():
                    make_folder(self.path)
                self._lock.acquire()
                if not config_path.exists():
                    for name, text in files.items():
                        write_text(self.path / name, text)
                    checksums.write(self.path, list(files))
                    write_json(config_path, settings)  # last: if it is there, so are the others
                    checksums.write(self.path, {*files, "config.json"})
            checksums.require(self.path, *files, "config.json")
        self.processes.wait()
        before = with_current_defaults(checkpoint.read_config(self.path))
        self._require_same_run(before, settings)
        if first:
            with self._writing():
                for line in checkpoint.set_aside_damaged(self.path):
                    self.say(line)
        self.processes.wait()
        step, kept = 0, checkpoint.checkpoints(self.path)
        if kept:
            step = self.checked = self._load(kept[-1], state)
            self._require_open_end(step, before["train"]["max_steps"])
        elif (self.path / "model.safetensors").exists():
            raise ValueError(
                f"{self.path} holds a finished model without its checkpoints; "
                "choose a new run folder to train again."
            )
        if first:
            with contextlib.suppress(OSError) if self.finished else self._writing():
                checkpoint.discard_remains(self.path)
                if self.finished:  # an interruption right after the end may have left one
                    checkpoint.discard_damaged(self.path)
            if not self.finished:
                with self._writing():
                    # What may still change is not listed until it no longer can.
                    write_json_lines(self.path / "metrics.jsonl", self.metrics)
                    kept = self._listed_otherwise()
                    checksums.write(self.path, list(files), kept)
                    if step < self.config.max_steps:  # some settings may have changed
                        write_json(config_path, settings)
                    checksums.write(self.path, {*files, "config.json"}, kept)
            if self.config.tensorboard and not self.finished:
                self._open_tensorboard(step)
        self.finished = self.processes.gather(self.finished)[0]
        self.processes.share_weights(state.model)
        return step

    def _listed_otherwise(self) -> dict[str, str]:
        """The entries of checksums.json for files that training does not write: saved scores."""
        listed = checksums.read(self.path) or {}
        saved = ("scores", "translations", "shipping")
        return {name: known for name, known in listed.items() if name.startswith(saved)}

    def _require_same_run(self, before: dict, now: dict) -> None:
        """Between its parts, only the length of a run may change, and how it is watched."""
        # Two processes do in one update what one process does with twice the batches.
        free = WATCHING | {"max_steps", "accumulate"}
        settings = [
            (name, before.get(part, {}).get(name, value), value)
            for part in ("model", "train", "data")
            for name, value in json.loads(json.dumps(now[part])).items()
            if name not in free
        ]
        batches = [
            run["train"].get("accumulate", 1) * run.get("processes", 1)
            for run in (before, now)
        ]
        settings.append(("accumulate x processes", *batches))
        for name, old, new in settings:
            if old == new:
                continue
            what = f"{name} = {old!r}, not {new!r}"
            if name == "checksum":
                what = "other sentence pairs or another tokenizer"
            raise ValueError(
                f"{self.path} holds a run with {what}; "
                "choose a new run folder, or resume with the same settings."
            )

    def _require_open_end(self, step: int, max_steps: int) -> None:
        """The length of a run may change, but not once its cooldown has begun or it has ended."""
        last = min(max_steps, self.config.max_steps) - self.config.cooldown
        if max_steps != self.config.max_steps and step > last:
            raise ValueError(
                f"{self.path} is at step {step}; its max_steps could change from {max_steps} to "
                f"{self.config.max_steps} only up to step {max(last, 0)}, where the run ends or "
                f"its cooldown begins. Give max_steps={max_steps}, or choose a new run folder."
            )

    def _load(self, path: Path, state: TrainingState) -> int:
        saved = checkpoint.load_checkpoint(path, checkpoint.NEEDED)
        checkpoint.load_state(state.model, saved["model"], path)
        optimizer = state.optimizer.state_dict()
        optimizer["state"] = {}
        for key, value in saved["optimizer"].items():
            i, name = key.split(".", 1)
            optimizer["state"].setdefault(int(i), {})[name] = value
        state.optimizer.load_state_dict(optimizer)
        rank = self.processes.rank
        if f"cpu.{rank}" in saved["rng"]:
            torch.set_rng_state(saved["rng"][f"cpu.{rank}"])
        name = f"{self.device.type}.{rank}"
        if self.device.type != "cpu" and name in saved["rng"]:
            torch.get_device_module(self.device).set_rng_state(saved["rng"][name], self.device)
        state.batches.restore(saved)
        state.meter.restore(saved)
        self._read_log(saved)
        if saved["step"] < self.config.max_steps:
            self.say(f"Resuming {self.path} at step {saved['step']}.")
        return saved["step"]

    def _read_log(self, saved: dict) -> None:
        """Take the entries that metrics.jsonl held at a checkpoint; later ones will be written
        again, unless the run is finished.

        A file that holds less than it did is kept under another name, and a line says so.
        """
        path, known = self.path / "metrics.jsonl", saved["log"]
        entries, unreadable = readable_json_lines(path) if path.exists() else ([], [])
        kept = [e for e in entries if isinstance(e.get("step"), int) and e["step"] <= saved["step"]]
        wrong = f"line {unreadable[0]} is not a JSON object" if unreadable else ""
        if log_state(path, known["entries"]) != known:
            missing = known["entries"] - len(kept)
            changed = f"entries missing: {missing}" if missing > 0 else "an entry was changed"
            wrong = wrong or changed
        result, averaged = checksums.WEIGHTS, any("averaged" in e for e in kept)
        listed = checksums.read(self.path)
        ended = averaged if listed is None else result in listed  # the list may be deleted
        if ended and saved["step"] >= self.config.max_steps:
            differing = checksums.differing(self.path)
            for name in differing:
                if name not in (result, path.name):
                    checksums.require(self.path, name)
            if result in differing:
                self.say(f"{self.path / result} is damaged: it will be averaged again.")
            if path.name in differing:
                wrong = wrong or "it is not the one that the finished run left"
            whole = (self.path / result).exists() and result not in differing
            self.finished = whole and averaged
        self.metrics = kept if self.finished else [e for e in kept if "averaged" not in e]
        if wrong and self.processes.first:
            aside = path.with_name("metrics.damaged.jsonl")
            self.say(
                f"{path} is damaged ({wrong}): the run keeps every entry that can be "
                f"read ({len(self.metrics)}), and a copy of the damaged file in {aside.name}."
            )
            with self._writing():
                write_bytes(aside, path.read_bytes() if path.exists() else b"")

    # ---- while it trains --------------------------------------------------------------------

    def save(self, step: int, state: TrainingState) -> None:
        """Write a checkpoint, from which `resume` goes on."""
        rng = {"cpu": torch.get_rng_state()}
        if self.device.type != "cpu":  # dropout draws there
            module = torch.get_device_module(self.device)
            rng[self.device.type] = module.get_rng_state(self.device)
        generators = self.processes.gather(rng)
        values = {"step": step} | state.batches.state() | state.meter.state()
        if self.processes.first:
            log = self.path / "metrics.jsonl"
            with self._writing():
                sync(log)  # what the checkpoint relies on must survive a power cut, too
            values["log"] = log_state(log, len(self.metrics))
            tensors = {
                "model": state.model.state_dict(),
                "optimizer": {
                    f"{i}.{name}": value
                    for i, values in state.optimizer.state_dict()["state"].items()
                    for name, value in values.items()
                },
                "rng": {
                    f"{name}.{rank}": value
                    for rank, generator in enumerate(generators)
                    for name, value in generator.items()
                },
            }
            checkpoint.save_checkpoint(self.path, step, tensors, values)
            self._discard_old()
        self.processes.wait()

    def _discard_old(self) -> None:
        """Delete old checkpoints. One that an interruption left between the regular ones goes once
        it isn't the newest: the final average must not depend on interruptions."""
        with self._writing():
            checkpoint.discard_all_but(
                self.path, self.config.keep_checkpoints, self.config.checkpoint_every
            )

    def log(self, entry: dict) -> dict:
        """Add an entry to metrics.jsonl, TensorBoard and on_log; returns it."""
        if not self.processes.first:
            return entry
        with self._writing():
            append_json_line(self.path / "metrics.jsonl", entry)
        self.metrics.append(entry)
        if self._tensorboard:
            for name, value in entry.items():
                if name != "step":
                    self._tensorboard.add_scalar(name, value, entry["step"])
        if self.on_log:
            self.on_log(entry)
        return entry

    def measure(self, step: int, validate: Callable[[], dict] | None) -> dict:
        """What `validate` finds, in the first process; each number must be finite."""
        found = require_measures(validate() if validate and self.processes.first else {})
        for name, value in found.items():
            if not math.isfinite(value):
                self._diverged(step, f"the {name.replace('_', ' ')} is {value}")
        return found

    def say(self, text: str) -> None:
        """Print, once for all processes."""
        if self.processes.first:
            print(text)

    def require_numbers(self, step: int, loss: float, grad_norm: Tensor) -> None:
        """Nothing is logged or saved from a run that has gone astray."""
        if not math.isfinite(loss):
            self._diverged(step, f"the loss is {loss}")
        if not math.isfinite(grad_norm):
            self._diverged(step, f"the gradient's norm is {float(grad_norm)}")
        self.checked = step

    def _diverged(self, step: int, what: str):
        # A checkpoint is good if an update after it still went well.
        kept = checkpoint.checkpoints(self.path)
        good = [path.name for path in kept if checkpoint.step_of(path) < self.checked]
        last = f"the last good checkpoint is {good[-1]}" if good else "there is no good checkpoint"
        raise TrainingDiverged(
            f"training diverged: {what} at step {step}; {last}. "
            "Try a lower peak_lr, a longer warmup or gradient clipping, in a new run folder."
        )

    # ---- the end ----------------------------------------------------------------------------

    def finish(
        self, step: int, state: TrainingState, bf16: bool, validate: Callable[[], dict] | None
    ) -> None:
        """Average the last checkpoints into the run's result, load it, and score it."""
        path = self.path / checksums.WEIGHTS
        done, first = self.finished, self.processes.first
        if first and not done:
            self._discard_old()
            paths = checkpoint.checkpoints(self.path)[-self.config.average :]
            weights = checkpoint.average(paths)
            if not all(tensor.half().isfinite().all() for tensor in weights.values()):
                self._diverged(step, "not all averaged weights are finite in 16 bits")
            checkpoint.save_weights(path, weights, torch.float16)
        self.processes.wait()
        checkpoint.load_state(state.model, checkpoint.load_weights(path), path)
        if first and not done:
            about = environment(self.device) | {
                "processes": self.processes.world,
                "precision": "bf16" if bf16 else "fp32",
                "training_seconds": sum(entry.get("seconds", 0) for entry in self.metrics),
            }
            with self._writing():
                write_json(self.path / "environment.json", about)
            self.log({"step": step, "averaged": len(paths)} | self.measure(step, validate))
            with self._writing():
                sync(self.path / "metrics.jsonl")
                # Last: once the result is listed, all the rest is there.
                listed = checksums.read(self.path) or {}
                checksums.write(self.path, {*listed, *RESULT}, self._listed_otherwise())
                checkpoint.discard_damaged(self.path)
            self._say_stale_scores()
        self.finished = True
        self.processes.wait()
        state.model.eval()

    def _say_stale_scores(self) -> None:
        stale = stale_scores(self.path)
        if unlisted := checksums.unlisted(self.path):
            self.say(f"{said_of_unlisted(self.path, unlisted)}")
        if stale:
            self.say(
                f"{', '.join(stale)} in {self.path}: the scores of other weights; "
                "`evaluate --save` scores these."
            )

    # ---- writing ----------------------------------------------------------------------------

    def _open_tensorboard(self, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ImportError(
                "TensorBoard logs need one package: pip install tensorboard."
            ) from None
        with self._writing():
            self._tensorboard = SummaryWriter(self.path / "tensorboard", purge_step=step + 1)

    @contextlib.contextmanager
    def _writing(self):
        """Say which folder could not be written."""
        try:
            yield
        except OSError as error:
            if isinstance(error, PermissionError) and error.errno is None:
                raise  # a file that may not be read, which has been named
            said = error.strerror or error
            advice = "choose another run folder"
            if not isinstance(error, FileNotFoundError | FileExistsError | NotADirectoryError):
                advice = f"free some space or {advice}"
            raise OSError(
                f"cannot write to {self.path} ({said}); {advice}. Earlier checkpoints are intact."
            ) from None
