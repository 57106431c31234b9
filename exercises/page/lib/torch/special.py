from torch._ops import exp2, expm1, log1p, log_softmax, logsumexp, softmax
from torch._ops import sigmoid as expit
