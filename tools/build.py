"""Build the site, or one page of it: `make book`, `make page PAGE=03`.

    python -m tools.build                 execute what is not up to date, then build every page
    python -m tools.build --page masks    the same with one page, into a site of its own

Every page is built anew, two at a time, and any warning is an error: a build that takes over pages
from the last one would take over their warnings in silence. With one page, links to the others lead
nowhere, so there a warning is only shown. CI=true forgets outputs that an earlier build has kept.
"""

import argparse
import os
import sys
from pathlib import Path

import yaml
from jupyter_book.sphinx import build_sphinx

from tools import execute
from tools.arguments import count
from tools.setup_cell import ROOT

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import reading_order  # noqa: E402

SITE = ROOT / "_build" / "html"
ONE_PAGE = ROOT / "_build" / "page"


def find_page(name: str) -> str:
    """The page, e.g. "book/03_masks", for its name, the beginning of it or a part."""
    pages = sorted(reading_order.pages(), key=lambda page: "/solutions/" in page)
    for match in (str.__eq__, str.startswith, str.__contains__):
        for page in pages:  # each before its solutions
            if match(page.removeprefix("book/"), name) or match(page.rpartition("/")[2], name):
                return page
    raise SystemExit(f"No page begins with or contains {name!r}. There are: {' '.join(pages)}")


def build(site: Path, toc: Path, **options) -> int:
    settings = {
        "external_toc_path": str(toc), "nb_execution_cache_path": str(execute.CACHE),
        "latex_individualpages": False,
    }
    return build_sphinx(
        ROOT, site, path_config=ROOT / "_config.yml", noconfig=True, freshenv=True,
        confoverrides=settings, **options,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", help="the beginning of a page's name: only this one")
    parser.add_argument("--jobs", type=count, default=2, help="at a time (default: 2)")
    options = parser.parse_args(arguments)
    if options.page:
        page = find_page(options.page)
        notebook = ROOT / f"{page}.ipynb"
        if notebook.exists() and notebook.parent != execute.WITHOUT_CODE:
            if execute.main([str(notebook)]):
                return 1
        ONE_PAGE.mkdir(parents=True, exist_ok=True)
        toc = ONE_PAGE / "_toc.yml"
        toc.write_text(yaml.safe_dump({"format": "jb-book", "root": page}), encoding="utf8")
        stopped = build(ONE_PAGE / "html", toc, quiet=True)
        print(f"\n{ONE_PAGE / 'html' / page}.html")
        return int(bool(stopped))
    fresh = ["--fresh"] if os.environ.get("CI") else []
    if execute.main([*fresh, f"--jobs={options.jobs}"]):
        return 1
    strictly = {"warningiserror": True, "keep_going": True}
    jobs = options.jobs + 1  # when Sphinx writes pages, one of them only hands out the work
    stopped = build(SITE, ROOT / "_toc.yml", jobs=jobs, **strictly)
    return int(bool(stopped))


if __name__ == "__main__":
    sys.exit(main())
