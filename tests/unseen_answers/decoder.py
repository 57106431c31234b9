"""Answers to the exercises of chapter 10, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: shapes
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 9, 6)}
""",
        right=False,
        mistake="queries and keys of the cross-attention exchanged",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (3, 9, 9), "decoder": (3, 6, 6), "cross": (3, 6, 9)}
""",
        right=False,
        mistake="no axis for the heads",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 9), "cross": (3, 4, 6, 9)}
""",
        right=False,
        mistake="the decoder's self-attention reads the source",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (4, 3, 9, 9), "decoder": (4, 3, 6, 6), "cross": (4, 3, 6, 9)}
""",
        right=False,
        mistake="heads before the batch",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (3, 4, 9, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 6, 15)}
""",
        right=False,
        mistake="in cross-attention source and target stand in one sequence",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
answer = {"encoder": (3, 1, 1, 9), "decoder": (3, 4, 6, 6), "cross": (3, 4, 6, 9)}
""",
        right=False,
        mistake="the shape of a padding mask for the encoder",
    ),
    Answer(
        exercise="decoder.1",
        check="shapes",
        code="""
import torch


def weights(queries, keys):
    return (torch.randn(3, 4, queries, 8) @ torch.randn(3, 4, 8, keys)).softmax(-1).shape
answer = {"encoder": weights(9, 9), "decoder": weights(6, 6), "cross": weights(6, 9)}
""",
        right=True,
        mistake="torch.Size, from random scores",
    ),
    # Exercise 2: layer
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    x = norms[0](x + self_attend(x, x, x, tgt_mask))
    x = norms[1](x + cross_attend(x, memory, memory, src_mask))
    return norms[2](x + feed_forward(x))


answer = decoder_layer
""",
        right=False,
        mistake="post-norm",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, src_mask)
    x = x + cross_attend(norms[1](x), memory, memory, tgt_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="the masks exchanged",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    m = norms[1](memory)
    x = x + cross_attend(norms[1](x), m, m, src_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="norms the memory, too",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    x = x + self_attend(norms[0](x), x, x, tgt_mask)
    x = x + cross_attend(norms[1](x), memory, memory, src_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="only the query is normalised, keys and values are not",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    y = norms[1](x)
    x = x + cross_attend(memory, y, y, src_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="the memory asks and the target answers",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    y = norms[1](x)
    x = x + cross_attend(y, memory, y, src_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="keys from the memory, values from the target",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    x = cross_attend(norms[1](x), memory, memory, src_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="no residual around the cross-attention",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    x = x + cross_attend(norms[1](x), memory, memory, None)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="the source's mask is forgotten",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    x = x + cross_attend(norms[1](x), memory, memory, src_mask)
    y = norms[0](x)
    x = x + self_attend(y, y, y, tgt_mask)
    return x + feed_forward(norms[2](x))


answer = decoder_layer
""",
        right=False,
        mistake="the cross-attention asks before the target has looked at itself",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    y = norms[0](x)
    x += self_attend(y, y, y, tgt_mask)
    x += cross_attend(norms[1](x), memory, memory, src_mask)
    x += feed_forward(norms[2](x))
    return x


answer = decoder_layer
""",
        right=False,
        mistake="changes the caller's x on the way",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    sublayers = [
        lambda y: self_attend(y, y, y, tgt_mask),
        lambda y: cross_attend(y, memory, memory, src_mask),
        feed_forward,
    ]
    for norm, sublayer in zip(norms, sublayers, strict=True):
        x = x + sublayer(norm(x))
    return x


answer = decoder_layer
""",
        right=True,
        mistake="a list of sublayers",
    ),
    Answer(
        exercise="decoder.2",
        check="layer",
        code="""
def decoder_layer(
    x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward
):
    first, second, third = norms
    own = first(x)
    after_self = x + self_attend(query=own, key=own, value=own, mask=tgt_mask)
    question = second(after_self)
    read = cross_attend(query=question, key=memory, value=memory, mask=src_mask)
    after_cross = after_self + read
    return feed_forward(third(after_cross)) + after_cross


answer = decoder_layer
""",
        right=True,
        mistake="by keywords, a name for each stage",
    ),
    # Exercise 3: write
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len:
        so_far.append(next_token(src, [bos] + so_far))
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="feeds back what was written and does not stop",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len:
        so_far.append(next_token(src, [bos]))
        if so_far[-1] == eos:
            break
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="stops at the end and still reads the first token alone",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len:
        token = next_token(src, [bos, *so_far])
        if token == eos:
            break
        so_far.append(token)
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="leaves eos out of the result",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) < max_len + 1 and so_far[-1] != eos:
        so_far.append(next_token(src, so_far))
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="bos is in the result",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) < max_len:
        so_far.append(next_token(src, so_far))
        if so_far[-1] == eos:
            break
    return so_far[1:]


answer = repaired_write
""",
        right=False,
        mistake="counts bos among max_len",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    last, so_far = bos, []
    while last != eos:
        last = next_token(src, [bos] + so_far)
        so_far = (so_far + [last])[-10_000:]
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="forgets max_len, and hangs where eos never comes",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while so_far[-1] != eos and len(so_far) < max_len:
        so_far.append(next_token(src, [bos] + so_far))
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="looks at the last written token before there is one",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    last = bos
    for _ in range(max_len):
        last = next_token(src, [last])
        so_far.append(last)
        if last == eos:
            break
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="reads the last token alone",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len:
        so_far.append(next_token(src, so_far + [bos]))
        if so_far[-1] == eos:
            return so_far
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="bos comes after what was written",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    so_far = []
    while len(so_far) < max_len:
        so_far.append(next_token(src, [bos] + so_far))
        if so_far[-1] == eos:
            return
    return so_far


answer = repaired_write
""",
        right=False,
        mistake="forgets to return when eos comes",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len):
    ids = [bos]
    while len(ids) <= max_len:
        ids.append(next_token(src, ids))
        if ids[-1] == eos:
            break
    return ids[1:]


answer = repaired_write
""",
        right=True,
        mistake="one list that grows, bos cut off at the end",
    ),
    Answer(
        exercise="decoder.3",
        check="write",
        code="""
def repaired_write(next_token, src, bos, eos, max_len, so_far=()):
    if len(so_far) >= max_len or eos in so_far:
        return list(so_far)
    token = next_token(src, [bos, *so_far])
    return repaired_write(next_token, src, bos, eos, max_len, (*so_far, token))


answer = repaired_write
""",
        right=True,
        mistake="recursive",
    ),
]
