"""Training: many small updates of the weights, resumable, on one device or several.

`update` does the learning: it is one step of the optimizer. `fit` is the loop around it, for every
kind of model, and `train` sets it up for translation. The rest is in transformer_lib.runs: a run's
folder, checkpoints, devices, processes, signals.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from transformer_lib import fast
from transformer_lib.batching import Batches
from transformer_lib.config import TrainConfig
from transformer_lib.corpora.rows import SPLITS
from transformer_lib.data import Pairs
from transformer_lib.decoding import evaluating
from transformer_lib.guards import require_pairs
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.optimizers import make_optimizer
from transformer_lib.runs.callbacks import checked
from transformer_lib.runs.device import pick_device, set_seed, uses_bf16
from transformer_lib.runs.folder import RunFolder, TrainingDiverged, TrainingState  # noqa: F401
from transformer_lib.runs.processes import Processes
from transformer_lib.runs.progress import Meter, ProgressBar
from transformer_lib.runs.signals import StopRequest
from transformer_lib.runs.translation import describe, encode_split, greedy_bleu
from transformer_lib.schedule import learning_rate
from transformer_lib.tokenization import BOS, PAD, require_fit


def translation_batches(
    sources: list[list[int]],
    targets: list[list[int]],
    max_tokens: int,
    seed: int,
    both_directions: int = 0,
) -> Batches:
    """Batches of (B, S) source and (B, T + 1) target ids; every target token but <bos> counts.

    both_directions: how many epochs at the start hold each pair a second time, with source and
    target swapped (Ding et al. 2021).
    """
    extra = len(sources) if both_directions else 0
    if both_directions:
        backwards = [target[1:] for target in targets], [[BOS, *source] for source in sources]
        sources, targets = [*sources, *backwards[0]], [*targets, *backwards[1]]
    counts = [len(target) - 1 for target in targets]
    lengths = [(len(source), n) for source, n in zip(sources, counts, strict=True)]
    return Batches([sources, targets], lengths, counts, max_tokens, seed, extra, both_directions)


def translation_loss(model: nn.Module, batch: tuple[Tensor, ...], smoothing: float = 0.0) -> Tensor:
    """Mean loss per real target token of a batch: src_ids (B, S), tgt_ids (B, T + 1), <bos> first.

    The decoder reads all but the last token and predicts all but the first.
    """
    src_ids, tgt_ids = batch
    read, predicted = tgt_ids[:, :-1], tgt_ids[:, 1:]  # (B, T) each
    logits = model(src_ids, read)  # (B, T, V)
    return label_smoothed_cross_entropy(logits, predicted, smoothing, PAD)


def r_drop_loss(
    model: nn.Module, batch: tuple[Tensor, ...], smoothing: float = 0.0, weight: float = 1.0
) -> Tensor:
    """The translation loss of two passes, plus how far apart they are (R-Drop, Liang et al. 2021).

    Dropout drops different units in each pass, so the two predict differently. The added term is
    weight / 2 times the mean over real target tokens of (KL(p, q) + KL(q, p)) / 2, in nats. (The
    paper sums the losses of the two passes, while this takes their mean: hence the half.)

    batch: src_ids (B, S), tgt_ids (B, T + 1), <bos> first. Returns a scalar.
    """
    src_ids, tgt_ids = (torch.cat([ids, ids]) for ids in batch)  # (2B, S), (2B, T + 1)
    logits = model(src_ids, tgt_ids[:, :-1])  # (2B, T, V)
    loss = label_smoothed_cross_entropy(logits, tgt_ids[:, 1:], smoothing, PAD)
    real = batch[1][:, 1:] != PAD  # (B, T)
    p, q = (half[real].float().log_softmax(-1) for half in logits.chunk(2))  # (N, V) each
    apart = ((p.exp() - q.exp()) * (p - q)).sum(-1).mean() / 2
    return loss + weight / 2 * apart


@torch.inference_mode()
def validation_loss(
    model: nn.Module, sources: list[list[int]], targets: list[list[int]], max_tokens: int = 4096
) -> float:
    """Mean cross-entropy per target token, in nats, without smoothing or dropout."""
    device = next(model.parameters()).device
    longest = max(max(len(s), len(t)) for s, t in zip(sources, targets, strict=True))
    batches = translation_batches(sources, targets, max(max_tokens, longest), seed=0)
    total = n = 0
    with evaluating(model):
        for batch in batches.sampler.batches():
            count = batches.n_tokens(batch)
            total += float(translation_loss(model, batches.tensors(batch, device))) * count
            n += count
    return total / n


def train(
    model: nn.Module,
    tokenizer: Tokenizer,
    pairs: Pairs,
    config: TrainConfig = TrainConfig(),
    run_dir: str | Path = "runs/latest",
    on_log: Callable[[dict], None] | None = None,
    data_info: dict | None = None,
    loss: Callable[..., Tensor] | None = None,
    rate: Callable[[TrainConfig, int, int], float] | None = None,
) -> list[dict]:
    """Train a translation model: call `fit` with batches and a loss for sentence pairs.

    pairs: {"train": [(source, target), ...], "validation": [...]}, as from data.load_parallel;
    without "validation", nothing is measured during training. data_info (source,
    languages) is kept in run_dir/config.json. loss: a loss to use instead of translation_loss.
    Also raises ValueError if the data is empty or the tokenizer is not the model's.
    """
    require_fit(tokenizer, model.config.vocab_size)
    require_pairs(pairs, SPLITS)
    encoded = partial(encode_split, tokenizer, pairs, max_len=model.config.max_len)
    sources, targets = encoded("train", max_tokens=config.max_tokens)
    held_out = encoded("validation") if "validation" in pairs else None

    def validate() -> dict[str, float]:
        value = validation_loss(model, *held_out)
        found = {"validation_loss": value, "validation_perplexity": math.exp(min(value, 700))}
        if config.validation_bleu:
            references = [target for _, target in pairs["validation"]]
            found["validation_bleu"] = greedy_bleu(model, tokenizer, held_out[0], references)
        return found

    if loss is None and config.r_drop:
        loss = partial(r_drop_loss, weight=config.r_drop)
    elif loss is None:  # blocks of logits suit a processor's cache, but cost time on an H200
        on_cpu = pick_device(config.device).type == "cpu"
        loss = fast.translation_loss if config.fast and on_cpu else translation_loss
    return fit(
        model,
        translation_batches(
            sources, targets, config.max_tokens, config.seed, config.both_directions
        ),
        partial(loss, smoothing=config.label_smoothing),
        config, run_dir, validate if held_out else None, on_log,
        describe(pairs, data_info, sources, targets),
        {"tokenizer.json": tokenizer.to_str(pretty=True)}, rate,
    )


def update(
    state: TrainingState,
    together: list[list[int]],
    loss_of: Callable[[tuple[Tensor, ...]], Tensor],
    lr: float,
    max_norm: float,
    processes: Processes,
) -> Tensor:
    """One update of the weights: batches become a gradient, and the optimizer takes a step.

    together: the batches of all processes; each process takes its share. loss_of(batch): the mean
    loss over its tokens. Returns the norm of the gradient before it's clipped to max_norm.
    """
    model, optimizer, batches = state.model, state.optimizer, state.batches
    device = next(model.parameters()).device
    model.train()
    for parameters in optimizer.param_groups:
        parameters["lr"] = lr
    optimizer.zero_grad()
    n_tokens = sum(map(batches.n_tokens, together))
    mine = together[processes.rank :: processes.world]
    for i, batch in enumerate(mine, start=1):
        n = batches.n_tokens(batch)
        with processes.exchange_gradients(loss_of, now=i == len(mine)):
            mean = loss_of(batches.tensors(batch, device))
            # The mean over all tokens; the exchange divides by the number of processes.
            (mean * (n / n_tokens) * processes.world).backward()
        state.meter.add(mean, n)
    state.meter.n_tokens += n_tokens
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return grad_norm


def fit(
    model: nn.Module,
    batches: Batches,
    loss: Callable[[nn.Module, tuple[Tensor, ...]], Tensor],
    config: TrainConfig = TrainConfig(),
    run_dir: str | Path = "runs/latest",
    validate: Callable[[], dict[str, float]] | None = None,
    on_log: Callable[[dict], None] | None = None,
    data_info: dict | None = None,
    files: dict[str, str] | None = None,
    rate: Callable[[TrainConfig, int, int], float] | None = None,
) -> list[dict]:
    """Train until config.max_steps, continuing an interrupted run in `run_dir` if there is one.

    loss(model, batch): the mean over the tokens that batches.n_tokens counts. validate(): numbers
    that measure the model. data_info, files (name -> text): kept in run_dir; they identify the run.
    rate(config, step, d_model): the learning rate of an update, instead of schedule.learning_rate.
    Returns the metrics, one dictionary per log entry, as in run_dir/metrics.jsonl; `on_log` gets
    each as it is written (only by the first process, if there are several). The model ends up with
    the averaged weights of the last checkpoints, as run_dir/model.safetensors holds them (16-bit).
    Under torchrun, all processes must see the same run_dir.

    Raises TrainingDiverged if a loss is NaN or infinite; ValueError if run_dir holds another run;
    OSError if it cannot be written; KeyboardInterrupt after the first Ctrl-C, once everything is on
    disk.
    """
    processes, device = Processes(config.device), pick_device(config.device)
    bf16 = uses_bf16(config.precision, device)
    loss, rate = checked(model, loss, rate or learning_rate)
    set_seed(config.seed + processes.rank)  # each process drops different units
    model = (fast.accelerate(model) if config.fast else model).to(device)
    optimizer = make_optimizer(model, config)
    max_norm = config.clip_norm or math.inf
    half = torch.autocast(device.type, torch.bfloat16, enabled=bf16 and device.type != "cpu")
    meter = Meter(processes, device)  # loss, tokens and time since the last log entry
    state = TrainingState(model, optimizer, batches, meter)
    with RunFolder(run_dir, config, processes, device, on_log) as run:
        step = run.resume(state, data_info or {}, files or {})
        loss_of = processes.loss_of(model, half(loss), device)  # batch -> mean loss
        stream = iter(batches)
        bar = ProgressBar(config.max_steps, step, config.progress and processes.first)
        stop = StopRequest(processes, device, config.log_every)
        with stop, bar, fast.products(device, bf16, config.max_tokens if config.fast else 0):
            while step < config.max_steps:
                step += 1
                lr = rate(config, step, model.config.d_model)
                together = list(islice(stream, processes.world * config.accumulate))
                grad_norm = update(state, together, loss_of, lr, max_norm, processes)

                last, stopping = step == config.max_steps, stop.agreed(step)
                log = last or step % config.log_every == 0
                check = last or step % config.validate_every == 0
                save = last or step % config.checkpoint_every == 0 or stopping
                if log or check or save:
                    run.require_numbers(step, meter.mean_loss(), grad_norm)
                if log:
                    entry = {"step": step, "epoch": batches.epochs(), "lr": lr}
                    bar.show(run.log(entry | meter.entry() | {"grad_norm": float(grad_norm)}))
                if check and validate:
                    with meter.paused():
                        bar.show(run.log({"step": step} | run.measure(step, validate)))
                if save:
                    run.save(step, state)
                bar.update()
                if stopping:
                    run.say(f"\nStopped at step {step}; saved. Run the same command to go on.")
                    raise KeyboardInterrupt
        run.finish(step, state, bf16, validate)
        return run.metrics
