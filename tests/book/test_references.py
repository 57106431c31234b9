"""The bibliography holds every work that a page names under "Sources"."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
from pybtex.database import parse_file

BOOK = Path(__file__).resolve().parents[2] / "book"
BIBLIOGRAPHY = BOOK / "references.bib"
ENTRIES = parse_file(BIBLIOGRAPHY).entries
SOURCES = re.compile(r"(?ms)^(?:## Sources?$|\*\*Sources\.\*\*)(.*?)(?=^## |\Z)")
WORK = re.compile(r"([^*]*)\*([^*]+)\*")  # whose it is, and its title
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def text_of(path: Path) -> str:
    text = path.read_text(encoding="utf8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return text


def sources(path: Path) -> str:
    """What a page says under "Sources": "" where it has no such list."""
    return "".join(SOURCES.findall(text_of(path)))


def works(listed: str) -> list[tuple[str, str]]:
    """The authors and the title of each work in a list; a bullet can hold several works."""
    bullets = re.findall(r"^- (.+)", listed, re.MULTILINE)
    return [work for bullet in bullets for work in WORK.findall(bullet)]


def normalised(text: str) -> str:
    """Lower-case words without accents, LaTeX's commands or punctuation."""
    text = unicodedata.normalize("NFKD", re.sub(r"\\.|[{}]", "", text))
    text = "".join(char for char in text if not unicodedata.combining(char))
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def is_listed(authors: str, title: str, entries=ENTRIES) -> bool:
    """Whether an entry has this title, or one that begins with it, and this first author."""
    for entry in entries.values():
        first = entry.persons["author"][0]
        surname = normalised(" ".join(first.prelast_names + first.last_names))
        if f"{normalised(entry.fields['title'])} ".startswith(f"{normalised(title)} "):
            if f" {surname} " in f" {normalised(authors)} ":
                return True
    return False


CHAPTERS = sorted(BOOK.glob("[0-9][0-9]*_*.ipynb"))
PAGES = sorted(BOOK.glob("*.ipynb")) + sorted(BOOK.glob("*.md"))
WITH_SOURCES = [path for path in PAGES if sources(path)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_ends_with_its_sources(path):
    last = re.findall(r"^## .+", text_of(path), re.MULTILINE)[-1]
    assert last == "## Sources" and works(sources(path)), "list the works that it draws on"


@pytest.mark.parametrize("path", WITH_SOURCES, ids=lambda path: path.stem)
def test_the_sources_of_a_page_are_in_the_bibliography(path):
    listed = sources(path)
    missing = [" ".join(work).strip() for work in works(listed) if not is_listed(*work)]
    assert not missing, f"not in references.bib: {missing}"
    numbers = set(ARXIV.findall(listed)) - set(ARXIV.findall(BIBLIOGRAPHY.read_text("utf8")))
    assert not numbers, f"not in references.bib: {sorted(numbers)}"


def test_a_list_is_read_work_by_work():
    text = "- He and Li (2020), *A*, ICML; Hägele et al. (2024), *Scaling Laws*.\n\n*Small print.*"
    assert [title for _, title in works(text)] == ["A", "Scaling Laws"]
    hagele = {"key": ENTRIES["hagele2024scaling"]}
    assert is_listed(*works(text)[1], hagele)
    assert not is_listed("Kaplan et al. (2020), ", "Scaling Laws", hagele)
    assert not is_listed("Hägele et al. (2024), ", "Scaling", {})
    assert not is_listed("Hägele et al. (2024), ", "Scaling L", hagele)
