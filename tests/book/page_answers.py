"""Every right and wrong answer that the tests hold of a chapter, judged: one line of JSON each.

    python -m tests.page_answers masks ...          with PyTorch
    python -m tests.page_answers --page masks ...   with the page's own small tensor library

`--table`, `--test`, `--unseen`, `--solution` and `--mutant` choose some of them, `--every=4` takes
every fourth or so, always the same ones, and `--without=masks.4` leaves an exercise out.

Both runs do the same, so that their lines can be compared (tests/book/test_page.py).
"""

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import re
import sys
import warnings
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "exercises" / "page" / "lib"


def of_tables(chapter, checks, tables):
    """The right answers of the declarations and every wrong one that they name or imply."""
    for check in checks:
        right = tables.right_answer(check)
        yield check, "right", right
        yield check, "nothing", tuple([...] * len(right))
        if isinstance(check, tables.Values):
            for i, part in enumerate(check.parts.values()):
                for sentence, several in part.slips.items():
                    for wrong in several if isinstance(several, list) else [several]:
                        if not callable(wrong):
                            given = [one.right for one in check.parts.values()]
                            given[i] = wrong
                            yield check, sentence, (given,) if check.packed else tuple(given)
        if not isinstance(check, tables.Exercise):
            continue
        for sentence, slips in check.slips.items():
            for slip in slips if isinstance(slips, list) else [slips]:
                yield check, sentence, slip if isinstance(slip, tuple) else (slip,)
        if check.adapt is None:
            yield check, "in double precision", (tables.in_double(check.reference),)
            yield check, "a function of ...", (lambda *args: ...,)
            yield check, "only prints", (tables.only_printing(check),)
            if not check.mutates:
                yield check, "changes its inputs", (tables.spoiling(check),)


def of_tests(chapter, checks):
    """The answers in the tests named after the chapter, and those written as learners write."""
    if importlib.util.find_spec(f"tests.test_checks_{chapter}"):
        module = importlib.import_module(f"tests.test_checks_{chapter}")
        for check, answer, *_ in module.CASES:
            yield check, "case", answer
    known = {check.id: check for check in checks}
    module = importlib.import_module("tests.exercises.test_checks_answers")
    for name in ("RIGHT", "WRONG", "NOT_YET"):
        for row in getattr(module, name, ()):
            if row[0] in known:
                answer = row[1]
                yield known[row[0]], name, answer if isinstance(answer, tuple) else (answer,)


OWN = {"own": "your-transformer", "descendants": "descendants"}  # pages of one's own parts


def of_own_parts(laws, page):
    """(kind, check, what, source, name) of the solution's parts of one's own models: right, as
    test_own.py breaks them, and broken in every place.
    """
    from tests.exercises import test_checks_mutants as mutants

    tests = (ROOT / "tests" / "exercises" / "test_own.py").read_text(encoding="utf8")
    wrong = next(ast.literal_eval(node.value) for node in ast.parse(tests).body
                 if isinstance(node, ast.Assign) and node.targets[0].id == "WRONG")
    page = (ROOT / "book" / "solutions" / f"{page}.ipynb").read_text(encoding="utf8")
    imports = "import math\nimport torch\nfrom torch import nn\nEPSILON = 1e-5\n"
    for cell in json.loads(page)["cells"]:
        text, handed, call = "".join(cell["source"]).partition("\n\nassert own.hand_in(")
        if not handed:
            continue
        part, name = re.match(r'"(\w+)", (\w+)', call).groups()
        law, text = getattr(laws, part), imports + text
        yield "solution", law, part, text, name
        for _, right, other, what in (row for row in wrong if row[0] == part):
            yield "test", law, f"{part} {what}", text.replace(right, other), name
        for what, mutant, _ in mutants.each_mutant(text, []):
            yield "mutant", law, f"{part} {what}", mutant, name


def judged_part(law, source, name):
    names = {"__name__": "__main__"}
    try:
        given = answers_from(names, source, [name])
    except Exception:
        return "cannot run"
    return law(*given)


def said(judge):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verdict = judge()
        except Exception as error:
            return "raised", f"{type(error).__name__}: {error}"
    return verdict, printed.getvalue()


def answers(chapter):
    """(kind, what, a function that judges it and prints) of each answer."""
    from tests.exercises import answer_tables as tables
    from tests.exercises import test_checks_mutants as mutants
    from tests.exercises import unseen_answers

    module = importlib.import_module(f"exercises.checks.{chapter}")
    checks = [check for name, check in sorted(tables.EXERCISES.items())
              if check.__module__ == module.__name__]
    for kind, found in (("table", of_tables(chapter, checks, tables)),
                        ("test", of_tests(chapter, checks))):
        for check, what, answer in found:
            yield kind, f"{check.id} {what}", lambda check=check, answer=answer: check(*answer)
    if chapter in OWN:
        for kind, law, what, source, name in of_own_parts(module, OWN[chapter]):
            yield kind, f"{law.id} {what}", (
                lambda law=law, s=source, n=name: judged_part(law, s, n))
    if chapter in unseen_answers.CHAPTERS:
        for answer in unseen_answers.answers_of(chapter):
            def judge(answer=answer):
                verdict, message = unseen_answers.judged(answer)
                print(message, end="")
                return verdict
            yield "unseen", f"{answer.exercise} {answer.mistake}", judge
    for path in (ROOT / "book" / "solutions").glob("*.ipynb"):
        if (path.stem.partition("_")[2] or path.stem.replace("-", "_")) != chapter:
            continue
        for name, before, source, arguments in mutants.solutions(path):
            names = made_by(before)

            def judge_mutant(name=name, names=names, source=source, arguments=arguments):
                chapter, _, function = name.partition(".")
                check = getattr(importlib.import_module(f"exercises.checks.{chapter}"), function)
                found = mutants.verdict_on(name, names, source, arguments, explain=False)
                if found in ("cannot run", None, True):
                    return found
                return check(*answers_from(names, source, arguments))

            module, _, function = name.partition(".")
            check = getattr(importlib.import_module(f"exercises.checks.{module}"), function)
            yield "solution", f"{check.id} {name}", judge_mutant
            for what, text, given in mutants.each_mutant(source, arguments):
                yield "mutant", f"{check.id} {name} {what}", (
                    lambda n=name, s=names, t=text, g=given: judge_mutant(n, s, t, g)
                )


def made_by(before):
    """The names that the cells above an answer make, without those that a page can't import."""
    names = {}
    for node in ast.parse(before).body:
        parts = [node]
        if isinstance(node, ast.Import):
            parts = [ast.Import([name]) for name in node.names]
        if isinstance(node, ast.ImportFrom):
            parts = [ast.ImportFrom(node.module, [name], node.level) for name in node.names]
        for part in parts:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(ast.unparse(part), names)
            except Exception:
                if part is node:
                    raise
    return names


def answers_from(names, source, arguments):
    import linecache

    names = dict(names)
    linecache.cache["<solution>"] = (len(source), None, source.splitlines(True), "<solution>")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "<solution>", "exec"), names)
        return [eval(argument, names) for argument in arguments]


def main(arguments):
    import time

    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "exercises")]
    if "--page" in arguments:
        sys.path.insert(0, str(PAGE))
    import torch

    assert torch.__version__.endswith("+page") == ("--page" in arguments)
    from exercises.checks import framework

    framework.LIMIT = 1.0
    kinds = {"table", "test", "unseen", "solution", "mutant"}
    wanted = {a[2:] for a in arguments if a[2:] in kinds} or kinds
    without = {a.partition("=")[2] for a in arguments if a.startswith("--without=")}
    every = int(next((a[8:] for a in arguments if a.startswith("--every=")), 1))
    for chapter in [a for a in arguments if not a.startswith("--")]:
        counts = {}
        for kind, what, judge in answers(chapter):
            if kind not in wanted or what.partition(" ")[0] in without:
                continue
            key = f"{chapter}/{kind}/{what}"
            counts[key] = counts.get(key, 0) + 1
            if zlib.crc32(f"{key} {counts[key]}".encode()) % every:
                continue
            start = time.perf_counter()
            verdict, message = said(judge)
            took = time.perf_counter() - start
            print(json.dumps([chapter, kind, f"{what} #{counts[key]}", verdict, message, took]),
                  flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
