"""Write the words that the live page knows: python -m tools.make_live_words

book/_static/live/words.json holds every word of the training captions, German and English, so that
the page can tell a reader why a sentence goes wrong: a noun without its capital, "ae" for "ä",
English where German is read, or a word that the model has never met. This needs Multi30k.
"""

import json
import re
from collections import Counter
from pathlib import Path

from transformer_lib.data import load_parallel

OUT = Path(__file__).resolve().parents[1] / "book" / "_static" / "live" / "words.json"
WORD = re.compile(r"[^\W\d_]+")  # letters; the page splits a sentence in the same way
TIMES = 4  # so many times as often with a capital: then the small form is taken for a slip


def german(captions: list[str]) -> list[str]:
    """Every word as it is written: a noun with its capital, a word that only opens a caption
    without; both where German has both ("Junge", "junge")."""
    opening, inside = Counter(), Counter()
    for caption in captions:
        first, *others = WORD.findall(caption) or [""]
        opening[first] += 1
        inside.update(others)
    known = set()
    for word in {*opening, *inside} - {""}:
        small = word.lower()
        if word == small:
            slip = word[0].upper() + word[1:]
            if inside[slip] < TIMES * (inside[word] + opening[word]):
                known.add(word)
        elif inside[word] or not inside[small]:
            # Small words have a capital inside a caption in headlines ("Ein Mann In ...").
            if inside[word] * TIMES > inside[small]:
                known.add(word)
    return sorted(known)


def make(pairs: list[tuple[str, str]]) -> dict:
    """The whole file, from the training pairs (German, English)."""
    english = {word.lower() for _, text in pairs for word in WORD.findall(text)}
    return {"de": " ".join(german([text for text, _ in pairs])), "en": " ".join(sorted(english))}


if __name__ == "__main__":
    words = make(load_parallel("multi30k", "de", "en")["train"])
    OUT.write_text(json.dumps(words, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Wrote {OUT.name}: {len(words['de'].split()):,} German words, "
          f"{len(words['en'].split()):,} English, {OUT.stat().st_size / 1000:.0f} kB")
