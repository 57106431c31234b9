"""What was wrong with an argument: what was given, what was expected, in a sentence.

`guard(__name__)`, the last line of a module, stands between its public names and whoever calls them
from outside the library. It compares arguments with the types that the signature names, and where
the code fails on one all the same, in torch's words or Python's, it says which arguments those
were and quotes what the documentation expects. Calls within the library pass at once, so that no
layer pays for it. The rest of this module are the checks that a type cannot express.
"""

import ast
import dataclasses
import functools
import inspect
import re
import sys
import sysconfig
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

LIBRARY = str(Path(__file__).parent)
# Code that fails on an argument is ours or lies here; an error of other code is not about ours.
INSTALLED = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
INSTALLED |= {str(Path(torch.__file__).parents[1]), "<frozen", "<__array_function__"}
PLAIN = (str, bytes, bool, Real, list, tuple, dict, set, Tensor, np.ndarray, type(None))


class _Calls:
    """Whether a call to the library is under way. Threads share it: at worst one is not checked."""

    inside = False


_calls = _Calls()


# ---------------------------------------------------------------------- checks that stand in code


def require_mask(mask: Tensor | None, shape: tuple[int, int, int, int]) -> None:
    """Raise ValueError or TypeError unless the mask is bool and can be broadcast to this shape,
    (B, n_heads, T_query, T_key), in one way alone.
    """
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask is {describe(mask)}; expected a bool tensor, True = may attend.")
    if mask.dtype != torch.bool:
        raise ValueError(
            f"mask has dtype {mask.dtype}; expected bool, True = may attend: use mask.bool() for "
            "ones and zeros, mask == 0 for numbers that would be added to the scores."
        )
    given, batch = tuple(mask.shape), shape[0]
    if len(given) == 3 or (len(given) == 2 and 1 < batch == shape[2] == given[0]):
        raise ValueError(
            f"mask has shape {given}, and its first axis could be the batch or another: expected "
            f"(batch, n_heads, T_query, T_key), here {shape}, with 1 where a mask is the same for "
            "all, as in mask[:, None, None] for (batch, T_key)."
        )
    fits = all(m in (1, n) for m, n in zip(given[::-1], shape[::-1], strict=False))
    if len(given) not in (2, 4) or not fits:
        raise ValueError(
            f"mask has shape {given}; expected one that can be broadcast to {shape}: (batch, "
            "n_heads, T_query, T_key), with 1 where a mask is the same for all."
        )


def require_no_zeros_and_ones(mask: Tensor) -> None:
    """Raise ValueError for a float mask that was meant to say "may attend" with a 1.

    Added to the scores it would hide nothing.
    """
    if mask.device.type != "meta" and bool(((mask == 0) | (mask == 1)).all() & (mask == 1).any()):
        raise ValueError(
            f"mask has dtype {mask.dtype} and holds only 0 and 1: a float mask is added to the "
            "scores, so these would hide nothing; expected bool, True = may attend: use "
            "mask.bool()."
        )


def require_types(config) -> None:
    """Raise TypeError, naming the field, for a value of another type than a dataclass declares.

    A whole number may stand for a float, a list for a tuple.
    """
    for name, kind in _hints(type(config)).items():
        value = getattr(config, name)
        if not fits(value, kind):
            raise TypeError(f"{name} is {describe(value)}; it must be {words(kind)}.")
        if isinstance(value, float) and value != value:
            raise ValueError(f"{name} is nan; it must be a number.")


def require_pairs(pairs: Mapping, known: Iterable[str]) -> None:
    """Raise ValueError or TypeError unless these are lists of (source, target) by split."""
    if not isinstance(pairs, Mapping):
        raise TypeError(
            f"pairs is {describe(pairs)}; expected a dictionary from split to a list of (source, "
            "target), as data.load_parallel gives it."
        )
    if unknown := [split for split in pairs if split not in known]:
        raise ValueError(
            f"pairs has a split {unknown[0]!r}; expected no other than {', '.join(known)}."
        )
    for split, rows in pairs.items():
        for number, row in enumerate(rows):
            if not isinstance(row, (tuple, list)) or [*map(type, row)] != [str, str]:
                raise ValueError(
                    f"{split} pair {number} is {describe(row)}; expected (source, target), two "
                    "strings."
                )


# --------------------------------------------------------------------- the guard before a module


def guard(module: str, only_types: Iterable[str] = ()) -> None:
    """Stand before the public functions of a module, and the public methods of its classes.

    only_types: functions whose errors from within are not about the arguments.
    """
    namespace = vars(sys.modules[module])
    for name, value in list(namespace.items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module:
            continue
        if inspect.isfunction(value):
            namespace[name] = _guarded(value, name, explain=name not in only_types)
        elif inspect.isclass(value) and not issubclass(value, Exception):
            if dataclasses.is_dataclass(value) and not hasattr(value, "__post_init__"):
                continue  # a result: the library fills it in
            for key, method in list(vars(value).items()):
                if inspect.isfunction(method) and (key == "__init__" or not key.startswith("_")):
                    shown = name if key in ("__init__", "forward") else f"{name}.{key}"
                    setattr(value, key, _guarded(method, shown, explain=True))


def _guarded(function: Callable, name: str, explain: bool) -> Callable:
    # No closure: a lab forbids a finished function by giving it other code.
    @functools.wraps(function)
    def guarded(*args, _guard=(function, name, explain), **kwargs):
        function, name, explain = _guard
        if _calls.inside or is_compiling():
            return function(*args, **kwargs)
        try:
            given = _signature(function).bind(*args, **kwargs).arguments
        except TypeError:  # not this function's parameters: Python names them
            return function(*args, **kwargs)
        problem = _problem(function, name, given)
        if problem and not explain:
            raise problem
        _calls.inside = True
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if not explain or not _is_raw(error):  # the function's own words say more
                raise
            raise problem or _explained(function, name, given, error) from error
        finally:
            _calls.inside = False
        if problem:
            raise problem
        return result

    return guarded


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _hints(function) -> dict:
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation that cannot be resolved says nothing
        return {}
    return {name: kind for name, kind in hints.items() if name not in ("return", "_")}


def _problem(function: Callable, name: str, given: dict) -> Exception | None:
    """An argument of another type than the signature names, or on another device."""
    hints = _hints(function)
    for argument, value in given.items():
        if argument in hints and _signature(function).parameters[argument].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        ):
            if not fits(value, hints[argument]):
                return TypeError(
                    f"{name}: {argument} is {describe(value)}; expected {words(hints[argument])}."
                )
    tensors = {key: value for key, value in given.items() if isinstance(value, Tensor)}
    module = given.get("self", given.get("model"))
    if isinstance(module, nn.Module) and tensors:
        own = next((p for p in module.parameters()), None)
        tensors |= {} if own is None else {"the model": own}
    devices = {value.device for key, value in tensors.items() if value.dim() or key == "the model"}
    if len(devices) > 1:
        where = ", ".join(f"{key} on {value.device}" for key, value in tensors.items())
        return ValueError(f"{name}: {where}; expected one device: move them with .to(device).")
    return None


def fits(value, kind) -> bool:
    """Whether a value may stand where a signature names this type. What is not known fits."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is None or kind is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is str:
        return isinstance(value, (str, Path))
    if kind is Tensor:
        return isinstance(value, Tensor)
    if kind is Path:
        return isinstance(value, (str, Path))
    if kind is torch.device:
        return isinstance(value, (str, torch.device))
    if kind is Callable or origin is Callable:
        return callable(value)
    if origin is tuple and inner and Ellipsis not in inner:
        size = isinstance(value, (list, tuple)) and len(value) == len(inner)
        return size and all(map(fits, value, inner))
    if origin in (list, tuple, Sequence, Iterable):
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            return False
        if isinstance(value, Tensor) or (origin is not Iterable and not hasattr(value, "__len__")):
            return False
        return not isinstance(value, (list, tuple)) or all(fits(one, inner[0]) for one in value)
    if origin is dict or (isinstance(kind, type) and issubclass(kind, dict)):
        return isinstance(value, Mapping)
    if isinstance(kind, type) and not isinstance(value, kind):
        return not isinstance(value, PLAIN)  # what does the same may stand for a model or the like
    return True


def words(kind) -> str:
    """A type, as a sentence names it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(words, inner)))
    names = {int: "a whole number", float: "a number", str: "a string", bool: "True or False",
             Tensor: "a tensor", type(None): "None", Path: "a path",
             Callable: "a function"}  # fmt: skip
    if kind in names:
        return names[kind]
    if origin is tuple and inner and Ellipsis not in inner:
        return f"({', '.join(map(words, inner))})"
    if origin in (list, tuple, Sequence, Iterable):
        of = words(inner[0]).removeprefix("a ").removeprefix("(").removesuffix(")")
        return f"a list, each entry {of}" if "," in of else f"a list of {of}s"
    if origin is Callable:
        return "a function"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, dict)):
        return "a dictionary"
    return f"a {getattr(kind, '__name__', kind)}"


def describe(value) -> str:
    """A value in a few words: a tensor by its shape, type and device, a text by its beginning."""
    if isinstance(value, Tensor):
        where = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"a tensor {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}{where}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array {value.shape} of {value.dtype} (torch.from_numpy makes a tensor)"
    if isinstance(value, (list, tuple, dict, set)) and len(value) > 4:
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, nn.Module) or not (isinstance(value, PLAIN) or callable(value)):
        return f"a {type(value).__name__}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _is_raw(error: Exception) -> bool:
    """Whether an error is in words of torch or Python, raised for what the library gave them."""
    others = OSError, ImportError, AssertionError, torch.OutOfMemoryError
    if isinstance(error, others) or "CUDA" in str(error):
        return False
    *frames, last = _frames(error)
    if not all(file.startswith((LIBRARY, *INSTALLED)) or file.endswith(".pyx")
               for file, _ in [*frames, last]):  # fmt: skip
        return False  # of a function that was handed in
    return not (last[0].startswith(LIBRARY) and _is_raise(*last))


def _frames(error: Exception) -> list[tuple[str, int]]:
    step, found = error.__traceback__, []
    while step is not None:
        found.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    return found


def _is_raise(file: str, line: int) -> bool:
    return any(first <= line <= last for first, last in _raises(file))


@functools.cache
def _raises(file: str) -> list[tuple[int, int]]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return [(n.lineno, n.end_lineno) for n in ast.walk(tree) if isinstance(n, ast.Raise)]


def _explained(function: Callable, name: str, given: dict, error: Exception) -> Exception:
    shown = ", ".join(f"{k} = {describe(v)}" for k, v in given.items() if k != "self")
    said = " ".join(str(error).split())[:160]
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    return kind(
        f"{name} does not work with {shown or 'no arguments'} ({type(error).__name__}: {said}); "
        f"expected {_expected(function, given)}"
    )


def _expected(function: Callable, given: dict) -> str:
    """What the documentation says of the arguments; else what the signature does."""
    text = " ".join((inspect.getdoc(function) or "").split())
    sentences = re.split(r"(?<=[.;]) (?=[^()]*(?:\(|$))", text)
    named = re.compile(rf"\b({'|'.join(given)})\b.{{0,40}}: ")
    about = [sentence for sentence in sentences if named.search(sentence)]
    return " ".join(about)[:300] or f"{function.__name__}{_signature(function)}"
