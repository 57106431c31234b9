"""What the tests of the grading share."""

import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from labs.grader import contain  # noqa: E402

UNCONTAINED = [] if contain.methods() else ["--uncontained"]


def rows_of(path) -> list[dict]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
