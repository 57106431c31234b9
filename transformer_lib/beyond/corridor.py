"""A memory task for reinforcement learning: a sign, a long corridor, and a turn at its end."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lib.beyond.gates import GruGate, OutputGate, add_gates
from transformer_lib.beyond.learning import learn
from transformer_lib.blocks import init_weights
from transformer_lib.config import BlockConfig
from transformer_lib.decoder import Decoder
from transformer_lib.embeddings import Embed, TokenEmbedding
from transformer_lib.masks import causal_mask

FORWARD, LEFT, RIGHT = range(3)  # the actions
N_PICTURES = 8
JUNCTION = 2 + N_PICTURES  # the sights: two signs, the pictures on the wall, the junction


class Walks(NamedTuple):
    """B walks of T steps: sights (B, T) ids, the sign first; turn (B,), the action that the sign
    means.
    """

    sights: Tensor
    turn: Tensor


def draw_walks(n_walks: int, length: int, generator: torch.Generator | None = None) -> Walks:
    """Draw walks: a sign, then length - 2 cells with a random picture in each, then a junction."""
    turn = torch.randint(LEFT, RIGHT + 1, (n_walks,), generator=generator)
    pictures = torch.randint(2, JUNCTION, (n_walks, length - 2), generator=generator)
    end = torch.full((n_walks, 1), JUNCTION)
    return Walks(torch.cat([turn[:, None] - LEFT, pictures, end], 1), turn)


class Agent(nn.Module):
    """Reads the sights so far; predicts logits of the actions, and the return that it expects.

    gate_bias: a bias for the gates of GTrXL; None for the residuals that config names.
    """

    def __init__(self, config: BlockConfig, gate_bias: float | None = None, gate=GruGate):
        super().__init__()
        self.embedding = TokenEmbedding(JUNCTION + 1, config.d_model)
        self.embed = Embed(config)
        self.decoder = Decoder(config, cross_attention=False)
        init_weights(self.decoder)
        if gate_bias is not None:
            add_gates(self.decoder, config, gate, gate_bias)
        self.policy = nn.Linear(config.d_model, 3)
        self.value = nn.Linear(config.d_model, 1)

    def forward(self, sights: Tensor) -> tuple[Tensor, Tensor]:
        """sights: (B, T) ids -> logits (B, T, 3), values (B, T)."""
        x = self.embed(self.embedding(sights))
        x = self.decoder(x, tgt_mask=causal_mask(sights.size(1)))
        return self.policy(x), self.value(x)[..., 0]


def rewards_of(actions: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    """actions: (B, T), turn: (B,) -> rewards (B, T), alive (B, T) bool: True where a step is made.

    Each step forward through the corridor earns its share of 1, and the correct turn earns 1 more.
    Any other action is a bump into the wall, which ends the walk.
    """
    forward = actions == FORWARD
    forward[:, -1] = False  # at the junction there are only left and right
    alive = torch.ones_like(forward)
    alive[:, 1:] = forward[:, :-1].cumprod(-1).bool()
    rewards = forward.float() / (actions.size(1) - 1)
    rewards[:, -1] = (actions[:, -1] == turn).float()
    return rewards * alive, alive


def returns_to_go(rewards: Tensor) -> Tensor:
    """rewards: (..., T) -> (..., T): at each step the sum of the rewards from there to the end."""
    return rewards.flip(-1).cumsum(-1).flip(-1)


def policy_gradient_loss(agent: Agent, walks: Walks, entropy: float = 0.05) -> Tensor:
    """Sample actions, and make the ones that earned more than expected likelier (REINFORCE with a
    baseline).

    One pass is enough for all steps because, apart from where a walk ends, the sights do not depend
    on the actions. entropy: the bonus for staying undecided at a step, so that exploration does not
    stop too soon.
    """
    logits, values = agent(walks.sights)  # (B, T, 3), (B, T)
    policy = torch.distributions.Categorical(logits=logits)
    actions = policy.sample()  # (B, T)
    rewards, alive = rewards_of(actions, walks.turn)
    surprise = returns_to_go(rewards) - values  # (B, T)
    loss = -surprise.detach() * policy.log_prob(actions) + 0.5 * surprise**2
    return ((loss - entropy * policy.entropy()) * alive).sum() / len(actions)


def told_loss(agent: Agent, walks: Walks) -> Tensor:
    """The control: no rewards; instead each step's correct action is given (cross-entropy)."""
    logits, _ = agent(walks.sights)  # (B, T, 3)
    right = torch.full_like(walks.sights, FORWARD)
    right[:, -1] = walks.turn
    return nn.functional.cross_entropy(logits.flatten(0, 1), right.flatten())


@torch.no_grad()
def progress(agent: Agent, walks: Walks) -> tuple[float, float]:
    """The probability of reaching the junction, and of turning correctly there (mean over walks).

    The second is 1/3 if the agent knows nothing, 1/2 if it recognises a junction, and 1 if it
    remembers the sign.
    """
    likely = agent(walks.sights)[0].softmax(-1)  # (B, T, 3)
    arrives = likely[:, :-1, FORWARD].prod(-1)
    turns = likely[:, -1].gather(-1, walks.turn[:, None])
    return arrives.mean().item(), turns.mean().item()


def walk(
    agent: Agent, n_updates: int, rate: float, loss=policy_gradient_loss, length=12, warmup=1,
    until=1.1,
) -> list[tuple[int, float, float]]:
    """Learn from 32 new walks per update; return (update, *progress) for every 25th update.

    until: ends the training run when the correct turn has been this likely three times in a row.
    """
    test = draw_walks(256, length, torch.Generator().manual_seed(12345))
    curve = [(0, *progress(agent, test))]

    def look(update):
        if update % 25 == 0:
            curve.append((update, *progress(agent, test)))
            return all(turn >= until for *_, turn in curve[-3:])

    learn(agent, lambda: loss(agent, draw_walks(32, length)), n_updates, rate, warmup, after=look)
    return curve


def small_agent(
    residual: str = "pre-norm", n_layers: int = 4, length: int = 12, width: int = 32
) -> Agent:
    """Make a small agent. residual: "post-norm", "pre-norm", "gate 2" (GTrXL's, with its bias
    after the name) or "output gate 2".
    """
    config = BlockConfig(
        width, 4, 2 * width, 0, n_layers, dropout=0.0, max_len=length, positional="learned",
        norm_first=residual != "post-norm",
    )
    if residual in ("post-norm", "pre-norm"):
        return Agent(config)
    if not residual.startswith(("gate ", "output gate ")):
        raise ValueError(f"no residual {residual!r}; there are post-norm, pre-norm, gate 2 and "
                         "output gate 2.")
    gate = OutputGate if residual.startswith("output") else GruGate
    return Agent(config, float(residual.split()[-1]), gate)
