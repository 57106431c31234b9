"""The loss: torch's numbers, padding left out."""

import math

import pytest
import torch
from conftest import assert_equal
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.loss import label_smoothed_cross_entropy

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


@pytest.mark.paper("5.4")
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
    loss = label_smoothed_cross_entropy(logits, torch.zeros(2, 3, dtype=torch.long))
    assert loss.item() == 0
    assert torch.autograd.grad(loss, logits)[0].eq(0).all()


def test_what_padded_rows_hold_does_not_matter():
    logits = torch.randn(2, 3, 5)
    logits[0, 1] = math.inf
    logits.requires_grad_()
    targets = torch.tensor([[1, 0, 2], [3, 4, 0]])
    loss = label_smoothed_cross_entropy(logits, targets)
    expected = label_smoothed_cross_entropy(logits[targets != 0], targets[targets != 0])
    assert_equal(loss, expected, 1e-6)


def test_large_logits_do_not_overflow():
    logits, targets = torch.tensor([[1e4, 0.0, -1e4]]), torch.tensor([1])
    assert label_smoothed_cross_entropy(logits, targets, 0.0).item() == pytest.approx(1e4)


def test_shapes_that_do_not_fit_are_named():
    message = r"logits \(2, 3, 5\) and targets \(2, 4\) do not fit: logits need the shape"
    with pytest.raises(ValueError, match=message):
        label_smoothed_cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.long))


@pytest.mark.parametrize("smoothing", [-0.01, 1.01])
def test_a_share_that_is_no_share_is_refused(smoothing):
    with pytest.raises(ValueError, match="smoothing"):
        label_smoothed_cross_entropy(torch.zeros(1, 2, 5), torch.ones(1, 2).long(), smoothing, 0)
