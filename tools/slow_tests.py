"""Which tests are too slow for `make check`: from a report of a whole run, into tests/slow.txt.

    python -m pytest -n 2 -m "not weekly" --ignore=tests/browser --junitxml=whole.xml tests
    python -m tools.slow_tests whole.xml
    PYTEST_ADDOPTS=--junitxml=quick.xml make check
    python -m tools.slow_tests whole.xml quick.xml

A test function whose cases take more than LIMIT seconds each, on average, is listed by its name.
Of everything else, new tests among them, `make check` runs up to eight cases each (`--quick` and
`--cases` in tests/conftest.py). The second report finds the tests that got slow there, because what
they share with others, a fixture or an import, was made by one that is left out.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

LIMIT = 0.03  # seconds a case
OUT = Path(__file__).resolve().parents[1] / "tests" / "slow.txt"


def slow(*reports: Path, limit: float = LIMIT) -> list[str]:
    """Functions of JUnit reports, as file::function, whose cases take longer than limit in one."""
    found = set()
    for report in reports:
        seconds = defaultdict(list)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            module = case.get("classname").removeprefix("tests.").replace(".", "/")
            name = f"{module}.py::{case.get('name').split('[')[0]}"
            seconds[name].append(float(case.get("time")))
        found |= {name for name, took in seconds.items() if sum(took) > limit * len(took)}
    return sorted(found)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    names = slow(*map(Path, sys.argv[1:]))
    OUT.write_text("".join(f"{name}\n" for name in names), encoding="utf8")
    print(f"{len(names)} slow test functions are in {OUT.name}.")


if __name__ == "__main__":
    main()
