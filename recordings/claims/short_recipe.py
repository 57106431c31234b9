"""Record six changes to the short recipe: `make record ONLY=short_recipe`.

Each change is made on top of the ladder's last rung, alone, and against the same seeds of that
rung: in miniature for all, and at the ladder's own size for the best. A change is a class: it
overrides the parts of a training run that it's about, and leaves the library as it is. Resumable;
about an hour on one core.
"""

import math
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from recordings.gate import Gate
from recordings.record import RESULTS, seed_by_seed
from transformer_lib import blocks, optimizers, training
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.batching import Batches, TokenBatchSampler
from transformer_lib.config import ModelConfig, TrainConfig
from transformer_lib.data import load_parallel
from transformer_lib.evaluation import score
from transformer_lib.fast import accelerate, projected_cross_entropy
from transformer_lib.fast import translation_loss as fast_loss
from transformer_lib.feed_forward import FeedForward
from transformer_lib.models.transformer import Transformer
from transformer_lib.optimizers import Muon
from transformer_lib.runs import recipes
from transformer_lib.runs.translation import encode_split, translate_ids
from transformer_lib.tokenization import train_tokenizer

OUT = RESULTS / "short_recipe.json"
PAGE = "speedrun"
SEEDS = (0, 1)
SIZE = 100, 512  # updates, tokens in each: a quarter of the ladder's, both
LADDER = 400, 2_048
LADDER_SEEDS = (0, 1, 2)


def shortened(updates: int, tokens: int) -> recipes.Recipe:
    """The short recipe with so few updates, of so many tokens each."""
    return recipes.smaller(
        recipes.SHORT, {},
        {"max_steps": updates, "max_tokens": tokens, "warmup": updates // 4,
         "cooldown": updates // 2, "checkpoint_every": updates, "validate_every": updates,
         "progress": False,
         "fast": False},  # oneDNN wants time for each new shape of a batch; the rest of it is below
        recipes.SHORT.data["vocab_size"],
    )


RECIPE = shortened(*SIZE)
RATE = RECIPE.train.peak_lr
ONE_RATE = "all of them had one learning rate"
GATE = Gate(
    chance=math.log(RECIPE.data["vocab_size"]),
    arms=("change",),
    edge={"rate": (None, None)},
    missing={"rate": ONE_RATE, "rate below": ONE_RATE, "rate above": ONE_RATE},
)


class Unchanged:
    """The ladder's last rung: what a change overrides."""

    def model(self, config: ModelConfig) -> Transformer:
        """A new model."""
        return Transformer(config)

    def batches(self, sources: list, targets: list, config: TrainConfig) -> Batches:
        """What it reads, and in which order."""
        return training.translation_batches(sources, targets, config.max_tokens, config.seed)

    def loss(self, config: TrainConfig):
        """loss(model, batch) -> scalar."""
        return partial(fast_loss, smoothing=config.label_smoothing)

    def optimizer(self, config: TrainConfig):
        """What makes the optimizer of a model."""
        return Muon


class ZeroOutputs(Unchanged):
    """Each sublayer adds nothing at first: its last linear map starts at zero."""

    def model(self, config):
        model = super().model(config)
        for part in model.modules():
            if isinstance(part, MultiHeadAttention | FeedForward):
                last = part.w_o if isinstance(part, MultiHeadAttention) else part.contract
                for parameter in last.parameters():
                    nn.init.zeros_(parameter)
        return model


class NormedAttention(MultiHeadAttention):
    """RMSNorm on every query and key, without gains: no score is beyond sqrt(d_head)."""

    def attend(self, q, k, v, mask=None, need_weights=False):
        q, k = (F.rms_norm(x, x.shape[-1:]) for x in (q, k))
        return super().attend(q, k, v, mask, need_weights)


class QueryKeyNorm(Unchanged):
    """The attention's queries and keys are normalised."""

    def model(self, config):
        with patch.object(blocks, "MultiHeadAttention", NormedAttention):
            return super().model(config)


def embeddings(model: Transformer) -> list[nn.Parameter]:
    """The three matrices that tying makes into one."""
    return [model.src_embedding.lookup.weight, model.tgt_embedding.lookup.weight,
            model.output.weight]


class TyingMuon(Muon):
    """Muon that keeps the three embeddings equal for the first updates: each of them takes the step
    of one shared matrix, whose gradient is the sum of theirs."""

    def __init__(self, model: Transformer, updates: int, **options):
        super().__init__(model, **options)
        self.together, self.left = embeddings(model), updates

    @torch.no_grad()
    def step(self):
        """One update."""
        if self.left:
            self.left -= 1
            total = sum(p.grad for p in self.together)
            for p in self.together:
                p.grad = total.clone()
        super().step()


class TiedAtFirst(Unchanged):
    """One embedding for two thirds of the updates; then three, which start as copies of it."""

    def model(self, config):
        model = super().model(config)
        first, *others = embeddings(model)
        with torch.no_grad():
            for other in others:
                other.copy_(first)
        return model

    def optimizer(self, config):
        return partial(TyingMuon, updates=2 * config.max_steps // 3)


class GrowingStream(Batches):
    """Thirds of the updates with a half, all and one and a half times the tokens in a batch: as
    many tokens as with all of one size. Each third begins a new epoch."""

    SHARES = (0.5, 1, 1.5)
    updates: int

    def __iter__(self) -> Iterator[list[int]]:
        once = self.sampler
        outer, inner = self.updates // 3, self.updates - 2 * (self.updates // 3)
        for share, n in zip(self.SHARES, (outer, inner, outer), strict=True):
            self.sampler = self.with_extra = TokenBatchSampler(
                once.lengths, int(share * once.max_tokens), seed=once.seed
            )
            yield from islice(super().__iter__(), n)
            self.epoch, self.next_batch = self.epoch + 1, 0


class GrowingBatches(Unchanged):
    """The batch grows."""

    def batches(self, sources, targets, config):
        with patch.object(training, "Batches", GrowingStream):
            stream = super().batches(sources, targets, config)
        stream.updates = config.max_steps
        return stream


class EverySecondStep(Muon):
    """Muon that updates what Adam trains only every second step, by the mean of two gradients."""

    def __init__(self, model: nn.Module, **options):
        super().__init__(model, **options)
        inside = {id(p) for same in self.matrices.values() for p in same}
        self.adams = [p for p in model.parameters() if id(p) not in inside]
        self.kept: list[Tensor] = []

    @torch.no_grad()
    def step(self):
        """One update."""
        gradients = [p.grad for p in self.adams]
        for p, gradient, kept in zip(self.adams, gradients, self.kept or gradients, strict=True):
            p.grad = (gradient + kept) / 2 if self.kept else None
        self.kept = [] if self.kept else gradients
        super().step()


class AdamEverySecondStep(Unchanged):
    """Embeddings, gains and biases move every second step."""

    def optimizer(self, config):
        return EverySecondStep


class NextButOne:
    """The translation loss, and a weight times that of the token after the next.

    A linear map of its own, model.ahead, turns what predicts the next token into what predicts the
    one after it; the output's matrix is shared. The weight falls linearly to zero in `updates`.
    """

    def __init__(self, smoothing: float, weight: float, updates: int):
        self.smoothing, self.weight, self.updates, self.step = smoothing, weight, updates, 0

    def __call__(self, model: Transformer, batch: tuple[Tensor, Tensor]) -> Tensor:
        """batch: (B, S) and (B, T + 1) ids -> a scalar."""
        src_ids, tgt_ids = batch
        read, predicted = tgt_ids[:, :-1], tgt_ids[:, 1:]  # (B, T) each
        src_mask, tgt_mask = model.default_masks(src_ids, read)
        hidden = model.decode(read, model.encode(src_ids, src_mask), src_mask, tgt_mask)
        parameters = list(model.parameters())
        loss = projected_cross_entropy(
            model.project, hidden, predicted, parameters, self.smoothing
        )
        weight = self.weight * (1 - self.step / self.updates)
        self.step += 1
        return loss + weight * projected_cross_entropy(
            lambda h: model.project(model.ahead(h)), hidden[:, :-1], predicted[:, 1:], parameters,
            self.smoothing,
        )


class NextButOneToken(Unchanged):
    """A second loss, on the token after the next."""

    WEIGHT = 0.5

    def model(self, config):
        model = super().model(config)
        model.ahead = nn.Linear(config.d_model, config.d_model, bias=False)
        blocks.init_weights(model.ahead)
        return model

    def loss(self, config):
        return NextButOne(config.label_smoothing, self.WEIGHT, config.max_steps)


CHANGES = {
    "unchanged": Unchanged(),
    "zero output projections": ZeroOutputs(),
    "QK-norm": QueryKeyNorm(),
    "tied, then untied": TiedAtFirst(),
    "growing batches": GrowingBatches(),
    "Adam every second step": AdamEverySecondStep(),
    "next-but-one token": NextButOneToken(),
}


AGAIN = ("unchanged", "zero output projections")  # the latter was ahead with the first seed


@cache
def corpus():
    """The pairs, their tokenizer, and the ids of both splits."""
    pairs = load_parallel(*(RECIPE.data[key] for key in ("source", "src", "tgt")))
    texts = [text for pair in pairs["train"] for text in pair]
    tokenizer = train_tokenizer(texts, RECIPE.data["vocab_size"], RECIPE.data["tokenizer"])
    encoded = partial(encode_split, tokenizer, pairs, max_len=RECIPE.model_config(1).max_len)
    train = encoded("train", max_tokens=RECIPE.train.max_tokens)
    return pairs, tokenizer, train, encoded("validation")


def fitted(change: Unchanged, model_config: ModelConfig, config: TrainConfig, rows) -> Transformer:
    """The model that a training run with this change leaves. rows: (sources, targets)."""
    training.set_seed(config.seed)
    model = accelerate(change.model(model_config))  # dropout in less time
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(patch.object(optimizers, "Muon", change.optimizer(config)))
        training.fit(model, change.batches(*rows, config), change.loss(config), config, folder)
    return model


def tried(change: str, rate: float, seed: int, size: tuple[int, int] = SIZE) -> dict:
    """The validation scores after a run, greedy, and the seconds that its training computed."""
    pairs, tokenizer, rows, held_out = corpus()
    config = replace(shortened(*size).train, peak_lr=rate, seed=seed)
    began = time.process_time()
    model = fitted(CHANGES[change], RECIPE.model_config(tokenizer.get_vocab_size()), config, rows)
    seconds = time.process_time() - began
    texts = translate_ids(model, tokenizer, held_out[0])
    scores = score(texts, [target for _, target in pairs["validation"]])
    return {
        "validation_loss": training.validation_loss(model, *held_out), "bleu": scores.bleu,
        "chrf": scores.chrf, "training_seconds": seconds,
    }


def grid():
    """(settings, function) of every cell: one seed of all, then more of the best of them, and these
    at the ladder's size."""
    first, *others = SEEDS
    return [
        *seed_by_seed("tries", tried, [first], change=CHANGES, rate=(RATE,)),
        *seed_by_seed("tries", tried, others, change=AGAIN, rate=(RATE,)),
        *seed_by_seed(
            "ladder", partial(tried, size=LADDER), LADDER_SEEDS, change=AGAIN, rate=(RATE,)
        ),
    ]
