"""The exported questions, read back as the programs that take them do."""

import dataclasses
import html
import io
import os
import re
import sqlite3
import zipfile
from xml.etree import ElementTree

import pytest
from pygiftparser import parser as gift_parser

from course import bank, export

ITEMS = list(bank.load())
# ims_qtiasiv1p2.xsd or .dtd of QTI 1.2; their licence asks whoever distributes them to register.
SCHEMA = os.environ.get("QTI_SCHEMA")
SPACE = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"


def plain(text: str) -> str:
    """Words without markup."""
    return re.sub(r"<[^>]+>", "", text).strip()


def test_gift_is_read_by_a_parser_of_others():
    questions = gift_parser.parseFile(io.StringIO(export.gift(ITEMS)))
    assert [q.title for q in questions] == [item.id for item in ITEMS]
    for question, item in zip(questions, ITEMS, strict=True):
        answers = question.answers.answers
        assert question.valid and len(answers) == 4
        assert [answer.select for answer in answers] == [option.right for option in item.options]
        assert all(answer.feedback for answer in answers)


def moodle_accepts(question: ElementTree.Element) -> list[str]:
    """What Moodle's importer (question/format/xml/format.php, import_multichoice) would refuse.

    It takes a question only with a name and a text, reads `single`, needs at least two answers,
    takes no grade but those of its list, and wants the best answer at 100 % where one counts.
    """
    wrong = [f"no {path}" for path in ("name/text", "questiontext/text", "defaultgrade")
             if not question.findtext(path)]
    if question.get("type") != "multichoice" or question.findtext("single") != "true":
        wrong.append("not a single choice")
    if question.findtext("answernumbering") not in ("abc", "ABCD", "123", "iii", "IIII", "none"):
        wrong.append("numbering")
    answers = question.findall("answer")
    fractions = [float(answer.get("fraction")) for answer in answers]
    if len([a for a in answers if a.findtext("text")]) < 2 or max(fractions) != 100:
        wrong.append(f"answers {fractions}")
    if {answer.get("format") for answer in answers} - {"html", "plain_text", "markdown"}:
        wrong.append("format")
    return wrong


def test_moodle_takes_every_question():
    quiz = ElementTree.fromstring(export.moodle_xml(ITEMS).encode())
    questions = [q for q in quiz if q.get("type") != "category"]
    assert [q.findtext("idnumber") for q in questions] == [item.id for item in ITEMS]
    assert not [(q.findtext("idnumber"), moodle_accepts(q)) for q in questions if moodle_accepts(q)]
    assert all(a.findtext("feedback/text") for q in questions for a in q.findall("answer"))
    categories = [q.findtext("category/text") for q in quiz if q.get("type") == "category"]
    assert len(categories) == len(set(categories)) == len({item.chapter for item in ITEMS})


def test_the_oracle_refuses_what_moodle_would():
    quiz = ElementTree.fromstring(export.moodle_xml(ITEMS[:1]).encode())
    question = quiz[1]
    for answer in question.findall("answer"):
        answer.set("fraction", "50")
    question.remove(question.find("name"))
    assert moodle_accepts(question) == ["no name/text", "answers [50.0, 50.0, 50.0, 50.0]"]


def assessment(items: list[bank.Item]) -> bytes:
    """The questions in a package of QTI, which its manifest must name."""
    with zipfile.ZipFile(io.BytesIO(export.qti(items, "Title"))) as package:
        manifest = package.read("imsmanifest.xml").decode()
        files = [name for name in package.namelist() if name.endswith(".xml")]
        assert all(n.rpartition("/")[2] in manifest for n in files if n != "imsmanifest.xml")
        return package.read(next(n for n in files if re.search(r"assessment_[0-9a-f]+\.xml$", n)))


@pytest.mark.skipif(not SCHEMA, reason=(
    "QTI is not checked against its schema: its licence keeps ims_qtiasiv1p2.xsd (or .dtd) out of "
    "this repository. Set QTI_SCHEMA to the path of a copy"))
@pytest.mark.parametrize("part", export.PARTS)
def test_qti_keeps_to_its_schema(part):
    from lxml import etree

    tree = etree.fromstring(assessment([item for item in ITEMS if item.part == part]))
    if SCHEMA.endswith(".dtd"):
        schema = etree.DTD(SCHEMA)
        tree.attrib.clear()  # xsi:schemaLocation
        for element in tree.iter(etree.Element):
            element.tag = etree.QName(element).localname  # a DTD knows no namespaces
        etree.cleanup_namespaces(tree)
    else:
        schema = etree.XMLSchema(etree.parse(SCHEMA))
    assert schema.validate(tree), schema.error_log
    choice = next(tree.iter("{*}render_choice"))
    choice.getparent().remove(choice)  # the schema isn't one that takes anything
    assert not schema.validate(tree)


def chosen(item: ElementTree.Element, label: str) -> tuple[float, list[str]]:
    """The score of a choice and the feedback it shows, by the item's own conditions in order."""
    score, shown = 0.0, []
    for condition in item.iter(SPACE + "respcondition"):
        wanted = condition.find(f".//{SPACE}varequal")
        if wanted is None or wanted.text == label:
            shown += [one.get("linkrefid") for one in condition.iter(SPACE + "displayfeedback")]
            score = float(condition.findtext(SPACE + "setvar", score))
            if condition.get("continue") == "No":
                break
    texts = {one.get("ident"): one.findtext(f".//{SPACE}mattext")
             for one in item.iter(SPACE + "itemfeedback")}
    return score, [texts[name] for name in shown]


def words_of(text: str) -> str:
    """Letters and digits only: text2qti writes its own quotation marks and dashes."""
    return re.sub(r"[\W_]", "", html.unescape(plain(text)))


@pytest.mark.parametrize("part", export.PARTS)
def test_qti_scores_each_choice_and_gives_its_own_explanation(part):
    items = [item for item in ITEMS if item.part == part]
    found = list(ElementTree.fromstring(assessment(items)).iter(SPACE + "item"))
    assert [item.get("title") for item in found] == [item.id for item in items]
    for given, item in zip(found, items, strict=True):
        labels = [label.get("ident") for label in given.iter(SPACE + "response_label")]
        for label, option in zip(labels, item.options, strict=True):
            score, says = chosen(given, label)
            assert score == 100 * option.right, item.id
            expected = [item.after] * bool(item.after) + [option.says]
            assert [words_of(t) for t in says] == [words_of(export.as_html(t)) for t in expected]


def test_no_format_asks_another_host():
    for text in (export.gift(ITEMS), export.moodle_xml(ITEMS), export.quiz_text(ITEMS, "T")):
        assert "http" not in text


def test_cards_are_one_an_item(tmp_path):
    export.cards(ITEMS, tmp_path / "q.apkg")
    with zipfile.ZipFile(tmp_path / "q.apkg") as package:
        package.extract("collection.anki2", tmp_path)
    database = sqlite3.connect(tmp_path / "collection.anki2")
    rows = [fields.split("\x1f") for (fields,) in database.execute("select flds from notes")]
    cards = database.execute("select count(*), count(distinct nid) from cards").fetchone()
    database.close()
    assert len(rows) == len(ITEMS) and cards == (len(ITEMS), len(ITEMS))
    for (question, options, answer, where), item in zip(rows, ITEMS, strict=True):
        assert plain(question) == plain(export.as_html(item.question))
        assert options.count("<li>") == 4 and answer.count("<b>") == 1 and where[:2].isdigit()


def test_signs_that_gift_reads_as_its_own_survive():
    option = bank.Option("a = b ~ c", "1: yes", right=True)
    wrong = bank.Option("x_y", "no", belief="b", source="conjectured")
    item = bank.Item("odd", ITEMS[0].chapter, "g", "Is `f(a={1})` so?", (option, wrong), "training")
    question = gift_parser.parseFile(io.StringIO(export.gift([item])))[0]
    answers = question.answers.answers
    assert [answer.select for answer in answers] == [True, False]
    assert answers[0].answer.replace("\\", "") == "a = b ~ c"
    assert answers[0].feedback.replace("\\", "") == "1: yes"
    sharp = dataclasses.replace(item, question="C# and = and {?")  # that parser stumbles there
    assert r"C\# and \= and \{?" in export.gift([sharp])
