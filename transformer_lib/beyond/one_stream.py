"""Translation without an encoder: source and target form one text, which the model continues.

A pair becomes the stream `source <eos> <bos> target <eos>` (Liu et al. 2018). <bos> comes where the
source ends, so it means "now the translation". A single text is a stream with an empty source.
"""

import copy

import torch
from torch import Tensor, nn

from transformer_lib.batching import Batches
from transformer_lib.blocks import init_weights
from transformer_lib.cache import DecoderCache
from transformer_lib.config import BOS, PAD, ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.normalization import LayerNorm, RMSNorm


def stream_batches(
    sources: list[list[int]],
    targets: list[list[int]],
    max_tokens: int,
    seed: int,
    count_source: bool = False,
) -> Batches:
    """Batches of streams: the ids to read, (B, S + T), and those to predict there, (B, S + T).

    sources end with <eos>; targets begin with <bos> and end with <eos>. At the source's positions
    there is nothing to predict (PAD), or with count_source, the next token. With the same seed,
    batches hold the same pairs as those of training.translation_batches.
    """
    pairs = list(zip(sources, targets, strict=True))
    read = [source + target[:-1] for source, target in pairs]
    if count_source:
        predicted = [(source + target)[1:] for source, target in pairs]
    else:
        predicted = [[PAD] * len(source) + target[1:] for source, target in pairs]
    counts = [sum(token != PAD for token in row) for row in predicted]
    lengths = [(len(source), len(target) - 1) for source, target in pairs]
    return Batches([read, predicted], lengths, counts, max_tokens, seed)


def stream_loss(model: nn.Module, batch: tuple[Tensor, Tensor], smoothing: float = 0.0) -> Tensor:
    """Mean loss per counted token. batch: read and predicted, (B, T), PAD where it doesn't count.

    Only the positions that count are projected onto the vocabulary.
    """
    read, predicted = batch
    counted = predicted != PAD  # (B, T)
    logits = model.project(model.decode(read)[counted])  # (N, V)
    return label_smoothed_cross_entropy(logits, predicted[counted], smoothing, PAD)


class PrefixLanguageModel(LanguageModel):
    """A language model that reads what comes before the first <bos>, the prefix, in both
    directions, and writes the rest from left to right (Dong et al. 2019; Raffel et al. 2020).
    """

    def mask(self, ids: Tensor, start: int = 0) -> Tensor:
        """Causal, and every token reads the whole prefix. Returns (B, 1, T, start + T)."""
        causal = super().mask(ids, start)
        if start:  # the prefix is in the cache, and the causal mask lets all of the cache be read
            return causal
        prefix = (ids == BOS).cumsum(1) == 0  # (B, T)
        return causal | prefix[:, None, None, :]


class ByPart(nn.Module):
    """A map with two sets of weights: one for the source's tokens and one for all others."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.of_source, self.of_rest = layer, copy.deepcopy(layer)
        init_weights(self.of_rest)
        self.is_source: Tensor | None = None  # (B, T, 1) bool, set before each pass

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D')."""
        return torch.where(self.is_source, self.of_source(x), self.of_rest(x))


class TwoPartLanguageModel(PrefixLanguageModel):
    """A prefix language model that reads the source with weights of its own, as an encoder does.

    A layer has twice as many parameters, but each token uses only half of them.
    """

    def __init__(self, config: ModelConfig):
        super().__init__(config)
        for module in list(self.decoder.layers.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear | LayerNorm | RMSNorm):
                    setattr(module, name, ByPart(child))

    def decode(self, ids: Tensor, cache: DecoderCache | None = None) -> Tensor:
        """ids: (B, T), only the new ones if there is a cache -> hidden (B, T, D)."""
        is_source = (ids == BOS).cumsum(1) == 0  # (B, T)
        if cache is not None and cache.length:
            is_source = torch.zeros_like(is_source)  # the source is in the cache
        for module in self.modules():
            if isinstance(module, ByPart):
                module.is_source = is_source[:, :, None]
        return super().decode(ids, cache)


class CausalTwoPart(TwoPartLanguageModel):
    """A `TwoPartLanguageModel` under a causal mask: no token reads one that comes after it."""

    mask = LanguageModel.mask


def translate_streams(
    model: LanguageModel, sources: list[list[int]], max_rows: int = 128, decode=greedy_decode
) -> list[list[int]]:
    """Return the ids that the model writes after each source and <bos>. Only prompts of the same
    length share a batch, because the model has no mask for padding on the left.
    """
    written: list = [None] * len(sources)
    device = next(model.parameters()).device
    by_length: dict[int, list[int]] = {}
    for i, source in enumerate(sources):
        by_length.setdefault(len(source), []).append(i)
    for rows in by_length.values():
        for start in range(0, len(rows), max_rows):
            some = rows[start : start + max_rows]
            prompts = torch.tensor([sources[i] + [BOS] for i in some], device=device)
            for i, ids in zip(some, decode(model, prompts).tolist(), strict=True):
                written[i] = ids
    return written
