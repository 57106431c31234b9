"""`make release`: may this version be released, and what is new in it?

    python -m tools.release           # the version that pyproject.toml names
    python -m tools.release v1.0.0    # the same, and it must be this one

Writes the version's part of CHANGELOG.md to _build/release.md, and empties _build/release.
"""

import argparse
import shutil
import sys

from tools.offline import BUILD, version
from tools.setup_cell import ROOT


def notes(changelog: str, of: str) -> str:
    """What the changelog says of a version; empty where that isn't its newest."""
    newest = changelog.partition("\n## ")[2].partition("\n## ")[0]
    heading, _, text = newest.partition("\n")
    return text.strip() + "\n" if heading.split()[:1] == [of] else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tag", nargs="?", help="such as v1.0.0")
    tag, number = parser.parse_args(arguments).tag, version()
    if tag and tag != f"v{number}":
        print(f"the tag is {tag} and pyproject.toml names {number}: give v{number}, or "
              "change the version in all places that tests/book/test_release.py compares",
              file=sys.stderr)
        return 1
    news = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf8"), number)
    if not news:
        print(f"the newest entry of CHANGELOG.md isn't {number}: say there what is new",
              file=sys.stderr)
        return 1
    shutil.rmtree(BUILD / "release", ignore_errors=True)
    (BUILD / "release").mkdir(parents=True)
    (BUILD / "release.md").write_text(news, encoding="utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
