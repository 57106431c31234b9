"""The worked example: a model small enough for a pencil that does what the book says it does."""

import json
import math

import pytest
import torch
from conftest import assert_equal

from transformer_lib import decoding, example


@pytest.fixture(scope="module")
def model():
    return example.tiny_model()


@pytest.mark.parametrize("source, target", example.SENTENCES)
def test_it_translates_its_sentences(model, source, target):
    written = decoding.greedy_decode(model, example.ids(source))
    assert example.tokens(written) == target


def test_ids_and_tokens_are_inverse():
    assert (
        example.tokens(example.ids(example.SOURCE))
        == example.SOURCE
        == ["Hunde", "spielen", "<eos>"]
    )
    assert example.TARGET == ["Dogs", "play", "<eos>"]
    assert example.ids(["<pad>", "<bos>", "<eos>", "<unk>"]).tolist() == [[0, 1, 2, 3]]


def test_every_weight_has_one_decimal(model):
    stored = json.loads(example.WEIGHTS.read_text(encoding="utf-8"))
    assert set(stored) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        tenths = torch.tensor(stored[name])
        assert not tenths.is_floating_point()
        assert torch.equal(parameter, tenths / 10)


def test_queries_keys_and_values_are_those_inside_the_model(model):
    layer = model.encoder.layers[0]
    inside = {}
    hook = layer.self_attention.register_forward_hook(
        lambda module, given, output: inside.update(x=given[0], output=output[0])
    )
    with torch.no_grad():
        model.encode(example.ids(example.SOURCE))
    hook.remove()
    assert_equal(example.encoder_input(model), inside["x"], 1e-6)

    heads = []
    for head in range(2):
        q, k, v = example.queries_keys_values(model, head)
        assert q.shape == k.shape == v.shape == (3, 2)
        weights = (q @ k.T / math.sqrt(2)).softmax(-1)  # (3, 3)
        heads.append(weights @ v)
    with torch.no_grad():
        by_hand = layer.self_attention.w_o(torch.cat(heads, dim=-1))
    assert_equal(by_hand, inside["output"][0], 1e-6)
