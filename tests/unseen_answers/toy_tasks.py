"""Answers to the exercises of chapter 13, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    return (n - 1 - t) % (n + 1)

answer = place
""",
        right=True,
        mistake="Uses the remainder, so that minus one becomes the last place.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
answer = lambda n, t: list(range(n + 1))[n - 1 - t]
""",
        right=True,
        mistake="Lets a negative index into a range pick the place of the end mark.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    return n - t

answer = place
""",
        right=False,
        mistake="Mirrors the end mark together with the letters, so every place is one too far.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    return n - 1 - t

answer = place
""",
        right=False,
        mistake="Forgets that the last step reads the end mark: it returns minus one there.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    return abs(n - 1 - t)

answer = place
""",
        right=False,
        mistake="Folds the last step back to place 1 by an absolute value.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    if t < n - 1:
        return n - 1 - t
    return n

answer = place
""",
        right=False,
        mistake="The last letter is read from the end mark, since the border is one step early.",
    ),
    Answer(
        exercise="toy_tasks.1",
        check="place",
        code="""
def place(n, t):
    return t

answer = place
""",
        right=False,
        mistake="Reads the places in their order, as copying does.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
def upto(row):
    row = row.tolist()
    return row[: row.index(2) + 1] if 2 in row else row

def exact_share(written, right):
    pairs = list(zip(written, right))
    return sum(upto(a) == upto(b) for a, b in pairs) / len(pairs)

answer = exact_share
""",
        right=True,
        mistake="Cuts each row behind its first end mark and compares lists.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
import torch
import torch.nn.functional as F

class ExactShare:
    def __call__(self, written, right):
        width = max(written.shape[1], right.shape[1])
        a, b = (self.clean(x, width) for x in (written, right))
        return a.eq(b).all(dim=1).double().mean().item()

    def clean(self, x, width):
        before = (x == 2).cumsum(1) - (x == 2).long()
        return F.pad(torch.where(before > 0, 0, x), (0, width - x.shape[1]))

answer = ExactShare()
""",
        right=True,
        mistake=(
            "Clears with a running count of end marks what stands behind, then pads to one width."
        ),
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
from itertools import takewhile

import torch

def letters(row):
    return tuple(takewhile(lambda token: token != 2, row.tolist()))

def exact_share(written, right):
    marks = [letters(a) == letters(b) for a, b in zip(written, right)]
    return torch.tensor(marks).double().mean()

answer = exact_share
""",
        right=False,  # "right up to and including <eos>", says the exercise
        mistake="Takes ids while they are no end mark, so an answer without <eos> counts as right.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
import torch.nn.functional as F

def exact_share(written, right):
    width = max(written.size(1), right.size(1))
    written = F.pad(written, (0, width - written.size(1)))
    right = F.pad(right, (0, width - right.size(1)))
    return (written == right).all(1).float().mean().item()

answer = exact_share
""",
        right=False,
        mistake=(
            "Compares everything after padding to one width, so rubbish behind the end mark counts."
        ),
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
import torch.nn.functional as F

def exact_share(written, right):
    width = max(written.size(1), right.size(1))
    written = F.pad(written, (0, width - written.size(1)))
    right = F.pad(right, (0, width - right.size(1)))
    real = right != 0
    return ((written == right) & real).sum().item() / real.sum().item()

answer = exact_share
""",
        right=False,
        mistake="Counts right tokens instead of right sequences.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
import torch.nn.functional as F

def exact_share(written, right):
    width = max(written.size(1), right.size(1))
    written = F.pad(written, (0, width - written.size(1)))
    right = F.pad(right, (0, width - right.size(1)))
    return ((written == right) | (right <= 2)).all(1).float().mean().item()

answer = exact_share
""",
        right=False,
        mistake="Looks at the letters only, so an answer that goes on where it should end passes.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
import torch.nn.functional as F

def exact_share(written, right):
    width = max(written.size(1), right.size(1))
    written = F.pad(written, (0, width - written.size(1)))
    right = F.pad(right, (0, width - right.size(1)))
    ok = (written == right) | (right == 0)
    return float(ok.all())

answer = exact_share
""",
        right=False,
        mistake="Asks whether the whole batch is right, so it is only correct for a batch of one.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
def exact_share(written, right):
    ok = (written == right) | (right == 0)
    return ok.all(1).float().mean().item()

answer = exact_share
""",
        right=False,
        mistake="Raises when the two widths differ.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
def exact_share(written, right):
    hits = 0
    for a, b in zip(written.tolist(), right.tolist()):
        n = a.index(2) if 2 in a else len(a)
        hits += a[:n] == b[:n]
    return hits / len(written)

answer = exact_share
""",
        right=False,
        mistake="Stops before the end mark of what was written, so a true beginning passes.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
def upto(row):
    row = row.tolist()
    return row[: len(row) - row[::-1].index(2)] if 2 in row else row

def exact_share(written, right):
    return sum(upto(a) == upto(b) for a, b in zip(written, right)) / len(written)

answer = exact_share
""",
        right=False,
        mistake="Cuts behind the last end mark, so a second one behind the answer spoils it.",
    ),
    Answer(
        exercise="toy_tasks.2",
        check="exact_share",
        code="""
def upto(row):
    row = row.tolist()
    return sorted(row[: row.index(2) + 1] if 2 in row else row)

def exact_share(written, right):
    return sum(upto(a) == upto(b) for a, b in zip(written, right)) / len(written)

answer = exact_share
""",
        right=False,
        mistake="The right letters in any order are taken for right.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    return [*letters, 2], [1, *reversed(letters), 2]

answer = reverse_pair
""",
        right=True,
        mistake="Joins lists with a star and the reversed iterator.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    target = []
    for letter in letters:
        target.insert(0, letter)
    return list(letters) + [2], [1] + target + [2]

answer = reverse_pair
""",
        right=True,
        mistake="Builds the target letter by letter with insert.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    source = letters + [2]
    target = [1] + source[::-1] + [2]
    return source, target

answer = reverse_pair
""",
        right=False,
        mistake="Adds an end mark behind, but the reversed source still puts one in front.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    source = letters + [2]
    target = [1] + letters[::-1]
    return source, target

answer = reverse_pair
""",
        right=False,
        mistake="The end mark of the source no longer comes first, but none ends the target.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    source = letters + [2]
    letters.reverse()
    target = [1] + letters + [2]
    return source, target

answer = reverse_pair
""",
        right=False,
        mistake="Reverses the caller's list in place.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    return list(letters), [1] + letters[::-1] + [2]

answer = reverse_pair
""",
        right=False,
        mistake="Takes the end mark off the source as well.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    return letters + [2], [1] + sorted(letters, reverse=True) + [2]

answer = reverse_pair
""",
        right=False,
        mistake="Sorts downwards, which is reversing for sorted letters only.",
    ),
    Answer(
        exercise="toy_tasks.3",
        check="reverse_pair",
        code="""
def reverse_pair(letters):
    source = letters + [2]
    target = [1] + letters[:0:-1] + [2]
    return source, target

answer = reverse_pair
""",
        right=False,
        mistake="The slice ends before the first letter and loses it.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    out = []
    for row, wanted in zip(torch.as_tensor(weights), answers):
        total = row.new_zeros(())
        for w, letter in zip(row, source):
            if int(letter) == int(wanted):
                total = total + w
        out.append(total)
    return torch.stack(out)

answer = answer_weight
""",
        right=True,
        mistake="A loop over steps and places, in plain Python.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    source, answers = torch.as_tensor(source), torch.as_tensor(answers)
    match = answers.view(-1, 1).eq(source.view(1, -1)).to(weights.dtype)
    return torch.einsum("ts,ts->t", weights, match)

answer = answer_weight
""",
        right=True,
        mistake="One einsum of the weights with a table of matches.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
def answer_weight(weights, source, answers):
    return [
        sum(float(w) for w, letter in zip(row, source) if int(letter) == int(wanted))
        for row, wanted in zip(weights, answers)
    ]

answer = answer_weight
""",
        right=True,
        mistake="Gives plain numbers in a list.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    match = torch.as_tensor(answers)[:, None] == torch.as_tensor(source)[None]
    first = match.float().argmax(1)
    found = weights.gather(1, first[:, None])[:, 0]
    return found * match.any(1)

answer = answer_weight
""",
        right=False,
        mistake="Counts the first place of a letter only.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    match = torch.as_tensor(answers)[:, None] == torch.as_tensor(source)[None]
    return (weights * match).sum(0)

answer = answer_weight
""",
        right=False,
        mistake="Sums over the steps instead of over the places.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    match = torch.as_tensor(answers)[:, None] == torch.as_tensor(source)[None]
    return (weights * match).sum(1) / match.sum(1).clamp(min=1)

answer = answer_weight
""",
        right=False,
        mistake="Takes the mean weight of the places that hold the answer, not the sum.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    source, answers = torch.as_tensor(source), torch.as_tensor(answers)
    out = torch.zeros(len(answers))
    for t in range(len(answers)):
        if t < len(source) and source[t] == answers[t]:
            out[t] = weights[t, t]
    return out

answer = answer_weight
""",
        right=False,
        mistake="Compares step with place of the same number: the diagonal only.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    source, answers = torch.as_tensor(source), torch.as_tensor(answers)
    return (source[weights.argmax(-1)] == answers).float()

answer = answer_weight
""",
        right=False,
        mistake="Says whether the largest weight lies on the answer, which is no amount of weight.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    late = torch.as_tensor(answers).roll(1)
    match = late[:, None] == torch.as_tensor(source)[None]
    return (weights * match).sum(1)

answer = answer_weight
""",
        right=False,
        mistake="Compares with the answer of the step before: off by one.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    match = torch.as_tensor(answers)[:, None] == torch.as_tensor(source)[None]
    return (weights * match).sum(1).mean()

answer = answer_weight
""",
        right=False,
        mistake="Gives the mean over all steps: one number.",
    ),
    Answer(
        exercise="toy_tasks.4",
        check="answer_weight",
        code="""
import torch

def answer_weight(weights, source, answers):
    match = torch.as_tensor(answers)[:, None] == torch.as_tensor(source)[None]
    weights[~match] = 0
    return weights.sum(1)

answer = answer_weight
""",
        right=False,
        mistake="Sets the other weights to zero in the caller's table.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
def bag_copies(n):
    return 1.0 if n <= 1 else bag_copies(n - 1) / n

answer = bag_copies
""",
        right=True,
        mistake="Recursion over the letters.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
from fractions import Fraction
from math import factorial

answer = lambda n: Fraction(1, factorial(n))
""",
        right=True,
        mistake="An exact fraction.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
def bag_copies(n):
    return 1 / n**n

answer = bag_copies
""",
        right=False,
        mistake="Draws each letter anew, as if letters could be used twice.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
def bag_copies(n):
    return 1 / n

answer = bag_copies
""",
        right=False,
        mistake="Only the first letter is guessed.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
import math

def bag_copies(n):
    return 1 / math.factorial(n - 1)

answer = bag_copies
""",
        right=False,
        mistake="The last letter is counted as a guess too few: (n - 1) factorial.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
import math

def bag_copies(n):
    return 1 // math.factorial(n)

answer = bag_copies
""",
        right=False,
        mistake="Whole-number division gives zero.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
import math

def bag_copies(n):
    print(1 / math.factorial(n))

answer = bag_copies
""",
        right=False,
        mistake="Prints the probability and returns nothing.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
def bag_copies(n):
    return 1 / 10**n

answer = bag_copies
""",
        right=False,
        mistake="Does not know which letters there are: one of ten at each place.",
    ),
    Answer(
        exercise="toy_tasks.5",
        check="bag_copies",
        code="""
def bag_copies(n):
    return 1 / 6

answer = bag_copies
""",
        right=False,
        mistake="The result for three letters, whatever n is.",
    ),
]
