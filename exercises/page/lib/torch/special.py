import math

from torch._ops import exp2, expm1, log1p, log_softmax, logsumexp, softmax
from torch._ops import sigmoid as expit
from torch._tensor import nothing_else  # noqa: E402


def entr(input):
    from torch._ops import where

    safe = where(input > 0, input, input * 0 + 1)
    return where(input > 0, -input * safe.log(), where(input == 0, input * 0, input * 0 - math.inf))


__getattr__ = nothing_else("torch.special")
