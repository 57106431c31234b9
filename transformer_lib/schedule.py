"""Learning rates over time: rise linearly, then fall with the root of the step (sec. 5.3)."""

from transformer_lib.config import TrainConfig


def noam(step: int, d_model: int, warmup: int) -> float:
    """Eq. 3: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). Steps count from 1."""
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)


def inverse_sqrt(step: int, peak_lr: float, warmup: int) -> float:
    """The same shape with the peak given: peak_lr at step `warmup`. Steps count from 1."""
    step, warmup = max(step, 1), max(warmup, 1)
    return peak_lr * min(step / warmup, (warmup / step) ** 0.5)


def cooldown(step: float, max_steps: int, length: int) -> float:
    """A factor for the rate: 1, falling linearly to 1/length over the last `length` updates.

    Small steps at the end reach a minimum that large ones only circle (Hägele et al. 2024). Until
    then, the rate does not depend on when the run will end.
    """
    return min(1.0, (max_steps + 1 - step) / max(length, 1))


def learning_rate(config: TrainConfig, step: int, d_model: int) -> float:
    """The rate of update `step` (from 1) under config.schedule and config.cooldown."""
    if config.schedule == "noam":
        rate = noam(step, d_model, config.warmup)
    elif config.schedule == "constant":
        rate = config.peak_lr * min(1.0, step / max(config.warmup, 1))
    else:
        rate = inverse_sqrt(step, config.peak_lr, config.warmup)
    return rate * cooldown(step, config.max_steps, config.cooldown)
