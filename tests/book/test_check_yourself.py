"""'Check yourself' at the end of a chapter: its HTML, its place, and its script in Chromium."""

import json
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import check_yourself
import pytest
from docutils import nodes
from docutils.utils import new_document

from benchmarks.browser import CHROMIUM, DRIVER, served, start_chromium
from course import bank, page

CHAPTER = "03_masks"


def page_tree() -> ElementTree.Element:
    return ElementTree.fromstring(page.as_html(CHAPTER))


def test_every_chapter_shows_three_and_their_answers_without_a_script():
    for chapter in bank.chapters().values():
        assert bank.on_the_page(chapter), f"{chapter} has no questions in course/questions"
        tree = ElementTree.fromstring(page.as_html(chapter))  # well-formed, for the EPUB
        assert len(tree.findall("fieldset")) == bank.ON_THE_PAGE, chapter
        for group in tree.findall("fieldset"):
            inputs = [i.get("value") for i in group.iter("input")]
            explained = group.find("details").findall("ol/li")
            assert inputs == [li.get("data-option") for li in explained]
            assert len(set(inputs)) == 4 and group.find("details").get("hidden") is None
            assert [li.get("data-right") for li in explained].count("yes") == 1
            assert all("".join(li.find("span").itertext()) for li in explained)


def test_what_cannot_unfold_lists_options_and_answers_apart():
    """EPUB, PDF and Markdown: one line for each option, no answer before the last question."""
    for chapter in bank.chapters().values():
        items = bank.on_the_page(chapter)
        assert items, f"{chapter} has no questions in course/questions"
        asked, answered = ElementTree.fromstring(page.printed(chapter)).findall("ol")
        text = page.as_markdown(chapter)
        before, after = text.split("**Answers**")
        for item, question, answer in zip(items, asked, answered, strict=True):
            assert len(question.findall("ol/li")) == len(answer.findall("ol/li")) == 4
            says = [page.words(option.says) for option in item.options]
            says = ["".join(ElementTree.fromstring(f"<p>{text}</p>").itertext()) for text in says]
            lines = ["".join(li.itertext()) for li in answer.findall("ol/li")]
            assert all(line.endswith(text) for line, text in zip(lines, says, strict=True))
            for letter, option in zip(bank.LETTERS, item.options, strict=True):
                assert f"    - {letter}. {option.text}\n" in before
                assert f"    - {letter}. {option.says}\n" in after
    assert page.printed("tour") == page.as_markdown("tour") == ""


def test_a_page_that_is_no_chapter_has_none():
    assert check_yourself.questions("book/03_masks")
    for other in ("book/tour", "book/solutions/03_masks", "book/labs/lab1_attention", "intro"):
        assert check_yourself.questions(other) == ""


def test_the_section_comes_before_the_sources():
    document = new_document("page")
    top = nodes.section("", nodes.title("", "Masks"))
    for title in ("Exercises", "Summary", "Sources"):
        top += nodes.section("", nodes.title("", title))
    document += top
    app = SimpleNamespace(env=SimpleNamespace(docname=f"book/{CHAPTER}"),
                          builder=SimpleNamespace(name="html"))
    check_yourself.add_section(app, document)
    titles = [section[0].astext() for section in top.findall(nodes.section)][1:]
    assert titles == ["Exercises", "Summary", "Check yourself", "Sources"]


def test_a_kept_answer_belongs_to_its_words():
    assert page.key("Yes.") != page.key("Yes!") and len(page.key("Yes.")) == 8


def test_in_a_notebook_the_same_with_all_it_needs():
    shown = page.check_yourself(CHAPTER).data
    assert page.as_html(CHAPTER) in shown and "<script>" in shown and "http" not in shown


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs Chromium")
    folder = tmp_path_factory.mktemp("site")
    style, script = ((page.STATIC / name).read_text("utf8") for name in page.ASSETS)
    (folder / "index.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Masks</title>'
        f'<link rel="icon" href="data:,"><style>{style}</style><main><h1>Masks</h1>'
        f"{page.as_html(CHAPTER)}</main><script>{script}</script></html>", encoding="utf8")

    with served(folder) as address:
        driver = start_chromium(Path(tempfile.mkdtemp()))
        driver.address = f"{address}/index.html"
        yield driver
        driver.quit()


@pytest.fixture
def fresh(browser):
    browser.get(browser.address)
    browser.execute_script("localStorage.clear()")
    browser.get(browser.address)
    return browser


def choose(driver, item: int, option: int) -> str:
    """Choose an answer with the keyboard; returns what is said."""
    from selenium.webdriver.common.keys import Keys

    group = driver.find_elements("css selector", ".check-item")[item]
    group.find_elements("css selector", "input")[option].send_keys(Keys.SPACE)
    return group.find_element("css selector", ".check-says").text


@pytest.mark.slow
def test_each_answer_is_explained_when_it_is_chosen(fresh):
    for number, item in enumerate(bank.on_the_page(CHAPTER)):
        details = fresh.find_elements("css selector", ".check-answers")[number]
        assert not details.is_displayed(), "the answers are in sight before the choice"
        for place, option in enumerate(item.options):
            said = choose(fresh, number, place)
            assert said.startswith("Right." if option.right else "Not quite.")
            plain = re.sub(r"[`*]", "", option.says)
            assert plain.split(". ")[-1][-20:] in said
        assert details.is_displayed()


@pytest.mark.slow
def test_answers_are_kept_and_can_be_forgotten(fresh):
    items = bank.on_the_page(CHAPTER)
    choose(fresh, 0, items[0].right)
    choose(fresh, 1, (items[1].right + 1) % 4)
    count = "return document.querySelector('.check-count').textContent"
    assert fresh.execute_script(count) == "1 of 3 right."
    fresh.get(fresh.address)
    assert fresh.execute_script(count) == "1 of 3 right."
    assert fresh.find_elements("css selector", ".check-says")[0].text.startswith("Right.")
    kept = json.loads(fresh.execute_script(f"return localStorage['check-yourself:{CHAPTER}']"))
    assert set(kept) == {items[0].id, items[1].id}
    fresh.find_element("css selector", ".check-forget").click()
    assert fresh.execute_script(count) == ""
    fresh.get(fresh.address)
    assert not fresh.find_elements("css selector", "input:checked")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(fresh, theme):
    choose(fresh, 0, 0)
    choose(fresh, 1, 1)
    paper, ink, soft = {"light": ("#fff", "#20262d", "#56616d"),
                        "dark": ("#14181d", "#e6e6e6", "#b0b8c0")}[theme]
    fresh.execute_script(
        "const [theme, paper, ink, soft] = arguments, root = document.documentElement;"
        "root.dataset.theme = theme; document.body.style.background = paper;"
        "root.style.setProperty('--pst-color-text-base', ink); root.style.color = ink;"
        "root.style.setProperty('--pst-color-text-muted', soft);", theme, paper, ink, soft)
    fresh.execute_script((Path(__file__).parents[1] / "browser" / "axe.min.js").read_text("utf8"))
    found = fresh.execute_async_script("const done = arguments[0]; axe.run().then(done)")
    assert not [v["id"] for v in found["violations"] if v["impact"] in ("serious", "critical")]
