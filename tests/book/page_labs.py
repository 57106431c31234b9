"""Every answer that the labs' tests hold, judged as a lab's page judges it: a line of JSON each.

    python -m tests.page_labs lab1_attention ...          with PyTorch
    python -m tests.page_labs --page lab1_attention ...   with the page's own small tensor library

The answers are those of the masters, the empty ones, and the planned wrong ones of labs/tests.
"""

import importlib.util
import json
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "exercises" / "page" / "lib"
SOLUTION, EMPTY = "the master's", "nothing"


def cells_of(path) -> list[tuple[str, str]]:
    """(the id that the grader knows, or "", the text) of a notebook's code cells but its setup."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    return [(cell["metadata"].get("nbgrader", {}).get("grade_id", ""), "".join(cell["source"]))
            for cell in cells if cell["cell_type"] == "code"
            and "setup" not in cell["metadata"].get("tags", [])]


def planned(lab) -> dict[str, list]:
    path = ROOT / "labs" / "tests" / "wrong_answers" / f"{lab}.py"
    specification = importlib.util.spec_from_file_location(lab, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.WRONG


def answers(lab):
    """(task, what, deserved, answer, check, cells above) of each answer; deserved: True, False,
    or None where nothing was written.
    """
    empty = cells_of(ROOT / "book" / "labs" / f"{lab}.ipynb")
    solved = [re.sub(r"\n *### (BEGIN|END) SOLUTION", "", text)
              for _, text in cells_of(ROOT / "labs" / f"{lab}.ipynb")]
    wrong = planned(lab)
    for at, (name, text) in enumerate(empty):
        if name not in wrong:
            continue
        check = next(text for _, text in empty[at:] if "visible check passed" in text)
        task = check.partition(": visible check passed")[0].rpartition("Task ")[2]
        above = solved[:at]
        yield task, SOLUTION, True, solved[at], check, above
        yield task, EMPTY, None, text, check, above
        for what, source, points in wrong[name]:
            yield task, what, bool(points[0]), source, check, above


def main(arguments):
    if "--page" in arguments:
        sys.path.insert(0, str(PAGE))
    import torch

    assert torch.__version__.endswith("+page") == ("--page" in arguments)
    from exercises.page import lab as judge

    left_out = {a.partition("=")[2] for a in arguments if a.startswith("--without=")}
    for lab in [a for a in arguments if not a.startswith("--")]:
        for task, what, deserved, answer, check, above in answers(lab):
            if task in left_out:
                continue
            start = time.perf_counter()
            found = json.loads(judge.run(answer, check, json.dumps(above)))
            took = time.perf_counter() - start
            print(json.dumps([lab, task, what, deserved, found["verdict"],
                              found["text"] or f"lacks {found['lacks']}", took]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
