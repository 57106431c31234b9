"""What a type cannot express: each check names what was given, what was expected, what to do."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from transformer_lib.guards.values import describe, fits, has_visible_text, hints, words


def require_mask(mask: Tensor | None, shape: tuple[int, int, int, int]) -> None:
    """Raise ValueError or TypeError unless the mask is bool and can be broadcast to this shape,
    (B, n_heads, T_query, T_key), in only one way.
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
    misread = len(given) == 3 and given[0] > 1  # as heads, where the batch was meant
    if misread or (len(given) == 2 and 1 < batch == shape[2] == given[0]):
        raise ValueError(
            f"mask has shape {given}, and its first axis could be the batch or another: expected "
            f"(batch, n_heads, T_query, T_key), here {shape}, with 1 where a mask is the same for "
            "all, as in mask[:, None, None] for (batch, T_key)."
        )
    fits = all(m in (1, n) for m, n in zip(given[::-1], shape[::-1], strict=False))
    if len(given) not in (2, 3, 4) or not fits:
        raise ValueError(
            f"mask has shape {given}; expected one that can be broadcast to {shape}: (batch, "
            "n_heads, T_query, T_key), with 1 where a mask is the same for all."
        )


def require_no_zeros_and_ones(mask: Tensor) -> None:
    """Raise ValueError for a float mask that was meant to say "may attend" with a 1.

    Added to the scores, it would hide nothing.
    """
    if mask.device.type != "meta" and bool(((mask == 0) | (mask == 1)).all() & (mask == 1).any()):
        raise ValueError(
            f"mask has dtype {mask.dtype} and holds only 0 and 1: a float mask is added to the "
            "scores, so these would hide nothing; expected bool, True = may attend: use "
            "mask.bool()."
        )


def returns_alike(forward: Callable) -> Callable:
    """The `forward(self, x, sublayer)` of a residual, with a check of what the sublayer returns: a
    single row for all tokens, say, would be broadcast onto x.
    """
    @functools.wraps(forward)
    def looking(self, x, sublayer):
        def looked_at(y):
            given = sublayer(y)
            alike = isinstance(given, Tensor) and given.shape == y.shape
            if not (alike and given.is_floating_point()):
                raise ValueError(
                    f"the sublayer returned {describe(given)}; expected a tensor {tuple(y.shape)} "
                    "of floats, like the one it was given."
                )
            return given

        return forward(self, x, looked_at)

    return looking


def require_types(config) -> None:
    """Raise TypeError, naming the field, for a value of another type than a dataclass declares.

    A whole number may take the place of a float, a list that of a tuple.
    """
    for name, kind in hints(type(config)).items():
        value = getattr(config, name)
        if not fits(value, kind):
            raise TypeError(f"{name} is {describe(value)}; it must be {words(kind)}.")
        if isinstance(value, float) and value != value:
            raise ValueError(f"{name} is nan; it must be a number.")


def require_pairs(pairs: Mapping, known: Iterable[str], name: str = "pairs") -> None:
    """Raise ValueError or TypeError unless these are lists of (source, target) by split."""
    if not isinstance(pairs, Mapping):
        raise TypeError(
            f"{name} is {describe(pairs)}; expected a dictionary from split to a list of (source, "
            "target), as data.load_parallel gives it."
        )
    if unknown := [split for split in pairs if split not in known]:
        raise ValueError(
            f"{name} has a split {unknown[0]!r}; expected only {', '.join(known)}."
        )
    for split, rows in pairs.items():
        if not fits(rows, Sequence[object]):
            raise TypeError(
                f"{name}[{split!r}] is {describe(rows)}; expected a list of (source, target), two "
                "strings each."
            )
        for number, row in enumerate(rows):
            if not isinstance(row, (tuple, list)) or [*map(type, row)] != [str, str]:
                raise ValueError(
                    f"{split} pair {number} is {describe(row)}; expected (source, target), two "
                    "strings."
                )
            if not all(map(has_visible_text, row)):
                raise ValueError(
                    f"{split} pair {number} is {describe(row)}: one side holds no visible text; "
                    "leave the pair out."
                )
            try:
                row[0].encode(), row[1].encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"{split} pair {number} holds half of a surrogate pair, which is not a "
                    f"character: {describe(row)}; read the text as UTF-8."
                ) from None


def require_regular(path: str | Path) -> None:
    """Raise ValueError for something that exists but isn't a file or folder: reading a pipe that
    nobody writes to, say, would never end.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} is not a regular file: copy its content into one.")
