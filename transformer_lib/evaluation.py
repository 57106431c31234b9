"""How good is a translation? BLEU, chrF, TER, CER and WER, and how far you can trust them.

This is the last step from text to a number: `decoding` gives hypotheses, one string per sentence,
and this module compares them with the references, one string per sentence too.

- `score` gives the numbers to report, BLEU, chrF and TER from sacrebleu with their signatures.
- `bleu` computes BLEU from scratch and equals sacrebleu.
- `bootstrap` and `paired_bootstrap` estimate how much the number would vary with other sentences.
- `sentence_scores` and `breakdown` show which sentences it comes from.

sacrebleu and sacremoses are imported when they are needed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer_lib.scoring import sacre
from transformer_lib.scoring.texts import check_texts, tokens_of

MAX_ORDER = 4  # BLEU counts n-grams of one to four words
METRICS = ("bleu", "chrf", "ter", "cer", "wer")


@dataclass(frozen=True)
class Scores:
    """Corpus scores in per cent. Higher is better for BLEU and chrF, lower for TER, CER and WER."""

    bleu: float  # cased, tokenised by sacrebleu's 13a
    chrf: float  # chrF2, runs of one to six characters
    ter: float  # word edits and shifts per reference word, lowercased as sacrebleu does
    cer: float  # character edits per reference character
    wer: float  # word edits per reference word, words split at spaces
    signature: str  # sacrebleu's settings and version, without which a score means little


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """The scores to report, each over the whole corpus.

    hypotheses, references: lists of detokenised strings, one reference per sentence.
    Returns Scores. Raises ValueError for lists that are empty or differ in length, TypeError for
    anything but strings. Sources: BLEU Papineni et al. 2002; chrF Popović 2015; TER Snover et al.
    2006; sacrebleu Post 2018.
    """
    check_texts(hypotheses, references)
    values, signatures = {}, []
    for name, metric in sacre.metrics().items():
        result = metric.corpus_score(hypotheses, [references])
        values[name] = result.score
        signatures.append(f"{result.name} {metric.get_signature()}")
    for name in ("cer", "wer"):
        statistics, total = _statistics(name, hypotheses, references)
        values[name] = float(total(statistics.sum(0)))
    return Scores(**values, signature="; ".join(signatures))


# ------------------------------------------------------------------------------- BLEU from scratch


def bleu(
    hypotheses: Sequence[Sequence], references: Sequence[Sequence], tokenize: str = "none"
) -> float:
    """Corpus BLEU in per cent (Papineni et al. 2002), equal to sacrebleu's.

    BLEU is the geometric mean of four precisions, those of n-grams of one to four words, times a
    brevity penalty. hypotheses, references: strings, or lists of tokens. tokenize: "none" splits
    strings at spaces; "13a" cuts them up as sacrebleu does by default.
    """
    check_texts(hypotheses, references, also=list)
    hypotheses, references = [
        [tokens_of(text, tokenize) for text in texts] for texts in (hypotheses, references)
    ]
    counts = [bleu_counts(*pair) for pair in zip(hypotheses, references, strict=True)]
    return float(bleu_from_counts(np.sum(counts, axis=0)))


def bleu_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> np.ndarray:
    """The 10 integers that one sentence adds to the counts of corpus BLEU.

    hypothesis, reference: lists of tokens. Returns (10,): for n = 1..4 how many of the hypothesis's
    n-grams the reference has too, then how many there are in all, then both lengths in tokens.
    """
    matches, totals = [], []
    for n in range(1, MAX_ORDER + 1):
        ours, theirs = _ngrams(hypothesis, n), _ngrams(reference, n)
        # Clipped: a word said twice counts twice only if the reference says it twice.
        matches.append(sum((ours & theirs).values()))
        totals.append(sum(ours.values()))
    return np.array([*matches, *totals, len(hypothesis), len(reference)])


def bleu_from_counts(counts: Sequence | np.ndarray) -> np.ndarray:
    """BLEU in per cent from summed counts (..., 10), for one corpus or many at once.

    A precision without a match would make the product zero. Exponential smoothing replaces the
    first such zero with half a match, the next with a quarter, and so on (Chen and Cherry 2014,
    method 3). A corpus with no match at all, or without any 4-grams, scores 0.
    """
    counts = np.asarray(counts, dtype=float)
    matches, totals = counts[..., :4], counts[..., 4:8]  # (..., 4)
    hypothesis_length, reference_length = counts[..., 8], counts[..., 9]

    missing = matches == 0
    smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    precisions = smoothed / np.maximum(totals, 1)
    geometric_mean = np.exp(np.log(precisions).mean(-1))

    # Precision on its own would reward short output, so short output is penalised.
    ratio = reference_length / np.maximum(hypothesis_length, 1)
    brevity_penalty = np.exp(np.minimum(0, 1 - ratio))
    defined = matches.any(-1) & totals.all(-1)
    return np.where(defined, 100 * brevity_penalty * geometric_mean, 0.0)


def _ngrams(tokens: Sequence, n: int) -> Counter:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def lowercased_tokenised_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> float:
    """BLEU as older papers report it: lowercased, punctuation normalised, tokenised by Moses.

    Multi30k was first distributed in that form (Elliott et al. 2016), so published results on it
    are often given this way. They can't be compared with cased BLEU.
    language: the language of both lists, such as "en" or "de". Needs the package sacremoses.
    Raises ValueError for a language that Moses does not know.
    """
    check_texts(hypotheses, references)
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError:
        raise ImportError(
            "lowercased_tokenised_bleu needs sacremoses: pip install sacremoses"
        ) from None
    known = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in known:
        raise ValueError(f"language is {language!r}; Moses knows {', '.join(known)}.")
    normaliser, tokenizer = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    sides = [
        [tokenizer.tokenize(normaliser.normalize(text.lower()), escape=False) for text in texts]
        for texts in (hypotheses, references)
    ]
    return bleu(*sides)


# ----------------------------------------------------------------------------------- edit distance


def edit_distance(a: str | Sequence, b: str | Sequence) -> int:
    """The fewest insertions, deletions and substitutions that turn a into b (Levenshtein 1966).

    a, b: strings, for a distance in characters, or lists of words. Takes len(a) * len(b) steps.
    """
    row = list(range(len(b) + 1))  # row[j]: from the first i items of a to the first j items of b
    for i, item in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            substitute = diagonal + (item != other)
            diagonal = row[j]
            row[j] = min(substitute, row[j] + 1, row[j - 1] + 1)
    return row[-1]


# --------------------------------------------------------------------------------------- bootstrap


@dataclass(frozen=True)
class Interval:
    """The mean of the resampled scores, and the bounds between which 95 % of them lie."""

    mean: float
    low: float
    high: float


def bootstrap(
    hypotheses: Sequence[str],
    references: Sequence[str],
    n: int = 1000,
    seed: int = 0,
    metric: str = "bleu",
) -> Interval:
    """A 95 % interval for a corpus score: how it would vary with other sentences of the same kind.

    Draws as many sentences as there are, with replacement, and scores them, n times over (Koehn
    2004). metric: "bleu", "chrf", "ter", "cer" or "wer". Returns Interval.
    """
    check_texts(hypotheses, references)
    statistics, total = _statistics(metric, hypotheses, references)
    return _interval(total(_draws(len(references), n, seed) @ statistics))


@dataclass(frozen=True)
class Comparison:
    """System a against system b on the same sentences: `delta` is a's score minus b's."""

    delta: float
    low: float  # 95 % of the resampled differences lie between low and high
    high: float
    p_value: float  # how often chance alone gives a difference as large, in either direction


def paired_bootstrap(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    n: int = 1000,
    seed: int = 0,
    metric: str = "bleu",
) -> Comparison:
    """Is system a different from system b, or do these sentences just happen to favour one of them?

    Both systems are scored on the same draws, so what a draw does to both cancels (Koehn 2004).
    The p-value is the share of draws whose difference lies as far from the mean difference as the
    observed difference lies from zero (Berg-Kirkpatrick et al. 2012, here in both directions).
    a, b: lists of hypotheses. metric: as for `bootstrap`. Returns Comparison.
    """
    check_texts(a, references)
    check_texts(b, references)
    draws = _draws(len(references), n, seed)
    observed, resampled = [], []
    for hypotheses in (a, b):
        statistics, total = _statistics(metric, hypotheses, references)
        observed.append(float(total(statistics.sum(0))))
        resampled.append(total(draws @ statistics))
    delta, deltas = observed[0] - observed[1], resampled[0] - resampled[1]
    as_large = np.abs(deltas - deltas.mean()) >= abs(delta)
    interval = _interval(deltas)
    p_value = float((as_large.sum() + 1) / (n + 1))
    return Comparison(delta, interval.low, interval.high, p_value)


def _draws(size: int, n: int, seed: int) -> np.ndarray:
    """(n, size): how often each draw contains each sentence."""
    return np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=n)


def _interval(scores: np.ndarray) -> Interval:
    low, high = np.percentile(scores, (2.5, 97.5))
    return Interval(float(scores.mean()), float(low), float(high))


def _statistics(
    metric: str, hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[np.ndarray, Callable]:
    """The counts behind a corpus score, so that draws are scored without counting anything again.

    Returns statistics (sentences, k), which add up over sentences, and a function from their sums
    (..., k) to scores (...).
    """
    pairs = list(zip(hypotheses, references, strict=True))
    if metric == "bleu":
        tokens = [[tokens_of(text, "13a") for text in pair] for pair in pairs]
        return np.array([bleu_counts(*pair) for pair in tokens]), bleu_from_counts
    if metric in ("cer", "wer"):
        split = str.split if metric == "wer" else str
        items = [(split(hypothesis), split(reference)) for hypothesis, reference in pairs]
        counts = [(edit_distance(*pair), len(pair[1])) for pair in items]
        return np.array(counts), _rate
    if metric in ("chrf", "ter"):
        return sacre.statistics(metric, hypotheses, references)
    raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")


def _rate(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)


# -------------------------------------------------------------------------------------- by sentence


def sentence_scores(
    hypotheses: Sequence[str], references: Sequence[str], metric: str = "chrf"
) -> list[float]:
    """One score per sentence, as a list: for sorting and browsing, not for averaging.

    metric: as for `bootstrap`. A sentence has few 4-grams, so its BLEU is rough (it uses only the
    n-grams that fit into the sentence); chrF tells you more.
    """
    check_texts(hypotheses, references)
    if metric == "bleu":
        return sacre.sentence_bleu(hypotheses, references)
    statistics, total = _statistics(metric, hypotheses, references)
    return [float(value) for value in total(statistics)]


@dataclass(frozen=True)
class Group:
    """One group of a `breakdown`: how many sentences it has, and their corpus score."""

    sentences: int
    score: float


def breakdown(
    hypotheses: Sequence[str], references: Sequence[str], keys: Sequence, metric: str = "bleu"
) -> dict[object, Group]:
    """The corpus score of each group of sentences.

    keys: one per sentence; sentences with equal keys form a group. `length_bucket` and
    `rare_word_counts` make useful keys. Returns {key: Group(sentences, score)}, sorted by key.
    """
    check_texts(hypotheses, references)
    if len(keys) != len(references):
        raise ValueError(f"got {len(keys)} keys for {len(references)} sentences: they must match.")
    statistics, total = _statistics(metric, hypotheses, references)
    members = {}
    for index, key in enumerate(keys):
        members.setdefault(key, []).append(index)
    return {
        key: Group(len(rows), float(total(statistics[rows].sum(0))))
        for key, rows in sorted(members.items())
    }


def length_bucket(text: str, width: int = 5) -> tuple[int, int]:
    """The bucket (fewest, most) of a text's number of words: (1, 5), (6, 10) and so on."""
    if width < 1:
        raise ValueError(f"width is {width}; it must be at least 1.")
    bucket = max(len(text.split()) - 1, 0) // width
    return bucket * width + 1, (bucket + 1) * width


def rare_word_counts(
    texts: Iterable[str], training_texts: Iterable[str], at_most: int = 5
) -> list[int]:
    """How many words of each text occur at most `at_most` times in the training texts.

    Words are split at spaces and lowercased. Returns a list of integers, one per text.
    """
    seen = Counter(word for text in training_texts for word in text.lower().split())
    return [sum(seen[word] <= at_most for word in text.lower().split()) for text in texts]
