"""The model laid out for decoding writes what the printed one writes."""

import json
import math
import os
import threading

import pytest
import torch
from conftest import assert_equal, random_ids, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lib import data, fast, load_pretrained
from transformer_lib.attention import record_attention
from transformer_lib.decoding import beam_search, greedy_decode, in_batches, sample
from transformer_lib.fast.decoding import _fill, _round_up, largest
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.models.transformer import Transformer
from transformer_lib.runs.pretrained import results_dir
from transformer_lib.tokenization import encode_source

EOS = 2
KINDS = [
    {},
    dict(norm_first=False, norm="rms", positional="learned"),
    dict(activation="swiglu", positional="none", bias=False),
    dict(activation="gelu", scale_embeddings=False, n_heads=2, n_decoder_layers=3),
]


def eager_model(seed, **changes):
    """A model that ends its sentences now and then, at different times."""
    model = tiny_model(seed, tie_embeddings=False, vocab_size=12, **changes)
    with torch.no_grad():
        model.output.weight[EOS] *= 1.5
    return model


def sources(seed, rows=6):
    src = random_ids(rows, 9, vocab_size=12, seed=seed)
    for row, length in enumerate((9, 5, 2, 7, 1, 9)[:rows]):
        src[row, length:] = 0
    return src


def test_its_steps_give_the_printed_models_logits_where_gradients_are_on():
    model, src = eager_model(0), sources(0, rows=2)
    quick = fast.DecodingModel(model)
    (ids, state), (same, own) = (m.start(src, 1) for m in (quick, model))
    for _ in range(4):
        found, expected = quick.step(ids, state), model.step(same, own)
        assert_equal(found, expected, 1e-5)
        assert not found.requires_grad
        ids = same = expected.argmax(-1, keepdim=True)


@pytest.mark.parametrize("changes", KINDS)
def test_greedy_beam_and_samples_are_those_of_the_printed_model(changes):
    for seed in range(4):
        model, src = eager_model(seed, **changes), sources(seed)
        quick = fast.DecodingModel(model)
        # 25 steps: the cache has to grow; sentences leave before.
        assert torch.equal(greedy_decode(quick, src, 25), greedy_decode(model, src, 25))
        for size, penalty in ((1, 1.0), (2, 0.0), (5, 1.5)):
            found, expected = (beam_search(m, src, size, 25, penalty) for m in (quick, model))
            assert torch.equal(found[0], expected[0])
            assert_equal(found[1], expected[1].to(found[1].dtype), 1e-5)
        draws = [
            sample(m, src, 2.0, generator=torch.Generator().manual_seed(seed), max_len=20)
            for m in (quick, model)
        ]
        assert torch.equal(*draws)


@pytest.mark.parametrize("k", [1, 9, 150])
def test_the_likeliest_tokens_are_the_printed_models(k):
    """Greedy decoding asks for logits, beam search for log-probabilities; padding is no token."""
    model, src = tiny_model(vocab_size=1050, tie_embeddings=False).float(), random_ids(7, 6)
    with torch.no_grad():
        model.output.weight[0] *= 50  # padding would be the best of half of the rows
    quick = fast.DecodingModel(model)
    logits = model.step(*model.start(src, 1)).index_fill(1, torch.tensor(0), -math.inf)
    for log_p, expected in ((False, logits), (True, logits.log_softmax(-1))):
        top, ids = quick.top_tokens(*quick.start(src, 1), k, log_p)
        assert_equal(top, expected.topk(k).values, 1e-5)
        assert_equal(top, expected.gather(1, ids), 1e-5)
    for wrong in (0, 1051):
        with pytest.raises(ValueError, match=f"k is {wrong}; it must be from 1 to 1050, the"):
            quick.top_tokens(*quick.start(src, 1), wrong, True)


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 350), st.integers(1, 9), st.integers(1, 40), st.data())
def test_the_largest_are_those_of_topk(rows, size, k, width, data):
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    logits = torch.randn(rows, size, generator=generator)
    if data.draw(st.booleans()):
        logits = logits.round()  # many as large as others
    k = min(k, size)
    logits[:, : data.draw(st.integers(0, size - k))] = -math.inf
    expected = logits.topk(k).values
    top, ids = largest(logits, k, width)
    assert torch.equal(top, expected) and torch.equal(logits.gather(1, ids), expected)
    assert all(len(set(row)) == k for row in ids.tolist())


@pytest.mark.parametrize("changes", KINDS)
def test_each_step_gives_the_logits_of_the_printed_model(changes):
    model, src = tiny_model(**changes), random_ids(3, 6)
    src[1, 4:] = 0
    quick = fast.DecodingModel(model)
    states = [m.start(src, bos_id=1)[1] for m in (quick, model)]
    prefix = torch.cat([torch.ones(9, 1, dtype=torch.long), random_ids(9, 20)], 1)
    rows, sentences = torch.arange(9), torch.arange(3)
    for t in range(20):
        assert states[0].length == states[1].length == t
        with torch.inference_mode():
            given, expected = (
                m.step(prefix[:, t : t + 1], state)
                for m, state in zip((quick, model), states, strict=True)
            )
        assert_equal(given, expected)
        assert states[0].own.size(4) == 16 * (1 + t // 16), "16 steps more when it's full"
        if t == 5:  # some hypotheses twice, some not at all
            rows, sentences = torch.tensor([2, 2, 0, 4, 3, 3, 8, 7, 6]), None
        elif t == 10:  # and a sentence ends
            rows, sentences = torch.tensor([0, 2, 1, 6, 6, 6]), torch.tensor([0, 2])
        else:
            continue
        prefix = prefix[rows]
        for state in states:
            state.select(rows, sentences)


def test_places_are_a_power_of_two_or_halfway_to_the_next():
    sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    for n in range(1, 65):
        assert _round_up(n) == min(size for size in sizes if size >= n)
        assert _fill(torch.arange(n), 64).tolist() == [*range(n), *[0] * (64 - n)]


def test_without_padding():
    model, src = eager_model(0), random_ids(3, 5, vocab_size=12)
    quick = fast.DecodingModel(model)
    assert torch.equal(greedy_decode(quick, src, 6), greedy_decode(model, src, 6))
    assert torch.isfinite(beam_search(quick, src, 2, 6)[1]).all()
    src = random_ids(30, 5, vocab_size=12)  # as they end, the caches shrink
    assert torch.equal(greedy_decode(quick, src, 20), greedy_decode(model, src, 20))


def test_a_model_that_was_trained_fast_is_known():
    model, src = eager_model(0, dropout=0.1), sources(0)
    expected = greedy_decode(model, src, 9)
    quick = fast.for_decoding(fast.accelerate(model))
    assert isinstance(quick, fast.DecodingModel)
    assert torch.equal(greedy_decode(quick, src, 9), expected)


def test_dropout_and_the_mode_of_the_model_do_not_matter():
    model, src = eager_model(1, dropout=0.5, attention_dropout=0.5), sources(1)
    expected = beam_search(model, src, 3, 9)
    quick = fast.DecodingModel(model.train())
    assert not quick.training, "it has no dropout to switch on"
    found = beam_search(quick, src, 3, 9)
    assert torch.equal(found[0], expected[0]) and model.training


def test_its_weights_are_those_of_the_moment():
    model, src = eager_model(2), sources(2)
    quick, before = fast.DecodingModel(model), greedy_decode(model, src, 9)
    with torch.no_grad():
        model.output.weight.mul_(-1)
    assert torch.equal(greedy_decode(quick, src, 9), before)
    assert not torch.equal(greedy_decode(fast.DecodingModel(model), src, 9), before)


class Other(Transformer):
    def project(self, hidden):
        return super().project(hidden) / 2


def hooked():
    model = tiny_model()
    model.decoder.layers[1].register_forward_hook(lambda *_: None)
    return model


def patched():
    model = tiny_model()
    attention = model.encoder.layers[0].self_attention
    attention.forward = attention.forward
    return model


def replaced():
    model = tiny_model()

    class Norm(torch.nn.Identity):
        pass

    model.encoder.norm = Norm()
    return model


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tiny_model(positional="rotary"), "rotary positions"),
        (lambda: tiny_model(positional="alibi"), "alibi positions"),
        (lambda: tiny_model(norm="batch"), "norm"),
        (lambda: tiny_model(n_kv_heads=2), "share their keys"),
        (lambda: tiny_model(n_decoder_layers=0), "no decoder layers"),
        (lambda: LanguageModel(tiny_model().config), "a LanguageModel, not a Transformer"),
        (lambda: Other(tiny_model().config), "a Other, not a Transformer"),
        (hooked, r"decoder.layers.1 was changed"),
        (patched, r"encoder.layers.0.self_attention was changed"),
        (replaced, "encoder.norm was changed"),
    ],
)
def test_what_it_would_not_do_right_is_refused(make, reason):
    model = make()
    with pytest.raises(ValueError, match=reason):
        fast.DecodingModel(model)
    assert fast.for_decoding(model) is model


def test_a_negative_number_of_sentences_is_refused():
    with pytest.raises(ValueError, match="sentences is -1; it must be at least 0"):
        fast.for_decoding(tiny_model(), -1)
    assert isinstance(fast.for_decoding(tiny_model(), 0), fast.DecodingModel)


def test_a_model_that_is_being_looked_into_is_decoded_as_it_is():
    model = tiny_model()
    assert isinstance(fast.for_decoding(model), fast.DecodingModel)
    with record_attention(model):
        assert fast.for_decoding(model) is model


def test_without_a_cache_it_refuses():
    with pytest.raises(ValueError, match="has a cache"):
        greedy_decode(fast.DecodingModel(tiny_model()), sources(0), use_cache=False)


# ---------------------------------------------------------------------------- several at a time


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_parallel_map_is_a_map(threads):
    before, inside = torch.get_num_threads(), []

    def square(x):
        inside.append(torch.get_num_threads())
        return x * x

    torch.set_num_threads(threads)
    try:
        assert list(fast.parallel_map(square, [1, 2, 3, 4])) == [1, 4, 9, 16]
        assert list(fast.parallel_map(square, [])) == []
        assert set(inside) == {1}
        with pytest.raises(ZeroDivisionError):
            fast.parallel_map(lambda x: 1 / x, [1, 0, 2])
        assert torch.get_num_threads() == threads
        fast.parallel_map(lambda _: inside.append(torch.get_num_threads()), [0])
        assert inside[-1] == threads  # one alone has them all
        later = threading.Thread(target=lambda: inside.append(torch.get_num_threads()))
        later.start()
        later.join()
        assert inside[-1] == threads
    finally:
        torch.set_num_threads(before)


# ------------------------------------------------------------------------- the shipped translator


@pytest.fixture(scope="module")
def translator():
    return load_pretrained("multi30k-de-en")


def same_on(translator, texts):
    """How many greedy outputs, beams, and scores to 1e-4 are the same with both."""
    ids = encode_source(translator.tokenizer, texts)
    quick = fast.DecodingModel(translator.model)
    assert any(isinstance(part, fast.decoding._Linear) for part in vars(quick).values())
    outputs = []
    for model in (quick, translator.model):

        def both(src, model=model):
            best, scores = beam_search(model, src, 5, length_penalty=1.5)
            return zip(greedy_decode(model, src), best, scores, strict=True)

        outputs.append(in_batches(both, ids, 2048))

    def words(row):
        return row[row != 0].tolist()

    rows = list(zip(*outputs, strict=True))
    return (
        sum(words(a[0]) == words(b[0]) for a, b in rows),
        sum(words(a[1]) == words(b[1]) for a, b in rows),
        sum(abs(float(a[2] - b[2])) < 1e-4 for a, b in rows),
    )


def test_the_shipped_model_writes_the_same_in_float32(translator):
    texts = [source for source, _ in data.load_parallel("mini")["test"][:60]]
    assert min(same_on(translator, texts)) >= 59  # a tie may fall the other way


@pytest.mark.weekly  # the test above takes 60 sentences
def test_the_shipped_model_writes_the_same_on_the_test_set(translator):
    if not os.environ.get("MULTI30K_DIR"):
        pytest.skip("needs Multi30k: set MULTI30K_DIR")
    texts = [source for source, _ in data.load_parallel("multi30k")["test"]]
    assert min(same_on(translator, texts)) >= 995


@pytest.mark.parametrize("threads", [1, 2])
def test_translating_in_threads_changes_nothing(translator, threads):
    examples = json.loads((results_dir().parent / "book/_static/live/examples.json").read_text())
    texts = [example["sentence"] for example in examples["examples"]]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = translator.translate(texts, max_tokens=32, attention=False)
    finally:
        torch.set_num_threads(before)
    watched = translator.translate(texts, max_tokens=32)
    assert [t.text for t in found] == [t.text for t in watched]
    assert all(t.cross_attention.size(0) == 4 for t in watched)


def test_what_is_switched_off_in_the_model_is_switched_off_in_its_translations(translator):
    text = "Viele Menschen warten auf den Bus."
    (before,) = translator.translate([text])
    hooks = [
        layer.cross_attention.register_forward_hook(lambda _m, _i, out: (0 * out[0], out[1]))
        for layer in translator.model.decoder.layers
    ]
    (blind,) = translator.translate([text], attention=False)
    for hook in hooks:
        hook.remove()
    assert blind.text != before.text
    assert translator.translate([text])[0].text == before.text
