"""The embedded corpus: reproducible, without leaks, and in correct German and English."""

import itertools
import random
import re

import pytest

from transformer_lib.corpora import mini

CASES = ("nominative", "accusative", "dative")
# The endings that show gender and case (columns: masculine, feminine, neuter, plural).
STRONG = {
    "nominative": ("er", "e", "es", "e"),
    "accusative": ("en", "e", "es", "e"),
    "dative": ("em", "er", "em", "en"),
}
NOUNS = mini.PEOPLE + mini.ANIMALS + mini.THINGS + [place for place, _, _ in mini.PLACES]


@pytest.fixture(scope="module")
def corpus():
    return mini.mini_corpus()


def words(text):
    return re.findall(r"\w+", text)


def test_equal_seeds_give_equal_corpora(corpus):
    assert mini.mini_corpus(seed=0) == corpus
    assert mini.mini_corpus(seed=1) != corpus


def test_sizes_are_as_promised(corpus):
    assert [(split, len(pairs)) for split, pairs in corpus.items()] == [
        ("train", 4_000),
        ("validation", 200),
        ("test", 200),
    ]


@pytest.mark.parametrize("seed", [0, 1])
def test_no_sentence_occurs_twice_in_any_split(seed):
    for side in (0, 1):
        sentences = [pair[side] for pairs in mini.mini_corpus(seed).values() for pair in pairs]
        assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("train", [mini.SIZES["train"], 300])
def test_training_knows_every_word(monkeypatch, train):
    # With 300 sentences many a word is missing, so that the rule has something to do.
    monkeypatch.setitem(mini.SIZES, "train", train)
    splits = mini.mini_corpus()
    for side in (0, 1):
        known = {word for pair in splits["train"] for word in words(pair[side])}
        for split in ("validation", "test"):
            assert {word for pair in splits[split] for word in words(pair[side])} <= known


# ---------------------------------------------------------------------------------------- agreement


def phrases():
    numbers = {"ein": [False], "der": [False, True]}  # everything else exists in the plural only
    for noun, case, determiner in itertools.product(NOUNS, CASES, ["ein", "der", *mini.COUNTS, ""]):
        for plural in numbers.get(determiner, [True]):
            yield noun, case, determiner, plural


def test_article_or_adjective_shows_gender_and_case_and_never_both():
    # The law behind all the tables: the first word that can take an ending takes the strong one.
    for noun, case, determiner, plural in phrases():
        phrase = mini.noun_phrase(noun, case, determiner, plural, ("rot", "red"))
        *article, adjective, _ = phrase.german.split()
        column = 3 if plural else noun.gender
        strong = STRONG[case][column]
        article = article[0] if article else ""
        if determiner == "der":
            # "die" and "das" stand for d + e and d + es.
            shown = {"die": "e", "das": "es"}.get(article, article[1:])
        elif determiner == "ein":
            shown = article[3:]
        else:
            shown = ""
        if determiner in ("ein", "der"):
            assert shown in (strong, ""), phrase
            if determiner == "der":
                assert shown, phrase
        weak = "en"
        if not plural and (
            case == "nominative" or (case == "accusative" and noun.gender in (1, 2))
        ):
            weak = "e"
        assert adjective == "rot" + (weak if shown else strong), phrase


def test_numbers_stay_and_quantities_decline():
    for noun in NOUNS:
        assert mini.noun_phrase(noun, "dative", "zwei", True).german.startswith("zwei ")
        assert mini.noun_phrase(noun, "dative", "viele", True).german.startswith("vielen ")
        assert mini.noun_phrase(noun, "accusative", "mehrere", True).german.startswith("mehrere ")


def test_nouns_decline():
    for noun, case, determiner, plural in phrases():
        last = mini.noun_phrase(noun, case, determiner, plural).german.split()[-1]
        if plural and case == "dative":
            assert last[-1] in "ns"
            assert last in (noun.plural, noun.plural + "n")
        elif plural:
            assert last == noun.plural
        else:
            assert last == (
                "Jungen" if noun.german == "Junge" and case != CASES[0] else noun.german
            )


def test_feminine_forms_and_diminutives_have_their_gender():
    for noun in NOUNS:
        if noun.german.endswith("in"):
            assert noun.gender == mini.F and noun.plural == noun.german + "nen"
        if noun.german.endswith("chen") and noun.german != "Kuchen":
            assert noun.gender == mini.N and noun.plural == noun.german
        if noun.german.endswith("e") and noun.german not in ("Junge", "See"):
            assert noun.gender == mini.F and noun.plural == noun.german + "n"


def test_english_articles_fit_the_sound_that_follows(corpus):
    for pairs in corpus.values():
        for _, english in pairs:
            assert not re.search(r"\b[Aa] [aeiou]", english), english
            assert not re.search(r"\b[Aa]n [^aeiou]", english), english


def test_verbs_agree_with_their_subjects():
    rng = random.Random(0)
    for verb in mini.VERBS + mini.ANIMAL_VERBS:
        assert verb.plural.endswith("en") and verb.singular.endswith("t")
        assert verb.progressive.split()[0].endswith("ing")
        for plural in (False, True):
            subject = mini.noun_phrase(mini.PEOPLE[0], "nominative", "der", plural)
            clause = mini.Clause(subject, verb, mini._choose_object(rng, verb, subject))
            finite, other = [verb.singular, verb.plural][:: -1 if plural else 1]
            main = clause.verb_second().split()
            assert main[2] == finite and other not in main
            assert clause.verb_last("der").split()[-1] == verb.prefix + finite
            assert clause.verb_second("heute").split()[1] == finite  # the verb stays second
            modal = clause.modal("will", "wollen").split()
            assert modal[2] == ("wollen" if plural else "will")
            assert modal[-1] == verb.prefix + verb.plural
            assert main[-1] == (verb.prefix or main[-1])
            assert clause.english().split()[2] == ("are" if plural else "is")


def test_objects_and_places_have_their_case():
    rng = random.Random(0)
    helping = next(verb for verb in mini.VERBS if verb.singular == "hilft")
    for _ in range(200):
        subject = mini._choose_subject(rng, people_only=True)
        helped = mini._choose_object(rng, helping, subject).german.split()[0]
        assert helped in ("einem", "einer", "dem", "der", "zwei", "mehreren")
        place = mini._choose_place(rng).german
        assert re.search(r"^(im|am)\b|\b(einem|einer|dem|der|zwei|mehreren)\b", place), place
        assert not re.search(r"\b(in|an) dem\b", place), place


# ---------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize("template", mini.TEMPLATES)
def test_every_template_keeps_the_rules_of_its_sentence(template):
    rng = random.Random(0)
    finals = {verb.prefix + form for verb in mini.VERBS + mini.ANIMAL_VERBS
              for form in (verb.singular, verb.plural)}
    for _ in range(200):
        german, english = template(rng)
        for text in (german, english):
            assert "  " not in text and text == text.strip()
            assert not re.search(r" ,|,,|,$", text), text
        if template is mini._relative:
            _, inner, _ = german.split(", ")
            assert inner.split()[0] in ("der", "die", "das") and inner.split()[-1] in finals
            assert re.search(r"\b(who|that) (is|are)\b", english)
        elif template in (mini._while, mini._because):
            assert german.split()[-1] in finals
            assert re.search(", (während|weil) ", german)
        else:
            assert "," not in german


def test_a_relative_pronoun_agrees_with_its_noun():
    rng = random.Random(0)
    columns = {noun.german: noun.gender for noun in mini.PEOPLE + mini.ANIMALS}
    for _ in range(300):
        german, english = mini._relative(rng)
        subject, inner, _ = german.split(", ")
        plural = " who are " in english or " that are " in english
        column = 3 if plural else columns[subject.split()[-1]]
        assert inner.split()[0] == ("der", "die", "das", "die")[column], german


def test_sentences_look_like_sentences(corpus):
    for pairs in corpus.values():
        for german, english in pairs:
            for text in (german, english):
                assert text[0].isupper() and text.endswith(".") and text.count(".") == 1
            # German nouns are capitalised, and a noun stands in every sentence.
            assert any(word[0].isupper() for word in words(german)[1:])


def test_every_template_occurs_in_every_split(corpus):
    marks = [", während ", ", weil ", ", der ", ", die ", " will ", " wollen ", " kann ", "Heute "]
    for pairs in corpus.values():
        text = "\n".join(german for german, _ in pairs)
        assert all(mark in text for mark in marks)
