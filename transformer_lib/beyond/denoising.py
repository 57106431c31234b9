"""Damage texts for a model to restore, so that an encoder-decoder can learn without pairs.

The functions damage one text, a list of ids without <bos> and <eos>; `rng` is a random.Random.
Gaps and tags have ids above those of the tokenizer: the language tags first, then the gaps.
"""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.batching import Batches, pad
from transformer_lib.config import BOS, EOS


def random_lengths(total: int, parts: int, rng: random.Random) -> list[int]:
    """Split `total` at random into `parts` whole numbers, each at least 1."""
    cuts = sorted(rng.sample(range(1, total), parts - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]


def span_corruption(
    ids: list[int], first_gap: int, rng: random.Random, share: float = 0.15, span: float = 3.0
) -> tuple[list[int], list[int]]:
    """T5 (Raffel et al. 2020, fig. 2): each lost span leaves a gap; the target lists the spans.

    About `share` of the tokens are lost, in spans of `span` tokens on average. Gap i has the id
    first_gap + i. Returns the damaged text and the target, whose last gap marks the end.
    """
    if len(ids) < 2:
        raise ValueError(f"a text of {len(ids)} tokens has no span to lose: give at least 2.")
    n_lost = min(max(round(len(ids) * share), 1), len(ids) - 1)
    n_kept = len(ids) - n_lost
    n_spans = min(max(round(n_lost / span), 1), n_kept + 1)
    lost = random_lengths(n_lost, n_spans, rng)
    # At least one token stays between two spans, but maybe none before the first or after the last.
    kept = random_lengths(n_kept + 2, n_spans + 1, rng)
    kept[0], kept[-1] = kept[0] - 1, kept[-1] - 1
    source, target, at = ids[: kept[0]], [], kept[0]
    for i, (goes, stays) in enumerate(zip(lost, kept[1:], strict=True)):
        source = [*source, first_gap + i, *ids[at + goes : at + goes + stays]]
        target += [first_gap + i, *ids[at : at + goes]]
        at += goes + stays
    return source, target + [first_gap + n_spans]


def restore(source: list[int], target: list[int], first_gap: int) -> list[int]:
    """Put the spans of `target` into the gaps of `source`: this undoes span_corruption."""
    spans, text = {}, []
    for token in target:
        if token >= first_gap:
            spans[token] = span = []
        else:
            span.append(token)
    for token in source:
        text += spans[token] if token >= first_gap else [token]
    return text


def text_infilling(
    ids: list[int], gap: int, rng: random.Random, share: float = 0.3, span: float = 3.0
) -> list[int]:
    """BART (Lewis et al. 2020, sec. 2.2): each span becomes one gap, whatever the span's length.

    Lengths are Poisson with mean `span`, drawn until `share` of the tokens are lost; a span of 0
    tokens puts a gap where nothing is missing.
    """
    n_lost, spans = round(len(ids) * share), []
    while sum(spans) < n_lost:
        spans.append(min(poisson(span, rng), n_lost - sum(spans)))
    order = [None] * (len(ids) - n_lost) + spans  # None: the next token stays
    rng.shuffle(order)
    source, at = [], 0
    for length in order:
        source.append(ids[at] if length is None else gap)
        at += 1 if length is None else length
    return source


def poisson(mean: float, rng: random.Random) -> int:
    """Draw a whole number from a Poisson distribution with this mean (Knuth's method)."""
    n, product = 0, rng.random()
    while product > math.exp(-mean):
        n, product = n + 1, product * rng.random()
    return n


def token_masking(ids: list[int], gap: int, rng: random.Random, share: float = 0.3) -> list[int]:
    """Replace each lost token by a gap, so that the text keeps its length."""
    lost = set(rng.sample(range(len(ids)), round(len(ids) * share)))
    return [gap if i in lost else token for i, token in enumerate(ids)]


def token_deletion(ids: list[int], rng: random.Random, share: float = 0.3) -> list[int]:
    """Delete tokens without a trace, so that the model has to find out where they are missing."""
    lost = set(rng.sample(range(len(ids)), round(len(ids) * share)))
    return [token for i, token in enumerate(ids) if i not in lost]


def local_shuffle(ids: list[int], rng: random.Random, reach: float = 3.0) -> list[int]:
    """Shuffle tokens, moving none by more than `reach` positions (Lample et al. 2018, sec. 2.3).

    BART permutes whole sentences instead, but a caption has only one.
    """
    keys = [i + rng.uniform(0, reach + 1) for i in range(len(ids))]
    return [ids[i] for i in sorted(range(len(ids)), key=keys.__getitem__)]


class DamagedBatches(Batches):
    """Batches of (damaged source, what to write), damaged again in every epoch.

    texts: ids without <bos> and <eos>; tags: for each text an id that is put first in its source
    and names the language to write. damage(ids, rng) -> (source, target).
    """

    def __init__(
        self,
        texts: list[list[int]],
        tags: list[int],
        damage: Callable[[list[int], random.Random], tuple[list[int], list[int]]],
        max_tokens: int,
        seed: int,
    ):
        self.damage, self.seed, self.tags = damage, seed, tags
        # The length of a target depends only on the length of its text.
        counts = [len(damage(ids, random.Random(0))[1]) + 1 for ids in texts]  # with <eos>
        lengths = [len(ids) + 2 for ids in texts]  # with its tag and <eos>
        super().__init__([texts], lengths, counts, max_tokens, seed)

    def tensors(self, batch: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """src_ids (B, S), tgt_ids (B, T + 1), as training.translation_loss expects them."""
        sources, targets = [], []
        for i in batch:
            rng = random.Random(f"{self.seed}-{self.epoch}-{self.next_batch}-{i}")
            source, target = self.damage(self.columns[0][i], rng)
            sources.append([self.tags[i], *source, EOS])
            targets.append([BOS, *target, EOS])
        return pad(sources).to(device), pad(targets).to(device)


def two_tags(
    sources: list[list[int]], targets: list[list[int]], of_source: int, of_target: int
) -> tuple[list[list[int]], list[list[int]]]:
    """M2M-100's tags (Fan et al. 2021): each source begins with its own language's tag, and
    each target with the tag of the language to write. Here a target's tag replaces <bos>; in
    M2M-100 it comes after <bos>.
    """
    read = [[of_source, *ids] for ids in sources]
    return read, [[of_target, *ids[1:]] for ids in targets]
