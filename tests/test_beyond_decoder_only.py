"""One stream for source and target, the prefix mask, and the published families' weights."""

import json
import math
from pathlib import Path
from statistics import mean

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_config
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings.beyond import decoder_only, modern_parts
from transformer_lib.batching import pad
from transformer_lib.beyond.families import (
    from_gpt2,
    from_llama,
    gpt2_config,
    llama_config,
    load_gpt2,
)
from transformer_lib.beyond.one_stream import (
    CausalTwoPart,
    PrefixLanguageModel,
    TwoPartLanguageModel,
    stream_batches,
    stream_loss,
    translate_streams,
)
from transformer_lib.config import BOS, EOS, PAD
from transformer_lib.decoding import beam_search, greedy_decode
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.training import translation_batches

ROOT = Path(__file__).resolve().parents[1]

SOURCES = [[5, 6, 7, EOS], [8, EOS], [9, 5, EOS]]
TARGETS = [[BOS, 10, 11, EOS], [BOS, 7, 7, 7, EOS], [BOS, 4, EOS]]


kinds = pytest.mark.parametrize("kind", [LanguageModel, PrefixLanguageModel, TwoPartLanguageModel])


def model_of(kind=LanguageModel, **changes):
    torch.manual_seed(0)
    config = tiny_config(**{"vocab_size": 12, "positional": "rotary", **changes})
    return kind(config).double().eval()


# ---- the stream ---------------------------------------------------------------------------------


def test_each_place_of_the_stream_predicts_the_next():
    batches = stream_batches(SOURCES, TARGETS, 64, 0, count_source=True)
    for read, predicted in zip(*batches.columns, strict=True):
        assert read[1:] == predicted[:-1] and predicted[-1] == EOS


def test_only_the_target_counts():
    batches = stream_batches(SOURCES, TARGETS, 64, 0)
    assert batches.columns[0] == stream_batches(SOURCES, TARGETS, 64, 0, True).columns[0]
    for source, target, predicted in zip(SOURCES, TARGETS, batches.columns[1], strict=True):
        assert predicted == [PAD] * len(source) + target[1:]
    assert batches.counts == [len(target) - 1 for target in TARGETS]


def test_its_batches_hold_the_pairs_of_a_translators():
    many = [SOURCES[i % 3] for i in range(40)], [TARGETS[i % 3] for i in range(40)]
    ours = stream_batches(*many, 16, 7).sampler.batches()
    assert ours == translation_batches(*many, 16, 7).sampler.batches() and len(ours) > 5


def test_the_loss_is_the_mean_over_the_target():
    model = model_of()
    batches = stream_batches(SOURCES, TARGETS, 64, 0)
    log_p = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        logits = model(torch.tensor([source + target[:-1]])).log_softmax(-1)[0]
        log_p += [logits[len(source) + t, token] for t, token in enumerate(target[1:])]
    batch = batches.tensors([0, 1, 2], torch.device("cpu"))
    assert_equal(stream_loss(model, batch), -torch.stack(log_p).mean())


# ---- the prefix ---------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(1, 5), st.integers(1, 4))
def test_the_prefix_is_read_both_ways_and_the_rest_is_not(n_source, n_target):
    ids = torch.tensor([[5] * n_source + [BOS] + [7] * (n_target - 1)])
    mask = model_of(PrefixLanguageModel).mask(ids)[0, 0]
    for i in range(ids.size(1)):
        for j in range(ids.size(1)):
            assert mask[i, j] == (j <= i or j < n_source)


def test_a_text_without_a_prefix_is_read_causally():
    ids = torch.cat([torch.full((2, 1), BOS), random_ids(2, 5, vocab_size=12)], 1)
    causal, prefix = model_of(), model_of(PrefixLanguageModel)
    assert_equal(prefix(ids), causal(ids))


@kinds
def test_decoding_goes_on_as_the_whole_stream_would(kind):
    model = model_of(kind)
    prompt = torch.tensor([[5, 6, EOS, BOS], [7, 9, EOS, BOS]])
    plain = greedy_decode(model, prompt, 6, use_cache=False)
    assert torch.equal(greedy_decode(model, prompt, 6), plain)
    assert torch.equal(beam_search(model, prompt, 1, 6)[0][0, :2], plain[0, :2])
    stream = torch.cat([prompt, plain], 1)
    best = model(stream)[0, 3:-1].index_fill(-1, torch.tensor([PAD]), -torch.inf).argmax(-1)
    n = int((plain[0] != PAD).sum())
    assert torch.equal(best[:n], plain[0, :n])


def test_the_source_of_a_prefix_model_sees_its_future():
    ids = torch.tensor([[5, 6, 7, EOS, BOS, 9]])
    other = torch.tensor([[5, 6, 8, EOS, BOS, 9]])
    for kind, seen in ((LanguageModel, False), (PrefixLanguageModel, True)):
        model = model_of(kind)
        first = model(ids)[:, 0], model(other)[:, 0]
        assert torch.allclose(*first) != seen


@kinds
def test_padding_behind_changes_nothing(kind):
    model = model_of(kind)
    rows = [s + t[:-1] for s, t in zip(SOURCES, TARGETS, strict=True)]
    for row, logits in zip(rows, model(pad(rows)), strict=True):
        assert_equal(logits[: len(row)], model(torch.tensor([row]))[0])


@kinds
def test_translations_stand_in_the_sources_order(kind):
    model = model_of(kind)
    sources = [*SOURCES, [6, 9, EOS], [7, 7, 5, EOS]]  # some of one length, in two batches
    written = translate_streams(model, sources, max_rows=1)
    for source, ids in zip(sources, written, strict=True):
        alone = greedy_decode(model, torch.tensor([source + [BOS]]))[0].tolist()
        assert ids == alone


def with_equal_parts(one_kind, two_kind):
    """A model, one of two parts that both have its weights, and ids that they read alike."""
    one, two = model_of(one_kind), model_of(two_kind)
    state = one.state_dict()
    two.load_state_dict({
        name: state[name.replace("of_source.", "").replace("of_rest.", "")]
        for name in two.state_dict()
    })
    ids = torch.tensor([[5, 6, 7, EOS, BOS, 9]])
    assert_equal(two(ids), one(ids))
    return one, two, ids


@torch.no_grad()
def test_with_equal_weights_the_two_parts_are_one_model():
    one, two, ids = with_equal_parts(PrefixLanguageModel, TwoPartLanguageModel)
    for part, before, after in (("of_source", True, True), ("of_rest", False, True)):
        changed = model_of(TwoPartLanguageModel)
        changed.load_state_dict(two.state_dict())
        for name, parameter in changed.named_parameters():
            if part in name and "feed_forward" in name:
                parameter.add_(0.1)
        moved = (changed(ids) - one(ids))[0].abs().amax(-1) > 1e-6
        assert moved[:4].all() == before and moved[:4].any() == before and moved[4:].all() == after


@torch.no_grad()
def test_the_causal_stream_may_have_weights_for_each_part_too():
    _, two, ids = with_equal_parts(LanguageModel, CausalTwoPart)
    other = torch.tensor([[5, 6, 8, EOS, BOS, 9]])
    assert_equal(two(other)[:, :2], two(ids)[:, :2])
    assert (model_of(TwoPartLanguageModel)(other) - model_of(TwoPartLanguageModel)(ids))[:, 0].any()


# ---- published weights --------------------------------------------------------------------------


@torch.no_grad()
def test_gpt_2_weights_give_its_logits():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=20, n_embd=16, n_head=4, n_layer=2, n_positions=40, initializer_range=0.3,
    )).double().eval()
    for parameter in theirs.parameters():  # its biases start at 0
        parameter.add_(0.1 * torch.randn_like(parameter))
    state = {k: v for k, v in theirs.state_dict().items() if k != "lm_head.weight"}
    ours = from_gpt2(state, gpt2_config(theirs.config.to_dict()))
    ids = torch.randint(0, 20, (3, 9))
    assert_equal(ours(ids), theirs(ids).logits, 1e-6)


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
def test_llama_weights_give_its_logits(tied):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=20, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
        num_hidden_layers=2, intermediate_size=24, max_position_embeddings=40,
        initializer_range=0.3, tie_word_embeddings=tied, rope_theta=10000.0,
    )).double().eval()
    ours = from_llama(theirs.state_dict(), llama_config(theirs.config.to_dict()))
    ids = torch.randint(0, 20, (3, 9))
    assert_equal(ours(ids), theirs(ids).logits, 1e-5)  # its angles are float32


@pytest.mark.weekly  # asks the hub
@torch.no_grad()
def test_the_published_gpt_2_gives_its_logits():
    transformers = pytest.importorskip("transformers")
    try:
        ours, folder = load_gpt2()
    except OSError as error:
        pytest.skip(f"the hub is not reachable: {error}")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, use_safetensors=True).eval()
    ids = torch.randint(0, 50257, (2, 12))
    assert_equal(ours(ids), theirs(ids).logits, 1e-3)


# ---- what the chapter says of the recorded runs --------------------------------------------------


def runs(data):
    """Those at the page's learning rate."""
    path = ROOT / "results" / "beyond" / f"one-stream-{data}.json"
    records = json.loads(path.read_text(encoding="utf8"))["records"]
    return [r["settings"] | r for r in records if r["settings"]["rate"] == 0.005]


def recorded(data):
    """{arm: {seed: validation BLEU}}"""
    found = {}
    for run in runs(data):
        found.setdefault(run["arm"], {})[run["seed"]] = run["validation"]["bleu"]
    return found


def gain(of, better, worse):
    return mean(of[better][seed] - of[worse][seed] for seed in of[worse])


@pytest.mark.parametrize("data", ["mini", "multi30k"])
def test_the_encoder_decoder_leads_and_the_mask_alone_does_not_explain_it(data):
    of = recorded(data)
    lead = [of["encoder-decoder"][seed] - of["causal"][seed] for seed in of["causal"]]
    assert min(lead) > 0 and len(lead) > 2
    assert gain(of, "prefix", "causal") < mean(lead) / 2


@pytest.mark.parametrize("data", ["mini", "multi30k"])
def test_reading_both_ways_does_not_close_the_lead_on_long_sentences(data):
    of = {}
    for run in runs(data):
        of.setdefault(run["arm"], []).append(run["bleu_by_source_length"][-1]["bleu"])
    assert mean(of["prefix"]) < mean(of["causal"]) + 1 < mean(of["encoder-decoder"])


@pytest.mark.parametrize("data", ["mini", "multi30k"])
def test_weights_of_its_own_are_worth_most(data):
    of = recorded(data)
    own, seeds = gain(of, "prefix, own weights", "prefix"), of["prefix, own weights"]
    assert len(seeds) == 3 and all(seeds[seed] > of["prefix"][seed] for seed in seeds)
    assert own > gain(of, "prefix", "causal")
    assert own > gain(of, "encoder-decoder", "prefix, own weights")


def test_on_the_small_corpus_depth_does_not_explain_it():
    of = recorded("mini")
    few = of["prefix, 3 layers"]
    assert max(few[seed] - of["prefix"][seed] for seed in few) < 0, "fewer layers learn no faster"
    assert gain(of, "prefix, own weights", "prefix, 3 layers") > gain(
        of, "prefix", "prefix, 3 layers"
    )


def test_new_runs_are_added_to_what_was_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(decoder_only, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(decoder_only, "RESULTS", tmp_path)
    asked = {"data": "mini", "rate": 0.005}
    old = [asked | {"arm": "prefix", "seed": 0, "bleu": 1},
           asked | {"arm": "causal", "seed": 0, "bleu": 2}]
    path = tmp_path / "topic.json"
    path.write_text(json.dumps({"records": [decoder_only.as_record(run) for run in old]}))
    for seed in (0, 1):
        folder = tmp_path / "runs" / "topic" / str(seed)
        folder.mkdir(parents=True)
        new = asked | {"arm": "causal", "seed": seed, "bleu": 3}
        (folder / "result.json").write_text(json.dumps(new))
    decoder_only.collect("topic")
    found = [r["settings"] | r for r in json.loads(path.read_text())["records"]]
    assert [(run["arm"], run["seed"], run["bleu"]) for run in found] == [
        ("prefix", 0, 1), ("causal", 0, 3), ("causal", 1, 3)
    ]


def test_the_modern_parts_together_are_llama():
    """The last arm is all parts at once, and SwiGLU has as many numbers as what it replaces."""
    arms = modern_parts.ARMS
    alone = ("rotary", "RMSNorm", "SwiGLU", "grouped queries (2)", "no biases")
    together = {name: value for arm in alone for name, value in arms[arm].items()}
    assert arms["all, as Llama"] == together
    assert 3 * modern_parts.SWIGLU["d_ff"] == 2 * modern_parts.GPT2["d_ff"]


def test_each_modern_part_is_recorded_on_three_seeds():
    """And each run has the settings of its arm, the others as the script has them today."""
    records = json.loads(modern_parts.OUT.read_text(encoding="utf8"))["records"]
    runs = [r["settings"] | r for r in records]
    made = [run for run in runs if run["rate"] == 1]
    wanted = [(arm, seed) for arm in modern_parts.ARMS for seed in range(3)]
    assert sorted((run["arm"], run["seed"]) for run in made) == sorted(wanted)
    assert {run["run"]["updates"] for run in runs} == {modern_parts.UPDATES}
    for run in runs:
        settings = modern_parts.GPT2 | modern_parts.ARMS[run["arm"]]
        assert {name: run["model"][name] for name in settings} == settings, run["arm"]
        assert run["perplexity"] == pytest.approx(math.exp(run["loss"]), rel=1e-3)
