"""Set the addresses of a copy: `make repository URL=https://github.com/you/book SITE=https://...`.

URL is the repository's. Its one home is _config.yml; every other place is rewritten from the
address found there. SITE is where the built book will be read. It's kept in _config.yml only, and
gives the pages their canonical links, previews on social sites, a site map and a page for wrong
addresses.
Without addresses this prints the present ones. `--check` names the places that disagree.
It replaces text and needs nothing but Python.
"""

import argparse
import re
import sys
from pathlib import Path

from tools.setup_cell import ROOT, repository_url

# These must name the address.
PLACES = ["_config.yml", "README.md", "CITATION.cff", "CONTRIBUTING.md", "pyproject.toml"]
# These may. The notebooks have it in their setup cells, in the form that sync writes.
TEXTS = ["*.md", "*.yml", "*.cff", "*.toml", ".github/**/*.yml", "binder/*", "book/**/*.md",
         "labs/**/*.md", "book/**/*.ipynb", "labs/*.ipynb",
         "transformer_lib/runs/shipped.json", "results/*/README.md"]
# A link to Colab has /github/owner/name/, one to Binder has /gh/owner/name/.
LINK = r"(/github/|/gh/){}(?=/)"


def texts() -> list[Path]:
    """Every file that may carry the address."""
    return sorted({path for pattern in TEXTS for path in ROOT.glob(pattern)
                   if path.is_file() and ".ipynb_checkpoints" not in path.parts})


def for_everybody(url: str) -> str:
    """The address as a reader without a key for SSH fetches it, and as links carry it."""
    url = re.sub(r"^git@([^:]+):", r"https://\1/", url).rstrip("/")
    return url.removesuffix(".git") if url.startswith("https://") else url


def slug(url: str) -> str:
    """The owner/name part of an address, which links to Colab and Binder carry."""
    return "/".join(url.split("/")[-2:])


def rewrite(new: str) -> list[str]:
    """Replace the present address by `new`; return the files that changed."""
    old = repository_url()
    changed = []
    for path in texts():
        before = path.read_text(encoding="utf8")
        after = re.sub(re.escape(old) + r"(?![\w-])", lambda found: new, before)
        after = re.sub(LINK.format(re.escape(slug(old))), rf"\g<1>{slug(new)}", after)
        if after != before:
            path.write_text(after, encoding="utf8")
            changed.append(str(path.relative_to(ROOT)))
    return changed


SITE = re.compile(r'^(html:\n(?:[ ].*\n)*?[ ]+baseurl:[ ]*)"([^"\n]*)"', re.MULTILINE)


def site_address() -> str:
    """Where the built book is read, from _config.yml; "" until it is set."""
    found = SITE.search((ROOT / "_config.yml").read_text(encoding="utf8"))
    if not found:
        raise ValueError('_config.yml has no line `baseurl: "..."` under html')
    return found[2]


def set_site(address: str) -> None:
    """Write the site's address into _config.yml; "" takes it away."""
    site_address()  # raises where there is no place for it
    path = ROOT / "_config.yml"
    text = path.read_text(encoding="utf8")
    path.write_text(SITE.sub(lambda found: f'{found[1]}"{address}"', text), encoding="utf8")


def disagreements() -> list[str]:
    """Places that do not carry the address of _config.yml."""
    url = repository_url()
    lines = [f"{name} does not name {url}" for name in PLACES
             if url not in (ROOT / name).read_text(encoding="utf8")]
    for path in texts():
        for link in re.finditer(LINK.format(r"([\w.-]+/[\w.-]+)"), path.read_text(encoding="utf8")):
            if link[2] != slug(url):
                lines.append(f"{path.relative_to(ROOT)} has a link to {link[2]}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", nargs="?", help="the new address, e.g. https://github.com/you/book")
    parser.add_argument("--site", help='where the book is read, e.g. https://you.github.io/book/')
    parser.add_argument("--check", action="store_true", help="exit with 1 if places disagree")
    options = parser.parse_args()
    if options.check and (options.url or options.site):
        parser.error("--check compares what is set, and sets nothing: leave the address out")
    if options.check:
        lines = disagreements()
        print("\n".join(lines) or f"all places name {repository_url()}")
        return 1 if lines else 0
    if options.site is not None:
        site = options.site.rstrip("/") + "/" if options.site else ""
        if site and not re.fullmatch(r"https?://[^\s\"\\?#]+/", site):
            print(f"{options.site!r} isn't the address of a site; expected https://you.github.io/book/")
            return 2
        set_site(site)
        print("_config.yml")
    if options.url is None and options.site is None:
        print(f"The repository is {repository_url()}. To change it: make repository URL=https://...")
        site = site_address()
        print(f"The site is {site}." if site else "The site has no address yet: SITE=https://...")
    if options.url is None:
        return 0
    url = for_everybody(options.url)
    if not re.fullmatch(r"(https://|file://|/)[^\s\"\\]+", url):
        print(f"{options.url!r} isn't an address; expected something like https://github.com/you/book")
        return 2
    print("\n".join(rewrite(url)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
