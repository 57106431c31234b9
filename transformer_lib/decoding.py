"""From a source sentence to target ids, one token at a time: greedy, sampling, beam search.

Every method works with any model that has a `config` and two methods:

    ids, state = model.start(src_ids, bos_id, use_cache)   # ids (B, T) to continue from
    logits = model.step(new_ids, state)                    # (B, V), for the token after them

For an encoder-decoder model src_ids are sources, and ids hold one <bos> for each. For a
decoder-only model src_ids are prompts of equal length, and ids are the same prompts. The source is
encoded once, and the state keeps the keys and values of past tokens (`KeyValueCache`), so a step
computes only the newest token. Sentences that have ended leave the batch. A model may also have
`top_tokens`, which finds the likeliest tokens without returning all logits.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transformer_lib.batching import TokenBatchSampler, pad
from transformer_lib.config import BOS, EOS, PAD


def greedy_decode(
    model: nn.Module,
    src_ids: Tensor,
    max_len: int | None = None,
    bos_id: int = BOS,
    eos_id: int = EOS,
    use_cache: bool = True,
) -> Tensor:
    """Take the most probable token at every step.

    src_ids: (B, S), padded. Returns (B, L) new ids, L <= max_len: without <bos>, with <eos> where
    the sentence ended, then padding. max_len None: the source's length + 50 (sec. 6.1).
    With an eos_id that no token has, such as -1, no sentence ends early.
    use_cache=False computes the whole prefix again at each step: slower, same ids.
    """

    def most_probable(ids: Tensor, state) -> Tensor:
        if hasattr(model, "top_tokens"):  # faster
            return model.top_tokens(ids, state, 1, log_p=False)[1].squeeze(-1)
        return _without_padding(model.step(ids, state)).topk(1)[1].squeeze(-1)

    return _generate(model, src_ids, max_len, bos_id, eos_id, use_cache, most_probable)


def sample(
    model: nn.Module,
    src_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    max_len: int | None = None,
    bos_id: int = BOS,
    eos_id: int = EOS,
) -> Tensor:
    """Draw each token from the model's distribution.

    temperature below 1 sharpens the distribution, above 1 flattens it. top_k keeps only the k most
    probable tokens; top_p (nucleus, Holtzman et al. 2020) the fewest whose probabilities add up to
    p or more. generator makes the draws repeatable, whatever device it is on. Shapes as in
    greedy_decode.
    """
    if temperature <= 0:
        raise ValueError(
            f"temperature is {temperature}; it must be above 0 (for 0, decode greedily)."
        )
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is {top_k}; it must be at least 1.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it must be in (0, 1].")

    def draw(ids: Tensor, state) -> Tensor:
        logits = _without_padding(model.step(ids, state))  # (B, V)
        ranked, ids = (logits / temperature).sort(-1, descending=True)  # (B, V)
        probabilities = ranked.softmax(-1)
        if top_p is not None:
            # Keep a token while those before it have not reached p; the first always stays.
            before = probabilities.cumsum(-1) - probabilities
            probabilities = probabilities.masked_fill(before >= top_p, 0)
        if top_k is not None:
            probabilities[:, top_k:] = 0
        if generator is not None:  # the same draws for a model on any device
            probabilities = probabilities.to(generator.device)
        rank = torch.multinomial(probabilities, 1, generator=generator).to(ids.device)  # (B, 1)
        return ids.gather(-1, rank).squeeze(-1)

    return _generate(model, src_ids, max_len, bos_id, eos_id, True, draw)


@torch.inference_mode()
def _generate(
    model: nn.Module,
    src_ids: Tensor,
    max_len: int | None,
    bos_id: int,
    eos_id: int,
    use_cache: bool,
    choose: Callable[..., Tensor],
) -> Tensor:
    """Extend every sentence by choose(newest ids, state) -> ids (B,) until <eos> or max_len."""
    with evaluating(model):
        ids, state = model.start(src_ids, bos_id, use_cache)  # (B, T), the tokens to start from
        limits = length_limits(model, src_ids, max_len, ids.size(1))  # (B,)
        output = torch.full((len(ids), int(limits.max())), PAD, device=ids.device)
        live = torch.arange(len(ids), device=ids.device)  # sentences that have not ended
        for step in range(output.size(1)):
            token = choose(ids[:, state.length :], state)  # (B_live,)
            output[live, step] = token
            going = ((token != eos_id) & (limits[live] > step + 1)).nonzero().squeeze(-1)
            if not len(going):
                return output[:, : step + 1]
            ids = torch.cat([ids, token[:, None]], dim=1)
            if len(going) < len(live):
                live, ids = live[going], ids[going]
                state.select(going, going)
    return output


def finished_score(total: Tensor | float, length: int, length_penalty: float) -> Tensor | float:
    """Score finished hypotheses of this length: total / length ** length_penalty.

    total: sums of log-probabilities, of any shape; the scores have the same shape. length: tokens,
    <eos> included. A penalty of 0 favours short outputs, and larger values favour longer ones. (Wu
    et al. 2016 divide by a power of (5 + length) / 6 instead.)
    """
    return total / length**length_penalty


@torch.inference_mode()
def beam_search(
    model: nn.Module,
    src_ids: Tensor,
    beam_size: int = 5,
    max_len: int | None = None,
    length_penalty: float = 1.0,
    bos_id: int = BOS,
    eos_id: int = EOS,
) -> tuple[Tensor, Tensor]:
    """Keep the beam_size best prefixes of each sentence; return the best finished one.

    The best is the one with the highest `finished_score`. A sentence is done when beam_size of its
    hypotheses have finished. src_ids: (B, S), padded.
    Returns ids (B, L), as greedy_decode does, and their scores (B,).
    """
    if beam_size < 1 or 2 * beam_size > model.config.vocab_size:
        raise ValueError(
            f"beam_size is {beam_size}; it must be at least 1 and at most half the vocabulary "
            f"({model.config.vocab_size // 2})."
        )
    if not abs(length_penalty) <= 100:
        raise ValueError(
            f"length_penalty is {length_penalty}; it must lie between -100 and 100 (usual: 1)."
        )
    device, n = src_ids.device, beam_size
    with evaluating(model):
        ids, state = model.start(src_ids, bos_id)  # (B, T), the tokens to start from
        first = ids.size(1)  # where the new tokens begin
        limits = length_limits(model, src_ids, max_len, first)  # (B,)
        best_ids = torch.full((len(ids), int(limits.max())), PAD, device=device)
        best_scores = torch.full((len(ids),), -math.inf, device=device)
        live = torch.arange(len(ids), device=device)  # (A,) sentences not done
        n_finished = torch.zeros_like(live)
        ids = ids.repeat_interleave(n, dim=0)  # (A * n, length) hypotheses
        totals = torch.full((len(live), n), -math.inf, device=device)  # sums of log-probabilities
        totals[:, 0] = 0.0  # at first all n prefixes are the same: only one may count
        for step in range(best_ids.size(1)):
            # 2n candidates are enough: at most n of them can be <eos>.
            log_p, tokens = _top(model, ids[:, state.length :], state, 2 * n)
            log_p = log_p.view(len(live), n, 2 * n)
            candidates, choice = (totals[:, :, None] + log_p).flatten(1).topk(2 * n)  # (A, 2n)
            tokens = tokens.view(len(live), -1).gather(1, choice)  # (A, 2n)
            origin = choice // (2 * n) + n * torch.arange(len(live), device=device)[:, None]

            # Finished: those of the best n that end in <eos>, or all of them at the length limit.
            ended = tokens == eos_id
            last = limits[live] == step + 1  # (A,)
            final = ended | last[:, None]  # (A, 2n)
            scores = finished_score(candidates, step + 1, length_penalty)  # (A, 2n)
            scores = scores[:, :n].masked_fill(~final[:, :n], -math.inf)
            score, rank = scores.max(1)  # (A,)
            better = (score > best_scores[live]).nonzero().squeeze(-1)
            rows = live[better]
            best_scores[rows] = score[better].float()
            prefix = ids[origin[better, rank[better]], first:]  # (better, step)
            best_ids[rows, :step] = prefix
            best_ids[rows, step] = tokens[better, rank[better]]
            n_finished = n_finished + ended[:, :n].sum(1)

            # Continue with the n best that have not ended, in those sentences that are not done.
            going = ((n_finished < n) & ~last).nonzero().squeeze(-1)
            if not len(going):
                break
            candidates = candidates.masked_fill(ended, -math.inf)[going]
            totals, kept = candidates.topk(n)  # (A', n)
            origin = origin[going].gather(1, kept).flatten()  # (A' * n,) rows of ids and cache
            tokens = tokens[going].gather(1, kept).view(-1, 1)
            ids = torch.cat([ids[origin], tokens], dim=1)
            state.select(origin, going if len(going) < len(live) else None)
            live, n_finished = live[going], n_finished[going]
    longest = int((best_ids != PAD).sum(1).max())
    return best_ids[:, :longest], best_scores


def _top(model: nn.Module, ids: Tensor, state, k: int) -> tuple[Tensor, Tensor]:
    """The log-probabilities and ids of the k likeliest tokens after ids: (rows, k) each."""
    if hasattr(model, "top_tokens"):
        return model.top_tokens(ids, state, k, log_p=True)
    logits = _without_padding(model.step(ids, state))  # (rows, V)
    top, tokens = logits.topk(k)
    # The best one's probability is exp(its logit - log z). (logsumexp takes twice as long.)
    log_z = top[:, :1] - logits.softmax(-1).gather(1, tokens[:, :1]).log()  # (rows, 1)
    return top - log_z, tokens


def _without_padding(logits: Tensor) -> Tensor:
    """Rule out <pad>: it isn't a word, and later steps would ignore it. (rows, V), in place."""
    logits[:, PAD] = -math.inf
    return logits


def length_limits(model: nn.Module, src_ids: Tensor, max_len: int | None, first: int) -> Tensor:
    """How many tokens each output may have, (B,): max_len, or its source's length + 50 (sec. 6.1).

    first: how many tokens there are already. The last token written is never read.
    """
    if not src_ids.numel():
        raise ValueError(f"src_ids has shape {tuple(src_ids.shape)}: there is nothing to decode.")
    longest = model.config.max_len - first + 1
    if max_len is None:
        # By each sentence's own length, so that the rest of its batch makes no difference.
        return ((src_ids != PAD).sum(-1) + 50).clamp(max=longest)
    if not 1 <= max_len <= longest:
        raise ValueError(
            f"max_len is {max_len}; this model writes between 1 and {longest} tokens "
            f"after the {first} it starts from (ModelConfig.max_len {model.config.max_len})."
        )
    return torch.full(src_ids.shape[:1], max_len, device=src_ids.device)


def in_batches(
    decode: Callable[[Tensor], Iterable],
    sources: list[list[int]],
    max_tokens: int,
    device="cpu",
    each: Callable = map,
) -> list:
    """Call decode(src_ids (B, S)) -> B results on batches; return all in the order of the sources.

    Sentences of similar length share a batch of at most max_tokens source tokens. each: map, or a
    function like it that decodes several batches at a time.
    """
    lengths = [len(ids) for ids in sources]
    batches = TokenBatchSampler(lengths, max([max_tokens, *lengths]), shuffle=False).batches()

    def decode_batch(batch: list[int]) -> Iterable:
        return decode(pad([sources[i] for i in batch]).to(device))

    results = [None] * len(sources)
    for batch, found in zip(batches, each(decode_batch, batches), strict=True):
        for i, result in zip(batch, found, strict=True):
            results[i] = result
    return results


@contextmanager
def evaluating(model: nn.Module):
    """Switch dropout off inside the block, and restore the model's mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was_training)
