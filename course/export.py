"""The question bank for other programs: `make questions` writes _build/course/.

    python -m course.export              # questions.gift, .xml (Moodle), -qti.zip by part, .apkg

GIFT and Moodle XML are written here, QTI by text2qti, cards for Anki by genanki. Each format
carries the explanation of every option. tests/book/test_question_formats.py reads all of them back.
"""

import argparse
import html
import sys
from pathlib import Path
from xml.etree import ElementTree

import genanki
from markdown_it import MarkdownIt
from text2qti.config import Config
from text2qti.qti import QTI
from text2qti.quiz import Quiz

from course import bank
from course.bank import Item
from tools.arguments import new_folder

OUT = bank.ROOT / "_build" / "course"
BOOK = "Attention, Step by Step"
PARTS = {"attention": "I Attention", "blocks": "II Building blocks",
         "transformer": "III The Transformer", "training": "IV Training", "beyond": "V Beyond"}
DECK, MODEL = 1_735_202_001, 1_735_202_000  # identities that must not change
CARD_STYLE = """
.card { font-family: Georgia, serif; font-size: 19px; line-height: 1.45; max-width: 38em;
        margin: 1em auto; padding: 0 1em; text-align: left; }
.where { font-family: sans-serif; font-size: 14px; opacity: 0.75; }
li { margin-bottom: 0.5em; } ol { list-style: lower-alpha; }
"""


def as_html(text: str) -> str:
    """An item's Markdown (emphasis and code, no formulas) as HTML."""
    return MarkdownIt().renderInline(text)


def category(item: Item) -> str:
    """Where a course system files an item: book, part, chapter."""
    return f"{BOOK}/{PARTS.get(item.part, item.part)}/{bank.chapters()[item.chapter]}"


def gift(items: list[Item]) -> str:
    """Moodle's GIFT format, a question with feedback for each option."""
    def kept(text: str) -> str:
        escaped = as_html(text).replace("\\", "\\\\")
        for sign in "~=#{}:":
            escaped = escaped.replace(sign, "\\" + sign)
        return escaped

    blocks, last = [], None
    for item in items:
        if category(item) != last:
            last = category(item)
            blocks.append(f"$CATEGORY: {last}")
        options = [f"{'=' if o.right else '~'}{kept(o.text)}#{kept(o.says)}" for o in item.options]
        after = [f"####{kept(item.after)}"] if item.after else []
        head = f"::{item.id}::[html]{kept(item.question)}"
        blocks.append("\n\t".join([head + " {", *options, *after]) + "\n}")
    return "\n\n".join(blocks) + "\n"


def moodle_xml(items: list[Item]) -> str:
    """Moodle's own XML: one category a chapter, one multiple-choice question an item."""
    def add(parent, tag, text=None, **attributes):
        node = ElementTree.SubElement(parent, tag, attributes)
        if text is not None:
            ElementTree.SubElement(node, "text").text = text
        return node

    quiz, last = ElementTree.Element("quiz"), None
    for item in items:
        if category(item) != last:
            last = category(item)
            add(add(quiz, "question", type="category"), "category", f"$course$/top/{last}")
        question = add(quiz, "question", type="multichoice")
        add(question, "name", item.id)
        add(question, "questiontext", as_html(item.question), format="html")
        add(question, "generalfeedback", as_html(item.after), format="html")
        for tag, value in {"defaultgrade": "1", "penalty": "0.3333333", "hidden": "0",
                           "idnumber": item.id, "single": "true", "shuffleanswers": "true",
                           "answernumbering": "abc"}.items():
            ElementTree.SubElement(question, tag).text = value
        for option in item.options:
            answer = add(question, "answer", as_html(option.text), format="html",
                         fraction="100" if option.right else "0")
            add(answer, "feedback", as_html(option.says), format="html")
        tags = ElementTree.SubElement(question, "tags")
        for tag in (item.part, item.chapter):
            add(tags, "tag", tag)
    ElementTree.indent(quiz)
    text = ElementTree.tostring(quiz, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def quiz_text(items: list[Item], title: str) -> str:
    """The items as text2qti reads them."""
    lines = [f"Quiz title: {title}", "Shuffle answers: true", ""]
    for number, item in enumerate(items, 1):
        lines += [f"Title: {item.id}", "Points: 1", f"{number}. {item.question}"]
        lines += [f"... {item.after}"] * bool(item.after)
        for letter, option in zip(bank.LETTERS, item.options, strict=True):
            lines += [f"{'*' * option.right}{letter}) {option.text}", f"... {option.says}"]
        lines.append("")
    return "\n".join(lines)


def qti(items: list[Item], title: str) -> bytes:
    """A zip that Canvas and other systems import as QTI 1.2."""
    config = Config()
    config["latex_render_url"] = ""  # no item has a formula; nothing is asked of any server
    return QTI(Quiz(quiz_text(items, title), config=config)).zip_bytes()


def cards(items: list[Item], out: Path) -> None:
    """Cards for Anki: the situation in front, all four explanations behind."""
    model = genanki.Model(
        MODEL, f"{BOOK}: situations",
        fields=[{"name": name} for name in ("Question", "Options", "Answer", "Where")],
        templates=[{
            "name": "Card",
            "qfmt": "{{Question}}<ol>{{Options}}</ol>",
            "afmt": "{{Question}}<hr id=answer><ol>{{Answer}}</ol><p class=where>{{Where}}</p>",
        }],
        css=CARD_STYLE,
    )
    deck = genanki.Deck(DECK, f"{BOOK}::Situations")
    for item in items:
        options = "".join(f"<li>{as_html(o.text)}</li>" for o in item.options)
        answer = "".join(
            f"<li>{'<b>' * o.right}{as_html(o.text)}{'</b>' * o.right}<br>{as_html(o.says)}</li>"
            for o in item.options
        )
        deck.add_note(genanki.Note(
            model=model, tags=[item.part, item.chapter],
            guid=genanki.guid_for("attention-step-by-step", "situations", item.id),
            fields=[as_html(item.question), options, answer,
                    html.escape(bank.chapters()[item.chapter])],
        ))
    genanki.Package(deck).write_to_file(out)


def write(out: Path, items: list[Item]) -> list[Path]:
    """All formats into a folder; returns what was written."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "questions.gift").write_text(gift(items), encoding="utf8")
    (out / "questions-moodle.xml").write_text(moodle_xml(items), encoding="utf8")
    for part, title in PARTS.items():
        of_part = [item for item in items if item.part == part]
        (out / f"questions-{part}-qti.zip").write_bytes(qti(of_part, f"{BOOK}, part {title}"))
    cards(items, out / "questions.apkg")
    return sorted(out.glob("questions*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=new_folder, default=OUT)
    options = parser.parse_args()
    items = list(bank.load())
    for path in write(options.out, items):
        print(f"{path}: {path.stat().st_size // 1024} kB")
    print(f"{len(items)} questions, {len(bank.chapters())} chapters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
