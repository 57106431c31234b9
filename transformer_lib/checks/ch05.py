"""Checks for chapter 05, tokens and embeddings."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("05.1", hint="give a pair (separate, shared)")
def matrix_sizes(answer):
    expect_shape(answer, (2,), "two numbers are wanted, (separate, shared)")
    separate, shared = answer
    one = 10_000 * 512
    expect(separate != 2 * one, "you counted two matrices; the output map is a third")
    expect(
        shared != one / 3, "sharing does not cut the matrix: one whole matrix serves three times"
    )
    expect((separate, shared) != (one, 3 * one), "the order is (separate, shared)")
    expect_close(separate, 3 * one, "three separate matrices of 10,000 x 512", tolerance=0)
    expect_close(shared, one, "one matrix of 10,000 x 512 for all three", tolerance=0)


@exercise("05.2", hint="add up counts of neighbours over all words")
def best_pair(answer):
    # Most words hold (b, c); most running text holds (a, b).
    cut = {("a", "b"): 9, ("b", "c"): 2, ("x", "b", "c"): 2, ("y", "b", "c"): 2, ("z", "z"): 1}
    given = answer(dict(cut))
    if isinstance(given, str):
        expect(False, f"return the pair as a tuple of two symbols, not the string {given!r}")
    given = tuple(given)
    expect(
        given != ("b", "c"),
        "you counted each word once; a pair counts as often as its word occurs in the text",
    )
    expect(given == ("a", "b"), f"your pair is {given}, the most frequent one ('a', 'b')")
    # Joined into one text, (b, a) would win across the word boundary.
    given = tuple(answer({("a", "x", "b"): 5, ("a", "y", "b"): 5, ("x", "b"): 1}))
    expect(
        given != ("b", "a"),
        "your pair crosses from one word into the next; BPE merges inside words only",
    )
    expect(given == ("x", "b"), f"your pair is {given}, the most frequent one ('x', 'b')")
    twice = tuple(answer({("l", "a", "l", "a"): 3, ("o", "h"): 5}))
    expect(
        twice != ("o", "h"),
        "a pair that occurs twice in one word counts twice",
    )
    expect(twice == ("l", "a"), f"your pair is {twice}, the most frequent one ('l', 'a')")


def _merge(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        both = symbols[i : i + 2] == pair
        merged.append("".join(pair) if both else symbols[i])
        i += 2 if both else 1
    return tuple(merged)


@exercise("05.3", given=0x260F52AE)
def repaired_merge(answer):
    plain = tuple(answer(("h", "u", "n", "d"), ("u", "n")))
    expect(plain == ("h", "un", "d"), f"merging u and n in h u n d gave {plain}")
    for word in (("a", "a", "a"), ("a", "a", "a", "a")):
        given, wanted = tuple(answer(word, ("a", "a"))), _merge(word, ("a", "a"))
        expect(
            "".join(given) == "".join(word),
            f"{' '.join(word)} became {' '.join(given)}: a symbol was used in two merges or lost; "
            "after a merge, go on behind both symbols",
        )
        expect(given == wanted, f"{' '.join(word)} became {' '.join(given)}; merge from the left")
    # The neighbours u and nt begin with the letters of the pair, but are not the pair.
    given = tuple(answer(("u", "nt", "u", "n"), ("u", "n")))
    expect(
        given == ("u", "nt", "un"),
        f"u nt u n became {' '.join(given)}; compare whole symbols, not letters",
    )


@exercise("05.4", hint="start from the characters, apply the merges in order")
def cut_word(answer):
    merges = [("b", "c"), ("a", "b"), ("a", "bc"), ("d", "e")]
    given = answer("abcde", merges)
    if isinstance(given, str):
        expect(False, "return a list or tuple of tokens, not one string")
    given = tuple(given)
    expect("".join(given) == "abcde", f"the tokens {given} do not spell abcde")
    expect(given != tuple("abcde"), "no merge was applied")
    expect(
        given != ("ab", "c", "de"),
        "you applied a later merge before an earlier one; b c comes first in the list",
    )
    expect(given == ("abc", "de"), f"abcde gave {given}, expected ('abc', 'de')")
    # "abc" is in the list of tokens, but its way there is closed by the earlier merge of c and d.
    merges = [("c", "d"), ("a", "b"), ("ab", "c")]
    given = tuple(answer("abcd", merges))
    expect(
        given != ("abc", "d"),
        "you took the longest known token; BPE applies its merges in order, whatever comes out",
    )
    expect(given == ("ab", "cd"), f"abcd gave {given}, expected ('ab', 'cd')")
    given = tuple(answer("abab", [("a", "b")]))
    expect(given == ("ab", "ab"), f"abab gave {given}: apply a merge everywhere in the word")


@exercise("05.5", hint="F.one_hot gives integers; turn them into floats")
def embed(answer):
    weight = torch.randn(11, 9)
    ids = torch.randint(11, (2, 5))
    rows = F.one_hot(ids, 11).float() @ weight
    given = answer(ids, weight)
    expect_shape(given, (2, 5, 9), "one vector of d_model numbers per token")
    slips = {
        "the factor sqrt(d_model) is missing": rows,
        "you multiplied by d_model; the factor is its square root": rows * 9,
        "you divided; at the input the rows are made larger": rows / 3,
        "the factor is the root of d_model, the width, not of the vocabulary": rows * 11**0.5,
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    expect_close(given, rows * 3, "the result is not the scaled rows of the matrix")
