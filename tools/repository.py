"""Set the repository's address everywhere: `make repository URL=https://github.com/you/book`.

Its one home is _config.yml; every other place is rewritten from the address found there.
Without an address this prints the present one. `--check` names the places that disagree.
"""

import argparse
import re
import sys

import sync
from setup_cell import ROOT, repository_url

PLACES = ["_config.yml", "README.md", "CITATION.cff", "CONTRIBUTING.md", "pyproject.toml"]
PAGES = "book/**/*.md"


def slug(url: str) -> str:
    """The owner/name part of an address, which Colab links carry."""
    return "/".join(url.rstrip("/").removesuffix(".git").replace(":", "/").split("/")[-2:])


def rewrite(new: str) -> list[str]:
    """Replace the present address by `new`; return the files that changed."""
    old = repository_url()
    changed = []
    for path in [ROOT / name for name in PLACES] + sorted(ROOT.glob(PAGES)):
        before = path.read_text(encoding="utf8")
        after = before.replace(old, new)
        after = after.replace(f"/github/{slug(old)}/", f"/github/{slug(new)}/")  # Colab links
        if after != before:
            path.write_text(after, encoding="utf8")
            changed.append(str(path.relative_to(ROOT)))
    sync.main([])  # the setup cells take it from _config.yml
    return changed


def disagreements() -> list[str]:
    """Places that do not carry the address of _config.yml."""
    url = repository_url()
    lines = [f"{name} does not name {url}" for name in PLACES
             if url not in (ROOT / name).read_text(encoding="utf8")]
    for path in [ROOT / name for name in PLACES] + sorted(ROOT.glob(PAGES)):
        text = path.read_text(encoding="utf8")
        for other in re.findall(r"/github/([^/\s]+/[^/\s]+)/blob/", text):
            if other != slug(url):
                lines.append(f"{path.relative_to(ROOT)} has a Colab link to {other}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", nargs="?", help="the new address, e.g. https://github.com/you/book")
    parser.add_argument("--check", action="store_true", help="exit with 1 if places disagree")
    options = parser.parse_args()
    if options.check:
        lines = disagreements()
        print("\n".join(lines) or f"all places name {repository_url()}")
        return 1 if lines else 0
    if options.url is None:
        print(f"The repository is {repository_url()}. To change it: make repository URL=https://...")
        return 0
    if not re.fullmatch(r"(https://|file://|git@|/)\S+[^/\s]", options.url):
        print(f"{options.url!r} is no address; expected something like https://github.com/you/book")
        return 2
    print("\n".join(rewrite(options.url)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
