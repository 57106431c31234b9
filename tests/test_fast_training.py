"""What is only fast equals what the chapters print."""

import dataclasses

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_config
from hypothesis import given
from hypothesis import strategies as st
from tiny_run import run, without_timings
from torch import nn

from transformer_lib import Transformer, dropout, fast, training
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.runs import checkpoint

smoothings = st.sampled_from([0.0, 0.1, 0.5])


def both(project, parameters, hidden, targets, factor=1.0, **settings):
    """(loss, gradient of hidden, gradients of the parameters) of the blockwise and plain loss."""
    results = []
    for blockwise in (True, False):
        h = hidden.clone().requires_grad_()
        if blockwise:
            loss = fast.projected_cross_entropy(project, h, targets, parameters, **settings)
        else:
            loss = label_smoothed_cross_entropy(project(h), targets, **settings)
        results.append([loss, *torch.autograd.grad(factor * loss, [h, *parameters])])
    return results


def assert_same(results, tolerance=1e-5):
    for ours, plain in zip(*results, strict=True):
        assert ours.dtype == plain.dtype
        assert_equal(ours.detach(), plain.detach(), tolerance)


@given(
    smoothings, st.integers(1, 300), st.integers(2, 30), st.floats(0, 0.9), st.floats(0.5, 3),
    st.integers(0, 99),
)
def test_the_blockwise_loss_equals_the_plain_one(smoothing, n, vocab, padding, factor, seed):
    # 300 rows make three blocks of 128 on a CPU; the factor stands for accumulation.
    torch.manual_seed(seed)
    hidden, output = torch.randn(n, 6), nn.Linear(6, vocab)
    targets = torch.randint(1, vocab, (n,)).masked_fill(torch.rand(n) < padding, 0)
    parameters = list(output.parameters())
    assert_same(both(output, parameters, hidden, targets, factor, smoothing=smoothing))


@pytest.mark.parametrize(
    "project",
    [
        lambda output, h: output(h) / 2,
        lambda output, h: 3 * torch.tanh(output(h)),  # whose gradient needs its own output
        lambda output, h: output(h).log_softmax(-1),
        lambda output, h: output(torch.relu(h)) + h.sum(-1, keepdim=True),
    ],
)
def test_any_projection_will_do(project):
    torch.manual_seed(0)
    output, hidden = nn.Linear(6, 9), torch.randn(2, 150, 6)
    targets = torch.randint(0, 9, (2, 150))
    assert_same(both(lambda h: project(output, h), list(output.parameters()), hidden, targets))


def test_parameters_that_the_projection_does_not_use_get_no_gradient():
    output, other = nn.Linear(6, 9), nn.Linear(6, 9)
    hidden, targets = torch.randn(200, 6), torch.randint(1, 9, (200,))
    parameters = [*other.parameters(), *output.parameters()]
    fast.projected_cross_entropy(output, hidden, targets, parameters).backward()
    assert all(p.grad is None for p in other.parameters())
    assert all(p.grad is not None for p in output.parameters())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.bfloat16, 2e-2)])
def test_the_blockwise_loss_in_other_precisions(dtype, tolerance):
    torch.manual_seed(0)
    output, hidden = nn.Linear(64, 9, dtype=dtype), torch.randn(9, 64, dtype=dtype)
    targets = torch.tensor([1, 2, 3, 4, 5, 0, 6, 7, 8])
    loss = fast.projected_cross_entropy(output, hidden, targets, list(output.parameters()))
    exact = label_smoothed_cross_entropy(output(hidden).double(), targets)
    assert_equal(loss.detach().double(), exact.detach(), 1e-9 if dtype == torch.float64 else 1e-5)
    parameters = list(output.parameters())
    for ours, plain in zip(*both(output, parameters, hidden, targets), strict=True):
        assert_equal(ours.detach().double(), plain.detach().double(), tolerance)


@pytest.mark.parametrize(("device", "rows"), [("cpu", 256), ("meta", 4096)])
def test_only_a_block_of_the_logits_exists_at_a_time(device, rows):
    """On a device that is no processor larger ones: "meta" stands for it, and computes nothing."""
    output, seen = nn.Linear(4, 6, device=device), []
    hidden = torch.zeros(2 * rows + 7, 4, device=device, requires_grad=True)
    targets = torch.ones(2 * rows + 7, dtype=torch.long, device=device)

    def project(block):
        seen.append(len(block))
        return output(block)

    fast.projected_cross_entropy(project, hidden, targets, list(output.parameters())).backward()
    assert seen == [rows, rows, 7]


def test_another_padding_and_nothing_to_count():
    output, hidden = nn.Linear(4, 9), torch.randn(3, 4)
    parameters, targets = list(output.parameters()), torch.tensor([1, -100, 0])
    assert_same(both(output, parameters, hidden, targets, ignore_index=-100))
    nothing = both(output, parameters, hidden, torch.zeros(3, dtype=torch.long))
    assert_same(nothing)
    assert all(value.eq(0).all() for value in nothing[0])


def test_large_logits_do_not_overflow():
    logits, targets = torch.tensor([[1e4, 0.0, -1e4]]), torch.tensor([1])
    loss = fast.projected_cross_entropy(lambda h: h, logits, targets, [], 0.0)
    assert loss.item() == pytest.approx(1e4)


class Halved(Transformer):
    def project(self, hidden):
        return super().project(hidden) / 2


@pytest.mark.parametrize("kind", [Transformer, Halved])
def test_both_losses_go_through_the_models_own_projection(kind):
    torch.manual_seed(0)
    model = kind(tiny_config()).eval()
    src, tgt = random_ids(3, 5), random_ids(3, 6)
    tgt[1, 4:] = 0
    expected = label_smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:], 0.1)
    results = []
    for loss in (training.translation_loss, fast.translation_loss):
        value = loss(model, (src, tgt), smoothing=0.1)
        assert_equal(value.detach(), expected.detach(), 1e-6)
        results.append([value, *torch.autograd.grad(value, list(model.parameters()))])
    assert_same(results, 1e-6)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_fast_run_is_the_printed_one(tmp_path, accumulate):
    """Without dropout, whose random numbers are others. A larger eps: see test_training.py."""
    same = dict(dropout=0.0, eps=1e-4, max_steps=6, accumulate=accumulate)
    _, plain = run(tmp_path / "plain", **same)
    _, quick = run(tmp_path / "fast", **same, fast=True)
    for ours, theirs in zip(without_timings(quick), without_timings(plain), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
    a, b = (
        checkpoint.load_weights(tmp_path / name / "checkpoints/step-0000006/model.safetensors")
        for name in ("plain", "fast")
    )
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=1e-5, rtol=1e-4)


def test_fast_is_off_unless_asked_for(tmp_path, monkeypatch):
    model, _ = run(tmp_path / "plain", max_steps=1, average=1)
    assert not any(isinstance(module, fast.Dropout) for module in model.modules())
    model, _ = run(tmp_path / "fast", max_steps=1, average=1, fast=True)
    kinds = {type(m) for m in model.modules() if isinstance(m, dropout.Dropout)}
    assert kinds == {fast.Dropout}


def test_the_fast_dropout_drops_as_many_as_it_says():
    p, n = 4 / 2**16, 2**24
    dropped = (fast.Dropout(p).train()(torch.ones(n)) == 0).sum().item()
    assert abs(dropped - p * n) < 6 * (p * n) ** 0.5  # 1,024, give or take 192


def test_accelerate_keeps_the_model():
    model = Transformer(dataclasses.replace(tiny_config(), dropout=0.3)).eval()
    before, names = model.state_dict(), [name for name, _ in model.named_modules()]
    src, tgt = random_ids(2, 4), random_ids(2, 3)
    expected = model(src, tgt)
    assert fast.accelerate(model) is model
    assert [name for name, _ in model.named_modules()] == names
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(model(src, tgt), expected)
    shares = {m.p for m in model.modules() if isinstance(m, fast.Dropout)}
    assert shares == {0.3} and not any(m.training for m in model.modules())


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("shape", [(5,), (1,), (4, 3), (2, 0)])
@pytest.mark.parametrize("bias", [True, False])
def test_onednn_gives_the_same_products_and_gradients(shape, bias, monkeypatch):
    linear, used = nn.Linear(7, 6, bias=bias), []
    inner = fast.training
    product = inner._onednn_product
    monkeypatch.setattr(inner, "_onednn_product", lambda *m: used.append(len(m)) or product(*m))
    x = torch.randn(*shape, 7, requires_grad=True)
    weight = torch.randn(*shape, 6)
    results = []
    for onednn in (False, True):
        with fast.products(torch.device("cpu"), n_tokens=4096 * onednn):
            y = linear(x)
            gradients = torch.autograd.grad((y * weight).sum(), [x, *linear.parameters()])
        results.append([y.detach(), *gradients])
        assert bool(used) == (onednn and x.numel() > 0)
        assert 3 in used or not (bias and used)  # with a bias in one operation
    assert_same(results, 1e-5)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("bias", [True, False])
def test_onednn_multiplies_an_input_that_is_stored_as_its_transpose(bias):
    linear, x = nn.Linear(7, 6, bias=bias), torch.randn(7, 5).t()
    expected = linear(x)
    with fast.products(torch.device("cpu"), n_tokens=4096):
        assert_equal(linear(x), expected, 1e-5)


@pytest.mark.parametrize("max_tokens", [512, 4096])
def test_only_large_batches_go_to_onednn(tmp_path, monkeypatch, max_tokens):
    """Small steps lose more on the way there than they gain: see OneDnnProducts."""
    entered, inner = [], fast.training.OneDnnProducts.__enter__
    monkeypatch.setattr(fast.training.OneDnnProducts, "__enter__",
                        lambda self: entered.append(1) or inner(self))
    run(tmp_path, max_steps=1, average=1, max_tokens=max_tokens, fast=True, precision="fp32")
    assert len(entered) == (max_tokens > 1024)


def test_onednn_leaves_other_precisions_alone():
    a = torch.randn(3, 4, dtype=torch.float64)
    with fast.products(torch.device("cpu"), n_tokens=4096):
        assert torch.equal(a @ a.T, (a[None] @ a.T)[0]) and (a @ a.T).dtype == torch.float64
