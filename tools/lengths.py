"""How long the pages are: a chapter is read in one sitting.

    python -m tools.lengths                      words, minutes to read, lines of code, place of the
                                                 first figure
    python -m tools.lengths --site _build/html   the same, and the height of each built page

A line of code is visible when a reader of the page sees it without opening anything. Not counted:
empty lines, the library's own code (`lib:`), folded cells (`hide-`, `remove-`), the setup cell, and
the exercises with their answer cells and checks. The second form needs selenium and Chromium.
"""

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from benchmarks.browser import CHROMIUM, DRIVER, served, start_chromium
from tools import prose

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 250  # visible lines of code beside the printed library
MOST_PIXELS = 23_000  # height of a page at WIDTH; the aim is 20,000
WIDTH, SCREEN = 1280, 800  # pixels
UNSEEN = ("lib:", "hide-", "remove-", "setup")  # how the tags of cells that do not count begin
EXERCISES = "## Exercises"
# How fast a page is read: slowly, since you guess, move figures and run cells on the way.
# The two numbers fit the times that were stated by feel for the first fifty pages.
WORDS_A_MINUTE, LINES_A_MINUTE = 70, 15
STATED = re.compile(r"(?<=\*\*Time\*\* )\d+(?= minutes to read)")
FIGURE = re.compile(
    r"\bvisualize\.(?:live_figure|attention_heatmap|line_chart|head_view|model_view|neuron_view)\("
    r"|\balt\.(?:Chart|layer|hconcat|vconcat)\("
)
# What a page holds to move, point at or click; tests/browser/test_site.py runs this, too.
MEASURE = """
const figures = [...document.querySelectorAll("article :is(.chart, .bertviz, .live-figure)")];
const tops = figures.filter((figure) => figure.offsetHeight)
  .map((figure) => figure.getBoundingClientRect().top + scrollY);
const extra = document.querySelector("#check-yourself")?.offsetHeight ?? 0;  // is read another time
return [document.documentElement.scrollHeight - extra, tops.length ? Math.min(...tops) : null];
"""


def chapters(root: Path = ROOT) -> list[Path]:
    """The notebooks of the chapters, in the order of their files."""
    return sorted((root / "book").glob("[0-9][0-9]*_*.ipynb"))


def read_cells(path: Path) -> list[dict]:
    """The cells of a notebook: type, tags, and the source as one text."""
    return [plain_cell(cell) for cell in json.loads(path.read_text(encoding="utf8"))["cells"]]


def plain_cell(cell: dict) -> dict:
    """A notebook's cell: its type, tags, and the source as one text."""
    return {
        "type": cell["cell_type"],
        "tags": cell["metadata"].get("tags", []),
        "source": "".join(cell["source"]),
    }


def read_before_exercises(cells: list[dict]) -> list[dict]:
    """The cells of a page without those of its exercises."""
    found, in_exercises = [], False
    for cell in cells:
        if cell["type"] == "markdown":
            for heading in re.findall(r"^## .*", cell["source"], re.MULTILINE):
                in_exercises = heading.startswith(EXERCISES)
        if not in_exercises:
            found.append(cell)
    return found


def visible_lines(cells: list[dict]) -> int:
    """Lines of code that stand open on the page, beside the library's and the exercises'."""
    return sum(
        bool(line.strip())
        for cell in read_before_exercises(cells)
        if cell["type"] == "code" and not any(tag.startswith(UNSEEN) for tag in cell["tags"])
        for line in cell["source"].splitlines()
    )


def words(cells: list[dict]) -> int:
    """Words of running text, without the exercises."""
    texts = [c["source"] for c in read_before_exercises(cells) if c["type"] == "markdown"]
    return prose.count_words(prose.without_code("\n\n".join(texts)))


def reading_minutes(cells: list[dict]) -> int:
    """How long a page takes to read, in minutes, rounded to 5: what it states after **Time**."""
    minutes = words(cells) / WORDS_A_MINUTE + visible_lines(cells) / LINES_A_MINUTE
    return max(5, 5 * round(minutes / 5))


def first_figure(cells: list[dict]) -> int | None:
    """The number of the first cell that draws a figure to move, counted without the setup cell."""
    counted = [cell for cell in cells if "setup" not in cell["tags"]]
    for number, cell in enumerate(counted):
        if cell["type"] == "code" and FIGURE.search(cell["source"]):
            return number
    return None


def measure_pages(site: Path, pages: list[str]) -> dict[str, tuple[int, float | None]]:
    """Of each page: its height, and the top of its first figure or None, in pixels."""
    from selenium.webdriver.support.ui import WebDriverWait

    if not (CHROMIUM and DRIVER):
        sys.exit("--site needs chromium and chromedriver on the path.")
    size = {"width": WIDTH, "height": SCREEN, "deviceScaleFactor": 1, "mobile": False}
    found = {}
    with served(site) as address, tempfile.TemporaryDirectory() as profile:
        browser = start_chromium(Path(profile))
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            for page in pages:
                browser.get(f"{address}/{page}")
                # Figures are drawn when they come near the screen; printing draws them all.
                for event in ("beforeprint", "afterprint"):
                    browser.execute_script("dispatchEvent(new Event(arguments[0]))", event)
                WebDriverWait(browser, 60).until(
                    lambda b: b.execute_script(
                        "return document.readyState === 'complete' && !document.querySelector("
                        "'.chart:not([data-drawn]), .math:not(:has(mjx-container))')"
                    )
                )
                found[page] = tuple(browser.execute_script(MEASURE))
        finally:
            browser.quit()
    return found


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, help="a built site, such as _build/html")
    parser.add_argument("notebooks", nargs="*", type=Path, help="these chapters only")
    options = parser.parse_args(arguments)
    paths = options.notebooks or chapters()
    pages = {path: f"book/{path.stem}.html" for path in paths}
    sizes = measure_pages(options.site, list(pages.values())) if options.site else {}
    print(f"{'chapter':<32}{'cells':>6}{'words':>7}{'minutes':>9}", end="")
    print(f"{'lines':>7}{'figure at':>10}", end="")
    print(f"{'px':>8}{'screens to it':>15}" if sizes else "")
    for path in paths:
        cells = read_cells(path)
        lines, figure = visible_lines(cells), first_figure(cells)
        mark = "!" if lines > MOST_LINES else " "
        place = "-" if figure is None else figure
        print(f"{path.stem:<32}{len(cells):>6}{words(cells):>7}", end="")
        print(f"{reading_minutes(cells):>9}{lines:>6}{mark}{place:>10}", end="")
        if sizes:
            height, top = sizes[pages[path]]
            mark = "!" if height > MOST_PIXELS else " "
            print(f"{height:>7}{mark}{'-' if top is None else f'{top / SCREEN:.1f}':>15}", end="")
        print()


if __name__ == "__main__":
    main()
