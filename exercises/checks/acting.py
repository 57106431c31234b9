"""Checks for the chapter Acting."""

import math

import torch
import torch.nn.functional as F

from exercises.checks import exercise, expect, expect_close, expect_shape, judged, same


@judged(1, hint=(
        "the answer is a list of four numbers, then two numbers",
        "the return to go at a step is that step's reward plus all the later ones, so work "
        "backwards from the end",
        "a context of n steps has three tokens a step: return, state and action. What has already "
        "been earned is subtracted from the return asked for",
    ), example=([4, 3, 3, 1], 7, 60))
def by_hand(togo, fourth_return, tokens):
    expect_shape(
        torch.as_tensor(togo, dtype=torch.float),
        (4,),
        "there are four steps, so you need four returns",
    )
    togo = torch.as_tensor(togo, dtype=torch.float)
    expect(
        not same(togo, torch.tensor([1.0, 1, 3, 4])),
        "you summed from the beginning; a return to go is what is still to come",
    )
    expect(
        not same(togo, torch.tensor([3.0, 3, 1, 0])),
        "a step's own reward belongs to its return: it is paid for this step's action",
    )
    expect_close(togo, torch.tensor([4.0, 3, 3, 1]), "sum the rewards from each step to the end")
    expect(
        fourth_return != 10,
        "what has been earned no longer needs asking for, so the number goes down",
    )
    expect(fourth_return != 8, "the three steps before it earned 1, 0 and 2; subtract all of that")
    expect_close(fourth_return, 7, "that's 10 less what the first three steps earned")
    expect(tokens != 20, "each step is more than one token")
    expect_close(tokens, 60, "each step is a return, a state and an action")


@judged(
    2,
    hint=(
        "the update is the sigmoid of minus the bias, and there are eight gates in a row",
        "each gate keeps the share 1 - update of x, and the update is sigmoid(-bias)",
        "so what's left is sigmoid(bias) to the power of the number of gates",
    ),
    example=((1 - 1 / (1 + math.exp(2))) ** 8, 0.5**8),
)
def kept(kept_with_bias_2, kept_with_bias_0):
    for bias, given in ((2.0, kept_with_bias_2), (0.0, kept_with_bias_0)):
        opened = 1 / (1 + math.exp(bias))
        left, given = (1 - opened) ** 8, float(given)
        slips = {
            "that is one gate; there are eight in a row": 1 - opened,
            "that is four gates; a layer has two": (1 - opened) ** 4,
            "that is the share of what's new: the update says how far the gate is open": opened**8,
        }
        for message, slip in slips.items():
            far = abs(given - slip) > 0.02 * slip or abs(given - left) < abs(given - slip)
            expect(slip == left or far, f"bias {bias:g}: {message}")
        expect(
            abs(given - left) < 0.02 * left + 1e-4,
            f"bias {bias:g}: one gate leaves 1 - sigmoid(-bias) of x; take the 8th power",
        )


@exercise(
    3,
    inputs=lambda N=2, T=4, wish=20: (
        10 * torch.rand(N) + wish, torch.randint(0, 8, (N, T)).float()
    ),
    vary=(dict(N=3, T=5), dict(N=4, T=4), dict(T=6, wish=0)),
    given=0x255465D1,
    wrong="at each step, ask for the original return less what the steps before it have earned",
    shape="the shape should be (N, T)",
    slips={
        "you also subtract the step's own reward, which hasn't been earned yet": (
            lambda asked, rewards: asked[:, None] - rewards.cumsum(-1)
        ),
        "you subtract only the step's own reward; subtract what all the steps before it earned": (
            lambda asked, rewards: asked[:, None] - rewards
        ),
        "the return asked for never goes down: subtract what has been earned": (
            lambda asked, rewards: asked[:, None].expand_as(rewards).clone()
        ),
        "the return asked for may fall below 0: an agent that has earned more than it was asked "
        "for has more than enough": (
            lambda asked, rewards: (asked[:, None] - rewards.cumsum(-1) + rewards).clamp(min=0)
        ),
        "you subtract only the previous step's reward; subtract what all earlier steps earned": (
            lambda asked, rewards: asked[:, None] - F.pad(rewards, (1, 0))[:, :-1]
        ),
        "what has been earned is subtracted, not added": (
            lambda asked, rewards: asked[:, None] + rewards.cumsum(-1) - rewards
        ),
        "the sums run over the episodes, not over the steps": (
            lambda asked, rewards: asked[:, None] - rewards.cumsum(0) + rewards
        ),
    },
)
def repaired_target(asked, rewards):
    earned_before = rewards.cumsum(-1) - rewards  # (N, T)
    return asked[:, None] - earned_before


def _tokens(cut=torch.floor, last=1, step=None, bottom=None, order="state action", clamp=True):
    """The text of a trajectory, with one thing done in another way."""

    def text(states, actions, low, high, n_bins):
        n = states.size(-1)
        start = low if bottom is None else bottom
        bins = cut((states - start) / (high - start) * n_bins)
        bins = (bins.clamp(0, n_bins - last) if clamp else bins).long()
        bins = bins + (n_bins if step is None else step(n, n_bins)) * torch.arange(n)
        acts = actions[..., None] + n * n_bins
        if order == "all states":
            return torch.cat([bins.flatten(1), acts.flatten(1)], -1)
        parts = [bins, acts] if order == "state action" else [acts, bins]
        return torch.cat(parts, -1).flatten(1)

    return text


def _trajectory(B=2, T=3, n=3, low=-1.0, high=1.0, n_bins=10, A=4):
    span = high - low
    states = (low - 0.25 * span + 1.5 * span * torch.rand(B, T, n)).round(decimals=2)
    return states, torch.randint(A, (B, T)), low, high, n_bins


def _whole_ids(answer):
    ids = torch.as_tensor(answer(*_trajectory()))
    expect(
        not ids.is_floating_point(),
        "tokens are ids, so they must be whole numbers: end with .long()",
    )


@exercise(
    4,
    inputs=_trajectory,
    vary=(
        dict(n=4, low=-2.0, high=2.0, n_bins=7), dict(B=1, T=4, n=2, low=1.0, high=5.0, n_bins=8)
    ),
    hint="scale to [0, n_bins), round down, clamp; then add i * n_bins",
    wrong="some of the ids aren't right",
    shape="the shape should be (B, T * (n + 1)), for the state and the action of each step",
    laws=_whole_ids,
    slips={
        "every number uses the same ids, so the model couldn't tell a position from a speed": [
            _tokens(step=lambda n, n_bins: 0),
            lambda states, actions, *rest: torch.cat([
                _tokens(step=lambda n, n_bins: 0)(states, actions, *rest).view(
                    *actions.shape, -1)[..., :-1], actions[..., None],
            ], -1).flatten(1),
        ],
        "values outside the range go into the nearest bin: clamp to 0 ... n_bins - 1": (
            _tokens(clamp=False)
        ),
        "the last bin is number n_bins - 1: clamp to 0 ... n_bins - 1": _tokens(last=0),
        "all states come first and all actions last; each action belongs after its state": (
            _tokens(order="all states")
        ),
        "each action comes after its state, not before it": _tokens(order="action state"),
        "round down: a bin contains all numbers from its lower edge up to the next one's": (
            _tokens(cut=torch.round)
        ),
        "number i starts at i * n_bins, not at i * n": _tokens(step=lambda n, n_bins: n),
        "the range starts at low, not at 0": _tokens(bottom=0.0),
        "cut the range into n_bins bins; yours has one fewer": (
            lambda states, actions, low, high, n_bins: torch.cat([
                ((states - low) / (high - low) * (n_bins - 1)).clamp(0, n_bins - 1).long()
                + n_bins * torch.arange(states.size(-1)),
                actions[..., None] + n_bins * states.size(-1),
            ], -1).flatten(1)
        ),
        "the range goes from `low` to `high`, whatever is in the data": (
            lambda states, actions, low, high, n_bins: _tokens()(
                states, actions, float(states.min()), float(states.max()), n_bins
            )
        ),
        "the actions have ids of their own, after all the bins: they start at n * n_bins": (
            lambda states, actions, low, high, n_bins: torch.cat([
                _tokens()(states, actions, low, high, n_bins).view(
                    *actions.shape, -1)[..., :-1], actions[..., None],
            ], -1).flatten(1)
        ),
    },
)
def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().clamp(0, n_bins - 1).long()
    ids = bins + n_bins * torch.arange(n)  # (B, T, n)
    step = torch.cat([ids, actions[..., None] + n * n_bins], -1)
    return step.flatten(1)


@judged(5, hint=(
        "give four numbers",
        "let the gamble win rarely, and pay little but not nothing when it loses",
        "with win at 10, compare chance * 10 + (1 - chance) * lose with safe, and with half of "
        "safe",
    ), example=(5, 10, 1, 0.3))
def gamble(safe, win, lose, chance):
    safe, win, lose, chance = (float(x) for x in (safe, win, lose, chance))
    expect(0 < chance < 1, f"`chance` is {chance:g}; a probability lies between 0 and 1")
    expect(win > safe, "nobody would ask for `win` unless it's the highest return in the data")
    expect(lose > 0, "`lose` must be above 0")
    mean = chance * win + (1 - chance) * lose
    expect(
        mean < safe,
        f"the gamble earns {mean:.2f} on average, and safe {safe:g}: asking for `win` is wise here",
    )
    expect(
        mean > safe / 2,
        f"the gamble earns {mean:.2f} on average; to be tempting, it needs more than {safe / 2:g}",
    )


def _states(B=3, A=4, size=1.0):
    """Action probabilities and rewards of B states."""
    return (size * torch.randn(B, A)).softmax(-1), 3 * torch.randn(B, A) + 2


def _square(probabilities):
    """(B, A): the squared length of one_hot(a) - probabilities, for each action a."""
    return 1 - 2 * probabilities + (probabilities**2).sum(-1, keepdim=True)


def _baseline(weights):
    """The mean of the rewards, by weights made from the probabilities."""

    def baseline(probabilities, rewards):
        by = weights(probabilities)
        return (by * rewards).sum(-1) / by.sum(-1)

    return baseline


@exercise(
    6,
    inputs=_states,
    vary=(dict(B=2, A=2), dict(B=4, A=4, size=2.0), dict(B=1, A=6, size=0.3)),
    hint=(
        "the derivative of log softmax at action a is one_hot(a) - probabilities; what does its "
        "mean over the actions come to?",
        "the mean of the estimate doesn't depend on b, so make the mean of its square smallest: "
        "sum over a of p[a] * (r[a] - b) ** 2 * s[a], with s[a] the squared length of the "
        "derivative",
        "set the derivative with respect to b to 0: b is a mean of the rewards, weighted by p[a] "
        "* s[a], and "
        "s[a] = 1 - 2 p[a] + the sum of all p squared",
    ),
    wrong="there's a baseline with lower variance",
    shape="return one baseline for each state, (B,)",
    tolerance=1e-4,
    slips={
        "that is the mean reward, the usual baseline; the more an action moves "
        "the logits, the more it should count": _baseline(lambda p: p),
        "the agent doesn't take all actions equally often: weight them by their probabilities": [
            _baseline(torch.ones_like), _baseline(_square),
        ],
        "the other actions' logits move as well: the squared length is 1 - 2 p[a] + the sum of "
        "all p squared": [
            _baseline(lambda p: p * (1 - p) ** 2), _baseline(lambda p: p * (1 - p)),
        ],
        "the variance contains the length squared": _baseline(lambda p: p * _square(p).sqrt()),
        "divide by the sum of the weights: a baseline is a mean of rewards": (
            lambda probabilities, rewards: (
                probabilities * _square(probabilities) * rewards
            ).sum(-1)
        ),
        "each state has its own actions: sum over the last axis": lambda probabilities, rewards: (
            (probabilities * _square(probabilities) * rewards).sum()
            / (probabilities * _square(probabilities)).sum()
        ).expand(len(rewards)),
    },
)
def best_baseline(probabilities, rewards):
    lengths = 1 - 2 * probabilities + (probabilities**2).sum(-1, keepdim=True)  # (B, A)
    weights = probabilities * lengths
    return (weights * rewards).sum(-1) / weights.sum(-1)
