# ruff: noqa: E501 (lines of the program are quoted whole)
"""The wing of measuring: laws, cases, and how they look."""

import json
import math
import random
from collections import Counter

from exercises.museum.specimens import Catalogue
from exercises.museum.wings import Case, Wing, measuring
from transformer_lib.runs.pretrained import results_dir

LAWS = {}


def law(function):
    LAWS[function.__name__] = function
    return function


@law
def capitals_count(p):
    """A translation in lower case is not a perfect copy of its reference."""
    given, reference = "the old man saw london and paris", "The old man saw London and Paris"
    assert p.bleu([given], [reference]) < 99, "BLEU does not see wrong capitals"


@law
def words_are_matched_whole(p):
    """Words that merely begin the same way do not match."""
    given = "internationalisation responsibilities understandable unforgettable"
    score = p.bleu([given], ["internationalising responsibly understanding unforgettably"])
    assert score < 10, f"with no word in common, BLEU is {score:.0f}"


def by_hand(hypotheses, references):
    """BLEU of texts without punctuation, by its formula: counts are added up before dividing."""
    logs, lengths = 0.0, [sum(len(s.split()) for s in some) for some in (hypotheses, references)]
    for n in range(1, 5):
        matched = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            counts = [
                Counter(tuple(s.split()[i : i + n]) for i in range(len(s.split()) - n + 1))
                for s in (hypothesis, reference)
            ]
            matched += sum((counts[0] & counts[1]).values())
            total += sum(counts[0].values())
        logs += math.log(matched / total) / 4
    return 100 * min(1.0, math.exp(1 - lengths[1] / lengths[0])) * math.exp(logs)


@law
def counts_are_added_before_they_are_divided(p):
    """BLEU of a test set is one fraction, not the mean of its sentences' scores."""
    hypotheses = ["a dog runs over the wet grass", "two men sit and talk", "a cat"]
    references = ["a dog runs over the green grass", "two men sit and talk quietly", "one cat"]
    given, right = p.bleu(hypotheses, references), by_hand(hypotheses, references)
    assert abs(given - right) < 0.01, f"the formula gives {right:.2f}, yours is {given:.2f}"


@law
def finer_tokens_do_not_make_a_better_model(p):
    """The same text with the same probability has the same perplexity, however it is cut."""
    text = "two dogs run"
    whole, cut = p.perplexity([-6.0] * 3, text), p.perplexity([-2.0] * 9, text)
    assert abs(whole - cut) < 1e-6, (
        f"a text of probability e^-18 has perplexity {whole:.1f} in 3 tokens and {cut:.1f} in 9"
    )


@law
def more_seeds_do_not_raise_the_score(p):
    """If seeds differ only by luck, reporting ten of them gives the same on average as two."""
    draw = random.Random(0)
    reports = {
        n: sum(p.of_seeds([draw.gauss(40, 1) for _ in range(n)]) for _ in range(400)) / 400
        for n in (2, 10)
    }
    off = reports[10] - reports[2]
    assert abs(off) < 0.3, (
        f"with ten seeds instead of two, the score in the table is {off:.1f} higher"
    )


@law
def choosing_among_equals_gains_nothing(p):
    """If all settings are equally good, the chosen one is, on average, no better than the rest."""
    gain = among_equals(p)
    assert abs(gain) < 0.15, f"of 20 equal settings, the chosen one is reported {gain:.2f} too high"


def among_equals(p, spread=0.5, n=20, repeats=500):
    """What is reported above the truth, if n settings are equal and scores vary by `spread`."""
    draw = random.Random(1)
    total = 0.0
    for _ in range(repeats):
        validation, test = ([draw.gauss(0, spread) for _ in range(n)] for _ in range(2))
        total += p.of_settings(validation, test)
    return total / repeats


# ------------------------------------------------------------------------------- how it looks


def translations():
    """(written, right) of the recorded translator on the test set."""
    from transformer_lib import data

    lines = (results_dir() / "multi30k-de-en" / "translations.jsonl").read_text(encoding="utf8")
    written = [json.loads(line)["translation"] for line in lines.splitlines()]
    references = [target for _, target in data.load_parallel("multi30k")["test"]]
    return written, references[: len(written)]


def two_models(p):
    """Perplexity of two tables of frequencies, of subwords and of letters, on the same sentences.

    Both know how often each of their tokens occurs in the training text, and nothing else.
    """
    from transformer_lib.corpora.mini import mini_corpus
    from transformer_lib.tokenization import train_tokenizer

    corpus = mini_corpus()
    train, test = ([target for _, target in corpus[split]] for split in ("train", "test"))
    tokenizer = train_tokenizer(train, 400)
    found = {}
    for name, cut in (("subwords", lambda s: tokenizer.encode(s).ids), ("letters", list)):
        counts = Counter(token for sentence in train for token in cut(sentence))
        total = sum(counts.values())
        log_p = [math.log(max(1, counts[t]) / total) for sentence in test for t in cut(sentence)]
        found[name] = p.perplexity(log_p, " ".join(test))
    return found


def measure(p, trains):
    """BLEU of recorded translations, two models' perplexities, and what luck reports."""
    written, references = translations()
    seeds = json.loads((results_dir() / "multi30k-de-en" / "seeds.json").read_text("utf8"))["seeds"]
    perplexities = two_models(p)
    found = {
        "bleu": p.bleu(written, references),
        "subwords": perplexities["subwords"],
        "letters": perplexities["letters"],
        "of_seeds": p.of_seeds([seed["test"]["bleu"] for seed in seeds]),
        "gain": among_equals(p),
    }
    return {name: round(value, 2) + 0.0 for name, value in found.items()}  # no -0.0


CASES = Catalogue(Case)
case = CASES.add


BLEU = "    return sacrebleu.corpus_bleu(hypotheses, [references]).score\n"

case(
    "small-letters", "Both sides are lower-cased before they are scored", "17_evaluation",
    (BLEU, "    hypotheses, references = ([s.lower() for s in some] for some in (hypotheses, "
     "references))\n" + BLEU),
    looks="The recorded translator gets {bleu:.2f} BLEU; scored elsewhere, the same outputs get "
          "{healthy[bleu]:.2f}.",
    why="Wrong capitals no longer cost anything. The two scores can't be compared, which is why "
        "sacrebleu writes case:mixed or case:lc into its signature.",
    hides="For good: the number is a little higher, and still plausible.",
    law="capitals_count",
    confused_with=("scored-in-pieces", "mean-of-sentences", "best-of-seeds"),
)
case(
    "scored-in-pieces", "BLEU is computed on the tokenizer's pieces", "17_evaluation",
    (BLEU, "    hypotheses, references = (\n        [\" \".join(pieces(s)) for s in some] for "
    "some in "
     "(hypotheses, references)\n    )\n    return sacrebleu.corpus_bleu(hypotheses, [references], "
     "tokenize=\"none\", force=True).score\n"),
    looks="The recorded translator gets {bleu:.2f} BLEU; scored elsewhere, the same outputs get "
          "{healthy[bleu]:.2f}.",
    why="Pieces match where whole words don't, and one long word that's right yields several "
        "n-grams of its own.",
    hides="For good: the number now depends on the tokenizer, and tables don't show which.",
    law="words_are_matched_whole",
    confused_with=("small-letters", "mean-of-sentences", "chosen-on-test"),
)
case(
    "mean-of-sentences", "The sentences' BLEU scores are averaged", "17_evaluation",
    (BLEU, "    scores = [sacrebleu.sentence_bleu(h, [r]).score for h, r in zip(hypotheses, "
     "references)]  # noqa: B905\n    return sum(scores) / len(scores)\n"),
    looks="The recorded translator gets {bleu:.2f} BLEU; scored elsewhere, the same outputs get "
          "{healthy[bleu]:.2f}.",
    why="BLEU adds up the counts of all sentences and divides once. Scored on its own, a short "
    "sentence in which no four words in a row match gets 0, or whatever smoothing makes of it.",
    hides="Until the same outputs are scored as a corpus.",
    law="counts_are_added_before_they_are_divided",
    confused_with=("small-letters", "scored-in-pieces", "best-of-seeds"),
)
case(
    "perplexity-per-token", "Perplexities per token of two vocabularies are compared", "scaling",
    ("    return math.exp(-sum(log_probabilities) / len(text.split()))\n",
     "    return math.exp(-sum(log_probabilities) / len(log_probabilities))\n"),
    looks="A model of letters has a perplexity of {letters:.1f}, a model of subwords "
          "{subwords:.1f}, so the letters seem to win. Per word, the same two models have "
          "{healthy[letters]:,.0f} and {healthy[subwords]:,.0f}.",
    why="A letter is easier to guess than a subword, but a text has more of them. Divide by "
        "something that both models share, such as words or bytes.",
    hides="Until somebody asks what a token is.",
    law="finer_tokens_do_not_make_a_better_model",
    confused_with=("mean-of-sentences", "scored-in-pieces", "chosen-on-test"),
)
case(
    "best-of-seeds", "The best of several seeds is reported", "choices",
    ("    return sum(scores) / len(scores)\n", "    return max(scores)\n"),
    looks="Three recorded runs differ only in their seed. The table shows {of_seeds:.2f}; their "
          "mean is {healthy[of_seeds]:.2f}.",
    why="The margin by which the best of three beats the mean is luck, and the best of ten has more "
        "of it. Next to a rival with one seed, that looks like progress. (The recorded "
        "translator of "
        "the other cases is seed 0, the best of these three.)",
    hides="For good, unless the table says that it shows the best run, and out of how many.",
    law="more_seeds_do_not_raise_the_score",
    confused_with=("chosen-on-test", "small-letters", "perplexity-per-token"),
)
case(
    "chosen-on-test", "The setting is chosen on the test set", "choices",
    ("    best = max(range(len(validation)), key=validation.__getitem__)\n",
     "    best = max(range(len(test)), key=test.__getitem__)\n"),
    looks="Of 20 simulated settings that are equally good, the one in the table scores {gain:.2f} "
          "BLEU above its true score, on average over 500 tables (healthy: {healthy[gain]:.2f}).",
    why="The highest of 20 noisy numbers owes its place to its noise. Fresh data has different noise, "
        "so the gain is gone.",
    hides="Until the chosen setting is scored on fresh data.",
    law="choosing_among_equals_gains_nothing",
    confused_with=("best-of-seeds", "small-letters", "mean-of-sentences"),
)

WING = Wing("Measuring", measuring, LAWS, CASES, measure)
