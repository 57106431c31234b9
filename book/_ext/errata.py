"""The page of corrected claims, and its feed, from book/errata.yml.

The line `<!-- errata -->` of a page gives way to the list. An entry that lacks a field, or names a
page or a file that isn't there, stops the build. The feed is errata.xml, in Atom (RFC 4287); its
entries need addresses, so it is written only where the site has one.
"""

import datetime
from pathlib import Path
from xml.etree import ElementTree

import yaml
from reading_order import ROOT, chapters, name
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

MARK = "<!-- errata -->"
FIELDS = ("page", "date", "claim", "before", "after", "overturned", "evidence")
PAGE, FEED = "book/errata", "book/errata.xml"
ATOM = "http://www.w3.org/2005/Atom"


def entries(root: Path = ROOT) -> list[dict]:
    """The corrected claims, newest first. Raises ExtensionError for an entry that isn't whole."""
    found = yaml.safe_load((root / "book" / "errata.yml").read_text(encoding="utf8")) or []
    for number, entry in enumerate(found, start=1):
        where = f"book/errata.yml, entry {number}"
        missing = [field for field in FIELDS if not entry.get(field)]
        if missing or set(entry) - set(FIELDS):
            raise ExtensionError(f"{where}: expected the fields {FIELDS}, got {[*entry]}")
        if not isinstance(entry["date"], datetime.date):
            raise ExtensionError(f"{where}: the date is {entry['date']!r}, not one like 2026-11-24")
        if not any((root / f"{entry['page']}{end}").exists() for end in (".ipynb", ".md")):
            raise ExtensionError(f"{where}: there is no page {entry['page']!r}")
        if not (root / entry["evidence"]).exists():
            raise ExtensionError(f"{where}: there is no file {entry['evidence']!r}")
    return sorted(found, key=lambda entry: entry["date"], reverse=True)


def anchor(entry: dict, among: list[dict]) -> str:
    """A place to link to that stays when entries are added: the page and a number, oldest first."""
    page = entry["page"].rpartition("/")[2].replace("_", "-")
    same = [other for other in reversed(among) if other["page"] == entry["page"]]
    return f"erratum-{page}-{same.index(entry) + 1}"


def markdown(found: list[dict]) -> str:
    """The list as MyST Markdown."""
    lines = []
    for entry in found:
        page = entry["page"]
        end = "ipynb" if (ROOT / f"{page}.ipynb").exists() else "md"
        link = f"[{name(page)}]({page.removeprefix('book/')}.{end})"
        chapter = f"the chapter {link}" if page in chapters() else link
        day = entry["date"]
        lines += [
            f"({anchor(entry, found)})=", f"## “{entry['claim']}”", "",
            f"Corrected on {day.day} {day:%B %Y}, in {chapter}.", "",
            "The page said", f": {entry['before']}", "",
            "It was changed to", f": {entry['after']}", "",
            "What overturned it", f": {entry['overturned']} (`{entry['evidence']}`)", "",
        ]
    return "\n".join(lines)


def feed(found: list[dict], base: str, title: str) -> bytes:
    """The list as an Atom feed; base: the site's address, with a slash at its end."""
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")

    def add(parent, tag, text=None, **attributes):
        node = ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}", attributes)
        node.text = text
        return node

    def moment(day):
        return f"{day.isoformat()}T12:00:00Z"

    add(root, "title", f"{title}: claims we corrected")
    add(root, "id", base + FEED)
    add(root, "link", rel="self", href=base + FEED, type="application/atom+xml")
    add(root, "link", rel="alternate", href=f"{base}{PAGE}.html", type="text/html")
    add(root, "updated", moment(max(entry["date"] for entry in found)))
    add(add(root, "author"), "name", "The contributors")
    for entry in found:
        node = add(root, "entry")
        address = f"{base}{PAGE}.html#{anchor(entry, found)}"
        add(node, "title", f"Corrected: “{entry['claim']}”")
        add(node, "id", address)
        add(node, "link", rel="alternate", href=address, type="text/html")
        add(node, "updated", moment(entry["date"]))
        says = ("before", "after", "overturned")
        add(node, "summary", "\n\n".join(entry[part].strip() for part in says), type="text")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def write_list(app: Sphinx, docname: str, source: list[str]) -> None:
    if MARK in source[0]:
        app.env.note_dependency(str(ROOT / "book" / "errata.yml"))
        source[0] = source[0].replace(MARK, markdown(entries()))


def link_feed(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.name == "html" and pagename == PAGE and app.config.html_baseurl:
        context["metatags"] = (context.get("metatags") or "") + (
            '<link rel="alternate" type="application/atom+xml" title="Claims we corrected"'
            ' href="errata.xml">\n'
        )


def write_feed(app: Sphinx, error: Exception | None) -> None:
    found = entries() if error is None and app.builder.name == "html" else []
    if found and app.config.html_baseurl:
        path = Path(app.outdir) / FEED
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(feed(found, app.config.html_baseurl, app.config.html_title))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", write_list)
    app.connect("html-page-context", link_feed)
    app.connect("build-finished", write_feed)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
