"""Checks for chapter 12, batches, loss and schedule."""

import math

import torch
import torch.nn.functional as F

from exercises.checks import Part, exercise, expect, expect_shape, judged, values
from exercises.checks.recorded import ends_lower, expect_one_of, recorded, span
from transformer_lib.schedule import noam

NATS = math.log(10_000)


def _loss(name, wrong):
    return Part(
        NATS,
        wrong,
        {
            f"your loss {name} is in bits; for nats, use the natural logarithm": (
                lambda given: abs(float(given) - math.log2(10_000)) < 0.02
            ),
            f"your loss {name} uses the logarithm to base 10; for nats, use the natural one": (
                lambda given: abs(float(given) - 4) < 0.02
            ),
            f"{name} the loss is -log p, which is positive for p below 1": (
                lambda given: float(given) < 0
            ),
        },
        tolerance=0.005 / NATS,
    )


def _untrained():
    """The losses of logits that are all equal."""
    logits, target = torch.zeros(1, 10_000), torch.tensor([7])
    return {
        "plain": F.cross_entropy(logits, target).item(),
        "smoothed": F.cross_entropy(logits, target, label_smoothing=0.1).item(),
    }


no_idea = values(
    1,
    "no_idea",
    measure=_untrained,
    hint=(
        "give two numbers",
        "each of the V words has probability 1 / V, so what is minus its logarithm?",
        "smoothing mixes in the other words, and here they all cost the same",
    ),
    plain=_loss("without smoothing", "every word has p = 1 / 10,000; take -log of that"),
    smoothed=_loss(
        "with smoothing",
        "-log p is the same for every word here, so no weighting of them can change the mean",
    ),
)


def _scored(B=3, T=6, V=11, size=3.0):
    targets = torch.randint(1, V, (B, T))
    targets[1, 2:], targets[-1, T - 1 :] = 0, 0
    return size * torch.randn(B, T, V), targets


def _log_p(logits, targets):
    return logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]  # (B, T)


def _per_sentence(logits, targets):
    real = targets != 0
    return (-(_log_p(logits, targets) * real).sum(1) / real.sum(1)).mean()


@exercise(
    2,
    inputs=_scored,
    vary=(dict(B=2, T=5, V=7, size=1.0), dict(B=4, T=4, V=4, size=2.0), dict(size=600.0)),
    hint="take log_softmax, pick out the target's entry, leave out the padding, and divide",
    wrong="the loss differs from F.cross_entropy with ignore_index=0",
    shape="the loss is one number for the batch",
    gradients=True,
    tolerance=1e-4,
    slips={
        "your loss includes padding: leave out the positions whose target is 0": (
            lambda logits, targets: -_log_p(logits, targets).mean()
        ),
        "you leave padding out of the sum but divide by all positions: divide by the number of "
        "real tokens": lambda logits, targets: -(_log_p(logits, targets) * (targets != 0)).mean(),
        "that is the sum; divide by the number of real tokens": (
            lambda logits, targets: -(_log_p(logits, targets) * (targets != 0)).sum()
        ),
        "you average within each sentence first, so words of short sentences count more: divide "
        "one sum by one count": _per_sentence,
        "the sign is wrong: the loss is minus log p": (
            lambda logits, targets: _log_p(logits, targets)[targets != 0].mean()
        ),
        "that is just minus the logit: the logarithm of the softmax is missing": (
            lambda logits, targets: (
                -logits.gather(-1, targets[..., None])[..., 0][targets != 0].mean()
            )
        ),
        "with large logits your loss is inf or NaN: use log_softmax instead of the log of a "
        "softmax": (
            lambda logits, targets: (
                -logits.softmax(-1)
                .log()
                .gather(-1, targets[..., None])[..., 0][targets != 0]
                .mean()
            )
        ),
        "your softmax runs over the places; it must run over the words, the last axis": (
            lambda logits, targets: -logits.log_softmax(1)
            .gather(-1, targets[..., None])[..., 0][targets != 0]
            .mean()
        ),
        "the logits and targets already line up: the shift has been made for you": (
            lambda logits, targets: (
                -_log_p(logits[:, :-1], targets[:, 1:])[targets[:, 1:] != 0].mean()
            )
        ),
        "that is the mean probability: its logarithm is missing": (
            lambda logits, targets: -_log_p(logits, targets).exp()[targets != 0].mean()
        ),
        "cross_entropy takes the softmax itself: give it the logits": (
            lambda logits, targets: (
                -_log_p(logits.softmax(-1), targets)[targets != 0].mean()
            )
        ),
        "you divide by the number of sentences; divide by the number of real tokens": (
            lambda logits, targets: -(_log_p(logits, targets) * (targets != 0)).sum() / len(targets)
        ),
    },
)
def token_loss(logits, targets):
    log_p = logits.log_softmax(-1)  # (B, T, V)
    of_target = log_p.gather(-1, targets[..., None])[..., 0]  # (B, T)
    real = of_target[targets != 0]
    return -real.mean()


def _target_rows(B=2, T=5):
    target = torch.randint(4, 9, (B, T))
    target[:, 0] = 1
    for i in range(B):
        end = T - 1 - i % (T - 2)
        target[i, end], target[i, end + 1 :] = 2, 0
    return (target,)


@exercise(
    3,
    inputs=_target_rows,
    vary=(dict(B=3, T=6), dict(B=4, T=4)),
    hint="return three tensors of shape (B, T)",
    parts=("read", "predicted", "counts"),
    wrong="these three tensors aren't what the decoder needs",
    view=lambda result, target: _three(result, target),
    slips={
        "your decoder reads the very token it should predict: that is Ana's mistake": (
            lambda t: (t[:, 1:], t[:, 1:], t[:, 1:] != 0)
        ),
        "what is read and what is predicted are the same: it's the next token that has to be "
        "predicted": (
            lambda t: (t[:, :-1], t[:, :-1], t[:, :-1] != 0)
        ),
        "the prediction of <eos> counts, too": [
            lambda t: (
                t[:, :-1], t[:, 1:], (t[:, 1:] != 0) & (F.pad(t[:, 2:], (0, 1)) != 0)
            ),
            lambda t: (t[:, :-1], t[:, 1:], (t[:, 1:] != 0) & (t[:, 1:] != 2)),
        ],
        "the two are swapped: the decoder starts from <bos>": [
            lambda t: (t[:, 1:], t[:, :-1], t[:, 1:] != 0),
            lambda t: (t[:, 1:], t[:, :-1], t[:, :-1] != 0),
        ],
        "you count where the token *read* is real; the loss counts where the *answer* is real": (
            lambda t: (t[:, :-1], t[:, 1:], t[:, :-1] != 0)
        ),
        "True and False are swapped in counts": (lambda t: (t[:, :-1], t[:, 1:], t[:, 1:] == 0)),
    },
)
def split_target(target):
    read, predicted = target[:, :-1], target[:, 1:]
    counts = predicted != 0
    return read, predicted, counts


def _three(result, target):
    """(read, predicted, counts), once their number, shapes and dtypes have been checked."""
    expect(
        isinstance(result, (tuple, list)) and len(result) == 3,
        "return three tensors: read, predicted, counts",
    )
    for name, part in zip(("read", "predicted", "counts"), result, strict=True):
        width = target.size(1)
        expect(isinstance(part, torch.Tensor), f"{name} should be a tensor")
        expect(
            part.shape != target.shape,
            f"{name} still has all {width} columns: the decoder reads all but the last token and "
            "predicts all but the first",
        )
        expect_shape(
            part, (len(target), width - 1), f"{name} should have one column fewer than the target"
        )
    expect(
        result[2].dtype == torch.bool, "counts should be boolean: a comparison gives that"
    )
    return tuple(result)


def _best(eps, size):
    return 1 - eps + eps / size


def _entropy(eps, size):
    other = eps / size
    return -_best(eps, size) * math.log(_best(eps, size)) - (size - 1) * other * math.log(other)


@exercise(
    4,
    inputs=[(0.1, 12), (0.2, 50), (0.05, 10_000)],
    hint=(
        "return the probability and the loss; at the best point p equals the target",
        "the target is a distribution: 1 - smoothing + smoothing / V for the right word, smoothing"
        " / V for each other; the smallest cross-entropy is the target's own entropy",
    ),
    parts=("probability", "loss"),
    slips={
        "the right word also gets its share of the smoothing, so it is above 1 - smoothing": (
            lambda eps, size: (1 - eps, _entropy(eps, size))
        ),
        "at p = 1 the wrong words have p = 0, which costs inf": [
            lambda eps, size: (1, 0), lambda eps, size: (1, _entropy(eps, size))
        ],
        "it's only the distance to the target that is 0 there; the target's own entropy remains": (
            lambda eps, size: (_best(eps, size), 0)
        ),
        "that is -log p of the right word only; the wrong words have a share, too": [
            lambda eps, size: (_best(eps, size), -math.log(_best(eps, size))),
            lambda eps, size: (_best(eps, size), -_best(eps, size) * math.log(_best(eps, size))),
        ],
        "your loss is in bits; nats use the natural logarithm": (
            lambda eps, size: (_best(eps, size), _entropy(eps, size) / math.log(2))
        ),
        "there are size - 1 wrong words, because one of them is the right one": (
            lambda eps, size: (
                _best(eps, size), _entropy(eps, size) - eps / size * math.log(eps / size)
            )
        ),
    },
    tell=lambda given, expected, *args: (
        "the right word also gets its share of the smoothing, so it is above 1 - smoothing"
        if abs(given[0] - (1 - args[0])) < 1e-6
        else "the smoothed loss is smallest at the smoothed target, and is its entropy there"
    ),
)
def cheapest(smoothing, vocabulary):
    return _best(smoothing, vocabulary), _entropy(smoothing, vocabulary)


class _Model(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False)

    def forward(self, x):
        return self.table(x)  # (B, T) -> (B, T, V)


def _batches(lengths=((3, 0), (8, 0), (5, 3)), dirty=0):
    # A gradient left over from before must not count: some answers start from a dirty one.
    batches = []
    for i, (length, padding) in enumerate(lengths):
        rows = 4 - i  # sentences
        targets = torch.randint(1, 7, (rows, length))
        targets[:, length - padding :] = 0
        batches.append((torch.randint(0, 9, (rows, length)), targets))
    return torch.randn(9, 7), batches, dirty


def _on_a_model(answer):
    """The answer as a function of the model's weights, the batches and a left-over gradient."""

    def run(weight, batches, dirty):
        model = _Model(weight)
        if dirty:
            model.table.weight.grad = dirty * torch.ones_like(weight)
        gradient = answer(model, batches)
        return None if gradient is None else torch.as_tensor(gradient).flatten().clone()

    return run


def _weighted(weight_of, clear="first"):
    """Accumulation with another weight for each batch, of its targets, all targets and number."""

    def accumulate(model, batches):
        if clear == "first":
            model.zero_grad()
        everything = torch.cat([targets.flatten() for _, targets in batches])
        for x, targets in batches:
            if clear == "each":
                model.zero_grad()
            loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), ignore_index=0)
            (loss * weight_of(targets, everything, len(batches))).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    return accumulate


def _real(targets):
    return (targets != 0).sum()


def _by_tokens(targets, everything, n):
    return _real(targets) / _real(everything)


def _by_sentences(model, batches):
    sentences = sum(len(targets) for _, targets in batches)
    return _weighted(lambda targets, everything, n: len(targets) / sentences)(model, batches)


@exercise(
    5,
    inputs=_batches,
    vary=(dict(dirty=2), dict(lengths=((4, 1), (6, 4)), dirty=0), dict(lengths=((5, 2),), dirty=1)),
    given=0xDA103028,
    adapt=_on_a_model,
    right=_weighted(_by_tokens),
    shrinks=False,
    wrong="the gradient differs from that of all batches together",
    shape="return all gradients in one row of numbers",
    tolerance=1e-4,
    slips={
        "only the last batch is left: zero_grad belongs before the loop, not inside": [
            _weighted(_by_tokens, "each"), _weighted(lambda t, a, n: 1, "each"),
            _weighted(lambda t, a, n: 1 / n, "each"),
        ],
        "the losses are added without weights: each is a mean, and a sum of means is too large": (
            _weighted(lambda targets, everything, n: 1)
        ),
        "you divide by the number of batches, but they differ in size: weight each batch by its "
        "share of the real tokens": _weighted(lambda targets, everything, n: 1 / n),
        "you weight each batch by its positions, padding included: count real tokens": (
            _weighted(lambda targets, everything, n: targets.numel() / everything.numel())
        ),
        "you weight each batch by its sentences: count real tokens": _by_sentences,
        "each loss is a mean already: multiply it by its tokens before you divide by all": (
            _weighted(lambda targets, everything, n: 1 / _real(everything))
        ),
        "you multiply by the tokens but never divide by their total": (
            _weighted(lambda targets, everything, n: _real(targets))
        ),
        "a gradient left over from an earlier update is still in there: call zero_grad once, at "
        "the start": _weighted(_by_tokens, "never"),
    },
)
def accumulate(weight, batches, dirty):
    model = _Model(weight)
    everything = torch.cat([targets.flatten() for _, targets in batches])
    logits = torch.cat([model(x).flatten(0, 1) for x, _ in batches])
    F.cross_entropy(logits, everything, ignore_index=0).backward()
    return model.table.weight.grad.flatten()


def _peak_reached(given, expected, peak, d_model):
    if given <= 0:
        return "the number of updates must be positive"
    reached = noam(max(1, round(given)), d_model, max(1, round(given)))
    return f"for a peak of {peak} and d_model {d_model}, with your warm-up the rate peaks at " + (
        f"{reached:.2e}"
    )


@exercise(
    6,
    inputs=[(1e-3, 512), (5e-3, 128), (2e-3, 256)],
    hint=(
        "set step = warmup in equation 3 and solve for warmup",
        "at step = warmup both terms of the minimum are equal: peak = d_model^-0.5 * warmup^-0.5",
    ),
    tolerance=0.005,  # lets whole updates through: 312 or 313 for 312.5
    tell=_peak_reached,
    slips={
        "the peak is the square root of 1 / (d_model * warmup), so you need the square of the "
        "peak": (
            lambda peak, d_model: 1 / (d_model * peak)
        ),
        "when you square to solve for warmup, d_model^-0.5 is squared too": [
            lambda peak, d_model: 1 / peak**2,
            lambda peak, d_model: 1 / (math.sqrt(d_model) * peak**2),
        ],
        "that's the right number upside down: solve equation 3 for warmup": (
            lambda peak, d_model: d_model * peak**2
        ),
    },
)
def warmup_for(peak, d_model):
    return 1 / (d_model * peak**2)


def _adam(gradients, betas=(0.9, 0.98), eps=1e-9):
    """The steps of one weight at rate 1, as Adam makes them."""
    m = v = 0.0
    steps = []
    for t, gradient in enumerate(gradients, start=1):
        m = betas[0] * m + (1 - betas[0]) * gradient
        v = betas[1] * v + (1 - betas[1]) * gradient**2
        steps.append(m / (1 - betas[0] ** t) / (math.sqrt(v / (1 - betas[1] ** t)) + eps))
    return steps


@judged(8, hint=(
        "find something that cancels in m but not in sqrt(v)",
        "m averages the gradients with their signs; v averages their squares, which have none",
        "alternate the signs",
    ), example=[1.0, -1.0] * 50)
def short_steps(gradients):
    expect(hasattr(gradients, "__len__") and len(gradients) == 100, "give a list of 100 gradients")
    gradients = [float(gradient) for gradient in gradients]
    expect(
        all(1 <= abs(gradient) <= 10 for gradient in gradients),
        "each gradient must have a size between 1 and 10, so that epsilon plays no part",
    )
    longest = max(abs(step) for step in _adam(gradients)[50:])
    expect(
        longest < 0.1,
        f"one of the last 50 steps is still {longest:.2f} of the rate; all should be below 0.10",
    )


@judged(9, hint=(
        "which steps does a warm-up make smaller?",
        "warm-up protects against a rate that is too high at first: what does it cost if the "
        "rate isn't too high?",
        "in the post-norm panels, go to lower rates until the constant schedule ends lower with "
        "every seed",
    ), example=(False, 0.003, "undecided"))
def without_warm_up(norm_first, rate, after_200):
    records = recorded("warm_up", part="rates")
    given = {"norm_first": norm_first, "rate": rate}
    for name, value in given.items():
        expect_one_of(name, value, (r["settings"][name] for r in records))
    ends = {"constant": {}, "warm-up, then constant": {}}
    later = {schedule: [] for schedule in ends}
    for r in records:
        if given.items() <= r["settings"].items():
            ends[r["settings"]["schedule"]][r["settings"]["seed"]] = r["last"]
            later[r["settings"]["schedule"]] += [r["later"]] if "later" in r else []
    constant, warmed = ends.values()
    expect(constant, "each of these values was recorded, but not this combination")
    told = f"the losses end at {span(constant.values())}, with warm-up at {span(warmed.values())}"
    ahead = sum(constant[seed] < warmed[seed] for seed in constant)
    expect(ahead > 0, f"with a constant rate {told}: there, warm-up is ahead with every seed")
    expect(
        ahead == len(constant),
        f"with a constant rate {told}: the constant rate is ahead with {ahead} of "
        f"{len(constant)} seeds",
    )
    expect(
        all(later.values()),
        "that setting does fit, but no run at this rate went on to 200 updates, so your prediction "
        "can't be checked. Try another setting that fits",
    )
    expect_one_of("after_200", after_200, ("constant", "warm-up", "undecided"))
    expect(
        after_200 == ends_lower(*later.values(), ("constant", "warm-up")),
        "that setting does fit, but your prediction for 200 updates isn't right. Does a head start "
        "last when both go on at the same rate?",
    )
    at_200 = f"{span(later['constant'])}, and {span(later['warm-up, then constant'])} with warm-up"
    return f"With a constant rate {told}. After 200 updates: {at_200}."
