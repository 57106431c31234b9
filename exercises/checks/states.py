"""Checks for the chapter States."""

import math

import torch

from exercises.checks import Part, exercise, expect, judged, values

by_hand = values(
    1,
    "by_hand",
    hint=(
        "the answer is three numbers; after each fact, write down the state, which is two rows of "
        "one number",
        "after the first fact the state is (8, 0); the second key writes into both rows",
        "the key (1, 0) reads the first row: 8, or what is left of it, plus 0.6 times what is "
        "written",
    ),
    summed=Part(
        11.0,
        "the second key writes into both rows; what does the first key read?",
        {
            "8 is the answer before the second fact is written: its key overlaps with the first": 8,
            "13 adds both values; the second key writes only 0.6 of its value to the first row": 13,
            "15 is the sum of both rows, but the key (1, 0) reads the first one only": 15,
        },
        tolerance=1e-3,
    ),
    faded=Part(
        7.0,
        "halve the state before the second fact is written",
        {
            "5.5 halves what the second fact writes, too: the state fades before the write": 5.5,
            "11 is the sum without a decay": 11,
        },
        tolerance=1e-3,
    ),
    replaced=Part(
        8.12,
        "what does the state hold under the second key before the write? Write what is missing "
        "to reach 5",
        {
            "5 is what the second key reads; you were asked about the first one": 5,
            "11 is the sum: the second fact writes only what is missing": 11,
            "8 would need keys at right angles: the second one shares 0.6 with the first": 8,
            "the difference is written under the second key: 0.6 of it reaches the first row": 8.2,
        },
        tolerance=1e-3,
    ),
)


def _decays(T=6, scale=1.0):
    return (-scale * torch.rand(T),)


def _future(T):
    return torch.ones(T, T, dtype=torch.bool).triu(1)


def _between(log_decay):
    total = log_decay.cumsum(0)
    return total[:, None] - total[None, :]


@exercise(
    2,
    inputs=_decays,
    vary=(dict(T=4), dict(T=9), dict(T=7, scale=90.0)),
    hint=(
        "take the difference of two cumulative sums, mask it, and then apply exp",
        "the sum from j + 1 to i is the cumulative sum at i minus that at j",
    ),
    wrong="the numbers of the mask aren't right",
    shape="return one row for each token that reads, and one column for each that wrote",
    slips={
        "the future isn't hidden: set it to -inf before the exponential": (
            lambda log_decay: _between(log_decay).exp()
        ),
        "the future must be 0, not 1: e to the power of 0 is 1, so mask with -inf": (
            lambda log_decay: _between(log_decay).masked_fill(_future(len(log_decay)), 0.0).exp()
        ),
        "you return the logarithms: exponentiate them": (
            lambda log_decay: _between(log_decay).masked_fill(_future(len(log_decay)), -math.inf)
        ),
        "where little is left, the future's exponentials are infinite, and infinity times 0 is "
        "NaN: mask before the exponential": (
            lambda log_decay: (
                _between(log_decay).exp() * torch.ones(len(log_decay), len(log_decay)).tril()
            )
        ),
        "you return the logarithms, with zeros in the future: exponentiate them": (
            lambda log_decay: _between(log_decay).tril()
        ),
        "each token has a decay of its own; you use the first one's for every step": (
            lambda log_decay: (
                log_decay[0] * _between(torch.ones(len(log_decay)))
            ).exp().tril()
        ),
        "a token's own decay comes before its write, so on the diagonal nothing is lost yet": (
            lambda log_decay: (
                (_between(log_decay) + log_decay)
                .masked_fill(_future(len(log_decay)), -math.inf)
                .exp()
            )
        ),
        "rows and columns are swapped: the row is the token that reads": (
            lambda log_decay: (
                _between(log_decay).masked_fill(_future(len(log_decay)), -math.inf).exp().T
            )
        ),
        "your decays grow: take exp of the later sum minus the earlier one": (
            lambda log_decay: (-_between(log_decay)).exp().tril()
        ),
        "a token reads what it wrote itself: the diagonal is 1, not 0": (
            lambda log_decay: left.reference(log_decay).tril(-1)
        ),
    },
)
def left(log_decay):
    total = log_decay.cumsum(0)  # (T,)
    between = total[:, None] - total[None, :]  # (T, T)
    future = torch.ones_like(between, dtype=torch.bool).triu(1)
    return between.masked_fill(future, -math.inf).exp()


def _chunks(read, carry, write=lambda k, total: k * (total[-1] - total).exp(), early=False):
    """Chunks of 4: what is read of the earlier state, carried on and written may be done wrong.

    early: the state takes in the chunk before it is read.
    """

    def outputs(q, k, v, log_decay):
        state, found = torch.zeros(k.size(1), v.size(1)), []
        parts = (x.split(4) for x in (q, k, v, log_decay))
        for q, k, v, log_decay in zip(*parts, strict=True):
            total = log_decay.cumsum(0)  # (t, 1)
            mask = (total - total.T).exp().tril()
            after = carry(state, total) + write(k, total).T @ v
            found.append(
                (q @ k.T * mask) @ v + read(q, total.exp(), log_decay) @ (after if early else state)
            )
            state = after
        return torch.cat(found)

    return outputs


def _told(T=11, M=3, K=2):
    return torch.randn(T, M), torch.randn(T, M), torch.randn(T, K), -torch.rand(T, 1)


_right_read, _right_carry = (
    (lambda q, left, own: q * left),
    (lambda state, total: total[-1].exp() * state),
)


@exercise(
    3,
    inputs=_told,
    vary=(dict(T=8, M=2), dict(T=9, K=4), dict(T=13, M=4, K=3)),
    given=0x6E66C40D,
    hint=(
        "compare it with the recurrence, one token at a time: which output is the first to differ?",
        "the first four are right; what does the fifth read that they don't?",
        "inside a chunk, the state from before the chunk goes on fading",
    ),
    wrong="the outputs differ from those of the recurrence",
    shape="one output per query",
    slips={
        "the state from before a chunk is read as it was at the chunk's beginning: it fades inside "
        "the chunk, too": _chunks(lambda q, left, own: q, _right_carry),
        "a query's own decay comes before it reads: the state from before has faded by it, too": (
            _chunks(lambda q, left, own: q * left / own.exp(), _right_carry)
        ),
        "the chunk is written before it is read, so its own tokens count twice": _chunks(
            _right_read, _right_carry, early=True
        ),
        "what a chunk writes fades until the chunk's end, before it is carried on": _chunks(
            _right_read, _right_carry, write=lambda k, total: k
        ),
        "you carry the state on without its decay": _chunks(_right_read, lambda s, total: s),
        "the earlier state fades neither when it's read nor when it's carried on": _chunks(
            lambda q, left, own: q, lambda s, total: s
        ),
        "all queries of a chunk read the state as it is at the chunk's end": _chunks(
            lambda q, left, own: q * left[-1], _right_carry
        ),
        "you leave out the earlier state: every chunk starts from nothing": _chunks(
            lambda q, left, own: 0 * q, _right_carry
        ),
        "what was carried so far is lost: the state keeps only the last chunk": (
            _chunks(_right_read, lambda state, total: 0 * state)
        ),
    },
)
def repaired_chunks(q, k, v, log_decay):
    state, outputs = torch.zeros(k.size(1), v.size(1)), []
    parts = (x.split(4) for x in (q, k, v, log_decay))
    for q, k, v, log_decay in zip(*parts, strict=True):
        total = log_decay.cumsum(0)  # (t, 1)
        mask = (total - total.T).exp().tril()  # (t, t)
        outputs.append((q @ k.T * mask) @ v + (q * total.exp()) @ state)
        state = total[-1].exp() * state + (k * (total[-1] - total).exp()).T @ v
    return torch.cat(outputs)


@judged(
    4,
    hint=(
        "take two different directions; how much of the first does the second overwrite?",
        "keys at right angles do no harm; what about keys that share a direction?",
        "(1, 0) and (c, s) with c * c + s * s = 1 overlap by c: try c = 0.8",
    ),
    example=lambda: torch.tensor([[1.0, 0.0], [0.8, 0.6]]),
)
def overturned(answer):
    keys = answer()
    expect(isinstance(keys, torch.Tensor), "return a tensor: two keys of two numbers each")
    expect(
        keys.shape == (2, 2),
        f"two keys of two numbers are needed; yours has shape {tuple(keys.shape)}",
    )
    keys = keys.float()
    expect(
        (keys.norm(dim=-1) - 1).abs().max() < 1e-3,
        "each key must have length 1: divide it by its norm",
    )
    cosine = float(keys[0] @ keys[1])
    expect(
        cosine > -0.95,
        "your keys are opposite: under the second one, the state holds -1 already, so nothing is "
        "missing and nothing is written",
    )
    expect(
        abs(cosine) < 0.95,
        "these two are nearly one direction, as if one name came up twice: turn them apart",
    )
    # Written with full strength: 1 under the first key, then -1 under the second.
    state = keys[0] + keys[1] * (-1 - cosine)
    off = abs(float(keys[0] @ state) - 1)
    expect(
        off > 1e-3,
        "keys at right angles don't overlap, so the first fact is still given back exactly",
    )
    expect(
        off > 0.5,
        f"the first fact comes back, off by {off:.2f}: keys that are closer do more harm",
    )
