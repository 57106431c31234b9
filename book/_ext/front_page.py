"""The first page, the gallery of what is live, and the list of solutions.

The first page has no menu and no toolbar: a line of links of its own, the translator, three numbers
that are read from what is shipped, and a strip of pictures, one for each part. What stands in the
sources as `<!-- numbers -->`, `<!-- parts -->`, `<!-- live -->` and `<!-- solutions -->` is written here,
in Markdown, so that every link is checked.
"""

# ruff: noqa: E501  (drawings and Markdown read better in one line)

import functools
import json
import re
from pathlib import Path

from book_nav import listed
from reading_order import CHAPTER, ROOT, chapters, name, title
from sphinx.application import Sphinx

RUN = ROOT / "results" / "multi30k-de-en"
SHIPPED = ROOT / "book" / "_static" / "live" / "multi30k-de-en.bin"
FRONT, PLAY, SOLUTIONS = "book/intro", "book/play", "book/solutions-list"

# A picture for each part, 240 x 120, in the colours of the roles.
def _words(xs, y, role):
    return "".join(f'<rect x="{x}" y="{y}" width="44" height="22" rx="7" class="p-{role}"/>' for x in xs)


def _curve(x0, x1, weight):
    return f'<path d="M{x0} 42C{x0} 70 {x1} 60 {x1} 84" class="p-line" stroke-width="{weight}"/>'


PICTURES = {
    "I": _words((16, 72, 128, 184), 20, "key") + _words((100,), 84, "query")
    + _curve(38, 114, 1.5) + _curve(94, 119, 3) + _curve(150, 125, 8) + _curve(206, 130, 1.5),
    "II": '<path d="M12 60q18-44 36 0t36 0t36 0t36 0t36 0t36 0" class="p-query p-wave"/>'
    '<path d="M12 60q36-60 72 0t72 0t72 0" class="p-key p-wave"/>'
    '<path d="M12 60q108-84 216 0" class="p-value p-wave"/>'
    + "".join(f'<circle cx="{x}" cy="100" r="5" class="p-{r}"/>' for x, r in
              ((48, "query"), (84, "key"), (120, "value"), (156, "query"), (192, "key"))),
    "III": "".join(f'<rect x="46" y="{y}" width="58" height="18" rx="5" class="p-key"/>' for y in (86, 62, 38))
    + "".join(f'<rect x="140" y="{y}" width="58" height="18" rx="5" class="p-query"/>' for y in (86, 62, 38, 14))
    + '<path d="M104 47C124 47 120 95 140 95M104 47C124 47 122 71 140 71M104 47H140" class="p-line" stroke-width="2"/>',
    "IV": '<path d="M22 12V104H226" class="p-axis"/><path d="M26 18C48 84 78 62 96 78S150 92 222 96" class="p-loss p-wave"/>'
    '<path d="M26 96C70 94 96 84 120 60S184 26 222 24" class="p-value p-wave"/>',
    "V": '<path d="M120 110V78M120 78C120 56 62 66 62 40M120 78C120 56 178 66 178 40M62 40C62 26 36 30 36 14M62 40C62 26 88 30 88 14'
    'M178 40C178 26 152 30 152 14M178 40C178 26 204 30 204 14M120 78V30" class="p-line" stroke-width="3"/>'
    + "".join(f'<circle cx="{x}" cy="{y}" r="7" class="p-{r}"/>' for x, y, r in
              ((36, 14, "key"), (88, 14, "key"), (120, 26, "value"), (152, 14, "query"), (204, 14, "query"))),
    "VI": "".join(f'<rect x="{16 + 20 * i}" y="16" width="16" height="30" rx="4" class="p-{"key" if i > 6 else "masked"}"/>' for i in range(11))
    + "".join(f'<rect x="{84 + 19 * i}" y="{66 + 13 * j}" width="15" height="9" rx="2" class="p-value"/>' for i in range(4) for j in range(4))
    + '<path d="M196 50C196 66 176 62 166 72" class="p-line" stroke-width="3"/>',
    "Workshop": "".join(f'<rect x="{60 + 24 * i}" y="{10 + 24 * j}" width="21" height="21" rx="4" class="p-{r}"/>'
                        for j in range(4) for i in range(5)
                        for r in [("loss" if (i, j) == (3, 1) else "query" if i <= j else "masked")])
    + '<circle cx="142" cy="44" r="24" class="p-axis"/><path d="M159 62l26 28" class="p-axis" stroke-width="6"/>',
    "Play": _words((28, 84, 140), 16, "key") + _words((56, 112), 84, "query")
    + '<path d="M50 38C50 66 78 58 78 84M106 38C106 66 134 58 134 84" class="p-line" stroke-width="6"/>'
    '<rect x="176" y="82" width="52" height="26" rx="13" class="p-value"/><circle cx="215" cy="95" r="9" class="p-knob"/>',
    "Teach": '<rect x="40" y="12" width="160" height="78" rx="8" class="p-axis"/>'
    '<path d="M58 36l7 7 12-14M58 64l7 7 12-14" class="p-value p-wave"/><path d="M92 36H180M92 64H152" class="p-axis"/>'
    '<path d="M96 90L80 112M144 90L160 112" class="p-axis"/>',
}
SAYS = {
    "I": "Attention, on three tokens with numbers that you can check by hand.",
    "II": "Words as vectors, their positions, and what keeps training steady.",
    "III": "Encoder and decoder, put together from parts that you have tested.",
    "IV": "From toy tasks to a translator, measured and taken apart.",
    "V": "BERT, GPT, pictures, long memories, agents: what came after.",
    "VI": "Caches, states, experts, preferences: what you'll meet in today's models.",
}
TITLES = {"figure_plane": "Turn a query in the plane", "figure_inside": "Inside one head", "figure_mask": "Take the masks off",
          "figure_heads": "Switch off heads by the dozen", "figure_merges": "How a word falls into pieces",
          "figure_order": "Shuffle the sentence", "figure_path": "Follow one token through the stack",
          "figure_train": "Train one yourself, in the page", "figure_decoding": "Choose another piece",
          "figure_film": "Watch a translator learn", "figure_patch": "Put one sentence into another",
          "figure_memory": "What a memory row remembers", "figure_family": "The family tree",
          "figure_letters": "Places or content?"}


def picture(part: str) -> str:
    return (f'```{{raw}} html\n<svg class="part-picture" viewBox="0 0 240 120" aria-hidden="true">{PICTURES[part]}</svg>\n```\n')


def numbers() -> str:
    """Three numbers, from the shipped file and its scores."""
    score = json.loads((RUN / "scores.json").read_text(encoding="utf8"))
    size = SHIPPED.stat().st_size / 1e6
    kept = json.loads(SHIPPED.with_name("examples.json").read_text(encoding="utf8"))["parameters"]
    facts = [
        (f"{size:.1f} MB", f"for the whole model on this page: {kept:,} parameters"),
        (f"{score['bleu']:.1f} BLEU", f"on {score['sentences']:,} new captions, German to English"),
        ("0 servers", "The model runs in your browser. What you type stays there."),
    ]
    return ":::{div} facts\n" + "".join(f"**{number}** {says}\n\n" for number, says in facts) + ":::\n"


def link(page: str, here: str) -> str:
    number = chapters().get(page)
    shown = f"{number} {name(page)}" if number else name(page)
    source = f"{page}.ipynb" if (ROOT / f"{page}.ipynb").exists() else f"{page}.md"
    return f"[{shown}]({Path(source).relative_to('book')})"


def parts() -> str:
    """A strip of pictures: each part of the book, and what lies around it."""
    out = ["::::{div} parts\n"]

    def card(key: str, heading: str, says: str, pages: list[str]) -> None:
        links = "\n".join(f"- {link(page, FRONT)}" for page in pages)
        out.append(f":::{{div}} part\n{picture(key)}\n**{heading}** {says}\n\n{links}\n:::\n")

    for caption, pages in listed():
        roman, _, heading = caption.partition("  ")
        if roman in SAYS and heading:
            card(roman, f"{roman}  {heading}", SAYS[roman], [page for page in pages if CHAPTER.fullmatch(page)])
    around = dict(listed())
    card("Workshop", "Workshop", "Build your own, race it, find its bugs.", around["Workshop"])
    card("Play", "Play", "The book's live figures, on one page.", [PLAY, "book/translator", "book/tour"])
    card("Teach", "Teach", "A course with graded labs, a guide and solutions.", [*around["In class"][:2], SOLUTIONS])
    return "\n".join([*out, "::::\n"])


@functools.cache
def live_figures() -> list[tuple[str, str]]:
    """(figure, page) of every live figure of a notebook, in reading order, once each."""
    found: dict[str, str] = {}
    for _, pages in listed():
        for page in pages:
            path = ROOT / f"{page}.ipynb"
            if path.exists() and CHAPTER.fullmatch(page):
                for figure in re.findall(r'\\"(figure_\w+)\\"', path.read_text(encoding="utf8")):
                    found.setdefault(figure, page)
    found["figure_family"] = "book/family-tree"
    return list(found.items())


def live() -> str:
    """The gallery: a picture of each live figure, the page that it stands on, what to do there."""
    out = ["::::{div} gallery\n"]
    for figure, page in live_figures():
        says = TITLES.get(figure)
        if not says:
            continue
        still = ROOT / "book" / "_static" / "play" / f"{figure}.webp"
        shown = (f'```{{raw}} html\n<img src="../_static/play/{figure}.webp" alt="" width="480" height="300" loading="lazy">\n```\n'
                 if still.exists() else "")
        source = f"{page}.ipynb" if (ROOT / f"{page}.ipynb").exists() else f"{page}.md"
        where = f"Chapter {chapters()[page]}, {name(page)}" if page in chapters() else name(page)
        out.append(f":::{{div}} gallery-card\n{shown}\n[{says}]({Path(source).relative_to('book')})\n\n{where}\n:::\n")
    return "\n".join([*out, "::::\n"])


def solutions() -> str:
    rows = []
    for caption, pages in listed():
        if caption == "Solutions":
            rows += [f"- [{title(page)}]({Path(page).relative_to('book')}.ipynb)" for page in pages]
    return "\n".join(rows)


def write(app: Sphinx, docname: str, source: list[str]) -> None:
    for mark, made in (("numbers", numbers), ("parts", parts), ("live", live), ("solutions", solutions)):
        if f"<!-- {mark} -->" in source[0]:
            source[0] = source[0].replace(f"<!-- {mark} -->", made())


def open_front(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """No menu beside the first page, no toolbar above it: its own line of links is both."""
    if pagename != FRONT or app.builder.format != "html":
        return
    context["sidebars"] = []
    context["theme_article_header_start"] = ["front-bar.html"]
    context["theme_article_header_end"] = []
    context["secondary_sidebar_items"] = []
    context["theme_show_prev_next"] = False
    context["front"] = True


def from_the_top(page: str) -> str:
    """A page of book/ with its relative addresses rewritten for one folder higher."""

    def address(found: re.Match) -> str:
        attribute, to = found.groups()
        return f'{attribute}="{to.removeprefix("../") or "./" if to.startswith("../") else f"book/{to}"}"'

    return re.sub(r'(?<=\s)(href|src|action|data-content_root)="(?![a-z]+:|[#/?])([^"]*)"', address, page)


def write_root(app: Sphinx, error: Exception | None) -> None:
    """The site's address shows the first page itself: a redirect costs a phone half a second."""
    first = Path(app.outdir) / f"{FRONT}.html"
    if error is None and app.builder.name == "html" and first.exists():
        page = from_the_top(first.read_text(encoding="utf8"))
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf8")


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write)
    app.connect("build-finished", write_root)
    app.connect("html-page-context", open_front, priority=850)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
