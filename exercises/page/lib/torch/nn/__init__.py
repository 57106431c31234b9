"""torch.nn: modules, and the functions behind them."""

from torch._tensor import lacking
from torch.nn import functional, init, modules, parameter, utils  # noqa: F401
from torch.nn.modules import *  # noqa: F403
from torch.nn.modules import Module, Parameter  # noqa: F401


__getattr__ = lacking("torch.nn")
