"""A small tensor library for this page, under PyTorch's name and with its ways.

The exercises run on it in a browser, where there is no PyTorch. It is plain Python: arrays, shapes,
broadcasting, types, PyTorch's own random numbers, gradients, and the names that the exercises use.
Asked for anything else it says that it does not have it. That the checks judge alike on both is
tested (tests/book/test_page.py).
"""

import builtins
import contextlib
import functools
import math
import sys
from array import array

from torch import _base as base
from torch import _ops, _tensor
from torch._base import (
    Generator,
    Size,
    axis,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    packed,
    uint8,
)
from torch._base import bool_ as bool
from torch._base import dtype as dtype
from torch._base import inf as inf
from torch._base import nan as nan
from torch._ops import *
from torch._tensor import METHODS, Tensor, device, from_data, function, lacking, make, missing, op

__version__ = "2.13.0+page"
float, double, half = float32, float64, float16
long, int, short = int64, int32, int16
pi, e = math.pi, math.e
strided = "torch.strided"
contiguous_format, preserve_format = "contiguous_format", "preserve_format"
newaxis = None
for _name in _ops.__dict__:  # `abs`, `sum` and so on, which `import *` leaves out where underscored
    if getattr(_ops.__dict__[_name], "__wrapped__", None) is not None:
        globals()[_name] = _ops.__dict__[_name]
subtract, multiply, divide, true_divide = sub, mul, div, div
negative, absolute, greater, less = neg, abs, gt, lt
greater_equal, less_equal, not_equal, arctan2 = ge, le, ne, atan2
clip = clamp


# ------------------------------------------------------------------------------------ new tensors


def _shape(sizes):
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    for n in sizes:
        if isinstance(n, (builtins.float, str, builtins.type(None), builtins.type(...))):
            raise TypeError(
                f"zeros(): argument 'size' (position 1) must be tuple of ints, but found element "
                f"of type {builtins.type(n).__name__} at pos 0"
            )
    sizes = [n.__index__() for n in sizes]
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {sizes}")
    return Size(sizes)


def _new(values, shape, kind, requires_grad=False):
    found = make(packed(values, kind), shape, kind)
    return found.requires_grad_() if requires_grad else found


@function
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    found = from_data(data, dtype)
    return found.requires_grad_() if requires_grad else found


@function
def as_tensor(data, dtype=None, device=None):
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return from_data(data, dtype)


asarray = as_tensor


@function
def from_numpy(ndarray):
    return ndarray._as_tensor()


def _filled(name, value):
    def filled(
        *size, out=None, dtype=None, layout=None, device=None, requires_grad=False, names=None
    ):
        size = size or ((),)
        shape, kind = _shape(size), dtype or base.default
        if device == "meta" or _tensor.device.current == "meta":
            return _tensor.without_numbers(shape, kind)
        return _new([value] * math.prod(shape), shape, kind, requires_grad)

    def like(
        input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None
    ):
        return _new(
            [value] * math.prod(input.shape), input.shape, dtype or input.dtype, requires_grad
        )

    def new(self, *size, dtype=None, device=None, requires_grad=False):
        shape = _shape(size or ((),))
        return _new([value] * math.prod(shape), shape, dtype or self.dtype, requires_grad)

    for made, title in ((filled, name), (like, f"{name}_like"), (new, f"new_{name}")):
        made.__name__ = made.__qualname__ = title
    return function(filled), function(like), op(new)


zeros, zeros_like, _ = _filled("zeros", 0)
ones, ones_like, _ = _filled("ones", 1)
empty, empty_like, _ = _filled("empty", 0)


@function
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    if isinstance(size, builtins.int):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = dtype or _tensor.scalar_kind(value)
    shape = _shape((size,))
    return _new([value] * math.prod(shape), shape, kind, requires_grad)


@function
def full_like(
    input, fill_value, *, dtype=None, device=None, requires_grad=False, memory_format=None
):
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return _new([value] * math.prod(input.shape), input.shape, dtype or input.dtype, requires_grad)


@op
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return full(size, fill_value, dtype=dtype or self.dtype)


@op
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return tensor(data, dtype=dtype or self.dtype)


def _plain(value):
    return value.item() if isinstance(value, Tensor) else value


@function
def arange(
    *bounds,
    start=None,
    end=None,
    step=1,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
):
    bounds = [_plain(one) for one in bounds]
    for one in bounds:
        if not isinstance(one, (builtins.int, builtins.float)):
            raise TypeError(
                "arange() received an invalid combination of arguments - got "
                f"({', '.join(builtins.type(b).__name__ for b in bounds)})"
            )
    first = start if start is not None else 0
    last = end
    if len(bounds) == 1:
        first, last = (first, bounds[0]) if end is None else (bounds[0], end)
    elif len(bounds) >= 2:
        first, last = bounds[:2]
        step = bounds[2] if len(bounds) > 2 else step
    first, last, step = _plain(first), _plain(last), _plain(step)
    whole = builtins.all(isinstance(one, builtins.int) for one in (first, last, step))
    kind = dtype or (int64 if whole else base.default)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (last - first) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    n = max_(0, math.ceil((last - first) / step))
    return _new([first + i * step for i in range(n)], (n,), kind, requires_grad)


max_, min_ = builtins.max, builtins.min


@function
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False
):
    start, end, steps = _plain(start), _plain(end), _plain(steps)
    kind = dtype or base.default
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    values = (
        [start + step * i if i < steps // 2 else end - step * (steps - i - 1) for i in range(steps)]
        if steps > 1
        else [start] * steps
    )
    return _new(values, (steps,), kind, requires_grad)


@function
def logspace(start, end, steps, base=10.0, **options):
    return base ** linspace(start, end, steps, **options)


@function
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    m = n if m is None else m
    return _new(
        [i == j for i in range(n) for j in range(m)], (n, m), dtype or base.default, requires_grad
    )


# ------------------------------------------------------------------------------------------ chance


def _source(generator):
    return generator or base.generator


@function
def randn(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    shape, kind = _shape(size or ((),)), dtype or base.default
    return _new(_source(generator).normals(math.prod(shape), kind), shape, kind, requires_grad)


@function
def rand(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    shape, kind = _shape(size or ((),)), dtype or base.default
    return _new(_source(generator).uniforms(math.prod(shape), kind), shape, kind, requires_grad)


@function
def randn_like(input, *, dtype=None, generator=None, device=None, requires_grad=False, **_):
    return randn(*input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function
def rand_like(input, *, dtype=None, generator=None, device=None, requires_grad=False, **_):
    return rand(*input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad)


def _whole_numbers(n, low, high, generator):
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return [word % (high - low) + low for word in _source(generator).words(n)]


@function
def randint(
    *args,
    low=None,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
):
    args = [_plain(one) for one in args]
    if size is None and args and isinstance(args[-1], (tuple, list)):
        size = args.pop()
    bounds = args + ([low] if low is not None else []) + ([high] if high is not None else [])
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
    shape = _shape((size,))
    return _new(_whole_numbers(math.prod(shape), first, last, generator), shape, dtype or int64)


@function
def randint_like(input, *bounds, dtype=None, **_):
    return randint(*bounds, tuple(input.shape), dtype=dtype or input.dtype)


@function
def randperm(n, *, generator=None, out=None, dtype=None, device=None, **_):
    row, words = list(range(n)), _source(generator).words(max_(n - 1, 0))
    for i, word in enumerate(words):
        j = i + word % (n - i)
        row[i], row[j] = row[j], row[i]
    return _new(row, (n,), dtype or int64)


@function
def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, **_):
    if size is not None:
        return randn(*size, generator=generator) * std + mean
    like = mean if isinstance(mean, Tensor) else std
    return randn(*like.shape, generator=generator) * std + mean


@function
def bernoulli(input, p=None, *, generator=None, out=None):
    chances = input if p is None else full_like(input, p)
    draws = _source(generator).uniforms(math.prod(input.shape), float32)
    return _new([d < c for d, c in zip(draws, chances._flat())], input.shape, input.dtype)


@function
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    rows = input.tolist() if len(input.shape) == 2 else [input.tolist()]
    source, found = _source(generator), []
    for row in rows:
        row, mine = list(row), []
        for _ in range(num_samples):
            place, total = source.uniforms(1, float64)[0] * builtins.sum(row), 0.0
            for i, share in enumerate(row):  # noqa: B007
                total += share
                if place < total:
                    break
            mine.append(i)
            if not replacement:
                row[i] = 0.0
        found.append(mine)
    return from_data(found if len(input.shape) == 2 else found[0], int64)


def _fresh(name, values):
    def fresh(self, *args, generator=None, **kwargs):
        _ops._may_change(self)
        if self.is_meta:
            return self
        return self._write(packed(values(self, _source(generator), *args, **kwargs), self.dtype))

    fresh.__name__ = fresh.__qualname__ = name
    op(fresh)


_fresh(
    "normal_",
    lambda t, source, mean=0.0, std=1.0: [
        x * std + mean for x in source.normals(math.prod(t.shape), t.dtype)
    ],
)
def _between(t, source, a=0.0, b=1.0, **named):
    low, high = named.get("from", a), named.get("to", b)
    found = source.uniforms(math.prod(t.shape), t.dtype)
    if isinstance(found, array):  # many
        return (make(found, t.shape, t.dtype) * (high - low) + low)._flat()
    return [x * (high - low) + low for x in found]


_fresh("uniform_", _between)
_fresh(
    "random_",
    lambda t, source, low=0, high=None: _whole_numbers(
        math.prod(t.shape), *((0, low) if high is None and low else (low, high or 2**24)), source
    ),
)
_fresh(
    "bernoulli_",
    lambda t, source, p=0.5: [x < p for x in source.uniforms(math.prod(t.shape), float32)],
)
_fresh(
    "exponential_",
    lambda t, source, rate=1.0: [
        -math.log1p(-x) / rate for x in source.uniforms(math.prod(t.shape), t.dtype)
    ],
)


def manual_seed(seed):
    return base.generator.manual_seed(seed)


def seed():
    return base.generator.seed()


def initial_seed():
    return base.generator.initial_seed()


def get_rng_state():
    return base.generator.get_state()


def set_rng_state(state):
    base.generator.set_state(state)


# --------------------------------------------------------------------------------------- gradients


class _GradientsAre(contextlib.ContextDecorator):
    def __init__(self, on):
        self.on, self.before = on, []

    def __enter__(self):
        self.before.append(_tensor._gradients())
        base.local.gradients = self.on

    def __exit__(self, *_):
        base.local.gradients = self.before.pop()


class no_grad(_GradientsAre):
    def __init__(self):
        super().__init__(False)

    def __new__(cls, function=None):
        made = object.__new__(cls)
        made.__init__()
        return made(function) if function is not None else made


class inference_mode(_GradientsAre):
    def __init__(self, mode=True):
        super().__init__(not mode)


class enable_grad(_GradientsAre):
    def __init__(self):
        super().__init__(True)


class set_grad_enabled(_GradientsAre):
    def __init__(self, mode):
        super().__init__(mode)
        self.before.append(_tensor._gradients())
        base.local.gradients = mode

    def __enter__(self):
        pass


def is_grad_enabled():
    return _tensor._gradients()


# ---------------------------------------------------------------------------------- odds and ends


class finfo:
    def __init__(self, kind=None):
        kind = kind or base.default
        known = {
            "float32": (-3.4028234663852886e38, 1.1920928955078125e-07, 1.1754943508222875e-38),
            "float64": (-1.7976931348623157e308, 2.220446049250313e-16, 2.2250738585072014e-308),
            "float16": (-65504.0, 0.0009765625, 6.103515625e-05),
            "bfloat16": (-3.3895313892515355e38, 0.0078125, 1.1754943508222875e-38),
        }
        self.min, self.eps, self.tiny = known[kind.name]
        self.max, self.smallest_normal, self.dtype = -self.min, self.tiny, kind.name
        self.resolution, self.bits = 1e-06, 8 * kind.itemsize


class iinfo:
    def __init__(self, kind):
        self.bits, self.dtype = 8 * kind.itemsize, kind.name
        signed = kind is not uint8
        self.min = -(1 << (self.bits - 1)) if signed else 0
        self.max = (1 << (self.bits - 1)) - 1 if signed else 255


def is_tensor(value):
    return isinstance(value, Tensor)


def promote_types(a, b):
    return base.promote(a, b)


def result_type(a, b):
    return _tensor.common_kind(a, b)


def get_default_dtype():
    return base.default


def set_default_dtype(kind):
    base.default = kind


def get_num_threads():
    return 1


def set_num_threads(n):
    pass


def set_printoptions(**_):
    pass


def use_deterministic_algorithms(*_, **__):
    pass


def compile(model=None, **_):
    return model if model is not None else lambda function: function


class OutOfMemoryError(RuntimeError):
    pass


class _Nowhere:
    @staticmethod
    def is_available():
        return False

    def device_count(self):
        return 0

    def manual_seed_all(self, seed):
        pass

    def __getattr__(self, name):
        raise missing(f"torch.cuda.{name}")


cuda, mps, xpu = _Nowhere(), _Nowhere(), _Nowhere()


# ------------------------------------------------------------------------------ a tensor's methods

METHODS["backward"] = op(_ops.backward)
METHODS["where"] = op(_ops._where)
METHODS["clip"], METHODS["absolute"], METHODS["swapaxes"] = clamp, abs, transpose
METHODS["swapdims"], METHODS["tile"], METHODS["subtract"] = transpose, repeat, sub
METHODS["multiply"], METHODS["divide"], METHODS["negative"] = mul, div, neg
METHODS["greater"], METHODS["less"], METHODS["inner"] = gt, lt, dot
METHODS["broadcast_to"], METHODS["outer"] = broadcast_to, outer
METHODS["scatter_add_"] = METHODS["scatter_add_"]
METHODS["isin"] = isin
METHODS["bernoulli"], METHODS["multinomial"] = bernoulli, multinomial
for _name, _made in METHODS.items():
    setattr(Tensor, _name, _made)


def _operator(name, made, turned=False):
    def method(self, other):
        other = _tensor.operand(other)
        if other is None:
            return NotImplemented
        return made(other, self) if turned else made(self, other)

    method.__name__ = method.__qualname__ = name
    method = _tensor.renamed(method)

    @functools.wraps(method)
    def call(self, other):
        if _tensor.MODES:
            mode = _tensor.MODES.pop()
            try:
                return mode.__torch_function__(call, (), (self, other), None)
            finally:
                _tensor.MODES.append(mode)
        return method(self, other)

    setattr(Tensor, name, call)


for _symbol, _made in {
    "add": add,
    "sub": sub,
    "mul": mul,
    "truediv": div,
    "floordiv": floor_divide,
    "mod": remainder,
    "pow": pow,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
}.items():
    _operator(f"__{_symbol}__", _made)
    _operator(f"__r{_symbol}__", _made, True)
    _titles = {
        "truediv": "div",
        "floordiv": "floor_divide",
        "mod": "remainder",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
        "lshift": "bitwise_left_shift",
        "rshift": "bitwise_right_shift",
    }
    _operator(f"__i{_symbol}__", METHODS[f"{_titles.get(_symbol, _symbol)}_"])
for _symbol in ("eq", "ne", "lt", "le", "gt", "ge"):
    _operator(f"__{_symbol}__", globals()[_symbol])


def _compares_with_anything(name, answer):
    compare = getattr(Tensor, name)

    def method(self, other):
        if _tensor.operand(other) is None:
            return (
                answer
                if other is None or isinstance(other, (str, builtins.type(...)))
                else NotImplemented
            )
        return compare(self, other)

    setattr(Tensor, name, _tensor.renamed(method))


_compares_with_anything("__eq__", False)
_compares_with_anything("__ne__", True)


def _matmul(self, other):
    return NotImplemented if not isinstance(other, Tensor) else matmul(self, other)


_matmul.__name__ = "__matmul__"
Tensor.__matmul__ = op(_matmul)
Tensor.__neg__, Tensor.__abs__ = neg, abs
Tensor.__pos__ = lambda self: self
Tensor.__invert__ = bitwise_not
_get, _set = op(_ops.__getitem__), op(_ops.__setitem__)
Tensor.__getitem__, Tensor.__setitem__ = _get, _set


def _property(name, made):
    made.__name__ = made.__qualname__ = "__get__"
    setattr(Tensor, name, property(op(made)))


def _mT(self):
    if len(self.shape) < 2:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{len(self.shape)}-D tensor."
        )
    return _ops.transpose(self, -2, -1)


_property("mT", _mT)
_property("T", lambda self: _ops.permute(self, list(reversed(range(len(self.shape))))))
_property("H", lambda self: _ops.transpose(self, 0, 1))
for _name in ("get", "get__", "__getitem__", "__setitem__", "__get__"):
    METHODS.pop(_name, None)


@function
def block_diag(*tensors):
    blocks = [_ops.reshape(t, (1, -1)) if t.dim() < 2 else t for t in tensors]
    widths = [block.shape[1] for block in blocks]
    return _ops.cat([
        _functional.pad(block, (builtins.sum(widths[:i]), builtins.sum(widths[i + 1 :])))
        for i, block in enumerate(blocks)
    ])


__getattr__ = lacking("torch")


from torch import autograd, linalg, nn, optim, overrides, random, special, testing  # noqa: E402
from torch import compiler as compiler  # noqa: E402
from torch import func as func  # noqa: E402
from torch import utils as utils  # noqa: E402
from torch.nn import functional as _functional  # noqa: E402

FloatTensor, LongTensor = Tensor, lambda data: from_data(data, int64)
BoolTensor = lambda data: from_data(data, bool)  # noqa: E731
scaled_dot_product_attention = _functional.scaled_dot_product_attention
layer_norm, embedding, dropout = (
    _functional.layer_norm,
    _functional.embedding,
    _functional.dropout,
)
