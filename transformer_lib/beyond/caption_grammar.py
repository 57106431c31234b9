"""Short English captions from the book's small grammar, one token per word, and a test for them.

A model that writes freely can be judged without a reference: either the grammar that made its
training captions could have made its caption, or it couldn't.
"""

import random
from collections.abc import Iterable, Iterator
from functools import cache

import torch
from torch import Tensor

from transformer_lib.config import BOS, EOS, PAD
from transformer_lib.corpora import mini
from transformer_lib.corpora.mini import ANIMALS, PEOPLE, PLACES, THINGS, Noun
from transformer_lib.tokenization import SPECIAL_TOKENS

LENGTH = 17  # ids after <bos>: at most 16 words, then <eos>
SUBJECTS = {"ein", "der", "die", *mini.COUNTS}  # the grammar's names of its determiners
COLOUR_WORDS = frozenset(english for _, english in mini.COLOURS + mini.COATS)


@cache
def _noun_phrases() -> dict[tuple[str, ...], list[tuple[Noun, str]]]:
    """Every noun phrase of the grammar, as words -> its noun and its determiner."""
    found: dict = {}
    for noun in PEOPLE + ANIMALS + THINGS + [noun for noun, *_ in PLACES]:
        adjectives = [a for a in mini.ADJECTIVES[noun.kind]
                      if a != mini.OLD or noun not in mini.CHILDREN]
        for determiner in (*SUBJECTS, ""):
            plural, german = _is_plural(determiner), "der" if determiner == "die" else determiner
            for adjective in (None, *adjectives):
                phrase = mini.noun_phrase(noun, "nominative", german, plural, adjective)
                words = tuple(phrase.english.split())
                found.setdefault(words, []).append((noun, determiner))
    return found


def _is_plural(determiner: str) -> bool:
    return determiner not in ("ein", "der")


@cache
def vocabulary() -> tuple[str, ...]:
    """The special tokens, then the grammar's words of a plain caption, in alphabetical order."""
    words = {word for phrase in _noun_phrases() for word in phrase}
    words |= {word for verb in mini.VERBS + mini.ANIMAL_VERBS for word in verb.progressive.split()}
    words |= {word for *_, preposition in PLACES for word in preposition.split()}
    return (*SPECIAL_TOKENS, *sorted(words | {"is", "are", "with", "and"}))


def captions(n: int, seed: int = 0) -> list[str]:
    """n captions such as "a man is reading a book", of 16 words at most; some occur twice."""
    rng, found = random.Random(seed), []
    while len(found) < n:
        caption = mini._plain(rng)[1]
        if len(caption.split()) < LENGTH:
            found.append(caption)
    return found


def to_ids(texts: Iterable[str], fill: int = PAD) -> Tensor:
    """Captions -> ids (B, 1 + LENGTH): <bos>, the words, <eos>, and `fill` up to the end.

    Raises ValueError for a word that is not in the grammar, and for a caption that is too long.
    """
    texts = list(texts)
    number = {word: i for i, word in enumerate(vocabulary())}
    for text in texts:
        unknown = [word for word in text.split() if word not in number]
        if unknown:
            raise ValueError(
                f"{text!r} holds {unknown[0]!r}, not a word of the grammar; see vocabulary()."
            )
        if len(text.split()) >= LENGTH:
            raise ValueError(f"{text!r} is too long: a caption has at most {LENGTH - 1} words.")
    rows = [[BOS, *(number[word] for word in text.split()), EOS] for text in texts]
    return torch.tensor([row + [fill] * (1 + LENGTH - len(row)) for row in rows])


def to_texts(ids: Tensor) -> list[str]:
    """Ids (B, T), with or without <bos> -> the text before the first <eos>."""
    words, found = (*vocabulary(), "<mask>"), []
    for row in ids.tolist():
        row = row[row[0] == BOS :]
        found.append(" ".join(words[i] for i in (row[: row.index(EOS)] if EOS in row else row)))
    return found


def accepts(text: str) -> bool:
    """Whether the grammar can make this caption: it checks agreement, articles, and who does what.
    """
    words = text.split()
    return any(end == len(words) for end in _clauses(words))


def _match(words, i, determiners, nouns) -> Iterator[tuple[Noun, str, int]]:
    """(noun, determiner, end) of each noun phrase that begins at word i."""
    for size in (1, 2, 3):
        for noun, determiner in _noun_phrases().get(tuple(words[i : i + size]), ()):
            if determiner in determiners and noun in nouns:
                yield noun, determiner, i + size


def _subjects(words) -> Iterator[tuple[Noun, bool, int]]:
    """(noun, whether plural, end) of each way to read a subject."""
    worn = [noun for noun in THINGS if noun.german in mini.WEAR.objects]
    for noun, determiner, end in _match(words, 0, SUBJECTS, PEOPLE + ANIMALS):
        plural = _is_plural(determiner)
        yield noun, plural, end
        if noun.kind == "person" and words[end : end + 1] == ["with"]:
            for _, _, last in _match(words, end + 1, {"" if plural else "ein"}, worn):
                yield noun, plural, last
        if noun.kind == "person" and not plural and words[end : end + 1] == ["and"]:
            for _, _, last in _match(words, end + 1, {"ein"}, [p for p in PEOPLE if p != noun]):
                yield noun, True, last


def _clauses(words) -> Iterator[int]:
    """Where a caption that begins with word 0 may end."""
    for subject, plural, i in _subjects(words):
        for verb in mini.VERBS if subject.kind == "person" else mini.ANIMAL_VERBS:
            start = ["are" if plural else "is", *verb.progressive.split()]
            if words[i : i + len(start)] != start:
                continue
            for end in _objects(words, i + len(start), verb, subject, plural):
                yield end
                yield from _places(words, end)


def _objects(words, i, verb, subject, plural) -> Iterator[int]:
    if not verb.objects:
        yield i
        return
    nouns = [noun for noun in THINGS + PEOPLE + ANIMALS
             if {noun.german, noun.kind} & set(verb.objects) and noun != subject]
    clothes = verb.english in ("wear", "put on")  # each wears one
    determiners = {"" if plural else "ein"} if clothes else {"ein", "der", "zwei", "mehrere"}
    for *_, end in _match(words, i, determiners, nouns):
        yield end


def _places(words, i) -> Iterator[int]:
    choices = [([noun], preposition, {"ein", "der"}) for noun, _, preposition in PLACES]
    choices.append((PEOPLE, "next to", {"ein", "zwei", "mehrere"}))
    for nouns, preposition, determiners in choices:
        start = preposition.split()
        if words[i : i + len(start)] == start:
            for *_, end in _match(words, i + len(start), determiners, nouns):
                yield end
