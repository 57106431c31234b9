"""The checks of the page on speculative decoding accept the right answer and name what is wrong."""

import pytest
import torch

from exercises.checks import speculative as ch


def right(p, q):
    kept = torch.minimum(p, q)
    rest = torch.relu(p - q)
    return torch.stack([kept, rest / rest.sum() * (q - kept).sum()])


def rest_is_not_scaled(p, q):
    return torch.stack([torch.minimum(p, q), (p - q).clamp(min=0)])


def divides(p, q):
    return torch.stack([q * (p / q).clamp(max=1), torch.relu(p - q)])


def greedy(scores, guess, ids, n_ahead, length):
    while len(ids) < length:
        ids = [*ids, int(scores(ids)[-1].argmax())]
    return ids, []


def by_index(scores, guess, ids, n_ahead, length):
    kept, ids = [], list(ids)
    while len(ids) < length:
        guesses = guess(ids, min(n_ahead, length - len(ids) - 1))
        best = scores(ids + guesses).argmax(-1).tolist()[len(ids) - 1 :]
        wrong = [i for i, x in enumerate(guesses) if x != best[i]]
        kept.append(wrong[0] if wrong else len(guesses))
        ids += best[: kept[-1] + 1]
    return ids, kept


DRAFT = (0.7, 0.3, 0.05)

CASES = [
    (ch.by_hand, (2.44, 0.7, 1), True, "Right"),
    (ch.by_hand, (1.44, 0.7, 1), False, "one token of the model's own"),
    (ch.by_hand, (2.6, 0.7, 1), False, "those before it"),
    (ch.by_hand, (2.44, 0.41, 1), False, "two draws"),
    (ch.by_hand, (2.44, 0.7, 0.3), False, "sum to 1"),
    (ch.two_ways, (right,), True, "Right"),
    (ch.two_ways, (lambda p, q: ...,), None, "Not attempted"),
    # What p has more than q sums to the share that goes, so it needs no scaling at all.
    (ch.two_ways, (rest_is_not_scaled,), True, "Right"),
    (ch.two_ways, (divides,), False, "0 by 0"),
    (ch.two_ways, (lambda p, q: torch.stack([q, 0 * p]),), False, ""),
    (ch.two_ways, (lambda p, q: right(q, p),), False, "swapped"),
    (ch.two_ways, (lambda p, q: p,), False, "(2, V)"),
    (ch.repaired_loop, (by_index,), True, "Right"),
    (ch.repaired_loop, (greedy,), False, "kept"),
    (ch.repaired_loop, (lambda scores, guess, ids, n, length: ...,), None, "Not attempted"),
    (ch.overturned, (*DRAFT, 2, 1.288), True, "eight ahead writes 3.2 tokens"),
    (ch.overturned, (0.9, 0.75, 0, 1, 1.0857), True, "6.1 tokens"),
    (ch.overturned, (0.5, 0.3, 0.05, 1, 1.11), False, "writes only 2.00 tokens"),
    (ch.overturned, (0.8, 0.2, 0.05, 4, 1.68), False, "no slower than with no guesses"),
    (ch.overturned, (1.2, 0.3, 0.0, 1, 1.0), False, "`right` must lie between"),
    (ch.overturned, (0.7, 0.0, 0.3, 1, 1.3), False, "more than nothing"),
    (ch.overturned, (0.7, 0.3, 0.5, 1, 1.3), False, "`more` must lie between"),
    (ch.overturned, (*DRAFT, 3, 1.288), False, "isn't the best"),
    (ch.overturned, (*DRAFT, 2.5, 1.288), False, "whole number"),
    (ch.overturned, (*DRAFT, 2, 2.19), False, "tokens divided by steps"),
    (ch.overturned, ("often", 0.3, 0.05, 2, 1.288), False, "must be a number"),
    (ch.overturned, (0.9, 1.2, 0.3, 0, 1.0), False, "at most 1 step"),
    (ch.overturned, (0.9, 0.6, -0.05, 1, 1.0), False, "`more` must lie between"),
    (ch.overturned, (*DRAFT, 9, 1.288), False, "whole number"),
    (ch.overturned, (*DRAFT, 2, 1.31), False, "tokens divided by steps"),
    (ch.overturned, (..., ..., ..., ..., ...), None, "Not attempted"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out


def test_the_loop_with_its_mistake_counts_as_not_attempted(capsys):
    def repaired_loop(scores, guess, ids, n_ahead, length):
        kept = []
        while len(ids) < length:
            n = min(n_ahead, length - len(ids) - 1)  # one token is the target's own
            guesses = guess(ids, n)
            best = scores(ids + guesses)[len(ids) - 1 :].argmax(-1).tolist()  # n + 1 tokens
            n_right = sum(one == other for one, other in zip(guesses, best))  # noqa: B905
            ids = ids + guesses[:n_right] + [best[n_right]]
            kept.append(n_right)
        return ids, kept

    assert ch.repaired_loop(repaired_loop) is False  # the comment makes it another text
    assert "drop it, even if it happens" in capsys.readouterr().out


def test_the_reference_writes_what_greedy_decoding_writes():
    for args, _ in ch.repaired_loop.cases:
        ids, kept = ch.repaired_loop.reference(*args)
        assert ids == greedy(*args)[0] and len(kept) + sum(kept) == len(ids) - len(args[2])
