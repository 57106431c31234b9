"""Checks for chapter 10, the decoder."""

import torch

from transformer_lib.checks import NotAttempted, exercise, expect, expect_close, expect_shape, same


@exercise("10.1", hint="give three shapes of four numbers each")
def shapes(answer):
    if any(answer.get(key, ...) is ... for key in ("encoder", "decoder", "cross")):
        raise NotAttempted
    right = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 6, 9)}
    given = {key: tuple(answer[key]) for key in right}
    expect(
        all(len(shape) == 4 for shape in given.values()),
        "weights have four axes: batch, heads, queries, keys",
    )
    expect(
        given["cross"] != (3, 4, 9, 6),
        "cross: the queries come from the target and stand before the keys, which come from the "
        "memory",
    )
    for key, shape in right.items():
        expect(given[key] == shape, f"{key}: {given[key]} is not (batch, heads, queries, keys)")


@exercise("10.2", hint="self-attention, cross-attention, feed-forward, each inside x + ...")
def layer(answer):
    def attend(factor):
        def attention(query, key, value, mask=None):
            scores = query @ key.mT * factor
            if mask is not None:
                scores = scores.masked_fill(~mask, -1e9)
            return scores.softmax(-1) @ value * factor

        return attention

    def feed_forward(x):
        return torch.relu(x) * 2 + 1

    norms = [lambda x, i=i: (x - x.mean(-1, keepdim=True)) * (i + 1) / 2 for i in range(3)]
    own, cross = attend(0.7), attend(1.3)
    x, memory = torch.randn(2, 4, 6), torch.randn(2, 5, 6)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    padding = torch.tensor([[[1, 1, 1, 0, 0]], [[1, 1, 1, 1, 1]]]).bool()  # (B, 1, S)

    def run(memory_norm=lambda m: m, tgt=causal, src=padding, order=(0, 1), plain=False, skip=None):
        y = x
        for step in order:
            n = norms[step](y)
            if step == 0 and skip != 0:
                update = own(n, n, n, tgt)
            elif step == 1 and skip != 1:
                m = memory_norm(memory)
                update = cross(n, m, m, src)
            else:
                continue
            y = update if plain else y + update
        return feed_forward(norms[2](y)) if plain else y + feed_forward(norms[2](y))

    given = answer(x, memory, padding, causal, norms, own, cross, feed_forward)
    expect_shape(
        given, (2, 4, 6), "one row per target token; are the queries taken from the memory?"
    )
    slips = {
        "your self-attention has no mask: pass tgt_mask, or each row reads the future": (
            run(tgt=None)
        ),
        "your cross-attention has no mask: pass src_mask, or it reads the padding": run(src=None),
        "the masks do not reach the attentions": run(tgt=None, src=None),
        "the memory is normalised a second time; the encoder's final norm has done it": (
            run(memory_norm=norms[1])
        ),
        "the self-attention over the target comes first, then the memory": run(order=(1, 0)),
        "the cross-attention is missing": run(skip=1),
        "the self-attention over the target is missing": run(skip=0),
        "nothing is added to x: each sublayer's output belongs on top of its input": (
            run(plain=True)
        ),
    }
    for message, wrong in slips.items():
        expect(not same(given, wrong), message)
    expect_close(given, run(), "the output is not that of a pre-norm decoder layer")


@exercise("10.3", given=0x7A9523BD)
def write(answer):
    calls = []

    def next_token(src, so_far):
        calls.append(list(so_far))
        expect(len(calls) < 50, "your loop does not end")
        expect(
            len(so_far) > 0 and so_far[0] == 1,
            "the model must always see bos first: give it [bos] and what is written so far",
        )
        place = len(so_far) - 1
        return src[place] if place < len(src) else 2

    given = [int(token) for token in answer(next_token, [7, 8, 9], 1, 2, 10)]
    expect(
        not (len(calls) > 1 and all(call == [1] for call in calls)),
        "the model sees only bos at every step: append what is written and give it back",
    )
    expect(1 not in given, "the result still holds bos")
    expect(
        given.count(2) <= 1 and len(given) <= 4,
        "your loop goes on after eos: stop when it has been written",
    )
    expect(given != [7, 8, 9], "eos came, so it belongs to the result")
    expect(given == [7, 8, 9, 2], f"expected [7, 8, 9, 2], yours is {given}")
    short = [int(token) for token in answer(next_token, [7, 8, 9], 1, 2, 2)]
    expect(short == [7, 8], f"with max_len 2 expected two tokens, [7, 8], yours is {short}")


@exercise(
    "10.4", hint="the padding of the source; the padding of the target and the causal triangle"
)
def masks(answer):
    src = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9], [5, 6, 0, 0, 0]])
    tgt = torch.tensor([[1, 4, 0, 0], [1, 4, 5, 6], [1, 4, 5, 0]])
    src_mask, tgt_mask = answer(src, tgt, 0)
    if src_mask is ... or tgt_mask is ...:
        raise NotAttempted
    for name, mask in (("src_mask", src_mask), ("tgt_mask", tgt_mask)):
        expect(
            isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
            f"{name} must be a tensor of booleans, True = may attend",
        )
    try:
        own = tgt_mask.broadcast_to(3, 2, 4, 4)[:, 0]
        other = src_mask.broadcast_to(3, 2, 4, 5)[:, 0]
    except RuntimeError:
        shapes = f"src_mask {tuple(src_mask.shape)}, tgt_mask {tuple(tgt_mask.shape)}"
        expect(
            False,
            f"{shapes}: they must broadcast to (B, H, T, S) and (B, H, T, T). Give padding the "
            "shape (B, 1, 1, S)",
        )
    keys, source = (tgt != 0)[:, None, :].expand(3, 4, 4), (src != 0)[:, None, :].expand(3, 4, 5)
    causal = torch.ones(4, 4, dtype=torch.bool).tril().expand(3, 4, 4)
    expect(
        not (torch.equal(other, ~source) or torch.equal(own, ~(keys & causal))),
        "your mask is inverted: True must mean may attend",
    )
    expect(
        torch.equal(other, source), "src_mask must be True exactly where the source has no padding"
    )
    expect(
        not torch.equal(own, keys),
        "tgt_mask hides the padding but not the future: add the triangle",
    )
    expect(
        not torch.equal(own, causal), "tgt_mask hides the future but not the padding of the target"
    )
    expect(
        not torch.equal(own, keys & causal.mT),
        "your triangle shows the future and hides the past: take tril, not triu",
    )
    expect(
        not torch.equal(own, keys.mT & causal),
        "your padding hides query rows; it must hide key columns, (B, 1, 1, T)",
    )
    expect(not torch.equal(own, keys | causal), "combine the two with &: both must allow it")
    expect(torch.equal(own, keys & causal), "tgt_mask must be padding and causal, both")


@exercise("10.5", hint="at step t the prefix has t tokens")
def rows(again, once):
    first, second = again(10), once(10)
    expect(first != 100, "the prefix is not 10 tokens long from the start: it grows from 1 to 10")
    expect(first != 45, "the first step already computes one row, <bos>: count 1 to T")
    expect_close(first, 55, "computing every prefix again for T = 10: the number is not right", 0)
    expect(second != 55, "computed once, a row is never repeated: one new row at each step")
    expect_close(second, 10, "computing nothing twice for T = 10: the number is not right", 0)
    for T in (1, 4, 30):
        expect_close(again(T), T * (T + 1) // 2, f"every prefix again, T = {T}, is not right", 0)
        expect_close(once(T), T, f"nothing twice, T = {T}, is not right", 0)
