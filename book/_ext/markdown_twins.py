"""A Markdown twin of each page, with its outputs, and llms.txt, which lists them for programs.

book/03_masks.html has book/03_masks.md beside it: the prose as it is written, the code, what was
printed, and in place of each figure its text. The twin of a notebook is made from the executed one.
llms.txt (llmstxt.org) lists the twins by part with their descriptions. Labs and the API reference,
which are made for other uses, are listed as the pages that they are.
"""

import json
import posixpath
import re
from html import unescape
from pathlib import Path

import yaml
from check_yourself import questions
from page_meta import description
from reading_order import chapters as numbers
from reading_order import number_of, pages, title
from sphinx.application import Sphinx

from course.page import as_markdown

NO_TWIN = re.compile(r"book/(labs/.*|api)")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
LINK = re.compile(r"(\]\((?!\w+:))([^)#\s]*?)\.(?:ipynb|md)(?=[)#])")
HIDDEN = {"remove-cell", "remove_cell"}


def linked(text: str, page: str) -> str:
    """Links from a page lead to twins, or to the page itself where it has none."""
    def end(link: re.Match) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
        return f"{link[1]}{link[2]}.{'html' if NO_TWIN.match(target) else 'md'}"

    return LINK.sub(end, text)


def said(html: str) -> str:
    """What a figure or a table of HTML says in words."""
    described = re.findall(r'"description": "((?:[^"\\]|\\.)*)"', html)
    if described and "vega" in html.lower():
        return f"*Figure: {json.loads(chr(34) + described[0] + chr(34))}*"
    labels = re.findall(r'(?:aria-label|alt)="([^"]+)"', html)
    if labels:
        return "\n".join(f"*Figure: {unescape(label)}*" for label in dict.fromkeys(labels[:1]))
    text = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    rows = re.findall(r"<tr\b.*?</tr>", text, flags=re.DOTALL)
    if rows:
        lines = [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
        lines = [[" ".join(re.sub(r"<[^>]+>", "", x).split()) for x in line] for line in lines]
        return unescape("\n".join("| " + " | ".join(line) + " |" for line in lines))
    parts = re.split(r"(<pre\b.*?</pre>)", text, flags=re.DOTALL)
    for i, part in enumerate(parts):
        if part.startswith("<pre"):
            code = unescape(re.sub(r"<[^>]+>", "", part)).strip("\n")
            parts[i] = f"```\n{code}\n```"
        else:
            parts[i] = " ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split())
    return "\n\n".join(filter(None, parts))


def output(made: dict, alt: str) -> str:
    """One output of a cell as Markdown."""
    if made["output_type"] == "error":
        return "```\n" + ANSI.sub("", f"{made['ename']}: {made['evalue']}") + "\n```"
    if made["output_type"] == "stream":
        text = "".join(made["text"]).rstrip()
        return f"```\n{ANSI.sub('', text)}\n```" if text else ""
    data = {kind: "".join(value) if isinstance(value, list) else value
            for kind, value in made.get("data", {}).items()}
    if "text/html" in data:
        return said(data["text/html"])
    if "text/markdown" in data:
        return data["text/markdown"]
    if any(kind.startswith("image/") for kind in data):
        label = alt or said(data.get("image/svg+xml", ""))
        return label if label.startswith("*") else f"*Figure: {label or 'a picture'}*"
    plain = data.get("text/plain", "").rstrip()
    return f"```\n{ANSI.sub('', plain)}\n```" if plain else ""


def twin_of_notebook(notebook: dict, page: str = "") -> str:
    """An executed notebook, that of a page, as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        tags = set(cell["metadata"].get("tags", []))
        source = "".join(cell["source"]).strip()
        if tags & HIDDEN or not source:
            continue
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            if not tags & {"remove-input", "remove_input"}:
                parts.append(f"```python\n{source}\n```")
            if not tags & {"remove-output", "remove_output"}:
                alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
                parts += filter(None, (output(made, alt) for made in cell["outputs"]))
    return linked("\n\n".join(parts), page) + "\n"


def with_questions(text: str, asked: str) -> str:
    """A chapter's twin with what no notebook holds, before its sources as on the page."""
    before, heading, after = text.partition("\n## Sources\n")
    return f"{before}\n{asked}{heading}{after}" if asked else text


def keep_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Of a page in Markdown: its text, once the lists that are made from data are in it."""
    if app.builder.name == "html" and not NO_TWIN.match(docname):
        if str(app.env.doc2path(docname)).endswith(".md"):
            path = Path(app.doctreedir) / "twins" / f"{docname}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(linked(source[0], docname), encoding="utf8")


def link_twin(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.name == "html" and doctree is not None and not NO_TWIN.match(pagename):
        name = pagename.rpartition("/")[2]
        link = f'<link rel="alternate" type="text/markdown" href="{name}.md">\n'
        context["metatags"] = (context.get("metatags") or "") + link


def index(parts: list[tuple[str, list[str]]], base: str, called: str) -> str:
    """llms.txt: the pages of each part, with their descriptions."""
    lines = [f"# {called}", "", f"> {description('book/intro')}", ""]
    for part, listed in parts:
        lines += [f"## {part}", ""]
        for page in listed:
            number = number_of(page, numbers()) if "/solutions/" not in page else None
            end = "html" if NO_TWIN.match(page) else "md"
            label = f"{number}. {title(page)}" if number else title(page)
            says = description(page)
            lines.append(f"- [{label}]({base}{page}.{end})" + (f": {says}" if says else ""))
        lines.append("")
    return "\n".join(lines)


def parts_of(toc: dict, found: set[str]) -> list[tuple[str, list[str]]]:
    """(caption, pages) of each part of the table of contents, those that were built."""
    parts = [("Start here", [toc["root"]])]
    order = pages()
    for part in toc["parts"]:
        text = yaml.safe_dump(part)
        globs = re.findall(r"glob: (\S+?)\*", text)
        listed = re.findall(r"file: (\S+)", text)
        listed += [page for page in order for start in globs if page.startswith(start)]
        parts.append((" ".join(part["caption"].split()), [p for p in listed if p in found]))
    return [(caption, listed) for caption, listed in parts if listed]


def write_twins(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    out, executed = Path(app.outdir), Path(app.outdir).parent / "jupyter_execute"
    for page in app.env.found_docs:
        if NO_TWIN.match(page):
            continue
        kept = Path(app.doctreedir) / "twins" / f"{page}.md"
        ran = executed / f"{page}.ipynb"
        source = Path(app.srcdir) / f"{page}.ipynb"
        if kept.exists():
            text = kept.read_text(encoding="utf8")
        elif ran.exists() or source.exists():
            notebook = ran if ran.exists() else source
            text = twin_of_notebook(json.loads(notebook.read_text(encoding="utf8")), page)
            text = with_questions(text, questions(page, as_markdown))
        else:
            continue
        (out / f"{page}.md").parent.mkdir(parents=True, exist_ok=True)
        (out / f"{page}.md").write_text(text, encoding="utf8")
    toc = yaml.safe_load((Path(app.srcdir) / "_toc.yml").read_text(encoding="utf8"))
    listed = parts_of(toc, set(app.env.found_docs) & set(pages()))
    text = index(listed, app.config.html_baseurl or "", app.config.html_title)
    (out / "llms.txt").write_text(text, encoding="utf8")


def setup(app: Sphinx) -> dict:
    app.connect("source-read", keep_source, priority=900)  # after what writes lists into pages
    app.connect("html-page-context", link_twin)
    app.connect("build-finished", write_twins)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
