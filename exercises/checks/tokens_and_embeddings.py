"""Checks for chapter 05, tokens and embeddings."""

import random
from collections import Counter

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from exercises.checks import Part, exercise, expect, values
from transformer_lib.config import ModelConfig
from transformer_lib.models.transformer import Transformer

ONE = 10_000 * 512


def _count_matrices():
    """The word matrices of two models without numbers, each counted once."""
    found = {}
    for name, tied in (("separate", False), ("shared", True)):
        with torch.device("meta"):
            model = Transformer(ModelConfig(10_000, 512, 8, 8, 1, 1, tie_embeddings=tied))
        matrices = (
            model.src_embedding.lookup.weight, model.tgt_embedding.lookup.weight,
            model.output.weight,
        )
        found[name] = sum(m.numel() for m in {id(m): m for m in matrices}.values())
    return found


matrix_sizes = values(
    1,
    "matrix_sizes",
    measure=_count_matrices,
    hint=(
        "give a pair (separate, shared)",
        "one matrix holds vocabulary times d_model numbers",
        "there are three of them if they're separate, and one if it's shared",
    ),
    packed=True,
    separate=Part(
        3 * ONE,
        "separate means three matrices of 10,000 x 512",
        {
            "you counted two matrices; the output map is a third": 2 * ONE,
            "one matrix is the answer for sharing; the order is (separate, shared)": ONE,
        },
    ),
    shared=Part(
        ONE,
        "shared means one matrix of 10,000 x 512 for all three",
        {"sharing doesn't cut the matrix up: one whole matrix serves three times": ONE / 3},
    ),
)


def _most_frequent(words):
    """The pair of neighbours with the largest count, over (symbols, count)."""
    pairs = Counter()
    for symbols, count in words:
        for pair in zip(symbols, symbols[1:], strict=False):
            pairs[pair] += count
    return max(pairs, key=pairs.get)


def _across(cut):
    text = tuple(symbol for symbols, count in cut.items() for symbol in symbols * count)
    return _most_frequent([(text, 1)])


def _once_per_word(cut):
    pairs = Counter()
    for symbols, count in cut.items():
        for pair in set(zip(symbols, symbols[1:], strict=False)):
            pairs[pair] += count
    return max(pairs, key=pairs.get)


def _joined(cut):
    """Pairs counted under their joined text, so that (a, bc) and (ab, c) are one."""
    pairs, first = Counter(), {}
    for symbols, count in cut.items():
        for pair in zip(symbols, symbols[1:], strict=False):
            pairs["".join(pair)] += count
            first.setdefault("".join(pair), pair)
    return first[max(pairs, key=pairs.get)]


def _many_words(n=3000):
    draw = random.Random(0)
    words = {tuple(draw.choices("abcdefghij", k=8)): draw.randint(1, 50) for _ in range(n)}
    return ({**words, ("x", "y"): 10**6},)


@exercise(
    2,
    inputs=[
        # Most words hold (b, c); most running text holds (a, b).
        ({("a", "b"): 9, ("b", "c"): 2, ("x", "b", "c"): 2, ("y", "b", "c"): 2, ("z", "z"): 1},),
        # Joined into one text, (b, a) would win across the word boundary.
        ({("a", "x", "b"): 5, ("a", "y", "b"): 5, ("x", "b"): 1},),
        ({("l", "a", "l", "a"): 3, ("o", "h"): 5},),
        ({("un", "d"): 4, ("h", "un", "d"): 3, ("d", "e"): 6, ("u", "nd"): 5},),
        ({("a", "bc"): 3, ("ab", "c"): 3, ("x", "yz"): 4},),
    ],
    hint=(
        "add up the counts of neighbouring pairs over all the words",
        "zip(symbols, symbols[1:]) gives the neighbours of a word; each counts as often as the "
        "word",
    ),
    large=_many_words,
    tell=lambda given, expected, *args: (
        f"return the pair as a tuple of two symbols, not the string {given!r}"
        if isinstance(given, str)
        else "the pair is right, but you return its count as well: return only the pair"
        if len(given) == 2 and tuple(given[0]) == expected
        else "that isn't the most frequent pair"
    ),
    slips={
        "you counted each word once; a pair counts as often as its word occurs in the text": (
            lambda cut: _most_frequent((symbols, 1) for symbols in cut)
        ),
        "your pair crosses from one word into the next; BPE merges inside words only": _across,
        "a pair that occurs twice in one word counts twice": _once_per_word,
        "you join the two symbols before you count: (a, bc) and (ab, c) are two pairs": _joined,
    },
)
def best_pair(cut):
    return _most_frequent(cut.items())


def _merge(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        both = symbols[i : i + 2] == pair
        merged.append("".join(pair) if both else symbols[i])
        i += 2 if both else 1
    return tuple(merged)


def _overlapping(symbols, pair):
    merged = []
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            merged.append("".join(pair))
        elif i == 0 or symbols[i - 1 : i + 1] != pair:
            merged.append(symbols[i])
    return tuple(merged)


def _from_the_right(symbols, pair):
    flipped = _merge(symbols[::-1], pair[::-1])
    return tuple("".join(pair) if s == "".join(pair[::-1]) else s for s in flipped)[::-1]


def _once(symbols, pair):
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            return symbols[:i] + ("".join(pair),) + symbols[i + 2 :]
    return symbols


def _gives_a_tuple(answer):
    kind = type(answer(("h", "u", "n", "d"), ("u", "n")))
    expect(
        kind is tuple,
        f"the symbols are right, but come as a {kind.__name__}: return a tuple as before, since "
        f"a {kind.__name__} cannot be a key of `cut`",
    )


@exercise(
    3,
    inputs=[
        (("h", "u", "n", "d"), ("u", "n")),
        (("a", "a", "a"), ("a", "a")),
        (("a", "a", "a", "a"), ("a", "a")),
        # The neighbours u and nt begin with the letters of the pair, but are not the pair.
        (("u", "nt", "u", "n"), ("u", "n")),
        (("un", "d", "h", "un", "d"), ("un", "d")),
        (("e", "x", ".", "x", "."), ("x", ".")), (("(", "a", "(", "a"), ("(", "a")),
        (("x",), ("x", "y")),
    ],
    given=0x260F52AE,
    wrong="the symbols aren't right after the merge",
    laws=_gives_a_tuple,
    slips={
        "a symbol was lost, or used in two merges; after a merge, go on after both symbols": (
            _overlapping
        ),
        "merge from the left": _from_the_right,
        "compare whole symbols, not letters": lambda symbols, pair: tuple(
            " ".join(symbols).replace(" ".join(pair), "".join(pair)).split()
        ),
        "you merge only the first occurrence": _once,
    },
    hint=(
        "try it on ('a', 'a', 'a') with the pair ('a', 'a'): how many symbols come out?",
    ),
)
def repaired_merge(symbols, pair):
    return _merge(symbols, pair)


def _cut(word, merges, merge=_merge):
    symbols = tuple(word)
    for pair in merges:
        symbols = merge(symbols, tuple(pair))
    return symbols


def _longest(word, merges):
    tokens, known = [], {"".join(pair) for pair in merges}
    while word:
        n = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        tokens.append(word[:n])
        word = word[n:]
    return tuple(tokens)


@exercise(
    4,
    inputs=[
        ("abcde", [("b", "c"), ("a", "b"), ("a", "bc"), ("d", "e")]),
        # "abc" is in the list of tokens, but its way there is closed by the merge of c and d.
        ("abcd", [("c", "d"), ("a", "b"), ("ab", "c")]),
        ("abab", [("a", "b")]),
        ("x", [("a", "b")]),
        ("hund", []),
    ],
    hint=(
        "start from the characters, and apply the merges in order",
        "apply each merge to the whole word before you go to the next one, even if it never fits",
    ),
    large=("ab" * 400, [("a", "b")] * 200),
    tell=lambda given, expected, *args: (
        "return a list or tuple of tokens, not one string"
        if isinstance(given, str)
        else "those aren't the right tokens"
    ),
    slips={
        "no merge was applied": lambda word, merges: tuple(word),
        "you applied a later merge before an earlier one; here b c comes first in the list": (
            lambda word, merges: _cut(word, merges[::-1])
        ),
        "you took the longest known token; BPE applies its merges in order, whatever comes out": (
            _longest
        ),
        "apply each merge everywhere in the word": (
            lambda word, merges: _cut(word, merges, merge=_once)
        ),
        "only the first merge was applied; go through the whole list": (
            lambda word, merges: _cut(word, merges[:1])
        ),
        "apply the merges in the order of the list, not the longest first": (
            lambda word, merges: _cut(word, sorted(merges, key=lambda pair: -len("".join(pair))))
        ),
    },
)
def cut_word(word, merges):
    return _cut(word, merges)


def _embedding(B=2, T=5, V=11, D=9):
    return torch.randint(V, (B, T)), torch.randn(V, D)


def _rows(ids, weight):
    return F.one_hot(ids, len(weight)).to(weight.dtype) @ weight


class _NoRows(TorchFunctionMode):
    """Where no row of a matrix of this shape can be looked up."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def __torch_function__(self, function, types, args=(), kwargs=None):
        looked_up = function.__name__ == "__getitem__" and args[0].shape == self.shape
        expect(not looked_up, "don't look rows up with `weight[...]`: multiply one-hot rows by it")
        return function(*args, **(kwargs or {}))


def _looks_no_row_up(answer):
    ids, weight = _embedding()
    with _NoRows(weight.shape):
        answer(ids, weight)


@exercise(
    5,
    inputs=_embedding,
    vary=(dict(B=3, T=4, V=7, D=5), dict(B=1, T=2, V=6, D=6)),
    hint="F.one_hot returns integers; turn them into floats",
    wrong="your result isn't the scaled rows of the matrix",
    shape="return one vector of d_model numbers per token",
    gradients=True,
    forbid=("embedding", "index_select", "gather", "take", "take_along_dim"),
    laws=_looks_no_row_up,
    slips={
        "the factor sqrt(d_model) is missing": _rows,
        "you multiplied by d_model; the factor is its square root": (
            lambda ids, weight: _rows(ids, weight) * weight.size(1)
        ),
        "you divided; at the input, the rows are made larger": (
            lambda ids, weight: _rows(ids, weight) / weight.size(1) ** 0.5
        ),
        "the factor is the root of d_model, the width, not of the vocabulary": (
            lambda ids, weight: _rows(ids, weight) * len(weight) ** 0.5
        ),
    },
)
def embed(ids, weight):
    one_hot = F.one_hot(ids, len(weight)).to(weight.dtype)  # (B, T, V)
    rows = one_hot @ weight
    return rows * weight.size(1) ** 0.5


def _taught(row):
    """A sum over the vocabulary of what each token's probability adds."""
    return lambda probabilities, n: row(probabilities, n).sum()


@exercise(
    7,
    inputs=lambda V=5, n=3, size=1.0: ((size * torch.randn(V)).softmax(-1), n),
    vary=(
        dict(V=4, n=12), dict(V=9, n=1, size=2.0), dict(V=30, n=40, size=2.0),
        dict(V=6, n=6, size=0.0),
    ),
    hint=(
        "take one token: what's the probability that it's in none of the n places?",
        "that's (1 - p) ** n, so its row gets a gradient with probability 1 - (1 - p) ** n",
        "the expected number of rows is the sum of these over the vocabulary, although these "
        "events depend on each other: expectations always add up",
    ),
    wrong="that isn't the expected number of rows",
    shape="return one number",
    slips={
        "those are the rows that get no gradient; count the others": (
            _taught(lambda p, n: (1 - p) ** n)
        ),
        "p ** n is the chance that all n places hold this token; one is enough": [
            _taught(lambda p, n: p**n), _taught(lambda p, n: 1 - p**n),
        ],
        "n * p counts how often a token occurs; its row counts once, however often that is": [
            _taught(lambda p, n: n * p), _taught(lambda p, n: (n * p).clamp(max=1)),
        ],
        "the tokens aren't equally frequent: each row has its own chance": (
            _taught(lambda p, n: 1 - (1 - torch.ones_like(p) / len(p)) ** n)
        ),
        "exp(-n * p) is nearly (1 - p) ** n for rare tokens; the frequent ones need the power": (
            _taught(lambda p, n: 1 - (-n * p).exp())
        ),
        "that is the share of the rows; return their number": (
            lambda probabilities, n: (1 - (1 - probabilities) ** n).mean()
        ),
        "each of the n places can hold the token, so the power is n": [
            _taught(lambda p, n: 1 - (1 - p) ** (n - 1)),
            _taught(lambda p, n: 1 - (1 - p) ** (n + 1)),
        ],
    },
)
def rows_taught(probabilities, n):
    in_none = (1 - probabilities) ** n  # (V,)
    return (1 - in_none).sum()
