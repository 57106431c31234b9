"""Variants of the labs, for a student or a group: `make labs SEED=word`.

A variant asks for the same in another form. Drawn from the seed are the names of the answers'
functions, the order of their arguments, the numbers of the examples by hand, the code with the bug
and the random numbers of the hidden tests. What may change in a lab is listed in drawn.py. The
master is the variant of the repository. The seed isn't there, so nobody can look up the others.
"""

import copy
import hashlib
import hmac
import random
import re
from dataclasses import dataclass, field

import nbformat

HIDDEN = "HIDDEN TESTS"
SEEDED = re.compile(r"(?<=manual_seed\(|.....Random\()\d+(?=\))")  # of a hidden test


@dataclass(frozen=True)
class Numbers:
    """Numbers that depend on each other, and where a lab has them.

    draw: makes a dict from a random.Random; master: the master's dict; texts: pieces of the lab
    in which <name> is a number; also: further numbers, computed from a dict.
    """

    draw: callable
    master: dict
    texts: list[str]
    also: callable = dict

    def render(self, text: str, numbers: dict) -> str:
        every = numbers | self.also(numbers)
        return re.sub(r"<(\w+)>", lambda m: f"{every[m[1]]:.10g}" if not isinstance(
            every.get(m[1], m[0]), str) else every.get(m[1], m[0]), text)

    def replacements(self, rng: random.Random) -> list[tuple[str, str]]:
        drawn = self.draw(rng)
        return [(self.render(text, self.master), self.render(text, drawn)) for text in self.texts]


@dataclass(frozen=True)
class Code:
    """Code of a lab with several forms; the first is the master's."""

    forms: list[str]

    def replacements(self, rng: random.Random) -> list[tuple[str, str]]:
        return [(self.forms[0], rng.choice(self.forms))]


@dataclass(frozen=True)
class Drawn:
    """What is drawn in one lab.

    names: for a function of an answer the other names it may have; orders: how many of its first
    arguments may change places; fixed: hidden tests whose random numbers stay as they are.
    """

    names: dict[str, str]
    orders: dict[str, int] = field(default_factory=dict)
    texts: list[Numbers | Code] = field(default_factory=list)
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What one seed changes in one lab. All of it is text to text, so it fits answers as well."""

    tag: str
    texts: list[tuple[str, str]]
    orders: dict[str, list[int]]
    names: dict[str, str]
    offset: int
    fixed: tuple[str, ...]

    def text(self, source: str) -> str:
        # In one pass, or a number that was put in could be taken for one to be changed.
        old = {before: after for before, after in self.texts if before != after}
        if old:
            longest = sorted(old, key=len, reverse=True)
            source = re.sub("|".join(map(re.escape, longest)), lambda m: old[m[0]], source)
        for name, order in self.orders.items():
            source = reordered(source, name, order)
        for name, new in self.names.items():
            source = re.sub(pattern(name), new, source)
        return source

    def hidden(self, source: str) -> str:
        return SEEDED.sub(lambda m: str(int(m[0]) + self.offset), source)


def pattern(name: str) -> str:
    """Where a function's name is meant: anywhere if it's no other name or word, else in calls."""
    unique = "_" in name and name != "feed_forward"  # which is a part of the library's layers
    return rf"(?<![\w.]){name}(?!\w)" if unique else rf"(?<![\w.]){name}(?=\()"


def reordered(source: str, name: str, order: list[int]) -> str:
    """The source with the first arguments of each call and of the definition in another order."""
    made, last = [], 0
    for found in re.finditer(rf"(?<![\w.]){name}\(", source):
        if found.end() < last:
            raise ValueError(f"{name} is called inside a call of {name}")
        starts, depth, quote, place = [found.end()], 0, "", found.end()
        while depth >= 0:
            letter = source[place]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "\"'":
                quote = letter
            elif letter in "([{":
                depth += 1
            elif letter in ")]}":
                depth -= 1
            elif letter == "," and depth == 0:
                starts.append(place + 1)
            place += 1
        ends = [*(start - 1 for start in starts[1:]), place - 1]
        given = [source[a:b] for a, b in zip(starts, ends, strict=True)]
        words = [part.strip() for part in given]
        if len(words) < len(order) or any("=" in re.sub("[=!<>]=", "", word.partition("(")[0])
                                          or word.startswith("*") for word in words[:len(order)]):
            raise ValueError(f"{name}({', '.join(words)}): cannot reorder its arguments")
        for where, which in enumerate(order):  # the blanks stay where they are
            given[where] = given[where].replace(words[where], "\0", 1) if words[where] else "\0"
            given[where] = given[where].replace("\0", words[which])
        made += [source[last:found.end()], ",".join(given)]
        last = place - 1
    return "".join([*made, source[last:]])


def changes(stem: str, seed: str) -> Changes:
    """What this seed changes in the lab labs/STEM.ipynb."""
    from .drawn import LABS

    rng, lab = random.Random(f"{seed}/{stem}"), LABS[stem]
    texts = [pair for text in lab.texts for pair in text.replacements(rng)]
    names = {old: rng.choice([old, *new.split()]) for old, new in lab.names.items()}
    orders = {name: rng.sample(range(n), n) for name, n in lab.orders.items()}
    tag = hashlib.sha256(f"{seed}/{stem}".encode()).hexdigest()[:6]
    return Changes(tag, texts, orders, names, rng.randrange(1, 10_000), lab.fixed)


def variant(master: nbformat.NotebookNode, stem: str, seed: str) -> nbformat.NotebookNode:
    """The master of a variant. Raises ValueError where drawn.py does not fit the master."""
    made, changed = copy.deepcopy(master), changes(stem, seed)
    everything = "\n".join(cell.source for cell in master.cells)
    for old, _ in changed.texts:
        if old not in everything:
            raise ValueError(f"{stem}: drawn.py expects {old!r}")
    for cell in made.cells:
        cell.source = changed.text(cell.source)
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if HIDDEN in cell.source and name not in changed.fixed:
            cell.source = changed.hidden(cell.source)
    first, line, rest = made.cells[0].source.partition("\n")
    made.cells[0].source = f"{first}\n\n*Variant {changed.tag}*{line}{rest}"
    return made


def tag_of(notebook) -> str:
    """The variant that a notebook says it is, or ''."""
    found = re.search(r"^\*Variant (\w+)\*", notebook.cells[0].source if notebook.cells else "",
                      re.MULTILINE)
    return found[1] if found else ""


def personal(seed: str, person: str) -> str:
    """One person's seed, from the teacher's and the person's number or name."""
    return hmac.new(seed.encode(), person.strip().lower().encode(), "sha256").hexdigest()
