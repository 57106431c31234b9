"""The book to take along, opened by programs that nobody here wrote.

A small book goes the whole way: EPUB (epubcheck), PDF (pypdf and pdftotext), the zip (Chromium,
from the disk), the Markdown twins and llms.txt. Chromium and epubcheck are needed for their parts.
"""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import markdown_twins
import pytest
import small_book
import yaml
from epub_pages import still
from lxml import etree

from benchmarks.browser import CHROMIUM, DRIVER
from tools import offline

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
needs_chromium = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Built twice: the second time its outputs come from the cache, as those of `make book` do."""
    folder = small_book.make(tmp_path_factory.mktemp("small"))
    small_book.build(folder)
    small_book.build(folder)
    return folder


@pytest.fixture(scope="module")
def epub(built, tmp_path_factory):
    """(the file, its pages unpacked)"""
    out = tmp_path_factory.mktemp("epub") / "small.epub"
    return out, offline.make_epub(out, built)


def epubcheck(path: Path) -> subprocess.CompletedProcess:
    command = shutil.which("epubcheck")
    if not command:
        pytest.skip("epubcheck is not on the path")
    jar = Path(command).read_bytes()[:2] == b"PK"  # Debian's is the archive itself
    command = ["java", "-jar", command] if jar else [command]
    return subprocess.run([*command, str(path)], capture_output=True, text=True)


def test_the_epub_has_no_error(epub):
    done = epubcheck(epub[0])
    assert done.returncode == 0 and "No errors or warnings" in done.stdout + done.stderr, (
        done.stdout + done.stderr
    )


def test_epubcheck_would_have_told(epub, tmp_path):
    """The same file with a link to nowhere fails, so that a pass means something."""
    broken = tmp_path / "broken.epub"
    with zipfile.ZipFile(epub[0]) as whole, zipfile.ZipFile(broken, "w") as other:
        for item in whole.infolist():
            text = whole.read(item)
            other.writestr(item, text.replace(b'href="notation.xhtml"', b'href="nowhere.xhtml"'))
    assert epubcheck(broken).returncode != 0


def test_the_epub_has_pictures_formulas_and_links(epub):
    page = (epub[1] / "book" / "03_masks.xhtml").read_text(encoding="utf8")
    assert "<math" in page and 'alttext="\\sqrt{d_k} &lt; \\infty"' in page
    [picture] = re.findall(r'<img src="([^"]+)" alt="A line from 2 up to 5."', page)
    assert (epub[1] / "book" / picture).resolve().exists()
    assert "<script" not in page and "noscript" not in page
    assert 'href="notation.xhtml"' in page and "1 &lt; 2 &amp; 3" in page
    asked = page.partition('class="check-yourself"')[2].partition("Answers")[0]
    assert asked.count('<ol class="options">') == 3 and "<label" not in page
    contents = (epub[1] / "nav.xhtml").read_text(encoding="utf8")
    order = re.findall(r'href="book/(\w+)\.xhtml"', contents)
    assert [*dict.fromkeys(order)] == ["intro", "notation", "03_masks", "errata"]


def test_the_epub_takes_along_no_file_that_no_page_needs(epub):
    text = "".join(p.read_text(encoding="utf8") for p in epub[1].rglob("*.xhtml"))
    with zipfile.ZipFile(epub[0]) as archive:
        assert archive.namelist()[0] == "mimetype"
        for name in archive.namelist():
            known = name.endswith((".xhtml", ".opf", ".ncx", "mimetype", "container.xml"))
            assert known or name.rpartition("/")[2] in text, name


def test_what_pages_take_in_from_elsewhere_comes_along(tmp_path):
    """A program that a page prints, a picture of the site: of the whole book, before a build."""
    offline.prepare(tmp_path, ROOT, tmp_path / "nothing")
    static = yaml.safe_load((tmp_path / "_config.yml").read_text())["sphinx"]["config"]
    folders = [tmp_path / name for name in static["html_static_path"]]
    pages = {page: page.read_text(encoding="utf8") for page in (tmp_path / "book").rglob("*.md")}
    taken = [page.parent / name for page, text in pages.items()
             for name in re.findall(r"\{literalinclude\} (\S+)", text)]
    assert taken and not [str(path) for path in taken if not path.exists()]
    drawn = [f"play/{path.stem}.png" for path in (ROOT / "book/_static/play").glob("*.webp")]
    assert drawn and not [name for name in drawn if not any((at / name).exists() for at in folders)]


def test_drawings_whose_colours_are_the_sites_have_some_along():
    """Without a rule, an EPUB and the PDF fill them black."""
    along, front = ((ROOT / "book/_static" / name).read_text(encoding="utf8")
                    for name in ("along.css", "front.css"))
    assert ".part-picture" in front and re.search(r"\.part-picture path.*fill: none", along)


def test_in_one_page_every_reference_has_its_place(epub):
    page = offline.one_page(epub[1])
    ids = set(re.findall(r'\sid="([^"]+)"', page))
    led = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)|aria-labelledby="([^"]+)"', page)
    asked = {name for names in led for name in names if name}
    assert len(asked) >= 4 and asked <= ids, asked - ids
    assert len(ids) == len(re.findall(r'\sid="', page))


def marked(node):
    """The tags of a PDF below a node of its structure."""
    kids = node.get("/K", [])
    for kid in kids if isinstance(kids, list) else [kids]:
        kid = kid.get_object()
        if hasattr(kid, "get") and "/S" in kid:
            yield kid
            yield from marked(kid)


@needs_chromium
def test_the_pdf_has_text_bookmarks_and_links(epub, tmp_path):
    from pypdf import PdfReader

    out = tmp_path / "small.pdf"
    offline.make_pdf(out, epub[1])
    read = PdfReader(out)
    titles = [entry.title for entry in read.outline if not isinstance(entry, list)]
    pages = ["Notation", "3. Masks", "Claims we corrected"]
    assert titles == ["Attention, Step by Step", "Contents", *pages]
    assert f"A second section, {small_book.WRAPPED}" in str(read.outline), "words glued together"
    begins = {entry.title: read.get_destination_page_number(entry) + 1
              for entry in read.outline if not isinstance(entry, list)}
    listed = read.pages[begins["Contents"] - 1].extract_text()
    for title in pages:
        assert re.search(re.escape(title) + rf"\s+{begins[title]}\b", " ".join(listed.split()))
    tags = list(marked(read.trailer["/Root"]["/StructTreeRoot"]))
    formulas = [tag for tag in tags if "\\sqrt" in tag.get("/Alt", "")]
    assert len(formulas) == 2, "a formula has its LaTeX as its text"
    annotations = [a.get_object() for page in read.pages for a in page.get("/Annots") or []]
    inside = [a for a in annotations if a.get("/Subtype") == "/Link" and "/Dest" in a
              or a.get("/A", {}).get("/S") == "/GoTo"]
    assert len(inside) >= 2, "links between chapters"
    assert read.trailer["/Root"]["/MarkInfo"]["/Marked"], "tagged, for screen readers"
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", out, "-"], capture_output=True, text=True).stdout
        assert "One letter keeps one meaning" in text and "A line that rises" in text
        assert "\\sqrt" not in text and "mathrm" not in text, "a formula that was not set"


@needs_chromium
def test_the_zip_works_from_the_disk(built, tmp_path):
    from benchmarks.browser import start_chromium

    out = tmp_path / "site.zip"
    offline.make_archive(out, built / "_build" / "html")
    with zipfile.ZipFile(out) as archive:
        archive.extractall(tmp_path)
        assert not [name for name in archive.namelist() if "/_sources/" in name]
    page = tmp_path / offline.NAME / "book" / "03_masks.html"
    driver = start_chromium(tmp_path / "profile")
    try:
        driver.get(page.as_uri())
        driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(driver, 20).until(lambda it: it.execute_script(
            "return document.querySelector('.chart svg, .chart canvas')"
            " && document.querySelector('.math mjx-container')"
        ))
        severe = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert not severe, severe
        driver.get((tmp_path / offline.NAME / "index.html").as_uri())
        WebDriverWait(driver, 10).until(lambda it: it.execute_script(
            "return document.querySelector('article h1, main h1')"))
        assert not [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
    finally:
        driver.quit()


def test_the_page_says_what_does_not_run_from_the_disk():
    """What a figure says when opened there is said before somebody takes the zip along."""
    figures = (ROOT / "book/_static/live/figures.js").read_text(encoding="utf8")
    about = (ROOT / "book/how-to-use.md").read_text(encoding="utf8")
    about = about.split("## Take it with you")[1].split("\n## ")[0]
    for place in ("python -m http.server", "http://localhost:8000"):
        assert place in figures and place in about


def test_without_a_book_it_says_what_to_do(tmp_path):
    with pytest.raises(offline.Missing, match="run `make book` first"):
        offline.make_epub(tmp_path / "x.epub", ROOT, tmp_path)
    with pytest.raises(offline.Missing, match="run `make book` first"):
        offline.make_archive(tmp_path / "x.zip", tmp_path)


def xml(body: str):
    return etree.fromstring(f'<body xmlns="http://www.w3.org/1999/xhtml">{still(body)}</body>')


@pytest.mark.parametrize(("body", "kept", "gone"), [
    ("<p>a<br>b & c", "a b & c", "<script"),
    ("<div class='chart'>drawn</div><noscript><img src=a.svg alt=x></noscript>", "", "drawn"),
    ("<details class='hide above-input'>code</details>said", "said", "code"),
    ("<details><summary>The answer</summary><p>42</p></details>", "The answer 42", "<details"),
    ("<details name='one-open'><p>42</p></details>", "42", "name="),
    ("<p><img src='a.webp' alt='x'>seen</p>", "seen", "a.webp"),
    ("<p id=a>1</p><p id=a>2</p>", "1 2", 'id="a">2'),
    ("<table border=1><tr><td align=left>x</td></tr></table>", "x", "border"),
    ("<button onclick='go()'>Play</button><p onclick='go()'>text</p>", "text", "onclick"),
    ("<svg viewBox='0 0 1 1'><path/><path d='M0 0'/></svg>", "", "<path/>"),
    ("<svg class=wide><text>a</text></svg><svg class=narrow><text>too</text></svg>", "a", "too"),
    ("a\x0bb", "ab", "\x0b"),
    ("<pre><span class='n'>x</span> <span class='c1'># y</span></pre>", "x # y", 'class="n"'),
    ("<code><span class='pre'>x</span></code><span class=s>y</span>", "x y", "pre"),
])
def test_pages_become_xml(body, kept, gone):
    found = xml(body)
    words = " ".join(" ".join(found.itertext()).split())
    assert set(kept.split()) <= set(words.split()) and gone not in still(body)


def test_svg_keeps_the_case_of_its_attributes():
    assert 'viewBox="0 0 1 1"' in still("<svg viewBox='0 0 1 1'></svg>")


def test_every_formula_of_the_book_has_mathml():
    """All that is between dollars in the chapters can be set without MathJax."""
    import json

    from latex2mathml.converter import convert

    seen = 0
    for path in sorted((ROOT / "book").glob("*.*")) + sorted((ROOT / "book/solutions").glob("*.*")):
        if path.suffix not in (".ipynb", ".md"):
            continue
        text = path.read_text(encoding="utf8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
        for found in re.finditer(r"\$\$(.+?)\$\$|(?<!\\)\$([^$\n]+?)\$", text, re.DOTALL):
            made = convert(found[1] or found[2])
            assert not re.search(r">\\[a-zA-Z]+<", made), (path.name, found[0])
            seen += 1
    assert seen > 500


# ------------------------------------------------------------------------ Markdown twins


def test_a_page_has_its_twin(built):
    site = built / "_build" / "html"
    twin = (site / "book" / "03_masks.md").read_text(encoding="utf8")
    assert "*Figure: A line from 2 up to 5.*" in twin and "1 < 2 & 3" in twin
    assert "$\\sqrt{d_k} < \\infty$" in twin and "```python\nimport altair" in twin
    assert twin.count("\n## Check yourself\n") == 1
    assert "[Notation](notation.md)" in twin and (site / "book" / "notation.md").exists()
    page = (site / "book" / "03_masks.html").read_text(encoding="utf8")
    assert '<link rel="alternate" type="text/markdown" href="03_masks.md">' in page
    corrected = (site / "book" / "errata.md").read_text(encoding="utf8")
    assert "<!-- errata -->" not in corrected and "What overturned it" in corrected


@pytest.mark.parametrize(("page", "link", "leads"), [
    ("book/03_masks", "notation.ipynb", "notation.md"),
    ("book/03_masks", "notation.md#x", "notation.md#x"),
    ("book/03_masks", "labs/lab1_attention.ipynb", "labs/lab1_attention.html"),
    ("book/solutions/03_masks", "../api.md", "../api.html"),
    ("book/solutions/03_masks", "../03_masks.ipynb#a", "../03_masks.md#a"),
    ("book/03_masks", "https://x.org/a.ipynb", "https://x.org/a.ipynb"),
])
def test_a_twin_leads_to_what_is_there(page, link, leads):
    """Labs and the API reference have no twins: their pages are what there is."""
    assert markdown_twins.linked(f"see [it]({link}).", page) == f"see [it]({leads})."


def test_llms_txt_lists_pages_that_are_there(built):
    site = built / "_build" / "html"
    text = (site / "llms.txt").read_text(encoding="utf8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+$", text, re.MULTILINE)
    assert len(links) == 4 and all((site / link).exists() for link in links)
    assert text.startswith("# Attention, Step by Step\n\n> ")


def cell(source="", outputs=(), tags=(), **metadata):
    return {"cell_type": "code", "source": source, "outputs": list(outputs),
            "metadata": {"tags": list(tags)} | metadata}


def shown(**data):
    kinds = {kind.replace("_", "/"): value for kind, value in data.items()}
    return {"output_type": "display_data", "data": kinds}


@pytest.mark.parametrize(("made", "expected"), [
    (cell("x", tags=["remove-cell"]), "\n"),
    (cell("x", tags=["remove-input"]), "\n"),
    (cell("x", [shown(text_html="<table><tr><th>a<td>b</table>")]), "```python\nx\n```\n\n"),
    (cell("x", [shown(image_png="iVBOR")], mystnb={"image": {"alt": "A curve."}}),
     "```python\nx\n```\n\n*Figure: A curve.*\n"),
    (cell("x", [{"output_type": "stream", "name": "stdout", "text": ["\x1b[31mred\x1b[0m\n"]}]),
     "```python\nx\n```\n\n```\nred\n```\n"),
])
def test_outputs_are_words(made, expected):
    text = markdown_twins.twin_of_notebook({"cells": [made]})
    assert text.startswith(expected)


def test_code_inside_html_keeps_its_lines():
    html = "<div>a <b>b</b><pre><span>if x &lt; 1:</span>\n    y(x)</pre>c</div>"
    assert markdown_twins.said(html) == "a b\n\n```\nif x < 1:\n    y(x)\n```\n\nc"


def test_a_table_of_html_keeps_its_rows():
    html = "<table><tr><th>name</th><th>BLEU</th></tr><tr><td>a</td><td>42.7</td></tr></table>"
    assert markdown_twins.said(html) == "| name | BLEU |\n| a | 42.7 |"
