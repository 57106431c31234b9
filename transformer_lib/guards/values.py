"""Values and types: whether one fits the other, and how a sentence names them."""

import dataclasses
import functools
import inspect
import random
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

PLAIN = (str, bytes, Path, bool, Real, list, tuple, dict, set, Tensor, np.ndarray, type(None))
DEVICES = "'cpu', 'cuda', 'cuda:1' or 'mps'"
LARGE = (Tensor, np.ndarray, nn.Module)
# What may stand where a signature names the type.
ALIKE = {bool: (bool, np.bool_), str: (str, Path), Path: (str, Path), Tensor: Tensor,
         torch.device: (str, torch.device),
         torch.Generator: torch.Generator, random.Random: random.Random}  # not NumPy's


@functools.cache
def hints(function) -> dict:
    """The types that a function's signature, or a dataclass, names for what it is given."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # an annotation that cannot be resolved says nothing
        return {}
    return {name: kind for name, kind in hints.items() if name not in ("return", "_")}


def _fields(kind) -> set[str]:
    return set(getattr(kind, "__dataclass_fields__", ()))


def fits(value, kind) -> bool:
    """Whether a value may be given where a signature names this type. Anything unknown fits."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is None or kind is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if kind is typing.Any:
        return True
    if kind in ALIKE:
        return isinstance(value, ALIKE[kind])
    if kind in (int, float):
        if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
            return False
        return kind is int or not isinstance(value, int) or abs(value) <= sys.float_info.max
    if kind is Callable or origin is Callable:
        any_number = not inner or inner[0] is Ellipsis
        return callable(value) and (any_number or takes(value, len(inner[0])))
    if origin is tuple and inner and Ellipsis not in inner:
        size = isinstance(value, (list, tuple)) and len(value) == len(inner)
        return size and all(map(fits, value, inner))
    if kind in (Sequence, Iterable):
        return fits(value, kind[object]) or isinstance(value, (str, bytes))
    if origin is type:
        return isinstance(value, type) and issubclass(value, inner[0])
    if origin in (list, tuple, Sequence, Iterable):
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            return False
        if isinstance(value, (set, frozenset)) and origin is not Iterable:  # they have no order
            return False
        if isinstance(value, Tensor) or (origin is not Iterable and not hasattr(value, "__len__")):
            return False
        if isinstance(value, np.ndarray) and (not value.ndim or inner[0] is str):
            return False
        listed = isinstance(value, (list, tuple, np.ndarray))
        return not listed or all(fits(one, inner[0]) for one in value)
    if origin is dict and inner and isinstance(value, Mapping):
        return all(fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items())
    if origin is dict or (isinstance(kind, type) and issubclass(kind, dict)):
        return isinstance(value, Mapping)
    if isinstance(kind, type) and not isinstance(value, kind):
        # What does the same may stand for a model or the like, and settings with the same fields
        # for ours: a chapter prints our class, and then the notebook has one of its own.
        same = _fields(kind) and _fields(kind) <= _fields(value)
        other = dataclasses.is_dataclass(value)
        if issubclass(kind, nn.Module) and not isinstance(value, nn.Module):
            other = other or not (callable(value) or hasattr(value, "step"))
        else:
            package = type(value).__module__.partition(".")[0]
            other = other or package in ("transformer_lib", "tokenizers")
        plain = isinstance(value, (*PLAIN, type, types.GeneratorType))
        return not plain and bool(same or not other)
    return True


def takes(function: Callable, n: int, **named) -> bool:
    """Whether a function can be called with n arguments and these; True if nobody can tell."""
    if isinstance(function, nn.Module):  # __call__ hands on whatever it is given
        function = function.forward
    try:
        inspect.signature(function).bind(*[None] * n, **named)
    except TypeError:
        return False
    except ValueError as error:  # a partial that names what the function does not take
        return "incorrect arguments" not in str(error)
    return True


def is_device(name: str) -> bool:
    """Whether there can be a device of this name, here or not. There is one CPU, however many
    torch would count."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        return False
    return device.type not in ("cpu", "mps") or not device.index


def computes(device: str | torch.device) -> bool:
    """Whether torch can hold numbers on this device, on this machine."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, NotImplementedError, ImportError, AssertionError):
        return False
    return True


def has_visible_text(text: str) -> bool:
    """Whether a text holds more than spaces and characters that nobody sees."""
    return any(character.isprintable() and not character.isspace() for character in text)


def words(kind) -> str:
    """A type, as a sentence names it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Callable and inner[0] == []:
        return "a function without arguments"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(words, inner)))
    names = {int: "a whole number", float: "a number", str: "a string", bool: "True or False",
             Tensor: "a tensor", type(None): "None", Path: "a path",
             torch.Generator: "a torch.Generator", object: "an object", bytes: "bytes",
             typing.Any: "anything", Callable: "a function", Sequence: "a list", Iterable: "a list",
             Mapping: "a dictionary", np.ndarray: "a NumPy array"}
    if kind in names:
        return names[kind]
    if origin is tuple and inner and Ellipsis not in inner:
        return f"({', '.join(map(words, inner))})"
    if origin in (list, tuple, Sequence, Iterable) and inner[0] is object:
        return "a list"
    if origin in (list, tuple, Sequence, Iterable):
        of = words(inner[0]).removeprefix("a ").removeprefix("an ")
        of = of[1:-1] if of.startswith("(") else of
        if "," in of:
            return f"a list, each entry ({of})" if "function" not in of else f"a list, each a {of}"
        first, *rest = of.split(" of ", 1)
        many = {"dictionary": "dictionaries"}.get(first, f"{first}s")
        return f"a list of {' of '.join([many, *rest])}"
    if origin is Callable:
        taken = "" if not inner or inner[0] is Ellipsis else ", ".join(map(words, inner[0]))
        return f"a function of ({taken})" if inner and inner[0] is not Ellipsis else "a function"
    if origin is type:
        return f"a class, {inner[0].__name__} or one derived from it"
    if origin is dict and inner:
        return f"a dictionary of {words(inner[0])}: {words(inner[1])}"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, dict)):
        about = "" if kind is dict or origin is dict else inspect.getdoc(kind) or ""
        return f"a dictionary: {about.partition(';')[0]}".rstrip(": ")
    name = getattr(kind, "__name__", str(kind))
    return "what start() of the same model returned" if name == "_State" else _with_article(name)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def of_the_system(error: OSError) -> str | None:
    """What the operating system says about a file, as a sentence with advice; None if the error
    isn't of that kind."""
    name = getattr(error, "filename", None)
    if name is None or not str(error).startswith("[Errno"):
        return None
    advice = {
        IsADirectoryError: "is a folder; give the name of a file.",
        NotADirectoryError: "is inside a file, not inside a folder; choose another name.",
        FileNotFoundError: "does not exist; check the name.",
        FileExistsError: "already exists; choose another name.",
        PermissionError: "is not accessible; change its permissions, or choose another place.",
    }
    written = str(name).removesuffix(".partial")
    if written != str(name) and type(error) in (FileNotFoundError, PermissionError):
        return f"{written} cannot be written ({error.strerror}); choose another place."
    return f"{name} {advice.get(type(error), f'cannot be used ({error.strerror}).')}"


def _is_large(value) -> bool:
    """Whether Python would write this over many lines, or by its address."""
    inside = isinstance(value, (list, tuple)) and any(map(_is_large, value))
    return inside or isinstance(value, LARGE) or inspect.isroutine(value)


def unfit_entry(value, kind) -> tuple[str, object]:
    """Where in a long list or dictionary the first entry stands that does not fit, as "['de'][3]",
    and that entry; "" and the value itself if `describe` shows it.
    """
    where = ""
    while isinstance(value, (list, dict)) and (len(value) > 4 or "..." in describe(value)):
        found = None
        for one in typing.get_args(kind) if typing.get_origin(kind) is types.UnionType else (kind,):
            origin, inner = typing.get_origin(one) or one, typing.get_args(one)
            listed = isinstance(value, list) and origin in (list, Sequence, Iterable)
            named = isinstance(value, dict) and len(inner) == 2 and issubclass(origin, Mapping)
            entries = enumerate(value) if listed else value.items() if named else ()
            found = next((it for it in entries if inner and not fits(it[1], inner[-1])), None)
            if found:
                break
        if not found:
            break
        where, value, kind = f"{where}[{found[0]!r}]", found[1], inner[-1]
    return where, value


def describe(value) -> str:
    """A value in a few words: a tensor by its shape, type and device, a text by its beginning."""
    if isinstance(value, Tensor):
        where = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"a tensor {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}{where}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array {value.shape} of {value.dtype}"
    if isinstance(value, Path):
        return f"the path {value}"
    if isinstance(value, (list, tuple, dict, set)):
        held = [*(value.values() if isinstance(value, dict) else value)]
        if len(held) > 4 or any(map(_is_large, held)):
            begins = f", the first {describe(held[0])}" if _is_large(held[0]) else ""
            return f"{_with_article(type(value).__name__)} of {len(held)}{begins}"
    if isinstance(value, nn.Module) or not (isinstance(value, PLAIN) or callable(value)):
        return _with_article(type(value).__name__)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, functools.partial):
        return f"a partial of {describe(value.func)}"
    if inspect.isfunction(value):
        return f"the function {value.__name__}{inspect.signature(value)}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
