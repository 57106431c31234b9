"""Altair and BertViz figures without any request to another host.

Notebooks stay plain, so that they also work in Colab. When Sphinx writes a page, this
extension rewrites what the two libraries put into it:

- Altair's loader, which fetches Vega from a public server, becomes one call of
  book/_static/figures.js, which draws the chart with the copy in book/_extra/vendor.
  A static picture of the chart stands beside it for readers without JavaScript.
- A view of BertViz becomes the book's own figure of the same numbers, attention_view.js. On the
  pages that teach BertViz itself its frame stays, and loads our own d3 and jQuery.

A page that would still load something from another host is a warning, so the strict build fails.
"""

import functools
import hashlib
import html
import json
import multiprocessing
import re
import textwrap
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import vl_convert
from sphinx.application import Sphinx
from sphinx.util import logging

from transformer_lib.visualize import ROLE_COLOURS

logger = logging.getLogger(__name__)

STATIC_WIDTH, NARROW = 640, 420  # pixels, for charts as wide as the column, and of several parts

ALTAIR = re.compile(
    r'<style>\s*#(?P<id>altair-viz-\w+)\.vega-embed \{.*?</style>\s*'
    r'<div id="(?P=id)"></div>\s*<script[^>]*>\s*var VEGA_DEBUG.*?'
    r"\n  \}\)\((?P<arguments>\{.*?\})\);\s*</script>",
    re.DOTALL,
)
# What head_view, model_view and neuron_view of transformer_lib.visualize write.
ATTENTION = re.compile(
    r'<figure class="attention-figure"[^>]*>\s*'
    r'<script type="application/json">(?P<data>.*?)</script>'
    r'\s*<iframe (?P<options>[^>]*?)srcdoc="(?P<page>[^"]*)"></iframe>\s*</figure>',
    re.DOTALL,
)
BERTVIZ_PAGES = {"book/18_looking_inside"}  # BertViz is shown there as the field's tool
REQUIRE_JS = re.compile(r'<script src="https://[^"]*/require[^"]*"></script>')
# BertViz asks for jQuery and d3 in require.js style. This is all of it that BertViz uses.
OWN_LIBRARIES = """<script src="{root}vendor/jquery/jquery.min.js"></script>
<script src="{root}vendor/d3/d3.min.js"></script>
<script>
window.require = window.requirejs = (names, draw) =>
  addEventListener("DOMContentLoaded", () => draw(jQuery, d3));
require.config = () => {{}};
</script>"""
# German words that stand in the English prose, set in italics. A screen reader is told of them.
GERMAN = set("""Bank bellen der ein eine einen Frau Geld Hund hund Hunde Hundeschlittenrennen Hut im
Kapitän Katze Katzen liest Mann Park rennen roten schlafen Schneeballschlacht schläft Schnee
spielen trägt und weil wunde Zwei""".split())
ITALICS = re.compile(r"<em>([^<]+)</em>")
# Roles and labels that MyST-NB and docutils write and screen readers stumble over.
ACCESSIBLE = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
}
FOREIGN = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*?"
    r"\s(?:src|href|data|poster)\s*=\s*[\"']?(?P<url>(?:https?:)?//[^\"'\s>]+)",
)


def wrapped(title, width: int):
    """A title in lines that fit into so many pixels, as figures.js breaks it on a phone."""
    if isinstance(title, dict):
        return title | {"text": wrapped(title["text"], width)} if "text" in title else title
    lines = title if isinstance(title, list) else [title]
    most = max(24, int(width / 9.5))  # characters, about 9.5 px each
    return [part for line in lines for part in textwrap.wrap(line, most) or [""]]


def static_picture(spec: dict, outdir: Path) -> tuple[str, int]:
    """Write the chart as SVG under _images; return its file name and its height in pixels.

    A picture has none of the page's fonts: its letters may be wider than those it was set in. So
    titles are broken early, and there is room beside the longest label, line and legend.
    """
    width = spec.get("width", NARROW)  # charts side by side have no width of their own
    if not isinstance(width, int | float):
        spec, width = spec | {"width": STATIC_WIDTH}, STATIC_WIDTH
    if "title" in spec:
        spec = spec | {"title": wrapped(spec["title"], int(width))}
    spec = spec | {"padding": {"left": 60, "top": 10, "bottom": 10, "right": 80}}
    svg = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
    name = f"chart-{hashlib.sha256(svg.encode()).hexdigest()[:16]}.svg"
    folder = outdir / "_images"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(svg, encoding="utf8")
    height = re.search(r'<svg[^>]*\sheight="([\d.]+)"', svg)
    return name, round(float(height.group(1))) if height else 300


def chart_call(match: re.Match, root: str, outdir: Path) -> str:
    """The HTML that stands for one Altair chart."""
    spec, end = json.JSONDecoder().raw_decode(match["arguments"])
    options = json.loads(match["arguments"][end:].lstrip(", \n"))
    picture, height = static_picture(spec, outdir)
    label = html.escape(spec.get("description", "chart"), quote=True)
    arguments = f"{json.dumps(spec)}, {json.dumps(options)}".replace("</", "<\\/")
    return (
        f'<div class="chart" id="{match["id"]}" data-label="{label}"'
        f' style="min-height:{height}px"></div>\n'
        f'<noscript><img src="{root}_images/{picture}" alt="{label}"></noscript>\n'
        f'<script>bookFigures.drawChart(document.getElementById("{match["id"]}"), {arguments});'
        "</script>"
    )


def attention_picture(data: dict) -> str:
    """An SVG of one layer of a view: a grid for each head, a row for each query."""
    part = data["parts"][0]
    heads, queries, keys = part["weights"][data["layer"]], part["queries"], part["keys"]
    side, gap = 16, 24
    left, top = 8 * max(map(len, queries)) + 8, 6 * max(map(len, keys)) + 34
    wide, high = len(keys) * side, len(queries) * side
    drawn = []

    def text(x, y, words, **options):
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in options.items())
        drawn.append(f'<text x="{x}" y="{y}"{more}>{html.escape(words.replace("▁", ""))}</text>')

    for q, token in enumerate(queries):
        text(left - 6, top + q * side + 12, token, text_anchor="end")
    for h, head in enumerate(heads):
        start = left + h * (wide + gap)
        text(start, 12, f"layer {data['layer']}, head {h}")
        for k, token in enumerate(keys):
            x = start + k * side + 11
            text(x, top - 6, token, transform=f"rotate(-50 {x} {top - 6})")
        drawn += [
            f'<rect x="{start + k * side}" y="{top + q * side}" width="{side}" height="{side}"'
            f' fill="{ROLE_COLOURS["query"]}" fill-opacity="{weight:.2f}"'
            f' stroke="{ROLE_COLOURS["masked"]}" stroke-width="0.5"/>'
            for q, row in enumerate(head)
            for k, weight in enumerate(row)
        ]
    width, height = left + len(heads) * (wide + gap) + 30, top + high + 4
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" style="max-width:100%;height:auto"'
        f' font-family="Inter, sans-serif" font-size="12" fill="currentColor" role="img"'
        f' aria-label="{html.escape(data["description"])}">{"".join(drawn)}</svg>'
    )


def attention_view(match: re.Match, root: str, pagename: str) -> str:
    """What stands for a view of BertViz."""
    data = json.loads(match["data"])
    still, label = attention_picture(data), html.escape(data["description"])
    if pagename in BERTVIZ_PAGES:
        page = REQUIRE_JS.sub(OWN_LIBRARIES.format(root=root), html.unescape(match["page"]))
        return (
            f'<div class="bertviz"><iframe {match["options"]}srcdoc="{html.escape(page)}"></iframe>'
            f"</div>\n<noscript><p>{label}</p>{still}</noscript>"
        )
    return (
        f'<figure class="live-figure" data-live="attention_view" role="group" aria-label="{label}">'
        f'<script type="application/json">{match["data"]}</script>'
        f'<div class="live-still">{still}<noscript><p>{label}</p></noscript></div></figure>'
    )


def in_german(match: re.Match) -> str:
    """Italics that hold German words alone (and special tokens) are marked as German."""
    text = html.unescape(match[1])
    words = set(re.findall(r"[^\W\d_]+", re.sub(r"<\w+>", "", text)))
    german = words and words <= GERMAN
    return f'<em lang="de">{match[1]}</em>' if german else match[0]


def rewrite_body(body: str, root: str, outdir: Path, pagename: str) -> str:
    """The page's body with every Altair and BertViz figure served from this site.

    `root` leads from the page to the top of the site, e.g. "../".
    """
    new = ALTAIR.sub(lambda match: chart_call(match, root, outdir), body)
    new = ATTENTION.sub(lambda match: attention_view(match, root, pagename), new)
    new = ITALICS.sub(in_german, new)
    for wrong, right in ACCESSIBLE.items():
        new = new.replace(wrong, right)
    if "bookFigures.drawChart" in new or 'class="bertviz"' in new:
        new = (
            "<script>window.bookFigures = { asked: [], drawChart: (...call) =>"
            " bookFigures.asked.push(call) };</script>"
            f'<script defer src="{root}_static/figures.js"></script>'
            "<noscript><style>.chart, .bertviz { display: none }</style></noscript>\n" + new
        )
    if 'class="math' in new:  # MathJax is the heaviest file of the site: math.js asks for it
        new += (
            f'<script defer src="{root}_static/math.js"'
            ' data-mathjax="../vendor/mathjax/tex-chtml-full.js"></script>'
        )
    return new


def in_a_process(function, *arguments):
    """The function's result, from a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as process:
        return process.submit(function, *arguments).result()


def told(script) -> str:
    """All that Sphinx knows of a script or style sheet of a page, as text to search in."""
    return f"{getattr(script, 'filename', '')} {vars(script)}".lower()


def preloads(root: str) -> str:
    """The fonts of the first screen, asked for before the style sheets that name them."""
    fonts = ("source-serif-4-latin-wght-normal", "inter-latin-wght-normal")
    return "".join(
        f'<link rel="preload" href="{root}vendor/fonts/{font}.woff2" as="font" type="font/woff2"'
        " crossorigin>\n"
        for font in fonts
    )


LIVE = Path(__file__).parents[1] / "_static" / "live"


@functools.cache
def imported(module: str) -> tuple[str, ...]:
    """The module and what it imports at once, each before what it needs."""
    names = [module]
    for name in names:
        text = (LIVE / name).read_text(encoding="utf8")
        more = re.findall(r'^import [^;]*? from "\./(\w+\.js)";', text, re.MULTILINE)
        names += [one for one in dict.fromkeys(more) if one not in names]
    return tuple(names)


def modules(body: str, root: str) -> str:
    """The translator is its page's first screen: its modules come side by side, not by turns."""
    if 'data-live="translator"' not in body:
        return ""
    return "".join(
        f'<link rel="modulepreload" href="{root}_static/live/{name}" fetchpriority="low">\n'
        for name in imported("translator.js")
    )


def on_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.format != "html":
        return
    # The book has no live cells, and sphinx-thebe's script names a public server.
    for kind in ("script_files", "css_files"):
        context[kind] = [s for s in context[kind] if "thebe" not in told(s)]
    root = "../" * pagename.count("/")
    context["metatags"] = (context.get("metatags") or "") + preloads(root)
    context["metatags"] += modules(context.get("body") or "", root)
    body = context.get("body") or ""
    # Sphinx writes the first page itself and forks for the others. What draws the charts has
    # threads, and must not have been started before a fork.
    forks = app.parallel > 1 and multiprocessing.parent_process() is None
    run = in_a_process if forks else lambda function, *arguments: function(*arguments)
    context["body"] = run(rewrite_body, body, root, Path(app.outdir), pagename)
    context["script_files"] = [s for s in context["script_files"] if "tex-chtml" not in told(s)]
    for match in FOREIGN.finditer(context["body"]):
        logger.warning("%s loads %s from another host", pagename, match["url"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", on_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
