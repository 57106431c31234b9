"""Every check of chapter 10 accepts the right answer and names what is wrong with others."""

import pytest

from transformer_lib.checks import ch10
from transformer_lib.masks import causal_mask, padding_mask

SHAPES = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 6, 9)}


def layer(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    y = norms[0](x)
    x = x + own(y, y, y, tgt_mask)
    x = x + cross(norms[1](x), memory, memory, src_mask)
    return x + feed_forward(norms[2](x))


def layer_without_causal(x, memory, src_mask, tgt_mask, *parts):
    return layer(x, memory, src_mask, None, *parts)


def layer_without_padding(x, memory, src_mask, tgt_mask, *parts):
    return layer(x, memory, None, tgt_mask, *parts)


def normalises_memory(x, memory, src_mask, tgt_mask, norms, *parts):
    return layer(x, norms[1](memory), src_mask, tgt_mask, norms, *parts)


def queries_from_memory(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    y = norms[0](x)
    x = x + own(y, y, y, tgt_mask)
    y = memory + cross(memory, norms[1](x), norms[1](x))
    return y + feed_forward(norms[2](y))


def memory_first(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    x = x + cross(norms[1](x), memory, memory, src_mask)
    y = norms[0](x)
    x = x + own(y, y, y, tgt_mask)
    return x + feed_forward(norms[2](x))


def write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) <= max_len and so_far[-1] != eos:
        so_far.append(next_token(src, so_far))
    return so_far[1:]


def never_stops(next_token, src, bos, eos, max_len):
    return write(next_token, src, bos, -1, max_len)


def sees_only_bos(next_token, src, bos, eos, max_len):
    return [next_token(src, [bos]) for _ in range(max_len)]


def keeps_bos(*arguments):
    return [arguments[2], *write(*arguments)]


def drops_eos(*arguments):
    return [token for token in write(*arguments) if token != arguments[3]]


def without_bos(next_token, src, bos, eos, max_len):
    return [next_token(src, [])]


def masks(src, tgt, pad):
    return padding_mask(src, pad), padding_mask(tgt, pad) & causal_mask(tgt.size(1))


def change(function):
    """The right masks with the target's replaced by function(padding, causal)."""

    def answer(src, tgt, pad):
        parts = padding_mask(tgt, pad), causal_mask(tgt.size(1))
        return padding_mask(src, pad), function(*parts)

    return answer


CASES = [
    (ch10.shapes, (SHAPES,), True, "Right"),
    (ch10.shapes, (dict.fromkeys(SHAPES, ...),), None, "Not attempted"),
    (ch10.shapes, (SHAPES | {"cross": (3, 4, 9, 6)},), False, "from the target"),
    (ch10.shapes, (SHAPES | {"decoder": (3, 6, 6)},), False, "four axes"),
    (ch10.layer, (layer,), True, "Right"),
    (ch10.layer, (lambda *parts: ...,), None, "Not attempted"),
    (ch10.layer, (layer_without_causal,), False, "reads the future"),
    (ch10.layer, (layer_without_padding,), False, "reads the padding"),
    (ch10.layer, (normalises_memory,), False, "second time"),
    (ch10.layer, (queries_from_memory,), False, "queries taken from the memory"),
    (ch10.layer, (memory_first,), False, "comes first"),
    (ch10.write, (write,), True, "Right"),
    (ch10.write, (lambda *parts: ...,), None, "Not attempted"),
    (ch10.write, (never_stops,), False, "after eos"),
    (ch10.write, (sees_only_bos,), False, "only bos"),
    (ch10.write, (keeps_bos,), False, "still holds bos"),
    (ch10.write, (drops_eos,), False, "belongs to the result"),
    (ch10.write, (without_bos,), False, "bos first"),
    (ch10.masks, (masks,), True, "Right"),
    (ch10.masks, (lambda src, tgt, pad: (..., ...),), None, "Not attempted"),
    (ch10.masks, (change(lambda padding, causal: causal),), False, "not the padding"),
    (ch10.masks, (change(lambda padding, causal: padding),), False, "not the future"),
    (ch10.masks, (change(lambda padding, causal: padding & causal.mT),), False, "triu"),
    (ch10.masks, (change(lambda padding, causal: padding.mT & causal),), False, "query rows"),
    (ch10.masks, (change(lambda padding, causal: padding | causal),), False, "with &"),
    (ch10.masks, (lambda *a: [~mask for mask in masks(*a)],), False, "inverted"),
    (ch10.masks, (lambda s, t, p: (s != p, masks(s, t, p)[1]),), False, "(B, 1, 1, S)"),
    (ch10.masks, (lambda *a: [mask.float() for mask in masks(*a)],), False, "booleans"),
    (ch10.rows, (lambda T: T * (T + 1) // 2, lambda T: T), True, "Right"),
    (ch10.rows, (lambda T: ..., lambda T: ...), None, "Not attempted"),
    (ch10.rows, (lambda T: T * T, lambda T: T), False, "grows"),
    (ch10.rows, (lambda T: T * (T - 1) // 2, lambda T: T), False, "first step"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
