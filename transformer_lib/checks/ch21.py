"""Checks for the chapter Seeing: the Vision Transformer."""

import torch
import torch.nn.functional as F

from transformer_lib.checks import exercise, expect, expect_close, expect_shape, same


@exercise("21.1", hint="three whole numbers")
def by_hand(tokens, numbers_in_a_patch, scores):
    expect(tokens != 196, "196 patches, but the class token is a token, too")
    expect(tokens != 50177, "a token is a patch, not a pixel")
    expect_close(tokens, 197, "count the patches along one side, square, and add the class token")
    expect(numbers_in_a_patch != 256, "256 is one channel; a colour picture has three")
    expect_close(numbers_in_a_patch, 768, "channels times height times width of one patch")
    expect(scores != 196**2, "the class token asks and is asked, too")
    expect_close(scores, 197**2, "every token asks every token, itself included")


@exercise("21.2", hint="three answers, True or False")
def exchanged(logits_change, exchanged_places_change, other_places_change):
    for given in (logits_change, exchanged_places_change, other_places_change):
        expect(given is ... or isinstance(given, bool), f"answer True or False, not {given!r}")
    expect(
        not logits_change,
        "the logits cannot change: the class token takes a weighted sum over a bag of patches, "
        "and a sum does not know the order of its parts",
    )
    expect(
        exchanged_places_change,
        "the two exchanged places read other pixels now: their outputs change places, too",
    )
    expect(
        not other_places_change,
        "every other patch sees the same bag of keys and values as before",
    )


@exercise("21.3", given=0x1D483346)
def repaired_patches(answer):
    for channels, patch, size in ((1, 2, (8, 8)), (3, 4, (8, 12))):
        images = torch.randn(2, channels, *size)
        expected = F.unfold(images, patch, stride=patch).transpose(1, 2)
        output = answer(images, patch)
        expect_shape(output, expected.shape, "expected (B, N, C * patch * patch)")
        cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
        slips = {
            "inside a patch, the pixels run down its columns: rows come first": (0, 2, 4, 1, 5, 3),
            "the patches run down the columns of the picture: rows of patches come first": (
                (0, 4, 2, 1, 3, 5)
            ),
            "the channels come last; unfold puts all pixels of a channel together": (
                (0, 2, 4, 3, 5, 1)
            ),
        }
        for message, axes in slips.items():
            slip = cut.permute(axes).flatten(3).flatten(1, 2)
            expect(same(slip, expected) or not same(slip, output), message)
        expect_close(output, expected, "your patches differ from those of unfold")


@exercise("21.4", hint="two calls of F.cross_entropy; the teacher's answer is an argmax")
def deit_loss(answer):
    ours, token, teacher = torch.randn(3, 6, 5) * 3
    labels = torch.tensor([0, 1, 2, 3, 4, 0])
    says = teacher.argmax(-1)
    loss = answer(ours, token, teacher, labels)
    expect_shape(loss, (), "the loss is one number")
    hard, follow = F.cross_entropy(ours, labels), F.cross_entropy(token, says)
    slips = {
        "both heads learn the labels: the second learns what the teacher says": (
            (hard + F.cross_entropy(token, labels)) / 2
        ),
        "both heads learn from the teacher: the class token's head learns the labels": (
            (F.cross_entropy(ours, says) + follow) / 2
        ),
        "you trained the teacher: its logits are only asked for their likeliest class": (
            (hard + F.cross_entropy(teacher, labels)) / 2
        ),
        "the heads have changed places": (
            (F.cross_entropy(token, labels) + F.cross_entropy(ours, says)) / 2
        ),
        "that is the sum; take the mean": hard + follow,
        "you use the teacher's probabilities (soft); DeiT's loss takes its likeliest class": (
            (hard + F.cross_entropy(token, teacher.softmax(-1))) / 2
        ),
    }
    for message, slip in slips.items():
        expect(not same(slip, loss), message)
    expect_close(loss, (hard + follow) / 2, "the loss differs")


@exercise("21.5", hint="two tensors of 64 whole numbers, each from 0 to 63 once")
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
        "`harmless` puts pixels of different old patches into one patch: that is a new picture",
    )
    expect(
        (inside == inside[:1]).all(),
        "`harmless` reorders the pixels inside some patches in another way than inside others: "
        "one linear map serves all patches, and cannot undo both",
    )
    mixed = found["harmful"][..., 0].sort(-1).values
    expect(
        (mixed.diff(dim=-1) > 0).all(),
        "in `harmful`, some patch holds two pixels of the same old patch",
    )
