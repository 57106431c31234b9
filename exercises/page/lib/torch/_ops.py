"""Operations: arithmetic, sums, views, indices, products. Each knows its gradient."""

import builtins
import collections
import itertools
import math
import operator
from array import array

from torch import _base as base
from torch import _fast
from torch._base import (
    Size,
    axes,
    axis,
    bool_,
    broadcast,
    contiguous_strides,
    float32,
    float64,
    inf,
    int32,
    int64,
    nan,
    packed,
    places,
    promote,
    spread,
)
from torch._tensor import (
    NUMBERS,
    Tensor,
    _gradients,
    as_tensor_like,
    combined,
    common_kind,
    from_data,
    function,
    gathered,
    linked,
    make,
    mapped,
    missing,
    op,
    operand,
    pick,
    reduced,
    scatter_back,
    view_of,
    walk,
)

# -------------------------------------------------------------------------------------- arithmetic


def _needs(value):
    return isinstance(value, Tensor) and value._node is not None


def _linked2(result, a, b, to_a, to_b, saved=()):
    """`linked` for two operands of which one may be a number; gradients are summed back."""
    if not _gradients() or not (_needs(a) or _needs(b)) or result.dtype.kind != "f":
        return result
    if isinstance(a, Tensor) and isinstance(b, Tensor):

        def back(g):
            return (
                reduced(to_a(g), a.shape).to(a.dtype) if a._node is not None else None,
                reduced(to_b(g), b.shape).to(b.dtype) if b._node is not None else None,
            )

        return linked(result, [a, b], back, [t for t in saved if isinstance(t, Tensor)])
    one, way = (a, to_a) if isinstance(a, Tensor) else (b, to_b)
    return linked(
        result,
        [one],
        lambda g: (reduced(way(g), one.shape).to(one.dtype),),
        [t for t in saved if isinstance(t, Tensor)],
    )


def _both(name, a, b):
    a, b = operand(a), operand(b)
    if a is None or b is None:
        return None
    return a, b


def _kind_of(value):
    return value.dtype if isinstance(value, Tensor) else builtins.type(value).__name__


@op
def add(input, other, *, alpha=1):
    if alpha != 1:
        other = mul(other, alpha)
    kind = common_kind(input, other)
    result = combined("or" if kind is bool_ else "add", input, other)
    return _linked2(result, input, other, lambda g: g, lambda g: g)


@op
def sub(input, other, *, alpha=1):
    kinds = [
        t.dtype if isinstance(t, Tensor) else bool_ if isinstance(t, builtins.bool) else None
        for t in (input, other)
    ]
    if kinds == [bool_, bool_]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if bool_ in kinds:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    if alpha != 1:
        other = mul(other, alpha)
    return _linked2(combined("sub", input, other), input, other, lambda g: g, lambda g: -g)


@op
def mul(input, other):
    kind = common_kind(input, other)
    result = combined("and" if kind is bool_ else "mul", input, other)
    return _linked2(
        result,
        input,
        other,
        lambda g: g * other,
        lambda g: g * input,
        (input if _needs(other) else None, other if _needs(input) else None),
    )


@op
def div(input, other, *, rounding_mode=None):
    if rounding_mode == "floor":
        return floor_divide(input, other)
    kind = common_kind(input, other)
    kind = kind if kind.kind == "f" else base.default
    result = combined("div", input, other, kind)
    if rounding_mode == "trunc":
        return result.trunc()
    return _linked2(
        result,
        input,
        other,
        lambda g: g / other,
        lambda g: -g * input / (other * other),
        (input, other),
    )


@op
def pow(input, exponent):
    kind = common_kind(input, exponent)
    if kind.kind == "i" and not isinstance(exponent, Tensor) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    result = combined("pow", input, exponent)

    def to_base(g):
        if not isinstance(exponent, Tensor):
            return g * (exponent * pow(input, exponent - 1)) if exponent else g * 0.0
        return g * exponent * pow(input, exponent - 1)

    return _linked2(
        result,
        input,
        exponent,
        to_base,
        lambda g: g * pow(input, exponent) * as_tensor_like(input, kind).log(),
        (input, exponent),
    )


@op
def floor_divide(input, other):
    return combined("floor_divide", input, other)


@op
def remainder(input, other):
    return _linked2(
        combined("remainder", input, other),
        input,
        other,
        lambda g: g,
        lambda g: -g * floor_divide(input, other),
    )


@op
def fmod(input, other):
    return _linked2(
        combined("fmod", input, other),
        input,
        other,
        lambda g: g,
        lambda g: -g * div(input, other, rounding_mode="trunc"),
    )


@op
def maximum(input, other):
    half = lambda g, a, b: g * ((a > b).to(g.dtype) + (a == b).to(g.dtype) * 0.5)  # noqa: E731
    return _linked2(
        combined("maximum", input, other),
        input,
        other,
        lambda g: half(g, input, other),
        lambda g: half(g, other, input),
    )


@op
def minimum(input, other):
    half = lambda g, a, b: g * ((a < b).to(g.dtype) + (a == b).to(g.dtype) * 0.5)  # noqa: E731
    return _linked2(
        combined("minimum", input, other),
        input,
        other,
        lambda g: half(g, input, other),
        lambda g: half(g, other, input),
    )


@op
def atan2(input, other):
    return combined("atan2", input, other)


def _compare(name, symbol):
    def compare(input, other):
        return combined(name, input, other, None, bool_)

    compare.__name__ = compare.__qualname__ = name
    return op(compare)


eq, ne, lt, le = (
    _compare("eq", "=="),
    _compare("ne", "!="),
    _compare("lt", "<"),
    _compare("le", "<="),
)
gt, ge = _compare("gt", ">"), _compare("ge", ">=")


def _bitwise(name):
    def bitwise(input, other):
        kind = common_kind(input, other)
        if kind.kind == "f":
            word = {"and": "and", "or": "or", "xor": "xor"}[name]
            title = {"float32": "Float", "float64": "Double", "float16": "Half"}.get(
                kind.name, "BFloat16"
            )
            raise NotImplementedError(f"\"bitwise_{word}_cpu\" not implemented for '{title}'")
        return combined(name, input, other)

    bitwise.__name__ = bitwise.__qualname__ = f"bitwise_{name}"
    return op(bitwise)


bitwise_and, bitwise_or, bitwise_xor = _bitwise("and"), _bitwise("or"), _bitwise("xor")


@op
def bitwise_left_shift(input, other):
    return combined("lshift", input, other)


@op
def bitwise_right_shift(input, other):
    return combined("rshift", input, other)


@op
def bitwise_not(input):
    if input.dtype.kind == "f":
        raise NotImplementedError("\"bitwise_not_cpu\" not implemented for 'Float'")
    flip = (lambda x: 1 - x) if input.dtype is bool_ else operator.invert
    return make(packed(list(map(flip, input._flat())), input.dtype), input.shape, input.dtype)


def _truth(x):
    return x if x.dtype is bool_ else ne(x, 0)


@op
def logical_and(input, other):
    return combined("and", _truth(input), _truth(other))


@op
def logical_or(input, other):
    return combined("or", _truth(input), _truth(other))


@op
def logical_xor(input, other):
    return combined("xor", _truth(input), _truth(other))


@op
def logical_not(input):
    return bitwise_not(_truth(input))


def _unary(name, slope, saved_result=False, label=None):
    """An operation on each number. slope(x, y): its derivative at x, where y came out."""

    def unary(input):
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not "
                f"{builtins.type(input).__name__}"
            )
        result = mapped(name, input)
        return linked(
            result,
            [input],
            lambda g: (g * slope(input, result),),
            [result if saved_result else input],
            name,
        )

    unary.__name__ = unary.__qualname__ = label or name
    return op(unary)


exp = _unary("exp", lambda x, y: y, True)
expm1 = _unary("expm1", lambda x, y: y + 1, True)
exp2 = _unary("exp2", lambda x, y: y * math.log(2), True)
log = _unary("log", lambda x, y: x.reciprocal())
log2 = _unary("log2", lambda x, y: (x * math.log(2)).reciprocal())
log10 = _unary("log10", lambda x, y: (x * math.log(10)).reciprocal())
log1p = _unary("log1p", lambda x, y: (x + 1).reciprocal())
sqrt = _unary("sqrt", lambda x, y: 0.5 / y, True)
rsqrt = _unary("rsqrt", lambda x, y: -0.5 * y * y * y, True)
reciprocal = _unary("reciprocal", lambda x, y: -y * y, True)
sin = _unary("sin", lambda x, y: x.cos())
cos = _unary("cos", lambda x, y: -x.sin())
tan = _unary("tan", lambda x, y: 1 + y * y, True)
tanh = _unary("tanh", lambda x, y: 1 - y * y, True)
sinh = _unary("sinh", lambda x, y: x.cosh())
cosh = _unary("cosh", lambda x, y: x.sinh())
asin = _unary("asin", lambda x, y: (1 - x * x).rsqrt())
acos = _unary("acos", lambda x, y: -(1 - x * x).rsqrt())
atan = _unary("atan", lambda x, y: (1 + x * x).reciprocal())
erf = _unary("erf", lambda x, y: (-x * x).exp() * (2 / math.sqrt(math.pi)))
sigmoid = _unary("sigmoid", lambda x, y: y * (1 - y), True)
abs = _unary("abs", lambda x, y: x.sign())
neg = _unary("neg", lambda x, y: -1.0)
sign = _unary("sign", lambda x, y: 0.0)
floor = _unary("floor", lambda x, y: 0.0)
ceil = _unary("ceil", lambda x, y: 0.0)
trunc = _unary("trunc", lambda x, y: 0.0)
relu = _unary("relu", lambda x, y: (y > 0).to(y.dtype), True)
_gelu = _unary(
    "gelu",
    lambda x, y: (
        0.5 * (1 + (x / math.sqrt(2)).erf()) + x * (-0.5 * x * x).exp() / math.sqrt(2 * math.pi)
    ),
)
_softplus = _unary("softplus", lambda x, y: x.sigmoid())


@op
def round(input, *, decimals=0):
    if decimals:
        return round(input * 10**decimals) / 10**decimals
    return linked(mapped("round", input), [input], lambda g: (g * 0.0,))


@op
def addcmul(input, tensor1, tensor2, *, value=1):
    return input + tensor1 * tensor2 * value


@op
def addcdiv(input, tensor1, tensor2, *, value=1):
    return input + tensor1 / tensor2 * value


@op
def square(input):
    return pow(input, 2)


@op
def isnan(input):
    return make(array("B", [x != x for x in input._flat()]), input.shape, bool_)


@op
def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    from torch import finfo

    largest = finfo(input.dtype).max
    result = masked_fill(input, isnan(input), nan)
    result = masked_fill(result, eq(result, inf), largest if posinf is None else posinf)
    return masked_fill(result, eq(result, -inf), -largest if neginf is None else neginf)


@op
def isinf(input):
    return make(array("B", [x in (inf, -inf) for x in input._flat()]), input.shape, bool_)


@op
def isneginf(input):
    return eq(input, -inf)


@op
def isposinf(input):
    return eq(input, inf)


@op
def isfinite(input):
    return make(array("B", [x - x == 0 for x in input._flat()]), input.shape, bool_)


@op
def clamp(input, min=None, max=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    result = input
    if min is not None:
        result = (
            maximum(result, min) if isinstance(min, Tensor) else _clamped(result, min, "maximum")
        )
    if max is not None:
        result = (
            minimum(result, max) if isinstance(max, Tensor) else _clamped(result, max, "minimum")
        )
    return result


def _clamped(x, limit, name):
    kind = common_kind(x, limit)
    inside = combined("ge" if name == "maximum" else "le", x, limit, None, bool_)
    return linked(combined(name, x, limit, kind), [x], lambda g: (g * inside,))


@op
def clamp_min(input, min):
    return clamp(input, min)


@op
def clamp_max(input, max):
    return clamp(input, None, max)


@op
def lerp(input, end, weight):
    return input + weight * (end - input)


@function
def where(condition, input=None, other=None):
    if input is None:
        return nonzero(condition, as_tuple=True)
    kind = common_kind(input, other)
    a, b = (
        t if isinstance(t, Tensor) else make(packed([t], kind), (), kind) for t in (input, other)
    )
    shape = broadcast(condition.shape, a.shape, b.shape)
    one, two = (t.to(kind)._spread(shape) for t in (a, b))
    out = [x if c else y for c, x, y in zip(condition._spread(shape), one, two)]
    result = make(packed(out, kind), shape, kind)
    nothing = make(packed([0], kind), (), kind)
    return linked(
        result,
        [a, b],
        lambda g: (
            reduced(where(condition, g, nothing), a.shape).to(a.dtype),
            reduced(where(condition, nothing, g), b.shape).to(b.dtype),
        ),
    )


def _where(self, condition, other):
    return where(condition, self, other)


@op
def masked_fill(input, mask, value):
    if not isinstance(mask, Tensor):
        raise TypeError(
            "masked_fill() received an invalid combination of arguments - got "
            f"({builtins.type(mask).__name__}, {builtins.type(value).__name__}), but expected one "
            "of:\n * (Tensor mask, Tensor value)\n      didn't match because some of the arguments "
            f"have invalid types: (!{builtins.type(mask).__name__}!, "
            f"{_marked(value, Tensor)})\n * (Tensor mask, Number value)\n      didn't match "
            f"because some of the arguments have invalid types: (!{builtins.type(mask).__name__}!, "
            f"{_marked(value, NUMBERS)})\n"
        )
    if mask.dtype is not bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {_said(mask.dtype)}"
        )
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(
                "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value.shape)} dimension(s)."
            )
    fill = value.item() if isinstance(value, Tensor) else value
    shape = broadcast(mask.shape, input.shape)
    if isinstance(fill, float) and input.dtype.kind != "f":
        raise (
            RuntimeError(
                f"value cannot be converted to type {_ctype(input.dtype)} without overflow"
            )
            if builtins.abs(fill) == inf
            else None
        )
    if input.dtype.name == "float16" and isinstance(fill, (int, float)):
        if builtins.abs(fill) != inf and builtins.abs(fill) > 65504:
            raise RuntimeError("value cannot be converted to type at::Half without overflow")
    out = [fill if m else x for m, x in zip(mask._spread(shape), input._spread(shape))]
    result = make(packed(out, input.dtype), shape, input.dtype)
    return linked(result, [input], lambda g: (reduced(masked_fill(g, mask, 0), input.shape),))


def _marked(value, wanted):
    said = builtins.type(value).__name__
    return said if isinstance(value, wanted) else f"!{said}!"


def _ctype(kind):
    return {"int64": "int64_t", "bool": "bool", "int32": "int"}.get(kind.name, kind.name)


def _said(kind):
    """A type's name in PyTorch's C++ messages."""
    return {
        "float32": "float",
        "float64": "double",
        "int64": "long int",
        "int32": "int",
        "bool": "bool",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "uint8": "unsigned char",
    }.get(kind.name, kind.name)


# -------------------------------------------------------------------------------------------- sums


def _rows(x, dims):
    """(the numbers with the axes `dims` last, the length of a row, the shape of the others)."""
    rest = [i for i in range(len(x.shape)) if i not in dims]
    order = rest + list(dims)
    if order == list(range(len(order))):
        flat = x._flat()
    else:
        flat = gathered(
            x._store.data, [x.shape[i] for i in order], [x._strides[i] for i in order], x._offset
        )
    return flat, math.prod(x.shape[i] for i in dims), [x.shape[i] for i in rest]


def _kept(x, dims, keepdim):
    return [1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims]


def _chunks(flat, n, count):
    return [flat[i * n : (i + 1) * n] for i in range(count)]


def _back_to(g, dims, shape):
    """A gradient of a sum, spread over what was summed."""
    return g.reshape([1 if i in dims else n for i, n in enumerate(shape)]).expand(shape)


_sum = builtins.sum


@op
def sum(input, dim=None, keepdim=False, *, dtype=None):
    dims = axes(dim, len(input.shape))
    kind = dtype or (input.dtype if input.dtype.kind == "f" else int64)
    if dtype and dtype is not input.dtype:
        input = input.to(dtype)
    out = _fast.sums(input, dims)
    if not out:
        flat, n, rest = _rows(input, dims)
        out = [_sum(row) for row in _chunks(flat, n, math.prod(rest))]
    result = make(packed(out, kind), _kept(input, dims, keepdim), kind)
    return linked(result, [input], lambda g: (_back_to(g, dims, input.shape),), (), "sum")


@op
def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dtype:
        input = input.to(dtype)
    if input.dtype.kind != "f":
        said = {"int64": "Long", "bool": "Bool", "int32": "Int"}.get(input.dtype.name, "Byte")
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {said}"
        )
    dims = axes(dim, len(input.shape))
    n = math.prod(input.shape[i] for i in dims)
    total = sum(input, dims, keepdim) if dims else input
    return total / n if n else total * nan


@op
def prod(input, dim=None, keepdim=False, *, dtype=None):
    dims = axes(dim, len(input.shape))
    kind = dtype or (input.dtype if input.dtype.kind == "f" else int64)
    flat, n, rest = _rows(input, dims)
    out = [math.prod(row) for row in _chunks(flat, n, math.prod(rest))]
    result = make(packed(out, kind), _kept(input, dims, keepdim), kind)
    return linked(result, [input], lambda g: (_back_to(g * result, dims, input.shape) / input,))


@op
def var(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, builtins.bool):
        dim, unbiased = None, dim
    less = correction if correction is not None else int(unbiased)
    dims = axes(dim, len(input.shape))
    n = math.prod(input.shape[i] for i in dims)
    quick = None if _needs(input) else _fast.sums(input, dims, squares=True)
    if quick:
        total = make(quick, _kept(input, dims, keepdim), input.dtype)
    else:
        apart = input - input.mean(dims, keepdim=True)
        total = (apart * apart).sum(dims, keepdim)
    return total / (n - less) if n > less else total * nan


@op
def std(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return var(input, dim, unbiased, keepdim, correction=correction).sqrt()


@function
def var_mean(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
    return (var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim))


@op
def norm(input, p=2, dim=None, keepdim=False, dtype=None):
    if p in (None, "fro"):
        p = 2
    if p == inf:
        return amax(input.abs(), dim, keepdim)
    if p == 1:
        return input.abs().sum(dim, keepdim)
    if p == 2:
        total = (input * input).sum(dim, keepdim)
        result = total.detach().sqrt()
        if not _needs(input):
            return result
        dims = axes(dim, len(input.shape))

        def back(g):
            size = _back_to(result, dims, input.shape)
            share = where(size == 0, size * 0, input / where(size == 0, size * 0 + 1, size))
            return (_back_to(g, dims, input.shape) * share,)

        return linked(result, [input], back)
    return (input.abs() ** p).sum(dim, keepdim) ** (1 / p)


def _truths(name, test):
    def truths(input, dim=None, keepdim=False):
        dims = axes(dim, len(input.shape))
        flat, n, rest = _rows(input, dims)
        out = [test(row) for row in _chunks(flat, n, math.prod(rest))]
        return make(packed(out, bool_), _kept(input, dims, keepdim), bool_)

    truths.__name__ = truths.__qualname__ = name
    return op(truths)


all, any = _truths("all", builtins.all), _truths("any", builtins.any)


@op
def count_nonzero(input, dim=None):
    return ne(input, 0).sum(dim)


class _Found(tuple):
    """(values, indices), also by name."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])

    def __repr__(self):
        return f"torch.return_types.max(\nvalues={self[0]},\nindices={self[1]})"


def _first(row, largest):
    best = 0
    for i, x in enumerate(row):
        if x != x:
            return i
        if (x > row[best]) if largest else (x < row[best]):
            best = i
    return best


def _extreme(input, dim, keepdim, largest):
    at = axis(dim, len(input.shape))
    flat, n, rest = _rows(input, [at] if input.shape else [])
    if n == 0:
        raise IndexError(f"max(): Expected reduction dim {at} to have non-zero size.")
    out = [_first(row, largest) for row in _chunks(flat, n, math.prod(rest))]
    shape = _kept(input, [at], keepdim) if input.shape else []
    index = make(array("q", out), shape, int64)
    if not input.shape:
        return _Found((input.clone(), index))
    kept = index if keepdim else index.unsqueeze(at)
    values = gather(input, at, kept)
    return _Found((values if keepdim else values.squeeze(at), index))


def _over_all(input, largest):
    flat = input._flat()
    if not len(flat):
        raise RuntimeError(
            f"{'max' if largest else 'min'}(): Expected reduction dim to be specified for "
            "input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        )
    return amax(input) if largest else amin(input)


@op
def max(input, dim=None, keepdim=False):
    if isinstance(dim, Tensor):
        return maximum(input, dim)
    return _over_all(input, True) if dim is None else _extreme(input, dim, keepdim, True)


@op
def min(input, dim=None, keepdim=False):
    if isinstance(dim, Tensor):
        return minimum(input, dim)
    return _over_all(input, False) if dim is None else _extreme(input, dim, keepdim, False)


def _amost(name, best):
    def amost(input, dim=None, keepdim=False):
        dims = axes(dim, len(input.shape))
        flat, n, rest = _rows(input, dims)
        if n == 0:
            raise IndexError(f"{name}(): Expected reduction dim to have non-zero size.")
        out = [
            nan if row[0] != row[0] or _sum(x != x for x in row) else best(row)
            for row in _chunks(flat, n, math.prod(rest))
        ]
        result = make(packed(out, input.dtype), _kept(input, dims, keepdim), input.dtype)

        def back(g):
            top = _back_to(result.detach(), dims, input.shape)
            hit = eq(input.detach(), top).to(g.dtype)
            return (_back_to(g, dims, input.shape) * hit / hit.sum(dims, keepdim=True),)

        return linked(result, [input], back)

    amost.__name__ = amost.__qualname__ = name
    return op(amost)


amax, amin = _amost("amax", builtins.max), _amost("amin", builtins.min)


@op
def argmax(input, dim=None, keepdim=False):
    if dim is None:
        return make(array("q", [_first(input._flat(), True)]), (), int64)
    return _extreme(input.detach(), dim, keepdim, True)[1]


@op
def argmin(input, dim=None, keepdim=False):
    if dim is None:
        return make(array("q", [_first(input._flat(), False)]), (), int64)
    return _extreme(input.detach(), dim, keepdim, False)[1]


def _along(input, dim, change):
    """Each row along an axis changed by `change(list)`, as lists in the shape of the input."""
    at = axis(dim, len(input.shape))
    turned = input.movedim(at, -1) if input.shape else input
    flat, n = turned._flat(), (input.shape[at] if input.shape else 1)
    rows = [change(list(flat[i : i + n])) for i in range(0, len(flat), n or 1)]
    return at, turned, rows


@op
def cumsum(input, dim, *, dtype=None):
    kind = dtype or (input.dtype if input.dtype.kind == "f" else int64)
    at, turned, rows = _along(input, dim, lambda row: itertools.accumulate(row))
    made = make(packed([x for row in rows for x in row], kind), turned.shape, kind)
    result = made.movedim(-1, at) if input.shape else made
    return linked(result.contiguous(), [input], lambda g: (g.flip(at).cumsum(at).flip(at),))


@op
def cumprod(input, dim, *, dtype=None):
    kind = dtype or (input.dtype if input.dtype.kind == "f" else int64)
    at, turned, rows = _along(input, dim, lambda row: itertools.accumulate(row, operator.mul))
    made = make(packed([x for row in rows for x in row], kind), turned.shape, kind)
    result = (made.movedim(-1, at) if input.shape else made).contiguous()
    return linked(result, [input], lambda g: ((g * result).flip(at).cumsum(at).flip(at) / input,))


def _order(row, descending):
    def place(i):
        x = row[i]
        return (x != x, x) if not descending else (x == x, -x if x == x else 0)

    return sorted(range(len(row)), key=place)


@op
def sort(input, dim=-1, descending=False, stable=False):
    at, turned, rows = _along(input, dim, lambda row: _order(row, descending))
    index = make(array("q", [i for row in rows for i in row]), turned.shape, int64)
    index = index.movedim(-1, at).contiguous() if input.shape else index
    return _Found((gather(input, at, index) if input.shape else input.clone(), index))


@op
def argsort(input, dim=-1, descending=False, stable=False):
    return sort(input.detach(), dim, descending)[1]


def _largest(row, k):
    """Where the k largest numbers are, equal ones in the order in which C++ leaves them.

    PyTorch calls std::nth_element, which is done here after libstdc++, and sorts what is before;
    of more than 16 equal ones, the order may be another.
    """
    found = list(enumerate(row))

    def before(a, b):
        return a[1] > b[1] or (a[1] != a[1] and b[1] == b[1])

    def swap(i, j):
        found[i], found[j] = found[j], found[i]

    first, last = 0, len(found)
    while last - first > 3:
        a, b, c = first + 1, (first + last) // 2, last - 1  # the median of three comes first
        x, y, z = found[a], found[b], found[c]
        if before(x, y):
            swap(first, b if before(y, z) else c if before(x, z) else a)
        else:
            swap(first, a if before(x, z) else c if before(y, z) else b)
        pivot, cut, end = found[first], first + 1, last
        while True:
            while before(found[cut], pivot):
                cut += 1
            end -= 1
            while before(pivot, found[end]):
                end -= 1
            if cut >= end:
                break
            swap(cut, end)
            cut += 1
        first, last = (cut, last) if cut < k else (first, cut)

    def ordered(part):
        return builtins.sorted(part, key=lambda one: (one[1] == one[1], -one[1]))

    found[first:last] = ordered(found[first:last])
    return [i for i, _ in [*ordered(found[: k - 1]), *found[k - 1 : k]]]


@op
def topk(input, k, dim=-1, largest=True, sorted=True):
    if not isinstance(k, int):
        raise TypeError(
            f"topk(): argument 'k' (position 1) must be int, not {builtins.type(k).__name__}"
        )
    n = input.shape[axis(dim, len(input.shape))] if input.shape else 1
    if k > n:
        raise RuntimeError("selected index k out of range")
    if not input.shape or not k or 64 * k <= n:
        index = sort(input.detach(), dim, largest)[1].narrow(dim, 0, k).contiguous()
    else:
        rows = input.detach().movedim(dim, -1)
        flat = (rows if largest else -rows)._flat().tolist()
        starts = range(0, len(flat), n)
        where = [i for start in starts for i in _largest(flat[start : start + n], k)]
        index = make(array("q", where), (*rows.shape[:-1], k), int64).movedim(-1, dim).contiguous()
    return _Found((gather(input, dim, index), index))


@op
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    found = builtins.sorted(set(input._flat()))
    result = [make(packed(found, input.dtype), (len(found),), input.dtype)]
    if return_inverse:
        at = {x: i for i, x in enumerate(found)}
        result.append(make(array("q", [at[x] for x in input._flat()]), input.shape, int64))
    if return_counts:
        counts = collections.Counter(input._flat())
        result.append(make(array("q", [counts[x] for x in found]), (len(found),), int64))
    return result[0] if len(result) == 1 else tuple(result)


@op
def logsumexp(input, dim, keepdim=False):
    top = amax(input.detach(), dim, True)
    top = where(
        isfinite(top), top, make(packed([0.0], top.dtype), (), top.dtype)
    )
    found = (input - top).exp().sum(dim, True).log() + top
    return found if keepdim else found.squeeze(dim)


def _softmax_row(row):
    top = builtins.max(row)
    if top == -inf or top != top or top == inf:
        return [nan] * len(row)
    found = [math.exp(x - top) if x == x else nan for x in row]
    total = _sum(found)
    return [x / total for x in found]


def _needed(name, dim):
    if dim is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')


@op
def softmax(input, dim=None, dtype=None, _stacklevel=None):
    if _stacklevel is None:
        _needed("softmax", dim)
    if dtype:
        input = input.to(dtype)
    if input.dtype.kind != "f":
        said = {"int64": "Long", "bool": "Bool", "int32": "Int"}.get(input.dtype.name, "Byte")
        raise NotImplementedError(f"\"softmax_lastdim_kernel_impl\" not implemented for '{said}'")
    if dim is None:
        dim = 0 if len(input.shape) in (0, 1, 3) else 1
    at, turned, rows = _along(input, dim, _softmax_row)
    result = make(packed([x for row in rows for x in row], input.dtype), turned.shape, input.dtype)
    if input.shape:
        result = result.movedim(-1, at).contiguous()

    def back(g):
        return (result * (g - (result * g).sum(at, True)),)

    return linked(result, [input], back, [result], "softmax")


@op
def log_softmax(input, dim=None, dtype=None, _stacklevel=None):
    if _stacklevel is None:
        _needed("log_softmax", dim)
    if dtype:
        input = input.to(dtype)
    if dim is None:
        dim = 0 if len(input.shape) in (0, 1, 3) else 1

    def change(row):
        top = builtins.max(row)
        if top == -inf or top != top:
            return [nan] * len(row)
        total = math.log(_sum(math.exp(x - top) for x in row))
        return [x - top - total for x in row]

    at, turned, rows = _along(input, dim, change)
    result = make(packed([x for row in rows for x in row], input.dtype), turned.shape, input.dtype)
    if input.shape:
        result = result.movedim(-1, at).contiguous()
    return linked(
        result, [input], lambda g: (g - result.exp() * g.sum(at, True),), [result], "log_softmax"
    )


# ------------------------------------------------------------------------------------------- views


@op
def detach(input):
    result = view_of(input, input.shape, input._strides, input._offset)
    result._node = None
    return result


@op
def clone(input, memory_format=None):
    result = make(array(input.dtype.code, input._flat()), input.shape, input.dtype)
    return linked(result, [input], lambda g: (g,), (), "clone")


@op
def contiguous(input, memory_format=None):
    return input if input.is_contiguous() else clone(input)


def _sizes(shape):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    for n in shape:
        if isinstance(n, (float, str)) or n is None or isinstance(n, builtins.type(...)):
            raise TypeError(
                f"'{builtins.type(n).__name__}' object cannot be interpreted as an integer"
            )
    return [operator.index(n) for n in shape]


def _wanted(shape, size):
    """A shape with its -1 worked out."""
    shape = _sizes(shape)
    for i, n in enumerate(shape):
        if n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {shape}")
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        if known and size % known == 0:
            shape[shape.index(-1)] = size // known
        else:
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {size}")
    if math.prod(shape) != size:
        raise RuntimeError(f"shape '{shape}' is invalid for input of size {size}")
    return shape


def _strides_of_view(x, shape):
    """Strides with which x looks like `shape` without a copy; None where that is impossible."""
    if x.is_contiguous():
        return contiguous_strides(shape)
    if math.prod(x.shape) == 0:
        return contiguous_strides(shape)
    strides, at = [0] * len(shape), len(shape) - 1
    block, step = 1, x._strides[-1] if x.shape else 1
    for i in range(len(x.shape) - 1, -1, -1):
        block *= x.shape[i]
        last = i == 0 or (x.shape[i - 1] != 1 and x._strides[i - 1] != block * step)
        if not last:
            continue
        inside = 1
        while at >= 0 and (inside < block or shape[at] == 1):
            strides[at] = inside * step
            inside *= shape[at]
            at -= 1
        if inside != block:
            return None
        if i:
            block, step = 1, x._strides[i - 1]
    return strides if at == -1 else None


@op
def view(input, *shape):
    if len(shape) == 1 and isinstance(shape[0], base.dtype):
        raise missing("view(dtype)")
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    for i, n in enumerate(given):
        if isinstance(n, float):
            raise TypeError(
                f"view(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                '"type must be tuple of ints,but got float"'
            )
    shape = _wanted(shape, math.prod(input.shape))
    strides = _strides_of_view(input, shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return view_of(input, shape, strides, input._offset)


@op
def reshape(input, *shape):
    shape = _wanted(shape or ([],), math.prod(input.shape))
    strides = _strides_of_view(input, shape)
    if strides is None:
        input = clone(input)
        strides = contiguous_strides(shape)
    return view_of(input, shape, strides, input._offset, "reshape")


@op
def view_as(input, other):
    return view(input, other.shape)


@op
def reshape_as(input, other):
    return reshape(input, other.shape)


@op
def flatten(input, start_dim=0, end_dim=-1):
    n = len(input.shape)
    if not n:
        return reshape(input, 1)
    start, end = axis(start_dim, n), axis(end_dim, n)
    return reshape(
        input,
        *input.shape[:start],
        math.prod(input.shape[start : end + 1]),
        *input.shape[end + 1 :],
    )


@op
def ravel(input):
    return reshape(input, -1)


@op
def unflatten(input, dim, sizes):
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    for name, position, value, wanted in (
        ("dim", 1, dim, (int,)), ("sizes", 2, sizes, (tuple, list)),
    ):
        if not isinstance(value, wanted):
            raise TypeError(
                f"unflatten(): argument '{name}' (position {position}) must be "
                f"{'int' if name == 'dim' else 'tuple of ints'}, "
                f"not {builtins.type(value).__name__}"
            )
    at = axis(dim, len(input.shape))
    sizes = _sizes(sizes)
    for i, n in enumerate(sizes):
        if n < -1:
            raise RuntimeError(
                f"unflatten got an unexpected error: invalid shape dimension {n} at index {i} of "
                f"shape {sizes}"
            )
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error: only one dimension can be inferred")
    known, n = math.prod(one for one in sizes if one != -1), input.shape[at]
    if known != n and not (-1 in sizes and known and n % known == 0):
        raise RuntimeError(
            f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {at} ({n}) "
            "in the input tensor"
        )
    return reshape(
        input, *input.shape[:at], *_wanted(sizes, input.shape[at]), *input.shape[at + 1 :]
    )


@op
def permute(input, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if len(dims) != len(input.shape):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            "length of the desired ordering of dimensions i.e. input.dim() = "
            f"{len(input.shape)} is not equal to len(dims) = {len(dims)}"
        )
    order = [axis(dim, len(input.shape)) for dim in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_of(
        input,
        [input.shape[i] for i in order],
        [input._strides[i] for i in order],
        input._offset,
        "permute",
    )


@op
def transpose(input, dim0, dim1):
    n = len(input.shape)
    order = list(range(n))
    a, b = axis(dim0, n), axis(dim1, n)
    if n:
        order[a], order[b] = order[b], order[a]
    return view_of(
        input,
        [input.shape[i] for i in order],
        [input._strides[i] for i in order],
        input._offset,
        "transpose",
    )


swapaxes = swapdims = transpose


@op
def t(input):
    if len(input.shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D"
        )
    return transpose(input, 0, 1) if len(input.shape) == 2 else input


@op
def movedim(input, source, destination):
    n = len(input.shape)
    sources = [axis(i, n) for i in (source if isinstance(source, (tuple, list)) else [source])]
    targets = [
        axis(i, n)
        for i in (destination if isinstance(destination, (tuple, list)) else [destination])
    ]
    order = [i for i in range(n) if i not in sources]
    for at, what in sorted(zip(targets, sources)):
        order.insert(at, what)
    return permute(input, order)


@op
def unsqueeze(input, dim):
    at = axis(dim, len(input.shape) + 1)
    shape, strides = list(input.shape), list(input._strides)
    step = strides[at] * shape[at] if at < len(shape) else 1
    shape.insert(at, 1)
    strides.insert(at, step)
    return view_of(input, shape, strides, input._offset)


@op
def squeeze(input, dim=None):
    n = len(input.shape)
    dims = range(n) if dim is None else axes(dim, n)
    kept = [i for i in range(n) if not (i in dims and input.shape[i] == 1)]
    return view_of(
        input, [input.shape[i] for i in kept], [input._strides[i] for i in kept], input._offset
    )


@op
def expand(input, *sizes):
    sizes = _sizes(sizes)
    missing_axes = len(sizes) - len(input.shape)
    if missing_axes < 0:
        raise RuntimeError(
            f"expand({_typed(input)}, size={sizes}): the number of sizes provided ({len(sizes)}) "
            f"must be greater or equal to the number of dimensions in the tensor "
            f"({len(input.shape)})"
        )
    shape = list(sizes)
    for i, n in enumerate(input.shape):
        wanted = sizes[i + missing_axes]
        if wanted == -1:
            shape[i + missing_axes] = n
        elif n not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({n}) at "
                f"non-singleton dimension {i + missing_axes}.  Target sizes: {sizes}.  Tensor "
                f"sizes: {list(input.shape)}"
            )
    if -1 in shape:
        raise RuntimeError(
            f"expand({_typed(input)}, size={sizes}): the expanded size of the tensor (-1) isn't "
            "allowed in a leading, non-existing dimension 0"
        )
    return view_of(
        input, shape, spread(input.shape, input._strides, shape), input._offset, "expand"
    )


def _typed(x):
    title = {"float32": "Float", "float64": "Double", "int64": "Long", "bool": "Bool"}
    return f"torch.{title.get(x.dtype.name, '')}Tensor{{{list(x.shape)}}}"


@op
def expand_as(input, other):
    return expand(input, other.shape)


@op
def broadcast_to(input, *size):
    return expand(input, *size)


@function
def broadcast_tensors(*tensors):
    shape = broadcast(*[t.shape for t in tensors])
    return tuple(expand(t, shape) for t in tensors)


@op
def repeat(input, *sizes):
    sizes = _sizes(sizes)
    if len(sizes) < len(input.shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    shape = [1] * (len(sizes) - len(input.shape)) + list(input.shape)
    where_from = contiguous_strides(shape)
    at = [0]
    for times, n, step in zip(sizes, shape, where_from):
        row = [j * step for _ in range(times) for j in range(n)]
        at = [i + j for i in at for j in row]
    return pick(input, at, [a * b for a, b in zip(sizes, shape)])


tile = repeat


@op
def repeat_interleave(input, repeats, dim=None):
    if dim is None:
        input, dim = reshape(input, -1), 0
    at = axis(dim, len(input.shape))
    n = input.shape[at]
    counts = repeats.tolist() if isinstance(repeats, Tensor) else repeats
    counts = (
        counts
        if isinstance(counts, list) and len(counts) > 1
        else [counts[0] if isinstance(counts, list) else counts] * n
    )
    return index_select(
        input, at, from_data([i for i, c in enumerate(counts) for _ in range(c)], int64)
    )


@op
def narrow(input, dim, start, length):
    at = axis(dim, len(input.shape))
    start = int(start) % input.shape[at] if start < 0 else int(start)
    if start + length > input.shape[at]:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[at]})."
        )
    shape = list(input.shape)
    shape[at] = length
    return view_of(input, shape, input._strides, input._offset + start * input._strides[at])


@op
def select(input, dim, index):
    at = axis(dim, len(input.shape))
    n = input.shape[at]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {at}"
        )
    return view_of(
        input,
        input.shape[:at] + input.shape[at + 1 :],
        input._strides[:at] + input._strides[at + 1 :],
        input._offset + (index % n) * input._strides[at],
        "select",
    )


@op
def unbind(input, dim=0):
    at = axis(dim, len(input.shape))
    return tuple(select(input, at, i) for i in range(input.shape[at]))


@op
def split(input, split_size, dim=0):
    at = axis(dim, len(input.shape))
    n = input.shape[at]
    if isinstance(split_size, float):
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, "
            "not float"
        )
    if isinstance(split_size, int):
        sizes = [builtins.min(split_size, n - i) for i in range(0, n, split_size)]
    else:
        sizes = list(split_size)
        if _sum(sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size "
                f"at dimension {at}), but got split_sizes={sizes}"
            )
    starts = [0, *itertools.accumulate(sizes)]
    return tuple(narrow(input, at, start, size) for start, size in zip(starts, sizes))


@op
def logaddexp(input, other):
    larger = maximum(input, other)
    return larger + log1p(exp(-abs(input - other)))


@function
def bucketize(input, boundaries, *, right=False):
    below = boundaries <= input[..., None] if right else boundaries < input[..., None]
    return below.sum(-1)


@op
def chunk(input, chunks, dim=0):
    if not isinstance(chunks, int):
        raise TypeError(
            "chunk(): argument 'chunks' (position 1) must be int, not "
            f"{builtins.type(chunks).__name__}"
        )
    n = input.shape[axis(dim, len(input.shape))]
    return split(input, builtins.max(1, -(-n // chunks)), dim)


@op
def diagonal(input, offset=0, dim1=0, dim2=1):
    n = len(input.shape)
    a, b = axis(dim1, n), axis(dim2, n)
    rest = [i for i in range(n) if i not in (a, b)]
    rows, columns = input.shape[a], input.shape[b]
    start = offset * input._strides[b] if offset >= 0 else -offset * input._strides[a]
    length = builtins.max(
        0, builtins.min(rows + builtins.min(offset, 0), columns - builtins.max(offset, 0))
    )
    return view_of(
        input,
        [input.shape[i] for i in rest] + [length],
        [input._strides[i] for i in rest] + [input._strides[a] + input._strides[b]],
        input._offset + (start if length else 0),
    )


@op
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    n = input.shape[-1] + builtins.abs(offset)
    lead = input.shape[:-1]
    where_to = []
    for block in range(math.prod(lead)):
        for i in range(input.shape[-1]):
            row, column = i - builtins.min(offset, 0), i + builtins.max(offset, 0)
            where_to.append(block * n * n + row * n + column)
    result = scatter_back(input, where_to, (*lead, n, n))
    return result if (dim1, dim2) == (-2, -1) else result.movedim((-2, -1), (dim1, dim2))


@op
def diag(input, diagonal=0):
    if len(input.shape) == 1:
        return diag_embed(input, diagonal)
    return METHOD_diagonal(input, diagonal).clone()


METHOD_diagonal = diagonal


def _triangle(name, keeps):
    def triangle(input, diagonal=0):
        if len(input.shape) < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        columns, block = input.shape[-1], input.shape[-1] * input.shape[-2]
        flat = input._flat()
        out = (
            [
                x if keeps(i % columns, i % block // columns + diagonal) else 0
                for i, x in enumerate(flat)
            ]
            if block
            else []
        )
        result = make(array(input.dtype.code, out), input.shape, input.dtype)
        return linked(result, [input], lambda g: (made(g, diagonal),))

    triangle.__name__ = triangle.__qualname__ = name
    made = op(triangle)
    return made


tril = _triangle("tril", lambda column, last: column <= last)
triu = _triangle("triu", lambda column, first: column >= first)


@function
def tril_indices(row, col, offset=0, **_):
    found = [(i, j) for i in range(row) for j in range(col) if j <= i + offset]
    return from_data([[i for i, _ in found], [j for _, j in found]], int64)


@function
def triu_indices(row, col, offset=0, **_):
    found = [(i, j) for i in range(row) for j in range(col) if j >= i + offset]
    return from_data([[i for i, _ in found], [j for _, j in found]], int64)


@op
def flip(input, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    found = {axis(dim, len(input.shape)) for dim in dims}
    steps, offset = list(contiguous_strides(input.shape)), 0
    for i in found:
        offset += (input.shape[i] - 1) * steps[i]
        steps[i] = -steps[i]
    return pick(input, base._places(input.shape, steps, offset), input.shape)


@op
def fliplr(input):
    return flip(input, 1)


@op
def flipud(input):
    return flip(input, 0)


@op
def roll(input, shifts, dims=None):
    if dims is None:
        return roll(reshape(input, -1), shifts, 0).reshape(input.shape)
    pairs = [(shifts, dims)] if isinstance(shifts, int) else list(zip(shifts, dims))
    for shift, dim in pairs:
        at = axis(dim, len(input.shape))
        n = input.shape[at]
        input = index_select(input, at, from_data([(i - shift) % n for i in range(n)], int64))
    return input


@function
def cat(tensors, dim=0):
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    for i, one in enumerate(tensors):
        if not isinstance(one, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{builtins.type(one).__name__}"
            )
        if not one.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    tensors = [one for one in tensors if tuple(one.shape) != (0,)] or tensors[:1]
    first = tensors[0]
    at = axis(dim, len(first.shape))
    kind = first.dtype
    for i, one in enumerate(tensors[1:], 1):
        kind = promote(kind, one.dtype)
        if len(one.shape) != len(first.shape):
            raise RuntimeError(
                "Tensors must have same number of dimensions: got "
                f"{len(first.shape)} and {len(one.shape)}"
            )
        if one.shape[:at] + one.shape[at + 1 :] != first.shape[:at] + first.shape[at + 1 :]:
            wrong = next(
                j for j in range(len(first.shape)) if j != at and one.shape[j] != first.shape[j]
            )
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {at}. Expected size "
                f"{first.shape[wrong]} but got size {one.shape[wrong]} for tensor number {i} in "
                "the list."
            )
    flats = [one._as(kind) for one in tensors]
    outer = math.prod(first.shape[:at])
    lengths = [math.prod(one.shape[at:]) for one in tensors]
    out = array(kind.code)
    for i in range(outer):
        for flat, n in zip(flats, lengths):
            out.extend(flat[i * n : (i + 1) * n])
    sizes = [one.shape[at] for one in tensors]
    result = make(out, first.shape[:at] + Size([_sum(sizes)]) + first.shape[at + 1 :], kind)
    return linked(
        result,
        tensors,
        lambda g: tuple(part.to(one.dtype) for part, one in zip(split(g, sizes, at), tensors)),
    )


concat = concatenate = cat


@function
def stack(tensors, dim=0):
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, one in enumerate(tensors):
        if not isinstance(one, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{builtins.type(one).__name__}"
            )
        if one.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at "
                f"entry 0 and {list(one.shape)} at entry {i}"
            )
    at = axis(dim, len(tensors[0].shape) + 1)
    return cat([unsqueeze(one, at) for one in tensors], at)


@function
def hstack(tensors):
    return cat(tensors, 0 if len(tensors[0].shape) == 1 else 1)


@function
def vstack(tensors):
    return cat([one.unsqueeze(0) if len(one.shape) == 1 else one for one in tensors], 0)


@function
def meshgrid(*tensors, indexing="ij"):
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    shape = [len(one) for one in tensors]
    if indexing == "xy" and len(tensors) == 2:
        a, b = meshgrid(tensors[1], tensors[0])
        return b, a
    return tuple(
        one.reshape([-1 if i == j else 1 for j in range(len(shape))]).expand(shape)
        for i, one in enumerate(tensors)
    )


@function
def outer(input, vec2):
    return input[:, None] * vec2[None, :]


@function
def cartesian_prod(*tensors):
    return stack([one.reshape(-1) for one in meshgrid(*tensors)], -1)


# ----------------------------------------------------------------------------------------- indices


def _as_index(x):
    """A list or an array of numbers as a tensor of indices."""
    if isinstance(x, Tensor):
        return x
    found = from_data(x) if not hasattr(x, "_as_tensor") else x._as_tensor()
    return found if len(found._flat()) else found.to(int64)


def _understood(x, key):
    """(the view that the simple parts of an index make, {its axis: a tensor of indices})."""
    key = key if isinstance(key, tuple) else (key,)
    used = 0
    for item in key:
        if isinstance(item, Tensor) and item.dtype is bool_ or isinstance(item, builtins.bool):
            used += len(item.shape) if isinstance(item, Tensor) else 0
        elif item is not None and item is not ...:
            used += 1
    if used > len(x.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(x.shape)}")
    if not builtins.any(item is ... for item in key):
        key = (*key, ...)
    shape, strides, offset, lists, at = [], [], x._offset, {}, 0
    seen = False
    for item in key:
        if item is ...:
            if not seen:
                seen = True
                rest = len(x.shape) - used
                shape += x.shape[at : at + rest]
                strides += x._strides[at : at + rest]
                at += rest
            continue
        if item is None:
            shape.append(1)
            strides.append(1)
            continue
        if isinstance(item, slice):
            start, stop, step = (
                None if i is None else operator.index(i) for i in (item.start, item.stop, item.step)
            )
            if step is not None and step <= 0:
                raise ValueError(
                    "step must be greater than zero" if step else "slice step cannot be zero"
                )
            covered = range(x.shape[at])[start:stop:step]
            shape.append(len(covered))
            strides.append(x._strides[at] * covered.step)
            offset += covered.start * x._strides[at] if len(covered) else 0
            at += 1
            continue
        if isinstance(item, builtins.bool):
            item = from_data(item)
        if isinstance(item, Tensor) and not item.shape and item.dtype is not bool_:
            if item.dtype.kind == "f":
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            item = item.item()
        if isinstance(item, int) or (hasattr(item, "__index__") and not isinstance(item, Tensor)):
            item, n = operator.index(item), x.shape[at]
            if not -n <= item < n:
                raise IndexError(f"index {item} is out of bounds for dimension {at} with size {n}")
            offset += (item % n) * x._strides[at]
            at += 1
            continue
        if (
            isinstance(item, (float, str))
            or not isinstance(item, (Tensor, list, tuple, range))
            and not hasattr(item, "_as_tensor")
        ):
            raise TypeError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                f"are valid indices (got {builtins.type(item).__name__})"
            )
        item = _as_index(item)
        if item.dtype is bool_:
            for i, n in enumerate(item.shape):
                if n != x.shape[at + i]:
                    raise IndexError(
                        f"The shape of the mask {list(item.shape)} at index {i} does not match the "
                        f"shape of the indexed tensor {list(x.shape)} at index {at + i}"
                    )
            if not item.shape:
                lists[len(shape)] = from_data([0] if item.item() else [], int64)
                shape.append(1)
                strides.append(0)
                continue
            for one in nonzero(item, as_tuple=True):
                lists[len(shape)] = one
                shape.append(x.shape[at])
                strides.append(x._strides[at])
                at += 1
            continue
        if item.dtype.kind == "f":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        lists[len(shape)] = item
        shape.append(x.shape[at])
        strides.append(x._strides[at])
        at += 1
    return shape, strides, offset, lists


def _listed(shape, strides, offset, lists):
    """(shape of the result, places in the storage) where some axes are indexed by tensors."""
    common = broadcast(*[tuple(one.shape) for one in lists.values()])
    inner = [0] * math.prod(common)
    for at, one in lists.items():
        n, step = shape[at], strides[at]
        values = one.to(int64)._spread(common)
        for i, value in enumerate(values):
            if not -n <= value < n:
                raise IndexError(f"index {value} is out of bounds for dimension {at} with size {n}")
            inner[i] += (value % n) * step
    together = list(lists) == list(range(builtins.min(lists), builtins.max(lists) + 1))
    front = [i for i in range(builtins.min(lists))] if together else []
    behind = [i for i in range(len(shape)) if i not in lists and i not in front]
    first = base._places([shape[i] for i in front], [strides[i] for i in front], offset)
    last = base._places([shape[i] for i in behind], [strides[i] for i in behind], 0)
    found = [a + b + c for a in first for b in inner for c in last]
    return [shape[i] for i in front] + list(common) + [shape[i] for i in behind], found


def __getitem__(self, key):
    shape, strides, offset, lists = _understood(self, key)
    if not lists:
        return view_of(self, shape, strides, offset, "slice")
    if self.is_contiguous() or self._node is None:
        shape, where_from = _listed(shape, strides, offset, lists)
        data = self._store.data
        result = make(array(self.dtype.code, [data[i] for i in where_from]), shape, self.dtype)
        start = self._offset
        return linked(
            result,
            [self],
            lambda g: (scatter_back(g, [i - start for i in where_from], self.shape),),
            (),
            "index",
        )
    return contiguous(self)[key]


def __setitem__(self, key, value):
    _may_change(self)
    shape, strides, offset, lists = _understood(self, key)
    target = (
        (shape, places(shape, strides, offset))
        if not lists
        else _listed(shape, strides, offset, lists)
    )
    shape, where_to = target
    given = value if isinstance(value, Tensor) else from_data(value, self.dtype)
    old, before = self.detach(), self._node
    lead = list(given.shape)
    while len(lead) > len(shape) and lead[0] == 1:
        lead = lead[1:]
    if len(lead) != len(given.shape):
        given = given.reshape(lead)
    if len(lead) > len(shape) or builtins.any(
        n not in (1, m) for n, m in zip(reversed(lead), reversed(shape))
    ):
        if lists:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(given.shape)} cannot be broadcast to "
                f"indexing result of shape {list(shape)}"
            )
        if len(lead) > len(shape):
            raise RuntimeError(
                f"expand({_typed(given)}, size={list(shape)}): the number of sizes provided "
                f"({len(shape)}) must be greater or equal to the number of dimensions in the "
                f"tensor ({len(lead)})"
            )
        at = next(i for i in range(1, len(lead) + 1) if lead[-i] not in (1, shape[-i]))
        raise RuntimeError(
            f"The expanded size of the tensor ({shape[-at]}) must match the existing size "
            f"({lead[-at]}) at non-singleton dimension {len(shape) - at}.  Target sizes: "
            f"{list(shape)}.  Tensor sizes: {lead}"
        )
    data = self._store.data
    values = given.to(self.dtype)._spread(tuple(shape))
    for i, x in zip(where_to, list(values)):
        data[i] = x
    self._store.version += 1
    if _gradients() and (before is not None or given._node is not None):
        mine = places(self.shape, self._strides, self._offset)
        number = {p: i for i, p in enumerate(mine)}
        flat = [number[i] for i in where_to]

        def back(g):
            kept = g.clone().reshape(-1)
            changed = set(flat)
            keep = from_data([i not in changed for i in range(len(mine))])
            kept = (kept * keep).reshape(self.shape)
            return kept, reduced(pick(g, flat, shape), given.shape).to(given.dtype)

        self._node = type_node([before, given._node], back, (), None, "index_put")
    del old


from torch._tensor import Node as type_node  # noqa: E402


@op
def nonzero(input, *, as_tuple=False):
    found = [i for i, x in enumerate(input._flat()) if x]
    columns = []
    for n, step in zip(input.shape, contiguous_strides(input.shape)):
        columns.append([i // step % n for i in found])
    if as_tuple:
        return tuple(make(array("q", column), (len(found),), int64) for column in columns)
    rows = [x for row in zip(*columns) for x in row]
    return make(array("q", rows), (len(found), len(input.shape)), int64)


@op
def index_select(input, dim, index):
    at = axis(dim, len(input.shape))
    return input[(slice(None),) * at + (index,)]


@op
def gather(input, dim, index):
    if isinstance(dim, Tensor):
        raise TypeError("gather(): argument 'dim' (position 1) must be int, not Tensor")
    at = axis(dim, len(input.shape))
    if index.dtype.kind == "f" or index.dtype is bool_:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if len(index.shape) != len(input.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    return pick(input, _gathered(input.shape, at, index), index.shape)


def _gathered(shape, at, index):
    steps, n = list(contiguous_strides(shape)), shape[at]
    step, steps[at] = steps[at], 0
    first = places(index.shape, steps, 0)
    values = index._flat()
    for value in values:
        if not 0 <= value < n:
            raise RuntimeError(f"index {value} is out of bounds for dimension {at} with size {n}")
    return [a + value * step for a, value in zip(first, values)]


@op
def index_fill(input, dim, index, value):
    at = axis(dim, len(input.shape))
    chosen = make(array("B", [False]) * input.shape[at], (input.shape[at],), bool_)
    chosen[index] = True
    return masked_fill(input, chosen.reshape(-1, *[1] * (len(input.shape) - 1 - at)), value)


@op
def unfold(input, dimension, size, step):
    at = axis(dimension, len(input.shape))
    starts = range(0, input.shape[at] - size + 1, step)
    return stack([movedim(narrow(input, at, start, size), at, -1) for start in starts], at)


@op
def diff(input, n=1, dim=-1):
    for _ in range(n):
        at = axis(dim, len(input.shape))
        size = input.shape[at]
        fewer = builtins.max(size - 1, 0)
        later, earlier = narrow(input, at, size - fewer, fewer), narrow(input, at, 0, fewer)
        input = (ne if input.dtype is bool_ else sub)(later, earlier)
    return input


@op
def take(input, index):
    return reshape(input, -1)[index]


@op
def scatter(input, dim, index, src=None, value=None, *, reduce=None):
    src = value if src is None else src
    at = axis(dim, len(input.shape))
    where_to = _gathered(input.shape, at, index)
    given = src if isinstance(src, Tensor) else None
    values = (
        [given._flat()[i] for i in places(index.shape, contiguous_strides(given.shape), 0)]
        if given is not None
        else [src] * len(where_to)
    )
    out = list(input._flat())
    for i, x in zip(where_to, values):
        out[i] = x
    result = make(packed(out, input.dtype), input.shape, input.dtype)
    changed = set(where_to)
    keep = from_data([i not in changed for i in range(len(out))]).reshape(input.shape)
    inputs = [input] if given is None else [input, given]
    return linked(
        result, inputs, lambda g: (g * keep, pick(g, where_to, index.shape))[: len(inputs)]
    )


@op
def scatter_add(input, dim, index, src):
    where_to = _gathered(input.shape, axis(dim, len(input.shape)), index)
    values = [src._flat()[i] for i in places(index.shape, contiguous_strides(src.shape), 0)]
    out = list(input._flat())
    for i, x in zip(where_to, values):
        out[i] += x
    result = make(packed(out, input.dtype), input.shape, input.dtype)
    return linked(result, [input, src], lambda g: (g, pick(g, where_to, index.shape)))


@op
def index_add(input, dim, index, source, *, alpha=1):
    at = axis(dim, len(input.shape))
    shape = [len(index) if i == at else 1 for i in range(len(input.shape))]
    return scatter_add(
        input, at, index.reshape(shape).expand(source.shape).contiguous(), source * alpha
    )


@op
def masked_select(input, mask):
    a, b = broadcast_tensors(input, mask)
    return a[b]


@function
def isin(elements, test_elements):
    inside = set(as_tensor_like(test_elements)._flat())
    elements = as_tensor_like(elements)
    return make(array("B", [x in inside for x in elements._flat()]), elements.shape, bool_)


@function
def searchsorted(sorted_sequence, values, *, right=False):
    import bisect

    find = bisect.bisect_right if right else bisect.bisect_left
    row = list(sorted_sequence._flat())
    values = as_tensor_like(values)
    return make(array("q", [find(row, x) for x in values._flat()]), values.shape, int64)


@op
def bincount(input, weights=None, minlength=0):
    out = [0] * builtins.max(minlength, builtins.max(input._flat(), default=-1) + 1)
    for i, x in enumerate(input._flat()):
        out[x] += 1 if weights is None else weights._flat()[i]
    kind = int64 if weights is None else weights.dtype
    return make(packed(out, kind), (len(out),), kind)


# ---------------------------------------------------------------------------------------- products

_multiplied = operator.mul
_dot = getattr(math, "sumprod", lambda a, b: _sum(map(_multiplied, a, b)))


def _product(a, b, batch, n, k, m):
    """Flat numbers of `batch` products of n × k by k × m numbers, given flat."""
    quick = _fast.product(a, b, batch, n, k, m)
    if quick:
        return quick
    out = []
    for i in range(batch):
        left, right = (
            a[i * n * k : (i + 1) * n * k].tolist(),
            b[i * k * m : (i + 1) * k * m].tolist(),
        )
        columns = [right[j::m] for j in range(m)]
        for r in range(n):
            row = left[r * k : (r + 1) * k]
            out += [_dot(row, column) for column in columns]
    return out


def _refuse_mixed(a, b, what):
    if what == "bmm" and a.dtype is bool_:
        raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    if a.dtype is not b.dtype:
        said = {
            "mm": "expected m1 and m2 to have the same dtype, but got: {} != {}",
            "bmm": "expected scalar type {} but found {}",
            "mv": "expected scalar type {} but found {}",
            "dot": "dot : expected both vectors to have same dtype, but found {} and {}",
        }[what]
        title = {
            "float32": "Float",
            "float64": "Double",
            "int64": "Long",
            "bool": "Bool",
            "float16": "Half",
            "bfloat16": "BFloat16",
            "int32": "Int",
            "uint8": "Byte",
        }
        names = [
            (_said if what == "mm" else lambda k: title.get(k.name, k.name))(one.dtype)
            for one in (a, b)
        ]
        raise RuntimeError(said.format(*names))
    if a.dtype is bool_:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")


@op
def matmul(input, other):
    a, b = input, other
    for position, one in enumerate((a, b), 1):
        if not isinstance(one, Tensor):
            raise TypeError(
                f"matmul(): argument '{'input' if position == 1 else 'other'}' "
                f"(position {position}) must be Tensor, not {builtins.type(one).__name__}"
            )
    if not a.shape or not b.shape:
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{len(a.shape)}D and {len(b.shape)}D"
        )
    if len(a.shape) == 1 and len(b.shape) == 1:
        return dot(a, b)
    if len(a.shape) == 1:
        return squeeze(matmul(unsqueeze(a, 0), b), -2)
    if len(b.shape) == 1:
        if len(a.shape) == 2:
            if a.shape[1] != b.shape[0]:
                raise RuntimeError(
                    f"size mismatch, got input ({a.shape[0]}), mat "
                    f"({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})"
                )
            _refuse_mixed(a, b, "mv")
        return squeeze(matmul(a, unsqueeze(b, -1)), -1)
    flat_b = len(b.shape) == 2
    if flat_b:
        n = math.prod(a.shape[:-1])
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({n}x{a.shape[-1]} and "
                f"{b.shape[0]}x{b.shape[1]})"
            )
        _refuse_mixed(a, b, "mm")
        k, m = b.shape
        out = _product(a._flat(), b._flat(), 1, n, k, m)
        result = make(packed(out, a.dtype), (*a.shape[:-1], m), a.dtype)
        if not _needs(a) and not _needs(b):
            return result
        return linked(
            result,
            [a, b],
            lambda g: (
                matmul(g, b.mT) if _needs(a) else None,
                matmul(a.reshape(-1, k).mT, g.reshape(-1, m)) if _needs(b) else None,
            ),
            [a, b],
            "mm",
        )
    lead = broadcast(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    n, k = a.shape[-2:]
    m = b.shape[-1]
    if b.shape[-2] != k:
        batch = math.prod(lead)
        if len(a.shape) == 2:  # PyTorch folds the other into one product
            rows = batch * m
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({rows}x{b.shape[-2]} and {k}x{n})"
            )
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{batch}, {k}] but got: [{batch}, {b.shape[-2]}]."
        )
    _refuse_mixed(a, b, "mm" if len(a.shape) == 2 else "bmm")
    wide_a, wide_b = (expand(one.detach(), *lead, *one.shape[-2:]) for one in (a, b))
    out = _product(wide_a._flat(), wide_b._flat(), math.prod(lead), n, k, m)
    result = make(packed(out, a.dtype), (*lead, n, m), a.dtype)
    if not _needs(a) and not _needs(b):
        return result
    return linked(
        result,
        [a, b],
        lambda g: (
            reduced(matmul(g, b.mT), a.shape) if _needs(a) else None,
            reduced(matmul(a.mT, g), b.shape) if _needs(b) else None,
        ),
        [a, b],
        "bmm",
    )


@op
def mm(input, mat2):
    for name, one in (("self", input), ("mat2", mat2)):
        if len(one.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return matmul(input, mat2)


@op
def bmm(input, mat2):
    for name, one in (("batch1", input), ("batch2", mat2)):
        if len(one.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    return matmul(input, mat2)


@op
def mv(input, vec):
    return matmul(input, vec)


@op
def dot(input, tensor):
    if len(input.shape) != 1 or len(tensor.shape) != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {len(input.shape)}D and {len(tensor.shape)}D tensors"
        )
    if input.shape != tensor.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"[{input.shape[0]}] and src [{tensor.shape[0]}] to have the same number of elements, "
            f"but got {input.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    _refuse_mixed(input, tensor, "dot")
    result = make(
        packed([_dot(input._flat().tolist(), tensor._flat().tolist())], input.dtype),
        (),
        input.dtype,
    )
    return linked(result, [input, tensor], lambda g: (g * tensor, g * input), [input, tensor])


inner = dot


@op
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return (input * beta if beta else 0) + matmul(mat1, mat2) * alpha


@op
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    product = bmm(batch1, batch2)
    product = product * alpha if alpha != 1 else product
    return product + input * beta if beta else product


@function
def einsum(equation, *operands):
    operands = (
        list(operands[0])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple))
        else list(operands)
    )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
            if len(terms) < len(operands)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    dots = 0
    for term, one in zip(terms, operands):
        if "..." in term:
            dots = builtins.max(dots, len(one.shape) - len(term) + 3)
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation][:dots]
    terms = [
        term.replace(
            "...",
            "".join(spare[dots - (len(one.shape) - len(term) + 3) :]) if "..." in term else "...",
        )
        for term, one in zip(terms, operands)
    ]
    if arrow:
        right = right.replace("...", "".join(spare))
    else:
        letters = "".join(terms)
        right = "".join(spare) + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spare)
        )
    sizes = {}
    for i, (term, one) in enumerate(zip(terms, operands)):
        if len(term) != len(one.shape):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) "
                f"{'is more than' if len(term) > len(one.shape) else 'does not match'} the number "
                f"of dimensions ({len(one.shape)}) for operand {i} and no ellipsis was given"
            )
        for letter, n in zip(term, one.shape):
            if sizes.get(letter, 1) != 1 and n not in (1, sizes[letter]):
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {n} for operand {i} which does not "
                    f"broadcast with previously seen size {sizes[letter]}"
                )
            sizes[letter] = builtins.max(sizes.get(letter, 1), n)

    def plain(term, one):
        """Letters that occur twice become one, by the diagonal."""
        for letter in dict.fromkeys(term):
            while term.count(letter) > 1:
                a = term.index(letter)
                b = term.index(letter, a + 1)
                one = METHOD_diagonal(one, 0, a, b)
                term = term[:a] + term[a + 1 : b] + term[b + 1 :] + letter
        return term, one

    term, result = plain(terms[0], operands[0])
    rest = list(zip(terms, operands))[1:]
    for i, (other, one) in enumerate(rest):
        other, one = plain(other, one)
        later = right + "".join(t for t, _ in rest[i + 1 :])
        summed = [c for c in term if c in other and c not in later]
        batch = [c for c in term if c in other and c in later]
        mine = [c for c in term if c not in other and c in later]
        gone = [c for c in term if c not in other and c not in later]
        yours = [c for c in other if c not in term and c in later]
        lost = [c for c in other if c not in term and c not in later]
        if gone:
            result = sum(result, [term.index(c) for c in gone])
            term = "".join(c for c in term if c not in gone)
        if lost:
            one = sum(one, [other.index(c) for c in lost])
            other = "".join(c for c in other if c not in lost)
        shape = lambda letters: [sizes[c] for c in letters]  # noqa: E731

        def ordered(t, letters, x):
            x = permute(x, [t.index(c) for c in letters])
            return expand(x, shape(letters))

        left_ = ordered(term, batch + mine + summed, result).reshape(
            math.prod(shape(batch)), math.prod(shape(mine)), math.prod(shape(summed))
        )
        right_ = ordered(other, batch + summed + yours, one).reshape(
            math.prod(shape(batch)), math.prod(shape(summed)), math.prod(shape(yours))
        )
        result = bmm(left_, right_).reshape(shape(batch + mine + yours))
        term = "".join(batch + mine + yours)
    extra = [term.index(c) for c in term if c not in right]
    if extra:
        result = sum(result, extra)
        term = "".join(c for c in term if c in right)
    return permute(result, [term.index(c) for c in right])


# -------------------------------------------------------------------------------------- comparison


@op
def equal(input, other):
    return input.shape == other.shape and builtins.all(
        map(operator.eq, input._flat(), other._flat())
    )


def _close(a, b, rtol, atol, equal_nan):
    return (
        a == b
        or builtins.abs(a - b) <= atol + rtol * builtins.abs(b)
        or (equal_nan and a != a and b != b)
    )


@op
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = broadcast_tensors(input, other)
    out = [_close(x, y, rtol, atol, equal_nan) for x, y in zip(a._flat(), b._flat())]
    return make(array("B", out), a.shape, bool_)


@op
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype is not other.dtype:
        title = {"float32": "Float", "float64": "Double", "int64": "Long", "bool": "Bool"}
        raise RuntimeError(
            f"{title.get(input.dtype.name)} did not match {title.get(other.dtype.name)}"
        )
    return builtins.all(isclose(input, other, rtol, atol, equal_nan)._flat())


# -------------------------------------------------------------------------------- change of a type


@op
def to(input, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    for one in args:
        if isinstance(one, base.dtype):
            dtype = one
        elif isinstance(one, Tensor):
            dtype = one.dtype
    if dtype is None or dtype is input.dtype:
        return clone(input) if copy else input
    result = make(packed(input._flat(), dtype), input.shape, dtype)
    kind = input.dtype
    return linked(result, [input], lambda g: (g.to(kind),), (), "to_copy")


def _conversion(name, kind):
    def conversion(input, memory_format=None):
        return to(input, kind)

    conversion.__name__ = conversion.__qualname__ = name
    return op(conversion)


for _name, _kind in {
    "float": float32,
    "double": float64,
    "half": base.float16,
    "bfloat16": base.bfloat16,
    "long": int64,
    "int": int32,
    "bool": bool_,
    "byte": base.uint8,
    "short": base.int16,
    "char": base.int8,
}.items():
    _conversion(_name, _kind)


@op
def type_as(input, other):
    return to(input, other.dtype)


@op
def type(input, dtype=None):
    if dtype is None:
        return _typed(input).partition("{")[0]
    return to(input, dtype)


# ------------------------------------------------------------------------------------ in place


def _may_change(x):
    if x._node is not None and x._node.leaf is not None and _gradients():
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def replaced(x, result):
    """x, changed in place into a result of its shape."""
    if tuple(result.shape) != tuple(x.shape):
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    if result.dtype.kind == "f" and x.dtype.kind != "f":
        title = {"float32": "Float", "float64": "Double", "int64": "Long", "bool": "Bool"}
        raise RuntimeError(
            f"result type {title.get(result.dtype.name)} can't be cast to the desired output type "
            f"{title.get(x.dtype.name)}"
        )
    if x.dtype is bool_ and result.dtype is not bool_:
        raise RuntimeError("result type Long can't be cast to the desired output type Bool")
    _may_change(x)
    x._write(result._as(x.dtype))
    if _gradients():
        x._node = result._node
    return x


def _in_place(name, made):
    def in_place(self, *args, **kwargs):
        before = self
        if self._node is not None:  # the graph keeps what was there before
            before = view_of(self, self.shape, self._strides, self._offset)
            before._node = self._node
            _may_change(self)
        return replaced(self, made(before, *args, **kwargs))

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    return op(in_place)


for (
    _name
) in """add sub mul div pow floor_divide remainder fmod exp log sqrt rsqrt reciprocal sin cos
        tanh sigmoid abs neg sign floor ceil round trunc relu clamp clamp_min clamp_max masked_fill
        tril triu cumsum nan_to_num index_fill bitwise_left_shift bitwise_right_shift
        eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or
        bitwise_xor bitwise_not scatter scatter_add index_add lerp addmm baddbmm log1p erf atan2
        """.split():
    _in_place(_name, globals()[_name])


@op
def copy_(self, src, non_blocking=False):
    src = as_tensor_like(src)
    return replaced(self, expand(src, self.shape).to(self.dtype).clone())


@op
def fill_(self, value):
    _may_change(self)
    if self.is_meta:
        return self
    value = value.item() if isinstance(value, Tensor) else value
    self._write(packed([value] * math.prod(self.shape), self.dtype))
    if self._node is not None and _gradients():
        self._node = None
    return self


@op
def zero_(self):
    return fill_(self, 0)


@op
def unsqueeze_(self, dim):
    self.__dict__  # noqa: B018
    found = view_of(self, *(lambda v: (v.shape, v._strides, v._offset))(unsqueeze(self, dim)))
    self.shape, self._strides = found.shape, found._strides
    return self


@op
def squeeze_(self, dim=None):
    found = squeeze(self, dim)
    self.shape, self._strides = found.shape, found._strides
    return self


@op
def fill_diagonal_(self, value):
    n = builtins.min(self.shape)
    for i in range(n):
        self[(i,) * len(self.shape)] = value
    return self


@op
def detach_(self):
    self._node = None
    return self


@op
def requires_grad_(self, requires_grad=True):
    if not requires_grad:
        if self._node is not None and self._node.leaf is None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        self._node = None
    elif self._node is None:
        if self.dtype.kind != "f":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self._node = type_node((), None, (), self, "accumulate_grad")
    return self


@op
def retain_grad(self):
    if self._node is not None and self._node.leaf is None:

        def keep(g):
            self.grad = g if self.grad is None else self.grad + g

        self._node.hooks.append(keep)


@op
def register_hook(self, hook):
    self._node.hooks.append(hook)


def _start_of(t, g):
    if g is None:
        if math.prod(t.shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return make(packed([1.0] * math.prod(t.shape), t.dtype), t.shape, t.dtype)
    if g.shape != t.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a shape "
            f"of {t.shape}."
        )
    return g


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    start = _start_of(self, gradient)
    walk([self], [start], None, bool(retain_graph), create_graph)


@op
def numel(input):
    return math.prod(input.shape)


@op
def dim(input):
    return len(input.shape)


@op
def size(input, dim=None):
    return input.shape if dim is None else input.shape[axis(dim, len(input.shape))]


@op
def stride(input, dim=None):
    return input._strides if dim is None else input._strides[axis(dim, len(input.shape))]


@op
def element_size(input):
    return input.dtype.itemsize


@op
def is_floating_point(input):
    return input.dtype.kind == "f"


@op
def is_complex(input):
    return False


@op
def cpu(input):
    return input


@op
def data_ptr(input):
    return id(input._store) + input._offset * input.dtype.itemsize


@op
def storage_offset(input):
    return input._offset


@op
def get_device(input):
    return -1
