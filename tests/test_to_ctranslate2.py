"""A run for CTranslate2: the folder that is written translates as the run does."""

import dataclasses
import os
import sys

import pytest
import torch
import torch.nn.functional as F
from test_export import TEXTS, write_run
from tokenizers import Tokenizer

from transformer_lib import data, load_pretrained
from transformer_lib.cli import main
from transformer_lib.config import ModelConfig
from transformer_lib.decoding import greedy_decode, in_batches
from transformer_lib.fast import for_decoding
from transformer_lib.runs.to_ctranslate2 import export_ctranslate2
from transformer_lib.tokenization import EOS, PAD, encode_pairs, encode_source

MAX_LEN = 30


def ours(translator, texts, max_len=MAX_LEN):
    """Greedy translations by the library, as text."""
    model = for_decoding(translator.model, len(texts))
    ids = in_batches(
        lambda src_ids: greedy_decode(model, src_ids, max_len).tolist(),
        encode_source(translator.tokenizer, texts), 2048,
    )
    return [translator.tokenizer.decode([i for i in row if i not in (EOS, PAD)]) for row in ids]


def theirs(folder, texts, max_len=MAX_LEN):
    """Greedy translations by CTranslate2, as the module's docstring says to use the folder."""
    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install it")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    found = ctranslate2.Translator(str(folder), compute_type="float32").translate_batch(
        [tokenizer.encode(text).tokens for text in texts],
        beam_size=1, max_decoding_length=max_len, max_batch_size=64,
    )
    hypotheses = [result.hypotheses[0] for result in found]
    return [tokenizer.decode([tokenizer.token_to_id(t) for t in tokens]) for tokens in hypotheses]


def surprise(folder, source, target):
    """-log p of each token of `target`, and of its end, by CTranslate2."""
    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install it")
    tokens = [Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).tokens
              for text in (source, target)]
    model = ctranslate2.Translator(str(folder), compute_type="float32")
    return -torch.tensor(model.score_batch(tokens[:1], tokens[1:])[0].log_probs)


CHANGES = [
    {},
    dict(norm_first=False),
    dict(positional="learned", tie_embeddings=False),
    dict(activation="gelu", bias=False),
    dict(activation="gelu_tanh", scale_embeddings=False, n_decoder_layers=1),
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_what_is_exported_writes_the_same(tmp_path, changes):
    pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install it")
    run = write_run(tmp_path / "run", **changes)
    export_ctranslate2(run, tmp_path / "out")
    texts = [*TEXTS, "Hunde", "Gras im Hund", "A dog sleeps"]
    translator = load_pretrained(run)
    found = ours(translator, texts, 12)
    assert len(set(found)) > 2, "the model says the same of everything: nothing is compared"
    assert theirs(tmp_path / "out", texts, 12) == found
    sources, targets = encode_pairs(translator.tokenizer, [(TEXTS[1], TEXTS[3])])
    src_ids, tgt_ids = torch.tensor(sources), torch.tensor(targets)
    logits = translator.model(src_ids, tgt_ids[:, :-1]).detach()
    expected = F.cross_entropy(logits[0], tgt_ids[0, 1:], reduction="none")
    assert torch.allclose(surprise(tmp_path / "out", TEXTS[1], TEXTS[3]), expected, atol=1e-5)


def test_the_shipped_model_writes_the_same(tmp_path, capsys):
    pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install it")
    out = tmp_path / "out"
    assert main(["export", "multi30k-de-en", "--format", "ctranslate2", "--out", str(out)]) == 0
    assert f"ctranslate2.Translator({str(out)!r})" in capsys.readouterr().out
    texts = ["Ein Hund läuft im Schnee.", "Zwei Frauen sitzen auf einer Bank.", "Ja <eos>"]
    assert theirs(out, texts) == ours(load_pretrained("multi30k-de-en"), texts)
    assert main(["export", "multi30k-de-en", "--format", "ctranslate2", "--out", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err


@pytest.mark.weekly  # the whole test set
def test_at_least_995_of_1000_are_the_same(tmp_path):
    pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install it")
    if not os.environ.get("MULTI30K_DIR"):
        pytest.skip("needs Multi30k: set MULTI30K_DIR")
    texts = [source for source, _ in data.load_parallel("auto")["test"]]
    export_ctranslate2("multi30k-de-en", tmp_path / "out")
    found = ours(load_pretrained("multi30k-de-en"), texts, 100)
    same = sum(a == b for a, b in zip(found, theirs(tmp_path / "out", texts, 100), strict=True))
    print(f"{same} of {len(texts)} greedy translations are the same")
    assert len(texts) == 1000 and same >= 995


def test_without_ctranslate2_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    for name in ("ctranslate2", "ctranslate2.specs"):
        monkeypatch.setitem(sys.modules, name, None)
    run, out = write_run(tmp_path / "run"), tmp_path / "out"
    assert main(["export", str(run), "--format", "ctranslate2", "--out", str(out)]) == 1
    assert "pip install ctranslate2" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    "changes", [dict(norm="rms"), dict(eps=1e-3), dict(positional="rotary"),
                dict(activation="swiglu"), dict(n_kv_heads=2)], ids=str,
)
def test_what_it_cannot_write_is_refused_in_a_sentence(tmp_path, changes):
    (name, given), = changes.items()
    with pytest.raises(ValueError, match=f"the export to CTranslate2 has no {name} {given!r}"):
        export_ctranslate2(write_run(tmp_path / "run", **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rounding_is_not_scored_where_nothing_is_rounded(tmp_path, capsys):
    run = write_run(tmp_path / "run")
    assert main(["export", str(run), "--format", "ctranslate2", "--score"]) == 1
    assert "rounds nothing: leave them out" in capsys.readouterr().err


def test_every_field_is_copied_tested_or_refused():
    """A new field of ModelConfig must not be left out of the export without a word."""
    from transformer_lib.runs.to_ctranslate2 import CHOICES

    sizes = {"vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers"}
    no_matter = {"dropout", "attention_dropout", "max_len", "pad_id", "rotary_base"}
    tested = {name for changes in CHANGES for name in changes}
    fields = {field.name for field in dataclasses.fields(ModelConfig)}
    assert fields == sizes | no_matter | tested | CHOICES.keys()
