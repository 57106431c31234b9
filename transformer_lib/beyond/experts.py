"""Many feed-forward networks, of which every token uses a few: more parameters for the same work.

`MixtureOfExperts` replaces a layer's feed-forward network, and its router chooses the experts for
each token. With a single expert it is that network. With `FixedRouter` the choice is made in
advance: that turns the two-part language model of `one_stream`, or a hash of the tokens, into a
mixture of experts.
"""

import torch
from torch import Tensor, nn

from transformer_lib.beyond.one_stream import ByPart
from transformer_lib.blocks import init_weights, make_feed_forward
from transformer_lib.cache import DecoderCache
from transformer_lib.config import BlockConfig, ModelConfig
from transformer_lib.models.language_model import LanguageModel


class MixtureOfExperts(nn.Module):
    """n_experts feed-forward networks of width d_ff; each token uses the k that its router prefers.

    n_shared: how many further networks every token uses (DeepSeekMoE; Dai et al. 2024).
    weighting: the weights of the answers. "share": those of the chosen experts sum to 1 (Mixtral;
    Jiang et al. 2024). "probability": the router's own probabilities, so where it is unsure, the
    answers are small (Switch; Fedus et al. 2021). "one": 1, with the gradient of the
    log-probability.
    """

    def __init__(
        self, config: BlockConfig, n_experts: int, k: int = 1, weighting="share", n_shared: int = 0
    ):
        super().__init__()
        if not 1 <= k <= n_experts:
            raise ValueError(f"k is {k}; each token uses between 1 and all {n_experts} experts.")
        if weighting not in ("share", "probability", "one"):
            raise ValueError(f"weighting is {weighting!r}; use 'share', 'probability' or 'one'.")
        if weighting == "share" and k == 1 < n_experts:
            raise ValueError(
                "the share of a single expert is always 1, so the router would get no gradient: "
                "with k=1, use weighting='probability' or 'one'."
            )
        self.k, self.weighting = k, weighting
        self.router = nn.Linear(config.d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(make_feed_forward(config) for _ in range(n_experts))
        self.shared = nn.ModuleList(make_feed_forward(config) for _ in range(n_shared))
        self.asked: Tensor | None = None  # (B, T, k): the experts chosen in the last pass
        self.balance: Tensor | None = None  # the balance loss of the last pass

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D)."""
        tokens = x.flatten(0, 1)  # (N, D)
        probabilities = self.router(x).flatten(0, 1).softmax(-1)  # (N, E)
        weight, chosen = probabilities.topk(self.k)  # (N, k) each
        if self.weighting == "share":
            weight = weight / weight.sum(-1, keepdim=True)
        elif self.weighting == "one":
            weight = weight / weight.detach()
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            row, rank = (chosen == number).nonzero(as_tuple=True)  # the tokens routed to this one
            output = output.index_add(0, row, weight[row, rank, None] * expert(tokens[row]))
        for expert in self.shared:
            output = output + expert(tokens)
        self.asked = chosen.view(*x.shape[:2], self.k)
        self.balance = balance_loss(probabilities, chosen)
        return output.view_as(x)


def balance_loss(probabilities: Tensor, chosen: Tensor) -> Tensor:
    """1 if all experts are used equally often, up to E if all tokens use one (Switch, eq. 4).

    probabilities: (N, E); chosen: (N, k). Only the probabilities have a gradient, not the counts:
    a step lowers the probability of any expert that is used too often.
    """
    n_experts = probabilities.size(-1)
    share = torch.bincount(chosen.flatten(), minlength=n_experts) / chosen.numel()  # (E,)
    return n_experts * (share * probabilities.mean(0)).sum()


class FixedRouter(nn.Module):
    """A router with nothing to learn: you set which expert each token uses."""

    def __init__(self, n_experts: int):
        super().__init__()
        self.n_experts = n_experts
        self.which: Tensor | None = None  # (B, T) integers, set before each pass

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> logits (B, T, E): 0 for the chosen expert, -inf for the others."""
        asked = nn.functional.one_hot(self.which, self.n_experts).bool()
        return torch.zeros(asked.shape, device=x.device).masked_fill(~asked, -torch.inf)


def as_mixture(feed_forward: nn.Module, config: BlockConfig) -> MixtureOfExperts:
    """Rewrite a `TwoPartLanguageModel`'s feed-forward network as two experts with a fixed router.
    """
    mixture = MixtureOfExperts(config, 2, weighting="probability")
    mixture.router = FixedRouter(2)
    for name, layer in feed_forward.named_children():
        if isinstance(layer, ByPart):
            for expert, part in zip(mixture.experts, (layer.of_source, layer.of_rest), strict=True):
                getattr(expert, name).load_state_dict(part.state_dict())
    return mixture


class ExpertLanguageModel(LanguageModel):
    """A language model whose layers have experts instead of feed-forward networks.

    settings: those of MixtureOfExperts. hashed: the routers learn nothing; each token of the
    vocabulary is assigned to an expert once, at random (Roller et al. 2021).
    """

    def __init__(self, config: ModelConfig, n_experts: int, hashed: bool = False, **settings):
        super().__init__(config)
        if hashed:
            settings["weighting"] = "probability"  # always 1 for a fixed router
        for layer in self.decoder.layers:
            layer.feed_forward = MixtureOfExperts(config, n_experts, **settings)
            if hashed:
                layer.feed_forward.router = FixedRouter(n_experts)
        init_weights(self.decoder)
        table = torch.randint(n_experts, (config.vocab_size,)) if hashed else None
        self.register_buffer("table", table)

    def decode(self, ids: Tensor, cache: DecoderCache | None = None) -> Tensor:
        """ids: (B, T), only the new ones if there is a cache -> hidden (B, T, D)."""
        if self.table is not None:
            for layer in self.decoder.layers:
                layer.feed_forward.router.which = self.table[ids]
        return super().decode(ids, cache)

    def balance(self) -> Tensor:
        """The mean of the layers' balance losses in the last pass."""
        return torch.stack([layer.feed_forward.balance for layer in self.decoder.layers]).mean()
