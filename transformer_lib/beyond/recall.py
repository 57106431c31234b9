"""A long text read in pieces, in which later places ask for what earlier ones have said."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.memory import (
    CompressiveLanguageModel,
    RecurrentLanguageModel,
)
from transformer_lib.beyond.neighbours import MemorizingLanguageModel
from transformer_lib.config import ModelConfig

N_NAMES, N_VALUES = 64, 16
NOISE, ASKED = N_NAMES, N_VALUES  # one more name, which is noise, and one more value, "?"
VOCABULARY = (N_NAMES + 1) * (N_VALUES + 1)


def draw(batch: int, size: int, n_facts: int, generator: torch.Generator):
    """One batch of texts: ids, answers, distances, each (B, T) integers.

    Each place holds a name and a value. n_facts places state a fact, as many later ones ask for
    it, the rest is noise. answers is -1 where nothing is asked; distances counts the places back.
    """

    def choose(n, of):  # (B, n) different numbers below `of`
        return torch.rand(batch, of, generator=generator).argsort(-1)[:, :n]

    names = torch.full((batch, size), NOISE)
    values = torch.randint(N_VALUES, (batch, size), generator=generator)
    answers, distances = torch.full((2, batch, size), -1).unbind(0)
    places = choose(2 * n_facts, size).unflatten(1, (n_facts, 2)).sort(-1).values
    told, asked = places.unbind(-1)  # (B, n_facts) each, told first
    subject = choose(n_facts, N_NAMES)
    names.scatter_(1, told, subject).scatter_(1, asked, subject)
    answers.scatter_(1, asked, values.gather(1, told))
    distances.scatter_(1, asked, asked - told)
    values.scatter_(1, asked, ASKED)
    return names * (N_VALUES + 1) + values, answers, distances


class NameAndValue(nn.Module):
    """The sum of two embeddings: of the name and of the value in an id. (B, T) -> (B, T, D)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.name = nn.Embedding(N_NAMES + 1, d_model)
        self.value = nn.Embedding(N_VALUES + 1, d_model)

    def forward(self, ids: Tensor) -> Tensor:
        return self.name(ids // (N_VALUES + 1)) + self.value(ids % (N_VALUES + 1))


SIZES = {
    "d_model": 64, "n_heads": 2, "d_ff": 128, "n_encoder_layers": 0, "n_decoder_layers": 2,
    "dropout": 0.0, "tie_embeddings": False, "positional": "rotary",
}
SEGMENT, RATE = 16, 4


def reader(name: str, size: int = 128) -> RecurrentLanguageModel:
    """A model of two layers with the memory `name`.

    Raises ValueError with the names that there are.
    """
    config = ModelConfig(VOCABULARY, max_len=size, **SIZES)
    kinds = {
        "none": lambda: RecurrentLanguageModel(config, 0),
        "recurrent": lambda: RecurrentLanguageModel(config, 24),
        # 8 of the 24 places hold 4 each: a layer reaches 48 places back instead of 24.
        "mean": lambda: CompressiveLanguageModel(config, 24, 8, RATE),
        "auto": lambda: CompressiveLanguageModel(config, 24, 8, RATE),
        "attention": lambda: CompressiveLanguageModel(config, 24, 8, RATE),
        "memorizing": lambda: MemorizingLanguageModel(config, 16, 8),
        "everything": lambda: RecurrentLanguageModel(config, size),
    }
    if name not in kinds:
        raise ValueError(f"no memory {name!r}; there are {', '.join(kinds)}.")
    model = kinds[name]()
    model.kind = name
    model.embedding = NameAndValue(config.d_model)
    model.output = nn.Linear(config.d_model, N_VALUES)
    return model


NAMES = "none recurrent mean auto attention memorizing everything".split()


def training_step(model: RecurrentLanguageModel, optimizer, batch) -> float:
    """One update on the answers of a text, read in segments; returns nats per question."""
    ids, answers, _ = batch
    optimizer.zero_grad()
    n, total, memories = (answers >= 0).sum(), 0.0, None
    for part, wanted in zip(ids.split(SEGMENT, 1), answers.split(SEGMENT, 1), strict=True):
        hidden, memories = model.read_segment(part, memories)
        asked = wanted >= 0
        loss = F.cross_entropy(model.project(hidden[asked]), wanted[asked], reduction="sum") / n
        loss.backward()
        total += loss.item()
        if model.kind in ("auto", "attention"):
            loss = model.compression_loss(model.kind)
            if loss.requires_grad:
                loss.backward(inputs=list(model.compressions.parameters()))
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


@torch.no_grad()
def right_by_distance(model: RecurrentLanguageModel, batch, n_bins: int = 8) -> list[float]:
    """Share of questions answered right, for each of n_bins equal ranges of distance."""
    ids, answers, distances = batch
    asked = answers >= 0
    right = (model.project(model.read(ids, SEGMENT)[asked]).argmax(-1) == answers[asked]).float()
    bins = distances[asked] * n_bins // ids.size(1)
    return [right[bins == b].mean().item() for b in range(n_bins)]
