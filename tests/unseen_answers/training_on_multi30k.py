"""Answers to the exercises of chapter 16, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
updates_per_epoch = round(29_000 / 250)
epochs = round(8_000 / updates_per_epoch)
answer = (updates_per_epoch, epochs)
""",
        right=True,
        mistake="Computed and rounded.",
    ),
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
import numpy as np

updates_per_epoch = np.rint(29_000 / 250)
epochs = np.rint(8_000 / updates_per_epoch)
answer = (updates_per_epoch, epochs)
""",
        right=True,
        mistake="Whole numbers as numpy floats.",
    ),
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
updates_per_epoch = 29_000 // 250
epochs = 8_000 // 116
answer = (updates_per_epoch, epochs)
""",
        right=False,
        mistake="Cuts off where it should round.",
    ),
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
updates_per_epoch = 250
epochs = 8_000 // 250
answer = (updates_per_epoch, epochs)
""",
        right=False,
        mistake="Takes an epoch for one batch of 250 updates.",
    ),
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
answer = (116, round(29_000 / 8_000))
""",
        right=False,
        mistake="Divides the updates by the number of pairs.",
    ),
    Answer(
        exercise="training_on_multi30k.1",
        check="epochs",
        code="""
answer = (69, 116)
""",
        right=False,
        mistake="The two numbers are exchanged.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
import numpy as np

def combined_loss(losses, token_counts):
    return float(np.average(np.asarray(losses, float), weights=np.asarray(token_counts, float)))

answer = combined_loss
""",
        right=True,
        mistake="A weighted mean by numpy.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    mean, seen = 0.0, 0
    for loss, n in zip(losses, token_counts):
        seen += n
        mean += (loss - mean) * n / seen
    return mean

answer = combined_loss
""",
        right=True,
        mistake="A running mean that is corrected batch by batch.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    return sum(losses) / len(losses)

answer = combined_loss
""",
        right=False,
        mistake="All batches count alike, however many tokens they hold.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    return sum(loss * n for loss, n in zip(losses, token_counts)) / len(losses)

answer = combined_loss
""",
        right=False,
        mistake="Divides by the number of batches.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    return sum(losses) / sum(token_counts)

answer = combined_loss
""",
        right=False,
        mistake="Takes the losses for sums over tokens.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    shares = [1 / n for n in token_counts]
    return sum(loss * s for loss, s in zip(losses, shares)) / sum(shares)

answer = combined_loss
""",
        right=False,
        mistake="Weighs each batch by one over its tokens.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
import math

def combined_loss(losses, token_counts):
    total = sum(math.exp(loss) * n for loss, n in zip(losses, token_counts))
    return math.log(total / sum(token_counts))

answer = combined_loss
""",
        right=False,
        mistake="Averages perplexities and takes the logarithm.",
    ),
    Answer(
        exercise="training_on_multi30k.3",
        check="combine",
        code="""
def combined_loss(losses, token_counts):
    loss, n = losses[0], token_counts[0]
    for other, m in zip(losses[1:], token_counts[1:]):
        loss = (loss * n + other * m) / (n + m)
        n = m
    return loss

answer = combined_loss
""",
        right=False,
        mistake="Merges the batches two by two with equal weights from the third on.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
import torch

answer = lambda states: {
    name: torch.stack([s[name] for s in states]).mean(dim=0) for name in states[0]
}
""",
        right=True,
        mistake="Stacks and takes the mean over the states.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
from functools import reduce

def add(a, b):
    return {name: a[name] + b[name] for name in a}

def mean_of(states):
    total = reduce(add, states)
    return {name: tensor / len(states) for name, tensor in total.items()}

answer = mean_of
""",
        right=True,
        mistake="Reduces with a function that adds two dictionaries.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
def mean_of(states):
    mean = dict(states[0])
    for state in states[1:]:
        for name in mean:
            mean[name] += state[name]
    return {name: tensor / len(states) for name, tensor in mean.items()}

answer = mean_of
""",
        right=False,
        mistake="A shallow copy: the sums are added into the first state's own tensors.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
def mean_of(states):
    mean = dict(states[0])
    for state in states[1:]:
        mean = {name: (mean[name] + state[name]) / 2 for name in mean}
    return mean

answer = mean_of
""",
        right=False,
        mistake="Halves at every step, so the last state counts most.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
def mean_of(states):
    return {name: sum(state[name] for state in states) for name in states[0]}

answer = mean_of
""",
        right=False,
        mistake="Forgets to divide.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
import torch

def mean_of(states):
    return {name: torch.stack([s[name] for s in states]).mean() for name in states[0]}

answer = mean_of
""",
        right=False,
        mistake="Takes the mean over all entries of a tensor, too.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
def mean_of(states):
    n = len(states[0])
    return {name: sum(state[name] for state in states) / n for name in states[0]}

answer = mean_of
""",
        right=False,
        mistake="Divides by the number of names instead of states.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
import torch

def mean_of(states):
    return {name: torch.cat([s[name][None] for s in states], 0).mean(1) for name in states[0]}

answer = mean_of
""",
        right=False,
        mistake="Averages along the first axis of each tensor and not over the states.",
    ),
    Answer(
        exercise="training_on_multi30k.5",
        check="averaging",
        code="""
def mean_of(states):
    return [sum(tensors) / len(states) for tensors in zip(*(s.values() for s in states))]

answer = mean_of
""",
        right=False,
        mistake="Returns the tensors without their names.",
    ),
    Answer(
        exercise="training_on_multi30k.7",
        check="further_training",
        code="""
guess = 40.8
answer = guess
""",
        right=True,
        mistake="A plain guess a little above the score before.",
    ),
    Answer(
        exercise="training_on_multi30k.7",
        check="further_training",
        code="""
answer = 40
""",
        right=True,
        mistake="A guess as a whole number.",
    ),
    Answer(
        exercise="training_on_multi30k.7",
        check="further_training",
        code="""
guess = 0.408
answer = guess
""",
        right=False,
        mistake="A share of one instead of a BLEU score in percent.",
    ),
    Answer(
        exercise="training_on_multi30k.7",
        check="further_training",
        code="""
guess = "about 41"
answer = guess
""",
        right=False,
        mistake="A sentence instead of a number.",
    ),
    Answer(
        exercise="training_on_multi30k.7",
        check="further_training",
        code="""
guess = [40.5, 40.7, 41.0]
answer = guess
""",
        right=False,
        mistake="One guess for each seed instead of their mean.",
    ),
]
