"""Smaller caches for decoding: fewer heads, one latent vector, a window, or fewer bits.

`LatentAttention` caches one short vector per token and makes keys and values from it.
`WindowAttention` with its `WindowCache` forgets all but the first and the newest tokens,
and `QuantisedCache` rounds what it keeps. `bytes_per_token` computes the size of each from a
`BlockConfig`. `grouped` and `latent` turn a trained attention into a cheaper one, which a little
more training may repair; `fitted` loses less.
"""

import math

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond.sparse import Rule
from transformer_lib.cache import DecoderCache, KeyValueCache
from transformer_lib.config import BlockConfig
from transformer_lib.normalization import RMSNorm
from transformer_lib.positional import PositionalScheme


def bytes_per_token(
    config: BlockConfig, bits: float = 16, latent: int = 0, turned: int = 0
) -> float:
    """The bytes that a decoder caches for one token, in all its layers.

    latent, turned: as in LatentAttention; without them, the keys and values of every head are kept.
    """
    heads = config.n_kv_heads or config.n_heads
    numbers = latent + turned if latent else 2 * heads * config.d_model // config.n_heads
    return config.n_decoder_layers * numbers * bits / 8


def tokens_kept(length: int, window: int, sinks: int = 0, one_global_of: int = 0) -> float:
    """The number of tokens whose keys and values a layer keeps, averaged over the layers.

    one_global_of: one in this many layers keeps all of them; 0: none does.
    """
    near = min(length, window + sinks)
    return near + (length - near) / one_global_of if one_global_of else near


# ---- one latent vector for all heads -------------------------------------------------------------


class LatentAttention(MultiHeadAttention):
    """Keys and values of all heads are made from one short vector per token, and only that is kept
    (multi-head latent attention; DeepSeek-AI 2024, sec. 2.1).

    latent: R, the size of that vector. turned: the size of one more key, shared by all heads, which
    rotary positions turn. normalise: apply RMSNorm to the latent vector, as DeepSeek does.
    absorb: work on the latent vectors directly, without making keys and values from them.
    """

    def __init__(
        self, d_model, n_heads, dropout=0.0, bias=True, positions=None, n_kv_heads=None, *,
        latent: int, turned: int = 0, normalise: bool = False, absorb: bool = True,
    ):
        super().__init__(d_model, n_heads, dropout, bias, positions)
        self.turned, self.absorb = turned, absorb
        self.w_down = nn.Linear(d_model, latent, bias=False)
        self.norm = RMSNorm(latent) if normalise else nn.Identity()
        self.w_k = nn.Linear(latent, d_model, bias=False)  # a bias would not change the softmax
        self.w_v = nn.Linear(latent, d_model, bias=bias)
        if turned:
            self.w_q_turned = nn.Linear(d_model, n_heads * turned, bias=False)
            self.w_k_turned = nn.Linear(d_model, turned, bias=False)

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        """As in MultiHeadAttention, but values are made from the latent vectors of `key`.

        The cache keeps the latent vectors, (B, 1, T, R), and the turned keys, (B, 1, T, turned).
        """
        start = 0 if cache is None else cache.length
        q = self.split_heads(self.w_q(query))  # (B, H, T_query, K)
        if key is None:
            c, k_turned = cache.keys, cache.values
        else:
            c = self.norm(self.w_down(key))[:, None]  # (B, 1, T_key, R): one for all heads
            k_turned = self.w_k_turned(key)[:, None] if self.turned else c[..., :0]
            if self.turned:  # each token is turned once, when it arrives
                k_turned = self.positions.turn(k_turned, k_turned, start)[1]
            if cache is not None:
                c, k_turned = cache.append(c, k_turned)
        q, k, v = self.on_latents(q, c) if self.absorb else self.on_keys_and_values(q, c)
        k, v = (x.expand(-1, self.n_heads, -1, -1) for x in (k, v))
        if self.turned:
            q_turned = self.w_q_turned(query).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            q_turned = self.positions.turn(q_turned, q_turned, start)[0]
            q = torch.cat([q, q_turned], -1)
            k = torch.cat([k, k_turned.expand(-1, self.n_heads, -1, -1)], -1)
        # `attend` divides by the root of the width that it sees; the scores need K + turned.
        q = q * math.sqrt(q.size(-1) / (self.d_head + self.turned))
        output, weights = self.attend(q, k, v, mask, need_weights)
        if self.absorb:
            output = output @ self.per_head(self.w_v).mT  # (B, H, T_query, R) -> (B, H, T_query, K)
            if self.w_v.bias is not None:
                output = output + self.w_v.bias.view(self.n_heads, 1, -1)  # weights add up to 1
        return self.w_o(self.join_heads(output)), weights

    def on_keys_and_values(self, q: Tensor, c: Tensor):
        """Naive: make every head's keys and values from all the latent vectors at every step."""
        return q, self.split_heads(self.w_k(c[:, 0])), self.split_heads(self.w_v(c[:, 0]))

    def on_latents(self, q: Tensor, c: Tensor):
        """Absorbed: q (W c) = (q W) c, so project the queries down and keep the latent vectors."""
        return q @ self.per_head(self.w_k), c, c  # (B, H, T_query, R), (B, 1, T_key, R) twice

    def per_head(self, layer: nn.Linear) -> Tensor:
        """The weights of w_k or w_v, split by head: (H, K, R)."""
        return layer.weight.unflatten(0, (self.n_heads, -1))


# ---- a norm on queries and keys ------------------------------------------------------------------


class QueryKeyNorm(PositionalScheme):
    """RMSNorm on every query and key, before positions turn them (Qwen 3, after Henry et al. 2020).

    It is written as a positional scheme, because that is the hook that sees both of them.
    """

    def __init__(self, d_head: int, inner: PositionalScheme | None = None, eps: float = 1e-6):
        super().__init__()
        self.q_norm, self.k_norm = RMSNorm(d_head, eps), RMSNorm(d_head, eps)
        self.inner = inner or PositionalScheme()

    def turn(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        return self.inner.turn(self.q_norm(q), self.k_norm(k), start)

    def bias(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor | None:
        return self.inner.bias(n_queries, n_keys, start)


# ---- a window, and the first tokens --------------------------------------------------------------


def window_with_sinks(window: int, sinks: int = 0) -> Rule:
    """A rule: the newest `window` tokens, the query's own included, and the first `sinks` (Xiao et
    al. 2023)."""
    return lambda i, j: (j <= i) & ((i - j < window) | (j < sinks))


class WindowCache(KeyValueCache):
    """Keeps the first `sinks` tokens and the newest `window`, and forgets the others.

    places: (kept,), the positions of the kept tokens; `length` counts the forgotten ones, too.
    """

    def __init__(self, window: int, sinks: int = 0):
        super().__init__()
        self.window, self.sinks, self.seen = window, sinks, 0
        self.places = torch.arange(0)

    @property
    def length(self) -> int:
        return self.seen

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the kept keys and values with the new ones, and then drop those that are too old.
        """
        all_keys, all_values = super().append(keys, values)
        new = torch.arange(self.seen, self.seen + keys.size(2), device=keys.device)
        self.seen += keys.size(2)
        places = torch.cat([self.places.to(keys.device), new])
        kept = (places < self.sinks) | (places >= self.seen - self.window)
        self.places = places[kept]
        self.keys, self.values = all_keys[:, :, kept], all_values[:, :, kept]
        return all_keys, all_values


class WindowAttention(MultiHeadAttention):
    """Self-attention to the newest and the first tokens, with a cache that drops the rest."""

    def __init__(self, *sizes, window: int, sinks: int = 0):
        super().__init__(*sizes)
        self.window, self.sinks = window, sinks

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        """As in MultiHeadAttention; mask: over all tokens so far, the forgotten ones included."""
        start = 0 if cache is None else cache.length
        new = torch.arange(start, start + query.size(1), device=query.device)
        places = new if cache is None else torch.cat([cache.places.to(new.device), new])
        # The kept tokens' places and the new ones', (kept + T,), and who may read whom.
        links = window_with_sinks(self.window, self.sinks)(new[:, None], places)  # (T, kept + T)
        mask = links if mask is None else mask[..., places] & links
        return super().forward(query, key, value, mask, need_weights, cache)

    def new_cache(self) -> WindowCache:
        return WindowCache(self.window, self.sinks)


# ---- fewer bits ----------------------------------------------------------------------------------


def quantise(x: Tensor, bits: int, dim: int = -1) -> tuple[Tensor, Tensor, Tensor]:
    """Round to whole numbers from 0 to 2^bits - 1, with a step and a lowest value for each group.

    x: (..., K). The numbers along `dim` form a group and share one step. Returns codes, shaped as
    x, then steps and lowest values, with size 1 along `dim`. `codes * step + low` is off by half a
    step at most.
    """
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    step = ((high - low) / (2**bits - 1)).clamp(min=1e-8)
    return ((x - low) / step).round().to(torch.uint8), step, low


class QuantisedCache(KeyValueCache):
    """Rounds each token's keys and values, head by head, before it keeps them.

    For simplicity it stores the rounded numbers themselves; a real cache packs the codes.
    """

    def __init__(self, bits: int):
        super().__init__()
        self.bits = bits

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return super().append(self.rounded(keys), self.rounded(values))

    def rounded(self, x: Tensor) -> Tensor:
        codes, step, low = quantise(x, self.bits)
        return codes * step + low


def quantised_bits(bits: int, group: int) -> float:
    """Bits per number, with its share of the group's step and lowest value (16 bits each)."""
    return bits + 32 / group


# ---- into a model --------------------------------------------------------------------------------


def decoder_cache(model: nn.Module, own=KeyValueCache, memory=KeyValueCache) -> DecoderCache:
    """Make an empty cache of these kinds for each layer; a WindowAttention brings its own."""
    cache = DecoderCache(model.config.n_decoder_layers)
    for layer, kept in zip(model.decoder.layers, cache.layers, strict=True):
        kept.own = getattr(layer.self_attention, "new_cache", own)()
        kept.memory = memory()
    return cache


def grouped(old: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """Convert to attention with fewer heads of keys and values, each the mean of its group's heads
    (Ainslie et al. 2023, sec. 2.1)."""
    bias = old.w_q.bias is not None
    new = MultiHeadAttention(
        old.d_model, old.n_heads, old.dropout, bias, old.positions, n_kv_heads
    )
    new.w_q, new.w_o = old.w_q, old.w_o
    with torch.no_grad():
        for mine, theirs in ((new.w_k, old.w_k), (new.w_v, old.w_v)):
            for own, other in zip(mine.parameters(), theirs.parameters(), strict=True):
                heads = other.unflatten(0, (n_kv_heads, -1, old.d_head))  # (G, H / G, K, ...)
                own.copy_(heads.mean(1).flatten(0, 1))
    return new


def truncated_svd(weight: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Find the product up @ down of this rank that is closest to a map, (..., N, D).

    Returns up, (..., N, rank), and down, (..., rank, D). From rank min(N, D) on, nothing is lost.
    """
    u, s, v = torch.linalg.svd(weight.double(), full_matrices=False)
    root = s[..., :rank].sqrt()
    up, down = u[..., :rank] * root[..., None, :], root[..., :, None] * v[..., :rank, :]
    return up.float(), down.float()


def require_no_positions(old: MultiHeadAttention) -> None:
    """Raise ValueError if the attention itself adds the positions, as rotary positions do."""
    kind = type(old.positions)
    if kind.turn is not PositionalScheme.turn or kind.bias is not PositionalScheme.bias:
        raise ValueError(
            f"this attention has a {kind.__name__}, by which a score depends on where the tokens "
            "stand: take a model whose positions are in its embeddings, or `grouped`."
        )


def latent(old: MultiHeadAttention, size: int, absorb: bool = True) -> LatentAttention:
    """Convert to attention with a latent vector of `size` numbers: the weights of keys and values,
    stacked, become the closest product of that rank. From size d_model on, nothing is lost.

    Raises ValueError for positions that the attention itself adds: keys that rotary positions turn
    depend on the position, and cannot be made this way.
    """
    require_no_positions(old)
    bias = old.w_q.bias is not None
    new = LatentAttention(
        old.d_model, old.n_heads, old.dropout, bias, None, latent=size, absorb=absorb
    )
    new.w_q, new.w_o = old.w_q, old.w_o
    with torch.no_grad():
        up, down = truncated_svd(torch.cat([old.w_k.weight, old.w_v.weight]), size)
        new.w_down.weight.copy_(down)
        new.w_k.weight.copy_(up[: old.d_model])
        new.w_v.weight.copy_(up[old.d_model :])
        if bias:
            new.w_v.bias.copy_(old.w_v.bias)
    return new


def fitted(old: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """Convert to attention with fewer heads of keys and values, each fitted to its whole group.

    Every head of a group is a map (K, K) of the shared head. The keys' maps go into the queries and
    the values' into the output, so the heads' own keys and values are never made. With all heads
    nothing is lost.
    Raises ValueError for positions that the attention itself adds, as `latent` does.
    """
    require_no_positions(old)
    bias, heads = old.w_q.bias is not None, (old.n_heads, old.d_head)
    new = MultiHeadAttention(old.d_model, old.n_heads, old.dropout, bias, None, n_kv_heads)
    with torch.no_grad():
        ups = []
        for mine, theirs in ((new.w_k, old.w_k), (new.w_v, old.w_v)):
            groups = theirs.weight.unflatten(0, (n_kv_heads, -1))  # (G, H / G * K, D)
            up, down = truncated_svd(groups, old.d_head)  # (G, H / G * K, K), (G, K, D)
            mine.weight.copy_(down.flatten(0, 1))
            ups.append(up.reshape(*heads, -1))  # (H, K, K)
        of_keys, of_values = ups
        new.w_q.weight.copy_((of_keys.mT @ old.w_q.weight.unflatten(0, heads)).flatten(0, 1))
        by_head = old.w_o.weight.unflatten(1, heads).transpose(0, 1)  # (H, D, K)
        new.w_o.weight.copy_((by_head @ of_values).transpose(0, 1).flatten(1))
        if bias:
            new.w_q.bias.copy_((of_keys.mT @ old.w_q.bias.view(*heads, 1)).flatten())
            new.w_k.bias.zero_()  # it would not change the softmax
            new.w_v.bias.zero_()  # weights add up to 1, so it can wait until the end
            new.w_o.bias.copy_(old.w_o.bias + old.w_o.weight @ old.w_v.bias)
    return new


def convert(model: nn.Module, kind, **settings) -> nn.Module:
    """Replace every attention in the model's decoder by kind(old, **settings)."""
    for layer in model.decoder.layers:
        for name in ("self_attention", "cross_attention"):
            if (old := getattr(layer, name)) is not None:
                setattr(layer, name, kind(old, **settings))
    return model
