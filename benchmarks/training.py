"""Training: a step, an epoch, and what length and batch size cost."""

import copy
import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.peers import TorchTransformer
from benchmarks.timing import Row, alternate, compare, median, rates, rounds_for, seconds
from transformer_lib import ModelConfig, Transformer, fast, training
from transformer_lib.batching import TokenBatchSampler, pad, padding_share
from transformer_lib.tokenization import PAD

SIZES = ModelConfig(
    vocab_size=8000, d_model=128, n_heads=4, d_ff=256, n_encoder_layers=4, n_decoder_layers=4,
    dropout=0.1, max_len=1024,
)
SMOOTHING = 0.1

STEP, ROUNDED = "training step", "training step in bf16"
OURS, FAST = "ours", "ours, fast"
TORCH, TORCH_SAME = "torch.nn.Transformer", "torch.nn.Transformer, same dropout"
TrainingStep = Callable[..., float]


class Ours(nn.Module):
    """Our model with its loss, as `train` puts them together. quick: as with TrainConfig.fast."""

    def __init__(self, model: Transformer, quick: bool):
        super().__init__()
        self.quick = quick
        self.model = fast.accelerate(model) if quick else model
        self.loss = fast.translation_loss if quick else training.translation_loss

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """src_ids: (B, S); tgt_ids: (B, T + 1), <bos> first -> mean loss per real target token."""
        return self.loss(self.model, (src_ids, tgt_ids), SMOOTHING)


def contestants() -> dict[str, TrainingStep]:
    """One training step each of four equal models: (src_ids (B, S), tgt_ids (B, T + 1)) -> loss.

    Raises AssertionError when they do not give one loss, for then the work is not the same.
    """
    torch.manual_seed(0)
    model = Transformer(SIZES)
    modules: dict[str, nn.Module] = {
        OURS: Ours(model, quick=False),
        FAST: Ours(copy.deepcopy(model), quick=True),
        TORCH: TorchTransformer(model, SMOOTHING, same_dropout=False),
        TORCH_SAME: TorchTransformer(model, SMOOTHING, same_dropout=True),
    }
    src_ids, tgt_ids = torch.randint(4, SIZES.vocab_size, (2, 3, 9))
    src_ids[0, 6:], tgt_ids[1, 5:] = PAD, PAD
    with torch.no_grad():
        losses = [float(module.train(False)(src_ids, tgt_ids)) for module in modules.values()]
    assert max(losses) - min(losses) < 1e-4, f"the models differ: losses {losses}"
    return {name: make_step(module.train()) for name, module in modules.items()}


def make_step(module: nn.Module) -> TrainingStep:
    """Forward, backward, clipping and Adam, as transformer_lib.training does it."""
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def step(src_ids: Tensor, tgt_ids: Tensor, bf16: bool = False) -> float:
        n_tokens = src_ids.numel() if getattr(module, "quick", False) else 0
        with fast.products(torch.device("cpu"), bf16, n_tokens):
            optimizer.zero_grad(set_to_none=True)
            loss = module(src_ids, tgt_ids)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            return loss.item()

    return step


class Corpus:
    """Encoded sentence pairs, and the two ways to cut them into batches.

    max_tokens: budget of a batch by length, padding included; fixed_batch: sentences of the other.
    """

    def __init__(
        self,
        sources: list[list[int]],
        targets: list[list[int]],
        max_tokens: int = 4096,
        fixed_batch: int = 128,
    ):
        self.sources, self.targets = sources, targets
        self.max_tokens, self.fixed_batch = max_tokens, fixed_batch
        self.lengths = [(len(s), len(t) - 1) for s, t in zip(sources, targets, strict=True)]

    def by_length(self) -> list[list[int]]:
        """Batches of TokenBatchSampler."""
        return TokenBatchSampler(self.lengths, self.max_tokens).batches()

    def fixed_size(self) -> list[list[int]]:
        """Shuffled sentences, always as many at a time, whatever their length."""
        order, n = list(range(len(self.lengths))), self.fixed_batch
        random.Random(0).shuffle(order)
        return [order[i : i + n] for i in range(0, len(order), n)]

    def tensors(self, batch: list[int]) -> tuple[Tensor, Tensor]:
        """(B, S) source and (B, T + 1) target ids."""
        return pad([self.sources[i] for i in batch]), pad([self.targets[i] for i in batch])

    def n_tokens(self, batches: list[list[int]]) -> int:
        """Real target tokens."""
        return sum(self.lengths[i][1] for batch in batches for i in batch)


def step_rows(corpus: Corpus, steps: dict[str, TrainingStep], n_batches: int, rounds: int):
    """The same few batches for all; padding and batching are no part of this."""
    batches = corpus.by_length()[:n_batches]
    tensors = [corpus.tensors(batch) for batch in batches]

    def run(step):
        return lambda: [step(*pair) for pair in tensors]

    def rounded():
        for pair in tensors:
            steps[FAST](*pair, bf16=True)

    runs = {name: run(step) for name, step in steps.items()}
    taken = alternate(runs | {ROUNDED: rounded}, rounds)
    speed = {name: rates(len(batches), t) for name, t in taken.items()}
    sizes = "4+4 layers, d 128, ff 256, 8k vocabulary"
    rows = [
        compare(f"{what}, {sizes}", name, "steps/s", speed[mine], speed[name], least, note)
        for mine, what, least in ((OURS, STEP, "1"), (FAST, f"{STEP}, fast", "1.5"))
        for name, note in (
            (TORCH_SAME, "same weights, loss, optimizer and places of dropout"),
            (TORCH, "as it comes: dropout on attention weights and inside the feed-forward, too"),
        )
    ]
    note = "precision bf16; gains where the processor multiplies bf16 faster than float32"
    rows.append(
        compare(f"{ROUNDED}, {sizes}", FAST, "steps/s", speed[ROUNDED], speed[FAST], note=note)
    )
    return rows


def epoch_rows(corpus: Corpus, steps: dict[str, TrainingStep], n_batches: int, rounds: int):
    """Real target tokens per second; choosing batches and padding them is part of the time."""
    ways = {"sorted": corpus.by_length, "fixed": corpus.fixed_size}
    batches = {way: make() for way, make in ways.items()}
    sorting = {way: seconds(make) / len(batches[way]) for way, make in ways.items()}  # s a batch
    cases = {
        "ours": (FAST, "sorted"),
        "ours, fixed": (FAST, "fixed"),
        "torch, fixed": (TORCH, "fixed"),
        "torch, sorted": (TORCH, "sorted"),
    }

    def train(case, chunk):
        step, way = steps[cases[case][0]], cases[case][1]
        return lambda: [step(*corpus.tensors(batch)) for batch in batches[way][chunk]]

    speed: dict[str, list[float]] = {case: [] for case in cases}
    for case in cases:
        train(case, slice(0, 1))()
    for i in range(rounds):  # each round is another part of the epoch
        chunk = slice(i * n_batches, (i + 1) * n_batches)
        for case, (_, way) in cases.items():
            part = batches[way][chunk]
            if part:
                time = seconds(train(case, chunk)) + len(part) * sorting[way]
                speed[case].append(corpus.n_tokens(part) / time)
    n = min(map(len, speed.values()))
    unit, what = "real target tokens/s", f"epoch, batches of {corpus.max_tokens:,} tokens by length"
    unsorted = f"unsorted batches of {corpus.fixed_batch}"
    rows = [
        compare(what, against, unit, speed["ours"][:n], speed[case][:n], target)
        for case, against, target in (
            ("ours, fixed", f"ours, {unsorted}", "2"),
            ("torch, fixed", f"{TORCH}, {unsorted}", ""),
            ("torch, sorted", f"{TORCH}, our batches", ""),
        )
    ]
    ours, fixed = (100 * padding_share(corpus.lengths, batches[way]) for way in ways)
    rows.append(
        Row("padding over an epoch", unsorted, "% of tokens",
            ours, fixed, fixed / max(ours, 1e-9), target="below 5 %")
    )
    return rows


def cost_curves(steps: dict[str, TrainingStep], lengths, batch_sizes, rounds: int) -> list[dict]:
    """Milliseconds of a training step against length and against batch size, random ids."""
    points = [("length", 32, n) for n in lengths] + [("batch size", b, 16) for b in batch_sizes]
    curves = []
    for varied, batch, length in points:
        src_ids = torch.randint(4, SIZES.vocab_size, (batch, length))
        tgt_ids = torch.randint(4, SIZES.vocab_size, (batch, length + 1))
        runs = {
            name: lambda step=steps[name], s=src_ids, t=tgt_ids: step(s, t)
            for name in (FAST, TORCH_SAME)
        }
        for name, taken in alternate(runs, rounds_for(rounds, length)).items():
            curves.append({
                "what": STEP, "varied": varied, "batch_size": batch, "length": length,
                "who": OURS if name == FAST else name, "ms": 1000 * median(taken),
            })
    return curves
