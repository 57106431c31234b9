"""The laws of the parts of your own Transformer: what `exercises.own` demands of each.

Where a chapter has an exercise for the same thing, its check serves here as well: the mask of the
decoder, LayerNorm, the two layers. A part with weights is a class; `_with_weights` makes a function
of it, which is compared with the formula on weights of the check's own.
"""

import inspect
import itertools
import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from exercises.checks import (
    decoder,
    encoder,
    exercise,
    expect,
    judged,
    masks,
    normalization,
    positional_encodings,
    same,
)
from exercises.checks.framework import NotAttempted, Wrong, clone, untouched
from transformer_lib.decoding import finished_score

# ----------------------------------------------------------------------------------------- masks


def _ids(B=2, S=5, pad_id=0):
    ids = torch.randint(10, 20, (B, S))
    ids[0, S - 2 :] = pad_id
    return ids, pad_id


@exercise(
    "own.padding_mask", inputs=_ids, vary=(dict(B=3, S=6, pad_id=7), dict(B=5, S=5, pad_id=9)),
    dtype=torch.bool, hint="compare the ids with pad_id, then give the result two more axes",
    shape="the mask must have the shape (B, 1, 1, S), which fits (B, n_heads, T_query, S)",
    wrong="the mask must be True at real tokens and False at padding",
    forbid=("padding_mask", "decoder_mask"),
    slips={
        "your mask is upside down: True must mean 'may attend'": (
            lambda ids, pad_id: (ids == pad_id)[:, None, None]
        ),
        "use pad_id: with pad_id 7, id 0 is a word like any other": (
            lambda ids, pad_id: (ids != 0)[:, None, None]
        ),
    },
)
def padding_mask(ids, pad_id):
    real = ids != pad_id  # (B, S)
    return real[:, None, None, :]


# ------------------------------------------------------------------------------------- attention


def _attended(B=2, H=3, T=4, S=5, K=8, masked="pairs"):
    q, k, v = torch.randn(B, H, T, K), torch.randn(B, H, S, K), torch.randn(B, H, S, K)
    mask = torch.rand(B, 1, T, S) < 0.6
    mask[..., 0] |= ~mask.any(-1)  # no empty row
    if masked == "keys":
        mask = mask[:, :, :1]
    if masked == "a row":
        mask[0, 0, 1] = False
    return q, k, v, mask if masked else None


def _attention(divisor=None, hidden=-math.inf, flip=False, after=False, axis=-1, empty=0.0,
               blind=False, weights_only=False, twice=False):
    """Attention with one thing done in another way."""

    def attend(q, k, v, mask=None):
        scores = q @ k.mT / (math.sqrt(q.size(-1)) if divisor is None else divisor(q, k))
        nothing = torch.zeros_like(scores[..., :1], dtype=torch.bool)
        if mask is not None and not blind:
            shown = (~mask if flip else mask).expand_as(scores)
            nothing = ~shown.any(-1, keepdim=True)
            if not after:
                scores = scores.masked_fill(~shown, hidden)
        weights = scores.masked_fill(nothing & (empty == 0.0), 0.0).softmax(axis)
        if (after or twice) and mask is not None:
            weights = weights * mask
        weights = weights.masked_fill(nothing, 0.0) if empty == 0.0 else weights
        return weights if weights_only else weights @ v

    return attend


def _output_alone(result, *args):
    expect(not isinstance(result, tuple), "return only the output, without the weights")
    return result


@exercise(
    "own.attention", inputs=_attended, gradients=True, view=_output_alone,
    vary=(dict(T=5, S=5, K=6, masked="keys"), dict(B=1, T=3, masked=None), dict(masked="a row")),
    hint="compute the scores, divide them, hide what may not be seen, take the softmax, and form "
         "the weighted sum",
    wrong="the output is not that of masked scaled dot-product attention",
    shape="one output per query",
    forbid=("scaled_dot_product_attention", "multi_head_attention_forward"),
    slips={
        "you forgot to divide the scores by sqrt(d_k)": _attention(lambda q, k: 1.0),
        "you divided by d_k; the divisor is its square root": _attention(lambda q, k: q.size(-1)),
        "the divisor is the root of d_k, the last axis of q, not of the number of keys": (
            _attention(lambda q, k: math.sqrt(k.size(-2)))
        ),
        "the mask is not used: hidden keys get weight": _attention(blind=True),
        "you hide the pairs that may attend: True means 'may attend', so fill where ~mask": (
            [_attention(flip=True, empty=None), _attention(flip=True, hidden=-1e9, empty=None)]
        ),
        "you deleted weights after the softmax, so the rows no longer sum to 1: hide the scores "
        "before the softmax": _attention(after=True),
        "a score of 0 is not hidden, as exp(0) = 1: use minus infinity": _attention(hidden=0.0),
        "your softmax runs over the queries; it must run over the keys, dim=-1": (
            [_attention(axis=-2), _attention(axis=-2, hidden=-1e9, twice=True, empty=None)]
        ),
        "a query that may attend to nothing gives NaN: its output must be zeros": (
            _attention(empty=None)
        ),
        "a query that may attend to nothing averages the hidden values: its output must be zeros": (
            _attention(hidden=-1e9, empty=None)
        ),
        "you return the weights; return weights @ v": _attention(weights_only=True),
    },
)
def attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, T, S)
    if mask is None:
        return scores.softmax(-1) @ v
    scores = scores.masked_fill(~mask, -math.inf)
    nothing = ~mask.any(-1, keepdim=True)
    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    return weights @ v


# -------------------------------------------------------------------------- parts with weights


def build(part, sizes, shapes, *extra):
    """`part(*sizes, *extra)`, or Wrong unless it is a module with the parameters of `shapes`."""
    expect(
        isinstance(part, type) and issubclass(part, nn.Module),
        "this part has weights, so it is a class: expected a subclass of nn.Module, got "
        f"{getattr(part, '__name__', part)!r}",
    )
    if untouched(part.forward):
        raise NotAttempted
    made_with = f"({', '.join([*map(str, sizes), *['attention'] * len(extra)])})"
    try:
        inspect.signature(part).bind(*sizes, *extra)
    except TypeError as error:
        raise Wrong(f"your class cannot be made with {made_with}: {error}") from None
    module = part(*sizes, *extra)
    given = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    if given != shapes:
        missing, surplus = _differing(shapes, given), _differing(given, shapes)
        told = [f"missing {', '.join(missing)}"] * bool(missing)
        told += [f"not expected {', '.join(surplus)}"] * bool(surplus)
        raise Wrong("your class doesn't have the same weights as the library's, so none can be "
        "copied: "
                    + "; ".join(told))
    return module


def _differing(some: dict, others: dict) -> list[str]:
    found = [f"{name} {shape}" for name, shape in some.items() if others.get(name) != shape]
    return found[:2] + ([f"{len(found) - 2} more"] if len(found) > 2 else [])


def computed(module, state: dict, args: tuple):
    """What a module computes with these weights; Wrong if chance has a part in it."""
    with torch.no_grad():
        once = torch.func.functional_call(module, state, clone(args))
    result = torch.func.functional_call(module, state, args)
    if isinstance(once, torch.Tensor) and isinstance(result, torch.Tensor):
        expect(same(once, result), "two calls with the same input differ: leave dropout out, since "
        "the library puts it around your part")
    return result


class Formula:
    """What a wrong class computes, as a function of the arguments and the weights: for slips."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


def formulas(slips):
    return {
        sentence: [*map(Formula, wrong)] if isinstance(wrong, list) else Formula(wrong)
        for sentence, wrong in slips.items()
    }


def _with_weights(run):
    """adapt: of a class, `run(class, *arguments, *weights)`; a Formula stays as it is."""
    return lambda part: part if isinstance(part, Formula) else partial(run, part)


def linear_shapes(**layers):
    """The names and shapes of the weights of linear layers, each (outputs, inputs)."""
    found = {}
    for name, (outputs, inputs) in layers.items():
        found |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
    return found


def head_shapes(d_model):
    return linear_shapes(**{name: (d_model, d_model) for name in ("w_q", "w_k", "w_v", "w_o")})


def feed_forward_shapes(d_model, d_ff):
    return linear_shapes(expand=(d_ff, d_model), contract=(d_model, d_ff))


def norm_shapes(d_model):
    return {"weight": (d_model,), "bias": (d_model,)}


def _projected(B=2, T=4, S=5, H=3, K=4, masked=True):
    D = H * K
    mask = torch.rand(B, 1, T, S) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return (
        torch.randn(B, T, D), torch.randn(B, S, D), torch.randn(B, S, D), mask if masked else None,
        H, torch.randn(4, D, D) / math.sqrt(D), torch.randn(4, D),
    )


def _run_heads(part, query, key, value, mask, n_heads, weights, biases):
    used = []

    def given(q, k, v, mask=None):
        used.append(tuple(q.shape))
        return attention.reference(q, k, v, mask)

    B, T, D = query.shape
    module = build(part, (D, n_heads), head_shapes(D), given)
    state = {}
    for name, weight, bias in zip(("w_q", "w_k", "w_v", "w_o"), weights, biases, strict=True):
        state |= {f"{name}.weight": weight, f"{name}.bias": bias}
    result = computed(module, state, (query, key, value, mask))
    expect(used, "your heads do not call the attention that they were given: keep the third "
           "argument, and call it as attention(q, k, v, mask)")
    return result


def _heads(split=None, join=None, order=(0, 1, 2), blind=False, out=True):
    """Multi-head attention with one thing done in another way."""
    split = split or (lambda x, H: x.unflatten(-1, (H, -1)).transpose(1, 2))
    join = join or (lambda x: x.transpose(1, 2).flatten(2))

    def attend(query, key, value, mask, n_heads, weights, biases):
        inputs = [(query, key, value)[i] for i in order]
        q, k, v = (
            split(F.linear(x, weights[i], biases[i]), n_heads) for i, x in enumerate(inputs)
        )
        joined = join(attention.reference(q, k, v, None if blind else mask))
        return F.linear(joined, weights[3], biases[3]) if out else joined

    return attend


@exercise(
    "own.multi_head_attention", inputs=_projected, gradients=True, view=_output_alone,
    vary=(dict(T=5, H=2, K=6), dict(B=3, T=3, S=3, H=4, K=4), dict(masked=False, H=1, K=5)),
    hint=(
        "project, cut into heads, attend, join the heads, and project again",
        "cut with unflatten(-1, (n_heads, -1)).transpose(1, 2), join with transpose(1, "
        "2).flatten(2); the mask goes to the attention as it is",
    ),
    adapt=_with_weights(_run_heads), shrinks=False,
    wrong="with the same weights, the output is not that of torch.nn.MultiheadAttention",
    shape="one output of d_model numbers per query",
    forbid=("multi_head_attention_forward",),
    slips=formulas({
        "a reshape straight to (B, H, T, K) cuts through the tokens: split the last axis, then "
        "move the heads in front of the tokens": _heads(
            split=lambda x, H: x.reshape(x.size(0), H, x.size(1), -1)
        ),
        "each head takes neighbouring features: split the last axis as (H, K), not (K, H)": (
            _heads(split=lambda x, H: x.unflatten(-1, (-1, H)).permute(0, 3, 1, 2))
        ),
        "the heads are joined in the wrong order: move them behind the tokens, then flatten": (
            _heads(join=lambda x: x.reshape(x.size(0), x.size(2), -1))
        ),
        "your heads are interleaved; each head's slice must stay together": (
            _heads(join=lambda x: x.permute(0, 2, 3, 1).flatten(2))
        ),
        "the mask does not reach the attention": _heads(blind=True),
        "the output is not projected: w_o mixes what the heads found": _heads(out=False),
        "keys and values are swapped: w_k reads the keys, w_v the values": (
            _heads(order=(0, 2, 1))
        ),
        "your values are made from the keys": _heads(order=(0, 1, 1)),
        "your query attends to itself: the keys and values come from the other two arguments": (
            _heads(order=(0, 0, 0), blind=True)
        ),
    }),
)
def multi_head_attention(query, key, value, mask, n_heads, weights, biases):
    return _heads()(query, key, value, mask, n_heads, weights, biases)


def _run_norm(part, x, weight, bias):
    module = build(part, (x.size(-1),), norm_shapes(x.size(-1)))
    return computed(module, {"weight": weight, "bias": bias}, (x,))


@exercise(
    "own.layer_norm", inputs=normalization.layer_norm.inputs, vary=normalization.layer_norm.vary,
    hint=(
        "subtract the mean, divide by the root of the variance, then apply the gain and the bias",
        "divide by d, not by d - 1, and add eps inside the root, before you take it",
    ), adapt=_with_weights(_run_norm),
    wrong="with the same weights, the output differs from torch.nn.LayerNorm",
    shape="the norm keeps the shape", tolerance=1e-4, gradients=True, shrinks=False,
    forbid=normalization.layer_norm.forbid, slips=formulas(normalization.layer_norm.slips),
)
def layer_norm(x, weight, bias):
    return normalization.layer_norm.reference(x, weight, bias)


def _fed(B=2, T=4, D=6, d_ff=10):
    return (torch.randn(B, T, D), torch.randn(d_ff, D), torch.randn(d_ff), torch.randn(D, d_ff),
            torch.randn(D))


def _run_feed_forward(part, x, w_1, b_1, w_2, b_2):
    D, d_ff = w_2.shape
    module = build(part, (D, d_ff), feed_forward_shapes(D, d_ff))
    state = {"expand.weight": w_1, "expand.bias": b_1, "contract.weight": w_2, "contract.bias": b_2}
    return computed(module, state, (x,))


def _network(first=F.relu, last=lambda x: x):
    return lambda x, w_1, b_1, w_2, b_2: last(F.linear(first(F.linear(x, w_1, b_1)), w_2, b_2))


@exercise(
    "own.feed_forward", inputs=_fed, vary=(dict(B=3, D=5, d_ff=8), dict(B=1, T=2, D=4, d_ff=4)),
    hint="widen, apply the ReLU, and come back to the old "
         "width", adapt=_with_weights(_run_feed_forward), shrinks=False,
    wrong="with the same weights, the output is not max(0, x W1 + b1) W2 + b2", gradients=True,
    shape="the feed-forward network keeps the shape of x",
    slips=formulas({
        "the non-linearity is missing: two linear maps in a row are one": (
            _network(first=lambda x: x)
        ),
        "the ReLU comes after the first map, not after the second": (
            _network(first=lambda x: x, last=F.relu)
        ),
        "there is one ReLU too many: nothing should cut the output": _network(last=F.relu),
        "this is GELU; the paper and the model here use ReLU": _network(first=F.gelu),
        "you add x: the residual is the layer's business": (
            lambda x, *weights: x + _network()(x, *weights)
        ),
    }),
)
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = F.linear(x, w_1, b_1).relu()  # (B, T, d_ff)
    return F.linear(hidden, w_2, b_2)


# ------------------------------------------------------------------------------ position, layers


def _rows(encode):
    return lambda max_len, d_model: torch.stack([encode(p, d_model) for p in range(max_len)])


@exercise(
    "own.positional_encoding", inputs=[(6, 4), (20, 12), (256, 8)], tolerance=2e-4,
    hint="make one row for each position, with a sine and a cosine side by side for each pair of "
         "features",
    wrong="that isn't the table of section 3.5", shape="one row per position",
    forbid=("sinusoidal_table",),
    slips={
        sentence: _rows(slip)
        for sentence, slip in positional_encodings.encode_position.slips.items()
    },
)
def positional_encoding(max_len, d_model):
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    angles = position / 10000.0 ** (torch.arange(0, d_model, 2) / d_model)  # (max_len, D / 2)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


decoder_mask, encoder_layer, decoder_layer = masks.decoder_mask, encoder.layer, decoder.layer

# ---------------------------------------------------------------------------- loss and schedule


def _scored(B=3, T=5, V=7, smoothing=0.1, ignore_index=0):
    targets = torch.randint(4, V, (B, T))
    for i in range(1, B):
        targets[i, T - i :] = ignore_index
    return 2 * torch.randn(B, T, V), targets, smoothing, ignore_index


def _smoothed(spread=lambda log_p, target: log_p.mean(-1), ignore=True, mean=True, share=None):
    """The loss with one thing done in another way."""

    def loss(logits, targets, smoothing, ignore_index):
        log_p = logits.log_softmax(-1)
        of_target = log_p.gather(-1, targets[..., None])[..., 0]
        kept = 1 - smoothing if share is None else share(smoothing)
        each = -kept * of_target - smoothing * spread(log_p, of_target)
        real = targets != ignore_index
        if not ignore:
            return each.mean()
        total = (each * real).sum()
        return total / (real.sum() if mean is True else mean(targets))

    return loss


@exercise(
    "own.loss", inputs=_scored, gradients=True, shape="the loss should be one number for the "
                                                      "whole batch",
    vary=(dict(B=2, T=6, V=9, smoothing=0.3, ignore_index=3), dict(V=12, smoothing=0.0),
          dict(B=4, T=6, V=6, smoothing=0.2, ignore_index=1)),
    hint="take log_softmax, add the target's share and everybody's share, leave out the padding, "
         "and divide",
    wrong="your loss differs from that of F.cross_entropy with label_smoothing and ignore_index",
    tolerance=1e-4, forbid=("cross_entropy", "cross_entropy_loss"),
    slips={
        "the smoothing is missing: every token of the vocabulary gets smoothing / V": (
            _smoothed(lambda log_p, target: target)
        ),
        "you spread the smoothing over the wrong tokens only: each of the V tokens gets "
        "smoothing / V, the target included": _smoothed(
            lambda log_p, target: (log_p.sum(-1) - target) / (log_p.size(-1) - 1)
        ),
        "the smoothed part is the mean over the vocabulary; yours is the sum": (
            _smoothed(lambda log_p, target: log_p.sum(-1))
        ),
        "the target keeps 1 - smoothing; yours keeps all": _smoothed(share=lambda smoothing: 1.0),
        "the two shares are swapped: the target gets 1 - smoothing": (
            lambda logits, targets, smoothing, ignore_index: (
                _smoothed()(logits, targets, 1 - smoothing, ignore_index)
            )
        ),
        "your loss includes padding: leave out the targets equal to ignore_index": (
            _smoothed(ignore=False)
        ),
        "you leave padding out of the sum but divide by all positions: divide by the number of "
        "real tokens": _smoothed(mean=lambda targets: targets.numel()),
        "that is the sum; divide by the number of real tokens": _smoothed(mean=lambda targets: 1),
        "the sign is wrong: the loss is minus log p": (
            lambda *args: -_smoothed()(*args)
        ),
        "use ignore_index: with ignore_index 3, id 0 is a word like any other": (
            lambda logits, targets, smoothing, ignore_index: (
                _smoothed()(logits, targets, smoothing, 0)
            )
        ),
    },
)
def loss(logits, targets, smoothing, ignore_index):
    log_p = logits.log_softmax(-1)  # (B, T, V)
    of_target = log_p.gather(-1, targets[..., None])[..., 0]  # (B, T)
    uniform = log_p.mean(-1)
    each = -(1 - smoothing) * of_target - smoothing * uniform
    return each[targets != ignore_index].mean()


@exercise(
    "own.schedule", tolerance=1e-7, large=(10**6, 512, 4000),
    inputs=[(1, 128, 400), (200, 128, 400), (400, 128, 400), (1600, 128, 400), (4000, 512, 4000),
            (100, 64, 10)],
    hint=(
        "it's d_model^-0.5 times the smaller of two numbers: one rises with the step, the other "
        "falls with its root",
        "min(step ** -0.5, step * warmup ** -1.5), times d_model ** -0.5",
    ),
    wrong="the rate is not that of eq. 3", shape="the rate is one number",
    slips={
        "you take the larger of the two; the rate is the smaller": (
            lambda step, d, w: d**-0.5 * max(step**-0.5, step * w**-1.5)
        ),
        "d_model is missing: the rate is d_model^-0.5 times the rest": (
            lambda step, d, w: min(step**-0.5, step * w**-1.5)
        ),
        "the power of d_model is upside down: a wider model takes smaller steps": (
            lambda step, d, w: d**0.5 * min(step**-0.5, step * w**-1.5)
        ),
        "the rise ends at a different height from where the fall begins: the exponent of warmup is "
        "-1.5": [
            lambda step, d, w: d**-0.5 * min(step**-0.5, step * w**-0.5),
            lambda step, d, w: d**-0.5 * min(step**-0.5, step / w),
        ],
        "after the warm-up your rate stays the same: it should fall like one over the root of the "
        "step": (
            lambda step, d, w: d**-0.5 * min(w**-0.5, step * w**-1.5)
        ),
        "there is no warm-up: the rate must rise linearly first": (
            lambda step, d, w: d**-0.5 * step**-0.5
        ),
        "you count the steps from 0, but the first update is step 1": [
            lambda step, d, w: d**-0.5 * min((step + 1) ** -0.5, (step + 1) * w**-1.5),
            lambda step, d, w: d**-0.5 * min(step**-0.5, (step + 1) * w**-1.5),
        ],
    },
)
def schedule(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


# ------------------------------------------------------------------------------------- decoding


def _speaker(n, V, length, seed, eos_id):
    """next_logits(ids (n, T)) -> (n, V), which depend on the sentence and on its whole prefix."""
    draw = torch.Generator().manual_seed(seed)
    table = 2 * torch.randn(length + 2, V, V, generator=draw)
    own = torch.randn(n, V, generator=draw)
    own[:, eos_id] += 1.0

    def next_logits(ids):
        if ids.dim() != 2 or len(ids) != n:
            raise Wrong("next_logits takes one prefix for each sentence, ids of shape "
                        f"({n}, T); yours have shape {tuple(ids.shape)}")
        if ids.size(1) > length + 1:
            raise Wrong(f"you go on after max_len, which is {length}: a sentence may have no <eos>")
        return own + sum(table[t, ids[:, t]] for t in range(ids.size(1)))

    return next_logits


def _spoken(n=3, V=8, max_len=6, eos_id=2, bos_id=1, seed=0):
    return _speaker(n, V, max_len, seed, eos_id), n, bos_id, eos_id, max_len


def _greedy(start=1, stop="all", behind=True, view=lambda ids: ids, keep_eos=True, less=0,
            choose=lambda logits: logits.argmax(-1)):
    """Greedy decoding with one thing done in another way."""

    def decode(next_logits, n_sentences, bos_id, eos_id, max_len):
        ids = torch.full((n_sentences, 1), bos_id)
        ended = torch.zeros(n_sentences, dtype=torch.bool)
        for _ in range(max_len - less):
            token = choose(next_logits(view(ids)))
            ids = torch.cat([ids, token.masked_fill(ended & behind, 0)[:, None]], 1)
            ended = ended | (token == eos_id)
            if getattr(ended, stop)():
                break
        return ids[:, start:] if keep_eos else ids[:, start:].masked_fill(ids[:, start:] == 2, 0)

    return decode


def _trimmed(ids, *args):
    ids = torch.as_tensor(ids)
    if ids.dim() != 2:
        return ids
    used = (ids != 0).any(0).nonzero()
    return ids[:, : int(used.max()) + 1 if len(used) else 0]


@exercise(
    "own.greedy_decode", inputs=_spoken, view=_trimmed, shrinks=False,
    vary=(dict(n=4, seed=1), dict(n=5, V=10, eos_id=5, seed=2), dict(n=1, bos_id=3, seed=4),
          dict(n=2, max_len=3, seed=5), dict(n=6, V=12, max_len=9, seed=7)),
    hint="start from <bos>, append the most probable token, until every sentence has its <eos>",
    wrong="the ids are not those of greedy decoding", shape="one row of new ids per sentence",
    slips={
        "leave <bos> out of what you return": _greedy(start=0),
        "a sentence goes on after its <eos>: what comes after it must be 0, the id of <pad>": (
            _greedy(behind=False)
        ),
        "you stop when the first sentence has ended: go on until all have": _greedy(stop="any"),
        "<eos> belongs to the result": _greedy(keep_eos=False),
        "give next_logits the whole prefix, not its last token": _greedy(view=lambda x: x[:, -1:]),
        "you write one token too few: max_len does not count <bos>": _greedy(less=1),
        "take the most probable token, the argmax": _greedy(choose=lambda x: x.argmin(-1)),
    },
)
def greedy_decode(next_logits, n_sentences, bos_id, eos_id, max_len):
    ids = torch.full((n_sentences, 1), bos_id)
    ended = torch.zeros(n_sentences, dtype=torch.bool)
    while ids.size(1) <= max_len and not ended.all():
        token = next_logits(ids).argmax(-1).masked_fill(ended, 0)
        ids = torch.cat([ids, token[:, None]], 1)
        ended = ended | (token == eos_id)
    return ids[:, 1:]


BOS, EOS, A, B = 1, 2, 3, 4


class Tree:
    """A language of the words 3 and 4: next_logits(ids (n, T)) -> (n, 5), not normalised.

    p: {prefix: {token: probability}}. A prefix of the greatest length, or one that is not listed,
    ends at once.
    """

    def __init__(self, p, max_len):
        self.p, self.max_len = p, max_len

    def log_p(self, prefix):
        """Log-probabilities of the next token, (5,): words and <eos> share nearly all."""
        p = self.p.get(prefix, {}) if len(prefix) < self.max_len - 1 else {}
        logits = torch.full((5,), -30.0)
        for token, share in (p or {EOS: 1.0}).items():
            logits[token] = math.log(share)
        return logits.log_softmax(-1)

    def __call__(self, ids):
        ids = torch.as_tensor(ids)
        if ids.dim() != 2 or (ids[:, 0] != BOS).any():
            raise Wrong("next_logits takes prefixes that begin with <bos>, ids of shape (n, T); "
                        f"yours are {ids.tolist()!s:.60}")
        prefixes = [tuple(row[1:]) for row in ids.tolist()]
        # Logits may be shifted by any number: whoever adds them up, instead of log p, goes astray.
        return torch.stack([self.log_p(prefix) + 3 * len(prefix) for prefix in prefixes])

    def total(self, ids):
        """The log-probability of ids (without <bos>)."""
        return float(sum(self.log_p(tuple(ids[:i]))[ids[i]] for i in range(len(ids))))

    def sentences(self):
        """All that can be said: each with its <eos>."""
        for n in range(self.max_len):
            for words in itertools.product((A, B), repeat=n):
                yield [*words, EOS]


def random_tree(seed, max_len=4):
    draw = torch.Generator().manual_seed(seed)
    prefixes = [w for n in range(max_len) for w in itertools.product((A, B), repeat=n)]
    return Tree(
        {
            prefix: dict(zip((EOS, A, B), share.tolist(), strict=True))
            for prefix, share in zip(
                prefixes, (2 * torch.randn(len(prefixes), 3, generator=draw)).softmax(-1),
                strict=True,
            )
        },
        max_len,
    )


# Word 3 looks better at first (0.6), but nothing good follows; 4 <eos> has 0.4 * 0.9.
GARDEN_PATH = Tree(
    {(): {A: 0.6, B: 0.4}, (A,): {EOS: 0.4, A: 0.3, B: 0.3}, (B,): {EOS: 0.9, A: 0.1}}, 4
)
# The third best beginning leads to the best end.
CROWDED = Tree({(): {EOS: 0.35, A: 0.33, B: 0.32}, (A,): {EOS: 0.34, A: 0.33, B: 0.33}}, 4)


class Endless(Tree):
    """A language without an end: 4 after 3, and 3 after 4."""

    def log_p(self, prefix):
        likely = A if prefix[-1:] == (B,) else B
        logits = torch.full((5,), -30.0)
        logits[A], logits[B] = math.log(0.2), math.log(0.2)
        logits[likely] = math.log(0.8)
        return logits.log_softmax(-1)


def _searched(answer, tree, beam_size, length_penalty, ends=True):
    result = answer(tree, beam_size, length_penalty, BOS, EOS, tree.max_len)
    expect(isinstance(result, (tuple, list)) and len(result) == 2,
           "return two values: the ids of the best hypothesis, and its score")
    ids, score = result
    ids = torch.as_tensor(ids).flatten().tolist()
    expect(ids, f"you wrote nothing: at max_len, which is {tree.max_len} here, a hypothesis that "
                "hasn't ended counts as it stands")
    expect(ids[:1] != [BOS], "leave <bos> out of the ids that you return")
    expect(len(ids) <= tree.max_len,
           f"you wrote {len(ids)} tokens, but max_len is {tree.max_len}")
    expect(EOS not in ids[:-1], f"your hypothesis {ids} goes on after <eos>: a hypothesis that has "
                                "ended leaves the beam")
    expect(ids[-1:] == [EOS] or not ends,
           f"your hypothesis {ids} has no <eos>, though the model wrote one")
    right = finished_score(tree.total(ids), len(ids), length_penalty)
    if not same(float(score), right, 1e-4):
        raise Wrong(
            f"the score of your hypothesis {ids} is not (sum of log p) / length ** "
            f"{length_penalty:g}, <eos> counted: yours is {float(score):.4f}, expected {right:.4f}"
        )
    return ids, right


def _beam(slots=lambda n: n, score=finished_score, log=True, reorder=True, leave=True, worst=False,
          stop=False, unended=True):
    """Beam search with one thing done in another way."""

    def search(next_logits, beam_size, length_penalty, bos_id, eos_id, max_len):
        beam, done = [([], 0.0)], []
        for step in range(max_len):
            ids = torch.tensor([[bos_id, *words] for words, _ in beam])
            logits = next_logits(ids)
            logits = logits.log_softmax(-1) if log else logits
            found = [
                ([*(words if reorder else beam[0][0]), token], total + float(row[token]))
                for (words, total), row in zip(beam, logits, strict=True)
                for token in range(len(row))
            ]
            found.sort(key=lambda one: one[1], reverse=not worst)
            best = found[: slots(beam_size)]
            last = unended and step == max_len - 1
            ended = [one for one in best if one[0][-1] == eos_id or last]
            done += [(score(total, len(words), length_penalty), words) for words, total in ended]
            going = [one for one in found if one[0][-1] != eos_id] if leave else found
            beam = going[: slots(beam_size)]
            if len(done) >= beam_size or (stop and done):
                break
        best_score, words = max(done) if done else (-math.inf, [])
        return words, best_score

    return search


@judged(
    "own.beam_search",
    hint=(
        "keep the beam_size best prefixes by their sum of log p; a hypothesis that ends leaves "
        "the beam with its score",
        "keep a list of (sum of log p, ids); at each step, extend each of them by every token and "
        "keep the beam_size best that don't end",
        "divide a finished hypothesis's sum by its length to the power of the penalty before you "
        "compare it, and stop when beam_size hypotheses have finished",
    ),
    example=_beam(),
    slips={
        "in a language where the first word misleads": _beam(slots=lambda n: 1),
        "is not (sum of log p) / length": [
            _beam(score=lambda total, length, penalty: total),
            _beam(score=lambda total, length, penalty: finished_score(total, length - 1, penalty)),
            _beam(log=False), _beam(reorder=False),
        ],
        "goes on after <eos>": _beam(leave=False),
        "the best of all": _beam(stop=True),
        "counts as it stands": _beam(unended=False),
        "has no <eos>": _beam(worst=True),
    },
)
def beam_search(answer):
    """A beam of one is greedy decoding; one as wide as the language finds the best of all."""
    ids, score = _searched(answer, GARDEN_PATH, 2, 1.0)
    expect(
        ids == [B, EOS],
        "in a language where the first word misleads (3 has 0.6, but 4 <eos> 0.36 in all), a beam "
        f"of 2 must find [4, 2] with {GARDEN_PATH.total([B, EOS]) / 2:.3f}; yours is {ids} with "
        f"{score:.3f}: are two prefixes kept?",
    )
    endless = Endless({}, 4)
    ids, _ = _searched(answer, endless, 2, 1.0, ends=False)
    expect(ids == [B, A, B, A], "in a language without an end a hypothesis counts as it stands at "
           f"max_len, here 4: expected [4, 3, 4, 3], yours is {ids}")
    for tree in (CROWDED, *map(random_tree, range(6))):
        greedy = greedy_decode.reference(tree, 1, BOS, EOS, tree.max_len)[0].tolist()
        ids, _ = _searched(answer, tree, 1, 1.0)
        expect(ids == greedy, f"a beam of 1 is greedy decoding: expected {greedy}, yours is {ids}")
        for penalty in (0.0, 1.0, 2.0):
            score, best = max(
                (finished_score(tree.total(said), len(said), penalty), said)
                for said in tree.sentences()
            )
            ids, found = _searched(answer, tree, 64, penalty)
            expect(
                same(found, score, 1e-4),
                f"a beam as wide as the language must find the best of all: with length penalty "
                f"{penalty:g} that is {best} with {score:.3f}, yours is {ids} with {found:.3f}",
            )
