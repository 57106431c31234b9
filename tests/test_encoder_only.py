"""What encoders alone learn from, and BERT's successors: laws, with the slow way beside them."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from conftest import assert_equal, random_ids, tiny_config
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings.beyond import encoder_only
from transformer_lib.beyond.deberta import Deberta, from_deberta
from transformer_lib.beyond.encoders import (
    FactorisedEmbedding,
    LeftOnly,
    ReplacedTokens,
    disentangled_scores,
    distillation_loss,
    factorise,
    from_bert,
    guessing_loss,
    mask_tokens,
    masked_loss,
    replaced_loss,
    sentence_pairs,
    share_layers,
    start_from,
    two_texts,
)
from transformer_lib.config import BOS, EOS, ModelConfig
from transformer_lib.corpora.mini import mini_corpus
from transformer_lib.models.classifier import Classifier, MaskedLanguageModel
from transformer_lib.runs.checkpoint import load_state, load_weights
from transformer_lib.tokenization import load_tokenizer

MASK = 19  # the last id of tiny_config's vocabulary of 20


def model_of(make=MaskedLanguageModel, *args, seed=0, **changes):
    torch.manual_seed(seed)
    return make(tiny_config(**changes), *args).double().eval()


@settings(max_examples=10)
@given(st.integers(0, 999))
def test_only_chosen_real_tokens_are_spoilt(seed):
    torch.manual_seed(seed)
    ids = torch.randint(0, MASK, (8, 30))
    read, chosen = mask_tokens(ids, MASK, rate=0.5)
    assert chosen.any() and not (chosen & (ids < 4)).any()
    assert torch.equal(read[~chosen], ids[~chosen])
    assert read[chosen].min() >= 4 and read.max() <= MASK


def test_the_chosen_tokens_share_three_fates():
    ids = torch.full((400, 250), 7)
    read, chosen = mask_tokens(ids, 1000, 0.15, (0.8, 0.1, 0.1))
    hidden, kept = read == 1000, chosen & (read == 7)
    other = chosen & ~hidden & ~kept
    for part, share in ((hidden, 0.8), (kept, 0.1), (other, 0.1)):
        assert (part.sum() / chosen.sum()).item() == pytest.approx(share, abs=0.01)
    assert chosen.float().mean().item() == pytest.approx(0.15, abs=0.005)
    assert torch.bincount(read[other], minlength=1000)[4:].count_nonzero() > 700  # any other token
    for parts, law in (((1, 0, 0), read.new_tensor(1000)), ((0, 0, 1), read.new_tensor(7))):
        read, chosen = mask_tokens(ids, 1000, 0.15, parts)
        assert (read[chosen] == law).all()


@pytest.mark.parametrize("parts", [(0.8, 0.1), (0.5, 0.1, 0.1), (1.2, -0.1, -0.1)])
def test_shares_that_are_none_are_an_error(parts):
    with pytest.raises(ValueError, match="three shares that sum to 1"):
        mask_tokens(random_ids(1, 4), MASK, parts=parts)


def test_one_generator_gives_one_mask():
    ids = random_ids(4, 9)
    one, two = (mask_tokens(ids, MASK, generator=torch.Generator().manual_seed(3)) for _ in "ab")
    assert torch.equal(one[0], two[0]) and torch.equal(one[1], two[1])


def test_the_loss_counts_the_chosen_places_alone():
    model, ids = model_of(positional="learned"), random_ids(3, 8)
    read, chosen = mask_tokens(ids, MASK, rate=0.4)
    everywhere = F.cross_entropy(model(read).transpose(1, 2), ids, reduction="none")
    assert_equal(guessing_loss(model, read, ids, chosen), everywhere[chosen].mean())
    nothing = guessing_loss(model, ids, ids, torch.zeros_like(chosen))
    assert nothing == 0
    torch.manual_seed(5)
    expected = masked_loss(model, (ids,))
    torch.manual_seed(5)
    assert_equal(guessing_loss(model, *_named(mask_tokens(ids, MASK), ids)), expected)


def _named(spoilt, ids):
    return spoilt[0], ids, spoilt[1]


def test_a_pretrained_body_is_taken_over_and_the_head_is_not():
    pretrained = model_of(MaskedLanguageModel, 2, positional="learned")
    model = model_of(Classifier, 3, 2, seed=1, positional="learned")
    head = model.output.weight.clone()
    ids, parts = random_ids(2, 6), torch.randint(0, 2, (2, 6))
    assert not torch.allclose(model.encode(ids, parts), pretrained.encode(ids, parts))
    assert start_from(model, pretrained) is model
    assert_equal(model.encode(ids, parts), pretrained.encode(ids, parts))
    assert_equal(model.output.weight, head)
    with torch.no_grad():  # a copy, not the same numbers
        model.embedding.lookup.weight[:, 0].add_(1)
    assert not torch.allclose(model.encode(ids, parts), pretrained.encode(ids, parts))


def test_two_texts_tell_their_parts():
    ids, segments = two_texts([7, 8], [9])
    assert ids == [BOS, 7, 8, EOS, 9, EOS] and segments == [0, 0, 0, 0, 1, 1]


@settings(max_examples=20)
@given(st.sampled_from(["next", "order"]), st.integers(2, 30), st.integers(0, 99))
def test_pairs_are_what_their_labels_say(kind, n, seed):
    texts = [((i,), (100 + i,)) for i in range(n)]
    pairs = sentence_pairs(texts, kind, seed)
    assert pairs == sentence_pairs(texts, kind, seed) and len(pairs) == n
    for text, (first, second, label) in zip(texts, pairs, strict=True):
        if not label:
            assert (first, second) == text
        elif kind == "order":
            assert (second, first) == text
        else:
            assert first == text[0] and second != text[1] and second in [s for _, s in texts]


def test_both_labels_occur_and_another_kind_is_an_error():
    texts = [((i,), (100 + i,)) for i in range(200)]
    assert 60 < sum(label for *_, label in sentence_pairs(texts, "next")) < 140
    with pytest.raises(ValueError, match="'next' or 'order'"):
        sentence_pairs(texts, "previous")


def detector(**changes):
    torch.manual_seed(0)
    return ReplacedTokens(tiny_config(**changes), tiny_config(n_encoder_layers=1, d_ff=8)).double()


def test_the_detector_teaches_the_generator_nothing():
    model, ids = detector(), random_ids(6, 9)

    def gradients(weight):
        torch.manual_seed(0)
        model.zero_grad()
        replaced_loss(model, (ids,), 0.5, weight).backward()
        return [p.grad.clone() for p in model.generator.encoder.parameters()]

    for alone, together in zip(gradients(0.0), gradients(50.0), strict=True):
        assert_equal(alone, together)
    assert model.output.weight.grad.abs().sum() > 0
    assert all(p.grad is not None for p in model.parameters())
    assert model.generator.embedding is model.detector.embedding


def test_the_detector_sees_guesses_and_judges_every_real_token(monkeypatch):
    """With a detector that says "original" everywhere, the loss is known."""
    model, ids, seen = detector().eval(), random_ids(6, 9), []
    monkeypatch.setattr(model, "forward", lambda ids: seen.append(ids) or 0.0 * ids.double())
    torch.manual_seed(0)
    with_it = replaced_loss(model, (ids,), 0.5, 50.0)
    torch.manual_seed(0)
    without = replaced_loss(model, (ids,), 0.5, 0.0)
    assert_equal(with_it - without, torch.tensor(50 * math.log(2), dtype=torch.float64))
    torch.manual_seed(0)
    monkeypatch.setattr(model, "forward", lambda shown: 100.0 * ((shown != ids).double() - 0.5))
    assert_equal(replaced_loss(model, (ids,), 0.5, 50.0), without)  # one who knows loses nothing
    shown = seen[0]
    assert (shown[ids < 4] == ids[ids < 4]).all() and (shown != ids).any()


def test_shared_layers_are_one_object():
    plain, model = model_of(n_encoder_layers=3), model_of(n_encoder_layers=3)
    assert share_layers(model) is model and len(model.encoder.layers) == 3
    assert len({id(layer) for layer in model.encoder.layers}) == 1
    ids = random_ids(2, 5)
    x = model.embed(model.embedding(ids))
    for _ in range(3):
        x = model.encoder.layers[0](x)
    assert_equal(model.encoder.norm(x), model.encode(ids))

    def count(m):
        return sum(p.numel() for p in m.parameters())

    one_layer = sum(p.numel() for p in plain.encoder.layers[0].parameters())
    assert count(plain) - count(model) == 2 * one_layer


def test_a_factorised_matrix_is_a_product_of_two():
    model, ids = factorise(model_of(), 6).double(), random_ids(2, 5)
    table = model.embedding.lookup.weight @ model.embedding.expand.weight.T  # (V, D)
    assert table.shape == (20, 16)
    assert_equal(model.embedding(ids), table[ids])
    assert isinstance(model.embedding, FactorisedEmbedding)
    assert model.output[1].weight is model.embedding.lookup.weight
    assert model(ids).shape == (2, 5, 20)


def test_distillation_asks_for_the_teachers_guesses():
    teacher = torch.randn(5, 9, dtype=torch.float64)
    assert_equal(distillation_loss(teacher + 3, teacher), torch.zeros(()).double())
    student = torch.randn(5, 9, dtype=torch.float64, requires_grad=True)
    for temperature in (1.0, 4.0):
        p, q = (x.div(temperature).softmax(-1) for x in (teacher, student))
        slow = temperature**2 * (p * (p / q).log()).sum(-1).mean()
        assert_equal(distillation_loss(student, teacher, temperature), slow)
    (gradient,) = torch.autograd.grad(distillation_loss(student, teacher, 1000.0), student)
    centred = student - teacher - (student - teacher).mean(-1, keepdim=True)
    assert_equal(gradient, centred / 9 / 5, 1e-3)  # at great heat: logits drawn to logits


def test_disentangled_scores_are_a_sum_of_three():
    torch.manual_seed(0)
    q, k = torch.randn(2, 2, 3, 7, 4, dtype=torch.float64)
    q_places, k_places = torch.randn(2, 3, 6, 4, dtype=torch.float64)
    found = disentangled_scores(q, k, q_places, k_places)

    def row(i, j):
        return 0 if i - j <= -3 else 5 if i - j >= 3 else i - j + 3

    for i in range(7):
        for j in range(7):
            slow = (q[:, :, i] * k[:, :, j]).sum(-1)
            slow = slow + (q[:, :, i] * k_places[:, row(i, j)]).sum(-1)
            slow = slow + (k[:, :, j] * q_places[:, row(j, i)]).sum(-1)
            assert_equal(found[:, :, i, j], slow / math.sqrt(12))
    plain = disentangled_scores(q, k, 0 * q_places, 0 * k_places) * math.sqrt(3)
    assert_equal(plain, q @ k.transpose(-2, -1) / 2)


@torch.no_grad()
def bert_equals_ours(theirs):
    """Their model's logits from ours, every weight under its name."""
    sizes = theirs.config
    ours = MaskedLanguageModel(
        ModelConfig(
            sizes.vocab_size, sizes.hidden_size, sizes.num_attention_heads,
            sizes.intermediate_size, sizes.num_hidden_layers, 0, 0.0, 0.0,
            sizes.max_position_embeddings, positional="learned", activation="gelu",
            norm_first=False, eps=sizes.layer_norm_eps, scale_embeddings=False,
        ), n_segments=2,
    ).to(theirs.dtype).eval()
    ours.load_state_dict(from_bert(theirs.state_dict(), sizes.num_hidden_layers))
    ids, segments = random_ids(3, 9, vocab_size=sizes.vocab_size), torch.randint(0, 2, (3, 9))
    ids[1, 5:] = 0
    mask = (ids != 0).long()
    expected = theirs.eval()(ids, attention_mask=mask, token_type_ids=segments).logits
    assert_equal(ours(ids, segments)[ids != 0], expected[ids != 0], 1e-4)
    assert expected.std() > 0.1


def test_the_weights_of_bert_find_their_names():
    transformers = pytest.importorskip("transformers")
    bert_equals_ours(transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_attention_heads=4, num_hidden_layers=2,
        intermediate_size=24, max_position_embeddings=40, initializer_range=0.3,
    )).double())


@pytest.mark.weekly  # asks the hub
def test_the_published_bert_gives_the_same_logits():
    hub = pytest.importorskip("huggingface_hub")
    transformers = pytest.importorskip("transformers")
    name = "google-bert/bert-base-uncased"
    try:
        hub.hf_hub_download(name, "config.json", etag_timeout=5)
    except Exception as error:
        pytest.skip(f"the hub was not reached: {error}")
    bert_equals_ours(transformers.BertForMaskedLM.from_pretrained(name, use_safetensors=True))


# ------------------------------------------------------------------------------ the recorded runs


def recorded():
    records = json.loads(encoder_only.OUT.read_text(encoding="utf8"))["records"]
    return [r["settings"] | r for r in records]


def test_the_arms_of_an_experiment_are_recorded_alike():
    """Every arm has every seed once and, but for equal compute, as many updates."""
    seen, updates = {}, {}
    for run in recorded():
        if run.get("times", 1) == 1:
            seen.setdefault(run["part"], []).append((run["arm"], run["seed"]))
            updates.setdefault(run["part"], set()).add(run["updates"])
    assert seen.keys() == encoder_only.EXPERIMENTS.keys()
    for part, (_, arms, seeds) in encoder_only.EXPERIMENTS.items():
        assert sorted(seen[part]) == sorted((list(arm), seed) for arm in arms for seed in seeds)
        assert len(updates[part]) == 1 or part == "replaced"


def test_masked_and_replaced_had_equal_compute():
    work = {}
    for run in recorded():
        if run["part"] == "replaced":
            work.setdefault(run["seed"], []).append(run["updates"] * run["flops_per_update"])
    assert work
    for one, two in work.values():
        assert one == pytest.approx(two, rel=0.01)


@torch.no_grad()
def test_the_recorded_weights_find_as_many_hidden_tokens_as_recorded():
    config = json.loads((encoder_only.KEPT / "config.json").read_text(encoding="utf8"))
    if config["data"] != "mini":
        pytest.skip("needs Multi30k")
    tokenizer = load_tokenizer(encoder_only.KEPT / "tokenizer.json")
    known = {en for _, en in mini_corpus()["train"]}
    new = [en for _, en in mini_corpus(seed=1)["train"] if en not in known][:300]
    data = SimpleNamespace(held_out=[[BOS, *tokenizer.encode(en).ids, EOS] for en in new])
    for name, make in (("both", MaskedLanguageModel), ("left", LeftOnly)):
        path = encoder_only.KEPT / f"{name}.safetensors"
        model = make(ModelConfig(**config["model"]))
        load_state(model, load_weights(path), path)
        (run,) = [run for run in recorded() if run["part"] == "base" and run["arm"] == [name]
                  and run["seed"] == 0 and run.get("times", 1) == 1]
        assert encoder_only.gap(model.float().eval(), data) == pytest.approx(run["gap"], abs=0.07)


@torch.no_grad()
def test_left_only_hears_nothing_behind_and_no_padding():
    torch.manual_seed(0)
    model = LeftOnly(ModelConfig(20, 16, 4, 24, 2, 0, dropout=0.0)).eval()
    ids = torch.randint(4, 20, (2, 7))
    other = ids.clone()
    other[:, 4:] = torch.randint(4, 20, (2, 3))
    padded = torch.cat([ids, torch.zeros(2, 3, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(other)[:, :4], model(ids)[:, :4])
    torch.testing.assert_close(model(padded)[:, :7], model(ids))
    assert not torch.allclose(model(other)[:, 4:], model(ids)[:, 4:])


# ------------------------------------------------------------------------------------------ DeBERTa


def places_apart(released=True, absolute=False, seed=0, **changes):
    torch.manual_seed(seed)
    sizes = dict(dropout=0.0, max_len=32, positional="none", activation="gelu", norm_first=False,
                 eps=1e-7, scale_embeddings=False)
    config = ModelConfig(50, 32, 4, 64, 2, **sizes | changes)
    return Deberta(config, reach=6, absolute=absolute, released=released).eval()


@torch.no_grad()
def test_deberta_with_copied_weights_gives_the_same_logits_as_released():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    theirs = transformers.DebertaForMaskedLM(transformers.DebertaConfig(
        vocab_size=50, hidden_size=32, num_attention_heads=4, num_hidden_layers=2,
        intermediate_size=64, max_position_embeddings=32, relative_attention=True,
        max_relative_positions=6, pos_att_type=["c2p", "p2c"], position_biased_input=False,
        type_vocab_size=0,
    )).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(4, 50, (3, 15), generator=torch.Generator().manual_seed(0))
    ids[1, 10:] = 0
    expected = theirs(ids, attention_mask=(ids != 0).long()).logits[ids != 0]
    found = {}
    for released in (True, False):
        ours = places_apart(released)
        ours.load_state_dict(from_deberta(theirs.state_dict(), ours.config))
        found[released] = (ours(ids)[ids != 0] - expected).abs().max().item()
    assert found[True] < 1e-5 < 1e-3 < found[False]


@torch.no_grad()
def test_places_apart_know_distances_and_no_places():
    """All tokens moved on by one: the hidden states move with them, unless places come at the end.

    Padding stands on both sides, so that no token gains or loses a neighbour.
    """
    text = torch.randint(4, 50, (1, 7), generator=torch.Generator().manual_seed(1))
    one, two = F.pad(text, (0, 2)), F.pad(text, (1, 1))
    model = places_apart()
    torch.testing.assert_close(model.encode(one)[:, :7], model.encode(two)[:, 1:8])
    last = places_apart(absolute=True)
    torch.testing.assert_close(last.encode(one)[:, :7], last.encode(two)[:, 1:8])
    torch.nn.init.normal_(last.places)
    assert (last.encode(one)[:, :7] - last.encode(two)[:, 1:8]).abs().max() > 0.1
    with pytest.raises(ValueError, match="'none'"):
        places_apart(positional="learned")


def test_places_apart_obey_what_every_attention_obeys():
    """A query that may attend to nothing gets zeros, weights are dropped in training only."""
    model = places_apart(attention_dropout=0.5)
    attention = model.encoder.layers[0].self_attention
    x, mask = torch.randn(2, 5, 32), torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, :, 3] = False
    output, weights = attention(x, x, x, mask, need_weights=True)
    assert (weights[0, :, 3] == 0).all() and output.isfinite().all()
    torch.testing.assert_close(weights[1].sum(-1), torch.ones(4, 5))
    torch.testing.assert_close(attention(x, x, x, mask)[0], output)
    attention.train()
    torch.manual_seed(0)
    assert not torch.allclose(attention(x, x, x, mask)[0], output)
    assert model(torch.zeros(1, 4, dtype=torch.long)).isfinite().all()  # a text of padding only
