"""A library's model with the reader's parts of DESCENDANTS in the place of its own.

As in `transformer`: the weights and their names stay the library's, what is computed with them is
the reader's. A cache is handed to the reader's parts as a pair (keys, values), or None.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond.relative_bias import RelativeBias
from transformer_lib.beyond.speculative import KeepByChance
from transformer_lib.beyond.states import StateMixer
from transformer_lib.cache import KeyValueCache
from transformer_lib.decoder import DecoderLayer
from transformer_lib.feed_forward import FeedForward
from transformer_lib.models.vision_transformer import VisionTransformer
from transformer_lib.normalization import RMSNorm
from transformer_lib.positional import PositionalScheme, RotaryEmbedding


def put_in(model: nn.Module, parts: dict) -> list[str]:
    """Put the parts into the model, where one of its own does the same; returns their names."""
    used = []
    for name, (fits, make) in PLACES.items():
        if name in parts and any(map(fits, model.modules())):
            _replace(model, fits, lambda old: make(old, parts[name]))  # noqa: B023
            used.append(name)
    if "patches" in parts and type(model) is VisionTransformer:
        model.patches = lambda images: parts["patches"](images, model.patch)
        used.append("patches")
    return used


def _replace(model: nn.Module, fits, make) -> None:
    """Put make(old) in place of each module that fits; the old one isn't used any more.
    One that occurs in several places, like T5's table, is made once.
    """
    made = {}
    for parent in list(model.modules()):
        for name, old in list(parent.named_children()):
            if fits(old):
                if old not in made:
                    made[old] = make(old)
                setattr(parent, name, made[old])


# ------------------------------------------------------------------------------ where a part fits


def _rotary(module):
    return type(module) is RotaryEmbedding and module.base == 10000.0


def _rms(module):
    return type(module) is RMSNorm and module.eps == 1e-5


def _swiglu(module):
    return type(module) is FeedForward and module.gate is not None and module.gate.bias is None


def _grouped(module):
    return (
        type(module) is MultiHeadAttention and module.w_q.bias is None
        and isinstance(module.positions, (RotaryEmbedding, OwnRotary)) and not module.dropout
    )


def _block(module):
    return (
        type(module) is DecoderLayer and module.cross_attention is None
        and module.residuals[0].norm_first and not isinstance(module.self_attention, StateMixer)
    )


def _relative(module):
    return type(module) is RelativeBias and (module.n_buckets, module.max_distance) == (32, 128)


def _states(module):
    return type(module) is StateMixer


# ----------------------------------------------------------------------------------- putting it in


class OwnRotary(PositionalScheme):
    """The scheme that turns queries and keys by the reader's function."""

    def __init__(self, rotary):
        super().__init__()
        self.rotary = rotary

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x: (B, H, T, K) -> (B, H, T, K)."""
        return self.rotary(x, start)

    def turn(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        return self(q, start), self(k, start)


class OwnBias(PositionalScheme):
    """The scheme that adds to the scores what the reader's module says of the distances.

    The reader's module isn't a child of this one: its table is, so that it keeps its name.
    """

    def __init__(self, old: RelativeBias, relative):
        super().__init__()
        made = relative(old.table.embedding_dim, old.both_ways)
        self.table = made.table
        self.load_state_dict(old.state_dict())
        self.made = [made]

    def bias(self, n_queries: int, n_keys: int, start: int = 0) -> Tensor:
        """(1, H, n_queries, n_keys); query 0 is at `start`."""
        return self.made[0](n_queries, n_keys, start)[None]


class OwnHeads(nn.Module):
    """The reader's heads, called as the library calls its own.

    The reader's module isn't a child of this one: its layers are, so that weights keep their names.
    """

    def __init__(self, old: MultiHeadAttention, heads):
        super().__init__()
        n_kv_heads = old.w_k.out_features // old.d_head
        made = heads(old.d_model, old.n_heads, n_kv_heads, old.positions)
        for name in ("w_q", "w_k", "w_v", "w_o"):
            setattr(self, name, getattr(made, name))
        self.load_state_dict(old.state_dict())
        self.heads = [made]

    def forward(self, query, key, value, mask=None, need_weights=False, cache=None):
        """As in MultiHeadAttention, to the query itself; no weights come back."""
        output, kept = self.heads[0](query, mask, pair_of(cache))
        fill(cache, kept)
        return output, None


class OwnBlock(nn.Module):
    """The modules of a library's layer without cross-attention, joined by the function `block`."""

    def __init__(self, layer: DecoderLayer, block):
        super().__init__()
        self.self_attention, self.feed_forward = layer.self_attention, layer.feed_forward
        self.residuals, self.block = layer.residuals, block

    def forward(self, x, memory=None, src_mask=None, tgt_mask=None, cache=None):
        """As in DecoderLayer. Raises ValueError for a mask other than the causal one."""
        first, second = self.residuals
        T, S = tgt_mask.shape[-2:]
        if not tgt_mask.eq(torch.ones(T, S, dtype=torch.bool).tril(S - T).to(x.device)).all():
            raise ValueError("a block of your own reads from left to right; this model's mask "
            "isn't the causal one: leave its blocks as they are.")

        def attend(y, mask, kept):
            store = KeyValueCache()
            fill(store, kept)
            attended = self.self_attention(y, y, y, mask, cache=store)[0]
            return first.dropout(attended), pair_of(store)

        x, kept = self.block(
            x, pair_of(None if cache is None else cache.own), first.norm, attend, second.norm,
            lambda y: second.dropout(self.feed_forward(y)),
        )
        fill(None if cache is None else cache.own, kept)
        return x


class OwnStates(StateMixer):
    """The library's maps around the reader's loop, which reads a whole text and a step alike."""

    @classmethod
    def around(cls, old: StateMixer, scan):
        new = copy.copy(old)  # the same weights
        new.__class__, new.scan = cls, scan
        return new

    def forward(self, query, key=None, value=None, mask=None, need_weights=False, cache=None):
        """As in StateMixer."""
        return self.step(query)[0], None

    def step(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As in StateMixer."""
        out, state = self.scan(*self.parts(x), self.replace, state)  # (B, H, t, K)
        return self.w_o(self.norm(out).transpose(1, 2).flatten(2)), state


class OwnRule(KeepByChance):
    """The reader's `keep_guesses` where `speculative_decode` takes a rule.

    It uses up as many draws as the library's rule, so that both can be compared token by token.
    """

    def __init__(self, rule, generator: torch.Generator):
        super().__init__(generator)
        self.rule = rule

    def __call__(self, logits: Tensor, guesses: list[int], q: Tensor | None) -> tuple[int, int]:
        """As in KeepByChance."""
        p, n, before = logits.softmax(-1), len(guesses), self.generator.get_state()
        ids = torch.tensor(guesses, dtype=torch.long)
        q = F.one_hot(ids, p.size(1)).float() if q is None else F.pad(q, (0, p.size(1) - q.size(1)))
        kept, following = self.rule(p, q, ids, self.some_draws(n))
        self.generator.set_state(before)
        self.some_draws(min(int(kept) + 1, n))  # the library draws for one guess after another
        return int(kept), self.draw(following)

    def some_draws(self, n: int) -> Tensor:
        """(n,), each drawn for itself."""
        return torch.tensor([torch.rand((), generator=self.generator) for _ in range(n)])


def pair_of(cache: KeyValueCache | None):
    """(keys, values) of a cache, or None where nothing is kept."""
    return None if cache is None or not cache.length else (cache.keys, cache.values)


def fill(cache: KeyValueCache | None, kept) -> None:
    """Put a pair (keys, values) into a cache, if there are both."""
    if cache is not None and kept is not None:
        cache.keys, cache.values = kept


def _with_weights_of(old: nn.Module, new: nn.Module) -> nn.Module:
    new.load_state_dict(old.state_dict())
    return new


PLACES = {  # name of a part: (whether a module is one like it, what comes in its place)
    "rotary": (_rotary, lambda old, rotary: OwnRotary(rotary)),
    "rms_norm": (_rms, lambda old, norm: _with_weights_of(old, norm(len(old.weight)))),
    "swiglu": (_swiglu, lambda old, network: _with_weights_of(
        old, network(old.expand.in_features, old.expand.out_features))),
    "grouped_heads": (_grouped, lambda old, heads: OwnHeads(old, heads)),
    "block": (_block, lambda old, block: OwnBlock(old, block)),
    "relative_bias": (_relative, lambda old, relative: OwnBias(old, relative)),
    "scan": (_states, lambda old, scan: OwnStates.around(old, scan)),
}


class Cart:
    """A pole on a cart, one episode at a time, as `play_for` plays it; `seed` says how it starts.

    The world is that of `transformer_lib.beyond.acting.play`, so both see the same episodes.
    """

    def __init__(self, seed: int = 0, limit: int = 200):
        import gymnasium

        self.seed = seed
        self.env = gymnasium.make_vec(
            "CartPole-v1", 1, "vector_entry_point", max_episode_steps=limit
        )

    def reset(self) -> Tensor:
        """The first state, (4,)."""
        return torch.from_numpy(self.env.reset(seed=self.seed)[0])[0].clone()

    def step(self, action: int) -> tuple[Tensor, float, bool]:
        """The next state, (4,), what the step earned, and whether the episode has ended."""
        import numpy as np

        state, reward, fallen, cut, _ = self.env.step(np.array([action]))
        return torch.from_numpy(state)[0].clone(), float(reward[0]), bool(fallen[0] or cut[0])
