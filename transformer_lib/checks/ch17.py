"""Checks for chapter 17, evaluation and error analysis."""

import math

import numpy as np

from transformer_lib.checks import exercise, expect, expect_close, expect_shape


@exercise("17.1", hint="put r = 10 and c into the formula, and mind the minimum")
def brevity(for_8, for_12):
    expect(
        abs(for_8 - 8 / 10) > 1e-3,
        "0.8 is the ratio of the lengths itself; the penalty is e to the power of 1 - r/c",
    )
    expect(
        abs(for_8 - math.exp(1 - 8 / 10)) > 1e-2,
        "r and c are swapped: r is the length of the references",
    )
    expect(for_12 <= 1, "a penalty is never above 1: a long output is punished by its precision")
    expect(
        abs(for_12 - 10 / 12) > 1e-2,
        "12 words are more than 10, so there is no brevity to punish",
    )
    expect_close(for_8, math.exp(1 - 10 / 8), "the penalty for 8 words is not right", 1e-2)
    expect_close(for_12, 1.0, "the penalty for 12 words is not right", 1e-2)


@exercise("17.2", hint="count the n-grams of both sides with Counter, then take the smaller counts")
def clip(answer):
    the = ["the"] * 4
    given = answer(the, ["the", "dog"], 1)
    expect(
        given != 4, "'the the the the' against 'the dog' is 1 match: the reference has one 'the'"
    )
    expect(
        answer(["a", "a", "b"], ["a", "a", "c"], 1) != 1,
        "each word counts once only, but the reference has two 'a' and so the match is 2: "
        "use counts, not sets",
    )
    expect(
        answer(["a", "b", "c"], ["c", "b", "a"], 2) != 3,
        "these are single words; for n = 2 count runs of two words",
    )
    expect(
        answer(["a", "b", "c"], ["a", "b", "c"], 3) != 0,
        "the last n-gram is left out: there are len - n + 1 of them",
    )
    left, right = "a b a b a c".split(), "b a b a a c a b".split()
    for n, wanted in ((1, 6), (2, 5), (3, 2), (4, 1), (7, 0)):
        expect_close(answer(left, right, n), wanted, f"the number of {n}-gram matches is not right")


@exercise("17.3", given=0x364C52BC)
def wer(answer):
    uneven = (["a", "a b c d e f g h"], ["b", "a b c d e f g h"])
    given = answer(*uneven)
    expect(
        abs(given - 0.5) > 1e-6,
        "this is the mean of the sentences' rates, so one word counts as much as eight: "
        "add up all edits, then divide by all words",
    )
    expect(abs(given - 1) > 1e-6, "these are the edits; divide them by the number of words")
    short = answer(["a b"], ["a b c d"])
    expect(
        abs(short - 1) > 1e-6,
        "you divide by the length of the hypothesis, so saying more lowers the rate: "
        "divide by the length of the reference",
    )
    expect(
        abs(short - 50) > 1e-6 and abs(given - 100 / 9) > 1e-6,
        "this is in percent; return a fraction",
    )
    expect_close(given, 1 / 9, "one edit in nine reference words is not that rate")
    expect_close(short, 0.5, "two words missing of four are not that rate")
    mixed = answer(["a b c d", "x"], ["a c d", "y z"])
    expect_close(mixed, 3 / 5, "over two sentences the rate is not right")


@exercise("17.4", given=0xCB39A7B4)
def paired(answer):
    rng = np.random.default_rng(7)
    a = rng.normal(50, 20, 80)
    same = np.asarray(answer(a, a, 40, 0), dtype=float)
    expect_shape(same, (40,), "return one difference per draw")
    expect(
        np.abs(same).max() < 1e-9,
        "a system differs from itself: the two systems are scored on different draws. "
        "Draw the sentences once and use them for both",
    )
    b = a + rng.normal(2, 5, 80)
    found = np.asarray(answer(a, b, 2000, 1), dtype=float)
    expect(
        found.std() > 1e-9,
        "every draw gives the same difference: draw with replacement, a new sample each time",
    )
    expect(
        abs(found.mean() - (b - a).mean()) > 0.3,
        "the sign is turned: return the mean of a less the mean of b",
    )
    expected = (a - b).std() / math.sqrt(80)
    expect(
        found.std() < 1.4 * expected,
        "the differences spread too widely: draw as many sentences as there are, for both alike",
    )
    expect(
        found.std() > 0.7 * expected,
        "the differences spread too little: draw as many sentences as there are, with replacement",
    )
    expect(
        abs(found.mean() - (a - b).mean()) < 0.3,
        "the differences do not centre on the difference of the two means",
    )


@exercise("17.5", hint="give a set of numbers from 1 to 6")
def fair(answer):
    expect(
        isinstance(answer, set | frozenset | list | tuple), "give a set of numbers, such as {1, 4}"
    )
    chosen = set(answer)
    unfair = {
        1: "lowercasing and other tokens change BLEU by themselves",
        3: "another test set is easier or harder by itself",
        4: "perplexity is counted per token, and the two models have different tokens",
        6: "Y's checkpoint was picked by the very score that is compared",
    }
    for number, reason in unfair.items():
        expect(number not in chosen, f"comparison {number} is not fair: {reason}")
    expect(2 in chosen, "comparison 2 is missing: signature and test set are equal")
    expect(
        5 in chosen,
        "comparison 5 is missing: WER is counted on detokenised text, so the models' own pieces "
        "do not matter",
    )
    expect(chosen == {2, 5}, f"there are comparisons 1 to 6 only, yours are {sorted(chosen)}")
