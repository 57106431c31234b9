"""What a page tells search engines, social sites and programs: its address, what it is about.

The site's address is `html: baseurl:` in _config.yml (`make repository SITE=...`). With it each
page has a canonical link, absolute Open Graph addresses and a card, and the site has sitemap.xml,
robots.txt and 404.html. Without it nothing pretends: no page names an address that isn't its own.

Descriptions are sentences of book/descriptions.yml; those of solutions and labs are made here.
"""

import functools
import html
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from reading_order import CHAPTER, ROOT, chapters, name, title
from sphinx.application import Sphinx

LONGEST = 200  # letters of a description that search results and cards show
# Nothing can be found under these, so they are not for search engines.
UNLISTED = ["search.html", "genindex.html", "py-modindex.html", "404.html"]
ADDRESSES = re.compile(r'<meta property="og:(?:url|image|image:alt)"[^>]*>\n?')


@functools.cache
def written() -> dict[str, str]:
    """The sentences of book/descriptions.yml, by page."""
    return yaml.safe_load((ROOT / "book" / "descriptions.yml").read_text(encoding="utf8"))


def description(page: str) -> str | None:
    """What a page is, in a sentence or two; None if nobody has said it."""
    kind, _, chapter = page.removeprefix("book/").rpartition("/")
    if kind == "solutions":
        number = chapters().get(f"book/{chapter}")
        of = f"{f'chapter {number}, ' if number else ''}{name(f'book/{chapter}')}"
        return f"Worked solutions to the exercises of {of}; each one passes the book's own checks."
    if kind == "labs":
        return f"{title(page)}. A graded notebook for a course, with instant feedback."
    return written().get(page)


def structured(app: Sphinx, page: str, called: str, says: str | None) -> dict:
    """The page as schema.org describes a book's chapter, for JSON-LD."""
    config = app.config
    book = {
        "@type": "Book",
        "name": config.html_title,
        "author": {"@type": "Organization", "name": config.author},
        "inLanguage": "en",
        "bookFormat": "https://schema.org/EBook",
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "isAccessibleForFree": True,
    }
    if config.html_baseurl:
        book["url"] = config.html_baseurl
    if page == config.root_doc:
        return {"@context": "https://schema.org", **book, "description": says}
    numbers = chapters()
    kind = ["Chapter", "LearningResource"] if CHAPTER.fullmatch(page) else ["LearningResource"]
    found = {"@context": "https://schema.org", "@type": kind, "name": called, "description": says}
    if config.html_baseurl:
        found["url"] = config.html_baseurl + app.builder.get_target_uri(page)
    if page in numbers:
        found |= {"position": numbers[page], "teaches": name(page)}
    resource = "exercise" if "/solutions/" in page or "/labs/" in page else "reading"
    return found | {
        "learningResourceType": resource, "inLanguage": "en", "isAccessibleForFree": True,
        "isPartOf": book,
    }


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Before opengraph writes its tags: the page's own sentence, not its first words."""
    if app.builder.format != "html":
        return
    icon = f'{"../" * pagename.count("/")}_static/touch-icon.png'  # on a phone's first screen
    if pagename != "404":  # which is shown anywhere, where a relative address leads nowhere
        context["metatags"] = (
            context.get("metatags") or ""
        ) + f'<link rel="apple-touch-icon" href="{icon}">\n'
    if doctree is None:
        return
    if pagename == app.config.root_doc:
        context["docstitle"] = ""  # else the book's name is there twice
    says = description(pagename)
    if says:
        context["meta"] = (context.get("meta") or {}) | {"og:description": says}
        tag = f'<meta name="description" content="{html.escape(says)}">\n'
        context["metatags"] = (context.get("metatags") or "") + tag
    called = html.unescape(re.sub(r"<[^>]+>", "", context.get("title") or app.config.html_title))
    data = json.dumps(structured(app, pagename, called, says), ensure_ascii=False)
    data = data.replace("</", "<\\/")
    context["metatags"] = (
        context.get("metatags") or ""
    ) + f'<script type="application/ld+json">{data}</script>\n'


def mend_addresses(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """After opengraph: a relative address is no address, least of all on a page shown anywhere."""
    if pagename == "404":
        top = f'href="{urlsplit(app.config.html_baseurl).path}vendor/'
        context["metatags"] = context["metatags"].replace('href="vendor/', top)
    if app.builder.format == "html" and not app.config.html_baseurl:
        context["metatags"] = ADDRESSES.sub("", context.get("metatags") or "")


def write_robots(app: Sphinx, error: Exception | None) -> None:
    """robots.txt, which crawlers read only at the top of a host; elsewhere it does no harm."""
    if error is None and app.builder.name == "html" and app.config.html_baseurl:
        text = f"User-agent: *\nAllow: /\nSitemap: {app.config.html_baseurl}sitemap.xml\n"
        (Path(app.outdir) / "robots.txt").write_text(text, encoding="utf8")


def setup(app: Sphinx) -> dict:
    base = app.config.html_baseurl
    if base:
        base = app.config.html_baseurl = base.rstrip("/") + "/"
        app.config.ogp_site_url = base
        card = '<meta name="twitter:card" content="summary_large_image">'
        app.config.ogp_custom_meta_tags = [card]
        app.config.sitemap_url_scheme = "{link}"
        app.config.sitemap_excludes = UNLISTED
        app.config.notfound_urls_prefix = urlsplit(base).path
        app.setup_extension("sphinx_sitemap")
        app.setup_extension("notfound.extension")
    app.connect("html-page-context", describe, priority=400)
    app.connect("html-page-context", mend_addresses, priority=950)
    app.connect("build-finished", write_robots)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
