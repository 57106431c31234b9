"""Decoding, only faster: a trained model laid out for it, and a batch on each thread."""

import dataclasses
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from transformer_lib.config import PAD
from transformer_lib.embeddings import Embed
from transformer_lib.fast.training import for_onednn
from transformer_lib.models.transformer import Transformer


def for_decoding(model: nn.Module, sentences: int = 1, worth_compiling: int = 200) -> nn.Module:
    """The fastest version of `model` for decoding this many sentences; it writes the same ids.

    On a CPU that's a DecodingModel, and from `worth_compiling` sentences on (fewer take less time
    than the C compiler) a CompiledModel, where there is a C compiler. Elsewhere, and for models
    that neither of them supports, it is `model` itself. Raises ValueError for a negative number.
    """
    if sentences < 0:
        raise ValueError(f"sentences is {sentences}; say how many are to be decoded, 0 or more.")
    from transformer_lib.fast import compiled  # it builds on this module

    if next(model.parameters()).device.type != "cpu" or refusal(model):
        return model
    if sentences >= worth_compiling and not compiled.refusal(model):
        return compiled.CompiledModel(model)
    return DecodingModel(model)


def refusal(model: nn.Module) -> str:
    """Why there is no DecodingModel for this model; empty if there is one."""
    if type(model) is not Transformer:
        return f"it is a {type(model).__name__}, not a Transformer"
    config = model.config
    if config.positional not in ("sinusoidal", "learned", "none"):
        return f"its {config.positional} positions act inside the attention"
    if config.norm == "batch" or config.n_kv_heads not in (None, config.n_heads):
        return "its norm mixes sentences, or its heads share their keys"
    if not config.n_decoder_layers:
        return "it has no decoder layers"
    # Only the library's parts and the torch modules in them, not a reader's replacements.
    homes = "transformer_lib", "transformer_lib.models", "transformer_lib.fast"
    for name, part in model.named_modules():
        home = type(part).__module__.rpartition(".")[0]
        known = type(part) in (nn.Linear, nn.Embedding, nn.ModuleList, nn.Identity)
        ours = known or home in homes
        if not ours or part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
            return f"{name or 'it'} was changed: another class, or a hook"
    return ""


def parallel_map(function: Callable, items: list) -> list:
    """[function(item) for item in items], as many at a time as torch has threads.

    Each item has one thread to itself: with small operations, that is faster than several threads
    for each.
    """
    threads = torch.get_num_threads()
    if min(threads, len(items)) < 2:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # the setting that later threads inherit


class DecodingModel:
    """A trained Transformer for decoding only: the same words from fewer, larger operations.

    It has the methods that greedy_decode, beam_search and sample call, so pass it to them in place
    of the model. Weights are laid out once, for oneDNN; queries, keys and values come from one
    product, as do the keys and values of the memory for all layers. Hypotheses are never copied:
    those of a sentence share a cache of all the tokens that any of them wrote, and a mask marks
    each one's own. Most weights are copied, so make a new DecodingModel when the model has
    changed. Raises ValueError for a model that `refusal` rejects.
    """

    training = False  # there is no dropout in it

    def __init__(self, model: nn.Module):
        if reason := refusal(model):
            raise ValueError(f"this model can't be decoded faster: {reason}. Decode it as it is.")
        self.config = config = model.config
        self.src_embedding, self.tgt_embedding = model.src_embedding, model.tgt_embedding
        self.embed = Embed(dataclasses.replace(config, dropout=0.0))
        self.embed.positions = model.embed.positions
        self.encoder = [_Layer(layer) for layer in model.encoder.layers]
        self.decoder = [_Layer(layer) for layer in model.decoder.layers]
        self.norms = model.encoder.norm, model.decoder.norm
        readers = [layer.cross_attention for layer in model.decoder.layers]
        self.memory = _Linear(*(part for it in readers for part in (it.w_k, it.w_v)))
        self.output = _Linear(model.output)

    def eval(self) -> "DecodingModel":
        """Does nothing: the decoding loops call it."""
        return self

    def train(self, mode: bool = True) -> "DecodingModel":
        """Does nothing: the decoding loops call it."""
        return self

    @torch.no_grad()
    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """Read the sources; return the first ids, (B, 1), and the state of the decoding."""
        if not use_cache:
            raise ValueError("a DecodingModel has a cache: to decode without one, use the model.")
        batch, config = len(src_ids), self.config
        x, mask = self._encode(src_ids)
        pairs = 2 * config.n_decoder_layers
        memory = _heads(self.memory(x), batch, config.n_heads, pairs)
        memory = memory.contiguous().unflatten(0, (-1, 2))  # (L, 2, B, H, S, K)
        ids = torch.full((batch, 1), bos_id, device=src_ids.device)
        return ids, _State(memory, mask)

    def _encode(self, src_ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """The encoder's output, (B * S, D), and the padding mask, (B, 1, 1, S) or None."""
        if not src_ids.size(1):
            raise ValueError("src_ids holds no tokens: a source needs at least one.")
        mask = None  # added to the scores
        if (padding := src_ids == PAD).any():
            mask = torch.zeros_like(src_ids, dtype=self.src_embedding.lookup.weight.dtype)
            mask = mask.masked_fill(padding, -math.inf)[:, None, None]
        x = self.embed(self.src_embedding(src_ids)).flatten(0, 1)  # (B * S, D)
        for layer in self.encoder:
            q, k, v = _heads(
                layer.qkv(layer.before(0, x)), len(src_ids), self.config.n_heads, 3
            )
            x = layer.after(0, x, layer.own_out, _attend(q, k, v, mask))
            x = layer.feed_forward(x)
        return self.norms[0](x), mask

    @torch.no_grad()
    def step(self, ids: Tensor, state: "_State") -> Tensor:
        """ids: (A * n, 1), the newest of n hypotheses of each sentence -> logits (A * n, V)."""
        state.n = len(ids) // len(state.places)  # set by the first step
        n, heads, rows = state.n, self.config.n_heads, state.rows
        ids = ids.new_zeros(state.size * n, 1).index_copy_(0, rows, ids)
        x = self.embed(self.tgt_embedding(ids), state.length).squeeze(1)  # (R * n, D)
        here, past, seen = state.extend()
        for layer, new, own, memory in zip(self.decoder, here, past, state.memory, strict=True):
            qkv = _heads(layer.qkv(layer.before(0, x)), state.size, heads, 3)  # (3, R, H, n, K)
            new.copy_(qkv[1:])
            x = layer.after(0, x, layer.own_out, _attend(qkv[0], *own, seen))
            q = _heads(layer.cross_q(layer.before(1, x)), state.size, heads, 1)[0]  # (R, H, n, K)
            x = layer.after(1, x, layer.cross_out, _attend(q, *memory, state.src_mask))
            x = layer.feed_forward(x)
        x = self.norms[1](x).index_select(0, _fill(rows, -(-len(rows) // 16) * 16))
        return self.output(x)[: len(rows)]

    @torch.no_grad()
    def top_tokens(
        self, ids: Tensor, state: "_State", k: int, log_p: bool
    ) -> tuple[Tensor, Tensor]:
        """The k likeliest next tokens of each row, never padding: their logits or
        log-probabilities, and their ids, (A * n, k) each. Raises ValueError for a k below 1
        or above V.
        """
        self._require_count(k)
        logits = self.step(ids, state)  # (A * n, V)
        logits[:, PAD] = -math.inf
        top, tokens = largest(logits, k)
        if log_p:  # the best one's probability is exp(its logit - log z)
            top = top - (top[:, :1] - logits.softmax(-1).gather(1, tokens[:, :1]).log())
        return top, tokens

    def _require_count(self, k: int) -> None:
        if not 1 <= k <= self.config.vocab_size:
            raise ValueError(f"k is {k}; it must be from 1 to {self.config.vocab_size}, the "
                             "size of the vocabulary.")


def largest(logits: Tensor, k: int, width: int = 100) -> tuple[Tensor, Tensor]:
    """The k largest numbers of each row and their ids, (rows, k) each: like topk, but faster.

    If a row is cut into blocks of `width`, its k largest numbers are in the k blocks with the
    largest maxima: for any number outside, at least k inside are as large. So only those
    blocks are searched.
    logits: (rows, V).
    """
    n_blocks = logits.size(1) // width
    if n_blocks <= k:
        return logits.topk(k)
    blocks = logits[:, : n_blocks * width].unflatten(1, (-1, width))  # (rows, n_blocks, width)
    chosen = blocks.amax(-1).topk(k, sorted=False).indices  # (rows, k)
    row = torch.arange(len(logits), device=logits.device)[:, None]
    rest = logits[:, n_blocks * width :]  # one more, shorter block, which is always searched
    candidates = torch.cat([blocks[row, chosen].flatten(1), rest], dim=1)
    chosen = nn.functional.pad(chosen, (0, 1), value=n_blocks)  # (rows, k + 1)
    top, found = candidates.topk(k)
    return top, chosen.gather(1, found // width) * width + found % width


class _State:
    """What a DecodingModel keeps between steps, for A sentences of n hypotheses each.

    The sentences occupy R >= A places: those that have ended leave only once many have. (oneDNN
    takes a while to prepare for each new number of rows, so R takes few values.) places: (A,), the
    place of each sentence. memory: (L, 2, R, H, S, K), keys and values of the sources for every
    layer; src_mask: (R, 1, 1, S) or None. own: (L, 2, R, H, room, n, K), keys and values of all
    tokens written so far, by step and place in the beam. seen: (R * n, length * n), 0 where a
    token is part of the hypothesis, -inf elsewhere.
    """

    ROOM = 16  # the cache grows by this many steps at a time

    def __init__(self, memory: Tensor, src_mask: Tensor | None):
        self.memory, self.src_mask = memory, src_mask
        self.own = self.seen = None
        self.length, self.n = 0, 1
        self.places = torch.arange(self.size, device=memory.device)

    @property
    def size(self) -> int:
        """R, the places for sentences."""
        return self.memory.size(2)

    @property
    def rows(self) -> Tensor:
        """The rows of the hypotheses, (A * n,)."""
        each = torch.arange(self.n, device=self.places.device)
        return (self.places[:, None] * self.n + each).flatten()

    def extend(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Make room for one more step. Returns its place in own, (L, 2, R, H, n, K); own up to
        and including it, (L, 2, R, H, length * n, K); and which tokens of it are part of each
        hypothesis, (R, 1, n, length * n), or None if all are.
        """
        layers, _, size, heads, _, width = self.memory.shape
        if self.own is None or self.length == self.own.size(4):
            new = self.memory.new_zeros(layers, 2, size, heads, self.ROOM, self.n, width)
            self.own = new if self.own is None else torch.cat([self.own, new], dim=4)
        self.length += 1
        here = self.own[:, :, :, :, self.length - 1]
        past = self.own[:, :, :, :, : self.length].flatten(4, 5)
        if self.n == 1:
            return here, past, None
        newest = past.new_full((self.n, self.n), -math.inf).fill_diagonal_(0).repeat(size, 1)
        self.seen = newest if self.seen is None else torch.cat([self.seen, newest], dim=1)
        return here, past, self.seen.view(size, 1, self.n, -1)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these hypotheses, and these sentences (None: all of them)."""
        origin = self.rows[rows]
        if sentences is not None:
            self.places = self.places[sentences]
        if self.n > 1:
            self.seen = self.seen.index_copy(0, self.rows, self.seen[origin])
        if _round_up(len(self.places)) < self.size:
            kept = _fill(self.places, _round_up(len(self.places)))
            self.own = self.own.index_select(2, kept)
            self.memory = self.memory.index_select(2, kept)
            if self.src_mask is not None:
                self.src_mask = self.src_mask.index_select(0, kept)
            if self.n > 1:
                self.seen = self.seen.view(-1, self.n, self.seen.size(1))[kept].flatten(0, 1)
            self.places = torch.arange(len(self.places), device=kept.device)


def _fill(rows: Tensor, n: int) -> Tensor:
    """Repeat the first row until there are n rows."""
    return torch.cat([rows, rows[:1].expand(n - len(rows))])


def _round_up(n: int) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least n."""
    step = 2 ** max(0, (n - 1).bit_length() - 2)
    return -(-n // step) * step


class _Layer:
    """The linear maps of an encoder or decoder layer, their weights laid out once."""

    def __init__(self, layer: nn.Module):
        own, cross = layer.self_attention, getattr(layer, "cross_attention", None)
        self.qkv, self.own_out = _Linear(own.w_q, own.w_k, own.w_v), _Linear(own.w_o)
        if cross is not None:
            self.cross_q, self.cross_out = _Linear(cross.w_q), _Linear(cross.w_o)
        part = layer.feed_forward
        self.expand, self.contract = _Linear(part.expand), _Linear(part.contract)
        self.gate = None if part.gate is None else _Linear(part.gate)
        self.activation, self.residuals = part.activation, list(layer.residuals)

    def before(self, i: int, x: Tensor) -> Tensor:
        """The input of sublayer i."""
        return self.residuals[i].norm(x) if self.residuals[i].norm_first else x

    def after(self, i: int, x: Tensor, last: "_Linear", y: Tensor) -> Tensor:
        """x plus last(y), the output of sublayer i; with post-norm, normalised."""
        x = last(y, x)
        return x if self.residuals[i].norm_first else self.residuals[i].norm(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        """(rows, D) -> (rows, D), residual connection included."""
        y = self.before(-1, x)
        hidden = self.expand(y)  # (rows, d_ff)
        if self.gate is None:
            hidden = self.activation(hidden)
        else:
            hidden = self.activation(self.gate(y)) * hidden
        return self.after(-1, x, self.contract, hidden)


def joined(*maps: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """The weight (out, in) and bias (out,) of one map whose output joins those of all maps."""
    biases = [it.bias.detach() for it in maps if it.bias is not None]
    weight = torch.cat([it.weight.detach() for it in maps])
    return weight, torch.cat(biases) if biases else None


class _Linear:
    """Several linear maps of the same input as one product, the weights laid out for oneDNN."""

    def __init__(self, *maps: nn.Linear):
        self.weight, self.bias = joined(*maps)
        self.packed = None
        if for_onednn(self.weight):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight)

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """x: (rows, in) -> (rows, out); `plus`, a tensor of that shape, is added."""
        if self.packed is None:
            y = nn.functional.linear(x, self.weight, self.bias)
            return y if plus is None else y + plus
        linear = torch.ops.mkldnn._linear_pointwise
        if plus is None:
            return linear.default(x, self.packed, self.bias, "none", [], "")
        return linear.binary(x, plus, self.packed, self.bias, "add")


def _heads(x: Tensor, batch: int, heads: int, parts: int) -> Tensor:
    """(batch * T, parts * D) -> (parts, batch, H, T, K)."""
    length, size = len(x) // max(1, batch), x.size(1) // (parts * heads)  # T, K
    return x.view(batch, length, parts, heads, size).permute(2, 0, 3, 1, 4)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """q: (A, H, n, K); k, v: (A, H, T, K); mask: added to the scores -> (A * n, D)."""
    output = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return output.transpose(1, 2).flatten(0, 1).flatten(1)  # (A, n, H, K) -> (A * n, D)
