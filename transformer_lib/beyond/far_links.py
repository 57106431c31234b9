"""A task that needs links of every length, and a small model whose attention can be replaced.

Some positions in a text state the value of a name, and as many others, before or after,
ask for it. The rest is noise. A mechanism that is cheap because it drops far links fails here, and
it fails more often the farther away the answer is.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer_lib.beyond import linear, low_rank, lsh, routing, sparse
from transformer_lib.beyond.exchange import exchange
from transformer_lib.config import BlockConfig
from transformer_lib.encoder import Encoder

N_NAMES, N_VALUES = 64, 16
NOISE, ASKED = N_NAMES, N_VALUES  # one more name, which is noise, and one more value, "?"


def draw(
    batch: int, size: int, n_facts: int, generator: torch.Generator, told_first: bool = False
):
    """Draw a batch of texts: names, values, answers, distances; each (B, T), integers.

    Each position holds a name and a value. n_facts of them state a fact, and n_facts ask for one
    (with told_first, only after it was stated). answers is -1 where nothing is asked; distances
    counts the positions from the question to the fact.
    """

    def choose(n, of):  # (B, n) different numbers below `of`
        return torch.rand(batch, of, generator=generator).argsort(-1)[:, :n]

    names = torch.full((batch, size), NOISE)
    values = torch.randint(N_VALUES, (batch, size), generator=generator)
    answers, distances = torch.full((2, batch, size), -1).unbind(0)
    told, asked = choose(2 * n_facts, size).chunk(2, dim=1)  # positions, (B, n_facts) each
    if told_first:
        told, asked = torch.minimum(told, asked), torch.maximum(told, asked)
    subject = choose(n_facts, N_NAMES)
    names.scatter_(1, told, subject).scatter_(1, asked, subject)
    answers.scatter_(1, asked, values.gather(1, told))
    distances.scatter_(1, asked, (asked - told).abs())
    values.scatter_(1, asked, ASKED)
    return names, values, answers, distances


class Reader(nn.Module):
    """An encoder of two layers that reads names and values, and guesses a value per position.

    attention: the kind of attention to put into each layer, with its settings; None: the library's
    own. links: a function from the positions that ask, (B, T) bool, to a mask; None: all see all.
    n_extra: how many extra tokens are put in front, as in ETC.
    """

    def __init__(
        self, size, attention=None, links=None, n_extra=0, d_model=64, n_heads=2, **settings
    ):
        super().__init__()
        config = BlockConfig(d_model, n_heads, 2 * d_model, 2, 0, 0.0, positional="none")
        self.name, self.value = nn.Embedding(N_NAMES + 1, d_model), nn.Embedding(17, d_model)
        self.place = nn.Parameter(0.1 * torch.randn(size, d_model))
        self.extra = nn.Parameter(torch.randn(n_extra, d_model))
        self.encoder, self.links = Encoder(config), links
        if attention is not None:
            exchange(self.encoder, attention, **settings)
        self.guess = nn.Linear(d_model, N_VALUES)

    def forward(self, names: Tensor, values: Tensor) -> Tensor:
        """names, values: (B, T) -> logits (B, T, N_VALUES)."""
        x = self.name(names) + self.value(values) + self.place  # (B, T, D)
        x = torch.cat([self.extra.expand(len(x), -1, -1), x], dim=1)
        mask = None if self.links is None else self.links(values == ASKED)
        return self.guess(self.encoder(x, mask)[:, len(self.extra) :])

    @property
    def cells(self) -> float:
        """How many scores per query it computes, or could compute with as much arithmetic."""
        attention = self.encoder.layers[0].self_attention
        places = len(self.place) + len(self.extra)
        return getattr(self.links or attention, "cells", places)


# ---- masks: the attention is the library's, and only the links differ ---------------------------


class Links(nn.Module):
    """The mask of a rule, which ignores who asks; several rules give one mask per head.

    The results are those of `sparse.sparse_attention`, but the masked pairs are computed and then
    hidden. At these lengths that trains faster; `cells` counts only the pairs that the rule links.
    """

    def __init__(self, size: int, *rules: sparse.Rule):
        super().__init__()
        mask = torch.cat([sparse.as_mask(rule, size) for rule in rules], dim=1)  # (1, H or 1, T, T)
        self.register_buffer("mask", mask, persistent=False)
        self.cells = mask.float().sum(-1).mean().item()

    def forward(self, asked: Tensor) -> Tensor:
        return self.mask


class QuestionsGlobal(Links):
    """Longformer's choice for question answering: tokens that ask see all and are seen by all.

    Local and global links share one set of projections; the paper has a second for the global ones.
    """

    def __init__(self, size: int, window: int, n_asked: int):
        super().__init__(size, sparse.local(window))
        self.cells += 2 * n_asked

    def forward(self, asked: Tensor) -> Tensor:
        return self.mask | asked[:, None, :, None] | asked[:, None, None, :]  # (B, 1, T, T)


# ---- layers with an `attend` of their own -------------------------------------------------------


class HashedAttention(MultiHeadAttention):
    """Reformer: queries and keys are the same vectors, here the mean of the two projections."""

    def __init__(self, *sizes, n_buckets: int, chunk: int, n_rounds: int):
        super().__init__(*sizes)
        self.settings = n_buckets, chunk, n_rounds
        self.cells = n_rounds * (2 * chunk + n_buckets / 4)

    def attend(self, q, k, v, mask=None, need_weights=False):
        return lsh.lsh_attention((q + k) / 2, v, *self.settings), None


class RoutedAttention(MultiHeadAttention):
    """Routing Transformer: the last heads attend within clusters, the first n_local in a window.

    During training, the centroids follow the queries and keys.
    """

    def __init__(
        self, *sizes, length: int, n_clusters: int, members: int, n_local: int, window: int
    ):
        super().__init__(*sizes)
        n_routed = self.n_heads - n_local
        start = F.normalize(torch.randn(n_routed, n_clusters, self.d_head), dim=-1)
        near = sparse.as_mask(sparse.local(window), length)
        self.register_buffer("centroids", start)
        self.register_buffer("near", near, persistent=False)
        self.n_local, self.members = n_local, members
        routed = n_clusters * members**2 / length + n_clusters
        local = near.float().sum(-1).mean().item()
        self.cells = (n_local * local + n_routed * routed) / self.n_heads

    def attend(self, q, k, v, mask=None, need_weights=False):
        split = (x.tensor_split([self.n_local], dim=1) for x in (q, k, v))
        local, routed = zip(*split, strict=True)
        if self.training:
            routing.move_centroids(self.centroids, torch.cat(routed[:2], dim=2))
        found = routing.routing_attention(*routed, self.centroids, self.members)  # (B, H', T, K)
        near = scaled_dot_product_attention(*local, self.near)[0]
        return torch.cat([near, found], dim=1), None


class LowRankAttention(MultiHeadAttention):
    """Linformer: keys and values are mixed over positions, in a way that is learned."""

    def __init__(self, *sizes, length: int, rank: int):
        super().__init__(*sizes)
        self.mix_k, self.mix_v = (
            nn.Parameter(torch.randn(rank, length) / math.sqrt(length)) for _ in range(2)
        )
        self.cells = 2 * rank

    def attend(self, q, k, v, mask=None, need_weights=False):
        return low_rank.linformer_attention(q, k, v, self.mix_k, self.mix_v), None


class FeatureAttention(MultiHeadAttention):
    """Linear attention with the features of Katharopoulos ("elu"), RFA or the Performer."""

    def __init__(self, *sizes, features: str, n_features: int = 0):
        super().__init__(*sizes)
        self.features = features
        n_directions = n_features // 2 if features == "rfa" else n_features
        directions = linear.orthogonal_directions(n_directions, self.d_head)
        self.register_buffer("directions", directions)
        if features == "rfa":
            self.length = nn.Parameter(torch.ones(()))
        self.cells = self.d_head if features == "elu" else 2 * n_features

    def attend(self, q, k, v, mask=None, need_weights=False):
        if self.features == "elu":
            q, k = linear.elu_features(q), linear.elu_features(k)
        elif self.features == "rfa":  # all vectors have one learned length
            q, k = (self.length * F.normalize(x, dim=-1) for x in (q, k))
            q, k = (linear.fourier_features(x, self.directions) for x in (q, k))
        else:
            q, k = (x / x.size(-1) ** 0.25 for x in (q, k))
            q, k = (linear.positive_features(x, self.directions) for x in (q, k))
        return linear.linear_attention(q, k, v), None


def reader(name: str, size: int = 128, n_facts: int = 24, budget: int = 32) -> Reader:
    """A Reader with the attention `name`, at about `budget` scores per query where that can be set.

    Raises ValueError with the valid names.
    """
    extra, half = 8, budget // 2
    long, anchors = size + extra, sparse.with_global(extra)
    near_etc, near_bigbird = (sparse.local((budget - n * extra) // 2) for n in (1, 2))
    random = sparse.random_links(long, extra, n_links=1)
    clusters = {"length": size, "n_clusters": size // budget, "members": budget, "window": half}

    def linked(*rules, n_extra=0):
        return Reader(size, links=Links(size + n_extra, *rules), n_extra=n_extra)

    kinds = {
        "full": lambda: Reader(size),
        "local": lambda: linked(sparse.local(half)),
        "dilated": lambda: linked(sparse.dilated(half, 4)),
        "strided": lambda: linked(sparse.strided(budget // 3)),
        "blockwise": lambda: linked(
            sparse.blockwise(budget, size), sparse.blockwise(budget, size, shift=1)
        ),
        "ETC": lambda: linked(sparse.any_of(near_etc, anchors), n_extra=extra),
        "Longformer": lambda: Reader(
            size, links=QuestionsGlobal(size, max(1, (budget - n_facts) // 2), n_facts)
        ),
        "BigBird": lambda: linked(sparse.any_of(near_bigbird, anchors, random), n_extra=extra),
        "Reformer": lambda: Reader(
            size, HashedAttention, n_buckets=size // 8, chunk=8, n_rounds=budget // 16
        ),
        "Routing": lambda: Reader(size, RoutedAttention, **clusters, n_local=1),
        "all routed": lambda: Reader(size, RoutedAttention, **clusters, n_local=0),
        "Linformer": lambda: Reader(size, LowRankAttention, length=size, rank=half),
        "RFA": lambda: Reader(size, FeatureAttention, features="rfa", n_features=half),
        "Performer": lambda: Reader(size, FeatureAttention, features="performer", n_features=half),
        "linear": lambda: Reader(size, FeatureAttention, features="elu"),
    }
    if name not in kinds:
        raise ValueError(f"no attention {name!r}; there are {', '.join(kinds)}.")
    return kinds[name]()


NAMES = [
    "full", "local", "dilated", "strided", "blockwise", "ETC", "Longformer", "BigBird", "Reformer",
    "Routing", "all routed", "Linformer", "RFA", "Performer", "linear",
]


def flops(model: Reader, d_model: int = 64) -> float:
    """Multiplications and additions per token in a forward pass, without embeddings."""
    # Four projections of D x D and two of D x 2D; two products of cells x D for the attention.
    return len(model.encoder.layers) * (16 * d_model**2 + 4 * model.cells * d_model)


def answer_loss(model: Reader, batch) -> Tensor:
    """Nats per question, over a batch from `draw`."""
    names, values, answers, _ = batch
    return F.cross_entropy(model(names, values).flatten(0, 1), answers.flatten(), ignore_index=-1)


@torch.no_grad()
def right_by_distance(model: Reader, batch, n_bins: int = 8) -> list[float]:
    """The share of questions answered correctly, for each of n_bins equal ranges of distance."""
    names, values, answers, distances = batch
    was_training = model.training
    said = model.eval()(names, values).argmax(-1)  # (B, T)
    model.train(was_training)
    return by_distance(said, answers, distances, n_bins)


def by_distance(said: Tensor, answers: Tensor, distances: Tensor, n_bins: int) -> list[float]:
    """The share of right answers in each of n_bins ranges. said, answers, distances: (B, T)."""
    asked = answers >= 0
    right = (said == answers)[asked].float()
    bins = distances[asked] * n_bins // answers.size(1)
    return [right[bins == b].mean().item() for b in range(n_bins)]


def direct_links(name: str, budget: int = 32, n_bins: int = 8) -> list[float]:
    """The share of pairs that a fixed rule links directly, for each of n_bins ranges of distance.

    Only positions in the text count, because extra tokens in front hold no facts. A pair counts as
    linked if any head links it.
    """
    model = reader(name, budget=budget)
    size = len(model.place)
    linked = model.links.mask.any(1)[0, -size:, -size:].float()  # (T, T)
    apart = (torch.arange(size)[:, None] - torch.arange(size)).abs()
    bins = apart * n_bins // size
    return [linked[(bins == b) & (apart > 0)].mean().item() for b in range(n_bins)]
