"""Episodes of a pole on a cart: record them, learn from them, and play for a requested return.

The environment is gymnasium's CartPole: each step for which the pole stays up earns 1, and the
episode ends when it falls, when the cart leaves the track, or after LIMIT steps.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.corridor import returns_to_go
from transformer_lib.beyond.learning import learn
from transformer_lib.config import BlockConfig
from transformer_lib.models.decision_transformer import DecisionTransformer

LIMIT = 200  # steps of an episode at most, and so the largest return
CONTEXT = 20  # steps that the model sees


class Episodes(NamedTuple):
    """N episodes, padded to T steps: states (N, T, 4), actions (N, T), rewards (N, T), and
    lengths (N,), the number of real steps.
    """

    states: Tensor
    actions: Tensor
    rewards: Tensor
    lengths: Tensor


@torch.no_grad()
def play(choose, n_episodes: int, seed: int = 0) -> Episodes:
    """Play n_episodes at once. choose(past) -> actions (N,); past: the episodes so far, whose last
    step has a state but no action yet.
    """
    import gymnasium

    env = gymnasium.make_vec(
        "CartPole-v1", n_episodes, "vector_entry_point", max_episode_steps=LIMIT
    )
    state = torch.from_numpy(env.reset(seed=seed)[0])
    past = Episodes(
        torch.zeros(n_episodes, LIMIT, 4),
        torch.zeros(n_episodes, LIMIT, dtype=torch.long),
        torch.zeros(n_episodes, LIMIT),
        torch.zeros(n_episodes, dtype=torch.long),
    )
    running = torch.ones(n_episodes, dtype=torch.bool)
    for t in range(LIMIT):
        past.states[running, t] = state[running]
        past.lengths[running] = t + 1
        action = choose(Episodes(*(x[:, : t + 1] for x in past[:3]), past.lengths))
        past.actions[running, t] = action[running]
        state, reward, fallen, cut, _ = env.step(action.numpy())
        state = torch.from_numpy(state)
        past.rewards[running, t] = torch.from_numpy(reward).float()[running]
        running &= ~torch.from_numpy(fallen | cut)
        if not running.any():
            break
    return past


def by_chance(policy: nn.Module):
    """Make a chooser for `play` that draws actions from the policy's logits for the last state."""
    return lambda past: torch.distributions.Categorical(logits=policy(past.states[:, -1])).sample()


def train_policies(n_updates: int, keep: tuple[int, ...], rate: float = 1e-2) -> list[nn.Module]:
    """Improve a small network by policy gradient.

    Return a copy of it after each number of updates in `keep`.
    """
    import copy

    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer, kept = torch.optim.Adam(policy.parameters(), lr=rate), []
    for update in range(n_updates + 1):
        if update in keep:
            kept.append(copy.deepcopy(policy))
        seen = play(by_chance(policy), 32, seed=update)
        real = torch.arange(LIMIT) < seen.lengths[:, None]
        togo = returns_to_go(seen.rewards)
        togo = togo - (togo * real).sum(0) / real.sum(0).clamp(min=1)  # less the batch's mean
        logp = F.log_softmax(policy(seen.states), -1).gather(-1, seen.actions[..., None])[..., 0]
        loss = -(logp * togo * real).sum() / real.sum() / 10
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return kept


def record(n_each: int = 100, keep: tuple[int, ...] = (0, 8, 14, 20, 30)) -> Episodes:
    """Record n_each episodes of each policy that `train_policies` returns, from random to good."""
    played = [
        play(by_chance(policy), n_each, seed=1000 + i)
        for i, policy in enumerate(train_policies(max(keep), keep))
    ]
    return Episodes(*(torch.cat(parts) for parts in zip(*played, strict=True)))


def best(episodes: Episodes, share: float = 0.1) -> Episodes:
    """Return this share of the episodes: those with the highest returns."""
    order = episodes.rewards.sum(-1).argsort(descending=True)
    order = order[: max(1, round(share * len(order)))]
    return Episodes(*(x[order] for x in episodes))


def decision_transformer(d_model: int = 48, n_layers: int = 2) -> DecisionTransformer:
    """Make a model of two layers of width 48, for CartPole's four numbers and two actions."""
    config = BlockConfig(
        d_model, 4, 2 * d_model, 0, n_layers, dropout=0.0, max_len=LIMIT, activation="gelu"
    )
    return DecisionTransformer(config, n_state=4, n_actions=2)


def draw_windows(episodes: Episodes, n_windows: int, context: int = CONTEXT):
    """Draw pieces of `context` steps; every step of the data is equally likely to be the first.

    Returns five tensors: returns (B, K), states (B, K, 4), actions (B, K), steps (B, K), and
    real (B, K) bool, False for the padding after an episode's end.
    """
    chosen = torch.multinomial(episodes.lengths.float(), n_windows, replacement=True)
    lengths = episodes.lengths[chosen]
    start = (torch.rand(n_windows) * lengths).long()  # (B,)
    steps = start[:, None] + torch.arange(context)  # (B, K)
    real = steps < lengths[:, None]
    steps = steps.clamp(max=episodes.states.size(1) - 1)
    togo = returns_to_go(episodes.rewards)
    row = chosen[:, None]
    return togo[row, steps], episodes.states[row, steps], episodes.actions[row, steps], steps, real


def train(
    model: DecisionTransformer,
    episodes: Episodes,
    n_updates: int,
    rate: float = 3e-3,
    see_returns: bool = True,
    context: int = CONTEXT,
    n_windows: int = 64,
) -> list[float]:
    """Learn to predict the recorded actions; return the losses. see_returns=False: behaviour
    cloning, where the same model is given a return of 0 at every step.
    """

    def loss():
        returns, states, actions, steps, real = draw_windows(episodes, n_windows, context)
        logits = model(returns / LIMIT * see_returns, states, actions, steps)  # (B, K, 2)
        return F.cross_entropy(logits[real], actions[real])

    return learn(model, loss, n_updates, rate, warmup=50, cooldown=1)


def asking(
    model: DecisionTransformer,
    asked: float | Tensor | None,
    context: int = CONTEXT,
    count_down: bool = True,
):
    """Make a chooser for `play` that samples actions from the model. asked: the return to ask for
    (a number, or one per episode; None for a model trained without returns). What has been earned
    is subtracted from it.
    """

    def choose(past: Episodes) -> Tensor:
        n, now = past.actions.shape
        earned = (past.rewards.cumsum(-1) - past.rewards) * count_down  # (N, T): before each step
        wanted = torch.zeros(n, now)
        if asked is not None:
            wanted = torch.as_tensor(asked).expand(n)[:, None] - earned
        steps = torch.arange(now).expand(n, now)
        seen = (wanted / LIMIT, past.states, past.actions, steps)
        logits = model(*(x[:, -context:] for x in seen))  # (N, K, 2)
        return torch.distributions.Categorical(logits=logits[:, -1]).sample()

    return choose
