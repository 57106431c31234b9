"""Checks for chapter 13, toy tasks."""

import itertools
import math

import torch
import torch.nn.functional as F

from exercises.checks import exercise, expect, judged
from exercises.checks.recorded import expect_share


@exercise(
    1,
    inputs=[(n, t) for n in (4, 7, 1) for t in range(n + 1)],
    hint=(
        "try it on d a c b <eos> with pencil and paper",
        "step 0 writes the last letter, which is at place n - 1; and where is <eos>?",
    ),
    tell=lambda given, expected, n, t: (
        f"with n = {n}, the letter of step {t} should come from place {expected}"
        if t < n
        else f"step {n} writes <eos>, which is at place {n} of the source"
    ),
    slips={
        "your step 0 looks at place n, which is <eos>; the last letter is at place n - 1": (
            lambda n, t: n - t
        ),
        "that is copy: reverse starts from the last letter": lambda n, t: t,
        "the letters are right; step n writes <eos>, which is at place n of the source": (
            lambda n, t: n - 1 - t
        ),
        "step n writes <eos>, which is at place n of the source, not at its beginning": (
            lambda n, t: n - 1 - t if t < n else 0
        ),
    },
)
def place(n, t):
    return n if t == n else n - 1 - t


def _padded(*tensors):
    """Id tensors brought to one width with padding."""
    width = max(tensor.size(1) for tensor in tensors)
    return [F.pad(tensor, (0, width - tensor.size(1))) for tensor in tensors]


def _cut(*tensors):
    width = min(tensor.size(1) for tensor in tensors)
    return [tensor[:, :width] for tensor in tensors]


def _all_equal(written, right):
    return (written == right).all(1).float().mean()


def _tokens(written, right):
    return (written == right)[right != 0].float().mean()


def _up_to_eos(written, right):
    return ((written == right) | (right == 0)).all(1).float().mean()


def _ended(row, last=False):
    """A row up to its first or last <eos>."""
    if 2 not in row:
        return row
    return row[: len(row) - row[::-1].index(2)] if last else row[: row.index(2) + 1]


RIGHT = torch.tensor([[4, 5, 2, 0], [6, 7, 8, 2], [9, 2, 0, 0], [4, 4, 2, 0]])
WRITTEN = torch.tensor(
    [
        [4, 5, 2, 9, 9],  # right; junk after <eos>
        [6, 7, 9, 2, 0],  # one letter wrong
        [9, 2, 0, 0, 0],  # right
        [4, 4, 4, 2, 0],  # too long
    ]
)


@exercise(
    2,
    inputs=[
        (WRITTEN, RIGHT),
        (torch.tensor([[4, 5, 2], [6, 7, 8], [9, 2, 0], [4, 4, 4]]), RIGHT),  # cut short
        (torch.tensor([[5, 2, 7], [5, 5, 2], [5, 0, 2]]), torch.tensor([[5, 2], [5, 2], [5, 2]])),
        (torch.tensor([[8, 2]]), torch.tensor([[8, 2, 0, 0]])),
        # The right letters in another order; a second <eos> behind the first.
        (torch.tensor([[5, 4, 2], [4, 5, 2]]), torch.tensor([[4, 5, 2], [4, 5, 2]])),
        (torch.tensor([[4, 2, 7, 2], [5, 2, 2, 0]]), torch.tensor([[4, 2], [5, 2]])),
        # Wrong in the first letter alone.
        (torch.tensor([[6, 5, 2], [4, 5, 2]]), torch.tensor([[4, 5, 2], [4, 5, 2]])),
    ],
    hint="compare token by token, but only up to the <eos> of the right answer",
    wrong="that isn't the share of right sequences",
    shape="return one number",
    shrinks=False,
    slips={
        "junk after <eos> should not matter: compare only where the right answer has tokens": [
            lambda written, right: _all_equal(*_padded(written, right)),
            lambda written, right: _all_equal(*_cut(written, right)),
        ],
        "that is the share of tokens; a sequence is right only when all its tokens are": [
            lambda written, right: _tokens(*_padded(written, right)),
            lambda written, right: _tokens(*_cut(written, right)),
        ],
        "you count an output that was cut short as right; without its <eos> it isn't finished": (
            lambda written, right: _up_to_eos(*_cut(written, right))
        ),
        "the order counts: right letters in the wrong places aren't right": (
            lambda written, right: sum(
                sorted(_ended(a)) == sorted(_ended(b))
                for a, b in zip(written.tolist(), right.tolist(), strict=True)
            ) / len(right)
        ),
        "the answer ends at the first <eos>; whatever follows is junk, even another <eos>": (
            lambda written, right: sum(
                _ended(a, last=True) == _ended(b)
                for a, b in zip(written.tolist(), right.tolist(), strict=True)
            ) / len(right)
        ),
        "the first token counts like any other": lambda written, right: _up_to_eos(
            *(side[:, 1:] for side in _padded(written, right))
        ),
        "that is the number of right sequences; divide by how many there are": (
            lambda written, right: _up_to_eos(*_padded(written, right)) * len(right)
        ),
        "that is the share of wrong sequences": (
            lambda written, right: 1 - _up_to_eos(*_padded(written, right))
        ),
        "<eos> has to be written, too: a row that goes on with letters there is wrong": (
            lambda written, right: sum(
                a[: b.index(2)] == b[: b.index(2)]
                for a, b in zip(written.tolist(), right.tolist(), strict=True)
            ) / len(right)
        ),
        "you cut what was written after <eos>, but compare it with an answer and its padding": (
            lambda written, right: sum(
                _ended(a) == b for a, b in zip(written.tolist(), right.tolist(), strict=True)
            ) / len(right)
        ),
    },
)
def exact_share(written, right):
    written, right = _padded(written, right)  # (B, max(L, M))
    agree = (written == right) | (right == 0)
    return agree.all(1).float().mean()


@exercise(
    3,
    inputs=[([7, 4, 6, 5],), ([9, 8],), ([4, 5, 5, 6, 4, 7],), ([3],)],
    given=0x4EC95887,
    parts=("source", "target"),
    tell=lambda given, expected, *args: (
        "the source was right: the letters, then <eos>"
        if list(given[0]) != expected[0]
        else "the target should be <bos>, the letters reversed, <eos>"
    ),
    slips={
        "<eos> is reversed too, so the answer ends before it begins": (
            lambda letters: (letters + [2], [1, 2] + letters[::-1])
        ),
        "your <eos> is at the start as well: reverse only the letters": (
            lambda letters: (letters + [2], [1, 2] + letters[::-1] + [2])
        ),
        "<eos> is missing at the end: the model would never learn to stop": (
            lambda letters: (letters + [2], [1] + letters[::-1])
        ),
        "<bos> is missing: the decoder needs something to read first": (
            lambda letters: (letters + [2], letters[::-1] + [2])
        ),
        "your letters are no longer reversed": lambda letters: (letters + [2], [1] + letters + [2]),
        "the source was right: the letters, then <eos>": [
            lambda letters: (letters, [1] + letters[::-1] + [2]),
            lambda letters: (letters[::-1] + [2], [1] + letters[::-1] + [2]),
        ],
    },
    hint=(
        "which part of the source should be reversed, and where does <eos> end up?",
    ),
)
def reverse_pair(letters):
    return letters + [2], [1] + letters[::-1] + [2]


def _weights(T=4, S=5):
    source, answers = torch.randint(4, 7, (S,)), torch.randint(4, 8, (T,))
    source[0] = source[-1]  # a letter that occurs twice
    answers[0] = source[0]
    return torch.randn(T, S).softmax(-1), source, answers


def _holds(source, answers):
    return source == answers[:, None]  # (T, S)


def _first(weights, source, answers):
    """The weight on the first place that holds each answer."""
    return weights.gather(1, _holds(source, answers).int().argmax(1, keepdim=True))[:, 0]


@exercise(
    4,
    inputs=_weights,
    vary=(dict(T=6, S=6), dict(T=3, S=7)),
    hint="for each step, mark the places that hold the answer, then add up their weights",
    wrong="that isn't the right weight on the answers",
    shape="return one number for each step",
    slips={
        "a letter that occurs twice should get the weight of both its places": [
            lambda weights, source, answers: _first(weights, source, answers),
            lambda weights, source, answers: (
                _first(weights, source, answers) * _holds(source, answers).any(1)
            ),
        ],
        "you average over places; add the weights up": (
            lambda weights, source, answers: (weights * _holds(source, answers)).mean(1)
        ),
        "that is the mean weight per matching place; add the weights up": (
            lambda weights, source, answers: (
                (weights * _holds(source, answers)).sum(1) / _holds(source, answers).sum(1)
            )
        ),
        "that is the largest weight of each step, wherever it is": (
            lambda weights, source, answers: weights.amax(1)
        ),
        "you compare a whole row with a single place; each step has its own answer": (
            lambda weights, source, answers: (weights * (source == answers[0])).sum(1)
        ),
        "add up the weights on all places that hold the answer; you take the largest of them": (
            lambda weights, source, answers: (weights * _holds(source, answers)).amax(1)
        ),
        "those are the numbers of places; add up their weights": (
            lambda weights, source, answers: _holds(source, answers).sum(1)
        ),
        "the answer of step t may be anywhere, not only at place t": (
            lambda weights, source, answers: weights.diagonal()
        ),
    },
)
def answer_weight(weights, source, answers):
    holds = _holds(source, answers)  # (T, S)
    return (weights * holds).sum(-1)


@exercise(
    5,
    inputs=[(3,), (5,), (1,), (8,)],
    hint=(
        "count the ways to order n different letters",
        "exactly one of the n! orders is right",
    ),
    tolerance=1e-7,
    tell=lambda given, expected, n: (
        f"for n = {n} you give {float(given):g}; a probability is at most 1"
        if given > 1
        else f"for n = {n}, the number of orders is {math.factorial(n)}"
    ),
    slips={
        "that is the chance for the first letter alone; the others have to be right too": (
            lambda n: 1 / n
        ),
        "each letter is used once, so after the first only n - 1 are left": lambda n: n**-n,
    },
)
def bag_copies(n):
    return 1 / math.factorial(n)


def _guessed(letters, n):
    """The share of all sequences that a bag copies when it guesses an order of their letters."""
    total = 0.0
    for row in itertools.product(range(letters), repeat=n):
        orders = math.factorial(n)
        for letter in set(row):
            orders //= math.factorial(row.count(letter))
        total += 1 / orders
    return total / letters**n


@judged(7, hint=(
        "two orders look the same where letters repeat",
        "with two different letters, how many different orders can three places have at most?",
        "average over all sequences: in 'aaa' every order is right",
    ), example=(3, 3, 0.19))
def lucky_bag(letters, n, longer):
    expect(isinstance(letters, int) and isinstance(n, int), "give two whole numbers")
    expect(letters >= 2 and n >= 3, "take at least 2 different letters and at least 3 places")
    expect(letters**n <= 100_000, "that's too many sequences to try: take fewer letters")
    share = _guessed(letters, n)
    expect(
        share > 1 / 3,
        f"with {letters} letters and {n} places a bag that guesses copies {share:.0%} of all "
        "sequences; it should be more than a third",
    )
    expect_share(longer)
    right = _guessed(letters, n + 1)
    expect(
        abs(longer - right) <= 0.03,
        f"with {letters} letters and {n} places it copies {share:.0%}, so you've refuted the "
        f"claim; but with one more place it isn't {longer:.0%}, it's "
        f"{'less' if longer > right else 'more'}",
    )
    return f"A bag copies {share:.0%} of all sequences, and {right:.0%} with one more place."
