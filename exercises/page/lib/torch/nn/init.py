"""How weights start."""

import math

from torch import _base as base
from torch import _tensor as tensors


def _quiet(change):
    def made(tensor, *args, **kwargs):
        before = tensors._gradients()
        base.local.gradients = False
        try:
            change(tensor, *args, **kwargs)
        finally:
            base.local.gradients = before
        return tensor

    return made


def _fans(tensor):
    inside = math.prod(tensor.shape[2:])
    return tensor.shape[1] * inside, tensor.shape[0] * inside


normal_ = _quiet(lambda t, mean=0.0, std=1.0, generator=None: t.normal_(mean, std))
uniform_ = _quiet(lambda t, a=0.0, b=1.0, generator=None: t.uniform_(a, b))
constant_ = _quiet(lambda t, val: t.fill_(val))
zeros_ = _quiet(lambda t: t.fill_(0.0))
ones_ = _quiet(lambda t: t.fill_(1.0))


@_quiet
def eye_(t):
    for i in range(t.shape[0]):
        for j in range(t.shape[1]):
            t[i, j] = float(i == j)


@_quiet
def xavier_uniform_(t, gain=1.0, generator=None):
    bound = gain * math.sqrt(6.0 / sum(_fans(t)))
    t.uniform_(-bound, bound)


@_quiet
def xavier_normal_(t, gain=1.0, generator=None):
    t.normal_(0.0, gain * math.sqrt(2.0 / sum(_fans(t))))


def calculate_gain(nonlinearity, param=None):
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    return 5.0 / 3 if nonlinearity == "tanh" else 1.0


@_quiet
def kaiming_uniform_(t, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / _fans(t)[mode == "fan_out"])
    t.uniform_(-bound, bound)


@_quiet
def kaiming_normal_(t, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    t.normal_(0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fans(t)[mode == "fan_out"]))


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.nn.init")
