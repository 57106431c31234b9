"""The position of each token, which attention on its own ignores (sec. 3.5).

There are two ways to supply it. SinusoidalEncoding and LearnedEncoding add a vector to the
embedding, once, before the first layer. RotaryEmbedding and AlibiBias act inside every
self-attention: the first turns queries and keys by an angle that grows with the position, and the
second lowers scores as the distance grows.

A new scheme is a subclass of PositionalScheme and a line in SCHEMES.
"""

import math

import torch
from torch import Tensor, nn


class PositionalScheme(nn.Module):
    """The three places where a model can take in the position of a token.

    A scheme overrides the hooks that it uses. The base class, the scheme "none", uses none of them.
    """

    @classmethod
    def build(cls, config) -> "PositionalScheme":
        """Make the scheme for a model of these sizes."""
        return cls()

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        """Before the first layer: x (B, T, D), the first token at position `start` -> (B, T, D)."""
        return x

    def turn(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """In self-attention: q: (B, H, T, K), k: (B, H_kv, T_key, K) -> the same shapes."""
        return q, k

    def bias(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor | None:
        """What to add to each self-attention's scores: (1, H, n_queries, n_keys), or None."""
        return None


class SinusoidalEncoding(PositionalScheme):
    """Fixed sines and cosines of geometrically growing wavelength, added to x (sec. 3.5).

    Feature 2i of position p holds sin(p / 10000^(2i / d_model)), feature 2i + 1 the cosine.
    The table is computed, not learned, and not stored with the weights.
    """

    def __init__(self, d_model: int, max_len: int = 256):
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, d_model), persistent=False)

    @classmethod
    def build(cls, config):
        return cls(config.d_model, config.max_len)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, T, D), whose first token is at position `start` -> (B, T, D)."""
        return x + positions_of(self.table, x.size(1), start)

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        return self(x, start)


def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    """The encoding of positions 0..max_len-1: (max_len, d_model) float32."""
    if d_model % 2:
        raise ValueError(f"d_model {d_model} is odd: sines and cosines need an even one.")
    step = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
    # 10000^(-2i/d_model) written as exp of a log; float64 keeps large angles exact.
    frequency = torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model)
    )  # (d_model / 2,)
    angle = step * frequency  # (max_len, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class LearnedEncoding(PositionalScheme):
    """One trained vector per position, added to x (Gehring et al. 2017; table 3 row E)."""

    def __init__(self, d_model: int, max_len: int = 256):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        # The size of an embedding after its sqrt(d_model) factor is 1; positions start smaller.
        nn.init.normal_(self.table, std=0.02)

    @classmethod
    def build(cls, config):
        return cls(config.d_model, config.max_len)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, T, D), whose first token is at position `start` -> (B, T, D)."""
        return x + positions_of(self.table, x.size(1), start)

    def add(self, x: Tensor, start: int = 0) -> Tensor:
        return self(x, start)


def positions_of(table: Tensor, length: int, start: int) -> Tensor:
    """Return rows start..start+length-1 of a table; raise a ValueError if it is too short."""
    if start + length > table.size(0):
        raise ValueError(
            f"position {start + length - 1} is past max_len {table.size(0)}: shorten the sequence, "
            "or build the model with a larger max_len."
        )
    return table[start : start + length]


class RotaryEmbedding(PositionalScheme):
    """Turn each pair of features of queries and keys by position * frequency (Su et al. 2021).

    The dot product of a query at position m and a key at position n then depends on m and n only
    through m - n: a relative position, without a table. Values are not changed.
    """

    def __init__(self, d_head: int, base: float = 10000.0):
        super().__init__()
        if d_head % 2:
            raise ValueError(
                f"rotary positions turn pairs of features: d_head {d_head} must be even."
            )
        self.d_head, self.base = d_head, base

    @classmethod
    def build(cls, config):
        return cls(config.d_model // config.n_heads, config.rotary_base)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, H, T, K) queries or keys, the first at position `start` -> (B, H, T, K)."""
        # At least float32: in half precision neighbouring positions would share an angle.
        exact = {"dtype": torch.promote_types(x.dtype, torch.float32), "device": x.device}
        frequency = self.base ** (-torch.arange(0, self.d_head, 2, **exact) / self.d_head)
        angle = torch.arange(start, start + x.size(-2), **exact)[:, None] * frequency  # (T, K / 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]  # (B, H, T, K / 2) each
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
        return turned.flatten(-2)  # (B, H, T, K / 2, 2) -> (B, H, T, K)

    def turn(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        return self(q, start), self(k, start)


class AlibiBias(PositionalScheme):
    """Lower each attention score by slope * distance (Press et al. 2022).

    Head h of n_heads has slope 2^(-8 h / n_heads), h = 1..n_heads: some heads look close by and
    others look further away. Nothing is learned, and there is no maximum length. In the encoder,
    which looks both ways, the distance is |i - j|.
    """

    def __init__(self, n_heads: int):
        super().__init__()
        slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads)
        self.register_buffer("slopes", slopes, persistent=False)  # (H,)

    @classmethod
    def build(cls, config):
        return cls(config.n_heads)

    def forward(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor:
        """Bias to add to the scores: (1, H, n_queries, n_keys); query 0 is at `start`."""
        query = torch.arange(start, start + n_queries, device=self.slopes.device)
        key = torch.arange(n_keys, device=self.slopes.device)
        distance = (query[:, None] - key[None, :]).abs()  # (Tq, Tk)
        return (-self.slopes[:, None, None] * distance)[None]  # (1, H, Tq, Tk)

    def bias(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor:
        return self(n_queries, n_keys, start)


# The one list of the names that ModelConfig.positional may take.
SCHEMES: dict[str, type[PositionalScheme]] = {
    "sinusoidal": SinusoidalEncoding,
    "learned": LearnedEncoding,
    "rotary": RotaryEmbedding,
    "alibi": AlibiBias,
    "none": PositionalScheme,
}


def make_positions(config, *hooks: str) -> PositionalScheme:
    """The scheme named by config.positional, if it uses one of `hooks` ("add", "turn", "bias").

    Otherwise a scheme that does nothing. Raises TypeError for a scheme that overrides no hook,
    because the model would silently have no positions.
    """
    scheme = SCHEMES[config.positional]
    used = [
        hook
        for hook in ("add", "turn", "bias")
        if getattr(scheme, hook) is not getattr(PositionalScheme, hook)
    ]
    if not used and scheme is not PositionalScheme:
        raise TypeError(
            f"{scheme.__name__} ({config.positional!r}) overrides none of add, turn and bias, so "
            "the model would have no positions: override one of them."
        )
    return scheme.build(config) if set(used) & set(hooks) else PositionalScheme()
