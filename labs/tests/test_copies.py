"""Planted copies are named, and answers that were written apart are not."""

import ast
import itertools

from test_real_labs import MASTERS, WRONG, answered

from labs.grader import copies, grade
from labs.grader import masters as labs

NAME = "lab3_positions_and_normalization"


class Renamed(ast.NodeTransformer):
    """Other names for whatever a function names itself; comments fall away with it."""

    def visit_FunctionDef(self, node):
        own = {name.arg for name in node.args.args} | {
            name.id for name in ast.walk(node)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        for inner in ast.walk(node):
            if isinstance(inner, ast.arg) and inner.arg in own:
                inner.arg = f"my_{inner.arg}"
            if isinstance(inner, ast.Name) and inner.id in own:
                inner.id = f"my_{inner.id}"
        return node


def class_texts():
    """Nobody's answers are equal in all tasks: each student takes other planned wrong answers."""
    lab = grade.load_labs(labs.MASTERS)[NAME]
    texts = {}
    for number in range(5):
        changes = {answer: wrong[(number + place) % len(wrong)][1]
                   for place, (answer, wrong) in enumerate(WRONG[NAME].items())}
        notebook = answered(MASTERS[NAME], changes)
        texts[f"student-{number}"] = copies.answers(notebook, lab)
    return texts


def test_planted_copies_stand_out():
    texts = class_texts()
    renamed = ast.unparse(Renamed().visit(ast.parse(texts["student-0"])))
    parts = texts["student-1"].split("\n\n# Task ")
    texts |= {"renamed": renamed, "reordered": "\n\n# Task ".join([parts[0], *parts[:0:-1]]),
              "comments": texts["student-2"].replace("\n    ", "\n    # so\n    ")}
    found = copies.pairs(texts, "")
    shares = {frozenset(names): share for share, *names in found}
    planted = [frozenset(pair) for pair in (("renamed", "student-0"), ("reordered", "student-1"),
                                            ("comments", "student-2"))]
    for pair in planted:
        assert shares[pair] > 0.8, (pair, shares[pair])
    assert {names for names, share in shares.items() if share > 0.8} == set(planted)


def test_a_class_without_copies_raises_no_alarm():
    found = copies.pairs(class_texts(), "")
    assert len(found) == len(list(itertools.combinations(range(5), 2)))
    assert found[0][0] < 0.8


def test_what_the_lab_gave_does_not_count():
    given = ("def walk(x):\n    for step in range(10):\n        x = x * step + 3 - step\n"
             "    return x\n")
    texts = {"a": given + "print(walk(1))\n", "b": given + "z = [k for k in 'abc']\n"}
    (with_it, *_), = copies.pairs(texts, "")
    (without, *_), = copies.pairs(texts, given)
    assert with_it > 0.7 and without < 0.3
