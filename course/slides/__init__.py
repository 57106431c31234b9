"""A deck of slides for each session, from named cells of the executed notebooks: `make slides`.

    python -m course.slides                  # _build/course/slides/session-01.html and so on
    python -m course.slides --pdf 3          # and session 3 as PDF, through Chromium

decks.yml says which cell a slide shows, and what the speaker asks. The figures are those of the
pages: drawings and tables as they are, charts as pictures of the same specification, live figures
as their still. Nothing is asked from another host; reveal.js lies beside the decks.
"""

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from course.bank import ROOT, chapters

HERE = Path(__file__).parent
OUT = ROOT / "_build" / "course" / "slides"
WORDS, CODE = 60, 18  # most words of text, most lines of code on a slide
SHOWS = ("output", "code", "both")
SCRIPTED = re.compile(r"<script\b.*?</script>", re.DOTALL)


@dataclass(frozen=True)
class Slide:
    title: str
    minutes: int
    ask: str
    expect: str
    text: str = ""
    cell: str = ""  # "masks#8232578a"
    show: str = "output"

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
    """A slide names a cell that its notebook doesn't have."""


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
            if found is None:
                wrong.append(f"{where}: {notebook} has no cell {cell!r}")
            elif slide.show != "output" and len(found["source"].splitlines()) > CODE:
                wrong.append(f"{where}: {len(found['source'].splitlines())} lines of code, "
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


def chart(source: str) -> str | None:
    """A chart's picture, if this HTML is one of Altair's."""
    import vl_convert

    if "vegaEmbed" not in source:
        return None
    sys.path.append(str(ROOT / "book" / "_ext"))
    from figures import wrapped  # the pages' own way with titles that are too long for a picture

    start = source.rindex("})(") + 3
    spec, _ = json.JSONDecoder().raw_decode(source[start:].lstrip())
    if not isinstance(spec.get("width", 0), int | float):
        spec["width"] = 760
    if "title" in spec:
        spec["title"] = wrapped(spec["title"], int(spec.get("width", 560)))
    spec["padding"] = {"left": 10, "top": 5, "bottom": 5, "right": 120}  # room for wide letters
    label = html.escape(spec.get("description", "chart"), quote=True)
    svg = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
    return f'<div class="drawn" role="img" aria-label="{label}">{svg}</div>'


def output_html(output: dict) -> str:
    """One output of a cell as a slide shows it."""
    if output["output_type"] == "stream":
        return f"<pre class=printed>{html.escape(''.join(output['text']).rstrip())}</pre>"
    data = {kind: "".join(value) if isinstance(value, list) else value
            for kind, value in output.get("data", {}).items()}
    if "text/html" in data:
        return chart(data["text/html"]) or SCRIPTED.sub("", data["text/html"])
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


def slide_html(slide: Slide, outputs: dict[str, dict[str, list]]) -> str:
    """A slide as reveal.js reads it; notes are for the speaker's window."""
    shown = ""
    if slide.cell:
        notebook, cell = slide.place
        if cell not in cells(notebook):
            raise MissingCell(f"{slide.title!r} names {slide.cell}, which isn't there.")
        if slide.show in ("code", "both"):
            shown += highlighted(cells(notebook)[cell]["source"])
        if slide.show in ("output", "both"):
            shown += "".join(map(output_html, outputs.get(notebook, {}).get(cell, [])))
    text = f'<div class="text">{MarkdownIt().renderInline(slide.text)}</div>' if slide.text else ""
    box = f'<div class="figure"><div class="fit">{shown}</div></div>' if shown else ""
    ask, expect = map(MarkdownIt().renderInline, (slide.ask, slide.expect))
    kind = "with-figure" if shown else "without-figure"
    return (
        f'<section data-timing="{60 * slide.minutes}" class="{kind}">\n'
        f"<h2>{MarkdownIt().renderInline(slide.title)}</h2>\n{text}{box}\n"
        f'<aside class="notes"><p><b>{slide.minutes} min. Ask:</b> {ask}</p>'
        f"<p><b>Expect:</b> {expect}</p></aside>\n</section>"
    )


def deck_html(deck: Deck, outputs: dict[str, dict[str, list]]) -> str:
    """A deck as one page beside the folder `reveal`."""
    slides = "\n".join(slide_html(slide, outputs) for slide in deck.slides)
    template = (HERE / "deck.html").read_text(encoding="utf8")
    first = (f'<section class="title" data-timing="0"><p>Session {deck.session}</p>'
             f"<h1>{html.escape(deck.title)}</h1></section>")
    title = f"Session {deck.session}: {deck.title}"
    return template.replace("{{title}}", html.escape(title)).replace("{{slides}}", first + slides)


def write(out: Path, decks: list[Deck], outputs=None) -> list[Path]:
    """Write decks into a folder. Raises ValueError with all that is wrong with them."""
    wrong = [problem for deck in decks for problem in problems(deck)]
    if wrong:
        raise ValueError("\n".join(wrong))
    if outputs is None:
        needed = sorted({slide.place[0] for deck in decks for slide in deck.slides if slide.cell})
        outputs = {notebook: executed(notebook) for notebook in needed}
    out.mkdir(parents=True, exist_ok=True)
    shutil.copytree(HERE / "reveal", out / "reveal", dirs_exist_ok=True)
    made = []
    for deck in decks:
        made.append(out / f"session-{deck.session:02d}.html")
        made[-1].write_text(deck_html(deck, outputs), encoding="utf8")
    return made


def print_pdf(deck: Path) -> Path:
    """A deck as PDF, through Chromium."""
    pdf = deck.with_suffix(".pdf")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        raise SystemExit("A PDF needs chromium on the path.")
    subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
                    "--virtual-time-budget=8000", "--no-pdf-header-footer",
                    f"--print-to-pdf={pdf}", f"{deck.as_uri()}?print-pdf"],
                   check=True, capture_output=True)
    return pdf


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sessions", nargs="*", type=int, help="these sessions only")
    parser.add_argument("--pdf", action="store_true", help="print them as PDF, too")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    decks = [d for d in load() if not options.sessions or d.session in options.sessions]
    try:
        made = write(options.out, decks)
    except ValueError as error:
        print(error)
        return 1
    for path in made:
        print(path, *([print_pdf(path)] if options.pdf else []))
    return 0


if __name__ == "__main__":
    sys.exit(main())
