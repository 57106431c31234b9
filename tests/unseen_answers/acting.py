"""Answers to the exercises of chapter 25, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
rewards = [1, 0, 2, 1]
togo = [sum(rewards[t:]) for t in range(len(rewards))]
answer = (togo, 10 - sum([1, 0, 2]), 3 * 20)
""",
        right=True,
        mistake="Sums from each step on, and subtracts what came.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([1, 1, 3, 4], 7, 60)
""",
        right=False,
        mistake="Sums up to each step, not from it on.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([3, 3, 1, 0], 7, 60)
""",
        right=False,
        mistake="Leaves the reward of the step itself out.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 9, 60)
""",
        right=False,
        mistake="Forgets the reward of the third step, which is known by then.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 10, 60)
""",
        right=False,
        mistake="Asks for the same return at every step.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 7, 20)
""",
        right=False,
        mistake="A step is one token.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 7, 40)
""",
        right=False,
        mistake="Forgets the returns among the tokens.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 6, 60)
""",
        right=False,
        mistake="Subtracts the reward of the fourth step as well.",
    ),
    Answer(
        exercise="acting.1",
        check="by_hand",
        code="""
answer = ([4, 3, 3, 1], 7, 59)
""",
        right=False,
        mistake="The last action is not there yet, so it is left out of the count.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
import math

def kept(bias):
    share = 1.0
    for _layer in range(4):
        for _gate in range(2):
            share *= 1 - 1 / (1 + math.exp(bias))
    return share

answer = (kept(2), kept(0))
""",
        right=True,
        mistake="Multiplied gate by gate.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
kept_with_bias_2 = 0.362
kept_with_bias_0 = 0.004
answer = (kept_with_bias_2, kept_with_bias_0)
""",
        right=True,
        mistake="Rounded to three digits behind the point.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
import torch

share = torch.tensor([2.0, 0.0]).sigmoid() ** 4
answer = tuple(share.tolist())
""",
        right=False,
        mistake="Counts one gate in each layer.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
import math

answer = ((1 / (1 + math.exp(2))) ** 8, 0.5**8)
""",
        right=False,
        mistake="Takes what comes in for what is left.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
answer = (0.881, 0.5)
""",
        right=False,
        mistake="Gives what is left behind one gate.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
import math

answer = (1 - 8 / (1 + math.exp(2)), 1 - 8 * 0.5)
""",
        right=False,
        mistake=(
            "Multiplies the update by eight instead of raising what is left to the eighth power."
        ),
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
answer = (0.00391, 0.362)
""",
        right=False,
        mistake="The two numbers are exchanged.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
answer = (1 - 0.362, 1 - 0.0039)
""",
        right=False,
        mistake="Gives what has been lost.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
answer = (0.362, 1.0)
""",
        right=False,
        mistake="Thinks that a bias of 0 closes the gate.",
    ),
    Answer(
        exercise="acting.2",
        check="kept",
        code="""
import math

answer = ((1 - math.exp(-2)) ** 8, 0.0)
""",
        right=False,
        mistake="Uses an exponential where the sigmoid stands.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch.nn.functional as F

def repaired_wish(asked, rewards):
    earned = F.pad(rewards[:, :-1].cumsum(1), (1, 0))
    return asked.unsqueeze(1) - earned

answer = repaired_wish
""",
        right=True,
        mistake="Pads the sums with a zero in front.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch

def repaired_wish(asked, rewards):
    wishes, left = [], asked.clone()
    for reward in rewards.unbind(1):
        wishes.append(left)
        left = left - reward
    return torch.stack(wishes, dim=1)

answer = repaired_wish
""",
        right=True,
        mistake="Goes through the steps and lowers the wish.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch

def repaired_wish(asked, rewards):
    before = torch.ones(rewards.size(1), rewards.size(1)).triu(1).to(rewards)
    return asked[:, None] - torch.einsum("ns,st->nt", rewards, before)

answer = repaired_wish
""",
        right=True,
        mistake="A product with a matrix of ones below the diagonal.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return asked[:, None] - rewards.cumsum(-1).roll(1, -1)

answer = repaired_wish
""",
        right=False,
        mistake="Rolls the sums by one, so the first step gets the total.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return asked[:, None] - rewards.cumsum(-1)[:, :-1]

answer = repaired_wish
""",
        right=False,
        mistake="Leaves the first step out and returns one step less.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch

def repaired_wish(asked, rewards):
    before = torch.cat([torch.zeros_like(rewards[:, :1]), rewards[:, :-1]], dim=1)
    return asked[:, None] - before

answer = repaired_wish
""",
        right=False,
        mistake="Subtracts only the reward of the step before.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return asked[:, None] - (rewards.cumsum(0) - rewards)

answer = repaired_wish
""",
        right=False,
        mistake="Sums over the players instead of the steps.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return rewards.flip(-1).cumsum(-1).flip(-1)

answer = repaired_wish
""",
        right=False,
        mistake="Replaces the wish by the rewards still to come, which nobody knows when playing.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch

def repaired_wish(asked, rewards):
    return torch.cat([asked[:, None], asked[:, None] - rewards.cumsum(-1)], dim=1)

answer = repaired_wish
""",
        right=False,
        mistake="Adds one more step behind: N by T + 1.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return asked[:, None] + (rewards.cumsum(-1) - rewards)

answer = repaired_wish
""",
        right=False,
        mistake="Adds what was earned.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return (asked[:, None] - (rewards.cumsum(-1) - rewards)).clamp(min=0)

answer = repaired_wish
""",
        right=False,
        mistake="Never asks for less than nothing.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
import torch.nn.functional as F

def repaired_wish(asked, rewards):
    total = rewards.cumsum(-1)
    return asked[:, None] - F.pad(total, (2, 0))[:, : total.size(1)]

answer = repaired_wish
""",
        right=False,
        mistake="Shifts by two steps.",
    ),
    Answer(
        exercise="acting.3",
        check="repaired_wish",
        code="""
def repaired_wish(asked, rewards):
    return asked - (rewards.cumsum(-1) - rewards)

answer = repaired_wish
""",
        right=False,
        mistake="Lines the wishes up with the steps: it runs only for as many players as steps.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    borders = torch.linspace(low, high, n_bins + 1, dtype=torch.float64)[1:-1]
    bins = torch.bucketize(states.double(), borders, right=True)
    words = bins + torch.arange(n) * n_bins
    return torch.cat([words, actions.long()[..., None] + n * n_bins], dim=-1).flatten(1)

answer = trajectory_tokens
""",
        right=True,
        mistake="Finds the bins by their borders, with bucketize.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import math

import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    texts = []
    for steps, done in zip(states.tolist(), actions.tolist()):
        text = []
        for state, action in zip(steps, done):
            for i, x in enumerate(state):
                number = math.floor((x - low) / (high - low) * n_bins)
                text.append(i * n_bins + min(max(number, 0), n_bins - 1))
            text.append(len(state) * n_bins + int(action))
        texts.append(text)
    return torch.tensor(texts)

answer = trajectory_tokens
""",
        right=True,
        mistake="Lists of lists, with numbers one at a time.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).round().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Rounds to the nearest border instead of cutting into bins.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long()
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="What lies outside spills into the ids of the next number.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="The upper limit is one id too high.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="All numbers of a state use the same ids.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None]], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="The actions use the ids of the first bins.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins.flatten(1), actions + n * n_bins], dim=1)

answer = trajectory_tokens
""",
        right=False,
        mistake="All states first, then all actions.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([actions[..., None] + n * n_bins, bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="The action stands before its state.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    unit = ((states - low) / (high - low)).clamp(0, 1)
    bins = (unit * (n_bins - 1)).long() + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Cuts the range into one bin less, so the last one holds the upper end alone.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n, least, most = states.size(-1), states.min(), states.max()
    bins = ((states - least) / (most - least) * n_bins).long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Takes the range from the data instead of from low to high.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Number i begins at i times the numbers of a state, not of bins.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = (states / high * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1).flatten(1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Divides by the upper end, as if the range began at zero.",
    ),
    Answer(
        exercise="acting.4",
        check="trajectory_tokens",
        code="""
import torch

def trajectory_tokens(states, actions, low, high, n_bins):
    n = states.size(-1)
    bins = ((states - low) / (high - low) * n_bins).floor().long().clamp(0, n_bins - 1)
    bins = bins + torch.arange(n) * n_bins
    return torch.cat([bins, actions[..., None] + n * n_bins], -1)

answer = trajectory_tokens
""",
        right=False,
        mistake="Keeps the steps apart: the text is not flat.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
safe, win, lose, chance = 5, 10, 2, 0.25
answer = (safe, win, lose, chance)
""",
        right=True,
        mistake="The chapter's gamble with something to fall back on.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
from fractions import Fraction

answer = (1, 1000, Fraction(1, 2), Fraction(1, 10_000))
""",
        right=True,
        mistake="A lottery: a huge prize that hardly anybody gets.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 10, 0, 0.25)
""",
        right=False,
        mistake="The chapter's own numbers: whoever loses gets nothing.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 10, 2, 0.5)
""",
        right=False,
        mistake="The gamble is better on average, so asking for it is right.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 10, 0.5, 0.1)
""",
        right=False,
        mistake="The gamble earns less than half of what safe pays: nobody is tempted.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 10, 2, 25)
""",
        right=False,
        mistake="The chance is given in percent.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 4, 3, 0.5)
""",
        right=False,
        mistake="To win is less than to be safe, so nobody would ask for it.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 11, 3, 0.25)
""",
        right=False,
        mistake="Both earn the same on average.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 20, -1, 0.2)
""",
        right=False,
        mistake="Whoever loses must pay.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (4, 9, 1, 0.125)
""",
        right=False,
        mistake="The gamble earns exactly half of what safe pays, which is not more than half.",
    ),
    Answer(
        exercise="acting.5",
        check="gamble",
        code="""
answer = (5, 10, 2, 0.75)
""",
        right=False,
        mistake="Takes the chance of losing for the chance of winning.",
    ),
]
