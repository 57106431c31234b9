"""Checks for chapter 08, feed-forward networks and residuals."""

import torch

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("08.1", hint="two matrices and two biases")
def parameters(answer):
    given, d, d_ff = answer(10, 40), 10, 40
    expect(given != 2 * d * d_ff, "those are the two matrices; the biases are missing")
    expect(given != d * d_ff + d_ff, "that is the first map alone; count the way back, too")
    expect(
        given != 2 * d * d_ff + 2 * d_ff,
        "the second bias belongs to the output, so it has d numbers, not d_ff",
    )
    expect(given != 3 * d * d_ff + 2 * d_ff + d, "a ReLU network has no gate: two maps, not three")
    expect_close(given, 2 * d * d_ff + d_ff + d, "for d = 10 and d_ff = 40 the count is wrong", 0)
    expect_close(answer(7, 3), 2 * 7 * 3 + 3 + 7, "for d = 7 and d_ff = 3 the count is wrong", 0)


@exercise("08.2", hint="let one unit count, and one notice that both are 1")
def exactly_one(w1, b1, w2):
    expect_shape(w1, (2, 2), "w1 has one row for each of two units")
    expect_shape(b1, (2,), "b1 has one bias for each unit")
    expect_shape(w2, (2,), "w2 has one weight for each unit")
    w1, b1, w2 = (torch.as_tensor(given).float() for given in (w1, b1, w2))
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    wanted = torch.tensor([0.0, 1, 1, 0])
    hidden = x @ w1.T + b1  # (4, 2)
    output = hidden.relu() @ w2
    expect(
        not same(output, torch.tensor([0.0, 1, 1, 2]), 1e-4),
        "your network counts the ones; the second unit must take 2 away when both are 1",
    )
    expect(
        not same(output, torch.tensor([0.0, 1, 1, 1]), 1e-4),
        "your network answers 'at least one'; when both are 1 it must come back to 0",
    )
    expect(
        not (hidden >= 0).all(),
        "no unit is ever negative, so ReLU never bends: your network is linear, and that cannot do",
    )
    for case, right, given in zip(x.int().tolist(), wanted.tolist(), output.tolist(), strict=True):
        expect(
            abs(given - right) < 1e-3, f"for (a, b) = {case} it gives {given:.3g}, not {right:.0f}"
        )


@exercise("08.3", hint="norm, sublayer, drop, add")
def residual(answer):
    x, w = 3 * torch.randn(2, 4, 8) + 1, torch.randn(8, 8)

    def sublayer(y):
        return (y @ w).relu()

    def norm(y):
        return torch.nn.functional.layer_norm(y, (8,))

    def drop(y):  # not random, so that its place can be seen
        return y * (torch.arange(8) % 3 > 0) * 1.5

    output = answer(x.clone(), sublayer, norm, drop)
    expect_shape(output, x.shape, "a residual keeps the shape")
    right = x + drop(sublayer(norm(x)))
    slips = {
        "you add the normalised x: the identity path is gone; add x itself": (
            norm(x) + drop(sublayer(norm(x)))
        ),
        "that is post-norm; here the norm comes before the sublayer": norm(x + drop(sublayer(x))),
        "the norm is missing: the sublayer reads norm(x)": x + drop(sublayer(x)),
        "the norm comes after the sublayer; it must come before": x + drop(norm(sublayer(x))),
        "you drop from the sum, which wears x away; drop only what the sublayer adds": (
            drop(x + sublayer(norm(x)))
        ),
        "you drop what the sublayer reads; drop what it gives back": x + sublayer(drop(norm(x))),
        "dropout is missing": x + sublayer(norm(x)),
        "the sum is missing: x itself must be in the result": drop(sublayer(norm(x))),
    }
    for message, slip in slips.items():
        expect(not same(slip, output), message)
    expect_close(output, right, "the result is not x plus the dropped sublayer of norm(x)")
    kept = x.clone()
    answer(kept, sublayer, norm, drop)
    expect(torch.equal(kept, x), "you changed the caller's x in place: write x + ..., not x += ...")


@exercise("08.4", given=0x387625A2)
def dropout(answer):
    x, p = torch.full((200_000,), 2.0), 0.2
    output = torch.as_tensor(answer(x, p))
    expect_shape(output, x.shape, "dropout keeps the shape")
    zeros = (output == 0).float().mean().item()
    expect(
        abs(zeros - (1 - p)) > 0.02,
        f"with p = {p} you drop {zeros:.0%} of the numbers: you keep what should be dropped",
    )
    expect(abs(zeros - p) < 0.02, f"with p = {p} you drop {zeros:.0%} of the numbers, not {p:.0%}")
    expect(
        output.max().item() != 2.0, "the survivors are not scaled up, so the mean becomes smaller"
    )
    survivors = output[output != 0]
    expect(
        not same(survivors, torch.full_like(survivors, 2 / p)),
        "you divide by p; survivors are as many as 1 - p, so divide by that",
    )
    expect_close(
        survivors, torch.full_like(survivors, 2 / (1 - p)), "survivors have the wrong size"
    )


@exercise("08.5", hint="ReLU has two matrices, SwiGLU three")
def fair_width(answer):
    given = answer(512, 2048)
    expect(given != 3072, "that is wider: SwiGLU has one matrix more, so each must be narrower")
    expect(given != 1024, "half the width is too little: three matrices against two, not four")
    expect(given != 2048, "at the same width SwiGLU has half as many weights again")
    expect(given != 1365.3333333333333, "round to a whole number")
    expect_close(given, 1365, "for d = 512 and d_ff = 2048 the width is not right", 0)
    expect_close(answer(16, 64), 43, "for d = 16 and d_ff = 64 the width is not right", 0)
