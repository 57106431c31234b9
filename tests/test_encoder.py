"""The encoder: residual order, final norm, depth."""

import pytest
import torch
from conftest import assert_equal, tiny_config
from torch import nn

from transformer_lib.blocks import Residual
from transformer_lib.encoder import Encoder, EncoderLayer
from transformer_lib.normalization import LayerNorm


def sublayer(x):
    return 2 * x.roll(1, -1) + 1


@pytest.mark.paper("residual")
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_pre_norm_and_post_norm_residuals(norm):
    x = torch.randn(2, 3, 16)
    pre = Residual(tiny_config(norm=norm))
    assert_equal(pre(x, sublayer), x + sublayer(pre.norm(x)), 1e-6)
    post = Residual(tiny_config(norm=norm, norm_first=False))
    assert_equal(post(x, sublayer), post.norm(x + sublayer(x)), 1e-6)


@pytest.mark.paper("5.4")
def test_dropout_falls_on_the_sublayer_and_never_on_the_path():
    residual, x = Residual(tiny_config(dropout=0.5)), torch.randn(50, 4, 16)
    change = residual(x, torch.ones_like) - x
    kept = change.abs() > 1
    assert change[~kept].abs().max() < 1e-6  # dropped: x passes untouched
    assert_equal(change[kept], torch.full_like(change[kept], 2.0), 1e-4)
    assert kept.float().mean().item() == pytest.approx(0.5, abs=0.05)


def test_final_norm_closes_pre_norm_only():
    assert isinstance(Encoder(tiny_config()).norm, LayerNorm)
    assert isinstance(Encoder(tiny_config(norm_first=False)).norm, nn.Identity)


def test_a_stack_is_its_layers_one_after_another():
    encoder, x = Encoder(tiny_config(n_encoder_layers=3)), torch.randn(2, 5, 16)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]
    expected = x
    for layer in encoder.layers:
        expected = layer(expected, mask)
    assert_equal(encoder(x, mask), encoder.norm(expected), 1e-6)
    assert len({id(layer) for layer in encoder.layers}) == 3


def test_no_layers_leave_the_input_but_for_the_norm():
    x = torch.randn(2, 5, 16)
    assert torch.equal(Encoder(tiny_config(n_encoder_layers=0, norm_first=False))(x), x)


def test_every_parameter_of_a_layer_takes_part():
    layer = EncoderLayer(tiny_config(activation="swiglu"))
    layer(torch.randn(2, 5, 16)).pow(2).sum().backward()
    for name, parameter in layer.named_parameters():
        if name != "self_attention.w_k.bias":  # it moves all scores of a row alike: no effect
            assert parameter.grad.abs().max() > 1e-5, name
