"""Answers to the exercises of chapter 21, written without having read the checks."""

from tests.unseen_answers import Answer

ANSWERS = [
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
side = 224 // 16
tokens = side**2 + 1
numbers_in_a_patch = 3 * 16**2
scores = tokens**2
answer = (tokens, numbers_in_a_patch, scores)
""",
        right=True,
        mistake="Computed step by step.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
tokens = (224 / 16) ** 2 + 1
answer = (tokens, 16 * 16 * 3, tokens * tokens)
""",
        right=True,
        mistake="True division, so two of the numbers are floats.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (196, 768, 196 * 196)
""",
        right=False,
        mistake="Forgets the class token.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (197, 256, 197 * 197)
""",
        right=False,
        mistake="Forgets the three colours.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (197, 768, 197 * 196)
""",
        right=False,
        mistake="The class token asks, but nobody asks it, in the count of scores.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (197, 768, 197 * 198 // 2)
""",
        right=False,
        mistake="Counts the scores as if each place saw only those before it.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (197, 768, 197)
""",
        right=False,
        mistake="Counts the scores of one query.",
    ),
    Answer(
        exercise="vision_transformer.1",
        check="by_hand",
        code="""
answer = (15, 768, 225)
""",
        right=False,
        mistake="Counts pixels on one side for the patches: 14 of them.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(6, 4))
maps = rng.normal(size=(3, 4, 4))

def attend(x):
    q, k, v = (x @ m for m in maps)
    e = np.exp(q @ k.T)
    return x + e / e.sum(1, keepdims=True) @ v

swapped = x.copy()
swapped[[1, 2]] = x[[2, 1]]
change = ~np.isclose(attend(x), attend(swapped)).all(1)
logits_change, exchanged_places_change, other_places_change = (
    bool(change[0]), bool(change[[1, 2]].any()), bool(change[3:].any()),
)
answer = (logits_change, exchanged_places_change, other_places_change)
""",
        right=True,
        mistake="Found out with random attention in numpy instead of by thinking.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
answer = (True, True, False)
""",
        right=False,
        mistake="Thinks that the classes notice what was exchanged.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
answer = (False, False, False)
""",
        right=False,
        mistake="Thinks that nothing at all changes without positions.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
answer = (False, True, True)
""",
        right=False,
        mistake="Thinks that all places change, as all attend to the exchanged ones.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
answer = (True, True, True)
""",
        right=False,
        mistake="Thinks that everything changes.",
    ),
    Answer(
        exercise="vision_transformer.2",
        check="exchanged",
        code="""
answer = (True, False, True)
""",
        right=False,
        mistake="Answers whether each part stays the same.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.unfold(2, patch, patch).unfold(3, patch, patch)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=True,
        mistake="By unfold of the tensor, twice.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
import torch

def repaired_patches(images, patch):
    rows = range(0, images.shape[2], patch)
    columns = range(0, images.shape[3], patch)
    pieces = [
        images[:, :, y : y + patch, x : x + patch].reshape(len(images), -1)
        for y in rows
        for x in columns
    ]
    return torch.stack(pieces, dim=1)

answer = repaired_patches
""",
        right=True,
        mistake="Cuts each patch out with slices, in two loops.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    cut = cut.transpose(1, 2).transpose(2, 4).transpose(3, 4)
    return cut.flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=True,
        mistake="Moves one axis at a time with transposes.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    cut = cut.permute(0, 4, 2, 1, 3, 5)
    return cut.flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=False,
        mistake="Exchanges the rows and the columns of patches, not of pixels.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    cut = cut.permute(0, 2, 4, 3, 5, 1)
    return cut.flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=False,
        mistake="Puts the channels last: right for one channel only.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    size = cut.shape[1] * patch * patch
    return cut.permute(0, 1, 2, 4, 3, 5).reshape(len(images), -1, size)

answer = repaired_patches
""",
        right=False,
        mistake="Patches now lie row by row, but channels stand before them: a patch mixes places.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    cut = images.mT.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
    cut = cut.permute(0, 2, 4, 1, 3, 5)
    return cut.flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=False,
        mistake="Turns both: patches column by column and pixels, too.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    return images.reshape(len(images), -1, images.size(1) * patch * patch)

answer = repaired_patches
""",
        right=False,
        mistake="Reshapes without moving any axis: strips, not patches.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
def repaired_patches(images, patch):
    n = images.size(2) // patch
    cut = images.reshape(len(images), images.size(1), n, patch, n, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

answer = repaired_patches
""",
        right=False,
        mistake="Takes the picture's side as a square: rows are as many as columns.",
    ),
    Answer(
        exercise="vision_transformer.3",
        check="repaired_patches",
        code="""
import torch.nn.functional as F

def repaired_patches(images, patch):
    return F.unfold(images, patch, stride=patch)

answer = repaired_patches
""",
        right=False,
        mistake="The places come last, as unfold gives them.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = torch.argmax(teacher_logits, dim=1)

    def nll(logits, wanted):
        return logits.logsumexp(1).sub(logits.gather(1, wanted[:, None])[:, 0]).mean()

    return (nll(class_logits, labels) + nll(teacher_token_logits, said)) / 2

answer = deit_loss
""",
        right=True,
        mistake="By hand from log-probabilities and a gather.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    logits = torch.cat([class_logits, teacher_token_logits])
    return F.cross_entropy(logits, torch.cat([labels, teacher_logits.max(-1).indices]))

answer = deit_loss
""",
        right=True,
        mistake="One cross-entropy over both heads laid end to end.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = teacher_logits.argmax(-1)
    return F.cross_entropy(class_logits, labels) + F.cross_entropy(teacher_token_logits, said)

answer = deit_loss
""",
        right=False,
        mistake="Takes the sum, not the mean, of the two.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    soft = F.cross_entropy(teacher_token_logits, teacher_logits.softmax(-1))
    return (F.cross_entropy(class_logits, labels) + soft) / 2

answer = deit_loss
""",
        right=False,
        mistake="Learns from all of the teacher's probabilities instead of its likeliest class.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = teacher_logits.argmax(-1)
    a = F.cross_entropy(class_logits, said)
    return (a + F.cross_entropy(teacher_token_logits, labels)) / 2

answer = deit_loss
""",
        right=False,
        mistake="The two heads have each other's target.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    a = F.cross_entropy(class_logits, labels)
    return (a + F.cross_entropy(teacher_token_logits, labels)) / 2

answer = deit_loss
""",
        right=False,
        mistake="Both heads learn the labels; the teacher is not asked.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = teacher_logits.argmax(0)[labels] % class_logits.size(1)
    a = F.cross_entropy(class_logits, labels)
    return (a + F.cross_entropy(teacher_token_logits, said)) / 2

answer = deit_loss
""",
        right=False,
        mistake=(
            "Takes the likeliest picture of each class, not the likeliest class of each picture."
        ),
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = teacher_token_logits.argmax(-1)
    a = F.cross_entropy(class_logits, labels)
    return (a + F.cross_entropy(teacher_token_logits, said)) / 2

answer = deit_loss
""",
        right=False,
        mistake="The student's own guess is its target.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    both = (class_logits + teacher_token_logits) / 2
    said = teacher_logits.argmax(-1)
    return (F.cross_entropy(both, labels) + F.cross_entropy(both, said)) / 2

answer = deit_loss
""",
        right=False,
        mistake="Averages the logits of both heads before the loss.",
    ),
    Answer(
        exercise="vision_transformer.4",
        check="deit_loss",
        code="""
import torch.nn.functional as F

def deit_loss(class_logits, teacher_token_logits, teacher_logits, labels):
    said = teacher_logits.argmax(-1)
    a = F.cross_entropy(class_logits.softmax(-1), labels)
    return (a + F.cross_entropy(teacher_token_logits.softmax(-1), said)) / 2

answer = deit_loss
""",
        right=False,
        mistake="Applies a softmax before cross_entropy, which does it again.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.flip(0, 1).flatten().tolist()
harmful = place.roll((1, 1), (0, 1)).flatten().tolist()
answer = (harmless, harmful)
""",
        right=True,
        mistake="Turns the picture upside down, and moves it by one pixel along the diagonal.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
harmless = [8 * y + (x ^ 1) for y in range(8) for x in range(8)]
harmful = [8 * (y % 2 * 4 + y // 2) + x % 2 * 4 + x // 2 for y in range(8) for x in range(8)]
answer = (harmless, harmful)
""",
        right=True,
        mistake="Mirrors the inside of each patch, and deals the pixels out to the four quarters.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.roll(2, 0).reshape(-1)
harmful = place.roll(1, 0).roll(-1, 1).reshape(-1)
answer = (harmless, harmful)
""",
        right=True,
        mistake="Moves whole patches down by one, as tensors.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

harmless = torch.arange(64)
harmful = torch.arange(64).view(8, 8).roll((1, 1), (0, 1)).flatten()
answer = (harmless, harmful)
""",
        right=False,
        mistake="The harmless order moves nothing.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.T.flatten()
harmful = place.roll((1, 1), (0, 1)).flatten()
answer = (harmless, harmful)
""",
        right=False,
        mistake="Mirrors at the diagonal, where eight pixels stay in place.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.flip(0, 1).flatten()
harmful = place.roll(1, 1).flatten()
answer = (harmless, harmful)
""",
        right=False,
        mistake="The harmful order moves along rows only: patches hold two old patches.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.roll((1, 1), (0, 1)).flatten()
harmful = place.flip(0, 1).flatten()
answer = (harmless, harmful)
""",
        right=False,
        mistake="The two orders are exchanged.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = [8 * (y ^ (x // 2 % 2)) + (x ^ 1) for y in range(8) for x in range(8)]
harmful = place.roll((1, 1), (0, 1)).flatten().tolist()
answer = (harmless, harmful)
""",
        right=False,
        mistake="Pixels stay in their patch, but every second patch has another inner order.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(8, 8)
harmless = place.flip(0, 1).flatten().tolist()
harmful = [8 * (4 * (y % 2)) + 4 * (x % 2) for y in range(8) for x in range(8)]
answer = (harmless, harmful)
""",
        right=False,
        mistake="The harmful order is no order: some pixels come twice and others never.",
    ),
    Answer(
        exercise="vision_transformer.5",
        check="pixel_orders",
        code="""
import torch

place = torch.arange(64).view(4, 2, 4, 2)
harmless = place.roll(1, 0).flatten()
harmful = torch.arange(64).view(16, 4).roll(1, 0).flatten()
answer = (harmless, harmful)
""",
        right=False,
        mistake="The harmful order moves half rows of pixels: patches hold one or two old patches.",
    ),
]
