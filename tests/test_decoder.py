"""The decoder: what it reads, what it caches, and hypotheses that share a memory."""

import pytest
import torch
from conftest import assert_equal, tiny_config, tiny_model
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.cache import DecoderCache
from transformer_lib.decoder import Decoder, DecoderLayer
from transformer_lib.encoder import Encoder
from transformer_lib.masks import causal_mask
from transformer_lib.positional import SCHEMES, PositionalScheme


def inputs(batch=2, length=4, source=5):
    x = torch.randn(batch, length, 16, dtype=torch.float64)
    return x, torch.randn(batch, source, 16, dtype=torch.float64)


@pytest.mark.paper("3.1")
def test_a_layer_is_three_residuals_in_order():
    layer = DecoderLayer(tiny_config()).double()
    x, memory = inputs()
    causal, src_mask = causal_mask(4), torch.tensor([True] * 4 + [False])[None, None, None]
    y = layer.residuals[0].norm(x)
    expected = x + layer.self_attention(y, y, y, causal)[0]
    y = layer.residuals[1].norm(expected)
    expected = expected + layer.cross_attention(y, memory, memory, src_mask)[0]
    expected = expected + layer.feed_forward(layer.residuals[2].norm(expected))
    assert_equal(layer(x, memory, src_mask, causal), expected)


def test_memory_behind_the_source_mask_is_not_read():
    decoder = tiny_model().decoder
    x, memory = inputs()
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]
    other = memory.clone()
    other[0, 3:] += 100
    assert_equal(decoder(x, other, mask), decoder(x, memory, mask))
    other[1, 4] += 1
    assert not torch.allclose(decoder(x, other, mask)[1], decoder(x, memory, mask)[1])


def test_cross_attention_has_no_positions():
    for positional in ("rotary", "alibi"):
        layer = DecoderLayer(tiny_config(positional=positional))
        assert type(layer.self_attention.positions) is SCHEMES[positional]
        assert type(layer.cross_attention.positions) is PositionalScheme


def test_the_memory_is_projected_once():
    decoder, cache = tiny_model().decoder, DecoderCache(2)
    x, memory = inputs()
    decoder(x[:, :1], memory, cache=cache)
    kept = [layer.memory.keys for layer in cache.layers]
    decoder(x[:, 1:2], memory, cache=cache)
    assert all(layer.memory.keys is keys for layer, keys in zip(cache.layers, kept, strict=True))
    assert cache.length == 2


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 50))
def test_hypotheses_that_share_a_memory_equal_copies_of_it(batch, beam, steps, seed):
    decoder = tiny_model(seed).decoder
    x, memory = inputs(batch * beam, steps)
    memory = memory[:batch]
    mask = torch.rand(batch, 1, 1, 5) < 0.7
    shared, cache = [], DecoderCache(2)
    for t in range(steps):
        shared.append(decoder(x[:, t : t + 1], memory, mask, cache=cache))
    copies = decoder(
        x, memory.repeat_interleave(beam, 0), mask.repeat_interleave(beam, 0), causal_mask(steps)
    )
    assert_equal(torch.cat(shared, 1), copies)


def test_cached_sentences_can_be_left_out():
    decoder, cache = tiny_model().decoder, DecoderCache(2)
    x, memory = inputs(3)
    cache.select(torch.tensor([0]), torch.tensor([0]))  # nothing kept yet, nothing to do
    decoder(x[:, :1], memory, cache=cache)
    rows = torch.tensor([2, 0])
    cache.select(rows, rows)
    expected = decoder(x[rows, :2], memory[rows], tgt_mask=causal_mask(2))[:, 1:]
    assert_equal(decoder(x[rows, 1:2], memory[rows], cache=cache), expected)


def test_a_decoder_without_cache_starts_at_nothing():
    assert DecoderCache(2).length == 0
    assert Decoder(tiny_config(n_decoder_layers=0)).layers.__len__() == 0


def test_a_decoder_alone_is_an_encoder_with_a_causal_mask():
    decoder = Decoder(tiny_config(), cross_attention=False).double()
    encoder = Encoder(tiny_config()).double()
    encoder.load_state_dict(decoder.state_dict())
    x, _ = inputs()
    assert_equal(decoder(x, tgt_mask=causal_mask(4)), encoder(x, causal_mask(4)))


def test_a_forgotten_memory_is_named():
    with pytest.raises(ValueError, match="no memory to read: pass one, or build with cross_att"):
        Decoder(tiny_config())(torch.randn(2, 4, 16))
