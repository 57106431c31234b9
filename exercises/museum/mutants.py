# ruff: noqa: E501 (lines of the program are quoted whole)
"""Write the test: parts of the healthy program, with broken and with unusual right versions.

A broken version is a change of the program's text, as a specimen is, with a hint that says where a
test could look. A test is any function of the component: it raises, or returns False, for what it
rejects. `checks.write_the_test` grades it.
"""

import functools
import heapq
import math
import types
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from exercises.museum.specimens import changed, run
from transformer_lib import one_file as healthy


@dataclass(frozen=True)
class Component:
    """What a test is written for."""

    name: str
    contract: str  # what the test may rely on
    take: object  # program -> the component
    broken: tuple  # ((old text, new text, hint), ...)
    right: tuple  # other ways to write it

    def mutants(self):
        """(the broken component, its hint), one after the other."""
        for i, (old, new, hint) in enumerate(self.broken):
            program = _changed(f"{self.name}-{i}", old, new)
            yield self.take(program), hint


@functools.cache
def _changed(name, old, new):
    return run(changed([(old, new)]), name)


# --------------------------------------------------------------------------------------- attention

SCALE = " / math.sqrt(q.size(-1))  # (..., T, S)\n"
SCORES = "    scores = q @ k.transpose(-2, -1)" + SCALE
FILL = "        scores = scores.masked_fill(~mask, -math.inf)\n"
WEIGHTS = "    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)\n"
RETURN = "    return weights @ v, weights\n"

ATTENTION = (
    (SCALE, "\n", "wide heads: how large are the scores of random vectors of 64 numbers?"),
    (SCALE, " / q.size(-1)\n", "how flat may the weights be? Compare with a case worked by hand"),
    (SCALE, " * math.sqrt(q.size(-1))\n", "how sharp may the weights be?"),
    (SCALE, " / math.sqrt(k.size(-2))\n", "let the number of keys differ from the width"),
    (SCALE, " / math.sqrt(8)\n", "try more than one width"),
    (FILL, "        scores.masked_fill(~mask, -math.inf)\n", "give the attention a mask"),
    (FILL, FILL.replace("~", ""), "does the mask hide where it's True, or where it's False?"),
    (FILL, FILL.replace("-math.inf", "-1e-9"), "how much weight may a hidden key have?"),
    (FILL, FILL.replace("-math.inf", "-3.0"), "is a hidden key really hidden, or only disliked?"),
    (FILL, "        scores = scores * mask\n", "what weight does a score of 0 get?"),
    (FILL, FILL.replace("-math.inf", "-1e9"), "a query that may read nothing"),
    (WEIGHTS, "    weights = scores.softmax(-1)\n", "a query that may read nothing"),
    (WEIGHTS, WEIGHTS.replace("softmax(-1)", "softmax(-2)"), "what does each query's row sum to?"),
    (WEIGHTS, WEIGHTS.replace("softmax(-1)", "sigmoid()"), "what does each query's row sum to?"),
    (WEIGHTS, WEIGHTS.replace("softmax(-1)", "exp()"), "what does each query's row sum to?"),
    (WEIGHTS, WEIGHTS.replace("softmax(-1)", "relu()"), "weights of keys with negative scores"),
    (WEIGHTS, WEIGHTS.rstrip() + ".detach()\n", "must a gradient reach the queries?"),
    (RETURN, "    return weights @ k, weights\n", "let the keys and values differ"),
    (RETURN, "    return v, weights\n", "what does the output have to do with the weights?"),
    (RETURN, "    return weights @ v, scores\n", "look at the second thing that comes back"),
    (RETURN, "    return (weights * (weights == weights.amax(-1, keepdim=True))) @ v, weights\n",
     "is the output an average of the values, with these weights?"),
    ("    weights = F.dropout(weights, dropout_p)\n", "    weights = F.dropout(weights, 0.1)\n",
     "ask the same question several times"),
)


def attention_by_sums(q, k, v, mask=None, dropout_p=0.0):
    """Einstein sums, and a softmax by hand."""
    scores = torch.einsum("...td,...sd->...ts", q, k) * q.size(-1) ** -0.5
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    highest = scores.masked_fill(~allowed, -1e30).amax(-1, keepdim=True)
    power = (scores - highest).masked_fill(~allowed, -math.inf).exp()
    total = power.sum(-1, keepdim=True)
    weights = power / total.clamp(min=1e-30)
    return torch.einsum("...ts,...sd->...td", weights, v), weights


def attention_query_by_query(q, k, v, mask=None, dropout_p=0.0):
    """A loop over the queries."""
    rows = []
    for t in range(q.size(-2)):
        row = (k @ (q[..., t, :, None] / math.sqrt(q.size(-1)))).squeeze(-1)  # (..., S)
        if mask is not None:
            hidden = ~mask.expand(*mask.shape[:-2], q.size(-2), k.size(-2))[..., t, :]
            row = torch.where(hidden, torch.full_like(row, -math.inf), row)
        rows.append(row.softmax(-1).nan_to_num())
    weights = torch.stack(rows, -2)
    return weights @ v, weights


def attention_fused(q, k, v, mask=None, dropout_p=0.0):
    """PyTorch's kernel; the weights are what it does to an identity matrix."""
    attend = functools.partial(F.scaled_dot_product_attention, q, k)
    eye = torch.eye(k.size(-2), dtype=v.dtype).expand(*k.shape[:-1], k.size(-2))
    if mask is None:
        return attend(v), attend(eye)
    empty = ~mask.any(-1, keepdim=True)
    bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask & ~empty, -math.inf)
    output, weights = attend(v, attn_mask=bias), attend(eye, attn_mask=bias)
    return output.masked_fill(empty, 0.0), weights.masked_fill(empty, 0.0)


# ------------------------------------------------------------------------------------------- masks

CAUSAL = "    return torch.ones(1, 1, size, size, dtype=torch.bool).tril()\n"
PADDING = "    return (ids != PAD)[:, None, None, :]\n"

MASKS = (
    (CAUSAL, CAUSAL.replace("tril", "triu"), "may position 0 read position 1?"),
    (CAUSAL, CAUSAL.replace("tril()", "tril(1)"), "may position 0 read position 1?"),
    (CAUSAL, CAUSAL.replace("tril()", "tril(-1)"), "may a position read itself?"),
    (CAUSAL, CAUSAL.replace(".tril()", ""), "is anything hidden at all?"),
    (CAUSAL, CAUSAL.replace("tril()", "tril().triu(-3)"), "may a late position read the first "
    "one?"),
    (CAUSAL, CAUSAL.replace("tril()", "tril().logical_not()"), "True = may attend"),
    (CAUSAL, CAUSAL.replace("torch.bool", "torch.float"), "what is the type of a mask?"),
    (CAUSAL, CAUSAL.replace("size, size, d", "size + 1, size + 1, d"), "what is its shape?"),
    (CAUSAL, CAUSAL.replace("1, 1, size", "1, size"), "what is its shape?"),
    (CAUSAL, CAUSAL.replace("size, size, d", "size, 1, d"), "what is its shape?"),
    (CAUSAL, CAUSAL.replace("tril()", "tril() & (torch.arange(size) < 8)"), "a longer sentence"),
    (CAUSAL, "    return torch.eye(size, dtype=torch.bool)[None, None]\n", "may position 1 read position 0?"),
    (PADDING, PADDING.replace("!=", "=="), "True = may attend"),
    (PADDING, PADDING.replace("PAD", "UNK"), "which id is padding?"),
    (PADDING, PADDING.replace("!= PAD", "> EOS"), "are <bos> and <eos> padding?"),
    (PADDING, PADDING.replace("[:, None, None, :]", "[:, None, :, None]"), "what is its shape?"),
    (PADDING, PADDING.replace("[:, None, None, :]", "[:, None, :]"), "what is its shape?"),
    (PADDING, PADDING.replace("(ids != PAD)", "(ids[:1] != PAD).expand_as(ids)"),
     "two sentences with different padding in one batch"),
    (PADDING, PADDING.replace("(ids != PAD)", "(ids != PAD).any(0, keepdim=True).expand_as(ids)"),
     "two sentences with different padding in one batch"),
    (PADDING, PADDING.replace("(ids != PAD)", "(ids != PAD).long()"), "what is the type of a "
    "mask?"),
)


def masks_of(program):
    return types.SimpleNamespace(padding=program.padding_mask, causal=program.causal_mask)


def _masks_by_comparison():
    def causal(size):
        place = torch.arange(size)
        return (place[None, :] <= place[:, None]).reshape(1, 1, size, size)

    return types.SimpleNamespace(padding=lambda ids: ids.bool().unsqueeze(1).unsqueeze(1),
                                 causal=causal)


def _masks_by_lists():
    def causal(size):
        return torch.tensor([[[[j <= i for j in range(size)] for i in range(size)]]])

    def padding(ids):
        return torch.tensor([[[[i != 0 for i in row]]] for row in ids.tolist()])

    return types.SimpleNamespace(padding=padding, causal=causal)


def _masks_by_sums():
    def causal(size):
        return torch.eye(size).cumsum(0)[None, None].transpose(-2, -1).mT > 0

    return types.SimpleNamespace(padding=lambda ids: torch.gt(ids, 0).view(len(ids), 1, 1, -1),
                                 causal=causal)


# -------------------------------------------------------------------------------------- layer norm

MEAN = "        mean = x.mean(-1, keepdim=True)\n"
VARIANCE = "        variance = x.var(-1, keepdim=True, unbiased=False)\n"
NORM = "        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias\n"
GAIN = "        self.weight = nn.Parameter(torch.ones(d_model))\n"
BIAS = "        self.bias = nn.Parameter(torch.zeros(d_model))\n"

LAYER_NORM = (
    (VARIANCE, VARIANCE.replace(", unbiased=False", ""), "the variance of what comes out"),
    (NORM, NORM.replace("torch.sqrt(variance + self.eps)", "(torch.sqrt(variance) + self.eps)"),
     "very small vectors"),
    (NORM, NORM.replace(" + self.eps", ""), "a vector of equal numbers"),
    (NORM, NORM.replace("torch.sqrt(variance + self.eps)", "(variance + self.eps)"),
     "the variance of what comes out, for a large vector"),
    (NORM, NORM.replace(" + self.eps)", " + 0.1)"), "compare with torch.nn.LayerNorm, closely"),
    (NORM, NORM.replace("(x - mean)", "x"), "the mean of what comes out"),
    (NORM, NORM.replace(" * self.weight", ""), "change the gain"),
    (NORM, NORM.replace(" + self.bias", ""), "change the bias"),
    (NORM, NORM.replace(" * self.weight + self.bias", " * (self.weight + self.bias)"),
     "change only the bias, and look at the mean"),
    (NORM, "        return ((x - mean) / torch.sqrt(variance + self.eps) + self.bias) * "
    "self.weight\n",
     "change gain and bias together"),
    (NORM, NORM.replace("(x - mean) / torch.sqrt(variance + self.eps)", "(x - mean)"),
     "the size of what comes out"),
    (NORM, NORM.replace("(x - mean) /", "x - mean /"), "the mean of what comes out"),
    (GAIN, GAIN.replace("d_model", "1"), "can a single feature be made larger?"),
    (BIAS, BIAS.replace("d_model", "1"), "can a single feature be moved?"),
    (GAIN, GAIN.replace("ones", "zeros"), "a new norm, as it comes"),
    (BIAS, BIAS.replace("zeros", "ones"), "a new norm, as it comes"),
    (MEAN + VARIANCE, (MEAN + VARIANCE).replace("-1,", "1,"), "does a token depend on its "
    "neighbours?"),
    (MEAN + VARIANCE, (MEAN + VARIANCE).replace("-1,", "0,"), "does a sentence depend on the "
    "others?"),
    (MEAN + VARIANCE, (MEAN + VARIANCE).replace("-1,", "(-2, -1),"), "does a token depend on its "
    "neighbours?"),
    (MEAN, MEAN.rstrip() + ".detach()\n", "does the gradient see the mean?"),
    (VARIANCE, VARIANCE.rstrip() + ".detach()\n", "does the gradient see the variance?"),
)


class NormByPytorch(nn.LayerNorm):
    """The real one."""


class NormByMoments(nn.Module):
    """The variance as the mean of squares of what is centred already, in double precision."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        centred = x.double() - x.double().sum(-1, keepdim=True) / x.size(-1)
        size = (centred * centred).mean(-1, keepdim=True).add(self.eps).rsqrt()
        return torch.addcmul(self.bias, (centred * size).to(x.dtype), self.weight)


class NormByMatrix(nn.Module):
    """Centring as a product with a matrix."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d_model,), 1.0))
        self.bias = nn.Parameter(torch.full((d_model,), 0.0))
        self.register_buffer("centre", torch.eye(d_model) - 1 / d_model)
        self.eps = eps

    def forward(self, x):
        y = x @ self.centre.to(x.dtype)
        return self.bias + self.weight * (y / (y.square().mean(-1, keepdim=True) + self.eps) ** 0.5)


# ------------------------------------------------------------------------------------------- loss

LOG_P = "    log_p = logits.log_softmax(-1)\n    loss"
PICK = "    loss = -log_p.gather(-1, targets[..., None]).squeeze(-1)  # (...)\n"
UNIFORM = "    uniform = -log_p.mean(-1)\n"
MIX = "    loss = (1 - smoothing) * loss + smoothing * uniform\n"
REAL = "    real = targets != PAD\n"
TOTAL = "    return (loss * real).sum() / real.sum()\n"

LOSS = (
    (REAL, "    real = torch.ones_like(targets)\n", "add padding to a batch"),
    (REAL, REAL.replace("PAD", "EOS"), "which token does not count?"),
    (REAL, "    real = (targets != PAD) & (targets != EOS)\n", "does <eos> count?"),
    (REAL, "    real = targets > UNK\n", "do all tokens but padding count?"),
    (TOTAL, "    return (loss * real).mean()\n", "add padding to a batch"),
    (TOTAL, "    return (loss * real).sum()\n", "give the loss the same sentence twice"),
    (TOTAL, "    return (loss * real).sum() / len(targets)\n", "sentences of different lengths"),
    (TOTAL, "    return ((loss * real).sum(-1) / real.sum(-1)).mean()\n",
     "a short and a long sentence in one batch: which tokens weigh more?"),
    (TOTAL, "    return (loss * real).max()\n", "several tokens, of which one is harder"),
    (MIX, "", "smoothing 0.1 and 0: what changes?"),
    (MIX, MIX.replace("smoothing", "0.1"), "smoothing 0"),
    (MIX, MIX.replace("(1 - smoothing) * ", ""), "compare with torch's label_smoothing"),
    (MIX, MIX.replace("smoothing * uniform", "uniform"), "smoothing 0"),
    (MIX, "    loss = (1 - smoothing) * loss - smoothing * uniform\n",
     "is being too sure rewarded or punished?"),
    (UNIFORM, UNIFORM.replace("mean", "sum"), "compare with torch's label_smoothing"),
    (LOG_P, LOG_P.replace("log_softmax(-1)", "softmax(-1).log_softmax(-1)"),
     "the loss of a model that is right and sure, without smoothing"),
    (LOG_P, LOG_P.replace("log_softmax(-1)", "softmax(-1)"), "the loss of a model that guesses"),
    (LOG_P, LOG_P.replace("logits.log_softmax(-1)", "logits.log_softmax(0)"),
     "the loss of a model that guesses, for two sentences"),
    (LOG_P, LOG_P.replace("log_softmax(-1)", "log_softmax(-1) / math.log(2)"),
     "in nats: the loss of a model that guesses"),
    (LOG_P, LOG_P.replace("log_softmax(-1)", "log_softmax(-1).clamp(min=-5)"),
     "a model that is sure, and wrong"),
    (LOG_P, LOG_P.replace("logits.log", "logits.detach().log"), "does a gradient reach the "
    "logits?"),
    (PICK, PICK.replace("targets[", "(targets - 1).clamp(min=0)["), "which token is asked for?"),
    (PICK, PICK.replace("-log_p.gather", "log_p.gather"), "is a better model given a lower loss?"),
)


def loss_by_pytorch(logits, targets, smoothing=0.1):
    rows, wanted = logits.reshape(-1, logits.size(-1)), targets.reshape(-1)
    return F.cross_entropy(rows, wanted, ignore_index=0, label_smoothing=smoothing)


def loss_by_soft_targets(logits, targets, smoothing=0.1):
    n = logits.size(-1)
    soft = F.one_hot(targets, n) * (1 - smoothing) + smoothing / n
    kept = targets.ne(0)
    return -(soft * F.log_softmax(logits, -1))[kept].sum() / kept.sum()


def loss_token_by_token(logits, targets, smoothing=0.1):
    found = []
    for row, token in zip(logits.flatten(0, -2), targets.flatten().tolist(), strict=True):
        if token:
            log_p = row - row.logsumexp(-1)
            found.append((smoothing - 1) * log_p[token] - smoothing * log_p.sum() / len(row))
    return torch.stack(found).mean()


# ---------------------------------------------------------------------------------------- schedule

RATE = "    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)\n"

SCHEDULE = tuple(
    (RATE, "    return " + new + "\n", hint)
    for new, hint in (
        ("d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)", "before and after the warm-up"),
        ("min(step**-0.5, step * warmup**-1.5)", "a wider model"),
        ("d_model**0.5 * min(step**-0.5, step * warmup**-1.5)", "a wider model"),
        ("d_model**-1 * min(step**-0.5, step * warmup**-1.5)", "a model four times as wide"),
        ("512**-0.5 * min(step**-0.5, step * warmup**-1.5)", "two widths"),
        ("d_model**-0.5 * min(step**-0.5, step * warmup**-1)", "where is the peak?"),
        ("d_model**-0.5 * min(step**-0.5, step * 4000**-1.5)", "two lengths of the warm-up"),
        ("d_model**-0.5 * min(step**-1.0, step * warmup**-2.0)", "four times the steps"),
        ("d_model**-0.5 * step**-0.5", "the first updates"),
        ("d_model**-0.5 * step * warmup**-1.5", "long after the warm-up"),
        ("d_model**-0.5 * min(warmup**-0.5, step * warmup**-1.5)", "long after the warm-up"),
        ("d_model**-0.5 * warmup**-0.5 * min(step / warmup, max(0.0, 2 - step / warmup))",
         "long after the warm-up"),
        ("d_model**-0.5 * min(step**-0.5, (step - 1) * warmup**-1.5)", "the very first update"),
        ("d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)", "where is the "
        "peak?"),
        ("d_model**-0.5 * min(step**-0.5, step**2 * warmup**-2.5)", "halfway through the warm-up"),
        ("d_model**-0.5 * min(step**-0.5, step**0.5 * warmup**-1.0)", "halfway through the "
        "warm-up"),
        ("round(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), 4)", "a small rate"),
        ("2 * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)", "the height of the peak"),
        ("d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) if step >= warmup else 0.0",
         "halfway through the warm-up"),
        ("d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) if step < 10 * warmup else 0.0",
         "very long after the warm-up"),
    )
)


def schedule_in_two_parts(step, d_model, warmup):
    if step < warmup:
        return step / (warmup * math.sqrt(warmup * d_model))
    return 1 / math.sqrt(step * d_model)


def schedule_by_peak(step, d_model, warmup):
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def schedule_in_logarithms(step, d_model, warmup):
    low = min(-0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup))
    return math.exp(low - 0.5 * math.log(d_model))


# ------------------------------------------------------------------------------------- beam search

BEGIN = "    beam, finished = [([], 0.0)], []\n"
EXTEND = "            ([*prefix, token], total + p)\n"
SORT = "        candidates.sort(key=lambda candidate: candidate[1], reverse=True)\n"
ENDED = ("        ended = [candidate for candidate in candidates[:beam_size] "
         "if candidate[0][-1] == EOS]\n")
FINISH = "        finished += [(ids, total / len(ids) ** length_penalty) for ids, total in ended]\n"
GO_ON = ("        beam = [candidate for candidate in candidates "
         "if candidate[0][-1] != EOS][:beam_size]\n")
ENOUGH = "        if len(finished) >= beam_size:\n"
LIMIT = "        finished += [(ids, total / len(ids) ** length_penalty) for ids, total in beam]\n"
BEST = "    return max(finished, key=lambda hypothesis: hypothesis[1])\n"
STEPS = "    for _ in range(max_len):\n        candidates"

BEAM = (
    (BEGIN, BEGIN.replace("[([], 0.0)]", "[([], 0.0)] * beam_size"),
     "a case where the most probable first token is a trap"),
    (BEGIN, "    beam_size = 1\n" + BEGIN, "a case where the most probable first token is a trap"),
    (EXTEND, EXTEND.replace("total + p", "p"), "the score of a sequence of two tokens"),
    (EXTEND, EXTEND.replace("total + p", "total + math.exp(p)"), "the score of a known sequence"),
    (EXTEND, EXTEND.replace("total + p", "min(total, p)"), "the score of a known sequence"),
    (SORT, SORT.replace(", reverse=True", ""), "the most probable sequence of a small table"),
    (SORT, "", "the most probable token is not the first of the vocabulary"),
    (FINISH, FINISH.replace("/", "*"), "what does a larger length_penalty do?"),
    (FINISH, FINISH.replace("total / len(ids) ** length_penalty", "total"),
     "what does a larger length_penalty do?"),
    (FINISH, FINISH.replace("len(ids)", "(len(ids) - 1 or 1)"), "the score, with <eos> counted"),
    (FINISH, FINISH.replace("len(ids) ** length_penalty", "len(ids)"), "length_penalty 0"),
    (FINISH, FINISH.replace("(ids, ", "(ids[:-1], "), "does the output contain its <eos>?"),
    (FINISH, "", "is a hypothesis that ends ever returned?"),
    (GO_ON, GO_ON.replace(" if candidate[0][-1] != EOS", ""), "what may come after <eos>?"),
    (GO_ON, GO_ON.replace("[:beam_size]", "[:1]"), "a trap, two tokens deep"),
    (GO_ON, GO_ON.replace("[:beam_size]", "[-beam_size:]"), "the second step"),
    (ENOUGH, "        if finished:\n", "a short, poor ending next to a long, good one"),
    (ENDED, ENDED.replace("[:beam_size]", "[:1]"), "an ending that's second best at its step"),
    (LIMIT, "        finished += [([EOS], -1e9)]\n", "a model that never ends"),
    (LIMIT, LIMIT.replace("total / len(ids) ** length_penalty", "0.0"),
     "at the length limit: the score of what has not ended"),
    (STEPS, STEPS.replace("max_len", "max_len - 1"), "the longest output that is allowed"),
    (STEPS, STEPS.replace("max_len", "max_len + 1"), "the longest output that is allowed"),
    (BEST, BEST.replace("max(", "min("), "which finished hypothesis is returned?"),
    (BEST, "    return finished[0]\n", "is the hypothesis that ends first the best?"),
    (BEST, BEST.replace("hypothesis[1]", "len(hypothesis[0])"), "which finished "
    "hypothesis is returned?"),
)


def beam_with_tensors(log_probs, beam_size=4, max_len=12, length_penalty=1.0):
    """Tables of totals and a top-k, as on a GPU."""
    prefixes, totals, finished = [[]], torch.zeros(1, dtype=torch.float64), []
    for step in range(1, max_len + 1):
        table = torch.stack([log_probs(prefix).double() for prefix in prefixes])  # (n, V)
        scores, places = (totals[:, None] + table).flatten().sort(descending=True, stable=True)
        kept, sums = [], []
        for rank, (score, place) in enumerate(zip(scores.tolist(), places.tolist(), strict=True)):
            row, token = divmod(place, table.size(1))
            if token == 2:
                if rank < beam_size:
                    finished.append(([*prefixes[row], token], score / step**length_penalty))
            elif len(kept) < beam_size:
                kept.append([*prefixes[row], token])
                sums.append(score)
        prefixes, totals = kept, torch.tensor(sums, dtype=torch.float64)
        if len(finished) >= beam_size:
            break
    else:
        ends = zip(prefixes, totals.tolist(), strict=True)
        finished += [(prefix, total / max_len**length_penalty) for prefix, total in ends]
    return max(finished, key=lambda hypothesis: hypothesis[1])


def beam_with_a_heap(log_probs, beam_size=4, max_len=12, length_penalty=1.0):
    """nlargest of negated costs."""
    beam, best, count = {(): 0.0}, (None, -math.inf), 0

    def offer(ids, total):
        nonlocal best
        value = total / len(ids) ** length_penalty
        if value > best[1]:
            best = (list(ids), value)

    for _ in range(max_len):
        grown = {(*prefix, token): total + p for prefix, total in beam.items()
                 for token, p in enumerate(log_probs([*prefix]).tolist())}
        top = heapq.nlargest(2 * beam_size + 2, grown, key=grown.get)
        for ids in top[:beam_size]:
            if ids[-1] == 2:
                offer(ids, grown[ids])
                count += 1
        beam = {ids: grown[ids] for ids in [ids for ids in top if ids[-1] != 2][:beam_size]}
        if count >= beam_size:
            return best
    for ids, total in beam.items():
        offer(ids, total)
    return best


def beam_by_recursion(log_probs, beam_size=4, max_len=12, length_penalty=1.0):
    """A call for each step."""

    def step(beam, finished, left):
        if not left:
            return finished + beam
        rows = [(ids, log_probs(ids)) for ids, _ in beam]
        grown = [([*ids, t], total + float(row[t])) for (ids, row), (_, total)
                 in zip(rows, beam, strict=True) for t in range(len(row))]
        grown = sorted(grown, key=lambda pair: -pair[1])
        finished = finished + [pair for pair in grown[:beam_size] if pair[0][-1] == 2]
        if len(finished) >= beam_size:
            return finished
        return step([pair for pair in grown if pair[0][-1] != 2][:beam_size], finished, left - 1)

    ends = step([([], 0.0)], [], max_len)
    valued = [(ids, total / len(ids) ** length_penalty) for ids, total in ends]
    return sorted(valued, key=lambda pair: pair[1])[-1]


COMPONENTS = {
    component.name: component
    for component in (
        Component(
            "attention",
            "attention(q, k, v, mask=None) -> output, weights; True in the mask = may attend; a "
            "query that may read nothing gets zeros",
            lambda p: p.scaled_dot_product_attention,
            ATTENTION,
            (attention_by_sums, attention_query_by_query, attention_fused),
        ),
        Component(
            "masks",
            "masks.padding(ids) -> (B, 1, 1, T), False where an id is 0; masks.causal(size) -> "
            "(1, 1, size, size); both boolean, True = may attend",
            masks_of,
            MASKS,
            (_masks_by_comparison(), _masks_by_lists(), _masks_by_sums()),
        ),
        Component(
            "layer norm",
            "LayerNorm(d_model) makes a module with weight and bias that does what "
            "torch.nn.LayerNorm does",
            lambda p: p.LayerNorm,
            LAYER_NORM,
            (NormByPytorch, NormByMoments, NormByMatrix),
        ),
        Component(
            "loss",
            "loss(logits, targets, smoothing=0.1) -> the mean over the tokens that are not 0, in "
            "nats, as in torch's cross_entropy with label_smoothing",
            lambda p: p.label_smoothed_cross_entropy,
            LOSS,
            (loss_by_pytorch, loss_by_soft_targets, loss_token_by_token),
        ),
        Component(
            "schedule",
            "rate(step, d_model, warmup) -> d_model^-0.5 min(step^-0.5, step warmup^-1.5), steps "
            "from 1",
            lambda p: p.noam,
            SCHEDULE,
            (schedule_in_two_parts, schedule_by_peak, schedule_in_logarithms),
        ),
        Component(
            "beam search",
            "beam_search(log_probs, beam_size, max_len, length_penalty) -> ids, score; "
            "log_probs(prefix) is a tensor with a number for each token; <eos> is 2 and ends the "
            "ids; the score is the sum of log-probabilities / length ** length_penalty",
            lambda p: p.beam_search,
            BEAM,
            (beam_with_tensors, beam_with_a_heap, beam_by_recursion),
        ),
    )
}


def official(component):
    """The healthy version."""
    return component.take(healthy)
