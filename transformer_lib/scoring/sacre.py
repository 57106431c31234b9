"""sacrebleu's metrics (Post 2018), imported when they are needed."""

from collections.abc import Callable, Sequence

import numpy as np


def metrics() -> dict:
    """The corpus metrics that are reported, with sacrebleu's default settings."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    return {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def statistics(
    metric: str, hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[np.ndarray, Callable]:
    """The counts of each sentence, (sentences, k), and a function from their sums to scores."""
    if metric not in (known := metrics()):
        raise ValueError(f"metric must be one of {', '.join(known)}, got {metric!r}.")
    scorer = known[metric]
    counts = scorer._extract_corpus_statistics(hypotheses, [references])

    def total(sums):
        rows = np.atleast_2d(sums)
        scores = [scorer._compute_score_from_stats(list(row)).score for row in rows]
        return np.array(scores).reshape(np.shape(sums)[:-1])

    return np.array(counts, dtype=float), total


def sentence_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """BLEU of each sentence, over the orders of n-grams that it has."""
    from sacrebleu.metrics import BLEU

    scorer = BLEU(effective_order=True)
    pairs = zip(hypotheses, references, strict=True)
    return [scorer.sentence_score(text, [reference]).score for text, reference in pairs]
