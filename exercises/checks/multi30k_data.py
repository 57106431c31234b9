"""Checks for chapter 14, Multi30k: data and tokenizers."""

import itertools
import math
from collections import Counter

from exercises.checks import Part, exercise, expect, judged, values
from exercises.checks.recorded import expect_share, recorded

padding = values(
    1,
    "padding",
    hint=(
        "take rows times the longest, subtract the real tokens, and divide by rows times the "
        "longest",
        "all four rows are as long as the longest: 4 * 8 places hold 20 tokens",
        "for two batches, put the short ones together and add up the places of both before you "
        "divide",
    ),
    one_batch=Part(
        12 / 32,
        "one batch is 4 x 8 = 32 numbers, 20 of them real",
        {
            "a share lies between 0 and 1; divide by the size of the batch": lambda x: x >= 1,
            "you divided by the real tokens; the share is of the whole rectangle, 4 x 8": 12 / 20,
            "that is the share of real tokens; padding is the rest": 20 / 32,
        },
        tolerance=0.006,
    ),
    two_batches=Part(
        4 / 24,
        "the best batches are (3, 4) and (5, 8), with 2 x 4 and 2 x 8 numbers",
        {
            "a share lies between 0 and 1; divide by the size of the batch": lambda x: x >= 1,
            "putting 3 with 8 isn't best: put sentences of similar length together": 6 / 26,
            "you divided by the real tokens; the share is of the whole rectangles": 4 / 20,
        },
        tolerance=0.006,
    ),
)


def _share(words, known):
    words = list(words)
    return sum(word in known for word in words) / len(words)


def _frequent(words, n):
    return {word for word, _ in Counter(words).most_common(n)}


TRAIN = "fox dog cat a bird a dog cat a dog a".split()
TEST = "a a a dog fish fish cat cat cat cat".split()


@exercise(
    2,
    inputs=[
        (TRAIN, TEST, 2),
        (TRAIN, TEST, 10),
        ("b a b c b a".split(), "a c c d b".split(), 1),
        (["x"], ["y", "x", "z"], 1),
    ],
    hint=(
        "Counter(train_words).most_common(n) gives the n most frequent words, with their counts",
        "make a set of those words, then count the test words that are in it, with repeats",
    ),
    wrong="that isn't the share of known test words",
    shrinks=False,
    large=lambda: (list(range(30_000)) * 2, list(range(0, 60_000, 2)), 30_000),
    slips={
        "you count each different word once; each occurrence in the test counts": (
            lambda train, test, n: _share(set(test), _frequent(train, n))
        ),
        "your vocabulary comes from the test words: that is the leak of this chapter": (
            lambda train, test, n: _share(test, _frequent(test, n))
        ),
        "that is the share of the training words; count the test words": (
            lambda train, test, n: _share(train, _frequent(train, n))
        ),
        "your vocabulary has more than the n most frequent words": (
            lambda train, test, n: _share(test, set(train))
        ),
        "you take the first n words; count how often each word occurs": [
            lambda train, test, n: _share(test, set(train[:n])),
            lambda train, test, n: _share(test, set(list(dict.fromkeys(train))[:n])),
        ],
        "that is the share of unknown words": (
            lambda train, test, n: 1 - _share(test, _frequent(train, n))
        ),
    },
)
def coverage(train_words, test_words, n):
    return _share(test_words, _frequent(train_words, n))


SHORT, LONG = [1, 7, 8, 2], [1, *range(10, 30), 2]


@exercise(
    3,
    inputs=[(LONG, 6), (SHORT, 6), (SHORT, 4), ([1, 5, 6, 7, 8, 2], 3), ([1, 9, 2], 2)],
    given=0x0BD5E3CC,
    wrong="expected the first ids to be kept, with <eos> after them where some are cut",
    shrinks=False,
    slips={
        "you lost <eos>: leave room for it and put it back": lambda ids, limit: ids[:limit],
        "you lost <bos>: cut at the end, not at the beginning": lambda ids, limit: ids[-limit:],
        "that is longer than the limit: <eos> counts too": [
            lambda ids, limit: ids[:limit] + [2],
            lambda ids, limit: ids if len(ids) <= limit else ids[:limit] + [2],
        ],
        "a short target needs no second <eos>: it must stay as it is": (
            lambda ids, limit: ids[: limit - 1] + [2]
        ),
        "you keep one id too few: limit - 1 ids and <eos> fit": (
            lambda ids, limit: ids if len(ids) <= limit else ids[: limit - 2] + [2]
        ),
    },
    hint=(
        "where is <eos> in a target that was cut? And what must happen to a target that is"
        " short enough?",
    ),
)
def shorten(ids, limit):
    return ids if len(ids) <= limit else ids[: limit - 1] + [2]


def _batched(lengths, budget, size=lambda rows, width, total: rows * width):
    """Greedy batches in order; size tells what a batch takes."""
    batches, batch = [], []
    for i, length in enumerate(lengths):
        total = sum(lengths[j] for j in batch) + length
        if batch and size(len(batch) + 1, length, total) > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches + [batch]


def _told_batches(given, expected, lengths, budget):
    """The first rule that a list of batches breaks, in words."""
    try:
        batches = [[int(i) for i in batch] for batch in given]
    except TypeError:
        return "return a list of lists of indices"
    flat = list(itertools.chain.from_iterable(batches))
    if [] in batches:
        return "one of your batches is empty"
    if flat == lengths and flat != list(range(len(lengths))):
        return "these are the lengths; return the indices"
    missing = sorted(set(range(len(lengths))) - set(flat))
    if missing:
        at_the_end = missing == list(range(len(lengths)))[-len(missing) :]
        why = "is the last batch returned" if at_the_end else "is the index that opens a batch lost"
        return f"no batch holds {missing}; {why}?"
    if flat != list(range(len(lengths))):
        return f"give each index once and in order; yours are {flat}"
    for batch in batches:
        size = len(batch) * max(lengths[i] for i in batch)
        if size > budget:
            return (
                f"the batch of lengths {[lengths[i] for i in batch]} takes {size} with its "
                f"padding, over the budget of {budget}; rows times the longest counts"
            )
    for one, two in itertools.pairwise(batches):
        could = (len(one) + 1) * lengths[two[0]]
        if could <= budget:
            return (
                f"the batch of lengths {[lengths[i] for i in one]} has room for one more: "
                f"{could} is within the budget of {budget}"
            )
    return "those aren't the right batches"


@exercise(
    4,
    inputs=[
        ([2, 3, 4, 4, 6, 6, 7], 12),
        ([3, 3, 4, 4, 4, 6, 6, 7], 12),
        ([1, 1, 1, 5], 5),
        ([2, 5, 9], 9),
        ([4, 4, 4], 100),
    ],
    hint=(
        "start a new batch when (rows + 1) * new length is over the budget",
        "the newest sentence is the longest so far, so its length is the width of the whole batch",
    ),
    tell=_told_batches,
    large=lambda: (sorted(i % 40 + 1 for i in range(20_000)), 4000),
    slips={
        "the budget may be used up: a batch of exactly the budget fits": (
            lambda lengths, budget: _batched(lengths, budget - 1)
        ),
    },
)
def budget(lengths, budget):
    return _batched(lengths, budget)


def _clean(text):
    return text.strip().lower()


def _leaked(key, count=None):
    def leaked(train, test):
        known = {key(pair) for pair in train}
        found = [key(pair) for pair in test if key(pair) in known]
        return len(set(found) if count == "different" else found)

    return leaked


PAIRS = [("Ein Hund.", "A dog."), ("Zwei Katzen.", "Two cats."), ("Ein Mann.", "A man.")]
TESTS = [
    ("ein hund. ", "One dog."),  # another translation, other case, a space: still a leak
    ("Ein Hund.", "A dog."),
    ("Eine Frau.", "A dog."),  # only the target is known
]


def _many_pairs(n=5_000):
    return [(f"Satz {i}", "x") for i in range(n)], [(f"satz {2 * i}", "x") for i in range(n)]


@exercise(
    5,
    inputs=[
        (PAIRS, TESTS),
        (PAIRS, [("Ein Hund.", "One dog.")]),
        ([(" Ein Hund.", "A dog.")], TESTS[1:]),
        (PAIRS, [("Ein Hund.", "A dog.")] * 2),
        ([*PAIRS, ("ein hund.", "A dog.")], [("zwei katzen.", "x"), ("zweikatzen.", "Two cats.")]),
        (PAIRS, []),
        (PAIRS, [("Hund.", "Dog."), ("Ein Mann", "A man.")]),  # parts of known sources
    ],
    hint=(
        "make a set of the cleaned training sources",
        "clean both sides in the same way: source.lower().strip()",
    ),
    wrong="that is not the number of test pairs whose source is in training",
    large=_many_pairs,
    shrinks=False,
    slips={
        "a shared target isn't a leaked source; compare only the sources": lambda train, test: len(
            [
                pair
                for pair in test
                if _clean(pair[0]) in {_clean(s) for s, _ in train}
                or pair[1] in {t for _, t in train}
            ]
        ),
        "count the test pairs, not the different sources among them": (
            _leaked(lambda pair: _clean(pair[0]), "different")
        ),
        "you compare whole pairs; another translation of the source leaks too": [
            _leaked(lambda pair: pair),
            _leaked(lambda pair: (_clean(pair[0]), _clean(pair[1]))),
        ],
        "'ein hund. ' and 'Ein Hund.' are the same source: lower-case and strip both": [
            _leaked(lambda pair: pair[0]),
            _leaked(lambda pair: pair[0].lower()),
            _leaked(lambda pair: pair[0].strip()),
        ],
        "the whole source must match: a part of it is a different sentence": (
            lambda train, test: sum(
                any(_clean(source) in _clean(known) for known, _ in train) for source, _ in test
            )
        ),
        "spaces inside a text count; only those at the ends do not": (
            _leaked(lambda pair: pair[0].lower().replace(" ", ""))
        ),
        "clean both sides, the training sources and those of the test": [
            lambda train, test: sum(_clean(s) in {x for x, _ in train} for s, _ in test),
            lambda train, test: sum(s in {_clean(x) for x, _ in train} for s, _ in test),
        ],
    },
)
def leak(train, test):
    return _leaked(lambda pair: _clean(pair[0]))(train, test)


@judged(
    7,
    hint=(
        "look in the figure for points to the left of the library's pool of 30, and below it",
        "'to the left' means that fewer batch-mates meet again, and 'below' means less padding",
        "a cruder order mixes more anyway, so it can afford a larger pool than 30",
    ),
    example=("longer side", 100, 0.06),
)
def better_bargain(order, pool, at_512):
    tried = {
        (r["settings"]["order"], r["settings"]["pool"]): r
        for r in recorded("batches", part="padding", fill="tokens")
    }
    orders, pools = (list(dict.fromkeys(key[i] for key in tried)) for i in (0, 1))
    expect(order in orders, f"`order` is one of {', '.join(orders)}; yours is {order!r:.40}")
    expect(pool in pools, f"`pool` is one of {', '.join(map(str, pools))}; yours is {pool!r:.20}")
    advice, found = tried["the library's", 30], tried[order, pool]
    padding = [sum(r["padding"]) / len(r["padding"]) for r in (advice, found)]
    told = (
        f"{padding[1]:.1%} padding with your order, and {found['again']:.1%} of the batch-mates "
        f"meet again; with the advice, {padding[0]:.1%} and {advice['again']:.1%}"
    )
    expect(
        found["again"] <= advice["again"],
        f"more sentences meet the same batch-mates again: {told}",
    )
    expect(padding[1] < padding[0], f"it pads more: {told}")
    expect_share(at_512)
    (small,) = recorded("batches", part="sizes", order=order, pool=pool, budget=512)
    right = sum(small["padding"]) / len(small["padding"])
    expect(
        abs(at_512 - right) <= 0.01,
        f"the setting is right, but in batches of 512 tokens its padding isn't {at_512:.1%}, it's "
        f"{'less' if at_512 > right else 'more'}: how much padding does your order leave, however "
        "few sentences there are in a batch?",
    )
    return f"{told}; in batches of 512 tokens, your order leaves {right:.1%}."


def _longest(lengths, size, start=0, share=lambda all_below: 1 - all_below):
    """The expected longest of `size` lengths, as the sum of P(longest > k) over k."""
    below = [sum(length <= k for length in lengths) / len(lengths)
             for k in range(start, start + max(lengths))]
    return sum(share(one**size) for one in below)


def _padded(width):
    """The share of padding, from the expected width of a batch."""
    return lambda lengths, size: 1 - sum(lengths) / len(lengths) / width(lengths, size)


def _put_aside(lengths, size):
    orders = math.comb(len(lengths), size)
    return sum(1 - math.comb(sum(length <= k for length in lengths), size) / orders
               for k in range(max(lengths)))


@exercise(
    8,
    inputs=[
        ([3, 8, 5, 4], 2), ([3, 8, 5, 4], 4), ([2, 9, 2], 3), ([7, 1, 1, 1, 1], 5), ([5, 6], 1),
        ([4, 4, 4], 3), ([1, 30, 12, 12, 5, 9], 6), ([6, 2, 3], 20),
    ],
    hint=(
        "the width of a batch is the length of its longest sentence; when is that at most k?",
        "only if all of them are: with the share F(k) of lengths up to k, that's F(k) ** size",
        "an expected value is the sum of P(longest > k) over k = 0, 1, 2, ...; on average, the "
        "real tokens in a row are as many as the mean length",
    ),
    wrong="that isn't the share of padding",
    shape="return one number",
    tolerance=1e-6,
    slips={
        "the longest sentence of all isn't in every batch: take the expected longest of `size`": (
            _padded(lambda lengths, size: max(lengths))
        ),
        "that is the share of real tokens; padding is the rest": (
            lambda lengths, size: 1 - _padded(_longest)(lengths, size)
        ),
        "F(k) ** size is the chance that all are at most k; longest > k is everything else, so 1 "
        "minus that": (
            _padded(lambda lengths, size: _longest(lengths, size, share=lambda p: p))
        ),
        "(1 - F(k)) ** size is the chance that all are longer than k: that gives the shortest": (
            _padded(lambda lengths, size: sum(
                (sum(length > k for length in lengths) / len(lengths)) ** size
                for k in range(max(lengths))
            ))
        ),
        "k starts at 0: every sentence is longer than 0 tokens": (
            _padded(lambda lengths, size: _longest(lengths, size, start=1))
        ),
        "`size` must appear: the longest is at most k only if all of them are": (
            _padded(lambda lengths, size: _longest(lengths, 1))
        ),
        "each sentence is drawn from all of them, whatever came before, so take F(k) ** size": (
            _padded(_put_aside)
        ),
        "that is the padding of a row in tokens; divide by the width": (
            lambda lengths, size: _longest(lengths, size) - sum(lengths) / len(lengths)
        ),
        "you divided by the real tokens; a share of the batch divides by the width": (
            lambda lengths, size: _longest(lengths, size) * len(lengths) / sum(lengths) - 1
        ),
    },
)
def random_padding(lengths, size):
    width = _longest(lengths, size)
    return 1 - sum(lengths) / len(lengths) / width
