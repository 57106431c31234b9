"""A deck of slides for each session, from named cells of the executed notebooks: `make slides`.

    python -m course.slides                  # _build/course/slides/session-01.html and so on
    python -m course.slides --pdf 3          # and session 3 as PDF, through Chromium
    python -m course.slides --show 3         # serve session 3 on this machine, and open it

decks.yml says which cell a slide shows, and what the speaker asks. The figures are those of the
pages: drawings and tables as they are, charts as pictures of the same specification, or drawn by
Vega where they have something to move. Figures that run the model do so when the deck is served
(`--show`); opened from disk, they're stills. Nothing is asked from another host.
"""

import argparse
import base64
import html
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
import webbrowser
from dataclasses import dataclass
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from course import plan
from course.bank import ROOT, chapters
from tools.arguments import count, new_folder

HERE = Path(__file__).parent
OUT = ROOT / "_build" / "course" / "slides"
WORDS, CODE = 60, 18  # most words of text, most lines of code on a slide
SHOWS = ("output", "code", "both")
SCRIPTED = re.compile(r"<script\b(?! type=.application/json).*?</script>", re.DOTALL)
VEGA = ("vega", "vega-lite", "vega-embed")
SEVERAL = re.compile(r'"(hconcat|vconcat|concat|facet|repeat|row|column)":')  # views
CHART = {"axis": {"labelFontSize": 15, "titleFontSize": 16, "labelLimit": 320},
         "legend": {"labelFontSize": 15, "titleFontSize": 16, "labelLimit": 400},
         "header": {"labelFontSize": 15, "titleFontSize": 16}, "title": {"fontSize": 19}}


@dataclass(frozen=True)
class Slide:
    title: str
    minutes: int
    ask: str
    expect: str
    text: str = ""
    cell: str = ""  # "masks#8232578a"
    show: str = "output"
    also: str = ""  # another cell of the same notebook, whose output comes first
    lines: str = ""  # "2-9": these lines of the code
    printed: bool = True  # whether printed lines are shown, besides charts and tables
    hold: bool = False  # whether the figure waits for a key, after the question
    across: bool = False  # whether charts that the page stacks stand side by side
    lab: int = 0  # shows the tasks of this lab

    @property
    def place(self) -> tuple[str, str]:
        """(the notebook's name, the cell's id)"""
        chapter, _, cell = self.cell.partition("#")
        return chapters().get(chapter, chapter), cell


@dataclass(frozen=True)
class Deck:
    session: int
    title: str
    minutes: int
    slides: tuple[Slide, ...]


class MissingCell(ValueError):
    """A slide names a cell that its notebook doesn't have, or that gave nothing to show."""


def load(path: Path = HERE / "decks.yml") -> list[Deck]:
    """All decks."""
    found = yaml.safe_load(path.read_text(encoding="utf8"))
    return [Deck(**deck | {"slides": tuple(Slide(**slide) for slide in deck["slides"])})
            for deck in found]


@cache
def cells(notebook: str) -> dict[str, dict]:
    """{id: cell} of a notebook's source."""
    path = ROOT / "book" / f"{notebook}.ipynb"
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf8"))["cells"]
    return {cell["id"]: cell | {"source": "".join(cell["source"])} for cell in found}


def code_of(slide: Slide) -> str:
    """The code that a slide shows."""
    notebook, cell = slide.place
    lines = cells(notebook)[cell]["source"].splitlines()
    first, _, last = slide.lines.partition("-")
    return textwrap.dedent("\n".join(lines[int(first) - 1 : int(last)] if slide.lines else lines))


def problems(deck: Deck) -> list[str]:
    """What is wrong with a deck: missing cells, too much on a slide, minutes that don't add up."""
    wrong = []
    total = sum(slide.minutes for slide in deck.slides)
    if total != deck.minutes:
        wrong.append(f"session {deck.session}: {total} minutes, and it has {deck.minutes}")
    for slide in deck.slides:
        where = f"session {deck.session}, {slide.title!r}"
        if len(slide.text.split()) > WORDS:
            wrong.append(f"{where}: {len(slide.text.split())} words, at most {WORDS}")
        if not (slide.ask and slide.expect):
            wrong.append(f"{where}: nothing to ask, or no wrong answer to expect")
        if slide.show not in SHOWS:
            wrong.append(f"{where}: show is one of {', '.join(SHOWS)}")
        if slide.cell:
            notebook, cell = slide.place
            found = cells(notebook).get(cell)
            if slide.also and slide.also not in cells(notebook):
                wrong.append(f"{where}: {notebook} has no cell {slide.also!r}")
            if found is None:
                wrong.append(f"{where}: {notebook} has no cell {cell!r}")
            elif slide.show != "output" and len(code_of(slide).splitlines()) > CODE:
                wrong.append(f"{where}: {len(code_of(slide).splitlines())} lines of code, "
                             f"at most {CODE}")
    return wrong


def executed(notebook: str) -> dict[str, list]:
    """{id: outputs} of a notebook, from the build's cache, or from a run now."""
    from jupyter_cache import get_cache

    from tools import execute

    path = ROOT / "book" / f"{notebook}.ipynb"
    if execute.main([str(path)]):
        raise RuntimeError(f"{path.name} fails")
    store = get_cache(execute.CACHE)
    ran = store.get_cache_bundle(store.match_cache_file(str(path)).pk).nb
    return {cell.id: cell.get("outputs", []) for cell in ran.cells}


def page_figures():
    """The module by which the pages draw their figures."""
    sys.path.append(str(ROOT / "book" / "_ext"))
    import figures

    return figures


def larger(part, name=""):
    """A specification for a slide: letters on the marks at least 15 pixels high, whole names at
    the axes, legends beside."""
    if isinstance(part, list):
        return [larger(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {key: value if key in ("data", "datasets") else larger(value, key)
             for key, value in part.items()}
    if name == "legend":
        found = {key: value for key, value in found.items() if key not in ("orient", "columns")}
    if name == "axis":
        found.pop("labelLimit", None)
    if found.get("type") == "text" and isinstance(found.get("fontSize", 11), int | float):
        found["fontSize"] = max(found.get("fontSize", 11), 15)
    return found


def chart(source: str, across: bool = False) -> str | None:
    """A chart, if this HTML is one of Altair's: its picture, and what draws it again.

    across: charts that the page stacks stand side by side.
    """
    import vl_convert

    if "vegaEmbed" not in source:
        return None
    start = source.rindex("})(") + 3
    spec, _ = json.JSONDecoder().raw_decode(source[start:].lstrip())
    if across:
        spec["hconcat"] = spec.pop("vconcat")
    bare = json.dumps(spec | {"data": None, "datasets": None})
    several = SEVERAL.search(bare)
    if not several and "rect" not in bare and isinstance(spec.get("height", 300), int | float):
        # A chart of one view takes the form of the slide, with its legend beside it.
        spec |= {"width": 720, "height": 330, "autosize": "pad"}
    if across or not several:
        spec = larger(spec)
    config = spec.get("config", {})
    spec["config"] = config | {part: config.get(part, {}) | sizes for part, sizes in CHART.items()}
    if not isinstance(spec.get("width", 0), int | float):
        spec["width"] = 760
    if "title" in spec:
        width = max(int(spec.get("width", 560)), 520 if several else 460)
        spec["title"] = page_figures().wrapped(spec["title"], width)
    spec["padding"] = {"left": 10, "top": 5, "bottom": 5, "right": 20}
    label = html.escape(spec.get("description", "chart"), quote=True)
    # The picture is measured in other letters than the slide's: a little room on either side.
    padding = {"left": 60, "top": 5, "bottom": 5, "right": 120}
    svg = vl_convert.vegalite_to_svg(spec | {"padding": padding}, vl_version="6.4")
    drawn = f'<div class="drawn" role="img" aria-label="{label}">{svg}</div>'
    return (f'<div class="vega" data-label="{label}">{drawn}<script type="application/json">'
            + json.dumps(spec).replace("</", "<\\/") + "</script></div>")


def output_html(output: dict, across: bool = False) -> str:
    """One output of a cell as a slide shows it."""
    if output["output_type"] == "stream":
        return f"<pre class=printed>{html.escape(''.join(output['text']).rstrip())}</pre>"
    data = {kind: "".join(value) if isinstance(value, list) else value
            for kind, value in output.get("data", {}).items()}
    if "text/html" in data:
        drawn = chart(data["text/html"], across)
        if drawn is not None:
            return drawn
        figures = page_figures()
        view = partial(figures.attention_view, root="", pagename="")
        given = SCRIPTED.sub("", figures.ATTENTION.sub(view, data["text/html"]))
        return re.sub(r"(</?)section\b", r"\1div", given)  # to reveal.js a section is a slide
    if "image/svg+xml" in data:
        return data["image/svg+xml"]
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/markdown" in data:
        return MarkdownIt().enable("table").render(data["text/markdown"])
    return f"<pre class=printed>{html.escape(data.get('text/plain', ''))}</pre>"


def highlighted(source: str) -> str:
    """Python in colours that don't need a script."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source, PythonLexer(), HtmlFormatter(cssclass="code", nowrap=False))


def lab_html(number: int) -> str:
    """A lab's tasks with their points, from the students' notebook."""
    lab = plan.labs()[number]
    titles = {n: MarkdownIt().renderInline(t[:1].upper() + t[1:]) for n, t in lab["tasks"].items()}
    rows = "".join(f"<tr><td>{task}</td><td>{titles[task]}</td><td>{points}</td></tr>"
                   for task, points in lab["points"].items())
    return (f"<table class=lab><tr><th>task</th><th>{html.escape(lab['title'])}</th><th>points</th>"
            f"</tr>{rows}</table><p>{lab['minutes']} minutes, {sum(lab['points'].values())} "
            f"points. <code>book/labs/{lab['file']}</code></p>")


def slide_html(slide: Slide, outputs: dict[str, dict[str, list]]) -> str:
    """A slide as reveal.js reads it; notes are for the speaker's window."""
    shown = lab_html(slide.lab) if slide.lab else ""
    if slide.cell:
        notebook, cell = slide.place
        if cell not in cells(notebook):
            raise MissingCell(f"{slide.title!r} names {slide.cell}, which isn't there.")
        if slide.show in ("code", "both"):
            shown += highlighted(code_of(slide))
        if slide.show in ("output", "both"):
            given = [o for name in filter(None, (slide.also, cell))
                     for o in outputs.get(notebook, {}).get(name, [])
                     if slide.printed or o["output_type"] != "stream"]
            if notebook in outputs and not given:
                raise MissingCell(f"{slide.title!r} shows {slide.cell}, which gave nothing.")
            drawn = "".join(output_html(output, slide.across) for output in given)
            shown += f'<div class="given">{drawn}</div>'
    text = f'<div class="text">{MarkdownIt().render(slide.text)}</div>' if slide.text else ""
    # Text and figure are one box: deck.js may put the one beside the other.
    held = " fragment" if slide.hold else ""
    box = f'<div class="figure{held}"><div class="fit">{shown}</div></div>' if shown else ""
    ask, expect = map(MarkdownIt().renderInline, (slide.ask, slide.expect))
    kind = "with-figure" if shown else "without-figure"
    first = "Ask first, then press a key for the figure." if slide.hold else ""
    return (
        f'<section data-timing="{60 * slide.minutes}" class="{kind}">\n'
        f"<h2>{MarkdownIt().renderInline(slide.title)}</h2>\n"
        f'<div class="body">{text}{box}</div>\n'
        f'<aside class="notes"><p><b>{slide.minutes} min. Ask:</b> {ask}</p>'
        f"<p><b>Expect:</b> {expect}</p><p>{first}</p></aside>\n</section>"
    )


def goals_of(session: int) -> list[str]:
    """What a session is for."""
    return [goal["goal"] for goal in plan.sessions()[session - 1]["goals"]]


def next_html(session: int) -> str:
    """The last slide: what to do until the next session."""
    sessions = plan.sessions()
    lines = []
    if sessions[session - 1]["homework"]:
        lines.append(f"Homework, {sessions[session - 1]['homework']} minutes: "
                     f"{MarkdownIt().renderInline(plan.homework(session))}")
    if session < len(sessions):
        coming = sessions[session]
        read = ", ".join(f"<i>{html.escape(plan.title(chapter))}</i>" for chapter in coming["read"])
        minutes = sum(map(plan.reading, coming["read"]))
        lines.append(f"Read {read} ({minutes} minutes), and write your guesses down")
        lines += [f"Hand in lab {number}" for number in coming.get("due", [])]
    if session == len(plan.load()["sessions"]):
        lines.insert(0, f"Lab {plan.load()['last_lab']} is due in a week")
        lines[-1] = f"If the course goes on: {lines[-1].replace('Read', 'read', 1)}"
    listed = "".join(f"<li>{line}</li>" for line in lines)
    return ('<section class="without-figure next" data-timing="0"><h2>Before next time</h2>'
            f'<div class="body"><div class="text"><ul>{listed}</ul></div></div></section>')


def deck_html(deck: Deck, outputs: dict[str, dict[str, list]], size: str = "") -> str:
    """A deck as one page beside the folder `reveal`. `size`: at which run size the cells ran."""
    slides = "\n".join(slide_html(slide, outputs) for slide in deck.slides)
    template = (HERE / "deck.html").read_text(encoding="utf8")
    goals = "".join(f"<li>{html.escape(goal)}</li>" for goal in goals_of(deck.session))
    warning = ("<p class=warning>Made from runs of the size <i>smoke</i>: nothing has been "
               "trained, and the numbers mean nothing.</p>" if size == "smoke" else "")
    first = (f'<section class="title" data-timing="0"><p>Session {deck.session}</p>'
             f"<h1>{html.escape(deck.title)}</h1><p>Afterwards you can</p><ul>{goals}</ul>{warning}"
             "</section>")
    title = f"Session {deck.session}: {deck.title}"
    scripts = ""
    if 'class="vega"' in slides:
        scripts = "".join(f'<script src="vendor/vega/{name}.min.js"></script>' for name in VEGA)
    if "data-live=" in slides:
        scripts += '<script src="_static/live/figures.js"></script>'
    for name, value in {"title": html.escape(title), "scripts": scripts,
                        "slides": first + slides + next_html(deck.session)}.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def write(out: Path, decks: list[Deck], outputs=None) -> list[Path]:
    """Write decks into a folder. Raises ValueError with all that is wrong with them."""
    wrong = [problem for deck in decks for problem in problems(deck)]
    if wrong:
        raise ValueError("\n".join(wrong))
    if outputs is None:
        needed = sorted({slide.place[0] for deck in decks for slide in deck.slides if slide.cell})
        outputs = {notebook: executed(notebook) for notebook in needed}
    out.mkdir(parents=True, exist_ok=True)
    book = ROOT / "book"
    for source, name in ((HERE / "reveal", "reveal"), (book / "_static" / "live", "_static/live"),
                         (book / "_extra" / "vendor" / "vega", "vendor/vega"),
                         (book / "_extra" / "vendor" / "fonts", "vendor/fonts")):
        shutil.copytree(source, out / name, dirs_exist_ok=True)
    for name in ("palette.css", "space-mark.ttf"):
        shutil.copy(book / "_static" / name, out / "_static")
    made = []
    for deck in decks:
        made.append(out / f"session-{deck.session:02d}.html")
        text = deck_html(deck, outputs, os.environ.get("BOOK_SCALE", ""))
        made[-1].write_text(text, encoding="utf8")
    return made


def serve(deck: Path) -> None:
    """Serve a deck's folder on this machine until Ctrl-C, and open the deck."""
    handler = partial(SimpleHTTPRequestHandler, directory=deck.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/{deck.name}"
        print(f"{address}\nS opens the speaker's window. Ctrl-C here stops the server.")
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def print_pdfs(decks: list[Path]) -> list[Path]:
    """Decks as PDFs, through Chromium: a page a slide.

    Each is printed once its page says that its figures have their sizes; Chromium's own
    --print-to-pdf prints an empty page where a busy machine hasn't loaded the deck yet.
    Raises RuntimeError if pages are missing or empty, or a figure has no size.
    """
    from pypdf import PdfReader
    from selenium.webdriver.support.ui import WebDriverWait

    from benchmarks.browser import CHROMIUM, DRIVER, start_chromium

    if not (CHROMIUM and DRIVER):
        raise SystemExit("A PDF needs chromium and chromedriver on the path.")
    made = []
    with tempfile.TemporaryDirectory() as profile:
        driver = start_chromium(Path(profile))
        try:
            for deck in decks:
                driver.get(f"{deck.resolve().as_uri()}?print-pdf")
                WebDriverWait(driver, 120).until(lambda page: page.execute_script(
                    "return document.documentElement.dataset.printed"))
                if lost := driver.execute_script(
                        "return [...document.querySelectorAll('.figure:not([data-scale])')]"
                        ".map((box) => box.closest('section').querySelector('h2').innerText)"):
                    raise RuntimeError(f"{deck}: figures without a size on {lost}.")
                answer = driver.execute_cdp_cmd("Page.printToPDF", {
                    "printBackground": True, "preferCSSPageSize": True})
                made.append(deck.with_suffix(".pdf"))
                made[-1].write_bytes(base64.b64decode(answer["data"]))
                slides = len(re.findall(r"<section\b", deck.read_text(encoding="utf8")))
                letters = [re.sub(r"[\d\W]", "", page.extract_text())  # without the slide's number
                           for page in PdfReader(made[-1]).pages]
                if len(letters) != slides or not all(letters):
                    raise RuntimeError(f"{made[-1]} has {len(letters)} pages for {slides} slides, "
                                       f"{letters.count('')} of them empty.")
        finally:
            driver.quit()
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sessions", nargs="*", type=count, help="these sessions only")
    parser.add_argument("--pdf", action="store_true", help="print them as PDF, too")
    parser.add_argument("--show", action="store_true", help="serve the first of them, and open it")
    parser.add_argument("--out", type=new_folder, default=OUT)
    options = parser.parse_args(arguments)
    known = [d.session for d in load()]
    if unknown := [n for n in options.sessions if n not in known]:
        parser.error(f"there is no session {unknown[0]}; there are {known[0]} to {known[-1]}")
    decks = [d for d in load() if not options.sessions or d.session in options.sessions]
    try:
        made = write(options.out, decks)
    except ValueError as error:
        print(error)
        return 1
    print(*made, *(print_pdfs(made) if options.pdf else []), sep="\n")
    if os.environ.get("BOOK_SCALE") == "smoke":
        print("BOOK_SCALE is smoke: the decks show numbers of models that haven't been trained.")
    if options.show:
        serve(made[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
