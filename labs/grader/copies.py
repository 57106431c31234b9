"""Which answers of two students are alike: `python -m labs.grader.copies FOLDER`.

copydetect compares code by winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): names
and comments do not count, and what the lab gave does not either. An answer has few right forms, so
right answers are alike without a copy: compare a pair with the middle of the class, which the
report states. It asks a person to look, and proves nothing.
"""

import argparse
import statistics
import sys
import tempfile
from itertools import combinations
from pathlib import Path

from nbgrader.utils import is_grade, is_solution

from .grade import collect, load_labs
from .masters import MASTERS


def answers(notebook, lab: dict) -> str:
    """The code that a student wrote: answers and cells of their own."""
    from .one import restored

    notebook, _ = restored(notebook, lab["cells"])
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code"
                       and not cell.metadata["given"] and not is_grade(cell))


def pairs(texts: dict[str, str], given: str) -> list[tuple[float, str, str]]:
    """(share, name, name) of every pair of texts, the most alike first.

    share: the part of the shorter text's code that the longer one has too, 0 to 1.
    given: code that everybody was given, which does not count.
    """
    from copydetect import CodeFingerprint, compare_files

    with tempfile.TemporaryDirectory() as folder:
        def fingerprint(name, text, boilerplate=None):
            path = Path(folder) / f"{name}.py"
            path.write_text(text, encoding="utf8")
            more = {} if boilerplate is None else {"boilerplate": boilerplate}
            # A window of 1 keeps every fingerprint. Larger ones keep some, chosen by Python's
            # hash of strings, so that shares would differ from one process to the next.
            return CodeFingerprint(str(path), 20, 1, encoding="utf-8", **more)

        stub = fingerprint("given", given).hashes
        prints = {name: fingerprint(number, text, list(stub))
                  for number, (name, text) in enumerate(texts.items())}
    found = []
    for one, other in combinations(prints, 2):
        _, shares, _ = compare_files(prints[one], prints[other])
        found.append((max(map(float, shares)), one, other))
    return sorted(found, reverse=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="labs.grader.copies", description=__doc__.split("\n")[0])
    parser.add_argument("submissions", type=Path, help="the folder of notebooks")
    parser.add_argument("--least", type=float, default=0.8,
                        help="name pairs that share this part of their code (0.8)")
    parser.add_argument("--labs", type=Path, default=MASTERS, help="the folder of the masters")
    options = parser.parse_args(arguments)
    if not options.submissions.is_dir():
        parser.error(f"there is no folder {options.submissions}")
    labs = load_labs(options.labs)
    submissions, _ = collect(options.submissions, labs)
    for name, lab in labs.items():
        texts = {"_".join(filter(None, (one["student"], one["id"]))): answers(one["notebook"], lab)
                 for one in submissions if one["lab"] == name}
        if len(texts) < 2:
            continue
        given = "\n\n".join(cell.source for cell in lab["cells"].cells
                            if cell.cell_type == "code" and is_solution(cell))
        found = pairs(texts, given)
        named = [pair for pair in found if pair[0] >= options.least]
        middle = statistics.median(share for share, _, _ in found)
        print(f"{lab['title']}: {len(texts)} notebooks. Pairs: {len(found)}, half of them with "
              f"less than {middle:.0%} of their code in common; with {options.least:.0%} or more: "
              f"{len(named)}")
        for share, one, other in named:
            print(f"  {share:4.0%}  {one}  {other}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
