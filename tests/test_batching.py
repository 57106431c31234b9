"""Batches: every sentence once, inside the budget, with little padding, repeatable."""

import itertools
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib import data
from transformer_lib.batching import Batches, TokenBatchSampler, pad, padding_share
from transformer_lib.tokenization import encode_pairs, train_tokenizer
from transformer_lib.training import translation_batches

pairs_of_lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1)


@pytest.mark.paper("5.1")
@given(pairs_of_lengths, st.integers(40, 300), st.booleans(), st.integers(0, 9))
def test_every_sentence_once_and_within_the_budget(lengths, max_tokens, shuffle, epoch):
    sampler = TokenBatchSampler(lengths, max_tokens, shuffle)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert len(sampler) == len(batches)
    for batch in batches:
        for side in (0, 1):
            assert len(batch) * max(lengths[i][side] for i in batch) <= max_tokens


@given(pairs_of_lengths, st.integers(0, 9), st.integers(0, 9))
def test_same_seed_and_epoch_same_batches(lengths, seed, epoch):
    first, second = (TokenBatchSampler(lengths, 100, seed=seed) for _ in range(2))
    list(first)  # what was iterated before does not matter
    for sampler in (first, second):
        sampler.set_epoch(epoch)
    assert list(first) == list(second)


def test_epochs_and_seeds_differ():
    lengths = [(5, 6)] * 50 + [(9, 8)] * 50
    orders = set()
    for seed, epoch in ((0, 0), (0, 1), (1, 0), (1, 1)):
        sampler = TokenBatchSampler(lengths, 60, seed=seed)
        sampler.set_epoch(epoch)
        orders.add(str(list(sampler)))
        # Not only the order of the batches: other sentences come together.
        orders.add(str(sorted(sorted(batch) for batch in sampler)))
    assert len(orders) == 8


@given(st.lists(st.integers(1, 40), min_size=1))
def test_without_shuffle_from_short_to_long(lengths):
    order = [lengths[i] for batch in TokenBatchSampler(lengths, 80, shuffle=False) for i in batch]
    assert order == sorted(lengths)


def test_without_shuffle_the_like_stay_in_their_order():
    assert sum(TokenBatchSampler([7] * 20, 30, shuffle=False), []) == list(range(20))


def test_it_begins_with_epoch_0():
    first, again = (TokenBatchSampler([7] * 20, 30) for _ in range(2))
    again.set_epoch(0)
    assert list(first) == list(again)


def random_lengths(n=3000):
    """Pairs as captions have them: sides of like length, a few words apart."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(n, generator=generator).mul(4).add(15).clamp(4, 40)
    target = source + torch.randn(n, generator=generator).mul(2)
    return list(zip(source.int().tolist(), target.clamp(4, 40).int().tolist(), strict=True))


@pytest.mark.paper("5.1")
def test_sorting_saves_most_of_the_padding():
    lengths = random_lengths()
    unsorted = [list(range(i, min(i + 60, len(lengths)))) for i in range(0, len(lengths), 60)]
    bucketed = list(TokenBatchSampler(lengths, 1024))
    assert padding_share(lengths, bucketed) < padding_share(lengths, unsorted) / 4
    assert len(bucketed) < 1.1 * sum(map(max, lengths)) / 1024  # the batches are full


def test_a_batch_may_fill_its_budget_to_the_last_token():
    assert [len(batch) for batch in TokenBatchSampler([5] * 8, 20, shuffle=False)] == [4, 4]


def test_batches_come_in_any_order_when_shuffled():
    lengths = list(range(1, 41))
    for shuffle in (False, True):
        longest = [max(lengths[i] for i in b) for b in TokenBatchSampler(lengths, 80, shuffle)]
        assert (longest == sorted(longest)) is not shuffle


def test_neighbours_in_the_order_differ_by_one_token():
    # One path through all pairs of lengths: a batch that spans two lengths holds like shapes.
    pairs = list(itertools.product(range(1, 9), repeat=2))
    order = [pairs[i] for batch in TokenBatchSampler(pairs, 40, shuffle=False) for i in batch]
    for (s, t), (next_s, next_t) in itertools.pairwise(order):
        assert abs(next_s - s) + abs(next_t - t) == 1


@pytest.mark.skipif("MULTI30K_DIR" not in os.environ, reason="needs MULTI30K_DIR")
def test_padding_on_multi30k_is_below_5_percent():
    train = data.load_parallel("multi30k")["train"]
    tokenizer = train_tokenizer([text for pair in train for text in pair], 10_000)
    sources, targets = encode_pairs(tokenizer, train)
    lengths = [(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]
    for direction in (lengths, [(t, s) for s, t in lengths]):
        batches = list(TokenBatchSampler(direction, max_tokens=4096))
        assert padding_share(direction, batches) < 0.05
        assert len(batches) <= 127


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=4), st.integers(0, 1))
def test_pad_fills_on_the_right(sequences, pad_id):
    padded = pad(sequences, pad_id)
    longest = max(map(len, sequences))
    assert padded.dtype == torch.int64
    assert padded.tolist() == [ids + [pad_id] * (longest - len(ids)) for ids in sequences]


def test_padding_share_by_hand():
    # Source: 3 + 1 real of 6; target: 2 + 2 real of 4; alone: 5 + 5 of 10.
    assert padding_share([(3, 2), (1, 2), (5, 5)], [[0, 1], [2]]) == pytest.approx(1 - 18 / 20)


def test_no_sentences_are_an_error():
    with pytest.raises(ValueError, match="no sentences to batch: the data set is empty"):
        TokenBatchSampler([], 100)


def test_a_sentence_over_the_budget_is_named():
    with pytest.raises(ValueError, match="sentence 1 has 101 tokens, more than max_tokens 100: ra"):
        TokenBatchSampler([(5, 5), (3, 101), (4, 4)], 100)


def a_stream(seed: int) -> Batches:
    """Forty examples of like length, four a batch."""
    ids = [[i] * 5 for i in range(4, 44)]
    return Batches([ids], [5] * len(ids), [5] * len(ids), max_tokens=20, seed=seed)


def test_another_seed_is_another_order():
    first, again, other = (list(itertools.islice(iter(a_stream(seed)), 10)) for seed in (0, 0, 1))
    assert first == again != other
    assert sorted(sum(other, [])) == sorted(sum(first, []))  # the same examples, each once


def test_epochs_count_the_part_of_the_one_under_way():
    stream = a_stream(0)
    seen = []
    for _ in itertools.islice(iter(stream), 15):
        seen.append(stream.epochs())
    assert seen == pytest.approx([i / 10 for i in range(1, 16)])


def test_pairs_are_read_backwards_in_the_first_epochs_only():
    """Each then occurs twice in an epoch, the second time with source and target exchanged."""
    sources, targets = [[4, 2], [5, 6, 2]], [[1, 7, 8, 2], [1, 9, 2]]
    batches = translation_batches(sources, targets, max_tokens=4, seed=0, both_directions=2)
    seen = []
    for batch in itertools.islice(iter(batches), 30):
        epoch = batches.epoch
        for i in batch:
            pair = tuple(tuple(column[i]) for column in batches.columns)
            seen.append((epoch, pair))
    forward = {((4, 2), (1, 7, 8, 2)), ((5, 6, 2), (1, 9, 2))}
    backward = {((7, 8, 2), (1, 4, 2)), ((9, 2), (1, 5, 6, 2))}
    for epoch in range(4):
        found = sorted(pair for at, pair in seen if at == epoch)
        assert found == sorted(forward | backward if epoch < 2 else forward)
    assert batches.n_tokens([2, 3]) == 2 + 3  # every target token but <bos>


def test_extra_examples_take_part_only_in_the_epochs_that_are_named():
    columns, lengths = [[[1]] * 6], [1] * 6
    for named in ({}, {"extra_epochs": 0}, {"extra_epochs": 1}):
        batches = Batches(columns, lengths, lengths, 2, 0, extra=2, **named)
        stream, seen = iter(batches), []
        for epoch in range(2):
            seen.append(set())
            while len(seen[epoch]) < (6 if epoch < named.get("extra_epochs", 0) else 4):
                seen[epoch] |= set(next(stream))
        first = range(6) if named.get("extra_epochs") else range(4)
        assert seen == [set(first), set(range(4))]
