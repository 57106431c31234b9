"""Speculative decoding: something cheap writes a few tokens ahead, and the model checks them.

The model reads all guesses in one pass, and keeps those that it would have written itself. Greedy
decoding then gives the same tokens, and sampling the same distribution, whatever made the guesses
(Leviathan et al. 2023; Chen et al. 2023). It decodes one sentence at a time.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from transformer_lib.cache import DecodingState
from transformer_lib.config import BOS, EOS, PAD
from transformer_lib.decoding import evaluating, length_limits
from transformer_lib.guards import require_types


def all_logits(model: nn.Module, ids: Tensor, state: DecodingState) -> Tensor:
    """The logits of `model.step`, but after each new id, in one pass: (1, T) -> (T, V)."""
    if state.memory is None:
        hidden = model.decode(ids, state.cache)
    else:
        hidden = model.decode(ids, state.memory, state.src_mask, cache=state.cache)
    logits = model.project(hidden)[0]
    logits[:, PAD] = -torch.inf  # padding isn't a word
    return logits


def roll_back(state: DecodingState, length: int) -> None:
    """Forget what comes after the first `length` tokens: the wrong guesses."""
    for layer in state.cache.layers:
        if layer.own.length > length:
            layer.own.keys = layer.own.keys[:, :, :length]
            layer.own.values = layer.own.values[:, :, :length]


# ---- guessing ------------------------------------------------------------------------------------


class ModelDraft:
    """A smaller model that writes ahead.

    pieces: for each token of the target, its ids in the draft's vocabulary; None if the two share a
    vocabulary, where the draft's token i must be the target's token i. generator: to sample instead
    of taking the likeliest token.
    """

    @torch.inference_mode()
    def __init__(self, model, src_ids, pieces=None, generator=None, bos_id: int = BOS):
        self.model, self.pieces, self.generator = model, pieces, generator
        with evaluating(model):
            _, self.state = model.start(src_ids, bos_id)
        self.read: list[int] = []

    @torch.inference_mode()
    def propose(self, ids: list[int], n: int) -> tuple[list[int], Tensor | None]:
        """ids: the tokens so far. Returns n guesses, and the distributions, (n, V_draft), that they
        were drawn from; None if nothing was drawn.
        """
        if self.pieces is not None:
            ids = [piece for token in ids for piece in self.pieces[token]]
        agreed = 0  # the cache may hold guesses that were rejected
        for old, new in zip(self.read, ids[:-1], strict=False):
            if old != new:
                break
            agreed += 1
        roll_back(self.state, agreed)
        guesses, q, new = [], [], ids[agreed:]
        for _ in range(n):
            with evaluating(self.model):
                logits = all_logits(self.model, torch.tensor([new]), self.state)[-1]  # (V_draft,)
            if self.generator is None:
                token = int(logits.argmax())
            else:
                q.append(logits.softmax(-1))
                token = int(torch.multinomial(q[-1], 1, generator=self.generator))
            guesses.append(token)
            new = [token]
        self.read = ids + guesses[:-1]
        return guesses, torch.stack(q) if q else None


class TableDraft:
    """Guesses the token that most often followed the last few tokens in the texts. It is a table,
    not a model.

    order: how many tokens to look up. If they never occur in the texts, fewer are looked up.
    """

    def __init__(self, texts: list[list[int]], order: int):
        self.order, counts = order, defaultdict(Counter)
        for text in texts:
            for i in range(1, len(text)):
                for n in range(1, min(order, i) + 1):
                    counts[tuple(text[i - n : i])][text[i]] += 1
        self.after = {past: found.most_common(1)[0][0] for past, found in counts.items()}

    def propose(self, ids: list[int], n: int) -> tuple[list[int], None]:
        """As in ModelDraft, but without distributions, since nothing is drawn."""
        text = ids[-self.order :]
        for _ in range(n):
            pasts = (tuple(text[-k:]) for k in range(self.order, 0, -1))
            text.append(next((self.after[past] for past in pasts if past in self.after), text[-1]))
        return text[len(text) - n :], None


# ---- checking ------------------------------------------------------------------------------------


def keep_likeliest(logits: Tensor, guesses: list[int], q: Tensor | None) -> tuple[int, int]:
    """How many guesses greedy decoding would have written, and the token that it writes next.

    logits: (n + 1, V), before each guess and after the last.
    """
    best = logits.argmax(-1).tolist()  # n + 1 tokens
    n_right = 0
    while n_right < len(guesses) and guesses[n_right] == best[n_right]:
        n_right += 1
    return n_right, best[n_right]


class KeepByChance:
    """`keep_likeliest` for sampling: keep guess x with probability min(1, p(x) / q(x)), and replace
    the first rejected one with a draw from max(p - q, 0), normalised (Leviathan et al. 2023,
    algorithm 1).
    """

    def __init__(self, generator: torch.Generator | None = None):
        self.generator = generator

    def __call__(self, logits: Tensor, guesses: list[int], q: Tensor | None) -> tuple[int, int]:
        """As keep_likeliest; q: (n, V_draft), the guesses' distributions, or None."""
        p = logits.softmax(-1)  # (n + 1, V)
        for i, x in enumerate(guesses):
            guessed = torch.zeros_like(p[i])
            if q is None:
                guessed[x] = 1
            else:
                guessed[: q.size(1)] = q[i]
            if torch.rand((), generator=self.generator) * guessed[x] >= p[i, x]:
                return i, self.draw((p[i] - guessed).clamp(min=0))
        return len(guesses), self.draw(p[-1])

    def draw(self, weights: Tensor) -> int:
        return int(torch.multinomial(weights, 1, generator=self.generator))


@dataclass
class Written:
    """ids: the new tokens, with <eos> if it was written. kept: how many guesses each pass kept."""

    ids: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def __post_init__(self):
        require_types(self)


@torch.inference_mode()
def speculative_decode(
    target: nn.Module,
    draft,
    src_ids: Tensor,
    n_ahead: int,
    keep=keep_likeliest,
    max_len: int | None = None,
    bos_id: int = BOS,
    eos_id: int = EOS,
) -> Written:
    """Decode one source, (1, S), with the target; the draft makes n_ahead guesses per pass."""
    with evaluating(target):
        start, state = target.start(src_ids, bos_id)
        ids, first = start[0].tolist(), start.size(1)
        limit = first + int(length_limits(target, src_ids, max_len, first)[0])
        found = Written()
        while len(ids) < limit and (len(ids) == first or ids[-1] != eos_id):
            n = min(n_ahead, limit - len(ids) - 1)  # the target adds one of its own
            guesses, q = draft.propose(ids, n)
            new = torch.tensor([ids[state.length :] + guesses])  # (1, unread + n)
            logits = all_logits(target, new, state)[-n - 1 :]  # (n + 1, V)
            n_right, token = keep(logits, guesses, q)
            right = guesses[:n_right] + [token]
            if eos_id in right:
                right = right[: right.index(eos_id) + 1]
            ids = ids + right
            roll_back(state, len(ids) - 1)  # the last token has not been read yet
            found.kept.append(min(n_right, len(right)))
    found.ids = ids[first:]
    return found


def tokens_a_pass(agreement: float, n_ahead: int) -> float:
    """Tokens written per pass if each guess is right with this probability: 1 + a + a² + ..."""
    return sum(agreement**i for i in range(n_ahead + 1))


def speed_up(tokens: float, n_ahead: int, draft_cost: float, check_cost: float) -> float:
    """The speed-up over one token per step. draft_cost: the cost of one guess, check_cost: that of
    the pass that reads the guesses, both measured in steps of the target.
    """
    return tokens / (n_ahead * draft_cost + check_cost)
