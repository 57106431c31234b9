"""How the book's text reads, as far as a program can tell: `python -m tools.prose [page ...]`.

For each page: words, the mean length of a sentence, contractions and "you" per 1,000 words, and how
often a habit from HABITS occurs per 10,000 words. `--where` lists each place. A good count proves
nothing, only a person who reads aloud can; a bad one shows where to look.
"""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path

from tools.arguments import file

ROOT = Path(__file__).resolve().parents[1]

# Habits that make English sound translated, and what to write in their place.
HABITS = {
    r"\bstand(?:s|ing)?\b(?! (?:for|out|by|up|still|alone\b|on its own|a chance))": "is, are, give",
    r"\blike (?:size|sizes|length|lengths|bias|depth|width|amounts?)\b": "of similar ...",
    r"\b(?:is|are|was|were) told\b(?! to)": "you'll hear; can be distinguished",
    r"\btold apart\b": "distinguished",
    r"\bbut for\b": "apart from",
    r"\bby lot\b": "at random",
    r"\bletter by letter\b": "verbatim",
    r"\bworth while\b": "worth it",
    r"\b(?:a|one|each|every|this|that|single|whole|second|longer|shorter) training\b"
    r"(?! (?:run|set|step|loss|data|curve|time|loop|pair|sentence|length|batch|example|example|"
    r"split|picture|image|caption|text|update|objective|recipe|error|signal|page|chapter|job))":
        "a training run",
    r"\btrainings\b": "training runs",
    r"\bbets?\b": "probabilities, guesses",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\bin use\b": "at inference",
    r"\b(?:last|first|second|third|next) (?:line|row|column)s? (?:above |below )?(?:say|tell)s?\b":
        "put the number into the sentence",
    r"\bsays the (?:title|line|table|figure)\b|\bthe title (?:says|tells)\b": "say it",
    r"(?<![\w-])(?:[Ww]ho(?:ever)?) (?:wants|goes|must|has|reads|knows|writes|needs|looks|asks)\b":
        "if you ...",
    r"\bnor (?:is|does|do|are|can|one|any|the)\b": "and ... not",
    r"\bbeside (?:it|them|this|that|each|the)\b": "next to; besides",
    r"\bmere(?:ly)?\b": "only",
    r"\bthe rest anew\b|\banew\b": "again; from scratch",
    r"\bof like\b": "of similar",
    r"\bis heard\b|\bare heard\b": "is read",
    r"\bask(?:s|ed)? of\b": "ask",
    r"\bgoes astray\b|\bgo astray\b": "goes wrong",
    r"\bnot to be (?:had|counted|seen)\b": "can't be ...",
    r"\bmeasured alone\b|\b(?:this|that|it|them) alone\b": "only ...",
}
CONTRACTION = re.compile(
    r"\b(?:\w+n't|(?:it|that|there|what|here|let|who|how|he|she)'s|\w+'(?:re|ll|ve)|I'm|I'd|you'd)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """What was counted on one page."""

    words: int
    sentences: int
    contractions: int
    you: int
    habits: dict[str, list[str]]  # pattern -> the places where it occurs

    @property
    def mean_sentence(self) -> float:
        """Words a sentence."""
        return self.words / max(self.sentences, 1)

    def per(self, count: int, words: int) -> float:
        """How many of something in so many words."""
        return count * words / max(self.words, 1)

    @property
    def habit_rate(self) -> float:
        """Habits per 10,000 words."""
        return self.per(sum(map(len, self.habits.values())), 10_000)


def prose(path: Path) -> str:
    """The running text of a page: no code, formulas, tables, headings or link targets."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf8"))["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    else:
        text = path.read_text(encoding="utf8")
    return without_code(text)


def without_code(text: str) -> str:
    """The running text of some Markdown: no code, formulas, tables, headings or link targets."""
    text = re.sub(r"^---\n.*?^---\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^```\w*\n.*?^```\s*$", "", text, flags=re.S | re.M)  # code; directives stay
    text = re.sub(r"^(?:`{3,}|:{3,}).*$|^:\w[\w-]*:.*$", "", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.S)
    text = re.sub(r"\$[^$\n]+\$", "x", text)
    text = re.sub(r"`[^`\n]+`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{\w+\}`?[^`]*`?", "", text)
    text = re.sub(r"<[^>\n]+>", " ", text)
    text = re.sub(r"^(?:#+ .*|\|.*\||\s*[-*_]{3,}\s*)$", "", text, flags=re.M)
    return text


def count_words(text: str) -> int:
    """Words of some running text."""
    return len(re.findall(r"[A-Za-z0-9][\w'’-]*", text))


def habits(text: str) -> dict[str, list[str]]:
    """{pattern: the places of a text where it occurs, with some words around}"""
    found = {}
    for pattern in HABITS:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            place = text[max(0, match.start() - 40) : match.end() + 40]
            found.setdefault(pattern, []).append(place)
    return found


def read(path: Path) -> Reading:
    """Count a page, a notebook or Markdown."""
    text = prose(path)
    plain = re.sub(r"[*_]", "", text)
    parts = re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", plain, flags=re.M)
    paragraphs = [" ".join(part.split()) for part in parts]
    words = sentences = 0
    for paragraph in filter(None, paragraphs):
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z0-9\"'(])", paragraph):
            n = count_words(sentence)
            if n:
                words, sentences = words + n, sentences + (n > 2)
    flat = " ".join(plain.split())
    return Reading(
        words,
        sentences,
        len(CONTRACTION.findall(flat.replace("’", "'"))),
        len(re.findall(r"\byou(?:r|rs|rself)?\b", flat, re.IGNORECASE)),
        habits(flat),
    )


def pages(root: Path = ROOT) -> list[Path]:
    """Every page of the book that a person wrote: chapters, pages, solutions, labs' masters."""
    book = root / "book"
    found = [*book.glob("*.ipynb"), *book.glob("*.md"), *(book / "solutions").glob("*.ipynb")]
    return sorted([*found, *(root / "labs").glob("*.ipynb")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", type=file, help="these pages only")
    parser.add_argument("--where", action="store_true", help="list each place of a habit")
    options = parser.parse_args()
    print(f"{'page':<52}{'words':>7}{'a sentence':>12}{'contr.':>8}{'you':>6}{'habits':>8}")
    for path in options.pages or pages():
        it = read(path.resolve())
        name = str(path.resolve().relative_to(ROOT))
        print(
            f"{name:<52}{it.words:>7}{it.mean_sentence:>12.1f}{it.per(it.contractions, 1000):>8.1f}"
            f"{it.per(it.you, 1000):>6.1f}{it.habit_rate:>8.1f}"
        )
        for pattern, places in it.habits.items() if options.where else ():
            for place in places:
                print(f"    {HABITS[pattern]:<40} ...{place}...")


if __name__ == "__main__":
    main()
