"""The question bank: course/questions/*.yml as items, and the rules that an item keeps.

An item is a situation with four options. Each wrong option is a belief that somebody holds, with
its source; each explanation speaks to the reader who chose it. course/README.md says how to write
one, tests/book/test_questions.py holds the rules, course/export.py writes the formats.
"""

import functools
import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "course" / "questions"
LETTERS = "abcd"
ON_THE_PAGE = 3  # items that a chapter shows at its end, the first ones of the bank


@dataclass(frozen=True)
class Option:
    """One answer. A wrong one names the belief behind it, and where that belief was met."""

    text: str
    says: str  # shown to whoever chose it
    right: bool = False
    belief: str = ""
    source: str = ""  # "guide: ...", "unseen: module: ...", "issue: owner/name#1" or "conjectured"


@dataclass(frozen=True)
class Item:
    """One question. `facts` pairs numbers of its text with the expressions that give them."""

    id: str
    chapter: str  # a chapter's file name without number and ending
    goal: str
    question: str
    options: tuple[Option, ...]
    part: str
    after: str = ""  # shown after any answer
    facts: tuple[tuple[str, str], ...] = field(default=())
    seen: str = ""  # where the whole situation was met

    @property
    def right(self) -> int:
        """The place of the right option."""
        return [option.right for option in self.options].index(True)

    @property
    def text(self) -> str:
        """All of its words."""
        said = [f"{option.text} {option.says}" for option in self.options]
        return " ".join([self.question, *said, self.after])


def bare(name: str) -> str:
    """A chapter's file name without its number, which may have a letter after it."""
    return re.sub(r"^\d\d[a-z]?_", "", name)


@functools.cache
def chapters(root: Path = ROOT) -> dict[str, str]:
    """{name without number: file name without ending} of the numbered chapters, in order."""
    found = sorted((root / "book").glob("[0-9][0-9]*_*.ipynb"))
    return {bare(path.stem): path.stem for path in found}


@functools.cache
def load(folder: Path = FOLDER) -> tuple[Item, ...]:
    """All items, in the order of the parts and of their files."""
    order = ["attention", "blocks", "transformer", "training", "beyond"]
    found = []
    for path in sorted(folder.glob("*.yml"), key=lambda p: (order + [p.stem]).index(p.stem)):
        for entry in yaml.safe_load(path.read_text(encoding="utf8")):
            options = tuple(Option(**option) for option in entry.pop("options"))
            facts = tuple(map(tuple, entry.pop("facts", ())))
            found.append(Item(**entry, options=options, facts=facts, part=path.stem))
    return tuple(found)


def of_chapter(chapter: str) -> list[Item]:
    """The items of a chapter, named with or without its number."""
    return [item for item in load() if item.chapter == bare(chapter)]


def on_the_page(chapter: str) -> list[Item]:
    """The items that the chapter shows at its end."""
    return of_chapter(chapter)[:ON_THE_PAGE]


def unsourced(item: Item, root: Path = ROOT) -> list[str]:
    """Sources of an item that lead nowhere: a test names them."""
    wrong = []
    for source in [o.source for o in item.options if not o.right] + [item.seen] * bool(item.seen):
        kind, _, what = source.partition(": ")
        if kind == "guide":
            text = (root / "book" / "teaching-guide.md").read_text(encoding="utf8")
            found = what in " ".join(text.split())
        elif kind == "unseen":
            module, _, title = what.partition(": ")
            path = root / "tests" / "exercises" / "unseen_answers" / f"{module}.txt"
            found = path.exists() and f"✗ {title}\n" in path.read_text(encoding="utf8")
        elif kind == "issue":
            found = re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", what)
        else:
            found = source == "conjectured"
        if not found:
            wrong.append(f"{item.id}: {source}")
    return wrong
