"""Glossary, notation and shapes as cards for Anki and programs like it: `make cards`.

    python -m tools.cards                # _build/attention-step-by-step.apkg

Nothing is written for the cards alone: the terms come from book/glossary.md, letters and symbols
from the tables of book/notation.md, shapes from the library's docstrings. A card keeps its identity
when its answer changes, so a newer deck updates the older one and a learner's progress stays.
"""

import argparse
import html
import importlib
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import genanki
from markdown_it import MarkdownIt

from tools import printed
from tools.arguments import new_file
from tools.setup_cell import ROOT

DECKS = {  # name: (a number that must not change, what a card asks)
    "Glossary": (1_735_201_001, "What is this?"),
    "Notation": (1_735_201_002, "What does this stand for?"),
    "Shapes": (1_735_201_003, "What goes in, and what shape comes out?"),
}
MODEL = 1_735_201_000
NOT_OF_THE_LIBRARY = {"one_file"}  # the same things once more
SHAPES = re.compile(r"->|[Rr]eturns?\b[^.]*\([A-Z1\d][^()]*\)")
STYLE = """
.card { font-family: Georgia, serif; font-size: 20px; line-height: 1.45; max-width: 36em;
        margin: 1em auto; padding: 0 1em; text-align: left; }
.asks { font-family: sans-serif; font-size: 14px; opacity: 0.75; }
.front { font-size: 26px; }
.where { font-family: sans-serif; font-size: 14px; opacity: 0.75; }
code { font-size: 0.9em; }
"""


@dataclass(frozen=True)
class Card:
    """One question; `front` and `back` are Markdown, `where` names the page."""

    deck: str
    front: str
    back: str
    where: str = ""


def as_html(text: str) -> str:
    """Markdown as a card shows it: formulas as Anki reads them, links as their words."""
    formulas = []

    def keep(found: re.Match) -> str:
        formulas.append(html.escape(found[1], quote=False))
        return f"\x02{len(formulas) - 1}\x03"

    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\$([^$]+)\$", keep, text)
    text = MarkdownIt().renderInline(text)
    return re.sub("\x02(\\d+)\x03", lambda found: rf"\({formulas[int(found[1])]}\)", text)


def glossary(text: str) -> list[Card]:
    """The terms of a MyST glossary: a line for the term, an indented one for what it is."""
    inside = re.search(r"```\{glossary\}\n(.*?)\n```", text, re.DOTALL)[1]
    cards = []
    for term, said in re.findall(r"^(\S.*)\n((?:[ ]+\S.*\n?)+)", inside, re.MULTILINE):
        said = " ".join(said.split())
        # The chapters stand at the end, after the last full stop.
        found = re.match(r"(.*[.)?])\s*((?:[Cc]hapters? )?\[[^\]]*\]\([^)]*\).*)$", said)
        back, where = (found[1], found[2]) if found else (said, "")
        cards.append(Card("Glossary", term, back, where.rstrip(".")))
    return cards


def notation(text: str) -> list[Card]:
    """The rows of all tables whose first column is a letter or a symbol."""
    cards = []
    for table in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|\n ").split("|")]
                for line in table.replace(r"\|", "&#124;").splitlines()]
        if rows[0][0] not in ("letter", "symbol"):
            continue
        for row in rows[2:]:
            named = dict(zip(rows[0], row + [""] * len(rows[0]), strict=False))
            also = [f"{what}: {named[what]}" for what in ("in the code", "in the paper")
                    if named.get(what)]
            back = "; ".join([named["meaning"], *also])
            cards.append(Card("Notation", named[rows[0][0]], back, named.get("where", "")))
    return cards


def shapes() -> list[Card]:
    """Functions and methods of the library whose docstring gives their shapes."""
    cards = []
    for name in printed.modules():
        module = importlib.import_module(f"transformer_lib.{name}")
        for key, value in vars(module).items():
            if name in NOT_OF_THE_LIBRARY or key.startswith("_"):
                continue
            if getattr(value, "__module__", "") != module.__name__:
                continue
            found = {key: value} if inspect.isfunction(value) else {}
            if inspect.isclass(value):
                found = {f"{key}.{method}": function for method, function in vars(value).items()
                         if inspect.isfunction(function) and not method.startswith("_")}
            for path, function in found.items():
                first, *rest = (inspect.getdoc(function) or "").split("\n\n")
                with_shapes = [part for part in (first, *rest) if SHAPES.search(part)]
                if with_shapes:
                    said = " ".join(dict.fromkeys([first, with_shapes[0]]))
                    given = ", ".join(p for p in inspect.signature(function).parameters
                                      if p != "self")
                    back = " ".join(said.split())
                    cards.append(Card("Shapes", f"`{name}.{path}({given})`", back, ""))
    return cards


def all_cards(root: Path = ROOT) -> list[Card]:
    """Every card. Raises ValueError where two would ask the same."""
    book = root / "book"
    cards = glossary((book / "glossary.md").read_text(encoding="utf8"))
    cards += notation((book / "notation.md").read_text(encoding="utf8"))
    cards += shapes()
    seen = set()
    for card in cards:
        if (card.deck, card.front) in seen:
            raise ValueError(f"two cards of {card.deck} ask {card.front!r}")
        seen.add((card.deck, card.front))
    return cards


def write(out: Path, cards: list[Card]) -> None:
    """Write the package that Anki imports: a deck with three parts."""
    model = genanki.Model(
        MODEL, "Attention, Step by Step",
        fields=[{"name": name} for name in ("Asks", "Front", "Back", "Where")],
        templates=[{
            "name": "Card",
            "qfmt": '<div class="asks">{{Asks}}</div><div class="front">{{Front}}</div>',
            "afmt": '{{FrontSide}}<hr id="answer">{{Back}}<p class="where">{{Where}}</p>',
        }],
        css=STYLE,
    )
    decks = {name: genanki.Deck(number, f"Attention, Step by Step::{name}")
             for name, (number, _) in DECKS.items()}
    for card in cards:
        decks[card.deck].add_note(genanki.Note(
            model=model,
            fields=[DECKS[card.deck][1], *map(as_html, (card.front, card.back, card.where))],
            guid=genanki.guid_for("attention-step-by-step", card.deck, card.front),
            tags=[card.deck.lower()],
        ))
    out.parent.mkdir(parents=True, exist_ok=True)
    genanki.Package([*decks.values()]).write_to_file(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=new_file, default=ROOT / "_build/attention-step-by-step.apkg")
    options = parser.parse_args()
    cards = all_cards()
    write(options.out, cards)
    counted = ", ".join(f"{sum(c.deck == deck for c in cards)} {deck.lower()}" for deck in DECKS)
    print(f"{options.out}: {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
