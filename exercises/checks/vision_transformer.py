"""Checks for the chapter Seeing: the Vision Transformer."""

import torch
import torch.nn.functional as F

from exercises.checks import (
    Part,
    Wrong,
    exercise,
    expect,
    expect_shape,
    judged,
    values,
)

by_hand = values(
    1,
    "by_hand",
    hint=(
        "the answer is three whole numbers",
        "there are 224 / 16 patches each way, and one more token",
        "a patch has 16 * 16 pixels of 3 colours; one head compares every token with every token",
    ),
    tokens=Part(
        197,
        "count the patches along one side, square that, and add the class token",
        {
            "196 patches, but the class token is a token, too": 196,
            "each token is a patch, not a pixel": 50177,
        },
    ),
    numbers_in_a_patch=Part(
        768,
        "multiply the channels, height and width of one patch",
        {"256 is one channel; a colour picture has three": 256},
    ),
    scores=Part(
        197**2,
        "every token queries every token, itself included",
        {"the class token queries and is queried, too": 196**2},
    ),
)


def _boolean(given):
    if not isinstance(given, bool):
        raise Wrong(f"answer with True or False, not {given!r}")
    return given


exchanged = values(
    2,
    "exchanged",
    hint=(
        "give three answers, each True or False",
        "without positions the encoder is permutation-equivariant",
        "the class token reads a set: does the order of a set matter?",
    ),
    logits_change=Part(
        False,
        "the logits can't change: the class token takes a weighted sum over a bag of patches, and "
        "a sum doesn't depend on the order of its terms",
        read=_boolean,
    ),
    exchanged_places_change=Part(
        True,
        "the two swapped places now read each other's pixels, so their outputs change places, too",
        read=_boolean,
    ),
    other_places_change=Part(
        False,
        "every other patch still sees the same bag of keys and values",
        read=_boolean,
    ),
)


def _patches(*axes):
    def patches(images, patch):
        cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
        return cut.permute(axes).flatten(3).flatten(1, 2)

    return patches


@exercise(
    3,
    inputs=lambda B=2, C=1, rows=4, columns=4, patch=2: (
        torch.randn(B, C, rows * patch, columns * patch), patch
    ),
    vary=(dict(C=3, patch=4, rows=2, columns=3), dict(C=2, patch=3, rows=3, columns=2)),
    given=0x1D483346,
    wrong="your patches aren't those of unfold",
    shape="the shape should be (B, N, C * patch * patch)",
    gradients=True,
    slips={
        "inside each patch, your pixels run down the columns: rows come first": (
            _patches(0, 2, 4, 1, 5, 3)
        ),
        "your patches run down the columns of the picture: rows of patches come first": (
            _patches(0, 4, 2, 1, 3, 5)
        ),
        "the channels come last; unfold puts all pixels of a channel together": (
            _patches(0, 2, 4, 3, 5, 1)
        ),
        "you have swapped the rows of patches and the rows of pixels": lambda images, patch: (
            images.unflatten(2, (patch, -1)).unflatten(4, (patch, -1))
            .permute(0, 3, 5, 1, 2, 4).flatten(3).flatten(1, 2)
        ),
    },
)
def repaired_patches(images, patch):
    cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    ordered = cut.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, patch, patch)
    return ordered.flatten(3).flatten(1, 2)


def _heads(B=6, n_classes=5):
    return *(3 * torch.randn(3, B, n_classes)), torch.randint(n_classes, (B,))


def _losses(first=lambda labels, says: labels, second=lambda labels, says: says, part=0.5):
    """The sum of the two heads' losses on targets made from the labels and the teacher's answer."""

    def loss(ours, token, teacher, labels):
        says = teacher.argmax(-1)
        hard = F.cross_entropy(ours, first(labels, says))
        return part * (hard + F.cross_entropy(token, second(labels, says)))

    return loss


@exercise(
    4,
    inputs=_heads,
    vary=(dict(B=4, n_classes=7), dict(B=5, n_classes=5)),
    hint="you need two calls of F.cross_entropy; the teacher's answer is an argmax",
    wrong="that isn't the right loss",
    shape="the loss should be one number",
    gradients=True,
    slips={
        "both your heads learn the labels; the second should learn what the teacher says": (
            _losses(second=lambda labels, says: labels)
        ),
        "both your heads learn from the teacher; the class token's head should learn the labels": (
            _losses(first=lambda labels, says: says)
        ),
        "you trained the teacher: its logits only have to say which class is likeliest": (
            lambda ours, token, teacher, labels: (
                (F.cross_entropy(ours, labels) + F.cross_entropy(teacher, labels)) / 2
            )
        ),
        "the heads are swapped": (
            lambda ours, token, teacher, labels: _losses()(token, ours, teacher, labels)
        ),
        "that is the sum; take the mean": _losses(part=1),
        "you use the teacher's probabilities (soft); DeiT's loss takes its likeliest class": (
            lambda ours, token, teacher, labels: (
                F.cross_entropy(ours, labels) + F.cross_entropy(token, teacher.softmax(-1))
            ) / 2
        ),
    },
)
def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    learned = F.cross_entropy(class_logits, labels)
    imitated = F.cross_entropy(teacher_token_logits, teacher_logits.argmax(-1))
    return (learned + imitated) / 2


def _turned():
    y, x = torch.arange(8)[:, None], torch.arange(8)[None, :]
    mixed = (8 * ((y % 2) * 4 + y // 2) + (x % 2) * 4 + x // 2).flatten()
    return torch.arange(64).flip(0), mixed


@judged(5, hint=(
        "give two tensors of 64 whole numbers, with each of 0 to 63 once",
        "harmless: the same reordering within every patch can be undone by the weights that "
        "read a patch, and a reordering of whole patches by the positions",
        "harmful: send the pixels of each old patch to four different new ones, for example by "
        "listing the pixels patch by patch, as an 8 x 8 table, and transposing it",
    ), example=_turned())
def pixel_orders(harmless, harmful):
    patch_of = F.unfold(torch.arange(64.0).view(1, 1, 8, 8), 2, stride=2)[0].T.long()  # (16, 4)
    home = torch.empty(64, 2, dtype=torch.long)  # of each pixel: its patch, its place inside
    for p, pixels in enumerate(patch_of.tolist()):
        for inside, pixel in enumerate(pixels):
            home[pixel] = torch.tensor([p, inside])
    found = {}
    for name, order in {"harmless": harmless, "harmful": harmful}.items():
        order = torch.as_tensor(order)
        expect_shape(order, (64,), f"`{name}` must hold 64 places")
        expect(
            sorted(order.tolist()) == list(range(64)),
            f"`{name}` must hold each number from 0 to 63 once",
        )
        found[name] = home[order.long()][patch_of]  # (16, 4, 2): what the new patches hold
        if name == "harmless":
            expect((order != torch.arange(64)).all(), "`harmless` leaves a pixel where it was")
    old, inside = found["harmless"].unbind(-1)
    expect(
        (old == old[:, :1]).all(),
        "`harmless` puts pixels of different old patches into one patch, which makes a new picture",
    )
    expect(
        (inside == inside[:1]).all(),
        "`harmless` reorders the pixels in different ways inside different patches: "
        "one linear map serves all patches, and cannot undo both",
    )
    mixed = found["harmful"][..., 0].sort(-1).values
    expect(
        (mixed.diff(dim=-1) > 0).all(),
        "in `harmful`, some patch holds two pixels of the same old patch",
    )


def _pupils(B=3, C=4, temperature=2.0):
    return 2 * torch.randn(B, C), 3 * torch.randn(B, C) + 1, temperature


def _softened(factor, sign=1, soft=lambda z, t: (z / t).softmax(-1), per=lambda z: len(z)):
    """The gradient of soft distillation, with one step done in another way."""
    return lambda student, teacher, temperature: (
        sign * factor(temperature) / per(student)
        * (soft(student, temperature) - soft(teacher, temperature))
    )


@exercise(
    6,
    inputs=_pupils,
    vary=(
        dict(B=2, C=5, temperature=0.5), dict(B=4, C=4, temperature=10.0),
        dict(B=5, C=3, temperature=1.0),
    ),
    hint=(
        "without a temperature, the gradient of a cross-entropy with respect to the "
        "logits is softmax minus target",
        "the logits enter divided by the temperature, so the chain rule gives a factor "
        "1 / temperature",
        "the loss carries temperature squared in front, and it's a mean over the batch",
    ),
    wrong="the gradient differs from the one that autograd finds",
    shape="the gradient has the shape of the student's logits",
    forbid=("grad", "backward"),
    slips={
        "the chain rule is missing: the student's logits are divided by the temperature": (
            _softened(lambda t: t * t)
        ),
        "the square of the temperature in front of the loss is missing": (
            _softened(lambda t: 1 / t)
        ),
        "one factor of the temperature should remain: T squared in front, 1 / T from the chain "
        "rule": [
            _softened(lambda t: 1.0), _softened(lambda t: t**3),
        ],
        "the sign is the wrong way round: the gradient points uphill, from teacher to student": (
            _softened(lambda t: t, sign=-1)
        ),
        "the loss is a mean over the batch: divide by the number of pictures": (
            _softened(lambda t: t, per=lambda z: 1)
        ),
        "divide by the number of pictures, not by the number of logits": (
            _softened(lambda t: t, per=lambda z: z.numel())
        ),
        "both softmaxes read their logits divided by the temperature": [
            _softened(lambda t: t, soft=lambda z, t: z.softmax(-1)),
            _softened(lambda t: t, soft=lambda z, t: (z * t).softmax(-1)),
        ],
        "the teacher is softened by the temperature, too": (
            lambda student, teacher, temperature: temperature / len(student) * (
                (student / temperature).softmax(-1) - teacher.softmax(-1)
            )
        ),
        "the student is softened by the temperature, too": (
            lambda student, teacher, temperature: temperature / len(student) * (
                student.softmax(-1) - (teacher / temperature).softmax(-1)
            )
        ),
        "the softmax runs over the classes, dim=-1": (
            _softened(lambda t: t, soft=lambda z, t: (z / t).softmax(0))
        ),
        "use the teacher's probabilities, not only its answer": (
            lambda student, teacher, temperature: temperature
            * ((student / temperature).softmax(-1)
               - F.one_hot(teacher.argmax(-1), teacher.size(-1))) / len(student)
        ),
    },
)
def soft_gradient(student, teacher, temperature):
    student_says = (student / temperature).softmax(-1)  # (B, n_classes)
    teacher_says = (teacher / temperature).softmax(-1)
    return temperature * (student_says - teacher_says) / len(student)
