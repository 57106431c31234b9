"""Every check of chapter 06 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import positional_encodings as ch


def encode(position, d_model):
    row = []
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i / d_model)
        row += [math.sin(angle), math.cos(angle)]
    return row


def without_the_two(position, d_model):
    angles = [position / 10000 ** (i // 2 / d_model) for i in range(d_model)]
    return [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]


def batch_axis(x, table):
    return x + table[: x.size(0)].unsqueeze(1)


def one_row_per_token_of_the_batch(x, table):
    rows = torch.arange(x.size(0) * x.size(1)) % len(table)
    return x + table[rows].view(x.size(0), x.size(1), -1)


def back(k, w):
    return [[math.cos(k * w), -math.sin(k * w)], [math.sin(k * w), math.cos(k * w)]]


def compared(**changes):
    """The library's small learned table against the sinusoids as they are."""
    setting = {"sinusoidal": 0.71, "learned": 0.02, "sequences": 50, "steps": 200}
    return setting | {"fair": "learned"} | changes


CASES = [
    (ch.slow_wavelength, (628.3,), True, "Right"),
    (ch.encode_position, (encode,), True, "Right"),
    (ch.encode_position, (lambda p, d: ...,), None, "Not attempted"),
    (ch.encode_position, (without_the_two,), False, "with the 2"),
    (ch.encode_position, (lambda p, d: encode(p, d)[: d // 2],), False, "one number per feature"),
    (ch.repaired_addition, (lambda x, table: x + table[: x.size(1)],), True, "Right"),
    (ch.repaired_addition, (lambda x, table: ...,), None, "Not attempted"),
    (ch.repaired_addition, (batch_axis,), False, "same position"),
    (ch.repaired_addition, (one_row_per_token_of_the_batch,), False, "different positions"),
    (ch.shift_back, (back,), True, "Right"),
    (ch.shift_back, (lambda k, w: ...,), None, "Not attempted"),
    (ch.alibi_reach, (lambda m: math.ceil(math.log(100) / m),), True, "Right"),
    (ch.alibi_reach, (lambda m: ...,), None, "Not attempted"),
    (ch.alibi_reach, (lambda m: math.ceil(math.log2(100) / m),), False, "base e"),
    (ch.nearer, (16, 28, 57), True, "Right"),
    (ch.nearer, (64, 3, 6), False, "the second should be larger"),
    (ch.nearer, (64, 5, 6), False, "at least twice"),
    (ch.nearer, (8, 3, 7), False, "between 16 and 1024"),
    (ch.sinusoids_ahead, (compared(),), True, "Right"),
    (ch.sinusoids_ahead, (compared(sequences=25, steps=200),), True, "Right"),
    (ch.sinusoids_ahead, (compared(learned=...),), None, "Not attempted"),
    (ch.sinusoids_ahead, (compared(learned=0.71),), False, "worst seed must beat"),
    (ch.sinusoids_ahead, (compared(sinusoidal=0.02),), False, "worst seed must beat"),
    (ch.sinusoids_ahead, (compared(sequences=100),), False, "the recorded ones are 25, 50, 200"),
    (ch.sinusoids_ahead, ({"sequences": 50},), False, "give a dictionary"),
    (ch.sinusoids_ahead, (compared(fair="undecided"),), False, "What did your comparison give"),
    (ch.sinusoids_ahead, (compared(sequences=200),), True, "both at 0.71"),
    (ch.sinusoids_ahead, (compared(fair="both"),), False, "yours is 'both'"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
