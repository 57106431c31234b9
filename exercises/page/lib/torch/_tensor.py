"""The tensor of this page: numbers with a shape, views of each other, and gradients."""

import builtins
import functools
import itertools
import math
import operator
from array import array

from torch import _base as base
from torch import _fast
from torch._absent import PYTORCHS
from torch._base import (
    Size,
    Store,
    bool_,
    broadcast,
    contiguous_strides,
    float32,
    float64,
    inf,
    int64,
    nan,
    packed,
    places,
    promote,
    spread,
)

MODES = []  # of torch.overrides.TorchFunctionMode, the innermost last
METHODS = {}  # names of functions that are methods of Tensor as well


def _gradients():
    return getattr(base.local, "gradients", True)


def renamed(function):
    """Its code under another name: who looks for calls of `softmax` finds only the reader's."""
    code = function.__code__
    function.__code__ = (
        code.replace(co_name="_of_the_page", co_qualname="_of_the_page")
        if hasattr(code, "co_qualname")
        else code.replace(co_name="_of_the_page")
    )
    return function


def op(function, method=True):
    """A function that the reader calls: seen by the modes that watch operations."""
    renamed(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        if MODES:
            mode = MODES.pop()
            try:
                return mode.__torch_function__(call, (), args, kwargs)
            finally:
                MODES.append(mode)
        return function(*args, **kwargs)

    if method:
        METHODS[function.__name__] = call
    return call


def function(made):
    """An `op` that is no method."""
    return op(made, method=False)


# --------------------------------------------------------------------------------------- gradients


class Node:
    """A step of the computation: where gradients go from here."""

    __slots__ = ("back", "inputs", "leaf", "label", "saved", "hooks", "__weakref__")

    def __init__(self, inputs, back, saved=(), leaf=None, label=""):
        self.inputs, self.back, self.leaf, self.label = inputs, back, leaf, label
        self.saved = [(t._store, t._store.version) for t in saved]
        self.hooks = []

    def name(self):
        return f"{self.label.title().replace('_', '')}Backward0"

    def __repr__(self):
        return f"<{self.name()}>"


def linked(result, inputs, back, saved=(), label=""):
    """Note how a result came about, if gradients are wanted."""
    if _gradients() and result.dtype.kind == "f":
        nodes = [t._node for t in inputs]
        if any(nodes):
            result._node = Node(nodes, back, saved, None, label)
    return result


def walk(outputs, gradients, wanted=None, keep=False, create=False):
    """Send gradients back: {id of node: gradient}; at leaves they are added up if wanted is None.

    The nodes are visited in an order in which all that comes from one has been added before.
    """
    found, order, seen = {}, [], set()
    for t, g in zip(outputs, gradients, strict=True):
        if t._node is None:
            raise RuntimeError(
                "element 0 of tensors does not require grad and does not have a grad_fn"
            )
        key = id(t._node)
        found[key] = found[key] + g if key in found else g
        stack = [(t._node, iter(t._node.inputs))]
        if key in seen:
            continue
        seen.add(key)
        while stack:
            node, inputs = stack[-1]
            step = next((n for n in inputs if n is not None and id(n) not in seen), None)
            if step is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(id(step))
                stack.append((step, iter(step.inputs)))
    before = _gradients()
    base.local.gradients = create
    try:
        for node in reversed(order):
            g = found.get(id(node))
            if g is None:
                continue
            for hook in node.hooks:
                changed = hook(g)
                if changed is not None:
                    g = found[id(node)] = changed
            if node.leaf is not None:
                if wanted is None:
                    node.leaf.grad = g.clone() if node.leaf.grad is None else node.leaf.grad + g
                continue
            if node.back is None:
                raise RuntimeError(
                    "Trying to backward through the graph a second time (or directly access saved "
                    "tensors after they have already been freed). Saved intermediate values of the "
                    "graph are freed when you call .backward() or autograd.grad(). Specify "
                    "retain_graph=True if you need to backward through the graph a second time or "
                    "if you need to access saved tensors after calling backward."
                )
            for store, version in node.saved:
                if store.version != version:
                    raise RuntimeError(
                        "one of the variables needed for gradient computation has been modified "
                        "by an inplace operation"
                    )
            for step, part in zip(node.inputs, node.back(g), strict=True):
                if step is not None and part is not None:
                    key = id(step)
                    found[key] = found[key] + part if key in found else part
            if not (keep or create) and node.saved:
                node.back = None
    finally:
        base.local.gradients = before
    return found


def reduced(g, shape):
    """A gradient summed over the axes that broadcasting had repeated."""
    if g.shape == shape:
        return g
    extra = len(g.shape) - len(shape)
    repeated = list(range(extra)) + [
        i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1
    ]
    return g.sum(repeated, keepdim=True).reshape(shape) if repeated else g.reshape(shape)


def scatter_back(g, where, shape):
    """Zeros of a shape to which the numbers of g are added at the flat places `where`."""
    out = [0.0] * math.prod(shape)
    for i, x in zip(where, g._flat(), strict=True):
        out[i] += x
    result = make(packed(out, g.dtype), shape, g.dtype)
    return linked(result, [g], lambda gg: (pick(gg, where, g.shape),))


def pick(x, where, shape):
    """The numbers at flat places of x, in a shape."""
    flat = x._flat()
    result = make(array(x.dtype.code, [flat[i] for i in where]), shape, x.dtype)
    return linked(result, [x], lambda g: (scatter_back(g, where, x.shape),), (), "index")


# ------------------------------------------------------------------------------------------ making


def make(data, shape, kind, cls=None):
    """A tensor of its own, from an array of its type."""
    t = object.__new__(cls or Tensor)
    t._store, t._offset = Store(data), 0
    t.shape, t.dtype, t._node, t.grad = Size(shape), kind, None, None
    t._strides = contiguous_strides(t.shape)
    return t


def view_of(x, shape, strides, offset, label="view"):
    """A tensor that looks at the numbers of x in another way."""
    t = object.__new__(Tensor)
    t._store, t._offset, t._strides = x._store, offset, tuple(strides)
    t.shape, t.dtype, t._node, t.grad = Size(shape), x.dtype, None, None
    if x._node is not None and _gradients():

        def back(g):
            mine = places(t.shape, t._strides, t._offset)
            if x.is_contiguous():
                where = [i - x._offset for i in mine]
            else:
                number = {p: i for i, p in enumerate(places(x.shape, x._strides, x._offset))}
                where = [number[p] for p in mine]
            return (scatter_back(g, where, x.shape),)

        t._node = Node([x._node], back, (), None, label)
    return t


META = {}  # type code -> one number for all tensors without numbers


def without_numbers(shape, kind):
    """A tensor with a shape and no numbers: each of its places is the same 0."""
    t = make(array(kind.code), shape, kind)
    t._store = META.setdefault(kind.code, Store(array(kind.code, [0])))
    t._strides = (0,) * len(t.shape)
    return t


def scalar_kind(value):
    if isinstance(value, builtins.bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, complex):
        raise missing("complex numbers")
    return base.default


class Missing(AttributeError):
    """What this page's small tensor library does not have."""


def lacking(module):
    """A module's `__getattr__`: whether PyTorch has what is asked for, or nobody."""

    def find(name):
        if name in PYTORCHS.get(module, ()):
            raise missing(f"{module}.{name}")
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return find


def nothing_else(module):
    """The same for a module of which only little is here: whatever else is asked for is missing."""

    def find(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise missing(f"{module}.{name}")

    return find


MISSED = []  # the names that were asked for and are not here


def missing(name):
    MISSED.append(name)
    return Missing(
        f"{name} is not in the small tensor library of this page: open the chapter in Colab for it"
    )


def common_kind(*operands):
    """The type of a result, by PyTorch's rules: tensors, then single ones, then Python's."""
    kinds = [None, None, None]
    for value in operands:
        if isinstance(value, Tensor):
            at, kind = (0 if value.shape else 1), value.dtype
        else:
            at, kind = 2, scalar_kind(value)
        kinds[at] = kind if kinds[at] is None else promote(kinds[at], kind)
    found = kinds[2]
    for higher in (kinds[1], kinds[0]):
        if higher is None:
            continue
        if found is None or higher.kind == "f":
            found = higher
        elif higher is bool_ or found.kind == "f":
            found = promote(higher, found)
        else:
            found = higher
    return found


def nested(value):
    """(flat list, shape, type) of a nested list, as torch.tensor reads it."""
    if isinstance(value, Tensor):
        return value._flat().tolist(), tuple(value.shape), value.dtype
    if hasattr(value, "_as_tensor"):  # an array of the page's numpy
        value = value._as_tensor()
        return value._flat().tolist(), tuple(value.shape), value.dtype
    if isinstance(value, (list, tuple, range)):
        parts = [nested(item) for item in value]
        if not parts:
            return [], (0,), base.default
        shape, kind = parts[0][1], parts[0][2]
        for i, (_, other, k) in enumerate(parts):
            if other != shape:
                if shape and other:
                    raise ValueError(
                        f"expected sequence of length {shape[0]} at dim 1 (got {other[0]})"
                    )
                raise TypeError(
                    f"must be real number, not {type(value[i]).__name__}"
                    if other
                    else "not a sequence"
                )
            kind = promote(kind, k)
        return [x for flat, _, _ in parts for x in flat], (len(parts), *shape), kind
    if isinstance(value, (builtins.bool, int, float)):
        return [value], (), scalar_kind(value)
    if hasattr(value, "__float__") and not isinstance(value, str):
        return [float(value)], (), base.default
    if isinstance(value, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def from_data(value, kind=None):
    flat, shape, found = nested(value)
    kind = kind or found
    return make(packed(flat, kind), shape, kind)


def as_tensor_like(value, kind=None):
    return value if isinstance(value, Tensor) else from_data(value, kind)


def gathered(data, shape, strides, offset):
    """The numbers of a view in its order."""
    return _fast.copied(data, shape, strides, offset, math.prod(shape)) or array(
        data.typecode, [data[i] for i in places(shape, strides, offset)]
    )


# ---------------------------------------------------------------------------------------- a tensor


class Tensor:
    __slots__ = (
        "_store",
        "_offset",
        "_strides",
        "shape",
        "dtype",
        "_node",
        "grad",
        "__dict__",
        "__weakref__",
    )

    def __new__(cls, *args, **kwargs):
        if cls is Tensor:
            if len(args) == 1 and isinstance(args[0], (list, tuple)):
                return from_data(args[0], float32)
            shape = args[0] if len(args) == 1 and isinstance(args[0], Size) else args
            return make(array("f", [0.0] * math.prod(shape)), shape, float32)
        return object.__new__(cls)

    # -- the numbers

    def _flat(self):
        """The numbers in order, as an array that nobody may change."""
        data = self._store.data
        n = math.prod(self.shape)
        if self.is_contiguous():
            return data if n == len(data) else data[self._offset : self._offset + n]
        return gathered(data, self.shape, self._strides, self._offset)

    def _as(self, kind):
        """The numbers in order, ready to be computed with as another type."""
        flat = self._flat()
        if kind is self.dtype or kind.code == flat.typecode == "d":
            return flat
        return packed(flat, kind)

    def _spread(self, shape):
        """The numbers, repeated as broadcasting to `shape` asks."""
        if self.shape == shape:
            return self._flat()
        if math.prod(self.shape) == 1:
            return itertools.repeat(self._flat()[0], math.prod(shape))
        return gathered(
            self._store.data, shape, spread(self.shape, self._strides, shape), self._offset
        )

    def _write(self, values):
        """Put numbers of our own type in our places."""
        if self.is_meta:
            return self
        data = self._store.data
        self._store.version += 1
        if self.is_contiguous():
            data[self._offset : self._offset + len(values)] = (
                values
                if isinstance(values, array) and values.typecode == data.typecode
                else array(data.typecode, values)
            )
        else:
            where = places(self.shape, self._strides, self._offset)
            for i, x in zip(where, values, strict=True):
                data[i] = x
        return self

    def is_contiguous(self, memory_format=None):
        if self._strides == contiguous_strides(self.shape):
            return True
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self._strides), strict=True):
            if n != 1 and stride != step:
                return math.prod(self.shape) == 0
            step *= n
        return True

    # -- what it says of itself

    @property
    def _version(self):
        return self._store.version

    @property
    def requires_grad(self):
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, flag):
        self.requires_grad_(flag)

    @property
    def is_leaf(self):
        return self._node is None or self._node.leaf is not None

    @property
    def grad_fn(self):
        return None if self.is_leaf else self._node

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def device(self):
        return device("meta" if self.is_meta else "cpu")

    @property
    def layout(self):
        return "torch.strided"

    is_cuda = is_mps = is_sparse = is_quantized = False

    @property
    def is_meta(self):
        return self._store is META.get(self.dtype.code)

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def nbytes(self):
        return self.dtype.itemsize * self.numel()

    @property
    def data(self):
        return view_of(self.detach(), self.shape, self._strides, self._offset)

    @data.setter
    def data(self, other):
        self._store, self._offset, self._strides = other._store, other._offset, other._strides
        self.shape, self.dtype = other.shape, other.dtype

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __bool__(self):
        n = math.prod(self.shape)
        if n != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if n == 0
                else "Boolean value of Tensor with more than one value is ambiguous"
            )
        return builtins.bool(self._flat()[0])

    def item(self):
        n = math.prod(self.shape)
        if n != 1:
            raise RuntimeError(f"a Tensor with {n} elements cannot be converted to Scalar")
        found = self._flat()[0]
        return builtins.bool(found) if self.dtype is bool_ else found

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype.kind == "f" or math.prod(self.shape) != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __round__(self, digits=None):
        return self.round(decimals=digits or 0)

    def __format__(self, spec):
        if not self.shape:
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else str(self)

    def tolist(self):
        flat = self._flat().tolist()
        if self.dtype is bool_:
            flat = [builtins.bool(x) for x in flat]
        if not self.shape:
            return flat[0]
        for n in reversed(self.shape[1:]):
            flat = (
                [flat[i : i + n] for i in range(0, len(flat), n)]
                if n
                else [[] for _ in range(math.prod(self.shape[: len(self.shape) - 1]))]
            )
        return flat

    def __hash__(self):
        return id(self)

    def __contains__(self, item):
        return builtins.bool((self == item).any())

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        made = make(array(self.dtype.code, self._flat()), self.shape, self.dtype, type(self))
        memo[id(self)] = made
        made.__dict__.update(self.__dict__)
        if self._node is not None:
            made.requires_grad_()
        return made

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in PYTORCHS["Tensor"]:
            raise missing(f"Tensor.{name}")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def numpy(self, force=False):
        import numpy

        if self._node is not None and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        return numpy._from_tensor(self)

    def __array__(self, dtype=None):
        return self.numpy()

    def __repr__(self):
        from torch._show import shown

        return shown(self)


class device:
    """Where a tensor lies: always here, unless it has no numbers ("meta")."""

    current = "cpu"

    def __init__(self, kind="cpu", index=None):
        self.type, self.index = str(kind).partition(":")[0], index

    def __repr__(self):
        return f"device(type='{self.type}')"

    def __str__(self):
        return self.type

    def __eq__(self, other):
        return str(other).partition(":")[0] == self.type

    def __hash__(self):
        return hash(self.type)

    def __enter__(self):
        self.before, device.current = device.current, self.type
        return self

    def __exit__(self, *args):
        device.current = self.before


# ------------------------------------------------------------------------- operations on one number


def _safe(function, error):
    """A function of floats that gives what a processor gives where Python's raises."""

    def careful(*values):
        try:
            return function(*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return error(*values)

    return careful


def _erf_gelu(x):
    return x * 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def _even(x):
    return x if x != x or abs(x) == inf else float(round(x))


def _sign(x):
    return x if x != x else float((x > 0) - (x < 0))


def _divide_safe(a, b):
    if b == 0:
        return nan if a == 0 or a != a else math.copysign(inf, a) * math.copysign(1.0, b)
    return nan


def _pow_safe(a, b):
    if a == 0 and b < 0:
        return inf
    if a < 0 and b != int(b):
        return nan
    odd = b == int(b) and int(b) % 2
    return -inf if a < 0 and odd else inf


def _sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def _softplus(x):
    return x if x > 20 else math.log1p(math.exp(x))


UNARY = {  # name: (function, what it gives where that raises)
    "exp": (math.exp, lambda x: inf),
    "expm1": (math.expm1, lambda x: inf),
    "exp2": (lambda x: 2.0**x, lambda x: inf),
    "log": (math.log, lambda x: -inf if x == 0 else nan),
    "log2": (math.log2, lambda x: -inf if x == 0 else nan),
    "log10": (math.log10, lambda x: -inf if x == 0 else nan),
    "log1p": (math.log1p, lambda x: -inf if x == -1 else nan),
    "sqrt": (math.sqrt, lambda x: nan),
    "rsqrt": (lambda x: 1.0 / math.sqrt(x), lambda x: inf if x == 0 else nan),
    "reciprocal": (lambda x: 1.0 / x, lambda x: math.copysign(inf, x)),
    "sin": (math.sin, lambda x: nan),
    "cos": (math.cos, lambda x: nan),
    "tan": (math.tan, lambda x: nan),
    "tanh": (math.tanh, None),
    "sinh": (math.sinh, lambda x: math.copysign(inf, x)),
    "cosh": (math.cosh, lambda x: inf),
    "asin": (math.asin, lambda x: nan),
    "acos": (math.acos, lambda x: nan),
    "atan": (math.atan, None),
    "erf": (math.erf, None),
    "sigmoid": (_sigmoid, None),
    "abs": (abs, None),
    "neg": (operator.neg, None),
    "sign": (_sign, None),
    "floor": (lambda x: float(math.floor(x)), lambda x: x),
    "ceil": (lambda x: float(math.ceil(x)), lambda x: x),
    "trunc": (lambda x: float(math.trunc(x)), lambda x: x),
    "round": (_even, None),
    "relu": (lambda x: x if x > 0 or x != x else 0.0, None),
    "softplus": (_softplus, None),
    "gelu": (_erf_gelu, None),
}
WHOLE_STAYS = {"abs", "neg", "sign", "floor", "ceil", "trunc", "round", "relu"}


def mapped(name, x, kind=None):
    """A tensor with the function `name` of each number."""
    quick, error = UNARY[name]
    kind = kind or x.dtype
    if kind.kind != "f":
        if name in WHOLE_STAYS:
            whole = {
                "abs": abs,
                "neg": operator.neg,
                "sign": lambda v: (v > 0) - (v < 0),
                "relu": lambda v: max(v, 0),
            }.get(name, lambda v: v)
            return make(packed(list(map(whole, x._flat())), kind), x.shape, kind)
        kind = base.default
    flat = x._as(kind)
    if not kind.rounds and (made := _fast.each(name, flat)):
        return make(made, x.shape, kind)
    try:
        out = list(map(quick, flat))
    except (ValueError, OverflowError, ZeroDivisionError):
        out = list(map(_safe(quick, error), flat))
    return make(packed(out, kind), x.shape, kind)


def _mod(a, b):
    if b == 0:
        return nan
    if abs(b) == inf:
        return a if a == 0 or (a > 0) == (b > 0) else b
    found = math.fmod(a, b)
    return found + b if found and (found < 0) != (b < 0) else found


def _floor_divide(a, b):
    if b == 0 or abs(a) == inf or a != a or b != b:
        return (
            _divide_safe(a, b)
            if b == 0
            else (nan if abs(a) == inf else nan if a != a or b != b else 0.0)
        )
    return float(a // b)


def _maximum(a, b):
    return a if a != a or a > b else b


def _minimum(a, b):
    return a if a != a or a < b else b


def _times(a, b):
    return a * b


BINARY = {
    "add": (operator.add, None),
    "sub": (operator.sub, None),
    "mul": (operator.mul, None),
    "div": (operator.truediv, _divide_safe),
    "pow": (operator.pow, _pow_safe),
    "floor_divide": (_floor_divide, None),
    "remainder": (_mod, None),
    "fmod": (math.fmod, lambda a, b: nan),
    "maximum": (_maximum, None),
    "minimum": (_minimum, None),
    "atan2": (math.atan2, None),
    "eq": (operator.eq, None),
    "ne": (operator.ne, None),
    "lt": (operator.lt, None),
    "le": (operator.le, None),
    "gt": (operator.gt, None),
    "ge": (operator.ge, None),
    "and": (operator.and_, None),
    "or": (operator.or_, None),
    "xor": (operator.xor, None),
    "lshift": (operator.lshift, None),
    "rshift": (operator.rshift, None),
}
WHOLE = {
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "fmod": lambda a, b: int(math.fmod(a, b)),
    "maximum": max,
    "minimum": min,
    "pow": lambda a, b: a**b if b >= 0 else {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0),
}
NUMBERS = (builtins.bool, int, float)


def operand(value):
    """A tensor or a Python number; anything else is for Python to complain about."""
    if isinstance(value, (Tensor, *NUMBERS)):
        return value
    if hasattr(value, "_as_tensor"):
        return value._as_tensor()
    if hasattr(value, "__float__") and not isinstance(value, (str, list, tuple)):
        return float(value)
    return None


def combined(name, a, b, kind=None, result=None):
    """A tensor with `name` of each pair of numbers, broadcast. result: its type if not `kind`."""
    kind = kind or common_kind(a, b)
    one, two = isinstance(a, Tensor), isinstance(b, Tensor)
    shape = (
        tuple(a.shape)
        if one and not two
        else tuple(b.shape)
        if two and not one
        else (tuple(a.shape) if a.shape == b.shape else broadcast(tuple(a.shape), tuple(b.shape)))
    )
    n = math.prod(shape)

    def numbers(value):
        if not isinstance(value, Tensor):
            if kind.kind == "f":
                value = float(value)
                if kind is not float64:
                    value = packed([value], kind)[0]
            return value if plain else itertools.repeat(value, n)
        if value.dtype is not kind and (
            value.dtype.kind != kind.kind or kind.rank < value.dtype.rank or value.dtype.kind == "f"
        ):
            value = make(value._as(kind), value.shape, kind)
        if plain and math.prod(value.shape) == 1 and n != 1:
            return value._flat()[0]
        return value._spread(shape)

    result = result or kind
    plain = n >= _fast.MANY and name in _fast.BINARY and kind in (float32, float64)
    if plain:
        return make(
            _fast.paired(name, numbers(a), numbers(b), n, kind.code, result.code), shape, result
        )
    quick, error = BINARY[name]
    if kind.kind != "f" and name in WHOLE:
        quick, error = WHOLE[name], None
    try:
        out = list(map(quick, numbers(a), numbers(b)))
    except (ValueError, OverflowError, ZeroDivisionError):
        if kind.kind != "f":
            raise RuntimeError("ZeroDivisionError") from None
        out = list(map(_safe(quick, error or (lambda x, y: nan)), numbers(a), numbers(b)))
        out = [x if not isinstance(x, complex) else nan for x in out]
    if name == "pow" and kind.kind == "f" and any(isinstance(x, complex) for x in out):
        out = [nan if isinstance(x, complex) else x for x in out]
    return make(packed(out, result), shape, result)
