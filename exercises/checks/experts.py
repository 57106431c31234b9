"""Checks for the page Experts."""

import torch

from exercises.checks import Part, exercise, expect, judged, values
from transformer_lib.beyond.experts import balance_loss

by_hand = values(
    1,
    "by_hand",
    hint=(
        "give three numbers; divide by the sum of the two that are chosen",
        "for the loss, there are four choices in all; what share of them does each expert get?",
        "3 times (1/2 of 0.55, 1/4 of 0.2 and 1/4 of 0.25, added up)",
    ),
    larger=Part(
        0.625,
        "it's 0.5 as a share of 0.5 + 0.3",
        {
            "that's the probability; the two shares must sum to 1": 0.5,
            "that's the smaller of the first token's two weights": 0.375,
            "that's the weight of the second token": 0.6 / 0.9,
        },
        tolerance=1e-3,
    ),
    smaller=Part(
        0.375,
        "it's 0.3 as a share of 0.5 + 0.3",
        {"that's the probability; the two shares must sum to 1": 0.3},
        tolerance=1e-3,
    ),
    loss=Part(
        1.1625,
        "for each of the three experts, multiply its share of the choices by its mean "
        "probability; the loss is 3 times the sum",
        {
            "that's without the factor 3, the number of experts": 0.3875,
            "the counts are shares of all four choices, so they sum to 1": 2.325,
            "you count only each token's first choice, but each token uses two experts": 1.65,
        },
        tolerance=1e-3,
    ),
)


def _logits(N=6, E=5, k=2):
    return torch.randn(N, E), k


@exercise(
    2,
    inputs=_logits,
    vary=(dict(N=3, E=4, k=3), dict(N=4, E=6, k=2), dict(N=2, E=3, k=3)),
    given=0xF541635B,
    hint=(
        "what should the weights of one token sum to?",
        "they should sum to 1, whatever the experts that weren't chosen would have got",
    ),
    wrong="those aren't the right weights",
    shape="return one weight for each chosen expert",
    gradients=True,
    slips={
        "the weights of a token must sum to 1: what the other experts would have got is missing": (
            lambda logits, k: logits.softmax(-1).topk(k).values
        ),
        "the logits themselves aren't weights, since they may be negative: softmax first": (
            lambda logits, k: logits.topk(k).values / logits.topk(k).values.sum(-1, keepdim=True)
        ),
        "now all chosen experts count the same: the router would get no gradient": (
            lambda logits, k: torch.full((len(logits), k), 1 / k) + 0 * logits.topk(k).values
        ),
        "that's a softmax of a softmax: take it once, over the logits of the chosen experts": (
            lambda logits, k: logits.softmax(-1).topk(k).values.softmax(-1)
        ),
        "the sum runs over the tokens; each token has a sum of its own": (
            lambda logits, k: (
                logits.softmax(-1).topk(k).values
                / logits.softmax(-1).topk(k).values.sum(0, keepdim=True)
            )
        ),
    },
)
def weights(logits, k):
    chosen = logits.topk(k).values  # (N, k)
    return chosen.softmax(-1)


@judged(
    3,
    hint=(
        "what does the loss depend on besides the counts?",
        "the loss multiplies each expert's share of the choices by its mean probability",
        "a choice takes the larger probability, however little larger it is",
    ),
    example=lambda: torch.tensor([[0.501, 0.499]] * 4),
)
def overturned(answer):
    probabilities = answer()
    expect(isinstance(probabilities, torch.Tensor), "return a tensor of probabilities")
    expect(
        probabilities.shape == (4, 2),
        f"the tensor needs four tokens and two experts; yours is {tuple(probabilities.shape)}",
    )
    probabilities = probabilities.float()
    expect(
        bool((probabilities >= 0).all()) and bool(((probabilities.sum(-1) - 1).abs() < 1e-3).all()),
        "each row must be a distribution: no probability below 0, and a sum of 1",
    )
    chosen = probabilities.argmax(-1, keepdim=True)
    expect(len(chosen.unique()) == 1, "the four tokens don't all use the same expert")
    loss = balance_loss(probabilities, chosen).item()
    expect(
        abs(loss - 1) <= 0.01,
        f"the balance loss is {loss:.3f}; how sure must the router be to choose an expert?",
    )
