"""Every check of chapter 09 accepts the right answer and names what is wrong with others."""

import math

import pytest
import torch

from exercises.checks import encoder as ch

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
    (ch.reach, (REACH | {"both ways": [3]},), False, "every token attends"),
    (ch.reach, (REACH | {"causal": [0, 1, 2, 3]},), False, "that may read it"),
    (ch.reach, (REACH | {"causal": [4]},), False, "itself"),
    (ch.layer, (pre_norm,), True, "Right"),
    (ch.layer, (lambda *parts: ...,), None, "Not attempted"),
    (ch.layer, (post_norm,), False, "post-norm"),
    (ch.layer, (adds_the_norm,), False, "normalised input"),
    (ch.layer, (no_residual,), False, "nothing is added"),
    (ch.layer, (one_norm,), False, "norm_2"),
    (ch.layer, (parallel,), False, "what attention has left"),
    (ch.stack, (run_stack,), True, "Right"),
    (ch.stack, (lambda *parts: ...,), None, "Not attempted"),
    (ch.stack, (only_last,), False, "only the last layer"),
    (ch.stack, (no_norm,), False, "final norm is missing"),
    (ch.stack, (no_mask,), False, "mask does not reach"),
    (ch.layers_needed, (lambda n: math.ceil(math.log2(n)),), True, "Right"),
    (ch.layers_needed, (lambda n: ...,), None, "Not attempted"),
    (ch.layers_needed, (lambda n: n - 1,), False, "further note"),
    (ch.layers_needed, (lambda n: int(math.log2(n)),), False, "round up"),
    (ch.encode_packed, (packed,), True, "Right"),
    (ch.encode_packed, (lambda *a: ...,), None, "Not attempted"),
    (ch.encode_packed, (one_by_one,), False, "ran 3 times"),
    (ch.encode_packed, (padded,), False, "9 tokens in one row"),
    (ch.encode_packed, (lambda *a: packed(*a, torch.ones_like),), False, "expected bool"),
    (ch.encode_packed, (lambda *a: torch.cat(packed(*a)),), False, "return a list"),
    (ch.encode_packed, (lambda e, s: packed(e, s, lambda o: o[:, None] == o[None] * 0),), False,
     "not those of the sentences alone"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
