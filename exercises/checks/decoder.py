"""Checks for chapter 10, the decoder."""

import functools

import torch

from exercises.checks import (
    Part,
    Wrong,
    exercise,
    expect,
    expect_close,
    expect_shape,
    judged,
    same,
    values,
)
from exercises.checks.framework import has_placeholder
from exercises.checks.masks import triangle
from exercises.checks.recorded import expect_one_of, expect_share, recorded
from transformer_lib.config import BlockConfig
from transformer_lib.decoder import DecoderLayer


def _four(name, shape, slips=None):
    return Part(
        shape,
        f"{name}: that isn't (batch, heads, queries, keys); which tokens ask, and which are read?",
        {
            "weights have four axes: batch, heads, queries, keys": lambda given: len(given) != 4,
            **(slips or {}),
        },
    )


shapes = values(
    1,
    "shapes",
    hint=(
        "give three shapes of four numbers each",
        "the axes are the batch, the heads, the tokens that look, and the tokens they look at",
        "in cross-attention, the target looks and the source is looked at",
    ),
    packed="names",
    encoder=_four("encoder", (3, 4, 9, 9)),
    decoder=_four("decoder", (3, 4, 6, 6)),
    cross=_four(
        "cross",
        (3, 4, 6, 9),
        {
            "cross: the queries come from the target and are named before the keys, which come "
            "from the memory": (3, 4, 9, 6)
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
    )


def _decoder(
    order=(0, 1), tgt=True, src=True, renormed=False, plain=(), skip=None, norm=(0, 1, 2),
    crossed=False, keys="memory",
):
    """A decoder layer with one thing done in another way."""

    def layer(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
        for step in order:
            n = norms[norm[step]](x)
            if step == skip:
                continue
            first, second = (src_mask, tgt_mask) if crossed else (tgt_mask, src_mask)
            if step == 0:
                update = own(n, n, n, first if tgt else None)
            else:
                m = norms[1](memory) if renormed else n if keys == "x" else memory
                asks, read = (memory, n) if keys == "turned" else (n, m)
                update = cross(asks, read, read, second if src else None)
            x = update if step in plain else x + update
        update = feed_forward(norms[norm[2]](x))
        return update if 2 in plain else x + update

    return layer


def _post_norm(x, memory, src_mask, tgt_mask, norms, own, cross, feed_forward):
    x = norms[0](x + own(x, x, x, tgt_mask))
    x = norms[1](x + cross(x, memory, memory, src_mask))
    return norms[2](x + feed_forward(x))


@exercise(
    2,
    inputs=_decoder_parts,
    vary=(dict(B=3, S=4, T=4, D=5), dict(B=1, S=3, T=6, D=4)),
    hint="write self-attention, cross-attention and feed-forward, each as x + ...",
    wrong="the output is not that of a pre-norm decoder layer",
    shape="are your queries taken from the memory? There should be one row per target token",
    gradients=True,
    slips={
        "your self-attention has no mask: pass tgt_mask, or each row reads the future": (
            _decoder(tgt=False)
        ),
        "your cross-attention has no mask: pass src_mask, or it reads the padding": (
            _decoder(src=False)
        ),
        "the masks do not reach the attention layers": _decoder(tgt=False, src=False),
        "you normalise the memory a second time; the encoder's final norm has already done that": (
            _decoder(renormed=True)
        ),
        "the self-attention over the target comes first, then the memory": (
            [_decoder(order=(1, 0)), _decoder(order=(1, 0), norm=(1, 0, 2))]
        ),
        "the cross-attention is missing": _decoder(skip=1),
        "the self-attention over the target is missing": _decoder(skip=0),
        "nothing is added to x: each sublayer's output has to be added to x": (
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
        "in your self-attention the queries are normalised, but the keys and values aren't": (
            lambda x, memory, src_mask, tgt_mask, norms, own, cross, forward: (
                _decoder(order=(1,))(
                    x + own(norms[0](x), x, x, tgt_mask), memory, src_mask, tgt_mask, norms,
                    own, cross, forward,
                )
            )
        ),
        "the two masks are swapped": _decoder(crossed=True),
        "your cross-attention reads x; its keys and values should come from the "
        "memory": _decoder(keys="x"),
        "in your cross-attention the memory asks and x is read; it's the other way round": (
            _decoder(keys="turned")
        ),
        "the feed-forward network is missing": lambda *parts: (
            _decoder()(*parts[:-1], torch.zeros_like)
        ),
        "the sublayers follow one another: each reads what the one before it has added to": (
            lambda x, memory, src_mask, tgt_mask, norms, own, cross, forward: (
                x + own(*[norms[0](x)] * 3, tgt_mask)
                + cross(norms[1](x), memory, memory, src_mask) + forward(norms[2](x))
            )
        ),
    },
)
def layer(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward):
    n = norms[0](x)
    after_self = x + self_attend(n, n, n, tgt_mask)
    after_cross = after_self + cross_attend(norms[1](after_self), memory, memory, src_mask)
    return after_cross + feed_forward(norms[2](after_cross))


FOREIGN = {  # what the model says to a prefix that it should never see
    99: "the model must always see bos first: give it [bos], followed by everything written so far",
    98: "at each step the model must see everything written so far, and nothing else",
    97: "your loop goes on after eos: stop once eos has been written",
}


def _writer(bos, eos):
    def next_token(src, so_far):
        """The next word of the source, for a prefix that has been written correctly."""
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
    3,
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
        "the model sees only bos at every step: append what it writes and feed it back in": [
            lambda nt, src, bos, eos, n: [nt(src, [bos]) for _ in range(n)],
            lambda nt, src, bos, eos, n: (
                [nt(src, [bos])] * (1 if nt(src, [bos]) == eos else n) if n else []
            ),
        ],
        "the model must always see bos first: give it [bos], followed by everything written so "
        "far": (
            _without_bos
        ),
        "the result still contains bos": lambda *args: _write(*args, start=0),
        "your loop goes on after eos: stop once eos has been written": (
            lambda *args: _write(*args, stop=False)
        ),
        "eos was written, so it belongs in the result": _drops_eos,
        "max_len counts only the tokens that are written, so not bos": [
            lambda nt, src, bos, eos, n: _write(nt, src, bos, eos, n - 1),
            lambda nt, src, bos, eos, n: _write(nt, src, bos, eos, n + 1),
        ],
    },
    hint=(
        "how much of what has been written does next_token see? And when should the loop stop "
        "early?",
    ),
)
def write(next_token, src, bos, eos, max_len):
    so_far = [bos]
    while len(so_far) <= max_len and so_far[-1] != eos:
        so_far.append(next_token(src, so_far))
    return so_far[1:]


@functools.cache
def _small_decoder(seed):
    torch.manual_seed(seed)
    layer = DecoderLayer(BlockConfig(8, 2, 16, dropout=0.0)).eval()
    for p in layer.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return layer.requires_grad_(False)


def _candidates(B=2, N=3, T=4, S=5, seed=1):
    layer = _small_decoder(seed)
    src_mask = torch.ones(B, 1, 1, S, dtype=torch.bool)
    src_mask[0, ..., -2:], src_mask[-1, ..., -1:] = False, False

    def decode(x, memory, src_mask):
        return layer(x, memory, src_mask, triangle(x.size(1))[None, None])

    return decode, torch.randn(B, N, T, 8), torch.randn(B, S, 8), src_mask


def _flat(repeat, repeat_mask=None, back=lambda out, B, N: out.unflatten(0, (B, N))):
    """All candidates as one batch, with the sources repeated in some way."""

    def decode_all(decode, x, memory, src_mask):
        B, N = x.shape[:2]
        mask = (repeat_mask or repeat)(src_mask, N)
        return back(decode(x.flatten(0, 1), repeat(memory, N), mask), B, N)

    return decode_all


def _tiled(x, n):
    return x.repeat(n, *[1] * (x.dim() - 1))


def _each(x, n):
    return x.repeat_interleave(n, 0)


def _one_decoding(answer):
    calls = []
    decode, x, memory, src_mask = _candidates()

    def counting(*args):
        calls.append(args)
        return decode(*args)

    answer(counting, x, memory, src_mask)
    expect(
        len(calls) == 1,
        f"the result is right, but the decoder ran {len(calls)} times: once is enough",
    )


@exercise(
    4,
    inputs=_candidates,
    vary=(dict(B=3, N=2, T=3, S=4, seed=2), dict(B=2, N=2, T=2, S=3, seed=3), dict(B=1, N=4)),
    hint="give the decoder B * N rows, where row b * N + n belongs to source b",
    wrong="the states aren't what the decoder gives for each candidate on its own",
    shape="the shape should be (B, N, T, D)",
    laws=_one_decoding,
    shrinks=False,
    tolerance=1e-4,
    slips={
        "your sources run 0, 1, 0, 1, but the candidates 0, 0, 1, 1: `repeat` repeats the whole "
        "batch; `repeat_interleave` repeats each row": _flat(_tiled),
        "the memory is right, but the mask isn't: each candidate needs the mask of its own "
        "source": (
            _flat(_each, _tiled)
        ),
        "the mask is missing: the candidates read the source's padding": (
            _flat(_each, lambda mask, n: torch.ones_like(_each(mask, n)))
        ),
        "the candidates come back in another order: row b * N + n is candidate n of source b": (
            _flat(_each, back=lambda out, B, N: out.unflatten(0, (N, B)).transpose(0, 1))
        ),
    },
)
def decode_candidates(decode, x, memory, src_mask):
    B, N = x.shape[:2]
    sources = memory.repeat_interleave(N, 0)  # (B * N, S, D)
    states = decode(x.flatten(0, 1), sources, src_mask.repeat_interleave(N, 0))
    return states.unflatten(0, (B, N))


def _rows(B=2, T=5, D=6, K=4):
    return torch.randn(B, T, D), torch.randn(D, K), torch.randn(D, K), torch.randn(D, K)


def _row_by_row(step):
    """The learner's step as a function of all rows: it gets one at a time, and what it kept."""

    def run(x, w_q, w_k, w_v):
        def written(new_weights_at=None):
            kept, outputs = None, []
            for t in range(x.size(1)):
                w = [w_q, w_k, w_v] if t != new_weights_at else [w_q, w_k + 1, w_v + 1]
                result = step(x[:, t : t + 1], kept, *w)
                if not (isinstance(result, (tuple, list)) and len(result) == 2):
                    raise Wrong("return two things: the output, and what you keep for the next row")
                output, kept = result
                expect_shape(output, (x.size(0), 1, w_v.size(1)), "the output should be one row")
                outputs.append(torch.as_tensor(output))
            return torch.cat(outputs, 1), kept

        if has_placeholder(first := step(x[:, :1], None, w_q, w_k, w_v)) or first is None:
            return first
        outputs, _ = written()
        if x.size(1) > 1:  # with other weights for the last row, the earlier keys stay
            last = x.size(1) - 1
            keys, values = x @ w_k, x @ w_v
            keys[:, last] += x[:, last].sum(-1, keepdim=True)
            values[:, last] += x[:, last].sum(-1, keepdim=True)
            scores = x[:, last:] @ w_q @ keys.mT / w_q.size(1) ** 0.5
            if same(outputs, _causal(x, w_q, w_k, w_v), 1e-4):
                expect_close(
                    written(last)[0][:, last:], scores.softmax(-1) @ values,
                    "the outputs are right, but keys and values of earlier rows are computed "
                    "again: keep them, and compute only those of the new row", 1e-4,
                )
        return outputs

    return run


def _causal(x, w_q, w_k, w_v):
    scores = x @ w_q @ (x @ w_k).mT / w_q.size(1) ** 0.5  # (B, T, T)
    scores = scores.masked_fill(~triangle(x.size(1)), -torch.inf)
    return scores.softmax(-1) @ (x @ w_v)


def _step(join=lambda old, new: torch.cat([old, new], 1), root=True, own=True):
    """One step of attention with one thing done in another way."""

    def step(x, kept, w_q, w_k, w_v):
        new = x @ w_k, x @ w_v  # (B, 1, K)
        both = new if kept is None else tuple(map(join, kept, new))
        keys, values = both if own or kept is None else kept
        scores = x @ w_q @ keys.mT / (w_q.size(1) ** 0.5 if root else 1.0)  # (B, 1, t)
        return scores.softmax(-1) @ values, both

    return step


@exercise(
    5,
    inputs=_rows,
    vary=(dict(B=3, T=3, D=5, K=5), dict(B=1, T=1), dict(B=2, T=2, D=4, K=3)),
    adapt=_row_by_row,
    right=_step(),
    hint=(
        "keep keys and values, add those of the new row at the end, then attend",
        "no mask is needed: what is kept is all that the newest row may see",
    ),
    wrong="row by row, the outputs aren't those of causal attention over all rows at once",
    shrinks=False,
    tolerance=1e-4,
    slips={
        "nothing is kept: each row attends only to itself": _step(lambda old, new: new),
        "you forgot to divide the scores by sqrt(d_k)": _step(root=False),
        "a row must also see itself: add its key and value before it attends": _step(own=False),
    },
)
def causal_rows(x, w_q, w_k, w_v):
    return _causal(x, w_q, w_k, w_v)


@judged(7, hint=(
        "two things help: wider vectors, and more updates",
        "start from the largest width and the most updates in the figure, then work down",
        "the figure shows, for each width, how the share grows with the updates",
    ), example=(64, 600, 0.05))
def squeezed(width, updates, of_eight):
    records = recorded("one_vector", part="vector")
    expect_one_of("width", width, (r["settings"]["width"] for r in records))
    expect_one_of("updates", updates, (step for r in records for step in r["steps"]))
    runs = [r for r in records if r["settings"]["width"] == width and updates in r["steps"]]
    expect(runs, f"a vector of {width} numbers was not trained for {updates} updates")
    five, eight = (
        [r["whole"][r["steps"].index(updates)][symbols] for r in runs] for symbols in ("5", "8")
    )
    told = f"{min(five):.0%} to {max(five):.0%} of the sentences of five symbols are right"
    expect(min(five) > 0.5, f"there {told}, depending on the seed; every seed needs more than half")
    expect_share(of_eight)
    expect(
        abs(of_eight - sum(eight) / len(eight)) <= 0.1,
        f"the setting is right, but your prediction for eight symbols, {of_eight:.0%}, is more "
        "than 10 points off. What happened with eight symbols while five were being learned?",
    )
    return f"{told.capitalize()}, and {min(eight):.0%} to {max(eight):.0%} of those of eight."


def _scores(alone, cached, cross=True, cross_alone=None, cross_cached=lambda t, T, S: S):
    """Scores without and with a cache, from those of step t = 1, ..., T."""

    def scores(T, S):
        steps = range(1, T + 1)
        first, later = (sum(of(t, T, S) for t in steps) for of in (alone, cached))
        if cross:
            first += sum((cross_alone or (lambda t, T, S: t * S))(t, T, S) for t in steps)
            later += sum(cross_cached(t, T, S) for t in steps)
        return first, later

    return scores


def _table(t, T, S):
    return t * t


def _row(t, T, S):
    return t


@exercise(
    8,
    inputs=[(1, 1), (2, 3), (3, 5), (7, 1), (10, 4), (30, 17), (100, 12)],
    hint=(
        "at step t, without a cache: how many queries and keys are there, and how many keys "
        "in the memory?",
        "step t computes t * t + t * S scores without a cache, and t + S with one; add them up",
        "1 + 2 + ... + T is T(T+1)/2, and 1 + 4 + ... + T² is T(T+1)(2T+1)/6",
    ),
    wrong="these aren't the right numbers of scores",
    shape="return two numbers, first without a cache",
    parts=("without", "cached"),
    shrinks=False,
    slips={
        "the mask hides half of the table, but the whole table is computed: t * t scores at step "
        "t": [
            _scores(lambda t, T, S: t * (t + 1) // 2, _row),
            _scores(lambda t, T, S: t * (t - 1) // 2, _row),
        ],
        "that is only the last step: add up the ones before it, "
        "too": lambda T, S: (T * T + T * S, T + S),
        "the cross-attention is missing: each query has a score with each of the S keys, too": (
            _scores(_table, _row, cross=False)
        ),
        "without a cache, the cross-attention computes its old rows again, too: t * S at step t": (
            _scores(_table, _row, cross_alone=lambda t, T, S: S)
        ),
        "the memory's keys are kept, but each new query still needs its S scores with them": [
            _scores(_table, _row, cross_cached=lambda t, T, S: 0),
            _scores(_table, _row, cross_cached=lambda t, T, S: S / T),
        ],
        "at step t there are only t tokens, not T": [
            lambda T, S: (T**3 + T * T * S, T * T + T * S),
            _scores(_table, lambda t, T, S: T),
            _scores(lambda t, T, S: T * T, _row),
            _scores(lambda t, T, S: t * T, _row),
        ],
        "the newest row has a score with itself as well: t scores at step t": (
            _scores(_table, lambda t, T, S: t - 1)
        ),
        "at the first step there is already one token, `<bos>`: t runs from 1 to T": (
            lambda T, S: _scores(_table, _row)(T - 1, S)
        ),
        "that is how many rows are computed; each row has a score with every key": (
            lambda T, S: (T * (T + 1) // 2, T)
        ),
        "the two are swapped: first the number without a cache, then with one": (
            lambda T, S: _scores(_table, _row)(T, S)[::-1]
        ),
    },
)
def scores_saved(T, S):
    without = T * (T + 1) * (2 * T + 1) // 6 + S * T * (T + 1) // 2
    cached = T * (T + 1) // 2 + S * T
    return without, cached
