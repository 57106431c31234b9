"""A small German-English corpus made by a grammar of our own, for machines without a network.

The sentences look like captions ("Ein Mann, der einen roten Hut trägt, schläft auf dem Sofa.") and
have what makes German worth translating: gender, case and adjective endings that agree, verbs at
the end of a clause, verbs in two parts, and a verb that stays second when something else comes
first. A model that only looks words up gets these wrong; a model that attends gets them right.

It goes through the same code as Multi30k (see `data`). Scores on it say that the code works, but
nothing about translation in general.
"""

import random
import re
from dataclasses import dataclass

SIZES = {"train": 4_000, "validation": 200, "test": 200}

# ---------------------------------------------------------------------------------------- grammar
# Columns: masculine, feminine, neuter, plural. "ein" has no plural.

ARTICLES = {
    ("ein", "nominative"): ("ein", "eine", "ein"),
    ("ein", "accusative"): ("einen", "eine", "ein"),
    ("ein", "dative"): ("einem", "einer", "einem"),
    ("der", "nominative"): ("der", "die", "das", "die"),
    ("der", "accusative"): ("den", "die", "das", "die"),
    ("der", "dative"): ("dem", "der", "dem", "den"),
}
ADJECTIVE_ENDINGS = {
    ("ein", "nominative"): ("er", "e", "es"),
    ("ein", "accusative"): ("en", "e", "es"),
    ("ein", "dative"): ("en", "en", "en"),
    ("der", "nominative"): ("e", "e", "e", "en"),
    ("der", "accusative"): ("en", "e", "e", "en"),
    ("der", "dative"): ("en", "en", "en", "en"),
}
# After a number, "mehrere", "viele" or nothing; these exist in the plural only.
BARE_ENDINGS = {"nominative": "e", "accusative": "e", "dative": "en"}
RELATIVE_PRONOUNS = ("der", "die", "das", "die")
COUNTS = {"zwei": "two", "drei": "three", "mehrere": "several", "viele": "many"}
CONTRACTIONS = {"in dem": "im", "an dem": "am"}


@dataclass(frozen=True)
class Noun:
    german: str
    gender: int  # column of the tables above: 0 masculine, 1 feminine, 2 neuter
    plural: str
    english: str
    english_plural: str
    kind: str = "thing"  # "person", "animal", "place" or "thing"
    oblique: str = ""  # the form outside the nominative, for the few nouns that have one


@dataclass(frozen=True)
class Verb:
    singular: str  # "hebt"
    plural: str  # "heben"
    english: str  # "pick up"
    progressive: str  # "picking up"
    prefix: str = ""  # "auf": goes to the end of a main clause, and back to the verb elsewhere
    objects: tuple = ()  # the German nouns, or kinds of noun, that it takes; none: no object
    object_case: str = "accusative"


@dataclass(frozen=True)
class Phrase:
    german: str
    english: str
    plural: bool = False
    definite: bool = False
    noun: Noun | None = None


def noun_phrase(noun, case, determiner="", plural: bool = False, adjective=None):
    """A phrase in a case: noun_phrase(HAT, "accusative", "ein", adjective=("rot", "red")).

    determiner: "ein", "der", a key of `COUNTS`, or "" for a plural without an article.
    """
    column = 3 if plural else noun.gender
    if determiner in ("ein", "der"):
        article = ARTICLES[determiner, case][column]
        ending = ADJECTIVE_ENDINGS[determiner, case][column]
        english = "the" if determiner == "der" else "a"
    else:
        article, ending = determiner, BARE_ENDINGS[case]
        if article in ("mehrere", "viele") and case == "dative":
            article += "n"
        english = COUNTS.get(determiner, "")
    german_adjective, english_adjective = adjective or ("", "")
    if german_adjective:
        german_adjective += ending
    german_noun = noun.plural if plural else noun.german
    if plural and case == "dative" and german_noun[-1] not in "ns":
        german_noun += "n"  # "Hüte", but "mit Hüten"
    if not plural and case != "nominative" and noun.oblique:
        german_noun = noun.oblique
    english_noun = noun.english_plural if plural else noun.english
    if english == "a" and (english_adjective or english_noun)[0] in "aeiou":
        english = "an"
    return Phrase(
        _join(article, german_adjective, german_noun),
        _join(english, english_adjective, english_noun),
        plural,
        determiner == "der",
        noun,
    )


@dataclass(frozen=True)
class Clause:
    """Somebody does something somewhere; the methods put it into German's different word orders."""

    subject: Phrase
    verb: Verb
    object: Phrase | None = None
    place: Phrase | None = None

    @property
    def finite(self):
        return self.verb.plural if self.subject.plural else self.verb.singular

    @property
    def middle(self):
        # What is known comes first: a definite object before the place, an indefinite one after.
        object_first = self.object is not None and self.object.definite
        parts = (self.object, self.place) if object_first else (self.place, self.object)
        return _join(*(part.german for part in parts if part))

    def verb_second(self, first=""):
        """'hebt ... auf', after the subject or after `first`."""
        subject = self.subject.german
        start = (first, self.finite, subject) if first else (subject, self.finite)
        return _join(*start, self.middle, self.verb.prefix)

    def verb_last(self, first):
        """'... aufhebt', after a conjunction and the subject, or after a relative pronoun."""
        return _join(first, self.middle, self.verb.prefix + self.finite)

    def modal(self, singular, plural):
        """'will ... aufheben': the infinitive of every verb here is its plural form."""
        finite = plural if self.subject.plural else singular
        return _join(self.subject.german, finite, self.middle, self.verb.prefix + self.verb.plural)

    def english(self, subject=None, verb=None):
        be = "are" if self.subject.plural else "is"
        return _join(
            subject or self.subject.english,
            verb or f"{be} {self.verb.progressive}",
            self.object.english if self.object else "",
            self.place.english if self.place else "",
        )


def _join(*parts):
    return " ".join(part for part in parts if part)


# ---------------------------------------------------------------------------------------- lexicon

M, F, N = 0, 1, 2

PEOPLE = [
    Noun("Mann", M, "Männer", "man", "men", "person"),
    Noun("Frau", F, "Frauen", "woman", "women", "person"),
    Noun("Kind", N, "Kinder", "child", "children", "person"),
    Noun("Mädchen", N, "Mädchen", "girl", "girls", "person"),
    Noun("Junge", M, "Jungen", "boy", "boys", "person", oblique="Jungen"),
    Noun("Arzt", M, "Ärzte", "doctor", "doctors", "person"),
    Noun("Arbeiter", M, "Arbeiter", "worker", "workers", "person"),
    Noun("Clown", M, "Clowns", "clown", "clowns", "person"),
    Noun("Köchin", F, "Köchinnen", "cook", "cooks", "person"),
    Noun("Tänzerin", F, "Tänzerinnen", "dancer", "dancers", "person"),
]
CHILDREN = PEOPLE[2:5]
ANIMALS = [
    Noun("Hund", M, "Hunde", "dog", "dogs", "animal"),
    Noun("Katze", F, "Katzen", "cat", "cats", "animal"),
    Noun("Kuh", F, "Kühe", "cow", "cows", "animal"),
    Noun("Pferd", N, "Pferde", "horse", "horses", "animal"),
    Noun("Schaf", N, "Schafe", "sheep", "sheep", "animal"),
]
THINGS = [
    Noun("Hut", M, "Hüte", "hat", "hats"),
    Noun("Helm", M, "Helme", "helmet", "helmets"),
    Noun("Mantel", M, "Mäntel", "coat", "coats"),
    Noun("Mütze", F, "Mützen", "cap", "caps"),
    Noun("Jacke", F, "Jacken", "jacket", "jackets"),
    Noun("Hemd", N, "Hemden", "shirt", "shirts"),
    Noun("Kleid", N, "Kleider", "dress", "dresses"),
    Noun("Ball", M, "Bälle", "ball", "balls"),
    Noun("Stock", M, "Stöcke", "stick", "sticks"),
    Noun("Regenschirm", M, "Regenschirme", "umbrella", "umbrellas"),
    Noun("Brief", M, "Briefe", "letter", "letters"),
    Noun("Apfel", M, "Äpfel", "apple", "apples"),
    Noun("Kuchen", M, "Kuchen", "cake", "cakes"),
    Noun("Banane", F, "Bananen", "banana", "bananas"),
    Noun("Zeitung", F, "Zeitungen", "newspaper", "newspapers"),
    Noun("Tasse", F, "Tassen", "cup", "cups"),
    Noun("Gitarre", F, "Gitarren", "guitar", "guitars"),
    Noun("Blume", F, "Blumen", "flower", "flowers"),
    Noun("Fahne", F, "Fahnen", "flag", "flags"),
    Noun("Kamera", F, "Kameras", "camera", "cameras"),
    Noun("Tür", F, "Türen", "door", "doors"),
    Noun("Kiste", F, "Kisten", "box", "boxes"),
    Noun("Tasche", F, "Taschen", "bag", "bags"),
    Noun("Karte", F, "Karten", "map", "maps"),
    Noun("Buch", N, "Bücher", "book", "books"),
    Noun("Schild", N, "Schilder", "sign", "signs"),
    Noun("Fenster", N, "Fenster", "window", "windows"),
    Noun("Bild", N, "Bilder", "picture", "pictures"),
    Noun("Fahrrad", N, "Fahrräder", "bicycle", "bicycles"),
    Noun("Auto", N, "Autos", "car", "cars"),
]
# Each place with its prepositions: which English one "auf" is depends on the place.
PLACES = [
    (Noun("Park", M, "Parks", "park", "parks", "place"), "in", "in"),
    (Noun("Garten", M, "Gärten", "garden", "gardens", "place"), "in", "in"),
    (Noun("Strand", M, "Strände", "beach", "beaches", "place"), "an", "on"),
    (Noun("See", M, "Seen", "lake", "lakes", "place"), "an", "by"),
    (Noun("Fluss", M, "Flüsse", "river", "rivers", "place"), "an", "by"),
    (Noun("Baum", M, "Bäume", "tree", "trees", "place"), "unter", "under"),
    (Noun("Zaun", M, "Zäune", "fence", "fences", "place"), "hinter", "behind"),
    (Noun("Küche", F, "Küchen", "kitchen", "kitchens", "place"), "in", "in"),
    (Noun("Wiese", F, "Wiesen", "meadow", "meadows", "place"), "auf", "in"),
    (Noun("Straße", F, "Straßen", "street", "streets", "place"), "auf", "on"),
    (Noun("Brücke", F, "Brücken", "bridge", "bridges", "place"), "auf", "on"),
    (Noun("Bank", F, "Bänke", "bench", "benches", "place"), "neben", "next to"),
    (Noun("Mauer", F, "Mauern", "wall", "walls", "place"), "vor", "in front of"),
    (Noun("Sofa", N, "Sofas", "sofa", "sofas", "place"), "auf", "on"),
    (Noun("Haus", N, "Häuser", "house", "houses", "place"), "vor", "in front of"),
    (Noun("Café", N, "Cafés", "café", "cafés", "place"), "in", "in"),
    (Noun("Feld", N, "Felder", "field", "fields", "place"), "auf", "in"),
    (Noun("Zelt", N, "Zelte", "tent", "tents", "place"), "hinter", "behind"),
]
TIMES = [
    Phrase("am Morgen", "in the morning"),
    Phrase("am Abend", "in the evening"),
    Phrase("am Sonntag", "on Sunday"),
    Phrase("im Sommer", "in summer"),
    Phrase("im Winter", "in winter"),
    Phrase("in der Nacht", "at night"),
    Phrase("heute", "today"),
]
OLD = ("alt", "old")  # fits no child
COLOURS = [("rot", "red"), ("blau", "blue"), ("grün", "green"), ("gelb", "yellow")]
COATS = [("schwarz", "black"), ("weiß", "white"), ("braun", "brown")]
ADJECTIVES = {
    # "groß" is a word that needs its noun: a tall woman, but a big dog.
    "person": [
        ("groß", "tall"),
        ("klein", "little"),
        ("jung", "young"),
        OLD,
        ("müd", "tired"),
        ("glücklich", "happy"),
    ],
    "animal": [("groß", "big"), ("klein", "small"), ("jung", "young"), OLD, *COATS],
    "thing": [("groß", "big"), ("klein", "small"), ("neu", "new"), OLD] + COLOURS + COATS[:2],
    "place": [("groß", "big"), ("klein", "small"), ("schön", "beautiful")],
}

HEADWEAR, CLOTHES = ("Hut", "Helm", "Mütze"), ("Mantel", "Jacke", "Hemd", "Kleid")
WEAR = Verb("trägt", "tragen", "wear", "wearing", objects=HEADWEAR + CLOTHES)
LAUGH = Verb("lacht", "lachen", "laugh", "laughing")
BOTH_VERBS = [
    Verb("schläft", "schlafen", "sleep", "sleeping"),
    Verb("steht", "stehen", "stand", "standing"),
    Verb("liegt", "liegen", "lie", "lying"),
    Verb("läuft", "laufen", "run", "running"),
    Verb("springt", "springen", "jump", "jumping"),
    Verb("wartet", "warten", "wait", "waiting"),
    Verb("spielt", "spielen", "play", "playing"),
]
ANIMAL_VERBS = [
    *BOTH_VERBS,
    Verb("frisst", "fressen", "eat", "eating", objects=("Apfel", "Banane")),
    Verb("jagt", "jagen", "chase", "chasing", objects=("animal", "Ball")),
]
VERBS = [
    *BOTH_VERBS,
    LAUGH,
    Verb("sitzt", "sitzen", "sit", "sitting"),
    Verb("tanzt", "tanzen", "dance", "dancing"),
    Verb("singt", "singen", "sing", "singing"),
    WEAR,
    Verb("hält", "halten", "hold", "holding",
         objects=("Ball", "Stock", "Regenschirm", "Tasse", "Gitarre", "Blume", "Fahne", "Schild")),
    Verb("liest", "lesen", "read", "reading", objects=("Buch", "Zeitung", "Brief")),
    Verb("isst", "essen", "eat", "eating", objects=("Apfel", "Kuchen", "Banane")),
    Verb("wirft", "werfen", "throw", "throwing", objects=("Ball", "Stock")),
    Verb("kauft", "kaufen", "buy", "buying",
         objects=("Zeitung", "Blume", "Kamera", "Hut", "Tasche", "Karte", "Apfel")),
    Verb("repariert", "reparieren", "repair", "repairing", objects=("Fahrrad", "Auto", "Tür")),
    Verb("fotografiert", "fotografieren", "photograph", "photographing",
         objects=("person", "animal", "Auto")),
    Verb("hilft", "helfen", "help", "helping", objects=("person",), object_case="dative"),
    Verb("hebt", "heben", "pick up", "picking up", "auf",
         objects=("Ball", "Stock", "Blume", "Kiste", "Tasche", "Brief")),
    Verb("macht", "machen", "open", "opening", "auf",
         objects=("Tür", "Fenster", "Kiste", "Tasche", "Regenschirm")),
    Verb("setzt", "setzen", "put on", "putting on", "auf", objects=HEADWEAR),
    Verb("zieht", "ziehen", "put on", "putting on", "an", objects=CLOTHES),
    Verb("schaut", "schauen", "look at", "looking at", "an",
         objects=("Bild", "Karte", "person", "animal")),
    Verb("ruft", "rufen", "call", "calling", "an", objects=("person",)),
]


# ------------------------------------------------------------------------------------- generation


def _choose_noun_phrase(rng, noun, case, determiners):
    determiner = rng.choice(determiners)
    plural = determiner not in ("ein", "der")
    adjectives = [word for word in ADJECTIVES[noun.kind] if word != OLD or noun not in CHILDREN]
    adjective = rng.choice(adjectives) if rng.random() < 0.5 else None
    return noun_phrase(noun, case, "der" if determiner == "die" else determiner, plural, adjective)


def _choose_subject(rng, people_only=False):
    noun = rng.choice(PEOPLE if people_only or rng.random() < 0.75 else ANIMALS)
    subject = _choose_noun_phrase(rng, noun, "nominative", ["ein"] * 5 + ["der", "die", *COUNTS])
    if noun.kind == "person" and rng.random() < 0.1:  # "ein Mann mit einem roten Hut"
        worn = _noun(rng, WEAR.objects)
        with_it = _choose_noun_phrase(rng, worn, "dative", [""] if subject.plural else ["ein"])
        subject = _add(subject, "mit " + with_it.german, "with " + with_it.english)
    elif noun.kind == "person" and not subject.plural and rng.random() < 0.1:
        other = rng.choice([person for person in PEOPLE if person != noun])
        other = _choose_noun_phrase(rng, other, "nominative", ["ein"])
        subject = _add(subject, "und " + other.german, "and " + other.english, plural=True)
    return subject


def _add(phrase, german, english, plural=None):
    return Phrase(
        f"{phrase.german} {german}",
        f"{phrase.english} {english}",
        phrase.plural if plural is None else plural,
        phrase.definite,
        phrase.noun,
    )


def _noun(rng, names, other_than=None):
    """A noun among names, which are German nouns or kinds of noun."""
    fitting = [
        noun
        for noun in THINGS + PEOPLE + ANIMALS
        if (noun.german in names or noun.kind in names) and noun != other_than
    ]
    return rng.choice(fitting)


def _choose_object(rng, verb, subject):
    if not verb.objects:
        return None
    noun = _noun(rng, verb.objects, other_than=subject.noun)
    if noun.german in WEAR.objects and verb.english in ("wear", "put on"):
        determiners = [""] if subject.plural else ["ein"]  # each wears one
    else:
        determiners = ["ein"] * 4 + ["der", "zwei", "mehrere"]
    return _choose_noun_phrase(rng, noun, verb.object_case, determiners)


def _choose_place(rng):
    if rng.random() < 0.1:
        noun, german, english = rng.choice(PEOPLE), "neben", "next to"
        phrase = _choose_noun_phrase(rng, noun, "dative", ["ein", "ein", "zwei", "mehrere"])
    else:
        noun, german, english = rng.choice(PLACES)
        phrase = _choose_noun_phrase(rng, noun, "dative", ["ein", "der", "der"])
    german = f"{german} {phrase.german}"
    for long, short in CONTRACTIONS.items():
        german = re.sub(rf"^{long}\b", short, german)
    return Phrase(german, f"{english} {phrase.english}")


def _choose_clause(rng, subject=None, place=0.6):
    subject = subject or _choose_subject(rng)
    person = subject.noun.kind == "person"
    verb = rng.choice(VERBS if person else ANIMAL_VERBS)
    where = _choose_place(rng) if rng.random() < place else None
    return Clause(subject, verb, _choose_object(rng, verb, subject), where)


def _plain(rng):
    clause = _choose_clause(rng)
    return clause.verb_second(), clause.english()


def _time_first(rng):
    clause, time = _choose_clause(rng), rng.choice(TIMES)
    return clause.verb_second(time.german), f"{time.english}, {clause.english()}"


def _place_first(rng):
    clause, place = _choose_clause(rng, place=0), _choose_place(rng)
    return clause.verb_second(place.german), f"{place.english}, {clause.english()}"


def _relative(rng):
    subject = _choose_subject(rng)
    while " und " in subject.german or " mit " in subject.german:
        subject = _choose_subject(rng)  # the pronoun could refer to either noun
    inner, main = _choose_clause(rng, subject, 0.2), _choose_clause(rng, subject, 0.8)
    while not inner.object or inner.verb == main.verb or (main.object and inner.verb != WEAR):
        # One thing at a time, except what somebody wears.
        inner, main = _choose_clause(rng, subject, 0.2), _choose_clause(rng, subject, 0.8)
    pronoun = RELATIVE_PRONOUNS[3 if subject.plural else subject.noun.gender]
    who = "who" if subject.noun.kind == "person" else "that"
    german = f"{subject.german}, {inner.verb_last(pronoun)},"
    english = f"{subject.english} {inner.english(subject=who)}"
    whole = Phrase(german, english, subject.plural, subject.definite, subject.noun)
    main = Clause(whole, main.verb, main.object, main.place)
    return main.verb_second(), main.english()


def _while(rng):
    main, other = _choose_clause(rng, place=0.3), _choose_clause(rng, place=0.5)
    german = f"{main.verb_second()}, {other.verb_last(f'während {other.subject.german}')}"
    return german, f"{main.english()} while {other.english()}"


def _because(rng):
    main = Clause(_choose_subject(rng, people_only=True), LAUGH)
    other = _choose_clause(rng, place=0.5)
    german = f"{main.verb_second()}, {other.verb_last(f'weil {other.subject.german}')}"
    return german, f"{main.english()} because {other.english()}"


def _modal(rng):
    clause = _choose_clause(rng)
    if rng.random() < 0.5:
        return clause.modal("kann", "können"), clause.english(verb=f"can {clause.verb.english}")
    want = "want to" if clause.subject.plural else "wants to"
    return clause.modal("will", "wollen"), clause.english(verb=f"{want} {clause.verb.english}")


TEMPLATES = [_plain, _time_first, _place_first, _relative, _while, _because, _modal]
TEMPLATE_WEIGHTS = [5, 2, 3, 4, 2, 1, 3]


def _sentence_pair(rng):
    (template,) = rng.choices(TEMPLATES, TEMPLATE_WEIGHTS)
    return tuple(text[0].upper() + text[1:] + "." for text in template(rng))


def _words(pair):
    return set(re.findall(r"\w+", " ".join(pair)))


def mini_corpus(seed: int = 0):
    """The corpus as {"train", "validation", "test"} -> list of (German, English) strings.

    It has 4,000, 200 and 200 pairs (`SIZES`); equal seeds give equal corpora. No sentence of
    either language occurs twice, and validation and test use only words that training has, so
    that what they measure is grammar.
    """
    rng = random.Random(seed)
    corpus, seen, known = {}, set(), set()
    for split, size in SIZES.items():
        pairs = corpus[split] = []
        while len(pairs) < size:
            pair = _sentence_pair(rng)
            if seen.isdisjoint(pair) and (split == "train" or _words(pair) <= known):
                pairs.append(pair)
                seen.update(pair)
        if split == "train":
            known = set().union(*map(_words, pairs))
    return corpus


def load(src: str, tgt: str) -> dict[str, list[tuple[str, str]]]:
    """Split -> (source, target) strings in the direction asked for, "de" and "en" in either order.

    Raises ValueError for another language.
    """
    columns = {"de": 0, "en": 1}
    for language in (src, tgt):
        if language not in columns:
            raise ValueError(f"the mini corpus has 'de' and 'en', not {language!r}.")
    return {
        split: [(pair[columns[src]], pair[columns[tgt]]) for pair in rows]
        for split, rows in mini_corpus().items()
    }
