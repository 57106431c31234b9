"""Every check of chapter 09 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import encoder as ch

REACH = {"both ways": [0, 1, 2, 3, 4], "causal": [3, 4]}


def pre_norm(x, norm_1, attend, norm_2, feed_forward):
    x = x + attend(norm_1(x))
    return x + feed_forward(norm_2(x))


def twice(x, norm_1, attend, norm_2, feed_forward):
    attend(norm_1(x))
    return pre_norm(x, norm_1, attend, norm_2, feed_forward)


def no_residual(x, norm_1, attend, norm_2, feed_forward):
    return feed_forward(norm_2(attend(norm_1(x))))


def run_stack(x, mask, layers, norm):
    for layer in layers:
        x = layer(x, mask)
    return norm(x)


def packed(encoder, sentences, mask_of=lambda owner: owner[:, None] == owner):
    owner = torch.arange(len(sentences)).repeat_interleave(torch.tensor([*map(len, sentences)]))
    mask = mask_of(owner)
    memory = encoder(torch.cat(sentences)[None], mask.view(1, 1, *mask.shape))[0]
    return tuple(memory[owner == i] for i in range(len(sentences)))


def one_by_one(encoder, sentences):
    return [encoder(x[None])[0] for x in sentences]


def padded(encoder, sentences):
    x = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    real = torch.nn.utils.rnn.pad_sequence([torch.ones(len(x)) for x in sentences], True).bool()
    memory = encoder(x, real[:, None, None])
    return [row[: len(x)] for row, x in zip(memory, sentences, strict=True)]


CASES = [
    (ch.reach, (REACH,), True, "Right"),
    (ch.reach, ({"both ways": ..., "causal": ...},), None, "Not attempted"),
    (ch.layer, (pre_norm,), True, "Right"),
    (ch.layer, (lambda *parts: ...,), None, "Not attempted"),
    (ch.layer, (no_residual,), False, "nothing is added"),
    (ch.layer, (twice,), False, "you call `norm_1` 2 times"),
    (ch.stack, (run_stack,), True, "Right"),
    (ch.stack, (lambda *parts: ...,), None, "Not attempted"),
    (ch.layers_needed, (lambda n: math.ceil(math.log2(n)),), True, "Right"),
    (ch.layers_needed, (lambda n: ...,), None, "Not attempted"),
    (ch.encode_packed, (packed,), True, "Right"),
    (ch.encode_packed, (lambda *a: ...,), None, "Not attempted"),
    (ch.encode_packed, (one_by_one,), False, "ran 3 times"),
    (ch.encode_packed, (padded,), False, "9 tokens in one row"),
    (ch.encode_packed, (lambda *a: packed(*a, torch.ones_like),), False, "expected bool"),
    (ch.encode_packed, (lambda *a: torch.cat(packed(*a)),), False, "return a list"),
    (ch.encode_packed, (lambda e, s: packed(e, s, lambda o: o[:, None] == o[None] * 0),), False,
     "each sentence on its own"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
