"""The training loss: cross-entropy against slightly softened targets (sec. 5.4)."""

from torch import Tensor


def label_smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float = 0.1, ignore_index: int = 0
) -> Tensor:
    """Mean loss per real token, in nats, against (1 - smoothing) * target + smoothing / V.

    The correct token keeps 1 - smoothing, and every token of the vocabulary, this one included,
    gets smoothing / V (Szegedy et al. 2016, sec. 7). This is what torch's own cross_entropy
    does with label_smoothing. Targets equal to ignore_index (padding) do not count; if
    no target counts, the loss is 0.

    logits: (..., V) float; targets: (...) integers. Returns a scalar.
    """
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} do not fit: logits "
            "need the shape of targets plus one axis for the vocabulary."
        )
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing is {smoothing!r}; it must be in [0, 1].")
    padding = targets == ignore_index  # (...)
    targets = targets.masked_fill(padding, 0)  # any id will do: these rows do not count
    log_p = logits.log_softmax(-1)  # (..., V)
    loss = -log_p.gather(-1, targets[..., None]).squeeze(-1)  # (...): -log p(target)
    if smoothing:  # otherwise a logit of -inf would give 0 * inf
        uniform = -log_p.mean(-1)  # (...): the mean over V of -log p
        loss = (1 - smoothing) * loss + smoothing * uniform
    return loss.masked_fill(padding, 0).sum() / (~padding).sum().clamp(min=1)
