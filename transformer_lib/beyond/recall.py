"""A long text read in pieces, in which later places ask for facts that earlier ones stated."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond import far_links
from transformer_lib.beyond.far_links import N_NAMES, N_VALUES
from transformer_lib.beyond.memory import CompressiveLanguageModel, RecurrentLanguageModel
from transformer_lib.beyond.neighbours import MemorizingLanguageModel
from transformer_lib.config import ModelConfig

VOCABULARY = (N_NAMES + 1) * (N_VALUES + 1)


def draw(batch: int, size: int, n_facts: int, generator: torch.Generator):
    """One batch of texts: ids, answers, distances, each (B, T) integers.

    The task of `far_links`, written from left to right: a fact comes before its question, and
    each id encodes a name and a value.
    """
    names, values, *rest = far_links.draw(batch, size, n_facts, generator, told_first=True)
    return names * (N_VALUES + 1) + values, *rest


class NameAndValue(nn.Module):
    """The sum of the embeddings of an id's name and of its value. (B, T) -> (B, T, D)."""

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
    """Make a model of two layers with the memory `name`.

    Raises ValueError with the valid names.
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


def answer_loss(model: RecurrentLanguageModel, batch) -> Tensor:
    """Nats per question over a text that is read in segments.

    If the model's compression has a loss of its own, its gradient is computed here, but only for
    the compression: the model must not learn to be easy to compress.
    """
    ids, answers, _ = batch
    total, memories = torch.zeros(()), None
    for part, wanted in zip(ids.split(SEGMENT, 1), answers.split(SEGMENT, 1), strict=True):
        hidden, memories = model.read_segment(part, memories)
        asked = wanted >= 0
        total = total + F.cross_entropy(
            model.project(hidden[asked]), wanted[asked], reduction="sum"
        )
        if model.kind in ("auto", "attention"):
            loss = model.compression_loss(model.kind)
            if loss.requires_grad:
                loss.backward(inputs=list(model.compressions.parameters()))
    return total / (answers >= 0).sum()


@torch.no_grad()
def right_by_distance(model: RecurrentLanguageModel, batch, n_bins: int = 8) -> list[float]:
    """The share of questions answered correctly, for each of n_bins equal ranges of distance."""
    ids, answers, distances = batch
    said = model.project(model.read(ids, SEGMENT)).argmax(-1)  # (B, T)
    return far_links.by_distance(said, answers, distances, n_bins)
