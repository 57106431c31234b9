"""Learning rates: eq. 3 of the paper, and the same shape with its peak given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import TrainConfig
from transformer_lib.schedule import cooldown, inverse_sqrt, learning_rate, noam

steps, warmups = st.integers(1, 100_000), st.integers(1, 8000)


@pytest.mark.paper("eq3")
@given(steps, warmups, st.sampled_from([128, 512]))
def test_noam_is_equation_3(step, warmup, d_model):
    expected = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert noam(step, d_model, warmup) == pytest.approx(expected)


@given(steps, warmups)
def test_both_are_one_shape(step, warmup):
    peak = noam(warmup, 512, warmup)
    assert inverse_sqrt(step, peak, warmup) == pytest.approx(noam(step, 512, warmup))


@pytest.mark.paper("eq3")
@given(steps, warmups)
def test_rises_to_its_peak_at_warmup_and_falls_after(step, warmup):
    rate, after = inverse_sqrt(step, 5e-3, warmup), inverse_sqrt(step + 1, 5e-3, warmup)
    assert 0 < rate <= 5e-3
    assert (after > rate) == (step < warmup)
    assert inverse_sqrt(warmup, 5e-3, warmup) == pytest.approx(5e-3)


@pytest.mark.parametrize("warmup", [0, 1, 5])
def test_a_constant_rate_is_there_once_the_warm_up_is_over(warmup):
    config = TrainConfig(schedule="constant", peak_lr=2e-3, warmup=warmup)
    rates = [learning_rate(config, step, 512) for step in range(1, 9)]
    expected = [2e-3 * min(1, step / warmup) if warmup else 2e-3 for step in range(1, 9)]
    assert rates == pytest.approx(expected)


def test_four_times_the_steps_halve_the_rate():
    assert inverse_sqrt(8000, 1.0, 2000) == pytest.approx(0.5)
    assert inverse_sqrt(500, 1.0, 2000) == pytest.approx(0.25)


@pytest.mark.parametrize("warmup", [0, 10])
def test_no_warmup_is_no_division_by_zero(warmup):
    assert noam(1, 512, warmup) > 0
    assert inverse_sqrt(1, 1.0, warmup) > 0


@given(st.tuples(st.integers(1, 5000), st.integers(1, 5000)).map(sorted))
def test_cooldown_is_a_straight_line_that_ends_just_above_zero(lengths):
    length, max_steps = lengths
    factors = [cooldown(step, max_steps, length) for step in (max_steps - length, max_steps)]
    assert factors == [1.0, pytest.approx(1 / length)]  # the update after the last would have 0
    middle = max_steps + 1 - length / 2
    assert cooldown(middle, max_steps, length) == pytest.approx(0.5)


@given(steps)
def test_without_cooldown_the_rate_is_left_alone_to_the_end(max_steps):
    assert cooldown(max_steps, max_steps, 0) == cooldown(1, max_steps, 0) == 1.0
