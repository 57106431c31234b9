"""What the site tells the world: addresses, previews, the site map, the page for wrong addresses.

A small book is built with and without an address, on a sub-path as on GitHub Pages.
"""

import datetime
import html.parser
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import errata
import page_foot
import page_meta
import pytest
import reading_order
import small_book
from sphinx.errors import ExtensionError

from benchmarks.browser import CHROMIUM, DRIVER, start_chromium
from tools import repository

ROOT = Path(__file__).resolve().parents[2]
BASE = "https://ada.github.io/engine/"
PAGES = ["book/intro.html", "book/notation.html", "book/03_masks.html", "book/errata.html"]


class Head(html.parser.HTMLParser):
    """The links, meta tags, title and structured data of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.meta, self.links, self.data, self.inside = {}, {}, {}, ""
        self.title = ""
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "meta" and (name := found.get("property") or found.get("name")):
            self.meta.setdefault(name, []).append(found.get("content"))
        elif tag == "link":
            self.links.setdefault(found.get("rel"), []).append(found.get("href"))
        self.inside = found.get("type") if tag == "script" else tag

    def handle_data(self, text):
        if self.inside == "application/ld+json":
            self.data = json.loads(text)
        elif self.inside == "title" and not self.title:
            self.title = text

    def handle_endtag(self, tag):
        self.inside = ""


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    return small_book.build(small_book.make(tmp_path_factory.mktemp("without")))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return small_book.build(small_book.make(tmp_path_factory.mktemp("published"), BASE.rstrip("/")))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_its_address(published, page):
    head = Head(published / page)
    assert head.links["canonical"] == head.meta["og:url"] == [BASE + page]
    [image] = head.meta["og:image"]
    assert image.startswith(BASE) and (published / image.removeprefix(BASE)).exists()
    assert head.meta["twitter:card"] == ["summary_large_image"]
    assert head.data.get("url") == (BASE if page == "book/intro.html" else BASE + page)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_until_there_is_an_address_nothing_pretends(without, page):
    head = Head(without / page)
    assert not {"og:url", "og:image", "twitter:card"} & set(head.meta)
    assert "canonical" not in head.links and "url" not in head.data
    for name in ("sitemap.xml", "robots.txt", "404.html", "book/errata.xml"):
        assert not (without / name).exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_described_once_in_its_own_words(without, page):
    head = Head(without / page)
    says = page_meta.description(page.removesuffix(".html"))
    assert head.meta["description"] == head.meta["og:description"] == [says]
    assert head.data["description"] == says and head.data["@context"] == "https://schema.org"
    chapter = head.data["@type"] == ["Chapter", "LearningResource"]
    assert chapter == (page == "book/03_masks.html")
    assert head.title.count("Attention, Step by Step") == 1


@pytest.mark.slow
def test_the_site_map_lists_the_pages_and_no_others(published):
    name = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    root = ElementTree.parse(published / "sitemap.xml").getroot()
    assert {loc.text for loc in root.findall("s:url/s:loc", name)} == {BASE + p for p in PAGES}
    assert f"Sitemap: {BASE}sitemap.xml" in (published / "robots.txt").read_text()


@pytest.mark.slow
def test_a_wrong_address_shows_a_page_whose_links_work(published):
    """GitHub Pages serves it under any address, so its links are from the host's top."""
    text = (published / "404.html").read_text(encoding="utf8")
    found = re.findall(r'(?:href|src)="([^"#]+)', text)
    local = [link for link in found if not urlsplit(link).scheme and not link.startswith("//")]
    assert len(local) > 10
    for link in local:
        assert link.startswith("/engine/"), link
        assert (published / urlsplit(link).path.removeprefix("/engine/")).exists(), link


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium")
def test_a_wrong_address_in_a_browser(published, tmp_path):
    """Served as GitHub Pages does, under the sub-path and deep in a folder that isn't there."""

    class Pages(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            inside = published / urlsplit(path).path.removeprefix("/engine/")
            return str(inside if path.startswith("/engine/") else published / "nowhere")

        def send_error(self, code, message=None, explain=None):
            body = (published / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver = start_chromium(tmp_path / "profile")
    try:
        address = f"http://127.0.0.1:{server.server_port}/engine/a/b/c.html"
        driver.get(address)
        logged = [entry["message"] for entry in driver.get_log("browser")
                  if entry["level"] == "SEVERE"]
        assert [message for message in logged if address not in message] == []
        assert "Page not found" in driver.title
        assert driver.execute_script("return getComputedStyle(document.body).fontFamily")
        [link, *_] = driver.find_elements("css selector", "nav a[href$='book/notation.html']")
        driver.get(link.get_property("href"))
        assert driver.current_url.endswith("/engine/book/notation.html")
        assert driver.title.startswith("Notation")
        canonical = driver.find_element("css selector", "link[rel=canonical]")
        assert canonical.get_attribute("href") == BASE + "book/notation.html"
    finally:
        driver.quit()
        server.shutdown()


@pytest.mark.slow
def test_the_feed_has_the_entries_of_the_page(published):
    atom = {"a": errata.ATOM}
    root = ElementTree.parse(published / "book" / "errata.xml").getroot()
    listed = root.findall("a:entry", atom)
    page = (published / "book" / "errata.html").read_text(encoding="utf8")
    assert len(listed) == len(errata.entries()) >= 3
    for entry in listed:
        address = entry.find("a:id", atom).text
        assert address.startswith(f"{BASE}book/errata.html#")
        assert f'id="{address.partition("#")[2]}"' in page, "an entry that leads nowhere"
        datetime.datetime.fromisoformat(entry.find("a:updated", atom).text)
    assert len({entry.find("a:id", atom).text for entry in listed}) == len(listed)
    assert 'type="application/atom+xml"' in page


@pytest.mark.slow
def test_a_page_says_when_it_ran(without):
    notebook = (without / "book" / "03_masks.html").read_text(encoding="utf8")
    [day] = re.findall(r'Last run on <time datetime="([\d-]+)">', notebook)
    today = datetime.datetime.now(datetime.UTC).date()
    assert abs(datetime.date.fromisoformat(day) - today).days <= 1
    assert re.search(r"with torch \d+\.\d+\.\d+\.", notebook)
    assert "Last run on" not in (without / "book" / "notation.html").read_text(encoding="utf8")
    assert "kaggle.com/kernels/welcome?src=" in notebook and "mybinder.org/v2/gh/" in notebook


def test_the_books_own_corrected_claims_are_whole():
    assert len(errata.entries()) > 30


def test_the_link_to_say_that_something_is_wrong():
    link = page_foot.issue_link("https://github.com/ada/engine", "3. Masks & more", "book/03_masks")
    asked = parse_qs(urlsplit(link).query)
    assert asked == {
        "template": ["page.yml"], "title": ["3. Masks & more: "], "page": ["book/03_masks"]
    }
    form = (ROOT / ".github" / "ISSUE_TEMPLATE" / asked["template"][0]).read_text(encoding="utf8")
    assert "id: page" in form
    assert page_foot.issue_link("https://github.com/OWNER/" + "REPOSITORY", "Masks", "x") is None
    assert page_foot.issue_link("https://example.org/ada/engine", "Masks", "x") is None


@pytest.mark.parametrize("page", reading_order.pages())
def test_every_page_has_a_description(page):
    says = page_meta.description(page)
    assert says, f"write a sentence for {page} in book/descriptions.yml"
    assert 40 <= len(says) <= page_meta.LONGEST and says.endswith((".", "?"))


def test_no_two_pages_have_the_same_description():
    says = [page_meta.description(page) for page in reading_order.pages()]
    assert len(set(says)) == len(says)
    assert set(page_meta.written()) <= set(reading_order.pages()), "a page that isn't listed"


@pytest.mark.parametrize(("change", "message"), [
    ({"after": ""}, "expected the fields"),
    ({"page": "book/nowhere"}, "there is no page 'book/nowhere'"),
    ({"evidence": "results/nothing.json"}, "there is no file 'results/nothing.json'"),
    ({"date": "last week"}, "not one like 2026-11-24"),
])
def test_an_erratum_that_is_not_whole_stops_the_build(tmp_path, change, message):
    import yaml

    (tmp_path / "book").mkdir()
    entry = {field: "x" for field in errata.FIELDS}
    entry |= {"page": "book/a", "evidence": "book/a.md", "date": datetime.date(2026, 11, 24)}
    (tmp_path / "book" / "a.md").write_text("# A\n")
    (tmp_path / "book" / "errata.yml").write_text(yaml.safe_dump([entry]))
    assert len(errata.entries(tmp_path)) == 1
    (tmp_path / "book" / "errata.yml").write_text(yaml.safe_dump([entry | change]))
    with pytest.raises(ExtensionError, match=message):
        errata.entries(tmp_path)


def test_the_sites_address_is_set_and_taken_away(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in repository.PLACES:
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "tools.repository", *arguments], cwd=tmp_path,
                              capture_output=True, text=True)

    def line():
        text = (tmp_path / "_config.yml").read_text(encoding="utf8")
        return re.search('baseurl: "([^"]*)"', text)[1]

    before = (tmp_path / "_config.yml").read_bytes()
    assert run("--site", BASE.rstrip("/")).returncode == 0 and line() == BASE
    assert f"The site is {BASE}" in run().stdout
    wrong = run("--site", "engine")
    assert wrong.returncode == 2 and "isn't the address of" in wrong.stdout and line() == BASE
    assert run("--site", "").returncode == 0
    assert (tmp_path / "_config.yml").read_bytes() == before
