"""Adam for all, or Muon for the layers' matrices: what a step is."""

import os
import platform
import subprocess
import sys

import pytest
import torch
from conftest import random_ids, tiny_model
from tiny_run import TRAIN
from torch import nn

from transformer_lib import TrainConfig, optimizers
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.feed_forward import FeedForward
from transformer_lib.optimizers import Muon, make_optimizer, orthogonalize


def updated(optimizer, model, seeds=range(3), rate=0.01):
    """The model's weights after updates with the gradients of random targets."""
    for seed in seeds:
        model.zero_grad()
        logits = model(random_ids(2, 6, seed=seed), random_ids(2, 5, seed=seed + 50))
        nn.functional.cross_entropy(
            logits.flatten(0, 1), random_ids(2, 5, seed=seed + 90).flatten()
        ).backward()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def rotation(n):
    return torch.linalg.qr(torch.randn(n, n)).Q


def far(one, other):
    """The distance of two matrices, as a share of their size."""
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("shape", [(16, 16), (32, 16), (16, 48)])
def test_all_directions_are_stretched_alike(shape):
    torch.manual_seed(0)
    stretches = torch.diag(torch.logspace(0, -1.5, 16))  # by 1 to by 1/30
    gradient = rotation(shape[0])[:, :16] @ stretches @ rotation(shape[1])[:16]
    stretched = torch.linalg.svdvals(orthogonalize(gradient[None])[0])[:16]
    assert 0.6 < stretched.min() and stretched.max() < 1.3


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-7])
def test_a_gradient_of_almost_nothing_gives_finite_steps(size):
    assert orthogonalize(torch.full((1, 1), size)).isfinite().all()


@pytest.mark.parametrize("has_bf16", [True, False])
def test_products_are_bf16_only_where_the_device_multiplies_it(monkeypatch, has_bf16):
    """An old GPU refuses batched products of bf16, and a processor with AVX2 only emulates them."""
    monkeypatch.setattr(optimizers, "multiplies_bf16", lambda device: has_bf16)
    kinds = set()

    class Watched(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            if "bmm" in str(operation):
                kinds.update(x.dtype for x in args)
            return operation(*args, **(kwargs or {}))

    torch.manual_seed(0)
    gradient = torch.randn(2, 24, 12)
    with Watched():
        step = orthogonalize(gradient)
    assert kinds == {torch.bfloat16 if has_bf16 else torch.float32} and step.dtype == gradient.dtype
    monkeypatch.setattr(optimizers, "multiplies_bf16", lambda device: not has_bf16)
    assert far(step, orthogonalize(gradient)) < 0.05  # the same step, whatever the device


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the limit is oneDNN's, for x86")
def test_a_processor_that_only_emulates_bf16_does_not_count():
    """AVX2 has no bf16; AVX512 without its bf16 part widens every number first."""
    code = ("import torch; from transformer_lib.runs.device import multiplies_bf16; "
            "print(multiplies_bf16(torch.device('cpu')))")
    limited = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    ran = subprocess.run([sys.executable, "-c", code], env=limited, capture_output=True, text=True)
    assert ran.stdout.strip() == "False", ran.stderr


def test_a_turned_gradient_gives_a_turned_step():
    torch.manual_seed(0)
    gradient, left, right = torch.randn(1, 24, 12), rotation(24), rotation(12)
    one, other = left @ orthogonalize(gradient) @ right, orthogonalize(left @ gradient @ right)
    assert far(one, other) < 0.1  # the products are bf16


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch before 2.9 has no Muon")
def test_the_matrices_move_as_with_torchs_own():
    torch.manual_seed(0)
    ours, theirs = MultiHeadAttention(16, 2), MultiHeadAttention(16, 2)
    theirs.load_state_dict(ours.state_dict())
    matrices = [p for p in theirs.parameters() if p.ndim == 2]
    start = [p.detach().clone() for p in matrices]
    own = Muon(ours, lr=0.01)
    known = torch.optim.Muon(matrices, lr=0.01, weight_decay=0, adjust_lr_fn="match_rms_adamw")
    for seed in range(4):
        torch.manual_seed(seed)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        own.step()
        known.step()
    moved = [p for p in ours.parameters() if p.ndim == 2]
    for p, q, before in zip(moved, matrices, start, strict=True):
        assert far(p - before, q - before) < 0.03


def test_all_else_moves_as_with_adam():
    config = TrainConfig(**TRAIN)
    results = []
    for kind in ("adam", "muon"):
        model = tiny_model()
        optimizer = make_optimizer(model, TrainConfig(**TRAIN, optimizer=kind))
        # One update: after it the gradients differ.
        results.append((updated(optimizer, model, seeds=[0]), model))
    (adam, model), (muon, _) = results
    inside = {
        f"{name}.{own}"
        for name, part in model.named_modules()
        if isinstance(part, (MultiHeadAttention, optimizers.FeedForward))
        for own, p in part.named_parameters()
        if p.ndim == 2
    }
    assert config.optimizer == "adam" and 0 < len(inside) < len(adam)
    for name in adam:
        assert torch.equal(adam[name], muon[name]) == (name not in inside), name


def test_its_steps_are_as_long_as_adams():
    """About 0.2 of the rate for each number of a matrix, whatever its shape."""
    torch.manual_seed(0)
    part = optimizers.FeedForward(16, 64)
    before = {name: p.detach().clone() for name, p in part.named_parameters()}
    for p in part.parameters():
        p.grad = torch.randn_like(p)
    Muon(part, lr=0.01).step()
    for name, p in part.named_parameters():
        if p.ndim == 2:
            step = (p - before[name]).square().mean().sqrt().item() / 0.01
            assert 0.14 < step < 0.24, name


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("muon", Muon)])
def test_a_run_gets_the_optimizer_that_it_names(name, kind):
    made = make_optimizer(tiny_model(), TrainConfig(optimizer=name))
    assert isinstance(made, kind) and isinstance(made, Muon) == (name == "muon")


@pytest.mark.parametrize("kind", [MultiHeadAttention, FeedForward])  # all matrices of a shape
def test_layers_without_gradient_stay(kind):
    model = tiny_model()
    frozen = nn.ModuleList(module for module in model.modules() if isinstance(module, kind))
    frozen.requires_grad_(False)
    before = {name: p.clone() for name, p in frozen.named_parameters()}
    updated(make_optimizer(model, TrainConfig(optimizer="muon")), model)
    assert all(torch.equal(p, before[name]) for name, p in frozen.named_parameters())


def test_its_state_goes_on():
    """Three updates at once, or one, a state saved and loaded, and two."""
    model, other = tiny_model(), tiny_model()
    whole = updated(make_optimizer(model, TrainConfig(optimizer="muon")), model)
    first = make_optimizer(other, TrainConfig(optimizer="muon"))
    updated(first, other, seeds=[0])
    second = make_optimizer(other, TrainConfig(optimizer="muon"))
    second.load_state_dict(first.state_dict())
    for name, p in updated(second, other, seeds=[1, 2]).items():
        assert torch.equal(p, whole[name]), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer is 'sgd'; it must be one of"),
        ({"optimizer": "muon", "weight_decay": 0.1}, "weight_decay is 0.1; it must be zero with"),
    ],
)
def test_settings_that_do_not_go_together_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**settings)
