"""Learning rates: eq. 3 of the paper, and the same shape with its peak given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.schedule import inverse_sqrt, noam

steps, warmups = st.integers(1, 100_000), st.integers(1, 8000)


@given(steps, warmups, st.sampled_from([128, 512]))
def test_noam_is_equation_3(step, warmup, d_model):
    expected = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert noam(step, d_model, warmup) == pytest.approx(expected)


@given(steps, warmups)
def test_both_are_one_shape(step, warmup):
    peak = noam(warmup, 512, warmup)
    assert inverse_sqrt(step, peak, warmup) == pytest.approx(noam(step, 512, warmup))


@given(steps, warmups)
def test_rises_to_its_peak_at_warmup_and_falls_after(step, warmup):
    rate, after = inverse_sqrt(step, 5e-3, warmup), inverse_sqrt(step + 1, 5e-3, warmup)
    assert 0 < rate <= 5e-3
    assert (after > rate) == (step < warmup)
    assert inverse_sqrt(warmup, 5e-3, warmup) == pytest.approx(5e-3)


def test_four_times_the_steps_halve_the_rate():
    assert inverse_sqrt(8000, 1.0, 2000) == pytest.approx(0.5)
    assert inverse_sqrt(500, 1.0, 2000) == pytest.approx(0.25)


@pytest.mark.parametrize("warmup", [0, 10])
def test_step_0_and_no_warmup_are_no_division_by_zero(warmup):
    assert noam(0, 512, warmup) == noam(1, 512, warmup) > 0
    assert inverse_sqrt(0, 1.0, warmup) == inverse_sqrt(1, 1.0, warmup) > 0
