"""Checks for the page Exposure."""

import torch

from exercises.checks import exercise, expect, judged


def _wrong(B=2, T=7, share=0.3):
    return (torch.rand(B, T) < share,)


def _told(per_place):
    """A distance for each place of each row, in loops: per_place(row, place) or None for none."""

    def answer(wrong):
        rows = wrong.tolist()
        return torch.tensor([[per_place(row, t) or 0 for t in range(len(row))] for row in rows])

    return answer


def _last(row, t):
    before = [i for i in range(t + 1) if row[i]]
    return t - before[-1] + 1 if before else 0


def _strictly_before(row, t):
    before = [i for i in range(t) if row[i]]
    return t - before[-1] if before else 0


def _first(row, t):
    before = [i for i in range(t + 1) if row[i]]
    return t - before[0] + 1 if before else 0


def _nearest(row, t):
    return min([abs(t - i) + 1 for i in range(len(row)) if row[i]], default=0)


def _none_is(value):
    return lambda row, t: _last(row, t) or value(row, t)


@exercise(
    1,
    inputs=_wrong,
    vary=(dict(B=3, T=6, share=0.5), dict(B=4, T=10, share=0.2), dict(B=1, T=5, share=0.4)),
    hint=(
        "the decoder at place t reads the tokens 0 to t and predicts token t + 1: which of the "
        "wrong tokens is the last one that it reads?",
        "right after a wrong token means distance 1: that's the place at which it's read",
        "walk through a row with a counter: a wrong token sets it to 1, any other adds 1 once it "
        "has started",
    ),
    wrong="that isn't the distance of the next token from the last wrong one",
    shape="return one distance for each place, (B, T)",
    slips={
        "at the place where the wrong token is read, the next token comes right after it: that's "
        "distance 1, not 0": _told(lambda row, t: max(_last(row, t) - 1, 0)),
        "the token that is read at a place counts, too: it's the one right before the next": (
            _told(_strictly_before)
        ),
        "that's the distance from the first wrong token; a later one starts the count again": (
            _told(_first)
        ),
        "the decoder doesn't see what comes later: wrong tokens at this place or before count": (
            _told(_nearest)
        ),
        "where no wrong token has been read yet, return 0": [
            _told(_none_is(lambda row, t: t + 1)), _told(_none_is(lambda row, t: t + 2)),
            _told(_none_is(lambda row, t: len(row))), _told(_none_is(lambda row, t: -1)),
        ],
        "that's how many wrong tokens it has read, not how far away the last one is": (
            _told(lambda row, t: sum(row[: t + 1]))
        ),
        "each row is a text of its own: a wrong token in one doesn't count in the next": (
            lambda wrong: _told(_last)(wrong.reshape(1, -1)).view(wrong.shape)
        ),
        "that's the place of the last wrong token, not the distance from it": (
            _told(lambda row, t: t - _last(row, t) + 1 if _last(row, t) else 0)
        ),
        "you look at the distance to the next wrong token; the decoder has read the last one": (
            _told(lambda row, t: next((i - t + 1 for i in range(t, len(row)) if row[i]), 0))
        ),
    },
)
def distances(wrong):
    here = torch.arange(wrong.size(1))
    read = wrong[:, None, :] & (here[:, None] >= here)  # (B, T, T): at each place, the wrong ones
    last = torch.where(read, here, -1).amax(-1)  # (B, T), -1: none so far
    return (here - last + 1) * (last >= 0)


SLIP, OFTEN = 0.05, 0.25


@judged(
    2,
    hint=(
        "the decoder is back to normal after one right word, but who says that it writes one?",
        "in the long run, as many series of wrong words begin as end: (1 - share) * slip = "
        "share * (1 - again)",
        "a series of wrong words goes on with probability `again` each time, so it's "
        "1 / (1 - again) words long on average",
    ),
    example=(0.05, 0.9, 1 / 3, 10),
)
def overturned(slip, again, share, length):
    for name, given in dict(slip=slip, again=again, share=share, length=length).items():
        number = isinstance(given, int | float) and not isinstance(given, bool)
        expect(number, f"`{name}` must be a number; yours is {given!r:.40}")
    expect(
        0 < slip <= SLIP,
        f"`slip` must be above 0 and at most {SLIP}: the decoder is good; you gave {slip:g}",
    )
    expect(0 <= again < 1, f"`again` must be at least 0 and below 1; you gave {again:g}")
    right = slip / (slip + 1 - again)
    expect(
        right > OFTEN,
        f"then {right:.1%} of its own words are wrong, not more than a quarter: what keeps a "
        "series of wrong words going?",
    )
    if abs(share - right) > 0.02 * right:
        found = {
            slip / (1 - again): "that's how many wrong words there are per right one; divide by "
            "all words",
            slip: "that's the share when the decoder always reads the right prefix",
            again: "that's the share after a wrong word; after a right one it's slip",
            (slip + again) / 2: "the two cases don't come up equally often",
            1 - right: "that's the share of right words",
            slip + again * slip: "that's only the first word after a slip; the series may go on",
        }
        near = [said for value, said in found.items() if abs(share - value) < 0.01 * value]
        expect(False, f"your decoder does refute the claim. But the share isn't {share:.3g}"
               + (f": {near[0]}" if near else ": how many series begin, and how many end?"))
    series = 1 / (1 - again)
    if abs(length - series) > 0.02 * series:
        found = {
            again / (1 - again): "the first wrong word belongs to the series, too",
            1 / again: "a series ends with probability 1 - again, and that's what to divide by",
        }
        near = [said for value, said in found.items() if abs(length - value) < 0.01 * value]
        expect(False, f"the share is right. But a series isn't {length:.3g} words long on average"
               + (f": {near[0]}" if near else ": with what probability does it end?"))
    return (
        f"With the right prefix, {slip:.1%} of the words are wrong; when the decoder reads its own "
        f"writing, {right:.0%}, in series of {series:.1f} words."
    )
