"""The verdict over runs says nothing when there is nothing to say, and finds what is there."""

import math

import numpy as np
import pytest

from transformer_lib.scoring.verdict import (
    BETTER,
    TIE,
    WORSE,
    compare_runs,
    pooled_spread,
    sign_flip_p,
)

LUCK = {  # how two arms that are the same may scatter: (rng, n) -> (n,)
    "normal": lambda rng, n: rng.normal(size=n),
    "all or nothing": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "mostly learned": lambda rng, n: (rng.random(n) < 0.8) + 0.01 * rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=n),
}


def apart(luck, n, trials=2000, effect=0.0):
    """The share of trials in which two arms with this luck get a verdict other than a tie."""
    rng = np.random.default_rng(0)
    words = [
        compare_runs(luck(rng, n) + effect, luck(rng, n)).word for _ in range(trials)
    ]
    assert effect == 0 or WORSE not in words
    return sum(word != TIE for word in words) / trials


@pytest.mark.parametrize("n", [3, 5, 8])
@pytest.mark.parametrize("luck", LUCK)
def test_shuffled_labels_cannot_be_told_apart_95_times_in_100(luck, n):
    noise = 2 * math.sqrt(0.05 * 0.95 / 2000)  # of 2,000 trials
    assert apart(LUCK[luck], n) <= 0.05 + noise


def test_a_shared_spread_keeps_the_promise_too():
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(1000):
        level = rng.normal(size=3)  # what a seed does to every arm
        arms = [dict(enumerate(level + rng.normal(size=3))) for _ in range(6)]
        spread = pooled_spread(arms)
        assert spread[1] == 10
        wrong += compare_runs(arms[0], arms[1], spread=spread).word != TIE
    assert wrong <= 65


@pytest.mark.parametrize(("n", "effect"), [(3, 12), (5, 4), (8, 2.5), (20, 1.3)])
def test_a_real_effect_is_found_with_enough_seeds(n, effect):
    assert apart(LUCK["normal"], n, 300, effect) > 0.9


def test_a_shared_spread_finds_what_three_seeds_cannot():
    """Three pairs know little about luck; eighteen runs know more."""
    rng, found = np.random.default_rng(2), {"three": 0, "shared": 0}
    for _ in range(200):
        arms = [dict(enumerate(rng.normal(size=3))) for _ in range(6)]
        arms[0] = {seed: value + 3.5 for seed, value in arms[0].items()}
        found["three"] += compare_runs(arms[0], arms[1]).word == BETTER
        found["shared"] += compare_runs(arms[0], arms[1], spread=pooled_spread(arms)).word == BETTER
    assert found["three"] < 140 < 180 < found["shared"]


def test_signs_and_words():
    up = compare_runs([3.1, 3.0, 3.2], [1.0, 1.1, 0.9])
    assert up.word == BETTER and up.low > 0 and up.pairs == 3
    assert compare_runs([3.1, 3.0, 3.2], [1.0, 1.1, 0.9], better="lower").word == WORSE
    assert str(up).startswith("better by 2.1 (95 % interval +1.")
    assert str(compare_runs([1, 2, 3], [3, 2, 1])).startswith("cannot be told apart (difference +0")


def test_agreement_of_few_seeds_in_sign_is_no_verdict():
    """Three seeds agree in sign one time in four by luck alone."""
    assert compare_runs([0.3, 1.0, 2.0], [0.0, 0.0, 0.0]).word == TIE
    assert compare_runs([9.0, 9.1], [0.0, 0.0]).word == TIE  # two pairs
    assert "only 2 pairs" in str(compare_runs([9.0, 9.1], [0.0, 0.0]))


def test_from_six_pairs_the_exact_test_has_to_agree():
    a = [1.0, 1.0, 1.0, 1.0, 1.0, -0.1]  # by t: mean 0.82, sd 0.45
    assert sign_flip_p(a) == 4 / 64
    verdict = compare_runs(a, [0.0] * 6)
    assert verdict.low > 0 and verdict.word == TIE
    assert sign_flip_p([1.0] * 6) == 2 / 64
    assert sign_flip_p(np.ones(20)) == pytest.approx(1e-4)


def test_many_comparisons_widen_the_interval():
    a, b = [2.0, 2.4, 1.7, 2.2], [1.0, 1.1, 1.3, 0.6]
    one, ten = compare_runs(a, b), compare_runs(a, b, among=10)
    assert one.word == BETTER and ten.word == TIE and ten.low < one.low


def test_quantiles_of_t():
    # Student's table: 2.5 % beyond 12.71 (1), 4.303 (2), 2.571 (5), 2.086 (20).
    for n, t in ((3, 4.303), (6, 2.571), (21, 2.086)):
        a = np.arange(n) - (n - 1) / 2
        half = compare_runs(a, np.zeros(n)).high
        assert half == pytest.approx(t * a.std(ddof=1) / math.sqrt(n), rel=1e-3)


def test_only_shared_seeds_are_compared():
    verdict = compare_runs({0: 1.0, 1: 2.0, 2: 3.0, 7: 99.0}, {0: 0.0, 1: 1.0, 2: 2.0, 5: -99.0})
    assert verdict.pairs == 3 and verdict.difference == 1


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="no seed is in both arms"):
        compare_runs({0: 1.0}, {1: 1.0})
    with pytest.raises(ValueError, match="got 2 and 3 runs"):
        compare_runs([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match='must be "higher" or "lower"'):
        compare_runs([1], [2], better="smaller")
    with pytest.raises(ValueError, match="count of comparisons"):
        compare_runs([1], [2], among=0)
    with pytest.raises(TypeError, match="seed: value"):
        compare_runs({0: 1}, [2])
