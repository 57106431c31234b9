"""Checks for the page Weights by hand."""

import collections
import itertools

from exercises.checks import expect, judged
from exercises.wording import counted
from transformer_lib.beyond.by_hand import run_by_hand

LETTERS, BRACKETS = "abcd", "^()"


def all_texts(n, letters=LETTERS):
    """Every text of n letters in which no letter follows itself."""
    every = map("".join, itertools.product(letters, repeat=n))
    return [text for text in every if all(a != b for a, b in zip(text, text[1:], strict=False))]


def all_brackets(n):
    return ["^" + "".join(rest) for rest in itertools.product("()", repeat=n)]


# What is right, for each place of a text; None where anything may be answered.


def the_letter_before(text):
    return [None, *text[:-1]]


def the_text_backwards(text):
    return list(text[::-1])


def what_came_next(text, which=max, step=1):
    """The letter after the most recent earlier place that holds the same letter."""
    found = []
    for place, letter in enumerate(text):
        earlier = [i for i in range(place) if text[i] == letter]
        found.append(text[max(which(earlier) + step, 0)] if earlier else None)
    return found


def the_depths(text):
    depth = itertools.accumulate({"^": 0, "(": 1, ")": -1}[bracket] for bracket in text)
    return list(depth)


def is_balanced(text, holds=lambda final, lowest: final == 0 and lowest == 0):
    depths = the_depths(text)
    right = holds(depths[-1], min(depths))
    return [None] * (len(text) - 1) + ["balanced" if right else "not"]


# ------------------------------------------------------------------------- judging a machine


def _look_at(layers, readout):
    """Stop unless the answer is a machine: layers of heads of two matrices, and a readout."""
    expect(
        isinstance(layers, (list, tuple)) and all(isinstance(x, (list, tuple)) for x in layers),
        "give a list of layers, and each layer as a list of heads, even if there is only one: "
        "[[(scores, values)]]",
    )
    for n, layer in enumerate(layers, start=1):
        for head in layer:
            expect(
                isinstance(head, (list, tuple)) and len(head) == 2
                and all(isinstance(matrix, dict) for matrix in head),
                f"a head of layer {n} is not a pair (scores, values) of two dictionaries",
            )
    for matrix in [*(m for layer in layers for head in layer for m in head), readout]:
        expect(isinstance(matrix, dict), "the readout is a dictionary {(number, answer): weight}")
        for key, weight in matrix.items():
            expect(
                isinstance(key, tuple) and len(key) == 2 and all(isinstance(k, str) for k in key),
                f"{key!r} isn't an entry of a matrix: it takes two names, such as ('one', 'place')",
            )
            expect(
                isinstance(weight, (int, float)),
                f"the weight of {key!r} isn't a number: {weight!r}"
            )
    expect(readout, "the readout is empty, so your machine has no answers")


def _given(layers, readout, texts, letters, causal):
    """(what the machine answers at each place of each text or None for a tie, logits, weights)."""
    logits, patterns = run_by_hand(layers, readout, texts, letters, causal)
    names = sorted({answer for _, answer in readout})
    best = logits.amax(-1, keepdim=True)
    alone = (logits >= best - 1e-6).sum(-1) == 1  # NaN is never alone
    said = [
        [names[i] if clear else None for i, clear in zip(*row, strict=True)]
        for row in zip(logits.argmax(-1).tolist(), alone.tolist(), strict=True)
    ]
    return said, names, logits, patterns


def _agree(said, wanted):
    return all(other is None or one == other for one, other in zip(said, wanted, strict=True))


def _refuse(text, place, wanted, names, logits, patterns, layers):
    """The sentence on the first place of the shortest text that fails."""
    listed = ", ".join(
        f"{name} {x:.3g}" for name, x in zip(names, logits[place].tolist(), strict=True)
    )
    said = f'with "{text}", at place {place} (counted from 0), {wanted} is right; yours gives '
    said += listed
    expect(
        wanted in names,
        f'with "{text}" {wanted} is right, but your readout never gives that answer',
    )
    expect(not logits[place].isnan().any(), f"{said}: your weights are too large to compute with")
    heads = [f"layer {i + 1}" + (f", head {j + 1}" if len(layer) > 1 else "")
             for i, layer in enumerate(layers) for j in range(len(layer))]
    looks = [
        f"{head} looks at " + ", ".join(
            f"place {at} ({weight:.0%})" for at, weight in enumerate(pattern[place].tolist())
            if weight >= 0.005
        )
        for head, pattern in zip(heads, patterns, strict=True)
    ]
    shown = looks if len(looks) < 4 else looks[:3] + [f"and {counted(len(looks) - 3, 'more head')}"]
    expect(False, f"{said}. From there {'; '.join(shown)}")


def _works(layers, readout, right, slips, lengths, make=all_texts, letters=LETTERS, causal=True):
    """Stop at the shortest text that the machine gets wrong; return how many it got right."""
    _look_at(layers, readout)
    runs = []
    for n in lengths:
        texts = make(n)
        runs.append((texts, *_given(layers, readout, texts, letters, causal)))
        if not all(_agree(said, right(text)) for text, said in zip(texts, runs[-1][1],
                                                                   strict=True)):
            break
    else:
        return sum(len(texts) for texts, *_ in runs)
    texts, said, names, logits, patterns = runs[-1]
    at = next(i for i, text in enumerate(texts) if not _agree(said[i], right(text)))
    place = next(i for i, (one, other) in enumerate(zip(said[at], right(texts[at]), strict=True))
                 if other not in (None, one))
    longer = make(min(lengths[-1], len(texts[at]) + 2))  # a slip must fit there, too
    answers = _given(layers, readout, longer, letters, causal)[0]
    for sentence, wrong in slips.items():
        alike = zip([*texts, *longer], [*said, *answers], strict=True)
        if all(_agree(one, wrong(text)) for text, one in alike):
            example = f'with "{texts[at]}", at place {place} (counted from 0), '
            example += f"{right(texts[at])[place]} is right; yours gives {said[at][place]}"
            expect(False, f"{sentence}: {example}")
    _refuse(texts[at], place, right(texts[at])[place], names, logits[at],
            [pattern[at] for pattern in patterns], layers)


def _count(texts):
    return f"The machine answers all {texts:,} texts correctly."


OWN = "it answers with the letter of the place itself"


# --------------------------------------------------------------------------------- right machines


def look_at(target, sharp=50):
    """Scores that are largest at one place of the keys: target, {number of the query: factor}."""
    towards = {(number, "place"): 2 * sharp * factor for number, factor in target.items()}
    return {**towards, ("one", "place²"): -sharp}


def copy_to(name, factor=1.0):
    return {(letter, name + letter): factor for letter in LETTERS}


READ = {("new " + letter, letter): 1 for letter in LETTERS}
PREVIOUS = {"place": 1, "one": -1}
SEES_LAST = ({("one", "place"): 50}, {("place", "last"): 1})
MATCHES = {(letter, "after " + letter): 100 for letter in LETTERS}
BEFORE = [[(look_at(PREVIOUS), copy_to("new "))]]
BACKWARDS = [[SEES_LAST], [(look_at({"last": 1, "place": -1}), copy_to("new "))]]
INDUCTION = [
    [(look_at(PREVIOUS), copy_to("after "))],
    [({**MATCHES, ("one", "place"): 20}, copy_to("new "))],
]
BALANCED = [
    [({}, {("(", "depth"): 1, (")", "depth"): -1})],
    [({("one", "depth"): -2000}, {("depth", "lowest"): 1})],
]
VERDICT = {("one", "balanced"): 0.05, ("depth", "balanced"): -1, ("lowest", "balanced"): 2,
           ("one", "not"): 0}


def _at_once(length=6):
    """Induction in one layer: for each place a head that moves on from it if it matches."""
    heads = []
    for place in range(length - 1):
        turn = {(letter, letter): -100 for letter in LETTERS}
        heads.append(({**look_at({"one": place + 0.375}, 200), **turn}, copy_to("new ", 3**place)))
        heads.append((look_at({"one": place}), copy_to("new ", -(3**place))))
    return [heads]


# ------------------------------------------------------------------------------------ the checks


@judged(
    1,
    hint=(
        "which place should a query look at? That place is a sum of the query's own numbers",
        "2 · place of the key · (place of the query - 1) - (place of the key)² is largest at the "
        "place before",
        "so you need three entries for the scores, (place, place), (one, place) and (one, "
        "place²), times something large; the letters are copied to new names, and the readout "
        "reads those",
    ),
    example=(BEFORE, READ),
)
def before(layers, readout):
    return _count(_works(layers, readout, the_letter_before, {
        OWN: list,
        "it looks two places back": lambda text: [None, None, *text[:-2]],
        "it looks at the first place from everywhere": lambda text: [text[0]] * len(text),
    }, range(2, 6)))


@judged(
    2,
    hint=(
        "the place to look at is last - place; a query doesn't know the last place yet",
        "a first layer can find it: let the score grow with the key's place, and copy `place` to "
        "a new name",
        "the second layer is exercise 1 with another target: (last, place) and (place, place)",
    ),
    example=(BACKWARDS, READ),
)
def backwards(layers, readout):
    return _count(_works(layers, readout, the_text_backwards, {
        OWN: list,
        "it answers with the last letter everywhere": lambda text: [text[-1]] * len(text),
        "it answers with the first letter everywhere": lambda text: [text[0]] * len(text),
        "it is one place off: places are counted from 0, so the last is n - 1": (
            lambda text: [None, *text[:0:-1]]
        ),
    }, range(1, 6), causal=False))


INDUCTION_SLIPS = {
    OWN: list,
    "it answers with the letter before": the_letter_before,
    "if a letter has occurred twice, it uses the first occurrence; it should use the last": (
        lambda text: what_came_next(text, which=min)
    ),
    "it answers with what came before the earlier letter; it should answer with what came after "
    "it": (
        lambda text: what_came_next(text, step=-1)
    ),
}


@judged(
    3,
    hint=(
        "look for a place whose letter *before* is your letter; each place has to know that first",
        "layer 1 is exercise 1, but writes the letter to a name of its own, such as `after a`",
        "layer 2: a query with the letter a agrees with keys that have `after a`, and a little "
        "with every key by its place, so that the last one wins; it copies the key's own letter",
    ),
    example=(INDUCTION, READ),
)
def induction(layers, readout):
    return _count(_works(layers, readout, what_came_next, INDUCTION_SLIPS, range(2, 7)))


@judged(
    4,
    hint=(
        "a head with no scores at all averages over everything up to the query's own place; if ( "
        "counts as 1 and ) as -1, the average is depth / length",
        "a second layer can find the lowest depth so far: a score that is larger the lower the "
        "key's depth is, times something very large",
        "the depth at ^ is 0, so the lowest is 0 at most. Balanced means that depth and lowest "
        "are both 0: a small number - depth + 2 · lowest is above 0 only then",
    ),
    example=(BALANCED, VERDICT),
)
def brackets(layers, readout):
    return _count(_works(layers, readout, is_balanced, {
        "it only checks that there are as many ( as ), so )( passes, too": (
            lambda text: is_balanced(text, lambda final, lowest: final == 0)
        ),
        "it checks that the depth never falls below 0, but not whether it ends at 0": (
            lambda text: is_balanced(text, lambda final, lowest: lowest == 0)
        ),
        "it rejects only texts that end above depth 0": (
            lambda text: is_balanced(text, lambda final, lowest: final <= 0)
        ),
        "it rejects only texts that end below depth 0": (
            lambda text: is_balanced(text, lambda final, lowest: final >= 0)
        ),
        "it calls every text balanced": lambda text: is_balanced(text, lambda *_: True),
        "it calls no text balanced": lambda text: is_balanced(text, lambda *_: False),
    }, range(0, 9), all_brackets, BRACKETS))


@judged(
    5,
    hint=(
        "take the letter a for the query, and b and c for the answers: texts such as ab..a and "
        "ac..a",
        "with ab..a and ..aba in the list for b, the list for c may hold ac..a and ..aca. Which "
        "places don't agree yet?",
        "use five letters each: a b d c a and d c a b a for b. Then exchange b and c in both",
    ),
    example=(["abdca", "dcaba"], ["acdba", "dbaca"]),
)
def one_head_cannot(first, second):
    lists = []
    for texts in (first, second):
        expect(
            isinstance(texts, (list, tuple)) and texts and all(isinstance(t, str) for t in texts),
            "give two lists of texts, such as ['abcab'] and ['acbac']",
        )
        lists.append(list(texts))
    every = [text for texts in lists for text in texts]
    for text in every:
        expect(text and not set(text) - set(LETTERS), f'"{text}" has letters other than {LETTERS}')
        expect(len(text) == len(every[0]), f'"{text}" and "{every[0]}" differ in length')
        twice = [a for a, b in zip(text, text[1:], strict=False) if a == b]
        expect(not twice, f'"{text}" has {twice and twice[0]} twice in a row')
        expect(
            text[-1] == every[0][-1],
            f'"{text}" and "{every[0]}" end in different letters: with another letter the head '
            "has other scores, and the sums may differ",
        )
        expect(
            what_came_next(text)[-1],
            f'the last letter of "{text}" did not occur before, so any answer will do',
        )
    answers = []
    for texts in lists:
        told = [f"{text} → {what_came_next(text)[-1]}" for text in texts]
        answers.append(told[0][-1])
        expect(
            len({one[-1] for one in told}) == 1,
            f"all the texts in a list need the same right answer: {', '.join(told)}",
        )
    expect(answers[0] != answers[1], f"both lists have the same answer, {answers[0]}")
    expect(
        len(lists[0]) == len(lists[1]),
        f"one list has {counted(len(lists[0]), 'text')} and the other {len(lists[1])}: both sums "
        "need the same number of texts",
    )
    for place in range(len(every[0])):
        held = [collections.Counter(text[place] for text in texts) for texts in lists]
        one, other = (", ".join(sorted(count.elements())) for count in held)
        expect(
            held[0] == held[1],
            f"at place {place} (counted from 0) the first list has {one}, the second {other}; with "
            "the same letters at each place the sums would be the same",
        )
    return (
        f"The sum over the first list must favour {answers[0]}, and the same sum over the second "
        f"{answers[1]}: no head can do both."
    )


@judged(
    6,
    hint=(
        "give each place of the text a head of its own that looks at it, and at nothing else",
        "now let it move on by one place if its own place holds the query's letter: lower the score"
        " of equal letters, (a, a): -100, and let the next place score 50 below its own",
        "where nothing matches, the head copies the letter of its own place. A second head that "
        "always copies that letter, with the weight -1, takes it away again. Weights 1, 3, 9, ... "
        "let the last place win",
    ),
    example=(_at_once(), READ),
)
def at_once(layers, readout):
    _look_at(layers, readout)
    expect(len(layers) == 1, f"one layer is expected; yours has {len(layers)}")
    return _count(_works(layers, readout, what_came_next, INDUCTION_SLIPS, range(2, 7)))

