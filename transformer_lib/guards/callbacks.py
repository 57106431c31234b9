"""What a caller's own functions return, checked where the library calls them."""

import functools
import inspect
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lib.guards.values import describe, fits


def _of_rule(found, i, j) -> bool:
    places = torch.broadcast_shapes(i.shape, j.shape)
    return found.dtype == torch.bool and torch.broadcast_shapes(found.shape, places) == places


def are_rules(*rules: Callable) -> bool | str:
    """Whether each says about one pair of places what a rule may say; else what the first wrong one
    returned.

    Checked once, when rules are put together: what compiles a rule must find nothing else in it.
    """
    pair = torch.zeros(2, 1, 1).long()
    for rule in rules:
        found = rule(*pair)
        if not isinstance(found, Tensor) or not _of_rule(found, *pair):
            return f"rule returned {describe(found)}"
    return True


def _of_step(model, found, ids, state) -> bool | str:
    shape = len(ids), model.config.vocab_size
    if found.shape == shape and found.isnan().any():
        return "in which there are NaNs"
    return found.shape == shape and found.is_floating_point()


def _of_top_tokens(model, found, ids, state, k, *_) -> bool:
    values, tokens = found
    return values.shape == tokens.shape == (len(ids), k) and not values.isnan().any() and (
        tokens.dtype == torch.int64)


def _of_draft(_, found, ids, n) -> bool:
    guesses, q = found
    return fits(guesses, list[int]) and len(guesses) == n and (
        q is None or n == 0 or q.dim() == 2 and len(q) == n)


def _of_keep(found, logits, guesses, q) -> bool:
    return fits(found, tuple[int, int]) and 0 <= found[0] <= len(guesses)


def _texts(found, texts) -> bool:
    return fits(found, list[str]) and len(found) == len(texts)


def _cache(found) -> bool:
    return hasattr(found, "append") and hasattr(found, "select")


def _module(found, *_) -> bool:
    return isinstance(found, nn.Module)


# (functions, the argument, whether it may return this when given that, what was expected).
RETURNS = (
    ("as_mask plan_blocks Links", "rule", _of_rule,
     "a bool tensor, True = may attend, of a size that fits the places i and j"),
    ("Links", "rules", _of_rule,
     "a bool tensor, True = may attend, of a size that fits the places i and j"),
    ("greedy_decode sample beam_search n_best", "model.step", _of_step,
     "logits (B, V): a row of floats for each row of ids, a finite number or -inf for each token "
     "of the vocabulary"),
    ("greedy_decode beam_search n_best", "model.top_tokens", _of_top_tokens,
     "two tensors (B, k): the logits or log-probabilities of the k likeliest tokens, none of them "
     "NaN, and their ids"),
    ("speculative_decode", "draft.propose", _of_draft,
     "(guesses, q): as many ids as it was asked for, in a list, and the distributions (n, V) that "
     "they were drawn from, or None if each was certain"),
    ("speculative_decode", "keep", _of_keep,
     "(how many guesses stay, the token that follows), two whole numbers"),
    ("train", "change", lambda found, images: found.is_floating_point() and found.dim() == 4
     and len(found) == len(images),
     "as many pictures as it was given, a float tensor (N, C, height, width)"),
    ("policy_gradient_loss", "reward", lambda found, ids: found.shape == (len(ids),)
     and found.dtype != torch.bool and bool(found.isfinite().all()),
     "a tensor (n,) of finite rewards, one for each text"),
    ("run_card Watch", "translate", _texts, "a list of strings, one for each text"),
    ("translate_streams", "decode", lambda found, model, ids, *_: found.dim() == 2
     and len(found) == len(ids), "ids (B, L), a tensor, as greedy_decode gives them"),
    ("learn", "after", lambda found, update: found is None or isinstance(found, (bool, np.bool_))
     or found.numel() == 1, "True to stop, or else None or False"),
    ("DamagedBatches", "damage", lambda found, ids, rng: fits(found, tuple[list[int], list[int]]),
     "two lists of ids, what is read and what is to be written"),
    ("decoder_cache", "own", _cache, "a cache, as KeyValueCache is"),
    ("decoder_cache", "memory", _cache, "a cache, as KeyValueCache is"),
    ("convert", "kind", _module, "an attention, such as a MultiHeadAttention"),
    ("add_gates Agent", "gate", _module, "a gate, such as a GruGate"),
)
LOOKED_AT = {name for names, *_ in RETURNS for name in names.split()}


def with_returns_looked_at(function: str, given: dict) -> dict:
    """The arguments, with those of RETURNS wrapped: an error says if one returns something else."""
    given = dict(given)
    for names, path, holds, expected in RETURNS:
        argument, _, method = path.partition(".")
        if function not in names.split() or argument not in given:
            continue
        told, one = (f"{function}: {path}", holds, expected), given[argument]
        if method and (type(one).__module__.startswith("transformer_lib.models")
                       or not hasattr(one, method)):
            continue
        if method:
            told = (told[0], functools.partial(holds, one), expected)
            given[argument] = _Looked(one, method, _looking(getattr(one, method), *told))
        elif isinstance(one, tuple):
            given[argument] = tuple(_looking(each, *told) for each in one)
        else:
            given[argument] = _looking(one, *told)
    return given


class _Looked:
    """Stands for what was handed in; one of its methods is looked at."""

    def __init__(self, one: object, method: str, looking: Callable):
        vars(self).update({"_one": one, method: looking})

    def __getattr__(self, name: str):
        return getattr(vars(self)["_one"], name)


def _looking(function: Callable, name: str, holds: Callable, expected: str) -> Callable:
    def looking(*given, **named):
        found = function(*given, **named)
        try:
            held = holds(found, *given)
        except Exception:  # of another kind altogether
            held = False
        if held is not True and (not held or isinstance(held, str)):
            what = f"{describe(found)}{f' {held}' if held else ''}"
            kind = TypeError if found is None or not isinstance(found, Tensor) else ValueError
            raise kind(f"{name} returned {what}; expected {expected}.")
        return found

    named = inspect.isroutine(function)
    return functools.update_wrapper(looking, function, updated=()) if named else looking
