"""Every check of chapter 05 accepts the right answer and names what is wrong with others."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import tokens_and_embeddings as ch


def best(cut):
    pairs = Counter()
    for symbols, count in cut.items():
        for pair in zip(symbols, symbols[1:], strict=False):
            pairs[pair] += count
    return max(pairs, key=pairs.get)


def merge(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        both = symbols[i : i + 2] == pair
        merged.append("".join(pair) if both else symbols[i])
        i += 2 if both else 1
    return tuple(merged)


def overlapping(symbols, pair):
    merged = []
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            merged.append("".join(pair))
        elif i == 0 or symbols[i - 1 : i + 1] != pair:
            merged.append(symbols[i])
    return tuple(merged)


def cut_word(word, merges):
    symbols = tuple(word)
    for pair in merges:
        symbols = merge(symbols, tuple(pair))
    return symbols


def embed(ids, weight):
    return F.one_hot(ids, len(weight)).float() @ weight * weight.size(1) ** 0.5


def by_comparison(ids, weight):
    one_hot = ids[..., None] == torch.arange(len(weight))
    return one_hot.float() @ weight * weight.size(1) ** 0.5


V, D = 10_000, 512

def row_by_row(probabilities, n):
    return sum(1 - (1 - p) ** n for p in probabilities.tolist())


CASES = [
    (ch.matrix_sizes, ((3 * V * D, V * D),), True, "Right"),
    (ch.matrix_sizes, ((3 * V * D, V * D / 3),), False, "doesn't cut"),
    (ch.best_pair, (best,), True, "Right"),
    (ch.best_pair, (lambda cut: ...,), None, "Not attempted"),
    (ch.best_pair, (lambda cut: "ab",), False, "as a tuple"),
    (ch.repaired_merge, (merge,), True, "Right"),
    (ch.repaired_merge, (lambda s, p: ...,), None, "Not attempted"),
    (ch.repaired_merge, (overlapping,), False, "lost, or used in two merges"),
    (ch.cut_word, (cut_word,), True, "Right"),
    (ch.cut_word, (lambda w, m: ...,), None, "Not attempted"),
    (ch.cut_word, (lambda w, m: list(w),), False, "no merge"),
    (ch.embed, (embed,), True, "Right"),
    (ch.embed, (lambda i, w: ...,), None, "Not attempted"),
    (ch.embed, (lambda i, w: w[i] * w.size(1) ** 0.5,), False, "don't look rows up"),
    (ch.embed, (by_comparison,), True, "Right"),
    (ch.matrix_sizes, ((15_360_000, 5_120_000),), True, "Computed just now: separate 15360000"),
    (ch.rows_taught, (row_by_row,), True, "Right"),
    (ch.rows_taught, (lambda probabilities, n: ...,), None, "Not attempted"),
    (ch.rows_taught, (lambda probabilities, n: row_by_row(probabilities, 3),), False, "whatever"),
    (ch.rows_taught, (lambda p, n: row_by_row(p, n) + 0.5,), False, "that isn't"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
