"""Masks: True = may attend, padding hides keys, causality hides the future."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.masks import causal_mask, padding_mask


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4),
       st.integers(0, 3))  # fmt: skip
def test_padding_mask_is_true_at_real_tokens(ids, pad_id):
    mask = padding_mask(torch.tensor(ids), pad_id)
    assert mask.shape == (len(ids), 1, 1, 4)
    assert mask.dtype == torch.bool
    assert mask.flatten(1).tolist() == [[token != pad_id for token in row] for row in ids]


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
