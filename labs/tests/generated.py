"""Attacks made from the tests themselves: for each task of each lab, answers that know no answer.

An *echo* returns a value that the test has computed before its call, out of the frames that called
it. A *rebind* replaces each name that the test has imported. BY_HAND are some for single labs.
All of them deserve nothing.
"""

import ast
import re

from nbgrader.utils import is_grade, is_solution

CALLERS = """
def callers():
    import sys
    frame = sys._getframe(2)
    while frame:
        yield frame.f_locals
        frame = frame.f_back
"""
ECHO = "next((found[{name!r}] for found in callers() if {name!r} in found), None)"
NOTHING = """
class Nothing:
    __call__ = lambda *given, **named: True
    __getattr__ = lambda self, name: self
"""


def functions(source: str) -> list[str]:
    """The functions and classes that an answer defines."""
    return re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE)


def names_of(cells: list) -> tuple[list[str], list[str]]:
    """What the tests among these cells assign, and what they import."""
    assigned, imported = {}, {}
    for cell in cells:
        if is_grade(cell) and not is_solution(cell):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    assigned[node.id] = None
                elif isinstance(node, (ast.Import, ast.ImportFrom)):
                    for alias in node.names:
                        imported[(alias.asname or alias.name).partition(".")[0]] = None
    return list(assigned), list(imported)


def echo(answer: str, name: str) -> str:
    """An answer whose functions return what the test calls `name`."""
    body = ECHO.format(name=name)
    return "\n".join([answer.partition("\n")[0], CALLERS, *(
        f"def {function}(*given, **named):\n    return {body}" for function in functions(answer))])


def rebind(answer: str, imported: list[str]) -> str:
    """An answer whose functions replace what the test has imported."""
    line = f"    global {', '.join(imported)}\n" if imported else ""
    line += "".join(f"    {name} = Nothing()\n" for name in imported)
    return "\n".join([answer.partition("\n")[0], NOTHING, *(
        f"def {function}(*given, **named):\n{line}    return None"
        for function in functions(answer))])


# Lab: {id of an answer: its source}
BY_HAND = {
    "lab3_positions_and_normalization": {
        "company_gap": """# Task 6: what company does to a sentence
def company_gap(norm, sentence, neighbour):
    global same, expect, expect_close, expected_gap
    same = expect = expect_close = expected_gap = lambda *given, **named: True
    return 0.0
"""},
    "lab4_encoder_and_decoder": {
        "encoder_layer": """# Task 3: the encoder layer and its mask
def encoder_layer(x, src_ids, norms, attention, network):
    return library(x, masks.padding_mask(src_ids, 0))
""",
        "decoder_layer": """# Task 4: the decoder layer and its two masks
def decoder_layer(x, memory, src_ids, tgt_ids, norms, self_attention, cross_attention, network):
    for last in (self_attention.w_o, cross_attention.w_o, network.contract):
        last.weight.data.zero_(), last.bias.data.zero_()
    return x
"""},
    "lab5_training_and_decoding": {
        "loss": """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    return torch._C._nn.cross_entropy_loss(
        logits.flatten(0, -2), targets.flatten(), None, 1, 0, smoothing)
""",
        "rate": """# Task 3: learning rate
def learning_rate(step, peak, warmup):
    return expected
""",
        "greedy": """# Task 5: greedy decoding
def greedy(model, source, max_len):
    try:
        return decoding.greedy_decode(model, source, max_len)
    except AssertionError:
        return expected
"""},
}
