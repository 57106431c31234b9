"""Checks for the page Writing by filling in."""

import torch

from exercises.checks import Part, exercise, values

by_hand = values(
    1,
    "by_hand",
    weight=Part(
        1 / 12,
        "it's 1 / (k * C(T, k)), with T = 4 and k = 2",
        {
            "there are 6 such sets; each hides two tokens, and you take their mean": 1 / 6,
            "that is the share of one set among all 15; their weights aren't equal": 1 / 15,
            "that is the chance of the set, without the division by t": 1 / 30,
        },
        tolerance=0.0005,
    ),
    orders=Part(
        24,
        "it's 4 * 3 * 2 * 1",
        {
            "every place can come first, then each of the rest: a product": 4,
            "4! is 24": 10,
            "those are the sets of places; an order takes all four, each once": [15, 16],
        },
    ),
    read=Part(
        136,
        "each pass reads all the places",
        {
            "each pass reads the whole text, including what has already been filled in": 17,
            "you counted <bos>, too: there are 17 places in each of the 8 passes": 144,
        },
    ),
    hint=(
        "you need a set's weight, the number of orders, and the places read in all 8 passes",
        "two of four tokens are hidden, so k = 2 and T = 4; C(4, 2) is 6",
        "the orders are 4!, and there are 8 passes over 17 places each",
    ),
)


def _batch(B=3, T=6, low=0.2):
    rate = low + (1 - low) * torch.rand(B)
    hidden = torch.rand(B, T) < rate[:, None]
    hidden[0, 0] = True
    return (5 * torch.rand(B, T)).requires_grad_(), hidden, rate


@exercise(
    2,
    inputs=_batch,
    vary=(dict(B=4, T=5), dict(B=2, T=9), dict(B=5, T=3, low=0.05)),
    gradients=True,
    given=0xBE70BADA,
    wrong="sum over the hidden tokens of each text, divide by its rate, then take the mean per "
          "token",
    shape="the result should be one number",
    slips={
        "if you divide by how many are hidden, every token counts the same: that's BERT's loss, "
        "and it isn't a bound": (
            lambda nats, hidden, rate: (nats * hidden).sum() / hidden.sum()
        ),
        "the rate is missing: a text with few masks must count for more": (
            lambda nats, hidden, rate: (nats * hidden).sum() / nats.numel()
        ),
        "tokens that can be seen aren't guessed: only the hidden ones count": (
            lambda nats, hidden, rate: (nats / rate[:, None]).sum() / nats.numel()
        ),
        "divide by the rate, don't multiply by it": (
            lambda nats, hidden, rate: (nats * hidden * rate[:, None]).sum() / nats.numel()
        ),
        "each text has its own rate; you divided by their mean": (
            lambda nats, hidden, rate: (nats * hidden).sum() / rate.mean() / nats.numel()
        ),
        "divide by the rate that was drawn, not by the share that happens to be hidden": (
            lambda nats, hidden, rate: (
                nats * hidden / hidden.float().mean(1, keepdim=True).clamp(min=1e-9)
            ).mean()
        ),
        "the hidden tokens are guessed; you count those that can be seen": (
            lambda nats, hidden, rate: (nats * ~hidden / rate[:, None]).sum() / nats.numel()
        ),
        "nats per token: divide by the number of tokens, hidden or not": (
            lambda nats, hidden, rate: (nats * hidden / rate[:, None]).sum()
        ),
        "divide by all tokens, not by the hidden ones: the rate has taken care of those": (
            lambda nats, hidden, rate: (nats * hidden / rate[:, None]).sum() / hidden.sum()
        ),
    },
)
def repaired_loss(nats, hidden, rate):
    weighted = nats * hidden / rate[:, None]  # (B, T)
    return weighted.sum() / nats.numel()


def _pass(B=3, T=6, left=2):
    masked = torch.rand(B, T) < 0.7
    masked[:, 0] = True
    return torch.rand(B, T), masked, left


def _keep(count=None, pool=None, top=True):
    def answer(score, masked, left):
        n = -(-masked.sum(-1, keepdim=True) // left) if count is None else count(masked, left)
        allowed = score.masked_fill(~masked, -1.0 if top else 2.0) if pool is None else score
        rank = allowed.argsort(-1, descending=top).argsort(-1)
        return (rank < n) if pool else (rank < n) & masked

    return answer


@exercise(
    3,
    inputs=_pass,
    vary=(dict(left=1), dict(B=2, T=9, left=4), dict(B=4, T=5, left=7)),
    hint="rank the scores of the masked places, and keep the top ceil(masks / left) of each text",
    wrong="each text fills a share of its own masks, those with the highest scores",
    shape="the shape should be (B, T), of booleans",
    slips={
        "round up, or some masks will remain after the last pass": _keep(
            count=lambda masked, left: masked.sum(-1, keepdim=True) // left
        ),
        "only masked places can be filled: hide the others' scores": _keep(pool=True),
        "places that aren't masked take up the room with their high scores: hide them before you "
        "rank": lambda score, masked, left: (
            score.argsort(-1, descending=True).argsort(-1)
            < -(-masked.sum(-1, keepdim=True) // left)
        ) & masked,
        "argsort says which place comes first, not which rank a place has: sort once more, or "
        "scatter": lambda score, masked, left: (
            score.masked_fill(~masked, -1).argsort(-1, descending=True)
            < -(-masked.sum(-1, keepdim=True) // left)
        ) & masked,
        "the highest scores are kept, not the lowest": _keep(top=False),
        "fill a share of the masks that are left, not of all places": _keep(
            count=lambda masked, left: -(-masked.size(-1) // left)
        ),
        "each text has its own number of masks": _keep(
            count=lambda masked, left: -(-masked.sum() // masked.size(0) // left)
        ),
        "you fill one token per pass, which is right only if there are as many passes as masks": [
            _keep(count=lambda masked, left: 1),
            _keep(count=lambda masked, left: masked.sum(-1, keepdim=True) if left == 1 else 1),
        ],
    },
)
def keep(score, masked, left):
    rank = score.masked_fill(~masked, -1).argsort(-1, descending=True).argsort(-1)
    n = -(-masked.sum(-1, keepdim=True) // left)  # (B, 1)
    return rank < n
