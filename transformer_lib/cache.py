"""The decoding cache: the keys and values of the tokens that have already been read.

With the causal mask, earlier tokens never look at later ones, so their keys and values stay valid.
Each attention layer, whether it reads the target or the source, has a KeyValueCache of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values of the tokens seen so far, so that a step computes only those of new tokens.

    keys, values: (B, H, length, K) or None.
    """

    def __init__(self):
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of tokens in the cache."""
        return 0 if self.keys is None else self.keys.size(2)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add keys: (B, H, T_new, K) and values: (B, H, T_new, K_v); return all of them."""
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
    """The two caches of a decoder layer: `own` holds the target so far and grows with every step;
    `memory` holds the source, is filled at the first step and never changes.
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
        """The number of target tokens seen so far."""
        return self.layers[0].own.length if self.layers else 0

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, which are rows of the target's keys and values, and these
        sentences, which are rows of the memory's (None: all of them).
        """
        for layer in self.layers:
            layer.own.select(rows)
            if sentences is not None:
                layer.memory.select(sentences)


@dataclass
class DecodingState:
    """The state of decoding a batch: everything that a model's next `step` needs besides new ids.

    cache: None if each step computes the whole prefix again. memory: (B, S, D), the encoded
    sources, with their mask; None in a decoder-only model.
    """

    cache: DecoderCache | None
    memory: Tensor | None = None
    src_mask: Tensor | None = None

    @property
    def length(self) -> int:
        """How many tokens of each prefix are in the cache: the next step reads only the rest."""
        return 0 if self.cache is None else self.cache.length

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses and the sentences that they translate (None: all sentences)."""
        if self.cache is not None:
            self.cache.select(rows, sentences)
        if self.memory is not None and sentences is not None:
            self.memory, self.src_mask = self.memory[sentences], self.src_mask[sentences]
