"""Every check of chapter 14 accepts the right answer and names what is wrong with others."""

from collections import Counter

import pytest

from exercises.checks import multi30k_data as ch


def covered(train, test, n):
    known = {word for word, _ in Counter(train).most_common(n)}
    return sum(word in known for word in test) / len(test)


def shorten(ids, limit):
    return ids if len(ids) <= limit else ids[: limit - 1] + [2]


def budget(lengths, limit, price=lambda rows, width, total: rows * width, last=True):
    batches, batch = [], []
    for i, n in enumerate(lengths):
        total = sum(lengths[j] for j in batch) + n
        if batch and price(len(batch) + 1, n, total) > limit:
            batches.append(batch)
            batch = []
        batch = batch + [i]
    return batches + [batch] if last else batches


def clean(text):
    return text.strip().lower()


def leaked(train, test, key=lambda pair: clean(pair[0])):
    known = {key(pair) for pair in train}
    return sum(key(pair) in known for pair in test)


def either_side(train, test):
    known = {clean(text) for pair in train for text in pair}
    return sum(any(clean(text) in known for text in pair) for pair in test)


def by_ranks(lengths, size):
    """The longest is the i-th of the sorted lengths with a probability that ranks tell."""
    n = len(lengths)
    ranked = enumerate(sorted(lengths), start=1)
    width = sum(length * ((i / n) ** size - ((i - 1) / n) ** size) for i, length in ranked)
    return (width - sum(lengths) / n) / width


CASES = [
    (ch.padding, (0.375, 1 / 6), True, "Right"),
    (ch.padding, (0.38, 0.17), True, "Right"),
    (ch.coverage, (covered,), True, "Right"),
    (ch.coverage, (lambda train, test, n: ...,), None, "Not attempted"),
    (ch.coverage, (lambda a, b, n: covered(b, b, n),), False, "comes from the test words"),
    (ch.shorten, (shorten,), True, "Right"),
    (ch.shorten, (lambda ids, limit: ...,), None, "Not attempted"),
    (ch.shorten, (lambda ids, limit: ids[:limit],), False, "you lost <eos>"),
    (
        ch.shorten,
        (lambda ids, limit: ids if len(ids) < limit else ids[: limit - 2] + [2],),
        False,
        "one id too few",
    ),
    (ch.budget, (budget,), True, "Right"),
    (ch.budget, (lambda lengths, limit: ...,), None, "Not attempted"),
    (ch.budget, (lambda a, b: budget(a, b, last=False),), False, "is the last batch returned"),
    (ch.budget, (lambda a, b: [[a[i] for i in x] for x in budget(a, b)],), False, "the lengths"),
    (ch.budget, (lambda a, b: [x[1:] or x for x in budget(a, b)],), False, "opens a batch"),
    (ch.budget, (lambda a, b: budget(a, b, lambda r, w, t: t),), False, "with its padding"),
    (ch.budget, (lambda a, b: [[i] for i in range(len(a))],), False, "room for one more"),
    (ch.leak, (leaked,), True, "Right"),
    (ch.leak, (lambda train, test: ...,), None, "Not attempted"),
    (ch.leak, (lambda a, b: leaked(a, b, lambda pair: pair[0]),), False, "strip both"),
    (ch.leak, (either_side,), False, "shared target"),
    (ch.better_bargain, ("longer side", 100, 0.07), True, "Right"),
    (ch.better_bargain, ("the library's", 30, 0.06), False, "it pads more: 8.5%"),
    (ch.better_bargain, ("the library's", 1000, 0.06), False, "meet the same batch-mates again"),
    (ch.better_bargain, ("longer side", 3, 0.06), False, "it pads more"),
    (ch.better_bargain, ("longest", 100, 0.06), False, "`order` is one of"),
    (ch.better_bargain, ("longer side", 99, 0.06), False, "`pool` is one of"),
    (ch.better_bargain, ("longer side", 100, 0.02), False, "it's more"),
    (ch.better_bargain, ("longer side", 100, 7), False, "between 0 and 1"),
    (ch.random_padding, (by_ranks,), True, "Right"),
    (ch.random_padding, (lambda lengths, size: ...,), None, "Not attempted"),
    (ch.random_padding, (lambda lengths, size: by_ranks(lengths, size + 1),), False, "that isn't"),
    (ch.random_padding, (lambda lengths, size: by_ranks(lengths, 2),), False, "whatever `size`"),
]


@pytest.mark.parametrize("check, answer, verdict, message", CASES)
def test_check(check, answer, verdict, message, capsys):
    assert check(*answer) is verdict
    assert message in capsys.readouterr().out
