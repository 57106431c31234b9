"""The translator: text in, text out, and the attention behind it."""

import json

import pytest
import torch
from tiny_run import data, run

from transformer_lib import ModelConfig, Transformer, Translator, load_pretrained
from transformer_lib.decoding import beam_search
from transformer_lib.runs.pretrained import find_run, results_dir, run_info
from transformer_lib.tokenization import encode_source

TEXTS = ["Ein Mann schläft.", "Die Frau, die einen roten Hut trägt, spielt mit dem Hund.", "Hund"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "tiny"
    pairs = dict(data()[0])
    pairs["validation"] = [pair for pair in pairs["validation"] if max(map(len, pair)) < 48]
    settings = dict(max_steps=30, checkpoint_every=10, validate_every=30)
    run(folder, pairs=pairs, **settings, n_decoder_layers=2, max_len=50)
    return folder


@pytest.fixture(scope="module")
def translator(folder):
    return load_pretrained(folder)


def test_a_translation_holds_what_its_documentation_says(translator):
    for text, found in zip(TEXTS, translator.translate(TEXTS), strict=True):
        ids = encode_source(translator.tokenizer, [text])[0]
        assert found.source_tokens == [translator.tokenizer.id_to_token(i) for i in ids]
        assert found.source_tokens[-1] == "<eos>"
        written = [translator.tokenizer.token_to_id(token) for token in found.tokens]
        assert found.text == translator.tokenizer.decode(written)
        assert "<pad>" not in found.tokens and "<bos>" not in found.tokens
        shape = (2, 2, len(found.tokens), len(found.source_tokens))
        assert found.cross_attention.shape == shape
        sums = found.cross_attention.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
        assert found.score < 0


def test_a_batch_equals_its_sentences_one_at_a_time(translator):
    # The limit on what is written must be the same for all: it is max_len for each of these.
    texts = TEXTS + [text for text, _ in data()[0]["validation"] if len(text) < 50]
    together = translator.translate(texts, max_tokens=60)
    for text, batched in zip(texts, together, strict=True):
        (alone,) = translator.translate([text])
        assert (alone.text, alone.tokens) == (batched.text, batched.tokens)
        assert alone.score == pytest.approx(batched.score, abs=1e-4)
        torch.testing.assert_close(alone.cross_attention, batched.cross_attention)


def test_it_is_beam_search(translator):
    ids, scores = beam_search(
        translator.model,
        torch.tensor(encode_source(translator.tokenizer, TEXTS[:1])),
        beam_size=3,
        length_penalty=0.6,
    )
    own = Translator(translator.model, translator.tokenizer, length_penalty=0.6)
    for found in (
        *translator.translate(TEXTS[:1], beam_size=3, length_penalty=0.6),
        *own.translate(TEXTS[:1], beam_size=3),
    ):
        assert found.text == translator.tokenizer.decode(ids[0].tolist())
        assert found.score == pytest.approx(float(scores[0]))


def test_the_attention_is_that_which_predicted_the_token(translator):
    """Reading only <bos> and the first tokens gives the row of the token that follows."""
    (found,) = translator.translate(TEXTS[:1])
    src = torch.tensor(encode_source(translator.tokenizer, TEXTS[:1]))
    written = [translator.tokenizer.token_to_id(token) for token in found.tokens]
    for n in (1, len(written)):
        prefix = translator.cross_attention(src, torch.tensor([written[:n]]))
        torch.testing.assert_close(prefix[0, :, :, -1], found.cross_attention[:, :, n - 1])


def test_without_attention_the_text_is_the_same(translator):
    quick = translator.translate(TEXTS, attention=False)
    assert [t.text for t in quick] == [t.text for t in translator.translate(TEXTS)]
    assert all(t.cross_attention.numel() == 0 for t in quick)


def test_nothing_gives_nothing_and_odd_text_does_not_fail(translator):
    assert translator.translate([]) == []
    odd = ["", " ", "日本語 🎉", "<eos>", "\x00", "ﬁne"]
    found = translator.translate(odd)
    assert len(found) == len(odd)
    assert all(t.cross_attention.numel() == 0 and t.score == 0 for t in found[:2])


def test_wrong_input_is_named(translator):
    with pytest.raises(
        TypeError, match=r"expects a list of sentences, got one string: put it in \["
    ):
        translator.translate("Ein Mann schläft.")
    with pytest.raises(
        ValueError, match=r"a sentence of \d+ tokens is longer than the model's 50 .*'H"
    ):
        translator.translate(["Ein Mann .", "Hund " * 100, "Ein Hund ."])


def test_tokenizer_and_model_must_belong_together(translator):
    other = Transformer(ModelConfig(77, d_model=8, n_heads=2, d_ff=8))
    with pytest.raises(ValueError, match="the tokenizer has 150 tokens, the model 77"):
        Translator(other, translator.tokenizer)


def test_a_run_is_found_by_path_or_name(folder, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(folder.parent))
    assert results_dir() == folder.parent
    assert find_run(folder) == folder and find_run("tiny") == folder
    assert run_info("tiny") == json.loads((folder / "config.json").read_text())
    assert load_pretrained("tiny").translate(TEXTS)[0].tokens
    message = r"no trained run 'large'; .* holds \['tiny'\] .*, and a path to a run folder w"
    for function in (find_run, load_pretrained, run_info):
        with pytest.raises(ValueError, match=message):
            function("large")
    monkeypatch.setenv("RESULTS_DIR", str(folder / "nowhere"))
    with pytest.raises(ValueError, match="RESULTS_DIR names .*nowhere, a folder that does"):
        find_run("large")
    monkeypatch.setenv("RESULTS_DIR", str(folder / "config.json"))
    with pytest.raises(ValueError, match="RESULTS_DIR names .*config.json, which is a file"):
        find_run("large")
    monkeypatch.setenv("RESULTS_DIR", str(folder / "nowhere"))
    (folder / "nowhere").mkdir()
    with pytest.raises(ValueError, match="; .* holds none"):
        find_run("large")


def test_a_length_penalty_of_zero_is_not_the_runs_own(translator):
    """0 is a number like any other: scores are then log-probabilities, divided by nothing."""
    own = Translator(translator.model, translator.tokenizer, length_penalty=2.0)
    asked = own.translate(TEXTS, beam_size=3, length_penalty=0)
    bare = Translator(translator.model, translator.tokenizer, length_penalty=0.0)
    assert [t.score for t in asked] == [t.score for t in bare.translate(TEXTS, beam_size=3)]
    assert [t.score for t in asked] != [t.score for t in own.translate(TEXTS, beam_size=3)]


def test_a_run_keeps_its_length_penalty(folder, tmp_path):
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert load_pretrained(tmp_path).length_penalty == 1
    choice = tmp_path / "scores-validation.json"
    choice.write_text('{"length_penalty": 1.5}')
    assert load_pretrained(tmp_path).length_penalty == 1.5
    for damaged in ("", "[]", "{}", '{"length_penalty": null}'):
        choice.write_text(damaged)
        with pytest.raises(ValueError, match="scores-validation.json is damaged: .* Delete it, or"):
            load_pretrained(tmp_path)


def test_a_run_without_weights_is_named(folder, tmp_path):
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ValueError, match="no weights at .*: the run has not finished, or"):
        load_pretrained(tmp_path)
    weights = (folder / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[:-10])
    with pytest.raises(ValueError, match="model.safetensors is damaged or cut short"):
        load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(weights)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="no tokenizer at"):
        load_pretrained(tmp_path)
