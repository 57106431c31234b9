"""The loss: torch's numbers, padding left out, and the blockwise version equal to the plain one."""

import math

import pytest
import torch
from conftest import assert_equal
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.loss import label_smoothed_cross_entropy, projected_cross_entropy

smoothings = st.sampled_from([0.0, 0.1, 0.5])


@given(smoothings, st.integers(0, 99))
def test_equals_torch_cross_entropy(smoothing, seed):
    torch.manual_seed(seed)
    logits = torch.randn(3, 5, 11, dtype=torch.float64) * 4
    targets = torch.randint(0, 11, (3, 5))
    targets[0, 0] = 3  # at least one counts
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=smoothing
    )
    assert_equal(label_smoothed_cross_entropy(logits, targets, smoothing), expected)


def test_is_the_cross_entropy_against_the_softened_distribution():
    logits, targets = torch.randn(4, 6), torch.tensor([1, 5, 2, 3])
    soft = 0.9 * torch.nn.functional.one_hot(targets, 6) + 0.1 / 6
    expected = -(soft * logits.log_softmax(-1)).sum(-1).mean()
    assert_equal(label_smoothed_cross_entropy(logits, targets, 0.1), expected, 1e-6)


@given(smoothings, st.integers(0, 99))
def test_padding_counts_nothing(smoothing, seed):
    torch.manual_seed(seed)
    logits, targets = torch.randn(2, 4, 7), torch.randint(1, 7, (2, 4))
    padded_logits = torch.cat([logits, 100 * torch.randn(2, 3, 7)], 1)
    padded_targets = torch.cat([targets, torch.zeros(2, 3, dtype=torch.long)], 1)
    expected = label_smoothed_cross_entropy(logits, targets, smoothing)
    assert_equal(
        label_smoothed_cross_entropy(padded_logits, padded_targets, smoothing), expected, 1e-5
    )


def test_undecided_logits_cost_log_v_nats():
    for smoothing in (0.0, 0.1):
        loss = label_smoothed_cross_entropy(torch.zeros(3, 8), torch.tensor([1, 2, 3]), smoothing)
        assert loss.item() == pytest.approx(math.log(8))


def test_a_forbidden_word_costs_nothing_without_smoothing():
    logits = torch.tensor([[2.0, 1.0, -math.inf, 0.5]])
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([1]))
    assert_equal(label_smoothed_cross_entropy(logits, torch.tensor([1]), 0.0), expected, 1e-6)


def test_nothing_to_count_is_0_with_a_gradient_of_0():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    hidden, weight = torch.randn(2, 3, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    padding = torch.zeros(2, 3, dtype=torch.long)
    for loss, inputs in (
        (label_smoothed_cross_entropy(logits, padding), [logits]),
        (projected_cross_entropy(hidden, weight, padding), [hidden, weight]),
    ):
        assert loss.item() == 0
        assert all(grad.eq(0).all() for grad in torch.autograd.grad(loss, inputs))


def test_large_logits_do_not_overflow():
    logits, targets = torch.tensor([[1e4, 0.0, -1e4]]), torch.tensor([1])
    assert label_smoothed_cross_entropy(logits, targets, 0.0).item() == pytest.approx(1e4)
    hidden = torch.tensor([[1e4]])
    weight = torch.tensor([[1.0], [0.0], [-1.0]])
    assert projected_cross_entropy(hidden, weight, targets, 0.0).item() == pytest.approx(1e4)


@given(
    smoothings, st.integers(1, 300), st.integers(2, 30), st.floats(0, 0.9), st.floats(0.5, 3),
    st.integers(0, 99),
)  # fmt: skip
def test_blockwise_loss_equals_the_plain_one(smoothing, n, vocab, padding, factor, seed):
    # 300 rows make three blocks of 128 on a CPU; the factor stands for accumulation.
    torch.manual_seed(seed)
    hidden, weight = torch.randn(n, 6), torch.randn(vocab, 6)
    targets = torch.randint(1, vocab, (n,)).masked_fill(torch.rand(n) < padding, 0)
    results = []
    for blockwise in (True, False):
        h, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        if blockwise:
            loss = projected_cross_entropy(h, w, targets, smoothing)
        else:
            loss = label_smoothed_cross_entropy(h @ w.T, targets, smoothing)
        (factor * loss).backward()
        results.append((loss.detach(), h.grad, w.grad))
    for given_value, expected in zip(*results, strict=True):
        assert_equal(given_value, expected, 1e-5)


def test_blockwise_loss_takes_batches_of_sentences():
    hidden, weight, targets = torch.randn(2, 3, 4), torch.randn(9, 4), torch.randint(0, 9, (2, 3))
    assert_equal(
        projected_cross_entropy(hidden, weight, targets),
        label_smoothed_cross_entropy(hidden @ weight.T, targets),
        1e-5,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_blockwise_loss_in_other_precisions(dtype):
    hidden = torch.randn(9, 64, dtype=dtype, requires_grad=True)
    weight = torch.randn(9, 64, dtype=dtype, requires_grad=True)
    targets = torch.tensor([1, 2, 3, 4, 5, 0, 6, 7, 8])
    loss = projected_cross_entropy(hidden, weight, targets)
    assert all(g.dtype == dtype for g in torch.autograd.grad(loss, (hidden, weight)))
    # The inputs may be coarse; what is computed from them is not.
    expected = label_smoothed_cross_entropy(hidden.double() @ weight.double().T, targets)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    assert_equal(loss.detach().double(), expected.detach(), tolerance)


def test_blockwise_loss_with_torchs_own_ignore_index():
    hidden, weight, targets = torch.randn(3, 4), torch.randn(9, 4), torch.tensor([1, -100, 0])
    assert_equal(
        projected_cross_entropy(hidden, weight, targets, ignore_index=-100),
        label_smoothed_cross_entropy(hidden @ weight.T, targets, ignore_index=-100),
        1e-5,
    )


def test_shapes_that_do_not_fit_are_named():
    message = r"logits \(2, 3, 5\) and targets \(2, 4\) do not fit: logits need the shape"
    with pytest.raises(ValueError, match=message):
        label_smoothed_cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.long))
