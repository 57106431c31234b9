"""Train a Transformer on sentence pairs: resumable, logged, on one device or several.

A run lives in a folder: config.json and tokenizer.json say what it is, metrics.jsonl what happened,
checkpoints/ lets it go on after any interruption, and model.safetensors is its result. Under
`torchrun`, every process takes its share of each global batch (DistributedDataParallel).
"""

import atexit
import contextlib
import json
import math
import os
import platform
import random
import signal
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from transformer_lib import checkpoint, schedule
from transformer_lib.batching import TokenBatchSampler, pad
from transformer_lib.config import TrainConfig, recorded, to_dict, write_json
from transformer_lib.data import Pairs
from transformer_lib.decoding import evaluating, greedy_decode
from transformer_lib.loss import projected_cross_entropy
from transformer_lib.models.transformer import Transformer
from transformer_lib.tokenization import BOS, encode_source, encode_target, require_fit

# Settings that say where a run is computed and how it is watched: the model is the same.
WATCHING = {"device", "progress", "tensorboard", "log_every", "keep_checkpoints"}


class TrainingDiverged(RuntimeError):
    """The loss or the gradient is no longer a number; earlier checkpoints are whole."""


def set_seed(seed: int) -> None:
    """Seed Python's and torch's random numbers (every device)."""
    random.seed(seed)
    torch.manual_seed(seed)


def train(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Pairs,
    config: TrainConfig = TrainConfig(),
    run_dir: str | Path = "runs/latest",
    on_log: Callable[[dict], None] | None = None,
    data_info: dict | None = None,
) -> list[dict]:
    """Train until config.max_steps, or go on where an interrupted run in `run_dir` stopped.

    pairs: {"train": [(source, target), ...], "validation": [...]}, as from data.load_parallel.
    Returns the metrics, one dictionary per log entry, as in run_dir/metrics.jsonl; `on_log` gets
    each as it is written (by the first process alone, if there are several). The model ends with
    the averaged weights of the last checkpoints, as run_dir/model.safetensors holds them (16-bit).
    data_info (source, languages) is kept in run_dir/config.json. Under torchrun, all processes
    must see the same run_dir.

    Raises TrainingDiverged when a loss is NaN or infinite; ValueError when run_dir holds a
    different run, the data is empty, or the tokenizer is not the model's; OSError when run_dir
    cannot be written; KeyboardInterrupt after a first Ctrl-C, with the state saved.
    """
    run = _Run(model, tokenizer, pairs, config, Path(run_dir), on_log, data_info)
    try:
        return run.train()
    finally:
        if run.writer:
            run.writer.close()


class _Batches:
    """An endless stream of padded batches, epoch after epoch, whose place can be saved.

    In the first `both_directions` epochs each pair is there twice, the second time with source and
    target exchanged: bidirectional training (Ding et al. 2021).
    """

    def __init__(
        self,
        sources: list[list[int]],
        targets: list[list[int]],
        max_tokens: int,
        seed: int,
        both_directions: int = 0,
    ):
        lengths = [(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]
        self.sources, self.targets = sources, targets
        self.sampler = TokenBatchSampler(lengths, max_tokens, shuffle=True, seed=seed)
        self.both_directions = both_directions
        if both_directions:
            self.sources = sources + [target[1:] for target in targets]
            self.targets = targets + [[BOS, *source] for source in sources]
            lengths = lengths + [(target, source) for source, target in lengths]
            self.both_sampler = TokenBatchSampler(lengths, max_tokens, shuffle=True, seed=seed)
        self.epoch, self.next_batch, self.per_epoch = 0, 0, 1

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            both = self.epoch < self.both_directions
            sampler = self.both_sampler if both else self.sampler
            sampler.set_epoch(self.epoch)
            batches = sampler.batches()
            self.per_epoch = len(batches)
            for batch in batches[self.next_batch :]:
                self.next_batch += 1
                yield batch
            self.epoch, self.next_batch = self.epoch + 1, 0

    def n_tokens(self, batch: list[int]) -> int:
        """Target tokens that the loss counts."""
        return sum(len(self.targets[i]) - 1 for i in batch)

    def tensors(self, batch: list[int], device) -> tuple[Tensor, Tensor]:
        """(B, S) source and (B, T + 1) target ids."""
        source = pad([self.sources[i] for i in batch])
        target = pad([self.targets[i] for i in batch])
        if torch.device(device).type == "cuda":
            source, target = source.pin_memory(), target.pin_memory()
        return source.to(device, non_blocking=True), target.to(device, non_blocking=True)


class TranslationLoss(nn.Module):
    """The model with its loss: what DistributedDataParallel wraps."""

    def __init__(self, model: Transformer, smoothing: float):
        super().__init__()
        self.model, self.smoothing = model, smoothing

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """src_ids: (B, S); tgt_ids: (B, T + 1), <bos> first -> mean loss per real target token.

        The decoder reads all but the last token and predicts all but the first.
        """
        read, predicted = tgt_ids[:, :-1], tgt_ids[:, 1:]  # (B, T) each
        model = self.model
        src_mask, tgt_mask = model.default_masks(src_ids, read)
        hidden = model.decode(read, model.encode(src_ids, src_mask), src_mask, tgt_mask)
        return projected_cross_entropy(
            hidden, model.output.weight, predicted, self.smoothing, model.config.pad_id
        )


class _Run:
    def __init__(self, model, tokenizer, pairs, config, run_dir, on_log, data_info):
        self.model, self.tokenizer, self.config, self.run_dir = model, tokenizer, config, run_dir
        self.on_log = on_log
        require_fit(tokenizer, model.config.vocab_size, model.config.pad_id)
        self.rank, self.world = _start_processes(config)
        self.device = pick_device(config.device)
        self.bf16 = uses_bf16(config.precision, self.device)
        set_seed(config.seed + self.rank)  # each process drops out other units
        self.model.to(self.device)
        decay = {"weight_decay": config.weight_decay}
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=0.0, betas=config.betas, eps=config.eps, fused=True, **decay
        )
        sources, targets = self._encode(pairs, "train")
        self.batches = _Batches(
            sources, targets, config.max_tokens, config.seed, config.both_directions
        )
        self.validation = self._encode(pairs, "validation") if pairs.get("validation") else None
        self.references = [target for _, target in pairs.get("validation", [])]
        self.step = 0
        self.checked = 0  # the last update whose loss and gradient were seen to be numbers
        self.metrics: list[dict] = []
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=self.device)
        self.n_tokens, self.seconds = 0, 0.0  # since the last log entry, as is loss_sum
        self.writer = None
        self.shown: dict[str, str] = {}  # on the progress bar
        self.stop_signal: int | None = None
        if not data_info:
            data_info = {"source": pairs.source} if hasattr(pairs, "source") else {}
        text = json.dumps([sources, targets])
        self.run = {
            "model": to_dict(model.config),
            "train": to_dict(config),
            "data": data_info | {"checksum": zlib.crc32(text.encode())},
            "processes": self.world,
        }

    def _encode(self, pairs: Pairs, split: str) -> tuple[list[list[int]], list[list[int]]]:
        rows = pairs.get(split, [])
        if not rows:
            held = ", ".join(f"{len(rows):,} {name}" for name, rows in pairs.items()) or "no"
            raise ValueError(
                f"there are no {split} pairs to train on: the data holds {held} pairs; "
                f"give it a split {split!r} that is not empty."
            )
        sources = encode_source(self.tokenizer, [source for source, _ in rows])
        targets = encode_target(self.tokenizer, [target for _, target in rows])
        max_len = self.model.config.max_len
        # A target has one token more than the decoder reads.
        lengths = [max(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]
        if split != "train":  # leaving out or cutting would score another set
            if max(lengths) > max_len:
                raise ValueError(
                    f"a {split} sentence has {max(lengths)} tokens, the model reads {max_len}: "
                    "build it with a larger max_len, or take the sentence out of your data."
                )
            return sources, targets
        limit = min(max_len, self.config.max_tokens)
        fits = [length <= limit for length in lengths]
        if not any(fits):
            raise ValueError(
                f"every training pair is longer than {limit} tokens, the smaller of max_len "
                f"{max_len} and max_tokens {self.config.max_tokens}: make that larger, or cut "
                "the texts into sentences."
            )
        if not all(fits) and self.rank == 0:
            print(f"Left out {fits.count(False):,} training pairs longer than {limit} tokens.")
        keep = [i for i, fit in enumerate(fits) if fit]
        return [sources[i] for i in keep], [targets[i] for i in keep]

    # ---- the loop -----------------------------------------------------------------------------

    def train(self) -> list[dict]:
        self._open_run_dir()
        if self.step < self.config.max_steps:
            with self._signals(), rounded_products(self.device, self.bf16):
                self._loop()
        self._finish()
        return self.metrics

    def _loop(self) -> None:
        config = self.config
        loss_module = TranslationLoss(self.model, config.label_smoothing)
        if self.world > 1:
            ids = [self.device.index] if self.device.type == "cuda" else None
            loss_module = DistributedDataParallel(loss_module, device_ids=ids)
        stream = iter(self.batches)
        since = time.perf_counter() - self.seconds
        with self._progress() as bar:
            while self.step < config.max_steps:
                self.model.train()
                self.step += 1
                group = list(islice(stream, self.world * config.accumulate))
                grad_norm = self._update(loss_module, group)
                last = self.step == config.max_steps
                log = self.step % config.log_every == 0 or last
                validate = self.step % config.validate_every == 0 or last
                stop = self._asked_to_stop()
                save = self.step % config.checkpoint_every == 0 or last or stop
                if log or validate or save:
                    self._check_finite(grad_norm)
                if log:
                    loss = self._total_loss() / self.n_tokens  # .item() waits for the GPU
                    seconds, since = time.perf_counter() - since, time.perf_counter()
                    self._log(self._training_metrics(loss, grad_norm, seconds), bar)
                if validate and self.rank == 0 and self.validation:
                    pause = time.perf_counter()
                    self._log({"step": self.step} | self._validate(), bar)
                    since += time.perf_counter() - pause
                if save:
                    self.seconds = time.perf_counter() - since
                    self._save()
                bar.update()
                if stop:
                    if self.rank == 0:
                        print(f"\nStopped at step {self.step}; saved. The same command goes on.")
                    raise KeyboardInterrupt

    def _asked_to_stop(self) -> bool:
        """Whether a signal came to this process or, as all must agree, to any other."""
        if self.world == 1:
            return self.stop_signal is not None
        if self.step % self.config.log_every:
            return False  # asking at every step would make a GPU wait
        asked = torch.tensor(float(self.stop_signal is not None), device=self.device)
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        return bool(asked)

    def _finish(self) -> None:
        """Average the last checkpoints into the run's result, and score it."""
        path = self.run_dir / "model.safetensors"
        done = any("averaged" in entry for entry in self.metrics)
        if self.rank == 0 and not done:
            self._discard_old()
            paths = checkpoint.checkpoints(self.run_dir)[-self.config.average :]
            weights = checkpoint.average(paths)
            if not all(tensor.half().isfinite().all() for tensor in weights.values()):
                what = "not all averaged weights are finite in 16 bits"
                raise TrainingDiverged(self._divergence(what))
            checkpoint.save_weights(path, weights, torch.float16)
        self._wait()
        checkpoint.load_state(self.model, checkpoint.load_weights(path), path)
        if self.rank == 0 and not done:
            with self._writing():
                write_json(self.run_dir / "environment.json", self._environment())
            # Last, for this entry says that all the rest is there.
            self._log({"step": self.step, "averaged": len(paths)} | self._validate())
        self._wait()
        self.model.eval()

    def _update(self, loss_module: nn.Module, group: list[list[int]]) -> Tensor:
        """One update of the weights from a global batch; returns the gradient's norm."""
        config = self.config
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = learning_rate(config, self.step, self.model.config.d_model)
        self.optimizer.zero_grad(set_to_none=True)
        total = sum(map(self.batches.n_tokens, group))
        mine = group[self.rank :: self.world]
        for i, batch in enumerate(mine):
            # Each batch counts by its tokens, so that the sum is the mean over the global batch;
            # DistributedDataParallel will divide by the number of processes.
            share = self.batches.n_tokens(batch) / total
            wait = self.world > 1 and i < len(mine) - 1  # exchange gradients once per update
            with loss_module.no_sync() if wait else contextlib.nullcontext():
                with torch.autocast(self.device.type, torch.bfloat16, self._autocast):
                    loss = loss_module(*self.batches.tensors(batch, self.device))
                (loss * share * self.world).backward()
            self.loss_sum += loss.detach().double() * self.batches.n_tokens(batch)
        self.n_tokens += total
        grad_norm = nn.utils.clip_grad_norm_(
            self.model.parameters(), config.clip_norm if config.clip_norm else math.inf
        )
        self.optimizer.step()
        return grad_norm

    @property
    def _autocast(self) -> bool:
        return self.bf16 and self.device.type == "cuda"

    # ---- what a run reports -------------------------------------------------------------------

    def _total_loss(self) -> float:
        """Loss since the last log entry, summed over the tokens of all processes."""
        loss_sum = self.loss_sum.clone()
        if self.world > 1:
            dist.all_reduce(loss_sum)
        return loss_sum.item()

    def _check_finite(self, grad_norm: Tensor) -> None:
        """Nothing is logged or saved from a run that has gone astray."""
        loss = self._total_loss() / self.n_tokens if self.n_tokens else 0.0
        if not math.isfinite(loss):
            raise TrainingDiverged(self._divergence(f"the loss is {loss}"))
        if not math.isfinite(grad_norm):
            raise TrainingDiverged(self._divergence(f"the gradient's norm is {float(grad_norm)}"))
        self.checked = self.step

    def _training_metrics(self, loss: float, grad_norm: Tensor, seconds: float) -> dict:
        entry = {
            "step": self.step,
            "epoch": self.batches.epoch + self.batches.next_batch / self.batches.per_epoch,
            "loss": loss,
            "lr": self.optimizer.param_groups[0]["lr"],
            "grad_norm": float(grad_norm),
            "tokens": self.n_tokens,
            "seconds": seconds,
            "tokens_per_second": self.n_tokens / seconds,
        }
        self.loss_sum.zero_()
        self.n_tokens = 0
        return entry

    def _divergence(self, what: str) -> str:
        # A checkpoint is good if an update after it still went well.
        kept = checkpoint.checkpoints(self.run_dir)
        good = [path.name for path in kept if checkpoint.step_of(path) < self.checked]
        last = f"the last good checkpoint is {good[-1]}" if good else "there is no good checkpoint"
        return (
            f"training diverged: {what} at step {self.step}; {last}. "
            "Try a lower peak_lr, a longer warmup or gradient clipping, in a new run folder."
        )

    def _validate(self) -> dict:
        """Loss without smoothing, perplexity, and BLEU of greedy translations, on validation."""
        if not self.validation:
            return {}
        sources, targets = self.validation
        loss = validation_loss(self.model, sources, targets)
        if not math.isfinite(loss):
            raise TrainingDiverged(self._divergence(f"the validation loss is {loss}"))
        entry = {"validation_loss": loss, "validation_perplexity": math.exp(min(loss, 700))}
        if self.config.validation_bleu:
            from transformer_lib.evaluation import score

            texts = translate_ids(self.model, self.tokenizer, sources)
            entry["validation_bleu"] = score(texts, self.references).bleu
        return entry

    def _log(self, entry: dict, bar=None) -> None:
        if self.rank:
            return
        with self._writing(), open(self.run_dir / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        self.metrics.append(entry)
        if self.writer:
            for name, value in entry.items():
                if name != "step":
                    self.writer.add_scalar(name, value, entry["step"])
        if bar is not None:
            shown = {
                name: f"{entry[key]:.3g}" if key == "tokens_per_second" else f"{entry[key]:.2f}"
                for name, key in (
                    ("loss", "loss"),
                    ("tok/s", "tokens_per_second"),
                    ("val", "validation_loss"),
                    ("BLEU", "validation_bleu"),
                )
                if key in entry
            }
            self.shown |= shown
            bar.set_postfix(self.shown, refresh=False)
        if self.on_log:
            self.on_log(entry)

    def _progress(self):
        from tqdm import tqdm  # plain text: widgets would need a live kernel in the built book

        return tqdm(
            total=self.config.max_steps,
            initial=self.step,
            disable=self.rank > 0 or not self.config.progress,
            unit="step",
            mininterval=1.0,
        )

    def _environment(self) -> dict:
        return environment(self.device) | {
            "processes": self.world,
            "precision": "bf16" if self.bf16 else "fp32",
            "training_seconds": sum(entry.get("seconds", 0) for entry in self.metrics),
        }

    # ---- saving and resuming ------------------------------------------------------------------

    def _open_run_dir(self) -> None:
        """Create the folder, or read how far an earlier run came."""
        config_path = self.run_dir / "config.json"
        if self.rank == 0 and not config_path.exists():
            with self._writing():
                self.run_dir.mkdir(parents=True, exist_ok=True)
                partial = self.run_dir / "tokenizer.json.partial"
                partial.write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
                partial.replace(self.run_dir / "tokenizer.json")
                write_json(config_path, self.run)  # last: where it is, the tokenizer is too
        self._wait()
        before = checkpoint.read_config(self.run_dir)
        self._compare(before)
        kept = checkpoint.checkpoints(self.run_dir)
        if kept:
            self._load(kept[-1])
            self._compare_end(before["train"]["max_steps"])
        elif (self.run_dir / "model.safetensors").exists():
            raise ValueError(
                f"{self.run_dir} holds a finished model without its checkpoints; "
                "choose a new run folder to train again."
            )
        if self.rank == 0:
            with self._writing():
                self._write_metrics(self.metrics)
                if self.step < self.config.max_steps:  # what may change has perhaps changed
                    write_json(config_path, self.run)
        if self.config.tensorboard and self.rank == 0:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ImportError(
                    "TensorBoard logs need one package: pip install tensorboard."
                ) from None
            with self._writing():
                self.writer = SummaryWriter(self.run_dir / "tensorboard", purge_step=self.step + 1)
        if self.world > 1:  # every process starts from the weights of the first
            for tensor in self.model.state_dict().values():
                dist.broadcast(tensor, 0)

    def _compare(self, before: dict) -> None:
        """A folder belongs to one run; what may change between its parts is how it is watched."""
        # Two processes do in one update what one process does with twice the batches.
        free = WATCHING | {"max_steps", "accumulate"}
        before = recorded(before)
        settings = [
            (name, before.get(part, {}).get(name, value), value)
            for part in ("model", "train", "data")
            for name, value in json.loads(json.dumps(self.run[part])).items()
            if name not in free
        ]
        batches = [
            run.get("train", {}).get("accumulate", 1) * run.get("processes", 1)
            for run in (before, self.run)
        ]
        settings.append(("accumulate x processes", *batches))
        for name, old, new in settings:
            if old != new and name == "checksum":
                what = "other sentence pairs or another tokenizer"
            elif old != new:
                what = f"{name} = {old!r}, not {new!r}"
            else:
                continue
            raise ValueError(
                f"{self.run_dir} holds a run with {what}; "
                "choose a new run folder, or the same settings to resume."
            )

    def _compare_end(self, max_steps: int) -> None:
        """A run may get another length, but not once its end, or the cooldown before it, began."""
        last = min(max_steps, self.config.max_steps) - self.config.cooldown
        if max_steps != self.config.max_steps and self.step > last:
            raise ValueError(
                f"{self.run_dir} is at step {self.step}; its max_steps could change from "
                f"{max_steps} to {self.config.max_steps} only up to step {max(last, 0)}, where the "
                f"run ends or its cooldown begins. Give max_steps={max_steps}, or choose a new run "
                "folder."
            )

    def _save(self) -> None:
        rng = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            rng["cuda"] = torch.cuda.get_rng_state(self.device)
        states = [rng]
        if self.world > 1:
            states = [None] * self.world
            dist.all_gather_object(states, rng)
        loss_sum = self._total_loss()
        if self.rank == 0:
            optimizer = self.optimizer.state_dict()["state"]
            checkpoint.save_checkpoint(
                self.run_dir,
                self.step,
                {
                    "model": self.model.state_dict(),
                    "optimizer": {
                        f"{i}.{name}": value
                        for i, values in optimizer.items()
                        for name, value in values.items()
                    },
                    "rng": {
                        f"{name}.{rank}": value
                        for rank, state in enumerate(states)
                        for name, value in state.items()
                    },
                },
                {
                    "step": self.step,
                    "epoch": self.batches.epoch,
                    "next_batch": self.batches.next_batch,
                    "loss_sum": loss_sum,
                    "n_tokens": self.n_tokens,
                    "seconds": self.seconds,
                },
            )
            self._discard_old()
        self._wait()

    def _discard_old(self) -> None:
        """A checkpoint between the regular ones, from an interruption, goes once it is not the
        newest: the final average must not depend on interruptions."""
        checkpoint.discard_all_but(
            self.run_dir, self.config.keep_checkpoints, self.config.checkpoint_every
        )

    def _load(self, path: Path) -> None:
        """Continue from a checkpoint, bit for bit as if the run had never stopped."""
        state = checkpoint.load_checkpoint(path)
        needed = "model optimizer rng step epoch next_batch loss_sum n_tokens".split()
        missing = [name for name in needed if name not in state]
        if missing:
            raise ValueError(
                f"the checkpoint {path} is damaged (it lacks {missing}); "
                "delete it to go on from the one before."
            )
        checkpoint.load_state(self.model, state["model"], path)
        optimizer = self.optimizer.state_dict()
        optimizer["state"] = {}
        for key, value in state["optimizer"].items():
            i, name = key.split(".", 1)
            optimizer["state"].setdefault(int(i), {})[name] = value
        self.optimizer.load_state_dict(optimizer)
        if f"cpu.{self.rank}" in state["rng"]:
            torch.set_rng_state(state["rng"][f"cpu.{self.rank}"])
        if self.device.type == "cuda" and f"cuda.{self.rank}" in state["rng"]:
            torch.cuda.set_rng_state(state["rng"][f"cuda.{self.rank}"], self.device)
        self.step = self.checked = state["step"]
        self.batches.epoch, self.batches.next_batch = state["epoch"], state["next_batch"]
        if self.rank == 0:  # the sum of all processes, kept by the first
            self.loss_sum += state["loss_sum"]
        self.n_tokens, self.seconds = state["n_tokens"], state.get("seconds", 0.0)
        # Entries written after this checkpoint will be written again.
        path = self.run_dir / "metrics.jsonl"
        entries = read_metrics(path) if path.exists() else []
        final = self.step >= self.config.max_steps
        self.metrics = [
            e for e in entries if e["step"] <= self.step and (final or "averaged" not in e)
        ]
        if self.rank == 0 and not final:
            print(f"Resuming {self.run_dir} at step {self.step}.")

    def _write_metrics(self, entries: list[dict]) -> None:
        path = self.run_dir / "metrics.jsonl"
        partial = path.with_name("metrics.jsonl.partial")
        partial.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
        partial.replace(path)

    @contextlib.contextmanager
    def _writing(self):
        """Say which folder could not be written."""
        try:
            yield
        except OSError as error:
            raise OSError(
                f"cannot write to {self.run_dir} ({error}); free some space or choose another run "
                "folder. Checkpoints saved earlier are whole."
            ) from None

    @contextlib.contextmanager
    def _signals(self):
        """Ctrl-C and SIGTERM end the run after the step under way; a second one at once."""

        def note(number, _frame):
            if self.stop_signal:
                raise KeyboardInterrupt
            self.stop_signal = number

        try:
            before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: nobody can press Ctrl-C here
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _wait(self) -> None:
        if self.world > 1:
            dist.barrier()


@contextlib.contextmanager
def rounded_products(device: torch.device, bf16: bool = True) -> Iterator[None]:
    """Let the products of float32 matrices round inside: to bf16 on a CPU, where this is all that
    "bf16" means, to TF32 on a GPU, for what autocast leaves in float32. Weights, sums and results
    stay float32. Faster where the processor has the instructions; elsewhere nothing is rounded.

    device: where the products are computed. bf16: False leaves all as it is. The settings are
    torch's own, for all threads of the process, and are given back at the end of the block.
    """
    if not bf16:
        yield
        return
    before, cpu = torch.get_float32_matmul_precision(), device.type == "cpu"
    torch.set_float32_matmul_precision("medium" if cpu else "high")
    # The CPU's fused attention rounds each of its many small products by itself, which costs more
    # than it saves; unfused, one batched product serves all heads.
    attention = sdpa_kernel(SDPBackend.MATH) if cpu else contextlib.nullcontext()
    try:
        with attention:
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def learning_rate(config: TrainConfig, step: int, d_model: int) -> float:
    """The rate of update `step` (from 1) under config.schedule and config.cooldown."""
    if config.schedule == "noam":
        rate = schedule.noam(step, d_model, config.warmup)
    elif config.schedule == "constant":
        rate = config.peak_lr * min(1.0, step / max(config.warmup, 1))
    else:
        rate = schedule.inverse_sqrt(step, config.peak_lr, config.warmup)
    return rate * schedule.cooldown(step, config.max_steps, config.cooldown)


@torch.inference_mode()
def validation_loss(
    model: Transformer, sources: list[list[int]], targets: list[list[int]], max_tokens: int = 4096
) -> float:
    """Mean cross-entropy per target token, in nats, without smoothing or dropout."""
    device = next(model.parameters()).device
    loss_module = TranslationLoss(model, smoothing=0.0)
    longest = max(max(len(s), len(t)) for s, t in zip(sources, targets, strict=True))
    batches = _Batches(sources, targets, max(max_tokens, longest), seed=0)
    total = n = 0
    with evaluating(model):
        for batch in batches.sampler.batches():
            count = batches.n_tokens(batch)
            total += float(loss_module(*batches.tensors(batch, device))) * count
            n += count
    return total / n


def translate_ids(
    model: Transformer, tokenizer: Tokenizer, sources: list[list[int]], max_tokens: int = 8192
) -> list[str]:
    """Greedy translations of encoded sources, in their order."""
    device = next(model.parameters()).device
    lengths = [len(s) for s in sources]
    sampler = TokenBatchSampler(lengths, max(max_tokens, *lengths), shuffle=False)
    texts = [""] * len(sources)
    for batch in sampler:
        ids = greedy_decode(model, pad([sources[i] for i in batch]).to(device))
        for i, text in zip(batch, tokenizer.decode_batch(ids.tolist()), strict=True):
            texts[i] = text
    return texts


def read_metrics(path: str | Path) -> list[dict]:
    """The entries of a metrics.jsonl; a last line cut short by an interruption is left out."""
    entries = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
    return entries


def pick_device(name: str = "auto") -> torch.device:
    """The named device; "auto" takes this process's GPU if there is one, "cuda" insists on it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(
            f"device is {name!r}; it must be 'auto', 'cpu', 'cuda' or 'cuda:1'."
        ) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but no GPU is at hand; choose 'auto' or 'cpu'.")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    return device


def uses_bf16(precision: str, device: torch.device) -> bool:
    """Whether a run of this TrainConfig.precision rounds to bf16 on this device."""
    if precision != "auto":
        return precision == "bf16"
    # Where a GPU only emulates bf16, as before compute capability 8.0, it gains nothing.
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def environment(device: torch.device) -> dict:
    """Where a run took place: device, versions, commit, date."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{platform.machine()} CPU, {torch.get_num_threads()} threads"
    return {
        "device": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    try:
        return subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _start_processes(config: TrainConfig) -> tuple[int, int]:
    """(rank, number of processes): those of torchrun, or (0, 1)."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return 0, 1
    if not dist.is_initialized():
        gpu = config.device != "cpu" and torch.cuda.is_available()
        if gpu:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if gpu else "gloo")
        atexit.register(dist.destroy_process_group)
    return dist.get_rank(), dist.get_world_size()
