"""Answers to the exercises of chapter 17, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
import math

def penalty(words, reference):
    return min(1.0, math.exp(1 - reference / words))

answer = (penalty(8, 10), penalty(12, 10))
""",
        right=True,
        mistake="The formula as a function, for both lengths.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
penalty_for_8 = 0.779
penalty_for_12 = 1
answer = (penalty_for_8, penalty_for_12)
""",
        right=True,
        mistake="Rounded to three digits.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
answer = (8 / 10, 1.0)
""",
        right=False,
        mistake="Takes the ratio of the lengths, without the exponential.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
import math

answer = (math.exp(1 - 10 / 8), math.exp(1 - 10 / 12))
""",
        right=False,
        mistake="Rewards long translations: the penalty for 12 words is above 1.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
import math

answer = (math.exp(1 - 8 / 10) ** -1, 1.0)
""",
        right=False,
        mistake="Divides by the reference's length in the exponent.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
import math

answer = (1.0, math.exp(1 - 12 / 10))
""",
        right=False,
        mistake="Punishes translations that are too long.",
    ),
    Answer(
        exercise="evaluation.1",
        check="brevity",
        code="""
import math

answer = (math.exp(1 - 10 / 8), math.exp(1 - 12 / 10))
""",
        right=False,
        mistake="Punishes both directions alike.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
def clipped_matches(hypothesis, reference, n):
    left = [tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)]
    found = 0
    for i in range(len(hypothesis) - n + 1):
        gram = tuple(hypothesis[i : i + n])
        if gram in left:
            left.remove(gram)
            found += 1
    return found

answer = clipped_matches
""",
        right=True,
        mistake="Strikes out of a copied list every n-gram that is used.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def grams(words, n):
    return Counter(zip(*(words[i:] for i in range(n))))

answer = lambda hypothesis, reference, n: (grams(hypothesis, n) & grams(reference, n)).total()
""",
        right=True,
        mistake="The intersection of two counters of zipped slices.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
def clipped_matches(hypothesis, reference, n):
    ref = {tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)}
    return sum(tuple(hypothesis[i : i + n]) in ref for i in range(len(hypothesis) - n + 1))

answer = clipped_matches
""",
        right=False,
        mistake="Does not clip: a repeated word counts each time.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
def clipped_matches(hypothesis, reference, n):
    a, b = ({tuple(x[i : i + n]) for i in range(len(x) - n + 1)} for x in (hypothesis, reference))
    return len(a & b)

answer = clipped_matches
""",
        right=False,
        mistake="Clips every n-gram to one.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def clipped_matches(hypothesis, reference, n):
    a, b = (
        Counter(tuple(x[i : i + n]) for i in range(len(x) - n)) for x in (hypothesis, reference)
    )
    return sum((a & b).values())

answer = clipped_matches
""",
        right=False,
        mistake="Leaves out the last n-gram of each list.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def clipped_matches(hypothesis, reference, n):
    a, b = (
        Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1))
        for x in (hypothesis, reference)
    )
    return sum((a & b).values()) / max(1, sum(a.values()))

answer = clipped_matches
""",
        right=False,
        mistake="Returns the precision.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
def clipped_matches(hypothesis, reference, n):
    length = min(len(hypothesis), len(reference))
    return sum(hypothesis[i : i + n] == reference[i : i + n] for i in range(length - n + 1))

answer = clipped_matches
""",
        right=False,
        mistake="Counts n-grams only where they stand at the same place.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def clipped_matches(hypothesis, reference, n):
    a, b = (
        Counter("".join(x[i : i + n]) for i in range(len(x) - n + 1))
        for x in (hypothesis, reference)
    )
    return sum((a & b).values())

answer = clipped_matches
""",
        right=False,
        mistake="Joins the words of an n-gram without a space, so unlike ones become equal.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def clipped_matches(hypothesis, reference, n):
    a, b = (
        Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1))
        for x in (hypothesis, reference)
    )
    return sum(max(a[g], b[g]) for g in a if g in b)

answer = clipped_matches
""",
        right=False,
        mistake="Clips by the larger of the two counts.",
    ),
    Answer(
        exercise="evaluation.2",
        check="clip",
        code="""
from collections import Counter

def clipped_matches(hypothesis, reference, n):
    total = 0
    for m in range(1, n + 1):
        a, b = (
            Counter(tuple(x[i : i + m]) for i in range(len(x) - m + 1))
            for x in (hypothesis, reference)
        )
        total += sum((a & b).values())
    return total

answer = clipped_matches
""",
        right=False,
        mistake="Counts the n-grams of all sizes up to n.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from functools import lru_cache

def distance(a, b):
    @lru_cache(None)
    def d(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return d(len(a), len(b))

def word_error_rate(hypotheses, references):
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references)]
    return sum(distance(h, r) for h, r in pairs) / sum(len(r) for _, r in pairs)

answer = word_error_rate
""",
        right=True,
        mistake="With a recursive distance of one's own.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
import numpy as np

from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    rates, lengths = [], []
    for hypothesis, reference in zip(hypotheses, references):
        a, b = hypothesis.split(), reference.split()
        rates.append(evaluation.edit_distance(a, b) / len(b))
        lengths.append(len(b))
    return float(np.average(rates, weights=lengths))

answer = word_error_rate
""",
        right=True,
        mistake="The mean of sentence rates, weighted by the length of the references.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    rates = []
    for hypothesis, reference in zip(hypotheses, references):
        a, b = hypothesis.split(), reference.split()
        rates.append(evaluation.edit_distance(a, b) / len(b))
    return sum(rates) / len(rates)

answer = word_error_rate
""",
        right=False,
        mistake="Divides by the reference now, but still takes the mean over sentences.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    errors = words = 0
    for hypothesis, reference in zip(hypotheses, references):
        a, b = hypothesis.split(), reference.split()
        errors += evaluation.edit_distance(a, b)
        words += len(a)
    return errors / words

answer = word_error_rate
""",
        right=False,
        mistake="Sums over the corpus, but divides by the hypotheses.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    pairs = [(h.split(), r.split()) for h, r in zip(hypotheses, references)]
    errors = sum(evaluation.edit_distance(h, r) for h, r in pairs)
    return 100 * errors / sum(len(r) for _, r in pairs)

answer = word_error_rate
""",
        right=False,
        mistake="Gives percent instead of a fraction.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    a = " ".join(hypotheses).split()
    b = " ".join(references).split()
    return evaluation.edit_distance(a, b) / len(b)

answer = word_error_rate
""",
        right=False,
        mistake="Joins the corpus into one text, so words of other sentences can match.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    errors = words = 0
    for hypothesis, reference in zip(hypotheses, references):
        a, b = hypothesis.split(), reference.split()
        errors += min(evaluation.edit_distance(a, b), len(b))
        words += len(b)
    return errors / words

answer = word_error_rate
""",
        right=False,
        mistake="Caps each sentence's errors at its length.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    pairs = list(zip(hypotheses, references))
    errors = sum(evaluation.edit_distance(h, r) for h, r in pairs)
    return errors / sum(len(r.split()) for r in references)

answer = word_error_rate
""",
        right=False,
        mistake="Counts edits of characters and divides by words.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    errors = words = 0
    for hypothesis, reference in zip(hypotheses, references):
        a, b = hypothesis.split(), reference.split()
        errors += evaluation.edit_distance(a, b)
        words += max(len(a), len(b))
    return errors / words

answer = word_error_rate
""",
        right=False,
        mistake="Divides by the longer of the two sentences.",
    ),
    Answer(
        exercise="evaluation.3",
        check="wer",
        code="""
from transformer_lib import evaluation

def word_error_rate(hypotheses, references):
    pairs = [(h.lower().split(), r.lower().split()) for h, r in zip(hypotheses, references)]
    errors = sum(evaluation.edit_distance(h, r) for h, r in pairs)
    return errors / sum(len(r) for _, r in pairs)

answer = word_error_rate
""",
        right=False,
        mistake="Lowercases before it compares, which nobody asked for.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rows = np.random.default_rng(seed).integers(0, len(a), (draws, len(a)))
    return (np.asarray(a) - np.asarray(b))[rows].mean(axis=1)

answer = paired_differences
""",
        right=True,
        mistake="All rows of all draws at once, on the differences of the sentences.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    first, second = np.random.default_rng(seed), np.random.default_rng(seed)
    n, out = len(a), []
    for _ in range(draws):
        mean_a = a[first.integers(0, n, n)].mean()
        mean_b = b[second.integers(0, n, n)].mean()
        out.append(mean_a - mean_b)
    return np.array(out)

answer = paired_differences
""",
        right=True,
        mistake="Two generators with one seed, so both systems get the same rows.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a), len(a))
    return np.array([a[rows].mean() - b[rows].mean() for _ in range(draws)])

answer = paired_differences
""",
        right=False,
        mistake="Draws the rows once, so all differences are the same.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(draws):
        rows = rng.permutation(len(a))
        differences.append(a[rows].mean() - b[rows].mean())
    return np.array(differences)

answer = paired_differences
""",
        right=False,
        mistake="Permutes the sentences instead of drawing them with replacement.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (draws, len(a)))
    return (signs * (a - b)).mean(axis=1)

answer = paired_differences
""",
        right=False,
        mistake="Exchanges the systems at random, which is another test: its mean is near 0.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    differences = []
    for _ in range(draws):
        rows = rng.integers(0, len(a), len(a))
        differences.append(b[rows].mean() - a[rows].mean())
    return np.array(differences)

answer = paired_differences
""",
        right=False,
        mistake="The difference has the wrong sign.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    differences = []
    for _ in range(draws):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, len(a), len(a))
        differences.append((a[rows] - b[rows]).mean())
    return np.array(differences)

answer = paired_differences
""",
        right=False,
        mistake="Makes the generator anew in each draw, so it always draws the same.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a), draws)
    return a[rows] - b[rows]

answer = paired_differences
""",
        right=False,
        mistake="Draws single sentences, so the spread is that of one sentence.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    a, b = np.sort(a), np.sort(b)
    rows = rng.integers(0, len(a), (draws, len(a)))
    return (a[rows] - b[rows]).mean(1)

answer = paired_differences
""",
        right=False,
        mistake="Sorts the scores first, so the pairs are torn apart.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a) - 1, (draws, len(a)))
    return (a[rows] - b[rows]).mean(1)

answer = paired_differences
""",
        right=False,
        mistake="The last sentence can never be drawn.",
    ),
    Answer(
        exercise="evaluation.4",
        check="paired",
        code="""
import numpy as np

def paired_differences(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a), (draws, len(a)))
    return (a[rows] - b[rows]).sum(1)

answer = paired_differences
""",
        right=False,
        mistake="Sums where it should take the mean.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
verdict = {1: False, 2: True, 3: False, 4: False, 5: True, 6: False}
fair = {number for number, is_fair in verdict.items() if is_fair}
answer = fair
""",
        right=True,
        mistake="A set by comprehension.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
answer = frozenset([5, 2])
""",
        right=True,
        mistake="A frozen set.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
fair = {2}
answer = fair
""",
        right=False,
        mistake="Overlooks that whole texts can be compared whatever the pieces are.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
fair = {2, 4, 5}
answer = fair
""",
        right=False,
        mistake="Thinks that one test set makes perplexities comparable.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
fair = {2, 5, 6}
answer = fair
""",
        right=False,
        mistake="Does not mind that a checkpoint was chosen on the test set.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
fair = {2, 3, 5}
answer = fair
""",
        right=False,
        mistake="Thinks that the signature alone makes a score comparable.",
    ),
    Answer(
        exercise="evaluation.5",
        check="fair",
        code="""
fair = {1, 3, 4, 6}
answer = fair
""",
        right=False,
        mistake="Names the unfair ones.",
    ),
]
