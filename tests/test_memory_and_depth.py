"""Laws of the longer memories and of adaptive depth: each equals the plain model at its limit."""

import json
import math

import pytest
import torch
from torch.testing import assert_close

from recordings.beyond import early_leaving
from recordings.gate import learned
from transformer_lib.attention import scaled_dot_product_attention
from transformer_lib.beyond import (
    adaptive_depth,
    arrows,
    distance,
    far_links,
    memory,
    neighbours,
    recall,
)
from transformer_lib.beyond.exchange import exchange
from transformer_lib.beyond.learning import learn
from transformer_lib.beyond.sparse import as_mask, layers_to_hear_all
from transformer_lib.cache import DecoderCache
from transformer_lib.config import BlockConfig, ModelConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.encoder import EncoderLayer
from transformer_lib.masks import causal_mask
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer
from transformer_lib.positional import AlibiBias
from transformer_lib.runs.pretrained import load_pretrained, results_dir
from transformer_lib.scoring.verdict import compare_runs
from transformer_lib.training import translation_loss

SIZES = {"d_model": 16, "n_heads": 4, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 3,
         "dropout": 0.0, "max_len": 64}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def config(positional="rotary", **changes):
    return ModelConfig(30, **SIZES | changes, positional=positional)


class Masked(LanguageModel):
    """The same layers over the whole text at once, with the links that a mask names."""

    def decode(self, ids, cache=None):
        return self.decoder(self.embed(self.embedding(ids)), tgt_mask=self.links)


def with_weights_of(model, kind=LanguageModel):
    other = kind(model.config).eval()
    other.load_state_dict(model.state_dict(), strict=False)
    return other


@pytest.fixture
def ids():
    return torch.randint(4, 30, (2, 24))


@pytest.mark.parametrize("positional", ["rotary", "alibi", "none"])
@pytest.mark.parametrize("kv_heads", [None, 2])
def test_a_memory_as_long_as_the_text_is_full_attention(ids, positional, kv_heads):
    model = memory.RecurrentLanguageModel(config(positional, n_kv_heads=kv_heads), 24).eval()
    full = with_weights_of(model)
    for segment in (1, 5, 8, 24):
        assert_close(model.read(ids, segment), full.decode(ids), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("segment, reach", [(4, 8), (8, 4), (8, 0), (6, 5)])
def test_a_shorter_memory_is_a_mask(ids, segment, reach):
    model = memory.RecurrentLanguageModel(config(), reach).eval()
    masked = with_weights_of(model, Masked)
    masked.links = as_mask(memory.by_segments(segment, reach), ids.size(1))
    assert_close(model.read(ids, segment), masked.decode(ids), atol=1e-5, rtol=1e-5)
    assert layers_to_hear_all(masked.links.mT & masked.links) is None  # only itself both ways


def test_how_far_a_stack_hears(ids):
    segment, reach, n_layers = 4, 4, 3
    model = memory.RecurrentLanguageModel(config(), reach).eval()
    last = model.read(ids, segment)[:, -1]

    def moved(place):
        other = ids.clone()
        other[:, place] = 4 + (other[:, place] - 3) % 26
        return (model.read(other, segment)[:, -1] - last).abs().max() > 1e-6

    start = ids.size(1) - segment - n_layers * reach
    assert moved(start) and not moved(start - 1)


def test_no_gradient_flows_into_the_memory(ids):
    model = memory.RecurrentLanguageModel(config(), 8)
    _, memories = model.read_segment(ids[:, :8])
    assert not any(m.requires_grad for m in memories)
    _, memories = model.read_segment(ids[:, 8:16], memories)
    assert not any(m.requires_grad for m in memories)


def test_absolute_positions_are_refused():
    with pytest.raises(ValueError, match="relative"):
        memory.RecurrentLanguageModel(config("sinusoidal"), 8)
    with pytest.raises(ValueError, match="pre-norm"):
        memory.RecurrentLanguageModel(config(norm_first=False), 8)


@pytest.mark.parametrize("segment", [2, 4, 8])
def test_compression_at_rate_one_is_a_plain_memory(ids, segment):
    plain = memory.RecurrentLanguageModel(config(), 12).eval()
    compressive = memory.CompressiveLanguageModel(config(), 12, 7, rate=1).eval()
    compressive.load_state_dict(plain.state_dict(), strict=False)
    assert_close(compressive.read(ids, segment), plain.read(ids, segment), atol=1e-5, rtol=1e-5)


def test_compressed_memories_reach_farther_in_as_many_places(ids):
    model = memory.CompressiveLanguageModel(config(), 8, 4, rate=2).eval()
    memories = None
    for part in ids.split(4, 1):
        _, memories = model.read_segment(part, memories)
    assert all(m.size(1) == 8 for m in memories)
    x = model.embed(model.embedding(ids))  # what the first layer has kept
    assert_close(memories[0][:, 4:], x[:, -4:])
    assert_close(memories[0][:, :4], x[:, -12:-4].unflatten(1, (4, 2)).mean(2))


def test_segments_that_do_not_fit_the_rate_are_refused(ids):
    with pytest.raises(ValueError, match="multiples of the rate"):
        memory.CompressiveLanguageModel(config(), 8, 4, rate=4).read(ids, 6)


@pytest.mark.parametrize("kind", ["attention", "auto"])
def test_compression_losses_teach_the_compression_alone(ids, kind):
    model = memory.CompressiveLanguageModel(config(), 8, 4, rate=2)
    memories, losses = None, []
    optimizer = torch.optim.Adam(model.compressions.parameters(), lr=1e-2)
    for _ in range(30):
        memories = None
        for part in ids.split(8, 1):
            _, memories = model.read_segment(part, memories)
        loss = model.compression_loss(kind)
        optimizer.zero_grad()
        loss.backward(inputs=list(model.compressions.parameters()))
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(p.grad is None for n, p in model.named_parameters() if "compressions" not in n)


def test_both_losses_are_zero_at_rate_one():
    model = memory.CompressiveLanguageModel(config(), 8, 4, rate=1)
    old, x = torch.randn(2, 6, 16), torch.randn(2, 4, 16)
    compression = model.compressions[0]
    layer = model.decoder.layers[0]
    assert memory.attention_reconstruction(compression, layer, x, old) < 1e-12
    with torch.no_grad():
        compression.lengthen.weight.copy_(torch.eye(16)[:, :, None])
        compression.lengthen.bias.zero_()
    assert memory.auto_encoding(compression, old) < 1e-12


def test_a_store_finds_the_nearest():
    keys, queries = torch.randn(50, 8), torch.randn(7, 8)
    distances, places = neighbours.Datastore(keys, torch.arange(50)).nearest(queries, 5)
    expected = torch.cdist(queries, keys).square().sort(-1)
    assert torch.equal(places, expected.indices[:, :5])
    assert_close(distances, expected.values[:, :5], atol=1e-4, rtol=1e-4)


def test_neighbours_give_a_distribution():
    distances, tokens = torch.rand(6, 10), torch.randint(0, 4, (6, 10))
    logp = torch.stack(
        [
            neighbours.neighbour_logp(distances, tokens, torch.full((6,), t), scale=0.5)
            for t in range(4)
        ]
    )
    assert_close(logp.exp().sum(0), torch.ones(6))
    assert neighbours.neighbour_logp(distances, tokens, torch.full((6,), 9), 0.5).isneginf().all()


def test_a_share_of_zero_is_the_model_alone():
    model_logp = torch.randn(5).log_softmax(-1)
    found = torch.tensor([-1.0, -math.inf, -2.0, -0.1, -math.inf])
    assert_close(neighbours.interpolate(model_logp, found, 0.0), model_logp)
    assert_close(neighbours.interpolate(model_logp, found, 1.0), found)
    half = neighbours.interpolate(model_logp, found, 0.5).exp()
    assert_close(half, (model_logp.exp() + found.exp()) / 2)


def test_a_closed_gate_is_the_model_alone():
    gate, hidden, followed = neighbours.Gate(8), torch.randn(5, 8), torch.randn(5, 3, 8)
    assert not torch.allclose(gate(hidden, followed), hidden)
    with torch.no_grad():
        gate.open.bias.fill_(-1e4)
    assert_close(gate(hidden, followed), hidden)


def test_all_keys_as_neighbours_is_full_attention():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 9, 8), torch.randn(2, 3, 9, 8)
    full = scaled_dot_product_attention(q, k, v)[0]
    assert_close(neighbours.nearest_attention(q, k, v, 9), full)
    assert_close(neighbours.nearest_attention(q, k, v, 50), full)
    one = scaled_dot_product_attention(q, k, v)[1].argmax(-1)
    best = v.gather(2, one[..., None].expand(-1, -1, -1, 8))
    assert_close(neighbours.nearest_attention(q, k, v, 1), best)


def test_a_memorizing_model_with_its_gate_closed_is_recurrent(ids):
    plain = memory.RecurrentLanguageModel(config(), 4).eval()
    model = neighbours.MemorizingLanguageModel(config(), 4, n=3).eval()
    model.load_state_dict(plain.state_dict(), strict=False)
    assert not torch.allclose(model.read(ids, 4), plain.read(ids, 4), atol=1e-3)
    with torch.no_grad():
        model.decoder.layers[-1].self_attention.gate.fill_(-1e4)
    assert_close(model.read(ids, 4), plain.read(ids, 4), atol=1e-5, rtol=1e-5)


def test_an_open_gate_reads_only_what_was_found(ids):
    model = neighbours.MemorizingLanguageModel(config(n_decoder_layers=1), 4, n=24).eval()
    other = ids.clone()
    other[:, 18] = 4 + (other[:, 18] - 3) % 26  # near, for the last segment of four
    for gate, reads in ((-1e4, True), (0.0, True), (1e4, False)):
        model.decoder.layers[-1].self_attention.gate.data.fill_(gate)
        moved = (model.read(other, 4) - model.read(ids, 4))[:, -1].abs().max() > 1e-6
        assert moved == reads


def test_a_memorizing_model_reaches_the_beginning(ids):
    model = neighbours.MemorizingLanguageModel(config(), 4, n=24).eval()
    other = ids.clone()
    other[:, 0] = 4 + (other[:, 0] - 3) % 26
    assert (model.read(other, 4) - model.read(ids, 4))[:, -1].abs().max() > 1e-6


def distances(weight, height):
    attention = distance.DistanceAttention(32, 4)
    attention.weight.data.copy_(weight)
    attention.height.data.copy_(height)
    return attention


def test_a_factor_of_weight_zero_leaves_the_scores():
    q, k, v = torch.rand(3, 2, 4, 6, 8).unbind(0)  # no score below 0
    mask = causal_mask(6)
    ours, _ = distances(torch.zeros(4, 1, 1), torch.randn(4, 1, 1)).attend(q, k, v, mask)
    assert_close(ours, scaled_dot_product_attention(q, k, v, mask)[0])


def test_a_query_that_may_attend_to_nothing_gets_zeros_from_a_factor_too():
    q, k, v = torch.randn(3, 2, 4, 6, 8).unbind(0)
    mask = torch.ones(6, 6, dtype=torch.bool).tril(-1)  # the first query is left without a key
    attention = distances(*torch.randn(2, 4, 1, 1))
    output, weights = attention.attend(q, k, v, mask, need_weights=True)
    assert (output[:, :, 0] == 0).all() and (weights[:, :, 0] == 0).all()
    assert output.isfinite().all()


def test_scores_below_zero_are_cut_off_and_the_rest_multiplied():
    q, k, v = torch.randn(3, 2, 4, 6, 8).unbind(0)
    weight, height = torch.tensor([-1.0, -0.2, 0.2, 1.0])[:, None, None], torch.zeros(4, 1, 1)
    scores = torch.empty(2, 4, 6, 6)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        factor = 2 / (1 + math.exp(-weight[h].item() * abs(i - j)))
        scores[b, h, i, j] = max(0.0, (q[b, h, i] @ k[b, h, j]).item() / math.sqrt(8)) * factor
    ours, weights = distances(weight, height).attend(q, k, v, need_weights=True)
    assert_close(ours, scores.softmax(-1) @ v, atol=1e-5, rtol=1e-5)
    assert_close(weights, scores.softmax(-1), atol=1e-5, rtol=1e-5)


def test_a_factor_refuses_a_bias_on_the_scores():
    model = LanguageModel(config("alibi"))
    exchange(model.decoder, distance.DistanceAttention)
    with pytest.raises(ValueError, match="no ALiBi"):
        model(torch.ones(1, 4, dtype=torch.long))


def test_the_factor_is_one_at_distance_zero_and_tends_to_its_bound():
    height = torch.tensor(1.5)
    for weight in (-2.0, 0.0, 3.0):
        factor = distance.distance_factor(torch.tensor([0.0, 500.0]), torch.tensor(weight), height)
        assert_close(factor[0], torch.tensor(1.0))
        far = {-2.0: 0.0, 0.0: 1.0, 3.0: 1 + math.exp(1.5)}[weight]
        assert_close(factor[1], torch.tensor(far))


def test_a_term_without_slope_leaves_the_scores():
    alibi = AlibiBias(4)
    alibi.slopes.zero_()
    q, k, v = torch.randn(3, 2, 4, 6, 8).unbind(0)
    full = scaled_dot_product_attention(q, k, v)[0]
    assert_close(scaled_dot_product_attention(q, k, v, alibi(6, 6))[0], full)


KINDS = {
    "spans": (distance.SpanAttention, {"longest": 24, "start": 1.0}),
    "neighbours": (neighbours.MemorizingAttention, {"n": 3}),  # nothing to search: all is near
}


@pytest.mark.parametrize("positional", ["rotary", "alibi", "sinusoidal", "learned", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_another_attention_keeps_all_that_the_model_had(ids, positional, kind):
    """At its limit each is the model it was put into: positions, grouped heads and no biases."""
    plain = LanguageModel(config(positional, n_kv_heads=2, bias=False)).eval()
    changed = with_weights_of(plain)
    attention, settings = KINDS[kind]
    exchange(changed.decoder, attention, **settings)
    assert_close(changed.decode(ids), plain.decode(ids), atol=1e-5, rtol=1e-5)
    cache = DecoderCache(3)
    steps = [changed.decode(part, cache) for part in ids.split(1, dim=1)]
    assert_close(torch.cat(steps, dim=1), plain.decode(ids), atol=1e-5, rtol=1e-5)


def test_an_exchange_keeps_dropout_and_mode():
    model = LanguageModel(config("rotary", attention_dropout=0.4)).eval()
    exchange(model.decoder, distance.SpanAttention, longest=24)
    attention = model.decoder.layers[0].self_attention
    assert attention.dropout == 0.4 and not attention.training


def test_an_exchange_refuses_what_it_would_drop():
    model = LanguageModel(config())
    exchange(model.decoder, distance.SpanAttention, longest=24)
    with pytest.raises(ValueError, match="SpanAttention already"):
        exchange(model.decoder, distance.DistanceAttention)


@pytest.mark.parametrize("positional", ["rotary", "alibi", "none"])
def test_a_short_span_is_a_window(ids, positional):
    masked = Masked(config(positional)).eval()
    masked.links = as_mask(lambda i, j: (j <= i) & (i - j <= 6), 24)
    spans = with_weights_of(masked, LanguageModel)
    exchange(spans.decoder, distance.SpanAttention, longest=24, ramp=0.5, start=0.25)
    assert_close(spans.decode(ids), masked.decode(ids), atol=1e-5, rtol=1e-5)


def test_the_edge_of_a_span_is_soft():
    span = torch.tensor(5.0, requires_grad=True)
    edge = distance.soft_span(torch.arange(12), span, ramp=4.0)
    assert edge.tolist() == [1] * 6 + [0.75, 0.5, 0.25] + [0] * 3
    edge[7].backward()  # a key within the edge says whether the span should grow
    assert span.grad == 0.25


def test_a_price_shortens_spans():
    attention = distance.SpanAttention(16, 4, longest=24)
    attention.spans().mean().backward()
    assert (attention.share.grad > 0).all()


def adaptive(bias, max_steps=4, threshold=0.99):
    layer = EncoderLayer(BlockConfig(16, 4, 32, dropout=0.0)).eval()
    steps = adaptive_depth.AdaptiveSteps(layer, 16, max_steps, threshold)
    if bias is not None:
        torch.nn.init.zeros_(steps.halt.weight)
        torch.nn.init.constant_(steps.halt.bias, bias)
    return steps


def test_a_place_that_never_halts_takes_all_steps():
    steps, x = adaptive(-40.0), torch.randn(2, 5, 16)
    expected = x
    for time in steps.time:
        expected = steps.layer(expected + time)
    result, taken, ponder = steps(x)
    assert_close(result, expected)
    assert (taken == 4).all() and (ponder == 5).all()


def test_a_place_that_halts_at_once_takes_one_step():
    steps, x = adaptive(40.0), torch.randn(2, 5, 16)
    result, taken, _ = steps(x)
    assert_close(result, steps.layer(x + steps.time[0]))
    assert (taken == 1).all()


def test_a_place_that_has_halted_is_still_read():
    """It keeps its state; its neighbour goes on, and reads that state and no newer one."""
    steps, x = adaptive(None, max_steps=3), torch.randn(1, 2, 16)
    steps.halt.forward = lambda x: torch.tensor([[[40.0], [-40.0]]])  # at once, and never
    result, taken, _ = steps(x)
    expected = steps.layer(x + steps.time[0])
    assert_close(result[:, 0], expected[:, 0])
    for time in steps.time[1:]:
        expected = torch.stack([expected[:, 0], steps.layer(expected + time)[:, 1]], dim=1)
    assert_close(result[:, 1], expected[:, 1])
    assert taken.tolist() == [[1, 3]]


def test_a_result_is_the_mean_of_the_states_by_their_halting():
    steps, x = adaptive(0.0, max_steps=5, threshold=0.9), torch.randn(2, 3, 16)
    result, taken, ponder = steps(x)  # halves: 1/2 and 1/4 are not yet 0.9, 1/2 + 1/2 is
    steps.threshold = 0.3
    states = [steps.layer(x + steps.time[0])]
    states.append(steps.layer(states[0] + steps.time[1]))
    assert (taken == 2).all() and (ponder == 2.5).all()
    assert_close(result, (states[0] + states[1]) / 2)
    result, taken, ponder = steps(x)
    assert (taken == 1).all() and (ponder == 2).all()
    assert_close(result, states[0])


def test_shares_sum_to_one_and_the_ponder_cost_has_a_gradient():
    steps, x = adaptive(None, 6), torch.randn(3, 7, 16)
    steps.layer.forward = lambda x, mask: torch.ones_like(x)  # then the mean must be 1
    result, taken, ponder = steps(x)
    assert_close(result, torch.ones_like(x))
    assert ((ponder > taken) & (ponder <= taken + 1)).all()
    ponder.mean().backward()
    assert steps.halt.bias.grad < 0  # likelier to halt, cheaper


def test_arrows_are_followed():
    to, hops, arrived = arrows.draw(20, 6, 4, torch.Generator().manual_seed(0))
    for a, h, found in zip(to.tolist(), hops.tolist(), arrived.tolist(), strict=True):
        for place in range(6):
            at = place
            for _ in range(h):
                at = a[at]
            assert at == found[place]


def translator():
    return Transformer(config("sinusoidal", n_heads=2)).eval()


@pytest.fixture
def sources():
    ids = torch.randint(4, 30, (5, 7))
    ids[2, 4:] = 0
    return ids


def random_exits(model):
    exits = adaptive_depth.Exits(model.config.d_model, model.config.n_decoder_layers)
    for parameter in exits.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return exits


def test_how_sure_a_token_is():
    model, exits = translator(), random_exits(translator())
    before, after = torch.randn(2, 7, 16)

    def sure(measure, depth=2):
        return adaptive_depth.EarlyLeaving(model, exits, measure, 0.5).sureness(
            before, after, depth
        )

    def project(x):
        return model.project(model.decoder.norm(x))

    assert_close(exits.logits(model, after, 3), project(after))  # the last layer has no map
    words = project(exits.maps[1](after)).softmax(-1).sort(descending=True).values
    assert_close(sure("gap"), words[:, 0] - words[:, 1])
    lengths = before.norm(dim=-1) * after.norm(dim=-1)
    assert_close(sure("stillness"), (before * after).sum(-1) / lengths)
    assert_close(sure("agree"), exits.agree[1](after)[:, 0].sigmoid())
    assert (sure("depth", 3) == 3).all()
    with pytest.raises(ValueError, match="measure is 'mood'"):
        adaptive_depth.EarlyLeaving(model, exits, "mood", 0.5)


@pytest.mark.parametrize("measure", ["gap", "stillness", "agree"])
def test_nobody_leaves_early_above_one(sources, measure):
    model = translator()
    leaving = adaptive_depth.EarlyLeaving(model, random_exits(model), measure, 1.01)
    assert torch.equal(greedy_decode(leaving, sources), greedy_decode(model, sources))
    assert (torch.cat(leaving.depths) == 3).all()
    assert not model.training  # no dropout is left switched on


def test_rows_leave_alone_as_in_a_batch(sources):
    """Skipped layers (all rows have left) and computed ones give the same keys and values."""
    model = translator()
    exits = random_exits(model)
    together = adaptive_depth.EarlyLeaving(model, exits, "agree", 0.5)
    batch = greedy_decode(together, sources, max_len=12)
    depths = torch.cat(together.depths).unique().tolist()
    assert len(depths) > 1
    for row, ids in zip(batch, sources, strict=True):
        own = ids[ids != 0][None]
        one = adaptive_depth.EarlyLeaving(model, exits, "agree", 0.5)
        alone = greedy_decode(one, own, max_len=12)[0]
        assert torch.equal(alone, row[: len(alone)])
        assert all(len(d) == 1 for d in one.depths)


def test_a_skipped_layer_keeps_keys_for_later():
    model = Transformer(config("rotary", n_heads=2)).eval()
    layer, x = model.decoder.layers[1], torch.randn(2, 1, 16)
    memory_, caches = torch.randn(2, 4, 16), [DecoderCache(1).layers[0] for _ in range(2)]
    for _ in range(2):
        layer(x, memory_, None, None, caches[0])
        memory.write_down(layer, x, caches[1].own)
    assert_close(caches[0].own.keys, caches[1].own.keys)
    assert_close(caches[0].own.values, caches[1].own.values)


def test_all_leave_together(sources):
    model = translator()
    exits = adaptive_depth.Exits(16, 3)
    for depth in (1, 2):
        leaving = adaptive_depth.EarlyLeaving(model, exits, "depth", depth)
        greedy_decode(leaving, sources, max_len=5)
        assert (torch.cat(leaving.depths) == depth).all()
        shallow = Transformer(model.config).eval()
        shallow.load_state_dict(model.state_dict())
        shallow.decoder.layers = shallow.decoder.layers[:depth]
        expected = greedy_decode(shallow, sources, max_len=5, use_cache=False)
        assert torch.equal(greedy_decode(leaving, sources, max_len=5), expected)


def test_the_exit_loss_reaches_every_layer(sources):
    model = translator()
    exits = adaptive_depth.Exits(16, 3)
    for _ in range(12):
        batch = sources, torch.randint(4, 30, (5, 6))
        adaptive_depth.random_exit_loss(model, exits, batch).backward()
    assert all(p.grad is not None for p in exits.maps.parameters())


def test_the_exit_loss_is_the_loss_of_a_decoder_that_ends_there(sources, monkeypatch):
    model, exits = translator(), adaptive_depth.Exits(16, 3)
    batch = sources, torch.randint(4, 30, (5, 6))
    batch[1][1, 4:] = 0
    for depth in (1, 2, 3):
        monkeypatch.setattr(torch, "randint", lambda low, high, size, d=depth: torch.tensor(d))
        ours = adaptive_depth.random_exit_loss(model, exits, batch)
        cut = Transformer(model.config).eval()
        cut.load_state_dict(model.state_dict())
        cut.decoder.layers = cut.decoder.layers[:depth]
        assert_close(ours, translation_loss(cut, batch, 0.1))


def test_solved_maps_come_nearest_to_the_last_states(sources):
    model, exits = translator(), adaptive_depth.Exits(16, 3)
    tgt_ids = torch.randint(4, 30, (5, 9))
    states = [x.flatten(0, 1) for x in adaptive_depth.decoder_states(model, sources, tgt_ids)]

    def errors():
        return [
            (m(x) - states[-1]).square().mean().item()
            for m, x in zip(exits.maps, states[:-1], strict=True)
        ]

    identity = errors()
    adaptive_depth.solve_maps(exits, states)
    solved = errors()
    assert all(a < 0.9 * b for a, b in zip(solved, identity, strict=True))
    for linear in exits.maps:
        for parameter in linear.parameters():
            with torch.no_grad():
                parameter += 0.01 * torch.randn_like(parameter)
    assert all(a > b for a, b in zip(errors(), solved, strict=True))


def test_a_solved_map_reads_the_direction_with_the_least_spread():
    """Least squares over many rows drops it in float32 where it's taken for noise."""
    x = torch.randn(30_000, 4) * torch.tensor([1.0, 1.0, 1.0, 1e-3])
    last = 1000 * x[:, 3:].expand(-1, 4)
    exits = adaptive_depth.Exits(4, 2)
    adaptive_depth.solve_maps(exits, [x, last])
    torch.testing.assert_close(exits.maps[0](x), last, atol=1e-2, rtol=0)


def test_agreement_is_learned():
    exits, states = adaptive_depth.Exits(8, 3), [torch.randn(200, 8) for _ in range(3)]
    words = torch.stack(
        [(states[0][:, 0] > 0).long(), (states[1][:, 1] > 0).long(), torch.ones(200).long()]
    )
    optimizer = torch.optim.Adam(exits.agree.parameters(), lr=0.1)
    for _ in range(60):
        loss = adaptive_depth.agreement_loss(exits, states, words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.3
    for f, x, said in zip(exits.agree, states[:-1], words[:-1], strict=True):
        assert ((f(x)[:, 0] > 0) == (said == 1)).float().mean() > 0.9


def test_solved_exits_leave_the_translator_as_it_is():
    if not (results_dir() / "beyond" / "early-leaving" / "solved.safetensors").exists():
        pytest.skip("no exits are recorded")
    found, exits = adaptive_depth.load_exits()
    shipped = load_pretrained("multi30k-de-en")
    for name, tensor in shipped.model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], tensor)
    ids = torch.tensor(shipped.tokenizer.encode("Zwei Hunde spielen im Schnee.").ids + [2])[None]
    leaving = adaptive_depth.EarlyLeaving(found.model, exits, "gap", 1.01)
    assert torch.equal(greedy_decode(leaving, ids), greedy_decode(shipped.model, ids))
    bold = adaptive_depth.EarlyLeaving(found.model, exits, "gap", 0.5)
    greedy_decode(bold, ids)
    assert torch.cat(bold.depths).float().mean() < 3


def test_words_changed():
    changed = adaptive_depth.words_changed
    assert changed("a dog runs", "a dog runs") == changed("runs a dog", "a dog runs") == 0
    assert changed("x y", "a b") == 1
    assert changed("", "a") == 1 and changed("", "") == 0
    assert abs(changed("a dog runs", "a cat runs") - 1 / 3) < 1e-6


def test_calibration_keeps_its_promise():
    """Among many calibrations, the share whose true loss is above what is allowed is below 5 %."""
    true = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.35, 0.501, 0.6, 0.9])
    generator, broken = torch.Generator().manual_seed(0), 0
    for _ in range(400):
        losses = (torch.rand(8, 600, generator=generator) < true[:, None]).float()
        chosen = adaptive_depth.calibrate(losses, 0.5, risk=0.05)
        broken += chosen is not None and true[chosen] > 0.5
    assert broken / 400 <= 0.05
    naive = sum(
        ((torch.rand(8, 600, generator=generator) < true[:, None]).float().mean(1) <= 0.5)[5]
        for _ in range(400)
    )
    assert naive / 400 > 0.2  # a plain mean promises nothing: the test can fail


def test_calibration_stops_at_the_first_failure():
    losses = torch.stack([torch.zeros(1000), torch.ones(1000), torch.zeros(1000)])
    assert adaptive_depth.calibrate(losses, 0.1) == 0
    assert adaptive_depth.calibrate(losses[1:], 0.1) is None
    assert adaptive_depth.calibrate(losses[:1], 0.0) is None


def test_recall_asks_for_what_was_told_before():
    ids, answers, distances = recall.draw(4, 64, 10, torch.Generator().manual_seed(0))
    asked = (answers >= 0).nonzero().tolist()
    assert len(asked) == 40
    for b, t in asked:
        told = ids[b, t - distances[b, t]]
        assert distances[b, t] > 0 and told // 17 == ids[b, t] // 17 != far_links.NOISE
        assert told % 17 == answers[b, t] and ids[b, t] % 17 == far_links.ASKED


@pytest.mark.parametrize("name", recall.NAMES)
def test_every_reader_learns_something(name):
    model, generator = recall.reader(name, 64), torch.Generator().manual_seed(0)
    batch = recall.draw(2, 64, 8, generator)
    losses = learn(model, lambda: recall.answer_loss(model, batch), 12, 0.01)
    assert losses[-1] < losses[0]
    assert len(recall.right_by_distance(model, recall.draw(8, 64, 8, generator), 4)) == 4


# ---- what the page says of recorded runs ---------------------------------------------------------


def recorded(name):
    found = json.loads((results_dir() / "beyond" / f"{name}.json").read_text(encoding="utf8"))
    return [r["settings"] | r for r in found["records"]]


def test_what_the_page_says_of_spans_and_factors_holds():
    records = json.loads((results_dir() / "beyond" / "spans.json").read_text())["records"]
    bits = {}
    for r in records:
        settings = r["settings"]
        if settings["rate"] == 0.003 and settings["part"] == "letters":
            arm = settings["positions"], settings["attention"]
            bits.setdefault(arm, {})[settings["seed"]] = r["bits"]
        spans = [x for layer in r.get("spans", ()) for x in layer]
        assert not any(spans) or settings["attention"] == "free" and max(spans) < 25
        assert all(x < 0 for layer in r.get("weights", ()) for x in layer)

    def mean(*arm, look=1):
        return round(sum(x[look] for x in bits[arm].values()) / len(bits[arm]), 2)

    assert all(len(found) == 3 for found in bits.values())
    assert mean("none", "full") == 3.16 and mean("alibi", "full") == 2.61
    assert mean("none", "factor") == 2.37 and mean("rotary", "full") == 2.30
    assert mean("rotary", "learned") == 2.24
    assert (mean("rotary", "learned", look=0), mean("rotary", "full", look=0)) == (2.74, 2.87)

    def ahead(arm, look):
        one, other = ({k: v[look] for k, v in bits[a].items()} for a in (arm, ("rotary", "full")))
        found = compare_runs(one, other, better="lower")
        return found.word, round(-found.difference, 2)

    assert [ahead(("rotary", "learned"), look)[1] for look in (0, 1)] == [0.13, 0.06]
    assert [ahead(("rotary", "window 16"), look)[1] for look in (0, 1)] == [0.09, 0.03]
    assert ahead(("rotary", "learned"), 0)[0] == ahead(("rotary", "window 16"), 0)[0] == "better"


def test_what_the_page_says_of_neighbours_holds():
    records = json.loads((results_dir() / "beyond" / "neighbours.json").read_text())["records"]
    found = [r for r in records
             if (r["settings"]["part"], r["settings"]["rate"]) == ("captions", 0.004)]
    young, old = ([r for r in found if r["settings"]["updates"] == n] for n in (100, 300))
    assert len(young) == len(old) == 3

    def lower(runs, with_neighbours):
        """By how many percent, on average over the seeds."""
        return sum(100 * (1 - with_neighbours(r) / r["alone"]) for r in runs) / len(runs)

    def store(name):
        return lambda r: r["stores"][name]["test"]

    def rounded(runs, *names):
        return [round(lower(runs, store(name))) for name in names]

    assert rounded(old, "both", "unseen", "seen", "tenth", "random places") == [33, 29, 25, 13, -1]
    assert rounded(young, "both") == [54]
    alone = [round(sum(r["alone"] for r in runs) / 3, 1) for runs in (young, old)]
    assert alone == [110.1, 59.0]
    for name, found in (("nearest", 4.1), ("random", -1.6)):
        assert round(lower(old, lambda r, name=name: r["gate"][name]), 1) == found
    named = [round(100 * sum(r["stores"][n]["named"] for r in old) / 3)
             for n in ("both", "random places")]
    assert named == [68, 26]
    for r in old:
        by = {name: r["stores"][name]["test"] for name in ("both", "unseen", "seen", "tenth")}
        assert list(by.values()) == sorted(by.values()) and by["tenth"] < r["alone"]
        assert r["gate"]["nearest"] < r["alone"] < r["stores"]["random places"]["test"] * 1.01
    longer = [r for r in records if r["settings"]["part"] == "longer"]
    before = {r["settings"]["seed"]: r["alone"] for r in old}
    for reads, updates, rate, by in (("both", 300, 0.004, 4), ("half", 600, 0.004, 20),
                                     ("both", 600, 0.004, 26), ("both", 600, 0.008, 38)):
        way = {"part": "longer", "reads": reads, "updates": updates, "rate": rate}
        runs = [r for r in longer if way.items() <= r["settings"].items()]
        gained = [100 * (1 - r["alone"] / before[r["settings"]["seed"]]) for r in runs]
        assert len(runs) == (3 if rate == 0.004 else 1) and round(sum(gained) / len(runs)) == by
        if (reads, updates) == ("both", 600):
            assert rounded(runs, "both") == [22 if rate == 0.004 else 16]


def test_what_the_page_says_of_recall_holds():
    runs = [r for r in recorded("recall") if r["rate"] == 0.003]

    def percent(memory, *bins):
        found = [r["right"][b] for r in runs if r["memory"] == memory for b in bins]
        assert len(found) == 3 * len(bins)
        return round(100 * sum(found) / len(found))

    assert [percent("recurrent", b) for b in (1, 2)] == [90, 21]
    assert max(percent("recurrent", b) for b in range(3, 8)) <= 8
    assert [percent("mean", b) for b in (2, 3)] == [42, 27]
    middle = {arm: percent(arm, 2, 3) for arm in ("recurrent", "mean", "attention", "auto")}
    assert middle == {"recurrent": 13, "mean": 34, "attention": 30, "auto": 9}
    assert percent("memorizing", *range(8)) == 99


def test_what_the_page_says_of_steps_holds():
    runs = [r for r in recorded("adaptive-steps") if r["rate"] == 0.002]

    def mean(key, price, which=range(5)):
        found = [r[key][i] for r in runs if r["price"] == price for i in which]
        assert len(found) == 3 * len(which)
        return sum(found) / len(found)

    assert round(mean("steps", 0, [4]) - mean("steps", 0, [0]), 1) == 3.5
    assert [round(mean("steps", p), 1) for p in (0, 0.1, 0.3)] == [3.9, 2.2, 1.6]
    assert [round(100 * mean("right", p), 1) for p in (0, 0.1, 0.3)] == [95.2, 99.7, 81.8]
    assert round(mean("steps", 0.1, [4]), 1) == 3.0


def test_exits_that_did_not_improve_on_their_start_have_not_begun():
    """They begin from a trained translator, so that a low loss says nothing."""
    run = {"parameters": 1, "updates": 280, "tokens": 9, "curve": [[140, 2.6], [280, 2.5]]}
    start = {"run": run, "settings": {"part": "trained"}, "start": [0.5, 0.8, 0.9, 1.0]}
    gate = early_leaving.GATE
    assert learned(start | {"agreement": [0.6, 0.8, 0.9, 1.0]}, gate)
    assert not learned(start | {"agreement": [0.52, 0.8, 0.9, 1.0]}, gate)


def test_what_the_page_says_of_leaving_early_holds():
    found = json.loads((results_dir() / "beyond" / "early-leaving.json").read_text())["records"]
    runs = {r["settings"]["part"]: r for r in found if r["settings"].get("rate", 4e-4) == 4e-4}
    cuts, steady = {}, {}
    for arm, run in runs.items():
        assert run["sentences"] == {"validation": 1014, "test": 1000} and len(run["points"]) == 15
        of = {}
        for point in run["points"]:
            of.setdefault(point["measure"], []).append(point["validation"])
        cuts[arm] = {round(v["layers"]): v for v in of["depth"]} | {
            4: {"bleu": run["full"]["validation"]}
        }

        def control(layers, cut=cuts[arm]):
            below = min(3, int(layers))
            step = cut[below + 1]["bleu"] - cut[below]["bleu"]
            return cut[below]["bleu"] + (layers - below) * step

        gains = {
            m: [v["bleu"] - control(v["layers"]) for v in points if v["layers"] > 1.9]
            for m, points in of.items()
        }
        assert all(-0.1 < x < 2.6 for m in ("gap", "agree") for x in gains[m]), gains
        assert max(gains["gap"]) > 1 and max(gains["stillness"]) < 0.3 < max(gains["agree"])
        fewest = min(of["gap"], key=lambda v: v["layers"])
        assert fewest["bleu"] - control(fewest["layers"]) > 2
        like = min(of["gap"], key=lambda v: abs(v["bleu"] - cuts[arm][3]["bleu"]))
        steady[arm] = like["changed"] / cuts[arm][3]["changed"]
    assert max(steady.values()) < 0.75
    lost = {arm: cut[4]["bleu"] - cut[2]["bleu"] for arm, cut in cuts.items()}
    assert lost["trained"] < 5 < 10 < lost["solved"]
    said = {arm: [round(100 * x) for x in run["agreement"][:3]] for arm, run in runs.items()}
    assert said == {"solved": [48, 83, 93], "trained": [65, 87, 94]}
    assert [round(100 * x) for x in runs["solved"]["start"][:3]] == [7, 50, 88]
    full = {arm: round(run["full"]["validation"], 1) for arm, run in runs.items()}
    assert full == {"solved": 42.0, "trained": 42.2}
    assert {arm: round(x, 1) for arm, x in lost.items()} == {"solved": 10.6, "trained": 3.8}
    gap = next(p["validation"] for p in runs["solved"]["points"]
               if p["measure"] == "gap" and p["threshold"] == 0.9)
    deep = cuts["solved"][3]
    found = [(v["layers"], v["bleu"], 100 * v["changed"]) for v in (gap, deep)]
    assert [tuple(round(x, 1) for x in v) for v in found] == [(3.3, 41.3, 5.2), (3.0, 41.1, 14.4)]
