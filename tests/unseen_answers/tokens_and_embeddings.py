"""Answers to the exercises of chapter 05, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: matrix_sizes
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
answer = (2 * 10_000 * 512, 10_000 * 512)
""",
        right=False,
        mistake="forgets the output map among the separate ones",
    ),
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
answer = (5_120_000, 15_360_000)
""",
        right=False,
        mistake="the pair is the wrong way round",
    ),
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
answer = (15_360_000, 10_240_000)
""",
        right=False,
        mistake="shares the two embeddings and keeps an output map of its own",
    ),
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
answer = (15_370_000, 5_130_000)
""",
        right=False,
        mistake="gives the output map a bias",
    ),
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
answer = (10_000 * 512, 10_000 * 512 // 3)
""",
        right=False,
        mistake="takes it that a shared matrix is three times as small",
    ),
    Answer(
        exercise="tokens_and_embeddings.1",
        check="matrix_sizes",
        code="""
from torch import nn

src, tgt, out = nn.Embedding(10_000, 512), nn.Embedding(10_000, 512), nn.Linear(512, 10_000, False)
separate = sum(layer.weight.numel() for layer in (src, tgt, out))
src.weight = tgt.weight = out.weight
shared = sum({id(m.weight): m.weight.numel() for m in (src, tgt, out)}.values())
answer = [separate, shared]
""",
        right=True,
        mistake="counted on layers",
    ),
    # Exercise 2: best_pair
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    pairs = {}
    for symbols in cut:
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] = pairs.get(pair, 0) + 1
    return max(pairs, key=pairs.get)


answer = best_pair
""",
        right=False,
        mistake="counts each kind of word once, whatever its count",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    pairs = {}
    for symbols, count in cut.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] = count
    return max(pairs, key=pairs.get)


answer = best_pair
""",
        right=False,
        mistake="the last word with a pair overwrites its count",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
from collections import Counter


def best_pair(cut):
    pairs = Counter()
    for symbols, count in cut.items():
        for pair in zip(symbols[::2], symbols[1::2]):
            pairs[pair] += count
    return pairs.most_common(1)[0][0]


answer = best_pair
""",
        right=False,
        mistake="takes every second pair alone",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
from collections import Counter


def best_pair(cut):
    pairs = Counter()
    for symbols, count in cut.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
    return pairs.most_common(1)[0]


answer = best_pair
""",
        right=False,
        mistake="returns the pair together with its count",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    pairs = {}
    for symbols, count in cut.items():
        for i in range(len(symbols) - 1):
            pair = symbols[i] + symbols[i + 1]
            pairs[pair] = pairs.get(pair, 0) + count
    return max(pairs, key=pairs.get)


answer = best_pair
""",
        right=False,
        mistake="returns the merged symbol instead of the pair",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    pairs = {}
    for symbols, count in cut.items():
        for i in range(len(symbols) - 2):
            pair = (symbols[i], symbols[i + 1])
            pairs[pair] = pairs.get(pair, 0) + count
    return max(pairs, key=pairs.get)


answer = best_pair
""",
        right=False,
        mistake="misses the last pair of each word",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    pairs = {}
    for symbols, count in cut.items():
        for pair in dict.fromkeys(zip(symbols, symbols[1:])):
            pairs[pair] = pairs.get(pair, 0) + count
    return max(pairs, key=lambda pair: pairs[pair])


answer = best_pair
""",
        right=False,
        mistake="counts a pair once in a word that has it twice",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    text = [symbol for symbols, count in cut.items() for symbol in symbols * count]
    pairs = list(zip(text, text[1:]))
    return max(dict.fromkeys(pairs), key=pairs.count)


answer = best_pair
""",
        right=False,
        mistake="joins the words first and counts pairs across their border",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
import itertools
from collections import Counter


def best_pair(cut):
    every = Counter(
        pair
        for symbols, count in cut.items()
        for _ in range(count)
        for pair in itertools.pairwise(symbols)
    )
    return every.most_common()[0][0]


answer = best_pair
""",
        right=True,
        mistake="repeats each word as often as it occurs",
    ),
    Answer(
        exercise="tokens_and_embeddings.2",
        check="best_pair",
        code="""
def best_pair(cut):
    totals, best = {}, None
    for symbols, count in cut.items():
        for left, right in zip(symbols[:-1], symbols[1:]):
            totals[left, right] = totals.setdefault((left, right), 0) + count
    for pair in totals:
        if best is None or totals[pair] > totals[best]:
            best = pair
    return best


answer = best_pair
""",
        right=True,
        mistake="keeps the best so far by hand",
    ),
    # Exercise 3: repaired_merge
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    for i in range(len(symbols) - 1):
        if symbols[i : i + 2] == pair:
            return symbols[:i] + ("".join(pair),) + symbols[i + 2 :]
    return symbols


answer = repaired_merge
""",
        right=False,
        mistake="merges the first occurrence and stops",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    merged, i = [], len(symbols) - 1
    while i >= 0:
        if i > 0 and (symbols[i - 1], symbols[i]) == pair:
            merged.insert(0, "".join(pair))
            i -= 2
        else:
            merged.insert(0, symbols[i])
            i -= 1
    return tuple(merged)


answer = repaired_merge
""",
        right=False,
        mistake="merges from the right, so of three equal letters the last two",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    text = " ".join(symbols)
    return tuple(text.replace(" ".join(pair), "".join(pair)).split(" "))


answer = repaired_merge
""",
        right=False,
        mistake="replaces in a joined string, where a longer symbol can end like the left",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    merged, i = [], 0
    while i < len(symbols) - 1:
        if symbols[i : i + 2] == pair:
            merged.append("".join(pair))
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


answer = repaired_merge
""",
        right=False,
        mistake="loses the last symbol when nothing is merged there",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    merged = []
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            merged.append("".join(pair))
        elif i == 0 or merged[-1] != "".join(pair):
            merged.append(symbols[i])
    return tuple(merged)


answer = repaired_merge
""",
        right=False,
        mistake="drops everything that follows a merged symbol and not just its second half",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


answer = repaired_merge
""",
        right=False,
        mistake="returns a list, which no longer can be a key of cut",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    symbols = list(symbols)
    while pair[0] in symbols:
        i = symbols.index(pair[0])
        if tuple(symbols[i : i + 2]) == pair:
            symbols[i : i + 2] = ["".join(pair)]
    return tuple(symbols)


answer = repaired_merge
""",
        right=False,
        mistake="hangs at a left symbol that the right one does not follow",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code="""
def repaired_merge(symbols, pair):
    if len(symbols) < 2:
        return tuple(symbols)
    if tuple(symbols[:2]) == tuple(pair):
        return ("".join(pair), *repaired_merge(symbols[2:], pair))
    return (symbols[0], *repaired_merge(symbols[1:], pair))


answer = repaired_merge
""",
        right=True,
        mistake="recursive",
    ),
    Answer(
        exercise="tokens_and_embeddings.3",
        check="repaired_merge",
        code=r"""
import re


def repaired_merge(symbols, pair):
    left, right = map(re.escape, pair)
    text = re.sub(rf"(?<!\S){left} {right}(?!\S)", lambda _: "".join(pair), " ".join(symbols))
    return tuple(text.split())


answer = repaired_merge
""",
        right=True,
        mistake="a regular expression that asks for a gap on both sides",
    ),
    # Exercise 4: cut_word
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    pieces = {left + right for left, right in merges}
    tokens, i = [], 0
    while i < len(word):
        for j in range(len(word), i, -1):
            if word[i:j] in pieces or j == i + 1:
                tokens.append(word[i:j])
                i = j
                break
    return tuple(tokens)


answer = cut_word
""",
        right=False,
        mistake="takes the longest known piece first and ignores the order of the merges",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    symbols = list(word)
    for left, right in reversed(merges):
        i = 0
        while i < len(symbols) - 1:
            if symbols[i] == left and symbols[i + 1] == right:
                symbols[i : i + 2] = [left + right]
            i += 1
    return tuple(symbols)


answer = cut_word
""",
        right=False,
        mistake="applies the merges from the last learned to the first",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    symbols = list(word)
    for left, right in merges:
        for i in range(len(symbols) - 1):
            if (symbols[i], symbols[i + 1]) == (left, right):
                symbols[i : i + 2] = [left + right]
                break
    return tuple(symbols)


answer = cut_word
""",
        right=False,
        mistake="applies each merge to the first place alone",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    symbols = tuple(word)
    for left, right in merges:
        if (left, right) not in zip(symbols, symbols[1:]):
            break
        merged, i = [], 0
        while i < len(symbols):
            if symbols[i : i + 2] == (left, right):
                merged.append(left + right)
                i += 2
            else:
                merged.append(symbols[i])
                i += 1
        symbols = tuple(merged)
    return symbols


answer = cut_word
""",
        right=False,
        mistake="stops at the first merge that does not occur in the word",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    symbols = list(word)
    for left, right in merges:
        i = 0
        while i < len(symbols) - 1:
            if symbols[i] == left and symbols[i + 1] == right:
                symbols[i : i + 2] = [left + right]
            i += 1
    return " ".join(symbols)


answer = cut_word
""",
        right=False,
        mistake="returns one string with spaces",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
def cut_word(word, merges):
    symbols = list(word)
    pairs = set(merges)
    i = 0
    while i < len(symbols) - 1:
        if (symbols[i], symbols[i + 1]) in pairs:
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
        else:
            i += 1
    return tuple(symbols)


answer = cut_word
""",
        right=False,
        mistake="merges from left to right whatever is a learned pair, in no order",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
import math


def cut_word(word, merges):
    rank = {pair: n for n, pair in enumerate(merges)}
    symbols = list(word)
    while len(symbols) > 1:
        pairs = list(zip(symbols, symbols[1:]))
        best = min(pairs, key=lambda pair: rank.get(pair, math.inf))
        if best not in rank:
            break
        i = 0
        while i < len(symbols) - 1:
            if (symbols[i], symbols[i + 1]) == best:
                symbols[i : i + 2] = ["".join(best)]
            i += 1
    return symbols


answer = cut_word
""",
        right=True,
        mistake="always the earliest learned pair that is present, as fast tokenizers do",
    ),
    Answer(
        exercise="tokens_and_embeddings.4",
        check="cut_word",
        code="""
import functools


def step(symbols, pair):
    done = []
    for symbol in symbols:
        if done and (done[-1], symbol) == tuple(pair):
            done[-1] += symbol
        else:
            done.append(symbol)
    return done


def cut_word(word, merges):
    return functools.reduce(step, merges, list(word))


answer = cut_word
""",
        right=True,
        mistake="a fold over the merges",
    ),
    # Exercise 5: embed
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
from torch.nn import functional as F


def embed(ids, weight):
    return F.one_hot(ids, weight.size(0)).float() @ weight


answer = embed
""",
        right=False,
        mistake="forgets the scale",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import math

from torch.nn import functional as F


def embed(ids, weight):
    V = weight.size(0)
    return F.one_hot(ids, V).float() @ weight * math.sqrt(V)


answer = embed
""",
        right=False,
        mistake="scales by the root of the vocabulary",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import torch


def embed(ids, weight):
    V, D = weight.shape
    return (ids.unsqueeze(-1) == torch.arange(V)).float() @ weight * D


answer = embed
""",
        right=False,
        mistake="scales by D and not by its root",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import math

from torch.nn import functional as F


def embed(ids, weight):
    one_hot = F.one_hot(ids).to(weight.dtype)
    return one_hot @ weight * math.sqrt(weight.size(1))


answer = embed
""",
        right=False,
        mistake="guesses the vocabulary from the largest id in the batch",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import math

from torch.nn import functional as F


def embed(ids, weight):
    one_hot = F.one_hot(ids, num_classes=weight.size(0))
    return one_hot @ weight * math.sqrt(weight.size(1))


answer = embed
""",
        right=False,
        mistake="a one-hot vector of whole numbers cannot be multiplied by floats",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
from torch.nn import functional as F


def embed(ids, weight):
    V, D = weight.shape
    return F.one_hot(ids, V).float() @ (weight / D**0.5)


answer = embed
""",
        right=False,
        mistake="divides by the root",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import math

import torch


def embed(ids, weight):
    V, D = weight.shape
    one_hot = (ids[..., None] == torch.arange(1, V + 1)).float()
    return one_hot @ weight * math.sqrt(D)


answer = embed
""",
        right=False,
        mistake="ids count from 1 here, so every row is the one before",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import torch


def embed(ids, weight):
    B, T = ids.shape
    table = torch.zeros(B, T, len(weight), dtype=weight.dtype)
    table.scatter_(2, ids.unsqueeze(2), 1.0)
    return torch.einsum("btv,vd->btd", table, weight) * weight.shape[1] ** 0.5


answer = embed
""",
        right=True,
        mistake="scatter makes the one-hot table, einsum the product",
    ),
    Answer(
        exercise="tokens_and_embeddings.5",
        check="embed",
        code="""
import math

import torch


def embed(ids, weight):
    hot = torch.eq(ids.reshape(-1, 1), torch.arange(weight.shape[0]).reshape(1, -1)).double()
    rows = hot.mm(weight.double()).mul(math.sqrt(weight.shape[1]))
    return rows.to(weight.dtype).view(*ids.shape, -1)


answer = embed
""",
        right=True,
        mistake="outer comparison of flattened ids, in float64",
    ),
]
