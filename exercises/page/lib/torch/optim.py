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

    def _parameters(self):
        return [p for group in self.param_groups for p in group["params"]]

    def state_dict(self):
        """As in PyTorch the state itself, which goes on changing: its tensors are no copies."""
        place = {id(p): i for i, p in enumerate(self._parameters())}
        return {
            "state": {place[id(p)]: state for p, state in self.state.items()},
            "param_groups": [
                {**group, "params": [place[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict):
        groups, given = self.param_groups, state_dict["param_groups"]
        if len(groups) != len(given):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if [len(g["params"]) for g in groups] != [len(g["params"]) for g in given]:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        named = zip((i for g in given for i in g["params"]), self._parameters(), strict=True)
        found = state_dict["state"]
        self.state = {p: dict(found[i]) for i, p in named if i in found}
        self.param_groups = [
            {**new, "params": old["params"]} for old, new in zip(groups, given, strict=True)
        ]

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
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
        m, v = state["exp_avg"], state["exp_avg_sq"]
        state["step"].add_(1)
        step = state["step"].item()
        m.mul_(one).add_((1 - one) * g)
        v.mul_(two).add_((1 - two) * g * g)
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
