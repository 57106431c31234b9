"""The menu beside every page: six groups, two of them always open, the others on their pages.

The pages and their order are those of _toc.yml. The parts I to IV make "The book"; a page that is
no chapter is indented under the chapter before it. Solutions are on one page that lists them, and
each chapter links its own. A chapter has a ring that fills with the guesses made and the exercises
solved in this browser (book/_static/progress.js).
"""

import functools
import html
import json
import re
from pathlib import Path

import yaml
from reading_order import CHAPTER, ROOT, chapters, number_of
from sphinx.application import Sphinx

PARTS = re.compile(r"(?:I|II|III|IV)  ")  # captions of the parts of the book itself
# Where the pages of a caption go, if not under a group of their own.
GROUPS = {"Start": "Play", "V  Beyond": "Beyond", "VI  Since then": "Beyond",
          "Workshop": "Workshop", "In class": "Teach",
          "Solutions": "Teach", "Back matter": "Reference"}
MOVED = {"book/how-to-use": "The book", "book/notation": "Reference"}
ORDER = ["Play", "The book", "Beyond", "Workshop", "Teach", "Reference"]
SOLUTIONS = "book/solutions/"
GUESS = re.compile(r"\bguess\(\s*[\"']([\w-]+)[\"']")
EXERCISE = re.compile(r"^\*\*Exercise \d+", re.MULTILINE)


@functools.cache
def listed() -> list[tuple[str, list[str]]]:
    """(caption, pages) of _toc.yml in its order, patterns written out."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))

    def walk(entries: list[dict]) -> list[str]:
        pages: list[str] = []
        for entry in entries:
            if "glob" in entry:
                files = (path.relative_to(ROOT) for path in ROOT.glob(entry["glob"]))
                pages += sorted(path.with_suffix("").as_posix() for path in files
                                if path.suffix in (".ipynb", ".md"))
            else:
                pages += [entry["file"], *walk(entry.get("sections", []))]
        return pages

    return [(part["caption"], walk(part["chapters"])) for part in toc["parts"]]


@functools.cache
def asked(page: str) -> tuple[list[str], int]:
    """Names of the guesses that a page asks for, and how many exercises it has."""
    path = ROOT / f"{page}.ipynb"
    if not path.exists():
        return [], 0
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return list(dict.fromkeys(GUESS.findall(code))), len(EXERCISE.findall(text))


def groups(here: str) -> dict[str, list]:
    """Group -> its entries: a page, or (caption, pages) of a part."""
    found: dict[str, list] = {name: [] for name in ORDER}
    for caption, pages in listed():
        stay = [page for page in pages if page not in MOVED]
        if PARTS.match(caption):
            found["The book"].append((caption, stay))
        elif caption == "Solutions":
            if here.startswith(SOLUTIONS):  # the one that is read; the others are on their page
                found["Teach"].append(here)
        else:
            found.setdefault(GROUPS.get(caption, caption), []).extend(stay)
        for page in pages:
            if page in MOVED:
                target = found[MOVED[page]]
                target.insert(0, page) if MOVED[page] == "The book" else target.append(page)
    return found


def ring(page: str) -> str:
    """What shows how far the reader has come in a chapter; empty until the script has looked."""
    guesses, exercises = asked(page)
    if not guesses and not exercises:
        return ""
    name = page.rpartition("/")[2]
    return (f'<span class="nav-ring" data-page="{name}" data-guesses="{" ".join(guesses)}"'
            f' data-exercises="{exercises}"></span>')


def menu(app: Sphinx, here: str) -> str:
    """The whole menu of a page, as HTML; of the first page where the book doesn't list this one."""
    builder, titles = app.builder, app.env.titles
    numbers = chapters()

    def link(page: str, indented: bool = False) -> str:
        if page not in titles:  # a build of one page
            return ""
        said = html.escape(titles[page].astext())
        number = number_of(page, numbers)
        if number:
            said = re.sub(rf"^{number}\. ", f'<span class="nav-number">{number}</span>', said)
        current = ' aria-current="page"' if page == here else ""
        kind = ' class="nav-under"' if indented else ""
        address = builder.get_relative_uri(here, page)
        if here == "404":  # it is shown at any address, so a relative one would lead nowhere
            address = getattr(app.config, "notfound_urls_prefix", "") + builder.get_target_uri(page)
        return f'<li{kind}><a href="{address}"{current}>{said}{ring(page)}</a></li>'

    def entries(pages: list[str]) -> str:
        some = any(CHAPTER.fullmatch(page) for page in pages)
        return "".join(
            link(page, some and i > 0 and not CHAPTER.fullmatch(page))
            for i, page in enumerate(pages)
        )

    def fold(name: str, pages: list[str], kind: str) -> str:
        inside = entries(pages)
        opened = " open" if here in pages else ""
        title = re.sub(r"^([IV]+)  ", r'<span class="nav-number">\1</span>', html.escape(name))
        return inside and (f'<details class="{kind}"{opened}><summary>{title}</summary>'
                           f"<ul>{inside}</ul></details>")

    out = []
    for group, content in groups(here if here in titles else app.config.root_doc).items():
        plain = [entry for entry in content if isinstance(entry, str)]
        parts = [fold(*entry, "nav-part") for entry in content if not isinstance(entry, str)]
        if not content:
            continue
        if group in ("Play", "The book"):  # always open: where everybody begins
            out.append(f'<p class="nav-group">{group}</p><ul>{entries(plain)}</ul>{"".join(parts)}')
        else:
            out.append(fold(group, plain, "nav-part nav-alone"))
    return "".join(out)


def add_menu(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if app.builder.format != "html":
        return
    context["book_menu"] = menu(app, pagename)
    solutions = pagename.replace("book/", SOLUTIONS, 1)
    if pagename in chapters() and solutions in app.env.titles:
        context["page_solutions"] = app.builder.get_relative_uri(pagename, solutions)
    context["page_name"] = Path(pagename).name


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_menu, priority=300)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
