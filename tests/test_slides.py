"""The decks of slides: what they name exists, minutes add up, and nothing overflows in Chromium."""

import dataclasses
import re
import tempfile
from pathlib import Path

import pytest

from benchmarks.browser import CHROMIUM, DRIVER, start_chromium
from course import slides
from tools.setup_cell import ROOT

DECKS = slides.load()
CHART = """<div id="altair-viz-1"></div><script>(function(spec, embedOpt){ vegaEmbed("#x", spec);
})({"mark": "point", "data": {"values": [{"x": 1}]}, "width": "container",
"description": "One <point>", "encoding": {"x": {"field": "x"}}}, {"mode": "vega-lite"});
</script>"""


def test_there_is_a_deck_for_each_session_of_the_guide():
    guide = (ROOT / "book" / "teaching-guide.md").read_text(encoding="utf8")
    assert [d.session for d in DECKS] == [
        int(n) for n in re.findall(r"^:::\{dropdown\} Session (\d+)", guide, re.MULTILINE)
    ][: len(DECKS)]
    assert len(DECKS) >= 12


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


def test_other_mistakes_are_named():
    slide = dataclasses.replace(DECKS[0].slides[0], text="word " * 80, ask="", minutes=3)
    deck = dataclasses.replace(DECKS[0], slides=(slide,))
    found = "\n".join(slides.problems(deck))
    assert "3 minutes, and it has 90" in found and "80 words" in found and "nothing to ask" in found


def test_a_chart_becomes_a_picture_with_its_description():
    made = slides.output_html({"output_type": "display_data", "data": {"text/html": CHART}})
    assert "<svg" in made and "<script" not in made and 'aria-label="One &lt;point&gt;"' in made


def test_what_is_printed_is_escaped_and_scripts_are_left_out():
    printed = slides.output_html({"output_type": "stream", "name": "stdout", "text": "1 < 2\n"})
    assert printed == "<pre class=printed>1 &lt; 2</pre>"
    table = {"text/html": "<table><tr><td>1</td></tr></table><script>steal()</script>"}
    assert "script" not in slides.output_html({"output_type": "execute_result", "data": table})


def placeholder_outputs() -> dict:
    """Something tall, wide, printed or drawn for every cell that a deck shows."""
    drawn = '<svg viewBox="0 0 640 400" role="img" aria-label="drawn"></svg>'
    table = "<table>" + f"<tr>{'<td>0.123</td>' * 30}</tr>" * 20 + "</table>"
    kinds = [[{"output_type": "stream", "text": "a line of output\n" * 12}],
             [{"output_type": "display_data", "data": {"text/html": drawn}}],
             [{"output_type": "display_data", "data": {"text/html": table}}],
             [{"output_type": "display_data", "data": {"text/html": CHART}}]]
    found = {}
    for number, slide in enumerate(s for d in DECKS for s in d.slides if s.cell):
        notebook, cell = slide.place
        found.setdefault(notebook, {})[cell] = kinds[number % len(kinds)]
    return found


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")
def test_no_slide_overflows_and_no_other_host_is_asked(tmp_path):
    made = slides.write(tmp_path, DECKS, placeholder_outputs())
    driver = start_chromium(Path(tempfile.mkdtemp()))
    size = {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False}
    try:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for path, deck in zip(made, DECKS, strict=True):
            driver.get(path.as_uri())
            count = driver.execute_script("return Reveal.getTotalSlides()")
            assert count == len(deck.slides) + 1
            for number in range(count):
                driver.execute_script(f"Reveal.slide({number}); fit()")
                tall, wide, scale = driver.execute_script("""
                    const slide = document.querySelector("section.present");
                    const box = slide.querySelector(".figure");
                    return [slide.scrollHeight, slide.scrollWidth, box ? +box.dataset.scale : 1]""")
                assert tall <= 720 and wide <= 1280, f"{path.name} {number}: {wide} x {tall}"
                assert scale > 0.3, f"{path.name} {number}: its figure has no room"
            asked = driver.execute_script(
                "return performance.getEntriesByType('resource').map((r) => r.name)")
            assert not [a for a in asked if not a.startswith("file:")]
            errors = [e["message"] for e in driver.get_log("browser") if e["level"] == "SEVERE"]
            assert not errors
    finally:
        driver.quit()
