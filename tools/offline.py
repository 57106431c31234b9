"""The book to take along: `make epub`, `make pdf`, `make offline`.

    python -m tools.offline epub     # the executed notebooks as an EPUB
    python -m tools.offline pdf      # the same pages, printed by headless Chromium
    python -m tools.offline site     # the built site as a zip, which works from the disk

Each goes to _build/attention-step-by-step.epub, .pdf or .zip. All three are made from what
`make book` left in _build: nothing is executed again. A page whose notebook wasn't executed there
(labs have no answers) is taken as it is in book/.
"""

import argparse
import base64
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import yaml
from PIL import Image

from tools.arguments import folder, new_folder
from tools.setup_cell import ROOT

NAME = "attention-step-by-step"
BUILD = ROOT / "_build"
BORROWED = ["images", "book/_ext", "book/_templates", "book/_static", "book/references.bib",
            "transformer_lib/one_file.py"]
PACKAGE = {"p": "http://www.idpf.org/2007/opf"}


class Missing(Exception):
    """What has to be built or installed first."""


def version() -> str:
    """The version of the book, which is that of its library."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]["version"]


# ------------------------------------------------------------------------------------- EPUB


def prepare(folder: Path, book: Path, executed: Path) -> None:
    """Write a book into `folder` whose notebooks are the executed ones and are not run again."""
    config = yaml.safe_load((book / "_config.yml").read_text(encoding="utf8"))
    config["execute"] = {"execute_notebooks": "off"}
    config["launch_buttons"] = {}
    config["html"] |= {"baseurl": ""}
    config["sphinx"]["local_extensions"] |= {"epub_pages": "book/_ext"}
    config["sphinx"]["config"] |= {
        "html_extra_path": [], "html_static_path": ["book/_static/along.css", "pictures"],
        "html_js_files": [], "html_css_files": [], "html_math_renderer": "mathjax",
        "project": config["title"], "version": version(), "release": version(),
        "epub_title": config["title"], "epub_author": config["author"], "epub_show_urls": "no",
        "epub_publisher": config["author"], "epub_copyright": config["copyright"],
        "epub_identifier": uuid.uuid5(uuid.NAMESPACE_URL, NAME).urn, "epub_scheme": "UUID",
        "epub_contributor": config["author"],
        "epub_uid": "book-id", "epub_basename": NAME, "epub_tocdepth": 2, "epub_use_index": False,
        "epub_css_files": ["along.css"], "epub_tocscope": "includehidden",
        "html_use_index": False, "html_domain_indices": False,
        "epub_description": "The Transformer, built piece by piece, proved and trained.",
    }
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf8")
    shutil.copy(book / "_toc.yml", folder)
    for name in BORROWED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to((book / name).resolve())
    # Those of the page Play, under _static/play as on the site: EPUB before 3.3 knows no WebP.
    (folder / "pictures" / "play").mkdir(parents=True)
    for path in (book / "book/_static/play").glob("*.webp"):
        with Image.open(path) as picture:
            made = picture.convert("RGB").quantize(256)
            made.save(folder / "pictures" / "play" / f"{path.stem}.png", optimize=True)
    for path in sorted((book / "book").rglob("*")):
        inside = path.relative_to(book)
        if path.suffix not in (".ipynb", ".md", ".yml") or inside.parts[1].startswith("_"):
            continue
        ready = executed / inside
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ready if ready.exists() else path, folder / inside)


def make_epub(out: Path, book: Path = ROOT, executed: Path | None = None) -> Path:
    """Build the EPUB at `out` from the executed notebooks; its pages stay unpacked beside it.

    Returns the folder of the unpacked pages. Raises Missing where no notebook was executed.
    """
    executed = executed or book / "_build" / "jupyter_execute"
    if not any(executed.rglob("*.ipynb")):
        raise Missing(f"no executed notebooks in {executed}: run `make book` first")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, book, executed)
        code = "import sys; from jupyter_book.cli.main import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", code, "build", str(folder), "--all",
                   "--builder", "custom", "--custom-builder", "epub"]
        done = subprocess.run(command, encoding="utf8", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        made = [*folder.glob(f"_build/*/{NAME}.epub")]
        if done.returncode or not made:
            raise RuntimeError("Sphinx could not build the EPUB:\n" + done.stdout[-4000:])
        for line in done.stdout.splitlines():
            if "WARNING" in line:
                print(line)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made[0], out)
        pages = out.with_suffix(".pages")
        shutil.rmtree(pages, ignore_errors=True)
        shutil.copytree(made[0].parent, pages, ignore=shutil.ignore_patterns("*.epub", ".doctrees"))
    return pages


# -------------------------------------------------------------------------------------- PDF


def spine(pages: Path) -> list[str]:
    """The pages of an unpacked EPUB in reading order."""
    package = ElementTree.parse(pages / "content.opf").getroot()
    files = {item.get("id"): item.get("href") for item in package.findall(".//p:item", PACKAGE)}
    listed = [files[item.get("idref")] for item in package.findall(".//p:itemref", PACKAGE)
              if item.get("linear", "yes") != "no"]
    return [unquote(name) for name in listed if name.startswith("book/")]


def slug(name: str) -> str:
    """What the ids of a page begin with in the single page of the PDF."""
    return re.sub(r"\W+", "-", name.removesuffix(".xhtml"))


FORMULA = re.compile(r'<math [^>]*?alttext="(?P<latex>[^"]*)"[^>]*>.*?</math>', re.DOTALL)
# Chromium draws MathML only as well as the machine's fonts do; MathJax brings its own.
MATHJAX = """<script>
window.MathJax = {
  options: { enableMenu: false, processHtmlClass: "math" },
  startup: { ready() {
    MathJax.startup.defaultReady();
    MathJax.startup.promise.then(() => {
      // One thing to read, in LaTeX. What is hidden from readers has no place among a PDF's tags.
      for (const { typesetRoot: formula, math } of MathJax.startup.document.math) {
        formula.setAttribute("role", "img");
        formula.setAttribute("aria-label", math.trim());
        formula.querySelector("mjx-assistive-mml")?.remove();
        formula.querySelector("[aria-hidden]")?.removeAttribute("aria-hidden");
      }
      window.typeset = true;
    });
  } },
};
</script>
<script src="%s"></script>"""


def as_latex(formula: re.Match) -> str:
    """A formula of the EPUB as MathJax reads it."""
    block = 'display="block"' in formula[0]
    return f"\\[{formula['latex']}\\]" if block else f"\\({formula['latex']}\\)"


def contents(pages: Path) -> str:
    """The table of contents of an unpacked EPUB, with a place for the number of each page."""
    listed = re.search(r"<ol>.*?</ol>\s*</nav>", (pages / "nav.xhtml").read_text("utf8"), re.DOTALL)
    listed = listed[0].removesuffix("</nav>")
    return "<h1>Contents</h1>" + re.sub(
        r'<a href="([^"#]+)">(.*?)</a>',
        lambda entry: f'<a href="{entry[1]}"><span>{entry[2]}</span> '
                      f'<span class="page-number" data-of="{slug(unquote(entry[1]))}"></span></a>',
        listed, flags=re.DOTALL)


def page_numbers(pdf: bytes) -> dict[str, int]:
    """On which page of a PDF each named place is, from 1."""
    from pypdf import PdfReader

    read = PdfReader(io.BytesIO(pdf))
    places = read.named_destinations
    return {name.removeprefix("/"): read.get_destination_page_number(place) + 1
            for name, place in places.items()}


def one_page(pages: Path) -> str:
    """All pages of an EPUB as one, their links and ids made to fit; behind the first, the contents.

    The contents' numbers are empty: nobody knows them before the page is printed.
    """
    names = spine(pages)
    sections = []
    for name in [names[0], "nav.xhtml", *names[1:]]:
        if name == "nav.xhtml":
            body = contents(pages)
        else:
            text = (pages / name).read_text(encoding="utf8")
            body = re.search(r"<body[^>]*>(.*)</body>", text, re.DOTALL)[1]
        here, folder = slug(name), Path(name).parent

        def moved(match, here=here, folder=folder):
            kind, link = match[1], urlsplit(match[2])
            if link.scheme or match[2].startswith("//"):
                return match[0]
            target = (pages / folder / unquote(link.path)).resolve() if link.path else None
            if kind == "src":
                return f'src="{target.as_uri()}"'
            if target is None:
                return f'href="#{here}--{link.fragment}"'
            inside = target.relative_to(pages.resolve()).as_posix()
            if inside not in names:
                return match[0]
            return f'href="#{slug(inside)}' + (f'--{link.fragment}"' if link.fragment else '"')

        body = FORMULA.sub(as_latex, body)
        body = re.sub(r'\b(src|href)="([^"]*)"', moved, body)
        body = re.sub(r'(\s)id="([^"]*)"', rf'\1id="{here}--\2"', body)
        body = re.sub(r"url\(#([\w-]+)\)", rf"url(#{here}--\1)", body)
        body = re.sub(r'aria-(labelledby|describedby)="([^" ]*)"',
                      rf'aria-\1="{here}--\2"', body)
        sections.append(f'<section id="{here}">{body}</section>')
    mathjax = ROOT / "book" / "_extra" / "vendor" / "mathjax" / "tex-chtml-full.js"
    style = (ROOT / "book" / "_static" / "along.css").read_text(encoding="utf8")
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["title"]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{style}</style>{MATHJAX % mathjax.as_uri()}</head>"
        f"<body class='print'>{''.join(sections)}</body></html>"
    )


def make_pdf(out: Path, pages: Path) -> None:
    """Print the pages of an unpacked EPUB with Chromium, bookmarks and links included.

    It's printed twice: the first time tells the page numbers for the table of contents.
    """
    from selenium.webdriver.support.ui import WebDriverWait

    from benchmarks.browser import CHROMIUM, DRIVER, start_chromium

    if not (CHROMIUM and DRIVER):
        raise Missing("chromium and chromedriver are not on the path; the PDF is printed by them")
    with tempfile.TemporaryDirectory() as name:
        single = Path(name) / "book.html"
        single.write_text(one_page(pages), encoding="utf8")
        driver = start_chromium(Path(name) / "profile")
        try:
            driver.set_page_load_timeout(600)
            driver.command_executor.client_config.timeout = 1800
            driver.get(single.as_uri())
            set_up = "return window.typeset"  # all formulas are
            WebDriverWait(driver, 600).until(lambda page: page.execute_script(set_up))

            def printed(whole: bool) -> bytes:
                answer = driver.execute_cdp_cmd("Page.printToPDF", {
                    "generateDocumentOutline": whole, "generateTaggedPDF": whole,
                    "printBackground": True, "preferCSSPageSize": True,
                    "displayHeaderFooter": True, "headerTemplate": "<span></span>",
                    "footerTemplate": '<div style="font-size:8px;width:100%;text-align:center">'
                                      '<span class="pageNumber"></span></div>',
                })
                return base64.b64decode(answer["data"])

            driver.execute_script(
                "for (const place of document.querySelectorAll('[data-of]'))"
                " place.textContent = arguments[0][place.dataset.of] ?? ''",
                page_numbers(printed(whole=False)),
            )
            out.write_bytes(printed(whole=True))
        finally:
            driver.quit()


# ------------------------------------------------------------------------------------- site


# The exercises in the page need a server: from the disk a browser starts no worker and no module.
NO_RUN = re.compile(r'<script data-code="[^>]*></script>\n?')
NEEDS_A_SERVER = {("vendor", "pyodide"), ("vendor", "codemirror"), ("_static", "run")}
PRELOAD = re.compile(r'<link rel="preload"[^>]*crossorigin>\n?')  # refused from the disk


def make_archive(out: Path, site: Path) -> None:
    """The built site as a zip that works from the disk: open index.html."""
    if not (site / "index.html").exists():
        raise Missing(f"no built site in {site}: run `make book` first")
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(site.rglob("*")):
            inside = path.relative_to(site)
            if not path.is_file() or inside.parts[0] == "_sources" or path.name == ".buildinfo":
                continue
            if inside.parts[:2] in NEEDS_A_SERVER:
                continue
            if path.suffix == ".html":
                text = NO_RUN.sub("", PRELOAD.sub("", path.read_text(encoding="utf8")))
                archive.writestr(str(Path(NAME) / inside), text, zipfile.ZIP_DEFLATED, 9)
            else:
                archive.write(path, Path(NAME) / inside)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["epub", "pdf", "site"])
    parser.add_argument("--executed", type=folder, default=BUILD / "jupyter_execute")
    parser.add_argument("--out", type=new_folder, default=BUILD, help="folder (default: _build)")
    options = parser.parse_args()
    out = options.out / NAME
    try:
        if options.what == "site":
            made = out.with_suffix(".zip")
            make_archive(made, BUILD / "html")
        else:
            made = out.with_suffix(".epub")
            pages = make_epub(made, ROOT, options.executed)
            if options.what == "pdf":
                made = out.with_suffix(".pdf")
                make_pdf(made, pages)
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
