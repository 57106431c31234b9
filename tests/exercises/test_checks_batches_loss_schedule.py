"""Every check of chapter 12 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import batches_loss_schedule as ch


def log_p(logits, targets):
    return logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]


def right_loss(logits, targets):
    real = targets != 0
    return -log_p(logits, targets)[real].mean()


def right_split(target):
    return target[:, :-1], target[:, 1:], target[:, 1:] != 0


def right_cheapest(eps, size):
    p, other = 1 - eps + eps / size, eps / size
    return p, -p * math.log(p) - (size - 1) * other * math.log(other)


def mean_loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=0)


def grads(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def accumulation(weight, zero="start"):
    def accumulate(model, batches):
        total = sum(int((y != 0).sum()) for _, y in batches)
        if zero == "start":
            model.zero_grad()
        for x, y in batches:
            if zero == "each":
                model.zero_grad()
            (mean_loss(model, x, y) * weight(y, total, len(batches))).backward()
        return grads(model)

    return accumulate


def by_tokens(y, total, n):
    return int((y != 0).sum()) / total


CASES = [
    (ch.no_idea, (9.2103, 9.2103), True, "Right"),
    (ch.no_idea, (9.21, 8.29), False, "no weighting"),
    (ch.token_loss, (right_loss,), True, "Right"),
    (ch.token_loss, (lambda z, y: right_loss(z.double(), y),), True, "Right"),
    (ch.token_loss, (lambda z, y: right_loss(z, y).numpy(),), False, "no gradient"),
    (ch.token_loss, (lambda z, y: ...,), None, "Not attempted"),
    (ch.token_loss, (lambda z, y: -right_loss(z, y),), False, "sign"),
    (ch.split_target, (right_split,), True, "Right"),
    (ch.split_target, (lambda t: ...,), None, "Not attempted"),
    (ch.split_target, (lambda t: (t, t, t != 0),), False, "all 5 columns"),
    (
        ch.split_target,
        (lambda t: (t[:, 1:], t[:, 1:], t[:, 1:] != 0),),
        False,
        "Ana's mistake",
    ),
    (ch.cheapest, (right_cheapest,), True, "Right"),
    (ch.cheapest, (lambda e, n: 1 - e + e / n,), False, "return two values"),
    (ch.cheapest, (lambda e, v: ...,), None, "Not attempted"),
    (ch.cheapest, (lambda e, v: (1, 0),), False, "costs inf"),
    (ch.accumulate, (accumulation(by_tokens),), True, "Right"),
    (ch.accumulate, (lambda m, b: ...,), None, "Not attempted"),
    (ch.accumulate, (accumulation(lambda y, t, n: 1),), False, "without weights"),
    (ch.warmup_for, (lambda peak, d: 1 / (d * peak**2),), True, "Right"),
    (ch.warmup_for, (lambda peak, d: math.floor(1 / (d * peak**2)),), True, "Right"),
    (ch.warmup_for, (lambda peak, d: math.ceil(1 / (d * peak**2)),), True, "Right"),
    (ch.warmup_for, (lambda peak, d: ...,), None, "Not attempted"),
    (ch.warmup_for, (lambda peak, d: 1 / (d * peak),), False, "the square of the peak"),
    (ch.warmup_for, (lambda peak, d: 4000,), False, "peaks at"),
    (ch.warmup_for, (lambda peak, d: 1.02 / (d * peak**2),), False, "peaks at"),
    (ch.short_steps, ([2.0, -2.0] * 50,), True, "Right"),
    (ch.short_steps, ([1.0] * 100,), False, "is still 1.00 of the rate"),
    (ch.short_steps, ([1e-12, -1e-12] * 50,), False, "so that epsilon plays no part"),
    (ch.short_steps, ([1.0, -1.0],), False, "a list of 100"),
    (ch.without_warm_up, (False, 0.003, "undecided"), True, "After 200 updates: 0.71 to 1.35"),
    (ch.without_warm_up, (False, 0.003, "constant"), False, "prediction for 200 updates isn't"),
    (ch.without_warm_up, (False, 0.003, "no"), False, "after_200 is 'no'"),
    (ch.without_warm_up, (False, 0.001, "constant"), False, "another setting that fits"),
    (ch.without_warm_up, (..., 0.01, "constant"), None, "Not attempted"),
    (ch.without_warm_up, (False, 0.01, "constant"), False, "warm-up is ahead with every seed"),
    (ch.without_warm_up, (False, 0.02, "constant"), False, "the recorded ones are 0.0003"),
    (ch.without_warm_up, (0.98, 0.01, "constant"), False, "the recorded ones are False"),
    (ch.without_warm_up, (True, 0.001, "constant"), False, "not this combination"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_weighing_by_positions_is_named(capsys):
    def accumulate(model, batches):
        model.zero_grad()
        positions = sum(y.numel() for _, y in batches)
        for x, y in batches:
            (mean_loss(model, x, y) * y.numel() / positions).backward()
        return grads(model)

    assert ch.accumulate(accumulate) is False
    assert "padding included" in capsys.readouterr().out


def test_the_check_of_accumulate_leaves_the_random_state_alone():
    before = torch.get_rng_state()
    ch.accumulate(accumulation(by_tokens))
    assert torch.equal(before, torch.get_rng_state())
