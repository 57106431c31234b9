"""Every check of the chapter Acting accepts the right answer and names what is wrong."""

import pytest
import torch

from exercises.checks import acting as ch


def target(asked, rewards):
    return asked[:, None] - rewards.cumsum(-1) + rewards


def tokens(offset=True, clamp=True, interleave=True, whole=True, bins=None):
    def answer(states, actions, low, high, n_bins):
        n_bins = bins or n_bins
        n = states.size(-1)
        cut = ((states - low) / (high - low) * n_bins).floor()
        if clamp:
            cut = cut.clamp(0, n_bins - 1)
        cut = cut + offset * n_bins * torch.arange(n)
        acts = actions[..., None] + offset * n * n_bins
        if not interleave:
            return torch.cat([cut.flatten(1), acts.flatten(1)], 1).long()
        found = torch.cat([cut, acts], -1).flatten(1)
        return found.long() if whole else found.float()

    return answer


def from_the_derivatives(probabilities, rewards):
    """Every derivative written out, (B, A, A)."""
    score = torch.eye(probabilities.size(-1)) - probabilities[:, None, :]
    weight = probabilities * (score**2).sum(-1)
    return torch.stack([w @ r / w.sum() for w, r in zip(weight, rewards, strict=True)])


CASES = [
    (ch.by_hand, ([4, 3, 3, 1], 7, 60), True, "Right"),
    (ch.by_hand, ([1, 1, 3, 4], 7, 60), False, "from the beginning"),
    (ch.by_hand, ([3, 3, 1, 0], 7, 60), False, "own reward belongs"),
    (ch.by_hand, ([4, 3, 3], 7, 60), False, "four steps"),
    (ch.by_hand, ([4, 3, 3, 1], 10, 60), False, "the number goes down"),
    (ch.by_hand, ([4, 3, 3, 1], 8, 60), False, "subtract all of that"),
    (ch.by_hand, ([4, 3, 3, 1], 7, 20), False, "more than one token"),
    (ch.kept, (0.362, 0.00391), True, "Right"),
    (ch.kept, (0.881, 0.0039), False, "one gate"),
    (ch.kept, (0.602, 0.0039), False, "four gates"),
    (ch.kept, (0.362, 0.0625), False, "four gates"),
    (ch.kept, (0.9, 0.0039), False, "8th power"),
    (ch.repaired_target, (target,), True, "Right"),
    (ch.repaired_target, (lambda asked, rewards: ...,), None, "Not attempted"),
    (ch.repaired_target, (lambda a, r: a[:, None] - r.cumsum(-1),), False, "hasn't been earned"),
    (ch.repaired_target, (lambda a, r: a[:, None] - r,), False, "all the steps before"),
    (ch.repaired_target, (lambda a, r: a[:, None] + 0 * r,), False, "never goes down"),
    (ch.repaired_target, (lambda a, r: (a[:, None] - r)[:, 1:],), False, "(N, T)"),
    (ch.trajectory_tokens, (tokens(),), True, "Right"),
    (ch.trajectory_tokens, (lambda *given: ...,), None, "Not attempted"),
    (ch.trajectory_tokens, (tokens(whole=False),), False, "whole numbers"),
    (ch.trajectory_tokens, (tokens(bins=10),), False, "the same whatever `n_bins` is"),
    (ch.gamble, (5, 10, 1, 0.25), True, "Right"),
    (ch.gamble, (5, 10, 0, 0.3), False, "above 0"),
    (ch.gamble, (5, 10, 1, 0.9), False, "is wise here"),
    (ch.gamble, (5, 4, 1, 0.5), False, "highest return"),
    (ch.gamble, (5, 10, 1, 0.1), False, "tempting"),
    (ch.gamble, (5, 10, 1, 25), False, "probability"),
    (ch.best_baseline, (from_the_derivatives,), True, "Right"),
    (ch.best_baseline, (lambda probabilities, rewards: ...,), None, "Not attempted"),
    (ch.best_baseline, (lambda p, r: from_the_derivatives(p, r) + 0.1,), False, "lower variance"),
    (ch.best_baseline, (lambda p, r: from_the_derivatives(p, r)[:, None],), False, "one baseline"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
