"""Numbers behind tensors: types, flat storage, shapes, random numbers as PyTorch draws them."""

import array
import functools
import math
import random
import struct
import threading

from torch import _fast

inf, nan = math.inf, math.nan


class dtype:
    """The type of a tensor's numbers. code: that of Python's array; rank: order of promotion."""

    def __init__(self, name, code, kind, rank, rounds=None):
        self.name, self.code, self.kind, self.rank = name, code, kind, rank
        self.rounds = rounds  # for types that Python's array does not know
        self.is_floating_point, self.is_complex, self.is_signed = (
            kind == "f",
            False,
            name != "uint8",
        )
        self.itemsize = {
            "bool": 1,
            "uint8": 1,
            "int8": 1,
            "int16": 2,
            "int32": 4,
            "float16": 2,
            "bfloat16": 2,
            "float32": 4,
        }.get(name, 8)

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _dtype_named, (self.name,)

    def __deepcopy__(self, memo):
        return self


def _to_half(x):
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(inf, x)


def _to_bfloat(x):
    if x != x or abs(x) == inf:
        return x
    bits = struct.unpack("I", struct.pack("f", x))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]


bool_ = dtype("bool", "B", "b", 0)
uint8 = dtype("uint8", "B", "i", 1)
int8 = dtype("int8", "b", "i", 2)
int16 = dtype("int16", "h", "i", 3)
int32 = dtype("int32", "i", "i", 4)
int64 = dtype("int64", "q", "i", 5)
float16 = dtype("float16", "f", "f", 6, _to_half)
bfloat16 = dtype("bfloat16", "f", "f", 7, _to_bfloat)
float32 = dtype("float32", "f", "f", 8)
float64 = dtype("float64", "d", "f", 9)
DTYPES = [bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64]
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
default = float32


def _dtype_named(name):
    return next(one for one in DTYPES if one.name == name)


def promote(a, b):
    if {a, b} == {float16, bfloat16}:
        return float32
    if {a, b} == {uint8, int8}:
        return int16
    return a if a.rank >= b.rank else b


def _wrapped(value, bits):
    value = int(value)
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def packed(values, kind):
    """An array of a type from any numbers; rounded, cut or wrapped as the type asks."""
    code = kind.code
    if isinstance(values, array.array) and values.typecode == code and not kind.rounds:
        return values
    if kind.kind == "f":
        if isinstance(values, array.array) and not kind.rounds:
            return _fast.converted(values, code) or array.array(code, values)
        made = array.array(
            code, values if isinstance(values, (list, array.array)) else list(values)
        )
        if kind.rounds:
            made = array.array(code, [kind.rounds(x) for x in made])
        return made
    values = values if isinstance(values, (list, array.array)) else list(values)
    if kind is bool_:
        return array.array("B", [1 if x else 0 for x in values])
    try:
        return array.array(code, values)
    except (TypeError, OverflowError):
        pass
    if kind is uint8:
        return array.array("B", [_whole(x) & 255 for x in values])
    bits = BITS[code]
    return array.array(code, [_wrapped(_whole(x), bits) for x in values])


def _whole(x):
    if isinstance(x, float) and (x != x or abs(x) == inf):
        return -(1 << 63)
    return int(x)


class Store:
    """The numbers that one or several tensors look at. version: how often they were changed."""

    __slots__ = ("data", "version")

    def __init__(self, data):
        self.data, self.version = data, 0


class Size(tuple):
    """A shape."""

    def numel(self):
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, i):
        found = tuple.__getitem__(self, i)
        return Size(found) if isinstance(i, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))


def contiguous_strides(shape):
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))


def places(shape, strides, offset=0):
    """Where in the storage the numbers of a view lie, in the view's order."""
    if math.prod(shape) <= 8192:
        return _places_kept(tuple(shape), tuple(strides), offset)
    return _places(shape, strides, offset)


def _places(shape, strides, offset):
    found = [offset]
    for n, step in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if step == 0:
            found = [i for i in found for _ in range(n)]
        elif len(found) == 1:
            found = list(range(found[0], found[0] + n * step, step)) if n else []
        else:
            found = [i + j for i in found for j in range(0, n * step, step)]
    return found


_places_kept = functools.lru_cache(8192)(_places)


def broadcast(*shapes):
    """The common shape, as PyTorch finds it, or its complaint."""
    out = list(max(shapes, key=len))
    for shape in shapes:
        for i in range(1, len(shape) + 1):
            n, m = shape[-i], out[-i]
            if n != m and m == 1:
                out[-i] = n
    for shape in shapes:
        for i in range(1, len(shape) + 1):
            if shape[-i] not in (1, out[-i]):
                a, b = [s[-i] if len(s) >= i else 1 for s in shapes[:2]]
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                    f"non-singleton dimension {len(out) - i}"
                )
    return tuple(out)


def spread(shape, strides, target):
    """Strides with which a tensor looks as large as `target`: 0 where it is repeated."""
    missing = len(target) - len(shape)
    return (0,) * missing + tuple(
        0 if n == 1 and m != 1 else step
        for n, m, step in zip(shape, target[missing:], strides, strict=True)
    )


def axis(dim, n, what="Dimension"):
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dimension must be an int, not {type(dim).__name__}")
    dim = dim.__index__()
    low, high = (-n, n - 1) if n else (-1, 0)
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim + max(n, 1) if dim < 0 else dim


def axes(dim, n):
    """Several axes, in order; all of them for None or ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(n))
    if not isinstance(dim, (tuple, list)):
        return [axis(dim, n)] if n else []
    found = [axis(one, n) for one in dim]
    for one in found:
        if found.count(one) > 1:
            raise RuntimeError(f"dim {one} appears multiple times in the list of dims")
    return sorted(found)


# ------------------------------------------------------------------------------------------ chance


@functools.lru_cache(64)
def _seeded(seed):
    state = [seed & 0xFFFFFFFF]
    for i in range(1, 624):
        before = state[-1]
        state.append((1812433253 * (before ^ (before >> 30)) + i) & 0xFFFFFFFF)
    return (3, (*state, 624), None)


class Generator:
    """The Mersenne twister as PyTorch uses it on a CPU: the same seed gives the same numbers."""

    def __init__(self, device="cpu"):
        self.device = device
        self._random = random.Random()
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        self._seed, self._normal = int(seed), None
        self._random.setstate(_seeded(int(seed)))
        return self

    def seed(self):
        self.manual_seed(random.SystemRandom().getrandbits(53))
        return self._seed

    def initial_seed(self):
        return self._seed

    def get_state(self):
        return self._random.getstate(), self._normal, self._seed

    def set_state(self, state):
        self._random.setstate(state[0])
        self._normal, self._seed = state[1:]
        return self

    def __deepcopy__(self, memo):
        return Generator().set_state(self.get_state())

    def words(self, n):
        """n whole numbers of 32 bits."""
        if n == 0:
            return array.array("I")
        return array.array("I", self._random.getrandbits(32 * n).to_bytes(4 * n, "little"))

    def word64(self):
        high, low = self.words(2)
        return high << 32 | low

    def uniforms(self, n, kind):
        if kind is float64:
            return [(self.word64() & ((1 << 53) - 1)) * 2.0**-53 for _ in range(n)]
        bits = {float16: 11, bfloat16: 8}.get(kind, 24)
        mask, unit = (1 << bits) - 1, 2.0**-bits
        words = self.words(n)
        quick = _fast.uniforms(words, "f", mask, unit) if kind is float32 else None
        return quick or [(word & mask) * unit for word in words]

    def normal(self):
        """One number, by the pair that PyTorch draws for small tensors."""
        if self._normal is not None:
            found, self._normal = self._normal, None
            return found
        unit = 2.0**-53
        u1 = (self.word64() & ((1 << 53) - 1)) * unit
        u2 = (self.word64() & ((1 << 53) - 1)) * unit
        radius, angle = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
        self._normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def normals(self, n, kind):
        if n < 16:
            return [self.normal() for _ in range(n)]
        found = self.uniforms(n, kind)
        last = self.uniforms(16, kind) if n % 16 else []  # PyTorch draws the last block anew
        if isinstance(found, list) or not _fast.pairs(found):
            pairs(found)
        if last:
            pairs(last)
            found[-16:] = last if isinstance(found, list) else array.array("f", last)
        return found


def pairs(found):
    """Box and Muller's normal numbers in place of uniform ones, in whole blocks of 16."""
    log, sqrt, cos, sin, turn = math.log, math.sqrt, math.cos, math.sin, 2.0 * math.pi
    for start in range(0, len(found) - 15, 16):
        for j in range(start, start + 8):
            radius = sqrt(-2.0 * log(1.0 - found[j]))
            angle = turn * found[j + 8]
            found[j], found[j + 8] = radius * cos(angle), radius * sin(angle)


generator = Generator()
local = threading.local()
