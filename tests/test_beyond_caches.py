"""Caches that keep less: each against full attention at its limit, and against its own mask."""

import copy

import pretend
import pytest
import torch

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.beyond import caches
from transformer_lib.beyond.exchange import exchange
from transformer_lib.beyond.sparse import as_mask
from transformer_lib.cache import KeyValueCache
from transformer_lib.config import BlockConfig, ModelConfig
from transformer_lib.masks import causal_mask
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer
from transformer_lib.positional import RotaryEmbedding

SIZES = dict(d_model=32, n_heads=4, d_ff=48, n_encoder_layers=1, n_decoder_layers=3, dropout=0.0)


@pytest.fixture(autouse=True)
def no_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def close(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


# ---- one latent vector ---------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("normalise", [False, True])
def test_absorbed_equals_unabsorbed_with_a_cache_and_without(turned, normalise):
    positions = RotaryEmbedding(turned) if turned else None
    settings = dict(latent=12, turned=turned, normalise=normalise)
    a = caches.LatentAttention(32, 4, 0.0, True, positions, **settings).eval()
    a.w_v.bias.normal_()
    b, x = copy.deepcopy(a), torch.randn(2, 7, 32)
    b.absorb = False
    whole = b(x, x, x, causal_mask(7))[0]
    close(a(x, x, x, causal_mask(7))[0], whole)
    for attention in (a, b):
        cache = KeyValueCache()
        steps = [attention(t, t, t, cache=cache)[0] for t in x.split(1, dim=1)]
        close(torch.cat(steps, 1), whole)
        assert cache.keys.shape == (2, 1, 7, 12) and cache.values.shape == (2, 1, 7, turned)


def test_a_latent_as_wide_as_the_model_loses_nothing_and_a_shorter_one_does():
    old = MultiHeadAttention(32, 4).eval()
    for bias in (old.w_q.bias, old.w_k.bias, old.w_v.bias):
        bias.normal_()
    x = torch.randn(2, 6, 32)
    expected = old(x, x, x)[0]
    for absorb in (False, True):
        close(caches.latent(old, 32, absorb)(x, x, x)[0], expected)
        off = (caches.latent(old, 20, absorb)(x, x, x)[0] - expected).abs().max()
        assert off > 1e-3


def test_every_grouped_attention_is_a_latent_one():
    """Rank 2 G K is enough, whatever the number of heads of queries."""
    old = caches.grouped(MultiHeadAttention(32, 4).eval(), 1)
    full = MultiHeadAttention(32, 4).eval()
    full.w_q, full.w_o = old.w_q, old.w_o
    for mine, theirs in ((full.w_k, old.w_k), (full.w_v, old.w_v)):
        mine.weight.copy_(theirs.weight.repeat(4, 1))
        mine.bias.copy_(theirs.bias.repeat(4))
    x = torch.randn(2, 6, 32)
    close(full(x, x, x)[0], old(x, x, x)[0])
    close(caches.latent(full, 16)(x, x, x)[0], old(x, x, x)[0])  # 2 * 1 * 8


def test_grouped_heads_are_means():
    old = MultiHeadAttention(32, 4).eval()
    x = torch.randn(1, 2, 32)
    close(caches.grouped(old, 4)(x, x, x)[0], old(x, x, x)[0])
    two = caches.grouped(old, 2)
    close(two.w_k.weight[:8], (old.w_k.weight[:8] + old.w_k.weight[8:16]) / 2)
    close(two.w_v.weight[8:], (old.w_v.weight[16:24] + old.w_v.weight[24:]) / 2)


@pytest.mark.parametrize("bias", [False, True])
def test_fitted_heads_lose_nothing_where_one_can_make_the_other(bias):
    """With all heads, and with two of four where each is a map of its neighbour."""
    old, x = MultiHeadAttention(32, 4, bias=bias).eval(), torch.randn(2, 6, 32)
    if bias:
        for layer in (old.w_q, old.w_k, old.w_v, old.w_o):
            layer.bias.normal_()
    close(caches.fitted(old, 4)(x, x, x)[0], old(x, x, x)[0])
    assert (caches.fitted(old, 2)(x, x, x)[0] - old(x, x, x)[0]).abs().max() > 1e-3
    for layer in (old.w_k, old.w_v):
        heads = layer.weight.view(4, 8, 32)
        heads[1], heads[3] = torch.randn(8, 8) @ heads[0], torch.randn(8, 8) @ heads[2]
    two = caches.fitted(old, 2)
    assert two.w_k.weight.shape == two.w_v.weight.shape == (16, 32)
    close(two(x, x, x)[0], old(x, x, x)[0], 1e-4)
    assert (caches.grouped(old, 2)(x, x, x)[0] - old(x, x, x)[0]).abs().max() > 1e-2


@pytest.mark.parametrize(("kind", "size"), [(caches.fitted, 2), (caches.latent, 9)])
def test_keys_that_attention_turns_cannot_be_made(kind, size):
    config = ModelConfig(40, **(SIZES | {"positional": "rotary"}))
    turned = Transformer(config).decoder.layers[0].self_attention
    with pytest.raises(ValueError, match="RotaryEmbedding, by which a score depends"):
        kind(turned, size)


def test_the_nearest_product_is_nearest():
    weight = torch.randn(3, 10, 6)
    up, down = caches.truncated_svd(weight, 6)
    close(up @ down, weight)
    up, down = caches.truncated_svd(weight, 2)
    left = torch.linalg.svdvals(weight)[:, 2:].square().sum(-1)
    close((up @ down - weight).square().sum((-1, -2)), left, 1e-3)


@pytest.mark.parametrize("kind", ["grouped", "fitted", "latent"])
def test_a_converted_translator_decodes_with_its_cache_as_without(kind):
    model = Transformer(ModelConfig(40, **SIZES)).eval()
    kinds = {k: dict(n_kv_heads=2) for k in ("grouped", "fitted")} | {"latent": dict(size=9)}
    caches.convert(model, getattr(caches, kind), **kinds[kind])
    src, tgt = torch.randint(4, 40, (2, 5)), torch.randint(4, 40, (2, 8))
    memory, cache = model.encode(src), model.new_cache()
    steps = [model.decode(token, memory, cache=cache) for token in tgt.split(1, dim=1)]
    close(torch.cat(steps, 1), model.decode(tgt, memory))


def test_latent_attention_equals_deepseek():
    transformers = pytest.importorskip("transformers")
    from transformers.models.deepseek_v2 import modeling_deepseek_v2 as theirs

    config = transformers.DeepseekV2Config(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=None,
        kv_lora_rank=12, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8,
        attention_bias=False, max_position_embeddings=64, head_dim=4, attn_implementation="eager",
    )
    other = theirs.DeepseekV2Attention(config, layer_idx=0).eval()
    ours = caches.LatentAttention(
        32, 4, 0.0, False, RotaryEmbedding(4), latent=12, turned=4, normalise=True
    ).eval()
    ours.norm.eps = other.kv_a_layernorm.variance_epsilon
    other.kv_a_layernorm.weight.normal_()
    q = other.q_proj.weight.unflatten(0, (4, 12))  # (H, K + turned, D)
    ours.w_q.weight.copy_(q[:, :8].flatten(0, 1))
    ours.w_q_turned.weight.copy_(q[:, 8:].flatten(0, 1))
    ours.w_down.weight.copy_(other.kv_a_proj_with_mqa.weight[:12])
    ours.w_k_turned.weight.copy_(other.kv_a_proj_with_mqa.weight[12:])
    ours.norm.weight.copy_(other.kv_a_layernorm.weight)
    up = other.kv_b_proj.weight.unflatten(0, (4, 16))
    ours.w_k.weight.copy_(up[:, :8].flatten(0, 1))
    ours.w_v.weight.copy_(up[:, 8:].flatten(0, 1))
    ours.w_o.weight.copy_(other.o_proj.weight)
    x = torch.randn(2, 7, 32)
    rotary = theirs.DeepseekV2RotaryEmbedding(config)(x, torch.arange(7)[None])
    mask = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    expected = other(x, mask, position_embeddings=rotary)[0]
    for ours.absorb in (True, False):
        close(ours(x, x, x, causal_mask(7))[0], expected)


# ---- a norm on queries and keys ------------------------------------------------------------------


def test_a_normed_score_is_bounded_whatever_comes_in():
    q, k = 1e4 * torch.randn(2, 1, 2, 9, 16)
    a, b = caches.QueryKeyNorm(16, RotaryEmbedding(16)).turn(q, k, start=3)
    assert (a @ b.mT / 4).abs().max() <= 4 + 1e-4
    assert (q @ k.mT / 4).abs().max() > 1e6


def test_query_key_norm_decodes_with_its_cache_as_without():
    model = LanguageModel(ModelConfig(40, **SIZES, positional="rotary")).eval()
    for layer in model.decoder.layers:
        attention = layer.self_attention
        attention.positions = caches.QueryKeyNorm(attention.d_head, attention.positions)
        attention.positions.q_norm.weight.normal_()
    ids = torch.randint(4, 40, (2, 8))
    prompt, state = model.start(ids[:, :1], 1)
    steps = [model.decode(token, state.cache) for token in ids.split(1, dim=1)]
    close(torch.cat(steps, 1), model.decode(ids))


def test_query_key_norm_equals_qwen_3():
    transformers = pytest.importorskip("transformers")
    from transformers.models.qwen3 import modeling_qwen3 as theirs

    config = transformers.Qwen3Config(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        attention_bias=False, max_position_embeddings=64, attn_implementation="eager",
    )
    other = theirs.Qwen3Attention(config, layer_idx=0).eval()
    positions = caches.QueryKeyNorm(8, RotaryEmbedding(8), eps=config.rms_norm_eps)
    ours = MultiHeadAttention(32, 4, 0.0, False, positions, n_kv_heads=2).eval()
    # Theirs turns feature i with i + K / 2, ours 2 i with 2 i + 1: rows change places.
    order = torch.arange(8).view(2, 4).T.flatten()
    other.q_norm.weight.normal_()
    other.k_norm.weight.normal_()
    positions.q_norm.weight.copy_(other.q_norm.weight[order])
    positions.k_norm.weight.copy_(other.k_norm.weight[order])
    for mine, other_map in ((ours.w_q, other.q_proj), (ours.w_k, other.k_proj)):
        mine.weight.copy_(other_map.weight.unflatten(0, (-1, 8))[:, order].flatten(0, 1))
    ours.w_v.weight.copy_(other.v_proj.weight)
    ours.w_o.weight.copy_(other.o_proj.weight)
    x = torch.randn(2, 7, 32)
    rotary = theirs.Qwen3RotaryEmbedding(config)(x, torch.arange(7)[None])
    mask = torch.full((7, 7), -torch.inf).triu(1)[None, None]
    close(ours(x, x, x, causal_mask(7))[0], other(x, rotary, mask)[0])


# ---- windows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("window, sinks", [(1, 0), (3, 0), (3, 2), (20, 1)])
@pytest.mark.parametrize("positional", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("sizes", [(1,) * 12, (5, 1, 1, 3, 1, 1)])
def test_forgetting_equals_masking(window, sinks, positional, sizes):
    model = Transformer(ModelConfig(40, **SIZES, positional=positional)).eval()
    src, tgt = torch.randint(4, 40, (2, 5)), torch.randint(4, 40, (2, sum(sizes)))
    memory = model.encode(src)
    mask = as_mask(caches.window_with_sinks(window, sinks), tgt.size(1))
    masked = model.decode(tgt, memory, tgt_mask=mask)
    exchange(model.decoder, caches.WindowAttention, window=window, sinks=sinks)
    cache = caches.decoder_cache(model)
    steps = [model.decode(part, memory, cache=cache) for part in tgt.split(sizes, dim=1)]
    close(torch.cat(steps, 1), masked)
    close(model.decode(tgt, memory), masked)
    own = cache.layers[-1].own
    assert own.length == 12 and own.keys.size(2) == len(own.places) == min(12, window + sinks)


def test_a_window_as_long_as_the_text_is_full_attention():
    model = LanguageModel(ModelConfig(40, **SIZES, positional="rotary")).eval()
    ids = torch.randint(4, 40, (2, 9))
    expected = model.decode(ids)
    short = copy.deepcopy(model)
    exchange(model.decoder, caches.WindowAttention, window=9)
    exchange(short.decoder, caches.WindowAttention, window=8)
    close(model.decode(ids), expected)
    assert (short.decode(ids) - expected)[:, -1].abs().max() > 1e-4


def test_a_window_lies_where_its_queries_lie():
    torch.set_grad_enabled(True)  # the device refuses inference's tensors
    attention = caches.WindowAttention(32, 4, window=3, sinks=1).eval()
    x = torch.randn(1, 6, 32)
    expected = attention(x, x, x)[0]
    with pretend.chosen() as gpu:
        attention.to(gpu)
        cache = attention.new_cache()
        steps = [attention(t, t, t, cache=cache)[0] for t in x.to(gpu).split(1, dim=1)]
        assert cache.places.device.type == gpu.type
        close(torch.cat(steps, 1).cpu(), expected)


def test_tokens_kept():
    assert caches.tokens_kept(100, 10) == 10 and caches.tokens_kept(7, 10, 4) == 7
    assert caches.tokens_kept(100, 10, 4) == 14
    assert caches.tokens_kept(100, 10, one_global_of=3) == (10 + 10 + 100) / 3


# ---- bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("dim", [-1, -2])
def test_rounding_is_off_by_half_a_step_at_most(bits, dim):
    x = torch.randn(2, 3, 9, 16)
    codes, step, low = caches.quantise(x, bits, dim)
    assert codes.dtype == torch.uint8 and codes.max() == 2**bits - 1 and codes.min() == 0
    assert step.size(dim) == 1
    assert ((codes * step + low - x).abs() <= step / 2 + 1e-6).all()


def test_a_constant_group_comes_back():
    codes, step, low = caches.quantise(torch.full((1, 1, 2, 4), 3.0), 4)
    close(codes * step + low, torch.full((1, 1, 2, 4), 3.0))


def test_more_bits_come_nearer_and_many_are_exact():
    model = Transformer(ModelConfig(40, **SIZES)).eval()
    src, tgt = torch.randint(4, 40, (2, 5)), torch.randint(4, 40, (2, 8))
    memory = model.encode(src)
    expected, off = model.decode(tgt, memory), []
    for bits in (2, 4, 8):
        def kept(bits=bits):
            return caches.QuantisedCache(bits)

        cache = caches.decoder_cache(model, kept, kept)
        steps = [model.decode(token, memory, cache=cache) for token in tgt.split(1, dim=1)]
        off.append((torch.cat(steps, 1) - expected).abs().max())
    assert off[0] > 3 * off[1] > 9 * off[2] and off[2] < 0.02


# ---- the count -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [None, 2, 1])
def test_the_formula_counts_what_a_cache_holds(n_kv_heads):
    model = LanguageModel(ModelConfig(40, **SIZES, n_kv_heads=n_kv_heads)).eval()
    ids, state = model.start(torch.randint(4, 40, (1, 6)), 1)
    model.step(ids, state)
    held = sum(x.own.keys.nbytes + x.own.values.nbytes for x in state.cache.layers)
    assert held == 6 * caches.bytes_per_token(model.config, bits=32)


def test_the_formula_counts_latents():
    config = BlockConfig(d_model=32, n_heads=4, n_decoder_layers=3)
    assert caches.bytes_per_token(config, 16, latent=12, turned=4) == 3 * 16 * 2
    assert caches.quantised_bits(4, 32) == 5
