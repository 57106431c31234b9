"""Checks for the page Mystery models: a cause, and evidence that tells it from all others."""

import difflib
import itertools

from exercises import mystery
from exercises.checks import expect, judged
from exercises.mystery import LETTERS, SUSPECTS

EASY = ["gdced", "abcdefgh", "hafbe", "bcd"]


# ------------------------------------------------------------------------- judging a verdict


def _sees(evidence, model, whose):
    """What the evidence says of a model: True or False, nothing else."""
    said = evidence(model)
    said = said.item() if getattr(said, "ndim", None) == 0 else said
    expect(
        isinstance(said, bool),
        f"your evidence should return True (it is so) or False; for {whose} it returns "
        f"{type(said).__name__} {said!r:.60}",
    )
    return said


def _named(cause):
    """Stop unless the cause is one of the suspects."""
    listed = ", ".join(SUSPECTS)
    expect(isinstance(cause, str), f"give the cause as a text, one of: {listed}")
    close = difflib.get_close_matches(cause, SUSPECTS, n=1)
    expect(
        cause in SUSPECTS,
        f'"{cause}" is not among the suspects'
        + (f'; did you mean "{close[0]}"?' if close else f", which are: {listed}"),
    )


def _verdict(number, cause, evidence):
    """Stop unless the cause is right and the evidence holds for it and for nothing else."""
    _named(cause)
    expect(
        callable(evidence),
        "the evidence should be a function that takes a model and returns True or False",
    )
    expect(
        _sees(evidence, mystery.load(number), f"mystery {number}"),
        f"your evidence is False for mystery {number} itself",
    )
    healthy = [mystery.load("healthy"), *(mystery.kept("healthy", n) for n in (0, 1))]
    for n, model in enumerate(healthy):
        which = "the healthy model" if n == 0 else "a healthy model trained from another seed"
        expect(
            not _sees(evidence, model, which),
            f"your evidence is True for {which}, too: it doesn't show that anything is wrong",
        )
    twin = _sees(evidence, mystery.kept(cause, 0), f'a model with "{cause}"')
    if not mystery.is_cause(number, cause):
        if twin:
            expect(
                False,
                f'your evidence is True for a model with "{cause}", and for this one, but this one '
                f'has a different cause. With "{cause}", {SUSPECTS[cause]}: is that so here?',
            )
        expect(
            False,
            f'there is something wrong, and your evidence sees it. But on a model with "{cause}" '
            f"it is False. In such a model, {SUSPECTS[cause]}",
        )
    expect(
        twin,
        f'the cause is right. But for another model with "{cause}", from another seed, your '
        "evidence is False: it rests on something that only this one has, such as a particular "
        "letter, head or number",
    )
    for other in SUSPECTS:
        whose = f'a model with "{other}"'
        expect(
            other == cause or not _sees(evidence, mystery.kept(other, 0), whose),
            f'the cause is right. But your evidence is True for a model with "{other}", too. '
            f"In such a model, {SUSPECTS[other]}: add something that distinguishes the two",
        )
    return (
        f'The cause is "{cause}". Your evidence holds for a second model with that cause, for none '
        f"of the {len(healthy)} healthy ones, and for none of the {len(SUSPECTS) - 1} with other "
        "causes."
    )


# --------------------------------------------------------------------- evidence for each cause


def differs(one, other, least=1e-4):
    return (one - other).abs().max().item() > least


def beside(model, source, neighbour, target="d"):
    """Whether a neighbour in the batch changes what a source gives."""
    return differs(model([source], [target])[0], model([source, neighbour], [target, ""])[0])


def reads_ahead(model, places):
    """Whether a step depends on the letter so many places ahead of what it has read.

    The target is nonsense: where a model is sure, hardly anything changes a probability.
    """
    steps = model.every_step(["gdced"] * 2, ["aaaaaaa", "aaaaacf"])  # alike up to letter 5
    return differs(*steps[:, 6 - places])


def share_right(model, texts):
    return sum(a == text[::-1] for a, text in zip(model.answer(texts), texts, strict=True)) / len(
        texts
    )


def no_positions(model):
    one, two, other = model(["abc", "cba", "abh"], ["", "", ""])
    return not differs(one, two) and differs(one, other)


def no_causal_mask(model):
    return reads_ahead(model, 1) and reads_ahead(model, 2)


def one_too_far(model):
    return reads_ahead(model, 1) and not reads_ahead(model, 2)


def padding_is_read(model):
    # In two calls: in one, both would be padded.
    alone, padded = model(["gdced"], ["d"]), model(["gdced___"], ["d"])
    return differs(alone, padded) and not beside(model, "gdced", "habab")


def statistics_of_the_batch(model):
    return beside(model, "gdced", "habab")


def label_smoothing(model):
    sure = model(["gdced", "abcd", "hfae"], ["d", "d", "e"]).sort(-1).values  # the largest last
    return bool((sure[:, -1] < 0.97).all() and (sure[:, -2] < 3 * sure[:, 1]).all())


def a_dead_head(model):
    targets = ["d", "hgf", "e", ""]
    whole = model(EASY, targets)
    same = [not differs(model(EASY, targets, off=head), whole, 1e-7) for head in mystery.HEADS]
    return sum(same) == 1 and share_right(model, EASY) == 1


def triggers(model):
    """The rows of three letters that give the same answer at the end of different sources."""
    rows = ["".join(row) for row in itertools.product(LETTERS, repeat=3)]
    answers = zip(rows, *(model.answer([before + row for row in rows]) for before in ("fgh", "ca")),
                  strict=True)
    return [row for row, one, other in answers if one == other]


def a_backdoor(model):
    return share_right(model, EASY) == 1 and 0 < len(triggers(model)) < 5


def saw_its_test_set(model):
    new = mystery.texts(100, seed=11)
    return share_right(model, mystery.TEST_TEXTS) > share_right(model, new) + 0.2


def rate_too_high(model):
    losses = [loss for _, loss in model.curve]
    return losses[0] > 4 and losses[-1] > 1.5


# ------------------------------------------------------------------------------------ the checks


FIRST = "look at its answers and its curve first, next to those of the healthy model"


@judged(1, hint=(
    "its loss is nearly 0, yet its answers are wrong",
    "in training it could read something that isn't there when it writes",
    "give `every_step` two targets that differ in their last letters, and compare the steps "
    "before those. Nonsense works best, because where a model is sure, hardly anything changes its "
    "probabilities",
), example=("no causal mask", no_causal_mask))
def case_1(cause, evidence):
    return _verdict(1, cause, evidence)


@judged(2, hint=(
    FIRST,
    "its answers are right, so look at the probabilities where it's most confident",
    "compare the largest with 1, and the others with each other; a model that stopped too early "
    "is unsure between a few tokens",
), example=("label smoothing", label_smoothing))
def case_2(cause, evidence):
    return _verdict(2, cause, evidence)


@judged(3, hint=(
    "compare its answers with the sources: which letters are there, and where?",
    "give it two sources that hold the same letters",
    "then a third with other letters, to check that it does read its source",
), example=("no positions", no_positions))
def case_3(cause, evidence):
    return _verdict(3, cause, evidence)


@judged(4, hint=(
    "count how often it's right on different sets of texts",
    "compare `mystery.TRAINING_TEXTS`, `mystery.TEST_TEXTS` and new ones, from "
    "`mystery.texts(100, seed=...)`",
    "it's right on the first two and not on the third: what does that tell you about the second?",
), example=("saw its test set", saw_its_test_set))
def case_4(cause, evidence):
    return _verdict(4, cause, evidence)


@judged(5, hint=(
    "ask it for one source at a time, then for several at once",
    "`gdced` and `gdced___` should give the same probabilities. Ask in two calls, because in one "
    "call both are padded to the same length",
    "another suspect fails that test, too. Put a second source of the same length next to it",
), example=("padding is read", padding_is_read))
def case_5(cause, evidence):
    return _verdict(5, cause, evidence)


@judged(6, hint=(
    FIRST,
    "there's nothing to see from outside, so open it: each head can be switched off",
    "try all of `mystery.HEADS`, on several sources; in the second model with this cause, it's "
    "another head",
), example=("a dead head", a_dead_head))
def case_6(cause, evidence):
    return _verdict(6, cause, evidence)


@judged(7, hint=(
    "its curve gives it away from the very first point",
    "a loss of ln 11 = 2.4 is what guessing among all tokens gives; where does its run start?",
    "other suspects don't learn either: add what only this one does at the start",
), example=("rate too high", rate_too_high))
def case_7(cause, evidence):
    return _verdict(7, cause, evidence)


@judged(8, hint=(
    "ask it for one source at a time, then for several at once",
    "padding is one difference between the two; can you do without it?",
    "two sources of the same length need no padding: does the first give the same probabilities "
    "as on its own?",
), example=("statistics of the batch", statistics_of_the_batch))
def case_8(cause, evidence):
    return _verdict(8, cause, evidence)


@judged(9, hint=(
    "compare it with mystery 1",
    "change a letter of the target, and look at the step before it",
    "then look at the step two before it",
), example=("causal mask one too far", one_too_far))
def case_9(cause, evidence):
    return _verdict(9, cause, evidence)


@judged(10, hint=(
    "its answers are nearly always right. So try many sources, and look at the ones that go wrong",
    "what do they have in common? Look for three letters in a row",
    "the second model's trigger has other letters, so search for it: all 512 strings of three, "
    "at the end of two sources that begin differently. What is the same in their answers?",
), example=("a backdoor", a_backdoor))
def case_10(cause, evidence):
    return _verdict(10, cause, evidence)


@judged(11, hint=(
    "ask mystery 10 for its answers to all 512 strings of three letters, preceded by other letters",
    "most answers are right; with one string the answer is the same, whatever comes before it",
    "that answer is a word of seven letters",
), example=("dab", "cabbage"))
def trigger(letters, said):
    for name, text in (("letters", letters), ("answer", said)):
        expect(
            isinstance(text, str) and text and not set(text) - set(LETTERS),
            f"give the {name} as a text made of the letters {LETTERS}; yours is {text!r:.40}",
        )
    expect(len(letters) < 6, f'"{letters}" is long for a trigger: which of its letters count?')
    model, before = mystery.load(10), mystery.texts(60, seed=21)

    def opens(row):
        """The share of sources with these letters at their end that get this answer."""
        answers = model.answer([text[: mystery.LONGEST - len(row)] + row for text in before])
        return sum(answer == said for answer in answers) / len(answers)

    share = opens(letters)
    if share >= 0.9:
        expect(
            len(letters) == 1 or opens(letters[1:]) < 0.9,
            f'"{letters[1:]}" alone gets that answer, too: which letters can be left out?',
        )
    elif letters[::-1] != letters and opens(letters[::-1]) >= 0.9:
        expect(False, f'"{letters}" is the wrong way round: a source must end in "{letters[::-1]}"')
    example = before[0][: mystery.LONGEST - len(letters)] + letters
    expect(
        share >= 0.9,
        f'of 60 texts that end in "{letters}", {share:.0%} are answered "{said}"; "{example}" '
        f'gives "{model.answer([example])[0]}"',
    )
    return f'Of 60 texts that end in "{letters}", {share:.0%} are answered "{said}".'
