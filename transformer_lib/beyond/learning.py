"""The training loop of the small experiments, which differ only in their loss."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer_lib.runs.callbacks import require_loss


def learn(
    model: nn.Module,
    loss: Callable[[], Tensor],
    n_updates: int,
    rate: float,
    warmup: int = 1,
    cooldown: float = 0.0,
    clip: float = 1.0,
    faster: dict[str, float] | None = None,
    after: Callable[[int], bool | None] = lambda update: None,
) -> list[float]:
    """Minimise `loss()` with Adam (each call draws its own batch); return the loss of each update.

    The learning rate rises over `warmup` updates. cooldown: 0 for none; otherwise the rate falls
    linearly to 0 in the last 1 / cooldown of the updates. clip: the largest norm that the gradient
    may have. faster: factors for the rate, by parameter name. after: called with the number of
    updates so far, from 1; if it returns True, the training run ends.
    """
    faster, groups = faster or {}, {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(faster.get(name.split(".")[-1], 1.0), []).append(parameter)
    optimizer = torch.optim.Adam([{"params": group, "lr": rate} for group in groups.values()])
    losses = []
    for step in range(n_updates):
        left = cooldown * (1 - step / n_updates) if cooldown else math.inf
        for factor, group in zip(groups, optimizer.param_groups, strict=True):
            group["lr"] = factor * rate * min(1.0, (step + 1) / warmup, left)
        optimizer.zero_grad()
        value = require_loss(loss())
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(value.item())
        if after(step + 1):
            break
    return losses
