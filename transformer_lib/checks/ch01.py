"""Checks for chapter 01, why attention."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("01.1", hint="give three whole numbers")
def path_lengths(recurrent, convolution, attention):
    expect(recurrent != 100, "from token 0 to token 99 the chain has 99 steps, not 100")
    expect_close(recurrent, 99, "a recurrent model moves one token for each step", 0)
    expect(
        convolution not in (20, 25),
        "a centred window of width 5 reaches 2 tokens to each side, not the whole width",
    )
    expect(convolution != 99, "that is one token per layer; a width of 5 reaches further")
    expect(
        convolution != 49, "49 layers of 2 tokens get as far as token 98: one more layer is needed"
    )
    expect_close(convolution, 50, "each layer of width 5 moves information by 2 tokens", 0)
    expect_close(attention, 1, "every token reads every other directly", 0)


@exercise("01.2", hint="scores, softmax, weighted sum of the values")
def soft_lookup(answer):
    keys, values = torch.tensor([1.0, 2.0, 4.0, 7.0]), torch.tensor([3.0, -1.0, 5.0, 2.0])
    query, sharpness = 2.5, 0.5
    distance = (query - keys) ** 2
    result = answer(query, keys, values, sharpness)
    expect(
        not torch.as_tensor(result).shape == values.shape,
        "you returned one number per key; sum the weighted values to one answer",
    )
    slips = {
        "your weights grow with the distance: the agreement is minus the squared distance": (
            (sharpness * distance).softmax(-1) @ values
        ),
        "your weights do not sum to 1: use a softmax, not exp alone": (
            (-sharpness * distance).exp() @ values
        ),
        "you took the nearest key only; average over all keys": values[distance.argmin()],
        "you left the sharpness out": (-distance).softmax(-1) @ values,
        "use the squared distance, not the distance": (
            (-sharpness * distance.sqrt()).softmax(-1) @ values
        ),
        "you averaged the keys; the answer is an average of the values": (
            (-sharpness * distance).softmax(-1) @ keys
        ),
        "multiply the scores by the sharpness, not the answer": (
            sharpness * ((-distance).softmax(-1) @ values)
        ),
    }
    for message, slip in slips.items():
        expect(abs(float(result) - float(slip)) > 1e-5, message)
    expect_close(result, (-sharpness * distance).softmax(-1) @ values, "the answer is not right")
    expect_close(answer(2.5, keys, values, 0.0), values.mean(), "at sharpness 0 expect the average")


@exercise("01.3", given=0xC164AA45)
def repaired_self_attention(answer):
    x = torch.randn(5, 3)
    scores = x @ x.T
    output = answer(x)
    expect_shape(output, x.shape, "one vector per word")
    slips = {
        "the columns still sum to 1: each word must share out its own attention, so the rows must "
        "sum to 1": scores.softmax(0) @ x,
        "there is no softmax left, so these are no shares": scores @ x,
        "you average all words equally: the scores are not used": x.mean(0).expand_as(x),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expect_close(output, scores.softmax(-1) @ x, "the output is not that of self-attention")


@exercise("01.4", hint="entry (i, j) depends on j - i alone")
def convolution_weights(answer):
    for kernel, n in ((torch.tensor([1.0, 2.0, 4.0]), 6), (torch.randn(5), 7)):
        A = answer(kernel, n)
        expect_shape(A, (n, n), "one row for each output, one column for each input")
        expected = _band(kernel, n)
        half = len(kernel) // 2
        slips = {
            "your kernel is flipped: kernel[0] belongs to the left neighbour, below the diagonal": (
                expected.T
            ),
            "your window wraps around: beyond the ends there are zeros": sum(
                w * torch.eye(n).roll(m - half, 1) for m, w in enumerate(kernel)
            ),
            "your window starts at the position itself; centre it": _band(kernel, n, shift=half),
            "your window ends at the position itself; centre it": _band(kernel, n, shift=-half),
        }
        for message, slip in slips.items():
            expect(not same(A, slip, 1e-6), message)
        x = torch.randn(n, 1)
        by_conv = F.conv1d(x.T[None], kernel[None, None], padding=half)[0].T
        expect_close(torch.as_tensor(A).to(x) @ x, by_conv, "A @ x differs from PyTorch's conv1d")


def _band(kernel, n, shift=0):
    """(n, n): kernel[m] at column - row = m - half + shift."""
    A = torch.zeros(n, n)
    for m, weight in enumerate(kernel):
        offset = m - len(kernel) // 2 + shift
        A += weight * torch.diag(torch.ones(n - abs(offset)), offset)
    return A


@exercise("01.5", hint="divide n * n * d by n * d * d and simplify")
def cost_ratio(answer):
    n, d = 10, 40
    ratio = answer(n, d)
    expect(ratio != d / n, "upside down: attention is the numerator")
    expect(ratio != n * n * d, "that is the cost of attention alone; divide by that of recurrence")
    expect(ratio != n, "recurrence costs n * d * d: each step multiplies by a d x d matrix")
    expect_close(ratio, n / d, "for n = 10 and d = 40 the ratio is not right")
    expect_close(answer(64, 64), 1.0, "at n = d both cost the same")
