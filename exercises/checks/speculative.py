"""Checks for the page Speculative decoding."""

import torch

from exercises.checks import Part, exercise, expect, judged, values

by_hand = values(
    1,
    "by_hand",
    tokens=Part(
        2.44,
        "1 + 0.8 + 0.8 * 0.8: the model's own token, the first guess, and the "
        "second if both are right",
        {
            "those are the guesses that stay; the pass also writes one token of the model's own": (
                1.44
            ),
            "a guess counts only if those before it were right, too: 0.8, then 0.64": 2.6,
            "that's the length of the longest pass, when both guesses are right": 3.0,
            "two guesses, not three: the longest pass writes three tokens": 2.952,
        },
        tolerance=0.005,
    ),
    kept=Part(
        0.7,
        "0.5 + 0.2 + 0: for each word the smaller of the two probabilities",
        {
            "that's the part in which the two differ; the rest is kept": 0.3,
            "that's how often two draws would agree; here only the guess is drawn": 0.41,
            "only what the two have in common counts; you added the larger ones": 1.3,
        },
        tolerance=0.005,
    ),
    again=Part(
        1.0,
        "only C has a higher probability in p than in q, so a draw from the rest is always C",
        {
            "0.3 is how much p exceeds q; what you draw from has to sum to 1": 0.3,
        },
        tolerance=0.005,
    ),
    hint=(
        "for the first answer, a pass of two guesses writes one, two or three tokens",
        "for the second, add up min(p, q) over the three words",
        "for the third, p - q is -0.2, -0.1 and 0.3; set what is below 0 to 0, then scale",
    ),
)


def _pair(V=6, never=0):
    scores = torch.rand(2, V).log().mul(2)
    scores[:, :never] = -torch.inf  # tokens that neither of the two ever writes
    p, q = scores.softmax(-1)
    return p, q


def _clipped(difference):
    return difference.clamp(min=0)


@exercise(
    2,
    inputs=_pair,
    vary=(dict(V=3), dict(V=9), dict(V=4), dict(V=7, never=2)),
    hint=(
        "there are two ways to reach a token: it's guessed and stays, or a guess is rejected and "
        "it's drawn instead",
        "x is guessed and stays with probability q(x) * min(1, p(x) / q(x)); how often does no "
        "guess stay?",
        "what is drawn then: (p - q) above 0, scaled to sum to 1",
    ),
    wrong="that isn't how often each token comes out in each of the two ways",
    shape="return two rows of probabilities, (2, V): that a token stays, and that it's drawn again",
    slips={
        "the second row must be scaled to sum to 1 and then multiplied by how often no guess "
        "stays; yours sums to 1": (
            lambda p, q: torch.stack([
                torch.minimum(p, q), _clipped(p - q) / _clipped(p - q).sum(),
            ])
        ),
        "after a rejected guess, don't draw from p itself: what q had too often would come up "
        "again": (
            lambda p, q: torch.stack([
                torch.minimum(p, q), (1 - torch.minimum(p, q).sum()) * p,
            ])
        ),
        "that's the probability of staying once it is guessed; it has to be guessed first, times "
        "q": (
            lambda p, q: torch.stack([(p / q).clamp(max=1), _clipped(p - q)])
        ),
        "where neither p nor q has a token, you divide 0 by 0": [
            lambda p, q: torch.stack([q * (p / q).clamp(max=1), p - q * (p / q).clamp(max=1)]),
            lambda p, q: torch.stack([q * (p / q).clamp(max=1), _clipped(p - q)]),
        ],
        "no probability is below 0: where q is above p, cut the difference off at 0": (
            lambda p, q: torch.stack([torch.minimum(p, q), p - q])
        ),
        "the ratio is upside down: a guess stays with probability p / q, at most 1": (
            lambda p, q: torch.stack([
                torch.where(p > 0, q * (q / p).clamp(max=1), 0.0), _clipped(p - q)
            ])
        ),
        "p and q are swapped: the draft guesses from q, and what comes out must follow the "
        "target's p": (
            lambda p, q: torch.stack([torch.minimum(p, q), _clipped(q - p)])
        ),
        "you keep every guess; one that q makes too often must sometimes be rejected": (
            lambda p, q: torch.stack([q, _clipped(p - q)])
        ),
        "the rows are swapped: the guesses that stay come first": (
            lambda p, q: torch.stack([_clipped(p - q), torch.minimum(p, q)])
        ),
        "the first row is the smaller of p and q; you take the larger": (
            lambda p, q: torch.stack([torch.maximum(p, q), _clipped(p - q)])
        ),
        "a guess x stays with probability min(1, p / q), not p": (
            lambda p, q: torch.stack([p * q, p - p * q])
        ),
    },
)
def two_ways(p, q):
    stays = torch.minimum(p, q)  # (V,)
    rest = (p - q).clamp(min=0)
    drawn = (1 - stays.sum()) * rest / rest.sum()
    return torch.stack([stays, drawn])  # (2, V)


def _writers(V=5, n_ahead=3, length=9, alike=0.7, n_read=1):
    """A target and a draft that look at the last two tokens, what is read so far, and how far."""
    table = torch.randn(V, V, V)  # after tokens i and j: a score for each token
    other = torch.where(torch.rand(V, V, 1) < alike, table, torch.randn(V, V, V))
    start = torch.randint(V, (n_read,)).tolist()

    def scores(ids):
        before = [ids[0], *ids[:-1]]
        return torch.stack([table[i, j] for i, j in zip(before, ids, strict=True)])  # (T, V)

    def guess(ids, n):
        found = list(ids)
        for _ in range(n):
            found.append(int(other[found[max(len(found) - 2, 0)], found[-1]].argmax()))
        return found[len(ids) :]

    return scores, guess, start, n_ahead, length


def _loop(n_right, own=lambda best, n: best[n]):
    """The loop of the exercise; n_right(guesses, best) and the target's own token may be wrong."""

    def write(scores, guess, ids, n_ahead, length):
        kept = []
        while len(ids) < length:
            n = min(n_ahead, length - len(ids) - 1)
            guesses = guess(ids, n)
            best = scores(ids + guesses)[len(ids) - 1 :].argmax(-1).tolist()
            kept.append(n_right(guesses, best))
            ids = ids + guesses[: kept[-1]] + [own(best, kept[-1])]
        return ids, kept

    return write


def _prefix(guesses, best):
    n = 0
    while n < len(guesses) and guesses[n] == best[n]:
        n += 1
    return n


@exercise(
    3,
    inputs=_writers,
    vary=(
        dict(V=4, length=12), dict(V=3, n_ahead=4, length=14, alike=0.5), dict(n_ahead=2, n_read=3),
        dict(V=3, n_ahead=5, length=16, alike=0.6), dict(V=2, n_ahead=4, length=15, alike=0.3),
    ),
    given=0x72337A24,
    parts=("ids", "kept"),
    shrinks=False,
    hint=(
        "the words should be those of greedy decoding: in which pass do they first differ?",
        "let the second guess of three be wrong and the third be right: how many stay?",
        "a guess only counts if all guesses before it were right: count up to the first wrong one",
    ),
    wrong="the words must be those of greedy decoding, and each pass must keep as many guesses as "
          "it can",
    slips={
        "a guess after a wrong one was made for a different text, so drop it, even if it happens "
        "to be the target's token": _loop(
            lambda guesses, best: sum(g == b for g, b in zip(guesses, best, strict=False))
        ),
        "the words are right, but you throw every guess away: that's plain greedy decoding": _loop(
            lambda guesses, best: 0
        ),
        "the words are right, but one wrong guess makes you throw away those before it, too": _loop(
            lambda guesses, best: len(guesses) * (guesses == best[: len(guesses)])
        ),
        "you keep every guess: compare each with what the target would have written": _loop(
            lambda guesses, best: len(guesses)
        ),
        "you judge each guess one place late: best[i] is what the target writes in place of "
        "guesses[i]": _loop(lambda guesses, best: _prefix(guesses, best[1:])),
        "the target's own token comes after the last guess that stays, not after the last one that "
        "was made": _loop(_prefix, own=lambda best, n: best[-1]),
        "you keep the first wrong guess, too: count only those before it": _loop(
            lambda guesses, best: min(_prefix(guesses, best) + 1, len(guesses))
        ),
        "the target's own token is best[n], after the n guesses that stay; yours is one place "
        "early": _loop(_prefix, own=lambda best, n: best[max(n - 1, 0)]),
    },
)
def repaired_loop(scores, guess, ids, n_ahead, length):
    kept = []
    while len(ids) < length:
        n = min(n_ahead, length - len(ids) - 1)
        guesses = guess(ids, n)
        best = scores(ids + guesses)[len(ids) - 1 :].argmax(-1).tolist()
        n_right = 0
        while n_right < n and guesses[n_right] == best[n_right]:
            n_right += 1
        ids = ids + guesses[:n_right] + [best[n_right]]
        kept.append(n_right)
    return ids, kept


AHEAD, WRITES = 8, 3


def _speed(right, cost, more, n):
    """(tokens that a pass of n guesses writes, how many times as fast as none)."""
    tokens = sum(right**k for k in range(n + 1))
    return tokens, tokens / (n * cost + 1 + n * more)


@judged(
    4,
    hint=(
        "if a guess is right with probability a, a pass of eight writes 1 + a + ... + a^8 tokens: "
        "which a makes that three?",
        "at a = 0.7 it's 3.2 tokens; what must a guess cost, so that the pass costs more?",
        "then divide tokens by steps for 0, 1, ..., 8 guesses: the largest of the nine is the best",
    ),
    example=(0.7, 0.3, 0.05, 2, 2.19 / 1.7),
)
def overturned(right, cost, more, best, speed):
    for name, given in dict(right=right, cost=cost, more=more, best=best, speed=speed).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    expect(0 <= right <= 1, f"`right` must lie between 0 and 1; you gave {right:g}")
    expect(
        0 < cost <= 1,
        f"a guess must cost more than nothing, and at most 1 step; you gave {cost:g}",
    )
    expect(0 <= more <= 0.3, f"`more` must lie between 0 and 0.3; you gave {more:g}")
    tokens, at_eight = _speed(right, cost, more, AHEAD)
    expect(
        tokens >= WRITES,
        f"with {AHEAD} guesses a pass writes only {tokens:.2f} tokens: let more guesses be right",
    )
    expect(
        at_eight < 0.999,
        f"with {AHEAD} guesses it runs at {at_eight:.2f} times the speed, no slower than with no "
        "guesses at all: let a guess cost more",
    )
    speeds = [_speed(right, cost, more, n)[1] for n in range(AHEAD + 1)]
    expect(
        best in range(AHEAD + 1),
        f"`best` must be a whole number of guesses, 0 to {AHEAD}; you gave {best:g}",
    )
    expect(
        speeds[int(best)] > max(speeds) - 1e-6,
        f"your draft does refute the claim; but {best:g} ahead isn't the best: try each number "
        f"from 0 to {AHEAD}",
    )
    expect(
        abs(speed - max(speeds)) < 0.011,
        f"{best:g} ahead is right; but the speed is tokens divided by steps, and yours, "
        f"{speed:.3g}, is something else",
    )
    return (
        f"Guessing eight ahead writes {tokens:.1f} tokens a pass, but is only {at_eight:.2f} times "
        f"as fast as not guessing; {best:g} ahead is {max(speeds):.2f} times as fast."
    )
