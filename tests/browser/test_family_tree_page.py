"""The figure of the family tree in headless Chromium: chosen, searched, opened, by key, on a phone."""

# ruff: noqa: E501  (scripts of the page read better in one line)

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from test_family_tree import DATA, MODELS, family_tree
from test_live_page import SERVED, Handler, tap, visit  # noqa: F401  (the first: what is served)

BUILT = sorted({f"book/{model['page']}" for model in DATA["models"]} - {"book/25_acting"})
Handler.more["family-tree"] = family_tree.figure(DATA, BUILT)
ALL = list(MODELS)


@pytest.fixture
def tree(browser, address):
    return visit(browser, address + "book/family-tree.html")


def shown(page):
    """Names of the models that fit what was chosen."""
    return page.js("return [...document.querySelectorAll('.live-model:not(.live-faint)')].map((one) => one.dataset.name)")


def faint(page):
    return page.js("return [...document.querySelectorAll('.live-faint')].map((one) => one.dataset.name)")


def opened(page):
    return page.js("return document.querySelector('.live-family-card strong')?.textContent ?? ''")


def click(page, name):
    page.js("[...document.querySelectorAll('.live-model')].find((one) => one.dataset.name === arguments[0]).click()", name)


def search(page, text):
    page.js("const box = document.querySelector('.live-family-search'); box.value = arguments[0]; box.dispatchEvent(new Event('input'))", text)


def ancestors(name):
    while MODELS[name]["parent"]:
        name = MODELS[name]["parent"]
        yield name


def holds(page, found):
    """Shown are the models that fit, with them only those that they come from, and it says so."""
    assert set(shown(page)) == set(found)
    assert set(faint(page)) == {one for name in found for one in ancestors(name)} - set(found)
    total = f"{len(found)} of {len(ALL)} models" if len(found) < len(ALL) else f"{len(ALL)} models"
    assert page.said().startswith(total + ".")


def test_all_models_stand_there_by_year(tree):
    holds(tree, ALL)
    places = tree.js("return Object.fromEntries([...document.querySelectorAll('.live-model')].map((one) => [one.dataset.name, one.offsetLeft]))")
    for one in ALL:
        for other in ALL:
            if MODELS[one]["year"] < MODELS[other]["year"]:
                assert places[one] < places[other], (one, other)
    assert not tree.errors()


@pytest.mark.parametrize("width", [1280, 760])
def test_no_name_covers_another_and_each_has_its_line(browser, address, width):
    page = visit(browser, address + "book/family-tree.html", width)
    boxes = page.js("return [...document.querySelectorAll('.live-model')].map((one) => [one.dataset.name, one.offsetLeft, one.offsetTop, one.offsetLeft + one.offsetWidth, one.offsetTop + one.offsetHeight])")
    assert len(boxes) == len(ALL)
    for i, (name, left, top, right, bottom) in enumerate(boxes):
        for other, left2, top2, right2, bottom2 in boxes[:i]:
            apart = right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
            assert apart, f"{name} covers {other}"
    assert len(page.all(".live-family-lines path")) == len(ALL) - 1
    assert page.js("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_choices_of_branch_and_of_what_changed(tree):
    tree.press("E", "[data-key=branch]")  # the mark E stands before "Encoder"
    encoders = [name for name in ALL if MODELS[name]["branch"] == "encoder"]
    holds(tree, encoders)
    tree.press("a module")
    holds(tree, [name for name in encoders if MODELS[name]["varies"] == "module"])
    tree.press("all", "[data-key=branch]")
    holds(tree, [name for name in ALL if MODELS[name]["varies"] == "module"])
    tree.press("all", "[data-key=varies]")
    holds(tree, ALL)


def test_search_reads_names_authors_and_changes(tree):
    search(tree, "distil")
    holds(tree, [name for name in ALL if "distil" in str(MODELS[name]).lower()])
    assert "DistilBERT" in shown(tree)
    search(tree, "keskar")
    holds(tree, ["CTRL"])
    search(tree, "hash bucket")
    holds(tree, ["Reformer"])
    search(tree, "no such thing")
    assert shown(tree) == [] and "No model matches" in tree.said()
    box = tree.one(".live-family-search")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("gpt-2", Keys.ENTER)
    assert opened(tree) == "GPT-2, 2019"


def test_each_card_says_what_changed_and_where(tree):
    for name, model in MODELS.items():
        click(tree, name)
        assert opened(tree) == f"{name}, {model['year']}"
        card = tree.text(".live-family-card")
        for part in (model["authors"], model["changed"], model["data"], model["parameters"] or "none stated"):
            assert part in card, (name, part)
        links = tree.js("return [...document.querySelectorAll('.live-family-card a')].map((one) => one.getAttribute('href'))")
        lines = family_tree.lines_of(model, BUILT)
        assert links == ([lines] if lines else []) + [family_tree.address(model["source"])]
        assert (model["page"] == "25_acting") == (not lines)
        assert tree.js("const c = document.querySelector('.live-family-card').getBoundingClientRect(), p = document.querySelector('.live-family').getBoundingClientRect(); return c.left >= p.left - 1 && c.right <= p.right + 1 && c.bottom <= p.bottom + 1")
    click(tree, name)
    assert opened(tree) == ""


def test_a_card_leads_to_parents_and_to_children_that_a_choice_hides(tree):
    click(tree, "RoBERTa")
    tree.press("BERT", ".live-family-card")
    assert opened(tree) == "BERT, 2018"
    tree.press("RoBERTa", ".live-family-card")
    search(tree, "masks are drawn anew")
    assert set(shown(tree)) == {"RoBERTa"} and opened(tree) == "RoBERTa, 2019"
    tree.press("Longformer", ".live-family-card")  # which the search hides
    assert opened(tree) == "Longformer, 2020"
    holds(tree, ALL)


def test_the_tree_by_keyboard_alone(tree):
    """One tab stop; arrows walk, Enter opens, Tab goes into the card, Escape comes back."""
    assert len(tree.all(".live-model[tabindex='0']")) == 1
    tree.js("document.querySelector('.live-model[tabindex=\"0\"]').focus()")

    def at():
        return tree.js("return document.activeElement.dataset.name ?? document.activeElement.className")

    def press(*keys):
        ActionChains(tree.browser).send_keys(*keys).perform()

    assert at() == "Transformer"
    press(Keys.ARROW_DOWN)
    assert at() != "Transformer"
    press(Keys.HOME, Keys.ARROW_RIGHT)
    assert MODELS[at()]["parent"] == "Transformer"
    press(Keys.ARROW_LEFT)
    assert at() == "Transformer"
    press(Keys.END)
    last = at()
    assert len(tree.all(".live-family-lines .live-on")) == len(list(ancestors(last)))
    press(Keys.ENTER)
    assert opened(tree).startswith(last)
    assert tree.one(".live-model[aria-expanded=true]").get_attribute("data-name") == last
    press(Keys.TAB)
    assert "live-close" in at()
    press(Keys.ESCAPE)
    assert opened(tree) == "" and at() == last
    assert len(tree.all(".live-model[tabindex='0']")) == 1


def test_on_a_phone_it_is_a_list_by_year(browser, address):
    page = visit(browser, address + "book/family-tree.html", width=390)
    assert len(shown(page)) == 10 and page.said().startswith(f"10 of {len(ALL)} models")
    for name in shown(page)[1:]:  # a spine holds together
        assert MODELS[name]["parent"] in shown(page)
    assert page.js("return document.querySelector('.live-box').offsetHeight") < 1400
    page.press(f"Show all {len(ALL)} models")
    assert shown(page) == ALL
    years = page.js("return [...document.querySelectorAll('.live-family h3')].map((one) => Number(one.textContent))")
    assert years == sorted({model["year"] for model in DATA["models"]})
    tap(page, '.live-model[data-name="BART"]')
    assert opened(page) == "BART, 2019"
    assert page.js("return document.querySelector('.live-family-card').closest('li').querySelector('.live-model').dataset.name") == "BART"
    assert page.js("return document.documentElement.scrollWidth - innerWidth") <= 0
    small = page.js("return [...document.querySelectorAll('.live-box :is(.live-button, .live-model)')].filter((one) => one.offsetParent && one.getBoundingClientRect().height < 43.5).map((one) => one.textContent)")
    assert not small
    tap(page, "[data-key=branch] [data-value=vision]")
    assert shown(page) == [name for name in ALL if MODELS[name]["branch"] == "vision"]
    assert not page.errors()


def test_nothing_moves(tree):
    """The figure has no animation, so there is none to switch off."""
    moving = tree.js("return [...document.querySelectorAll('.live-box *')].filter((one) => { const s = getComputedStyle(one); return s.animationName !== 'none' || s.transitionDuration.split(', ').some((t) => t !== '0s'); }).length")
    assert moving == 0
