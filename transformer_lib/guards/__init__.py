"""What was wrong with an argument: what was given, what was expected, in a sentence.

`guard(__name__)`, the last line of a module, stands between its public names and whoever calls them
from outside the library. It compares arguments with the types that the signature names and tensors
with the shapes that the docstring names, `q, k: (B, H, T, M)`, so that nothing is broadcast by
accident. Where the code fails on one all the same, in torch's words or Python's, it says which
arguments those were, what the matter is, and what the documentation expects. Calls within the
library pass at once, so that no layer pays for it. The other names here are the checks that
neither can express.
"""

from transformer_lib.guards.calls import guard
from transformer_lib.guards.checks import (
    require_mask,
    require_no_zeros_and_ones,
    require_pairs,
    require_types,
    returns_alike,
)
from transformer_lib.guards.limits import choices, require_limits, within
from transformer_lib.guards.values import describe, has_visible_text

__all__ = [
    "choices",
    "describe",
    "guard",
    "has_visible_text",
    "require_limits",
    "require_mask",
    "require_no_zeros_and_ones",
    "require_pairs",
    "require_types",
    "returns_alike",
    "within",
]
