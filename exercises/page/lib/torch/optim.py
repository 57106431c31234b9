"""Plain SGD and Adam."""

import math

import torch
from torch import _base as base


class Optimizer:
    def __init__(self, params, defaults):
        params = list(params)
        if not params:
            raise ValueError("optimizer got an empty parameter list")
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.defaults, self.state = defaults, {}
        self.param_groups = [
            {**defaults, **group, "params": list(group["params"])} for group in groups
        ]

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self, closure=None):
        loss = closure() if closure else None
        before = torch.is_grad_enabled()
        base.local.gradients = False
        try:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self._update(p, p.grad, group, self.state.setdefault(p, {}))
        finally:
            base.local.gradients = before
        return loss


class SGD(Optimizer):
    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, **_
    ):
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
            ),
        )

    def _update(self, p, g, group, state):
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        if group["momentum"]:
            kept = state.get("momentum_buffer")
            kept = (
                g.clone()
                if kept is None
                else group["momentum"] * kept + (1 - group["dampening"]) * g
            )
            state["momentum_buffer"] = kept
            g = g + group["momentum"] * kept if group["nesterov"] else kept
        p.sub_(group["lr"] * g)


class Adam(Optimizer):
    decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, **_):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def _update(self, p, g, group, state):
        one, two = group["betas"]
        if group["weight_decay"]:
            if self.decoupled:
                p.mul_(1 - group["lr"] * group["weight_decay"])
            else:
                g = g + group["weight_decay"] * p
        step = state["step"] = state.get("step", 0) + 1
        m = state["exp_avg"] = one * state.get("exp_avg", 0.0) + (1 - one) * g
        v = state["exp_avg_sq"] = two * state.get("exp_avg_sq", 0.0) + (1 - two) * g * g
        size = v.sqrt() / math.sqrt(1 - two**step) + group["eps"]
        p.sub_(group["lr"] / (1 - one**step) * m / size)


class AdamW(Adam):
    decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, **_):
        super().__init__(params, lr, betas, eps, weight_decay)


class lr_scheduler:
    class LambdaLR:
        def __init__(self, optimizer, lr_lambda, last_epoch=-1):
            self.optimizer, self.how, self.last_epoch = optimizer, lr_lambda, last_epoch
            self.bases = [group["lr"] for group in optimizer.param_groups]
            self.step()

        def step(self):
            self.last_epoch += 1
            for group, rate in zip(self.optimizer.param_groups, self.bases):
                group["lr"] = rate * self.how(self.last_epoch)

        def get_last_lr(self):
            return [group["lr"] for group in self.optimizer.param_groups]


from torch._tensor import nothing_else  # noqa: E402

__getattr__ = nothing_else("torch.optim")
