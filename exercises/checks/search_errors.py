"""Checks for the page Search errors and model errors."""

import torch

from exercises.checks import exercise


def _candidates(n=5, source=9, weight=0.3):
    lengths = torch.randint(4, 15, (n,)).float()
    return -3 - 9 * torch.rand(n), lengths, -2 - 12 * torch.rand(n), source, weight


@exercise(
    1,
    inputs=_candidates,
    vary=(dict(n=3, source=6, weight=0.6), dict(n=7, source=13, weight=0.1)),
    hint=(
        "both sums grow with the number of tokens, so divide before you add",
        "own is a sum over the candidate's tokens, other one over the source's",
        "(1 - weight) * own / lengths + weight * other / source",
    ),
    wrong="the weighted sum of two log-probabilities per token",
    shape="expected one score for each candidate, (n,)",
    slips={
        "neither is per token yet: a long candidate pays for each of its tokens": (
            lambda own, lengths, other, source, weight: (1 - weight) * own + weight * other
        ),
        "the other direction writes the source: divide its sum by the source's length": (
            lambda own, lengths, other, source, weight: (
                ((1 - weight) * own + weight * other) / lengths
            )
        ),
        "the other direction's sum isn't per token: with it, the weight means something else for "
        "each source": (
            lambda own, lengths, other, source, weight: (1 - weight) * own / lengths
            + weight * other
        ),
        "your own model's sum isn't per token: a long candidate pays for each of its tokens": (
            lambda own, lengths, other, source, weight: (1 - weight) * own + weight * other / source
        ),
        "the weights are exchanged: weight 0 has to be the model's own order": (
            lambda own, lengths, other, source, weight: weight * own / lengths
            + (1 - weight) * other / source
        ),
        "own is a sum over the candidate's tokens; you divided it by the source's length": (
            lambda own, lengths, other, source, weight: (
                ((1 - weight) * own + weight * other) / source
            )
        ),
        "the lengths are exchanged: each sum runs over the tokens that its model writes": (
            lambda own, lengths, other, source, weight: (1 - weight) * own / source
            + weight * other / lengths
        ),
        "each sum has its own number of tokens; you divide both by all of them together": (
            lambda own, lengths, other, source, weight: ((1 - weight) * own + weight * other)
            / (lengths + source)
        ),
        "each candidate has its own length; you divide by the mean of them": (
            lambda own, lengths, other, source, weight: (1 - weight) * own / lengths.mean()
            + weight * other / source
        ),
        "the weights belong to the logarithms; you mix probabilities": (
            lambda own, lengths, other, source, weight: (1 - weight) * (own / lengths).exp()
            + weight * (other / source).exp()
        ),
        "`//` cuts to whole numbers: divide with `/`": (
            lambda own, lengths, other, source, weight: (1 - weight) * (own // lengths)
            + weight * (other // source)
        ),
        "your own model's share is 1 - weight: it's missing": (
            lambda own, lengths, other, source, weight: own / lengths + weight * other / source
        ),
    },
)
def both(own, lengths, other, source, weight):
    here = own / lengths  # (n,)
    back = other / source  # (n,)
    return (1 - weight) * here + weight * back
