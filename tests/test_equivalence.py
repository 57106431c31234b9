"""Equal to the reference implementations, with copied weights, to 1e-5 in float32."""

import pytest
import torch
from conftest import assert_equal, tiny_config
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_lib import ModelConfig, Transformer
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.decoder import Decoder, DecoderLayer
from transformer_lib.encoder import Encoder, EncoderLayer
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.normalization import BatchNorm, LayerNorm, RMSNorm
from transformer_lib.positional import sinusoidal_table

D, H, FF = 16, 4, 24


def randomise(module):
    """Gains and biases start at 1 and 0, which would hide a missing one."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.5)
    return module.eval()


def copy_linear(ours, weight, bias):
    ours.weight.data.copy_(weight)
    if bias is not None:
        ours.bias.data.copy_(bias)


def copy_attention(ours, theirs):
    weights = theirs.in_proj_weight.chunk(3)
    biases = [None] * 3 if theirs.in_proj_bias is None else theirs.in_proj_bias.chunk(3)
    for linear, weight, bias in zip((ours.w_q, ours.w_k, ours.w_v), weights, biases, strict=True):
        copy_linear(linear, weight, bias)
    copy_linear(ours.w_o, theirs.out_proj.weight, theirs.out_proj.bias)


def copy_layer(ours, theirs):
    copy_attention(ours.self_attention, theirs.self_attn)
    if hasattr(theirs, "multihead_attn"):
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_linear(ours.feed_forward.expand, theirs.linear1.weight, theirs.linear1.bias)
    copy_linear(ours.feed_forward.contract, theirs.linear2.weight, theirs.linear2.bias)
    for i, residual in enumerate(ours.residuals, start=1):
        residual.norm.load_state_dict(getattr(theirs, f"norm{i}").state_dict())


def ragged(batch, length, seed=0):
    """(B, T) bool, True = real token; at least one real token a sentence."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, length + 1, (batch, 1), generator=generator)
    return torch.arange(length) < lengths


# ---------------------------------------------------------------------------------- single parts


@pytest.mark.paper("multihead")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_multi_head_attention(bias, need_weights, batch, n_queries, n_keys, seed):
    torch.manual_seed(seed)
    theirs = randomise(nn.MultiheadAttention(D, H, bias=bias, batch_first=True))
    ours = MultiHeadAttention(D, H, bias=bias)
    copy_attention(ours, theirs)
    q, k, v = torch.randn(batch, n_queries, D), *torch.randn(2, batch, n_keys, D)
    real = ragged(batch, n_keys, seed)
    output, weights = ours(q, k, v, real[:, None, None], need_weights)
    expected, expected_weights = theirs(
        q, k, v, key_padding_mask=~real, average_attn_weights=False, need_weights=True
    )
    assert_equal(output, expected, 1e-5)
    if need_weights:
        assert_equal(weights, expected_weights, 1e-5)


def test_multi_head_attention_with_padding_and_the_future_hidden():
    theirs = randomise(nn.MultiheadAttention(D, H, batch_first=True))
    x, real = torch.randn(3, 6, D), ragged(3, 6)
    ours = MultiHeadAttention(D, H)
    copy_attention(ours, theirs)
    expected, _ = theirs(
        x, x, x, key_padding_mask=~real, attn_mask=~causal_mask(6)[0, 0], need_weights=False
    )
    assert_equal(ours(x, x, x, real[:, None, None] & causal_mask(6))[0], expected, 1e-5)


@given(st.integers(2, 40), st.sampled_from([1e-5, 1e-3]), st.integers(0, 99))
def test_layer_norm_and_rms_norm(d_model, eps, seed):
    torch.manual_seed(seed)
    x = 3 * torch.randn(2, 3, d_model) + 1
    for ours, theirs in (
        (LayerNorm(d_model, eps), nn.LayerNorm(d_model, eps)),
        (RMSNorm(d_model, eps), nn.RMSNorm(d_model, eps)),
    ):
        ours.load_state_dict(randomise(theirs).state_dict())
        assert_equal(ours(x), theirs(x), 1e-5)


def test_batch_norm_in_training_and_in_use():
    ours, theirs = BatchNorm(D), randomise(nn.BatchNorm1d(D)).train()
    ours.load_state_dict(theirs.state_dict(), strict=False)
    for _ in range(3):  # the running averages move along
        x = 2 * torch.randn(4, 5, D) + 1
        assert_equal(ours(x), theirs(x.flatten(0, 1)).view_as(x), 1e-5)
    assert_equal(ours.running_mean, theirs.running_mean, 1e-5)
    assert_equal(ours.running_var, theirs.running_var, 1e-5)
    ours.eval(), theirs.eval()
    assert_equal(ours(x), theirs(x.flatten(0, 1)).view_as(x), 1e-5)


# ------------------------------------------------------------------------- layers and whole stacks

variants = pytest.mark.parametrize(
    ("norm_first", "activation"), [(a, b) for a in (True, False) for b in ("relu", "gelu")]
)


def torch_layer(kind, norm_first, activation):
    return randomise(kind(
        D, H, FF, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    ))


@pytest.mark.paper("3.1")
@variants
@pytest.mark.parametrize("n_layers", [None, 3])
def test_encoder(norm_first, activation, n_layers):
    config = tiny_config(
        norm_first=norm_first, activation=activation, n_encoder_layers=n_layers or 1
    )
    theirs = torch_layer(nn.TransformerEncoderLayer, norm_first, activation)
    if n_layers is None:
        ours = EncoderLayer(config)
        copy_layer(ours, theirs)
    else:
        norm = nn.LayerNorm(D) if norm_first else None
        theirs = randomise(
            nn.TransformerEncoder(theirs, n_layers, norm, enable_nested_tensor=False)
        )
        ours = Encoder(config)
        for mine, other in zip(ours.layers, theirs.layers, strict=True):
            copy_layer(mine, other)
        if norm_first:
            ours.norm.load_state_dict(theirs.norm.state_dict())
    x, real = torch.randn(3, 6, D), ragged(3, 6)
    # Gradients on: torch's inference path would zero the padded positions.
    expected = theirs.train()(x, src_key_padding_mask=~real)
    assert_equal(ours(x, real[:, None, None]), expected, 1e-5)


@pytest.mark.paper("3.1")
@variants
@pytest.mark.parametrize("n_layers", [None, 3])
def test_decoder(norm_first, activation, n_layers):
    config = tiny_config(
        norm_first=norm_first, activation=activation, n_decoder_layers=n_layers or 1
    )
    theirs = torch_layer(nn.TransformerDecoderLayer, norm_first, activation)
    if n_layers is None:
        ours = DecoderLayer(config)
        copy_layer(ours, theirs)
    else:
        norm = nn.LayerNorm(D) if norm_first else None
        theirs = randomise(nn.TransformerDecoder(theirs, n_layers, norm))
        ours = Decoder(config)
        for mine, other in zip(ours.layers, theirs.layers, strict=True):
            copy_layer(mine, other)
        if norm_first:
            ours.norm.load_state_dict(theirs.norm.state_dict())
    x, memory = torch.randn(3, 5, D), torch.randn(3, 6, D)
    tgt_real, src_real = ragged(3, 5), ragged(3, 6, seed=1)
    expected = theirs(
        x, memory, tgt_mask=~causal_mask(5)[0, 0], tgt_key_padding_mask=~tgt_real,
        memory_key_padding_mask=~src_real,
    )
    tgt_mask = tgt_real[:, None, None] & causal_mask(5)
    assert_equal(ours(x, memory, src_real[:, None, None], tgt_mask), expected, 1e-5)


# ------------------------------------------------------------------------------- the whole model


def copy_marian_attention(ours, theirs):
    for name, other in (
        ("w_q", "q_proj"),
        ("w_k", "k_proj"),
        ("w_v", "v_proj"),
        ("w_o", "out_proj"),
    ):
        getattr(ours, name).load_state_dict(getattr(theirs, other).state_dict())


def copy_marian_layer(ours, theirs):
    norms = [theirs.self_attn_layer_norm, theirs.final_layer_norm]
    copy_marian_attention(ours.self_attention, theirs.self_attn)
    if hasattr(theirs, "encoder_attn"):
        copy_marian_attention(ours.cross_attention, theirs.encoder_attn)
        norms.insert(1, theirs.encoder_attn_layer_norm)
    ours.feed_forward.expand.load_state_dict(theirs.fc1.state_dict())
    ours.feed_forward.contract.load_state_dict(theirs.fc2.state_dict())
    for residual, norm in zip(ours.residuals, norms, strict=True):
        residual.norm.load_state_dict(norm.state_dict())


@pytest.fixture(scope="module")
def marian_and_ours():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    marian = randomise(transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=30, d_model=D, encoder_layers=2, decoder_layers=3, encoder_attention_heads=H,
        decoder_attention_heads=H, encoder_ffn_dim=FF, decoder_ffn_dim=FF, init_std=0.3,
        activation_function="relu", scale_embedding=True, dropout=0.0, max_position_embeddings=40,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, forced_eos_token_id=None,
        decoder_start_token_id=1,
    )))
    ours = Transformer(ModelConfig(
        vocab_size=30, d_model=D, n_heads=H, d_ff=FF, n_encoder_layers=2, n_decoder_layers=3,
        max_len=40, norm_first=False,
    )).eval()
    ours.src_embedding.lookup.weight.data.copy_(marian.model.shared.weight)
    for mine, other in ((ours.encoder, marian.model.encoder), (ours.decoder, marian.model.decoder)):
        for layer, theirs in zip(mine.layers, other.layers, strict=True):
            copy_marian_layer(layer, theirs)
    # Marian puts all sines before all cosines; ours alternate, as the paper writes them.
    table = ours.embed.positions.table
    ours.embed.positions.table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
    return marian, ours


@pytest.mark.paper("pe")
def test_marians_positions_are_ours_in_another_order(marian_and_ours):
    marian, _ = marian_and_ours
    table = sinusoidal_table(40, D)
    theirs = marian.model.encoder.embed_positions.weight
    assert_equal(theirs, torch.cat([table[:, 0::2], table[:, 1::2]], dim=1), 1e-5)


@pytest.mark.paper("3")
def test_translation_model_equals_marian(marian_and_ours):
    marian, ours = marian_and_ours
    src = torch.randint(3, 30, (4, 9)) * ragged(4, 9)
    tgt = torch.randint(3, 30, (4, 7)) * ragged(4, 7, seed=1)
    with torch.no_grad():
        expected = marian(
            input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=tgt,
            decoder_attention_mask=(tgt != 0).long(),
        )
        assert_equal(ours.encode(src), expected.encoder_last_hidden_state, 1e-5)
        assert_equal(ours(src, tgt), expected.logits, 1e-5)
    assert expected.logits.std() > 0.1  # equal, and not because all are zero
    assert_equal(ours.default_masks(src, tgt)[0], padding_mask(src, 0), 0)


def test_greedy_decoding_equals_marians_generate(marian_and_ours):
    from transformer_lib.decoding import greedy_decode

    marian, ours = marian_and_ours
    src = torch.randint(3, 30, (4, 9)) * ragged(4, 9)
    theirs = marian.generate(
        src, attention_mask=(src != 0).long(), num_beams=1, do_sample=False, max_new_tokens=10,
        bad_words_ids=[[0]],
    )[:, 1:]
    mine = greedy_decode(ours, src, 10)
    assert mine.tolist() == theirs[:, : mine.size(1)].tolist()
