"""Scores: equality with sacrebleu, the laws of edit distance, and honest intervals."""

import random
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lib import evaluation

WORDS = "a the dog man red hat runs , . Isn't (sleeps) on 3,5 sofa-bed U.S. &amp; Straße".split()


def corpus(seed, size=40, longest=15, noise=0.3):
    """References and noisy copies of them."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for _ in range(size)]
    hypotheses = [
        " ".join(rng.choice(WORDS) if rng.random() < noise else w for w in text.split())
        for text in references
    ]
    return hypotheses, references


# ---------------------------------------------------------------------------------------- equality

texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
@pytest.mark.parametrize("tokenize", ["none", "13a"])
def test_bleu_equals_sacrebleu(tokenize, pairs):
    # Short sentences of few words: no match of some order, no 4-gram and empty text all occur.
    hypotheses, references = map(list, zip(*pairs, strict=True))
    expected = sacrebleu.BLEU(tokenize=tokenize).corpus_score(hypotheses, [references]).score
    assert evaluation.bleu(hypotheses, references, tokenize) == pytest.approx(expected, abs=1e-6)


def test_a_line_break_at_the_end_is_no_text():
    text = "a man with a well-known hat-"
    assert evaluation.bleu([text + "\n"], [text], "13a") == pytest.approx(100)


def test_bleu_takes_lists_of_tokens():
    hypotheses, references = corpus(0)
    split = [[text.split() for text in side] for side in (hypotheses, references)]
    assert evaluation.bleu(*split) == evaluation.bleu(hypotheses, references)


def test_bleu_from_counts_scores_many_corpora_at_once():
    pairs = zip(*corpus(1), strict=True)
    counts = np.array([evaluation.bleu_counts(*map(str.split, pair)) for pair in pairs])
    together = evaluation.bleu_from_counts(counts)
    assert together.shape == (40,)
    assert together.tolist() == [float(evaluation.bleu_from_counts(row)) for row in counts]


def test_score_is_what_sacrebleu_gives():
    hypotheses, references = corpus(2)
    scores = evaluation.score(hypotheses, references)
    assert scores.bleu == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert scores.chrf == sacrebleu.corpus_chrf(hypotheses, [references]).score
    assert scores.ter == sacrebleu.corpus_ter(hypotheses, [references]).score
    for part in ("BLEU nrefs:1|case:mixed", "tok:13a", "smooth:exp", "chrF2 ", "TER ", "version:"):
        assert part in scores.signature
    with pytest.raises(AttributeError):
        scores.bleu = 100.0


def test_a_perfect_translation_has_perfect_scores():
    _, references = corpus(3)
    scores = evaluation.score(references, references)
    assert (scores.bleu, scores.chrf) == (pytest.approx(100), pytest.approx(100))
    assert (scores.ter, scores.cer, scores.wer) == (0, 0, 0)


def test_error_rates_count_edits_over_the_whole_corpus():
    hypotheses = ["one two three", "four"]
    references = ["one three", "five six seven"]  # 1 edit of 2 words, 3 edits of 3 words
    scores = evaluation.score(hypotheses, references)
    assert scores.wer == pytest.approx(100 * 4 / 5)
    edits = sum(map(evaluation.edit_distance, hypotheses, references))
    assert scores.cer == pytest.approx(100 * edits / len("".join(references)))


def test_case_counts():
    lower, upper = ["a man sleeps on the sofa ."], ["A man sleeps on the sofa ."]
    assert evaluation.score(lower, upper).bleu < 100
    assert evaluation.lowercased_tokenised_bleu(lower, upper, "en") == pytest.approx(100)


def test_the_older_convention_tokenises_and_lowercases_both_sides():
    tokenised = ["a man 's well-known hat , isn 't it ?", "the dog sleeps in a big house ."]
    raw = ["A man’s well-known hat, isn't it?", "The dog sleeps in a big house."]
    other = ["a man's well-known hat, isn’t it?", "the dog sleeps in a big house."]
    assert evaluation.lowercased_tokenised_bleu(raw, other, "en") == pytest.approx(100)
    worse = [raw[0], "The dog, sleeps in a house."]
    expected = evaluation.bleu([tokenised[0], "the dog , sleeps in a house ."], tokenised)
    assert evaluation.lowercased_tokenised_bleu(worse, raw, "en") == pytest.approx(expected)


# ----------------------------------------------------------------------------------- edit distance

words = st.text(alphabet="abc", max_size=7)


@given(words, words, words)
def test_edit_distance_is_a_distance(a, b, c):
    distance = evaluation.edit_distance
    assert distance(a, a) == 0
    assert (distance(a, b) == 0) == (a == b)
    assert distance(a, b) == distance(b, a)
    assert distance(a, c) <= distance(a, b) + distance(b, c)


@given(words, words)
def test_edit_distance_equals_its_definition(a, b):
    @cache
    def fewest(i, j):
        if i == 0 or j == 0:
            return i + j
        change = fewest(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(change, fewest(i - 1, j) + 1, fewest(i, j - 1) + 1)

    assert evaluation.edit_distance(a, b) == fewest(len(a), len(b))
    assert evaluation.edit_distance(list(a), list(b)) == fewest(len(a), len(b))


# --------------------------------------------------------------------------------------- bootstrap


@pytest.mark.parametrize("metric", evaluation.METRICS)
def test_the_interval_surrounds_the_score(metric):
    hypotheses, references = corpus(4, size=60)
    score = getattr(evaluation.score(hypotheses, references), metric)
    interval = evaluation.bootstrap(hypotheses, references, n=200, metric=metric)
    assert interval.low < score < interval.high
    assert interval.low < interval.mean < interval.high
    assert interval == evaluation.bootstrap(hypotheses, references, n=200, metric=metric)
    assert interval != evaluation.bootstrap(hypotheses, references, n=200, metric=metric, seed=1)


def test_an_interval_holds_95_percent():
    interval = evaluation._interval(np.arange(1001.0))
    assert (interval.mean, interval.low, interval.high) == (500, 25, 975)


def test_a_draw_scores_as_the_sentences_it_drew():
    hypotheses, references = corpus(5, size=20)
    draws = evaluation._draws(20, 3, seed=0)
    assert (draws.sum(1) == 20).all()
    for metric in evaluation.METRICS:
        statistics, total = evaluation._statistics(metric, hypotheses, references)
        for draw, value in zip(draws, total(draws @ statistics), strict=True):
            drawn = np.repeat(np.arange(20), draw)
            scores = evaluation.score(
                [hypotheses[i] for i in drawn], [references[i] for i in drawn]
            )
            assert value == pytest.approx(getattr(scores, metric), abs=1e-6)


def test_more_sentences_give_a_narrower_interval():
    widths = []
    for size in (50, 800):
        interval = evaluation.bootstrap(*corpus(6, size=size), n=300)
        widths.append(interval.high - interval.low)
    assert 2.5 < widths[0] / widths[1] < 6.5  # about the root of 16


def test_the_bootstrap_is_fast():
    hypotheses, references = corpus(7, size=1000)
    start = time.process_time()
    evaluation.bootstrap(hypotheses, references, n=1000)
    assert time.process_time() - start < 2


def test_a_paired_bootstrap_tells_a_difference_from_none():
    good, references = corpus(8, size=200, noise=0.1)
    bad, _ = corpus(8, size=200, noise=0.4)
    found = evaluation.paired_bootstrap(good, bad, references, n=500)
    assert found.delta == pytest.approx(
        evaluation.score(good, references).bleu - evaluation.score(bad, references).bleu
    )
    assert 0 < found.low < found.delta < found.high
    assert found.p_value < 0.01

    backwards = evaluation.paired_bootstrap(bad, good, references, n=500)
    assert backwards.delta == -found.delta
    assert backwards.p_value == found.p_value

    same = evaluation.paired_bootstrap(good, good, references, n=500)
    assert (same.delta, same.p_value) == (0, 1)

    # Without a seed the draws are those of seed 0, on which a printed interval rests.
    assert found == evaluation.paired_bootstrap(good, bad, references, n=500, seed=0)
    one = evaluation.bootstrap(good, references, n=500)
    assert one == evaluation.bootstrap(good, references, n=500, seed=0)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_the_bootstraps_agree_with_those_of_sacrebleu(metric):
    """Equal but for the luck of a thousand draws. sacrebleu's p-value counts the draws of one side
    only. Ours also give an interval for the difference, and score by CER and WER."""
    from sacrebleu.significance import PairedTest

    scorer = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF(), "ter": sacrebleu.TER()}[metric]
    (good, references), (bad, _) = corpus(8, size=200), corpus(8, size=200, noise=0.34)
    test = PairedTest(
        [("bad", bad), ("good", good)], {metric: scorer}, [references], "bs", n_samples=1000
    )
    expected = list(test()[1].values())[1][1]
    interval = evaluation.bootstrap(good, references, metric=metric)
    assert interval.mean == pytest.approx(expected.mean, abs=0.3)
    assert (interval.high - interval.low) / 2 == pytest.approx(expected.ci, rel=0.15)
    found = evaluation.paired_bootstrap(good, bad, references, metric=metric)
    assert 0.01 < expected.p_value < 0.4  # neither is sure
    assert 1.3 < found.p_value / expected.p_value < 3


def test_the_p_value_is_small_by_chance_as_often_as_it_says():
    # Two systems that differ by luck alone: p < 0.2 must come up about once in five.
    rng = random.Random(0)
    p_values = []
    for _ in range(200):
        references = ["a b c d e f"] * 40
        a, b = [
            ["a b c d e f" if rng.random() < 0.5 else "a b c x y z" for _ in references]
            for _ in range(2)
        ]
        p_values.append(evaluation.paired_bootstrap(a, b, references, 100, metric="wer").p_value)
    assert 0.1 < np.mean(np.array(p_values) < 0.2) < 0.32


# --------------------------------------------------------------------------------------- breakdown


def test_a_breakdown_scores_each_group_as_a_corpus():
    hypotheses, references = corpus(9)
    keys = [evaluation.length_bucket(text) for text in references]
    groups = evaluation.breakdown(hypotheses, references, keys)
    assert list(groups) == sorted(set(keys)) == [(1, 5), (6, 10), (11, 15)]
    assert sum(group.sentences for group in groups.values()) == 40
    for key, group in groups.items():
        rows = [i for i in range(40) if keys[i] == key]
        pair = [hypotheses[i] for i in rows], [references[i] for i in rows]
        assert group.score == pytest.approx(evaluation.score(*pair).bleu, abs=1e-6)
    assert evaluation.breakdown(hypotheses, references, [0] * 40, "ter")[0].score == pytest.approx(
        evaluation.score(hypotheses, references).ter
    )


def test_a_breakdown_adds_counts_up_and_takes_no_mean():
    # One 4-gram in three sentences: its mean count, 1/3, would pass for a whole one.
    hypotheses = ["a man runs fast", "a dog", "a man"]
    references = ["a man runs fast", "a dog runs", "the man"]
    (group,) = evaluation.breakdown(hypotheses, references, [0, 0, 0]).values()
    expected = sacrebleu.BLEU().corpus_score(hypotheses, [references]).score
    assert group.score == pytest.approx(expected) and group.score > 0
    (group,) = evaluation.breakdown(["", ""], ["a", ""], [0, 0], "wer").values()
    assert group.score == 100  # one edit of one word, of which the mean is half a word


@given(st.integers(0, 60), st.integers(1, 10))
def test_a_length_bucket_holds_its_length(length, width):
    low, high = evaluation.length_bucket(" ".join(["x"] * length), width)
    assert low <= max(length, 1) <= high
    assert high - low + 1 == width and (low - 1) % width == 0


def test_a_length_bucket_holds_at_least_one_length():
    with pytest.raises(ValueError, match="width is 0; it must be at least 1"):
        evaluation.length_bucket("a dog", 0)


@pytest.mark.parametrize("metric", evaluation.METRICS)
def test_sentence_scores_are_corpus_scores_of_one_sentence(metric):
    hypotheses, references = corpus(10, size=10)
    hypotheses[0] = references[0] = "A dog ."  # no 4-gram, and still right
    hypotheses[1], references[1] = "a dog runs there now", "a dog runs there now with a ball"
    values = evaluation.sentence_scores(hypotheses, references, metric)
    assert values[0] == pytest.approx(100 if metric in ("bleu", "chrf") else 0)
    for hypothesis, reference, value in zip(hypotheses, references, values, strict=True):
        if metric == "bleu":  # of the n-grams that fit into the sentence
            expected = sacrebleu.sentence_bleu(hypothesis, [reference]).score
        else:
            expected = getattr(evaluation.score([hypothesis], [reference]), metric)
        assert value == pytest.approx(expected)


def test_rare_words_are_counted_in_the_training_texts_alone():
    training = ["the dog", "the cat", "The dog sees the bird"]
    texts = ["The dog barks", "the bird", ""]
    assert evaluation.rare_word_counts(texts, training, at_most=1) == [1, 1, 0]
    assert evaluation.rare_word_counts(texts, training, at_most=2) == [2, 1, 0]


# ------------------------------------------------------------------------------------------ errors

CALLS = [
    evaluation.score,
    evaluation.bleu,
    evaluation.bootstrap,
    evaluation.sentence_scores,
    lambda a, b: evaluation.paired_bootstrap(a, b, b),
    lambda a, b: evaluation.paired_bootstrap(b, a, b),  # the second system, too
    lambda a, b: evaluation.lowercased_tokenised_bleu(a, b, "en"),
    lambda a, b: evaluation.breakdown(a, b, [0] * len(b)),
]


@pytest.mark.parametrize("call", CALLS)
def test_bad_input_is_named(call):
    with pytest.raises(ValueError, match="both lists are empty"):
        call([], [])
    with pytest.raises(ValueError, match="2 hypotheses and 1 references"):
        call(["a", "b"], ["a"])
    with pytest.raises(TypeError, match=r"hypotheses\[1\] is of type NoneType"):
        call(["a", None], ["a", "b"])
    with pytest.raises(TypeError, match="references is one string|hypotheses is one string"):
        call(["a"], "a")


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="bleu, chrf, ter, cer, wer, got 'meteor'"):
        evaluation.bootstrap(["a"], ["a"], metric="meteor")
    with pytest.raises(ValueError, match="'intl'"):
        evaluation.bleu(["a"], ["a"], tokenize="intl")
    with pytest.raises(ValueError, match="1 keys for 2 sentences"):
        evaluation.breakdown(["a", "b"], ["a", "b"], [0])
    with pytest.raises(TypeError, match=r"references\[0\] is of type list"):
        evaluation.score(["a"], [["a"]])


def test_sacrebleu_is_imported_late():
    code = (
        "import sys, transformer_lib.evaluation as e; e.bleu(['a'], ['a']);"
        "assert not {'sacrebleu', 'sacremoses'} & set(sys.modules), 'imported early'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_group_of_a_breakdown_stays_as_it_was_counted():
    group = evaluation.breakdown(["a b"], ["a b"], ["short"])["short"]
    with pytest.raises(AttributeError, match="cannot be changed"):
        group.score = 100.0
