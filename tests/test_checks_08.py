"""Every check of chapter 08 accepts the right answer and names what is wrong with others."""

import pytest
import torch

from transformer_lib.checks import ch08


def keep_and_scale(keep_share, scale):
    """A dropout that keeps numbers with probability keep_share(p), and scales by scale(p)."""
    return lambda x, p: x * (torch.rand_like(x) < keep_share(p)) * scale(p)


def in_place(x, sublayer, norm, drop):
    x += drop(sublayer(norm(x)))
    return x


CASES = [
    (ch08.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, -2]), True, "Right"),
    (ch08.exactly_one, ([[1, -1], [-1, 1]], [0, 0], [1, 1]), True, "Right"),  # another way
    (ch08.exactly_one, (..., ..., ...), None, "Not attempted"),
    (ch08.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, 0]), False, "counts the ones"),
    (ch08.exactly_one, ([[1, 1], [1, 1]], [0, -1], [1, -1]), False, "at least one"),
    (ch08.exactly_one, ([[1, 0], [0, 1]], [0, 0], [1, -1]), False, "never bends"),
    (ch08.exactly_one, ([1, 1], [0, -1], [1, -2]), False, "one row for each"),
    (ch08.residual, (lambda x, f, n, d: x + d(f(n(x))),), True, "Right"),
    (ch08.residual, (lambda x, f, n, d: ...,), None, "Not attempted"),
    (ch08.residual, (lambda x, f, n, d: n(x) + d(f(n(x))),), False, "identity path is gone"),
    (ch08.residual, (lambda x, f, n, d: n(x + d(f(x))),), False, "post-norm"),
    (ch08.residual, (lambda x, f, n, d: d(x + f(n(x))),), False, "drop from the sum"),
    (ch08.residual, (lambda x, f, n, d: x + f(n(x)),), False, "dropout is missing"),
    (ch08.residual, (in_place,), False, "in place"),
    (ch08.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1 / (1 - p)),), True, "Right"),
    (ch08.dropout, (lambda x, p: ...,), None, "Not attempted"),
    (ch08.dropout, (keep_and_scale(lambda p: p, lambda p: 1 / p),), False, "keep what should"),
    (ch08.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1),), False, "not scaled up"),
    (ch08.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 1 / p),), False, "divide by p"),
    (ch08.fair_width, (lambda d, f: round(f * 2 / 3),), True, "Right"),
    (ch08.fair_width, (lambda d, f: ...,), None, "Not attempted"),
    (ch08.fair_width, (lambda d, f: round(f * 3 / 2),), False, "wider"),
    (ch08.fair_width, (lambda d, f: f // 2,), False, "too little"),
    (ch08.fair_width, (lambda d, f: f * 2 / 3,), False, "round"),
    # Wrong in a way that no message foresees: the comparison at the end must catch it.
    (ch08.exactly_one, ([[1, 1], [1, 1]], [0, -1], [2, -4]), False, "for (a, b) = [0, 1]"),
    (ch08.residual, (lambda x, f, n, d: x + 2 * d(f(n(x))),), False, "is not x plus"),
    (ch08.dropout, (keep_and_scale(lambda p: 1 - p, lambda p: 3),), False, "wrong size"),
    (ch08.dropout, (keep_and_scale(lambda p: 1 - p / 2, lambda p: 1 / (1 - p)),), False, "not 20%"),
    (ch08.fair_width, (lambda d, f: 1000,), False, "d_ff = 2048"),
    (ch08.fair_width, (lambda d, f: 1365,), False, "d_ff = 64"),
    (ch08.parameters, (2_099_712, 1_050_624, 0.667), True, "Run just now: network 2099712"),
    (ch08.parameters, (..., ..., ...), None, "Not attempted"),
    (ch08.parameters, (2_097_152, 1_050_624, 0.667), False, "biases are missing"),
    (ch08.parameters, (2_099_712, 1_048_576, 0.667), False, "four biases"),
    (ch08.parameters, (2_099_712, 1_050_624, 1 / 3), False, "the attention's share"),
    (ch08.gain, (30,), True, "Right"),
    (ch08.gain, (...,), None, "Not attempted"),
    (ch08.gain, (1.0,), False, "still gets"),
    (ch08.gain, (0.1,), False, "still gets"),
    (ch08.gain, (-1,), False, "between 0 and 1000"),
    (ch08.sums_in_the_way, (1, 0.01, 40), True, "Right"),
    (ch08.sums_in_the_way, (..., ..., ...), None, "Not attempted"),
    (ch08.sums_in_the_way, (6, 0.003, 120), False, "there the sums are ahead"),
    (ch08.sums_in_the_way, (6, 0.003, 100), False, "updates is 100; recorded are 40, 80"),
    (ch08.sums_in_the_way, (8, 0.003, 120), False, "layers is 8"),
    (ch08.sums_in_the_way, (True, 0.003, 120), False, "layers is True"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
