"""Positions: the formulas of the papers, and what each scheme promises."""

import math

import pytest
import torch
from conftest import assert_equal
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.positional import (
    AlibiBias,
    LearnedEncoding,
    RotaryEmbedding,
    SinusoidalEncoding,
    sinusoidal_table,
)

# ------------------------------------------------------------------------------------- sinusoidal


@given(st.integers(0, 299), st.integers(0, 15))
def test_sinusoids_follow_the_formula_of_section_3_5(position, i):
    table = sinusoidal_table(300, 32)
    angle = position / 10000 ** (2 * i / 32)
    assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_is_one_rotation_for_all_positions():
    # PE(p + k) = R(k) PE(p), with R(k) block-diagonal and free of p (sec. 3.5).
    table, k = sinusoidal_table(50, 8).double(), 7
    angle = k * 10000.0 ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8)
    sin, cos = table[:-k, 0::2], table[:-k, 1::2]
    assert_equal(table[k:, 0::2], sin * angle.cos() + cos * angle.sin(), 1e-6)
    assert_equal(table[k:, 1::2], cos * angle.cos() - sin * angle.sin(), 1e-6)


def test_sinusoids_are_fixed_and_not_stored():
    encoding = SinusoidalEncoding(8, 10)
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


def test_rotary_is_multiplication_by_a_complex_number():
    rotary, x = RotaryEmbedding(6).double(), torch.randn(1, 1, 9, 6, dtype=torch.float64)
    angle = torch.arange(9)[:, None] * rotary.frequency
    turned = torch.view_as_complex(x.unflatten(-1, (3, 2))) * torch.exp(1j * angle)
    assert_equal(rotary(x), torch.view_as_real(turned).flatten(-2))


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
