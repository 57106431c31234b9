"""Checks for chapter 22, encoder-decoders."""

import random
from collections import Counter

from exercises.checks import exercise, expect, expect_close, judged
from transformer_lib.beyond.denoising import text_infilling

GAP = 100


def _lengths(n, lost, spans):
    return n - lost + spans, lost + spans + 1


@exercise(
    1,
    inputs=[(12, 2, 1), (20, 6, 3), (9, 4, 2)],
    hint=(
        "ask what each span leaves in the source, and what it adds to the target",
        "in the source, each span becomes one gap; the target names each gap, then its words, and "
        "ends with one more gap",
    ),
    parts=("source", "target"),
    tell=lambda given, expected, n, lost, spans: (
        f"for n = {n}, lost = {lost} and spans = {spans}: the source holds the kept tokens, and "
        "one gap for each span"
        if given[0] != expected[0]
        else f"for n = {n}, lost = {lost} and spans = {spans}: the target holds the spans, a gap "
        "before each, and one at the end"
    ),
    slips={
        "that is token masking, which keeps the length": (
            lambda n, lost, spans: (n, lost + spans + 1)
        ),
        "that is deletion; each span leaves one gap": (
            lambda n, lost, spans: (n - lost, lost + spans + 1)
        ),
        "BART writes the whole text; T5 writes only the spans": (
            lambda n, lost, spans: (n - lost + spans, n)
        ),
        "a gap goes in front of each span, to say which one it is": (
            lambda n, lost, spans: (n - lost + spans, lost)
        ),
        "the last gap, the one that ends the list, is missing": (
            lambda n, lost, spans: (n - lost + spans, lost + spans)
        ),
    },
)
def lengths(n, lost, spans):
    return _lengths(n, lost, spans)


def _cut_out(ids, start, length):
    return ids[:start], ids[start : start + length], ids[start + length :]


@exercise(
    2,
    inputs=[
        ([5, 6, 7, 8, 9], 1, 3, GAP), ([4, 5, 6], 0, 1, GAP), ([4, 5, 6, 7], 2, 2, 77),
    ],
    hint=(
        "use three slices: what comes before the piece, the piece itself, and what comes after it",
        "the source keeps its length: put `length` gaps in place of `length` tokens",
    ),
    parts=("source", "target"),
    shrinks=False,
    tell=lambda given, expected, *args: (
        f"the target is {expected[1]}, not {list(given[1])}"
        if list(given[1]) != expected[1]
        else f"the encoder should read {expected[0]}, not {list(given[0])}"
    ),
    slips={
        "that is BART's target; MASS writes only the piece": lambda ids, start, length, gap: (
            hide_piece.reference(ids, start, length, gap)[0], ids
        ),
        "nothing shows where the piece was: put gaps there": lambda ids, start, length, gap: (
            ids[:start] + ids[start + length :], ids[start : start + length]
        ),
        "one gap is infilling; MASS leaves a gap for each hidden token": (
            lambda ids, start, length, gap: (
                [*ids[:start], gap, *ids[start + length :]], ids[start : start + length]
            )
        ),
    },
)
def hide_piece(ids, start, length, gap):
    before, piece, behind = _cut_out(ids, start, length)
    return before + [gap] * length + behind, piece


def _told_spans(given, expected, ids, first, second, gap):
    source, target = (list(part) for part in given)
    told = {token for token in source + target if token < gap}
    missing = [token for token in ids if token not in told]
    if missing:
        return f"in neither source nor target: {missing}, so the text can't be restored"
    twice = [token for token, n in Counter(source + target).items() if n > 1 and token < gap]
    if twice:
        return f"in both source and target: {twice}; what the source shows is not lost"
    if target != expected[1]:
        return f"the given function's target was right: {expected[1]}; yours is {target}"
    return f"the source of {ids} should be {expected[0]}; yours is {source}"


@exercise(
    3,
    inputs=[
        (list(range(10, 20)), (2, 4), (6, 7), GAP), (list(range(30, 36)), (0, 1), (3, 6), GAP),
        (list(range(3, 9)), (1, 2), (2, 4), 50),
    ],
    given=0xBE7F58A1,
    parts=("source", "target"),
    shrinks=False,
    tell=_told_spans,
    hint=(
        "a slice stops before its second number: which tokens does ids[b + 1 : c] leave out?",
    ),
)
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = [*ids[:a], gap, *ids[b:c], gap + 1, *ids[d:]]
    return source, [gap, *ids[a:b], gap + 1, *ids[c:d], gap + 2]


def _gain(runs):
    def total(run):
        return run["pretraining_updates"] + run["updates"]

    gains = [
        run["bleu"] - other["bleu"] for run in runs for other in runs
        if run["start"] == "infill" and other["start"] == "scratch"
        if run["seed"] == other["seed"] and total(run) == total(other)
    ]
    return sum(gains) / len(gains)


@judged(
    4,
    hint=(
        "for each seed, find the run from scratch with the same number of updates in all",
        "the total number of updates is pretraining_updates + updates; for runs from scratch, the "
        "first is 0",
        "a dictionary from (seed, updates in all) to BLEU makes the pairs easy to find; average "
        "only the pairs that are there",
    ),
    example=_gain,
)
def gain(answer):
    def run(start, seed, updates, bleu):
        before = 0 if start == "scratch" else 1000
        return {
            "start": start, "seed": seed, "updates": updates, "pretraining_updates": before,
            "bleu": bleu,
        }

    runs = [
        run("infill", 0, 200, 14.0), run("scratch", 1, 1200, 9.0), run("scratch", 0, 200, 3.0),
        run("infill", 1, 200, 19.0), run("scratch", 1, 200, 5.0), run("copy", 0, 200, 6.0),
        run("scratch", 0, 1200, 8.0), run("copy", 1, 200, 8.0), run("scratch", 2, 1200, 30.0),
        run("scratch", 1, 2400, 11.0),
    ]
    given = answer(runs)
    # Other runs: five seeds, of which one has no partner and one lacks its pretrained run.
    others = [
        run(start, seed, updates, 3.0 * seed * (start == "infill") + seed**2 + updates / 500)
        for seed, start, updates in (
            (5, "infill", 400), (5, "scratch", 1400), (6, "scratch", 1400), (7, "infill", 400),
            (8, "scratch", 1400), (8, "infill", 400), (9, "infill", 600), (9, "scratch", 1600),
            (7, "scratch", 400), (9, "scratch", 600),
        )
    ]
    slips = {
        "that compares with the runs from scratch that have as many updates on pairs, but "
        "none before them": 12.5,
        "that is the gain over copying, which answers another question": 9.5,
        "compare within each seed: seed 2 has no pretrained run": 16.5 - 47 / 3,
        "the sign is wrong: pretrained minus scratch": -8.0,
        "that is the sum over seeds; return the mean": 16.0,
        "you took each seed's longest run from scratch; take the one with the same total": 7.0,
    }
    for message, slip in slips.items():
        expect(abs(float(given) - slip) > 1e-6, message)
    expect_close(given, 8.0, "the mean over seeds of infill minus scratch, with equal updates in "
    "all")
    for some in (others, others[::-1], others[:3]):
        without = "a seed without such a pair of runs is left out, and the others are averaged"
        expect_close(answer(some), _gain(some), f"it's wrong for other runs: {without}")


def _others(sentences, i):
    return [word for j, other in enumerate(sentences) if j != i for word in other]


def _share(sentences, i):
    """The share of the words of sentence i that also occur in another sentence."""
    return sum(word in _others(sentences, i) for word in sentences[i]) / len(sentences[i])


def _told_by(sentences, i):
    rest = _others(sentences, i)
    return sum(word in sentences[i] for word in rest) / len(rest)


def _best(score):
    return lambda sentences: max(range(len(sentences)), key=lambda i: score(sentences, i))


def _told_shares(given, expected, sentences):
    if given not in range(len(sentences)):
        return "return the index of a sentence"
    told = [round(_share(sentences, i), 2) for i in range(len(sentences))]
    return f"the shares are {told}; yours is number {given}"


@exercise(
    5,
    inputs=[
        ([["a", "b", "c"], ["d", "e"], ["a", "b", "d", "x", "y"]],),
        ([["p", "q", "r", "s", "t"], ["u", "v"], ["u", "p", "v", "q", "w", "w2"]],),
        ([["m", "n"], ["k", "k", "k", "m"], ["m", "z", "n"]],),
        ([["a", "x"], ["b", "y", "c"], ["c", "b", "z"], ["b", "c"]],),
        # A word that occurs twice counts twice; a word is not a part of another word.
        ([["k", "k", "k", "y"], ["k", "m", "z"], ["m", "w", "x"]],),
        ([["an", "he"], ["can", "then", "by"], ["by", "can", "by"]],),
        # Three others tell the first together; of the last, a single one tells half.
        ([["a", "b", "c", "d", "e"], ["a", "b", "x", "x2", "x3"], ["c", "d", "p", "q", "q2"],
          ["p", "q", "e", "s"]],),
    ],
    hint=(
        "for each sentence, count its words that occur in any other sentence",
        "for each word of a sentence ask whether any other sentence has it; divide by the "
        "sentence's length, and return the index of the largest share",
    ),
    tell=_told_shares,
    shape="return the index of a sentence",
    shrinks=False,
    slips={
        "a long sentence has many such words; take the share, not the number": [
            _best(lambda sentences, i: _share(sentences, i) * len(sentences[i])),
            _best(lambda sentences, i: len({*sentences[i]} & {*_others(sentences, i)})),
        ],
        "that is the sentence that shares least with the others; PEGASUS takes the one that "
        "shares most": _best(
            lambda sentences, i: -_share(sentences, i)
        ),
        "sentences are counted from 0": lambda sentences: _best(_share)(sentences) + 1,
        "look only in the other sentences: every sentence contains all of its own words": (
            lambda sentences: 0
        ),
        "look in all the other sentences, not only in the next one": _best(
            lambda sentences, i: _share([sentences[i], sentences[(i + 1) % len(sentences)]], 0)
        ),
        "a word that occurs twice counts twice": _best(
            lambda sentences, i: _share([list(dict.fromkeys(s)) for s in sentences], i)
        ),
        "compare whole words, not parts of words": _best(
            lambda sentences, i: sum(
                word in " ".join(_others(sentences, i)) for word in sentences[i]
            ) / len(sentences[i])
        ),
        "take all the other sentences together, not the best single one": _best(
            lambda sentences, i: max(
                _share([sentences[i], other], 0)
                for j, other in enumerate(sentences) if j != i
            )
        ),
        "you measure how much of the others is in this one; it's the other way round": _best(
            lambda sentences, i: _told_by(sentences, i)
        ),
    },
)
def gap_sentence(sentences):
    return _best(_share)(sentences)


@judged(
    6,
    hint=(
        "a span may have the length 0: what does it do to the source?",
        "a span of length 0 hides nothing and still adds its gap",
        "with a very small mean length nearly all spans are empty: lose a lot, in spans as short "
        "as you're allowed",
    ),
    example=lambda: (20, 0.3, 0.3),
)
def overturn(answer):
    given = answer()
    expect(isinstance(given, (tuple, list)) and len(given) == 3, "return the three numbers")
    expect(all(value is not ... for value in given), ...)
    n, share, span = int(given[0]), float(given[1]), float(given[2])
    expect(4 <= n <= 200, f"the text should have between 4 and 200 tokens, not {n}")
    expect(0 < share < 1, f"the share should lie between 0 and 1; yours is {share}")
    expect(0.05 <= span <= 10, f"the mean length should lie between 0.05 and 10; yours is {span}")
    expect(round(n * share) > 0, "no tokens are lost at all: take a larger share")
    rng, ids = random.Random(0), list(range(n))
    found = [len(text_infilling(ids, 1000, rng, share, span)) for _ in range(200)]
    average = sum(found) / len(found)
    expect(
        average > n,
        f"the sources have {average:.1f} tokens on average, the text {n}: shorter spans leave "
        "more gaps",
    )
