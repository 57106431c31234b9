"""Limits of a dataclass field, written next to it: `size: int = within(8, at_least=1)`."""

import dataclasses
import math
from collections.abc import Iterable

# What a parameter of this name may be, in every public function or in the one that is named.
PARAMETERS = {
    **dict.fromkeys(("d_model", "n_heads", "d_ff", "d_head", "n_classes", "max_tokens",
                     "n_state", "n_actions", "channels"), {"at_least": 1, "at_most": 10**9}),
    "patch": {"at_least": 1, "at_most": 10_000},
    "TokenEmbedding.vocab_size": {"at_least": 1, "at_most": 10**7},
    **dict.fromkeys(("SinusoidalEncoding.max_len", "LearnedEncoding.max_len",
                     "sinusoidal_table.max_len"), {"at_least": 1, "at_most": 10**7}),
    "AlibiBias.n_heads": {"at_least": 1, "at_most": 100_000},
    "causal_mask.size": {"at_least": 0, "at_most": 65_536},
    "DecoderCache.n_layers": {"at_least": 0, "at_most": 1_000},
    "orthogonalize.rounds": {"at_least": 0, "at_most": 1_000},
    **dict.fromkeys(("bootstrap.n", "paired_bootstrap.n"), {"at_least": 1, "at_most": 10**6}),
    "seed": {"at_least": 0, "below": 2**63},
    "peak_lr": {"above": 0, "below": math.inf},
    "sample.temperature": {"below": math.inf},
    "BatchNorm.momentum": {"at_least": 0, "at_most": 1},
    "for_decoding.sentences": {"at_least": 0},
    **dict.fromkeys(("rows", "inner", "columns"), {"at_least": 1, "at_most": 100_000}),
    "eps": {"at_least": 0, "below": math.inf},
    **dict.fromkeys(("base", "rotary_base"), {"above": 0, "below": math.inf}),
    **dict.fromkeys(("warmup", "at_most", "n_segments"), {"at_least": 0}),
    "start": {"at_least": 0, "at_most": 10**7},
    "learning_rate.step": {"at_least": 0},
    "cooldown.step": {"below": math.inf},
    **dict.fromkeys(("dropout", "dropout_p", "Muon.momentum"), {"at_least": 0, "below": 1}),
}


def require_parameter(function: str, name: str, given) -> None:
    """Raise ValueError for a number outside what PARAMETERS says of this name; others pass."""
    limits = PARAMETERS.get(f"{function}.{name}", PARAMETERS.get(name))
    if limits and isinstance(given, (int, float)) and not _inside(given, limits):
        raise ValueError(f"{function}: {name} is {given!r}; it must be {_in_words(limits)}.")


def within(
    default=dataclasses.MISSING,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    one_of: Iterable[str] = (),
):
    """A field of a dataclass with its limits, which `require_limits` checks and `--help` reads."""
    limits = {"at_least": at_least, "above": above, "at_most": at_most, "below": below}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    return dataclasses.field(default=default, metadata=limits | {"one_of": one_of})


def choices(field: dataclasses.Field) -> tuple[str, ...]:
    """The values that a field may have, where they can be listed."""
    return tuple(field.metadata.get("one_of", ()))  # as they are now: a scheme may be added


def require_limits(config) -> None:
    """Raise ValueError, naming the field, for a value outside the limits that its field declares.

    A field that may be None is not limited then; each number of a tuple is.
    """
    for field in dataclasses.fields(config):
        given, known = getattr(config, field.name), choices(field)
        if known and given not in known:
            raise ValueError(f"{field.name} is {given!r}; it must be one of {known}.")
        numbers = given if isinstance(given, tuple) else (given,)
        if given is not None and not all(_inside(x, field.metadata) for x in numbers):
            each = f"{len(numbers)} numbers, each " if isinstance(given, tuple) else ""
            limits = _in_words(field.metadata)
            raise ValueError(f"{field.name} is {given!r}; it must be {each}{limits}.")


def _inside(x, limits) -> bool:
    return (
        x >= limits.get("at_least", x)
        and x <= limits.get("at_most", x)
        and ("above" not in limits or x > limits["above"])
        and ("below" not in limits or x < limits["below"])
    )


def _in_words(limits) -> str:
    """ "at least 1 and at most 1,000", for example."""
    words = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
    return " and ".join(
        f"{words[name]} {limits[name]:,}" for name in words if name in limits
    ).replace("below inf", "finite")
