"""The guard in front of a module: it checks what functions are given, and explains failures."""

import ast
import dataclasses
import difflib
import functools
import inspect
import itertools
import re
import sys
import sysconfig
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace, TracebackType

import numpy as np
import torch
from torch import Tensor, nn
from torch.compiler import is_compiling

from transformer_lib.guards.callbacks import LOOKED_AT, with_returns_looked_at
from transformer_lib.guards.limits import (
    CAUSES,
    COUNTS,
    require_numbers,
    require_parameter,
    require_relation,
    type_of,
)
from transformer_lib.guards.shapes import documentation, misfit
from transformer_lib.guards.values import (
    describe,
    fits,
    hints,
    of_the_system,
    unfit_entry,
    words,
)

GUARDS, LIBRARY = (str(folder) for folder in Path(__file__).parents[:2])
# Code that fails on an argument is ours or lives here; an error from other code isn't about ours.
INSTALLED = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
INSTALLED |= {str(Path(torch.__file__).parents[1]), "<frozen", "<__array_function__"}


# Whether a call to the library is under way. Threads share it: at worst one is not checked.
_calls = SimpleNamespace(inside=False)


# They run for a long time, with a reader's code in between: errors from within aren't about
# arguments.
LONG = {"transformer_lib.training": ("train", "fit", "update"),
        "transformer_lib.runs.progress": ("ProgressBar",)}


def guard(module: str, stays: bool = True) -> None:
    """Stand in front of a module's public functions and the public methods of its classes.

    stays: what a call does inside is the library's own; False for modules that run a reader's
    code, whose calls to the library are looked at like any others.
    """
    long = LONG.get(module, ())
    namespace = vars(sys.modules[module])
    for name, value in list(namespace.items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module:
            continue
        if inspect.isfunction(value):
            namespace[name] = _guarded(value, name, name not in long, stays)
        elif inspect.isclass(value) and not issubclass(value, Exception):
            if issubclass(value, torch.optim.Optimizer):  # torch's takes whatever it is given
                load = _guarded(value.load_state_dict, f"{name}.load_state_dict")
                value.load_state_dict = load
            if getattr(getattr(value, "__dataclass_params__", None), "frozen", False):
                value.__setattr__ = value.__delattr__ = _frozen
            filled = dataclasses.is_dataclass(value) and not hasattr(value, "__post_init__")
            for key, method in list(vars(value).items()):
                if key.startswith("_") and key != "__call__" and (key != "__init__" or filled):
                    continue  # filled by the library: a result
                shown = name if key in ("__init__", "__call__", "forward") else f"{name}.{key}"
                if inspect.isfunction(method):
                    setattr(value, key, _guarded(method, shown, name not in long, stays))
                elif isinstance(method, classmethod):
                    function = _guarded(method.__func__, shown)
                    setattr(value, key, classmethod(function))


def _frozen(self, name: str, *given) -> None:
    """What a frozen dataclass answers to `self.name = given`: JSON and checks made it what it is.
    """
    cls, known = type(self).__name__, [field.name for field in dataclasses.fields(self)]
    near = next(iter([name] * (name in known) or difflib.get_close_matches(name, known)), "field")
    raise dataclasses.FrozenInstanceError(
        f"{cls}.{name} cannot be changed; make another, as in "
        f"dataclasses.replace(it, {near}=...)."
    )


def _guarded(function: Callable, name: str, explain: bool = True, stays: bool = True) -> Callable:
    # No closure: a lab forbids a finished function by giving it other code.
    @functools.wraps(function)
    def guarded(*args, _guard=(function, name, explain, stays), **kwargs):
        function, name, explain, stays = _guard
        if _calls.inside or is_compiling():
            return function(*args, **kwargs)
        try:
            bound = _signature(function).bind(*args, **kwargs)
        except TypeError as error:  # not this function's parameters
            raise _misnamed(function, name, kwargs, str(error)) from None
        given = bound.arguments
        problem = _problem(function, name, given)
        if problem and not (explain and stays):
            raise problem
        if not stays:
            return function(*args, **kwargs)
        if name in LOOKED_AT and not problem:
            bound.arguments = with_returns_looked_at(name, given)
            args, kwargs = bound.args, bound.kwargs
        for argument, value in given.items():
            if isinstance(value, Iterator):
                bound.arguments[argument] = _one_by_one(function, name, argument, value)
                args, kwargs = bound.args, bound.kwargs
        _calls.inside = True
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if problem and not (_is_own(error) and _says_more(error, problem, given)):
                raise problem from error
            explained = explain or isinstance(error, OSError)
            if not explained or not _is_raw(error):  # the function's own words say more
                error.__traceback__ = _without_guards(error.__traceback__)
                raise
            raise _explained(function, name, given, error) from error
        finally:
            _calls.inside = False
        if problem:
            raise problem
        return result

    return guarded


def _without_guards(traceback: TracebackType) -> TracebackType:
    """The frames of a reader and of the library: those of the guards between them are left out."""
    frames = [traceback]
    while frames[-1].tb_next:
        frames.append(frames[-1].tb_next)
    theirs = [
        frame for frame in frames[:-1]
        if not frame.tb_frame.f_code.co_filename.startswith(GUARDS)
    ]
    shown = [*theirs, frames[-1]]  # the last one says what failed
    for frame, following in itertools.pairwise(shown):
        frame.tb_next = following
    return shown[0]


def _one_by_one(function: Callable, name: str, argument: str, given: Iterator) -> Iterator:
    """What a generator gives, each looked at as it comes: it can be asked only once."""
    kind = hints(function).get(argument)
    of = typing.get_args(kind)[0] if typing.get_origin(kind) is Iterable else object
    for number, one in enumerate(given):
        if not fits(one, of):
            raise TypeError(f"{name}: {argument}, entry {number}, is {describe(one)}; expected "
                            f"{argument} to be {words(kind)}.")
        yield one


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def _misnamed(function: Callable, name: str, named: dict, said: str) -> TypeError:
    """A call with too many, too few or unknown arguments, and what the function takes."""
    parameters = _signature(function).parameters
    if unknown := [key for key in named if key not in parameters]:
        said = f"no argument is called {unknown[0]!r}"
    elif "missing" in said:
        said = f"the argument {said.rpartition(' ')[2]} is missing"
    elif "multiple" in said:
        said = f"the argument {said.rpartition(' ')[2]} is given twice"
    else:
        said = "there are too many arguments"
    takes = ", ".join(
        key if one.default is one.empty else f"{key}={one.default!r}"
        for key, one in parameters.items() if key not in ("self", "_guard")
    )
    return TypeError(f"{name}: {said}; expected {name}({takes}).")


def _problem(function: Callable, name: str, given: dict) -> Exception | None:
    """An argument of another type than the signature names, or on another device."""
    known, parameters = hints(function), _signature(function).parameters
    for argument, value in given.items():
        kind, default = known.get(argument, type_of(name, argument)), parameters[argument].default
        if parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL and kind is not None:
            for one in value:
                if not fits(one, kind):
                    bare = ", without [ ]" if isinstance(one, (list, tuple)) else ""
                    return TypeError(f"{name}: {argument} holds {describe(one)}; expected each "
                                     f"as {words(kind)}, one by one{bare}.")
            kind = None  # each fits
        named = parameters[argument].kind is inspect.Parameter.VAR_KEYWORD
        absent = value is None and argument not in known and default is None
        if not (named or kind is None or absent or fits(value, kind)):
            expected = words(kind)
            if re.search(r"a (list|dictionary)( or|$)", expected):  # of what?
                expected += "".join(f" ({it[:-1]})" for it in _described(function, [argument]))
            if isinstance(value, np.ndarray):
                way = "torch.from_numpy" if kind is Tensor else ".tolist()"
                expected += f" ({way} makes one)"
            where, what = unfit_entry(value, kind)
            return TypeError(f"{name}: {argument}{where} is {describe(what)}; expected "
                             f"{argument + ' to be ' if where else ''}{expected}.")
        if kind == str | Path and (value == "" or "\0" in str(value)):
            return ValueError(f"{name}: {argument} is {str(value)!r}; expected a name that is not "
                              "empty and holds no NUL.")
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, Tensor):
                require_numbers(name, argument, one)
        field = getattr(given.get("self"), "__dataclass_fields__", {}).get(argument)
        if not (field and field.metadata):  # else it has limits of its own
            counts = kind in (int, int | None)
            if problem := require_parameter(name, argument, value, counts):
                return problem  # unless the function has more to say
    require_relation(name, given)
    tensors = {key: value for key, value in given.items() if isinstance(value, Tensor)}
    for key, value in tensors.items():
        if key in COUNTS and value.device.type == "cpu" and value.numel() and value.min() < 0:
            return ValueError(f"{name}: {key} holds {value.min()}; such numbers count from 0.")
    module = given.get("self", given.get("model"))
    if tensors and (own := _weight(module)) is not None:
        tensors |= {"the model": own}
    devices = {value.device for key, value in tensors.items() if value.dim() or key == "the model"}
    if len(devices) > 1:
        where = ", ".join(f"{key} on {value.device}" for key, value in tensors.items())
        return ValueError(f"{name}: {where}; expected one device: move them with .to(device).")
    if expected := misfit(function, given):
        shown = ", ".join(f"{k} is {describe(v)}" for k, v in tensors.items() if k in given)
        return ValueError(f"{name}: {shown}; expected {expected}.")
    return None


def _weight(module) -> Tensor | None:
    """A parameter of a module, once that is built; None if there is none."""
    built = isinstance(module, nn.Module) and "_parameters" in vars(module)
    return next(module.parameters(), None) if built else None


def called(name: str, function: Callable, expected: str) -> Callable:
    """A function that was handed in, wrapped: if it cannot work with what the library passes it,
    TypeError says so. An error raised inside the function stays as it is."""
    def call(*given):
        try:
            return function(*given)
        except (TypeError, AttributeError) as error:
            if not _is_raw(error):
                raise
            shown = ", ".join(map(describe, given))
            raise TypeError(
                f"{name} is {describe(function)}, which does not work with ({shown})"
                f"{_reason(function, error, {})}; expected {expected}."
            ) from error

    return call


def _is_raw(error: Exception) -> bool:
    """Whether an error is in torch's or Python's words, raised for what the library gave them."""
    others = ImportError, torch.OutOfMemoryError
    if isinstance(error, others) or ("CUDA" in str(error) and torch.cuda.is_available()):
        return False
    if isinstance(error, OSError) and of_the_system(error) is None:
        return False
    *frames, last = _frames(error)
    if not all(file.startswith((LIBRARY, *INSTALLED)) or file.endswith(".pyx")
               for file, _ in [*frames, last]):
        return False  # from a caller's own function
    return not _is_own(error)


def _says_more(error: Exception, problem: Exception, given: dict) -> bool:
    """Whether the function's own sentence says more than that an argument has the wrong type. It
    doesn't if it is about a value and names another argument, or if it comes from a part inside,
    which calls its arguments by other names: "key has shape ...".
    """
    inside = re.match(r"(\w+) has shape", str(error))
    if inside and inside[1] not in given:
        return False
    argument = re.search(r": (?:\w+_)?(\w+)", str(problem))[1]
    named = re.search(rf"\b{argument}\b", str(error)) is not None
    return named or isinstance(error, TypeError) or not isinstance(problem, TypeError)


def _is_own(error: Exception) -> bool:
    """Whether an error comes from a `raise` of the library."""
    file, line = _frames(error)[-1]
    return file.startswith(LIBRARY) and _is_raise(file, line)


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
    if isinstance(error, OSError):
        return type(error)(of_the_system(error))
    try:
        require_relation(name, given, CAUSES)
    except ValueError as cause:
        return cause
    shown = ", ".join(f"{k} = {describe(v)}" for k, v in given.items() if k != "self")
    kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
    reason = _reason(function, error, given)
    handed = [key for key, value in given.items() if inspect.isroutine(value)]
    lacking = re.match(r" \(an? (\w+) has no ", reason)
    known = {type(value).__name__ for value in given.values()}
    if len(handed) == 1 and lacking and lacking[1] not in known:
        reason = f"{reason[:-1]}: look at what {handed[0]} returns)"
    return kind(
        f"{name} does not work with {shown or 'no arguments'}{reason}; expected "
        f"{misfit(function, given) or _expected(function, name, given)}"
    )


# What torch, NumPy and Python say, and what it amounts to. Anything else is quoted.
REASONS = {
    r"multiplied \(\d+x(\d+) and (\d+)x": r"\1 numbers where \2 are expected",
    r"normalized_shape=\[(\d+)\].*\D(\d+)\]": r"\2 numbers where \1 are expected",
    r"tensor a \((\d+)\) must match\D*\((\d+)\)": r"sizes \1 and \2 do not fit together",
    r"Dimension out of range.*got (-?\d+)": r"there is no axis \1",
    r"alloc|storage size|too many elements|invalid buffer|MemoryError":
        "that needs more memory than there is, so choose smaller sizes",
    r"(?:must be (?:a )?tensors?\b.*not |expected Tensor as.*got )(?:a |an )?(\w+)":
        r"a \1 where a tensor is expected",
    r"(?:list|tuple|string) index out of range": "a number points past the end of a list",
    r"negative dim|inconsistent with step sign|non-?negative|or equal to 0": "a number is negative",
    r"by zero|raised to a negative": "a number is 0",
    r"index out of range in self|out of bounds for dim": "an id is beyond what the table holds",
    r"operator.invert": "a mask must be bool: use mask.bool()",
    r"to have (\d+) channels, but got (\d+)": r"\2 numbers where \1 are expected",
    r"surrogate|TextEncodeInput": "half of a surrogate pair is not a character",
    r"null (byte|character)": "no name can have a NUL character",
    r"RecursionError": "it is nested too deeply",
    r"overflow|too large to convert": "a number is too large",
    r"expected one of cpu|device": "there is no such device",
    r"KeyError: (.+)": r"there is no \1 in it",
    r"for /: 'str' and 'str'|'str'.* attribute '(is_dir|name|parent|exists|glob|with_name)'":
        "a text where a path is expected: use Path(...)",
    r"'str' object has no attribute '(type|index)'":
        "a text where a device is expected: use torch.device(...)",
    r"too many dimensions '(\w+)'": r"a \1 where a number is expected",
    r"Invalid (learning rate|beta|epsilon|weight_decay)[\w ]*: (.+)": r"the \1 cannot be \2",
    r"'(\w+)' object has no attribute '(\w+)'": r"a \1 has no \2",
    r"'(\w+)' object is not callable": r"a \1 is not a function",
    r"non-iterable (\w+) object|'(\w+)' object is not (?:iterable|subscriptable)":
        r"a \1\2 has no entries",
    r"unhashable type: '(\w+)'": r"a \1 cannot be looked up",
    r"unexpected keyword argument '(\w+)'": r"no argument is called '\1'",
    r"([\w.<>]+)\(\) (?:takes|missing|got an un).*(?:argument|given)":
        r"\1 takes different arguments from those it is given",
    r"Object of type (\w+) is not JSON": r"a \1 cannot be kept as JSON",
    r"could not convert string to float: (.+)|invalid literal for int.*: (.+)":
        r"\1\2 is not a number",
    r"only for scalar outputs": "it holds more than one number: take its mean",
    r"does not require grad": "it has no gradient: no parameter that is trained takes part in it",
    r"expected (\d+), got \d+\)|too many values to unpack \(expected (\d+)":
        r"expected \1\2 parts, not more or fewer",
    r"scalar types: Long, Int": "ids must be int64: use .long()",
    r"\w+_cpu\W+not implemented for 'Byte'":
        "whole numbers where floats are expected: use .float()",
    r"shorter than|longer than|sequence of length": "parts that belong together differ in length",
    r"dtype|scalar type|argument #|not implemented for|used as ind|"
    r"datatype|floating point|bool tensor":
        "numbers of these types do not go together here",
    r"unsupported operand|not supported between|can't be cast|bad operand|an? \w+ is required|"
    r"not all arguments|expected at most|only integer|update sequence|item assignment|coerced|"
    r"dataclass instance":
        "values of these types do not go together here",
    r"`?inf`?\b.*nan|NaN|JSON compliant": "a number is infinite or NaN",
    r"\bmeta\b": "the device meta holds no numbers",
    r"cannot assign '(\S+)' as child": r"a \1 is not a module",
    r"cannot assign '\S*?(\w+)' object": r"a \1 where a tensor is expected",
    r"empty parameter list": "it has no parameter to train",
    r"empty\(\).*argument": "a size is not a whole number",
    r"empty|size 0|no elements|non-zero size": "there is nothing in it",
    r"INTERNAL ASSERT|converge|ill-conditioned": "a number is infinite or NaN",
    r"not a Module|with an iterable": "it holds no modules",
    r"match|multipl|equal size|the same|kernel|matrix|matrices|shape|out of (range|bounds)|"
    r"least 1D|0-d|broadcast|dimension|argument \d+ is":
        "the sizes do not fit together",
}


def _looked_up(function: Callable, argument: str) -> list[str]:
    """The keys that a function looks up by name in an argument, as in argument["key"]."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    return list(dict.fromkeys(
        node.slice.value for node in found
        if ast.unparse(node.value) == argument and isinstance(node.slice, ast.Constant)
    ))


def _reason(function: Callable, error: Exception, given: dict) -> str:
    said = f"{type(error).__name__}: {error}"
    own = _weight(given.get("self"))
    for key, value in given.items():
        if isinstance(error, KeyError) and isinstance(value, Mapping):
            first = f"only {', '.join(map(repr, [*value][:4]))}..." if value else "it is empty"
            missing = [name for name in _looked_up(function, key) if name not in value]
            lacks = ", ".join(map(repr, missing or error.args))
            return f" ({key} has no {lacks}: {first})"
        if not isinstance(value, Tensor):
            continue
        if not value.numel():
            return f" (there is nothing in {key})"
        if value.is_floating_point() and re.search("dtype|scalar type", said):
            own = value if own is None else own
            if value.dtype != own.dtype:
                return f" ({key} is not of {own.dtype}, as the others are: use .to({own.dtype}))"
    for pattern, why in REASONS.items():
        if found := re.search(pattern, said, re.IGNORECASE):
            return f" ({re.sub(r'^a (?=[aeioAEIO])', 'an ', found.expand(why))})"
    said = str(error).partition("\n")[0][:120]
    return f' (the cause: "{said}")' if said else " (the cause)"


def _expected(function: Callable, name: str, given: dict) -> str:
    """What the documentation says about the arguments, or else what the signature does."""
    if about := _described(function, given):
        return " ".join(about)[:300]
    known = hints(function)
    takes = ", ".join(
        f"{key}: {words(known[key])}" if key in known else key
        for key in given if key != "self"
    )
    return f"{name}({takes}). {_sentences(function)[0]}"[:300].rstrip()


def _described(function: Callable, arguments: Iterable[str]) -> list[str]:
    """The sentences of a function's documentation about these arguments."""
    named = re.compile(rf"\b({'|'.join(arguments)})\b.{{0,40}}: ")
    return [sentence for sentence in _sentences(function) if named.search(sentence)]


def _sentences(function: Callable) -> list[str]:
    """Its documentation, cut up where a sentence ends, or at a semicolon before `name: `."""
    ends = r"(?<=\.)|(?<=\.\))|(?<=;)(?= [^.:;]{0,60}: )"
    return re.split(rf"(?:{ends}) (?=[^()]*(?:\(|$))", documentation(function))
