"""Checks for chapter 17, evaluation and error analysis."""

import math
from collections import Counter

import numpy as np

from exercises.checks import Part, exercise, expect, expect_shape, judged, values
from transformer_lib.evaluation import edit_distance, score, sentence_scores

brevity = values(
    1,
    "brevity",
    hint=(
        "put r = 10 and c into the formula, and don't forget the minimum",
        "the penalty is exp(1 - r / c) where c is below r",
        "for 12 words against 10, there's nothing to penalise",
    ),
    for_8=Part(
        math.exp(1 - 10 / 8),
        "the penalty for 8 words is not right",
        {
            "0.8 is the ratio of the lengths itself; the penalty is e to the power of 1 - r/c": 0.8,
            "the exponent is 1 - r / c; you divide by r": math.exp(-2 / 10),
            "r and c are swapped: r is the length of the references": math.exp(1 - 8 / 10),
            "8 words are fewer than 10: here there is a penalty, below 1": lambda given: given >= 1,
        },
        tolerance=1e-2,
    ),
    for_12=Part(
        1.0,
        "the penalty for 12 words is not right",
        {
            "a penalty is never above 1: a long output loses in its precision instead": (
                lambda given: given > 1
            ),
            "12 words are more than 10, so there is no brevity to "
            "penalise": lambda given: given < 1,
        },
        tolerance=1e-2,
    ),
)


def _ngrams(words, n, ends=1):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + ends)]


def _clipped(a, b, n, ends=1):
    return sum((Counter(_ngrams(a, n, ends)) & Counter(_ngrams(b, n, ends))).values())


LEFT, RIGHT = "a b a b a c".split(), "b a b a a c a b".split()


@exercise(
    2,
    inputs=[
        (["the"] * 4, ["the", "dog"], 1), (["a", "a", "b"], ["a", "a", "c"], 1),
        (["a", "b", "c"], ["c", "b", "a"], 2), (["a", "b", "c"], ["a", "b", "c"], 3),
        *((LEFT, RIGHT, n) for n in (1, 2, 3, 4, 7)),
        (["ab", "c"], ["a", "bc"], 2), ("x y z y z".split(), "y z x y z".split(), 2),
        (["the", "an", "cat"], ["then", "can", "cat"], 1),  # words that are parts of others
    ],
    hint=(
        "count the n-grams of both sides with Counter, then take the smaller counts",
        "Counter & Counter takes the smaller count of each n-gram; sum its values",
    ),
    wrong="that isn't the right number of n-gram matches",
    large=lambda: (
        [f"w{i % 9973}" for i in range(20_000)], [f"w{i % 7919}" for i in range(20_000)], 2
    ),
    slips={
        "'the the the the' against 'the dog' is 1 match: the reference has one 'the'": (
            lambda a, b, n: sum(gram in _ngrams(b, n) for gram in _ngrams(a, n))
        ),
        "in yours, each word counts once only, but the reference has two 'a', so two of them "
        "match: use counts, not sets": lambda a, b, n: len({*_ngrams(a, n)} & {*_ngrams(b, n)}),
        "these are single words; for n = 2 count runs of two words": (
            lambda a, b, n: _clipped(a, b, 1)
        ),
        "compare whole words: 'the' is part of 'then', but not the same word": lambda a, b, n: sum(
            min(count, " ".join(b).count(" ".join(gram)))
            for gram, count in Counter(_ngrams(a, n)).items()
        ),
        "the last n-gram is left out: there are len - n + 1 of them": [
            lambda a, b, n: _clipped(a, b, n, 0),
            lambda a, b, n: _clipped(a, b, n, 0) if n > 1 else _clipped(a, b, n),
        ],
        "the last runs are shorter than n words: there are len - n + 1 n-grams": (
            lambda a, b, n: _clipped(a, b, n, n)
        ),
        "a match may be anywhere in the sentence": lambda a, b, n: sum(
            one == other for one, other in zip(_ngrams(a, n), _ngrams(b, n), strict=False)
        ),
        "you join the words of an n-gram: 'ab c' and 'a bc' are not the same": lambda a, b, n: (
            _clipped(["".join(g) for g in _ngrams(a, n)], ["".join(g) for g in _ngrams(b, n)], 1)
        ),
        "that is the precision: return the number of matches": (
            lambda a, b, n: _clipped(a, b, n) / max(len(a) - n + 1, 1)
        ),
        "you add up all lengths up to n; count only runs of n words": (
            lambda a, b, n: sum(_clipped(a, b, m) for m in range(1, n + 1))
        ),
        "you take the larger count of each n-gram; a match needs both, so take the smaller": (
            lambda a, b, n: sum((Counter(_ngrams(a, n)) | Counter(_ngrams(b, n))).values())
        ),
        "the words of an n-gram have an order: 'a b' is not 'b a'": (
            lambda a, b, n: _clipped(
                [tuple(sorted(g)) for g in _ngrams(a, n)],
                [tuple(sorted(g)) for g in _ngrams(b, n)], 1,
            )
        ),
    },
)
def clip(hypothesis, reference, n):
    return _clipped(hypothesis, reference, n)


def _sums(hypotheses, references, divide="reference"):
    edits = words = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        a, b = hypothesis.split(), reference.split()
        edits += edit_distance(a, b)
        words += {"reference": len(b), "hypothesis": len(a), "longer": max(len(a), len(b))}[divide]
    return edits, words


def _rate(divide="reference"):
    return lambda *texts: _sums(*texts, divide)[0] / _sums(*texts, divide)[1]


def _mean(divide="reference"):
    def mean(hypotheses, references):
        pairs = zip(hypotheses, references, strict=True)
        rates = [_rate(divide)([one], [other]) for one, other in pairs]
        return sum(rates) / len(rates)

    return mean


@exercise(
    3,
    inputs=[
        (["a", "a b c d e f g h"], ["b", "a b c d e f g h"]), (["a b"], ["a b c d"]),
        (["a b c d", "x"], ["a c d", "y z"]), (["the  cat"], ["the cat sat"]),
        (["x y z"], ["a"]), (["a b", "c"], ["a", "b c"]), (["The cat"], ["the cat"]),
    ],
    given=0x364C52BC,
    wrong="for these sentences, the rate isn't right",
    shrinks=False,
    slips={
        "this is the mean of the sentences' rates, so one word counts as much as eight: "
        "add up all edits, then divide by all words": [_mean(), _mean("hypothesis")],
        "these are the edits; divide them by the number of words": lambda a, b: _sums(a, b)[0],
        "you divide by the length of the hypothesis, so saying more lowers the rate: "
        "divide by the length of the reference": _rate("hypothesis"),
        "this is in per cent; return a fraction": lambda a, b: 100 * _rate()(a, b),
        "you join the sentences, so that words of one match those of another": lambda a, b: (
            _rate()([" ".join(a)], [" ".join(b)])
        ),
        "'The' and 'the' are two different words: don't convert to lower case": lambda a, b: (
            _rate()([text.lower() for text in a], [text.lower() for text in b])
        ),
        "you divide by the longer of the two; the reference's words count": _rate("longer"),
        "you compare characters, not words: split the texts into words first": lambda a, b: (
            sum(map(edit_distance, a, b)) / sum(map(len, b))
        ),
        "the rate may be above 1, when there are more edits than words: don't cap it": (
            lambda a, b: min(1.0, _rate()(a, b))
        ),
    },
    hint=(
        "what should the edits be divided by, and is a mean of rates the rate of the corpus?",
    ),
)
def wer(hypotheses, references):
    edits, words = _sums(hypotheses, references)
    return edits / words


def _paired(a, b, draws, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(a), (draws, len(a)))  # drawn once, for both
    return a[rows].mean(1) - b[rows].mean(1)


@judged(4, given=0xCB39A7B4, example=_paired,
    hint=(
        "how many sets of sentences does each round draw, and how many should it draw?",
        "draw the indices once and use them for both systems",
    ),
)
def paired(answer):
    rng = np.random.default_rng(7)
    for n, draws in ((80, 40), (50, 30)):
        a = rng.normal(50, 20, n)
        same = np.asarray(answer(a, a, draws, 0), dtype=float)
        expect_shape(same, (draws,), "return one difference per draw")
        expect(
            np.abs(same).max() < 1e-9,
            "a system differs from itself: the two systems are scored on different draws. "
            "Draw the sentences once and use them for both",
        )
    for n in (80, 200):
        a = rng.normal(50, 20, n)
        b = a + rng.normal(2, 5, n)
        found = np.asarray(answer(a, b, 2000, 1), dtype=float)
        expect(
            found.std() > 1e-9,
            "every draw gives the same difference: draw with replacement, a new sample each time",
        )
        expect(
            abs(found.mean() - (b - a).mean()) > 0.3,
            "the sign is the wrong way round: return the mean of a minus the mean of b",
        )
        expected = (a - b).std() / math.sqrt(n)
        expect(
            abs(found.mean() / n - (a - b).mean()) > 0.3,
            "you add up the scores of the drawn sentences; take their mean",
        )
        expect(
            found.std() < 1.25 * expected,
            "your differences spread too widely: draw as many sentences as there are, the same "
            "ones for both",
        )
        expect(
            found.std() > 0.8 * expected,
            "your differences spread too little: draw as many sentences as there are, with "
            "replacement, and compare the two systems on the same sentences, in their order",
        )
        expect(
            abs(found.mean() - (a - b).mean()) < 0.3,
            "your differences aren't centred on the difference between the two means",
        )
        again = np.asarray(answer(a, b, 2000, 1), dtype=float)
        expect(np.array_equal(again, found), "the same seed must give the same differences")
        other = np.asarray(answer(a, b, 2000, 2), dtype=float)
        expect(not np.array_equal(other, found), "a different seed must give different draws")
    for i in range(4):  # one sentence alone has a score: how often is it drawn?
        share = np.mean(answer(np.eye(4)[i], np.zeros(4), 2000, i))
        expect(abs(share) > 0.02, f"sentence {i} of 4 is never drawn")


@judged(5, hint=(
        "give a set of numbers from 1 to 6",
        "for each, ask whether anything but the model differs: the test set, the unit of counting,"
        " the data that chose the checkpoint",
        "perplexity is counted per token, so the tokens must be the same; a test set that chose a "
        "checkpoint is no longer a test",
    ), example={2, 5})
def fair(answer):
    expect(
        isinstance(answer, set | frozenset | list | tuple), "give a set of numbers, such as {1, 4}"
    )
    chosen = set(answer)
    unfair = {
        1: "lowercasing and different tokens change BLEU on their own",
        3: "another test set is easier or harder in itself",
        4: "perplexity is counted per token, and the two models have different tokens",
        6: "Y's checkpoint was picked by the very test set that you compare on",
    }
    for number, reason in unfair.items():
        expect(number not in chosen, f"comparison {number} is not fair: {reason}")
    expect(2 in chosen, "comparison 2 is missing: signature and test set are the same")
    expect(
        5 in chosen,
        "comparison 5 is missing: WER is counted on detokenised text, so it doesn't matter how "
        "each model cuts its words into pieces",
    )
    expect(chosen == {2, 5}, f"there are only comparisons 1 to 6; yours are {sorted(chosen)}")


def _apart(n_seeds, draws, seed):
    """How often the ranges of two systems without any difference do not overlap."""
    scores = np.random.default_rng(seed).normal(size=(2, draws, n_seeds))
    low, high = scores.min(-1), scores.max(-1)  # (2, draws)
    return ((low[0] > high[1]) | (low[1] > high[0])).mean()


@judged(7, hint=(
        "draw both systems' scores from one distribution",
        "draw n_seeds numbers for each of two equal systems: apart means that the smallest of one "
        "is above the largest of the other",
        "for small numbers of seeds you can also count orders: of all orders of 2n numbers, two "
        "keep the groups apart",
    ), example=(_apart, 2, 4))
def ranges(apart, overturns, enough):
    for n_seeds in (2, 3, 5):
        expected = 2 / math.comb(2 * n_seeds, n_seeds)  # one of the orders of 2n scores
        given = apart(n_seeds, 20_000, 0)
        expect(
            abs(given - expected / 2) > 0.3 * expected / 2,
            f"with {n_seeds} seeds you find {given:.3f}: either of the two may be ahead, so "
            f"count both ways",
        )
        expect(
            abs(given - expected) < 0.15 * expected,
            f"with {n_seeds} seeds you find {given:.3f}; over 20,000 draws it should be about "
            f"{expected:.3f}",
        )
    expect(
        apart(3, 500, 1) != apart(3, 500, 2) and apart(3, 500, 1) == apart(3, 500, 1),
        "use the seed: the same seed gives the same draws, a different one doesn't",
    )
    for name, n_seeds in (("overturns", overturns), ("enough", enough)):
        expect(isinstance(n_seeds, int) and n_seeds > 1, f"`{name}` is a number of seeds above 1")
    share = 2 / math.comb(2 * overturns, overturns)
    expect(
        share > 0.2,
        f"with {overturns} seeds, the ranges of equal systems don't overlap in {share:.0%} of the "
        "comparisons; it should be more than one in five",
    )
    expect(
        2 / math.comb(2 * enough, enough) < 0.05 <= 2 / math.comb(2 * enough - 2, enough - 1),
        f"{enough} is not the smallest number of seeds for which fewer than one comparison in "
        "twenty goes wrong",
    )


# Four references, each with what it says: words (their beginnings) that the check knows for it.
REFERENCES = {
    "Two small dogs are running after a red ball on the beach.": (
        "two pair couple both", "small little tiny", "dog hound pup", "run ran chas pursu race rac",
        "red scarlet crimson", "ball", "beach shore sand seaside coast",
    ),
    "A man in a blue jacket is helping an old woman to cross the street.": (
        "man guy gentleman fellow bloke", "blue navy azure", "jacket coat anorak",
        "help assist aid support hand lead guid", "old elder aged senior", "woman lady",
        "cross over across side", "street road",
    ),
    "Nobody is sitting on the wooden bench in front of the station.": (
        "nobody no none empt unoccupied vacant free without", "wood timber", "bench seat",
        "front before outside opposite", "station railway train terminal",
    ),
    "The girl with the long hair is reading a book to her little brother.": (
        "girl", "long", "hair", "read", "book stor novel tale",
        "little young small kid", "brother sibling",
    ),
}
NEGATIONS = {"not", "no", "nobody", "never", "none", "nothing", "without", "neither", "nor"}


def _words(text):
    return [word.strip(".,;:!?\"'()").replace("n't", " not")
            for word in text.lower().replace("-", " ").split()]


def _places(text, facts):
    """For each fact the place of the first word that says it, or None."""
    words = _words(text)
    return [next((i for i, word in enumerate(words) if word.startswith(tuple(fact.split()))), None)
            for fact in facts]


def _negated(text):
    return bool(NEGATIONS & set(" ".join(_words(text)).split()))


def _longest_run(text, reference):
    """The most words in a row that two texts share."""
    words, other = text.lower().split(), f" {reference.lower()} "
    runs = [words[i:j] for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    shared = [run for run in runs if f" {' '.join(run)} " in other]
    return " ".join(max(shared, key=len, default=[]))


@judged(
    8,
    hint=(
        "BLEU counts runs of up to four words, so a wrong word costs least at either end of a "
        "sentence; and it doesn't know which words matter",
        "wrong and praised: change one word of each, such as a number, a colour "
        "or who does it, or add a `not`",
        "right and blamed: say all of it in other words and another order, passive for active; "
        "the check knows the usual synonyms",
    ),
    example=(
        [
            "Two small dogs are running after a red ball on the roof.",
            "A man in a blue jacket is helping an old woman to cross the ocean.",
            "Somebody is sitting on the wooden bench in front of the station.",
            "The girl with the long hair is reading a book to her little sister.",
        ],
        [
            "A pair of little puppies chase a crimson ball along the shore.",
            "An elderly lady is assisted by a guy with a navy coat while going over the road.",
            "The timber seat outside the railway building is empty.",
            "A long-haired girl reads her younger brother a storybook.",
        ],
    ),
)
def fool(praised, blamed):
    references = list(REFERENCES)
    for name, texts in (("praised", praised), ("blamed", blamed)):
        expect(
            isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts),
            f"`{name}` must be a list of sentences",
        )
        expect(
            len(texts) == len(references),
            f"give one sentence for each of the {len(references)} references; `{name}` has "
            f"{len(texts)}",
        )
    for i, (text, (reference, facts)) in enumerate(zip(praised, REFERENCES.items(), strict=True)):
        expect(
            text != reference,
            f"praised[{i}] is the reference itself: a person would praise it, too",
        )
        found = _places(text, facts)
        kept = [place for place in found if place is not None]
        expect(
            None in found or kept != sorted(kept) or _negated(text) != _negated(reference),
            f"praised[{i}] still says what the reference says, as far as the check can tell; to "
            "make it wrong, change a number, a colour, a person or a place, or add a `not`",
        )
    for i, (text, (reference, facts)) in enumerate(zip(blamed, REFERENCES.items(), strict=True)):
        lost = [fact for fact, place in zip(facts, _places(text, facts), strict=True)
                if place is None]
        expect(
            not lost,
            f'blamed[{i}] has no word for what the reference says with "'
            f'{(lost or [""])[0].split(" ")[0]}"; the check knows words that begin with '
            f"{', '.join((lost or [''])[0].split())}",
        )
        allowed = _negated(reference) or not _negated(text)
        expect(allowed, f"blamed[{i}] has a negation that its reference doesn't have")
    high, low = score(praised, references), score(blamed, references)
    costs = sentence_scores(praised, references)
    worst = min(range(len(costs)), key=costs.__getitem__)
    expect(
        high.bleu >= 75 and high.chrf >= 85,
        f"your wrong translations get BLEU {high.bleu:.1f} and chrF {high.chrf:.1f}; 75 and 85 are "
        f"needed. praised[{worst}] has the lowest chrF, {costs[worst]:.0f}: change less of it",
    )
    gains = sentence_scores(blamed, references)
    best = max(range(len(gains)), key=gains.__getitem__)
    shared = _longest_run(blamed[best], references[best])
    expect(
        low.bleu <= 5 and low.chrf <= 30,
        f"your correct translations get BLEU {low.bleu:.1f} and chrF {low.chrf:.1f}; at most 5 and "
        f"30 are allowed. blamed[{best}] has the highest chrF, {gains[best]:.0f}"
        + (f', and shares "{shared}" with its reference' if shared else ""),
    )
    return (
        f"The wrong translations get BLEU {high.bleu:.1f} and chrF {high.chrf:.1f}, the correct "
        f"ones {low.bleu:.1f} and {low.chrf:.1f}. Only you can tell whether the first "
        "really are wrong, and the second correct."
    )


def _penalty(c, r, added):
    """How much the brevity penalty grows, where the output stays shorter than the references."""
    return math.exp(r / c - r / (c + added))


def _ratios(totals):
    """What happens to the four precisions, from the number of n-grams before the words came."""
    return lambda c, s, added: [totals(c, s, n) / (totals(c, s, n) + added) for n in range(1, 5)]


_of_sentences = _ratios(lambda c, s, n: c - (n - 1) * s)


def _bought(penalty=_penalty, ratios=_of_sentences, join=lambda found: math.prod(found) ** 0.25):
    """The factor on BLEU, with one step of the derivation done in another way."""
    return lambda c, r, sentences, added: (
        penalty(c, r, added) * join(ratios(c, sentences, added))
    )


@exercise(
    9,
    inputs=[
        (80, 100, 8, 8), (60, 100, 8, 8), (60, 110, 8, 40), (13, 30, 3, 5), (1000, 1250, 90, 60),
        (45, 52, 5, 1),
    ],
    hint=(
        "which of the two parts of BLEU goes up, and which goes down? Write each as new / old",
        "no match is added, so each precision changes by old total / new total; the penalty is "
        "exp(1 - r / c)",
        "a sentence of m words has m - n + 1 n-grams, so the whole output has c - (n - 1) * "
        "sentences; every added word makes one more of each kind",
    ),
    wrong="that isn't the right factor",
    shape="return one number",
    shrinks=False,
    slips={
        "the brevity penalty is missing: the output is longer now, so the penalty is milder": (
            _bought(penalty=lambda c, r, added: 1.0)
        ),
        "the precisions are missing: the same matches are divided by more n-grams": (
            _bought(join=lambda found: 1.0)
        ),
        "the penalty is upside down: it must be new / old, and it grows": (
            _bought(penalty=lambda c, r, added: 1 / _penalty(c, r, added))
        ),
        "the precisions are upside down: they fall, so each ratio is below 1": (
            _bought(join=lambda found: math.prod(found) ** -0.25)
        ),
        "it's upside down: return new / old, not old / new": (
            lambda c, r, sentences, added: 1 / _bought()(c, r, sentences, added)
        ),
        "r and c are swapped: the penalty is exp(1 - r / c)": (
            _bought(penalty=lambda c, r, added: math.exp(c / r - (c + added) / r))
        ),
        "the fourth root is missing: BLEU takes the geometric mean of four precisions": (
            _bought(join=math.prod)
        ),
        "the mean of the precisions is geometric: the fourth root of their product": (
            _bought(join=lambda found: sum(found) / 4)
        ),
        "that is BLEU of single words: a sentence of m words has m - n + 1 n-grams, not m": (
            _bought(join=lambda found: found[0])
        ),
        "each sentence has n - 1 fewer n-grams than words, not the corpus as a whole": _bought(
            ratios=_ratios(lambda c, s, n: c - (n - 1))
        ),
        "a sentence of m words has m - n + 1 n-grams, not m - n": _bought(
            ratios=_ratios(lambda c, s, n: c - n * s)
        ),
    },
)
def wrong_words(c, r, sentences, added):
    penalty = math.exp(r / c - r / (c + added))
    totals = [c - (n - 1) * sentences for n in (1, 2, 3, 4)]
    precisions = [total / (total + added) for total in totals]
    return penalty * math.prod(precisions) ** 0.25
