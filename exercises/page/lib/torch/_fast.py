"""Long loops, handed to the browser where there is one (book/_static/run/kernels.js).

Everything works without: each function returns None where it has nothing faster. Arrays of Python
are lent to JavaScript as they are, so only what they have in common is done there: floats.
"""

import math
from array import array

try:
    import page_kernels as kernels
except ImportError:
    kernels = None

MANY = 1000  # numbers; below, asking takes longer than the loop
BINARY = set(kernels.binary_names.split()) if kernels else set()
UNARY = set(kernels.unary_names.split()) if kernels else set()
FLOATS = "fd"


def zeros(code, n):
    return array(code, bytes(array(code).itemsize * n))


def copied(data, shape, strides, offset, n):
    """The numbers of a view, in its order."""
    if not kernels or n < MANY or data.typecode not in "fdB" or not shape:
        return None
    out = zeros(data.typecode, n)
    kernels.copy(data, out, data.typecode, array("i", shape), array("i", strides), offset)
    return out


def paired(name, a, b, n, code, out_code):
    """`name` of each pair; one of both may be a number."""
    if not kernels or n < MANY or name not in BINARY or code not in FLOATS:
        return None
    out = zeros(out_code, n)
    if isinstance(a, float):
        kernels.binary_left(name, a, b, code, out, out_code)
    elif isinstance(b, float):
        kernels.binary_right(name, a, b, code, out, out_code)
    else:
        kernels.binary(name, a, b, code, out, out_code)
    return out


def converted(values, code):
    """Floats of one precision as floats of the other."""
    if not kernels or len(values) < MANY or {values.typecode, code} - set("fdB"):
        return None
    out = zeros(code, len(values))
    kernels.convert(values, values.typecode, out, code)
    return out


def each(name, a):
    if not kernels or len(a) < MANY or name not in UNARY or a.typecode not in FLOATS:
        return None
    out = zeros(a.typecode, len(a))
    kernels.unary(name, a, out, a.typecode)
    return out


def sums(x, dims, squares=False):
    """Sums over neighbouring axes of a contiguous tensor; squares: of squared distances from the
    means."""
    n = math.prod(x.shape)
    if not kernels or n < MANY or x.dtype.code not in FLOATS or not dims or not x.is_contiguous():
        return None
    if list(dims) != list(range(dims[0], dims[-1] + 1)):
        return None
    inner = math.prod(x.shape[dims[-1] + 1 :])
    length = math.prod(x.shape[i] for i in dims)
    out = zeros(x.dtype.code, n // length)
    (kernels.squares if squares else kernels.sums)(x._flat(), out, x.dtype.code, length, inner)
    return out


def product(a, b, batch, n, k, m):
    if not kernels or batch * n * k * m < MANY or a.typecode not in FLOATS:
        return None
    out = zeros(a.typecode, batch * n * m)
    kernels.product(a, b, out, a.typecode, batch, n, k, m)
    return out


def uniforms(words, code, mask, unit):
    if not kernels or len(words) < MANY:
        return None
    out = zeros(code, len(words))
    kernels.uniforms(words, out, code, mask, unit)
    return out


def pairs(numbers):
    if not kernels or len(numbers) < MANY:
        return False
    kernels.pairs(numbers, numbers.typecode)
    return True
