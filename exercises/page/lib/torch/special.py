from torch._ops import exp2, expm1, log1p, log_softmax, logsumexp, softmax  # noqa: F401
from torch._ops import sigmoid as expit  # noqa: F401
