"""Several translations of one sentence, and four ways to choose among them.

Candidates come from sampling (`sampled`) or from the list that a beam leaves (`n_best`). Then

- the model itself chooses, or the model for the other direction, or both (`rerank`),
- the candidates vote: the one that is most like the others wins (`agreement`),
- or a person's translation decides (`nearest`), which shows what the best choice would be worth.
"""

from collections import Counter

import torch
from torch import Tensor, nn

from transformer_lib.batching import pad
from transformer_lib.config import BOS, EOS, PAD
from transformer_lib.decoding import (
    _top,
    evaluating,
    finished_score,
    in_batches,
    length_limits,
    sample,
)
from transformer_lib.evaluation import sentence_scores
from transformer_lib.tokenization import encode_source
from transformer_lib.translator import Translator

# ---- candidates ----------------------------------------------------------------------------------


def sampled(
    model: nn.Module,
    sources: list[list[int]],
    n: int,
    temperature: float,
    generator: torch.Generator | None = None,
    max_tokens: int = 4096,
) -> list[list[list[int]]]:
    """Draw n samples for each source, as lists of ids without padding: (sources, n, length)."""
    if n < 1:
        raise ValueError(f"n is {n}; draw at least 1 sample of each sentence.")

    def draw(src: Tensor) -> list:  # (B, S) -> B lists of n
        ids = sample(model, src.repeat_interleave(n, 0), temperature, generator=generator)
        rows = [row[row != PAD].tolist() for row in ids]  # (B * n, length)
        return [rows[i : i + n] for i in range(0, len(rows), n)]

    return in_batches(draw, sources, max_tokens // n)


@torch.inference_mode()
def n_best(
    model: nn.Module,
    src_ids: Tensor,
    n: int,
    max_len: int | None = None,
    length_penalty: float = 1.0,
    bos_id: int = BOS,
    eos_id: int = EOS,
) -> list[tuple[float, list[int]]]:
    """The translations that a beam of n finishes, best first: (score, ids) for one source.

    src_ids: (1, S). beam_search computes the same scores, but returns only the first of these.
    Those that max_len cuts off count as they are, without <eos>.
    """
    if src_ids.size(0) != 1:
        raise ValueError(f"src_ids has {src_ids.size(0)} rows; pass one sentence, (1, S).")
    if n < 1 or 2 * n > model.config.vocab_size:
        raise ValueError(
            f"n is {n}; it must be at least 1 and at most half the vocabulary "
            f"({model.config.vocab_size // 2})."
        )
    finished = []
    with evaluating(model):
        ids, state = model.start(src_ids, bos_id)
        first, limit = ids.size(1), int(length_limits(model, src_ids, max_len, ids.size(1))[0])
        ids = ids.repeat_interleave(n, 0)  # (n, length) prefixes
        totals = torch.tensor([0.0] + [-torch.inf] * (n - 1))  # all n are the same: count only one
        for length in range(1, limit + 1):
            log_p, tokens = _top(model, ids[:, state.length :], state, 2 * n)  # (n, 2n)
            totals, choice = (totals[:, None] + log_p).flatten().topk(2 * n)  # (2n,)
            origin, tokens = choice // (2 * n), tokens.flatten()[choice]
            ended = tokens == eos_id
            for i in range(n):
                if ended[i] or length == limit:
                    written = ids[origin[i], first:].tolist() + [int(tokens[i])]
                    score = finished_score(float(totals[i]), length, length_penalty)
                    finished.append((score, written))
            if len(finished) >= n:
                break
            totals, kept = totals.masked_fill(ended, -torch.inf).topk(n)
            ids = torch.cat([ids[origin[kept]], tokens[kept, None]], dim=1)
            state.select(origin[kept], None)
    return sorted(finished, key=lambda found: -found[0])[:n]


# ---- what models think of them -------------------------------------------------------------------


@torch.no_grad()
def log_probability(
    model: nn.Module, sources: list[list[int]], targets: list[list[int]], size: int = 100
) -> Tensor:
    """log P(target | source) for pairs of lists of ids, teacher-forced, summed over tokens: (n,).

    targets: without <bos>, with <eos>. size: pairs in a batch.
    """
    if len(sources) != len(targets):
        raise ValueError(f"got {len(sources)} sources and {len(targets)} targets: pass pairs.")
    order = sorted(range(len(targets)), key=lambda i: len(targets[i]))
    found = torch.zeros(len(targets))
    for start in range(0, len(targets), size):
        batch = order[start : start + size]
        src, out = (pad([side[i] for i in batch]) for side in (sources, targets))
        read = torch.cat([torch.full_like(out[:, :1], BOS), out[:, :-1]], dim=1)
        logits = model(src, read)  # (B, T, V)
        logits[..., PAD] = -torch.inf  # padding is not a word
        chosen = logits.log_softmax(-1).gather(-1, out[..., None]).squeeze(-1)  # (B, T)
        found[batch] = chosen.masked_fill(out == PAD, 0.0).sum(1)
    return found


def per_token(translator: Translator, sources: list[str], targets: list[str]) -> Tensor:
    """log P(target | source) / number of target tokens, <eos> included, of each pair: (n,)."""
    src, out = (encode_source(translator.tokenizer, texts) for texts in (sources, targets))
    return log_probability(translator.model, src, out) / torch.tensor([len(ids) for ids in out])


# ---- choosing ------------------------------------------------------------------------------------


def rerank(own: Tensor, other: Tensor, weight: float) -> list[int]:
    """The indices of the candidates, best first, by (1 - weight) * own + weight * other.

    own: log P(candidate | source) per token of the candidate, (n,). other: log P(source |
    candidate) per token of the source, from the model for the other direction, (n,). weight 0 gives
    the model's own order, and 1 that of the other direction; ties keep their order.
    """
    if own.shape != other.shape or own.dim() != 1 or not len(own):
        raise ValueError(
            f"own has shape {tuple(own.shape)}, other {tuple(other.shape)}: both need one number "
            "for each of the same candidates, (n,)."
        )
    if not 0 <= weight <= 1:
        raise ValueError(f"weight is {weight}; it must lie between 0 and 1.")
    return ((1 - weight) * own + weight * other).argsort(descending=True, stable=True).tolist()


def agreement(candidates: list[str], metric: str = "chrf") -> list[float]:
    """How similar each candidate is to the others: its mean score with each of them as reference.

    Minimum Bayes risk decoding chooses the highest (Kumar and Byrne 2004). A text that was drawn
    twice counts twice; each is compared with itself, too, which adds the same amount to all.
    """
    _check(candidates, metric)
    times = Counter(candidates)  # text -> how often it was drawn
    pairs = [(a, b) for a in times for b in times]
    scores = iter(sentence_scores(*map(list, zip(*pairs, strict=True)), metric=metric))
    mean = {a: sum(next(scores) * times[b] for b in times) / len(candidates) for a in times}
    return [mean[text] for text in candidates]


def nearest(candidates: list[str], reference: str, metric: str = "bleu") -> int:
    """The oracle: the index of the candidate with the highest sentence score (the first, if tied).

    This needs the reference, which a real method doesn't have. It shows the most that choosing
    could gain.
    """
    _check(candidates, metric)
    scores = sentence_scores(candidates, [reference] * len(candidates), metric=metric)
    return max(range(len(scores)), key=scores.__getitem__)


def _check(candidates: list[str], metric: str) -> None:
    if isinstance(candidates, str):
        raise TypeError("candidates is one string; pass a list of translations of one sentence.")
    if not candidates:
        raise ValueError("there are no candidates to choose from: pass at least one translation.")
    if metric not in ("bleu", "chrf"):
        raise ValueError(f'metric is {metric!r}; choose "bleu" or "chrf" (more must be better).')
