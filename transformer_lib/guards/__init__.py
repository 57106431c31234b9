"""What was wrong with an argument: what was given and what was expected, in a sentence.

`guard` sits between the public names of a module and whoever calls them from outside the library:
`transformer_lib/_door.py` puts it there as the module is imported. It compares arguments with the
types that the signature names and tensors with the shapes that the docstring names,
`q, k: (B, H, T, M)`, so that nothing is broadcast by accident. If the code fails all the
same, in torch's words or Python's, `guard` says what the arguments were, what the trouble is, and
what the documentation expects. Calls within the library pass straight through, so that no layer
pays for it. The other names here are checks that neither types nor shapes can express.
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
