"""What is wrong with an answer, in words: relations between numbers, steps of code, small examples.

`framework` decides whether an answer is right. When it is not, it asks here:

- `relation(given, expected)`: how the numbers are related ("2.83 times, the root of 8");
- `record(function, args)`: every tensor that a call makes, with its name and line, and
  `first_divergence`, the first of the reference's named steps that the learner's code never makes;
- `shrink` and `example`: the smallest input on which it still fails, printed.
"""

import inspect
import itertools
import linecache
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

import transformer_lib

HERE = Path(__file__).parent
PATIENCE = 0.5  # seconds of computing for the search for a small example
NOT_THEIRS = (
    str(HERE.parent),  # the exercises
    str(Path(transformer_lib.__file__).parent),
    "site-packages", "dist-packages",
    str(Path(linecache.__file__).parent),  # the standard library
)


def is_theirs(code) -> bool:
    """Whether a code object was written by the learner."""
    name = code.co_filename
    made = name == "<string>" or name.startswith("<frozen")  # by the standard library
    return not made and not any(part in name for part in NOT_THEIRS)


def source_line(filename: str, line: int) -> str:
    """`line 3, `weights = ...``, or as much of it as is known."""
    text = linecache.getline(filename, line).strip()
    return f"line {line}" + (f", `{text:.70}`" if text else "")


# ------------------------------------------------------------------------------------- numbers


def numbers(value) -> np.ndarray | None:
    """A tensor, array, number or regular nested list as float64; None where that is impossible."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().numpy()
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, (list, tuple)):
        parts = [numbers(item) for item in value]
        if any(part is None for part in parts) or len({part.shape for part in parts}) > 1:
            return None
        return np.array(parts, dtype=float)
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None


def _whole(value) -> bool:
    """Whether an expected value consists of whole numbers, which must be met exactly."""
    if isinstance(value, torch.Tensor):
        return not value.is_floating_point()
    if isinstance(value, (list, tuple)):
        return all(map(_whole, value))
    return isinstance(value, int)


def same(given, expected, tolerance: float = 1e-5) -> bool:
    """Whether two answers say the same: numbers in any container and dtype, texts, sets, dicts.

    tolerance: absolute for numbers below 1, relative above; whole numbers must be equal.
    """
    if isinstance(expected, str):
        return isinstance(given, str) and given == expected
    if isinstance(expected, dict):
        return (
            isinstance(given, dict)
            and given.keys() == expected.keys()
            and all(same(given[key], value, tolerance) for key, value in expected.items())
        )
    if isinstance(expected, (set, frozenset)):
        return isinstance(given, (set, frozenset)) and given == expected
    right = numbers(expected)
    if right is not None:
        found = numbers(given)
        if found is None or found.shape != right.shape:
            return False
        if _whole(expected):
            return bool((found == right).all())
        size = np.where(np.isfinite(right), np.maximum(1.0, np.abs(right)), 1.0)
        with np.errstate(invalid="ignore"):  # inf - inf
            near = np.abs(found - right) <= tolerance * size
        return bool((near | (found == right) | (np.isnan(found) & np.isnan(right))).all())
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(given, (list, tuple))
            and len(given) == len(expected)
            and all(same(a, b, tolerance) for a, b in zip(given, expected, strict=True))
        )
    return given is expected or bool(given == expected)


def _name_of(factor: float, sizes) -> str:
    """A factor in words: a size, the root of a size, or a known constant."""
    known = {-1: "minus 1", math.log(2): "ln 2", 1 / math.log(2): "1 / ln 2: bits for nats",
             math.sqrt(3): "√3", 100: "per cent for a fraction"}
    for n in sorted(set(sizes)):
        if n > 2:
            if math.isqrt(n) ** 2 != n:  # 2 is twice and not the root of 4
                known |= {math.sqrt(n): f"√{n}", 1 / math.sqrt(n): f"1/√{n}"}
            known |= {float(n): f"{n}", 1.0 / n: f"1/{n}"}
    for value, name in known.items():
        if math.isclose(value, factor, rel_tol=1e-4):
            return f" ({name})"
    return ""


def wrong_kind(given, expected) -> str | None:
    """Whether there is more than was asked for, or a truth value instead of a number."""
    if isinstance(given, (tuple, list)) and isinstance(expected, (torch.Tensor, float, str, tuple)):
        for i, part in enumerate(given):
            if same(part, expected) and len(given) > 1:
                return (
                    f"you return {len(given)} values, and number {i + 1} of them is right: "
                    f"return only that one"
                )
    right = numbers(expected)
    if right is not None and _is_bool(given) and not set(np.unique(right)) <= {0.0, 1.0}:
        return "yours is True or False where a number is expected"
    return None


def relation(given, expected, sizes=()) -> str | None:
    """How the given numbers are related to the expected ones; None if nothing is found.

    sizes: whole numbers that may stand behind a factor, such as the axes of the inputs.
    """
    if how := wrong_kind(given, expected):
        return how
    a, b = numbers(given), numbers(expected)
    if a is None or b is None or b.size == 0 or a.size == 0:
        return None
    if a.shape != b.shape:
        if a.ndim >= 2 and a.swapaxes(-1, -2).shape == b.shape and same(a.swapaxes(-1, -2), b):
            return "yours is the transpose of what is expected"
        if a.size == b.size and a.squeeze().shape == b.squeeze().shape:
            right = same(a.reshape(b.shape), b)
            return "only the axes differ" if right else None
        if a.size == b.size and same(a.ravel(), b.ravel()):
            return "the numbers are right, but in another shape"
        if b.ndim > 1 and a.shape == b.shape[1:] and same(a, b[0]):
            return "yours is only the first row"
        if b.ndim == a.ndim + 1 and any(same(a, b.sum(axis)) for axis in range(b.ndim)):
            return "yours is summed over one axis too many"
        if b.ndim == a.ndim + 1 and any(same(a, b.mean(axis)) for axis in range(b.ndim)):
            return "yours is averaged over one axis too many"
        return None
    if np.isnan(a).any() and not np.isnan(b).any():
        return "yours has NaN" + (f" at {list(map(int, np.argwhere(np.isnan(a))[0]))}"
                                  if a.ndim else "")
    finite = np.isfinite(b) & np.isfinite(a)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)) or not finite.any():
        return None
    if set(np.unique(b)) <= {0.0, 1.0} and set(np.unique(a)) <= {0.0, 1.0}:
        if same(a, 1 - b) and b.size > 1:
            return "True and False are swapped"
    elif (a == a.flat[0]).all() and a.size > 2:
        return f"each of your numbers is {a.flat[0]:.4g}"
    if b.ndim >= 2 and b.shape[-1] == b.shape[-2] and same(a, b.swapaxes(-1, -2)):
        return "yours is the transpose of what is expected"
    x, y = a[finite], b[finite]
    boolean = set(np.unique(b)) <= {0.0, 1.0} and b.size > 1
    if not boolean:
        big = np.abs(y) > 1e-8
        if big.any() and (np.abs(x[big]) > 1e-12).any():
            factor = float((x[big] * y[big]).sum() / (y[big] ** 2).sum())
            if same(x, factor * y) and abs(factor) > 1e-6:
                if math.isclose(factor, -1, rel_tol=1e-4):
                    return "the sign is the wrong way round"
                every = "each of your numbers is" if y.size > 1 else "yours is"
                whole = (x == x.round()).all() and (y == y.round()).all()
                named = _name_of(factor, sizes)
                if not named and (how := _sums(a, b)):
                    return how
                if y.size > 1 or (named and not whole):
                    return f"{every} {factor:.4g} times what is expected{named}"
        if x.any() and any(same(x, cut(y)) for cut in (np.trunc, np.round, np.floor)):
            return "yours is cut or rounded to whole numbers"
        shift = float((x - y).mean())
        if same(x - y, np.full_like(x, shift), 1e-5):
            if y.size > 1 or abs(shift) == 1:
                size = "one too many" if shift == 1 else "one too few" if shift == -1 else ""
                return "yours " + (f"is {size}" if size else f"differs by {shift:+.4g} everywhere")
        with np.errstate(all="ignore"):
            for name, found in {
                "the square of what is expected": y**2, "the root of what is expected": y**0.5,
                "one over what is expected": 1 / y, "1 minus what is expected": 1 - y,
                "e to the power of what is expected": np.exp(y),
                "the logarithm of what is expected": np.log(y),
                "the size without the sign": np.abs(y),
            }.items():
                if np.isfinite(found).all() and same(x, found):
                    return f"yours is {name}"
    if b.ndim and finite.all():
        how = _by_axes(a, b, sizes)
        if how:
            return how
    if b.ndim:
        exponent = np.exp(b - b.max(-1, keepdims=True)) if finite.all() else b
        if same(a, exponent / exponent.sum(-1, keepdims=True)):
            return "yours are probabilities where logits are expected"
        for axis in range(b.ndim):
            if b.shape[axis] > 1:
                if same(a, np.flip(b, axis)):
                    return f"yours is in reverse order along axis {axis}"
                for step in (1, -1):
                    if same(a, np.roll(b, step, axis)):
                        return f"yours is shifted by one along axis {axis}"
        if how := _sums(a, b):
            return how
        if b.ndim >= 2:
            rows = [same(one, other) for one, other in zip(a, b, strict=True)]
            if any(rows) and sum(rows) < len(rows):
                right = [i for i, fine in enumerate(rows) if fine]
                if right == [0]:
                    return "only the first row is right"
                return f"rows {right} of {len(rows)} are right" if len(right) > 1 else None
        if not boolean and same(np.sort(a.ravel()), np.sort(b.ravel())):
            return "the right numbers are in the wrong places"
    return None


def _is_bool(value) -> bool:
    return isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) == torch.bool


def _sums(a, b) -> str | None:
    """What is wrong with shares that do not sum to 1."""
    if not b.ndim or b.shape[-1] < 2 or not np.allclose(b.sum(-1), 1, atol=1e-4):
        return None
    if np.allclose(a.sum(-1), 1, atol=1e-3):
        return None
    if b.ndim == 1:
        return f"yours should sum to 1; it sums to {a.sum():.4g}"
    if np.allclose(a.sum(-2), 1, atol=1e-3):
        return "your columns sum to 1, but it's the rows that should"
    return f"your rows should sum to 1; the first sums to {a.sum(-1).flat[0]:.4g}"


def _by_axes(a, b, sizes) -> str | None:
    """What two arrays of one shape say of the scores behind them, and of single axes."""
    shares = (a > 0).all() and (b > 0).all() and b.shape[-1] > 2
    if shares and np.allclose(a.sum(-1), 1, atol=1e-4) and np.allclose(b.sum(-1), 1, atol=1e-4):
        x, y = (np.log(p) - np.log(p).mean(-1, keepdims=True) for p in (a, b))
        if (y**2).sum() > 1e-6:
            factor = float((x * y).sum() / (y**2).sum())
            other = factor > 0 and not math.isclose(factor, 1, rel_tol=1e-3)
            if other and same(x, factor * y, 1e-3):
                return (
                    f"your shares come from scores that are {factor:.4g} times the "
                    f"right ones{_name_of(factor, sizes)}"
                )
    for axis in range(b.ndim):
        if b.shape[axis] < 2:
            continue
        first = a.take([0], axis)
        if np.allclose(a, first, atol=1e-6) and not np.allclose(b, b.take([0], axis), atol=1e-3):
            return f"yours is the same for all {b.shape[axis]} places of axis {axis}"
        if axis:
            right = [
                i for i in range(b.shape[axis]) if same(a.take(i, axis), b.take(i, axis))
            ]
            if right == [0] and set(np.unique(b)) - {0.0, 1.0}:
                return f"along axis {axis} only the first of {b.shape[axis]} is right"
    return None


def relation_of_parts(given, expected, names, sizes=()) -> str | None:
    """`relation` of several results: of the first that differs, and whether two are exchanged."""
    if not isinstance(given, (tuple, list)) or len(given) != len(expected):
        return None
    wrong = [i for i, value in enumerate(expected) if not same(given[i], value)]
    if len(wrong) == 2:
        one, two = wrong
        if same(given[one], expected[two]) and same(given[two], expected[one]):
            return f"`{names[one]}` and `{names[two]}` are swapped"
    how = relation(given[wrong[0]], expected[wrong[0]], sizes) if wrong else None
    return f"`{names[wrong[0]]}`: {how}" if how else None


def exchangeable(value, other) -> bool:
    """Whether another value may stand for an argument: of one kind and shape, and different."""
    if isinstance(value, torch.Tensor):
        return (
            isinstance(other, torch.Tensor)
            and other.shape == value.shape
            and other.dtype == value.dtype
            and not torch.equal(other, value)
        )
    return type(value) is type(other) and isinstance(value, (int, float, str)) and value != other


def formula(names, results) -> str | None:
    """How an answer to "count it" differs, as a product of the arguments: "n * n too many".

    results: [(arguments, given, expected)]. The product must hold for all of them, and there must
    be at least three; a difference is looked for first, then a factor.
    """
    rows = []
    for args, given, expected in results:
        named = [(name, value) for name, value in zip(names, args, strict=False)
                 if isinstance(value, (int, float)) and not isinstance(value, bool)]
        plain = all(isinstance(x, (int, float)) and not isinstance(x, bool)
                    for x in (given, expected))
        if not named or not plain or not all(map(math.isfinite, (given, expected))):
            return None
        rows.append((dict(named), float(given), float(expected)))
    if len(rows) < 3:
        return None
    differences = [given - expected for _, given, expected in rows]
    if any(differences) and (text := _monomial([row[0] for row in rows], differences)):
        if text[1] == "1":
            return f"yours is one too {'many' if text[0] > 0 else 'few'}, on every input"
        return f"yours is {text[1]} too {'large' if text[0] > 0 else 'small'}, on every input"
    ratios = [given / expected if expected else math.nan for _, given, expected in rows]
    text = _monomial([row[0] for row in rows], ratios)
    if text and text[0] > 0 and text[1] != "1":
        return f"yours is {text[1]} times what is expected, on every input"
    return None


def _monomial(rows, wanted):
    """(sign, "2 * n * d") where `wanted` is that product of the arguments in each row, or None."""
    if not all(math.isfinite(value) and value for value in wanted):
        return None
    names = [name for name in rows[0] if all(row[name] > 0 for row in rows)][:5]
    numbers_ = [1, 2, 3, 4, 5, 6, 7, 8, 1 / 2, 1 / 3, 1 / 4, 2 / 3, 3 / 2]
    for powers in sorted(
        itertools.product((0, 1, 2, -1), repeat=len(names)), key=lambda p: sum(map(abs, p))
    ):
        products = [
            math.prod(row[name] ** power for name, power in zip(names, powers, strict=True))
            for row in rows
        ]
        factor = wanted[0] / products[0]
        if all(math.isclose(value, factor * product, rel_tol=1e-6)
               for value, product in zip(wanted, products, strict=True)):
            number = next((n for n in numbers_ if math.isclose(n, abs(factor), rel_tol=1e-6)), None)
            if number is None:
                return None
            above = [str(number)] if number != int(number) else [f"{number}"] * (number != 1)
            above = [f"{number:.3g}"] if above else []
            for name, power in zip(names, powers, strict=True):
                above += [name] * max(power, 0)
            below = [name for name, power in zip(names, powers, strict=True) if power < 0]
            text = " * ".join(above) or "1"
            return factor, text + "".join(f" / {name}" for name in below)
    return None


def difference(given, expected) -> str:
    """Where two answers differ, with both sides."""
    a, b = numbers(given), numbers(expected)
    if a is None or b is None or isinstance(expected, (list, tuple)):
        return _both(given, expected)
    if a.shape != b.shape:
        return f"your shape is {a.shape}, expected {b.shape}"
    if b.size <= 12:
        return _both(given, expected)
    wrong = ~((np.abs(a - b) <= 1e-5 * np.maximum(1, np.abs(b))) | (a == b))
    at = tuple(np.argwhere(wrong)[0]) if wrong.any() else (0,) * b.ndim
    place = list(map(int, at))
    return f"yours is {a[at]:.6g} at {place}, expected {b[at]:.6g}"


def _both(given, expected) -> str:
    """Two values with as few digits as tell them apart."""
    for digits in (4, 6, 9):
        one, other = show(given, digits=digits), show(expected, digits=digits)
        if one != other:
            break
    return f"yours is {one}, expected {other}"


# --------------------------------------------------------------------------------------- steps


@dataclass
class Step:
    """A value that a call made: its name or operation, and where."""

    name: str
    value: object
    line: int
    file: str
    named: bool


class Forbidden(Exception):
    """The answer calls what the exercise rules out."""


class _Operations(TorchFunctionMode):
    """Notes the result of every tensor operation, and stops at forbidden ones."""

    def __init__(self, steps, forbid):
        super().__init__()
        self.steps, self.forbid = steps, forbid

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in self.forbid:
            raise Forbidden(name)
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and len(self.steps) < 2000:
            frame = sys._getframe(1)
            while frame and not is_theirs(frame.f_code):
                frame = frame.f_back
            if frame:
                self.steps.append(Step(name, result.detach().clone(), frame.f_lineno,
                                       frame.f_code.co_filename, False))
        return result


def record(function, args, forbid=(), changed=None, theirs=is_theirs):
    """Call `function(*args)` and note its steps: (result, steps, line that changed an argument).

    Named steps are the local variables of the learner's functions, by `sys.settrace`; unnamed ones
    the results of tensor operations. changed: a function that says whether `args` are altered.
    """
    steps, guilty = [], []
    held = {}

    def note(frame):
        code = frame.f_code
        for name, value in frame.f_locals.items():
            mark = (id(value), getattr(value, "_version", None))
            if held.get((id(frame), name)) != mark:
                held[id(frame), name] = mark
                if isinstance(value, torch.Tensor) and len(steps) < 2000:
                    steps.append(Step(name, value.detach().clone(), last.get(id(frame), 0),
                                      code.co_filename, True))

    last = {}

    def local(frame, event, arg):
        note(frame)
        if changed and not guilty and id(frame) in last and changed():
            guilty.append((frame.f_code.co_filename, last[id(frame)]))
        last[id(frame)] = frame.f_lineno
        return local

    def watch(frame, event, arg):
        code = frame.f_code
        if forbid and not is_theirs(code) and Path(code.co_filename).parent != HERE:
            if code.co_name in forbid or code.co_qualname in forbid:
                raise Forbidden(code.co_name)
        if theirs(code):
            last.pop(id(frame), None)
            for name, value in frame.f_locals.items():  # arguments aren't steps
                held[id(frame), name] = (id(value), getattr(value, "_version", None))
            return local
        return None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with _Operations(steps, forbid):
            result = function(*args)
    finally:
        sys.settrace(before)
    return result, steps, guilty[0] if guilty else None


def stages(reference, args):
    """The reference's named steps in order: [(name, value)], each name once, its last value."""
    code = inspect.unwrap(reference).__code__
    _, steps, _ = record(reference, args, theirs=lambda other: other is code)
    return list({step.name: step.value for step in steps if step.named}.items())


def first_divergence(answer, reference, args, learner_args) -> str | None:
    """The first of the reference's named steps that the learner's code does not make."""
    right = stages(reference, args)
    result, steps, _ = record(answer, learner_args)
    found = [i for i, (_, value) in enumerate(right) for step in steps if same(step.value, value)]
    if not right or not steps:
        return None
    expected = reference(*args)
    if isinstance(expected, torch.Tensor) and expected.numel() > 1:
        for step in steps:
            if same(step.value, expected) and not same(result, expected):
                where = source_line(step.file, step.line)
                return f"the right result occurs in your code, {where}, but you don't return it"
    reached = max(found, default=-1)
    if reached == len(right) - 1:
        return None
    name, value = right[reached + 1]
    hit = 0
    if reached >= 0:
        hit = max(i for i, s in enumerate(steps) if same(s.value, right[reached][1]))
    theirs = [step for step in steps if step.named and step.name == name]
    after = [step for step in steps[hit + (reached >= 0) :] if step.value.shape == value.shape]
    alike = [step for step in after if _kind(step.value) == _kind(value)]
    candidate = theirs[-1] if theirs else alike[0] if alike else after[0] if after else None
    if candidate is None or (reached < 0 and not theirs):
        return None
    text = f"`{right[reached][0]}` comes out right; " if reached >= 0 else ""
    text += (
        f"the first step that differs is `{name}`: {source_line(candidate.file, candidate.line)}"
    )
    if not theirs and not alike:  # numbers of another kind: a comparison would mislead
        return text
    how = relation(candidate.value, value, _sizes(args))
    return text + (f". There {how}" if how else "")


def _kind(value) -> str:
    """Truth values, shares (along any axis: it may be the wrong one), or other numbers."""
    if value.dtype == torch.bool:
        return "truth values"
    found = numbers(value)
    if found.ndim and found.size and (found >= 0).all():
        if any(np.allclose(found.sum(axis), 1, atol=1e-3) for axis in range(found.ndim)):
            return "shares"
    return "numbers"


def _sizes(args):
    found = []
    for value in args:
        if isinstance(value, torch.Tensor):
            found += value.shape
        elif isinstance(value, int) and not isinstance(value, bool):
            found.append(value)
    return [n for n in found if 1 < n < 100_000]


# ------------------------------------------------------------------------------------ examples


def show(value, width: int = 110, digits: int = 4) -> str:
    """A value for a message: few digits, a large tensor as its shape."""

    def plain(item):
        if isinstance(item, (torch.Tensor, np.ndarray)):
            item = (item * 1).tolist()  # a mask in ones and zeros
        if isinstance(item, (list, tuple)):
            inner = ", ".join(plain(one) for one in item)
            if isinstance(item, tuple):
                return f"({inner}{',' * (len(item) == 1)})"
            return f"[{inner}]"
        if isinstance(item, float):
            return f"{item + 0.0:.{digits}g}"
        if isinstance(item, dict):
            return "{" + ", ".join(f"{plain(k)}: {plain(v)}" for k, v in item.items()) + "}"
        return repr(item)

    text = plain(value)
    if len(text) > width:
        shape = getattr(value, "shape", None)
        return f"a tensor of shape {tuple(shape)}" if shape is not None else text[:width] + "…"
    return text


def readable(value) -> bool:
    """Whether a value can be printed in an example: not a function, a model or a list of them."""
    if isinstance(value, (list, tuple)) and value:
        return all(map(readable, value))
    return not callable(value) or isinstance(value, type)


def example(names, args, given, expected) -> str:
    """An input and what came out of it, in one line."""
    shown = [f"{name} = {show(value)}" for name, value in zip(names, args, strict=False)
             if readable(value)]
    with_them = f"With {', '.join(shown)}: " if shown else ""
    return with_them + difference(given, expected)


def _rounded(args):
    """The arguments with rounder numbers, the roundest first."""
    for grain in (1.0, 2.0, 10.0):
        yield tuple(
            (value * grain).round() / grain
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for value in args
        )


def _shorter(args, fixed):
    """The arguments with one item of one list, text or dictionary left out, if not `fixed`."""
    for i, value in enumerate(args):
        if fixed and fixed[i]:
            continue
        if isinstance(value, (list, tuple, str)) and len(value) > 1:
            for j in range(len(value)):
                yield (*args[:i], value[:j] + value[j + 1 :], *args[i + 1 :])
        if isinstance(value, (dict, set)) and len(value) > 1:
            for key in sorted(value, key=repr):
                rest = value - {key} if isinstance(value, set) else {
                    k: v for k, v in value.items() if k != key
                }
                yield (*args[:i], rest, *args[i + 1 :])


def shrink(args, fails, make=None, sizes=None, fixed=(), rounder=True):
    """The smallest arguments found on which `fails(args)` still holds.

    make, sizes: makes arguments from sizes, `make(**sizes)`; without them, items are left out.
    fixed: for each argument whether it keeps its length. rounder: whether to try rounder numbers.
    """
    end = time.process_time() + PATIENCE

    def still(candidate):
        return time.process_time() < end and fails(candidate)

    if make is not None:
        smaller = True
        while smaller:
            smaller = False
            for name, size in sizes.items():
                if not isinstance(size, int):
                    continue
                for less in range(1, size):
                    try:
                        torch.manual_seed(0)
                        candidate = make(**{**sizes, name: less})
                    except Exception:
                        continue
                    if still(candidate):
                        args, sizes, smaller = candidate, {**sizes, name: less}, True
                        break
    else:
        smaller = True
        while smaller:
            smaller = next((found for found in _shorter(args, fixed) if still(found)), None)
            args = smaller or args
    return next((found for found in _rounded(args) if rounder and still(found)), args)
