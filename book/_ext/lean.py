"""What stands between a reader and the first words: one style sheet, and no script.

When all pages are written, their style sheets are put into one, without the rules that no page and
no script of the site can ever use, and every script waits until the page is read. MathJax and Vega
come when something that needs them is near the screen (book/_static/math.js, figures.js). The logos
of the launch menu come when it is opened.
"""

import hashlib
import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

SHEET = re.compile(r'[ \t]*<link\b[^>]*\brel="stylesheet"[^>]*>\n?')
HREF = re.compile(r'\bhref="([^"#?]+)')
SCRIPT = re.compile(r'<script\b([^>]*\bsrc="[^"]+"[^>]*)>')
LOGO = re.compile(r'<img (?=alt="[^"]*" src="[^"]*_static/images/logo_)')
URL = re.compile(r"""url\(\s*(['"]?)(?!data:|https?:|/|#)([^'")]+)\1\s*\)""")
IMPORT = re.compile(r"""@import\s+(?:url\()?\s*['"]?([^'")\s]+)['"]?\s*\)?\s*;""")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CLASSES = re.compile(r'\bclass="([^"]*)"')
TOKEN = re.compile(r"[A-Za-z_][\w-]*")
SELECTED = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
NEGATED = re.compile(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")
WAITS = "DOCUMENTATION_OPTIONS.pagename"  # an inline script that needs one that now comes later
# The theme asks each of these boxes whether it scrolls, and writes before it asks the next, so the
# browser lays out the page once for each box. scrollable.js asks a few at a time, in idle time.
THEMES = "scripts/pydata-sphinx-theme.js"
TAB_STOPS = '"pre, .nboutput > .output_area, .cell_output > .output, .jp-RenderedHTMLCommon"'


def blocks(css: str):
    """(prelude, body or None) of each rule at the top of a style sheet; None for `@import ...;`."""
    start = depth = 0
    quote, opened = "", 0
    i = 0
    while i < len(css):
        c = css[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c == "{":
            depth += 1
            if depth == 1:
                opened = i
        elif c == "}":
            depth -= 1
            if depth == 0:
                yield css[start:opened].strip(), css[opened + 1 : i]
                start = i + 1
        elif c == ";" and depth == 0:
            yield css[start:i].strip(), None
            start = i + 1
        i += 1


def split(selectors: str) -> list[str]:
    """The selectors of a list; commas within brackets part nothing."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(selectors):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(selectors[last:i])
            last = i + 1
    return [*parts, selectors[last:]]


def used(css: str, known: set[str]) -> str:
    """The style sheet without the rules for classes that occur nowhere.

    known: names of classes, and the beginnings of names whose ends a script computes, which end in
    a hyphen, as `live-plane-${kind}` does.
    """
    begun = tuple(one for one in known if one.endswith("-") and len(one) > 4)

    def occurs(name: str) -> bool:
        return name in known or name.startswith(begun)

    out = []
    for prelude, body in blocks(css):
        if body is None:
            out.append(prelude + ";")
        elif prelude.startswith(("@media", "@supports", "@container", "@layer")):
            inside = used(body, known)
            if inside:
                out.append(f"{prelude}{{{inside}}}")
        elif prelude.startswith("@"):
            out.append(f"{prelude}{{{body.strip()}}}")
        else:
            kept = [one for one in split(prelude)
                    if all(map(occurs, SELECTED.findall(NEGATED.sub("", one))))]
            if kept:
                out.append(f"{','.join(one.strip() for one in kept)}{{{body.strip()}}}")
    return "\n".join(out)


def sheet(path: Path, static: Path) -> str:
    """A style sheet whose addresses lead from the folder `static`."""
    css = COMMENT.sub("", path.read_text(encoding="utf8")).replace('@charset "UTF-8";', "")
    imported = "".join(sheet(path.parent / name, static) for name in IMPORT.findall(css))

    def moved(match: re.Match) -> str:
        place = posixpath.normpath(posixpath.join(path.parent.as_posix(), match[2].split("?")[0]))
        return f'url("{posixpath.relpath(place, static.as_posix())}")'

    return imported + re.sub(r"[ \t]*\n\s*", "\n", URL.sub(moved, IMPORT.sub("", css)))


def names(pages: dict[Path, str], site: Path) -> set[str]:
    """Every word that may be a class: of the pages' elements and of the scripts."""
    found: set[str] = set()
    for text in pages.values():
        for classes in set(CLASSES.findall(text)):
            found.update(classes.split())
    for script in (site / "_static").rglob("*.js"):
        if script.stat().st_size < 500_000:
            found.update(TOKEN.findall(script.read_text(encoding="utf8", errors="replace")))
    for text in pages.values():  # what inline scripts add
        for code in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
            if len(code) < 5000:
                found.update(TOKEN.findall(code))
    return found


def deferred(head: str) -> str:
    def wait(match: re.Match) -> str:
        options = match[1]
        if re.search(r"\b(defer|async)\b|type=\"module\"", options):
            return match[0]
        return f"<script defer{options}>"

    head = SCRIPT.sub(wait, head)
    return re.sub(
        rf"<script>({re.escape(WAITS)}[^<]*)</script>",
        r'<script>addEventListener("DOMContentLoaded", () => { \1 });</script>', head,
    )


def without_tab_stops(script: Path) -> None:
    """Let the theme's script find no box to make a tab stop of."""
    text = script.read_text(encoding="utf8")
    if TAB_STOPS not in text and '"#none"' not in text:
        logger.warning("%s has changed: it makes tab stops of boxes unknown to lean.py", THEMES)
    script.write_text(text.replace(TAB_STOPS, '"#none"'), encoding="utf8")


def lean(app: Sphinx, error: Exception | None) -> None:
    """Rewrite the head of every page of the site that was built."""
    if error or app.builder.name != "html":
        return
    site = Path(app.outdir)
    static = site / "_static"
    for script in static.glob(THEMES):
        without_tab_stops(script)
    pages = {path: path.read_text(encoding="utf8") for path in site.rglob("*.html")
             if not {"_static", "_sources", "vendor"} & set(path.relative_to(site).parts)}
    known = names(pages, site)
    made: dict[tuple[Path, ...], str] = {}
    for path, text in pages.items():
        head, end, body = text.partition("</head>")
        links = SHEET.findall(head)
        sheets = []
        for link in links:
            address = HREF.search(link)[1]
            prefix, _, rest = address.partition("_static/")
            sheets.append(static / rest)
        if not end or not sheets or not all(one.is_file() for one in sheets):
            continue
        key = tuple(sheets)
        if key not in made:
            css = used("\n".join(sheet(one, static) for one in key), known)
            made[key] = f"book-{hashlib.sha256(css.encode()).hexdigest()[:10]}.css"
            (static / made[key]).write_text(css, encoding="utf8")
        root = HREF.search(links[0])[1].partition("_static/")[0]
        one = f'    <link rel="stylesheet" href="{root}_static/{made[key]}">\n'
        head = SHEET.sub("", head.replace(links[0], "\0", 1)).replace("\0", one)
        views = re.findall(r'<meta name="viewport"[^>]*>\n?', head)
        for extra in views[1:]:  # the theme writes three
            at = head.rindex(extra)
            head = head[:at] + head[at + len(extra) :]
        body = LOGO.sub('<img loading="lazy" ', deferred(body))
        path.write_text(deferred(head) + end + body, encoding="utf8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", lean, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
