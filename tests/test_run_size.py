"""Run sizes: BOOK_SCALE decides, else the device."""

import pytest
import torch

from transformer_lib.run_size import SIZES, choose, run_size


@pytest.mark.parametrize("size", SIZES)
def test_book_scale_decides(monkeypatch, size):
    monkeypatch.setenv("BOOK_SCALE", size)
    assert run_size() == size
    assert choose(smoke="smoke", cpu="cpu", full="full") == size


@pytest.mark.parametrize("asked", [None, ""])
@pytest.mark.parametrize(("gpu", "size"), [(True, "full"), (False, "cpu")])
def test_without_it_the_device_decides(monkeypatch, asked, gpu, size):
    monkeypatch.delenv("BOOK_SCALE", raising=False)
    if asked is not None:
        monkeypatch.setenv("BOOK_SCALE", asked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert run_size() == size


def test_an_unknown_size_is_named(monkeypatch):
    monkeypatch.setenv("BOOK_SCALE", "huge")
    with pytest.raises(ValueError, match=r"BOOK_SCALE is 'huge'; it must be one of \('smoke', "):
        choose(1, 2, 3)
