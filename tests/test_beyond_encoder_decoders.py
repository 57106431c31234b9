"""Damaged texts, T5's relative bias, and decoders that read other encoder layers."""

import json
import random
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_config
from hypothesis import given
from hypothesis import strategies as st

from transformer_lib.beyond.denoising import (
    DamagedBatches,
    local_shuffle,
    poisson,
    random_lengths,
    restore,
    span_corruption,
    text_infilling,
    token_deletion,
    token_masking,
    two_tags,
)
from transformer_lib.beyond.layer_memory import reads_layers
from transformer_lib.beyond.relative_bias import (
    RelativeBias,
    add_relative_bias,
    distance_bucket,
    from_t5,
    t5_config,
)
from transformer_lib.config import BOS, EOS, PAD
from transformer_lib.decoding import beam_search, greedy_decode
from transformer_lib.models.transformer import Transformer
from transformer_lib.training import translation_loss

ROOT = Path(__file__).resolve().parents[1]
GAP = 1000
texts = st.lists(st.integers(4, 99), min_size=2, max_size=40)
seeds = st.integers(0, 10_000)
shares = st.floats(0.05, 0.9)


def is_part_in_order(part, whole):
    rest = iter(whole)
    return all(token in rest for token in part)


# ---- damage -------------------------------------------------------------------------------------


@given(texts, seeds, shares, st.floats(1, 5))
def test_the_spans_restore_the_text(ids, seed, share, span):
    source, target = span_corruption(ids, GAP, random.Random(seed), share, span)
    assert restore(source, target, GAP) == ids
    gaps = [token - GAP for token in source if token >= GAP]
    assert gaps == list(range(len(gaps))), "numbered from the left, each once"
    assert target[-1] == GAP + len(gaps)
    no_neighbours = zip(source, source[1:], strict=False)
    assert not any(a >= GAP and b >= GAP for a, b in no_neighbours)


@given(texts, seeds, shares)
def test_span_corruption_loses_the_share_asked_for(ids, seed, share):
    source, target = span_corruption(ids, GAP, random.Random(seed), share)
    lost = sum(token < GAP for token in target)
    assert lost == min(max(round(len(ids) * share), 1), len(ids) - 1)
    assert lost + sum(token < GAP for token in source) == len(ids)


def test_a_span_may_stand_anywhere():
    rng = random.Random(0)
    first = Counter(span_corruption(list(range(10)), GAP, rng)[0].index(GAP) for _ in range(900))
    assert set(first) == set(range(9)) and min(first.values()) > 60  # each about 100 times


def test_a_text_too_short_to_lose_a_span_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        span_corruption([5], GAP, random.Random(0))


@given(texts, seeds, st.floats(0, 0.9), st.floats(0.5, 5))
def test_infilling_keeps_the_rest_in_order(ids, seed, share, span):
    source = text_infilling(ids, GAP, random.Random(seed), share, span)
    kept = [token for token in source if token != GAP]
    assert len(kept) == len(ids) - round(len(ids) * share)
    assert is_part_in_order(kept, ids)


def test_infilling_hides_how_long_a_gap_is():
    """One gap stands for one token as well as for several, and now and then for none."""
    rng, ids = random.Random(0), list(range(20))
    gaps = Counter(text_infilling(ids, GAP, rng).count(GAP) for _ in range(500))
    assert len(gaps) >= 4


@given(texts, seeds, shares)
def test_masking_keeps_the_places_and_deletion_does_not(ids, seed, share):
    lost = round(len(ids) * share)
    masked = token_masking(ids, GAP, random.Random(seed), share)
    assert len(masked) == len(ids) and masked.count(GAP) == lost
    assert all(a in (b, GAP) for a, b in zip(masked, ids, strict=True))
    deleted = token_deletion(ids, random.Random(seed), share)
    assert deleted == [token for token in masked if token != GAP]


@given(seeds, st.integers(1, 40), st.integers(0, 6))
def test_no_token_is_shuffled_further_than_it_may(seed, length, reach):
    shuffled = local_shuffle(list(range(length)), random.Random(seed), reach)
    assert sorted(shuffled) == list(range(length))
    assert all(abs(i - j) <= reach for i, j in enumerate(shuffled))


@given(seeds, st.integers(1, 30), st.data())
def test_random_lengths_sum_to_the_total(seed, total, data):
    parts = data.draw(st.integers(1, total))
    lengths = random_lengths(total, parts, random.Random(seed))
    assert sum(lengths) == total and len(lengths) == parts and min(lengths) >= 1


def test_poisson_has_its_mean_and_variance():
    rng = random.Random(0)
    drawn = torch.tensor([poisson(3.0, rng) for _ in range(4000)], dtype=torch.float)
    assert abs(drawn.mean() - 3) < 0.15 and abs(drawn.var() - 3) < 0.3


TEXTS = [[10, 11, 12, 13, 14, 15], [20, 21, 22], [30, 31, 32, 33, 34]]


def infilled(ids, rng):
    return text_infilling(ids, GAP, rng), ids


def test_batches_are_damaged_anew_in_each_epoch_and_repeatable():
    def epochs(n):
        batches = DamagedBatches(TEXTS, [90, 91, 90], infilled, 64, seed=1)
        found = []
        for numbers in batches:
            found.append(batches.tensors(numbers, torch.device("cpu")))
            if len(found) == n:
                return found

    first, again = epochs(8), epochs(8)
    for one, other in zip(first, again, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    sources = {str(source.tolist()) for source, _ in first}
    assert len(sources) > 4, "the same damage in every epoch"


def test_a_damaged_batch_is_what_the_translation_loss_reads():
    batches = DamagedBatches(TEXTS, [90, 91, 90], infilled, 64, seed=0)
    src_ids, tgt_ids = batches.tensors([0, 1, 2], torch.device("cpu"))
    assert src_ids[:, 0].tolist() == [90, 91, 90]
    for source, target, text in zip(src_ids.tolist(), tgt_ids.tolist(), TEXTS, strict=True):
        assert [token for token in target if token != PAD] == [BOS, *text, EOS]
        assert source[: len(source) - source.count(PAD)][-1] == EOS
    predicted = tgt_ids[:, 1:]
    assert batches.n_tokens([0, 1, 2]) == int((predicted != PAD).sum())
    model = Transformer(tiny_config(vocab_size=GAP + 1))
    assert translation_loss(model, (src_ids, tgt_ids)).isfinite()


def test_the_tokens_of_t5s_targets_are_counted():
    def lost(ids, rng):
        return span_corruption(ids, GAP, rng)

    batches = DamagedBatches(TEXTS, [90] * 3, lost, 64, seed=0)
    for _ in range(5):
        _, tgt_ids = batches.tensors([0, 1, 2], torch.device("cpu"))
        assert batches.n_tokens([0, 1, 2]) == int((tgt_ids[:, 1:] != PAD).sum())
        batches.next_batch += 1


# ---- T5 -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def t5():
    hf = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=3,
            num_heads=4, dropout_rate=0.0,
        )
    )
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def test_it_is_t5(t5):
    ours = from_t5(t5.state_dict(), t5_config(t5.config.to_dict())).double()
    src_ids, tgt_ids = random_ids(2, 150, vocab_size=60), random_ids(2, 9, vocab_size=60)
    with torch.no_grad():
        theirs = t5(input_ids=src_ids, decoder_input_ids=tgt_ids).logits
        torch.testing.assert_close(ours(src_ids, tgt_ids), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("both_ways", [True, False])
def test_the_buckets_are_t5s(both_ways):
    hf = pytest.importorskip("transformers.models.t5.modeling_t5")
    distance = torch.arange(-300, 300)
    theirs = hf.T5Attention._relative_position_bucket(distance, both_ways, 32, 128)
    assert torch.equal(distance_bucket(distance, 32, 128, both_ways), theirs)


def test_near_distances_have_a_bucket_each_and_far_ones_share():
    distance = torch.arange(-200, 1)
    buckets = distance_bucket(distance, both_ways=False).flip(0)  # 0, 1, 2, ... back
    assert buckets[:16].tolist() == list(range(16))
    assert (buckets.diff() >= 0).all() and buckets[-1] == 31
    assert len(buckets[128:].unique()) == 1


def biased(seed=0):
    torch.manual_seed(seed)
    model = add_relative_bias(Transformer(tiny_config(positional="none"))).double().eval()
    for stack in (model.encoder, model.decoder):
        torch.nn.init.normal_(stack.layers[0].self_attention.positions.table.weight)
    return model


def test_the_layers_of_a_stack_share_one_table():
    model = biased()
    tables = {
        id(layer.self_attention.positions.table.weight)
        for stack in (model.encoder, model.decoder)
        for layer in stack.layers
    }
    assert len(tables) == 2


def test_order_matters_with_the_bias_and_not_without():
    src_ids = torch.tensor([[5, 6, 7, 8]])
    order = torch.tensor([2, 0, 3, 1])
    model = biased()
    plain = Transformer(tiny_config(positional="none")).double().eval()
    for given_model, moves in ((model, True), (plain, False)):
        turned = given_model.encode(src_ids[:, order])
        same = torch.allclose(given_model.encode(src_ids)[:, order], turned, atol=1e-8)
        assert same is not moves


def test_only_the_distance_counts():
    bias = RelativeBias(3, both_ways=True)
    torch.nn.init.normal_(bias.table.weight)
    whole = bias.bias(9, 9)
    assert_equal(whole[..., 2:, 2:], whole[..., :-2, :-2])
    assert_equal(bias.bias(2, 9, start=7), whole[..., 7:, :])


def decodes_as_without_a_cache(model, src_ids):
    with_cache = greedy_decode(model, src_ids, max_len=7)
    uncached = greedy_decode(model, src_ids, max_len=7, use_cache=False)
    assert torch.equal(with_cache, uncached)


def test_decoding_with_the_bias_needs_no_special_case():
    decodes_as_without_a_cache(biased(), SRC)


# ---- other encoder layers -----------------------------------------------------------------------


def three_layers(mixture=None):
    torch.manual_seed(0)
    config = tiny_config(n_encoder_layers=3, n_decoder_layers=2)
    return reads_layers(config, mixture).double().eval()


def last_layers():
    return torch.eye(4)[[3, 3]].double()


SRC, TGT = torch.tensor([[5, 6, 7, 8], [9, 5, EOS, PAD]]), torch.tensor([[BOS, 6, 7], [BOS, 5, 5]])


def test_who_reads_the_last_layer_is_the_plain_model():
    torch.manual_seed(0)
    plain = Transformer(tiny_config(n_encoder_layers=3, n_decoder_layers=2)).double().eval()
    model = three_layers(last_layers())
    assert_equal(model(SRC, TGT), plain(SRC, TGT))
    for ours, theirs in zip(beam_search(model, SRC, 3), beam_search(plain, SRC, 3), strict=True):
        assert_equal(ours, theirs)


def test_who_reads_the_first_layer_needs_no_other():
    model = three_layers(torch.eye(4)[[1, 1]].double())
    before = model(SRC, TGT)
    for layer in model.encoder.layers[1:]:
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter)
    assert_equal(model(SRC, TGT), before)


def test_a_learned_mixture_begins_even_and_learns():
    model = three_layers()
    assert_equal(model.decoder.shares(), torch.full((2, 4), 0.25).double())
    model(SRC, TGT).sum().backward()
    assert model.decoder.logits.grad.abs().sum() > 0


@pytest.mark.parametrize("mixture", [last_layers(), None])
def test_decoding_with_many_layers_needs_no_special_case(mixture):
    decodes_as_without_a_cache(three_layers(mixture), SRC)


def test_a_mixture_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match=r"expected \(2, 4\)"):
        three_layers(torch.eye(3))


# ---- what the chapter says of the recorded runs --------------------------------------------------


def recorded(topic):
    path = ROOT / "results" / "beyond" / f"encoder-decoders-{topic}.json"
    return [r["settings"] | r for r in json.loads(path.read_text(encoding="utf8"))["records"]]


def denoising(data, pairs):
    """{arm: {seed: test BLEU}} at a rate of 0.005: scratch, longer, copy, infill."""
    runs = [run for run in recorded("denoising") if run["part"] == "translation"
            and (run["data"], run["pairs"], run["rate"]) == (data, pairs, 0.005)]
    found = {}
    for start in ("scratch", "copy", "infill"):
        of = [run for run in runs if run["start"] == start]
        updates = sorted({run["updates"] for run in of})
        for arm, number in ((start, updates[0]), ("longer", updates[-1])):
            if arm == start or start == "scratch":
                found[arm] = {r["seed"]: r["test"]["bleu"] for r in of if r["updates"] == number}
    assert len({frozenset(scores) for scores in found.values()}) == 1, "the arms have equal seeds"
    return found


def gains(one, other):
    return [one[seed] - other[seed] for seed in one]


@pytest.mark.parametrize(("data", "pairs"), [("mini", 200), ("multi30k", 1000)])
def test_with_few_pairs_half_of_denoisings_gain_is_time_and_most_of_the_rest_text(data, pairs):
    of = denoising(data, pairs)
    whole = mean(gains(of["infill"], of["scratch"]))
    time, text, damage = (
        gains(of[to], of[before])
        for to, before in (("longer", "scratch"), ("copy", "longer"), ("infill", "copy"))
    )
    assert 0.4 < mean(time) / whole < 0.6
    assert mean(text) > 0.7 * (whole - mean(time)), "copying gains most of what restoring does"
    assert min(damage) > 0, "in each seed"
    assert mean(damage) < min(mean(time), mean(text))


@pytest.mark.parametrize("pairs", [5000, 29000])
def test_with_more_pairs_the_same_updates_on_pairs_alone_do_better(pairs):
    of = denoising("multi30k", pairs)
    assert max(gains(of["infill"], of["longer"])) < 0 and len(of["infill"]) > 2
    if pairs == 5000:
        whole = mean(gains(of["infill"], of["scratch"]))
        assert mean(gains(of["longer"], of["scratch"])) > whole, "more than all of the claim"
        damage = gains(of["infill"], of["copy"])
        assert min(damage) > 0, "it makes up for a part"


def test_what_the_page_says_of_other_encoder_layers_holds():
    of = {}
    for run in recorded("layers"):
        if run["part"] == "layers" and run["rate"] == 0.005:
            of.setdefault(run["arm"], {})[run["seed"]] = run["test"]["bleu"]
    assert len(of) == 6 and all(len(seeds) == 3 for seeds in of.values())
    for arm, seeds in of.items():
        gaps = [seeds[seed] - of["the last"][seed] for seed in seeds]
        if arm == "the embeddings":
            assert max(gaps) < 0
        elif arm != "the last":
            assert min(gaps) < 0 < max(gaps), arm


def test_what_the_page_says_of_tags_holds():
    of = {}
    for run in recorded("tags"):
        for way in ("de-en", "en-de", "de-de", "en-en"):
            if way in run and run["rate"] == 0.005:
                of.setdefault((run["arm"], way), {})[run["seed"]] = run[way]["test"]["bleu"]
    for way in ("de-en", "en-de"):  # one model, at as many updates in all
        one, two = of["one", way], of["two", way]
        assert len(two) == 3 and all(one[seed] > two[seed] for seed in two)
    for way in ("de-en", "de-de"):  # one source, two targets: the tag is needed
        tag, none = of["three ways", way], of["three ways, no tag", way]
        assert all(tag[seed] > none[seed] + 10 for seed in none)
    tag, none = of["three ways", "en-de"], of["three ways, no tag", "en-de"]
    assert all(abs(tag[seed] - none[seed]) < 5 for seed in none)
    # English to English, which no run was trained on: most of a copy, by the tag alone
    assert min(of["three ways", "en-en"].values()) > 50
    assert max(of["three ways, no tag", "en-en"].values()) < 1


def test_what_the_page_says_of_the_parts_of_pretraining_holds():
    of = {}
    for run in recorded("denoising"):
        if run["data"] == "mini" and run.get("pairs") == 200 and run["updates"] == 150:
            if run["rate"] == 0.005:
                of.setdefault(run["start"], {})[run["seed"]] = run["test"]["bleu"]
    for seed in (0, 1, 2):
        none, whole = of["scratch"][seed], of["infill"][seed]
        parts = ("embeddings", "encoder", "decoder", "without cross-attention")
        *alone, together = [(of[f"infill: {p}"][seed] - none) / (whole - none) for p in parts]
        assert max(alone) < 0.5 < 0.7 < together < 1


def test_a_t5_whose_heads_are_wider_than_ours_is_refused_with_a_reason():
    given = {"d_kv": 128, "num_heads": 32, "d_model": 1024}
    with pytest.raises(ValueError, match="32 heads of width 128, 4096 in all"):
        t5_config(given)


# ---- two tags -----------------------------------------------------------------------------------


def test_two_tags_take_the_source_and_the_place_of_bos():
    read, written = two_tags([[5, 6, EOS], [7, EOS]], [[BOS, 8, EOS], [BOS, 9, 9, EOS]], 90, 91)
    assert read == [[90, 5, 6, EOS], [90, 7, EOS]]
    assert written == [[91, 8, EOS], [91, 9, 9, EOS]]


@torch.no_grad()
def test_the_encoder_does_not_learn_from_two_tags_what_will_be_written():
    torch.manual_seed(0)
    model = Transformer(tiny_config(dropout=0.0)).eval()
    both = [two_tags([[5, 6, EOS]], [[BOS, 8, EOS]], 10, tag) for tag in (11, 12)]
    memories = [model.encode(torch.tensor(read)) for read, _ in both]
    assert torch.equal(*memories)
    first = [greedy_decode(model, torch.tensor(both[0][0]), 5, bos_id=tag) for tag in (11, 12, 11)]
    assert torch.equal(first[0], first[2])
    logits = [model(torch.tensor(read), torch.tensor([w[:-1] for w in written]))
              for read, written in both]
    assert not torch.allclose(*logits)
