"""Gradients asked for by name."""

from torch._ops import _start_of
from torch._tensor import Tensor, missing, op, walk


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    given = (
        [grad_outputs]
        if isinstance(grad_outputs, Tensor) or grad_outputs is None
        else list(grad_outputs)
    )
    given = given if len(given) == len(outputs) else [None] * len(outputs)
    starts = [_start_of(t, g) for t, g in zip(outputs, given)]
    for t in inputs:
        if t._node is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    found = walk(outputs, starts, inputs, bool(retain_graph), create_graph)
    result = tuple(found.get(id(t._node)) for t in inputs)
    if any(g is None for g in result) and not allow_unused and not materialize_grads:
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        result = tuple(t.detach() * 0 if g is None else g for g, t in zip(result, inputs))
    return result


grad = op(grad, method=False)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    given = (
        grad_tensors if isinstance(grad_tensors, (list, tuple)) else [grad_tensors] * len(tensors)
    )
    walk(
        tensors,
        [_start_of(t, g) for t, g in zip(tensors, given)],
        None,
        bool(retain_graph),
        create_graph,
    )


backward = op(backward, method=False)


class Function:
    def __init_subclass__(cls):
        raise missing("torch.autograd.Function")


class functional:
    @staticmethod
    def jacobian(function, inputs, create_graph=False, **_):
        import torch

        x = inputs.detach().clone().requires_grad_()
        out = function(x)
        rows = [grad(one, x, retain_graph=True, allow_unused=True)[0] for one in out.reshape(-1)]
        rows = [torch.zeros_like(x) if row is None else row for row in rows]
        return torch.stack(rows).reshape(*out.shape, *x.shape)


no_grad = None


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.autograd")
