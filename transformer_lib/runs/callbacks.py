"""Checks of what `fit` is given, and of what the functions that it calls return."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from numbers import Real

from torch import Tensor, nn

from transformer_lib.guards import describe
from transformer_lib.guards.calls import called


def require_loss(given: Tensor) -> Tensor:
    """The loss that is given; raises ValueError or TypeError unless it's a number with a gradient.
    """
    tensor = isinstance(given, Tensor)
    if not tensor or given.numel() != 1 or given.is_complex() or not given.requires_grad:
        without = " without a gradient" if tensor and not given.requires_grad else ""
        raise (ValueError if tensor else TypeError)(
            f"loss returned {describe(given)}{without}; expected a tensor with one real number, "
            "computed from parameters that are trained: without .item(), .detach() and "
            "torch.no_grad(), and with .mean() where there are several numbers."
        )
    return given


def checked(model: nn.Module, loss: Callable, rate: Callable) -> tuple[Callable, Callable]:
    """The two functions that `fit` calls at every update, with a check of what they return.

    Raises ValueError or TypeError for a model without settings, or with nothing to train.
    """
    if not dataclasses.is_dataclass(getattr(model, "config", None)):
        raise TypeError(
            f"model is {describe(model)} without a config; expected a model whose settings, a "
            "dataclass such as ModelConfig, are in model.config."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            "model has no parameter to train, since all have requires_grad=False; expected one "
            "with requires_grad=True."
        )

    loss = called("loss", loss, "loss(model, batch), as translation_loss is for a Transformer")
    rate = called("rate", rate, "rate(config, step, d_model), as schedule.learning_rate is")

    def checked_rate(*given) -> float:
        found = rate(*given)
        one = isinstance(found, Real) or (isinstance(found, Tensor) and found.numel() == 1)
        if not one or isinstance(found, bool) or not 0 <= found < math.inf:
            raise ValueError(
                f"rate returned {describe(found)} for step {given[1]}; expected the learning rate "
                "of this update, a finite number, 0 or more."
            )
        return float(found)

    return lambda *given: require_loss(loss(*given)).reshape(()), checked_rate


def require_measures(found: dict) -> dict:
    """What `validate` returned, as plain numbers. Raises ValueError or TypeError for others."""
    if not isinstance(found, Mapping):
        raise TypeError(
            f"validate returned {describe(found)}; expected a dictionary from names to numbers, "
            "such as {'accuracy': 0.5}."
        )
    plain = {name: value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
             for name, value in found.items()}
    for name, value in plain.items():
        if not isinstance(name, str) or name in ("step", "averaged"):
            raise ValueError(
                f"validate returned something under the name {name!r}; expected a string other "
                "than 'step' and 'averaged', which the log uses itself."
            )
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(
                f"validate returned {describe(found[name])} as {name!r}; expected a number: take "
                "its mean, or leave it out."
            )
    return {name: value if isinstance(value, int) else float(value)
            for name, value in plain.items()}


def require_json(name: str, given: object) -> None:
    """Raise TypeError or ValueError for what cannot be kept as JSON."""
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(
            f"{name} is {describe(given)}, which cannot be kept as JSON; expected "
            "dictionaries, lists, strings, finite numbers, True, False and None."
        ) from None
