"""Checks for the chapter Preferences."""

import math

import torch

from exercises.checks import Part, exercise, expect, judged, values


def _by_hand():
    before, reward = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([1.0, 2.0, 4.0]).log()
    weight = before * reward.exp()
    return before, reward, weight / weight.sum()


_BEFORE, _REWARD, _BEST = _by_hand()


def _near(wrong):
    """Whether a list is this one, up to the digits that somebody writes down."""
    wrong = torch.as_tensor(wrong)
    return lambda given: bool((torch.as_tensor(given) - wrong).abs().max() < 0.005)


by_hand = values(
    1,
    "by_hand",
    best=Part(
        _BEST.tolist(),
        "weight each text's probability by exp(reward / price), then divide by the sum",
        {
            "you forgot the reference: its probabilities are weighted, not replaced": _near(
                _REWARD.exp() / _REWARD.exp().sum()
            ),
            "divide by the sum: these are the weights, not yet probabilities": _near(
                _BEFORE * _REWARD.exp()
            ),
            "the exponential is missing: you multiplied by the rewards themselves": _near(
                _BEFORE * _REWARD / (_BEFORE * _REWARD).sum()
            ),
        },
        tolerance=0.005,
    ),
    chosen=Part(
        2 / 3,
        "it's the sigmoid of the difference of the rewards, which is ln 4 - ln 2",
        {
            "that is the probability that the second is chosen": 1 / 3,
            "the reference plays no part when two given texts are compared": 0.5,
            "that is the sigmoid of the third reward on its own; take the difference of the "
            "two": 0.8,
        },
        tolerance=0.005,
    ),
    hint=(
        "the best policy weights each text's old probability by exp(reward / price)",
        "exp(ln 2) is 2, so the weights are whole numbers times the old probabilities",
        "find three weights, then divide each by their sum; for a given pair, you don't need the "
        "old probabilities",
    ),
)

predicted = values(
    2,
    "predicted",
    at_start=Part(
        math.log(2),
        "at the start policy and reference are the same, so both log-ratios are 0",
        {
            "a loss of 0 would mean that the policy is already certain": 0.0,
            "that is the probability; the loss is minus its logarithm": 0.5,
        },
        tolerance=0.005,
    ),
    kl_of_best=Part(
        math.log(64) - 63 / 64,
        "it's ln n - (n - 1) / n, with n = 64",
        {
            "you forgot the second term, (n - 1) / n": math.log(64),
            "the logarithm is the natural one: we count in nats": math.log2(64) - 63 / 64,
            "the second term must be subtracted": math.log(64) + 63 / 64,
        },
        tolerance=0.002,
    ),
    hint=(
        "how far has the policy moved from the reference before its first update?",
        "with both log-ratios at 0 the loss is -ln sigmoid(0)",
        "for the best of n, put n = 64 into ln n - (n - 1) / n",
    ),
)


def _batch(n=6, price=0.5, scale=1.0):
    log_p = (-8 + torch.randn(n)).requires_grad_()
    return log_p, -8 + torch.randn(n), scale * torch.randn(n) + 1, price


def _advantage(earned):
    return earned - earned.mean()


@exercise(
    3,
    inputs=_batch,
    vary=(dict(n=4, price=0.0), dict(n=9, price=2.0), dict(n=5, scale=3.0)),
    gradients=True,
    wrong="each text earns its reward less the price of its log-ratio; its advantage is a number, "
    "and only log_p has a gradient",
    shape="the result should be one number",
    given=0xD42D5BE1,
    slips={
        "the price is in the loss, where its gradient is 0 on average; it belongs to what a text "
        "earns": (
            lambda log_p, log_before, reward, price: (
                -(_advantage(reward) * log_p).mean() + price * (log_p - log_before).mean()
            )
        ),
        "moving away costs the policy something: subtract the price instead of adding it": (
            lambda log_p, log_before, reward, price: -(
                _advantage(reward + price * (log_p - log_before).detach()) * log_p
            ).mean()
        ),
        "the price is missing": (
            lambda log_p, log_before, reward, price: -(_advantage(reward) * log_p).mean()
        ),
        "a loss goes down: what earns more than the mean must become likelier": (
            lambda log_p, log_before, reward, price: (
                _advantage(reward - price * (log_p - log_before).detach()) * log_p
            ).mean()
        ),
        "the baseline is missing: subtract the mean of what all texts earned": (
            lambda log_p, log_before, reward, price: -(
                (reward - price * (log_p - log_before).detach()) * log_p
            ).mean()
        ),
        "the baseline is the mean of what the texts earned, the price included; yours is that of "
        "the rewards alone": (
            lambda log_p, log_before, reward, price: -(
                (_advantage(reward) - price * (log_p - log_before).detach()) * log_p
            ).mean()
        ),
        "no correction for the number of texts here: the mean of all n is the baseline": (
            lambda log_p, log_before, reward, price: -(
                _advantage(reward - price * (log_p - log_before).detach())
                * log_p * len(reward) / (len(reward) - 1)
            ).mean()
        ),
        "you charge twice: the price is in what a text earns, and in the loss once more": (
            lambda log_p, log_before, reward, price: (
                price * (log_p - log_before).mean()
                - (_advantage(reward - price * (log_p - log_before).detach()) * log_p).mean()
            )
        ),
        "don't divide by the spread: GRPO does that, but this loss doesn't": [
            lambda log_p, log_before, reward, price, even=even: -(
                (earned := _advantage(reward - price * (log_p - log_before).detach()))
                / earned.std(unbiased=even) * log_p
            ).mean()
            for even in (True, False)
        ],
        "take the mean over the texts, not the sum": (
            lambda log_p, log_before, reward, price: -(
                _advantage(reward - price * (log_p - log_before).detach()) * log_p
            ).sum()
        ),
        "what a text earned is a number: detach it, or a second gradient runs through it": (
            lambda log_p, log_before, reward, price: -(
                _advantage(reward - price * (log_p - log_before)) * log_p
            ).mean()
        ),
    },
)
def repaired_loss(log_p, log_before, reward, price):
    moved = log_p - log_before
    earned = (reward - price * moved).detach()  # a number: only log_p has a gradient
    advantage = earned - earned.mean()
    return -(advantage * log_p).mean()


def _best_of(strict=False, power=None, worst=False, sort=True):
    """The distribution of the best of n, with one thing done in another way."""

    def answer(p, reward, n):
        if worst:
            reward = -reward
        above = reward[None, :] <= reward[:, None] if sort else torch.ones(len(p), len(p)).tril()
        below = reward[None, :] < reward[:, None] if sort else torch.ones(len(p), len(p)).tril(-1)
        up_to, under = (above.to(p) * p).sum(-1), (below.to(p) * p).sum(-1)
        if strict:
            return up_to**n
        if power is not None:
            return power(p, up_to, under, n)
        return up_to**n - under**n

    return answer


@exercise(
    4,
    inputs=lambda N=5, n=3: (torch.rand(N).log_softmax(-1).exp(), torch.randn(N), n),
    vary=(dict(N=4, n=2), dict(N=6, n=4), dict(N=3, n=5)),  # few enough to list every draw
    hint="the best of n is at most r if all n are; what's the probability of that?",
    wrong="it's the probability that all n are at most this good, minus the probability that all "
          "n are worse",
    shape="return a probability for each text, (N,)",
    slips={
        "that is the probability that the best is at most this good; subtract the probability "
        "that it's worse": (
            _best_of(strict=True)
        ),
        "you found the distribution of the worst of n": _best_of(worst=True),
        "the texts are not sorted: compare rewards, not places in the list": _best_of(sort=False),
        "that's for a single draw; for n draws, raise the shares to the n-th power": (
            _best_of(power=lambda p, up_to, under, n: up_to - under)
        ),
        "that is the probability that the text is among the n at all, whether or not it's the "
        "best": (
            _best_of(power=lambda p, up_to, under, n: 1 - (1 - p) ** n)
        ),
        "that is the probability that all n are this text": (
            _best_of(power=lambda p, up_to, under, n: p**n)
        ),
        "don't multiply by n as well: any of the n may be the best, and the powers already count "
        "that": (
            _best_of(power=lambda p, up_to, under, n: n * (up_to**n - under**n))
        ),
        "your numbers are in the order of the rewards; put each back in its text's place": (
            lambda p, reward, n: best_of.reference(p, reward, n)[reward.argsort()]
        ),
        "x[order] sorts a second time; out[order] = x puts each number back in its text's place": (
            lambda p, reward, n: best_of.reference(p, reward, n)[reward.argsort()][reward.argsort()]
        ),
        "n * p * below ** (n - 1) takes all the others to be worse; the same text may be drawn "
        "twice": (
            _best_of(power=lambda p, up_to, under, n: n * p * under ** (n - 1))
        ),
    },
)
def best_of(p, reward, n):
    up_to = ((reward[None, :] <= reward[:, None]).to(p) * p).sum(-1)  # (N,)
    below = ((reward[None, :] < reward[:, None]).to(p) * p).sum(-1)
    return up_to**n - below**n


@judged(
    5,
    hint=(
        "give three lists of three numbers: the reference's probabilities, what each text is "
        "worth to her, and the rewards",
        "a text that the reference hardly ever writes is in few pairs, so its reward may be "
        "wrong",
        "let that rare text have the highest reward and please her least; at a price of 0.1 its "
        "weight is multiplied by exp(10) for each unit of reward",
    ),
    example=([0.49, 0.49, 0.02], [0.0, 1.0, -3.0], [0.0, 1.0, 2.0]),
)
def misled(before, likes, reward):
    before, likes, reward = (
        torch.as_tensor([float(x) for x in given], dtype=torch.float64)
        for given in (before, likes, reward)
    )
    for name, given in {"before": before, "likes": likes, "reward": reward}.items():
        expect(given.shape == (3,), f"`{name}` needs three numbers, one for each text")
    expect(bool((before > 0).all()), "the reference must give every text a probability above 0")
    expect(abs(before.sum() - 1) < 1e-6, f"the probabilities sum to {before.sum():g}, not to 1")
    expect(bool((reward.abs() <= 5).all()), "keep the rewards between -5 and 5")
    i, j = torch.triu_indices(3, 3, 1)
    expect(
        bool((likes[i] != likes[j]).all()),
        "make the three numbers in `likes` different, so each pair counts",
    )
    often = before[i] * before[j]
    agrees = ((likes[i] > likes[j]) == (reward[i] > reward[j])) & (reward[i] != reward[j])
    share = ((often * agrees).sum() / often.sum()).item()
    expect(
        share >= 0.9,
        f"the reward model agrees with her on {share:.0%} of the pairs that the reference "
        "writes; 90 % are needed, so let the pairs on which it is wrong be rare",
    )
    best = (before.log() + reward / 0.1).softmax(-1)
    now, then = (best @ likes).item(), (before @ likes).item()
    expect(
        now < then,
        f"at a price of 0.1 the texts are worth {now:.2f} to her on average, and those of the "
        f"reference {then:.2f}: nobody was misled",
    )
