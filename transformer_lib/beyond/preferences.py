"""Turn judgements ("this caption is better than that one") into a model that writes better ones.

`reward_loss` learns a reward from pairs; `policy_gradient_loss` then writes captions and maximises
the reward, at a price for each nat that the model moves away from where it began. `dpo_loss` learns
from the pairs directly, without a reward model. Both have the same optimum, `reweighted`.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.caption_grammar import LENGTH
from transformer_lib.config import BOS, PAD, ModelConfig
from transformer_lib.decoding import sample
from transformer_lib.models.language_model import LanguageModel


def log_probability(model: LanguageModel, ids: Tensor) -> Tensor:
    """ids: (B, 1 + T), <bos> first, padding last -> (B,) log-probability of each whole text."""
    log_p = model(ids[:, :-1]).log_softmax(-1)  # (B, T, V)
    each = log_p.gather(-1, ids[:, 1:, None]).squeeze(-1)  # (B, T)
    return (each * (ids[:, 1:] != PAD)).sum(-1)


def write_texts(model: LanguageModel, n: int, generator=None) -> Tensor:
    """Sample n texts from the model -> ids (n, 1 + LENGTH), <bos> first, padded."""
    start = torch.full((n, 1), BOS)
    drawn = sample(model, start, generator=generator, max_len=LENGTH)  # (n, T)
    return F.pad(torch.cat([start, drawn], 1), (0, LENGTH - drawn.size(1)), value=PAD).clone()


class RewardModel(nn.Module):
    """A language model's body with one number at the end of a text (Stiennon et al. 2020)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.reader = LanguageModel(config)
        self.score = nn.Linear(config.d_model, 1)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T), <bos> first, padded -> rewards (B,), read off the last real token."""
        hidden = self.reader.decode(ids)  # (B, T, D)
        last = (ids != PAD).sum(-1) - 1
        return self.score(hidden[torch.arange(len(ids)), last]).squeeze(-1)


def reward_loss(better: Tensor, worse: Tensor) -> Tensor:
    """How surprising the choices are (Bradley and Terry 1952). better, worse: (B,) rewards.

    Under that model, `better` is chosen with probability sigmoid(its reward - the other's).
    """
    return -F.logsigmoid(better - worse).mean()


def policy_gradient_loss(
    policy: LanguageModel,
    reference: LanguageModel,
    reward: Callable[[Tensor], Tensor],
    price: float,
    n: int = 64,
) -> Tensor:
    """Write n texts, and raise the probability of those that earned more than the others.

    A text earns its reward minus `price` times the log-ratio of policy and reference, whose mean is
    the KL divergence. The mean of what the n texts earned is the baseline, as in GRPO (Shao et al.
    2024), which also divides by the standard deviation.
    """
    ids = write_texts(policy, n)
    log_p = log_probability(policy, ids)  # (n,)
    with torch.no_grad():
        moved = log_p - log_probability(reference, ids)  # nats, text by text
        earned = reward(ids) - price * moved
        advantage = (earned - earned.mean()) * n / (n - 1)  # each against the other n - 1
    return -(advantage * log_p).mean()


def dpo_loss(
    better: Tensor, worse: Tensor, better_before: Tensor, worse_before: Tensor, price: float
) -> Tensor:
    """The loss of `reward_loss`, but from the texts' log-probabilities, before and after training.

    better, worse: (B,) under the policy; better_before, worse_before: (B,) under the reference.
    price * log(policy / reference) is the reward for which the policy would be optimal (Rafailov et
    al. 2023, eq. 7), so it takes the place of the reward.
    """
    return reward_loss(price * (better - better_before), price * (worse - worse_before))


def reweighted(reference_log_p: Tensor, reward: Tensor, price: float) -> Tensor:
    """The distribution over all texts that earns most, after the price of moving is paid.

    reference_log_p, reward: (N,) each -> log-probabilities (N,). Multiplies each text's probability
    by exp(reward / price), and divides by the sum.
    """
    return (reference_log_p + reward / price).log_softmax(-1)
