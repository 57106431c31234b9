"""Arrays for this page, under NumPy's name: what the checks and some answers use of it."""

import builtins
import contextlib
import math

import torch
from torch import Tensor, _base, _ops
from torch._tensor import NUMBERS, combined, make

inf, nan, pi, newaxis = math.inf, math.nan, math.pi, None
bool_ = builtins.bool


class _Type:
    """A type of numbers, which NumPy's users also call to make a single one."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, value=0):
        return _out(_tensor(value, self))

    def __eq__(self, other):
        return self.kind == (other.kind if isinstance(other, _Type) else other)

    def __hash__(self):
        return hash(self.kind)

    def __repr__(self):
        return f"numpy.{self.kind.name}"


float64, float32, int64, int32 = map(
    _Type, (torch.float64, torch.float32, torch.int64, torch.int32)
)


def _kind(dtype):
    if isinstance(dtype, _Type):
        return dtype.kind
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    return {
        builtins.float: torch.float64,
        builtins.int: torch.int64,
        builtins.bool: torch.bool,
    }.get(dtype) or getattr(torch, str(dtype))


def _tensor(value, dtype=None):
    """What an array, a number or a list holds, as a tensor: floats in double precision."""
    if isinstance(value, ndarray):
        found = value._t
    elif isinstance(value, Tensor):
        found = value.detach()
    elif (
        isinstance(value, (list, tuple))
        and value
        and builtins.any(isinstance(one, (ndarray, Tensor)) for one in value)
    ):
        found = _ops.stack([_tensor(one) for one in value])
    else:
        if not isinstance(value, (list, tuple, range, *NUMBERS)):
            if not hasattr(value, "__float__"):
                raise TypeError(
                    f"float() argument must be a string or a real number, not "
                    f"'{type(value).__name__}'"
                )
            value = builtins.float(value)
        if _holds_text(value):
            raise torch._tensor.missing("an array of strings")
        before, _base.default = _base.default, torch.float64
        try:
            found = torch.tensor(value)
        finally:
            _base.default = before
    kind = _kind(dtype)
    return found.to(kind) if kind else found


def _holds_text(value):
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, str)


class ndarray:
    """An array: a tensor with NumPy's names."""

    __slots__ = ("_t",)
    __array_priority__ = 1000

    def __init__(self, tensor):
        self._t = tensor

    def _as_tensor(self):
        return self._t

    shape = property(lambda self: tuple(self._t.shape))
    ndim = property(lambda self: len(self._t.shape))
    size = property(lambda self: math.prod(self._t.shape))
    dtype = property(lambda self: self._t.dtype)
    T = property(lambda self: ndarray(self._t.permute(list(reversed(range(self.ndim))))))
    flat = property(lambda self: self.ravel())

    def __len__(self):
        return len(self._t)

    def __iter__(self):
        return (_out(one) for one in self._t)

    def __bool__(self):
        return builtins.bool(self._t)

    def __float__(self):
        return builtins.float(self._t)

    def __int__(self):
        return builtins.int(self._t)

    def __index__(self):
        return self._t.__index__()

    def __hash__(self):
        return hash(self._t.item())

    def __format__(self, spec):
        return format(self._t.item(), spec) if not self.shape else str(self)

    def __repr__(self):
        return f"array({self._t.tolist()})"

    def __getitem__(self, key):
        return _out(self._t[_key(key)])

    def __setitem__(self, key, value):
        self._t[_key(key)] = _tensor(value).to(self.dtype)

    def tolist(self):
        return self._t.tolist()

    def item(self):
        return self._t.item()

    def copy(self):
        return ndarray(self._t.clone())

    def astype(self, dtype, copy=True):
        return ndarray(self._t.to(_kind(dtype)))

    def reshape(self, *shape):
        return ndarray(self._t.reshape(*shape))

    def ravel(self):
        return ndarray(self._t.reshape(-1))

    flatten = ravel

    def squeeze(self, axis=None):
        return ndarray(self._t.squeeze(axis))

    def swapaxes(self, a, b):
        return ndarray(self._t.transpose(a, b))

    def transpose(self, *axes):
        return self.T if not axes else ndarray(self._t.permute(*axes))

    def take(self, indices, axis=None):
        t = self._t if axis is not None else self._t.reshape(-1)
        axis = 0 if axis is None else axis
        if isinstance(indices, builtins.int):
            return _out(t.select(axis, indices))
        return ndarray(t.index_select(axis, _tensor(indices)))

    def round(self, decimals=0):
        return ndarray(self._t.round(decimals=decimals))

    def sum(self, axis=None, keepdims=False):
        return _out(self._t.sum(axis, keepdims))

    def mean(self, axis=None, keepdims=False):
        return _out(self._t.double().mean(axis, keepdims))

    def std(self, axis=None, keepdims=False):
        return _out(self._t.double().std(axis, False, keepdims))

    def max(self, axis=None, keepdims=False):
        return _out(self._t.amax(axis, keepdims))

    def min(self, axis=None, keepdims=False):
        return _out(self._t.amin(axis, keepdims))

    def argmax(self, axis=None):
        return _out(self._t.argmax(axis))

    def argmin(self, axis=None):
        return _out(self._t.argmin(axis))

    def any(self, axis=None):
        return _out((self._t != 0).any(axis))

    def all(self, axis=None):
        return _out((self._t != 0).all(axis))

    def cumsum(self, axis=None):
        return ndarray(self._t.cumsum(axis) if axis is not None else self._t.reshape(-1).cumsum(0))

    def dot(self, other):
        return self @ other

    def __matmul__(self, other):
        return _out(self._t @ _tensor(other))

    def __neg__(self):
        return ndarray(-self._t)

    def __abs__(self):
        return ndarray(self._t.abs())

    def __invert__(self):
        return ndarray(~self._t)


def _key(key):
    if isinstance(key, tuple):
        return tuple(_key(one) for one in key)
    return key._t if isinstance(key, ndarray) else key


def _out(t):
    """A result: a number where nothing else is left."""
    if t.shape:
        return ndarray(t)
    if t.dtype.kind == "b":
        return ndarray(t)
    return t.item() if t.dtype.kind != "f" else _Number(t.item())


class _Number(builtins.float):
    """A single number, which NumPy's users may ask for its shape."""

    shape, ndim, size, dtype = (), 0, 1, torch.float64

    def item(self):
        return builtins.float(self)

    def all(self):
        return self != 0

    any = all

    def tolist(self):
        return builtins.float(self)

    def round(self, decimals=0):
        return _Number(round(builtins.float(self), decimals))

    def _as_tensor(self):
        return torch.tensor(builtins.float(self), dtype=torch.float64)

    def __format__(self, spec):
        return format(builtins.float(self), spec)

    def __truediv__(self, other):
        if isinstance(other, (builtins.int, builtins.float)) and other == 0:
            return _Number(nan if self == 0 or self != self else math.copysign(inf, self))
        return builtins.float.__truediv__(self, other)


def _binary(name, turned=False):
    def method(self, other):
        if not isinstance(other, (ndarray, Tensor, list, tuple, *NUMBERS)) and not hasattr(
            other, "__float__"
        ):
            return NotImplemented
        other = other if isinstance(other, NUMBERS) else _tensor(other)
        a, b = (other, self._t) if turned else (self._t, other)
        if name in ("div", "pow") and all_whole(a, b):
            a = a.double() if isinstance(a, Tensor) else builtins.float(a)
        if name in ("eq", "ne", "lt", "le", "gt", "ge"):
            try:
                return _out(combined(name, a, b, None, torch.bool))
            except RuntimeError:
                return name == "ne"
        before, _base.default = _base.default, torch.float64
        try:
            return _out(getattr(_ops, name)(a, b))
        finally:
            _base.default = before

    return method


def all_whole(*values):
    return builtins.all(
        v.dtype.kind != "f" if isinstance(v, Tensor) else not isinstance(v, builtins.float)
        for v in values
    )


for _symbol, _name in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "pow": "pow",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}.items():
    setattr(ndarray, f"__{_symbol}__", _binary(_name))
    setattr(ndarray, f"__r{_symbol}__", _binary(_name, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ndarray, f"__{_name}__", _binary(_name))


def _from_tensor(t):
    return ndarray(t)


def array(value, dtype=None, copy=True):
    return ndarray(_tensor(value, dtype).clone())


def asarray(value, dtype=None):
    return value if isinstance(value, ndarray) and dtype is None else ndarray(_tensor(value, dtype))


def _each(name):
    def each(x):
        t = _tensor(x)
        keeps = name in ("abs", "floor", "trunc", "round", "sign", "ceil")
        return _out(getattr(_ops, name)(t if t.dtype.kind == "f" or keeps else t.double()))

    return each


exp, log, sqrt, abs, floor, trunc = map(_each, ("exp", "log", "sqrt", "abs", "floor", "trunc"))
sin, cos, tanh, log2, sign, ceil = map(_each, ("sin", "cos", "tanh", "log2", "sign", "ceil"))
absolute = abs


def round(x, decimals=0):
    return _out(_tensor(x).round(decimals=decimals))


rint = round


def square(x):
    return asarray(x) * asarray(x)


def power(a, b):
    return asarray(a) ** (b if isinstance(b, NUMBERS) else asarray(b))


def average(x, axis=None, weights=None):
    if weights is None:
        return asarray(x).mean(axis)
    return (asarray(x) * asarray(weights)).sum(axis) / asarray(weights).sum(axis)


def _tested(name):
    return lambda x: _out(getattr(_ops, name)(_tensor(x).double()))


isnan, isinf, isfinite = map(_tested, ("isnan", "isinf", "isfinite"))


def maximum(a, b):
    return _out(combined("maximum", _tensor(a), _tensor(b)))


def minimum(a, b):
    return _out(combined("minimum", _tensor(a), _tensor(b)))


def where(condition, a=None, b=None):
    if a is None:
        return tuple(ndarray(one) for one in _ops.nonzero(_tensor(condition), as_tuple=True))
    a, b = (_tensor(v, torch.float64 if isinstance(v, builtins.float) else None) for v in (a, b))
    return _out(_ops.where(_tensor(condition), a, b))


def unique(x):
    flat = sorted(set(_tensor(x)._flat()))
    kind = _tensor(x).dtype
    return ndarray(make(_base.packed(flat, kind), (len(flat),), kind))


def argwhere(x):
    return ndarray(_ops.nonzero(_tensor(x)))


def array_equal(a, b):
    a, b = _tensor(a), _tensor(b)
    return a.shape == b.shape and builtins.all(x == y for x, y in zip(a._flat(), b._flat()))


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = _tensor(a).double(), _tensor(b).double()
    try:
        return _ops.allclose(*_ops.broadcast_tensors(a, b), rtol, atol, equal_nan)
    except RuntimeError:
        raise ValueError("operands could not be broadcast together") from None


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _out(_ops.isclose(_tensor(a).double(), _tensor(b).double(), rtol, atol, equal_nan))


def full_like(x, value):
    return ndarray(torch.full_like(_tensor(x), value))


def full(shape, value, dtype=None):
    return ndarray(
        torch.full(
            shape if isinstance(shape, tuple) else (shape,),
            value,
            dtype=_kind(dtype) or _tensor(value).dtype,
        )
    )


def zeros(shape, dtype=builtins.float):
    return ndarray(torch.zeros(shape, dtype=_kind(dtype)))


def ones(shape, dtype=builtins.float):
    return ndarray(torch.ones(shape, dtype=_kind(dtype)))


empty = zeros


def zeros_like(x):
    return ndarray(torch.zeros_like(_tensor(x)))


def ones_like(x):
    return ndarray(torch.ones_like(_tensor(x)))


def eye(n, dtype=builtins.float):
    return ndarray(torch.eye(n, dtype=_kind(dtype)))


def arange(*bounds, dtype=None):
    before, _base.default = _base.default, torch.float64
    try:
        return ndarray(torch.arange(*bounds, dtype=_kind(dtype)))
    finally:
        _base.default = before


def linspace(a, b, n=50):
    return ndarray(torch.linspace(a, b, n, dtype=torch.float64))


def flip(x, axis=None):
    t = _tensor(x)
    return ndarray(t.flip(list(range(len(t.shape))) if axis is None else axis))


def roll(x, shift, axis=None):
    return ndarray(_tensor(x).roll(shift, axis))


def sort(x, axis=-1, kind=None):
    return ndarray(_tensor(x).sort(axis)[0])


def argsort(x, axis=-1, kind=None):
    return ndarray(_tensor(x).argsort(axis, stable=True))


def take_along_axis(x, indices, axis):
    return ndarray(_ops.gather(_tensor(x), axis, _tensor(indices)))


def put_along_axis(x, indices, values, axis):
    x._t.scatter_(axis, _tensor(indices), _tensor(values, x.dtype))


def stack(arrays, axis=0):
    return ndarray(_ops.stack([_tensor(one) for one in arrays], axis))


def concatenate(arrays, axis=0):
    return ndarray(_ops.cat([_tensor(one) for one in arrays], axis))


def _method(name):
    return lambda x, *args, **kwargs: getattr(asarray(x), name)(*args, **kwargs)


sum, mean, std, max, min, any, all, cumsum, argmax, argmin = map(
    _method, ("sum", "mean", "std", "max", "min", "any", "all", "cumsum", "argmax", "argmin")
)
amax, amin = max, min
transpose, squeeze, reshape, ravel = map(_method, ("transpose", "squeeze", "reshape", "ravel"))


def outer(a, b):
    return ndarray(_tensor(a)[:, None] * _tensor(b)[None, :])


def dot(a, b):
    return asarray(a) @ asarray(b)


matmul = dot


def tril(x, k=0):
    return ndarray(_tensor(x).tril(k))


def triu(x, k=0):
    return ndarray(_tensor(x).triu(k))


@contextlib.contextmanager
def errstate(**_):
    yield


class integer:
    """The kinds of numbers, for isinstance."""


class floating:
    pass


number, generic = integer, integer


class linalg:
    @staticmethod
    def norm(x, ord=None, axis=None, keepdims=False):
        x = _tensor(x).double()
        return _out(_ops.norm(x, 2 if ord is None else ord, axis, keepdims))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise torch._tensor.missing(f"numpy.{name}")
