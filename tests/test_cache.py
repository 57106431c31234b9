"""What decoding keeps between steps: rows that can be reordered, a memory that is read once."""

import torch
from conftest import assert_equal, random_ids, tiny_model

from transformer_lib.cache import DecoderCache, DecodingState, KeyValueCache


def test_a_cache_can_reorder_and_repeat_rows():
    cache = KeyValueCache()
    cache.select(torch.tensor([0]))  # nothing kept yet, nothing to do
    keys, values = torch.randn(3, 2, 4, 5), torch.randn(3, 2, 4, 5)
    cache.append(keys, values)
    rows = torch.tensor([2, 0, 2, 1])
    cache.select(rows)
    assert torch.equal(cache.keys, keys[rows])
    assert torch.equal(cache.values, values[rows])


def test_what_is_appended_comes_out_in_order():
    cache, keys, values = KeyValueCache(), torch.randn(3, 2, 9, 5), torch.randn(3, 2, 9, 5)
    for start, end in ((0, 1), (1, 5), (5, 6), (6, 9)):
        kept = cache.append(keys[:, :, start:end], values[:, :, start:end])
        assert torch.equal(kept[0], keys[:, :, :end])
        assert torch.equal(kept[1], values[:, :, :end])
    assert cache.length == 9


def test_a_state_without_a_cache_has_seen_nothing():
    state = DecodingState(None, torch.randn(3, 4, 8), torch.ones(3, 1, 1, 4, dtype=torch.bool))
    assert state.length == 0
    memory = state.memory
    state.select(torch.tensor([5, 1]))  # hypotheses alone: the sentences stay
    assert state.memory is memory
    state.select(torch.tensor([0]), torch.tensor([2]))
    assert torch.equal(state.memory, memory[[2]])
    assert len(state.src_mask) == 1


def test_a_state_goes_on_with_the_hypotheses_it_keeps():
    model, src = tiny_model(), random_ids(3, 6)
    src[1, 4:] = 0
    ids, state = model.start(src, bos_id=1)
    assert ids.tolist() == [[1]] * 3
    prefix = torch.cat([ids.repeat_interleave(2, 0), random_ids(6, 3)], 1)  # two for each source
    for t in range(3):
        assert state.length == t
        model.step(prefix[:, t : t + 1], state)
    rows, sentences = torch.tensor([5, 5, 2, 3]), torch.tensor([2, 1])
    state.select(rows, sentences)
    logits = model.step(prefix[rows, 3:], state)
    for row, hypothesis in zip(logits, rows.tolist(), strict=True):
        expected = model(src[[hypothesis // 2]], prefix[[hypothesis]])[0, -1]
        assert_equal(row, expected)


def test_a_decoder_without_layers_has_seen_nothing():
    assert DecoderCache(2).length == 0
    assert DecoderCache(0).length == 0
