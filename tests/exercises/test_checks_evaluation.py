"""Every check of chapter 17 accepts the right answer and names what is wrong with others."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from exercises.checks import evaluation as ch
from transformer_lib.evaluation import edit_distance


def ngrams(words, n, last=1):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + last)]


def clipped(a, b, n):
    return sum((Counter(ngrams(a, n)) & Counter(ngrams(b, n))).values())


def wer(divide_by="reference", mean=False, scale=1):
    def rate(hypotheses, references):
        pairs = [(a.split(), b.split()) for a, b in zip(hypotheses, references, strict=True)]
        edits = [edit_distance(*pair) for pair in pairs]
        sizes = [len(pair[divide_by == "reference"]) for pair in pairs]
        if mean:
            return sum(e / s for e, s in zip(edits, sizes, strict=True)) / len(edits)
        return scale * sum(edits) / sum(sizes)

    return rate


def edits_of(a, b):
    return edit_distance(a.split(), b.split())


def wer_of_characters(a, b):
    return sum(map(edit_distance, a, b)) / sum(map(len, b))


def wer_word_by_word(a, b):
    """Compares words at equal places, so a missing word costs nothing."""
    pairs = [(x.split(), y.split()) for x, y in zip(a, b, strict=True)]
    wrong = sum(u != v for x, y in pairs for u, v in zip(x, y, strict=False))
    return wrong / sum(len(y) for _, y in pairs)


def centred(a, b, draws, seed):
    found = paired()(a, b, draws, seed)
    return found - found.mean()


def paired(same_draw=True, replace=True, sign=1, size=None):
    def differences(a, b, draws, seed):
        rng = np.random.default_rng(seed)
        found = []
        for _ in range(draws):
            rows = rng.choice(len(a), size or len(a), replace=replace)
            other = rows if same_draw else rng.choice(len(a), len(a))
            found.append(sign * (a[rows].mean() - b[other].mean()))
        return np.array(found)

    return differences


SHORT = math.exp(1 - 10 / 8)

def apart(n_seeds, draws, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(draws, 2, n_seeds, generator=generator)
    gap = scores.amin(-1) - scores.amax(-1).flip(1)  # (draws, 2)
    return (gap > 0).any(1).float().mean().item()


def one_way(n_seeds, draws, seed):
    a, b = np.random.default_rng(seed).normal(size=(2, draws, n_seeds))
    return (a.min(1) > b.max(1)).mean()


def bought_by_logarithms(c, r, sentences, added):
    gain = 1 - r / (c + added) - (1 - r / c)
    for n in range(4):
        total = c - n * sentences
        gain += (math.log(total) - math.log(total + added)) / 4
    return math.exp(gain)


CASES = [
    (ch.brevity, (SHORT, 1.0), True, "Right"),
    (ch.brevity, (math.exp(1 - 8 / 10), 1.0), False, "swapped"),
    (ch.brevity, (0.5, 1.0), False, "8 words is not right"),
    (ch.clip, (clipped,), True, "Right"),
    (ch.clip, (lambda a, b, n: ...,), None, "Not attempted"),
    (ch.clip, (lambda a, b, n: clipped(a, b, 1),), False, "runs of two"),
    (ch.clip, (lambda a, b, n: clipped(a, b, min(n, 3)),), False, "the right number of n-gram "
                                                                  "matches"),
    (ch.wer, (wer(),), True, "Right"),
    (ch.wer, (lambda a, b: ...,), None, "Not attempted"),
    (ch.wer, (lambda a, b: sum(map(edits_of, a, b)),), False, "these are the edits"),
    (ch.wer, (wer_of_characters,), False, "into words first"),
    (ch.wer, (wer_word_by_word,), False, "yours is 0, expected 0.5"),
    (ch.paired, (paired(),), True, "Right"),
    (ch.paired, (lambda a, b, draws, seed: ...,), None, "Not attempted"),
    (ch.paired, (paired(same_draw=False),), False, "different draws"),
    (ch.paired, (lambda a, b, draws, seed: (a - b).mean(),), False, "one difference per draw"),
    (ch.paired, (centred,), False, "aren't centred"),
    (ch.paired, (paired(replace=False),), False, "every draw"),
    (ch.paired, (paired(sign=-1),), False, "sign is the wrong way round"),
    (ch.paired, (paired(size=20),), False, "too widely"),
    (ch.paired, (paired(size=800),), False, "too little"),
    (ch.fair, ({2, 5},), True, "Right"),
    (ch.fair, ({2, 4, 5},), False, "per token"),
    (ch.fair, ({1, 2, 5},), False, "lowercasing"),
    (ch.fair, ({2},), False, "comparison 5 is missing"),
    (ch.fair, ({5},), False, "comparison 2 is missing"),
    (ch.fair, ({2, 5, 7},), False, "only comparisons 1 to 6"),
    (ch.fair, (2,), False, "set of numbers"),
    (ch.ranges, (apart, 2, 4), True, "Right"),
    (ch.ranges, (lambda *a: ..., ..., ...), None, "Not attempted"),
    (ch.ranges, (one_way, 2, 4), False, "count both ways"),
    (ch.ranges, (lambda n, d, s: apart(n, d, 0), 2, 4), False, "use the seed"),
    (ch.ranges, (apart, 3, 4), False, "equal systems don't overlap in 10%"),
    (ch.ranges, (apart, 2, 5), False, "not the smallest"),
    (ch.wrong_words, (bought_by_logarithms,), True, "Right"),
    (ch.wrong_words, (lambda c, r, sentences, added: ...,), None, "Not attempted"),
    (ch.wrong_words, (lambda *args: bought_by_logarithms(*args) + 0.01,), False, "that isn't"),
    (ch.wrong_words, (lambda c, r, s, a: bought_by_logarithms(c, r, 2, a),), False, "whatever"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


PRAISED, BLAMED = ch.fool.example
REFERENCES = list(ch.REFERENCES)


@pytest.mark.parametrize("praised, blamed, verdict, message", [
    (PRAISED, BLAMED, True, "Only you can tell"),
    (..., ..., None, "Not attempted"),
    ([..., *PRAISED[1:]], BLAMED, None, "Not attempted"),
    ("Two small dogs", BLAMED, False, "`praised` must be a list of sentences"),
    (PRAISED, BLAMED[:3], False, "`blamed` has 3"),
    (REFERENCES, BLAMED, False, "praised[0] is the reference itself"),
    ([PRAISED[0], REFERENCES[1][:-1], *PRAISED[2:]], BLAMED, False, "praised[1] still says"),
    # A negation more, a negation less, and two things exchanged count as wrong.
    ([PRAISED[0].replace("roof", "beach").replace("are", "are not"), *PRAISED[1:]], BLAMED, True,
     "Right"),
    (["A red ball is running after two small dogs on the beach.", *PRAISED[1:]], BLAMED, True,
     "Right"),
    (["Nothing of that kind.", *PRAISED[1:]], BLAMED, False, "praised[0] has the lowest chrF"),
    (PRAISED, [BLAMED[0].replace("crimson", "blue"), *BLAMED[1:]], False,
     "the check knows words that begin with red, scarlet, crimson"),
    (PRAISED, ["Never mind: " + BLAMED[0], *BLAMED[1:]], False, "blamed[0] has a negation"),
    (PRAISED, [REFERENCES[0], *BLAMED[1:]], False, 'and shares "two small dogs are running after'),
])
def test_fooling_the_metric(praised, blamed, verdict, message, capsys):
    assert ch.fool(praised, blamed) is verdict
    assert message in capsys.readouterr().out


def test_the_references_say_all_that_is_listed_in_their_order():
    for reference, facts in ch.REFERENCES.items():
        places = ch._places(reference, facts)
        assert None not in places and places == sorted(places)
