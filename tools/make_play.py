"""Take the pictures of the page "Play": python -m tools.make_play [figure ...]

A picture of each live figure, as a reader first sees it, into book/_static/play/. Figures that show
what a cell has computed have none. This needs Chromium; run it again when a figure looks different.
"""

# ruff: noqa: E501  (scripts of the page read better in one line)

import base64
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.browser import Quiet, served, start_chromium

BOOK = Path(__file__).resolve().parents[1] / "book"
OUT = BOOK / "_static" / "play"
WIDTH, HEIGHT = 760, 475  # pixels of the page; the picture has twice as many for sharp screens
NEEDS_DATA = {"figure_path", "figure_memory"}
FIRST = {  # what is done before the picture: a script of the page
    "figure_heads": "press('Half of each layer')", "figure_order": "press('Shuffle')",
    "figure_film": "const s = document.querySelector('input[type=range]'); s.value = 9; s.dispatchEvent(new Event('input'))",
    "figure_train": "press('Play')", "figure_merges": "press('Schneemann')", "figure_mask": "press('Take the causal')",
    "figure_patch": "document.querySelector('.live-input').focus()", "figure_inside": "", "figure_decoding": "",
    "figure_letters": "press('Swap it with one to come')",
}
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/_static/palette.css"><link rel="stylesheet" href="/_static/custom.css">
<link rel="stylesheet" href="/_static/live/live.css"><body style="margin: 12px; background: #fffefb">
<style>* { box-sizing: border-box }</style><main class="bd-content"><article class="bd-article"><figure class="live-figure"
data-live="NAME"><div class="live-still"></div></figure></article></main><script src="/_static/live/figures.js"></script>"""


class Handler(Quiet):
    """/page/<figure> and the files of book/."""

    def translate_path(self, path):
        return super().translate_path(path.replace("/vendor/", "/_extra/vendor/"))

    def do_GET(self):
        if not self.path.startswith("/page/"):
            return super().do_GET()
        content = PAGE.replace("NAME", self.path.removeprefix("/page/")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(content)


def main(names: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    with served(BOOK, Handler) as address:
        shoot(names, address)


def shoot(names: list[str], address: str) -> None:
    driver = start_chromium(Path(tempfile.mkdtemp()))
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.25, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for name in names:
        driver.get(f"{address}/page/{name}")
        for _ in range(200):
            if driver.execute_script("return document.querySelector('.live-figure').dataset.ready"):
                break
            time.sleep(0.1)
        press = ("const press = (text) => [...document.querySelectorAll('button')]"
                 ".find((one) => one.textContent.startsWith(text))?.click();")
        driver.execute_script(press + FIRST.get(name, ""))
        time.sleep(6)
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 55})
        (OUT / f"{name}.webp").write_bytes(base64.b64decode(shot["data"]))
        print(name, len(shot["data"]) * 3 // 4)
    driver.quit()


if __name__ == "__main__":
    known = sorted(path.stem for path in (BOOK / "_static" / "live").glob("figure_*.js"))
    main(sys.argv[1:] or [name for name in known if name not in NEEDS_DATA])
