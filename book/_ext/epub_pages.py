"""The pages of the EPUB: well-formed, without scripts, formulas as MathML, figures as pictures.

Sphinx's own EPUB builder does most of the work. What it can't know of are the pages' figures and
formulas: outputs of notebooks are HTML as a browser forgives it, charts and live figures need a
script, and no reader of EPUB runs MathJax. So each page is parsed as a browser would and written as
XML, with the still picture of each figure in place of the figure. Folded code is left out, other
folded text is unfolded. `python -m tools.offline epub` builds it.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape, quoteattr

import html5lib
from latex2mathml.converter import convert
from lxml import etree
from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder
from sphinx.util import logging

logger = logging.getLogger(__name__)

XHTML = "http://www.w3.org/1999/xhtml"
SVG = "http://www.w3.org/2000/svg"
# Rules of a drawing that move it, or answer a pointer.
MOTION = re.compile(
    r"@\w+[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}|[^{}]*:(?:has|is|hover)[^{}]*\{[^{}]*\}"
)
SPACES = {
    "http://www.w3.org/1999/xlink": "xlink",
    "http://www.w3.org/XML/1998/namespace": "xml",
}
# What needs a script or a pointer, and what a browser draws with one.
DROPPED = {"script", "style", "iframe", "button", "input", "select", "textarea", "template", "link"}
DROPPED_CLASSES = {
    "chart", "bertviz", "headerlink", "above-input", "above-cell", "above-all", "copybtn",
    "no-print", "live-loading", "narrow",
}
# Attributes that HTML 5 no longer has, and those of scripts.
OBSOLETE = {"border", "align", "valign", "bgcolor", "cellpadding", "cellspacing", "frame", "rules",
            "nowrap", "srcset", "loading", "contenteditable", "crossorigin", "draggable"}
SCRIPTED = ("on", "data-", "aria-controls", "aria-expanded")
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # no characters of XML
FORMULA = re.compile(r"^\s*\\(?P<open>[(\[])(?P<latex>.*)\\[)\]]\s*$", re.DOTALL)


def local(node) -> str:
    return etree.QName(node).localname if isinstance(node.tag, str) else ""


def classes(node) -> set[str]:
    return set((node.get("class") or "").split())


def drop(node) -> None:
    """Take a node away, not the text behind it."""
    parent, before = node.getparent(), node.getprevious()
    if node.tail:
        if before is None:
            parent.text = (parent.text or "") + node.tail
        else:
            before.tail = (before.tail or "") + node.tail
    parent.remove(node)


def replace(node, new) -> None:
    new.tail = node.tail
    node.getparent().replace(node, new)


def mathml(latex: str, block: bool):
    """A formula as MathML; its source is kept as the text alternative."""
    made = etree.fromstring(convert(latex, display="block" if block else "inline"))
    made.set("alttext", " ".join(latex.split()))
    return made


def set_formulas(node) -> None:
    text = "".join(node.itertext())
    found = FORMULA.match(text)
    latex, block = (found["latex"], found["open"] == "[") if found else (text, True)
    try:
        made = mathml(latex.strip(), block)
    except Exception as error:  # whatever the converter meets
        logger.warning("no MathML for %r: %s", latex, error)
        return
    for child in list(node):
        node.remove(child)
    node.text = None
    node.append(made)


def plain_code(node) -> None:
    """Code without the marks of its colours, which no style here reads; comments stay marked."""
    for span in node.iter(f"{{{XHTML}}}span"):
        kind = span.get("class", "")
        if kind in ("c", "c1", "ch", "cm"):
            span.tag = f"{{{XHTML}}}i"
        elif kind and len(kind) <= 3 and len(span.attrib) == 1:  # Pygments' names are short
            span.tag = "mark-of-a-colour"
    etree.strip_tags(node, "mark-of-a-colour")


def as_xml(node, inside: str = XHTML) -> str:
    """A tree of html5lib as XML with default namespaces, which every reader understands."""
    if not isinstance(node.tag, str):
        return escape(node.tail or "")
    name = etree.QName(node)
    attributes = "" if name.namespace == inside else f" xmlns={quoteattr(name.namespace)}"
    used = set()
    for key, value in node.attrib.items():
        key = etree.QName(key)
        if key.localname == "xmlns" or key.namespace == "http://www.w3.org/2000/xmlns/":
            continue  # said above
        prefix = SPACES.get(key.namespace)
        if prefix == "xlink" and prefix not in used:
            attributes += f' xmlns:xlink="{key.namespace}"'
        used.add(prefix)
        label = f"{prefix}:{key.localname}" if prefix else key.localname
        attributes += f" {label}={quoteattr(value)}"
    inner = escape(node.text or "")
    inner += "".join(as_xml(child, name.namespace) for child in node)
    start = f"<{name.localname}{attributes}"
    made = f"{start}>{inner}</{name.localname}>" if inner or name.localname not in VOID else (
        f"{start}/>")
    return made + escape(node.tail or "")


VOID = {"area", "base", "br", "col", "embed", "hr", "img", "source", "track", "wbr"}


def still(body: str) -> str:
    """A page's body as XML that needs no script."""
    # html5lib reads what is in noscript as text, as browsers with scripts do.
    body = UNREADABLE.sub("", re.sub(r"</?noscript[^>]*>", "", body))
    root = html5lib.parse(f"<body><div class='page'>{body}</div>", treebuilder="lxml",
                          namespaceHTMLElements=True).getroot()
    page = root.find(f".//{{{XHTML}}}div[@class='page']")
    for node in list(page.iter()):
        if not isinstance(node.tag, str):
            drop(node)
        elif local(node) == "path" and "d" not in node.attrib:  # an arrow of length 0
            drop(node)
        elif local(node) == "style" and etree.QName(node).namespace == SVG:
            node.text = MOTION.sub("", node.text or "")
        elif node is not page and (local(node) in DROPPED or classes(node) & DROPPED_CLASSES):
            if node.getparent() is not None:
                drop(node)
    for node in list(page.iter(f"{{{XHTML}}}pre", f"{{{XHTML}}}code")):
        plain_code(node)
    seen = set()
    for node in list(page.iter()):
        if node.getroottree().getroot() is None:
            continue
        if "math" in classes(node) and local(node) in ("span", "div"):
            set_formulas(node)
        if local(node) == "details":
            node.tag = f"{{{XHTML}}}div"
            for name in ("open", "name"):
                node.attrib.pop(name, None)
        elif local(node) == "summary":
            node.tag = f"{{{XHTML}}}p"
            node.set("class", "summary")
        for name in list(node.attrib):
            if name in OBSOLETE or name.startswith(SCRIPTED):
                del node.attrib[name]
        if local(node) == "stop":
            node.set("offset", node.get("offset", "0"))
        if local(node) == "svg" and node.get("role"):
            node.set("role", "img")
        if local(node) in ("td", "th", "table", "tr", "col"):
            for name in ("width", "height"):
                node.attrib.pop(name, None)
        if "id" in node.attrib:
            name = re.sub(r"\s", "-", node.get("id"))
            if not name or name in seen:
                del node.attrib["id"]
            else:
                node.set("id", name)
            seen.add(name)
        if local(node) == "img" and node.get("alt") is None:
            node.set("alt", "")
        if local(node) == "img":  # tools/offline.py has made these
            node.set("src", re.sub(r"\.webp$", ".png", node.get("src", "")))
    return escape(page.text or "") + "".join(as_xml(child) for child in page)


def on_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.name != "epub":
        return
    context["metatags"] = ""
    context["script_files"] = []
    context["css_files"] = [s for s in context["css_files"] if "along" in str(vars(s))]
    if context.get("body"):
        context["body"] = still(context["body"])


class Epub(Epub3Builder):
    """Sphinx's builder; it packs no file that no page needs, and says what pages hold."""

    def build_content(self) -> None:
        files = Path(self.outdir).rglob("*.xhtml")
        pages = {path: path.read_text(encoding="utf8") for path in files}
        pages = {path: self.with_whole_links(path, text, pages) for path, text in pages.items()}
        needed = set()
        for path, text in pages.items():
            path.write_text(text, encoding="utf8")
            for link in re.findall(r'\s(?:src|href|data)="([^"#]+)', text):
                if not urlsplit(link).scheme:
                    needed.add((path.parent / unquote(link)).resolve())
        for path in Path(self.outdir).rglob("*"):
            kept = path.suffix == ".xhtml" or path.resolve() in needed
            if path.is_file() and not kept and path.name not in ("mimetype", "container.xml"):
                path.unlink()
        for path in Path(self.outdir).rglob("*.svg"):  # an arrow of length 0 is no path
            text = path.read_text(encoding="utf8")
            whole = re.sub(r'<path(?![^>]*\sd=)[^>]*?(/>|></path>)', "", text)
            path.write_text(whole, encoding="utf8")
        super().build_content()
        self.name_properties()

    def build_toc(self) -> None:
        """The older table of contents must carry the book's identifier, too."""
        super().build_toc()
        path = Path(self.outdir) / "toc.ncx"
        uid, name = self.config.epub_uid, self.config.epub_identifier
        text = path.read_text(encoding="utf8")
        path.write_text(text.replace(f'content="{uid}"', f'content="{name}"'), encoding="utf8")

    def with_whole_links(self, path: Path, text: str, pages: dict[Path, str]) -> str:
        """Links of raw HTML lead to the pages of this book; those that lead nowhere are text."""
        ids = self.__dict__.setdefault("_ids", {})

        def mend(match: re.Match) -> str:
            link = urlsplit(match[2])
            if link.scheme or match[2].startswith("//"):
                return match[0]
            file = re.sub(r"\.(html|ipynb|md)$", ".xhtml", unquote(link.path))
            target = (path.parent / file).resolve() if file else path.resolve()
            known = {other.resolve(): other for other in pages}
            if target not in known:
                return f"<span{match[4]}>{match[5]}</span>" if not target.is_file() else match[0]
            if target not in ids:
                ids[target] = set(re.findall(r'\sid="([^"]+)"', pages[known[target]]))
            fragment = f"#{link.fragment}" if link.fragment in ids[target] else ""
            if not file and not fragment:
                return f"<span>{match[5]}</span>"
            return f'<a{match[1]}href="{file}{fragment}"{match[4]}>{match[5]}</a>'

        return re.sub(r'<a(\s(?:[^>]*?\s)?)href="(([^"]*))"([^>]*)>(.*?)</a>', mend, text,
                      flags=re.DOTALL)

    def name_properties(self) -> None:
        """The package file must say which pages hold MathML or SVG."""
        package = Path(self.outdir) / "content.opf"
        text = package.read_text(encoding="utf8")

        def named(match: re.Match) -> str:
            page = Path(self.outdir) / unquote(match[1])
            if page.suffix != ".xhtml" or not page.exists() or "properties=" in match[0]:
                return match[0]
            content = page.read_text(encoding="utf8")
            kinds = (("mathml", "<math"), ("svg", "<svg"))
            found = " ".join(kind for kind, tag in kinds if tag in content)
            return match[0].replace("/>", f' properties="{found}"/>') if found else match[0]

        text = re.sub(r'<item [^>]*?href="([^"]+)"[^>]*/>', named, text)
        package.write_text(text, encoding="utf8")


def setup(app: Sphinx) -> dict:
    app.add_builder(Epub, override=True)
    app.connect("html-page-context", on_page, priority=990)  # after all others
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
