"""A module called with other weights."""

import contextlib


def functional_call(module, parameters_and_buffers, args=(), kwargs=None):
    args = args if isinstance(args, tuple) else (args,)
    with contextlib.ExitStack() as stack:
        for name, value in parameters_and_buffers.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            held = owner._parameters if last in owner._parameters else owner._buffers
            before = held[last]
            stack.callback(held.__setitem__, last, before)
            held[last] = value
        return module(*args, **(kwargs or {}))


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.func")
