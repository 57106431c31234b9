"""Training, only faster: a loss without its logits, cheap dropout, oneDNN's products."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_lib import dropout
from transformer_lib.config import PAD


def translation_loss(model: nn.Module, batch: tuple[Tensor, Tensor], smoothing: float) -> Tensor:
    """Like training.translation_loss, but the logits are computed one block at a time."""
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
    ignore_index: int = PAD,
) -> Tensor:
    """label_smoothed_cross_entropy(project(hidden), ...), a few rows of logits at a time.

    The logits are by far the largest tensor of a training step. Here only one block of them exists
    at a time, small enough to stay in the processor's cache, and its gradient is computed while it
    is there. The loss and the gradients are the same.

    project: (rows, D) -> logits (rows, V), row by row. parameters: those that need gradients;
    project need not use them all. hidden: (..., D); targets: (...) integers.
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
        wanted = range(len(parameters))  # after the first block: those that project uses
        rows = 256 if hidden.device.type == "cpu" else 4096
        for start in range(0, len(hidden), rows):
            block = slice(start, start + rows)
            with torch.enable_grad():
                h = hidden[block].detach().requires_grad_()  # (rows, D)
                projected = project(h)  # (rows, V)
            # Half precision is too coarse for sums over a vocabulary.
            logits = projected.detach().to(torch.promote_types(projected.dtype, torch.float32))
            target, share = targets[block, None], real[block, None].to(logits.dtype) / n_real
            largest = logits.amax(-1, keepdim=True)  # (rows, 1), subtracted before exp
            of_target, mean = logits.gather(-1, target), logits.mean(-1, keepdim=True)
            # The gradient of a matrix product does not need the product: it may be overwritten.
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
    """Replace each dropout.Dropout in the model with this module's `Dropout`; return the model."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is dropout.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))
    return model


class Dropout(dropout.Dropout):
    """The plain Dropout, but faster on a CPU.

    The plain one draws a random float for each number; here one draw of 64 bits decides for four
    numbers. p is rounded to a multiple of 1 / 65536.
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
def products(device: torch.device, bf16: bool = False, n_tokens: int = 0) -> Iterator[None]:
    """Choose how the `with` block multiplies float32 matrices. Weights and results stay float32.

    bf16: round inside the products, to bf16 on a CPU (all that "bf16" does there) or to
    TF32 on a GPU (in products that autocast leaves in float32). That is faster where the processor
    has instructions for it; elsewhere nothing is rounded. The setting is torch's own, holds for all
    threads of the process, and is restored at the end. n_tokens: the number of tokens in a batch;
    above 1024, OneDnnProducts pays off and is used. No effect with bf16.
    device: where the products are computed.
    """
    cpu = torch.device(device).type == "cpu"
    if not bf16:
        with OneDnnProducts() if cpu and n_tokens > 1024 else contextlib.nullcontext():
            yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if cpu else "high")
    # The CPU's fused attention rounds each of its many small products separately, which costs
    # more than it saves; unfused, one batched product serves all heads.
    attention = sdpa_kernel(SDPBackend.MATH) if cpu else contextlib.nullcontext()
    try:
        with attention:
            yield
    finally:
        torch.set_float32_matmul_precision(before)


class OneDnnProducts(TorchDispatchMode):
    """In its `with` block, oneDNN multiplies the CPU's float32 matrices, in the backward pass too.

    Otherwise torch leaves them to the linear algebra library that it was built with. That library
    is tuned to its own maker's processors: on another maker's, oneDNN may need only half the time.
    The products are the same, but summed in another order. Where torch was built without oneDNN,
    nothing changes. Every operation, product or not, takes a detour of a few microseconds through
    Python.
    """

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        aten = torch.ops.aten
        if operation is aten.mm.default and for_onednn(*args):
            return _onednn_product(*args)
        if operation is aten.addmm.default and not kwargs and for_onednn(*args):
            bias, a, b = args
            if bias.dim() == 1:
                return _onednn_product(a, b, bias)
        return operation(*args, **(kwargs or {}))


def for_onednn(*matrices: Tensor) -> bool:
    """Whether oneDNN can multiply these: non-empty float32 matrices on the CPU."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise")  # other versions may rename it
    return (
        known
        and torch.backends.mkldnn.is_available()
        and all(m.dtype == torch.float32 and m.device.type == "cpu" and m.numel() for m in matrices)
    )


def _onednn_product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a: (N, K); b: (K, M); bias: (M,) -> a @ b + bias: (N, M)."""
    linear = torch.ops.mkldnn._linear_pointwise.default  # (x, w, bias) -> x @ w.T + bias
    if bias is None and a.stride(0) == 1:  # a is stored as its transpose:
        return linear(b.t(), a, None, "none", [], "").t()  # (b.T @ a.T).T, with less copying
    return linear(a, b.t(), bias, "none", [], "")
