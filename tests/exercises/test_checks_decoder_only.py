"""Every check of chapter 20 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import decoder_only as ch


def links(s, t):
    causal = (s + t) * (s + t + 1) // 2
    return causal, causal + s * (s - 1) // 2


def places(size):
    place = torch.arange(size)
    return place[:, None], place[None, :]


def prefix(n_source, size):
    i, j = places(size)
    return (j <= i) | (j < n_source)


def stream(source, target):
    return source + target[:-1], [0] * len(source) + target[1:]


def bits(loss, tokens, size):
    return loss * tokens / size / math.log(2)


def parallel(x, norm, attention, network):
    return x + attention(norm(x)) + network(norm(x))


CASES = [
    (ch.links_of, (links,), True, "Right"),
    (ch.links_of, (lambda s, t: (..., ...),), None, "Not attempted"),
    (ch.links_of, (lambda s, t: ((s + t) ** 2, 0),), False, "every pair"),
    (ch.links_of, (lambda s, t: (links(s, t)[0], links(s, t)[0]),), False, "looks ahead"),
    (ch.links_of, (lambda s, t: (links(s, t)[0], (s + t) ** 2),), False, "each source token"),
    (ch.prefix_mask, (prefix,), True, "Right"),
    (ch.prefix_mask, (lambda n, size: prefix(n, size).tolist(),), True, "Right"),
    (ch.prefix_mask, (lambda n, size: ...,), None, "Not attempted"),
    (ch.prefix_mask, (lambda n, size: prefix(n, size).float(),), False, "bool"),
    (ch.stream_of, (stream,), True, "Right"),
    (ch.stream_of, (lambda s, t: ...,), None, "Not attempted"),
    (
        ch.stream_of,
        (lambda s, t: (s + t[:-1], [0] * (len(s) + 1) + t[2:]),),
        False,
        "you predict nothing at <bos>",
    ),
    (
        ch.stream_of,
        (lambda s, t: (s + t[:-1], [0] * len(s) + t[:-1]),),
        False,
        "predicts the token that it reads",
    ),
    (ch.stream_of, (lambda s, t: (s + t, [0] * len(s) + t[1:]),), False, "what is read was"),
    (ch.stream_of, (lambda s, t: (s + t[:-1], [0] * len(s) + t),), False, "each place needs"),
    (ch.bits_per_byte, (bits,), True, "Right"),
    (ch.bits_per_byte, (lambda *a: ...,), None, "Not attempted"),
    (ch.bits_per_byte, (lambda x, n, b: math.exp(x * n / b),), False, "perplexity per byte"),
    (ch.parallel_layer, (parallel,), True, "Right"),
    (ch.parallel_layer, (lambda *a: ...,), None, "Not attempted"),
    (ch.parallel_layer, (lambda x, norm, a, f: x + a(x) + f(x),), False, "nothing is normal"),
    (ch.overturn, (lambda: (1.5, 1000, 4.0, 250),), True, "Right"),
    (ch.overturn, (lambda: (..., ..., ..., ...),), None, "Not attempted"),
    (ch.overturn, (lambda: (2.0, 500, 1.0, 100),), False, "a lower loss"),
    (ch.overturn, (lambda: (1.0, 100, 2.0, 300),), False, "let it have more"),
    (ch.overturn, (lambda: (1.0, 300, 4.0, 250),), False, "better, 300 nats"),
    (ch.overturn, (lambda: (1.0, 2000, 4.0, 250),), False, "at least one byte"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
