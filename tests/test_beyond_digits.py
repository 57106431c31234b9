"""The digits of the chapter on the Vision Transformer, its networks, and the ViT of the field."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("sklearn")

from transformer_lib.beyond import digits  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]


def test_the_three_sets_share_no_picture():
    parts = digits.load_digits()
    assert [len(part.labels) for part in parts] == [1200, 200, 397]
    assert parts[0].images.shape[1:] == (1, 8, 8)
    assert parts[0].images.min() == 0 and parts[0].images.max() == 1
    few, *others = digits.load_digits(100)
    assert torch.equal(few.images, parts[0].images[:100])
    assert all(torch.equal(a.images, b.images) for a, b in zip(others, parts[1:], strict=True))
    with pytest.raises(ValueError, match="1 to 1200"):
        digits.load_digits(1500)


def test_shuffled_patches_come_back_by_the_inverse_order():
    images, order = torch.rand(2, 3, 8, 8), torch.randperm(16)
    moved = digits.shuffle_patches(images, order)
    assert torch.equal(digits.shuffle_patches(moved, order.argsort()), images)
    p = order[0].item()
    y, x = 2 * (p // 4), 2 * (p % 4)
    assert torch.equal(moved[:, :, :2, :2], images[:, :, y : y + 2, x : x + 2])


@pytest.mark.parametrize("shift", [digits.shift, digits.shift_batch])
def test_a_shift_moves_by_at_most_one_pixel(shift):
    image = torch.zeros(1, 1, 8, 8)
    image[..., 4, 4] = 1
    seen = {tuple(shift(image)[0, 0].nonzero()[0].tolist()) for _ in range(200)}
    assert seen == {(y, x) for y in (3, 4, 5) for x in (3, 4, 5)}


def test_each_picture_takes_a_step_of_its_own_or_all_take_one():
    images = torch.arange(40 * 64.0).view(40, 1, 8, 8) + 1
    torch.manual_seed(0)
    moved, together = digits.shift(images), digits.shift_batch(images)
    steps = [{(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)
              if torch.equal(picture[0, 1:7, 1:7], old[0, 1 + y : 7 + y, 1 + x : 7 + x])}
             for picture, old in zip(moved, images, strict=True)]
    assert all(len(step) == 1 for step in steps) and len(set.union(*steps)) > 5
    assert len({(after - before)[0, 3, 3].item()
                for after, before in zip(together, images, strict=True)}) == 1


def test_the_networks_have_about_equally_many_parameters():
    sizes = [
        sum(p.numel() for p in make().parameters())
        for make in (digits.vision_transformer, digits.conv_net, digits.with_stem)
    ]
    assert max(sizes) < 1.08 * min(sizes)


def test_training_learns():
    torch.manual_seed(0)
    train_set, _, test_set = digits.load_digits(300)
    model = digits.conv_net()
    losses = digits.train(model, train_set, 60, rate=3e-3)
    assert losses[-1] < losses[0] / 2
    assert digits.accuracy(model, test_set) > 0.5


def cell(name):
    """A code cell of the chapter that defines `name`, up to its first `if`."""
    page = json.loads((ROOT / "book" / "21_vision_transformer.ipynb").read_text(encoding="utf8"))
    found = ["".join(c["source"]) for c in page["cells"] if c["cell_type"] == "code"]
    return next(source for source in found if f"def {name}(" in source).partition("\nif ")[0]


@torch.no_grad()
@pytest.mark.parametrize("channels", [1, 3])
def test_our_model_equals_the_vit_of_transformers(channels):
    """With the renaming that the chapter prints."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=8, patch_size=2, num_channels=channels, layer_norm_eps=1e-5, num_labels=10,
        initializer_range=0.3,
    )).double().eval()
    for name, parameter in theirs.named_parameters():
        if parameter.dim() == 1 or "cls_token" in name:
            parameter.add_(0.3 * torch.randn_like(parameter))
    space = {}
    exec(cell("renamed"), space)  # noqa: S102
    ours = digits.vision_transformer(channels=channels).double().eval()
    ours.load_state_dict(space["renamed"](theirs.state_dict()))
    images = torch.randn(3, channels, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(ours(images), theirs(images).logits, rtol=1e-6, atol=1e-6)
    assert ours(images).std() > 0.1
