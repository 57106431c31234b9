"""torch.nn: modules, and the functions behind them."""

from torch._tensor import lacking
from torch.nn import functional, init, modules, parameter, utils
from torch.nn.modules import *
from torch.nn.modules import Module, Parameter

__getattr__ = lacking("torch.nn")
