"""Labelled data of the hub, read from folders of the same form."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from transformer_lib.beyond import digits
from transformer_lib.corpora import hub, labelled

pytest.importorskip("datasets")


@pytest.fixture
def sentences(tmp_path):
    for split, number in (("train", 3), ("test", 2)):
        rows = [{"text": f"{split} {i}", "label": i % 2} for i in range(number)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path)


def test_each_split_has_its_inputs_and_labels(sentences):
    found = labelled.load_labelled(sentences, "text")
    assert found["train"] == (["train 0", "train 1", "train 2"], [0, 1, 0])
    assert found["test"] == (["test 0", "test 1"], [0, 1])


def test_a_missing_column_is_named(sentences):
    with pytest.raises(ValueError, match="has the columns .*; it needs 'sentence' and 'label'"):
        labelled.load_labelled(sentences, "sentence")


def test_a_silent_hub_is_asked_once(silent_hub):
    for name in ("some/set", "other/set"):
        with pytest.raises(ConnectionError, match=f"{name} cannot be loaded here: the hub"):
            labelled.load_labelled(name, "text")
        assert len(silent_hub) == 1


def test_a_hub_that_answers_is_one_to_read_from(monkeypatch):
    """Also where it does not know the data set; then its answer is told."""
    monkeypatch.setattr(hub.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.setattr(hub, "_silent_hubs", set())  # whatever other tests met
    monkeypatch.setattr("datasets.load_dataset", lambda name: {}[name])
    with pytest.raises(ConnectionError, match="some/set cannot be loaded here: 'some/set'"):
        labelled.load_labelled("some/set", "text")


def test_mnist_is_averaged_to_the_size_of_the_other_digits(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((28, 28), dtype=np.uint8)
    pixels[:14] = 255  # the upper half is ink
    for split in ("train", "test"):
        for label in ("0", "7"):
            (tmp_path / split / label).mkdir(parents=True)
            image.fromarray(pixels).save(tmp_path / split / label / "a.png")
    for found in digits.load_mnist(str(tmp_path)):
        assert found.images.shape == (2, 1, 8, 8)
        assert found.images.mean() == pytest.approx(0.5)
        assert torch.equal(found.images[:, :, :4], torch.ones(2, 1, 4, 8))
        assert found.labels.tolist() == [0, 1]  # the folders in their order


def test_a_line_is_one_whatever_its_strings_hold(tmp_path):
    """Of a line of JSON, only its end ends it: U+2028 may stand in a sentence."""
    path = tmp_path / "train.jsonl"
    good = '{"text": "one\u2028two", "label": 0}\n'
    path.write_text(good + good, encoding="utf-8")
    assert hub._problem(path) == ""
    path.write_text(good + "[1]\n", encoding="utf-8")
    assert hub._problem(path).startswith("train.jsonl, line 2: '[1]'")
