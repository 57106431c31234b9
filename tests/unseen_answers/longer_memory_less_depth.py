"""Answers to the exercises of chapter 24, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
layers, memory, compressed, rate = 6, 150, 50, 3
stack_hears = layers * memory
layer_looks = (memory - compressed) + compressed * rate
answer = (stack_hears, layer_looks)
""",
        right=True,
        mistake="With names for the parts.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
stack_hears = sum(150 for _layer in range(6))
layer_looks = sum(3 if place < 50 else 1 for place in range(150))
answer = (stack_hears, layer_looks)
""",
        right=True,
        mistake="Summed layer by layer, and place by place.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (150, 250)
""",
        right=False,
        mistake="Thinks that depth does not matter.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (6 * (150 + 50), 250)
""",
        right=False,
        mistake="Counts the own segment in, once for each layer.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (900, 150 + 3 * 50)
""",
        right=False,
        mistake="Adds the compressed places to the memory instead of taking them out of it.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (900, 150)
""",
        right=False,
        mistake="Forgets that a compressed place stands for three.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (5 * 150, 250)
""",
        right=False,
        mistake="The first layer hears nothing beyond its segment: one layer too few.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (900, 3 * 50)
""",
        right=False,
        mistake="Gives the compressed part only.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (900, 450)
""",
        right=False,
        mistake="Squeezes the whole memory.",
    ),
    Answer(
        exercise="longer_memory_less_depth.1",
        check="by_hand",
        code="""
answer = (900, 6 * 250)
""",
        right=False,
        mistake="Multiplies with the layers in the second question, too.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import torch

share = torch.softmax(-torch.tensor([0.0, 2.0, 0.5]), dim=0)
of_dog = torch.lerp(torch.tensor(0.2), share[:2].sum(), 0.25).item()
answer = of_dog
""",
        right=True,
        mistake="By torch, with a softmax over negative distances.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
answer = 0.313
""",
        right=True,
        mistake="Worked out by hand to three digits.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-2), math.exp(-0.5)
answer = dog / (dog + cat)
""",
        right=False,
        mistake="Forgets to mix with the model.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-2), math.exp(-0.5)
answer = 0.75 * dog / (dog + cat) + 0.25 * 0.2
""",
        right=False,
        mistake="The shares of model and neighbours are exchanged.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
answer = 0.25 * 2 / 3 + 0.75 * 0.2
""",
        right=False,
        mistake="All neighbours have one vote, however far away they are.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-math.sqrt(2)), math.exp(-math.sqrt(0.5))
answer = 0.25 * dog / (dog + cat) + 0.75 * 0.2
""",
        right=False,
        mistake="Takes the root of the squared distances.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(2), math.exp(0.5)
answer = 0.25 * dog / (dog + cat) + 0.75 * 0.2
""",
        right=False,
        mistake="Far neighbours weigh more: the minus is missing.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

weights = [1.0, math.exp(-2), math.exp(-0.5)]
answer = 0.25 * weights[0] / sum(weights) + 0.75 * 0.2
""",
        right=False,
        mistake="Counts only the nearest neighbour that says dog.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-4), math.exp(-0.25)
answer = 0.25 * dog / (dog + cat) + 0.75 * 0.2
""",
        right=False,
        mistake="Squares distances that are squared already.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-2), math.exp(-0.5)
answer = 0.25 * dog / (dog + cat) + 0.2
""",
        right=False,
        mistake="Adds the neighbours on top: the model's share is not lowered.",
    ),
    Answer(
        exercise="longer_memory_less_depth.2",
        check="of_dog",
        code="""
import math

dog, cat = 1 + math.exp(-2), math.exp(-0.5)
answer = math.log(0.25 * dog / (dog + cat) + 0.75 * 0.2)
""",
        right=False,
        mistake="Gives the logarithm of the probability.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    with torch.no_grad():
        together = torch.cat([memory, x], dim=1)
        length = min(reach, together.size(1))
        return together.narrow(1, together.size(1) - length, length).clone()

answer = keep
""",
        right=True,
        mistake="Without gradients from the start, and with narrow.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.hstack((memory, x)).detach()
    too_many = max(together.shape[1] - reach, 0)
    return together[:, too_many:]

answer = keep
""",
        right=True,
        mistake="Drops from the front what is too much.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x], dim=1)
    return together[:, -reach:].detach()

answer = keep
""",
        right=False,
        mistake="Cuts the gradients, but keeps everything for a reach of 0.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x], dim=1)
    return together[:, max(0, together.size(1) - reach) :]

answer = keep
""",
        right=False,
        mistake="Is right for a reach of 0, but gradients go on into the past.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory.detach(), x], dim=1)
    return together[:, max(0, together.size(1) - reach) :]

answer = keep
""",
        right=False,
        mistake="Detaches the old memory only, so x keeps its graph.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x], dim=1).detach()
    return together[:, together.size(1) - reach :]

answer = keep
""",
        right=False,
        mistake="Counts from the front, and the start is below zero while the memory is not full.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    if reach == 0:
        return None
    return torch.cat([memory, x], dim=1)[:, -reach:].detach()

answer = keep
""",
        right=False,
        mistake="Returns None for a reach of 0.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x.detach_()], dim=1).detach()
    return together[:, max(0, together.size(1) - reach) :]

answer = keep
""",
        right=False,
        mistake="Cuts the graph of x itself, in place: the layer can no longer learn.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x], dim=1).clone()
    return together[:, max(0, together.size(1) - reach) :]

answer = keep
""",
        right=False,
        mistake="Thinks that a clone has no gradient.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
def keep(memory, x, reach):
    return x[:, max(0, x.size(1) - reach) :].detach()

answer = keep
""",
        right=False,
        mistake="Keeps the last places of x alone and drops the old memory.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    return torch.cat([memory, x], dim=1)[:, :reach].detach()

answer = keep
""",
        right=False,
        mistake="Keeps the first places instead of the last.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    together = torch.cat([memory, x], dim=1).detach()
    return together[max(0, together.size(0) - reach) :]

answer = keep
""",
        right=False,
        mistake="Joins and cuts along the batch: nothing has to be cut if the batch is small.",
    ),
    Answer(
        exercise="longer_memory_less_depth.3",
        check="keep",
        code="""
import torch

def keep(memory, x, reach):
    return torch.cat([memory, x], dim=1)[:, -max(1, reach) :].detach()

answer = keep
""",
        right=False,
        mistake="With a reach of 0 one place stays.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    before = torch.cumsum(p, 0) - p
    running = before < threshold
    last = int(running.sum()) - 1
    out = torch.where(torch.arange(len(p)) < last, p, torch.zeros_like(p))
    out[last] = 1 - out.sum()
    return out

answer = shares
""",
        right=True,
        mistake="Without a loop, by cumulative sums.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def halting(p, left, threshold):
    if len(p) == 1 or (1 - left) + p[0] >= threshold:
        return [left] + [0.0] * (len(p) - 1)
    return [p[0], *halting(p[1:], left - p[0], threshold)]

def shares(p, threshold=0.99):
    return torch.tensor(halting(p.tolist(), 1.0, threshold), dtype=p.dtype)

answer = shares
""",
        right=True,
        mistake="Recursion over the steps on a plain list.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i in range(len(p)):
        if total >= threshold:
            break
        out[i] = p[i] if i < len(p) - 1 else 1 - total
        total = total + float(out[i])
    return out

answer = shares
""",
        right=False,
        mistake="The step that halts takes its own probability, not what is left.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i, chance in enumerate(p.tolist()):
        if total + chance >= threshold:
            out[i] = 1 - total
            break
        out[i] = chance
        total += chance
    return out

answer = shares
""",
        right=False,
        mistake="The last possible step does not take what is left.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i, chance in enumerate(p.tolist()):
        if total + chance >= threshold or i == len(p) - 1:
            out[i] = threshold - total
            break
        out[i] = chance
        total += chance
    return out

answer = shares
""",
        right=False,
        mistake="Fills up to the threshold and not to 1.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, left = torch.zeros_like(p), 1.0
    for i, chance in enumerate(p.tolist()):
        if 1 - left + left * chance >= threshold or i == len(p) - 1:
            out[i] = left
            break
        out[i] = left * chance
        left -= left * chance
    return out

answer = shares
""",
        right=False,
        mistake="Reads the numbers as chances to stop, given that it has not stopped before.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
def shares(p, threshold=0.99):
    return p / p.sum()

answer = shares
""",
        right=False,
        mistake="Does not halt: it scales all probabilities to sum to 1.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i, chance in enumerate(p.tolist()):
        if total >= threshold or i == len(p) - 1:
            out[i] = 1 - total
            break
        out[i] = min(chance, 1 - total)
        total += float(out[i])
    return out

answer = shares
""",
        right=False,
        mistake="Gives what is left to the step after the one that reaches the threshold.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i, chance in enumerate(p.tolist()):
        if total + chance >= 0.99 or i == len(p) - 1:
            out[i] = 1 - total
            break
        out[i] = chance
        total += chance
    return out

answer = shares
""",
        right=False,
        mistake="Ignores the threshold that it is given and always uses 0.99.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    out, total = torch.zeros_like(p), 0.0
    for i, chance in enumerate(p.tolist()):
        if chance >= threshold or i == len(p) - 1:
            out[i] = 1 - total
            break
        out[i] = chance
        total += chance
    return out

answer = shares
""",
        right=False,
        mistake="Compares each single probability with the threshold, not their sum.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
def shares(p, threshold=0.99):
    total = 0.0
    for i, chance in enumerate(p.tolist()):
        if total + chance >= threshold or i == len(p) - 1:
            p[i] = 1 - total
            p[i + 1 :] = 0
            break
        total += chance
    return p

answer = shares
""",
        right=False,
        mistake="Overwrites the probabilities that it was given.",
    ),
    Answer(
        exercise="longer_memory_less_depth.4",
        check="shares",
        code="""
import torch

def shares(p, threshold=0.99):
    keep = p.cumsum(0) < threshold
    out = torch.where(keep, p, torch.zeros_like(p))
    return out / out.sum()

answer = shares
""",
        right=False,
        mistake="Stops one step early, as soon as the rest is not needed, and drops it.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    def promises(n):
        return math.exp(-2 * n * max(0.0, allowed - mean_loss) ** 2) <= risk

    low, high = 0, 1
    while not promises(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if promises(middle) else (middle, high)
    return high

answer = sentences_needed
""",
        right=True,
        mistake="Tries numbers of sentences by halving, with the bound itself.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

answer = lambda mean_loss, allowed, risk: int(
    -(-math.log(1 / risk) // (2 * (allowed - mean_loss) ** 2))
)
""",
        right=True,
        mistake="Negative logarithm and whole-number division rounded up.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import numpy as np

def sentences_needed(mean_loss, allowed, risk):
    return np.ceil(np.log(1 / risk) / (2 * np.square(allowed - mean_loss)))

answer = sentences_needed
""",
        right=True,
        mistake="Rounded up by numpy, which gives a float.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return int(-math.log(risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="Rounds down, which is one sentence too few.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(-math.log(risk) / (allowed - mean_loss) ** 2)

answer = sentences_needed
""",
        right=False,
        mistake="Forgets the factor 2 of the bound.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(-math.log(risk) / (2 * (allowed - mean_loss)))

answer = sentences_needed
""",
        right=False,
        mistake="Forgets the square.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(math.log(risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="The sign of the logarithm is lost, so the number is negative.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(math.log(2 / risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="Guards both sides, which needs more sentences.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
def sentences_needed(mean_loss, allowed, risk):
    return 3745

answer = sentences_needed
""",
        right=False,
        mistake="The result of the example, whatever is asked.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(-math.log2(risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="Takes the logarithm to base 2.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return round(-math.log(risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="Rounds to the nearest number.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(-math.log(risk) / (2 * allowed**2))

answer = sentences_needed
""",
        right=False,
        mistake="Leaves the mean loss out of the bound.",
    ),
    Answer(
        exercise="longer_memory_less_depth.5",
        check="sentences_needed",
        code="""
import math

def sentences_needed(mean_loss, allowed, risk):
    return math.ceil(-math.log(1 - risk) / (2 * (allowed - mean_loss) ** 2))

answer = sentences_needed
""",
        right=False,
        mistake="Uses the chance of being right for the risk.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    k = torch.zeros(1, 1, 64, 2)
    k[..., :8, 0] = 0.01
    v = -torch.ones(1, 1, 64, 2)
    v[..., :8, :] = 1.0
    return q, k, v

answer = overturned
""",
        right=True,
        mistake="Flat scores: the eight that are slightly ahead say the opposite of the rest.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    place = torch.linspace(1, 0, 64)
    q, k = torch.ones(1, 1, 1, 1), (0.1 * place).reshape(1, 1, 64, 1)
    v = (place > 0.86).float().reshape(1, 1, 64, 1)
    return q, k, v

answer = overturned
""",
        right=True,
        mistake="A question without an answer, and values on a ramp whose best eight are extreme.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q = torch.full((1, 1, 1, 4), 5.0)
    k = torch.zeros(1, 1, 64, 4)
    k[..., 10, :] = 5.0
    v = torch.zeros(1, 1, 64, 4)
    v[..., 10, :] = 1.0
    return q, k, v

answer = overturned
""",
        right=False,
        mistake="One key answers the question: eight are more than enough.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    return torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 64, 4), torch.ones(1, 1, 64, 4)

answer = overturned
""",
        right=False,
        mistake="All values are the same, so any eight give the mean.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q, k, v = torch.ones(1, 2), torch.zeros(64, 2), -torch.ones(64, 2)
    k[:8], v[:8] = 0.01, 1.0
    return q, k, v

answer = overturned
""",
        right=False,
        mistake="The axes for batch and heads are missing.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q, k = torch.ones(1, 1, 1, 2), torch.zeros(1, 1, 64, 2)
    v = torch.ones(1, 1, 64, 2)
    k[..., :8, :] = 0.01
    v[..., :8, :] = 1.4
    return q, k, v

answer = overturned
""",
        right=False,
        mistake="The eight differ from the rest, but by a third only.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q, k = torch.ones(1, 1, 1, 2), torch.zeros(1, 1, 16, 2)
    v = -torch.ones(1, 1, 16, 2)
    k[..., :8, :] = 0.01
    v[..., :8, :] = 1.0
    return q, k, v

answer = overturned
""",
        right=False,
        mistake="Only 16 keys, in which eight are half.",
    ),
    Answer(
        exercise="longer_memory_less_depth.6",
        check="overturned",
        code="""
import torch

def overturned():
    q, k = torch.full((1, 1, 1, 2), 4.0), torch.zeros(1, 1, 64, 2)
    v = -torch.ones(1, 1, 64, 2)
    k[..., :8, :] = 4.0
    v[..., :8, :] = 1.0
    return q, k, v

answer = overturned
""",
        right=False,
        mistake="The other values cancel, but the sharp scores never ask for them.",
    ),
]
