"""Checks for the page Speculative decoding."""

import torch

from exercises.checks import Part, exercise, values

by_hand = values(
    1,
    "by_hand",
    tokens=Part(
        2.44,
        "1 + 0.8 + 0.8 * 0.8: the model's own token, and each guess that all before it led to",
        {
            "those are the guesses that stay; the pass also writes one token of the model's own": (
                1.44
            ),
            "a guess counts only if those before it were right, too: 0.8, then 0.64": 2.6,
            "that's the longest pass, when both guesses are right": 3.0,
            "two guesses, not three: the longest pass writes three tokens": 2.952,
        },
        tolerance=0.005,
    ),
    kept=Part(
        0.7,
        "0.5 + 0.2 + 0: of each word the smaller of the two probabilities",
        {
            "that's what the two differ in; the rest is kept": 0.3,
            "that's how often two draws would agree; here only the guess is drawn": 0.41,
            "only what both have counts; you added the larger ones": 1.3,
        },
        tolerance=0.005,
    ),
    again=Part(
        1.0,
        "only C has more in p than in q, so a draw from the rest is always C",
        {
            "0.3 is what p has more than q; what you draw from has to sum to 1": 0.3,
        },
        tolerance=0.005,
    ),
    hint=(
        "for the first: a pass of two guesses writes one, two or three tokens",
        "for the second: add min(p, q) over the three words",
        "for the third: p - q is -0.2, -0.1 and 0.3; cut off what is below 0, then scale",
    ),
)


def _pair(V=6, never=0):
    scores = torch.rand(2, V).log().mul(2)
    scores[:, :never] = -torch.inf  # tokens that neither of the two ever writes
    p, q = scores.softmax(-1)
    return p, q


def _clipped(difference):
    return difference.clamp(min=0)


@exercise(
    2,
    inputs=_pair,
    vary=(dict(V=3), dict(V=9), dict(V=4), dict(V=7, never=2)),
    hint=(
        "two ways lead to a token: it's guessed and stays, or some guess goes and it's drawn",
        "a guess x stays with q(x) * min(1, p(x) / q(x)); how often does none stay?",
        "what is drawn then: (p - q) above 0, scaled to sum to 1",
    ),
    wrong="how often each token comes out, both ways added up, if a guess always stays when p >= q",
    shape="expected one probability for each token, (2, V): stays, and drawn again",
    slips={
        "the second row must be scaled to sum to 1 and then multiplied by how often none stays; "
        "yours sums to 1": (
            lambda p, q: torch.stack([
                torch.minimum(p, q), _clipped(p - q) / _clipped(p - q).sum(),
            ])
        ),
        "a guess that goes is not drawn again from p: what q had too often would come again": (
            lambda p, q: torch.stack([
                torch.minimum(p, q), (1 - torch.minimum(p, q).sum()) * p,
            ])
        ),
        "that's the probability to stay once it is guessed; it has to be guessed first, times q": (
            lambda p, q: torch.stack([(p / q).clamp(max=1), _clipped(p - q)])
        ),
        "where neither p nor q has a token, you divide 0 by 0": [
            lambda p, q: torch.stack([q * (p / q).clamp(max=1), p - q * (p / q).clamp(max=1)]),
            lambda p, q: torch.stack([q * (p / q).clamp(max=1), _clipped(p - q)]),
        ],
        "nothing is drawn less than never: where q is above p, cut the difference off at 0": (
            lambda p, q: torch.stack([torch.minimum(p, q), p - q])
        ),
        "the ratio is upside down: a guess stays with p / q, at most 1": (
            lambda p, q: torch.stack([
                torch.where(p > 0, q * (q / p).clamp(max=1), 0.0), _clipped(p - q)
            ])
        ),
        "p and q are exchanged: the draft guesses from q, and the target's p must come out": (
            lambda p, q: torch.stack([torch.minimum(p, q), _clipped(q - p)])
        ),
        "you keep every guess; one that q makes too often has to go sometimes": (
            lambda p, q: torch.stack([q, _clipped(p - q)])
        ),
    },
)
def two_ways(p, q):
    stays = torch.minimum(p, q)  # (V,)
    rest = (p - q).clamp(min=0)
    drawn = (1 - stays.sum()) * rest / rest.sum()
    return torch.stack([stays, drawn])  # (2, V)
