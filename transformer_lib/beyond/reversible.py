"""Layers that can be run backwards, so that training need not store their outputs.

The residuals of Gomez et al. (2017), as the Reformer uses them: f is attention, g the feed-forward
network.
"""

import torch
from torch import Tensor, nn


class ReversibleLayer(nn.Module):
    """y1 = x1 + f(x2), y2 = x2 + g(y1): two streams, each changed by a function of the other."""

    def __init__(self, f: nn.Module, g: nn.Module):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """x1, x2: (B, T, D), two streams -> two streams of that shape."""
        y1 = x1 + self.f(x2)
        return y1, x2 + self.g(y1)

    def inverse(self, y1: Tensor, y2: Tensor) -> tuple[Tensor, Tensor]:
        """y1, y2: (B, T, D) -> the inputs that gave them: what was added last comes off first."""
        x2 = y2 - self.g(y1)
        return y1 - self.f(x2), x2


class Chunked(nn.Module):
    """A network that treats each place separately, run on `chunk` places at a time.

    Without autograd, its wide hidden layer then exists for one chunk only.
    """

    def __init__(self, network: nn.Module, chunk: int):
        super().__init__()
        self.network, self.chunk = network, chunk

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), the same numbers as the network itself returns."""
        return torch.cat([self.network(part) for part in x.split(self.chunk, dim=1)], dim=1)


class _Run(torch.autograd.Function):
    # Stores only the last outputs. The backward pass computes each layer's inputs from its outputs.
    @staticmethod
    def forward(ctx, x1, x2, layers, *parameters):
        with torch.no_grad():
            for layer in layers:
                x1, x2 = layer(x1, x2)
        ctx.layers = layers
        ctx.save_for_backward(x1, x2)
        return x1, x2

    @staticmethod
    def backward(ctx, grad1, grad2):
        x1, x2 = ctx.saved_tensors
        grads = []
        for layer in reversed(ctx.layers):
            with torch.no_grad():
                x1, x2 = layer.inverse(x1, x2)
            x1, x2 = x1.detach().requires_grad_(), x2.detach().requires_grad_()
            own = list(layer.parameters())
            with torch.enable_grad():
                y1, y2 = layer(x1, x2)
            grad1, grad2, *of_layer = torch.autograd.grad(
                (y1, y2), (x1, x2, *own), (grad1, grad2), allow_unused=True
            )
            grads = [*of_layer, *grads]
        return grad1, grad2, None, *grads


class ReversibleStack(nn.Module):
    """Reversible layers: what autograd keeps does not grow with the number of layers.

    Layers must give the same result each time they are run, so there can be no dropout.
    """

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D): both streams start as x, and their mean is the result."""
        parameters = [p for layer in self.layers for p in layer.parameters()]
        y1, y2 = _Run.apply(x, x, self.layers, *parameters)
        return (y1 + y2) / 2
