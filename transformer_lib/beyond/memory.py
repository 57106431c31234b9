"""A memory between segments: a layer keeps its input, and the next segment reads it again.

The layers are those of any LanguageModel; only their input changes. `RecurrentLanguageModel` is
Transformer-XL's recurrence, with the library's relative positions. `Compression` shortens memories
that would be dropped, and is trained by `attention_reconstruction` or `auto_encoding`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beyond.sparse import Rule
from transformer_lib.cache import KeyValueCache, LayerCache
from transformer_lib.config import ModelConfig
from transformer_lib.decoder import DecoderLayer
from transformer_lib.masks import causal_mask
from transformer_lib.models.language_model import LanguageModel


def write_down(layer: DecoderLayer, x: Tensor, cache: KeyValueCache) -> None:
    """Add the keys and values of x, (B, T, D), to a layer's cache, without a query."""
    attention, y = layer.self_attention, layer.residuals[0].norm(x)
    k, v = attention.split_heads(attention.w_k(y)), attention.split_heads(attention.w_v(y))
    # turn() returns queries and keys, and here there are only keys.
    cache.append(attention.positions.turn(k, k, cache.length)[1], v)


def layer_with_memory(layer: DecoderLayer, x: Tensor, memory: Tensor) -> Tensor:
    """Run a pre-norm decoder layer that also reads its inputs from earlier segments.

    x: (B, T, D), memory: (B, M, D) -> (B, T, D). Positions count from the oldest place that is
    kept, so only a scheme that depends on nothing but distances (rotary, ALiBi) makes sense here.
    """
    cache, past = LayerCache(), memory.size(1)
    if past:
        write_down(layer, memory, cache.own)
    mask = causal_mask(past + x.size(1), x.device)[:, :, past:]  # (1, 1, T, M + T)
    return layer(x, tgt_mask=mask, cache=cache)


class RecurrentLanguageModel(LanguageModel):
    """A language model with a memory, which reads texts segment by segment (Dai et al. 2019).

    reach: how many of its latest inputs each layer keeps.
    """

    def __init__(self, config: ModelConfig, reach: int):
        if config.positional not in ("rotary", "alibi", "none") or not config.norm_first:
            raise ValueError(
                f"positional is {config.positional!r}, norm_first {config.norm_first}: a memory "
                "needs relative positions ('rotary', 'alibi' or 'none') and pre-norm layers."
            )
        super().__init__(config)
        self.reach = reach

    def read_segment(self, ids: Tensor, memories: list | None = None) -> tuple[Tensor, list]:
        """ids: (B, T), the next segment -> hidden (B, T, D), and the memories for the one after.

        memories: each layer's earlier inputs, (B, M, D) each; None at the beginning of a text.
        """
        x, kept = self.embed(self.embedding(ids)), []
        for layer, earlier in zip(self.decoder.layers, memories or self.empty(x), strict=True):
            kept.append(self.keep(len(kept), earlier, x.detach()))  # gradients end here
            x = self.run_layer(layer, x, earlier)
        return self.decoder.norm(x), kept

    def empty(self, x: Tensor) -> list:
        """The memories before the first segment."""
        return [x.detach()[:, :0]] * len(self.decoder.layers)

    def keep(self, i: int, memory: Tensor, x: Tensor) -> Tensor:
        """The memory of layer i after it has read x, (B, T, D): the last `reach` places."""
        together = torch.cat([memory, x], dim=1)
        return together[:, max(0, together.size(1) - self.reach) :]

    def run_layer(self, layer: DecoderLayer, x: Tensor, memory: Tensor) -> Tensor:
        """x: (B, T, D) -> (B, T, D)."""
        return layer_with_memory(layer, x, memory)

    def read(self, ids: Tensor, segment: int) -> Tensor:
        """ids: (B, T) -> hidden (B, T, D), `segment` tokens at a time."""
        memories, hidden = None, []
        for part in ids.split(segment, dim=1):
            x, memories = self.read_segment(part, memories)
            hidden.append(x)
        return torch.cat(hidden, dim=1)


def by_segments(segment: int, reach: int) -> Rule:
    """One layer's mask: a token reads its segment so far and `reach` places before the segment."""
    return lambda i, j: (j <= i) & (j >= i // segment * segment - reach)


class Compression(nn.Module):
    """Turns `rate` places into one, by a convolution (Rae et al. 2020).

    At first the convolution returns their mean.
    """

    def __init__(self, d_model: int, rate: int):
        super().__init__()
        self.rate = rate
        self.shorten = nn.Conv1d(d_model, d_model, rate, stride=rate)
        with torch.no_grad():
            self.shorten.weight.copy_(torch.eye(d_model)[:, :, None] / rate)
            self.shorten.bias.zero_()
        # Only auto-encoding uses this one.
        self.lengthen = nn.ConvTranspose1d(d_model, d_model, rate, stride=rate)

    def forward(self, old: Tensor) -> Tensor:
        """old: (B, M, D), M a multiple of the rate -> (B, M / rate, D)."""
        return self.shorten(old.mT).mT


def auto_encoding(compression: Compression, old: Tensor) -> Tensor:
    """The error of reconstructing all the old places from the compressed ones."""
    return F.mse_loss(compression.lengthen(compression(old).mT).mT, old)


def attention_reconstruction(
    compression: Compression, layer: DecoderLayer, x: Tensor, old: Tensor
) -> Tensor:
    """How much the layer's attention changes when it reads the compressed places instead.

    x: (B, T, D), the layer's input now; old: (B, M, D). Positions are left out, because the order
    within the old memory is lost. Only what attention looks for has to survive.
    """
    attention, norm = layer.self_attention, layer.residuals[0].norm
    q = attention.split_heads(attention.w_q(norm(x)))  # (B, H, T, K)

    def read(memory):
        k, v = (attention.share_heads(attention.split_heads(w(norm(memory))))
                for w in (attention.w_k, attention.w_v))
        return F.scaled_dot_product_attention(q, k, v)

    return F.mse_loss(read(compression(old)), read(old).detach())


class CompressiveLanguageModel(RecurrentLanguageModel):
    """A recurrent language model whose oldest memories are compressed, not dropped.

    Of its `reach` places the first n_compressed hold `rate` older places each, and every layer has
    its own compression. Raises ValueError for segments that aren't multiples of the rate.
    """

    def __init__(self, config: ModelConfig, reach: int, n_compressed: int, rate: int):
        if not 0 <= n_compressed < reach:
            raise ValueError(f"n_compressed is {n_compressed}; it must be below the reach {reach}.")
        super().__init__(config, reach)
        self.n_compressed, self.rate = n_compressed, rate
        self.passed: list = [None] * config.n_decoder_layers  # (x, old) of the last segment
        self.compressions = nn.ModuleList(
            [Compression(config.d_model, rate) for _ in range(config.n_decoder_layers)]
        )

    def keep(self, i: int, memory: Tensor, x: Tensor) -> Tensor:
        """Compressed places first, then the newest as they are."""
        recent = self.reach - self.n_compressed
        long, short = memory[:, :-recent], torch.cat([memory[:, -recent:], x], dim=1)
        old, short = short[:, :-recent], short[:, -recent:]
        if old.size(1) % self.rate:
            raise ValueError(
                f"{old.size(1)} places leave the memory at once, and {self.rate} of them become "
                "one: make the segments, and the recent places, multiples of the rate."
            )
        self.passed[i] = x, old
        if old.size(1):
            long = torch.cat([long, self.compressions[i](old).detach()], dim=1)
        return torch.cat([long[:, max(0, long.size(1) - self.n_compressed) :], short], dim=1)

    def compression_loss(self, kind: str) -> Tensor:
        """The loss of the most recent compression, summed over the layers.

        kind: "attention" or "auto". Train with backward(inputs=list(compressions.parameters())):
        the model itself must not learn to be easily compressed.
        """
        total = torch.zeros(())
        for layer, compression, (x, old) in zip(
            self.decoder.layers, self.compressions, self.passed, strict=True
        ):
            if not old.size(1):
                continue
            if kind == "auto":
                total = total + auto_encoding(compression, old)
            else:
                total = total + attention_reconstruction(compression, layer, x, old)
        return total
