"""The whole model: shapes, default masks, tying, initialisation, errors."""

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_config, tiny_model

from transformer_lib import Transformer
from transformer_lib.masks import causal_mask, padding_mask


def test_forward_is_encode_decode_project():
    model, src, tgt = tiny_model(), random_ids(2, 6), random_ids(2, 5)
    memory = model.encode(src)
    hidden = model.decode(tgt, memory)
    logits = model(src, tgt)
    assert memory.shape == (2, 6, 16)
    assert hidden.shape == (2, 5, 16)
    assert logits.shape == (2, 5, 20)
    assert_equal(logits, model.project(hidden))


def test_default_masks_hide_padding_and_future():
    model = tiny_model()
    src, tgt = torch.tensor([[5, 6, 0], [8, 0, 0]]), torch.tensor([[4, 5, 0], [4, 6, 9]])
    src_mask, tgt_mask = padding_mask(src, 0), padding_mask(tgt, 0) & causal_mask(3)
    assert_equal(model(src, tgt), model(src, tgt, src_mask, tgt_mask), 0)
    everything = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    assert not torch.allclose(model(src, tgt), model(src, tgt, everything, tgt_mask))
    assert not torch.allclose(model(src, tgt), model(src, tgt, src_mask, everything))


@pytest.mark.paper("3.4")
def test_tied_embeddings_are_one_matrix():
    tied, free = Transformer(tiny_config()), Transformer(tiny_config(tie_embeddings=False))
    assert tied.src_embedding.lookup.weight is tied.tgt_embedding.lookup.weight
    assert tied.src_embedding.lookup.weight is tied.output.weight
    assert free.count_parameters() - tied.count_parameters() == 2 * 20 * 16
    assert tied.count_parameters() == sum(p.numel() for p in tied.parameters())


def test_base_model_has_the_parameters_of_table_3():
    # Table 3: 65 million, with the 37,000 tokens of sec. 5.1; post-norm has no final norms.
    with torch.device("meta"):
        model = Transformer(tiny_config(
            vocab_size=37000, d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6,
            n_decoder_layers=6, norm_first=False,
        ))
    attention, ffn, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    stacks = 6 * (attention + ffn + 2 * norm) + 6 * (2 * attention + ffn + 3 * norm)
    assert model.count_parameters() == 37000 * 512 + stacks
    assert round(model.count_parameters() / 1e6) in (63, 64, 65)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_untrained_model_is_close_to_undecided(tie, norm_first):
    model = Transformer(tiny_config(
        vocab_size=500, d_model=64, tie_embeddings=tie, norm_first=norm_first
    )).eval()
    logits = model(random_ids(8, 12, vocab_size=500), random_ids(8, 10, vocab_size=500))
    entropy = torch.distributions.Categorical(logits=logits).entropy().mean().item()
    assert entropy > 0.75 * torch.tensor(500.0).log().item()


@pytest.mark.parametrize("norm", ["layer", "rms", "batch"])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_every_variant_gives_finite_gradients_to_all_weights(
    norm, norm_first, positional, activation
):
    model = Transformer(tiny_config(
        norm=norm, norm_first=norm_first, positional=positional, activation=activation, dropout=0.1
    ))
    src, tgt = random_ids(3, 6), random_ids(3, 5)
    src[1, 3:], src[2] = 0, 0  # padding, and a source of nothing but padding
    logits = model(src, tgt)
    logits.logsumexp(-1).sum().backward()
    assert logits.isfinite().all()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


def test_dropout_in_training_alone():
    model, src, tgt = Transformer(tiny_config(dropout=0.3)), random_ids(2, 6), random_ids(2, 5)
    assert not torch.equal(model(src, tgt), model(src, tgt))
    model.eval()
    assert torch.equal(model(src, tgt), model(src, tgt))


@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_longer_than_max_len_is_an_error(positional):
    model = tiny_model(positional=positional, max_len=8)
    model(random_ids(1, 8), random_ids(1, 8))
    message = "sequence of 9 tokens is longer than max_len 8: shorten it, or build.*larger max_len"
    with pytest.raises(ValueError, match=message):
        model(random_ids(1, 9), random_ids(1, 4))
    with pytest.raises(ValueError, match=message):
        model(random_ids(1, 4), random_ids(1, 9))
    cache, memory = model.new_cache(), model.encode(random_ids(1, 4))
    model.decode(random_ids(1, 8), memory, cache=cache)
    with pytest.raises(ValueError, match=message):
        model.decode(random_ids(1, 1), memory, cache=cache)


@pytest.mark.parametrize("side", [0, 1])
def test_ids_outside_the_vocabulary_are_an_error(side):
    ids = [random_ids(1, 4), random_ids(1, 4)]
    ids[side] = ids[side].clone().fill_(20)
    with pytest.raises(ValueError, match=r"token id 20.*vocabulary of 20 \(valid ids: 0 to 19\)"):
        tiny_model()(*ids)


def test_ids_of_the_wrong_shape_or_dtype_are_an_error():
    model = tiny_model()
    with pytest.raises(ValueError, match=r"\(1, 4\) of float32; src_ids must be whole numbers"):
        model(random_ids(1, 4).float(), random_ids(1, 4))
    with pytest.raises(ValueError, match=r"shape \(4,\) and dtype torch.int64; expected integers"):
        model.encode(random_ids(4))


def test_target_ids_without_a_batch_are_an_error():
    model, memory = tiny_model(), tiny_model().encode(random_ids(1, 4))
    with pytest.raises(ValueError, match=r"shape \(4,\).*expected"):
        model.decode(random_ids(4), memory)
    with pytest.raises(ValueError, match=r"expects ids of shape \(B, T\), got \(1,\)"):
        model(random_ids(1, 4), random_ids(1))


def test_batches_of_unequal_size_are_an_error():
    with pytest.raises(ValueError, match="a batch of 2 sources and one of 3 targets do not fit"):
        tiny_model()(random_ids(2, 4), random_ids(3, 4))
