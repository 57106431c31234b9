"""Answers to the exercises of chapter 18, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
attentions = ["encoder self"] * 6 + ["decoder self", "cross"] * 3
all_heads = 8 * len(attentions)
heads_on_the_source = 8 * sum(kind != "decoder self" for kind in attentions)
answer = (all_heads, heads_on_the_source)
""",
        right=True,
        mistake="Counted from a list of attentions.",
    ),
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
all_heads = (6 + 3) * 8
heads_on_the_source = 6 * 8
answer = (all_heads, heads_on_the_source)
""",
        right=False,
        mistake="Forgets that a decoder layer has two attentions.",
    ),
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
answer = (96, 24)
""",
        right=False,
        mistake="Counts the cross-attention alone as looking at the source.",
    ),
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
answer = (96, 48)
""",
        right=False,
        mistake="Forgets that the cross-attention looks at the source.",
    ),
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
answer = (2 * 9 * 8, 72)
""",
        right=False,
        mistake="Gives every layer of both stacks two attentions.",
    ),
    Answer(
        exercise="looking_inside.1",
        check="count_heads",
        code="""
answer = (12, 9)
""",
        right=False,
        mistake="Counts attentions and not heads.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch

def attention_between_words(weights, target_words, source_words):
    t, s = torch.as_tensor(target_words), torch.as_tensor(source_words)
    out = (t[:, None] == torch.arange(int(t.max()) + 1)).to(weights.dtype)
    into = (s[:, None] == torch.arange(int(s.max()) + 1)).to(weights.dtype)
    return torch.einsum("tw,ts,sv->wv", out / out.sum(0), weights, into)

answer = attention_between_words
""",
        right=True,
        mistake="Two products with tables of ones and shares.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch

def attention_between_words(weights, target_words, source_words):
    out = torch.zeros(max(target_words) + 1, max(source_words) + 1, dtype=weights.dtype)
    for w in range(max(target_words) + 1):
        rows = [t for t, number in enumerate(target_words) if number == w]
        for v in range(max(source_words) + 1):
            for t in rows:
                for s, number in enumerate(source_words):
                    if number == v:
                        out[w, v] += weights[t, s] / len(rows)
    return out

answer = attention_between_words
""",
        right=True,
        mistake="Four nested loops.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch
import torch.nn.functional as F

def attention_between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).to(weights)
    into = F.one_hot(torch.tensor(source_words)).to(weights)
    return out.mT @ weights @ into

answer = attention_between_words
""",
        right=False,
        mistake="Sums over the pieces of both words, so rows sum to the number of pieces.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch
import torch.nn.functional as F

def attention_between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).to(weights)
    into = F.one_hot(torch.tensor(source_words)).to(weights)
    mean = (out / out.sum(0)).mT @ weights @ (into / into.sum(0))
    return mean / mean.sum(-1, keepdim=True)

answer = attention_between_words
""",
        right=False,
        mistake="Takes the mean over the pieces of both and scales the rows to 1 afterwards.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch
import torch.nn.functional as F

def attention_between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).to(weights)
    into = F.one_hot(torch.tensor(source_words)).to(weights)
    return (out.mT @ weights @ into).softmax(-1)

answer = attention_between_words
""",
        right=False,
        mistake="Sums both and uses a softmax, so that rows sum to 1.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch

def attention_between_words(weights, target_words, source_words):
    out = torch.zeros(max(target_words) + 1, max(source_words) + 1)
    for t, w in enumerate(target_words):
        out[w] = 0
        for s, v in enumerate(source_words):
            out[w, v] += weights[t, s]
    return out

answer = attention_between_words
""",
        right=False,
        mistake="Uses the last piece of each target word for the whole word.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch

def attention_between_words(weights, target_words, source_words):
    t, s = torch.tensor(target_words), torch.tensor(source_words)
    columns = torch.zeros(weights.size(0), int(s.max()) + 1)
    columns[:, s] += weights
    rows = torch.zeros(int(t.max()) + 1, columns.size(1)).index_add(0, t, columns)
    return rows / rows.sum(-1, keepdim=True)

answer = attention_between_words
""",
        right=False,
        mistake="Writes into the table with an index that repeats: all but one piece get lost.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch
import torch.nn.functional as F

def attention_between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).to(weights)
    into = F.one_hot(torch.tensor(source_words)).to(weights)
    return out.mT @ weights @ (into / into.sum(0))

answer = attention_between_words
""",
        right=False,
        mistake="Counts the pieces of source words in the mean: columns, not rows, are shared out.",
    ),
    Answer(
        exercise="looking_inside.2",
        check="between_words",
        code="""
import torch
import torch.nn.functional as F

def attention_between_words(weights, target_words, source_words):
    out = F.one_hot(torch.tensor(target_words)).to(weights)
    into = F.one_hot(torch.tensor(source_words)).to(weights)
    return ((out / out.sum(0)).mT @ weights @ into).mT

answer = attention_between_words
""",
        right=False,
        mistake="Returns the table lying on its side, source by target.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import numpy as np

def nearest_rows(table, i, k):
    x = np.asarray(table, dtype=np.float64)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    order = np.argsort(-(x @ x[i]), kind="stable")
    return [int(j) for j in order if j != i][:k]

answer = nearest_rows
""",
        right=True,
        mistake="With numpy and a list comprehension.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    def closeness(j):
        return F.cosine_similarity(table[i], table[j], dim=0).item()

    others = [j for j in range(table.shape[0]) if j != i]
    return sorted(others, key=closeness, reverse=True)[:k]

answer = nearest_rows
""",
        right=True,
        mistake="Sorts the other rows with cosine_similarity as the key.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    x = F.normalize(table, dim=-1)
    return (x @ x[i]).topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="The row itself is its own first neighbour.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
def nearest_rows(table, i, k):
    score = table @ table[i]
    score[i] = float("-inf")
    return score.topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Uses the dot product, which favours long vectors.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
def nearest_rows(table, i, k):
    distance = (table - table[i]).norm(dim=-1)
    distance[i] = float("inf")
    return distance.topk(k, largest=False).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Uses the distance instead of the cosine.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    cosine = F.cosine_similarity(table, table[i][None])
    cosine[i] = float("inf")
    return cosine.argsort()[:k].tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Sorts from far to near.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    cosine = F.cosine_similarity(table, table[i][None])
    cosine[i] = 0
    return cosine.topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Sets its own cosine to 0, so it still comes before rows that point away.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    x = F.normalize(table, dim=0)
    score = x @ x[i]
    score[i] = float("-inf")
    return score.topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Normalises the features, not the rows.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch
import torch.nn.functional as F

def nearest_rows(table, i, k):
    others = torch.cat([table[:i], table[i + 1 :]])
    return F.cosine_similarity(others, table[i][None]).topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Takes the row out of the table, so all later ids are one too small.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
import torch.nn.functional as F

def nearest_rows(table, i, k):
    cosine = F.cosine_similarity(table, table[i][None]).abs()
    cosine[i] = -1
    return cosine.topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Ranks by the size of the cosine, so opposite rows count as near.",
    ),
    Answer(
        exercise="looking_inside.3",
        check="neighbours",
        code="""
def nearest_rows(table, i, k):
    table /= table.norm(dim=-1, keepdim=True)
    score = table @ table[i]
    score[i] = float("-inf")
    return score.topk(k).indices.tolist()

answer = nearest_rows
""",
        right=False,
        mistake="Normalises the caller's table in place.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
import torch

def silence_head(x, head, n_heads):
    keep = (torch.arange(n_heads) != head).to(x).repeat_interleave(x.size(-1) // n_heads)
    return x * keep

answer = silence_head
""",
        right=True,
        mistake="Multiplies by a mask of heads, repeated for each feature.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
import torch

def silence_head(x, head, n_heads):
    parts = list(x.chunk(n_heads, dim=-1))
    parts[head] = torch.zeros_like(parts[head])
    return torch.cat(parts, dim=-1)

answer = silence_head
""",
        right=True,
        mistake="Cuts into heads, replaces one, and joins them again.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    x = x.clone()
    x[..., head::n_heads] = 0
    return x

answer = silence_head
""",
        right=False,
        mistake="Copies now, but still takes every n-th feature.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    d = x.size(-1) // n_heads
    x[..., head * d : (head + 1) * d] = 0
    return x

answer = silence_head
""",
        right=False,
        mistake="Takes the right features now, but changes what it was given.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    y = x[:]
    d = x.size(-1) // n_heads
    y[..., head * d : (head + 1) * d] = 0
    return y

answer = silence_head
""",
        right=False,
        mistake="Thinks that a slice of everything is a copy.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    y = x.clone()
    y[..., head * n_heads : (head + 1) * n_heads] = 0
    return y

answer = silence_head
""",
        right=False,
        mistake="A head is as wide as there are heads: right only where both numbers are equal.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    d = x.size(-1) // n_heads
    y = x.clone().zero_()
    y[..., head * d : (head + 1) * d] = x[..., head * d : (head + 1) * d]
    return y

answer = silence_head
""",
        right=False,
        mistake="Silences all heads but the one.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    y = x.clone()
    y[..., head : head + x.size(-1) // n_heads] = 0
    return y

answer = silence_head
""",
        right=False,
        mistake="The slice begins at the head's number instead of its first feature.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    y = x.clone().unflatten(-1, (-1, n_heads))
    y[..., head] = 0
    return y.flatten(-2)

answer = silence_head
""",
        right=False,
        mistake="Cuts the features into heads in the wrong order of axes.",
    ),
    Answer(
        exercise="looking_inside.4",
        check="silent_head",
        code="""
def silence_head(x, head, n_heads):
    d = x.size(-1) // n_heads
    y = x.clone()
    y[0, :, head * d : (head + 1) * d] = 0
    return y

answer = silence_head
""",
        right=False,
        mistake="Silences the head in the first sentence of the batch only.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    return len(found ^ true) / ((len(found) + len(true)) or 1)

answer = alignment_error
""",
        right=True,
        mistake="The size of the symmetric difference over the sum of the sizes.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found and not true:
        return 0.0
    both = sum(link in true for link in found)
    if both == 0:
        return 1.0
    precision, recall = both / len(found), both / len(true)
    return 1 - 2 * precision * recall / (precision + recall)

answer = alignment_error
""",
        right=True,
        mistake="One minus the harmonic mean of precision and recall.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
from fractions import Fraction

def alignment_error(found, true):
    size = len(found) + len(true)
    return 1 - Fraction(2 * len(found.intersection(true)), size) if size else Fraction(0)

answer = alignment_error
""",
        right=True,
        mistake="An exact fraction.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    return 1 - 2 * len(found & true) / (len(found) + len(true))

answer = alignment_error
""",
        right=False,
        mistake="Divides by zero where both sets are empty.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found and not true:
        return 0
    return 1 - len(found & true) / len(found | true)

answer = alignment_error
""",
        right=False,
        mistake="Divides by the union.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found and not true:
        return 0
    return 2 * len(found & true) / (len(found) + len(true))

answer = alignment_error
""",
        right=False,
        mistake="Returns the agreement, not the error.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found and not true:
        return 0
    return 1 - len(found & true) / (len(found) + len(true))

answer = alignment_error
""",
        right=False,
        mistake="Forgets the factor 2.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found or not true:
        return 0
    return 1 - 2 * len(found & true) / (len(found) + len(true))

answer = alignment_error
""",
        right=False,
        mistake="Returns 0 as soon as one of the sets is empty.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    return len(true - found) / len(true) if true else 0

answer = alignment_error
""",
        right=False,
        mistake="Counts the missing links only, not the false ones.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    n = len(found) + len(true)
    if n == 0:
        return 0
    found ^= true
    return len(found) / n

answer = alignment_error
""",
        right=False,
        mistake="Removes the common links from the caller's set.",
    ),
    Answer(
        exercise="looking_inside.5",
        check="alignment_error",
        code="""
def alignment_error(found, true):
    if not found and not true:
        return 0
    both = len(found & true)
    miss = 1 - both / len(true) if true else 1
    false = 1 - both / len(found) if found else 1
    return (miss + false) / 2

answer = alignment_error
""",
        right=False,
        mistake="Takes the plain mean of the two error shares instead of the common one.",
    ),
]
