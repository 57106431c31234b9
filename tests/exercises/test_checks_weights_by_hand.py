"""Every check of Weights by hand accepts the right machine and says what is wrong with others."""

import pytest
import torch

from exercises.checks import weights_by_hand as w
from transformer_lib.beyond.by_hand import run_by_hand

NEW = w.copy_to("new ")
FIRST = [[({("one", "place"): -50}, NEW)]]
ONE_OFF = [[w.SEES_LAST], [(w.look_at({"last": 1, "place": -1, "one": 1}), NEW)]]
NOTES = w.INDUCTION[0]
EARLIEST = [NOTES, [({**w.MATCHES, ("one", "place"): -20, ("place", "one"): 0}, NEW)]]
UNSURE = [NOTES, [(w.MATCHES, NEW)]]
DEPTH = w.BALANCED[0]

CASES = [
    (w.before, (w.BEFORE, w.READ), "all 480 texts"),
    (w.before, (..., ...), "Not attempted"),
    (w.before, ([[({}, NEW)]], w.READ), 'with "ab", at place 1 (counted from 0), a is right'),
    (w.before, ([[({}, NEW)]], w.READ), "layer 1 looks at place 0 (50%), place 1 (50%)"),
    (w.before, ([[({("one", "place"): 50}, NEW)]], w.READ), "letter of the place itself: with"),
    (w.before, ([[(w.look_at({"place": 1, "one": -2}), NEW)]], w.READ), "two places back"),
    (w.before, (FIRST, w.READ), "at the first place from everywhere"),
    (w.before, ([({}, {})], w.READ), "not a pair (scores, values)"),
    (w.before, (({}, {}), w.READ), "give a list of layers"),
    (w.before, ([[({}, {"a": 1})]], w.READ), "'a' isn't an entry of a matrix"),
    (w.before, ([[({}, {("a", "b"): "1"})]], w.READ), "isn't a number: '1'"),
    (w.before, (w.BEFORE, {}), "the readout is empty"),
    (w.before, (w.BEFORE, {("new a", "a"): 1}), "your readout never gives that answer"),
    (w.before, ([[(w.look_at(w.PREVIOUS, 1e308), NEW)]], w.READ), "too large to compute with"),
    (w.backwards, (w.BACKWARDS, w.READ), "all 484 texts"),
    (w.backwards, (w.BEFORE, w.READ), 'with "ab", at place 0'),
    (w.backwards, (ONE_OFF, w.READ), "one place off"),
    (w.backwards, ([[(w.SEES_LAST[0], NEW)]], w.READ), "the last letter everywhere"),
    (w.backwards, (FIRST, w.READ), "the first letter everywhere"),
    (w.backwards, ([[({("place", "place"): 0}, {})]], {(x, x): 1 for x in "abcd"}), "place itself"),
    (w.induction, (w.INDUCTION, w.READ), "all 1,452 texts"),
    (w.induction, (w.BEFORE, w.READ), "the letter before: with"),
    (w.induction, (UNSURE, w.READ), "layer 2 looks at place 0 (50%), place 1 (50%)"),
    (w.brackets, (w.BALANCED, w.VERDICT), "all 511 texts"),
    (w.brackets, ([DEPTH], {**w.VERDICT, ("lowest", "balanced"): 0}), "rejects only texts that "
                                                                      "end above"),
    (w.brackets, ([DEPTH], {**w.VERDICT, ("lowest", "balanced"): 0, ("depth", "balanced"): 1}),
     "rejects only texts that end below"),
    (w.brackets, (w.BALANCED, {**w.VERDICT, ("depth", "balanced"): 0}), "not whether it ends at 0"),
    (w.brackets, (w.BALANCED, {("one", "balanced"): 1, ("one", "not"): 0}), "every text balanced"),
    (w.brackets, (w.BALANCED, {("one", "balanced"): 0, ("one", "not"): 1}), "no text balanced"),
    (w.one_head_cannot, (["abdca", "dcaba"], ["acdba", "dbaca"]), "no head can do both"),
    (w.one_head_cannot, (["abda"], ["acda"]), "at place 1 (counted from 0) the first list has b"),
    (w.one_head_cannot, (["abda"], ["abda"]), "both lists have the same answer, b"),
    (w.one_head_cannot, (["abda", "acda"], ["acda", "acda"]), "a list need the same right answer"),
    (w.one_head_cannot, (["abda"], ["acda", "acda"]), "one list has 1 text and the other 2"),
    (w.one_head_cannot, (["abda"], ["dcad"]), "end in different letters"),
    (w.one_head_cannot, (["abda"], ["aca"]), "differ in length"),
    (w.one_head_cannot, (["abba"], ["acda"]), "b twice in a row"),
    (w.one_head_cannot, (["bcda"], ["acda"]), "did not occur before"),
    (w.one_head_cannot, (["xyzx"], ["acda"]), "letters other than abcd"),
    (w.one_head_cannot, ("abda", ["acda"]), "give two lists"),
    (w.at_once, (w._at_once(), w.READ), "all 1,452 texts"),
    (w.at_once, (w.INDUCTION, w.READ), "one layer is expected; yours has 2"),
    (w.at_once, ([w._at_once()[0][::2]], w.READ), "letter of the place itself"),
]


@pytest.mark.parametrize("check, answer, message", CASES)
def test_check(check, answer, message, capsys):
    verdict = check(*answer)
    said = capsys.readouterr().out
    assert message in said
    assert verdict is (True if "Right." in said else None if "○" in said else False)


def test_the_sum_that_the_proof_speaks_of_is_a_sum_over_places():
    """Z times the difference of two logits is equal over two lists with the same columns."""
    generator = torch.Generator().manual_seed(0)
    names = ["a", "b", "c", "d", "one", "place", "place²"]

    def drawn(rows, columns):
        return {(r, c): torch.randn((), generator=generator).item() for r in rows for c in columns}

    scores, values = drawn(names, names), drawn(names, ["new b", "new c"])
    readout = drawn([*names, "new b", "new c"], "bc")
    sums = []
    for texts in (["abdca", "dcaba"], ["acdba", "dbaca"]):
        logits, (weights,) = run_by_hand([[(scores, values)]], readout, texts, "abcd")
        own = [scores["a", f] * x for f, x in zip(("a", "one", "place", "place²"), (1, 1, 4, 16),
                                                  strict=True)]
        for n, other in (("one", 1), ("place", 4), ("place²", 16)):  # the last token with itself
            own += [scores[n, f] * other * x
                    for f, x in zip(("a", "one", "place", "place²"), (1, 1, 4, 16), strict=True)]
        z = torch.tensor(sum(own), dtype=torch.float64).exp() / weights[:, -1, -1]
        sums.append((z * (logits[:, -1, 0] - logits[:, -1, 1])).sum())
    torch.testing.assert_close(*sums)
