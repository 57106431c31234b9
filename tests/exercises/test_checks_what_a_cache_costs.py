"""Every check of What a cache costs accepts the right answer and names what is wrong."""

import pytest
import torch

from exercises.checks import what_a_cache_costs as ch


def kept(length, window, n_layers, every):
    return sum(
        length if (i + 1) % every == 0 else min(length, window) for i in range(n_layers)
    )


def by_heads(q, c, w_k, w_v):
    k, v = c @ w_k.mT, c @ w_v.mT
    return (q @ k.mT / k.size(-1) ** 0.5).softmax(-1) @ v


def given(q, c, w_k, w_v):
    down = q @ w_k
    weights = (down @ c.mT / c.size(-1) ** 0.5).softmax(-1)
    return weights @ c @ w_v.mT


def even():
    return torch.randn(1, 1, 1, 8), torch.randn(1, 1, 16, 8), torch.randn(1, 1, 16, 8)


def outlier():
    q, k, v = even()
    k = k.clamp(-1, 1)
    q = 20 * k[:, :, 3:4]
    q[..., 0], k[..., 0] = 0, 100
    return q, k, v


CASES = [
    (ch.by_hand, (163840, 48828, 46080), True, "Right"),
    (ch.by_hand, (81920, 48828, 46080), False, "twice as many"),
    (ch.by_hand, (163840, 48829, 46080), False, "round down"),
    (ch.by_hand, (163840, 48828, 40960), False, "the turned numbers"),
    (ch.kept_in_all, (kept,), True, "Right"),
    (ch.kept_in_all, (lambda length, window, n_layers, every: ...,), None, "Not attempted"),
    (
        ch.kept_in_all,
        (lambda length, window, n_layers, every: (
            n_layers // every * length + (n_layers - n_layers // every) * window),),
        False,
        "fills only a part",
    ),
    (ch.absorbed_attention, (by_heads,), True, "Right"),
    (ch.absorbed_attention, (given,), False, "latent vector's width"),
    (ch.overturned, (outlier,), True, "Right"),
    (ch.overturned, (even,), False, "of its norm"),
    (ch.overturned, (lambda: tuple(1000 * x for x in outlier()),), False, "above 100"),
    (ch.overturned, (lambda: torch.zeros(1),), False, "three tensors"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    torch.manual_seed(0)
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistake.
    def absorbed_attention(q, c, w_k, w_v):
        down = q @ w_k  # (H, T, R)
        weights = (down @ c.mT / c.size(-1) ** 0.5).softmax(-1)  # (H, T, T)
        return weights @ c @ w_v.mT  # (H, T, K)

    assert ch.absorbed_attention(absorbed_attention) is None
    assert "Not attempted" in capsys.readouterr().out
