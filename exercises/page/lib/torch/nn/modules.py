"""Modules and layers."""

import collections
import math

import torch
from torch import Tensor
from torch._tensor import make
from torch.nn import functional as F
from torch.nn import init


class Parameter(Tensor):
    def __new__(cls, data=None, requires_grad=True):
        data = torch.empty(0) if data is None else data
        found = make(data._store.data, data.shape, data.dtype, cls)
        found._store, found._offset, found._strides = data._store, data._offset, data._strides
        return found.requires_grad_(requires_grad) if requires_grad else found

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"


class Module:
    def __init__(self, *args, **kwargs):
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        for name in ("_unsaved", "_before", "_after"):
            object.__setattr__(self, name, {} if name != "_unsaved" else set())
        object.__setattr__(self, "training", True)

    def forward(self, *args, **kwargs):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args, **kwargs):
        for hook in list(self._before.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._after.values()):
            changed = hook(self, args, result)
            result = result if changed is None else changed
        return result

    def __setattr__(self, name, value):
        kinds = self.__dict__
        if "_parameters" not in kinds and isinstance(value, (Parameter, Module)):
            what = "parameters" if isinstance(value, Parameter) else "module"
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        if isinstance(value, Parameter):
            self._forget(name)
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif name in kinds.get("_parameters", ()) and value is not None:
            raise TypeError(
                f"cannot assign '{torch_name(value)}' as parameter '{name}' (torch.nn.Parameter or "
                "None expected)"
            )
        elif name in kinds.get("_buffers", ()):
            self._buffers[name] = value
        elif name in kinds.get("_parameters", ()):
            self._parameters[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name):
        for held in (self._parameters, self._buffers, self._modules, self.__dict__):
            held.pop(name, None)

    def __getattr__(self, name):
        for held in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(held, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                del held[name]
                return
        object.__delattr__(self, name)

    def register_parameter(self, name, param):
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        self._buffers[name] = tensor
        if not persistent:
            self._unsaved.add(name)

    def register_module(self, name, module):
        self._modules[name] = module

    add_module = register_module

    def register_forward_hook(self, hook, **_):
        return _Handle(self._after, hook)

    def register_forward_pre_hook(self, hook, **_):
        return _Handle(self._before, hook)

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def named_children(self):
        return ((name, module) for name, module in self._modules.items() if module is not None)

    def children(self):
        return (module for _, module in self.named_children())

    def _named(self, held, recurse=True):
        seen = set()
        for path, module in self.named_modules() if recurse else [("", self)]:
            for name, value in getattr(module, held).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_parameters", recurse)

    def parameters(self, recurse=True):
        return (value for _, value in self._named("_parameters", recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_buffers", recurse)

    def buffers(self, recurse=True):
        return (value for _, value in self._named("_buffers", recurse))

    def get_submodule(self, target):
        found = self
        for name in filter(None, target.split(".")):
            found = getattr(found, name)
        return found

    def get_parameter(self, target):
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)

    def state_dict(self, *args, prefix="", keep_vars=False, **_):
        found = collections.OrderedDict()
        for path, module in self.named_modules():
            lead = f"{path}." if path else ""
            for name, value in module._parameters.items():
                if value is not None:
                    found[lead + name] = value if keep_vars else value.detach()
            for name, value in module._buffers.items():
                if value is not None and name not in module._unsaved:
                    found[lead + name] = value if keep_vars else value.detach()
        return found

    def load_state_dict(self, state_dict, strict=True, assign=False):
        mine = self.state_dict(keep_vars=True)
        lost = [name for name in mine if name not in state_dict]
        more = [name for name in state_dict if name not in mine]
        if strict and (lost or more):
            said = []
            if more:
                said.append(
                    "Unexpected key(s) in state_dict: "
                    + ", ".join(f'"{name}"' for name in more)
                    + ". "
                )
            if lost:
                said.append(
                    "Missing key(s) in state_dict: "
                    + ", ".join(f'"{name}"' for name in lost)
                    + ". "
                )
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(said)
            )
        with torch.no_grad():
            for name, value in state_dict.items():
                if name in mine:
                    if mine[name].shape != value.shape:
                        raise RuntimeError(
                            f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                            f"size mismatch for {name}: copying a param with shape {value.shape} "
                            f"from checkpoint, the shape in current model is {mine[name].shape}."
                        )
                    mine[name].copy_(value)
        return "<All keys matched successfully>"

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for value in self.parameters():
            value.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for value in self.parameters():
            value.grad = None

    def apply(self, fn):
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        kind = next((a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype)), None)
        if kind is not None:
            for value in [*self.parameters(), *self.buffers()]:
                if value.dtype.kind == "f":
                    value.data = value.detach().to(kind)
        return self

    def double(self):
        return self.to(torch.float64)

    def float(self):
        return self.to(torch.float32)

    def half(self):
        return self.to(torch.float16)

    def cpu(self):
        return self

    def extra_repr(self):
        return ""

    def __repr__(self):
        inner = [
            f"  ({name}): " + repr(module).replace("\n", "\n  ")
            for name, module in self._modules.items()
        ]
        if not inner:
            return f"{type(self).__name__}({self.extra_repr()})"
        return f"{type(self).__name__}(\n" + "\n".join(inner) + "\n)"


def torch_name(value):
    return "torch.FloatTensor" if isinstance(value, Tensor) else type(value).__name__


class _Handle:
    def __init__(self, hooks, hook):
        self.hooks = hooks
        hooks[id(self)] = hook

    def remove(self):
        self.hooks.pop(id(self), None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class ModuleList(Module):
    def __init__(self, modules=None):
        super().__init__()
        self.extend(modules or ())

    def append(self, module):
        self._modules[str(len(self._modules))] = module
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules.values()))

    def __getitem__(self, i):
        found = list(self._modules.values())[i]
        return type(self)(found) if isinstance(i, slice) else found

    def __setitem__(self, i, module):
        self._modules[str(range(len(self))[i])] = module


class Sequential(Module):
    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            self._modules.update(modules[0])
        else:
            self._modules.update({str(i): module for i, module in enumerate(modules)})

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules.values()))

    def __getitem__(self, i):
        found = list(self._modules.values())[i]
        return Sequential(*found) if isinstance(i, slice) else found


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        self._modules.update(modules or {})

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self._modules[name] = module

    def __iter__(self):
        return iter(self._modules)

    def __len__(self):
        return len(self._modules)

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()


class ParameterList(Module):
    def __init__(self, values=()):
        super().__init__()
        for i, value in enumerate(values):
            self._parameters[str(i)] = value if isinstance(value, Parameter) else Parameter(value)

    def __iter__(self):
        return iter(list(self._parameters.values()))

    def __len__(self):
        return len(self._parameters)

    def __getitem__(self, i):
        return list(self._parameters.values())[i]


class Identity(Module):
    def forward(self, input):
        return input


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.empty(out_features, in_features, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, **_):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = Parameter(torch.empty(num_embeddings, embedding_dim))
        self.reset_parameters()

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, **_):
        found = cls(*embeddings.shape, padding_idx)
        found.weight = Parameter(embeddings, requires_grad=not freeze)
        return found

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx)


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, **_):
        super().__init__()
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape, self.eps = shape, eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight", Parameter(torch.ones(shape)) if elementwise_affine else None
        )
        self.register_parameter(
            "bias", Parameter(torch.zeros(shape)) if elementwise_affine and bias else None
        )

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, **_):
        super().__init__()
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.normalized_shape, self.eps = shape, eps
        self.register_parameter(
            "weight", Parameter(torch.ones(shape)) if elementwise_affine else None
        )

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class BatchNorm1d(Module):
    def __init__(
        self, num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, **_
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(torch.ones(num_features)) if affine else None)
        self.register_parameter("bias", Parameter(torch.zeros(num_features)) if affine else None)
        for name, value in (
            ("running_mean", torch.zeros(num_features)),
            ("running_var", torch.ones(num_features)),
            ("num_batches_tracked", torch.tensor(0)),
        ):
            self.register_buffer(name, value if track_running_stats else None)

    def forward(self, input):
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            self.momentum,
            self.eps,
        )


class Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, input):
        return F.dropout(input, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}"


def _layer(name, how, **defaults):
    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        for option, given in zip(defaults, args):
            kwargs.setdefault(option, given)
        for option, value in defaults.items():
            object.__setattr__(self, option, kwargs.get(option, value))

    def forward(self, *inputs):
        return how(self, *inputs)

    return type(name, (Module,), {"__init__": __init__, "forward": forward})


ReLU = _layer("ReLU", lambda m, x: F.relu(x), inplace=False)
GELU = _layer("GELU", lambda m, x: F.gelu(x, m.approximate), approximate="none")
SiLU = _layer("SiLU", lambda m, x: F.silu(x), inplace=False)
Tanh = _layer("Tanh", lambda m, x: torch.tanh(x))
Sigmoid = _layer("Sigmoid", lambda m, x: torch.sigmoid(x))
Softplus = _layer("Softplus", lambda m, x: F.softplus(x, m.beta), beta=1.0)
Softmax = _layer("Softmax", lambda m, x: F.softmax(x, m.dim), dim=None)
LogSoftmax = _layer("LogSoftmax", lambda m, x: F.log_softmax(x, m.dim), dim=None)
Flatten = _layer("Flatten", lambda m, x: x.flatten(m.start_dim, m.end_dim), start_dim=1, end_dim=-1)
MSELoss = _layer("MSELoss", lambda m, x, y: F.mse_loss(x, y, m.reduction), reduction="mean")
CrossEntropyLoss = _layer(
    "CrossEntropyLoss",
    lambda m, x, y: F.cross_entropy(
        x, y, m.weight, None, m.ignore_index, None, m.reduction, m.label_smoothing
    ),
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
)
NLLLoss = _layer(
    "NLLLoss",
    lambda m, x, y: F.nll_loss(x, y, None, None, m.ignore_index, None, m.reduction),
    ignore_index=-100,
    reduction="mean",
)


class MultiheadAttention(Module):
    """The weights and the forward pass, for those who compare with it."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False, **_):
        super().__init__()
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.in_proj_weight = Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.register_parameter(
            "in_proj_bias", Parameter(torch.zeros(3 * embed_dim)) if bias else None
        )
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.constant_(self.out_proj.bias, 0.0)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        parts = self.in_proj_weight.chunk(3)
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else [None] * 3

        def heads(x, weight, bias):
            x = F.linear(x, weight, bias)
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

        q, k, v = (heads(x, w, b) for x, w, b in zip((query, key, value), parts, biases))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        for mask in (
            attn_mask,
            None if key_padding_mask is None else key_padding_mask[:, None, None, :],
        ):
            if mask is not None:
                scores = (
                    scores.masked_fill(mask, -math.inf)
                    if mask.dtype is torch.bool
                    else scores + mask
                )
        weights = scores.softmax(-1)
        out = self.out_proj((weights @ v).transpose(1, 2).flatten(-2))
        out = out if self.batch_first else out.transpose(0, 1)
        if not need_weights:
            return out, None
        return out, weights.mean(1) if average_attn_weights else weights

