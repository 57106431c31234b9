"""Which tests are too slow for `make check`: from a report of a whole run, into tests/slow.txt.

    PYTEST_ADDOPTS=--junitxml=report.xml make test
    python -m tools.slow_tests report.xml

A test function whose cases take more than LIMIT seconds each, on average, is listed by its name.
Everything else, new tests among them, is what `make check` runs (`--quick` in tests/conftest.py).
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

LIMIT = 0.03  # seconds a case
OUT = Path(__file__).resolve().parents[1] / "tests" / "slow.txt"


def slow(report: Path, limit: float = LIMIT) -> list[str]:
    """Functions of a JUnit report, as file::function, whose cases take longer than limit."""
    seconds = defaultdict(list)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        module = case.get("classname").removeprefix("tests.").replace(".", "/")
        seconds[f"{module}.py::{case.get('name').split('[')[0]}"].append(float(case.get("time")))
    return sorted(name for name, took in seconds.items() if sum(took) > limit * len(took))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    names = slow(Path(sys.argv[1]))
    OUT.write_text("".join(f"{name}\n" for name in names), encoding="utf8")
    print(f"{len(names)} slow test functions are in {OUT.name}.")


if __name__ == "__main__":
    main()
