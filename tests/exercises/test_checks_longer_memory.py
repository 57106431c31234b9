"""Every check of Longer memory accepts the right answer and names what is wrong."""

import pytest
import torch

from exercises.checks import longer_memory as ch


def right_keep(memory, x, reach):
    together = torch.cat([memory, x.detach()], dim=1)
    return together[:, max(0, together.size(1) - reach) :]


def attached(memory, x, reach):
    together = torch.cat([memory, x], dim=1)
    return together[:, max(0, together.size(1) - reach) :]


def flat():
    q, k = torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 64, 4)
    return q, k, torch.randn(1, 1, 64, 4)


def sharp():
    q = torch.ones(1, 1, 1, 4)
    k = torch.randn(1, 1, 64, 4)
    k[:, :, 3] = 20
    return q, k, torch.randn(1, 1, 64, 4)


def by_places(share, model, neighbours):
    places = zip(model.tolist(), neighbours.tolist(), strict=True)
    return sum((k - m) / (m + share * (k - m)) for m, k in places) / len(model)


CASES = [
    (ch.by_hand, (900, 250), True, "Right"),
    (ch.by_hand, (300, 250), False, "not 50"),
    (ch.by_hand, (901, 250), False, "layers x memory"),
    (ch.by_hand, (900, 10), False, "3 for each"),
    (ch.of_dog, (0.31295,), True, "Right"),
    (ch.of_dog, (0.75 * 0.2 + 0.25 * 2 / 3,), False, "near ones count more"),
    (ch.of_dog, (0.6518,), False, "share of 0.75"),
    (ch.of_dog, (0.25 * 0.2 + 0.75 * 0.6518,), False, "the neighbours' share"),
    (ch.of_dog, (0.75 * 0.2 + 0.25 * 0.5741,), False, "not only the nearest"),
    (ch.of_dog, (0.75 * 0.2 + 0.25 * 0.8357,), False, "mind the sign"),
    (ch.of_dog, (0.75 * 0.2 + 0.25 * 0.6518 + 0.1,), False, "mix the two"),
    (ch.keep, (right_keep,), True, "Right"),
    (ch.keep, (lambda m, x, r: ...,), None, "Not attempted"),
    (ch.keep, (attached,), False, "detach"),
    (
        ch.keep,
        (lambda m, x, r: torch.cat([m, x.detach()], 1)[:, -r:],),
        False,
        "keeps everything",
    ),
    (ch.keep, (lambda m, x, r: torch.cat([m, x.detach()], 1)[:, :r],), False, "the oldest"),
    (ch.keep, (lambda m, x, r: x.detach()[:, max(0, 4 - r) :],), False, "reach 6"),
    (ch.overturned, (flat,), True, "Right"),
    (ch.overturned, (lambda: ...,), None, "Not attempted"),
    (ch.overturned, (sharp,), False, "spread over many"),
    (ch.overturned, (lambda: torch.zeros(1),), False, "three tensors"),
    (ch.overturned, (lambda: tuple(x[:, :, :9] for x in flat()),), False, "64 keys"),
    (ch.slope, (by_places,), True, "Right"),
    (ch.slope, (lambda share, model, neighbours: ...,), None, "Not attempted"),
    (ch.slope, (lambda share, m, n: 2 * by_places(share, m, n),), False, "that isn't"),
    (ch.slope, (lambda share, m, n: by_places(0.5, m, n),), False, "whatever `share`"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistakes.
    def keep(memory, x, reach):
        together = torch.cat([memory, x], dim=1)
        return together[:, -reach:]

    assert ch.keep(keep) is None
    assert "Not attempted" in capsys.readouterr().out
