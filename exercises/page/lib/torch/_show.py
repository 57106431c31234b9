"""A tensor as text, as PyTorch prints it."""

import math

from torch import _base as base


def _formats(values):
    """A function that writes one number, by what all of them need."""
    finite = [abs(x) for x in values if math.isfinite(x) and x != 0]
    if all(x == math.floor(x) for x in values if math.isfinite(x)):
        large, small = max(finite, default=0), min(finite, default=0)
        if large > 1e8 or (small and large / small > 1000 and large > 1e5 * 0 + 1e8):
            return lambda x: f"{x:.4e}"
        return lambda x: f"{x:.0f}." if math.isfinite(x) else f"{x}"
    large, small = max(finite, default=0), min(finite, default=1)
    if large / small > 1000 or large > 1e8 or small < 1e-4:
        return lambda x: f"{x:.4e}"
    return lambda x: f"{x:.4f}"


def shown(t, limit=1000):
    flat = t._flat()
    if t.dtype.kind == "f":
        write = _formats(flat)
    elif t.dtype is base.bool_:
        write = lambda x: str(bool(x))  # noqa: E731
    else:
        write = str
    texts = [write(x) for x in flat]
    width = max(map(len, texts), default=0) if t.shape else 0

    def block(start, shape, indent):
        if not shape:
            return texts[start].rjust(width)
        n = shape[0]
        step = math.prod(shape[1:])
        places = range(n)
        if len(flat) > limit and n > 6:
            places = [0, 1, 2, None, n - 3, n - 2, n - 1]
        if len(shape) == 1:
            items = ["..." if i is None else texts[start + i].rjust(width) for i in places]
            per_line = max(1, (80 - indent) // (width + 2))
            lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
            return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
        parts = [
            "..." if i is None else block(start + i * step, shape[1:], indent + 1) for i in places
        ]
        return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"

    text = "tensor(" + (block(0, tuple(t.shape), 7) if math.prod(t.shape) else "[]")
    plain = (base.default, base.int64, base.bool_)
    if math.prod(t.shape) == 0 and tuple(t.shape) != (0,):
        text += f", size={tuple(t.shape)}"
    if t.dtype not in plain or (not len(flat) and t.dtype is not base.default):
        text += f", dtype={t.dtype}"
    if t._node is not None:
        text += ", requires_grad=True" if t._node.leaf is not None else f", grad_fn={t._node}"
    return text + ")"
