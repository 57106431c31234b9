"""Run sizes: BOOK_SCALE decides, else the notebook and the device it trains on."""

import json
import re
from pathlib import Path

import pytest
import torch

import transformer_lib.run_size
from transformer_lib.run_size import SIZES, choose, on_gpu, run_size

BOOK = Path(__file__).resolve().parents[1] / "book"


@pytest.fixture(autouse=True)
def a_new_notebook(monkeypatch):
    monkeypatch.setattr(transformer_lib.run_size, "_large", False)


@pytest.mark.parametrize("size", SIZES)
def test_book_scale_decides(monkeypatch, size):
    monkeypatch.setenv("BOOK_SCALE", size)
    assert run_size() == size
    assert choose(smoke="smoke", cpu="cpu", full="full") == size


@pytest.mark.parametrize("asked", [None, ""])
@pytest.mark.parametrize(("gpu", "size"), [(True, "full"), (False, "cpu")])
def test_without_it_a_notebook_that_trains_on_a_gpu_is_large_there(monkeypatch, asked, gpu, size):
    monkeypatch.delenv("BOOK_SCALE", raising=False)
    if asked is not None:
        monkeypatch.setenv("BOOK_SCALE", asked)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert run_size() == "cpu"  # toys stay on the processor: a GPU makes them no faster
    on_gpu()
    assert run_size() == size


def test_an_unknown_size_is_named(monkeypatch):
    monkeypatch.setenv("BOOK_SCALE", "huge")
    with pytest.raises(ValueError, match=r"BOOK_SCALE is 'huge'; it must be one of \('smoke', "):
        choose(1, 2, 3)


def test_the_notebooks_that_train_on_a_gpu_say_so():
    """TrainConfig's device is "auto", so a notebook that leaves it at that trains on a GPU."""
    said, trained = set(), set()
    for path in BOOK.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"
                and not any(tag.startswith("lib:") for tag in cell["metadata"].get("tags", []))]
        said |= {path.name} if any("on_gpu()" in source for source in code) else set()
        text = "\n".join(code)
        if re.search(r"\btraining\.train\(", text) and 'device="cpu"' not in text:
            trained.add(path.name)
    assert said == trained == {"16_training_on_multi30k.ipynb"}
