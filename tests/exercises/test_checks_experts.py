"""Every check of Experts accepts the right answer and names what is wrong with others."""

import pytest
import torch

from exercises.checks import experts as ch


def right_weights(logits, k):
    weight = logits.softmax(-1).topk(k).values
    return weight / weight.sum(-1, keepdim=True)


def given_weights(logits, k):
    chosen = logits.topk(k).indices
    return logits.softmax(-1).gather(-1, chosen)


def table(*row):
    return lambda: torch.tensor([row] * 4)


CASES = [
    (ch.by_hand, (0.625, 0.375, 1.1625), True, "Right"),
    (ch.by_hand, (0.5, 0.3, 1.1625), False, "must sum to 1"),
    (ch.by_hand, (0.625, 0.375, 1.65), False, "each token uses two"),
    (ch.by_hand, (..., ..., ...), None, "Not attempted"),
    (ch.weights, (right_weights,), True, "Right"),
    (ch.weights, (given_weights,), False, "is missing"),
    (ch.weights, (lambda logits, k: right_weights(logits, k).detach(),), False, "gradient"),
    (ch.weights, (lambda logits, k: ...,), None, "Not attempted"),
    (ch.overturned, (table(0.501, 0.499),), True, "Right"),
    (ch.overturned, (table(0.9, 0.1),), False, "1.800"),
    (ch.overturned, (table(0.9, 0.2),), False, "a sum of 1"),
    (ch.overturned, (lambda: torch.eye(2).repeat(2, 1),), False, "same expert"),
    (ch.overturned, (lambda: torch.ones(4),), False, "four tokens"),
]


@pytest.mark.parametrize("check, answers, verdict, said", CASES)
def test_verdicts(check, answers, verdict, said, capsys):
    assert check(*answers) is verdict
    assert said in capsys.readouterr().out


def test_the_code_to_repair_counts_as_not_attempted(capsys):
    # The exercise's own cell, with its mistake.
    def weights(logits, k):
        chosen = logits.topk(k).indices  # (N, k)
        return logits.softmax(-1).gather(-1, chosen)

    assert ch.weights(weights) is None
    assert "Not attempted" in capsys.readouterr().out
