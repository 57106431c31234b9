"""Every check of Cheaper attention accepts the right answer and names what is wrong with others."""

import pytest
import torch

from exercises.checks import cheaper_attention as ch
from transformer_lib.beyond import sparse


def right_fixed(block, c):
    return lambda i, j: ((i // block == j // block) | (j % block >= block - c)) & (j <= i)


def right_causal(q, k, v):
    memory = (k[..., None] * v[..., None, :]).cumsum(-3)
    return (q[..., None, :] @ memory)[..., 0, :] / (q * k.cumsum(-2)).sum(-1, keepdim=True)


def leaky(q, k, v):
    return q @ (k.mT @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)


def right_merge(a, log_a, b, log_b):
    share = (log_a - log_b).sigmoid()
    return a * share + b * (1 - share)


STAR = sparse.any_of(sparse.local(1), sparse.with_global(1))
CASES = [
    (ch.by_hand, (21, 2011, 10), True, "Right"),
    (ch.by_hand, (10, 2011, 10), False, "one side only"),
    (ch.by_hand, (21, 2000, 10), False, "falls off"),
    (ch.by_hand, (21, 2011, 7), False, "first token and the last"),
    (ch.fixed, (right_fixed,), True, "Right"),
    (ch.fixed, (lambda b, c: ...,), None, "Not attempted"),
    (
        ch.fixed,
        (lambda b, c: lambda i, j: (i // b == j // b) | (j % b >= b - c),),
        False,
        "looks ahead",
    ),
    (
        ch.fixed,
        (lambda b, c: lambda i, j: (j % b >= b - c) & (j <= i),),
        False,
        "own block is missing",
    ),
    (ch.fixed, (lambda b, c: lambda i, j: j <= i,), False, "lets place"),
    (ch.repaired_causal, (right_causal,), True, "Right"),
    (ch.repaired_causal, (lambda q, k, v: ...,), None, "Not attempted"),
    (ch.repaired_causal, (leaky,), False, "the future leaks"),
    (ch.merge, (right_merge,), True, "Right"),
    (ch.merge, (lambda a, x, b, y: ...,), None, "Not attempted"),
    (ch.merge, (lambda a, x, b, y: a + b,), False, "you add"),
    (ch.overturned, (sparse.causal(STAR),), True, "Right"),
    (ch.overturned, (STAR,), False, "two layers still"),
    (ch.overturned, (sparse.local(1),), False, "not global any more"),
    (ch.overturned, (sparse.local(32),), False, "full attention"),
    (ch.overturned, (lambda i, j: (i != j) | (i < 0),), False, "see itself"),
    (
        ch.overturned,
        (lambda i, j: (j == 0) | (i == j) | ((i == 0) & (j == 1)),),
        True,
        "Right",
    ),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistake.
    def repaired(q, k, v):
        written = k[..., None] * v[..., None, :]  # (B, H, T, M, K)
        memory, total = written.cumsum(-3), k.sum(-2, keepdim=True)
        return (q[..., None, :] @ memory)[..., 0, :] / (q * total).sum(-1, keepdim=True)

    assert ch.repaired_causal(repaired) is None
    assert "Not attempted" in capsys.readouterr().out


def whole_table(q, k, v, tile):
    scores = q @ k.mT / q.size(-1) ** 0.5
    return scores.softmax(-1) @ v, scores.logsumexp(-1, keepdim=True)


def kept_tiles(q, k, v, tile):
    tiles = [q @ part.mT / q.size(-1) ** 0.5 for part in k.split(tile, 1)]
    log_sum = tiles[0].logsumexp(-1, keepdim=True)
    for scores in tiles[1:]:
        log_sum = torch.logaddexp(log_sum, scores.logsumexp(-1, keepdim=True))
    parts = zip(tiles, v.split(tile, 1), strict=True)
    return sum((scores - log_sum).exp() @ values for scores, values in parts), log_sum


def two_passes(q, k, v, tile):
    """Right, and unusual: the scores are computed twice."""
    root, total = q.size(-1) ** 0.5, None
    for part in k.split(tile, 1):
        near = (q @ part.mT / root).logsumexp(-1, keepdim=True)
        total = near if total is None else torch.logaddexp(total, near)
    output = 0
    for part, values in zip(k.split(tile, 1), v.split(tile, 1), strict=True):
        output = output + (q @ part.mT / root - total).exp() @ values
    return output, total


def merging(q, k, v, tile):
    """Right: exercise 4, tile after tile."""
    output, log_sum = None, None
    for part, values in zip(k.split(tile, 1), v.split(tile, 1), strict=True):
        near = whole_table(q, part, values, tile)
        if output is None:
            output, log_sum = near
        else:
            share = (log_sum - near[1]).sigmoid()
            output = share * output + (1 - share) * near[0]
            log_sum = torch.logaddexp(log_sum, near[1])
    return output, log_sum


def whole_backward(q, k, v, output, log_sum, d_output, tile):
    root = q.size(-1) ** 0.5
    p = (q @ k.mT / root - log_sum).exp()
    d_scores = p * (d_output @ v.mT - (output * d_output).sum(-1, keepdim=True)) / root
    return d_scores @ k, d_scores.mT @ q, p.mT @ d_output


def by_autograd(q, k, v, output, log_sum, d_output, tile):
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    return torch.autograd.grad(whole_table(*leaves, tile)[0], leaves, d_output)


@pytest.mark.parametrize("check, answer, verdict, message", [
    (ch.tiled, two_passes, True, "Right"),
    (ch.tiled, merging, True, "Right"),
    (ch.tiled, whole_table, False, "makes a tensor of shape (2, 512, 512), 524,288 numbers"),
    (ch.tiled, kept_tiles, False, "let it go"),
    (ch.tiled, lambda q, k, v, tile: whole_table(q, k, v, tile)[0], False, "return two values"),
    (ch.tiled_backward, whole_backward, False, "makes a tensor of shape (2, 512, 512)"),
    (ch.tiled_backward, by_autograd, False, "your code calls `grad`"),
])
def test_what_is_held_counts(check, answer, verdict, message, capsys):
    assert check(answer) is verdict
    assert message in capsys.readouterr().out


def test_the_reference_for_the_way_back_is_autograd():
    args = ch._backward_texts(**ch.TEXTS[0])
    for one, other in zip(ch.tiled_backward.reference(*args), by_autograd(*args), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
