"""Answers to the exercises of chapter 06, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: slow_wavelength
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
import math

answer = round(2 * math.pi * 10000, 1)
""",
        right=False,
        mistake="the longest wavelength of the paper, for a very wide model",
    ),
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
answer = 6.3
""",
        right=False,
        mistake="the fast pair",
    ),
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
answer = 100.0
""",
        right=False,
        mistake="forgets the full turn, 2 pi",
    ),
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
answer = 314.2
""",
        right=False,
        mistake="half a turn",
    ),
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
answer = 62.8
""",
        right=False,
        mistake="divides the index by d_model twice, with 10000 to the power 1/4",
    ),
    Answer(
        exercise="positional_encodings.1",
        check="slow_wavelength",
        code="""
import math

answer = 2 * math.pi / 10000 ** (-2 / 4)
""",
        right=True,
        mistake="not rounded",
    ),
    # Exercise 2: encode_position
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    row = []
    for i in range(d_model):
        angle = position / 10000 ** (i / d_model)
        row.append(math.sin(angle) if i % 2 == 0 else math.cos(angle))
    return row


answer = encode_position
""",
        right=False,
        mistake="sine and cosine of a pair get frequencies of their own",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    angles = [position / 10000 ** (2 * i / d_model) for i in range(d_model // 2)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


answer = encode_position
""",
        right=False,
        mistake="all sines, then all cosines",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    row = []
    for i in range(0, d_model, 2):
        angle = position / 10000 ** (i / d_model)
        row += [math.cos(angle), math.sin(angle)]
    return row


answer = encode_position
""",
        right=False,
        mistake="cosine before sine",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math

import torch


def encode_position(position, d_model):
    row = torch.zeros(d_model)
    for i in range(0, d_model, 2):
        angle = position / 10000 ** (2 * i / d_model)
        row[i] = math.sin(angle)
        row[i + 1] = math.cos(angle)
    return row


answer = encode_position
""",
        right=False,
        mistake="i already runs in twos and is doubled again",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import torch


def encode_position(position, d_model):
    i = torch.arange(d_model // 2)
    angle = (position + 1) * 10000.0 ** (-2 * i / d_model)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten()


answer = encode_position
""",
        right=False,
        mistake="counts positions from 1",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    row = []
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i // d_model)
        row += [math.sin(angle), math.cos(angle)]
    return row


answer = encode_position
""",
        right=False,
        mistake="whole division in the exponent",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    pairs = d_model // 2
    row = []
    for i in range(pairs):
        angle = position / 10000 ** (i / max(pairs - 1, 1))
        row += [math.sin(angle), math.cos(angle)]
    return row


answer = encode_position
""",
        right=False,
        mistake="the speeds end at exactly 1 / 10000, one step too far apart",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math


def encode_position(position, d_model):
    row = []
    for i in range(d_model // 2):
        angle = position / 1000 ** (2 * i / d_model)
        row.extend((math.sin(angle), math.cos(angle)))
    return row


answer = encode_position
""",
        right=False,
        mistake="base 1000 for 10000",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math

import cmath


def encode_position(position, d_model):
    row = []
    for i in range(d_model // 2):
        hand = cmath.exp(1j * position * math.exp(-math.log(10000) * 2 * i / d_model))
        row += [hand.imag, hand.real]
    return row


answer = encode_position
""",
        right=True,
        mistake="a complex number for each pair",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import numpy as np


def encode_position(position, d_model):
    angle = position / np.power(1e4, np.arange(0, d_model, 2) / d_model)
    row = np.empty(d_model)
    row[0::2], row[1::2] = np.sin(angle), np.cos(angle)
    return row.tolist()


answer = encode_position
""",
        right=True,
        mistake="numpy with strides, handed back as a list",
    ),
    Answer(
        exercise="positional_encodings.2",
        check="encode_position",
        code="""
import math

encode_position = lambda position, d_model: [  # noqa: E731
    math.sin(position * 10000 ** (-(j - j % 2) / d_model) + (j % 2) * math.pi / 2)
    for j in range(d_model)
]
answer = encode_position
""",
        right=True,
        mistake="a cosine is a sine a quarter turn later",
    ),
    # Exercise 3: repaired_addition
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    return x + table[: x.size(0)]


answer = repaired
""",
        right=False,
        mistake="takes as many rows as there are sentences, without the new axis",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    return x + table[: x.size(1)].unsqueeze(1)


answer = repaired
""",
        right=False,
        mistake="right number of rows on the axis of the batch",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    return x + table.unsqueeze(0)


answer = repaired
""",
        right=False,
        mistake="adds the whole table, which fits only the longest sentence",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    T = x.size(1)
    return x + table[1 : T + 1]


answer = repaired
""",
        right=False,
        mistake="counts positions from 1",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    x += table[: x.size(1)]
    return x


answer = repaired
""",
        right=False,
        mistake="changes the caller's x",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    return x + table[x.size(1) - 1].expand_as(x)


answer = repaired
""",
        right=False,
        mistake="gives every token the position of the last",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
def repaired(x, table):
    return x + table[: x.size(1)][0]


answer = repaired
""",
        right=False,
        mistake="gives every token the position of the first",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
import torch
from torch.nn import functional as F


def repaired(x, table):
    places = torch.arange(x.shape[1]).expand(x.shape[:2])
    return F.embedding(places, table) + x


answer = repaired
""",
        right=True,
        mistake="a look-up of positions",
    ),
    Answer(
        exercise="positional_encodings.3",
        check="repaired_addition",
        code="""
import torch


def repaired(x, table):
    return torch.stack(
        [torch.stack([token + row for token, row in zip(sentence, table)]) for sentence in x]
    )


answer = repaired
""",
        right=True,
        mistake="sentence by sentence, token by token",
    ),
    # Exercise 4: shift_back
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import math


def shift_back(k, omega):
    c, s = math.cos(k * omega), math.sin(k * omega)
    return [[c, s], [-s, c]]


answer = shift_back
""",
        right=False,
        mistake="moves forward",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import math


def shift_back(k, omega):
    c, s = math.cos(k * omega), math.sin(k * omega)
    return [[c, -s], [s, -c]]


answer = shift_back
""",
        right=False,
        mistake="a reflection: the sign of the last entry is wrong",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import math


def shift_back(k, omega):
    return [[math.cos(k), -math.sin(k)], [math.sin(k), math.cos(k)]]


answer = shift_back
""",
        right=False,
        mistake="forgets the speed",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import math

import torch


def shift_back(k, omega):
    a = 2 * math.pi * k / omega
    return torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])


answer = shift_back
""",
        right=False,
        mistake="takes omega for a wavelength",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import torch


def shift_back(k, omega):
    angle = torch.tensor(float(k * omega))
    c, s = angle.cos(), angle.sin()
    return torch.stack([torch.stack([c, -s]), torch.stack([-s, c])])


answer = shift_back
""",
        right=False,
        mistake="both sines with a minus",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
def shift_back(k, omega):
    a = k * omega
    return [[1.0, -a], [a, 1.0]]


answer = shift_back
""",
        right=False,
        mistake="a small-angle step, right for small k alone",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import torch


def shift_back(k, omega):
    step = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return torch.linalg.matrix_exp(step * k * omega)


answer = shift_back
""",
        right=True,
        mistake="the exponential of a generator",
    ),
    Answer(
        exercise="positional_encodings.4",
        check="shift_back",
        code="""
import math


def forward(k, omega):
    angle = k * omega
    return ((math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle)))


def shift_back(k, omega):
    return [list(row) for row in forward(-k, omega)]


answer = shift_back
""",
        right=True,
        mistake="forward by minus k",
    ),
    # Exercise 5: alibi_reach
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    return round(math.log(100) / m)


answer = reach
""",
        right=False,
        mistake="rounds to the nearest whole number",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    return int(math.log(100) / m)


answer = reach
""",
        right=False,
        mistake="rounds down, where the weight is not yet below",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    return math.floor(math.log10(100) / m) + 1


answer = reach
""",
        right=False,
        mistake="a logarithm to base 10",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    return math.ceil(100 / m)


answer = reach
""",
        right=False,
        mistake="forgets the exponential of the softmax",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
def reach(m):
    n = 0
    while 1 - m * n > 0.01:
        n += 1
    return n


answer = reach
""",
        right=False,
        mistake="weight and not score falls by m at each step",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    slope = 2 ** (-m)
    return math.floor(math.log(100) / slope) + 1


answer = reach
""",
        right=False,
        mistake="takes m for the number of a head",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    return math.log(100) / m


answer = reach
""",
        right=False,
        mistake="does not make it a whole number",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    n = 0
    while math.exp(-m * n) >= 0.01:
        n += 1
    return n + 1


answer = reach
""",
        right=False,
        mistake="one too far",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import math


def reach(m):
    n = 0
    while math.exp(-m * n) >= 0.01:
        n += 1
    return n


answer = reach
""",
        right=True,
        mistake="walks out until it is dark",
    ),
    Answer(
        exercise="positional_encodings.5",
        check="alibi_reach",
        code="""
import torch


def reach(m):
    n = torch.arange(int(10 / m) + 10, dtype=torch.float64)
    weights = torch.softmax(-m * n, 0)
    return int((weights < weights[0] / 100).nonzero()[0])


answer = reach
""",
        right=True,
        mistake="runs the softmax over many distances",
    ),
]
