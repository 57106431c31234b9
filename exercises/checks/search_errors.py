"""Checks for the page Search errors and model errors."""

import torch

from exercises.checks import Part, exercise, expect, judged, values


def _candidates(n=5, source=9, weight=0.3):
    lengths = torch.randint(4, 15, (n,)).float()
    return -3 - 9 * torch.rand(n), lengths, -2 - 12 * torch.rand(n), source, weight


@exercise(
    1,
    inputs=_candidates,
    vary=(dict(n=3, source=6, weight=0.6), dict(n=7, source=13, weight=0.1)),
    hint=(
        "both sums grow with the number of tokens, so divide each before you add them",
        "own is a sum over the candidate's tokens, other a sum over the source's",
        "(1 - weight) * own / lengths + weight * other / source",
    ),
    wrong="that isn't the weighted sum of two log-probabilities per token",
    shape="return one score for each candidate, (n,)",
    slips={
        "you divide neither sum by its number of tokens: a long candidate pays for each token": (
            lambda own, lengths, other, source, weight: (1 - weight) * own + weight * other
        ),
        "the other direction writes the source: divide its sum by the source's length": (
            lambda own, lengths, other, source, weight: (
                ((1 - weight) * own + weight * other) / lengths
            )
        ),
        "the other direction's sum isn't per token, so the weight means something different for "
        "each source": (
            lambda own, lengths, other, source, weight: (1 - weight) * own / lengths
            + weight * other
        ),
        "your own model's sum isn't per token: a long candidate pays for each of its tokens": (
            lambda own, lengths, other, source, weight: (1 - weight) * own + weight * other / source
        ),
        "the weights are swapped: weight 0 has to be the model's own order": (
            lambda own, lengths, other, source, weight: weight * own / lengths
            + (1 - weight) * other / source
        ),
        "own is a sum over the candidate's tokens; you divided it by the source's length": (
            lambda own, lengths, other, source, weight: (
                ((1 - weight) * own + weight * other) / source
            )
        ),
        "the lengths are swapped: each sum runs over the tokens that its model writes": (
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
        "divide each sum by its number of tokens; you multiply": (
            lambda own, lengths, other, source, weight: (1 - weight) * own * lengths
            + weight * other * source
        ),
    },
)
def both(own, lengths, other, source, weight):
    here = own / lengths  # (n,)
    back = other / source  # (n,)
    return (1 - weight) * here + weight * back


by_hand = values(
    2,
    "by_hand",
    by_sum=Part(
        2,
        "compare the sums: for which captions is the reference's the higher one?",
        {
            "that's how often the reference is ahead per token; here compare the sums": 3,
            "E: -6.0 is below -5.5, so there the beam's output has the higher sum": 4,
        },
    ),
    per_token=Part(
        3,
        "divide each sum by its number of tokens, and compare again",
        {
            "that's how often the reference is ahead by sum; divide by the token counts": 2,
            "C's reference isn't ahead: -8.0 over 8 tokens is -1, and -5.0 over 10 is -0.5": 4,
            "D: -4.2 over 5 tokens is -0.84, and -5.6 over 8 is -0.7": 5,
        },
    ),
    differ=Part(
        3,
        "for how many captions do your two answers name different winners?",
        {
            "that's the difference between the two counts; go through the captions one by one": 1,
            "B is a search error by both, and C by neither": 5,
            "A, D and E: for A and E the reference wins only per token, and for D only by sum": 2,
        },
    ),
    hint=(
        "you need ten comparisons: five of sums, and five of sums divided by the number of tokens",
        "per token, the references have -0.6, -0.9, -1.0, -0.84 and -0.5",
        "the beam's outputs have -0.66, -0.95, -0.5, -0.7 and -0.55 per token",
    ),
)


def _texts(n=4, T=6, V=7):
    """log_p (n, T, V), ids (n, T) of different lengths, and the id of padding."""
    ids = torch.randint(3, V, (n, T))
    lengths = torch.arange(n) % (T - 1) + 2
    places = torch.arange(T)
    ids = torch.where(places == lengths[:, None] - 1, 2, ids)  # <eos>
    ids = torch.where(places >= lengths[:, None], 0, ids)
    return (3 * torch.randn(n, T, V)).log_softmax(-1), ids, 0


def _chosen(log_p, ids):
    return log_p.gather(-1, ids[..., None]).squeeze(-1)  # (n, T)


def _padded_with(pad_id, n, T):
    """The same with another id for padding."""
    log_p, ids, _ = _texts(n, T)
    swapped = torch.where(ids == 0, pad_id, torch.where(ids == pad_id, 0, ids))
    return log_p, swapped, pad_id


@exercise(
    3,
    inputs=[_texts(), _texts(n=3, T=5), _padded_with(1, 5, 7), _padded_with(1, 2, 4)],
    given=0x07EDE988,
    hint=(
        "two candidates of different lengths share a batch: what comes after the shorter one?",
        "what comes after <eos> adds 0, and so it should; but what is the sum divided by?",
        "divide by the number of ids that aren't padding, each candidate by its own",
    ),
    wrong="that isn't the mean log-probability of each candidate's own tokens, `<eos>` included",
    shape="return one number for each candidate, (n,)",
    slips={
        "padding adds nothing to the sum, but it's still counted: short candidates get too good a "
        "score": lambda log_p, ids, pad_id: (
            _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).mean(-1)
        ),
        "padding isn't one of the candidate's tokens: neither its log-probability nor its place "
        "counts": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).mean(-1)
        ),
        "the count is right, but the log-probabilities of padding are still in the sum": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).sum(-1) / (ids != pad_id).sum(-1)
        ),
        "that's the sum: a long candidate pays for each of its tokens": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).sum(-1)
        ),
        "each candidate has its own length; you divide all by the mean of them": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).sum(-1)
            / (ids != pad_id).sum(-1).float().mean()
        ),
        "`<eos>` is a token that the model had to write: it counts, too": [
            lambda log_p, ids, pad_id: (
                _chosen(log_p, ids).masked_fill((ids == pad_id) | (ids == 2), 0.0).sum(-1)
                / ((ids != pad_id) & (ids != 2)).sum(-1)
            ),
            lambda log_p, ids, pad_id: _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).sum(-1)
            / ((ids != pad_id).sum(-1) - 1),
        ],
        "padding has the id that you were given, which isn't always 0": lambda log_p, ids, pad_id: (
            _chosen(log_p, ids).masked_fill(ids == 0, 0.0).sum(-1) / (ids != 0).sum(-1)
        ),
        "you divide by the number of padding places; count the other places": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).sum(-1)
            / (ids == pad_id).sum(-1).clamp(min=1)
        ),
        "each candidate has its own length; you divide by the batch's total": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids).masked_fill(ids == pad_id, 0.0).sum(-1)
            / (ids != pad_id).sum()
        ),
        "padding should add 0 to a sum of logarithms; with -inf, every padded candidate becomes "
        "impossible": (
            lambda log_p, ids, pad_id: _chosen(log_p, ids)
            .masked_fill(ids == pad_id, -float("inf")).sum(-1) / (ids != pad_id).sum(-1)
        ),
        "take the log-probability of each token that was written, not of the likeliest one": (
            lambda log_p, ids, pad_id: log_p.amax(-1).masked_fill(ids == pad_id, 0.0).sum(-1)
            / (ids != pad_id).sum(-1)
        ),
    },
)
def repaired_score(log_p, ids, pad_id):
    chosen = log_p.gather(-1, ids[..., None]).squeeze(-1)  # (n, T)
    real = ids != pad_id  # (n, T)
    return chosen.masked_fill(~real, 0.0).sum(-1) / real.sum(-1)


LISTED, TIMES, AHEAD = 5, 4, 1.2


@judged(
    4,
    hint=(
        "the model knows the truth: the reference is drawn with the probabilities p, so nobody "
        "can do better than choose the likeliest",
        "the oracle takes the reference whenever it's on the list: add up the five largest",
        "the first has to be 1.2 times as likely as the second; give the others equal shares",
    ),
    example=([0.2, 0.16, 0.16, 0.16, 0.16, 0.16], 0.2, 0.84),
)
def overturned(p, chosen, oracle):
    expect(
        isinstance(p, list | tuple | torch.Tensor)
        and len(p) > 0 and all(0 <= float(x) <= 1 for x in p),
        f"`p` needs a list of probabilities, one for each translation; yours is {p!r:.60}",
    )
    ranked = sorted((float(x) for x in p), reverse=True)
    expect(abs(sum(ranked) - 1) < 1e-4, f"the probabilities have to sum to 1, not {sum(ranked):g}")
    expect(
        len(ranked) > 1 and ranked[0] >= AHEAD * ranked[1] - 1e-6,
        f"the model must prefer one: let it be at least {AHEAD} times as likely as the second",
    )
    best, held = ranked[0], sum(ranked[:LISTED])
    expect(
        held >= TIMES * best - 1e-6,
        f"no choice could do better than {best:.0%}, and the oracle is right {held:.0%} of the "
        "time: that's not four times as often, so spread the probability out",
    )
    for name, given in dict(chosen=chosen, oracle=oracle).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    expect(
        abs(chosen - best) < 0.006,
        "your `p` does refute the claim; but `chosen` is how often the likeliest is the reference, "
        f"and you predict {chosen:.2f}",
    )
    expect(
        abs(oracle - held) < 0.006,
        f"`chosen` is right; `oracle` is how often the reference is among the {LISTED} likeliest, "
        f"and you predict {oracle:.2f}",
    )
    return (
        f"The oracle is right {held / best:.1f} times as often as the best possible choice, "
        "and nobody chose badly."
    )
