"""Every check of chapter 08 accepts the right answer and names what is wrong with others."""

import pytest
import torch

from exercises.checks import feed_forward_and_residuals as ch


def keep_and_scale(keep_share, scale):
    """A dropout that keeps numbers with probability keep_share(p), and scales by scale(p)."""
    return lambda x, p: x * (torch.rand_like(x) < keep_share(p)) * scale(p)


def in_place(x, sublayer, norm, drop):
    x += drop(sublayer(norm(x)))
    return x


CASES = [
    (ch.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, -2]), True, "Right"),
    (ch.exactly_one, ([[1, -1], [-1, 1]], [0, 0], [1, 1]), True, "Right"),  # another way
    (ch.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, 0]), False, "counts the ones"),
    (ch.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, -1]), False, "at least one"),
    (ch.exactly_one, ([[1, 0], [0, 1]], [0, 0], [1, -1]), False, "changes nothing"),
    (ch.exactly_one, ([1, 1], [0, -1], [1, -2]), False, "one row for each"),
    (ch.residual, (lambda x, f, n, d: x + d(f(n(x))),), True, "Right"),
    (ch.residual, (lambda x, f, n, d: ...,), None, "Not attempted"),
    (ch.residual, (in_place,), False, "in place"),
    (ch.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1 / (1 - p)),), True, "Right"),
    (ch.dropout, (lambda x, p: ...,), None, "Not attempted"),
    (ch.dropout, (keep_and_scale(lambda p: p, lambda p: 1 / p),), False, "keep what should"),
    (ch.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1),), False, "not scaled up"),
    (ch.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1 / p),), False, "divide by p"),
    (ch.fair_width, (lambda d, f: round(f * 2 / 3),), True, "Right"),
    (ch.fair_width, (lambda d, f: ...,), None, "Not attempted"),
    (ch.fair_width, (lambda d, f: f // 2,), False, "too little"),
    # Wrong in a way that no message foresees: the comparison at the end must catch it.
    (ch.exactly_one, ([[1, 1], [1, 1]], [0, -1], [2, -4]), False, "for (a, b) = [0, 1]"),
    (ch.residual, (lambda x, f, n, d: x + 2 * d(f(n(x))),), False, "is not x plus"),
    (ch.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 3),), False, "wrong size"),
    (ch.dropout, (keep_and_scale(lambda p: 1 - p / 2, lambda p: 1 / (1 - p)),), False, "not 20%"),
    (ch.fair_width, (lambda d, f: 1000,), False, "d_ff = 2048"),
    (ch.fair_width, (lambda d, f: 1365,), False, "d_ff = 64"),
    (ch.parameters, (2_099_712, 1_050_624, 0.667), True, "Computed just now: network 2099712"),
    (ch.parameters, (2_097_152, 1_050_624, 0.667), False, "biases are missing"),
    (ch.parameters, (2_099_712, 1_048_576, 0.667), False, "four biases"),
    (ch.parameters, (2_099_712, 1_050_624, 1 / 3), False, "the attention's share"),
    (ch.gain, (30, 25), True, "Right"),
    (ch.gain, (1.0, 20), False, "still gets"),
    (ch.gain, (0.1, 20), False, "still gets"),
    (ch.gain, (-1, 20), False, "between 0 and 1000"),
    (ch.gain, (30, 2.5), False, "it's more"),
    (ch.gain, (30, 170), False, "it's less"),
    (ch.sums_in_the_way, (1, 0.01, 40, "with"), True, "With two layers: with sums"),
    (ch.sums_in_the_way, (1, 0.01, 40, "without"), False, "the prediction for two layers"),
    (ch.sums_in_the_way, (6, 0.003, 120, "with"), False, "there the sums are ahead"),
    (ch.sums_in_the_way, (6, 0.003, 100, "with"), False, "the recorded ones are 40, 80"),
    (ch.sums_in_the_way, (8, 0.003, 120, "with"), False, "layers is 8"),
    (ch.sums_in_the_way, (True, 0.003, 120, "with"), False, "layers is True"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_gradient_at_a_tenth_is_what_the_check_says():
    median = sorted(ch._own_share(0.1, seed) for seed in range(5))[2]
    assert abs(median - ch.AT_A_TENTH) < 0.5
