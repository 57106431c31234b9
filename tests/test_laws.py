"""The laws of the model, on random weights and sizes, for every variant.

float64 throughout, so that equal means equal to 1e-9 and no near tie decides an argmax.
"""

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lib.batching import pad
from transformer_lib.decoding import beam_search, greedy_decode
from transformer_lib.feed_forward import ACTIVATIONS
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.positional import SCHEMES

VOCAB = 14


@st.composite
def models(draw, **fixed):
    """A random model of any variant but batch norm, which breaks these laws by design."""
    n_heads, d_head = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([2, 4]))
    changes = {
        "vocab_size": VOCAB,
        "d_model": n_heads * d_head,
        "n_heads": n_heads,
        "d_ff": draw(st.integers(1, 12)),
        "n_encoder_layers": draw(st.integers(0, 2)),
        "n_decoder_layers": draw(st.integers(1, 2)),
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "norm_first": draw(st.booleans()),
        "positional": draw(st.sampled_from([*SCHEMES])),
        "activation": draw(st.sampled_from([*ACTIVATIONS])),
        "tie_embeddings": draw(st.booleans()),
        "dropout": 0.5,  # off in evaluation: no law may notice it
        "attention_dropout": 0.5,
    }
    return tiny_model(draw(st.integers(0, 999)), **(changes | fixed))


sentences = st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=7)
batches = st.lists(sentences, min_size=1, max_size=4)
many = settings(max_examples=60)


@many
@given(models(), sentences, sentences, st.integers(0, 4), st.integers(0, 4))
def test_padding_never_changes_real_positions(model, src, tgt, more_src, more_tgt):
    plain = model(torch.tensor([src]), torch.tensor([tgt]))
    padded = model(torch.tensor([src + [0] * more_src]), torch.tensor([tgt + [0] * more_tgt]))
    assert_equal(padded[:, : len(tgt)], plain)
    assert padded.isfinite().all()


@pytest.mark.paper("3.2.3")
@many
@given(models(), sentences, sentences, st.data())
def test_the_future_never_changes_the_past(model, src, tgt, data):
    known = data.draw(st.integers(0, len(tgt)), label="known")
    other = tgt[:known] + data.draw(sentences, label="another future")
    src = torch.tensor([src])
    before = model(src, torch.tensor([tgt]))[:, :known]
    assert_equal(model(src, torch.tensor([other]))[:, :known], before)


@many
@given(models(), st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4))
def test_a_batch_equals_its_sentences_one_at_a_time(model, pairs):
    sources, targets = zip(*pairs, strict=True)
    together = model(pad(sources), pad(targets))
    for row, (src, tgt) in zip(together, pairs, strict=True):
        assert_equal(row[: len(tgt)], model(torch.tensor([src]), torch.tensor([tgt]))[0])


@many
@given(models(), batches, st.lists(st.integers(1, 3), min_size=1, max_size=8))
def test_cached_decoding_equals_uncached(model, sources, steps):
    src, tgt = pad(sources), random_ids(len(sources), sum(steps), vocab_size=VOCAB)
    memory, src_mask = model.encode(src), padding_mask(src, 0)
    cache, pieces = model.new_cache(), []
    for piece in tgt.split(steps, 1):
        pieces.append(model.decode(piece, memory, src_mask, cache=cache))
    assert_equal(torch.cat(pieces, 1), model.decode(tgt, memory, src_mask))
    assert cache.length == tgt.size(1)


@settings(max_examples=25)
@given(models(), batches)
def test_greedy_ids_are_the_same_with_and_without_cache(model, sources):
    src = pad(sources)
    assert torch.equal(
        greedy_decode(model, src, 12), greedy_decode(model, src, 12, use_cache=False)
    )


@settings(max_examples=25)
@given(models(), batches)
def test_beam_size_1_equals_greedy(model, sources):
    src = pad(sources)
    assert torch.equal(beam_search(model, src, 1, max_len=12)[0], greedy_decode(model, src, 12))


@settings(max_examples=25)
@given(models(), batches, st.integers(1, 4))
def test_beam_search_of_a_batch_equals_its_sentences_one_at_a_time(model, sources, beam_size):
    together, scores = beam_search(model, pad(sources), beam_size, max_len=6)
    for row, score, src in zip(together, scores, sources, strict=True):
        alone, score_alone = beam_search(model, torch.tensor([src]), beam_size, max_len=6)
        assert row[row != 0].tolist() == alone[0].tolist()
        assert_equal(score, score_alone[0], 1e-6)


def silence(layer):
    """Set what every sublayer writes to zero."""
    for name, parameter in layer.named_parameters():
        if "w_o" in name or "contract" in name:
            parameter.data.zero_()


@many
@given(models(norm_first=True, n_encoder_layers=1))
def test_a_pre_norm_block_with_zeroed_sublayers_is_the_identity(model):
    x = torch.randn(2, 5, model.config.d_model, dtype=torch.float64)
    encoder_layer, decoder_layer = model.encoder.layers[0], model.decoder.layers[0]
    assert not torch.equal(encoder_layer(x), x)
    silence(encoder_layer)
    silence(decoder_layer)
    assert torch.equal(encoder_layer(x), x)
    assert torch.equal(decoder_layer(x, torch.randn_like(x), tgt_mask=causal_mask(5)), x)


@pytest.mark.paper("3.5")
@many
@given(models(positional="none"), sentences, st.randoms())
def test_without_positions_the_encoder_is_permutation_equivariant(model, src, random):
    order = list(range(len(src)))
    random.shuffle(order)
    src = torch.tensor([src])
    assert_equal(model.encode(src[:, order]), model.encode(src)[:, order])


@pytest.mark.parametrize("positional", [p for p in SCHEMES if p != "none"])
def test_with_positions_it_is_not(positional):
    model, src = tiny_model(positional=positional), random_ids(1, 7)
    order = [3, 1, 4, 0, 5, 2, 6]
    assert not torch.allclose(model.encode(src[:, order]), model.encode(src)[:, order], atol=1e-3)


@many
@given(models(), st.lists(sentences, min_size=2, max_size=3), sentences)
def test_a_source_of_nothing_but_padding_gives_numbers(model, sources, tgt):
    src = pad(sources)
    src[0] = 0
    targets = torch.tensor([tgt]).expand(len(src), -1)
    logits = model(src, targets)
    assert logits.isfinite().all()
    assert_equal(logits[1:], model(src[1:], targets[1:]))


@many
@given(models(), sentences, sentences, st.integers(1, 5))
def test_relative_positions_do_not_see_where_a_sentence_starts(model, src, tgt, shift):
    # Padding on the left moves every token; only absolute positions can tell.
    moved = model(torch.tensor([[0] * shift + src]), torch.tensor([[0] * shift + tgt]))
    if model.config.positional in ("rotary", "alibi", "none"):
        plain = model(torch.tensor([src]), torch.tensor([tgt]))
        assert_equal(moved[:, shift:], plain)
    assert moved.isfinite().all()
