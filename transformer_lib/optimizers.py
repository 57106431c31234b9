"""Optimizers: how a gradient becomes a step. Adam (sec. 5.3), and Muon, which came later."""

import math

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.config import TrainConfig
from transformer_lib.feed_forward import FeedForward
from transformer_lib.runs.device import multiplies_bf16


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimizer that config.optimizer names. Its learning rate is 0 until the first update."""
    adam = {"lr": 0.0, "betas": config.betas, "eps": config.eps, "fused": True}
    if config.optimizer == "muon":
        return Muon(model, **adam)
    return torch.optim.Adam(model.parameters(), weight_decay=config.weight_decay, **adam)


class Muon(torch.optim.Adam):
    """Muon (Jordan et al. 2024) for the matrices of attention and feed-forward networks, and Adam
    for everything else: embeddings, the output matrix, biases and gains.

    A gradient stretches a few directions of a matrix far more than the others. Muon's step is about
    equally long in all of them. It is scaled to the size of Adam's steps (Liu et al. 2025), so that
    one learning rate suits both.
    """

    def __init__(self, model: nn.Module, momentum: float = 0.95, **adam):
        super().__init__(model.parameters(), **adam)
        self.momentum = momentum
        inside = [m for m in model.modules() if isinstance(m, (MultiHeadAttention, FeedForward))]
        matrices = dict.fromkeys(p for part in inside for p in part.parameters() if p.ndim == 2)
        self.matrices: dict[torch.Size, list[Tensor]] = {}  # one batched product for each shape
        for p in matrices:
            self.matrices.setdefault(p.shape, []).append(p)

    @torch.no_grad()
    def step(self):
        """Update every parameter that has a gradient. The matrices' gradients are set to None."""
        rate = self.param_groups[0]["lr"]
        for shape, matrices in self.matrices.items():
            matrices = [p for p in matrices if p.grad is not None]
            if not matrices:
                continue
            steps = orthogonalize(torch.stack([self._averaged(p) for p in matrices]))
            length = 0.2 * math.sqrt(max(shape))  # Adam moves a weight by about 0.2 times the rate
            for p, step in zip(matrices, steps, strict=True):
                p.sub_(step, alpha=rate * length)
                p.grad = None  # so that Adam skips it
        super().step()

    def _averaged(self, p: Tensor) -> Tensor:
        """The gradient, averaged with those of recent updates (Nesterov's momentum)."""
        state = self.state[p]
        if not state:
            state["step"] = torch.tensor(0.0)  # Adam needs it when a checkpoint is loaded
            state["momentum"] = torch.zeros_like(p)
        state["momentum"].lerp_(p.grad, 1 - self.momentum)
        return p.grad.lerp(state["momentum"], self.momentum)


def orthogonalize(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Turn each matrix U S V^T into U S' V^T: the same directions, all stretched about equally.

    This is the Newton-Schulz iteration: a polynomial that brings all but the very smallest singular
    values to between about 0.7 and 1.2. It needs only products, no decomposition, and bf16 suffices
    on devices that multiply in it. matrices: (..., A, B) -> the same shape.
    """
    x = matrices.bfloat16() if multiplies_bf16(matrices.device) else matrices.float()
    if tall := x.size(-2) > x.size(-1):
        x = x.mT  # so that x @ x.mT is the smaller product
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)  # all singular values at most 1
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)
