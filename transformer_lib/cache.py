"""What decoding keeps between two steps: the keys and values of tokens already read.

With the causal mask, earlier tokens never look at later ones, so what was computed for them stays
right. One KeyValueCache serves one attention, of the target to itself or to the source.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.guards import guard


class KeyValueCache:
    """Keys and values of the tokens seen so far, so that a decoding step computes only what is new.

    keys, values: (B, H, length, K) or None.
    """

    def __init__(self):
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return 0 if self.keys is None else self.keys.size(2)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """keys: (B, H, T_new, K), values: (B, H, T_new, K_v) -> all, (B, H, length, ...)."""
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep the batch rows named by `rows` (integers, repeats allowed), in that order."""
        if self.keys is not None:
            self.keys = self.keys.index_select(0, rows)
            self.values = self.values.index_select(0, rows)


class LayerCache:
    """What one decoder layer keeps: `own`, of the target so far, grows with every step; `memory`,
    of the source, is filled at the first step and never changes.
    """

    def __init__(self):
        self.own = KeyValueCache()
        self.memory = KeyValueCache()


class DecoderCache:
    """A LayerCache for each decoder layer; pass the same one to every decoding step."""

    def __init__(self, n_layers: int):
        self.layers = [LayerCache() for _ in range(n_layers)]

    @property
    def length(self) -> int:
        """Target tokens seen so far."""
        return self.layers[0].own.length if self.layers else 0

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, rows of the target's keys and values, and of the memory's these
        sentences (None: all of them).
        """
        for layer in self.layers:
            layer.own.select(rows)
            if sentences is not None:
                layer.memory.select(sentences)


@dataclass
class DecodingState:
    """Where a decoding stands, for a batch: what the next `step` of a model needs besides new ids.

    cache: None if each step computes the whole prefix again. memory: (B, S, D), the encoded
    sources, with their mask; None in a decoder-only model.
    """

    cache: DecoderCache | None
    memory: Tensor | None = None
    src_mask: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens of each prefix the cache holds: the next step gets those after them."""
        return 0 if self.cache is None else self.cache.length

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, and these sentences that they translate (None: all of them)."""
        if self.cache is not None:
            self.cache.select(rows, sentences)
        if self.memory is not None and sentences is not None:
            self.memory, self.src_mask = self.memory[sentences], self.src_mask[sentences]


guard(__name__)
