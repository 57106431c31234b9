"""Token embeddings: a look-up that equals a one-hot product, scaled by sqrt(d_model)."""

import pytest
import torch
from conftest import assert_equal

from transformer_lib.embeddings import TokenEmbedding


def test_look_up_equals_the_one_hot_product():
    embedding = TokenEmbedding(11, 6)
    ids = torch.randint(11, (2, 5))
    one_hot = torch.nn.functional.one_hot(ids, 11).float()
    assert_equal(embedding(ids), one_hot @ embedding.lookup.weight * 6**0.5, 1e-6)


@pytest.mark.paper("3.4")
@pytest.mark.parametrize("d_model", [16, 64, 256])
def test_scaled_vectors_have_unit_size_whatever_the_width(d_model):
    embedding = TokenEmbedding(2000, d_model)
    assert embedding(torch.arange(2000)[None]).std().item() == pytest.approx(1, abs=0.03)
    assert embedding.lookup.weight.std().item() == pytest.approx(d_model**-0.5, rel=0.03)


@pytest.mark.parametrize("wrong", [11, -1])
def test_ids_outside_the_vocabulary_are_named(wrong):
    ids = torch.tensor([[3, wrong]])
    message = rf"token id .*{wrong}.* outside the vocabulary of 11 .*0 to 10.*tokenizer"
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(11, 6)(ids)
