"""Every check of the chapter on encoders alone accepts the right answer and names what is wrong."""

import pytest

from exercises.checks import encoder_only as ch


def whole_words(word, chosen):
    together = word[:, :, None] == word[:, None, :]
    return (together & chosen[:, None, :]).any(-1) & (word >= 0)


def to_the_right(word, chosen):
    """Only the pieces that follow the first chosen one."""
    return whole_words(word, chosen) & (chosen.cumsum(1) > 0)


def score(guess, ids, mask_id, hide, places=None, scale=1.0):
    ordinary = (ids > 3).nonzero()[:, 0].tolist()
    places = {None: ordinary, "every": range(len(ids))}[places]
    hide = (lambda place: ordinary) if hide == "all" else hide
    scale = 1 / len(ordinary) if scale == "mean" else scale
    total = 0.0
    for place in places:
        hidden = ids.clone()
        hidden[hide(place)] = mask_id
        total = total + guess(hidden[None])[0].log_softmax(-1)[place, ids[place]]
    return total * scale


def pll(hide, places=None, scale=1.0):
    return lambda guess, ids, mask_id: score(guess, ids, mask_id, hide, places, scale)


def prepared(ids, chosen, mask_id):
    return ids.masked_fill(chosen, mask_id), ids, chosen


def spoils_the_data(ids, chosen, mask_id):
    wanted = ids.clone()
    ids[chosen] = mask_id
    return ids, wanted, chosen


def hides_nothing(ids, chosen, mask_id):
    return ids.clone(), ids, chosen


def albert(V, E, D, F, L):
    return V * E + E * D + 4 * D * D + 2 * D * F


REST = "two green balls on the beautiful bridge are jumping in the café."
CASES = [
    (ch.predictions, lambda B, T, r: (r * B * T, B * (T + 1)), True, "Right"),
    (ch.predictions, lambda B, T, r: ..., None, "Not attempted"),
    (ch.predictions, lambda B, T, r: (B * T, B * (T + 1)), False, "only what is hidden"),
    (ch.predictions, lambda B, T, r: r * B * T, False, "two values"),
    (ch.whole_words, whole_words, True, "Right"),
    (ch.whole_words, lambda w, c: ..., None, "Not attempted"),
    (ch.whole_words, lambda w, c: c, False, "`chosen` itself"),
    (ch.whole_words, to_the_right, False, "not right"),
    (ch.prepare, prepared, True, "Right"),
    (ch.prepare, spoils_the_data, False, "next epoch"),
    (ch.prepare, hides_nothing, False, "nothing is hidden"),
    (ch.pseudo_log_likelihood, pll(lambda p: p), True, "Right"),
    (ch.pseudo_log_likelihood, lambda g, i, m: ..., None, "Not attempted"),
    (ch.pseudo_log_likelihood, pll(lambda p: slice(p, -1)), False, "what follows"),
    (ch.albert_numbers, albert, True, "Right"),
    (ch.albert_numbers, lambda *sizes: ..., None, "Not attempted"),
    (ch.overturn, lambda: (f"Two cats that are … {REST}", "chasing"), True, "Right"),
    (ch.overturn, lambda: (..., ...), None, "Not attempted"),
    (ch.overturn, lambda: (f"Two … that are chasing {REST}", "cats"), False, "already sure of it"),
    (ch.overturn, lambda: (f"Two … that are chasing {REST}", "cows"), False, "is not a caption"),
    (ch.overturn, lambda: (f"Two cats that are chasing {REST}", "cats"), False, "needs one gap"),
    (ch.overturn, lambda: (f"Two cats that are chasing {REST[:-5]}…", "café."), False,
     "at least two words"),
]


CASES = [(check, (answer,), verdict, message) for check, answer, verdict, message in CASES]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out


def test_the_code_as_given_is_not_an_attempt(capsys):
    namespace = {}
    code = (
        "def prepare(ids, chosen, mask_id):\n    read = ids\n    read[chosen] = mask_id\n"
        "    return read, ids, chosen\n"
    )
    import linecache

    linecache.cache["<given>"] = (len(code), None, code.splitlines(True), "<given>")
    exec(compile(code, "<given>", "exec"), namespace)
    assert ch.prepare(namespace["prepare"]) is None
    assert "Not attempted" in capsys.readouterr().out
