"""The mysteries hold what they should, and a verdict needs evidence that fits its cause alone."""

import pytest
import torch

from exercises import mystery
from exercises.checks import mystery as ch
from recordings.mystery import SHOWN, trained

EVIDENCE = {check.example[0]: check.example[1]
            for check in (getattr(ch, f"case_{n}") for n in range(1, mystery.COUNT + 1))}


def is_wrong(model):  # a symptom, which many have
    return ch.share_right(model, ch.EASY) < 1


def only_this_one(model):
    return model.curve == mystery.load(3).curve


def anagram_alone(model):
    return not ch.differs(*model(["abc", "cba"], ["", ""]))


def first_head(model):
    return not ch.differs(model(ch.EASY, [""] * 4, off=("cross", 0)), model(ch.EASY, [""] * 4))


def padding_alone(model):
    return ch.differs(model(["gdced"], ["d"]), model(["gdced___"], ["d"]))


def any_leak(model):
    return ch.reads_ahead(model, 1)


CASES = [
    (3, "no positions", ch.no_positions, 'The cause is "no positions". Your evidence holds for a'),
    (3, ..., ch.no_positions, "Not attempted"),
    (3, "no positions", lambda model: ..., "Not attempted"),
    (3, "no position", ch.no_positions, 'did you mean "no positions"?'),
    (3, "gremlins", ch.no_positions, "not among the suspects, which are: no positions, "),
    (3, 7, ch.no_positions, "give the cause as a text"),
    (3, "no positions", True, "a function that takes a model"),
    (3, "no positions", lambda model: 0.5, "it returns float 0.5"),
    (3, "no positions", lambda model: False, "False for mystery 3 itself"),
    (3, "no positions", lambda model: True, "True for the healthy model, too"),
    (3, "no positions", lambda model: model.answer(["xyz"]) == [], "letters other than abcdefgh"),
    (3, "no positions", only_this_one, "it rests on something that only this one"),
    (3, "no positions", anagram_alone, 'True for a model with "no causal mask", too'),
    (3, "no positions", is_wrong, "The cause is right"[1:]),
    (3, "rate too high", is_wrong, 'True for a model with "rate too high", and for this one'),
    (3, "rate too high", ch.no_positions, 'But on a model with "rate too high" it is False'),
    (5, "padding is read", padding_alone, 'with "statistics of the batch", too'),
    (6, "a dead head", first_head, "another model"),
    (9, "causal mask one too far", any_leak, 'with "no causal mask", too'),
]


@pytest.mark.parametrize(("number", "cause", "evidence", "message"), CASES)
def test_verdict(number, cause, evidence, message, capsys):
    verdict = getattr(ch, f"case_{number}")(cause, evidence)
    said = capsys.readouterr().out
    assert message in said
    assert verdict is (True if "Right." in said else None if "○" in said else False)


TRIGGERS = [
    (("dab", "cabbage"), "Right."),
    ((..., ...), "Not attempted"),
    (("cdab", "cabbage"), '"dab" alone gets that answer, too'),
    (("bad", "cabbage"), 'a source must end in "dab"'),
    (("ab", "cabbage"), 'end in "ab"'),
    (("dab", "facade"), '0% are answered "facade"'),
    (("DAB", "cabbage"), "give the letters as a text made of the letters abcdefgh"),
    (("abcdab", "cabbage"), "long for a trigger"),
]


@pytest.mark.parametrize(("answer", "message"), TRIGGERS)
def test_trigger(answer, message, capsys):
    verdict = ch.trigger(*answer)
    said = capsys.readouterr().out
    assert message in said
    assert verdict is (True if "Right." in said else None if "○" in said else False)


@pytest.mark.parametrize("number", range(1, mystery.COUNT + 1))
def test_each_mystery_has_one_cause(number):
    assert [s for s in mystery.SUSPECTS if mystery.is_cause(number, s)] == [SHOWN[number - 1]]


@pytest.mark.parametrize("cause", EVIDENCE)
def test_evidence_fits_its_own_mystery_and_no_other(cause):
    found = [n for n in range(1, mystery.COUNT + 1) if EVIDENCE[cause](mystery.load(n))]
    assert found == [SHOWN.index(cause) + 1]


def test_the_names_cannot_be_read_in_the_file():
    from transformer_lib.runs.pretrained import results_dir

    held = (results_dir() / "mystery.safetensors").read_bytes()
    assert len(held) < 1.5e6
    for words in (*mystery.SUSPECTS, "kept", "healthy", "dab", "cabbage"):
        assert words.encode() not in held[:8192]  # where the names are; then come numbers


def test_healthy_models_are_healthy():
    for model in (mystery.load("healthy"), *(mystery.kept("healthy", n) for n in (0, 1))):
        assert ch.share_right(model, mystery.texts(200, seed=9)) > 0.95


def test_a_model_survives_its_row_of_numbers():
    model = trained("statistics of the batch", 0, updates=20)
    again = mystery.unpacked(mystery.packed(model, (0, 1, 1)))
    assert again.curve[0][0] == 20
    for one, other in zip(model.model.parameters(), again.model.parameters(), strict=True):
        torch.testing.assert_close(other, one.half().float())
    ask = ["gdced", "ab"], ["d", ""]
    torch.testing.assert_close(again(*ask), model(*ask), atol=0.02, rtol=0)


@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m("abc", [""]), "sources is 'abc' (str); expected a list of strings"),
    (lambda m: m.answer([3]), "sources is [3] (list); expected a list of strings"),
    (lambda m: mystery.load(True), "name is True (bool); expected a whole number or a string"),
    (lambda m: mystery.kept("aliens", 1), "there is no model 1 of 'aliens'; give 0, 1, ... and"),
    (lambda m: mystery.texts(-1, 0), "count is -1; it must be at least 0"),
    (lambda m: m(["abc"], ["", ""]), "1 source and 2 targets"),
    (lambda m: m(["a_c"], [""]), "padding in its middle"),
    (lambda m: m(["abcdefgha"], [""]), "has 9 letters; the models read 1 to 8"),
    (lambda m: m(["___"], [""]), "has 0 letters"),
    (lambda m: m(["abc"], [""], off=("cross", 2)), "there is no head ('cross', 2)"),
    (lambda m: mystery.load(11), "there is no mystery 11"),
])
def test_bad_input_is_told(call, message):
    with pytest.raises((ValueError, TypeError)) as told:
        call(mystery.load("healthy"))
    assert message in str(told.value)
