"""Follow the arrows: a task in which some texts need more steps than others."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.adaptive_depth import AdaptiveSteps
from transformer_lib.blocks import init_weights
from transformer_lib.config import BlockConfig
from transformer_lib.encoder import EncoderLayer


def draw(batch: int, n_places: int, max_hops: int, generator: torch.Generator):
    """Draw where each place's arrow points, (B, T), the number of hops, (B,), 1 to max_hops, and
    where the hops lead from each place, (B, T).
    """
    arrows = torch.randint(n_places, (batch, n_places), generator=generator)
    hops = torch.randint(1, max_hops + 1, (batch,), generator=generator)
    arrived, at = arrows.clone(), arrows
    for hop in range(2, max_hops + 1):
        at = arrows.gather(1, at)
        arrived = torch.where((hops >= hop)[:, None], at, arrived)
    return arrows, hops, arrived


class Follower(nn.Module):
    """Predicts where the arrows lead, with one encoder layer applied adaptively."""

    def __init__(self, n_places: int, max_hops: int, max_steps: int, d_model: int = 64):
        super().__init__()
        config = BlockConfig(d_model, 4, 2 * d_model, dropout=0.0, positional="none")
        self.arrow, self.hops = nn.Embedding(n_places, d_model), nn.Embedding(max_hops + 1, d_model)
        self.place = nn.Parameter(torch.randn(n_places, d_model))
        self.steps = AdaptiveSteps(EncoderLayer(config), d_model, max_steps)
        self.norm, self.output = nn.LayerNorm(d_model), nn.Linear(d_model, n_places)
        init_weights(self.steps.layer)

    def forward(self, arrows: Tensor, hops: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """arrows: (B, T), hops: (B,) -> logits (B, T, n_places), steps and ponder cost (B, T)."""
        x = self.arrow(arrows) + self.place + self.hops(hops)[:, None]  # (B, T, D)
        x, steps, ponder = self.steps(x)
        return self.output(self.norm(x)), steps, ponder


def arrival_loss(model: Follower, batch, price: float) -> Tensor:
    """The cross-entropy of the destinations, plus `price` times the mean ponder cost."""
    arrows, hops, arrived = batch
    logits, _, ponder = model(arrows, hops)
    return F.cross_entropy(logits.flatten(0, 1), arrived.flatten()) + price * ponder.mean()
