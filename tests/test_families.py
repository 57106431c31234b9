"""Other families from the same blocks: a language model, classifiers of texts and of pictures.

Each is held to its laws on random weights, and to the model of `transformers` with copied ones.
"""

import inspect

import pytest
import torch
from conftest import TINY, assert_equal, random_ids, tiny_config
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoding import slow_beam, slow_greedy, unpad

from transformer_lib.cache import DecoderCache
from transformer_lib.config import BlockConfig
from transformer_lib.decoding import beam_search, greedy_decode, sample
from transformer_lib.models.classifier import Classifier, EncoderOnly, MaskedLanguageModel
from transformer_lib.models.decision_transformer import DecisionTransformer
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer
from transformer_lib.models.vision_transformer import VisionTransformer

VARIANTS = [
    {"positional": "learned", "activation": "gelu_tanh", "scale_embeddings": False},
    {"positional": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "n_kv_heads": 2},
    {"positional": "alibi", "norm_first": False, "n_kv_heads": 1},
    {"positional": "sinusoidal", "tie_embeddings": False},
    {"positional": "none"},
]
variants = pytest.mark.parametrize("changes", VARIANTS, ids=lambda c: c["positional"])


def randomised(model, seed=0):
    """Every weight random, in float64, ready to use."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or "first" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.double().eval()


def language_model(seed=0, **changes):
    torch.manual_seed(seed)
    return randomised(LanguageModel(tiny_config(**{"vocab_size": 12, **changes})), seed)


class AsTranslator:
    """A language model seen as the slow decoders of test_decoding see a translation model: a
    prompt instead of a source, and the <bos> in front of the target left out.
    """

    def __init__(self, model):
        self.model, self.config = model, model.config

    def __call__(self, prompt, tgt):
        return self.model(torch.cat([prompt, tgt[:, 1:]], 1))


@pytest.mark.parametrize("parts", [
    [LanguageModel], [EncoderOnly, Classifier], [EncoderOnly, MaskedLanguageModel],
    [VisionTransformer], [DecisionTransformer],
])
def test_a_family_is_a_page_of_blocks(parts):
    assert sum(len(inspect.getsource(part).splitlines()) for part in parts) <= 70


@pytest.mark.parametrize("model", [
    lambda c: Transformer(c), lambda c: LanguageModel(c), lambda c: EncoderOnly(c),
    lambda c: Classifier(c, 3), lambda c: MaskedLanguageModel(c),
    lambda c: VisionTransformer(c, n_classes=3, patch=4), lambda c: DecisionTransformer(c, 4, 2),
])
def test_every_matrix_of_the_layers_starts_by_xaviers_rule(model):
    """Evenly drawn up to sqrt(6 / (inputs + outputs)): so the largest of 2,000 is close to it."""
    torch.manual_seed(0)
    layers = [
        (name, matrix) for name, matrix in model(tiny_config(d_model=48)).named_parameters()
        if ".layers." in name and matrix.dim() == 2
    ]
    assert len(layers) >= 6
    for name, matrix in layers:
        limit = (6 / sum(matrix.shape)) ** 0.5
        assert 0.97 * limit < matrix.abs().max() <= limit, name


@pytest.mark.parametrize("tied", [True, False])
def test_a_masked_models_output_is_its_embedding_only_if_tied(tied):
    model = MaskedLanguageModel(tiny_config(tie_embeddings=tied))
    assert (model.output.weight is model.embedding.lookup.weight) is tied


def test_a_classifier_judges_by_the_vector_of_the_first_token(monkeypatch):
    model, vectors = Classifier(tiny_config(), 3).eval(), torch.randn(2, 5, TINY["d_model"])
    monkeypatch.setattr(model, "encode", lambda *_: vectors)
    before = model(random_ids(2, 5))
    vectors[:, 1:] += 1
    assert torch.equal(model(random_ids(2, 5)), before)
    vectors[:, 0] += 1
    assert not torch.equal(model(random_ids(2, 5)), before)


# -------------------------------------------------------------------------------- language model


def test_a_language_models_output_starts_as_small_as_its_embedding():
    """Also where it is a matrix of its own, so that an untrained model guesses almost evenly."""
    torch.manual_seed(0)
    for tied in (True, False):
        config = tiny_config(vocab_size=500, d_model=64, n_heads=2, tie_embeddings=tied)
        weight = LanguageModel(config).output.weight
        assert weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


@variants
@settings(max_examples=8)
@given(st.integers(1, 8), st.integers(0, 99))
def test_the_future_never_changes_the_past(changes, known, seed):
    model, ids = language_model(**changes), random_ids(2, 9, vocab_size=12, seed=seed)
    other = torch.cat([ids[:, :known], random_ids(2, 4, vocab_size=12, seed=seed + 1)], 1)
    assert_equal(model(other)[:, :known], model(ids)[:, :known])
    assert not torch.allclose(model(ids.flip(1))[:, -1], model(ids)[:, -1])


@variants
def test_padding_never_changes_real_tokens(changes):
    model, ids = language_model(**changes), random_ids(2, 6, vocab_size=12)
    padded = torch.cat([ids, torch.zeros(2, 3, dtype=torch.long)], 1)
    assert_equal(model(padded)[:, :6], model(ids))


@variants
@settings(max_examples=8)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_cached_equals_uncached(changes, cuts):
    model, ids = language_model(**changes), random_ids(3, sum(cuts), vocab_size=12)
    cache = DecoderCache(model.config.n_decoder_layers)
    pieces = [model.decode(piece, cache) for piece in ids.split(cuts, 1)]
    assert_equal(torch.cat(pieces, 1), model.decode(ids))


@variants
@settings(max_examples=6)
@given(st.integers(0, 200))
def test_greedy_goes_on_from_the_prompt(changes, seed):
    model, prompt = language_model(seed, **changes), random_ids(3, 4, vocab_size=12, seed=seed)
    ids = greedy_decode(model, prompt, 7)
    assert [unpad(row) for row in ids] == [slow_greedy(AsTranslator(model), p, 7) for p in prompt]
    assert torch.equal(greedy_decode(model, prompt, 7, use_cache=False), ids)


@variants
@settings(max_examples=6)
@given(st.integers(0, 200), st.integers(1, 4))
def test_beam_search_equals_the_slow_version(changes, seed, beam_size):
    model, prompt = language_model(seed, **changes), random_ids(2, 4, vocab_size=12, seed=seed)
    ids, scores = beam_search(model, prompt, beam_size, max_len=5)
    for row, score, source in zip(ids, scores, prompt, strict=True):
        expected_score, expected = slow_beam(AsTranslator(model), source, beam_size, 5, 1.0)
        assert unpad(row) == expected
        assert score.item() == pytest.approx(expected_score, abs=1e-6)


def test_samples_follow_the_model():
    model, prompt = language_model(), random_ids(1, 4, vocab_size=12)
    drawn = sample(model, prompt.expand(4000, -1), max_len=1)[:, 0]
    logits = model(prompt)[0, -1].detach()
    logits[0] = -torch.inf
    assert_equal(torch.bincount(drawn, minlength=12).double() / 4000, logits.softmax(-1), 0.03)


def test_prompts_of_unequal_length_are_an_error():
    prompts = torch.tensor([[5, 6, 7], [5, 6, 0]])
    for wrong in (prompts, prompts[:, :0]):
        with pytest.raises(ValueError, match="all prompts in a batch must have the same length"):
            greedy_decode(language_model(), wrong, 4)


def test_a_prompt_and_what_follows_fit_into_max_len():
    model, prompt = language_model(max_len=8), random_ids(1, 5, vocab_size=12)
    assert greedy_decode(model, prompt, eos_id=-1).shape == (1, 4)  # the last is never read
    with pytest.raises(ValueError, match="writes between 1 and 4 tokens after the 5"):
        greedy_decode(model, prompt, 5)


def test_the_norms_use_the_epsilon_of_the_configuration():
    for model in (LanguageModel(tiny_config(eps=0.1)), Classifier(tiny_config(eps=0.1), 3)):
        norms = [m for m in model.modules() if hasattr(m, "eps")]
        assert len(norms) == 5 and all(norm.eps == 0.1 for norm in norms)


# ------------------------------------------------------------------------------- encoders alone


@variants
@pytest.mark.parametrize("make", [lambda c: Classifier(c, 3, 2), lambda c: MaskedLanguageModel(c)])
def test_padding_never_changes_an_encoder(make, changes):
    torch.manual_seed(0)
    model = randomised(make(tiny_config(**changes)))
    ids = random_ids(2, 6)
    padded = torch.cat([ids, torch.zeros(2, 3, dtype=torch.long)], 1)
    assert_equal(model.encode(padded)[:, :6], model.encode(ids))
    assert_equal(model(padded)[:, :6] if model(ids).dim() == 3 else model(padded), model(ids))


def test_an_encoder_reads_both_ways_and_a_segment_counts():
    model = randomised(Classifier(tiny_config(positional="learned"), 3, n_segments=2))
    ids = random_ids(2, 6)
    last = ids.clone()
    last[:, -1] = 3
    assert model(ids).shape == (2, 3)
    assert not torch.allclose(model(last), model(ids))
    segments = torch.tensor([[0, 0, 0, 1, 1, 1]]).expand(2, -1)
    assert not torch.allclose(model(ids, segments), model(ids))
    assert_equal(model(ids, torch.zeros_like(ids)), model(ids))


@pytest.mark.parametrize("positional", ["learned", "none"])
def test_a_picture_is_its_patches(positional):
    sizes = {name: value for name, value in TINY.items() if name != "vocab_size"}
    config = BlockConfig(**sizes, positional=positional)
    model = randomised(VisionTransformer(config, 5, patch=4, channels=3))
    images = torch.randn(2, 3, 8, 12, dtype=torch.float64)
    assert model(images).shape == (2, 5)
    patches = model.patches(images)
    assert_equal(patches[:, 4], images[:, :, 4:8, 4:8].flatten(1))  # second row, second column
    # Two patches exchanged: only positions can tell.
    moved = images.clone()
    moved[..., :4, :4], moved[..., 4:, 8:] = images[..., 4:, 8:], images[..., :4, :4]
    assert torch.allclose(model(moved), model(images)) == (positional == "none")
    for broken in (images[..., :7], images[..., :7, :], images[0]):  # width, height, no batch
        with pytest.raises(ValueError, match="multiples of 4"):
            model(broken)


@pytest.mark.parametrize(
    "make",
    [
        lambda c: LanguageModel(c),
        lambda c: Classifier(c, 3, 2),
        lambda c: MaskedLanguageModel(c, 2),
    ],
)
@variants
def test_every_weight_gets_a_gradient(make, changes):
    model = make(tiny_config(**changes))
    model(random_ids(3, 6)).logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


# ------------------------------------------------------------ the models of `transformers`


def copied(pairs):
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        ours.data.copy_(theirs)


def gpt2_pairs(ours, theirs):
    """Conv1D of GPT-2 keeps its matrix the other way round, and q, k, v in one."""
    yield ours.embedding.lookup.weight, theirs.wte.weight
    yield ours.embed.positions.table, theirs.wpe.weight
    for a, b in zip(ours.decoder.layers, theirs.h, strict=True):
        attention = a.self_attention
        for part, w, bias in zip(
            (attention.w_q, attention.w_k, attention.w_v),
            b.attn.c_attn.weight.chunk(3, 1), b.attn.c_attn.bias.chunk(3), strict=True,
        ):
            yield from ((part.weight, w.T), (part.bias, bias))
        for part, other in (
            (attention.w_o, b.attn.c_proj),
            (a.feed_forward.expand, b.mlp.c_fc),
            (a.feed_forward.contract, b.mlp.c_proj),
        ):
            yield from ((part.weight, other.weight.T), (part.bias, other.bias))
        for residual, norm in zip(a.residuals, (b.ln_1, b.ln_2), strict=True):
            yield from ((residual.norm.weight, norm.weight), (residual.norm.bias, norm.bias))
    yield from ((ours.decoder.norm.weight, theirs.ln_f.weight),)
    yield from ((ours.decoder.norm.bias, theirs.ln_f.bias),)


@torch.no_grad()
def test_language_model_equals_gpt_2():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=20, n_embd=16, n_head=4, n_layer=2, n_inner=24, n_positions=40,
        initializer_range=0.3,
    )).double().eval()
    ours = LanguageModel(tiny_config(
        positional="learned", activation="gelu_tanh", scale_embeddings=False
    )).double().eval()
    copied(gpt2_pairs(ours, theirs.transformer))
    ids = torch.randint(0, 20, (3, 9))  # id 0, too: it is a word there
    assert_equal(ours(ids), theirs(ids).logits, 1e-6)
    assert ours(ids).std() > 0.1


@torch.no_grad()
def test_language_model_equals_llama():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=20, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
        num_hidden_layers=2, intermediate_size=24, max_position_embeddings=40, rms_norm_eps=1e-6,
        initializer_range=0.3, tie_word_embeddings=False, rope_theta=10000.0,
    )).double().eval()
    ours = LanguageModel(tiny_config(
        positional="rotary", norm="rms", eps=1e-6, activation="swiglu", bias=False, n_kv_heads=2,
        scale_embeddings=False, tie_embeddings=False,
    )).double().eval()

    def pairwise(weight):
        """Llama turns feature i with i + K / 2, ours 2i with 2i + 1, as the paper writes it."""
        return weight.unflatten(0, (-1, 2, 2)).transpose(1, 2).flatten(0, 2)

    def pairs():
        yield ours.embedding.lookup.weight, theirs.model.embed_tokens.weight
        yield ours.output.weight, theirs.lm_head.weight
        yield ours.decoder.norm.weight, theirs.model.norm.weight
        for a, b in zip(ours.decoder.layers, theirs.model.layers, strict=True):
            yield a.self_attention.w_q.weight, pairwise(b.self_attn.q_proj.weight)
            yield a.self_attention.w_k.weight, pairwise(b.self_attn.k_proj.weight)
            yield a.self_attention.w_v.weight, b.self_attn.v_proj.weight
            yield a.self_attention.w_o.weight, b.self_attn.o_proj.weight
            yield a.feed_forward.expand.weight, b.mlp.up_proj.weight
            yield a.feed_forward.gate.weight, b.mlp.gate_proj.weight
            yield a.feed_forward.contract.weight, b.mlp.down_proj.weight
            yield a.residuals[0].norm.weight, b.input_layernorm.weight
            yield a.residuals[1].norm.weight, b.post_attention_layernorm.weight

    copied(pairs())
    assert len([*pairs()]) == len([*ours.parameters()])
    ids = torch.randint(0, 20, (3, 9))
    assert_equal(ours(ids), theirs(ids).logits, 1e-5)  # its angles are float32
    assert ours(ids).std() > 0.1


@torch.no_grad()
def test_masked_language_model_equals_bert():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_attention_heads=4, num_hidden_layers=2,
        intermediate_size=24, max_position_embeddings=40, layer_norm_eps=1e-12,
        initializer_range=0.3, type_vocab_size=2,
    )).double().eval()
    ours = MaskedLanguageModel(tiny_config(
        positional="learned", activation="gelu", norm_first=False, eps=1e-12,
        scale_embeddings=False,
    ), n_segments=2).double().eval()
    bert, head = theirs.bert, theirs.cls.predictions

    def parts():
        yield ours.embed.norm, bert.embeddings.LayerNorm
        yield ours.transform, head.transform.dense
        yield ours.norm, head.transform.LayerNorm
        for a, b in zip(ours.encoder.layers, bert.encoder.layer, strict=True):
            yield a.self_attention.w_q, b.attention.self.query
            yield a.self_attention.w_k, b.attention.self.key
            yield a.self_attention.w_v, b.attention.self.value
            yield a.self_attention.w_o, b.attention.output.dense
            yield a.residuals[0].norm, b.attention.output.LayerNorm
            yield a.feed_forward.expand, b.intermediate.dense
            yield a.feed_forward.contract, b.output.dense
            yield a.residuals[1].norm, b.output.LayerNorm

    def pairs():
        yield ours.embedding.lookup.weight, bert.embeddings.word_embeddings.weight
        yield ours.embed.positions.table, bert.embeddings.position_embeddings.weight
        yield ours.segments.weight, bert.embeddings.token_type_embeddings.weight
        yield ours.output.bias, head.bias
        for a, b in parts():
            yield from ((a.weight, b.weight), (a.bias, b.bias))

    copied(pairs())
    assert len([*pairs()]) == len([*ours.parameters()])
    ids, segments = random_ids(3, 9), torch.randint(0, 2, (3, 9))
    ids[1, 5:] = 0
    expected = theirs(ids, attention_mask=(ids != 0).long(), token_type_ids=segments).logits
    assert_equal(ours(ids, segments)[ids != 0], expected[ids != 0], 1e-6)
