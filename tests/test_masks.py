"""Masks: True = may attend, padding hides keys, causality hides the future."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.masks import causal_mask, decoder_mask, padding_mask


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4),
       st.integers(0, 3))
def test_padding_mask_is_true_at_real_tokens(ids, pad_id):
    mask = padding_mask(torch.tensor(ids), pad_id)
    assert mask.shape == (len(ids), 1, 1, 4)
    assert mask.dtype == torch.bool
    assert mask.flatten(1).tolist() == [[token != pad_id for token in row] for row in ids]


@pytest.mark.paper("3.2.3")
@given(st.integers(1, 12))
def test_causal_mask_shows_the_past_and_itself(size):
    mask = causal_mask(size)
    assert mask.shape == (1, 1, size, size)
    assert mask.dtype == torch.bool
    for i in range(size):
        assert mask[0, 0, i].tolist() == [j <= i for j in range(size)]


def test_masks_combine_with_and():
    mask = padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), 0) & causal_mask(3)
    assert mask.shape == (2, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert mask[1, 0, :, 1:].any().item() is False


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_padding_mask_of_other_shapes_says_what_to_do(shape):
    with pytest.raises(ValueError, match=r"expects ids of shape \(B, T\), got \(.*unsqueeze\(0\)"):
        padding_mask(torch.ones(shape, dtype=torch.long), 0)


def test_a_decoder_reads_neither_padding_nor_the_future():
    ids = torch.tensor([[5, 6, 0], [7, 0, 0]])
    assert torch.equal(decoder_mask(ids), padding_mask(ids, 0) & causal_mask(3))


@given(st.integers(1, 5), st.integers(1, 4))
def test_new_tokens_read_the_cache_and_each_other_backwards(start, length):
    ids = torch.randint(4, 20, (2, length))
    mask, whole = decoder_mask(ids, start), causal_mask(start + length)
    if length == 1:
        assert mask is None and whole[:, :, start:].all()
    else:
        assert torch.equal(mask, whole[:, :, start:])


def test_a_first_token_of_padding_is_hidden_from_itself():
    assert decoder_mask(torch.tensor([[5], [0]])).flatten().tolist() == [True, False]


def test_the_masks_are_where_the_ids_are():
    """"meta" stands for any device that is not the processor."""
    ids = torch.ones(2, 4, dtype=torch.long, device="meta")
    assert decoder_mask(ids).device.type == decoder_mask(ids, 3).device.type == "meta"
