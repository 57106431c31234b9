"""Take the pictures of the page "Play": python -m tools.make_play [figure ...]

A picture of each live figure of the built site, as a reader first sees it on its page, into
book/_static/play/. This needs Chromium and `make book`; run it again when a figure looks different.
"""

# ruff: noqa: E501  (scripts of the page read better in one line)

import base64
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.browser import served, start_chromium
from tools.build import ROOT, SITE

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import front_page  # noqa: E402

OUT = ROOT / "book" / "_static" / "play"
SCALE = 1.4  # pixels of the picture for one of the page
FIRST = {  # what is done before the picture: a script of the page
    "figure_heads": "press('Half of each layer')", "figure_order": "press('Shuffle')",
    "figure_film": "const s = figure.querySelector('input[type=range]'); s.value = 9; s.dispatchEvent(new Event('input'))",
    "figure_train": "press('Play')", "figure_merges": "press('Schneemann')", "figure_mask": "press('Take the causal')",
    "figure_patch": "figure.querySelector('.live-input')?.focus()",
    "figure_letters": "press('Swap it with a later letter')",
}
SHOW = """
const figure = document.querySelector(`.live-figure[data-live="${arguments[0]}"]`);
document.querySelectorAll('.live-guess button').forEach((one) => one.textContent.startsWith('Show') && one.click());
figure.scrollIntoView({ block: 'start', behavior: 'instant' });
return figure.dataset.ready"""
ALONE = """const style = document.createElement('style');
style.textContent = 'body * { visibility: hidden } .live-figure[data-live="' + arguments[0] + '"] :not(.live-finding) { visibility: visible }';
document.head.append(style);"""
PLACE = """const figure = document.querySelector(`.live-figure[data-live="${arguments[0]}"]`);
const { x, y, width, height } = (figure.querySelector('.live-box') ?? figure).getBoundingClientRect(), tall = (width + 16) * 5 / 8;
return { x: x + scrollX - 8, y: y + scrollY - Math.max(8, (tall - height) / 2), width: width + 16, height: tall, scale: arguments[1] * 676 / width }"""  # a flat figure in the middle


def main(names: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    driver = start_chromium(Path(tempfile.mkdtemp()))
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    with served(SITE) as address:
        for name, page in front_page.live_figures():
            if name not in (names or front_page.TITLES):
                continue
            driver.get(f"{address}/{page}.html")
            for _ in range(200):
                if driver.execute_script(SHOW, name):
                    break
                time.sleep(0.1)
            press = ("const figure = document.querySelector(`.live-figure[data-live=${arguments[0]}]`);"
                     "const press = (text) => [...figure.querySelectorAll('button')]"
                     ".find((one) => one.textContent.startsWith(text))?.click();")
            driver.execute_script(press + FIRST.get(name, ""), name)
            time.sleep(6)
            driver.execute_script(ALONE, name)
            clip = driver.execute_script(PLACE, name, SCALE)
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {
                "format": "webp", "quality": 55, "captureBeyondViewport": True, "clip": clip})
            (OUT / f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))
            print(name, len(shot["data"]) * 3 // 4)
    driver.quit()


if __name__ == "__main__":
    main(sys.argv[1:])
