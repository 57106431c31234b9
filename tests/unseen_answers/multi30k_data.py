"""Answers to the exercises of chapter 14, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
from fractions import Fraction

one_batch = Fraction(12, 32)
two_batches = Fraction(4, 24)
answer = (one_batch, two_batches)
""",
        right=True,
        mistake="Exact fractions.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
def share(batches):
    size = sum(len(b) * max(b) for b in batches)
    return 1 - sum(map(sum, batches)) / size

answer = (share([[3, 8, 5, 4]]), share([[3, 4], [5, 8]]))
""",
        right=True,
        mistake="Computed from the lengths with a small function.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
one_batch = 20 / 32
two_batches = 20 / 24
answer = (one_batch, two_batches)
""",
        right=False,
        mistake="Gives the share of real tokens instead of padding.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
one_batch = 12 / 32
two_batches = (1 / 8 + 3 / 16) / 2
answer = (one_batch, two_batches)
""",
        right=False,
        mistake="Takes the mean of the two batches' shares, though they are of unlike size.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
one_batch = 12 / 20
two_batches = 4 / 20
answer = (one_batch, two_batches)
""",
        right=False,
        mistake="Divides the padding by the real tokens.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
one_batch = 0.375
two_batches = 6 / 26
answer = (one_batch, two_batches)
""",
        right=False,
        mistake="Pairs the sentences in the order given, which is not the best pairing.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
answer = (12, 4)
""",
        right=False,
        mistake="Counts the padding and gives no share.",
    ),
    Answer(
        exercise="multi30k_data.1",
        check="padding",
        code="""
answer = (12 / 32, 4 / 32)
""",
        right=False,
        mistake="The second padding is divided by the size of the one large batch.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
def covered(train_words, test_words, n):
    counts = {}
    for w in train_words:
        counts[w] = counts.get(w, 0) + 1
    known = sorted(counts, key=lambda w: -counts[w])[:n]
    hits = [w in known for w in test_words]
    return sum(hits) / len(hits)

answer = covered
""",
        right=True,
        mistake="Counts by hand and sorts by falling count.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
import numpy as np

def covered(train_words, test_words, n):
    words, counts = np.unique(np.array(train_words), return_counts=True)
    known = words[np.argsort(-counts, kind="stable")][:n]
    return float(np.isin(np.array(test_words), known).mean())

answer = covered
""",
        right=True,
        mistake="Sorts with numpy after counting with unique.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
from collections import Counter

def covered(train_words, test_words, n):
    known = {w for w, _ in Counter(train_words).most_common(n)}
    kinds = set(test_words)
    return len(kinds & known) / len(kinds)

answer = covered
""",
        right=False,
        mistake="Counts distinct test words instead of running ones.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
from collections import Counter

def covered(train_words, test_words, n):
    known = Counter(train_words).most_common(n)
    return sum(w in known for w in test_words) / len(test_words)

answer = covered
""",
        right=False,
        mistake="Compares words with pairs of word and count, so nothing is ever known.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
def covered(train_words, test_words, n):
    known = list(dict.fromkeys(train_words))[:n]
    return sum(w in known for w in test_words) / len(test_words)

answer = covered
""",
        right=False,
        mistake="Takes the first n different training words, not the most frequent.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
from collections import Counter

def covered(train_words, test_words, n):
    counts = Counter(train_words)
    return sum(counts[w] >= n for w in test_words) / len(test_words)

answer = covered
""",
        right=False,
        mistake="Reads n as the least count a word must have.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
from collections import Counter

def covered(train_words, test_words, n):
    counts = Counter(train_words)
    known = set(sorted(counts, key=counts.get)[:n])
    return sum(w in known for w in test_words) / len(test_words)

answer = covered
""",
        right=False,
        mistake="Sorts by rising count, so the rarest words are kept.",
    ),
    Answer(
        exercise="multi30k_data.2",
        check="coverage",
        code="""
from collections import Counter

def covered(train_words, test_words, n):
    common = Counter(train_words).most_common(n)
    known = {w: c for w, c in common if w in set(test_words)}
    return sum(known.values()) / len(train_words)

answer = covered
""",
        right=False,
        mistake="Measures how much of the training text is covered.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    ids = ids[:limit]
    ids[-1] = 2
    return ids

answer = shorten
""",
        right=True,
        mistake="Copies by slicing and overwrites the last id, which is the end mark in any case.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    body = [token for token in ids[:-1]]
    return [*body[: limit - 1], ids[-1]]

answer = shorten
""",
        right=True,
        mistake="Takes everything but the end mark, cuts, and puts the end mark back.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    return ids[: limit - 1] + [2]

answer = shorten
""",
        right=False,
        mistake="Adds a second end mark to sentences that were short enough.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    if len(ids) <= limit:
        return ids
    return ids[:limit] + [2]

answer = shorten
""",
        right=False,
        mistake="Puts the end mark behind the limit, so a cut sentence is one too long.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    if len(ids) > limit:
        del ids[limit:]
        ids[-1] = 2
    return ids

answer = shorten
""",
        right=False,
        mistake="Cuts the list that it was given.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    return ids[-limit:]

answer = shorten
""",
        right=False,
        mistake="Keeps the end of the sentence and loses its beginning.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    if len(ids) <= limit:
        return ids
    return ids[: limit - 1] + [0]

answer = shorten
""",
        right=False,
        mistake="Ends with padding instead of the end mark.",
    ),
    Answer(
        exercise="multi30k_data.3",
        check="shorten",
        code="""
def shorten(ids, limit):
    if len(ids) <= limit + 1:
        return ids
    return ids[: limit - 1] + [2]

answer = shorten
""",
        right=False,
        mistake="Leaves sentences alone that are one token too long.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget, at=0):
    if at >= len(lengths):
        return []
    end = at + 1
    while end < len(lengths) and (end + 1 - at) * lengths[end] <= budget:
        end += 1
    return [list(range(at, end))] + budget_batches(lengths, budget, end)

answer = budget_batches
""",
        right=True,
        mistake="Recursion: one batch, then the rest.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    def grow():
        batch = []
        for number, width in enumerate(lengths):
            if batch and width * (len(batch) + 1) > budget:
                yield batch
                batch = []
            batch = [*batch, number]
        if batch:
            yield batch

    return list(grow())

answer = budget_batches
""",
        right=True,
        mistake="A generator inside, made into a list.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for i, n in enumerate(lengths):
        if batch and n * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches

answer = budget_batches
""",
        right=False,
        mistake="The last batch is never appended.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for i, n in enumerate(lengths):
        if batch and n * (len(batch) + 1) >= budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches + [batch]

answer = budget_batches
""",
        right=False,
        mistake="A batch that fills the budget exactly is refused.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch, total = [], [], 0
    for i, n in enumerate(lengths):
        if batch and total + n > budget:
            batches.append(batch)
            batch, total = [], 0
        batch.append(i)
        total += n
    batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake="Adds up the real tokens and forgets the padding.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for i in range(len(lengths)):
        if batch and lengths[batch[-1]] * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake=(
            "Multiplies by the width before the new sentence came, so wider ones break the budget."
        ),
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for n in lengths:
        if batch and n * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(n)
    batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake="Returns lengths instead of indices.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for i, n in enumerate(lengths):
        if batch and n * (len(batch) + 1) > budget:
            batches.append(batch)
            batch.clear()
        batch.append(i)
    batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake="Clears the one list that it has appended, so all batches end as the same list.",
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch = [], []
    for i, n in enumerate(lengths):
        batch.append(i)
        if n * len(batch) > budget:
            batches.append(batch)
            batch = []
    if batch:
        batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake=(
            "Tests the size after adding, so each batch but the last is one sentence too large."
        ),
    ),
    Answer(
        exercise="multi30k_data.4",
        check="budget",
        code="""
def budget_batches(lengths, budget):
    batches, batch, i = [], [], 0
    while i < len(lengths):
        if lengths[i] * (len(batch) + 1) <= budget:
            batch.append(i)
            i += 1
        elif batch not in batches:
            batches.append(batch)
    return batches

answer = budget_batches
""",
        right=False,
        mistake="Never moves on when a batch is full, so it hangs.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    clean = lambda pair: pair[0].strip().lower()
    seen = frozenset(map(clean, train))
    return len(list(filter(seen.__contains__, map(clean, test))))

answer = leaked
""",
        right=True,
        mistake="Functional style, with map and filter.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    n = 0
    for a, _ in test:
        for b, _ in train:
            if a.upper().strip() == b.upper().strip():
                n += 1
                break
    return n

answer = leaked
""",
        right=True,
        mistake="Two plain loops over all pairs.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = {s.strip().lower() for s, _ in train}
    return len({s.strip().lower() for s, _ in test} & seen)

answer = leaked
""",
        right=False,
        mistake="Counts a source that stands twice in the test set once.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    clean = lambda pair: tuple(s.strip().lower() for s in pair)
    seen = {clean(pair) for pair in train}
    return sum(clean(pair) in seen for pair in test)

answer = leaked
""",
        right=False,
        mistake="Compares whole pairs, so another translation of the same source is not seen.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = {s.strip() for s, _ in train}
    return sum(s.strip().lower() in seen for s, _ in test)

answer = leaked
""",
        right=False,
        mistake="Lowers the test side only.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = {s.replace(" ", "").lower() for s, _ in train}
    return sum(s.replace(" ", "").lower() in seen for s, _ in test)

answer = leaked
""",
        right=False,
        mistake="Removes all spaces, those between words as well.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = [s.strip().lower() for s, _ in train]
    return sum(any(s.strip().lower() in t for t in seen) for s, _ in test)

answer = leaked
""",
        right=False,
        mistake="Looks for the source inside longer sources, too.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    asked = {s.strip().lower() for s, _ in test}
    return sum(s.strip().lower() in asked for s, _ in train)

answer = leaked
""",
        right=False,
        mistake="Counts the training pairs that are found in the test set.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = {t.strip().lower() for _, t in train}
    return sum(t.strip().lower() in seen for _, t in test)

answer = leaked
""",
        right=False,
        mistake="Compares the targets.",
    ),
    Answer(
        exercise="multi30k_data.5",
        check="leak",
        code="""
def leaked(train, test):
    seen = {s.strip().lower() for s, _ in train}
    return sum(s.strip().lower() in seen for s, _ in test) / len(test)

answer = leaked
""",
        right=False,
        mistake="Returns a share instead of a count.",
    ),
]
