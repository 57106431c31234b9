"""Answers to the exercises of chapter 22, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    source = ["word"] * (n - lost) + ["gap"] * spans
    target = ["gap"] * spans + ["word"] * lost + ["end"]
    return len(source), len(target)

answer = lengths
""",
        right=True,
        mistake="Counts a text that is really damaged.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
answer = lambda n, lost, spans: (n + spans - lost, 1 + spans + lost)
""",
        right=True,
        mistake="A lambda that adds what is told twice.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n - lost + spans, lost + spans

answer = lengths
""",
        right=False,
        mistake="Forgets the last gap, which says that all is told.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n - lost, lost + spans + 1

answer = lengths
""",
        right=False,
        mistake="Forgets the gaps in the source.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n - lost + 1, lost + 2

answer = lengths
""",
        right=False,
        mistake="Thinks that all spans share one gap.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n - lost + spans + 1, lost + spans + 1

answer = lengths
""",
        right=False,
        mistake="Puts a last gap into the source as well.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n - lost + spans, n

answer = lengths
""",
        right=False,
        mistake="The target is the whole text again, as in BART.",
    ),
    Answer(
        exercise="encoder_decoders.1",
        check="lengths",
        code="""
def lengths(n, lost, spans):
    return n, lost + spans + 1

answer = lengths
""",
        right=False,
        mistake="Every lost token leaves a gap of its own in the source.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    hidden = range(start, start + length)
    return [gap if i in hidden else t for i, t in enumerate(ids)], [ids[i] for i in hidden]

answer = hide_piece
""",
        right=True,
        mistake="One comprehension over the places.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    piece = slice(start, start + length)
    source, target = list(ids), list(ids[piece])
    source[piece] = [gap] * len(target)
    return source, target

answer = hide_piece
""",
        right=True,
        mistake="A copy, and a slice that is overwritten in it.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    return ids[:start] + [gap] + ids[end:], ids[start:end]

answer = hide_piece
""",
        right=False,
        mistake="One gap for the whole piece.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    return ids[:start] + list(range(gap, gap + length)) + ids[end:], ids[start:end]

answer = hide_piece
""",
        right=False,
        mistake="Each gap has a name of its own.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    target = ids[start:length]
    return ids[:start] + [gap] * len(target) + ids[start + len(target) :], target

answer = hide_piece
""",
        right=False,
        mistake="Takes the length for the end of the piece.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    return ids[:start] + [gap] * (length + 1) + ids[end + 1 :], ids[start:end]

answer = hide_piece
""",
        right=False,
        mistake="Hides one token too many, which the target does not hold.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    target = ids[start : start + length]
    ids[start : start + length] = [gap] * length
    return ids, target

answer = hide_piece
""",
        right=False,
        mistake="Overwrites the text that it was given.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    return ids[:start] + [gap] * length + ids[end:], [gap] + ids[start:end]

answer = hide_piece
""",
        right=False,
        mistake="The target begins with a gap, as T5's does.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    return ids[:start] + [gap] * length + ids[end:], ids[:start] + ids[end:]

answer = hide_piece
""",
        right=False,
        mistake="The target is what stays, not the piece.",
    ),
    Answer(
        exercise="encoder_decoders.2",
        check="hide_piece",
        code="""
def hide_piece(ids, start, length, gap):
    end = start + length
    source = ids[:start] + [gap] * length + ids[end:]
    target = [gap] * start + ids[start:end] + [gap] * (len(ids) - end)
    return source, target

answer = hide_piece
""",
        right=False,
        mistake="The target keeps the length of the text, with gaps around the piece.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    source, target, at = [], [], 0
    for number, (start, end) in enumerate((first, second)):
        source += [*ids[at:start], gap + number]
        target += [gap + number, *ids[start:end]]
        at = end
    return source + ids[at:], [*target, gap + 2]

answer = two_spans
""",
        right=True,
        mistake="A loop that serves any number of spans.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    source, told = list(ids), {}
    for number, (start, end) in ((1, second), (0, first)):
        told[number] = source[start:end]
        source[start:end] = [gap + number]
    return source, [gap, *told[0], gap + 1, *told[1], gap + 2]

answer = two_spans
""",
        right=True,
        mistake="Replaces the spans in a copy from the back to the front.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b:c] + [gap + 1] + ids[d + 1 :]
    target = [gap] + ids[a:b] + [gap + 1] + ids[c:d] + [gap + 2]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Repairs the first span only.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b + 1 : c] + [gap + 1] + ids[d + 1 :]
    target = [gap] + ids[a : b + 1] + [gap + 1] + ids[c : d + 1] + [gap + 2]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Moves the lost token into the target: the ends now count as inside.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b:c] + [gap + 1] + ids[d:]
    target = [gap] + ids[a:b] + [gap + 1] + ids[c:d]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Takes the last gap for the mistake and removes it, too.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b:c] + [gap] + ids[d:]
    target = [gap] + ids[a:b] + [gap + 1] + ids[c:d] + [gap + 2]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Both spans get the same gap in the source.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b - 1 : c] + [gap + 1] + ids[d - 1 :]
    target = [gap] + ids[a:b] + [gap + 1] + ids[c:d] + [gap + 2]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Goes one too far in the other direction: the last lost token stays in the source.",
    ),
    Answer(
        exercise="encoder_decoders.3",
        check="two_spans",
        code="""
def two_spans(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b + 1 : c] + [gap + 1] + ids[d:]
    target = [gap] + ids[a:b] + [gap + 1] + ids[c:d] + [gap + 2]
    return source, target

answer = two_spans
""",
        right=False,
        mistake="Repairs the second span only.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    table = {}
    for run in runs:
        total = run["updates"] + run["pretraining_updates"]
        table.setdefault((run["seed"], total), {})[run["start"]] = run["bleu"]
    both = [row for row in table.values() if "infill" in row and "scratch" in row]
    pairs = [row["infill"] - row["scratch"] for row in both]
    return sum(pairs) / len(pairs)

answer = gain
""",
        right=True,
        mistake="Groups by seed and by the sum of both kinds of updates.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
import numpy as np

def gain(runs):
    def all_updates(run):
        return run["updates"] + run["pretraining_updates"]

    return float(
        np.mean(
            [
                a["bleu"] - b["bleu"]
                for a in runs
                for b in runs
                if (a["start"], b["start"]) == ("infill", "scratch")
                and a["seed"] == b["seed"]
                and all_updates(a) == all_updates(b)
            ]
        )
    )

answer = gain
""",
        right=True,
        mistake="A double loop over all pairs of runs, and a mean by numpy.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    infill = {(r["seed"], r["updates"]): r["bleu"] for r in runs if r["start"] == "infill"}
    scratch = {(r["seed"], r["updates"]): r["bleu"] for r in runs if r["start"] == "scratch"}
    found = [infill[key] - scratch[key] for key in infill if key in scratch]
    return sum(found) / len(found)

answer = gain
""",
        right=False,
        mistake="Compares at equal updates on pairs, so denoising had more updates in all.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
from statistics import mean

def gain(runs):
    bleu = {}
    for r in runs:
        bleu.setdefault(r["start"], []).append(r["bleu"])
    return mean(bleu["infill"]) - mean(bleu["scratch"])

answer = gain
""",
        right=False,
        mistake="Takes the difference of the means of all runs, whatever their updates.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    table = {}
    for r in runs:
        table[r["start"], r["seed"], r["updates"] + r["pretraining_updates"]] = r["bleu"]
    found = [
        bleu - table["copy", seed, total]
        for (start, seed, total), bleu in table.items()
        if start == "infill" and ("copy", seed, total) in table
    ]
    return sum(found) / len(found)

answer = gain
""",
        right=False,
        mistake="Compares with copying, not with a start from scratch.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    table = {}
    for r in runs:
        table[r["start"], r["seed"], r["updates"] + r["pretraining_updates"]] = r["bleu"]
    found = [
        table["scratch", seed, total] - bleu
        for (start, seed, total), bleu in table.items()
        if start == "infill" and ("scratch", seed, total) in table
    ]
    return sum(found) / len(found)

answer = gain
""",
        right=False,
        mistake="The difference has the wrong sign.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
from statistics import mean

def gain(runs):
    infill = [r for r in runs if r["start"] == "infill"]
    totals = {r["updates"] + r["pretraining_updates"] for r in infill}
    scratch = [r for r in runs if r["start"] == "scratch" and r["updates"] in totals]
    return mean(r["bleu"] for r in infill) - mean(r["bleu"] for r in scratch)

answer = gain
""",
        right=False,
        mistake="Compares the means at equal updates, but lets seeds count that have no partner.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    infill = {r["seed"]: r["bleu"] for r in runs if r["start"] == "infill"}
    scratch = {r["seed"]: r["bleu"] for r in runs if r["start"] == "scratch"}
    found = [infill[seed] - scratch[seed] for seed in infill if seed in scratch]
    return sum(found) / len(found)

answer = gain
""",
        right=False,
        mistake="Keeps only the last run of a seed, whichever number of updates it had.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    scratch = {(r["seed"], r["updates"]): r["bleu"] for r in runs if r["start"] == "scratch"}
    found = []
    for r in runs:
        key = (r["seed"], r["updates"] + r["pretraining_updates"])
        if r["start"] != "scratch" and key in scratch:
            found.append(r["bleu"] - scratch[key])
    return sum(found) / len(found)

answer = gain
""",
        right=False,
        mistake="Takes copying for a kind of denoising and averages both.",
    ),
    Answer(
        exercise="encoder_decoders.4",
        check="gain",
        code="""
def gain(runs):
    scratch = {(r["seed"], r["updates"]): r["bleu"] for r in runs if r["start"] == "scratch"}
    return sum(
        r["bleu"] - scratch[r["seed"], r["updates"] + r["pretraining_updates"]]
        for r in runs
        if r["start"] == "infill"
        and (r["seed"], r["updates"] + r["pretraining_updates"]) in scratch
    )

answer = gain
""",
        right=False,
        mistake="Adds up the differences and does not divide.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
from fractions import Fraction

def gap_sentence(sentences):
    best, number = Fraction(-1), None
    for i, sentence in enumerate(sentences):
        others = {w for j, other in enumerate(sentences) if j != i for w in other}
        share = Fraction(sum(w in others for w in sentence), len(sentence))
        if share > best:
            best, number = share, i
    return number

answer = gap_sentence
""",
        right=True,
        mistake="Fractions and an explicit search for the largest.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
from collections import Counter

def gap_sentence(sentences):
    spread = Counter(w for s in sentences for w in set(s))
    shares = [sum(spread[w] > 1 for w in s) / len(s) for s in sentences]
    return shares.index(max(shares))

answer = gap_sentence
""",
        right=True,
        mistake="Counts for each word in how many sentences it stands.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    def told(i):
        others = {w for j, s in enumerate(sentences) if j != i for w in s}
        return sum(w in others for w in sentences[i])

    return max(range(len(sentences)), key=told)

answer = gap_sentence
""",
        right=False,
        mistake="Takes the largest number of words, so long sentences win.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    words = {w for s in sentences for w in s}
    shares = [sum(w in words for w in s) / len(s) for s in sentences]
    return shares.index(max(shares))

answer = gap_sentence
""",
        right=False,
        mistake="Looks into the sentence itself as well, so all shares are 1.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    def told(i):
        others = {w for j, s in enumerate(sentences) if j != i for w in s}
        return sum(w in others for w in sentences[i]) / len(sentences[i])

    return min(range(len(sentences)), key=told)

answer = gap_sentence
""",
        right=False,
        mistake="Takes the sentence that the others tell worst.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    def told(s):
        others = {w for other in sentences if other is not s for w in other}
        return sum(w in others for w in s) / len(s)

    return max(sentences, key=told)

answer = gap_sentence
""",
        right=False,
        mistake="Returns the sentence, not its number.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    shares = []
    for i, s in enumerate(sentences):
        others = {w for j, other in enumerate(sentences) if j != i for w in other}
        shares.append(sum(w in others for w in s) / len(s))
    return 1 + shares.index(max(shares))

answer = gap_sentence
""",
        right=False,
        mistake="Counts from 1.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    shares = []
    for i, s in enumerate(sentences):
        after = sentences[(i + 1) % len(sentences)]
        shares.append(sum(w in after for w in s) / len(s))
    return shares.index(max(shares))

answer = gap_sentence
""",
        right=False,
        mistake="Compares with the next sentence only.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    shares = []
    for i, s in enumerate(sentences):
        others = [w for j, other in enumerate(sentences) if j != i for w in other]
        shares.append(sum(w in s for w in others) / len(others))
    return shares.index(max(shares))

answer = gap_sentence
""",
        right=False,
        mistake="Divides by the words of the others: how much of them it tells.",
    ),
    Answer(
        exercise="encoder_decoders.5",
        check="gap_sentence",
        code="""
def gap_sentence(sentences):
    total = sum(map(len, sentences))
    shares = []
    for i, s in enumerate(sentences):
        others = set().union(*(other for j, other in enumerate(sentences) if j != i))
        shares.append(len(others.intersection(s)) / total)
    return shares.index(max(shares))

answer = gap_sentence
""",
        right=False,
        mistake="Divides by all words of the text, which is the number of words again.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
answer = lambda: (50, 0.3, 0.25)
""",
        right=True,
        mistake="Many spans of length zero.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    n, share, span = 200, 0.02, 1.0
    return n, share, span

answer = overturn
""",
        right=True,
        mistake="A mean of one is enough, as spans that would be too long are cut.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 4, 0.25, 1.5

answer = overturn
""",
        right=True,
        mistake="One lost token, and a mean well above one: a gap of nothing may come before it.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 100, 0.3, 3.0

answer = overturn
""",
        right=False,
        mistake="The usual setting, in which sources are shorter.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 4, 0.1, 0.5

answer = overturn
""",
        right=False,
        mistake="So small a share that nothing is lost and nothing changes.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 50, 0.3, 0.0

answer = overturn
""",
        right=False,
        mistake="A mean length of 0, with which the function never ends.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 1000, 0.3, 0.5

answer = overturn
""",
        right=False,
        mistake="More tokens than were allowed.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 50, 0.0, 0.5

answer = overturn
""",
        right=False,
        mistake="The share is 0.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 3, 0.5, 0.5

answer = overturn
""",
        right=False,
        mistake="A text of three tokens, below what was allowed.",
    ),
    Answer(
        exercise="encoder_decoders.6",
        check="overturn",
        code="""
def overturn():
    return 100, 0.9, 2.0

answer = overturn
""",
        right=False,
        mistake="Loses nearly everything in spans of two: half of it comes back as gaps.",
    ),
]
