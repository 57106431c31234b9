"""What is only fast: the same loss, the same dropout and the same decoding in less time.

Nothing here is needed to understand or to train a model. TrainConfig.fast switches the training's
part on, and Translator takes the DecodingModel; tests hold both equal to what the chapters print.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_lib import dropout
from transformer_lib.config import PAD
from transformer_lib.embeddings import Embed
from transformer_lib.models.transformer import Transformer


def translation_loss(model: nn.Module, batch: tuple[Tensor, Tensor], smoothing: float) -> Tensor:
    """training.translation_loss, with the logits a block at a time."""
    src_ids, tgt_ids = batch  # (B, S), (B, T + 1)
    read, predicted = tgt_ids[:, :-1], tgt_ids[:, 1:]  # (B, T) each
    src_mask, tgt_mask = model.default_masks(src_ids, read)
    hidden = model.decode(read, model.encode(src_ids, src_mask), src_mask, tgt_mask)
    parameters = list(model.parameters())
    return projected_cross_entropy(model.project, hidden, predicted, parameters, smoothing)


def projected_cross_entropy(
    project: Callable[[Tensor], Tensor],
    hidden: Tensor,
    targets: Tensor,
    parameters: list[nn.Parameter],
    smoothing: float = 0.1,
    ignore_index: int = 0,
) -> Tensor:
    """label_smoothed_cross_entropy(project(hidden), ...), a few rows of logits at a time.

    The logits are by far the largest tensor of a training step. Here they live one block at a
    time, small enough to stay in the processor's cache, and each block's gradient is taken while
    it is there. Same loss and gradients.

    project: (rows, D) -> logits (rows, V), row by row. parameters: those whose gradients are
    wanted; they may be more than project uses. hidden: (..., D); targets: (...) integers.
    Returns a scalar.
    """
    hidden, targets = hidden.reshape(-1, hidden.size(-1)), targets.reshape(-1)
    parameters = [p for p in parameters if p.requires_grad]
    return _ProjectedCrossEntropy.apply(
        project, targets, smoothing, ignore_index, hidden, *parameters
    )


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, project, targets, smoothing, ignore_index, hidden, *parameters):
        real = targets != ignore_index  # (N,)
        n_real = real.sum().clamp(min=1)
        targets = targets.masked_fill(~real, 0)  # any valid id: the row does not count
        loss, d_hidden, d_parameters = 0.0, torch.empty_like(hidden), {}
        wanted = range(len(parameters))  # those that project uses, as the first block tells
        rows = 256 if hidden.device.type == "cpu" else 4096
        for start in range(0, len(hidden), rows):
            block = slice(start, start + rows)
            with torch.enable_grad():
                h = hidden[block].detach().requires_grad_()  # (rows, D)
                projected = project(h)  # (rows, V)
            # Half precision is too coarse for sums over a vocabulary.
            logits = projected.detach().to(torch.promote_types(projected.dtype, torch.float32))
            target, share = targets[block, None], real[block, None].to(logits.dtype) / n_real
            largest = logits.amax(-1, keepdim=True)  # (rows, 1), kept out of exp's way
            of_target, mean = logits.gather(-1, target), logits.mean(-1, keepdim=True)
            # The gradient of a matrix product does not need its result: that may be written over.
            free = type(projected.grad_fn).__name__ in ("MmBackward0", "AddmmBackward0")
            exp = (logits.sub_(largest) if free else logits - largest).exp_()
            z = exp.sum(-1, keepdim=True)  # (rows, 1)
            log_z = largest + z.log()
            nll, uniform = log_z - of_target, log_z - mean  # -log p(target), and the mean of -log p
            loss = loss + (((1 - smoothing) * nll + smoothing * uniform) * share).sum()
            # d loss / d logits = (softmax(logits) - smoothed target) * the row's share of the mean
            gradient = exp.mul_(share / z).sub_(share * (smoothing / exp.size(-1)))
            gradient.scatter_add_(-1, target, share * (smoothing - 1))
            d_hidden[block], *d_block = torch.autograd.grad(
                projected,
                [h, *(parameters[i] for i in wanted)],
                gradient.to(projected.dtype),
                allow_unused=True,
            )
            d_block = {i: d for i, d in zip(wanted, d_block, strict=True) if d is not None}
            wanted = list(d_block)
            if not d_parameters:
                d_parameters = d_block
            else:
                for i, d in d_block.items():
                    d_parameters[i] += d
        ctx.save_for_backward(d_hidden, *map(d_parameters.get, range(len(parameters))))
        return loss

    @staticmethod
    def backward(ctx, d_loss):
        return *[None] * 4, *(None if d is None else d * d_loss for d in ctx.saved_tensors)


def accelerate(model: nn.Module) -> nn.Module:
    """Give every dropout.Dropout in the model the place to a `Dropout` of this module; returns the
    model, changed."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is dropout.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))
    return model


class Dropout(dropout.Dropout):
    """The plain Dropout, five times as fast on a CPU.

    There, drawing one random float per number is most of the price: here one draw of 64 bits
    decides for four numbers. p is rounded to a multiple of 1 / 65536.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x: any shape -> the same shape."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":  # a GPU draws random numbers for free
            return nn.functional.dropout(x, self.p)
        dropped = round(self.p * 2**16)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        keep = bits.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 2**15
        return x * keep.to(x.dtype).mul_(1 / (1 - dropped / 2**16))


@contextlib.contextmanager
def products(device: torch.device, bf16: bool = False, onednn: bool = False) -> Iterator[None]:
    """How float32 matrices are multiplied inside the block. Weights and results stay float32.

    bf16: round inside the products: to bf16 on a CPU, where this is all that "bf16" means, to TF32
    on a GPU, for what autocast leaves in float32. Faster where the processor has the instructions;
    elsewhere nothing is rounded. This setting is torch's own, for all threads of the process, and
    is given back at the end. onednn: see OneDnnProducts; nothing where bf16 has the say.
    device: where the products are computed.
    """
    cpu = device.type == "cpu"
    if not bf16:
        with OneDnnProducts() if cpu and onednn else contextlib.nullcontext():
            yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if cpu else "high")
    # The CPU's fused attention rounds each of its many small products by itself, which costs more
    # than it saves; unfused, one batched product serves all heads.
    attention = sdpa_kernel(SDPBackend.MATH) if cpu else contextlib.nullcontext()
    try:
        with attention:
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class OneDnnProducts(TorchDispatchMode):
    """`with OneDnnProducts():` oneDNN multiplies the float32 matrices of a CPU, backwards as well.

    By itself torch leaves them to the linear algebra library that it was built with. That library
    knows the processors of its own maker best: on another maker's, oneDNN needs half the time. Same
    products, summed in another order. Where torch was built without oneDNN, nothing changes.
    """

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        aten = torch.ops.aten
        if operation is aten.mm.default and _for_onednn(*args):
            return _onednn_product(*args)
        if operation is aten.addmm.default and not kwargs and _for_onednn(*args):
            bias, a, b = args
            if bias.dim() == 1:
                return _onednn_product(a, b, bias)
        return operation(*args, **(kwargs or {}))


def _for_onednn(*matrices: Tensor) -> bool:
    """Whether all are ordinary float32 matrices of the CPU with something in them."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise")  # another torch may name it otherwise
    return (
        known
        and torch.backends.mkldnn.is_available()
        and all(m.dtype == torch.float32 and m.device.type == "cpu" and m.numel() for m in matrices)
    )


def _onednn_product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a: (N, K); b: (K, M); bias: (M,) -> a @ b + bias: (N, M)."""
    linear = torch.ops.mkldnn._linear_pointwise.default  # (x, w, bias) -> x @ w.T + bias
    if bias is None and a.stride(0) == 1:  # a is the transpose of what lies in memory:
        return linear(b.t(), a, None, "none", [], "").t()  # (b.T @ a.T).T, with less copying
    return linear(a, b.t(), bias, "none", [], "")


def for_decoding(model: nn.Module) -> nn.Module:
    """What to decode with in this model's place: a DecodingModel if it is on a CPU and known."""
    on_cpu = next(model.parameters()).device.type == "cpu"
    return DecodingModel(model) if on_cpu and not refusal(model) else model


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
    for name, part in model.named_modules():
        # The library's top level, and what it is made of: not what a reader puts in its place.
        home = type(part).__module__.rpartition(".")[0]
        known = type(part) in (nn.Linear, nn.Embedding, nn.ModuleList, nn.Identity)
        ours = known or home in ("transformer_lib", "transformer_lib.models")
        if not ours or part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
            return f"{name or 'it'} was changed: another class, or a hook"
    return ""


def parallel_map(function: Callable, items: list) -> list:
    """[function(item) for item in items], as many at a time as torch has threads.

    Each is computed on a thread of its own: small operations gain more from that than from several
    threads for each.
    """
    threads = torch.get_num_threads()
    if min(threads, len(items)) < 2:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # what threads that start later will take


class DecodingModel:
    """A trained Transformer for decoding alone: the same words from fewer and larger operations.

    It offers what greedy_decode, beam_search and sample ask of a model, and is given to them in its
    place. Weights are laid out once, for oneDNN; queries, keys and values come from one product,
    as do the keys and values of the memory for all layers. Hypotheses are never copied: those of
    one sentence share a cache of all that any of them wrote, and a mask says which is whose.
    Most weights are copied: make another one when the model has changed. Raises ValueError for a
    model with a `refusal`.
    """

    training = False  # there is no dropout in it

    def __init__(self, model: nn.Module):
        if reason := refusal(model):
            raise ValueError(f"this model is not decoded faster: {reason}. Decode it as it is.")
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
        """Does nothing: decoding asks for it."""
        return self

    def train(self, mode: bool = True) -> "DecodingModel":
        """Does nothing: decoding asks for it."""
        return self

    def start(self, src_ids: Tensor, bos_id: int, use_cache: bool = True):
        """Read the sources: ids (B, 1) to go on from, and the state of the decoding."""
        if not use_cache:
            raise ValueError("a DecodingModel has a cache: without one, decode the model itself.")
        batch, config = len(src_ids), self.config
        x, mask = self._encode(src_ids)
        pairs = 2 * config.n_decoder_layers
        memory = _heads(self.memory(x), batch, config.n_heads, pairs)
        memory = memory.contiguous().unflatten(0, (-1, 2))  # (L, 2, B, H, S, K)
        ids = torch.full((batch, 1), bos_id, device=src_ids.device)
        return ids, _State(memory, mask)

    def _encode(self, src_ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the encoder gives, (B * S, D), and the mask of the padding, (B, 1, 1, S) or None."""
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

    def step(self, ids: Tensor, state: "_State") -> Tensor:
        """ids: (A * n, 1), the newest of n hypotheses of each sentence -> logits (A * n, V)."""
        state.n = len(ids) // len(state.places)  # the first step says it
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


class _State:
    """What a DecodingModel keeps between steps, for A sentences of n hypotheses each.

    They lie in R >= A places: those that have ended leave when many have. oneDNN takes a while to
    prepare for each new number of rows, so there are few. places: (A,), where the sentences lie.
    memory: (L, 2, R, H, S, K), keys and values of the sources for every layer; src_mask: (R, 1, 1,
    S) or None. own: (L, 2, R, H, room, n, K), those of all that was written, by step and place in
    the beam. seen: (R * n, length * n), 0 where a hypothesis descends from what stands there,
    -inf elsewhere.
    """

    ROOM = 16  # steps for which the cache grows at a time

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
        """One more step: its place in own, (L, 2, R, H, n, K), own up to and with it, (L, 2, R, H,
        length * n, K), and who descends from what there, (R, 1, n, length * n), None for all.
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
    """The first row again, until there are n."""
    return torch.cat([rows, rows[:1].expand(n - len(rows))])


def _round_up(n: int) -> int:
    """n, or the next larger of 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    step = 2 ** max(0, (n - 1).bit_length() - 2)
    return -(-n // step) * step


class _Layer:
    """The products of an encoder or decoder layer, each laid out once."""

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
        """What sublayer i reads."""
        return self.residuals[i].norm(x) if self.residuals[i].norm_first else x

    def after(self, i: int, x: Tensor, last: "_Linear", y: Tensor) -> Tensor:
        """x with what sublayer i made of it, last(y)."""
        x = last(y, x)
        return x if self.residuals[i].norm_first else self.residuals[i].norm(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        """(rows, D) -> (rows, D), with its residual."""
        y = self.before(-1, x)
        hidden = self.expand(y)  # (rows, d_ff)
        if self.gate is None:
            hidden = self.activation(hidden)
        else:
            hidden = self.activation(self.gate(y)) * hidden
        return self.after(-1, x, self.contract, hidden)


class _Linear:
    """Several linear maps of the same input as one product, the weights laid out for oneDNN."""

    def __init__(self, *maps: nn.Linear):
        self.weight = torch.cat([it.weight.detach() for it in maps])  # (out, in)
        biases = [it.bias.detach() for it in maps if it.bias is not None]
        self.bias = torch.cat(biases) if biases else None
        self.packed = None
        if _for_onednn(self.weight):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight)

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """x: (rows, in) -> (rows, out), plus another tensor of that shape."""
        if self.packed is None:
            y = nn.functional.linear(x, self.weight, self.bias)
            return y if plus is None else y + plus
        linear = torch.ops.mkldnn._linear_pointwise
        if plus is None:
            return linear.default(x, self.packed, self.bias, "none", [], "")
        return linear.binary(x, plus, self.packed, self.bias, "add")


def _heads(x: Tensor, batch: int, heads: int, parts: int) -> Tensor:
    """(batch * T, parts * D) -> (parts, batch, H, T, K)."""
    return x.view(batch, -1, parts, heads, x.size(1) // (parts * heads)).permute(2, 0, 3, 1, 4)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """q: (A, H, n, K); k, v: (A, H, T, K); mask: added to the scores -> (A * n, D)."""
    output = nn.functional.scaled_dot_product_attention(q, k, v, mask)
    return output.transpose(1, 2).flatten(0, 1).flatten(1)  # (A, n, H, K) -> (A * n, D)
