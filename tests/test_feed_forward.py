"""The feed-forward sublayer: eq. 2, its relatives, and each position on its own."""

import pytest
import torch
from conftest import assert_equal

from transformer_lib.feed_forward import FeedForward


@pytest.mark.paper("eq2")
def test_relu_is_equation_2():
    ffn, x = FeedForward(6, 10), torch.randn(2, 3, 6)
    w1, w2 = ffn.expand, ffn.contract
    hidden = (x @ w1.weight.T + w1.bias).clamp(min=0)
    assert_equal(ffn(x), hidden @ w2.weight.T + w2.bias, 1e-5)


def test_gelu_is_x_times_the_normal_distribution():
    ffn, x = FeedForward(6, 10, "gelu"), torch.randn(2, 3, 6)
    hidden = ffn.expand(x)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    assert_equal(ffn(x), ffn.contract(hidden), 1e-5)


def test_gelu_tanh_is_the_approximation_of_gpt_2():
    ffn, x = FeedForward(6, 10, "gelu_tanh"), torch.randn(2, 3, 6)
    hidden = ffn.expand(x)
    inner = (2 / torch.pi) ** 0.5 * (hidden + 0.044715 * hidden**3)
    assert_equal(ffn(x), ffn.contract(0.5 * hidden * (1 + inner.tanh())), 1e-5)


def test_without_biases_zero_stays_zero():
    for activation in ("relu", "swiglu"):
        ffn = FeedForward(6, 10, activation, bias=False)
        assert all(p.dim() == 2 for p in ffn.parameters())
        assert ffn(torch.zeros(1, 2, 6)).eq(0).all()


def test_swiglu_gates_one_projection_by_another():
    ffn, x = FeedForward(6, 10, "swiglu"), torch.randn(2, 3, 6)
    gate = ffn.gate(x)
    assert_equal(ffn(x), ffn.contract(gate * torch.sigmoid(gate) * ffn.expand(x)), 1e-5)


@pytest.mark.paper("3.3")
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "swiglu"])
def test_each_position_on_its_own(activation):
    ffn, x = FeedForward(6, 10, activation), torch.randn(2, 5, 6)
    order = torch.randperm(5)
    assert_equal(ffn(x[:, order]), ffn(x)[:, order], 1e-5)
    assert_equal(ffn(x[1:, 3:4]), ffn(x)[1:, 3:4], 1e-5)


def test_two_thirds_of_d_ff_give_swiglu_as_many_weights():
    def weights(*arguments):
        return sum(p.numel() for p in FeedForward(*arguments).parameters() if p.dim() > 1)

    assert weights(6, 20, "swiglu") == weights(6, 30)


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match="activation is 'tanh'; it must be one of .*'relu'"):
        FeedForward(6, 10, "tanh")
