"""The frame around the pages: menu, first page, style sheets, and what waits for the reader."""

# ruff: noqa: E501  (pages and style sheets read better in one line)

import importlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes

from tools.setup_cell import ROOT

sys.path.insert(0, str(ROOT / "book" / "_ext"))
book_nav, figures, front_page, lean = map(
    importlib.import_module, ("book_nav", "figures", "front_page", "lean"))
reading_order = importlib.import_module("reading_order")
VISIBLE = 30  # links of a menu that stand open, at most; they were 81


def app():
    """As much of Sphinx as a menu needs."""
    titles = {page: nodes.title("", reading_order.title(page)) for page in reading_order.pages()}
    uri = SimpleNamespace(get_relative_uri=lambda here, page: f"/{page}.html")
    return SimpleNamespace(builder=uri, env=SimpleNamespace(titles=titles))


def open_links(menu: str) -> list[str]:
    return re.findall(r'href="/([^"]+)\.html"', re.sub(r"<details class=\"[\w -]*\">.*?</details>", "", menu))


@pytest.mark.parametrize("page", ["book/translator", "book/03_masks", "book/18_looking_inside",
                                  "book/25_acting", "book/solutions/03_masks", "book/glossary"])
def test_the_menu_is_short_and_shows_where_the_reader_is(page):
    menu = book_nav.menu(app(), page)
    shown = open_links(menu)
    assert page in shown and len(shown) <= VISIBLE, shown
    assert menu.count('aria-current="page"') == 1
    assert f'href="/{page}.html" aria-current="page"' in menu


def test_every_page_is_in_the_menu_or_on_the_page_of_solutions():
    menu = book_nav.menu(app(), "book/intro")
    listed = set(re.findall(r'href="/([^"]+)\.html"', menu)) | {"book/intro"}
    listed |= {f"book/{page}" for page in re.findall(r"\(([^)]+)\.ipynb\)", front_page.solutions())}
    assert set(reading_order.pages()) == listed


def test_what_is_no_chapter_stands_under_one():
    menu = book_nav.menu(app(), "book/more-on-positions")
    assert '<li class="nav-under"><a href="/book/more-on-positions.html"' in menu
    assert '<li class="nav-under"><a href="/book/06' not in menu


def test_a_ring_knows_what_its_chapter_asks():
    guesses, exercises = book_nav.asked("book/03_masks")
    assert "masks-off" in guesses and exercises >= 5
    rings = book_nav.menu(app(), "book/03_masks").count("nav-ring")
    assert rings >= len(reading_order.chapters())


def test_the_first_pages_numbers_are_read():
    said = front_page.numbers()
    score = json.loads((ROOT / "results/multi30k-de-en/scores.json").read_text())
    assert f"**{score['bleu']:.1f} BLEU**" in said
    size = (ROOT / "book/_static/live/multi30k-de-en.bin").stat().st_size
    assert f"**{size / 1e6:.1f} MB**" in said
    parts = front_page.parts()
    assert all(f"({page.removeprefix('book/')}.ipynb)" in parts for page in reading_order.chapters())
    assert parts.count("part-picture") >= 7


def test_every_figure_of_the_gallery_has_its_picture():
    shown = [figure for figure, _ in front_page.live_figures()]
    assert shown == [figure for figure in shown if figure in front_page.TITLES], "a figure without a title"
    lack = [figure for figure in shown if not (ROOT / f"book/_static/play/{figure}.webp").is_file()]
    assert not lack, "python -m tools.make_play"


def test_no_part_of_the_first_page_names_a_page_twice():
    cards = front_page.parts().split(":::{div} part\n")[1:]
    assert len(cards) == 9
    for card in cards:
        links = re.findall(r"^- (.+)$", card, re.MULTILINE)
        assert links and len(links) == len(set(links)), links


def test_every_live_figure_is_in_the_gallery():
    shown = front_page.live()
    live = {path.stem for path in (ROOT / "book/_static/live").glob("figure_*.js")}
    used = {figure for figure, _ in front_page.live_figures()}
    assert used <= live and used <= set(front_page.TITLES), used - set(front_page.TITLES)
    assert all(f"[{front_page.TITLES[figure]}](" in shown for figure in used)


CSS = """@charset "UTF-8"; @import url("x.css");
a { color: red } .used, .gone > b { color: "}" } .gone { x: y }
@media (max-width: 9px) { .gone { a: b } .used:not(.gone) { c: d } } @media print { .gone { e: f } }
@font-face { src: url(a.woff) } .used.gone:hover { g: h }"""


def test_rules_for_classes_that_occur_nowhere_go():
    kept = lean.used(CSS, {"used"})
    assert "a{color: red}" in kept and '.used{color: "}"}' in kept and ".used:not(.gone){c: d}" in kept
    assert "x: y" not in kept and "e: f" not in kept and "g: h" not in kept and "@media print" not in kept
    assert '@import url("x.css");' in kept and "@font-face{src: url(a.woff)}" in kept


def test_rules_for_names_that_a_script_completes_stay(tmp_path):
    """`live-plane-${kind}`: the drawing's colours once went with the rules for it."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.js").write_text("x.className = `live-plane-${kind}`; y = a - b;")
    known = lean.names({}, tmp_path)
    assert lean.used(".live-plane-key { a: b } .live-planet { c: d }", known) == ".live-plane-key{a: b}"


def test_sheets_become_one_that_finds_its_files(tmp_path):
    for name, text in {"styles/a.css": '@import "../b.css"; .x{background:url("img/i.svg")}',
                       "b.css": '.y{background:url(fonts/f.woff?v=1)} /* gone */'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    made = lean.sheet(tmp_path / "styles/a.css", tmp_path)
    assert 'url("styles/img/i.svg")' in made and 'url("fonts/f.woff")' in made
    assert "@import" not in made and "gone" not in made


def test_the_translators_modules_are_asked_for_at_once():
    names = figures.imported("translator.js")
    assert {"translator.js", "shared.js", "arcs.js", "story.js"} <= set(names) and "card.js" not in names
    assert figures.modules('<div data-live="translator">', "../").count("modulepreload") == len(names)
    assert not figures.modules('<div data-live="figure_mask">', "../")


def test_no_script_waits_in_the_head(tmp_path):
    head = '<script src="a.js"></script><script defer src="b.js"></script><script>DOCUMENTATION_OPTIONS.pagename = "x";</script>'
    made = lean.deferred(head)
    assert '<script defer src="a.js">' in made and made.count("defer") == 2
    assert 'addEventListener("DOMContentLoaded", () => { DOCUMENTATION_OPTIONS.pagename = "x"; })' in made


def test_a_site_is_rewritten_once_it_is_whole(tmp_path):
    static = tmp_path / "_static"
    static.mkdir()
    (static / "a.css").write_text(".one { a: b } .two { c: d }")
    (static / "b.css").write_text(".three { e: f }")
    (tmp_path / "book").mkdir()
    page = tmp_path / "book" / "p.html"
    page.write_text('<head><meta name="viewport" content="1"><link rel="stylesheet" href="../_static/a.css?v=1">\n'
                    '<link rel="stylesheet" href="../_static/b.css">\n<meta name="viewport" content="2"></head>'
                    '<body class="one three"></body>')
    lean.lean(SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=tmp_path), None)
    text = page.read_text()
    (sheet,) = re.findall(r'rel="stylesheet" href="\.\./_static/(book-\w+\.css)"', text)
    assert text.count("viewport") == 1
    css = (static / sheet).read_text()
    assert ".one" in css and ".three" in css and ".two" not in css


def test_the_theme_makes_no_tab_stops(tmp_path, monkeypatch):
    """It would lay out the page once for each box: a second of a phone's time on a long page."""
    script = tmp_path / "theme.js"
    said = []
    monkeypatch.setattr(lean.logger, "warning", lambda *words: said.append(words))
    script.write_text(f"document.querySelectorAll({lean.TAB_STOPS}).forEach(stop)")
    for _ in range(2):  # also where a build goes on with files of the last one
        lean.without_tab_stops(script)
        assert script.read_text() == 'document.querySelectorAll("#none").forEach(stop)' and not said
    script.write_text('document.querySelectorAll("pre").forEach(stop)')
    lean.without_tab_stops(script)
    assert said, "another theme is to be looked at"


def test_the_installed_theme_is_the_one_that_lean_knows():
    theme = importlib.import_module("pydata_sphinx_theme")
    script = Path(theme.__file__).parent / "theme/pydata_sphinx_theme/static" / lean.THEMES
    assert script.read_text(encoding="utf8").count(lean.TAB_STOPS) == 1
