"""What a docstring says of shapes, `q, k: (B, H, T, M); v: (B, H, T, K)`, held against tensors."""

import functools
import inspect
import re

from torch import Tensor

SHAPE = r"\((?:\.\.\.|[\w*/+ -]+)?(?:, [\w*/+ -]+)*,?\)"
NAMED = re.compile(rf"((?:\w+, )*\w+): (?:[a-z]+ )?({SHAPE}(?: or {SHAPE})*)")


@functools.cache
def shapes(function) -> dict[str, list[str]]:
    """Parameter -> the shapes that it may have, as the docstring writes them."""
    text = " ".join((inspect.getdoc(function) or "").split())
    known = inspect.signature(function).parameters
    return {
        name: re.findall(SHAPE, forms)
        for names, forms in NAMED.findall(text) for name in names.split(", ") if name in known
    }


def misfit(function, given: dict) -> str | None:
    """What is expected, where two tensors differ in a size that one letter names for both; or in
    how many axes they have more or fewer than is written: a batch may be left out, by all.
    """
    tensors = {name: forms for name, forms in shapes(function).items()
               if isinstance(given.get(name), Tensor)}
    known: dict[str, tuple[int, str]] = {}  # letter -> size, and the argument that has it
    for name, forms in tensors.items() if len(tensors) > 1 else ():
        for form in forms:
            sizes = _sizes(form, given[name].shape)
            if sizes and name == "memory":  # several rows may read one row of it
                sizes.pop("B", None)
            if sizes is not None and all(known.get(x, (n,))[0] == n for x, n in sizes.items()):
                known = {letter: (n, name) for letter, n in sizes.items()} | known
                break
        else:
            letters = [x for x in re.findall(r"[A-Z]\w*", " ".join(forms)) if x in known]
            told = ", ".join(f"{x} = {known[x][0]} as in {known[x][1]}"
                             for x in dict.fromkeys(letters))
            return f"{name}: {' or '.join(forms)}" + (f" with {told}" if told else "")
    return None


def _sizes(form: str, shape: tuple[int, ...]) -> dict[str, int] | None:
    """The size of each letter of a form; "" is how many axes there are more than it writes.

    None where an axis is not as long as a number says.
    """
    axes = [axis for axis in re.split(r",\s*", form.strip("()")) if axis]
    sizes = {} if axes[:1] == ["..."] else {"": len(shape) - len(axes)}
    pairs = list(zip(reversed(axes), reversed(shape), strict=False))
    if any(axis.isdigit() and int(axis) != n for axis, n in pairs):
        return None
    return sizes | {axis: n for axis, n in pairs if re.fullmatch(r"[A-Z]\w*", axis)}
