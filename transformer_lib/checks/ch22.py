"""Checks for chapter 22, encoder-decoders."""

import random
from collections import Counter

from transformer_lib.beyond.denoising import text_infilling
from transformer_lib.checks import exercise, expect, expect_close

GAP = 100


def two_lists(given):
    """The source and the target that an answer returned, as lists."""
    expect(isinstance(given, (tuple, list)) and len(given) == 2, "return the source and the target")
    expect(all(part is not ... for part in given), ...)
    return list(given[0]), list(given[1])


@exercise("22.1", hint="what each span leaves in the source, and what it brings to the target")
def lengths(answer):
    for n, lost, spans in ((12, 2, 1), (20, 6, 3), (9, 4, 2)):
        given = answer(n, lost, spans)
        expect(isinstance(given, (tuple, list)) and len(given) == 2, "return two numbers")
        source, target = given
        expect(source is not ... and target is not ..., ...)
        where = f"for n = {n}, lost = {lost} and spans = {spans}"
        expect(source != n, f"{where}: that is token masking, which keeps the length")
        expect(source != n - lost, f"{where}: that is deletion; each span leaves one gap")
        expect(source == n - lost + spans, f"{where}: the kept tokens, and one gap for each span")
        expect(target != n, f"{where}: BART writes the whole text; T5 writes the spans alone")
        expect(target != lost, f"{where}: a gap stands in front of each span, to say which it is")
        expect(target != lost + spans, f"{where}: the last gap is missing, which ends the list")
        expect(target == lost + spans + 1, f"{where}: the spans, a gap before each, one at the end")


@exercise("22.2", hint="slices: before the piece, the piece, behind it")
def hide_piece(answer):
    for ids, start, length in (([5, 6, 7, 8, 9], 1, 3), ([4, 5, 6], 0, 1), ([4, 5, 6, 7], 2, 2)):
        source, target = two_lists(answer(list(ids), start, length, GAP))
        end = start + length
        where = f"for {ids}, start {start}, length {length}"
        expect(target != ids, f"{where}: that is BART's target; MASS writes the piece alone")
        expect(target == ids[start:end], f"{where}: the target is {ids[start:end]}, not {target}")
        expect(
            source != [*ids[:start], *ids[end:]],
            f"{where}: nothing shows where the piece was: put gaps there",
        )
        expect(
            length == 1 or source != [*ids[:start], GAP, *ids[end:]],
            f"{where}: one gap is infilling; MASS leaves a gap for each hidden token",
        )
        right = [*ids[:start], *[GAP] * length, *ids[end:]]
        expect(source == right, f"{where}: the encoder should read {right}, not {source}")


@exercise("22.3", given=0xBE7F58A1)
def two_spans(answer):
    for ids, first, second in (
        (list(range(10, 20)), (2, 4), (6, 7)),
        (list(range(30, 36)), (0, 1), (3, 6)),
    ):
        source, target = two_lists(answer(list(ids), first, second, GAP))
        (a, b), (c, d) = first, second
        wanted = [GAP, *ids[a:b], GAP + 1, *ids[c:d], GAP + 2]
        told = {token for token in source + target if token < GAP}
        missing = [token for token in ids if token not in told]
        expect(
            not missing,
            f"the tokens {missing} are in neither source nor target, so nobody can restore them",
        )
        twice = [token for token, n in Counter(source + target).items() if n > 1 and token < GAP]
        expect(not twice, f"the tokens {twice} are in both: what the source shows is not lost")
        expect(target == wanted, f"the target was right: {wanted}; yours is {target}")
        right = [*ids[:a], GAP, *ids[b:c], GAP + 1, *ids[d:]]
        expect(source == right, f"the source of {ids} should be {right}; yours is {source}")


@exercise("22.4", hint="for each seed, find the run from scratch with as many updates in all")
def gain(answer):
    def run(start, seed, updates, bleu):
        before = 0 if start == "scratch" else 1000
        return {
            "start": start, "seed": seed, "updates": updates, "pretraining_updates": before,
            "bleu": bleu,
        }  # fmt: skip

    runs = [
        run("infill", 0, 200, 14.0), run("scratch", 1, 1200, 9.0), run("scratch", 0, 200, 3.0),
        run("infill", 1, 200, 19.0), run("scratch", 1, 200, 5.0), run("copy", 0, 200, 6.0),
        run("scratch", 0, 1200, 8.0), run("copy", 1, 200, 8.0), run("scratch", 2, 1200, 30.0),
        run("scratch", 1, 2400, 11.0),
    ]  # fmt: skip
    given = answer(runs)
    slips = {
        "that compares with the runs from scratch of as many updates of translation, which had no "
        "updates before them": 12.5,
        "that is the gain over copying, which answers another question": 9.5,
        "compare within each seed: seed 2 has no pretrained run": 16.5 - 47 / 3,
        "the sign: pretrained less scratch": -8.0,
        "that is the sum over seeds; return the mean": 16.0,
        "you took each seed's longest run from scratch; take the one with as many updates": 7.0,
    }
    for message, slip in slips.items():
        expect(abs(float(given) - slip) > 1e-6, message)
    expect_close(given, 8.0, "the mean over seeds of infill less scratch, equal updates in all")


@exercise("22.5", hint="for each sentence, count its words that stand in any other sentence")
def gap_sentence(answer):
    cases = [
        ([["a", "b", "c"], ["d", "e"], ["a", "b", "d", "x", "y"]], 0),
        ([["p", "q", "r", "s", "t"], ["u", "v"], ["u", "p", "v", "q", "w", "w2"]], 1),
        ([["m", "n"], ["k", "k", "k", "m"], ["m", "z", "n"]], 0),
    ]
    for sentences, right in cases:
        given = answer([list(sentence) for sentence in sentences])
        shares, counts = [], []
        for i, sentence in enumerate(sentences):
            rest = {word for j, other in enumerate(sentences) if j != i for word in other}
            counts.append(sum(word in rest for word in sentence))
            shares.append(counts[-1] / len(sentence))
        where = f"for {[' '.join(sentence) for sentence in sentences]}"
        expect(given in range(len(sentences)), f"{where}: return the number of a sentence")
        expect(
            given == right or given != counts.index(max(counts)),
            f"{where}: a long sentence has many such words; take the share, not the number",
        )
        expect(
            given == right or given != shares.index(min(shares)),
            f"{where}: that is the one least told by the others; PEGASUS takes the most",
        )
        told = [round(share, 2) for share in shares]
        expect(given == right, f"{where}: the shares are {told}; yours is number {given}")


@exercise("22.6", hint="a span may have the length 0: what does it do to the source?")
def overturn(answer):
    given = answer()
    expect(isinstance(given, (tuple, list)) and len(given) == 3, "return the three numbers")
    expect(all(value is not ... for value in given), ...)
    n, share, span = int(given[0]), float(given[1]), float(given[2])
    expect(4 <= n <= 200, f"a text of 4 to 200 tokens, not {n}")
    expect(0 < share < 1, f"a share between 0 and 1, not {share}")
    expect(0.05 <= span <= 10, f"a mean length between 0.05 and 10, not {span}")
    expect(round(n * share) > 0, "no token is lost at all: take a larger share")
    rng, ids = random.Random(0), list(range(n))
    found = [len(text_infilling(ids, 1000, rng, share, span)) for _ in range(200)]
    average = sum(found) / len(found)
    expect(
        average > n,
        f"the sources have {average:.1f} tokens on average, the text {n}: shorter spans leave "
        "more gaps",
    )
