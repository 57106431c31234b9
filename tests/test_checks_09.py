"""Every check of chapter 09 accepts the right answer and names what is wrong with others."""

import math

import pytest

from transformer_lib.checks import ch09

REACH = {"both ways": [0, 1, 2, 3, 4], "causal": [3, 4]}


def pre_norm(x, norm_1, attend, norm_2, feed_forward):
    x = x + attend(norm_1(x))
    return x + feed_forward(norm_2(x))


def post_norm(x, norm_1, attend, norm_2, feed_forward):
    x = norm_1(x + attend(x))
    return norm_2(x + feed_forward(x))


def adds_the_norm(x, norm_1, attend, norm_2, feed_forward):
    x = norm_1(x)
    x = x + attend(x)
    x = norm_2(x)
    return x + feed_forward(x)


def no_residual(x, norm_1, attend, norm_2, feed_forward):
    return feed_forward(norm_2(attend(norm_1(x))))


def one_norm(x, norm_1, attend, norm_2, feed_forward):
    x = x + attend(norm_1(x))
    return x + feed_forward(norm_1(x))


def parallel(x, norm_1, attend, norm_2, feed_forward):
    return x + attend(norm_1(x)) + feed_forward(norm_2(x))


def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
    return norm(x)


def only_last(x, mask, layers, norm):
    for layer in layers:
        output = layer(x, mask)
    return norm(output)


def no_norm(x, mask, layers, norm):
    return run_stack(x, mask, layers, lambda y: y)


def no_mask(x, mask, layers, norm):
    return run_stack(x, None, layers, norm)


def count(n, d, f, maps=4, bias=1, norms=2, final=1):
    attention = maps * (d * d + bias * d)
    return n * (attention + 2 * d * f + bias * (f + d) + norms * 2 * d) + final * 2 * d


CASES = [
    (ch09.reach, (REACH,), True, "Right"),
    (ch09.reach, ({"both ways": ..., "causal": ...},), None, "Not attempted"),
    (ch09.reach, (REACH | {"both ways": [3]},), False, "every token attends"),
    (ch09.reach, (REACH | {"causal": [0, 1, 2, 3]},), False, "that may read it"),
    (ch09.reach, (REACH | {"causal": [4]},), False, "itself"),
    (ch09.layer, (pre_norm,), True, "Right"),
    (ch09.layer, (lambda *parts: ...,), None, "Not attempted"),
    (ch09.layer, (post_norm,), False, "post-norm"),
    (ch09.layer, (adds_the_norm,), False, "normalised input"),
    (ch09.layer, (no_residual,), False, "nothing is added"),
    (ch09.layer, (one_norm,), False, "norm_2"),
    (ch09.layer, (parallel,), False, "what attention has left"),
    (ch09.stack, (run_stack,), True, "Right"),
    (ch09.stack, (lambda *parts: ...,), None, "Not attempted"),
    (ch09.stack, (only_last,), False, "only the last layer"),
    (ch09.stack, (no_norm,), False, "final norm is missing"),
    (ch09.stack, (no_mask,), False, "mask does not reach"),
    (ch09.parameters, (count,), True, "Right"),
    (ch09.parameters, (lambda n, d, f: ...,), None, "Not attempted"),
    (ch09.parameters, (lambda n, d, f: count(n, d, f, final=0),), False, "final norm"),
    (ch09.parameters, (lambda n, d, f: count(n, d, f, norms=0, final=0),), False, "norms are"),
    (ch09.parameters, (lambda n, d, f: count(n, d, f, bias=0),), False, "biases"),
    (ch09.parameters, (lambda n, d, f: count(n, d, f, maps=3),), False, "W_O"),
    (ch09.parameters, (lambda n, d, f: count(n, d, f, norms=1),), False, "two norms"),
    (ch09.layers_needed, (lambda n: math.ceil(math.log2(n)),), True, "Right"),
    (ch09.layers_needed, (lambda n: ...,), None, "Not attempted"),
    (ch09.layers_needed, (lambda n: n - 1,), False, "further note"),
    (ch09.layers_needed, (lambda n: int(math.log2(n)),), False, "round up"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
