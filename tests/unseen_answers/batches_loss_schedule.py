"""Answers to the exercises of chapter 12, written without a look at its checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    # Exercise 1: no_idea
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
import math

answer = (math.log2(10_000), math.log2(10_000))
""",
        right=False,
        mistake="in bits",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
answer = (9.21, 0.9 * 9.21)
""",
        right=False,
        mistake="the smoothed loss counts the right word's share alone",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
answer = (10_000, 10_000)
""",
        right=False,
        mistake="the perplexity",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
answer = (4.0, 4.0)
""",
        right=False,
        mistake="a logarithm to base 10",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
answer = (9.2103, 9.2103 + 0.1)
""",
        right=False,
        mistake="adds the entropy of the smoothing",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
import math

answer = (math.log(1 / 10_000), math.log(1 / 10_000))
""",
        right=False,
        mistake="the minus sign is lost",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
import math

V, s = 10_000, 0.1
p, rest = 1 - s + s / V, s / V
answer = (math.log(V), -p * math.log(p) - (V - 1) * rest * math.log(rest))
""",
        right=False,
        mistake="the least loss that smoothing allows, which is not the loss here",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
import torch
from torch.nn import functional as F

logits, target = torch.zeros(1, 10_000), torch.tensor([7])
answer = (F.cross_entropy(logits, target), F.cross_entropy(logits, target, label_smoothing=0.1))
""",
        right=True,
        mistake="measured on logits of zero, as tensors",
    ),
    Answer(
        exercise="batches_loss_schedule.1",
        check="no_idea",
        code="""
answer = (9.21, 9.21)
""",
        right=True,
        mistake="to two decimals",
    ),
    # Exercise 2: token_loss
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets)


answer = token_loss
""",
        right=False,
        mistake="padding counts in the mean",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
def token_loss(logits, targets):
    log_p = logits.log_softmax(-1)
    picked = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -(picked * (targets != 0)).mean()


answer = token_loss
""",
        right=False,
        mistake="padding costs nothing and still counts in the number",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
def token_loss(logits, targets):
    p = logits.softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    real = targets != 0
    return -p[real].log().mean()


answer = token_loss
""",
        right=False,
        mistake="softmax and then log: infinite for large logits",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
import torch


def token_loss(logits, targets):
    p = logits.softmax(-1).gather(-1, targets[..., None]).squeeze(-1)
    real = targets != 0
    return -torch.log(p[real] + 1e-9).mean()


answer = token_loss
""",
        right=False,
        mistake="hides the infinity behind a small number and so caps the loss",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
def token_loss(logits, targets):
    total = logits.exp().sum(-1).log()
    right = logits.gather(-1, targets[..., None]).squeeze(-1)
    real = (targets != 0).float()
    return ((total - right) * real).sum() / real.sum()


answer = token_loss
""",
        right=False,
        mistake="the exponentials overflow",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    loss = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    real = (targets != 0).float()
    return ((loss * real).sum(1) / real.sum(1)).mean()


answer = token_loss
""",
        right=False,
        mistake="a mean over sentences of means over tokens",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum"
    )


answer = token_loss
""",
        right=False,
        mistake="the sum over tokens",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0).item()


answer = token_loss
""",
        right=False,
        mistake="a plain number, through which no gradient flows",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    rows = logits.data.flatten(0, 1).log_softmax(-1)
    return F.nll_loss(rows, targets.flatten(), ignore_index=0).requires_grad_()


answer = token_loss
""",
        right=False,
        mistake="works on logits.data, a tensor without history",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    B, T, V = logits.shape
    return F.cross_entropy(logits.reshape(B, V, T), targets, ignore_index=0)


answer = token_loss
""",
        right=False,
        mistake="the axes of tokens and vocabulary are mixed up by a reshape",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from transformer_lib.loss import label_smoothed_cross_entropy


def token_loss(logits, targets):
    return label_smoothed_cross_entropy(logits, targets)


answer = token_loss
""",
        right=False,
        mistake="smooths by 0.1",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    log_p = F.log_softmax(logits, dim=-1)
    return F.nll_loss(log_p.flatten(0, 1), targets.flatten())


answer = token_loss
""",
        right=False,
        mistake="padding is -100 here, the default",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
def token_loss(logits, targets):
    log_p = logits.log_softmax(1)
    real = targets != 0
    return -log_p.gather(-1, targets[..., None]).squeeze(-1)[real].mean()


answer = token_loss
""",
        right=False,
        mistake="a softmax over the tokens of the sentence",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch.nn import functional as F


def token_loss(logits, targets):
    loss = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return loss[:, targets[0] != 0].mean()


answer = token_loss
""",
        right=False,
        mistake="the first sentence's padding for all",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
import torch


def token_loss(logits, targets):
    real = targets.ne(0)
    rows, wanted = logits[real], targets[real]
    return (rows.logsumexp(-1) - rows[torch.arange(len(wanted)), wanted]).mean()


answer = token_loss
""",
        right=True,
        mistake="log-sum-exp minus the right logit, on the real rows alone",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
from torch import nn


def token_loss(logits, targets):
    return nn.CrossEntropyLoss(ignore_index=0)(logits.permute(0, 2, 1), targets)


answer = token_loss
""",
        right=True,
        mistake="PyTorch's, with the vocabulary as the second axis",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
import torch
from torch.nn import functional as F


def token_loss(logits, targets):
    hot = F.one_hot(targets, logits.size(-1)).to(logits.dtype)
    hot = torch.cat([torch.zeros_like(hot[..., :1]), hot[..., 1:]], -1)
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    return -torch.einsum("btv,btv->", hot, log_p) / hot.sum()


answer = token_loss
""",
        right=True,
        mistake="a one-hot table with an empty column for padding",
    ),
    Answer(
        exercise="batches_loss_schedule.2",
        check="token_loss",
        code="""
import torch
from torch.nn import functional as F


def token_loss(logits, targets):
    losses = [
        F.cross_entropy(rows[wanted > 0].double(), wanted[wanted > 0], reduction="none")
        for rows, wanted in zip(logits, targets)
    ]
    return torch.cat(losses).mean().to(logits.dtype)


answer = token_loss
""",
        right=True,
        mistake="sentence by sentence, in float64, the padding cut off first",
    ),
    # Exercise 3: split_target
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    read, predict = target[:, :-1], target[:, 1:]
    return read, predict, read != 0


answer = split_target
""",
        right=False,
        mistake="the mask is that of the tokens read, so the step after eos counts, too",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    read, predict = target[:, 1:], target[:, :-1]
    return read, predict, predict != 0


answer = split_target
""",
        right=False,
        mistake="read and predict exchanged",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    return target[:-1], target[1:], target[1:] != 0


answer = split_target
""",
        right=False,
        mistake="cuts sentences off and not tokens",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    predict = target[:, 1:]
    return target[:, :-1], predict, predict > 2


answer = split_target
""",
        right=False,
        mistake="eos does not count",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    predict = target[:, 1:]
    return target, predict, predict != 0


answer = split_target
""",
        right=False,
        mistake="the decoder reads the whole row",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    return target[:, :-1], target[:, 1:], target[:, 1:] == 0


answer = split_target
""",
        right=False,
        mistake="True where there is padding",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    predict = target[:, 1:]
    return target[:, :-1], predict, predict.clamp(max=1)


answer = split_target
""",
        right=False,
        mistake="zeros and ones, not booleans",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    predict = target[:, 1:]
    return target[:, :-1], predict[predict != 0], predict != 0


answer = split_target
""",
        right=False,
        mistake="the right words without padding, in one row",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    predict = target[:, 1:]
    counts = predict != 0
    counts[:, 0] = False
    return target[:, :-1], predict, counts


answer = split_target
""",
        right=False,
        mistake="the first place does not count, as if bos stood there",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
import torch


def split_target(target):
    columns = target.unbind(1)
    read, predict = torch.stack(columns[:-1], 1), torch.stack(columns[1:], 1)
    return [read, predict, predict.bool()]


answer = split_target
""",
        right=True,
        mistake="columns taken apart and stacked",
    ),
    Answer(
        exercise="batches_loss_schedule.3",
        check="split_target",
        code="""
def split_target(target):
    T = target.size(1) - 1
    after = target.narrow(1, 1, T)
    return target.narrow(1, 0, T), after, after.gt(0)


answer = split_target
""",
        right=True,
        mistake="narrow and a comparison",
    ),
    # Exercise 4: cheapest
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    p, rest = 1 - smoothing, smoothing / (vocabulary - 1)
    return p, -p * math.log(p) - (vocabulary - 1) * rest * math.log(rest)


answer = cheapest
""",
        right=False,
        mistake="forgets the right word's own share of the smoothing",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    p = 1 - smoothing + smoothing / vocabulary
    rest = smoothing / (vocabulary - 1)
    return p, -p * math.log(p) - (vocabulary - 1) * rest * math.log(rest)


answer = cheapest
""",
        right=False,
        mistake="the probability is right, the others share by V - 1",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    p = 1 - smoothing + smoothing / vocabulary
    return p, -math.log(p)


answer = cheapest
""",
        right=False,
        mistake="the plain loss at that place",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    rest = smoothing / vocabulary
    p = 1 - smoothing + rest
    return p, -p * math.log(p) - rest * math.log(rest)


answer = cheapest
""",
        right=False,
        mistake="counts one of the wrong words instead of all",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    rest = smoothing / vocabulary
    p = 1 - smoothing + rest
    return p, -p * math.log2(p) - (vocabulary - 1) * rest * math.log2(rest)


answer = cheapest
""",
        right=False,
        mistake="in bits",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    rest = smoothing / vocabulary
    p = 1 - smoothing + rest
    return p, -p * math.log(p) - vocabulary * rest * math.log(rest)


answer = cheapest
""",
        right=False,
        mistake="all V words among the wrong ones",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
def cheapest(smoothing, vocabulary):
    return 1 - smoothing + smoothing / vocabulary, 0.0


answer = cheapest
""",
        right=False,
        mistake="the smallest loss is taken for zero, as a divergence",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    rest = smoothing / vocabulary
    p = 1 - smoothing + rest
    return -p * math.log(p) - (vocabulary - 1) * rest * math.log(rest), p


answer = cheapest
""",
        right=False,
        mistake="loss and probability exchanged",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import torch


def cheapest(smoothing, vocabulary):
    q = torch.full((vocabulary,), smoothing / vocabulary, dtype=torch.float64)
    q[0] += 1 - smoothing
    return q[0].item(), torch.special.entr(q).sum().item()


answer = cheapest
""",
        right=True,
        mistake="the entropy of the softened target, which works for no smoothing, too",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    best = 1 - smoothing + smoothing / vocabulary
    rest = smoothing / vocabulary
    return best, -best * math.log(best) - (vocabulary - 1) * rest * math.log(rest)


answer = cheapest
""",
        right=True,
        mistake="the formula of the chapter, not defined for no smoothing",
    ),
    Answer(
        exercise="batches_loss_schedule.4",
        check="cheapest",
        code="""
import math


def cheapest(smoothing, vocabulary):
    def loss(p):
        wrong = (1 - p) / (vocabulary - 1)
        right_share = 1 - smoothing + smoothing / vocabulary
        cost = (vocabulary - 1) * smoothing / vocabulary * -math.log(wrong) if smoothing else 0.0
        return right_share * -math.log(p) + cost
    low, high = 1e-12, 1 - 1e-12
    for _ in range(300):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if loss(a) > loss(b) else (low, b)
    return low, loss(low)


answer = cheapest
""",
        right=True,
        mistake="searches the curve by thirds",
    ),
    # Exercise 5: accumulate
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    for x, targets in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), ignore_index=0)
        (loss / len(batches)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="gradients add up now, and short batches weigh as much as long ones",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    total = sum((targets != 0).sum() for _, targets in batches)
    for x, targets in batches:
        model.zero_grad()
        loss = F.cross_entropy(
            model(x).flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum"
        )
        (loss / total).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="weighs by tokens and still clears the gradient in each round",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    total = sum((targets != 0).sum() for _, targets in batches)
    for x, targets in batches:
        loss = F.cross_entropy(
            model(x).flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum"
        )
        (loss / total).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="never clears, so the gradients of an earlier call stay in the sum",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    total = sum(targets.numel() for _, targets in batches)
    for x, targets in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), ignore_index=0)
        (loss * targets.numel() / total).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="padding counts in the weight of a batch",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    for x, targets in batches:
        F.cross_entropy(
            model(x).flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum"
        ).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="sums that are never divided",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    sentences = sum(len(x) for x, _ in batches)
    for x, targets in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), ignore_index=0)
        (loss * len(x) / sentences).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="weighs by the number of sentences",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    total = sum((targets != 0).sum() for _, targets in batches)
    for x, targets in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), ignore_index=0)
        (loss / total).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="divides means, not sums, by the number of all tokens",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    seen = 0
    for x, targets in batches:
        seen = seen + (targets != 0).sum()
        loss = F.cross_entropy(
            model(x).flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum"
        )
        (loss / seen).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="divides by the tokens seen so far, which falls as batches come",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    total = sum((targets != 0).sum() for _, targets in batches)
    for x, targets in batches:
        loss = F.cross_entropy(model(x).flatten(0, 1), targets.flatten(), reduction="sum")
        (loss / total).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


answer = accumulate
""",
        right=False,
        mistake="the padding's loss is in the sum",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch


def accumulate(model, batches):
    losses, count = 0.0, 0
    for x, targets in batches:
        log_p = model(x).log_softmax(-1)
        real = targets != 0
        losses = losses - log_p[real].gather(-1, targets[real][:, None]).sum()
        count += int(real.sum())
    grads = torch.autograd.grad(losses / count, list(model.parameters()))
    return torch.cat([g.reshape(-1) for g in grads])


answer = accumulate
""",
        right=True,
        mistake="one graph for all the batches and autograd.grad",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
import torch
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad(set_to_none=True)
    count = 0
    for x, targets in batches:
        rows, wanted = model(x).flatten(0, 1), targets.flatten()
        F.cross_entropy(rows, wanted, ignore_index=0, reduction="sum").backward()
        count += int(wanted.count_nonzero())
    return torch.cat([p.grad.flatten() for p in model.parameters()]) / count


answer = accumulate
""",
        right=True,
        mistake="adds gradients of sums and divides at the end",
    ),
    Answer(
        exercise="batches_loss_schedule.5",
        check="accumulate",
        code="""
from torch import nn
from torch.nn import functional as F


def accumulate(model, batches):
    model.zero_grad()
    counts = [(targets != 0).sum().item() for _, targets in batches]
    for (x, targets), count in zip(batches, counts, strict=True):
        mean = F.cross_entropy(model(x).transpose(1, 2), targets, ignore_index=0)
        (mean * count / sum(counts)).backward()
    return nn.utils.parameters_to_vector(p.grad for p in model.parameters())


answer = accumulate
""",
        right=True,
        mistake="a weight for each batch's mean",
    ),
    # Exercise 6: warmup_for
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return 1 / peak**2


answer = warmup_for
""",
        right=False,
        mistake="forgets the width",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return d_model**-0.5 / peak


answer = warmup_for
""",
        right=False,
        mistake="forgets to square",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return d_model / peak**2


answer = warmup_for
""",
        right=False,
        mistake="the width upside down",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return (peak * d_model) ** -2


answer = warmup_for
""",
        right=False,
        mistake="squares the width, too",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return 4000


answer = warmup_for
""",
        right=False,
        mistake="the paper's 4,000 whatever is asked",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
def warmup_for(peak, d_model):
    return (d_model * peak) ** -0.5


answer = warmup_for
""",
        right=False,
        mistake="returns the peak of a warm-up, the way back",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
import math


def warmup_for(peak, d_model):
    return (peak * math.sqrt(d_model)) ** (-2 / 3)


answer = warmup_for
""",
        right=False,
        mistake="the exponent -1.5 of the rising part, without the step",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
import math


def warmup_for(peak, d_model):
    return round((peak * math.sqrt(d_model)) ** -2)


answer = warmup_for
""",
        right=True,
        mistake="a whole number of updates",
    ),
    Answer(
        exercise="batches_loss_schedule.6",
        check="warmup_for",
        code="""
import math


def warmup_for(peak, d_model):
    return math.exp(-2 * math.log(peak) - math.log(d_model))


answer = warmup_for
""",
        right=True,
        mistake="through logarithms",
    ),
]
