"""Checks for the chapter Less depth."""

import math

import torch

from exercises.checks import expect, expect_close, expect_shape, judged, same
from exercises.wording import counted


def _shares(p, threshold=0.99):
    result, total = torch.zeros(len(p)), 0.0
    for i, x in enumerate(p.tolist()):
        if total + x >= threshold - 1e-9 or i == len(p) - 1:
            result[i] = 1 - total
            break
        result[i] = x
        total += x
    return result


@judged(
    1,
    hint=(
        "go step by step and keep a running sum; a place runs while that sum is below the "
        "threshold",
        "the step at which the sum reaches the threshold gets what is left, 1 minus the shares "
        "before it",
        "if the sum never gets there, the last step gets what is left",
    ),
    example=_shares,
)
def shares(answer):
    cases = [[0.5, 0.3, 0.6, 0.2], [0.1, 0.1, 0.1], [0.995, 0.5], [0.0, 0.0, 0.0], [0.4, 0.7, 0.9]]
    for p in cases:
        p = torch.tensor(p)
        expected, total = torch.zeros(len(p)), 0.0
        for i, x in enumerate(p.tolist()):
            last = total + x >= 0.99 - 1e-9 or i == len(p) - 1
            expected[i] = 1 - total if last else x
            total += expected[i].item()
            if last:
                break
        output = torch.as_tensor(answer(p), dtype=torch.float32)
        expect_shape(output, p.shape, "return one share for each possible step")
        given = f"for p = {[round(x, 3) for x in p.tolist()]},"
        expect(
            not same(output, p) or same(p, expected),
            f"{given} you return p itself: from the step that reaches the threshold on, it is too "
            "much or too little",
        )
        expect(
            not same(output, p / p.sum().clamp(min=1e-9)) or same(p / p.sum(), expected),
            f"{given} you divide by the sum: the shares before the last should stay as in p",
        )
        expect_close(output.sum(), 1, f"{given} the shares must sum to 1")
        expect_close(output, expected, f"{given} those aren't the right shares")
    half = torch.as_tensor(answer(torch.tensor([0.6, 0.3, 0.1]), 0.5), dtype=torch.float32)
    expect_close(
        half,
        [1.0, 0.0, 0.0],
        "with the threshold 0.5, a place with p = 0.6 stops at once",
    )
    exact = torch.as_tensor(answer(torch.tensor([0.5, 0.25, 0.25]), 0.5), dtype=torch.float32)
    expect_close(exact, [1.0, 0.0, 0.0], "a sum equal to the threshold has reached it")


@judged(
    2,
    hint=(
        "set the bound exp(-2 n (allowed - mean)^2) equal to the risk",
        "take logarithms: n = log(1 / risk) / (2 (allowed - mean)^2)",
        "round up to a whole number; use math.ceil",
    ),
    example=lambda mean, allowed, risk: math.ceil(math.log(1 / risk) / (2 * (allowed - mean) ** 2)),
)
def sentences_needed(answer):
    for mean, allowed, risk in ((0.03, 0.05, 0.05), (0.0, 0.1, 0.05), (0.05, 0.1, 0.01)):
        exact = math.log(1 / risk) / (2 * (allowed - mean) ** 2)
        n = answer(mean, allowed, risk)
        given = f"for a mean of {mean}, with {allowed} allowed and a risk of {risk},"
        expect(abs(n - 2 * exact) > 1, f"{given} you have twice as many as you need: the bound "
        f"has a 2 in it")
        expect(
            abs(n - exact * (allowed - mean)) > 1,
            f"{given} the margin must be squared: halving it takes four times as many sentences",
        )
        expect(
            abs(n - math.log(1 / risk) / (2 * allowed**2)) > 1 or mean == 0,
            f"{given} it is the margin between `allowed` and `mean` that "
            "counts, not `allowed` alone",
        )
        expect(n == int(n), f"{given} the number of sentences must be a whole number: round up")
        expect(
            math.exp(-2 * n * (allowed - mean) ** 2) <= risk,
            f"{given} {n:g} sentences are too few: the bound is still above the risk",
        )
        expect(n <= math.ceil(exact), f"{given} fewer than {n:g} sentences would be enough")


def _promised(losses, allowed, risk):
    boldest = 0
    for i, damage in enumerate(losses.mean(1).tolist()):
        if math.exp(-2 * losses.size(1) * max(0.0, allowed - damage) ** 2) > risk:
            break
        boldest = i + 1
    return boldest


PROMISES = [  # mean damage of each threshold, sentences, allowed, risk
    ([0.01, 0.02, 0.03, 0.04], 2000, 0.1, 0.05),  # all pass
    ([0.01, 0.02, 0.05, 0.3], 2000, 0.1, 0.05),  # the last is far above
    ([0.01, 0.02, 0.3, 0.03], 2000, 0.1, 0.05),  # one in the middle is far above
    ([0.01, 0.09, 0.02, 0.01], 2000, 0.1, 0.05),  # one in the middle is too near
    ([0.2, 0.01, 0.02], 2000, 0.1, 0.05),  # the first one fails
    ([0.01, 0.04, 0.06], 600, 0.1, 0.01),
    ([0.05, 0.06], 600, 0.1, 0.05),
]


@judged(3, given=0xAAD062E5, example=_promised,
    hint=(
        "one reason: the loop goes on after a threshold has failed",
        "the other: what does squaring do when the damage is larger than what's allowed?",
    ),
)
def promised(answer):
    for means, n, allowed, risk in PROMISES:
        losses = torch.tensor(means, dtype=torch.float64)[:, None].expand(-1, n).clone()
        expected, found = _promised(losses, allowed, risk), answer(losses, allowed, risk)
        given = f"for mean damages of {means}, with {allowed} allowed, on {n} sentences,"
        bold = isinstance(found, int) and expected < found <= len(means)
        expect(
            not (bold and means[found - 1] > allowed),
            f"{given} you promise {counted(found, 'threshold')}, and the damage of the last is "
            "above what is allowed: squaring loses track of which side of the limit you're on",
        )
        expect(
            not bold,
            f"{given} you promise {counted(found, 'threshold')}: one that failed before should "
            "have ended the search",
        )
        expect(found == expected, f"{given} you return {found!r}, expected {expected}")
