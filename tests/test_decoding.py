"""Decoding: greedy, sampling and beam search against slow versions that are plainly right."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from transformer_lib.decoding import (
    beam_search,
    evaluating,
    finished_score,
    greedy_decode,
    in_batches,
    sample,
)

EOS = 2


def source_batch(seed=0):
    src = random_ids(4, 7, seed=seed)
    src[1, 4:], src[3, 2:] = 0, 0
    return src


@torch.no_grad()
def log_probabilities(model, src, *prefixes):
    """The model's words after each prefix, the whole prefix read anew; <pad> is no word."""
    tgt = torch.tensor([[1, *prefix] for prefix in prefixes])
    logits = model(src.expand(len(prefixes), -1), tgt)[:, -1].clone()
    logits[:, model.config.pad_id] = -math.inf
    return logits.log_softmax(-1).squeeze(0)  # (V,) for one prefix


def slow_greedy(model, src, max_len):
    ids = []
    while len(ids) < max_len and EOS not in ids:
        ids.append(int(log_probabilities(model, src, ids).argmax()))
    return ids


def slow_beam(model, src, n, max_len, penalty):
    """Beam search by the book: all continuations of each prefix, the n best kept."""
    beams, finished = [(0.0, [])], []
    for step in range(1, max_len + 1):
        candidates = []
        rows = log_probabilities(model, src, *(ids for _, ids in beams)).view(len(beams), -1)
        for (total, ids), row in zip(beams, rows.tolist(), strict=True):
            for token, log_p in enumerate(row):
                candidates.append((total + log_p, [*ids, token]))
        candidates.sort(key=lambda pair: -pair[0])
        at_limit = step == max_len
        finished += [
            (s / step**penalty, ids) for s, ids in candidates[:n] if ids[-1] == EOS or at_limit
        ]
        if len(finished) >= n:
            break
        beams = [(s, ids) for s, ids in candidates if ids[-1] != EOS][:n]
    return max(finished, key=lambda pair: pair[0])


def eager_model(seed, **changes):
    """A model that ends its sentences now and then."""
    model = tiny_model(seed, tie_embeddings=False, vocab_size=12, **changes)
    with torch.no_grad():
        model.output.weight[EOS] *= 1.5
    return model


def unpad(row):
    return row[row != 0].tolist()


@settings(max_examples=10)
@given(st.integers(0, 200))
def test_greedy_equals_the_slow_version(seed):
    model, src = eager_model(seed), random_ids(4, 7, vocab_size=12, seed=seed)
    src[1, 4:] = 0
    ids = greedy_decode(model, src, 9)
    assert [unpad(row) for row in ids] == [slow_greedy(model, row, 9) for row in src]


@pytest.mark.paper("6.1")
@settings(max_examples=12)
@given(st.integers(0, 200), st.integers(1, 5), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
def test_beam_search_equals_the_slow_version(seed, beam_size, penalty):
    model, src = eager_model(seed), random_ids(3, 6, vocab_size=12, seed=seed)
    src[1, 3:] = 0
    ids, scores = beam_search(model, src, beam_size, max_len=6, length_penalty=penalty)
    for row, score, source in zip(ids, scores, src, strict=True):
        expected_score, expected = slow_beam(model, source, beam_size, 6, penalty)
        assert unpad(row) == expected
        assert score.item() == pytest.approx(expected_score, abs=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 200))
def test_the_score_is_the_mean_log_probability_of_the_sentence(seed):
    model, src = eager_model(seed), random_ids(1, 5, vocab_size=12, seed=seed)
    ids, scores = beam_search(model, src, 3, max_len=8)
    words = unpad(ids[0])
    total = sum(
        log_probabilities(model, src[0], words[:i])[word].item() for i, word in enumerate(words)
    )
    assert scores[0].item() == pytest.approx(total / len(words))


def test_a_finished_score_is_the_sum_without_a_penalty_and_the_mean_with_1():
    assert [finished_score(-6.0, 4, penalty) for penalty in (0.0, 0.5, 1.0)] == [-6, -3, -1.5]
    totals = torch.tensor([[-6.0, -3.0], [-1.0, -math.inf]])
    assert torch.equal(finished_score(totals, 3, 1.0), totals / 3)


def always(model, token, margin=50.0):
    """Make the model say one token, whatever it reads."""
    with torch.no_grad():
        model.decoder.norm.weight.zero_()
        model.decoder.norm.bias.zero_()[0] = 1.0
        model.output.weight.zero_()
        model.output.weight[token, 0] = margin
    return model


@pytest.mark.parametrize("use_cache", [True, False])
def test_output_ends_with_eos_and_leaves_out_bos(use_cache):
    model = always(tiny_model(tie_embeddings=False), EOS)
    assert greedy_decode(model, source_batch(), 9, use_cache=use_cache).tolist() == [[EOS]] * 4
    ids, _ = beam_search(model, source_batch(), 3, 9)
    assert ids.tolist() == [[EOS]] * 4
    model = always(model, 7)
    assert greedy_decode(model, source_batch(), 9, use_cache=use_cache).tolist() == [[7] * 9] * 4
    assert beam_search(model, source_batch(), 1, 9)[0].tolist() == [[7] * 9] * 4


def test_padding_is_never_written():
    model = always(tiny_model(tie_embeddings=False), 0)
    for ids in (
        greedy_decode(model, source_batch(), 6),
        greedy_decode(model, source_batch(), 6, use_cache=False),
        beam_search(model, source_batch(), 2, 6)[0],
        sample(model, source_batch(), max_len=6),
    ):
        first_eos = (ids == EOS).int().cumsum(1)
        assert ids[first_eos == 0].ne(0).all()


@pytest.mark.paper("6.1")
def test_default_limit_is_the_papers_and_the_models():
    model = always(tiny_model(tie_embeddings=False, max_len=60), 7)
    assert greedy_decode(model, source_batch()).size(1) == 57
    model = always(tiny_model(tie_embeddings=False, max_len=30), 7)
    assert greedy_decode(model, source_batch()).size(1) == 30
    assert beam_search(model, source_batch(), 2)[0].size(1) == 30


@pytest.mark.parametrize("length_penalty", [0.0, 3.0])
def test_length_penalty_chooses_between_short_and_long(length_penalty):
    # At every step <eos> has 0.6, word 7 the rest: log 0.6 > log 0.24, but log 0.6 < log 0.24 / 8.
    model = always(tiny_model(tie_embeddings=False), EOS)
    with torch.no_grad():
        model.output.weight[:, 0] = -50
        model.output.weight[EOS, 0] = math.log(0.6)
        model.output.weight[7, 0] = math.log(0.4)
    ids, _ = beam_search(model, source_batch(), 2, 8, length_penalty)
    assert unpad(ids[0]) == ([EOS] if length_penalty == 0 else [7, EOS])


# --------------------------------------------------------------------------------------- sampling


def next_tokens(n=4000, **options):
    """The first token of n samples from one fixed distribution, and that distribution."""
    model = tiny_model(3, tie_embeddings=False, vocab_size=8)
    model.output.weight.data.mul_(0.5)
    src = random_ids(1, 5, vocab_size=8)
    ids = sample(model, src.expand(n, -1), max_len=1, **options)
    counts = torch.bincount(ids[:, 0], minlength=8) / n
    return counts, log_probabilities(model, src[0], []).exp()


def test_samples_follow_the_model():
    counts, p = next_tokens()
    assert_equal(counts.double(), p, 0.03)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_is_a_power_of_the_probabilities(temperature):
    counts, p = next_tokens(temperature=temperature)
    expected = p ** (1 / temperature)
    assert_equal(counts.double(), expected / expected.sum(), 0.03)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_top_k_keeps_the_k_most_probable(k):
    counts, p = next_tokens(top_k=k)
    kept = p.argsort(descending=True)[:k]
    expected = torch.zeros_like(p).scatter(0, kept, p[kept])
    assert_equal(counts.double(), expected / expected.sum(), 0.03)


@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.7, 1.0])
def test_top_p_keeps_the_fewest_that_reach_p(top_p):
    counts, p = next_tokens(top_p=top_p)
    kept, total = [], 0.0
    for token in p.argsort(descending=True):
        kept.append(token)
        total += p[token].item()
        if total >= top_p:
            break
    kept = torch.tensor(kept)
    expected = torch.zeros_like(p).scatter(0, kept, p[kept])
    assert_equal(counts.double(), expected / expected.sum(), 0.03)


class Coin(nn.Module):
    """Two tokens, a half each, whatever was read."""

    config = tiny_model().config

    def __init__(self, *tokens):
        super().__init__()
        self.tokens = torch.tensor(tokens)

    def start(self, src_ids, bos_id, use_cache=True):
        state = SimpleNamespace(length=0, select=lambda *_: None)
        return torch.full((len(src_ids), 1), bos_id), state

    def step(self, ids, state):
        logits = torch.full((len(ids), self.config.vocab_size), -math.inf)
        return logits.index_fill(1, self.tokens, 0.0)


def test_a_top_p_that_is_reached_exactly_takes_no_more():
    src = random_ids(99, 3)
    drawn = [sample(Coin(5, 8), src, top_p=p, max_len=1).unique() for p in (0.5, 0.6)]
    assert [len(tokens) for tokens in drawn] == [1, 2]


def test_of_equal_scores_the_first_that_was_found_stays():
    ids, scores = beam_search(Coin(EOS, 5), random_ids(1, 3), 2, max_len=4, length_penalty=1)
    assert ids.tolist() == [[EOS]] and scores.item() == pytest.approx(math.log(0.5))


def test_top_k_1_is_greedy():
    model, src = eager_model(5), random_ids(4, 6, vocab_size=12)
    assert torch.equal(sample(model, src, top_k=1, max_len=8), greedy_decode(model, src, 8))


def test_a_generator_makes_samples_repeatable():
    model, src = tiny_model(), source_batch()
    draws = [
        sample(model, src, 3.0, generator=torch.Generator().manual_seed(seed), max_len=8)
        for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not (draws[0].shape == draws[2].shape and torch.equal(draws[0], draws[2]))


@pytest.mark.parametrize(
    ("decode", "expected"),
    [
        (partial(greedy_decode, use_cache=True), 12),
        (partial(greedy_decode, use_cache=False), sum(range(1, 13))),
        (sample, 12),
        (partial(beam_search, beam_size=1), 12),
    ],
    ids=["greedy", "without a cache", "sampling", "beam"],
)
def test_with_a_cache_the_decoder_reads_each_token_once(decode, expected):
    model, read = always(tiny_model(tie_embeddings=False), 7), []
    model.decoder.register_forward_pre_hook(lambda _, given: read.append(given[0].size(1)))
    decode(model, random_ids(1, 5), max_len=12)
    assert sum(read) == expected


# ------------------------------------------------------------------------------ modes and errors


@pytest.mark.parametrize("training", [True, False])
def test_decoding_turns_dropout_off_and_restores_the_mode(training):
    model = tiny_model(dropout=0.5).train(training)
    first, second = (greedy_decode(model, source_batch(), 8) for _ in range(2))
    assert torch.equal(first, second)
    assert model.training == training
    with pytest.raises(RuntimeError), evaluating(model):
        assert not model.training
        raise RuntimeError
    assert model.training == training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, r"temperature is 0; it must be above 0 \(for 0, decode greedily\)"),
        ({"top_k": 0}, "top_k is 0; it must be at least 1"),
        ({"top_p": 0}, r"top_p is 0; it must be in \(0, 1\]"),
        ({"top_p": 1.1}, r"top_p is 1.1; it must be in \(0, 1\]"),
    ],
)
def test_sampling_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        sample(tiny_model(), source_batch(), **options)


@pytest.mark.parametrize("max_len", [0, 41])
@pytest.mark.parametrize("decode", [greedy_decode, beam_search, sample])
def test_a_limit_beyond_the_model_is_named(decode, max_len):
    with pytest.raises(ValueError, match=f"max_len is {max_len}; this model writes between 1 and"):
        decode(tiny_model(), source_batch(), max_len=max_len)


@pytest.mark.parametrize("beam_size", [0, 11])
def test_a_beam_that_does_not_fit_is_named(beam_size):
    with pytest.raises(ValueError, match=rf"beam_size is {beam_size}; .*half the vocabular"):
        beam_search(tiny_model(), source_batch(), beam_size)


@pytest.mark.parametrize("penalty", [101, -200.0, math.inf, math.nan])
def test_a_length_penalty_out_of_bounds_is_an_error(penalty):
    with pytest.raises(ValueError, match="length_penalty is .*; .* -100 and at most 100"):
        beam_search(tiny_model(), source_batch(), 2, max_len=3, length_penalty=penalty)


def test_a_source_without_a_batch_is_an_error():
    with pytest.raises(ValueError, match=r"shape \(5,\).*\(batch, tokens\)"):
        greedy_decode(tiny_model(), random_ids(5))


def test_a_beam_ends_at_its_sentences_own_limit(monkeypatch):
    # The penalty favours long outputs: a sentence that went on beyond its limit would win.
    limits = [2, 6]
    monkeypatch.setattr("transformer_lib.decoding.length_limits", lambda *_: torch.tensor(limits))
    for seed in range(8):
        model, src = eager_model(seed), random_ids(2, 6, vocab_size=12, seed=seed)
        ids, _ = beam_search(model, src, 3, length_penalty=2.0)
        expected = [slow_beam(model, s, 3, n, 2.0)[1] for s, n in zip(src, limits, strict=True)]
        assert [unpad(row) for row in ids] == expected


@pytest.mark.parametrize("decode", [greedy_decode, lambda *a: beam_search(*a, beam_size=3)[0]])
def test_the_length_limit_of_a_sentence_ignores_its_batch(decode):
    """A model that never says <eos> writes up to the limit: the source's length + 50."""
    model = always(tiny_model(tie_embeddings=False, max_len=128), 7)
    src_ids = random_ids(2, 9)
    src_ids[0, 4:] = 0
    assert decode(model, src_ids).ne(0).sum(1).tolist() == [54, 59]
    assert decode(model, src_ids[:1, :4]).shape == (1, 54)


@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "alibi"])
def test_every_tensor_is_made_where_the_model_is(positional):
    """torch.device("meta") takes whatever names no device to a place where nothing is computed."""
    model, src, tgt = tiny_model(positional=positional), source_batch(), random_ids(4, 5)

    def results():
        generator = torch.Generator("cpu").manual_seed(0)
        yield model(src, tgt)
        yield greedy_decode(model, src, 6)
        yield greedy_decode(model, src, use_cache=False)
        yield from beam_search(model, src, 3)
        yield sample(model, src, top_k=3, top_p=0.9, generator=generator, max_len=6)

    expected = [*results()]
    with torch.device("meta"):
        given = [*results()]
    for one, other in zip(given, expected, strict=True):
        assert one.device.type == "cpu"
        assert torch.equal(one, other)


def test_batches_come_back_in_order():
    sources = [[5] * n for n in (3, 9, 1, 4, 4, 7)]
    seen = []

    def lengths(src_ids):
        seen.append(tuple(src_ids.shape))
        return src_ids.ne(0).sum(1).tolist()

    assert in_batches(lengths, sources, max_tokens=8) == [3, 9, 1, 4, 4, 7]
    assert all(rows * longest <= 9 for rows, longest in seen)
    assert len(seen) < len(sources)
    with pytest.raises(ValueError):
        in_batches(lambda src_ids: [0], sources, max_tokens=8)  # too few results
