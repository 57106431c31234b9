"""Checks for chapter 13, toy tasks."""

import math

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("13.1", hint="try it on d a c b <eos> with a pencil")
def place(answer):
    for n in (4, 7):
        given = [answer(n, t) for t in range(n + 1)]
        expect(
            given[:n] != [n - t for t in range(n)],
            f"for n = {n}, your step 0 looks at place {n}, which is <eos>; the last letter stands "
            f"at place {n - 1}",
        )
        expect(given[:n] != list(range(n)), "that is copy: reverse starts from the last letter")
        expect(
            given[:n] == [n - 1 - t for t in range(n)],
            f"for n = {n}, the letters should come from places {[n - 1 - t for t in range(n)]}, "
            f"yours are {given[:n]}",
        )
        expect(
            given[n] == n,
            f"the letters are right; step {n} writes <eos>, which stands at place {n} of the "
            f"source, not at {given[n]}",
        )


@exercise("13.2", hint="compare token by token, but only up to <eos> of the right answer")
def exact_share(answer):
    right = torch.tensor([[4, 5, 2, 0], [6, 7, 8, 2], [9, 2, 0, 0], [4, 4, 2, 0]])
    written = torch.tensor(
        [
            [4, 5, 2, 9, 9],  # right; junk behind <eos>
            [6, 7, 9, 2, 0],  # one letter wrong
            [9, 2, 0, 0, 0],  # right
            [4, 4, 4, 2, 0],  # too long
        ]
    )
    given = float(answer(written, right))
    short = float(answer(torch.tensor([[4, 5, 2], [6, 7, 8], [9, 2, 0], [4, 4, 4]]), right))
    shares = {
        0.25: "junk behind <eos> should not matter: compare only where the right answer has tokens",
        0.75: "a sequence with a wrong token counts as right: all tokens have to agree",
    }
    real = right != 0
    tokens = ((written[:, :4] == right) & real).sum() / real.sum()
    expect(
        abs(given - tokens.item()) > 1e-6,
        "that is the share of tokens; a sequence is right only when all its tokens are",
    )
    for share, message in shares.items():
        expect(abs(given - share) > 1e-6, message)
    expect_close(given, 0.5, "2 of the 4 sequences are right")
    expect_close(
        short, 0.5, "an output cut short counts as right: without its <eos> it is not finished"
    )


@exercise("13.3", given=0x4EC95887)
def reverse_pair(answer):
    letters = [7, 4, 6, 5]
    pair = answer(list(letters))
    expect(isinstance(pair, (tuple, list)) and len(pair) == 2, "return source and target")
    source, target = list(pair[0]), list(pair[1])
    expect(source == [*letters, 2], "the source was right: the letters, then <eos>")
    expect(
        target != [1, 2, 5, 6, 4, 7], "<eos> is reversed too, so the answer ends before it begins"
    )
    expect(
        target != [1, 2, 5, 6, 4, 7, 2],
        "<eos> stands at the start as well: reverse the letters only",
    )
    expect(
        target != [1, 5, 6, 4, 7],
        "<eos> is missing at the end: the model would never learn to stop",
    )
    expect(target[:1] == [1], "<bos> is missing: the decoder needs something to read first")
    expect(target != [1, 7, 4, 6, 5, 2], "the letters are no longer reversed")
    expect(target == [1, 5, 6, 4, 7, 2], "the target should be <bos>, the letters reversed, <eos>")


@exercise("13.4", hint="mark the places that hold each answer, then add up their weights")
def answer_weight(answer):
    source = torch.tensor([4, 5, 4, 6, 2])
    answers = torch.tensor([4, 6, 5, 4])
    weights = torch.randn(4, 5).softmax(-1)
    given = answer(weights, source, answers)
    holds = source == answers[:, None]  # (4, 5)
    first = weights.gather(1, holds.int().argmax(1, keepdim=True))[:, 0]
    expect_shape(given, (4,), "return one number per step")
    slips = {
        "a letter that occurs twice should get the weight of both its places": first,
        "you average over places; add the weights up": (weights * holds).mean(1),
        "that is the mean weight per matching place; add the weights up": (
            (weights * holds).sum(1) / holds.sum(1)
        ),
        "that is the largest weight of each step, wherever it is": weights.amax(1),
    }
    for message, slip in slips.items():
        expect(not same(given, slip), message)
    expect_close(given, (weights * holds).sum(1), "the weight on the answers is not right")


@exercise("13.5", hint="count the orders of n different letters")
def bag_copies(answer):
    for n in (3, 5):
        given = float(answer(n))
        orders = math.factorial(n)
        expect(given <= 1, f"for n = {n} you give {given:g}; a probability is at most 1")
        expect(
            abs(given - 1 / n) > 1e-6,
            f"for n = {n}: 1/{n} is the chance of the first letter alone; the others have to be "
            "right too",
        )
        expect(
            abs(given - n**-n) > 1e-6,
            f"for n = {n}: each letter is used once, so after the first only {n - 1} are left",
        )
        expect_close(given, 1 / orders, f"for n = {n} there are {orders} orders", 1e-6)
