"""A masked model that writes: it starts from masks only and fills them in, pass by pass.

The model is the masked one of the chapter on encoder-only models. Two things change: the share of
masked tokens is drawn anew for each text, from 0 to 1, and texts with few masks count for more.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.config import BOS, ModelConfig
from transformer_lib.decoding import evaluating
from transformer_lib.models.classifier import MaskedLanguageModel


def mask_at(ids: Tensor, rate: Tensor, mask_id: int) -> Tensor:
    """Mask each token but <bos> with the probability `rate` of its text.

    ids: (B, 1 + T), rate: (B,).
    """
    hidden = torch.rand(ids.shape) < rate[:, None]
    return torch.where(hidden & (ids != BOS), mask_id, ids)


def diffusion_loss(model: MaskedLanguageModel, ids: Tensor) -> Tensor:
    """Nats per token of a bound on -log p(text) (Sahoo et al. 2024, MDLM, eq. 10).

    ids: (B, 1 + T), <bos> first, no padding. Each text gets a rate t in (0, 1], its masked tokens
    are guessed, and their summed loss is divided by t: where few are hidden, each counts for more.
    """
    n, mask_id = len(ids), model.config.vocab_size - 1
    rate = (torch.randperm(n) + torch.rand(n)).clamp(min=1e-3) / n  # one in each n-th of (0, 1]
    read = mask_at(ids, rate, mask_id)
    hidden = read == mask_id
    guessed = model.project(model.encode(read)[hidden])  # (N, V)
    surprise = F.cross_entropy(guessed[:, :mask_id], ids[hidden], reduction="none")
    weight = (1 / rate)[:, None].expand_as(ids)[hidden]
    return (weight * surprise).sum() / ids[:, 1:].numel()


def blank(n: int, length: int, mask_id: int) -> Tensor:
    """Make n texts of nothing but masks after <bos>: (n, 1 + length)."""
    ids = torch.full((n, 1 + length), mask_id)
    ids[:, 0] = BOS
    return ids


class Counting(nn.Module):
    """A masked model that makes no errors: it looks its guesses up in a list of all texts.

    Each place gets the distribution of its tokens among the texts that agree with what is visible.
    If no text agrees with all of it, those with the fewest differences count.
    """

    def __init__(self, texts: Tensor, config: ModelConfig):
        super().__init__()
        self.config, self.texts = config, texts  # (N, T) ids, <bos> first; <mask> is the last id
        tokens = F.one_hot(texts, config.vocab_size).flatten(1).float()  # (N, T * V)
        self.used = tokens.any(0).nonzero().squeeze(-1)  # which tokens occur at which place
        self.tokens = tokens[:, self.used]

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> logits (B, T, V)."""
        visible = ids != self.config.vocab_size - 1  # (B, T)
        texts = self.texts
        wrong = sum(
            (ids[:, t, None] != texts[:, t]) & visible[:, t, None] for t in range(ids.size(1))
        )  # (B, N)
        nearest = (wrong == wrong.amin(-1, keepdim=True)).float()  # (B, N)
        share = nearest @ self.tokens / nearest.sum(-1, keepdim=True)
        logits = ids.new_full((len(ids), ids.size(1) * self.config.vocab_size), -1e4).float()
        logits[:, self.used] = share.clamp(min=1e-30).log().clamp(min=-1e4)
        return logits.view(*ids.shape, -1)


@torch.no_grad()
def fill_in(
    model: nn.Module,
    ids: Tensor,
    passes: int,
    order: str = "random",
    sure_enough: float | None = None,
    watch=lambda ids: None,
) -> Tensor:
    """Fill in the masks of ids (B, T) in at most `passes` passes of the model -> (B, T).

    Each pass reads the texts as they are, draws a token for each mask, and keeps a share of the
    draws, equal in all passes. order: which draws to keep, "random", or "sure" for those that the
    model found likeliest (Chang et al. 2022, MaskGIT; Nie et al. 2025, LLaDA). sure_enough: instead
    of a share, keep one token of each text and all that are likelier than this; the last pass fills
    in the rest. watch: called with the ids after each pass.
    """
    if order not in ("random", "sure"):
        raise ValueError(f"order is {order!r}; it must be 'random' or 'sure'.")
    if passes < 1:
        raise ValueError(f"passes is {passes}; it must be at least 1.")
    mask_id = model.config.vocab_size - 1
    with evaluating(model):
        for left in range(passes, 0, -1):
            masked = ids == mask_id  # (B, T)
            p = model(ids)[..., :mask_id].softmax(-1)  # (B, T, V)
            drawn = torch.multinomial(p.flatten(0, 1), 1).view_as(ids)
            sure = p.gather(-1, drawn[..., None]).squeeze(-1)  # (B, T)
            score = sure if order == "sure" else torch.rand(ids.shape)
            # Each place's rank in its text: 0 for the highest score.
            rank = score.masked_fill(~masked, -1).argsort(-1, descending=True).argsort(-1)
            n_keep = -(-masked.sum(-1, keepdim=True) // left)  # (B, 1), rounded up
            keep = rank < n_keep  # in the last pass, all
            if sure_enough is not None and left > 1:
                keep = masked & ((rank < 1) | (sure > sure_enough))
            ids = torch.where(keep, drawn, ids)
            watch(ids)
    return ids
