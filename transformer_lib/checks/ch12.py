"""Checks for chapter 12, batches, loss and schedule."""

import math

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same
from transformer_lib.schedule import noam


@exercise("12.1", hint="give two numbers")
def no_idea(plain, smoothed):
    expected = math.log(10_000)
    for name, answer in (("without smoothing", plain), ("with smoothing", smoothed)):
        expect(
            abs(float(answer) - math.log2(10_000)) > 0.02,
            f"{name} you gave bits; nats use the natural logarithm",
        )
        expect(
            abs(float(answer) - 4) > 0.02,
            f"{name} you used the logarithm to base 10; nats use the natural one",
        )
        expect(float(answer) > 0, f"{name} the loss is -log p, which is positive for p below 1")
    expect_close(plain, expected, "every word has p = 1 / 10,000; take -log of that", 0.005)
    expect_close(
        smoothed,
        expected,
        "-log p is the same for every word here, so no weighting of them can change the mean",
        0.005,
    )


@exercise("12.2", hint="log_softmax, pick the target's, leave the padding out, divide")
def token_loss(answer):
    logits = 3 * torch.randn(3, 6, 11)
    targets = torch.randint(1, 11, (3, 6))
    targets[1, 2:], targets[2, 4:] = 0, 0
    result = answer(logits, targets)
    expect_shape(result, (), "the loss is one number for the batch")
    log_p = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]  # (3, 6)
    real = targets != 0
    per_sentence = -(log_p * real).sum(1) / real.sum(1)
    slips = {
        "padding counts in your loss: leave positions whose target is 0 out": -log_p.mean(),
        "you leave padding out of the sum but divide by all positions: divide by the number of "
        "real tokens": -(log_p * real).mean(),
        "that is the sum; divide by the number of real tokens": -(log_p * real).sum(),
        "you average within each sentence first, so words of short sentences count more: divide "
        "one sum by one count": per_sentence.mean(),
        "the sign is wrong: the loss is minus log p": (log_p * real).sum() / real.sum(),
    }
    for message, slip in slips.items():
        expect(not same(result, slip), message)
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)
    expect_close(result, expected, "the loss differs from F.cross_entropy with ignore_index=0")
    large = answer(200 * logits, targets)
    expect(
        torch.as_tensor(large).isfinite().all(),
        "with large logits your loss is inf or NaN: take log_softmax, not log of softmax",
    )
    expected = F.cross_entropy(200 * logits.flatten(0, 1), targets.flatten(), ignore_index=0)
    expect_close(large, expected, "with large logits the loss is not right", 1e-4)


@exercise("12.3", hint="return three tensors of shape (B, T)")
def split_target(answer):
    target = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]])
    parts = answer(target)
    expect(
        isinstance(parts, (tuple, list)) and len(parts) == 3,
        "return three tensors: read, predicted, counts",
    )
    read, predicted, counts = parts
    for name, part in (("read", read), ("predicted", predicted), ("counts", counts)):
        expect(
            tuple(part.shape) != (2, 5),
            f"{name} still has all 5 columns: the decoder reads all but the last token and "
            "predicts all but the first",
        )
        expect_shape(part, (2, 4), f"{name} should have one column fewer than the target")
    expect(
        not (torch.equal(read, target[:, 1:]) and torch.equal(predicted, target[:, 1:])),
        "the decoder reads what it should predict: that is Ana's mistake",
    )
    expect(
        not (torch.equal(read, target[:, 1:]) and torch.equal(predicted, target[:, :-1])),
        "the two are swapped: the decoder starts from <bos>",
    )
    expect(torch.equal(read, target[:, :-1]), "read is all but the last token of each row")
    expect(torch.equal(predicted, target[:, 1:]), "predicted is all but the first token")
    expect(counts.dtype == torch.bool, "counts should be boolean: a comparison gives that")
    expect(
        not torch.equal(counts, read != 0),
        "you count where the token *read* is real; the loss counts where the *answer* is real",
    )
    expect(torch.equal(counts, target[:, 1:] != 0), "counts is True where the answer is no padding")


@exercise("12.4", hint="return the probability and the loss; at the best point p equals the target")
def cheapest(answer):
    for eps, size in ((0.1, 12), (0.2, 50)):
        result = answer(eps, size)
        expect(
            hasattr(result, "__len__") and len(result) == 2,
            "return two numbers: the probability and the loss",
        )
        p, loss = map(float, result)
        best, other = 1 - eps + eps / size, eps / size
        where = f"for smoothing {eps} and {size} words"
        expect(
            abs(p - (1 - eps)) > 1e-6,
            f"{where}: the right word also gets its share of the smoothing, so it is above "
            "1 - smoothing",
        )
        expect(abs(p - 1) > 1e-6, f"{where}: at p = 1 the wrong words have p = 0, which costs inf")
        expect_close(p, best, f"{where} the probability is not right")
        expect(
            abs(loss) > 1e-6,
            f"{where}: only the distance to the target is 0 there; the entropy of the target stays",
        )
        expect(
            abs(loss + math.log(best)) > 1e-4,
            f"{where}: that is -log p of the right word alone; the wrong words have a share too",
        )
        entropy = -best * math.log(best) - (size - 1) * other * math.log(other)
        expect_close(loss, entropy, f"{where} the loss is not the entropy of the target", 1e-4)


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(9, 7)

    def forward(self, x):
        return self.table(x)  # (B, T) -> (B, T, V)


def _gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return model.table.weight.grad.flatten().clone()


@exercise("12.5", given=0xDA103028)
def accumulate(answer):
    model = _Model()
    batches = []
    for length, padding in ((3, 0), (8, 0), (5, 3)):
        targets = torch.randint(1, 7, (4, length))
        targets[:, length - padding :] = 0
        batches.append((torch.randint(0, 9, (4, length)), targets))

    def mean(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=0)

    tokens = [int((y != 0).sum()) for _, y in batches]
    positions = [y.numel() for _, y in batches]
    total, all_positions, n = sum(tokens), sum(positions), len(batches)
    grads = [_gradient(model, mean(*batch)) for batch in batches]
    # A gradient left over from before must not count: the answer starts from a dirty one.
    answer_grad = _run(answer, model, batches, dirty=True)
    clean_grad = _run(answer, model, batches, dirty=False)
    expect_shape(clean_grad, grads[0].shape, "return all gradients in one row of numbers")
    slips = {
        "only the last batch is left: zero_grad belongs before the loop, not inside": [
            [0] * (n - 1) + [last] for last in (1.0, 1 / n, tokens[-1] / total)
        ],
        "the losses are added without weights: each is a mean, and a sum of means is too long": [
            [1.0] * n
        ],
        "you divide by the number of batches, but they differ in size: weigh each batch by its "
        "share of the real tokens": [[1 / n] * n],
        "you weigh each batch by its positions, padding included: count real tokens": [
            [p / all_positions for p in positions]
        ],
        "you multiply by the tokens but never divide by their total": [tokens],
    }
    for message, weightings in slips.items():
        for weights in weightings:
            slip = sum(w * g for w, g in zip(weights, grads, strict=True))
            expect(not same(clean_grad, slip, 1e-6), message)
    expected = sum(t / total * g for t, g in zip(tokens, grads, strict=True))
    expect_close(clean_grad, expected, "the gradient differs from that of all batches together")
    expect_close(
        answer_grad,
        expected,
        "a gradient left over from an earlier update counts too: call zero_grad once, at the start",
    )


def _run(answer, model, batches, dirty):
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter) if dirty else None
    return torch.as_tensor(answer(model, batches)).flatten().clone()


@exercise("12.6", hint="put step = warmup into equation 3 and solve for warmup")
def warmup_for(answer):
    for peak, d_model in ((1e-3, 512), (5e-3, 128)):
        given, expected = float(answer(peak, d_model)), 1 / (d_model * peak**2)
        where = f"for a peak of {peak} and d_model {d_model}"
        expect(
            abs(given - 1 / (d_model * peak)) > 1,
            f"{where}: the peak is the root of 1 / (d_model * warmup), so its square enters",
        )
        expect(
            abs(given - 1 / peak**2) > 1 and abs(given - 1 / (math.sqrt(d_model) * peak**2)) > 1,
            f"{where}: square d_model^-0.5 too when you solve",
        )
        expect(given > 0, f"{where}: a number of updates is positive")
        reached = noam(round(given), d_model, round(given))
        # The tolerance lets whole updates through: 312 or 313 for 312.5.
        expect_close(
            given, expected, f"{where}: with your warm-up the rate peaks at {reached:.2e}", 0.005
        )
