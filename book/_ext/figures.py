"""Altair and BertViz figures without any request to another host.

Notebooks stay plain, so that they also work in Colab. When Sphinx writes a page, this
extension rewrites what the two libraries put into it:

- Altair's loader, which fetches Vega from a public server, becomes one call of
  book/_static/figures.js, which draws the chart with the copy in book/_extra/vendor.
  A static picture of the chart stands beside it for readers without JavaScript.
- BertViz's require.js tag goes; figures.js answers its calls with our own d3 and jQuery.

A page that would still load something from another host is a warning, so the strict build fails.
"""

import hashlib
import html
import json
import re
from pathlib import Path

import vl_convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

STATIC_WIDTH = 640  # pixels, for charts as wide as the column

ALTAIR = re.compile(
    r'<style>\s*#(?P<id>altair-viz-\w+)\.vega-embed \{.*?</style>\s*'
    r'<div id="(?P=id)"></div>\s*<script[^>]*>\s*var VEGA_DEBUG.*?'
    r"\n  \}\)\((?P<arguments>\{.*?\})\);\s*</script>",
    re.DOTALL,
)
REQUIRE_JS = re.compile(r'<script src="https://cdnjs\.cloudflare\.com/[^"]*/require[^"]*"></script>')
BERTVIZ_CONFIG = re.compile(r"require\.config\(\{\s*paths: \{[^}]*\}\s*\}\);")
BERTVIZ_ROOT = re.compile(r'<div id="?\'?(bertviz-\w+)"?\'?')
BERTVIZ_GROUP = re.compile(r'<div role="group"[^>]*\saria-label="([^"]*)"[^>]*>')
BERTVIZ_NUMBERS = re.compile(r"(?:const params|window\.bertviz_params\w*) = (?=\{)")
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


def static_picture(spec: dict, outdir: Path) -> tuple[str, int]:
    """Write the chart as SVG under _images; return its file name and its height in pixels."""
    if spec.get("width") == "container":
        spec = spec | {"width": STATIC_WIDTH}
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


def attention_picture(group: re.Match, body: str) -> str:
    """What stands for a BertViz figure without JavaScript: its text, and its first layer as grids.

    Each head is one grid with a row for each query and a column for each key; the darker a square,
    the larger the weight.
    """
    numbers = BERTVIZ_NUMBERS.search(body, group.end())
    if not numbers:
        return ""
    params, _ = json.JSONDecoder().raw_decode(body, numbers.end())
    shown = params["attention"]
    shown = shown[0] if isinstance(shown, list) else next(iter(shown.values()))
    heads, side, gap = shown["attn"][0], 14, 20
    rows, columns = len(heads[0]), len(heads[0][0])
    squares = "".join(
        f'<rect x="{h * (columns * side + gap) + k * side}" y="{q * side}" width="{side}"'
        f' height="{side}" fill-opacity="{weight:.2f}"/>'
        for h, head in enumerate(heads)
        for q, row in enumerate(head)
        for k, weight in enumerate(row)
    )
    width, height = len(heads) * (columns * side + gap), rows * side
    return (
        f"<noscript><p>{group[1]}</p>"
        f'<svg viewBox="0 0 {width} {height}" width="{width}" fill="#0072B2" stroke="#ccc"'
        f' style="max-width:100%" role="img" aria-label="The weights of layer 0, head by head">'
        f"{squares}</svg></noscript>"
    )


def rewrite_body(body: str, root: str, outdir: Path) -> str:
    """The page's body with every Altair and BertViz figure served from this site.

    `root` leads from the page to the top of the site, e.g. "../".
    """
    new = ALTAIR.sub(lambda match: chart_call(match, root, outdir), body)
    new = REQUIRE_JS.sub("", new)
    new = BERTVIZ_CONFIG.sub("", new)
    new = BERTVIZ_ROOT.sub(r'<div class="bertviz" id="\1"', new)
    before = new
    new = BERTVIZ_GROUP.sub(lambda match: match[0] + attention_picture(match, before), before)
    for wrong, right in ACCESSIBLE.items():
        new = new.replace(wrong, right)
    if "bookFigures.drawChart" in new or 'class="bertviz"' in new:
        new = (
            f'<script src="{root}_static/figures.js"></script>'
            "<noscript><style>.chart, .bertviz { display: none }</style></noscript>\n" + new
        )
    return new


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


def on_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.format != "html":
        return
    # The book has no live cells, and sphinx-thebe's script names a public server.
    for kind in ("script_files", "css_files"):
        context[kind] = [s for s in context[kind] if "thebe" not in told(s)]
    root = "../" * pagename.count("/")
    context["metatags"] = (context.get("metatags") or "") + preloads(root)
    context["body"] = rewrite_body(context.get("body") or "", root, Path(app.outdir))
    if 'class="math' not in context["body"]:  # MathJax is the heaviest file of the site
        context["script_files"] = [s for s in context["script_files"] if "mathjax" not in told(s)]
    for match in FOREIGN.finditer(context["body"]):
        logger.warning("%s loads %s from another host", pagename, match["url"])


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", on_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
