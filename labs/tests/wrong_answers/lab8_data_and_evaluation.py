"""Planned wrong answers of lab 8: for each task, what a student may hand in and what it earns.

WRONG maps the id of an answer cell to (description, source of the whole cell, expected points), the
points of the visible check, the hidden tests and, if there are any, the hidden edge cases.
"""

PARTIAL = (
    "One answer of each task passes the visible check and fails the hidden tests: white space other "
    "than blanks, a division by no words, a sentence beyond the budget, sentences without pairs, the "
    "ends of the interval, checkpoints that have only one of the two scores."
)

WRONG = {
    "leak": [
        (
            "compares whole pairs",
            """# Task 1: find the leak
def leaked(train, test):
    known = {(s.lower(), t.lower()) for s, t in train}
    return sum((" ".join(s.lower().split()), t.lower()) in known for s, t in test)
""",
            (0, 0),
        ),
        (
            "looks for the source inside longer ones",
            """# Task 1: find the leak
def leaked(train, test):
    known = [" ".join(s.lower().split())[:-2] for s, _ in train]
    return sum(any(" ".join(s.lower().split()).startswith(k) for k in known) for s, _ in test)
""",
            (0, 0),
        ),
        (
            "replaces only double spaces",
            """# Task 1: find the leak
def leaked(train, test):
    known = {s.lower().replace("  ", " ") for s, _ in train}
    return sum(s.lower().replace("  ", " ") in known for s, _ in test)
""",
            (1, 0),
        ),
    ],
    "coverage": [
        (
            "counts different words",
            """# Task 2: coverage of a vocabulary
def coverage(train_texts, other_texts, size):
    counts = Counter(word for text in train_texts for word in text.split())
    known = {word for word, _ in counts.most_common(size)}
    words = {word for text in other_texts for word in text.split()}
    return len(words & known) / max(len(words), 1)
""",
            (0, 0),
        ),
        (
            "every training word is known",
            """# Task 2: coverage of a vocabulary
def coverage(train_texts, other_texts, size):
    known = {word for text in train_texts for word in text.split()}
    words = [word for text in other_texts for word in text.split()]
    return sum(word in known for word in words) / max(len(words), 1)
""",
            (0, 0),
        ),
        (
            "divides by no words",
            """# Task 2: coverage of a vocabulary
def coverage(train_texts, other_texts, size):
    counts = Counter(word for text in train_texts for word in text.split())
    known = {word for word, _ in counts.most_common(size)}
    words = [word for text in other_texts for word in text.split()]
    return sum(word in known for word in words) / len(words)
""",
            (1, 0),
        ),
    ],
    "budget": [
        (
            "the last batch is lost",
            """# Task 3: batches with a budget
def batches(lengths, budget):
    found, current = [], []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if current and (len(current) + 1) * lengths[index] > budget:
            found.append(current)
            current = []
        current = [*current, index]
    return found
""",
            (0, 0, 0),
        ),
        (
            "padding isn't counted",
            """# Task 3: batches with a budget
def batches(lengths, budget):
    found, current = [], []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if current and sum(lengths[i] for i in current) + lengths[index] > budget:
            found.append(current)
            current = []
        current = [*current, index]
    return found + [current]
""",
            (0, 0, 0),
        ),
        (
            "an empty batch before a sentence that's too long",
            """# Task 3: batches with a budget
def batches(lengths, budget):
    found, current = [], []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if (len(current) + 1) * lengths[index] > budget:
            found.append(current)
            current = []
        current = [*current, index]
    return found + [current]
""",
            (1, 1, 0),
        ),
    ],
    "score": [
        (
            "the colleague's version",
            """# Task 4: find the bugs
def score(hypotheses, references):
    scores = []
    for hypothesis, reference in zip(hypotheses, references):
        h, r = hypothesis.split(), reference.split()
        precisions = []
        for n in (1, 2):
            mine = [tuple(h[i : i + n]) for i in range(len(h) - n + 1)]
            theirs = [tuple(r[i : i + n]) for i in range(len(r) - n + 1)]
            precisions.append(sum(g in theirs for g in mine) / max(len(mine), 1))
        penalty = min(1, math.exp(1 - len(h) / len(r)))
        scores.append(penalty * math.sqrt(precisions[0] * precisions[1]))
    return sum(scores) / len(scores)
""",
            (0, 0, 0),
        ),
        (
            "clipped, but still a mean of sentences",
            """# Task 4: find the bugs
def score(hypotheses, references):
    scores = []
    for hypothesis, reference in zip(hypotheses, references):
        h, r = hypothesis.split(), reference.split()
        p = []
        for n in (1, 2):
            a = Counter(tuple(h[i : i + n]) for i in range(len(h) - n + 1))
            b = Counter(tuple(r[i : i + n]) for i in range(len(r) - n + 1))
            p.append(sum((a & b).values()) / max(sum(a.values()), 1))
        scores.append(min(1, math.exp(1 - len(r) / len(h))) * math.sqrt(p[0] * p[1]))
    return sum(scores) / len(scores)
""",
            (0, 0, 0),
        ),
        (
            "no case for an empty hypothesis",
            """# Task 4: find the bugs
def score(hypotheses, references):
    hits, totals, c, r = [0, 0], [0, 0], 0, 0
    for hypothesis, reference in zip(hypotheses, references):
        mine, theirs = hypothesis.split(), reference.split()
        c, r = c + len(mine), r + len(theirs)
        for n in (1, 2):
            a = Counter(tuple(mine[i : i + n]) for i in range(len(mine) - n + 1))
            b = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
            hits[n - 1] += sum((a & b).values())
            totals[n - 1] += sum(a.values())
    p = hits[0] / totals[0] * hits[1] / totals[1]
    return min(1.0, math.exp(1 - r / c)) * math.sqrt(p)
""",
            (1, 1, 0),
        ),
    ],
    "paired": [
        (
            "a separate draw for each system",
            """# Task 5: two systems, one draw
def paired(a, b, draws, rng):
    n = len(a)

    def mean(x):
        return sum(x[rng.randrange(n)] for _ in range(n)) / n

    drawn = sorted(mean(a) - mean(b) for _ in range(draws))
    return (sum(a) - sum(b)) / n, (drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1])
""",
            (0, 0, 0),
        ),
        (
            "single sentences are drawn",
            """# Task 5: two systems, one draw
def paired(a, b, draws, rng):
    n = len(a)
    gains = [x - y for x, y in zip(a, b)]
    drawn = sorted(gains[rng.randrange(n)] for _ in range(draws))
    return sum(gains) / n, (drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1])
""",
            (0, 0, 0),
        ),
        (
            "an interval of 90 %",
            """# Task 5: two systems, one draw
def paired(a, b, draws, rng):
    n = len(a)
    gains = [x - y for x, y in zip(a, b)]
    drawn = sorted(sum(gains[rng.randrange(n)] for _ in range(n)) / n for _ in range(draws))
    return sum(gains) / n, (drawn[int(0.05 * draws)], drawn[int(0.95 * draws) - 1])
""",
            (1, 0, 0),
        ),
    ],
    "choice": [
        (
            "chooses on the test set",
            """# Task 6: choose and report
def choose(validation, test):
    best = max(test, key=test.get)
    return best, test[best], 0.0
""",
            (0, 0, 0),
        ),
        (
            "reports the validation score",
            """# Task 6: choose and report
def choose(validation, test):
    best = max(validation, key=validation.get)
    return best, validation[best], max(test.values()) - validation[best]
""",
            (0, 0, 0),
        ),
        (
            "takes every checkpoint, whatever scores it has",
            """# Task 6: choose and report
def choose(validation, test):
    if not validation:
        raise ValueError("nothing to choose from")
    best = max(sorted(validation), key=validation.get)
    return best, test[best], max(test.values()) - test[best]
""",
            (1, 1, 0),
        ),
    ],
}
