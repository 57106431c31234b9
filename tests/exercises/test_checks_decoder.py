"""Every check of chapter 10 accepts the right answer and names what is wrong with others."""

import pytest
import torch

from exercises.checks import decoder as ch

SHAPES = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 6, 9)}


def layer(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    y = norms[0](x)
    x = x + own(y, y, y, tgt_mask)
    x = x + cross(norms[1](x), memory, memory, src_mask)
    return x + feed_forward(norms[2](x))


def layer_without_causal(x, memory, src_mask, tgt_mask, *parts):
    return layer(x, memory, src_mask, None, *parts)


def queries_from_memory(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    y = norms[0](x)
    x = x + own(y, y, y, tgt_mask)
    y = memory + cross(memory, norms[1](x), norms[1](x))
    return y + feed_forward(norms[2](y))


def write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) <= max_len and so_far[-1] != eos:
        so_far.append(next_token(src, so_far))
    return so_far[1:]


def candidates(decode, x, memory, src_mask):
    n = x.size(1)
    rows = [y[:, None].expand(-1, n, *y.shape[1:]).flatten(0, 1) for y in (memory, src_mask)]
    return decode(x.flatten(0, 1), *rows).view_as(x)


def one_by_one(decode, x, memory, src_mask):
    return torch.stack([decode(x[:, n], memory, src_mask) for n in range(x.size(1))], 1)


def tiled(decode, x, memory, src_mask):
    n = x.size(1)
    states = decode(x.flatten(0, 1), memory.repeat(n, 1, 1), src_mask.repeat(n, 1, 1, 1))
    return states.view_as(x)


def next_row(x, kept, w_q, w_k, w_v):
    kept = [*(kept or []), (x @ w_k, x @ w_v)]  # a list, one entry a row
    keys, values = (torch.cat(several, 1) for several in zip(*kept, strict=True))
    scores = (x @ w_q) @ keys.transpose(1, 2) / w_q.size(1) ** 0.5
    return scores.softmax(-1) @ values, kept


def keeps_the_rows(x, kept, w_q, w_k, w_v):
    kept = x if kept is None else torch.cat([kept, x], 1)
    scores = x @ w_q @ (kept @ w_k).mT / w_q.size(1) ** 0.5
    return scores.softmax(-1) @ (kept @ w_v), kept


def forgets(x, kept, w_q, w_k, w_v):
    return next_row(x, None, w_q, w_k, w_v)


def only_the_last(x, kept, w_q, w_k, w_v):
    return next_row(x, kept and kept[-1:], w_q, w_k, w_v)


CASES = [
    (ch.shapes, (SHAPES,), True, "Right"),
    (ch.shapes, (dict.fromkeys(SHAPES, ...),), None, "Not attempted"),
    (ch.layer, (layer,), True, "Right"),
    (ch.layer, (lambda *parts: ...,), None, "Not attempted"),
    (ch.layer, (layer_without_causal,), False, "reads the future"),
    (ch.layer, (queries_from_memory,), False, "queries taken from the memory"),
    (ch.write, (write,), True, "Right"),
    (ch.write, (lambda *parts: ...,), None, "Not attempted"),
    (ch.decode_candidates, (candidates,), True, "Right"),
    (ch.decode_candidates, (lambda *a: ...,), None, "Not attempted"),
    (ch.decode_candidates, (one_by_one,), False, "once is enough"),
    (ch.decode_candidates, (tiled,), False, "`repeat_interleave` repeats each row"),
    (ch.causal_rows, (next_row,), True, "Right"),
    (ch.causal_rows, (lambda *a: (..., None),), None, "Not attempted"),
    (ch.causal_rows, (keeps_the_rows,), False, "computed again"),
    (ch.causal_rows, (forgets,), False, "attends only to itself"),
    (ch.causal_rows, (only_the_last,), False, "aren't those of causal attention"),
    (ch.causal_rows, (lambda *a: next_row(*a)[0],), False, "return two things"),
    (ch.squeezed, (64, 600, 0.1), True, "of those of eight"),
    (ch.squeezed, (64, 600, 0.4), False, "for eight symbols, 40%, is more than 10"),
    (ch.squeezed, (64, 600, 40), False, "predict a share between 0 and 1"),
    (ch.squeezed, (..., 600, 0.1), None, "Not attempted"),
    (ch.squeezed, (64, 150, 0.1), False, "every seed needs more than half"),
    (ch.squeezed, (32, 500, 0.1), False, "updates is 500; the recorded ones are 150, 300"),
    (ch.squeezed, (64, 1200, 0.1), False, "was not trained for 1200 updates"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
