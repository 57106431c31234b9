"""Handwritten digits of 8 by 8 pixels, two small networks that read them, and their training."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.config import BlockConfig
from transformer_lib.models.vision_transformer import VisionTransformer


class Digits(NamedTuple):
    """Pictures (N, 1, 8, 8) with values from 0 to 1, and their labels (N,)."""

    images: Tensor
    labels: Tensor


def load_digits(n_train: int = 1200) -> tuple[Digits, Digits, Digits]:
    """(training, validation, test) of the 1,797 digits that come with scikit-learn.

    The test set is the last 397 of one fixed shuffle, the validation set the 200 before it, and
    the training set the first n_train, at most 1,200.
    """
    from sklearn import datasets

    if not 1 <= n_train <= 1200:
        raise ValueError(f"n_train is {n_train}; it must be from 1 to 1200: the rest is for tests.")
    found = datasets.load_digits()
    order = torch.randperm(len(found.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(found.images, dtype=torch.float32)[order, None] / 16  # (N, 1, 8, 8)
    labels = torch.tensor(found.target)[order]
    cuts = slice(n_train), slice(1200, 1400), slice(1400, None)
    return tuple(Digits(images[cut], labels[cut]) for cut in cuts)


def load_mnist(name: str = "ylecun/mnist") -> tuple[Digits, Digits]:
    """(training, test) of the 70,000 digits of MNIST, from the hub, averaged to 8 by 8 pixels.

    Raises ImportError without `datasets`, ConnectionError where the hub cannot be reached.
    """
    import numpy as np

    from transformer_lib.corpora.labelled import load_labelled

    found, sets = [], load_labelled(name, "image")
    for pictures, labels in (sets["train"], sets["test"]):
        pixels = torch.tensor(np.stack([np.asarray(picture.convert("L")) for picture in pictures]))
        images = F.adaptive_avg_pool2d(pixels[:, None].float() / 255, 8)  # (N, 1, 8, 8)
        found.append(Digits(images, torch.tensor(labels)))
    return tuple(found)


def vision_transformer(positional: str = "learned", channels: int = 1) -> VisionTransformer:
    """Make a ViT: two layers of width 32 over 16 patches of 2 by 2 pixels, about 18,000 parameters.
    """
    config = BlockConfig(
        32, 4, 64, 2, dropout=0.0, max_len=17, positional=positional, activation="gelu"
    )
    return VisionTransformer(config, n_classes=10, patch=2, channels=channels)


def conv_net() -> nn.Module:
    """Make a network of three convolutions and a linear map, about as large as the ViT."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 40, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(160, 10),
    )


def with_stem() -> nn.Module:
    """A ViT that reads the output of a convolution instead of the pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), vision_transformer(channels=8)
    )


def shuffle_patches(images: Tensor, order: Tensor, patch: int = 2) -> Tensor:
    """Put a picture's patches into another order: place i gets patch order[i]."""
    cut = F.unfold(images, patch, stride=patch)[:, :, order]  # (B, C * patch * patch, N)
    return F.fold(cut, images.shape[2:], patch, stride=patch)


def shift(images: Tensor) -> Tensor:
    """Move each picture by a random step of its own: -1, 0 or 1 pixel down, and likewise across."""
    down, across = torch.randint(3, (2, len(images), 1, 1))
    rows = torch.arange(8)[:, None] + down  # (N, 8, 1)
    columns = torch.arange(8) + across  # (N, 1, 8)
    picture = torch.arange(len(images))[:, None, None]
    return F.pad(images, (1, 1, 1, 1))[:, 0][picture, rows, columns][:, None]  # (N, 1, 8, 8)


def shift_batch(images: Tensor) -> Tensor:
    """Move all pictures by the same random step: -1, 0 or 1 pixel down, and across."""
    down, across = (int(torch.randint(3, ())) for _ in range(2))
    return F.pad(images, (1, 1, 1, 1))[..., down : down + 8, across : across + 8]


def train(
    model: nn.Module, data: Digits, n_updates: int, rate: float = 2e-3, change=lambda images: images
) -> list[float]:
    """Train with Adam on batches of 64, at a rate that falls linearly to 0; returns the losses.

    change: a function to apply to the pictures of a batch, such as `shift`.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    losses = []
    for step in range(n_updates):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / n_updates)
        chosen = torch.randint(len(data.labels), (64,))
        loss = F.cross_entropy(model(change(data.images[chosen])), data.labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def accuracy(model: nn.Module, data: Digits) -> float:
    """The share of correct answers."""
    return (model(data.images).argmax(-1) == data.labels).float().mean().item()
