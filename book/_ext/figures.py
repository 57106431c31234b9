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


def rewrite_body(body: str, root: str, outdir: Path) -> str:
    """The page's body with every Altair and BertViz figure served from this site.

    `root` leads from the page to the top of the site, e.g. "../".
    """
    new = ALTAIR.sub(lambda match: chart_call(match, root, outdir), body)
    new = REQUIRE_JS.sub("", new)
    new = BERTVIZ_CONFIG.sub("", new)
    new = BERTVIZ_ROOT.sub(r'<div class="bertviz" id="\1"', new)
    new = BERTVIZ_GROUP.sub(r"\g<0><noscript><p>\1</p></noscript>", new)
    if new != body:
        new = f'<script src="{root}_static/figures.js"></script>\n' + new
    return new


def on_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    body = context.get("body")
    if not body or app.builder.format != "html":
        return
    root = "../" * pagename.count("/")
    context["body"] = rewrite_body(body, root, Path(app.outdir))
    for match in FOREIGN.finditer(context["body"]):
        logger.warning("%s loads %s from another host", pagename, match["url"])
    # sphinx-thebe's script names a public server; the book has no live cells.
    context["script_files"] = [
        script for script in context["script_files"]
        if "thebe" not in f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', '')}"
    ]


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", on_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
