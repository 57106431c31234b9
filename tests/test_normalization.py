"""Normalisation: which axes each averages over, and what that implies."""

import pytest
import torch
from conftest import assert_equal
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.normalization import BatchNorm, LayerNorm, RMSNorm, layer_norm, make_norm


def random_norm(kind, d_model, seed=0):
    torch.manual_seed(seed)
    norm = make_norm(kind, d_model).double()
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    return norm


@given(st.integers(2, 20), st.integers(0, 99))
def test_fused_layer_norm_equals_the_teaching_version(d_model, seed):
    norm = random_norm("layer", d_model, seed)
    x = 3 * torch.randn(2, 3, d_model, dtype=torch.float64) + 5
    assert_equal(norm(x), layer_norm(x, norm.weight, norm.bias))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_each_token_is_normalised_alone(kind):
    norm, x = random_norm(kind, 8), torch.randn(3, 4, 8, dtype=torch.float64)
    for b in range(3):
        for t in range(4):
            assert_equal(norm(x)[b, t], norm(x[b, t]))


def test_layer_norm_gives_mean_0_and_variance_1():
    x = 7 * torch.randn(2, 3, 64, dtype=torch.float64) - 4
    y = LayerNorm(64).double()(x)
    assert_equal(y.mean(-1), torch.zeros(2, 3, dtype=torch.float64))
    assert_equal(y.var(-1, unbiased=False), torch.ones(2, 3, dtype=torch.float64), 1e-5)


def test_layer_norm_does_not_see_shift_and_rms_norm_does():
    x = torch.randn(2, 8, dtype=torch.float64)
    layer, rms = LayerNorm(8).double(), RMSNorm(8).double()
    assert_equal(layer(x + 3), layer(x))
    assert not torch.allclose(rms(x + 3), rms(x), atol=0.1)
    assert_equal(rms(x).pow(2).mean(-1), torch.ones(2, dtype=torch.float64), 1e-4)


def test_gain_and_bias_belong_to_features():
    layer, rms = LayerNorm(8), RMSNorm(8)
    assert layer.weight.shape == layer.bias.shape == rms.weight.shape == (8,)
    assert len(list(rms.parameters())) == 1


def test_a_constant_vector_is_no_division_by_zero():
    x = torch.full((1, 2, 8), 3.0, requires_grad=True)
    for norm in (LayerNorm(8), RMSNorm(8)):
        y = norm(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert y.isfinite().all() and grad.isfinite().all()
    assert RMSNorm(8)(torch.zeros(1, 1, 8)).eq(0).all()


def test_batch_norm_mixes_sentences_in_training_and_not_in_use():
    norm, x = random_norm("batch", 8), torch.randn(3, 4, 8, dtype=torch.float64)
    assert not torch.allclose(norm(x)[:1], norm(x[:1]), atol=1e-3)
    norm.eval()
    assert_equal(norm(x)[:1], norm(x[:1]))


def test_batch_norm_counts_padding():
    norm, x = BatchNorm(8), torch.randn(1, 4, 8)
    padded = torch.cat([x, torch.zeros(1, 4, 8)], 1)
    assert not torch.allclose(norm(padded)[:, :4], norm(x), atol=1e-2)


def test_batch_norm_of_one_token_is_an_error():
    with pytest.raises(ValueError, match="one token has no variance"):
        BatchNorm(8)(torch.randn(1, 1, 8))


def test_batch_norm_of_two_tokens_is_torchs():
    ours, theirs, x = BatchNorm(8), torch.nn.BatchNorm1d(8), torch.randn(1, 2, 8)
    assert_equal(ours(x)[0], theirs(x[0]), 1e-5)
    assert_equal(ours.running_var, theirs.running_var, 1e-5)


def test_make_norm_builds_what_the_config_names():
    assert isinstance(make_norm("layer", 4), LayerNorm)
    assert isinstance(make_norm("rms", 4), RMSNorm)
    assert isinstance(make_norm("batch", 4), BatchNorm)
