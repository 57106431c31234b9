"""Every check of chapter 22 accepts the right answer and names what is wrong with others."""

import pytest

from exercises.checks import encoder_decoders as ch


def lengths(n, lost, spans):
    return n - lost + spans, lost + spans + 1


def hide(ids, start, length, gap):
    end = start + length
    return ids[:start] + [gap] * length + ids[end:], ids[start:end]


def cut(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b:c] + [gap + 1] + ids[d:]
    return source, [gap] + ids[a:b] + [gap + 1] + ids[c:d] + [gap + 2]


def cut_too_much(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[:a] + [gap] + ids[b + 1 : c] + [gap + 1] + ids[d:]
    return source, cut(ids, first, second, gap)[1]


def cut_too_little(ids, first, second, gap):
    (a, b), (c, d) = first, second
    source = ids[: a + 1] + [gap] + ids[b:c] + [gap + 1] + ids[d:]
    return source, cut(ids, first, second, gap)[1]


def gain(runs, other="scratch", same_updates=False, within=True):
    def total(run):
        return run["updates"] + (0 if same_updates else run["pretraining_updates"])

    infill = [run for run in runs if run["start"] == "infill"]
    if not within:
        pool = [run["bleu"] for run in runs if run["start"] == other and total(run) == 1200]
        return sum(r["bleu"] for r in infill) / len(infill) - sum(pool) / len(pool)
    gains = [
        a["bleu"] - b["bleu"]
        for a in infill
        for b in runs
        if b["start"] == other and b["seed"] == a["seed"] and total(b) == total(a)
    ]
    return sum(gains) / len(gains)


def share_told(sentences, best=max, count=False):
    shares = []
    for i, sentence in enumerate(sentences):
        rest = {word for j, other in enumerate(sentences) if j != i for word in other}
        told = sum(word in rest for word in sentence)
        shares.append(told if count else told / len(sentence))
    return shares.index(best(shares))


CASES = [
    (ch.lengths, (lengths,), True, "Right"),
    (ch.lengths, (lambda *a: (..., ...),), None, "Not attempted"),
    (ch.lengths, (lambda n, x, s: (n - x + s, x),), False, "in front of each span"),
    (ch.hide_piece, (hide,), True, "Right"),
    (ch.hide_piece, (lambda *a: (..., ...),), None, "Not attempted"),
    (ch.hide_piece, (lambda i, s, n, g: (hide(i, s, n, g)[0], i),), False, "BART's target"),
    (
        ch.hide_piece,
        (lambda i, s, n, g: (i[:s] + i[s + n :], i[s : s + n]),),
        False,
        "nothing shows where",
    ),
    (ch.hide_piece, (lambda i, s, n, g: (i, i[s : s + n]),), False, "should read"),
    (ch.hide_piece, (lambda i, s, n, g: hide(i, s, n, g)[::-1],), False, "the target is"),
    (ch.two_spans, (cut,), True, "Right"),
    (ch.two_spans, (lambda *a: ...,), None, "Not attempted"),
    (ch.two_spans, (cut_too_much,), False, "in neither source nor target"),
    (ch.two_spans, (cut_too_little,), False, "in both source and target"),
    (ch.two_spans, (lambda *a: (cut(*a)[0], cut(*a)[1][:-1]),), False, "target was right"),
    (ch.two_spans, (lambda *a: (cut(*a)[0][::-1], cut(*a)[1]),), False, "should be"),
    (ch.gain, (gain,), True, "Right"),
    (ch.gain, (lambda runs: ...,), None, "Not attempted"),
    (ch.gain, (lambda runs: gain(runs, same_updates=True),), False, "none before them"),
    (ch.gain, (lambda runs: gain(runs, "copy"),), False, "over copying"),
    (ch.gain, (lambda runs: gain(runs, within=False),), False, "within each seed"),
    (ch.gain, (lambda runs: -gain(runs),), False, "the sign"),
    (ch.gain, (lambda runs: 2 * gain(runs),), False, "the sum over seeds"),
    (ch.gap_sentence, (share_told,), True, "Right"),
    (ch.gap_sentence, (lambda s: ...,), None, "Not attempted"),
    (ch.gap_sentence, (lambda s: 99,), False, "index of a sentence"),
    (ch.overturn, (lambda: (20, 0.3, 0.3),), True, "Right"),
    (ch.overturn, (lambda: (..., ..., ...),), None, "Not attempted"),
    (ch.overturn, (lambda: (20, 0.3, 3.0),), False, "shorter spans"),
    (ch.overturn, (lambda: (20, 1.5, 3.0),), False, "between 0 and 1"),
    (ch.overturn, (lambda: (20, 0.01, 0.3),), False, "no tokens are lost"),
    (ch.overturn, (lambda: (2, 0.5, 0.3),), False, "between 4 and 200"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
