"""Gradients cut to a length; parameters in one row."""

import torch


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, **_):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    found = [p.grad for p in parameters if p.grad is not None]
    total = torch.stack([g.norm() for g in found]).norm() if found else torch.tensor(0.0)
    factor = float((max_norm / (total + 1e-6)).clamp(max=1.0))
    for p in parameters:
        if p.grad is not None:
            p.grad = p.grad * factor
    return total


def parameters_to_vector(parameters):
    return torch.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    start = 0
    for p in parameters:
        p.data.copy_(vec[start : start + p.numel()].reshape(p.shape))
        start += p.numel()


from torch._tensor import nothing_else  # noqa: E402
from torch.nn.utils import rnn as rnn  # noqa: E402

__getattr__ = nothing_else("torch.nn.utils")
