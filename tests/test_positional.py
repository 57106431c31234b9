"""Positions: the formulas of the papers, and what each scheme promises."""

import cmath
import math
import re
from pathlib import Path

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_config, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.positional import (
    SCHEMES,
    AlibiBias,
    LearnedEncoding,
    PositionalScheme,
    RotaryEmbedding,
    SinusoidalEncoding,
    make_positions,
    sinusoidal_table,
)

# ------------------------------------------------------------------------------------- sinusoidal


@pytest.mark.paper("pe")
@given(st.integers(0, 299), st.integers(0, 15))
def test_sinusoids_follow_the_formula_of_section_3_5(position, i):
    table = sinusoidal_table(300, 32)
    angle = position / 10000 ** (2 * i / 32)
    assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoids_are_exact_at_positions_far_out():
    table = sinusoidal_table(5000, 32)
    for position in (1234, 4999):
        for i in range(16):
            angle = position / 10000 ** (2 * i / 32)
            found = table[position, 2 * i : 2 * i + 2].tolist()
            assert found == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-7)


@pytest.mark.paper("3.5")
def test_a_shift_is_one_rotation_for_all_positions():
    # PE(p + k) = R(k) PE(p), with R(k) block-diagonal and free of p (sec. 3.5).
    table, k = sinusoidal_table(50, 8).double(), 7
    angle = k * 10000.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    sin, cos = table[:-k, 0::2], table[:-k, 1::2]
    assert_equal(table[k:, 0::2], sin * angle.cos() + cos * angle.sin(), 1e-6)
    assert_equal(table[k:, 1::2], cos * angle.cos() - sin * angle.sin(), 1e-6)


@pytest.mark.parametrize("encoding", [SinusoidalEncoding(8, 10), AlibiBias(4)])
def test_what_is_fixed_is_not_stored(encoding):
    assert not list(encoding.parameters())
    assert not encoding.state_dict()


@pytest.mark.parametrize("make", [SinusoidalEncoding, LearnedEncoding])
def test_added_encodings_can_start_anywhere(make):
    encoding, x = make(8, 10), torch.randn(2, 10, 8)
    whole = encoding(x)
    pieces = [encoding(x[:, :4]), encoding(x[:, 4:5], start=4), encoding(x[:, 5:], start=5)]
    assert_equal(torch.cat(pieces, 1), whole, 0)
    assert not torch.equal(whole, x)


@pytest.mark.parametrize("make", [SinusoidalEncoding, LearnedEncoding])
def test_a_position_past_the_table_is_an_error(make):
    encoding = make(8, 10)
    encoding(torch.zeros(1, 10, 8))
    for length, start in ((11, 0), (1, 10)):
        with pytest.raises(ValueError, match="position 10 is past max_len 10: shorten.*larger"):
            encoding(torch.zeros(1, length, 8), start)


def test_learned_positions_start_smaller_than_a_word():
    # A scaled embedding has size 1 per feature; 0.02 is what BERT and GPT-2 start from.
    table = LearnedEncoding(64, 500).table
    assert table.std().item() == pytest.approx(0.02, rel=0.05)
    assert table.mean().item() == pytest.approx(0, abs=0.001)


def test_learned_positions_learn():
    encoding = LearnedEncoding(8, 10)
    encoding(torch.zeros(2, 3, 8)).sum().backward()
    assert encoding.table.grad[:3].eq(2).all()
    assert encoding.table.grad[3:].eq(0).all()


# ----------------------------------------------------------------------------------------- rotary


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 60))
def test_rotary_scores_depend_on_distance_alone(m, n, shift):
    torch.manual_seed(1)
    rotary = RotaryEmbedding(6).double()
    q, k = torch.randn(2, 1, 1, 1, 6, dtype=torch.float64)

    def score(query_at, key_at):
        return (rotary(q, query_at) * rotary(k, key_at)).sum()

    assert_equal(score(m, n), score(m + shift, n + shift))


def test_rotary_turns_and_does_not_stretch():
    rotary, x = RotaryEmbedding(6).double(), torch.randn(2, 3, 5, 6, dtype=torch.float64)
    assert_equal(rotary(x).norm(dim=-1), x.norm(dim=-1))
    assert_equal(rotary(x)[:, :, 0], x[:, :, 0])  # position 0: no turn
    assert not torch.allclose(rotary(x)[:, :, 1:], x[:, :, 1:])


def turned_by_hand(x, start=0, base=10000.0):
    """Su et al. 2021, sec. 3.2.2, with Python's complex numbers: x (..., T, K)."""
    pairs, d_head = x.shape[-1] // 2, x.shape[-1]
    turns = [
        [cmath.exp(1j * p * base ** (-2 * i / d_head)) for i in range(pairs)]
        for p in range(start, start + x.shape[-2])
    ]
    as_complex = torch.view_as_complex(x.unflatten(-1, (pairs, 2)).contiguous())
    turned = as_complex * torch.tensor(turns, dtype=torch.complex128)
    return torch.view_as_real(turned).flatten(-2)


def test_rotary_is_multiplication_by_a_complex_number():
    rotary, x = RotaryEmbedding(6).double(), torch.randn(1, 1, 9, 6, dtype=torch.float64)
    assert_equal(rotary(x), turned_by_hand(x))
    assert_equal(RotaryEmbedding(6, base=50.0)(x), turned_by_hand(x, base=50.0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rotary_angles_are_exact_in_every_precision(dtype):
    x = torch.randn(1, 2, 5, 8).to(dtype)
    rotary = RotaryEmbedding(8).to(dtype)
    for start in (0, 200):
        turned = rotary(x, start)
        assert turned.dtype == dtype
        # Rounded once or twice on the way, never in the angle: 200 * 2**-9 would be far off.
        limit = 4 * torch.finfo(dtype).eps
        assert_equal(turned.double(), turned_by_hand(x.double(), start), max(limit, 5e-5))


def test_the_configuration_sets_the_base():
    rotary = make_positions(tiny_config(positional="rotary", rotary_base=50.0), "turn")
    x = torch.randn(1, 1, 9, 4, dtype=torch.float64)
    assert_equal(rotary.turn(x, x)[1], turned_by_hand(x, base=50.0))


@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_the_configuration_sets_the_numbers_of_a_head(n_heads):
    rotary = make_positions(tiny_config(positional="rotary", n_heads=n_heads), "turn")
    assert rotary.d_head == 16 // n_heads
    x = torch.randn(1, n_heads, 9, 16 // n_heads, dtype=torch.float64)
    assert_equal(rotary.turn(x, x)[0], turned_by_hand(x))


def test_rotary_needs_pairs():
    with pytest.raises(ValueError, match="pairs of features: d_head 5 must be even"):
        RotaryEmbedding(5)


# ------------------------------------------------------------------------------------------ alibi


def test_alibi_slopes_are_those_of_the_paper():
    # Press et al. 2022, sec. 3: for 8 heads 1/2, 1/4, ..., 1/256.
    assert_equal(AlibiBias(8).slopes, torch.tensor([2.0**-h for h in range(1, 9)]), 1e-7)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5))
def test_alibi_falls_with_distance(n_queries, n_keys, start):
    bias = AlibiBias(3)(n_queries, n_keys, start)
    assert bias.shape == (1, 3, n_queries, n_keys)
    for h in range(3):
        for i in range(n_queries):
            for j in range(n_keys):
                expected = -(2 ** (-8 * (h + 1) / 3)) * abs(start + i - j)
                assert bias[0, h, i, j].item() == pytest.approx(expected, abs=1e-6)


# ------------------------------------------------------------------------------ the three hooks


def test_a_scheme_acts_where_it_says_and_nowhere_else():
    places = {"sinusoidal": {"add"}, "learned": {"add"}, "rotary": {"turn"}, "alibi": {"bias"},
              "none": set()}
    x, q = torch.randn(1, 4, 16), torch.randn(1, 4, 4, 4)
    hooks = ("add", "turn", "bias")
    for name, kind in SCHEMES.items():
        config, acts = tiny_config(positional=name), set()
        # A scheme that is not in the table acts where it overrides a hook.
        overrides = {h for h in hooks if getattr(kind, h) is not getattr(PositionalScheme, h)}
        for hook in hooks:
            scheme = make_positions(config, hook)
            if not torch.equal(scheme.add(x), x):
                acts.add("add")
            if not torch.equal(scheme.turn(q, q)[0], q):
                acts.add("turn")
            if scheme.bias(4, 4) is not None:
                acts.add("bias")
        assert acts == places.get(name, overrides), name


@pytest.mark.parametrize("name", SCHEMES)
def test_a_text_begins_at_position_0_unless_its_start_is_given(name):
    scheme, x = SCHEMES[name].build(tiny_config(positional=name)), torch.randn(1, 2, 4, 4)
    for hook, inputs in (("add", [torch.randn(1, 4, 16)]), ("turn", [x, x]), ("bias", [4, 4])):
        act = getattr(scheme, hook)
        torch.testing.assert_close(act(*inputs), act(*inputs, start=0), rtol=0, atol=0)


def test_a_registered_scheme_is_wired_up_by_its_name_alone(monkeypatch):
    class Backwards(PositionalScheme):
        def bias(self, n_queries, n_keys, start=0):
            return torch.arange(n_keys).float().expand(1, 1, n_queries, n_keys)

    monkeypatch.setitem(SCHEMES, "backwards", Backwards)
    config, x = tiny_config(positional="backwards"), torch.randn(2, 5, 16)
    from transformer_lib.encoder import Encoder

    encoder, order = Encoder(config), [4, 0, 3, 1, 2]
    assert isinstance(encoder.layers[1].self_attention.positions, Backwards)
    assert not torch.allclose(encoder(x[:, order]), encoder(x)[:, order], atol=1e-3)


def test_the_example_for_contributors_works_as_it_is_written(monkeypatch):
    """The scheme in CONTRIBUTING.md, with its line in SCHEMES, keeps the law of the cache."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```python\n(class \w+\(PositionalScheme\).*?)```", text, re.DOTALL)
    scheme, line = example.split("SCHEMES = {")
    space = {"PositionalScheme": PositionalScheme, "Tensor": torch.Tensor, "nn": nn, "torch": torch}
    exec(scheme, space)
    for name, cls in eval("{" + line.replace("...", ""), space).items():
        monkeypatch.setitem(SCHEMES, name, cls)
        model, ids = tiny_model(positional=name), random_ids(1, 6)
        cache, memory = model.new_cache(), model.encode(ids)
        steps = [model.decode(ids[:, i : i + 1], memory, cache=cache) for i in range(6)]
        assert_equal(torch.cat(steps, 1), model.decode(ids, memory))
        order = [4, 0, 3, 1, 2, 5]
        assert not torch.allclose(model.encode(ids[:, order]), memory[:, order], atol=1e-3)


def test_a_registered_scheme_without_a_hook_is_an_error(monkeypatch):
    class Forgotten(PositionalScheme):
        def forward(self, x):
            return x + 1

    monkeypatch.setitem(SCHEMES, "forgotten", Forgotten)
    with pytest.raises(TypeError, match="Forgotten .'forgotten'. overrides none of add, turn and"):
        make_positions(tiny_config(positional="forgotten"), "add")


def test_a_name_instead_of_a_scheme_is_an_error():
    with pytest.raises(TypeError, match="positions is 'rotary'; expected a scheme such as Rotary"):
        MultiHeadAttention(12, 3, positions="rotary")
