"""Checks for the chapter Acting."""

import math

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, judged, same


@judged("25.1", hint="a list of four numbers, and two numbers", example=([4, 3, 3, 1], 7, 60))
def by_hand(togo, fourth_return, tokens):
    expect_shape(torch.as_tensor(togo, dtype=torch.float), (4,), "four steps have four returns")
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
    expect(fourth_return != 10, "what has been earned is no longer asked for: count down")
    expect(fourth_return != 8, "the three steps before it earned 1, 0 and 2; take all of it off")
    expect_close(fourth_return, 7, "10 less what the first three steps earned")
    expect(tokens != 20, "each step is more than one token")
    expect_close(tokens, 60, "a return, a state and an action for each step")


@judged(
    "25.2",
    hint="the sigmoid of minus the bias, and eight gates in a row",
    example=((1 - 1 / (1 + math.exp(2))) ** 8, 0.5**8),
)
def kept(kept_with_bias_2, kept_with_bias_0):
    for bias, given in ((2.0, kept_with_bias_2), (0.0, kept_with_bias_0)):
        opened = 1 / (1 + math.exp(bias))
        left, given = (1 - opened) ** 8, float(given)
        slips = {
            "that is one gate; eight stand in a row": 1 - opened,
            "that is four gates; a layer has two": (1 - opened) ** 4,
            "that is the share of the new: the update says how far the gate is open": opened**8,
        }
        for message, slip in slips.items():
            far = abs(given - slip) > 0.02 * slip or abs(given - left) < abs(given - slip)
            expect(slip == left or far, f"bias {bias:g}: {message}")
        expect(
            abs(given - left) < 0.02 * left + 1e-4,
            f"bias {bias:g}: one gate leaves 1 - sigmoid(-bias) of x; take the 8th power",
        )


@exercise(
    "25.3",
    inputs=lambda N=2, T=4: (10 * torch.rand(N) + 20, torch.randint(0, 8, (N, T)).float()),
    vary=(dict(N=3, T=5), dict(N=4, T=4)),
    given=0x7F140A66,
    wrong="the first step is asked for everything, the next for less",
    shape="expected (N, T)",
    slips={
        "the wish of a step is lowered by that step's own reward, which is not earned yet": (
            lambda asked, rewards: asked[:, None] - rewards.cumsum(-1)
        ),
        "only the step's own reward is taken off; take off what all steps before it earned": (
            lambda asked, rewards: asked[:, None] - rewards
        ),
        "the wish is never lowered: count down": (
            lambda asked, rewards: asked[:, None].expand_as(rewards).clone()
        ),
        "the sums run over the episodes, not over the steps": (
            lambda asked, rewards: asked[:, None] - rewards.cumsum(0) + rewards
        ),
    },
)
def repaired_wish(asked, rewards):
    earned_before = rewards.cumsum(-1) - rewards  # (N, T)
    return asked[:, None] - earned_before


def _tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().clamp(0, n_bins - 1).long()
    bins = bins + n_bins * torch.arange(n)
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)


@judged(
    "25.4",
    hint="scale to [0, n_bins), round down, clamp; then add i * n_bins",
    example=_tokens,
)
def trajectory_tokens(answer):
    states = torch.tensor([[[0.0, -1.0, 0.99], [5.0, 0.5, -7.0]]])  # (1, 2, 3)
    actions = torch.tensor([[1, 0]])
    expected = torch.tensor([[5, 10, 29, 31, 9, 17, 20, 30]])
    output = answer(states, actions, -1.0, 1.0, 10)
    expect_shape(output, (1, 8), "expected (B, T * (n + 1)): the state, then the action")
    expect(not output.is_floating_point(), "tokens are ids, whole numbers: .long()")
    local = torch.tensor([[5, 0, 9, 1, 9, 7, 0, 0]])
    expect(
        not torch.equal(output, local),
        "every number uses the same ids: the model could not tell a place from a speed",
    )
    expect(
        int(output.max()) < 32 and int(output.min()) >= 0,
        "some ids lie outside the vocabulary of 3 * 10 + 2: clamp to 0 ... n_bins - 1",
    )
    sorted_apart = torch.cat([expected.view(1, 2, 4)[..., :3].flatten(1), expected[:, 3::4]], 1)
    expect(
        not torch.equal(output, sorted_apart),
        "all states come first and all actions last; each action belongs behind its state",
    )
    expect(torch.equal(output, expected), "some ids differ: try one number by hand")
    many, acts = torch.rand(3, 5, 4) * 6 - 3, torch.randint(3, (3, 5))
    bins = ((many + 2) / 4 * 7).floor().clamp(0, 6).long() + 7 * torch.arange(4)
    expected = torch.cat([bins, acts[..., None] + 28], -1).flatten(1)
    output = answer(many, acts, -2.0, 2.0, 7)
    expect(torch.equal(output, expected), "right for 10 bins in [-1, 1], wrong for 7 in [-2, 2]")


@judged("25.5", hint="four numbers", example=(5, 10, 1, 0.3))
def gamble(safe, win, lose, chance):
    safe, win, lose, chance = (float(x) for x in (safe, win, lose, chance))
    expect(0 < chance < 1, f"`chance` is {chance:g}; a probability lies between 0 and 1")
    expect(win > safe, "nobody asks for `win` if it is not the highest return in the data")
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
