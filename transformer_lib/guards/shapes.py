"""What a docstring says about shapes, `q, k: (B, H, T, M); v: (B, H, T, K)`, against tensors."""

import functools
import inspect
import re

from torch import Tensor

SHAPE = r"\((?:\.\.\.|[\w*/+ -]+)?(?:, [\w*/+ -]+)*,?\)"
NAMED = re.compile(rf"((?:\w+, )*\w+): (?:[a-z]+ )?({SHAPE}(?: or {SHAPE})*)")


def documentation(function) -> str:
    """The docstring that describes a function's arguments, in one line: __init__'s is the class's.

    One that is inherited, as torch.nn.Module's may be, is about something else: "".
    """
    owner, _, name = function.__qualname__.rpartition(".")
    about = function.__globals__.get(owner) if name == "__init__" else function
    return " ".join((about and about.__doc__ or "").split())


@functools.cache
def shapes(function) -> dict[str, tuple[str, list[str]]]:
    """Parameter -> those that it is named with, and the shapes that it may have, as written."""
    owner, _, name = function.__qualname__.rpartition(".")
    owner = function.__globals__.get(owner)
    text = documentation(function)
    known = inspect.signature(function).parameters
    found = {
        name: (names, re.findall(SHAPE, forms))
        for names, forms in NAMED.findall(text) for name in names.split(", ") if name in known
    }
    other = re.search(r"(?:[Aa]s|as in|[Aa]s for|of) `(\w+)`", text)  # whose arguments it takes
    others = [place.get(other and other[1]) for place in (function.__globals__, vars(owner or int))]
    others += [vars(base).get(name) for base in getattr(owner, "__mro__", ())[1:]]  # it overrides
    for theirs in filter(inspect.isfunction, others if not found else ()):
        theirs = shapes(inspect.unwrap(theirs))
        found = found or {key: forms for key, forms in theirs.items() if key in known}
    return found


def misfit(function, given: dict) -> str | None:
    """What is expected, if two tensors differ in a size that one letter names for both, or in how
    many axes more or fewer they have than is written: all may leave the batch out, or none.
    """
    tensors = {name: forms for name, forms in shapes(function).items()
               if isinstance(given.get(name), Tensor)}
    known: dict[str, tuple] = {}  # letter, or names of one shape -> size, and who has it
    for name, (names, forms) in tensors.items():
        for form in forms:
            sizes = _sizes(form, given[name].shape)
            if sizes is not None and "," in names and len(forms) == 1:
                sizes[names] = tuple(given[name].shape)
            if sizes and name == "memory":  # several rows may read one row of it
                sizes.pop("B", None)
            if sizes is not None and all(known.get(x, (n,))[0] == n for x, n in sizes.items()):
                known = {letter: (n, name) for letter, n in sizes.items()} | known
                break
        else:
            letters = [x for x in re.findall(r"[A-Z]\w*", " ".join(forms)) if x in known]
            told = [f"{x} = {known[x][0]} as in {known[x][1]}" for x in dict.fromkeys(letters)]
            if told:  # that one could be the wrong one
                told[-1] += f": {' or '.join(tensors[known[letters[-1]][1]][1])}"
            alike = ["all alike"] if len(tensors) > 1 else []
            return ", ".join([f"{names}: {' or '.join(forms)}", *(told or alike)])
    return None


def _sizes(form: str, shape: tuple[int, ...]) -> dict[str, int] | None:
    """The size of each letter of a form; "" is how many more axes there are than it has.

    None if an axis is not as long as a number says, or there are too few after "...".
    """
    axes = [axis for axis in re.split(r",\s*", form.strip("()")) if axis]
    if axes[:1] == ["..."] and len(shape) < len(axes) - 1:
        return None
    sizes = {} if axes[:1] == ["..."] else {"": len(shape) - len(axes)}
    pairs = list(zip(reversed(axes), reversed(shape), strict=False))
    if any(axis.isdigit() and int(axis) != n for axis, n in pairs):
        return None
    for axis, n in pairs:
        times, letter = re.fullmatch(r"(\d*)([A-Z]\w*)?.*", axis).groups()
        if letter and times and n % int(times):
            return None
        if letter and axis == times + letter:
            sizes[letter] = n // int(times or 1)
    return sizes
