"""The laws of the parts that the Transformer's descendants changed: see `exercises.own`.

They are declared like those in `exercises.checks.own`, whose helpers make a function of a class.
"""

import math

import torch
import torch.nn.functional as F

from exercises.checks import exercise, expect, judged, normalization, vision_transformer
from exercises.checks.framework import Wrong
from exercises.checks.own import _with_weights, build, computed, formulas
from exercises.wording import counted

# --------------------------------------------------------------------------------------- positions


def _headed(B=2, H=3, T=4, K=6, start=0):
    return torch.randn(B, H, T, K), start


def _turning(halves=False, sign=1, first=0, step=2, axis=-2, cached=True, slow=True, joined=None):
    """Rotary positions with one thing done in another way."""

    def rotary(x, start):
        K = x.size(-1)
        place = torch.arange(x.size(axis)) + first + start * cached
        speed = 10000.0 ** (-torch.arange(0, K, 2) / K * step / 2 * slow)
        angle = sign * place[:, None] * speed
        angle = angle if axis == -2 else angle[:, None]
        a, b = x.chunk(2, -1) if halves else (x[..., 0::2], x[..., 1::2])
        turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
        joins = halves if joined is None else joined
        return torch.cat(turned, -1) if joins else torch.stack(turned, -1).flatten(-2)

    return rotary


def _mirrored(x, start):
    angle = (torch.arange(x.size(-2)) + start)[:, None] * 10000.0 ** (
        -torch.arange(0, x.size(-1), 2) / x.size(-1)
    )
    a, b = x[..., 0::2], x[..., 1::2]
    turned = a * angle.cos() + b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, -1).flatten(-2)


@exercise(
    "own.rotary", inputs=_headed, gradients=True,
    vary=(dict(B=1, T=3, start=5), dict(H=1, T=1, K=8, start=9), dict(H=4, T=5, K=4, start=2),
          dict(H=2, T=2, start=400)),
    hint=(
        "compute an angle for each position and each pair, then turn each pair by its angle",
        "the angle of pair i at position p is p * 10000 ** (-2 * i / K), and p begins at `start`",
        "a pair (a, b) becomes (a cos - b sin, a sin + b cos), and goes back to 2i and 2i + 1",
    ),
    wrong="the pairs are not turned by position * 10000 ** (-2i / K)",
    shape="turning keeps the shape", tolerance=3e-4,
    slips={
        "you pair feature i with feature i + K / 2; here a pair is two neighbours, 2i and 2i + 1": (
            [_turning(halves=True), _turning(halves=True, joined=False)]
        ),
        "the turned pairs are not put back: features 2i and 2i + 1 stay neighbours": (
            _turning(joined=True)
        ),
        "you turn the other way: (a, b) becomes (a cos - b sin, a sin + b cos)": _turning(sign=-1),
        "`start` is not used: with a cache, the first token isn't at position 0": (
            _turning(cached=False)
        ),
        "your positions begin at start + 1; the first token is at `start`": _turning(first=1),
        "the exponent is -2i / K; yours is -i / K": _turning(step=1),
        "all your pairs turn at the same speed": _turning(slow=False),
        "the angle must grow along the tokens, axis 2; yours grows along the heads": (
            _turning(axis=1)
        ),
        "that isn't a rotation, since lengths change: one of the two sine terms has to be "
        "subtracted": (
            _mirrored
        ),
        "nothing is turned": lambda x, start: x.clone(),
    },
)
def rotary(x, start):
    K = x.size(-1)
    place = torch.arange(start, start + x.size(-2))[:, None]  # (T, 1)
    angle = place * 10000.0 ** (-torch.arange(0, K, 2) / K)  # (T, K / 2)
    a, b = x[..., 0::2], x[..., 1::2]  # (B, H, T, K / 2)
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(turned, -1).flatten(-2)


# -------------------------------------------------------------------------- norm and feed-forward


def _run_rms(part, x, weight):
    module = build(part, (x.size(-1),), {"weight": (x.size(-1),)})
    return computed(module, {"weight": weight}, (x,))


def _rms(of=lambda x: x.pow(2).mean(-1, keepdim=True) + 1e-5, root=torch.sqrt, gain=True, shift=0):
    return lambda x, weight: (x / root(of(x))) * (weight * gain + (not gain) + shift)


@exercise(
    "own.rms_norm", inputs=normalization.rms_norm.inputs, vary=normalization.rms_norm.vary,
    hint=(
        "divide the vector by the root of the mean of its squares, then multiply by the gain",
        "the mean is over the last axis, with keepdim; nothing is subtracted, and there is no bias",
        "x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight",
    ),
    adapt=_with_weights(_run_rms), shrinks=False, gradients=True, tolerance=1e-4,
    wrong="with the same gain, the output differs from torch.nn.RMSNorm", forbid=("rms_norm",),
    shape="the norm keeps the shape",
    slips=formulas({
        "that is LayerNorm: RMSNorm does not subtract the mean": (
            [lambda x, weight: F.layer_norm(x, weight.shape, weight),
             lambda x, weight: _rms()(x, weight) - _rms()(x, weight) / x * x.mean(-1, keepdim=True)]
        ),
        "that divides by the length; the root mean square is the length over the root of d": (
            _rms(lambda x: x.pow(2).sum(-1, keepdim=True) + 1e-5)
        ),
        "the root is missing": _rms(root=lambda x: x),
        "the mean runs over the tokens; each token is normalised by its own features": (
            _rms(lambda x: x.pow(2).mean(1, keepdim=True) + 1e-5)
        ),
        "the mean runs over the whole batch; each token is normalised by itself": (
            _rms(lambda x: x.pow(2).mean() + 1e-5)
        ),
        "epsilon is missing": _rms(lambda x: x.pow(2).mean(-1, keepdim=True)),
        "epsilon belongs inside the root": (
            _rms(lambda x: x.pow(2).mean(-1, keepdim=True), lambda x: x.sqrt() + 1e-5)
        ),
        "the gain is missing": _rms(gain=False),
        "the gain is `weight`, which starts at 1; yours is 1 + weight": _rms(shift=1),
    }),
)
def rms_norm(x, weight):
    mean_square = x.pow(2).mean(-1, keepdim=True)  # (B, T, 1)
    return x / (mean_square + 1e-5).sqrt() * weight


def _gated(B=2, T=4, D=6, d_ff=10):
    return (torch.randn(B, T, D), torch.randn(d_ff, D), torch.randn(d_ff, D), torch.randn(D, d_ff))


def _run_swiglu(part, x, w_gate, w_expand, w_contract):
    D, d_ff = w_contract.shape
    shapes = {"gate.weight": (d_ff, D), "expand.weight": (d_ff, D), "contract.weight": (D, d_ff)}
    state = dict(zip(shapes, (w_gate, w_expand, w_contract), strict=True))
    return computed(build(part, (D, d_ff), shapes), state, (x,))


def _glu(hidden):
    """contract(hidden(gate(x), expand(x)))"""
    return lambda x, w_gate, w_expand, w_contract: (
        F.linear(hidden(F.linear(x, w_gate), F.linear(x, w_expand)), w_contract)
    )


@exercise(
    "own.swiglu", inputs=_gated, vary=(dict(B=3, D=5, d_ff=8), dict(B=1, T=2, D=4, d_ff=4)),
    hint=(
        "you need two projections to d_ff, one of which gates the other",
        "silu(g) = g * sigmoid(g), of the gate's output only; then multiply number by number",
        "contract(silu(gate(x)) * expand(x)), with three linear layers without a bias",
    ),
    adapt=_with_weights(_run_swiglu), shrinks=False, gradients=True, tolerance=1e-4,
    wrong="with the same weights, the output is not contract(silu(gate(x)) * expand(x))",
    shape="the feed-forward network keeps the shape of x",
    slips=formulas({
        "gate and expand are swapped: silu belongs on gate(x)": _glu(lambda g, h: g * F.silu(h)),
        "silu(g) is g * sigmoid(g); yours is only the sigmoid": (
            _glu(lambda g, h: g.sigmoid() * h)
        ),
        "the gate's output goes through silu; yours is used as it is": _glu(lambda g, h: g * h),
        "this is GELU; SwiGLU's gate is a silu": [
            _glu(lambda g, h: F.gelu(g) * h),
            _glu(lambda g, h: F.gelu(g, approximate="tanh") * h),
        ],
        "this is ReLU; SwiGLU's gate is a silu": _glu(lambda g, h: g.relu() * h),
        "gate and expand are multiplied; yours are added": _glu(lambda g, h: F.silu(g) + h),
        "silu is applied to the gate only, before the product": _glu(lambda g, h: F.silu(g * h)),
        "there is no gate in your network: its output depends on one projection only": [
            _glu(lambda g, h: F.silu(h)), _glu(lambda g, h: F.silu(g)),
            _glu(lambda g, h: F.silu(g) * g), _glu(lambda g, h: F.silu(h) * h),
        ],
        "both projections go through silu; only the gate does": (
            _glu(lambda g, h: F.silu(g) * F.silu(h))
        ),
        "you add x: the residual connection belongs to the block, not here": (
            lambda x, *weights: x + _glu(lambda g, h: F.silu(g) * h)(x, *weights)
        ),
    }),
)
def swiglu(x, w_gate, w_expand, w_contract):
    hidden = F.silu(F.linear(x, w_gate)) * F.linear(x, w_expand)  # (B, T, d_ff)
    return F.linear(hidden, w_contract)


# ------------------------------------------------------------------------------- heads and a cache


def _grouped_inputs(B=2, T=3, start=2, H=4, G=2, K=4, masked=True):
    D, S = H * K, start + T
    mask = torch.rand(B, 1, T, S) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    kept = [torch.randn(B, G, start, K) if start else None for _ in range(2)]
    weights = (torch.randn(n * K, D) / math.sqrt(D) for n in (H, G, G, H))
    return torch.randn(B, T, D), *kept, mask if masked else None, H, G, *weights


def _kept_pair(result):
    """(output, keys, values) of what the heads return, or Wrong."""
    expect(
        isinstance(result, tuple) and len(result) == 2 and not isinstance(result[1], torch.Tensor),
        "return two things: the output, and the pair (keys, values) to keep",
    )
    output, kept = result
    expect(isinstance(kept, (tuple, list)) and len(kept) == 2,
           "what is kept is a pair, (keys, values)")
    return output, *kept


def _run_grouped(part, x, kept_k, kept_v, mask, n_heads, n_kv_heads, *weights):
    D, starts = x.size(-1), []
    K = D // n_heads

    def turn(x, start=0):
        starts.append(start)
        return rotary.reference(x, start)

    shapes = {f"w_{name}.weight": tuple(w.shape) for name, w in zip("qkvo", weights, strict=True)}
    module = build(part, (D, n_heads, n_kv_heads), shapes, turn)
    kept = None if kept_k is None else (kept_k, kept_v)
    result = torch.func.functional_call(
        module, dict(zip(shapes, weights, strict=True)), (x, mask, kept)
    )
    expect(starts, "your heads turn nothing: keep the fourth argument, and call turn(q, start) and "
           "turn(k, start)")
    output, keys, values = _kept_pair(result)
    expect(getattr(keys, "dim", int)() == 4 and keys.size(1) == n_kv_heads,
           f"keep (B, {n_kv_heads}, tokens, {K}) keys, those of the n_kv_heads heads before they "
           f"are repeated; yours have shape {tuple(getattr(keys, 'shape', ()))}")
    return output, keys, values


def _beside(x, group):
    return x.repeat_interleave(group, 1)


def _whole_row(x, group):
    return x.repeat(1, group, 1, 1)


def _grouped(share_k=_beside, share_v=_beside, starts=(1, 1), turns=(1, 1, 0),
             again=False, blind=False, before=True, scale=True, out=True, all_kept=True):
    """Grouped heads with one thing done in another way."""

    def attend(x, kept_k, kept_v, mask, n_heads, n_kv_heads, w_q, w_k, w_v, w_o):
        def cut(w, n):
            return F.linear(x, w).unflatten(-1, (n, -1)).transpose(1, 2)

        start = 0 if kept_k is None else kept_k.size(2)
        q, k, v = cut(w_q, n_heads), cut(w_k, n_kv_heads), cut(w_v, n_kv_heads)
        q = rotary.reference(q, start * starts[0]) if turns[0] else q
        k = rotary.reference(k, start * starts[1]) if turns[1] else k
        v = rotary.reference(v, start) if turns[2] else v
        new = k, v
        if kept_k is not None:
            k = torch.cat([kept_k, k] if before else [k, kept_k], 2)
            v = torch.cat([kept_v, v] if before else [v, kept_v], 2)
        kept = (k, v) if all_kept else new
        k = rotary.reference(k, 0) if again else k
        k, v = share_k(k, n_heads // n_kv_heads), share_v(v, n_heads // n_kv_heads)
        scores = q @ k.mT / (math.sqrt(q.size(-1)) if scale else 1.0)
        if mask is not None and not blind:
            scores = scores.masked_fill(~mask, -math.inf)
        output = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return F.linear(output, w_o) if out else output, *kept

    return attend


def _gradients_reach_the_input(answer, inputs=_grouped_inputs):
    x, *rest = inputs()
    x.requires_grad_()
    output = answer(x, *rest)[0]
    expect(output.requires_grad, "the numbers are right, but no gradient flows back: something "
           "takes them out of the graph, such as .detach() or torch.no_grad()")


@exercise(
    "own.grouped_heads", inputs=_grouped_inputs, parts=("output", "keys", "values"),
    vary=(dict(T=4, start=0, H=6, G=3), dict(B=3, T=1, start=5, H=4, G=1, masked=False),
          dict(T=2, start=3, H=3, G=3, K=6), dict(B=1, start=4, H=8, G=2)),
    hint=(
        "project, cut into heads, turn the queries and keys, put what was kept in front, repeat "
        "each key head for its group, attend, join the heads, and project again",
        "start is the number of kept tokens: 0 without any, else kept[0].size(2)",
        "k.repeat_interleave(n_heads // n_kv_heads, dim=1), after what you keep; return output, "
        "(k, v)",
    ),
    adapt=_with_weights(_run_grouped), shrinks=False, tolerance=1e-4,
    laws=_gradients_reach_the_input,
    wrong="with the same weights, this isn't the output of grouped heads with a cache",
    shape="one output of d_model numbers per token",
    slips=formulas({
        "query head h reads key head h // group: repeat each key head next to itself "
        "(repeat_interleave), not the whole row of heads (repeat)": (
            [_grouped(_whole_row, _whole_row), _grouped(_whole_row), _grouped(_beside, _whole_row)]
        ),
        "the new tokens come after those that are kept: turn queries and keys from `start`, the "
        "number of kept tokens": [
            _grouped(starts=(0, 0)), _grouped(starts=(1, 0)), _grouped(starts=(0, 1)),
        ],
        "the values are turned: positions belong to queries and keys": (
            [_grouped(turns=(1, 1, 1)), _grouped(turns=(0, 1, 1)), _grouped(turns=(1, 0, 1))]
        ),
        "the queries are not turned": _grouped(turns=(0, 1, 0)),
        "the keys are not turned": _grouped(turns=(1, 0, 0)),
        "the kept keys are turned again: they were turned when they came in": (
            _grouped(again=True)
        ),
        "what was kept comes first, and the new tokens after it": _grouped(before=False),
        "the mask is not used": _grouped(blind=True),
        "you forgot to divide the scores by sqrt(d_k)": _grouped(scale=False),
        "the output is not projected: w_o mixes what the heads found": _grouped(out=False),
        "keep all keys and values, the earlier ones and the new ones": _grouped(all_kept=False),
    }),
)
def grouped_heads(x, kept_k, kept_v, mask, n_heads, n_kv_heads, w_q, w_k, w_v, w_o):
    return _grouped()(x, kept_k, kept_v, mask, n_heads, n_kv_heads, w_q, w_k, w_v, w_o)


# ------------------------------------------------------------------------------------------- block


def _block_parts(B=2, T=3, D=4, start=2):
    mix = torch.randn(start + T, start + T)

    def attend(y, mask, kept):
        k, v = (new[:, None] for new in (y, 2 * y))
        if kept is not None:
            k, v = torch.cat([kept[0], k], 2), torch.cat([kept[1], v], 2)
        scores = mix[: y.size(1), : k.size(2)]
        if mask is not None:
            expect(isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
                   "attend takes a boolean mask, True = may attend")
            try:
                shown = mask.expand(len(y), 1, *scores.shape)
            except RuntimeError:
                raise Wrong(
                    f"the mask of {counted(y.size(1), 'new token')} reading {k.size(2)} must fit "
                    f"(B, H, {y.size(1)}, {k.size(2)}); yours has shape {tuple(mask.shape)}"
                ) from None
            scores = scores.masked_fill(~shown, -1e9)
        return (scores.softmax(-1) @ v)[:, 0], (k, v)

    kept = (torch.randn(B, 1, start, D), torch.randn(B, 1, start, D)) if start else None
    return (
        torch.randn(B, T, D), kept, lambda x: x - x.mean(-1, keepdim=True), attend,
        lambda x: x / x.norm(dim=-1, keepdim=True), lambda x: torch.relu(x) * 3 + 1,
    )


def _triangle(T, S):
    return torch.ones(T, S, dtype=torch.bool).tril(S - T)


def _blocks(mask=_triangle, handed=True, back=True,
            first=lambda x, norm, y: x + y, norm=True, second=lambda x, y: x + y,
            reads=lambda x, old, norm: norm(x)):
    """A block with one thing done in another way."""

    def block(x, kept, norm_1, attend, norm_2, feed_forward):
        S = x.size(1) + (kept[0].size(2) if kept is not None and handed else 0)
        y = norm_1(x) if norm else x
        attended, new = attend(y, mask(x.size(1), S), kept if handed else None)
        after = first(x, norm_1, attended)
        after = second(after, feed_forward(reads(after, x, norm_2)))
        return after, (new if back else kept)

    return block


def _flat(result, *args):
    expect(isinstance(result, (tuple, list)) and len(result) == 2,
           "return two things: x, and what attend gave you to keep")
    x, kept = result
    expect(kept is None or (isinstance(kept, (tuple, list)) and len(kept) == 2),
           "what is kept is what attend returned as its second value: hand it on as it is")
    return x, *(kept if kept is not None else (torch.zeros(1),) * 2)


@exercise(
    "own.block", inputs=_block_parts, parts=("x", "keys", "values"), view=_flat,
    vary=(dict(T=4, start=0), dict(B=3, T=1, start=4, D=6), dict(B=1, T=4, start=3, D=3)),
    hint=(
        "you need a layer without cross-attention, whose mask knows how many tokens came before",
        "with T new tokens after `start` kept ones, new token i reads start + i + 1: a mask of "
        "shape (T, start + T)",
        "torch.ones(T, start + T, dtype=torch.bool).tril(start); then two sublayers, each with "
        "its norm before it and its sum after it",
    ),
    wrong="the output is not that of a pre-norm block under the causal mask",
    shape="a block keeps the shape of x",
    slips={
        "your mask sits in the wrong corner: new token i is at position start + i, so it reads "
        "start + i + 1 tokens": _blocks(lambda T, S: torch.ones(T, S, dtype=torch.bool).tril()),
        "your new tokens read those that come after them: hide the future": (
            _blocks(lambda T, S: None)
        ),
        "your mask is upside down: True must mean 'may attend'": (
            [_blocks(lambda T, S: ~_triangle(T, S)),
             _blocks(lambda T, S: _triangle(T, S).flip(0))]
        ),
        "a token may read itself: keep the diagonal": (
            _blocks(lambda T, S: torch.ones(T, S, dtype=torch.bool).tril(S - T - 1))
        ),
        "what is kept is not handed to attend, so the new tokens do not see what came before": (
            _blocks(handed=False)
        ),
        "return what attend gave you to keep; yours is the earlier one": _blocks(back=False),
        "you add the normalised input: x itself must stay untouched, x + attend(norm_1(x))": (
            _blocks(first=lambda x, norm, y: norm(x) + y)
        ),
        "attention reads x without a norm": _blocks(norm=False),
        "that is post-norm, the norm after the sum; here it comes before the sublayer": (
            lambda x, kept, n1, attend, n2, forward: _blocks(
                norm=False, first=lambda x, norm, y: n1(x + y), second=lambda x, y: n2(x + y),
                reads=lambda x, old, norm: x)(x, kept, n1, attend, n2, forward)
        ),
        "the feed-forward network reads x without a norm": (
            _blocks(reads=lambda x, old, norm: x)
        ),
        "the feed-forward network must read what comes out of attention, not the original x": (
            _blocks(reads=lambda x, old, norm: norm(old))
        ),
        "attention is missing its residual, x + attend(norm_1(x))": (
            _blocks(first=lambda x, norm, y: y)
        ),
        "the feed-forward network is missing its residual": _blocks(second=lambda x, y: y),
        "the two norms are swapped": lambda x, kept, n1, attend, n2, forward: (
            _blocks()(x, kept, n2, attend, n1, forward)
        ),
        "the second sublayer has a norm of its own, norm_2": (
            lambda x, kept, n1, attend, n2, forward: _blocks()(x, kept, n1, attend, n1, forward)
        ),
    },
)
def block(x, kept, norm_1, attend, norm_2, feed_forward):
    start = 0 if kept is None else kept[0].size(2)
    mask = _triangle(x.size(1), start + x.size(1))
    attended, kept = attend(norm_1(x), mask, kept)
    x = x + attended
    return x + feed_forward(norm_2(x)), kept


# ---------------------------------------------------------------------------------- T5's positions


def _tables(n_queries=3, n_keys=9, start=4, H=2, both_ways=True):
    return n_queries, n_keys, start, both_ways, torch.randn(32, H)


def _run_bias(part, n_queries, n_keys, start, both_ways, table):
    module = build(part, (table.size(1), both_ways), {"table.weight": tuple(table.shape)})
    return computed(module, {"table.weight": table}, (n_queries, n_keys, start))


def _off_the_edges(result, n_queries, n_keys, start, both_ways, table):
    """Without the distances at which a bucket begins exactly: there a rounding error decides."""
    if not both_ways or tuple(getattr(result, "shape", ())[1:]) != (n_queries, n_keys):
        return result
    away = (torch.arange(n_keys) - torch.arange(start, start + n_queries)[:, None]).abs()
    return result.masked_fill((away == 16) | (away == 32) | (away == 64), 0.0)


def _biased(way=1, used=1, both=None, far=lambda away, half: math.log(128 / half), scale=1,
            cut=torch.floor, first=lambda distance: distance > 0, hides=True, order=(2, 0, 1),
            sizes=(32, 16)):
    """T5's positions with one thing done in another way."""

    def bias(n_queries, n_keys, start, both_ways, table):
        both_ways = both_ways if both is None else both
        query = torch.arange(n_queries)[:, None] + start * used
        distance = way * (torch.arange(n_keys) - query)
        away = distance.abs() if both_ways or not hides else (-distance).clamp(min=0)
        n = sizes[both_ways]
        half = n // 2
        grown = half + cut((away / half).clamp(min=1).log() / far(away, half) * half).long()
        bucket = torch.where(away < half, away, grown) if scale else away
        bucket = bucket.clamp(max=n - 1)
        if both_ways:
            bucket = bucket + 16 * first(distance)
        return table[bucket].permute(*order)

    return bias


@exercise(
    "own.relative_bias", inputs=_tables, gradients=True, view=_off_the_edges,
    vary=(dict(both_ways=False), dict(n_queries=1, n_keys=90, start=80, both_ways=False, H=3),
          dict(n_queries=2, n_keys=260, start=70, H=1), dict(n_queries=6, n_keys=6, start=0),
          dict(n_queries=2, n_keys=200, start=198, both_ways=False)),
    hint=(
        "find a distance for each query and key, a bucket for each distance, and a row of the "
        "table for each bucket; then move the heads to the front",
        "the queries are at start, start + 1, ..., and the distances are key - query[:, None]; "
        "compute the near and the far buckets, and choose between them with torch.where",
        "with half = n // 2, far: half + (log(d / half) / log(128 / half) * half).long(), at most "
        "n - 1; where d is 0, take the log of something else: torch.where evaluates both sides",
    ),
    adapt=_with_weights(_run_bias), shrinks=False, tolerance=1e-5,
    wrong="with the same table, this is not T5's number for each head, query and key",
    shape="return (n_heads, n_queries, n_keys), a number for each head and each pair",
    slips=formulas({
        "the distance is the key's position minus the query's; yours is the other way round": (
            _biased(way=-1)
        ),
        "`start` is not used: with a cache, query 0 isn't at position 0": _biased(used=0),
        "without both_ways, all 32 buckets are for the keys behind: half of yours are empty": (
            [_biased(both=True), _biased(sizes=(16, 16))]
        ),
        "with both_ways, buckets 0 to 15 are for one side and 16 to 31 for the other: yours has "
        "one side only": [_biased(both=False), _biased(first=lambda distance: distance > 10**6)],
        "far distances share buckets, whose width grows: take the logarithm": _biased(scale=0),
        "the logarithm reaches n / 2 at distance 128: divide by log(128 / half)": (
            [_biased(far=lambda away, half: math.log(128)), _biased(far=lambda away, half: 1.0),
             _biased(far=lambda away, half: math.log(32 / half + 1))]
        ),
        "the logarithm is rounded down to a whole number; yours isn't": (
            [_biased(cut=torch.round), _biased(cut=torch.ceil)]
        ),
        "16 is added for keys after the query; you add it for those before": (
            _biased(first=lambda distance: distance < 0)
        ),
        "distance 0 is bucket 0: only keys after the query get 16 more": (
            _biased(first=lambda distance: distance >= 0)
        ),
        "without both_ways, a key after the query counts as distance 0": _biased(hides=False),
        "queries and keys are swapped in your result": _biased(order=(2, 1, 0)),
    }),
)
def relative_bias(n_queries, n_keys, start, both_ways, table):
    return _biased()(n_queries, n_keys, start, both_ways, table)


# ---------------------------------------------------------------------------- what BERT learns from


def _captions(B=3, T=40, mask_id=30, special=True):
    ids = torch.randint(4, mask_id, (B, T))
    if special:
        ids[:, 0], ids[:, -2], ids[0, -5:], ids[:, 7] = 1, 2, 0, 3
    return (ids, mask_id, torch.rand(B, T), torch.rand(B, T), torch.randint(4, mask_id, (B, T)))


def _hiding(rate=0.15, parts=(0.8, 0.9), above=3, fate=True, told=lambda chosen, read, ids: chosen,
            swap=False, place=None):
    """BERT's masking with one thing done in another way."""

    def hide(ids, mask_id, chance, fate_, other):
        chosen = (chance < rate) & (ids > above)
        fates = fate_ if fate else chance / rate
        masked, exchanged = fates < parts[0], (fates >= parts[0]) & (fates < parts[1])
        if swap:
            masked, exchanged = exchanged, masked
        mask = mask_id if place is None else place
        read = ids.masked_fill(chosen & masked, mask)
        read = torch.where(chosen & exchanged, other, read)
        return read, told(chosen, read, ids)

    return hide


def _two_tensors(result, *args):
    expect(isinstance(result, (tuple, list)) and len(result) == 2,
           "return two tensors: what the model reads, and which positions it must guess")
    expect(getattr(result[1], "dtype", None) == torch.bool,
           "the positions to be guessed must be a boolean tensor")
    return result


@exercise(
    "own.hide_tokens", inputs=_captions, parts=("read", "chosen"), view=_two_tensors,
    vary=(dict(B=4, T=60, mask_id=50), dict(B=5, T=80, mask_id=12, special=False)),
    hint=(
        "first decide which tokens are chosen, then what becomes of them",
        "chosen: chance below 0.15, and an id above 3. Its fate: below 0.8 it is hidden, below "
        "0.9 replaced, otherwise it stays",
        "torch.where(chosen & (fate < 0.8), mask_id, ...), and `other` from 0.8 up to 0.9",
    ),
    wrong="either what is read or what must be guessed isn't right",
    slips={
        "special tokens are chosen too: ids 0 to 3 are never hidden": _hiding(above=-1),
        "some special tokens are chosen: ids 0 to 3 are never hidden": (
            [_hiding(above=0), _hiding(above=1), _hiding(above=2)]
        ),
        "id 4 is a word like any other": _hiding(above=4),
        "all chosen tokens become <mask>: of ten, one is replaced and one stays": (
            _hiding(parts=(1.0, 1.0))
        ),
        "none of your chosen tokens stays; with a fate of 0.9 or more, one should": (
            _hiding(parts=(0.8, 1.0))
        ),
        "none of your chosen tokens is replaced: from 0.8 to 0.9 it becomes `other`": (
            _hiding(parts=(0.8, 0.8))
        ),
        "eight of ten become <mask> and one is replaced; yours are the other way round": (
            [_hiding(parts=(0.1, 0.9)), _hiding(swap=True)]
        ),
        "all chosen positions must be guessed, including those whose token stays": (
            _hiding(told=lambda chosen, read, ids: read != ids)
        ),
        "all chosen positions must be guessed, not only those that became <mask>": (
            lambda ids, mask_id, *rest: (
                (read := _hiding()(ids, mask_id, *rest)[0]), read == mask_id
            )
        ),
        "15 in 100 tokens are chosen: chance < 0.15": (
            [_hiding(rate=0.85), _hiding(rate=0.8), _hiding(rate=1.0)]
        ),
        "`chance` decides which tokens are chosen, `fate` what becomes of them: they are two "
        "separate draws": (
            _hiding(fate=False)
        ),
        "use mask_id": _hiding(place=3),
        "give the second result as True at chosen positions; yours is the other way round": (
            _hiding(told=lambda chosen, read, ids: ~chosen)
        ),
    },
)
def hide_tokens(ids, mask_id, chance, fate, other):
    chosen = (chance < 0.15) & (ids > 3)  # (B, T)
    read = torch.where(chosen & (fate < 0.9), other, ids)
    return torch.where(chosen & (fate < 0.8), mask_id, read), chosen


# --------------------------------------------------------------------------------------- pictures

_given = vision_transformer.repaired_patches


@exercise(
    "own.patches", inputs=_given.inputs, vary=_given.vary, gradients=True, wrong=_given.wrong,
    shape=_given.shape, forbid=("unfold",), slips=_given.slips,
    hint=(
        "cut both axes in two, put the four parts in order, and join them",
        "images.unflatten(2, (-1, patch)) makes rows of patches, and rows inside a patch; the "
        "same for the columns",
        "six axes: (B, C, rows, patch, columns, patch) become (B, rows, columns, C, patch, patch)",
    ),
)
def patches(images, patch):
    return _given.reference(images, patch)


# ----------------------------------------------------------------------------------------- acting


class Corridor:
    """A little world: its state is (place, step), an action adds its number to the place."""

    def __init__(self, length, rewards):
        self.length, self.rewards, self.step_, self.place = length, rewards, None, 0.0
        self.taken = []

    def state(self):
        return torch.tensor([self.place, float(self.step_)])

    def reset(self):
        expect(self.step_ is None, "reset the world once, at the beginning")
        self.step_ = 0
        return self.state()

    def step(self, action):
        expect(self.step_ is not None, "reset the world before the first step")
        expect(self.step_ < self.length, "the episode has ended: stop when `ended` is True")
        expect(isinstance(action, int), "pass the action of `choose` to the world unchanged")
        self.taken.append(action)
        reward = self.rewards[self.step_]
        self.step_, self.place = self.step_ + 1, self.place + action + 0.5
        return self.state(), reward, self.step_ == self.length


WORLDS = [  # (rewards, asked, context)
    ([1.0, 2.0, 4.0], 9.0, 5), ([3.0, 0.0, 5.0, 1.0, 2.0, 7.0], 20.0, 3), ([1.0, 6.0], 2.0, 1),
]


def _played(answer, rewards, asked, context):
    """Play one episode, and compare what `choose` was shown with what it should be shown."""
    world, seen = Corridor(len(rewards), rewards), []

    def choose(returns, states, actions, steps):
        t = len(seen)
        first = max(0, t + 1 - context)
        shown = {"returns": returns, "states": states, "actions": actions, "steps": steps}
        lengths = {name: len(value) for name, value in shown.items()}
        many = t + 1 - first
        for name, n in lengths.items():
            expect(n == many, f"in step {t} choose is shown the last {counted(context, 'step')} "
                   f"at most, so here {many} of the {name}; you gave {n}")
        where = f"in step {t} of a world that pays {rewards}, with {asked:g} asked for"
        right = [asked - sum(rewards[:i]) for i in range(first, t + 1)]
        given = torch.as_tensor(returns).flatten().tolist()
        _expect_returns(given, right, where, rewards, asked, first, t)
        places = [sum(world.taken[:i]) + 0.5 * i for i in range(first, t + 1)]
        expect(torch.as_tensor(states)[:, 0].tolist() == places,
               f"{where}, your states aren't those that the world gave, oldest first")
        expect([int(a) for a in actions][:-1] == world.taken[first:],
               f"{where}, the actions before the last are those that were taken: "
               f"{world.taken[first:]}, yours are {[int(a) for a in actions][:-1]}")
        expect([int(s) for s in steps] == [*range(first, t + 1)],
               f"{where}, steps are numbers within the episode, here {[*range(first, t + 1)]}; "
               f"yours are {[int(s) for s in steps]}")
        seen.append(t)
        return (t * t + 1) % 3

    total = answer(world, choose, asked, context)
    expect(len(seen) == len(rewards), f"the episode has {counted(len(rewards), 'step')}, and you "
           f"called choose {counted(len(seen), 'time')}: go on until `ended` is True")
    expect(isinstance(total, (int, float, torch.Tensor)) and float(total) == sum(rewards),
           f"return what was earned, here {sum(rewards):g}; yours is {total!r:.40}")


def _expect_returns(given, right, where, rewards, asked, first, t):
    if given == right:
        return
    told = f"{where}, the returns still to come are {right}; yours are {given}"
    steps = range(first, t + 1)
    for sentence, other in {
        "the return asked for never goes down: subtract what has been earned": [
            asked for i in steps],
        "that is what has been earned so far; you ask for what is still to come": [
            sum(rewards[:i]) for i in steps],
        "a step's own reward is not earned yet when its action is chosen": [
            asked - sum(rewards[: i + 1]) for i in steps],
        "only the last reward is subtracted": [
            asked - (rewards[i - 1] if i else 0) for i in steps],
        "each step keeps the return that it had then": [right[-1] for i in steps],
    }.items():
        expect(given != other, f"{told}: {sentence}")
    raise Wrong(told)


def _play(wish=lambda asked, rewards, i: asked - sum(rewards[:i]), window=lambda context: context,
          own=False, steps=lambda first, t: list(range(first, t + 1)), most=1000, gain=sum):
    """The loop with one thing done in another way."""

    def play(env, choose, asked, context):
        state, states, actions, rewards, ended = env.reset(), [], [], [], False
        while not ended and len(states) < most:
            states.append(state)
            t = len(states) - 1
            first = max(0, t + 1 - window(context))
            returns = torch.tensor([float(wish(asked, rewards, i)) for i in range(first, t + 1)])
            taken = [*actions, 0][first:] if not own else [0, *actions][first:]
            action = choose(returns, torch.stack(states[first:]), torch.tensor(taken),
                            torch.tensor(steps(first, t)))
            state, reward, ended = env.step(action)
            actions.append(action)
            rewards.append(reward)
        return gain(rewards)

    return play


@judged(
    "own.play_for",
    hint=(
        "write a loop: note the state, work out what is still to be earned, choose, take the "
        "step, and note the reward",
        "the return of step i is asked - sum(rewards[:i]); keep a list for each of the four, and "
        "show the last `context` entries",
        "the newest step has no action yet: put any number in its place, such as 0",
    ),
    example=_play(),
    slips={
        "the return asked for never goes down": _play(wish=lambda asked, rewards, i: asked),
        "that is what has been earned so far": _play(wish=lambda a, rewards, i: sum(rewards[:i])),
        "only the last reward is subtracted": (
            _play(wish=lambda asked, rewards, i: asked - (rewards[i - 1] if i else 0))
        ),
        "each step keeps the return that it had then": (
            _play(wish=lambda asked, rewards, i: asked - sum(rewards))
        ),
        "the last 3 steps at most": _play(window=lambda context: 1000),
        "the actions before the last": _play(own=True),
        "numbers within the episode": _play(steps=lambda first, t: list(range(t + 1 - first))),
        "go on until": _play(most=2),
        "return what was earned": _play(gain=len),
    },
)
def play_for(answer):
    """What `choose` is shown in each step, in three little worlds, and what comes back."""
    for world in WORLDS:
        _played(answer, *world)


# ---------------------------------------------------------------------------------------- a state


def _written(B=2, H=2, T=4, M=3, K=2, rows=False, replace=False, begun=True):
    log_decay = -torch.rand(B, H, T, M if rows else 1)
    state = torch.randn(B, H, M, K) if begun else None
    return (torch.randn(B, H, T, M), F.normalize(torch.randn(B, H, T, M), dim=-1),
            torch.randn(B, H, T, K), log_decay, torch.rand(B, H, T, 1), replace, state)


def _outputs_and_state(result, *args):
    expect(isinstance(result, (tuple, list)) and len(result) == 2,
           "return two things: the outputs of all tokens, and the state after the last")
    return tuple(result)


def _scanned(fade=torch.exp, early=False, late=False, delta=lambda replace: replace, firm=True,
             only_value=False, asks=lambda faded, old: faded, begun=True, last=True, begin=None):
    """The recurrence with one thing done in another way."""

    def scan(q, k, v, log_decay, write, replace, state):
        if state is None or not begun:
            state = v.new_zeros(*k.shape[:2], k.size(-1), v.size(-1))
        given, outputs = state, []
        for t in range(q.size(2)):
            old, left = state, fade(log_decay[:, :, t, :, None])
            state = old if late else left * old
            read = (q[:, :, t, None] @ state)[:, :, 0]
            says = (k[:, :, t, None] @ asks(state, old))[:, :, 0] * float(delta(replace))
            strength = write[:, :, t] if firm else 1.0
            new = strength * v[:, :, t] - says if only_value else strength * (v[:, :, t] - says)
            state = state + k[:, :, t, :, None] * new[:, :, None]
            state = left * state if late else state
            outputs.append(read if early else (q[:, :, t, None] @ state)[:, :, 0])
        return torch.stack(outputs, 2), state if last else given

    return scan


@exercise(
    "own.scan", inputs=_written, parts=("outputs", "state"), view=_outputs_and_state,
    vary=(dict(replace=True), dict(B=1, T=3, rows=True, begun=False), dict(H=3, T=1, K=4),
          dict(B=3, M=2, K=5, rows=True, replace=True), dict(B=4, T=6, replace=True, begun=False)),
    hint=(
        "write a loop over the tokens that carries on only the state: let it fade, write to it, "
        "then read from it",
        "fading is log_decay[:, :, t, :, None].exp() * state; what is written is a column times a "
        "row, k[:, :, t, :, None] * new[:, :, None]; what is read is q[:, :, t, None] @ state",
        "with replace, take k[:, :, t, None] @ state from the value, after fading and before it "
        "is multiplied by `write`",
    ),
    shrinks=False, tolerance=1e-4,
    laws=lambda answer: _gradients_reach_the_input(answer, _written),
    wrong="these are not the outputs and the state of the recurrence",
    shape="outputs are (B, H, T, K), and the state is (B, H, M, K)",
    slips={
        "log_decay is a logarithm: the state is multiplied by exp(log_decay)": (
            [_scanned(fade=lambda x: x), _scanned(fade=lambda x: -x)]
        ),
        "nothing fades: multiply the state by exp(log_decay) before each token writes": (
            _scanned(fade=torch.ones_like)
        ),
        "a token writes at full strength and fades from the next one on: fade first, then write": (
            _scanned(late=True)
        ),
        "each token reads after it has written, so its own write is included": _scanned(early=True),
        "replace is not used: with it, only what is missing is written, the value less what the "
        "state holds under the key": _scanned(delta=lambda replace: False),
        "without replace, the whole value is written": _scanned(delta=lambda replace: True),
        "you use replace the wrong way round": _scanned(delta=lambda replace: not replace),
        "`write` is not used: it multiplies what a token writes": (
            _scanned(firm=False)
        ),
        "with replace, `write` multiplies the whole difference, not only the value": (
            _scanned(only_value=True)
        ),
        "with replace, read the state after it has faded": (
            _scanned(asks=lambda faded, old: old)
        ),
        "the state that you are given is not used: begin with zeros only if it is None": (
            _scanned(begun=False)
        ),
        "return the state after the last token; yours is the earlier one": _scanned(last=False),
    },
)
def scan(q, k, v, log_decay, write, replace, state):
    return _scanned()(q, k, v, log_decay, write, replace, state)


# --------------------------------------------------------------------------------- others' guesses


def _guesses(n=3, V=5, agree=1.0):
    """Distributions of a target and of a draft, its guesses, and a draw for each of them."""
    p = torch.rand(n + 1, V) + 0.05
    q = torch.rand(n, V) + 0.05 + agree * 3 * p[:n]
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    return p, q, torch.randint(V, (n,)), torch.rand(n)


def _number_and_chances(result, *args):
    expect(isinstance(result, (tuple, list)) and len(result) == 2,
           "return two things: how many guesses stay, and the distribution of the next token")
    n, after = result
    expect(isinstance(n, (int, torch.Tensor)) and not isinstance(n, bool)
           and getattr(n, "numel", lambda: 1)() == 1,
           f"how many guesses stay is a whole number; yours is {n!r:.40}")
    return torch.as_tensor(float(n)), after


def _kept(stays=lambda u, p, q: u * q < p, chances=lambda p, q: (p - q).clamp(min=0), scaled=True,
          place=lambda i, n: i, whole=lambda p, n: p[-1], stops=True):
    """The rule of acceptance with one thing done in another way."""

    def keep(p, q, guesses, u):
        n, good = len(guesses), []
        for i, x in enumerate(guesses.tolist()):
            good.append(bool(stays(u[i], p[i, x], q[i, x])))
        kept = good.index(False) if stops and False in good else sum(good)
        if kept == n:
            return kept, whole(p, n)
        after = chances(p[place(kept, n)], q[kept])
        return kept, after / after.sum() if scaled else after

    return keep


def _comes_out_as_p(answer):
    """On an alphabet of three, two guesses: the first two tokens have exactly the target's
    probabilities. All p / q here are multiples of a half, so four draws a guess stand for all.
    """
    first = torch.tensor([0.25, 0.125, 0.625])
    second = torch.tensor([[0.5, 0.5, 0.0], [0.125, 0.625, 0.25], [0.0, 0.25, 0.75]])
    q, last = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.2, 0.3, 0.5])
    draws = (0.125, 0.375, 0.625, 0.875)
    found, total = torch.zeros(3), torch.zeros(3, 3)
    for a in range(3):
        for b in range(3):
            p = torch.stack([first, second[a], last])
            for u in draws:
                for w in draws:
                    kept, after = answer(p, torch.stack([q, q]), torch.tensor([a, b]),
                                         torch.tensor([u, w]))
                    share = q[a] * q[b] / 16
                    if int(kept) == 0:
                        found = found + share * after
                        continue
                    found[a] = found[a] + share
                    if int(kept) == 1:
                        total[a] = total[a] + share * after
                    else:
                        total[a, b] = total[a, b] + share
    shown = ", ".join(f"{x:.3f}" for x in found.tolist())
    expect((found - first).abs().max() < 1e-4,
           f"in a language of three tokens, the first one written has the probabilities ({shown}), "
           "not (0.250, 0.125, 0.625)")
    after_first = total / total.sum(-1, keepdim=True)
    expect((after_first - second).abs().max() < 1e-4,
           "the first token comes out as it should, but the one after a kept guess doesn't")


@exercise(
    "own.keep_guesses", inputs=_guesses, parts=("kept", "next"), view=_number_and_chances,
    vary=(dict(n=1, V=4), dict(n=4, V=6, agree=5.0), dict(n=2, V=3, agree=0.0),
          dict(n=0, V=4), dict(n=5, V=4, agree=20.0), dict(n=3, V=7)),
    hint=(
        "go through the guesses in order, and stop at the first one that is rejected",
        "guess x at place i stays if u[i] < p[i, x] / q[i, x]; without a division: "
        "u[i] * q[i, x] < p[i, x]",
        "at the first rejected guess, (p[i] - q[i]).clamp(min=0) divided by its sum; if all "
        "stay, p[-1]",
    ),
    shrinks=False, tolerance=1e-5, laws=_comes_out_as_p,
    wrong="these aren't the number of guesses that stay and the next token's distribution",
    shape="the distribution of the next token has a number for each token, (V,)",
    slips={
        "after a rejected guess, the token is drawn from the excess of p over q, (p - q)+; you "
        "draw from p itself": _kept(chances=lambda p, q: p),
        "take the part in which p exceeds q; yours is the part in which q exceeds p": (
            _kept(chances=lambda p, q: (q - p).clamp(min=0))
        ),
        "a difference below 0 counts as 0; you take its absolute value": (
            _kept(chances=lambda p, q: (p - q).abs())
        ),
        "the differences below 0 are still in your distribution": (
            _kept(chances=lambda p, q: p - q, scaled=False)
        ),
        "divide by the sum: a distribution sums to 1": _kept(scaled=False),
        "once a guess is rejected, those after it are worth nothing: stop there": (
            _kept(stops=False)
        ),
        "you have p / q upside down: a guess that the draft makes too often must be thinned out": (
            [_kept(stays=lambda u, p, q: u * p < q), _kept(stays=lambda u, p, q: u * q > p)]
        ),
        "a guess stays with probability p / q; yours stays with probability p": (
            _kept(stays=lambda u, p, q: u < p)
        ),
        "whether a guess stays is a matter of chance; yours stays if p is at least q": (
            _kept(stays=lambda u, p, q: p >= q)
        ),
        "you keep every guess, even those that should be "
        "rejected": _kept(stays=lambda u, p, q: True),
        "p[i] is the distribution at the place of guess i; yours is that of one place later": (
            _kept(place=lambda i, n: i + 1)
        ),
        "if all guesses stay, one more token is written, from the last distribution p[n]": (
            [_kept(whole=lambda p, n: p[n - 1]), _kept(whole=lambda p, n: p[0])]
        ),
    },
)
def keep_guesses(p, q, guesses, u):
    return _kept()(p, q, guesses, u)


# ------------------------------------------------------------------------------------- preferences


def _log_ratios(n=5, price=0.5, far=1.0):
    return *(-8 + far * torch.randn(n) for _ in range(4)), price


def _dpo(margin=lambda b, w, b0, w0, price: price * ((b - b0) - (w - w0)), sign=1, mean=True,
         of=F.logsigmoid):
    def loss(better, worse, better_before, worse_before, price):
        each = -of(sign * margin(better, worse, better_before, worse_before, price))
        return each.mean() if mean else each.sum()

    return loss


@exercise(
    "own.dpo", inputs=_log_ratios, gradients=True,
    vary=(dict(n=4, price=0.1), dict(n=1, price=2.0), dict(n=7, price=1.0, far=2.0),
          dict(n=3, price=0.25)),
    hint=(
        "find a log-ratio to the reference for each of the two texts, then the loss of a choice "
        "between two rewards",
        "a text's reward is price * (its log-probability now - its log-probability before)",
        "minus the mean of logsigmoid(reward of the better one - reward of the worse one)",
    ),
    shrinks=False, tolerance=1e-5, shape="the loss should be one number",
    wrong="this is not how surprising the choices are, if rewards are price times log-ratios",
    slips={
        "the reference is missing: a reward is how much likelier a text has become": (
            _dpo(lambda b, w, b0, w0, price: price * (b - w))
        ),
        "the worse text is missing: a choice is about the difference of two rewards": (
            _dpo(lambda b, w, b0, w0, price: price * (b - b0))
        ),
        "the price is missing: it should multiply both log-ratios": (
            _dpo(lambda b, w, b0, w0, price: (b - b0) - (w - w0))
        ),
        "the price multiplies the log-ratios; you divide by it": (
            _dpo(lambda b, w, b0, w0, price: ((b - b0) - (w - w0)) / price)
        ),
        "the price belongs inside the sigmoid, not in front of the loss": (
            lambda b, w, b0, w0, price: -price * F.logsigmoid((b - b0) - (w - w0)).mean()
        ),
        "your difference has the wrong sign: better minus worse, and now minus before": (
            _dpo(sign=-1)
        ),
        "a loss goes down: the minus sign in front is missing": (
            lambda *args: -_dpo()(*args)
        ),
        "the two log-ratios are added; a choice is about their difference": (
            _dpo(lambda b, w, b0, w0, price: price * ((b - b0) + (w - w0)))
        ),
        "the logarithm is missing: the loss is -log sigmoid": _dpo(of=torch.sigmoid),
        "take the mean over the pairs; yours is the sum": _dpo(mean=False),
        "each pair has a loss of its own: the mean comes after logsigmoid": (
            lambda b, w, b0, w0, price: -F.logsigmoid(price * ((b - b0) - (w - w0)).mean())
        ),
    },
)
def dpo(better, worse, better_before, worse_before, price):
    return _dpo()(better, worse, better_before, worse_before, price)
