"""The cards, read back from the package as Anki does: a zip with an SQLite database."""

import re
import sqlite3
import zipfile

import pytest

from tools import cards
from tools.setup_cell import ROOT


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """{guid: (fields, deck)} of the written package."""
    folder = tmp_path_factory.mktemp("cards")
    cards.write(folder / "book.apkg", cards.all_cards())
    with zipfile.ZipFile(folder / "book.apkg") as package:
        package.extractall(folder)
    database = sqlite3.connect(folder / "collection.anki2")
    rows = database.execute("select guid, flds, did from notes join cards on cards.nid = notes.id")
    found = {guid: (fields.split("\x1f"), deck) for guid, fields, deck in rows}
    database.close()
    return found


def test_every_term_letter_and_shape_has_its_card(notes):
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf8")
    inside = text.partition("```{glossary}\n:sorted:\n")[2].partition("\n```")[0]
    terms = re.findall(r"^[^\s].*$", inside, re.MULTILINE)
    numbers = [number for number, _ in cards.DECKS.values()]
    counted = [sum(deck == number for _, deck in notes.values()) for number in numbers]
    assert counted[0] == len(terms) > 100
    assert counted[1] > 30 and counted[2] > 30
    assert len(notes) == sum(counted), "two cards share an identity"


def test_no_field_has_markup_left_over(notes):
    for fields, _ in notes.values():
        asks, front, back, where = fields
        assert asks and front and back
        for field in (front, back, where):
            assert "](" not in field and "$" not in field and "\x02" not in field, field
            assert field.count("\\(") == field.count("\\)"), field


def test_fields_are_what_the_book_says(notes):
    backs = {fields[1]: fields[2] for fields, _ in notes.values()}
    assert "learned" not in backs["ALiBi"] and "distance" in backs["ALiBi"]
    assert backs["D"].startswith("numbers in a token's vector; in the code: <code>d_model</code>")
    assert "(B, 1, 1, T)" in backs["<code>masks.padding_mask(ids, pad_id)</code>"]


def test_an_answer_may_change_and_the_card_stays():
    one, other = (cards.Card("Glossary", "mask", back) for back in ("a table", "another table"))
    import genanki

    made = {genanki.guid_for("attention-step-by-step", c.deck, c.front) for c in (one, other)}
    assert len(made) == 1


@pytest.mark.parametrize(("text", "expected"), [
    ("$a < b$ and `x`", r"\(a &lt; b\) and <code>x</code>"),
    ("see [Masks](03_masks.ipynb)", "see Masks"),
    ("*query* & key", "<em>query</em> &amp; key"),
])
def test_markdown_becomes_what_anki_shows(text, expected):
    assert cards.as_html(text) == expected


def test_two_cards_that_ask_the_same_are_refused(tmp_path):
    (tmp_path / "book").mkdir()
    twice = "```{glossary}\n:sorted:\n\nmask\n  One.\n\nmask\n  Two.\n```\n"
    (tmp_path / "book" / "glossary.md").write_text(twice)
    (tmp_path / "book" / "notation.md").write_text("")
    with pytest.raises(ValueError, match="two cards of Glossary ask 'mask'"):
        cards.all_cards(tmp_path)
