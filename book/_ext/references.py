"""Chapters are named in the sources and numbered here, from the reading order.

    # Masks                                       becomes   3. Masks
    the chapter [Masks](03_masks.ipynb)           becomes   chapter 3, with the link on the number
    the chapters [Masks](...) and [Tokens](...)   becomes   chapters 3 and 5
    [Masks](03_masks.ipynb)                       stays as it is

So a chapter can be put between two others without a change to any sentence, and the same sentence
reads well in Colab, where nothing is numbered.
"""

import functools
import posixpath

from docutils import nodes
from reading_order import BEFORE, BETWEEN, chapters, name, number_of
from sphinx.application import Sphinx

name = functools.cache(name)  # hundreds of references, a few names


def number_title(app: Sphinx, doctree: nodes.document) -> None:
    """Write a chapter's number before its title, which all menus and links take from here."""
    number = number_of(app.env.docname, chapters())
    title = next(iter(doctree.findall(nodes.title)), None)
    if number and title is not None:
        title.insert(0, nodes.Text(f"{number}. "))


def target(app: Sphinx, docname: str, reference: nodes.reference) -> str:
    """The page that a link leads to, e.g. "book/03_masks"; "" for a link out of the book."""
    address = reference.get("refuri", "").partition("#")[0]
    if not address or "://" in address:
        return ""
    here = posixpath.dirname(app.builder.get_target_uri(docname))
    return posixpath.normpath(posixpath.join(here, address)).removesuffix(".html")


def number_references(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the name of a chapter by its number where the word "chapter" stands before it."""
    numbers = chapters()
    numbered = set()
    for reference in list(doctree.findall(nodes.reference)):
        page = target(app, docname, reference)
        siblings = reference.parent.children
        place = siblings.index(reference)
        if page not in numbers or not place or not isinstance(siblings[place - 1], nodes.Text):
            continue
        before = siblings[place - 1].astext()
        word = BEFORE.search(before)
        if word:
            capital = word[2] == "C" or word[1] == "T"
            text = before[: word.start()] + ("C" if capital else "c") + f"{word[3]} "
            reference.parent.replace(siblings[place - 1], nodes.Text(text))
        elif not (BETWEEN.fullmatch(before) and id(siblings[place - 2]) in numbered):
            continue
        numbered.add(id(reference))
        reference.children = []
        reference += nodes.inline("", str(numbers[page]), classes=["doc"])
        reference["reftitle"] = name(page)


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", number_title, priority=100)  # before Sphinx collects the titles
    app.connect("doctree-resolved", number_references)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
