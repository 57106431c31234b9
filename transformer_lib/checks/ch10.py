"""Checks for chapter 10, the decoder."""

import torch

from transformer_lib.checks import Part, exercise, expect, values
from transformer_lib.checks.ch03 import triangle


def _four(name, shape, slips=None):
    return Part(
        shape,
        f"{name}: these are not (batch, heads, queries, keys); who asks, and what is read?",
        {
            "weights have four axes: batch, heads, queries, keys": lambda given: len(given) != 4,
            **(slips or {}),
        },
    )


shapes = values(
    "10.1",
    "shapes",
    hint="give three shapes of four numbers each",
    packed="names",
    encoder=_four("encoder", (3, 4, 9, 9)),
    decoder=_four("decoder", (3, 4, 6, 6)),
    cross=_four(
        "cross",
        (3, 4, 6, 9),
        {
            "cross: the queries come from the target and stand before the keys, which come from "
            "the memory": (3, 4, 9, 6)
        },
    ),
)


def _decoder_parts(B=2, S=5, T=4, D=6):
    def attend(factor):
        def attention(query, key, value, mask=None):
            scores = query @ key.mT * factor
            if mask is not None:
                scores = scores.masked_fill(~mask, -1e9)
            return scores.softmax(-1) @ value * factor

        return attention

    src_mask = torch.rand(B, 1, S) < 0.6
    src_mask[..., 0], src_mask[0, 0, -1] = True, False
    norms = [lambda x, i=i: (x - x.mean(-1, keepdim=True)) * (i + 1) / 2 for i in range(3)]
    return (
        torch.randn(B, T, D), torch.randn(B, S, D), src_mask, triangle(T), norms,
        attend(0.7), attend(1.3), lambda x: torch.relu(x) * 2 + 1,
    )  # fmt: skip


def _decoder(order=(0, 1), tgt=True, src=True, renormed=False, plain=(), skip=None, norm=(0, 1, 2)):
    """A decoder layer with one thing done in another way."""

    def layer(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
        for step in order:
            n = norms[norm[step]](x)
            if step == skip:
                continue
            if step == 0:
                update = own(n, n, n, tgt_mask if tgt else None)
            else:
                m = norms[1](memory) if renormed else memory
                update = cross(n, m, m, src_mask if src else None)
            x = update if step in plain else x + update
        update = feed_forward(norms[norm[2]](x))
        return update if 2 in plain else x + update

    return layer


def _post_norm(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    x = norms[0](x + own(x, x, x, tgt_mask))
    x = norms[1](x + cross(x, memory, memory, src_mask))
    return norms[2](x + feed_forward(x))


@exercise(
    "10.2",
    inputs=_decoder_parts,
    vary=(dict(B=3, S=4, T=4, D=5), dict(B=1, S=3, T=6, D=4)),
    hint="self-attention, cross-attention, feed-forward, each inside x + ...",
    wrong="the output is not that of a pre-norm decoder layer",
    shape="one row per target token; are the queries taken from the memory?",
    gradients=True,
    slips={
        "your self-attention has no mask: pass tgt_mask, or each row reads the future": (
            _decoder(tgt=False)
        ),
        "your cross-attention has no mask: pass src_mask, or it reads the padding": (
            _decoder(src=False)
        ),
        "the masks do not reach the attentions": _decoder(tgt=False, src=False),
        "the memory is normalised a second time; the encoder's final norm has done it": (
            _decoder(renormed=True)
        ),
        "the self-attention over the target comes first, then the memory": (
            [_decoder(order=(1, 0)), _decoder(order=(1, 0), norm=(1, 0, 2))]
        ),
        "the cross-attention is missing": _decoder(skip=1),
        "the self-attention over the target is missing": _decoder(skip=0),
        "nothing is added to x: each sublayer's output belongs on top of its input": (
            _decoder(plain=(0, 1, 2))
        ),
        "the self-attention's output is not added to x": _decoder(plain=(0,)),
        "the cross-attention's output is not added to x": _decoder(plain=(1,)),
        "the feed-forward network's output is not added to x": _decoder(plain=(2,)),
        "each sublayer has a norm of its own: norms[0], norms[1], norms[2]": [
            _decoder(norm=(0, 0, 0)), _decoder(norm=(0, 0, 1)), _decoder(norm=(0, 1, 1)),
        ],
        "that is post-norm, the norm after the sum; here the norm comes before the sublayer": (
            _post_norm
        ),
        "the query of the self-attention is normalised, its keys and values are not": (
            lambda x, memory, src_mask, tgt_mask, norms, own, cross, forward: (
                _decoder(order=(1,))(
                    x + own(norms[0](x), x, x, tgt_mask), memory, src_mask, tgt_mask, norms,
                    own, cross, forward,
                )
            )
        ),
    },
)  # fmt: skip
def layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    n = norms[0](x)
    after_self = x + self_attend(n, n, n, tgt_mask)
    after_cross = after_self + cross_attend(norms[1](after_self), memory, memory, src_mask)
    return after_cross + feed_forward(norms[2](after_cross))


FOREIGN = {  # what the model says to a prefix that it should never see
    99: "the model must always see bos first: give it [bos] and what is written so far",
    98: "at each step the model must see all that is written so far, and nothing else",
    97: "your loop goes on after eos: stop when it has been written",
}


def _writer(bos, eos):
    def next_token(src, so_far):
        """The next word of the source, for a prefix that has been written rightly."""
        so_far = [int(token) for token in so_far]
        if not so_far or so_far[0] != bos:
            return 99  # the model must always see bos first
        place = len(so_far) - 1
        if so_far[1:] != [*src, eos][:place]:
            return 98
        return src[place] if place < len(src) else eos if place == len(src) else 97

    return next_token


def _case(src, bos, eos, max_len):
    return _writer(bos, eos), src, bos, eos, max_len


def _write(next_token, src, bos, eos, max_len, start=1, stop=True):
    so_far = [bos]
    while len(so_far) <= max_len and not (stop and so_far[-1] == eos):
        so_far.append(next_token(src, so_far))
    return so_far[start:]


def _without_bos(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len and so_far[-1:] != [eos]:
        so_far.append(next_token(src, so_far))
    return so_far


def _drops_eos(*args):
    written = _write(*args)
    return written[:-1] if written[-1:] == [args[3]] else written


@exercise(
    "10.3",
    inputs=[
        _case([7, 8, 9], 1, 2, 10), _case([7, 8, 9], 1, 2, 2), _case([4, 4], 5, 6, 3),
        _case([4, 4], 5, 6, 1), _case([], 3, 9, 4), _case([5, 6], 2, 1, 0),
    ],
    given=0x7A9523BD,
    shrinks=False,
    tell=lambda given, *rest: next(
        (sentence for token, sentence in FOREIGN.items() if token in given),
        "these are not the tokens that greedy decoding writes",
    ),
    view=lambda written, *args: [int(token) for token in written],
    slips={
        "the model sees only bos at every step: append what is written and give it back": [
            lambda nt, src, bos, eos, n: [nt(src, [bos]) for _ in range(n)],
        ],
        "the model must always see bos first: give it [bos] and what is written so far": (
            _without_bos
        ),
        "the result still holds bos": lambda *args: _write(*args, start=0),
        "your loop goes on after eos: stop when it has been written": (
            lambda *args: _write(*args, stop=False)
        ),
        "eos came, so it belongs to the result": _drops_eos,
        "max_len counts the written tokens; bos is not among them": [
            lambda nt, src, bos, eos, n: _write(nt, src, bos, eos, n - 1),
            lambda nt, src, bos, eos, n: _write(nt, src, bos, eos, n + 1),
        ],
    },
)  # fmt: skip
def write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) <= max_len and so_far[-1] != eos:
        so_far.append(next_token(src, so_far))
    return so_far[1:]


def _batch(B=3, S=5, T=4, pad_id=0):
    src, tgt = torch.randint(4, 9, (B, S)), torch.randint(4, 9, (B, T))
    src[0, S - S // 3 :], tgt[0, T - T // 2 :] = pad_id, pad_id
    src[-1, S - S // 2 :], tgt[-1, T - T // 4 :] = pad_id, pad_id
    return src, tgt, pad_id


def _broadcast(result, src, tgt, pad_id):
    """(src_mask, tgt_mask) as (B, T, S) and (B, T, T), after a look at their kind and shapes."""
    expect(isinstance(result, (tuple, list)) and len(result) == 2, "return src_mask and tgt_mask")
    for name, mask in zip(("src_mask", "tgt_mask"), result, strict=True):
        expect(
            isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
            f"{name} must be a tensor of booleans, True = may attend",
        )
    (B, S), T = src.shape, tgt.size(1)
    heads = B + 2  # unlike any other size, so that only the right axes broadcast
    try:
        other = result[0].broadcast_to(B, heads, T, S)[:, 0]
        own = result[1].broadcast_to(B, heads, T, T)[:, 0]
    except RuntimeError:
        given = f"src_mask {tuple(result[0].shape)}, tgt_mask {tuple(result[1].shape)}"
        expect(
            False,
            f"{given}: they must broadcast to (B, H, T, S) and (B, H, T, T). Give padding the "
            "shape (B, 1, 1, S)",
        )
    return other, own


def _own(how):
    """Masks of which the target's is made by how(padding, causal)."""

    def both(src, tgt, pad_id):
        padding = (tgt != pad_id)[:, None, None, :]
        return (src != pad_id)[:, None, None, :], how(padding, triangle(tgt.size(1)))

    return both


def _right(src, tgt, pad_id):
    return _own(lambda padding, causal: padding & causal)(src, tgt, pad_id)


@exercise(
    "10.4",
    inputs=_batch,
    vary=(dict(B=2, S=6, T=5, pad_id=7), dict(B=4, S=4, T=4), dict(B=1, S=3, T=6, pad_id=3)),
    hint="the padding of the source; the padding of the target and the causal triangle",
    parts=("src_mask", "tgt_mask"),
    view=_broadcast,
    tell=lambda given, expected, *args: (
        "src_mask must be True exactly where the source has no padding"
        if not torch.equal(given[0], expected[0])
        else "tgt_mask must be padding and causal, both"
    ),
    slips={
        "your mask is inverted: True must mean may attend": [
            lambda *args: tuple(~mask for mask in _right(*args)),
            lambda *args: (~_right(*args)[0], _right(*args)[1]),
            lambda *args: (_right(*args)[0], ~_right(*args)[1]),
        ],
        "tgt_mask hides the padding but not the future: add the triangle": (
            _own(lambda padding, causal: padding)
        ),
        "tgt_mask hides the future but not the padding of the target": (
            _own(lambda padding, causal: causal)
        ),
        "your triangle shows the future and hides the past: take tril, not triu": (
            _own(lambda padding, causal: padding & causal.mT)
        ),
        "your padding hides query rows; it must hide key columns, (B, 1, 1, T)": (
            _own(lambda padding, causal: padding.mT & causal)
        ),
        "combine the two with &: both must allow it": _own(
            lambda padding, causal: padding | causal
        ),
        "use pad_id: with another pad_id, id 0 is a word like any other": (
            lambda src, tgt, pad_id: _right(src, tgt, 0)
        ),
        "a position must also see itself: keep the diagonal": (
            _own(lambda padding, causal: padding & causal.tril(-1))
        ),
    },
)
def masks(src_ids, tgt_ids, pad_id):
    src_mask = (src_ids != pad_id)[:, None, None, :]  # (B, 1, 1, S)
    causal = triangle(tgt_ids.size(1))
    tgt_mask = (tgt_ids != pad_id)[:, None, None, :] & causal
    return src_mask, tgt_mask


@exercise(
    "10.5",
    inputs=[(10,), (1,), (4,), (30,)],
    hint="at step t the prefix has t tokens",
    parts=("again", "once"),
    adapt=lambda again, once: lambda T: (again(T), once(T)),
    right=(lambda T: T * (T + 1) // 2, lambda T: T),
    wrong="the number of rows is not right",
    slips={
        "the prefix is not T tokens long from the start: it grows from 1 to T": (
            lambda T: T * T, lambda T: T
        ),
        "the first step already computes one row, <bos>: count 1 to T": (
            lambda T: T * (T - 1) // 2, lambda T: T
        ),
        "computed once, a row is never repeated: one new row at each step": (
            lambda T: T * (T + 1) // 2, lambda T: T * (T + 1) // 2
        ),
    },
)  # fmt: skip
def rows(T):
    return T * (T + 1) // 2, T
