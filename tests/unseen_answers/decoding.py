"""Answers to the exercises of chapter 15, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
without_cache = sum(range(1, 51))
with_cache = len(range(50))
answer = (without_cache, with_cache)
""",
        right=True,
        mistake="Sums the lengths of the prefixes.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
steps = 50
answer = (steps * (steps + 1) / 2, steps)
""",
        right=True,
        mistake="True division, so the first number is a float.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
without_cache = 50 * 50
with_cache = 50
answer = (without_cache, with_cache)
""",
        right=False,
        mistake="Takes the prefix as 50 long at every step.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
without_cache = 49 * 50 // 2
with_cache = 50
answer = (without_cache, with_cache)
""",
        right=False,
        mistake="Begins with an empty prefix and forgets the begin mark: 0 to 49.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
without_cache = 1275
with_cache = 1
answer = (without_cache, with_cache)
""",
        right=False,
        mistake="Gives the positions of one step with the cache, not of all.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
answer = (50, 1275)
""",
        right=False,
        mistake="The two numbers are exchanged.",
    ),
    Answer(
        exercise="decoding.1",
        check="positions",
        code="""
answer = (1275, 49)
""",
        right=False,
        mistake="Thinks that the first token costs nothing with a cache.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
import torch

def top_k_logits(logits, k):
    best = torch.topk(logits, k, dim=1)
    return torch.full_like(logits, -torch.inf).scatter(1, best.indices, best.values)

answer = top_k_logits
""",
        right=True,
        mistake="Scatters the best values into a row of minus infinity.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
import math

def top_k_logits(logits, k):
    out = logits.clone()
    for row in out:
        ranked = sorted(range(len(row)), key=lambda i: row[i].item(), reverse=True)
        for i in ranked[k:]:
            row[i] = -math.inf
    return out

answer = top_k_logits
""",
        right=True,
        mistake="A loop over rows with sorted indices.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
import torch

def top_k_logits(logits, k):
    least = logits.sort(dim=-1, descending=True).values[:, k - 1 : k]
    return torch.where(logits < least, torch.tensor(float("-inf")), logits)

answer = top_k_logits
""",
        right=True,
        mistake="Keeps what is at least as large as the k-th largest.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits <= kth, float("-inf"))

answer = top_k_logits
""",
        right=False,
        mistake="Drops the k-th largest as well.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < kth, 0.0)

answer = top_k_logits
""",
        right=False,
        mistake="Fills with zeros, which can still be drawn.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.flatten().topk(k).values[-1]
    return logits.masked_fill(logits < kth, float("-inf"))

answer = top_k_logits
""",
        right=False,
        mistake="Finds one threshold for the whole batch.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.topk(k, dim=-1).values[:, -1:]
    logits[logits < kth] = float("-inf")
    return logits

answer = top_k_logits
""",
        right=False,
        mistake="Masks the caller's tensor in place.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
import torch

def top_k_logits(logits, k):
    best = logits.topk(min(k, logits.size(0)), dim=0)
    return torch.full_like(logits, -torch.inf).scatter(0, best.indices, best.values)

answer = top_k_logits
""",
        right=False,
        mistake="Takes the largest of each column.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < kth, float("-inf")).log_softmax(-1)

answer = top_k_logits
""",
        right=False,
        mistake="Normalises the logits that stay, so they are not as they were.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    return logits.topk(k, dim=-1).values

answer = top_k_logits
""",
        right=False,
        mistake="Returns the k values in their order, not rows of the old shape.",
    ),
    Answer(
        exercise="decoding.2",
        check="top_k",
        code="""
def top_k_logits(logits, k):
    kth = logits.topk(k, dim=-1).values[0, -1]
    return logits.masked_fill(logits < kth, float("-inf"))

answer = top_k_logits
""",
        right=False,
        mistake="Uses the threshold of the first row for all rows.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
PENCIL = {
    (): {"A": 0.40, "B": 0.35, "C": 0.25},
    ("A",): {"x": 0.5, "y": 0.5},
    ("B",): {"x": 0.6, "y": 0.4},
    ("C",): {"x": 1.0},
}

def beam(size):
    beams = [(1.0, ())]
    for _ in range(2):
        grown = [(p * q, (*w, v)) for p, w in beams for v, q in PENCIL[w].items()]
        beams = sorted(grown, reverse=True)[:size]
    return beams[0][0]

answer = [beam(size) for size in (1, 2, 3)]
""",
        right=True,
        mistake="A beam search in a few lines finds the numbers.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
found_probabilities = [0.20, 0.21, 0.21]
answer = found_probabilities
""",
        right=False,
        mistake="Beam size 3 is thought to give what beam size 2 gives.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
answer = [0.25, 0.25, 0.25]
""",
        right=False,
        mistake="Searches everything, whatever the beam size.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
answer = [0.40, 0.35, 0.25]
""",
        right=False,
        mistake="Gives the probabilities of the first words alone.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
answer = [0.5, 0.6, 1.0]
""",
        right=False,
        mistake="Gives the probability of the last word instead of the sentence.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
answer = [0.20, 0.41, 0.66]
""",
        right=False,
        mistake="Adds up the probabilities of all kept sentences.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
import math

answer = [math.log(0.20), math.log(0.21), math.log(0.25)]
""",
        right=False,
        mistake="Gives logarithms where probabilities are asked for.",
    ),
    Answer(
        exercise="decoding.3",
        check="pencil",
        code="""
answer = [0.20**0.5, 0.21**0.5, 0.25**0.5]
""",
        right=False,
        mistake="Takes the mean log-probability per word, so the sentence's probability is a root.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    rows = []
    for row in probabilities.tolist():
        kept, total = [0.0] * len(row), 0.0
        for i in sorted(range(len(row)), key=lambda i: -row[i]):
            if total >= p:
                break
            kept[i], total = row[i], total + row[i]
        rows.append([x / total for x in kept])
    return torch.tensor(rows, dtype=probabilities.dtype)

answer = nucleus
""",
        right=True,
        mistake="One row at a time, in plain Python.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch
import torch.nn.functional as F

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(dim=-1, descending=True)
    before = F.pad(ranked.cumsum(-1)[..., :-1], (1, 0))
    kept = torch.where(before < p, ranked, 0)
    back = kept.gather(-1, order.argsort(-1))
    return back / back.sum(-1, keepdim=True)

answer = nucleus
""",
        right=True,
        mistake="Shifts the cumulative sums by one place with a pad.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    drop = ranked.cumsum(-1) > p
    drop[..., 0] = False
    ranked = ranked.masked_fill(drop, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake="Always keeps the first, but still drops the token with which p is reached.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    drop = (ranked.cumsum(-1) > p).roll(1, -1)
    ranked = ranked.masked_fill(drop, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake=(
            "Rolls the mask by one place, and its last entry comes round to the most probable "
            "token."
        ),
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked > p, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake="Keeps one token more where the sum is exactly p.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= p, 0.0)
    return ranked / ranked.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake="Does not put the probabilities back into their old order.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= p, 0.0)
    return torch.zeros_like(probabilities).scatter(-1, order, ranked)

answer = nucleus
""",
        right=False,
        mistake="Forgets to divide, so the rows no longer sum to 1.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
import torch

def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    ranked = ranked.masked_fill(ranked.cumsum(-1) > p, 0.0)
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked)
    empty = kept.sum(-1, keepdim=True) == 0
    kept = torch.where(empty, probabilities, kept)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake=(
            "Replaces empty rows by the old ones, so the tail comes back where the first token "
            "is enough."
        ),
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
def nucleus(probabilities, p):
    top = probabilities.max(-1, keepdim=True).values
    kept = probabilities.masked_fill((probabilities < p) & (probabilities < top), 0.0)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake="Compares single probabilities with p instead of their sums.",
    ),
    Answer(
        exercise="decoding.4",
        check="nucleus",
        code="""
def nucleus(probabilities, p):
    ranked, order = probabilities.sort(-1, descending=True)
    ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= p, 0.0)
    kept = ranked.gather(-1, order)
    return kept / kept.sum(-1, keepdim=True)

answer = nucleus
""",
        right=False,
        mistake="Gathers with the sorting order where a scatter is needed.",
    ),
]
