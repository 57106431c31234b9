"""The decks of slides: what they name exists, and their minutes add up to the guide's. In Chromium
nothing overflows, charts and figures live, and axe finds nothing serious."""

import dataclasses
import re
import tempfile
import time
from itertools import accumulate
from pathlib import Path

import pytest

from benchmarks import browser
from benchmarks.browser import CHROMIUM, DRIVER
from course import plan, slides
from tools.setup_cell import ROOT

DECKS = slides.load()
GUIDE = (ROOT / "book" / "teaching-guide.md").read_text(encoding="utf8")
AXE = ROOT / "tests" / "browser" / "axe.min.js"
CHART = """<div id="altair-viz-1"></div><script>(function(spec, embedOpt){ vegaEmbed("#x", spec);
})({"mark": "point", "data": {"values": [{"x": 1}]}, "width": "container",
"description": "One <point>", "encoding": {"x": {"field": "x"}}}, {"mode": "vega-lite"});
</script>"""


def session_of_the_guide(number: int) -> str:
    return GUIDE.partition(f":::{{dropdown}} Session {number}:")[2].partition("\n:::\n")[0]


def test_there_is_a_deck_for_each_session_of_the_guide():
    numbers = [int(n) for n in re.findall(r"^:::\{dropdown\} Session (\d+)", GUIDE, re.MULTILINE)]
    assert [deck.session for deck in DECKS] == numbers == list(range(1, 20))
    assert [deck.title for deck in DECKS] == [session["title"] for session in plan.sessions()]


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: f"session-{deck.session}")
def test_a_deck_keeps_the_guides_clock(deck):
    rows = re.findall(r"^\| (\d+)–(\d+) \|", session_of_the_guide(deck.session), re.MULTILINE)
    assert rows[0][0] == "0" and int(rows[-1][1]) == deck.minutes
    assert all(before[1] == after[0] for before, after in zip(rows, rows[1:], strict=False))
    slides_end = set(accumulate(slide.minutes for slide in deck.slides))
    assert {int(end) for _, end in rows} <= slides_end


@pytest.mark.parametrize("number", range(1, 20))
def test_homework_is_there_and_takes_the_stated_minutes(number):
    found = re.search(r"^\*\*Homework\*\* \((\d+) minutes[^)]*\): (.+)$",
                      session_of_the_guide(number), re.MULTILINE)
    if number == 12:
        assert found is None
        return
    total = 0
    for name, listed in re.findall(r"/?(\w+)\.ipynb\), exercises? ([^;]+)", found[2]):
        text = "\n".join(plan.markdown_cells(ROOT / "book" / f"{name}.ipynb"))
        there = {n: (title, int(minutes)) for n, title, minutes in re.findall(
            r"\*\*Exercise (\d+)\. ([^*]+)\*\* \([^)]*?(\d+) minutes\)", text)}
        for exercise in listed.rstrip(".").split(" · "):
            n, _, title = exercise.partition(" ")
            assert there[n][0].rstrip("?") == title.strip().rstrip("?"), (number, exercise)
            total += there[n][1]
    assert total == int(found[1]) == plan.sessions()[number - 1]["homework"]


def test_the_note_on_self_study_states_exercises_that_exist_and_their_minutes():
    note = GUIDE.partition("### Part VI, for self-study\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \[[^]]+\]\((\w+)\.ipynb\).*\|(.*)\|$", note, re.MULTILINE)
    toc = (ROOT / "_toc.yml").read_text(encoding="utf8")
    part = toc.partition("caption: VI ")[2].partition("caption:")[0]
    assert [name for name, _ in rows] == re.findall(r"file: book/(\w+)", part)
    for name, homework in rows:
        text = "\n".join(plan.markdown_cells(ROOT / "book" / f"{name}.ipynb"))
        there = dict(re.findall(r"\*\*Exercise (\d+\. [^*]+)\*\* \([^)]*?(\d+) minutes\)", text))
        if homework.strip():
            listed, minutes = re.search(r"exercises (.+) \((\d+) minutes\)", homework).groups()
            chosen = [re.sub(r"^(\d+)", r"\1.", one) for one in listed.split(" · ")]
            assert sum(int(there[one]) for one in chosen) == int(minutes), name


def test_a_headline_on_a_slide_is_the_chapters():
    chapter = "\n".join(plan.markdown_cells(ROOT / "book" / "22_encoder_decoders.ipynb"))
    assert "22.0 instead of 6.2" in chapter and "22.0 BLEU instead of 6.2" in GUIDE
    text = next(s.text for d in DECKS for s in d.slides if s.title == "A headline")
    assert "22.0 BLEU" in text and "6.2 without" in text
    text = next(s.text for s in DECKS[12].slides if "two ways" in s.title)
    nats = [int(n) * int(each) for n, each in re.findall(r"(\d+) tokens, (\d+) nat", text)]
    assert nats == [200, 250]


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: f"session-{deck.session}")
def test_a_deck_is_in_order(deck):
    assert not slides.problems(deck)


def test_a_missing_cell_stops_the_build(tmp_path):
    slide = dataclasses.replace(DECKS[0].slides[1], cell="why_attention#no-such-cell")
    deck = dataclasses.replace(DECKS[0], slides=(slide,), minutes=slide.minutes)
    with pytest.raises(ValueError, match="01_why_attention has no cell 'no-such-cell'"):
        slides.write(tmp_path, [deck], {})
    with pytest.raises(slides.MissingCell):
        slides.slide_html(slide, {})


def test_a_cell_that_gave_nothing_stops_the_build():
    slide = dataclasses.replace(DECKS[0].slides[1], printed=False)
    printed = {"01_why_attention": {"05f3a426": [{"output_type": "stream", "text": "a"}]}}
    with pytest.raises(slides.MissingCell, match="gave nothing"):
        slides.slide_html(slide, printed)


def test_other_mistakes_are_named():
    slide = dataclasses.replace(DECKS[0].slides[0], text="word " * 80, ask="", minutes=3)
    deck = dataclasses.replace(DECKS[0], slides=(slide,))
    found = "\n".join(slides.problems(deck))
    assert "3 minutes, and it has 90" in found and "80 words" in found and "nothing to ask" in found


def test_a_slide_shows_some_lines_another_cells_output_and_a_labs_tasks():
    slide = dataclasses.replace(DECKS[0].slides[1], cell="why_attention#12eb0e00", show="both",
                                lines="8-9", also="05f3a426", printed=False, hold=True)
    assert slides.code_of(slide).startswith("weights = ") and "\nreturn " in slides.code_of(slide)
    outputs = {"01_why_attention": {name: [{"output_type": "stream", "text": f"printed {name}"},
                                           {"output_type": "display_data",
                                            "data": {"text/html": f"<table>{name}</table>"}}]
                                    for name in ("12eb0e00", "05f3a426")}}
    made = slides.slide_html(slide, outputs)
    assert made.index("<table>05f3a426") < made.index("<table>12eb0e00") and "printed" not in made
    assert 'class="figure fragment"' in made and "press a key" in made
    lab = slides.slide_html(dataclasses.replace(slide, cell="", lab=1), {})
    assert lab.count("<tr>") == 8 and "20 points" in lab


def test_the_last_slide_says_what_comes_next():
    assert "Hand in lab 1" in slides.next_html(3) and "Homework, 25 minutes" in slides.next_html(3)
    assert "Lab 6 is due in a week" in slides.next_html(12)
    assert "Read" not in slides.next_html(19)


def test_numbers_of_untrained_models_are_called_so():
    assert "nothing has been trained" in slides.deck_html(DECKS[0], {}, "smoke")
    assert "nothing has been trained" not in slides.deck_html(DECKS[0], {}, "cpu")


def test_a_chart_becomes_a_picture_with_its_description_and_can_be_drawn_again():
    made = slides.output_html({"output_type": "display_data", "data": {"text/html": CHART}})
    assert "<svg" in made and 'aria-label="One &lt;point&gt;"' in made
    assert made.count("<script") == made.count('<script type="application/json">') == 1
    spec = {"mark": {"type": "text", "fontSize": 9}, "data": {"fontSize": 9, "type": "text"},
            "encoding": {"color": {"legend": {"orient": "bottom", "title": "t"}},
                         "y": {"axis": {"labelLimit": 60, "title": "t"}}}}
    larger = slides.larger(spec)
    assert larger["encoding"]["y"]["axis"] == {"title": "t"}
    assert larger["mark"]["fontSize"] == 15 and larger["data"] == spec["data"]
    assert larger["encoding"]["color"]["legend"] == {"title": "t"}


def test_a_chart_that_fits_a_page_fills_a_slide_and_stacked_ones_stand_side_by_side():
    fitted = CHART.replace('"mark"', '"autosize": {"type": "fit-x"}, "mark"', 1)
    made = slides.output_html({"output_type": "display_data", "data": {"text/html": fitted}})
    assert '"width": 720' in made and '"autosize": "pad"' in made
    pair = CHART.replace('{"mark": "point"', '{"vconcat": [{"mark": "point"}, {"mark": "bar"}]', 1)
    shown = {"output_type": "display_data", "data": {"text/html": pair}}
    assert '"hconcat"' in slides.output_html(shown, across=True)
    assert '"vconcat"' in slides.output_html(shown)


def test_what_is_printed_is_escaped_and_scripts_are_left_out():
    printed = slides.output_html({"output_type": "stream", "name": "stdout", "text": "1 < 2\n"})
    assert printed == "<pre class=printed>1 &lt; 2</pre>"
    table = {"text/html": "<table><tr><td>1</td></tr></table><script>steal()</script>"}
    assert "script" not in slides.output_html({"output_type": "execute_result", "data": table})
    guess = {"text/html": "<section class=live-guess><p>sections are slides</p></section>"}
    assert "<section" not in slides.output_html({"output_type": "execute_result", "data": guess})


def placeholder_outputs() -> dict:
    """Something tall, wide, printed or drawn for every cell that a deck shows."""
    drawn = ('<figure class="drawing"><style>figure.drawing{container-type:inline-size}</style>'
             '<svg viewBox="0 0 640 400" class="wide" role="img" aria-label="drawn" '
             'style="max-width:100%;height:auto"></svg></figure>')
    table = "<table>" + f"<tr>{'<td>0.123</td>' * 30}</tr>" * 20 + "</table>"
    kinds = [[{"output_type": "stream", "text": "a line of output\n" * 12}],
             [{"output_type": "display_data", "data": {"text/html": drawn}}],
             [{"output_type": "display_data", "data": {"text/html": table}}],
             [{"output_type": "display_data", "data": {"text/html": CHART}}]]
    found = {}
    for number, slide in enumerate(s for d in DECKS for s in d.slides if s.cell):
        notebook, cell = slide.place
        found.setdefault(notebook, {})[cell] = kinds[number % 4 if slide.printed else 3]
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(a driver of Chromium at a slide's size, the address of all decks with placeholders)"""
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs Chromium")
    folder = tmp_path_factory.mktemp("decks")
    slides.write(folder, DECKS, placeholder_outputs())

    with browser.served(folder) as address:
        driver = browser.start_chromium(Path(tempfile.mkdtemp()))
        size = {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.set_script_timeout(60)
        yield driver, address
        driver.quit()


def wait_for(driver, script: str, seconds: float = 30):
    end = time.monotonic() + seconds
    while not driver.execute_script(f"return {script}"):
        assert time.monotonic() < end, script
        time.sleep(0.05)


@pytest.mark.slow
def test_no_slide_overflows_and_no_other_host_is_asked(served):
    driver, site = served
    for deck in DECKS:
        name = f"session-{deck.session:02d}.html"
        driver.get(f"{site}/{name}")
        wait_for(driver, "document.documentElement.dataset.fitted")
        count = driver.execute_script("return Reveal.getTotalSlides()")
        assert count == len(deck.slides) + 2
        for number in range(count):
            driver.execute_script(f"Reveal.slide({number}, 0, 9); fit()")
            tall, wide, scale, shown = driver.execute_script("""
                const slide = document.querySelector("section.present");
                const box = slide.querySelector(".figure");
                return [slide.scrollHeight, slide.scrollWidth, box ? +box.dataset.scale : 1,
                        slide.innerText.trim().length]""")
            assert tall <= 720 and wide <= 1280, f"{name} {number}: {wide} x {tall}"
            assert scale > 0.3, f"{name} {number}: its figure has no room"
            assert shown > 20, f"{name} {number} is empty"
        asked = driver.execute_script(
            "return performance.getEntriesByType('resource').map((r) => r.name)")
        assert not [a for a in asked if not a.startswith((site, "data:"))]
        errors = [e["message"] for e in driver.get_log("browser") if e["level"] == "SEVERE"]
        assert not errors


SOME = pytest.mark.parametrize("decks", [
    pytest.param(DECKS[::4], id="one in four"),
    pytest.param(DECKS, id="all", marks=[pytest.mark.weekly, pytest.mark.timeout(1200)]),
])


@SOME
@pytest.mark.slow
def test_axe_finds_nothing_serious_on_a_slide(served, decks):
    driver, site = served
    for deck in decks:
        driver.get(f"{site}/session-{deck.session:02d}.html")
        wait_for(driver, "document.documentElement.dataset.fitted")
        driver.execute_script(AXE.read_text(encoding="utf8"))
        for number in range(len(deck.slides) + 2):
            driver.execute_script(f"Reveal.slide({number}, 0, 9)")
            found = driver.execute_async_script("""const done = arguments[0];
                axe.run("section.present", {resultTypes: ["violations"]}).then((result) => done(
                  result.violations.filter((v) => ["serious", "critical"].includes(v.impact))
                    .map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 120)}`)))""")
            assert not found, (deck.session, number, found)


@pytest.mark.slow
def test_charts_and_figures_live_and_a_held_figure_waits(served, tmp_path):
    driver, site = served
    film = {"text/html": '<figure class="live-figure" data-live="figure_film">'
                         '<div class="live-still"></div></figure>'}
    bound = CHART.replace('"mark": "point"', '"mark": "point", "params": [{"name": "size", '
                          '"value": 3, "bind": {"input": "range", "min": 1, "max": 9}}]')
    first = DECKS[0].slides[1]
    pair = (dataclasses.replace(first, cell="why_attention#05f3a426", hold=True),
            dataclasses.replace(first, cell="why_attention#12eb0e00", show="output"))
    deck = dataclasses.replace(DECKS[0], slides=pair, minutes=2 * first.minutes)
    outputs = {"01_why_attention": {
        "05f3a426": [{"output_type": "display_data", "data": {"text/html": bound}}],
        "12eb0e00": [{"output_type": "display_data", "data": film}]}}
    text = slides.deck_html(deck, outputs)
    made = slides.write(tmp_path, [deck], outputs)[0]
    assert made.read_text(encoding="utf8").count("data-live=") == text.count("data-live=") == 1
    with browser.served(tmp_path) as address:
        driver.get(f"{address}/{made.name}")
        wait_for(driver, "document.documentElement.dataset.fitted")
        wait_for(driver, "document.querySelector('.vega').dataset.ready")
        driver.execute_script("Reveal.slide(2)")
        wait_for(driver, "document.querySelector('.live-figure').dataset.ready")
        assert driver.execute_script("return document.querySelectorAll('.vega input').length") == 1
        assert driver.execute_script("return Reveal.getTotalSlides()") == 4
        driver.execute_script("Reveal.slide(1, 0, -1)")
        hidden = "getComputedStyle(document.querySelector('.present .figure')).visibility"
        assert driver.execute_script(f"return {hidden}") == "hidden"
        driver.execute_script("Reveal.next()")
        assert driver.execute_script(f"return {hidden}") == "visible"
        driver.execute_script("document.querySelector('.vega input').focus()")
        driver.switch_to.active_element.send_keys("\ue014")  # the right arrow moves the slider
        value, slide = driver.execute_script(
            "return [document.activeElement.value, Reveal.getIndices().h]")
        assert float(value) > 3 and slide == 1
        wait_for(driver, "document.querySelectorAll('.live-film-line').length === 10")


@SOME
@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")
def test_every_deck_prints_a_slide_a_page(tmp_path, decks):
    """Decks in one browser. Each page has its slide's size and title."""
    from pypdf import PdfReader

    made = slides.write(tmp_path, decks, placeholder_outputs())
    for deck, pdf in zip(decks, slides.print_pdfs(made), strict=True):
        pages = PdfReader(pdf).pages
        titles = [deck.title, *(slide.title for slide in deck.slides), "Before next time"]
        assert len(pages) == len(titles)
        for title, page in zip(titles, pages, strict=True):
            assert (page.mediabox.width, page.mediabox.height) == (960, 540)  # 1280 x 720 pixels
            words = re.sub(r"\W", "", page.extract_text())
            assert re.sub(r"\W", "", title) in words, (deck.session, title)


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")
def test_a_deck_with_an_empty_page_is_an_error(tmp_path):
    deck = slides.write(tmp_path, DECKS[3:4], placeholder_outputs())[0]
    hidden = "<style>.reveal section.title * { display: none }</style></head>"
    text = deck.read_text(encoding="utf8").replace("</head>", hidden)
    deck.write_text(text, encoding="utf8")
    with pytest.raises(RuntimeError, match=r"9 pages for 9 slides, 1 of them empty"):
        slides.print_pdfs([deck])
