"""Training tasks for encoder-only models, and what BERT's successors changed, a few lines each.

The <mask> token, which hides others, has the last id of the model's vocabulary, which has one token
more than the tokenizer's. Every text begins with <bos>, whose vector represents the whole text.
"""

import math
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.config import BOS, EOS, UNK, ModelConfig
from transformer_lib.masks import causal_mask
from transformer_lib.models.classifier import EncoderOnly, MaskedLanguageModel


class LeftOnly(MaskedLanguageModel):
    """The same model, but each token sees only itself and those before it."""

    def encode(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """ids: (B, T) -> (B, T, D). Padding is at the end, so no real token sees it."""
        return self.encoder(self.embed(self.embedding(ids)), causal_mask(ids.size(1), ids.device))


def from_bert(state: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    """The weights of a BertForMaskedLM of `transformers`, under MaskedLanguageModel's names."""
    names = {
        "embedding.lookup.weight": "bert.embeddings.word_embeddings.weight",
        "embed.positions.table": "bert.embeddings.position_embeddings.weight",
        "segments.weight": "bert.embeddings.token_type_embeddings.weight",
        "output.weight": "bert.embeddings.word_embeddings.weight",
        "output.bias": "cls.predictions.bias",
    }
    parts = {
        "embed.norm": "bert.embeddings.LayerNorm",
        "transform": "cls.predictions.transform.dense",
        "norm": "cls.predictions.transform.LayerNorm",
    }
    for i in range(n_layers):
        ours, theirs = f"encoder.layers.{i}.", f"bert.encoder.layer.{i}."
        for part, other in (
            ("self_attention.w_q", "attention.self.query"),
            ("self_attention.w_k", "attention.self.key"),
            ("self_attention.w_v", "attention.self.value"),
            ("self_attention.w_o", "attention.output.dense"),
            ("residuals.0.norm", "attention.output.LayerNorm"),
            ("feed_forward.expand", "intermediate.dense"),
            ("feed_forward.contract", "output.dense"),
            ("residuals.1.norm", "output.LayerNorm"),
        ):
            parts[ours + part] = theirs + other
    for part, other in parts.items():
        names |= {f"{part}.{kind}": f"{other}.{kind}" for kind in ("weight", "bias")}
    return {ours: state[theirs] for ours, theirs in names.items()}


def mask_tokens(
    ids: Tensor, mask_id: int, rate: float = 0.15, parts: tuple = (0.8, 0.1, 0.1), generator=None
) -> tuple[Tensor, Tensor]:
    """Choose tokens to be guessed, and hide or replace them (Devlin et al. 2019, sec. 3.1).

    ids: (B, T); special tokens, with ids below 4, are never chosen. parts: the shares of the chosen
    tokens that become mask_id, that become another token (ids 4 to mask_id - 1), and that stay as
    they are. Returns the ids to read, (B, T), and True where the model has to guess, (B, T) bool.
    """
    if len(parts) != 3 or min(parts) < 0 or abs(sum(parts) - 1) > 1e-6:
        raise ValueError(f"parts are {parts}; expected three shares that sum to 1.")
    chosen = (torch.rand(ids.shape, generator=generator) < rate).to(ids.device) & (ids > UNK)
    fate = torch.rand(ids.shape, generator=generator).to(ids.device)
    others = torch.randint(UNK + 1, mask_id, ids.shape, generator=generator).to(ids.device)
    read = torch.where(chosen & (fate < parts[0] + parts[1]), others, ids)
    return torch.where(chosen & (fate < parts[0]), mask_id, read), chosen


def guessing_loss(
    model: MaskedLanguageModel, read: Tensor, ids: Tensor, chosen: Tensor, segments=None
) -> Tensor:
    """The mean cross-entropy at the chosen positions. read, ids, chosen, segments: (B, T) each."""
    hidden = model.encode(read, segments)[chosen]  # (N, D): the others are never projected
    total = F.cross_entropy(model.project(hidden), ids[chosen], reduction="sum")
    return total / max(1, len(hidden))


def masked_loss(model: MaskedLanguageModel, batch: tuple, rate=0.15, parts=(0.8, 0.1, 0.1)):
    """Hide different tokens at every call (Liu et al. 2019: dynamic masking), and guess them.

    batch: ids (B, T), and segments (B, T) if the texts are pairs.
    """
    ids, *segments = batch
    read, chosen = mask_tokens(ids, model.config.vocab_size - 1, rate, parts)
    return guessing_loss(model, read, ids, chosen, *segments)


def start_from(model: EncoderOnly, pretrained: EncoderOnly) -> EncoderOnly:
    """Copy all weights of `pretrained` but its head's into `model`, an encoder of the same size."""
    body = ("embedding.", "segments.", "embed.", "encoder.")
    taken = {k: v for k, v in pretrained.state_dict().items() if k.startswith(body)}
    model.load_state_dict(model.state_dict() | taken)
    return model


def two_texts(first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
    """<bos> first <eos> second <eos>, and for each token which part it belongs to, 0 or 1."""
    ids = [BOS, *first, EOS, *second, EOS]
    return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)


def sentence_pairs(texts: list[tuple], kind: str, seed: int = 0) -> list[tuple]:
    """Turn texts, each (first half, second half), into (first, second, label); half get label 1.

    kind "next": 1 if the second half comes from another text (Devlin et al. 2019). kind "order": 1
    if the halves are in the wrong order (Lan et al. 2020).
    """
    if kind not in ("next", "order"):
        raise ValueError(f"kind is {kind!r}; it must be 'next' or 'order'.")
    rng, pairs = random.Random(seed), []
    for i, (first, second) in enumerate(texts):
        label = rng.randrange(2)
        if label and kind == "order":
            first, second = second, first
        elif label:
            second = texts[(i + rng.randrange(1, len(texts))) % len(texts)][1]
        pairs.append((first, second, label))
    return pairs


class ReplacedTokens(nn.Module):
    """A small model fills gaps, and a larger one finds the replaced tokens (Clark et al. 2020).

    The two share their embeddings, so `config` and `small` differ only in depth and d_ff. After
    training, only `detector` is kept.
    """

    def __init__(self, config: ModelConfig, small: ModelConfig):
        super().__init__()
        self.config = config
        self.generator, self.detector = MaskedLanguageModel(small), EncoderOnly(config)
        self.generator.embedding = self.detector.embedding
        self.generator.output.weight = self.detector.embedding.lookup.weight
        self.output = nn.Linear(config.d_model, 1)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> logits (B, T): above 0 where a token seems to have been replaced."""
        return self.output(self.detector.encode(ids))[..., 0]


def replaced_loss(model: ReplacedTokens, batch: tuple, rate=0.15, weight: float = 50.0) -> Tensor:
    """The generator's loss, plus `weight` times the detector's, over all real tokens.

    No gradient flows through the draw, so the generator is not trained to fool the detector.
    """
    (ids,) = batch
    read, chosen = mask_tokens(ids, model.config.vocab_size - 1, rate, (1.0, 0.0, 0.0))
    logits = model.generator.project(model.generator.encode(read)[chosen])  # (N, V)
    drawn = torch.distributions.Categorical(logits=logits).sample()
    shown = ids.masked_scatter(chosen, drawn)  # (B, T), no <mask> in it
    replaced, real = shown != ids, ids > UNK
    judged = model(shown)[real]  # (number of real tokens,)
    found = F.binary_cross_entropy_with_logits(judged, replaced[real].to(judged.dtype))
    guessed = F.cross_entropy(logits, ids[chosen], reduction="sum") / max(1, len(logits))
    return guessed + weight * found


def share_layers(model: EncoderOnly) -> EncoderOnly:
    """Replace every layer by the first one, the same object (Lan et al. 2020, ALBERT)."""
    layers = model.encoder.layers
    model.encoder.layers = nn.ModuleList([layers[0]] * len(layers))
    return model


class FactorisedEmbedding(nn.Module):
    """An embedding of V * E + E * D numbers instead of V * D (Lan et al. 2020, sec. 3.1)."""

    def __init__(self, vocab_size: int, width: int, d_model: int):
        super().__init__()
        self.lookup = nn.Embedding(vocab_size, width)
        self.expand = nn.Linear(width, d_model, bias=False)
        nn.init.normal_(self.lookup.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> (B, T, D)."""
        return self.expand(self.lookup(ids))


def factorise(model: MaskedLanguageModel, width: int) -> MaskedLanguageModel:
    """Route embeddings and output through `width` numbers, with one shared (V, width) matrix."""
    vocab_size, d_model = model.config.vocab_size, model.config.d_model
    model.embedding = FactorisedEmbedding(vocab_size, width, d_model)
    model.output = nn.Sequential(nn.Linear(d_model, width), nn.Linear(width, vocab_size))
    model.output[1].weight = model.embedding.lookup.weight
    return model


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 2.0) -> Tensor:
    """How far the student's guesses are from the teacher's (Hinton et al. 2015; Sanh et al. 2019).

    student, teacher: logits (N, V). A temperature above 1 reveals more of the alternatives that the
    teacher considers possible; multiplying by its square keeps the gradients at their old size.
    """
    wanted = (teacher / temperature).softmax(-1)
    said = (student / temperature).log_softmax(-1)
    return F.kl_div(said, wanted, reduction="batchmean") * temperature**2


def disentangled_scores(
    q: Tensor, k: Tensor, q_places: Tensor, k_places: Tensor, released: bool = False
) -> Tensor:
    """Content to content, content to place and place to content (He et al. 2021, DeBERTa, eq. 4).

    q, k: (B, H, T, K), from the tokens; q_places, k_places: (H, 2R, K), from the distances -R to
    R - 1, beyond which all distances count as equal. released: the last term uses the distance from
    the query to the key, as the published code does; the paper's uses that from the key to the
    query. Returns (B, H, T, T), scaled as a sum of three terms.
    """
    length, reach = q.size(-2), k_places.size(-2) // 2
    t = torch.arange(length, device=q.device)
    away = t[:, None] - t  # (T, T): row minus column

    def at(distance):  # (B, H, T, T): which of the 2R vectors
        return (distance + reach).clamp(0, 2 * reach - 1).expand(*q.shape[:2], -1, -1)

    content = q @ k.transpose(-2, -1)
    to_place = (q @ k_places.transpose(-2, -1)).gather(-1, at(away))
    from_key = (k @ q_places.transpose(-2, -1)).gather(-1, at(-away if released else away))
    return (content + to_place + from_key.transpose(-2, -1)) / math.sqrt(3 * q.size(-1))
