from torch._ops import amax, matmul, norm  # noqa: F401


def vector_norm(x, ord=2, dim=None, keepdim=False):
    return norm(x, ord, dim, keepdim)


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.linalg")
