"""Stacks of the same blocks, put together in other ways: their laws, and the published layers."""

import math

import pytest
import torch
from torch import nn

from transformer_lib.beyond import stacks
from transformer_lib.beyond.one_stream import stream_batches, stream_loss
from transformer_lib.cache import DecoderCache
from transformer_lib.config import BOS, EOS, ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.models.language_model import LanguageModel

SIZES = dict(d_model=32, n_heads=4, d_ff=48, n_encoder_layers=0, n_decoder_layers=4, dropout=0.0,
             max_len=40)


def config(vocab_size=30, **changes):
    return ModelConfig(vocab_size, **SIZES | {"positional": "learned"} | changes)


def plain(seed=0, **changes):
    torch.manual_seed(seed)
    return LanguageModel(config(**changes)).eval()


def same_weights(model, other):
    model.load_state_dict(other.state_dict())
    return model.eval()


IDS = torch.randint(3, 30, (2, 20), generator=torch.Generator().manual_seed(0))


# ---- bands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 2])
def test_a_band_as_wide_as_the_text_changes_nothing(every):
    model = same_weights(stacks.BandedLanguageModel(config(), 20, every), plain())
    torch.testing.assert_close(model(IDS), plain()(IDS))
    narrow = same_weights(stacks.BandedLanguageModel(config(), 19, every), plain())
    assert (narrow(IDS) - plain()(IDS)).abs().max() > 1e-4


@pytest.mark.parametrize(("every", "reach"), [(1, 4 * 2), (2, 20)])
def test_how_far_back_a_stack_of_bands_reaches(every, reach):
    """Four layers with a window of 3 see 2 tokens further back each; one wide layer sees all."""
    model = same_weights(stacks.BandedLanguageModel(config(), 3, every), plain())
    for back in (reach - 1, reach, reach + 1):
        if not 0 < back < 20:
            continue
        other = IDS.clone()
        other[:, 19 - back] = (other[:, 19 - back] + 1 - 3) % 27 + 3
        moved = (model(other) - model(IDS))[:, -1].abs().max() > 0
        assert moved == (back <= reach)


@pytest.mark.parametrize("every", [1, 2])
def test_a_banded_model_decodes_alike_with_and_without_a_cache(every):
    model = same_weights(stacks.BandedLanguageModel(config(), 3, every), plain())
    prompt = torch.tensor([[BOS, 5, 9, 7]])
    assert torch.equal(
        greedy_decode(model, prompt, 12), greedy_decode(model, prompt, 12, use_cache=False)
    )


def test_gpt_neo_with_copied_weights_gives_the_same_logits():
    hf = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = hf.GPTNeoForCausalLM(hf.GPTNeoConfig(
        vocab_size=30, hidden_size=32, num_layers=4, num_heads=4, intermediate_size=48,
        attention_types=[[["global", "local"], 2]], window_size=3, max_position_embeddings=40,
        bos_token_id=1, eos_token_id=2,
    )).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    sizes = config(activation="gelu_tanh", scale_embeddings=False)
    ours = stacks.from_gpt_neo(theirs.state_dict(), sizes, window=3)
    with torch.no_grad():
        torch.testing.assert_close(ours(IDS), theirs(IDS).logits, rtol=1e-5, atol=1e-5)
        wide = stacks.from_gpt_neo(theirs.state_dict(), sizes, window=20)
        assert (wide(IDS) - theirs(IDS).logits).abs().max() > 1e-2


# ---- side by side -------------------------------------------------------------------------------


def test_gpt_j_with_copied_weights_gives_the_same_logits():
    hf = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = hf.GPTJForCausalLM(hf.GPTJConfig(
        vocab_size=30, n_embd=32, n_layer=4, n_head=4, n_inner=48, rotary_dim=4, n_positions=40,
        bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    )).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    sizes = config(positional="none", activation="gelu_tanh", scale_embeddings=False,
                   tie_embeddings=False)
    ours = stacks.from_gpt_j(theirs.state_dict(), sizes, d_turned=4)
    with torch.no_grad():
        torch.testing.assert_close(ours(IDS), theirs(IDS).logits, rtol=1e-5, atol=1e-5)


def test_a_parallel_layer_without_its_network_is_an_attention_in_a_residual():
    layer = stacks.ParallelLayer(config()).eval()
    nn.init.zeros_(layer.feed_forward.contract.weight)
    nn.init.zeros_(layer.feed_forward.contract.bias)
    x, mask = torch.randn(2, 5, 32), torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    y = layer.residuals[0].norm(x)
    torch.testing.assert_close(
        layer(x, tgt_mask=mask), x + layer.self_attention(y, y, y, mask)[0]
    )


def test_rotary_positions_on_a_whole_head_are_rotary_positions():
    from transformer_lib.positional import RotaryEmbedding

    x = torch.randn(2, 4, 6, 8)
    torch.testing.assert_close(stacks.PartlyRotary(8)(x, 3), RotaryEmbedding(8)(x, 3))
    part = stacks.PartlyRotary(4)(x, 3)
    torch.testing.assert_close(part[..., 4:], x[..., 4:])
    torch.testing.assert_close(part[..., :4], RotaryEmbedding(4)(x[..., :4], 3))


# ---- deep ---------------------------------------------------------------------------------------


def deep_like(model):
    """The deep model with a plain one's weights: its table in front, zeros in front of others."""
    deep = stacks.DeepLanguageModel(config(positional="none")).eval()
    state = {k: v for k, v in model.state_dict().items() if not k.startswith("embed.")}
    for i, places in enumerate(deep.places):
        table = model.embed.positions.table.detach()
        state[f"places.{i}.table"] = table if i == 0 else torch.zeros_like(table)
        assert places.table.shape == table.shape
    deep.load_state_dict(state)
    return deep


def test_with_empty_tables_above_the_first_it_is_a_language_model():
    torch.testing.assert_close(deep_like(plain())(IDS), plain()(IDS))


def test_positions_of_upper_layers_count_once_they_are_there():
    deep = deep_like(plain())
    nn.init.normal_(deep.places[2].table)
    assert (deep(IDS) - plain()(IDS)).abs().max() > 1e-2
    cache = DecoderCache(4)
    pieces = [deep.decode(piece, cache) for piece in IDS.split([7, 1, 12], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, 1), deep.decode(IDS))


def test_losses_below_leave_one_after_the_other():
    deep = stacks.DeepLanguageModel(config(positional="none")).eval()
    batches = stream_batches([[]], [[BOS, *IDS[0].tolist(), EOS]], 64, 0)
    batch = batches.tensors([0], torch.device("cpu"))
    each = [
        stream_loss(_Only(deep, level), batch).item() for level in range(4)
    ]
    for progress, first in ((0.0, 0), (0.12, 0), (0.13, 1), (0.3, 2), (0.4, 3), (0.5, 3), (1, 3)):
        expected = sum(each[first:]) / (4 - first)
        found = stacks.losses_of_layers(deep, batch, progress).item()
        assert math.isclose(found, expected, rel_tol=1e-5), progress


class _Only(nn.Module):
    """A model whose hidden states are those of one layer."""

    def __init__(self, model, level):
        super().__init__()
        self.model, self.level, self.project = model, level, model.project

    def decode(self, ids):
        return self.model.decode_all(ids)[self.level]


# ---- pixels -------------------------------------------------------------------------------------


def test_a_picture_survives_its_way_through_text():
    images = torch.randint(0, 17, (5, 1, 8, 8)) / 16
    labels = torch.arange(5)
    ids = stacks.pixels_as_text(images, labels)
    assert ids.shape == (5, 65) and ids[:, 0].tolist() == [18, 19, 20, 21, 22]
    assert ids[:, 1:].min() >= 1 and ids[:, 1:].max() <= 17
    torch.testing.assert_close(stacks.text_as_pixels(ids[:, 1:]), images.flatten(1))
    assert torch.equal(ids[:, 9], (images[:, 0, 1, 0] * 16).round().long() + 1)  # second row
