"""A task that needs links of every length, and a small model in which attention is exchanged.

Some places of a text say which value a name has, as many others ask for it, before or after. The
rest is noise. A mechanism that is cheap because it drops far links fails here, and fails more the
farther the answer is.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond import linear, low_rank, lsh, routing, sparse

N_NAMES, N_VALUES = 64, 16
NOISE, ASKED = N_NAMES, N_VALUES  # one more name, which is noise, and one more value, "?"


def draw(batch: int, size: int, n_facts: int, generator: torch.Generator):
    """One batch of texts: names, values, answers, distances, each (B, T) integers.

    Each place holds a name and a value. n_facts places state a fact and n_facts others ask for
    one. answers is -1 where nothing is asked; distances counts the places from question to fact.
    """

    def choose(n, of):  # (B, n) different numbers below `of`
        return torch.rand(batch, of, generator=generator).argsort(-1)[:, :n]

    names = torch.full((batch, size), NOISE)
    values = torch.randint(N_VALUES, (batch, size), generator=generator)
    answers, distances = torch.full((2, batch, size), -1).unbind(0)
    told, asked = choose(2 * n_facts, size).chunk(2, dim=1)  # places, (B, n_facts) each
    subject = choose(n_facts, N_NAMES)
    names.scatter_(1, told, subject).scatter_(1, asked, subject)
    answers.scatter_(1, asked, values.gather(1, told))
    distances.scatter_(1, asked, (asked - told).abs())
    values.scatter_(1, asked, ASKED)
    return names, values, answers, distances


class CheapAttention(nn.Module):
    """Multi-head attention whose inner part, attend(q, k, v, asked), can be exchanged."""

    def __init__(self, d_model: int, n_heads: int, attend):
        super().__init__()
        self.heads, self.attend = MultiHeadAttention(d_model, n_heads), attend

    def forward(self, x: Tensor, asked: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D). asked: (B, T) bool, for an attention that is told the places."""
        heads = self.heads
        q, k, v = (heads.split_heads(w(x)) for w in (heads.w_q, heads.w_k, heads.w_v))
        return heads.w_o(heads.join_heads(self.attend(q, k, v, asked)))


class Reader(nn.Module):
    """Two pre-norm layers over names and values, a guess of a value at each place.

    attends: one inner attention for each layer. n_extra: tokens in front that belong to no place,
    as ETC's global tokens.
    """

    def __init__(self, size: int, attends, d_model: int = 64, n_heads: int = 2, n_extra: int = 0):
        super().__init__()
        self.name, self.value = nn.Embedding(N_NAMES + 1, d_model), nn.Embedding(17, d_model)
        self.place = nn.Parameter(0.1 * torch.randn(size, d_model))
        self.extra = nn.Parameter(torch.randn(n_extra, d_model))
        self.attention = nn.ModuleList(CheapAttention(d_model, n_heads, a) for a in attends)
        self.feed_forward = nn.ModuleList(
            nn.Sequential(
                nn.Linear(d_model, 2 * d_model), nn.ReLU(), nn.Linear(2 * d_model, d_model)
            )
            for _ in attends
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * len(attends) + 1))
        self.guess = nn.Linear(d_model, N_VALUES)

    def forward(self, names: Tensor, values: Tensor) -> Tensor:
        """(B, T) each -> logits (B, T, N_VALUES)."""
        x = self.name(names) + self.value(values) + self.place  # (B, T, D)
        x = torch.cat([self.extra.expand(len(x), -1, -1), x], dim=1)
        norms = iter(self.norms)
        for attention, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            x = x + attention(next(norms)(x), values == ASKED)
            x = x + feed_forward(next(norms)(x))
        return self.guess(next(norms)(x))[:, len(self.extra) :]


# ---- what stands inside ------------------------------------------------------------------------
#
# Each has `cells`: how many scores a query costs, or arithmetic worth as many.


class Full(nn.Module):
    """What all others are compared with."""

    def __init__(self, size: int):
        super().__init__()
        self.cells = size

    def forward(self, q, k, v, asked):
        return F.scaled_dot_product_attention(q, k, v)


class Masked(nn.Module):
    """The numbers of `sparse.sparse_attention`: here the masked pairs are computed and hidden.

    rules: one for all heads, or one each. At these lengths the mask is the faster way to train;
    `cells` counts what the rule links.
    """

    def __init__(self, size: int, *rules):
        super().__init__()
        mask = torch.cat([sparse.as_mask(rule, size) for rule in rules], dim=1)  # (1, H or 1, T, T)
        self.register_buffer("mask", mask, persistent=False)
        self.cells = mask.float().sum(-1).mean().item()

    def forward(self, q, k, v, asked):
        return F.scaled_dot_product_attention(q, k, v, self.mask)


class QuestionsGlobal(Masked):
    """Longformer's choice where it answers questions: their places see all and are seen by all."""

    def __init__(self, size: int, window: int, n_asked: int):
        super().__init__(size, sparse.local(window))
        self.cells += 2 * n_asked

    def forward(self, q, k, v, asked):
        link = asked[:, None, :, None] | asked[:, None, None, :]  # (B, 1, T, T)
        return F.scaled_dot_product_attention(q, k, v, self.mask | link)


class Hashed(nn.Module):
    """Reformer: queries and keys are the same vectors, here the mean of both projections."""

    def __init__(self, n_buckets: int, chunk: int, n_rounds: int):
        super().__init__()
        self.settings = n_buckets, chunk, n_rounds
        self.cells = n_rounds * (2 * chunk + n_buckets / 4)

    def forward(self, q, k, v, asked):
        return lsh.lsh_attention((q + k) / 2, v, *self.settings)


class Routed(nn.Module):
    """Routing Transformer: the centroids follow queries and keys while it trains."""

    def __init__(self, size: int, n_heads: int, d_k: int, n_clusters: int, members: int):
        super().__init__()
        start = F.normalize(torch.randn(n_heads, n_clusters, d_k), dim=-1)
        self.register_buffer("centroids", start)
        self.members = members
        self.cells = n_clusters * members * members / size + n_clusters

    def forward(self, q, k, v, asked):
        if self.training:
            routing.move_centroids(self.centroids, torch.cat([q, k], dim=2))
        return routing.routing_attention(q, k, v, self.centroids, self.members)


class LowRank(nn.Module):
    """Linformer: what is mixed is learned."""

    def __init__(self, size: int, rank: int):
        super().__init__()
        self.mix_k, self.mix_v = (
            nn.Parameter(torch.randn(rank, size) / math.sqrt(size)) for _ in range(2)
        )
        self.cells = 2 * rank

    def forward(self, q, k, v, asked):
        return low_rank.linformer_attention(q, k, v, self.mix_k, self.mix_v)


class Featured(nn.Module):
    """Linear attention with the features of Katharopoulos ("elu"), RFA or the Performer."""

    def __init__(self, kind: str, d_k: int, n_features: int):
        super().__init__()
        self.kind = kind
        n_directions = n_features // 2 if kind == "rfa" else n_features
        directions = linear.orthogonal_directions(n_directions, d_k)
        self.register_buffer("directions", directions)
        if kind == "rfa":
            self.length = nn.Parameter(torch.ones(()))
        self.cells = d_k if kind == "elu" else 2 * n_features

    def forward(self, q, k, v, asked):
        if self.kind == "elu":
            return linear.linear_attention(linear.elu_features(q), linear.elu_features(k), v)
        if self.kind == "rfa":  # vectors of one, learned length
            q, k = (self.length * F.normalize(x, dim=-1) for x in (q, k))
            features = linear.fourier_features
        else:
            q, k = (x / x.size(-1) ** 0.25 for x in (q, k))
            features = linear.positive_features
        q, k = (features(x, self.directions) for x in (q, k))
        return linear.linear_attention(q, k, v)


def reader(name: str, size: int = 128, n_facts: int = 24, budget: int = 32) -> Reader:
    """A Reader with the attention `name`, at about `budget` scores a query where it has a choice.

    Raises ValueError with the names that there are.
    """
    n_heads, d_k, extra = 2, 32, 8
    half = budget // 2
    long = size + extra
    anchors = sparse.with_global(extra)
    kinds = {
        "full": lambda: Full(size),
        "local": lambda: Masked(size, sparse.local(half)),
        "dilated": lambda: Masked(size, sparse.dilated(half, 4)),
        "strided": lambda: Masked(size, sparse.strided(budget // 3)),
        "blockwise": lambda: Masked(
            size, sparse.blockwise(budget, size), sparse.blockwise(budget, size, shift=1)
        ),
        "ETC": lambda: Masked(long, sparse.any_of(sparse.local((budget - extra) // 2), anchors)),
        "Longformer": lambda: QuestionsGlobal(size, max(1, (budget - n_facts) // 2), n_facts),
        "BigBird": lambda: Masked(
            long,
            sparse.any_of(
                sparse.local((budget - 2 * extra) // 2),
                anchors,
                sparse.random_links(long, extra, n_links=1),
            ),
        ),
        "Reformer": lambda: Hashed(n_buckets=size // 8, chunk=8, n_rounds=budget // 16),
        "Routing": lambda: Routed(size, n_heads, d_k, n_clusters=size // budget, members=budget),
        "Linformer": lambda: LowRank(size, half),
        "RFA": lambda: Featured("rfa", d_k, half),
        "Performer": lambda: Featured("performer", d_k, half),
        "linear": lambda: Featured("elu", d_k, d_k),
    }
    if name not in kinds:
        raise ValueError(f"no attention {name!r}; there are {', '.join(kinds)}.")
    attends = [kinds[name]() for _ in range(2)]
    return Reader(size, attends, n_heads=n_heads, n_extra=extra * (name in ("ETC", "BigBird")))


NAMES = (
    "full local dilated strided blockwise ETC Longformer BigBird Reformer Routing Linformer RFA "
    "Performer linear"
).split()


def flops(model: Reader, d_model: int = 64) -> float:
    """Multiplications and additions for one token of a forward pass, without embeddings."""
    # Four projections of D x D and two of D x 2D; two products of cells x D for the attention.
    return sum(16 * d_model**2 + 4 * a.attend.cells * d_model for a in model.attention)


def training_step(model: Reader, optimizer, batch) -> float:
    """One update on the answers of a batch from `draw`; returns the loss (nats per question)."""
    names, values, answers, _ = batch
    loss = F.cross_entropy(model(names, values).flatten(0, 1), answers.flatten(), ignore_index=-1)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def right_by_distance(model: Reader, batch, n_bins: int = 8) -> list[float]:
    """Share of questions answered right, for each of n_bins equal ranges of distance."""
    names, values, answers, distances = batch
    was_training = model.training
    right = (model.eval()(names, values).argmax(-1) == answers)[answers >= 0].float()
    model.train(was_training)
    bins = distances[answers >= 0] * n_bins // names.size(1)
    return [right[bins == b].mean().item() for b in range(n_bins)]
