"""The training loss: cross-entropy against slightly softened targets (sec. 5.4)."""

import torch
from torch import Tensor


def label_smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, ignore_index: int = 0
) -> Tensor:
    """Mean loss per real token, in nats, against (1 - smoothing) * target + smoothing / V.

    The right token keeps 1 - smoothing (plus its share of the rest), and every token of the
    vocabulary gets smoothing / V (Szegedy et al. 2016, sec. 7), as torch's own cross_entropy
    with label_smoothing does. Targets equal to ignore_index (padding) do not count; if
    nothing counts, the loss is 0.

    logits: (..., V) float; targets: (...) integers. Returns a scalar.
    """
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} do not fit: logits "
            "need the shape of targets plus one axis for the vocabulary."
        )
    real = targets != ignore_index  # (...)
    logits, targets = logits[real], targets[real]  # (N, V), (N,)
    log_z = torch.logsumexp(logits, dim=-1)  # (N,)
    right = log_z - logits.gather(-1, targets[:, None]).squeeze(-1)  # -log p(target)
    loss = right
    if smoothing:  # else a logit of -inf would count, as 0 * inf
        uniform = log_z - logits.mean(-1)  # -mean over V of log p
        loss = (1 - smoothing) * right + smoothing * uniform  # (N,)
    return loss.sum() / max(len(targets), 1)


def projected_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    smoothing: float = 0.1,
    ignore_index: int = 0,
) -> Tensor:
    """label_smoothed_cross_entropy(hidden @ weight.T, ...), a few rows of logits at a time.

    The logits are by far the largest tensor of a training step. Here they live one block at a
    time, small enough to stay in the processor's cache, and each block's gradient is taken while
    it is there. Same loss and gradients; about three times faster on a CPU.

    hidden: (..., D); weight: (V, D); targets: (...) integers. Returns a scalar.
    """
    return _ProjectedCrossEntropy.apply(
        hidden.reshape(-1, hidden.size(-1)), weight, targets.reshape(-1), smoothing, ignore_index
    )


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, weight, targets, smoothing, ignore_index):
        dtype = torch.promote_types(hidden.dtype, torch.float32)  # half precision is too coarse
        ctx.dtypes = hidden.dtype, weight.dtype
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        real = targets != ignore_index
        share = real.to(dtype) / real.sum().clamp(min=1)  # (N,): what each row counts in the mean
        targets = targets.masked_fill(~real, 0)  # any valid id: the row does not count
        rows = 128 if hidden.device.type == "cpu" else 4096
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        for start in range(0, len(hidden), rows):
            block = slice(start, start + rows)
            logits = (hidden[block] @ weight.T).to(dtype)  # (rows, V)
            target = targets[block, None]  # (rows, 1)
            largest = logits.amax(-1, keepdim=True)  # (rows, 1), kept out of exp's way
            of_target, mean = logits.gather(-1, target), logits.mean(-1, keepdim=True)
            exp = logits.sub_(largest).exp_()  # in the logits' own memory, as all that follows
            z = exp.sum(-1, keepdim=True)  # (rows, 1)
            log_z = largest + z.log()
            nll, uniform = log_z - of_target, log_z - mean
            counts = share[block, None]  # (rows, 1)
            loss += (((1 - smoothing) * nll + smoothing * uniform) * counts).sum()
            # d loss / d logits = (softmax(logits) - smoothed target) * share of the row
            gradient = exp.mul_(counts / z).sub_(counts * (smoothing / len(weight)))
            gradient.scatter_add_(-1, target, counts * (smoothing - 1))
            d_hidden[block] = gradient @ weight
            d_weight += gradient.T @ hidden[block]
        ctx.save_for_backward(d_hidden, d_weight)
        return loss

    @staticmethod
    def backward(ctx, d_loss):
        d_hidden, d_weight = ctx.saved_tensors
        of_hidden, of_weight = ctx.dtypes
        d_hidden, d_weight = (d_hidden * d_loss).to(of_hidden), (d_weight * d_loss).to(of_weight)
        return d_hidden, d_weight, None, None, None
