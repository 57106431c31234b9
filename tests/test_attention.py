"""Attention: eq. 1, heads, the cache, and the fused kernel held to the teaching version."""

import math

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_lib.attention import (
    MultiHeadAttention,
    record_attention,
    scaled_dot_product_attention,
)
from transformer_lib.cache import KeyValueCache
from transformer_lib.masks import causal_mask
from transformer_lib.positional import AlibiBias, RotaryEmbedding

# ------------------------------------------------------------------------------------ equation 1


@pytest.mark.paper("eq1")
def test_attention_by_hand():
    # Two keys, d_k = 1: scores 0 and ln 3, so the weights are 1/4 and 3/4.
    q, k = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    output, weights = scaled_dot_product_attention(q, k, torch.tensor([[4.0, 0], [0, 8.0]]))
    assert_equal(weights, torch.tensor([[0.25, 0.75]]), 1e-6)
    assert_equal(output, torch.tensor([[1.0, 6.0]]), 1e-6)


def test_a_mask_fits_into_half_precision():
    """-1e9, which many implementations write into hidden scores, doesn't."""
    x, mask = torch.randn(1, 3, 4).half(), causal_mask(3)[0]
    assert scaled_dot_product_attention(x, x, x, mask)[0].isfinite().all()
    with pytest.raises(RuntimeError, match="overflow"):
        (x @ x.mT).masked_fill(~mask, -1e9)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 8), st.integers(0, 99))
def test_weights_are_distributions_over_allowed_keys(n_queries, n_keys, d_k, seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(2, n_queries, d_k), torch.randn(2, n_keys, d_k), torch.randn(2, n_keys, 3)
    mask = torch.rand(2, n_queries, n_keys) < 0.6
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert weights[~mask].eq(0).all()
    assert_equal(weights.sum(-1), mask.any(-1).float(), 1e-5)  # a row of nothing sums to 0
    assert_equal(output, weights @ v, 0)
    assert output[~mask.any(-1)].eq(0).all()


@pytest.mark.paper("eq1")
def test_scores_are_divided_by_the_root_of_d_k():
    # Doubling every feature doubles q . k; only sqrt(d_k) brings it to sqrt(2) times.
    q, k = torch.randn(3, 4), torch.randn(5, 4)
    weights = scaled_dot_product_attention(q, k, k)[1]
    expected = (torch.cat([q, q], -1) @ torch.cat([k, k], -1).T / math.sqrt(8)).softmax(-1)
    assert_equal((weights.log() * math.sqrt(2)).softmax(-1), expected, 1e-5)


def test_order_of_keys_does_not_matter():
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    order = torch.randperm(5)
    output = scaled_dot_product_attention(q, k[order], v[order])[0]
    assert_equal(output, scaled_dot_product_attention(q, k, v)[0], 1e-5)


def test_a_float_mask_is_added():
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    mask = torch.rand(3, 5) < 0.7
    mask[:, 0] = True
    added = torch.zeros(3, 5).masked_fill(~mask, -math.inf)
    for i in range(2):
        by_bool = scaled_dot_product_attention(q, k, v, mask)[i]
        assert_equal(scaled_dot_product_attention(q, k, v, added)[i], by_bool, 1e-6)


def test_dropout_keeps_the_mean_of_the_weights():
    q, k, v = torch.zeros(4000, 2), torch.zeros(4, 2), torch.eye(4)
    weights = scaled_dot_product_attention(q, k, v, dropout_p=0.5)[1]
    assert set(weights.unique().tolist()) == {0.0, 0.5}
    assert weights.mean().item() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("k", "v"), [((2, 5, 3), (2, 5, 4)), ((2, 5, 4), (2, 6, 4))], ids=["d_k", "number of keys"]
)
def test_sizes_that_do_not_fit_are_named(k, v):
    with pytest.raises(ValueError, match=r"q \(2, 3, 4\), k .*, v .* do not fit: q and k must"):
        scaled_dot_product_attention(torch.zeros(2, 3, 4), torch.zeros(k), torch.zeros(v))


# ------------------------------------------------------------------------------------ many heads


def position_of(kind, d_head=4, n_heads=3):
    return {"none": None, "rotary": RotaryEmbedding(d_head), "alibi": AlibiBias(n_heads)}[kind]


@pytest.mark.paper("eq1")
@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
@given(seed=st.integers(0, 99), share=st.sampled_from([0.3, 0.7, 1.0]))
def test_fused_equals_teaching(kind, seed, share):
    torch.manual_seed(seed)
    attention = MultiHeadAttention(12, 3, positions=position_of(kind)).double()
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    mask = torch.rand(2, 3, 5, 5) < share
    mask[0, 0, 1] = False  # a query that may attend to nothing
    fused, nothing = attention(x, x, x, mask)
    taught, weights = attention(x, x, x, mask, need_weights=True)
    assert nothing is None
    assert weights.shape == (2, 3, 5, 5)
    assert weights[0, 0, 1].eq(0).all()
    assert_equal(fused, taught)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
def test_fully_masked_rows_give_finite_gradients(kind, need_weights):
    attention = MultiHeadAttention(12, 3, positions=position_of(kind))
    x = torch.randn(2, 4, 12, requires_grad=True)
    mask = torch.ones(2, 1, 1, 4, dtype=torch.bool)
    mask[1] = False
    output, _ = attention(x, x, x, mask, need_weights)
    output.pow(2).sum().backward()
    assert_equal(output[1], attention.w_o.bias.expand(4, 12), 1e-6)  # attention gave zeros
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


@pytest.mark.paper("multihead")
def test_heads_are_separate_attentions_on_slices():
    attention = MultiHeadAttention(12, 3).double()
    x, y = torch.randn(2, 4, 12, dtype=torch.float64), torch.randn(2, 6, 12, dtype=torch.float64)
    q, k, v = attention.w_q(x), attention.w_k(y), attention.w_v(y)
    heads = [
        scaled_dot_product_attention(q[..., s], k[..., s], v[..., s])[0]
        for s in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    assert_equal(attention(x, y, y)[0], attention.w_o(torch.cat(heads, -1)))


def test_split_and_join_are_inverse():
    attention, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    assert attention.split_heads(x).shape == (2, 3, 5, 4)
    assert_equal(attention.join_heads(attention.split_heads(x)), x, 0)


@pytest.mark.paper("3.2.2")
def test_number_of_heads_does_not_change_the_parameters():
    counts = {sum(p.numel() for p in MultiHeadAttention(12, h).parameters()) for h in (1, 2, 3, 12)}
    assert counts == {4 * (12 * 12 + 12)}
    without = MultiHeadAttention(12, 3, bias=False)
    assert sum(p.numel() for p in without.parameters()) == 4 * 12 * 12


@pytest.mark.paper("5.4")
@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_acts_in_training_alone(need_weights):
    attention, x = MultiHeadAttention(12, 3, dropout=0.5), torch.randn(2, 5, 12)
    first, second = (attention(x, x, x, None, need_weights)[0] for _ in range(2))
    assert not torch.equal(first, second)
    attention.eval()
    first, second = (attention(x, x, x, None, need_weights)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_heads_that_do_not_divide_are_an_error():
    with pytest.raises(ValueError, match="d_model 10 is not divisible by n_heads 3.*choose sizes"):
        MultiHeadAttention(10, 3)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 5, 11), (5, 12), (1, 2, 5, 12)])
def test_wrong_shapes_are_named(which, shape):
    inputs = [torch.zeros(2, 5, 12) for _ in range(3)]
    inputs[which] = torch.zeros(shape)
    name = ("query", "key", "value")[which]
    with pytest.raises(ValueError, match=rf"{name} has shape \(.*\); expected \(batch, tok"):
        MultiHeadAttention(12, 3)(*inputs)


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 5, 12), (1, 4, 12), (1, 5, 12)),
        ((2, 5, 12), (2, 5, 12), (1, 5, 12)),
        ((2, 5, 12), (1, 5, 12), (1, 5, 12)),
    ],
    ids=["a key without its value", "values of another batch", "queries of another batch"],
)
def test_inputs_that_do_not_fit_together_are_an_error(shapes):
    with pytest.raises(ValueError, match="all need the same batch size, and every key needs its"):
        MultiHeadAttention(12, 3)(*map(torch.zeros, shapes))


@pytest.mark.parametrize(("seen", "hidden"), [(1, 0), (0, -(10**9))])
def test_a_mask_of_integers_is_an_error(seen, hidden):
    x = torch.randn(1, 3, 4)
    mask = torch.full((3, 3), seen).masked_fill(~causal_mask(3)[0, 0], hidden)
    with pytest.raises(ValueError, match="dtype torch.int64; expected bool"):
        scaled_dot_product_attention(x, x, x, mask)


# ----------------------------------------------------------------------------- cache and recorder


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
@given(cuts=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_a_cache_fed_in_pieces_equals_one_causal_pass(kind, cuts):
    torch.manual_seed(0)
    attention = MultiHeadAttention(12, 3, positions=position_of(kind)).double()
    length = sum(cuts)
    x, causal = torch.randn(2, length, 12, dtype=torch.float64), causal_mask(length)
    cache, pieces, start = KeyValueCache(), [], 0
    for cut in cuts:
        piece = x[:, start : start + cut]
        mask = causal[:, :, start : start + cut, : start + cut]
        pieces.append(attention(piece, piece, piece, mask, cache=cache)[0])
        start += cut
        assert cache.length == start
    assert_equal(torch.cat(pieces, 1), attention(x, x, x, causal)[0])


def test_no_new_keys_means_those_of_the_cache():
    attention, cache = MultiHeadAttention(12, 3).double(), KeyValueCache()
    x, memory = torch.randn(2, 5, 12).double(), torch.randn(2, 4, 12).double()
    first = attention(x[:, :2], memory, memory, cache=cache)[0]
    then = attention(x[:, 2:], None, None, cache=cache)[0]
    assert_equal(torch.cat([first, then], 1), attention(x, memory, memory)[0])
    assert cache.length == 4
    for empty in (None, KeyValueCache()):
        with pytest.raises(ValueError, match=r"key has shape None; expected \(batch, tokens, 12"):
            attention(x, None, None, cache=empty)


@pytest.mark.parametrize("n_kv_heads", [1, 2])
@pytest.mark.parametrize("kind", ["none", "rotary", "alibi"])
def test_grouped_queries_are_heads_with_repeated_keys(kind, n_kv_heads):
    grouped = MultiHeadAttention(
        16, 4, positions=position_of(kind, n_heads=4), n_kv_heads=n_kv_heads
    ).double()
    full = MultiHeadAttention(16, 4, positions=position_of(kind, n_heads=4)).double()
    state = grouped.state_dict()
    for name in ("w_k.weight", "w_k.bias", "w_v.weight", "w_v.bias"):
        heads = state[name].unflatten(0, (n_kv_heads, 4))  # K = 4
        state[name] = heads.repeat_interleave(4 // n_kv_heads, 0).flatten(0, 1)
    full.load_state_dict(state)
    x, mask = torch.randn(2, 5, 16, dtype=torch.float64), causal_mask(5)
    assert_equal(grouped(x, x, x, mask)[0], full(x, x, x, mask)[0])
    taught = grouped(x, x, x, mask, need_weights=True)
    assert_equal(taught[0], full(x, x, x, mask)[0])
    assert taught[1].shape == (2, 4, 5, 5)


def test_heads_of_keys_that_do_not_divide_are_an_error():
    with pytest.raises(ValueError, match="n_heads 4 is not divisible by n_kv_heads 3.*divide"):
        MultiHeadAttention(16, 4, n_kv_heads=3)


def test_recorder_collects_every_attention_and_leaves_no_trace():
    model, src, tgt = tiny_model(), random_ids(2, 6), random_ids(2, 5)
    before = model(src, tgt)
    with record_attention(model) as weights:
        during = model(src, tgt)
    assert_equal(during, before)
    assert weights["encoder.layers.1.self_attention"].shape == (2, 4, 6, 6)
    assert weights["decoder.layers.0.self_attention"].shape == (2, 4, 5, 5)
    assert weights["decoder.layers.0.cross_attention"].shape == (2, 4, 5, 6)
    assert len(weights) == 6
    for recorded in weights.values():
        assert_equal(recorded.sum(-1), torch.ones_like(recorded[..., 0]))
        assert not recorded.requires_grad
    weights.clear()
    model(src, tgt)
    assert not weights


def test_recorder_keeps_what_is_given_by_name():
    attention, x = MultiHeadAttention(8, 2).eval(), torch.randn(1, 4, 8)
    first_only = torch.tensor([True, False, False, False]).expand(1, 1, 4, 4)
    with record_attention(nn.ModuleDict({"it": attention})) as weights:
        attention(x, x, x, mask=first_only)
    assert_equal(weights["it"], first_only.float().expand(1, 2, 4, 4))


def test_recorder_lets_go_after_an_error():
    model = tiny_model()
    with pytest.raises(RuntimeError, match="stop"), record_attention(model):
        raise RuntimeError("stop")
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
