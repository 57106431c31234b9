"""A run as one checked file: the same bytes each time, little lost, and nothing wrong let in."""

import json
import os
from pathlib import Path

import pytest
import torch
from conftest import tiny_config
from tokenizers import Tokenizer, models

from transformer_lib import Transformer, data, evaluation, load_pretrained
from transformer_lib.runs import export
from transformer_lib.runs.checkpoint import save_model
from transformer_lib.runs.pretrained import find_run, run_info
from transformer_lib.tokenization import train_tokenizer

TEXTS = ["Ein Hund läuft.", "Zwei Hunde schlafen im Gras.", "A dog runs.", "Two dogs sleep."]


def write_run(folder, tokenizer=None, kind="bpe", **changes):
    """A run folder with random weights, as a reader's own run leaves it."""
    tokenizer = tokenizer or train_tokenizer(TEXTS, 62, kind)
    torch.manual_seed(1)
    model = Transformer(tiny_config(vocab_size=tokenizer.get_vocab_size(), **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    save_model(folder, model)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(norm_first=False, norm="rms", positional="learned", tie_embeddings=False),
        dict(positional="rotary", activation="swiglu", kind="word"),
    ],
)
def test_what_is_read_back_is_what_was_written_but_for_the_rounding(tmp_path, changes):
    run = write_run(tmp_path / "run", **changes)
    header = export.export_live(run, tmp_path / "a.bin")
    export.export_live(run, tmp_path / "b.bin")
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()
    assert header["bytes"] == (tmp_path / "a.bin").stat().st_size
    exact, rounded = load_pretrained(run), export.load_exported(tmp_path / "a.bin")
    assert rounded.model.config == exact.model.config
    for (name, old), new in zip(
        exact.model.state_dict().items(), rounded.model.state_dict().values(), strict=True
    ):
        # Half a step of the int8 scale of the row, and a little for the float32 product.
        half = old.abs().amax(-1, keepdim=True) / 254 if old.dim() == 2 else torch.zeros(())
        assert ((new - old).abs() <= half * 1.0001).all(), name
    texts = [*TEXTS, "", "Gras\tläuft 😀 <eos>"]
    for text in texts:
        assert rounded.tokenizer.encode(text).ids == exact.tokenizer.encode(text).ids


def test_the_shipped_file_is_what_the_exporter_writes(tmp_path):
    shipped = export.Path(__file__).parents[1] / "book/_static/live/multi30k-de-en.bin"
    export.export_live("multi30k-de-en", tmp_path / "fresh.bin")
    assert (tmp_path / "fresh.bin").read_bytes() == shipped.read_bytes(), (
        "run tools/export_live.py"
    )
    assert shipped.stat().st_size <= 4_000_000


def test_what_the_page_cannot_run_is_refused_in_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="has no norm 'batch'"):
        export.export_live(write_run(tmp_path / "batch", norm="batch"), tmp_path / "x.bin")
    monkeypatch.setattr(export, "FIELDS", ("vocab_size", "d_model"))  # as if the rest were new
    with pytest.raises(ValueError, match="knows only n_heads 8, but this run has 4"):
        export.export_live(write_run(tmp_path / "new"), tmp_path / "x.bin")
    monkeypatch.undo()
    other = Tokenizer(models.BPE(unk_token="<unk>"))
    other.add_special_tokens(["<pad>", "<bos>", "<eos>", "<unk>"])
    run = write_run(tmp_path / "other", tokenizer=other)
    with pytest.raises(ValueError, match="only reads tokenizers made by tokenization.train"):
        export.export_live(run, tmp_path / "x.bin")
    with pytest.raises(ValueError, match="no trained run"):
        export.export_live("nothing", tmp_path / "x.bin")
    assert not (tmp_path / "x.bin").exists()


def test_a_damaged_file_is_refused(tmp_path):
    export.export_live(write_run(tmp_path / "run"), tmp_path / "a.bin")
    whole = (tmp_path / "a.bin").read_bytes()

    def load(content):
        (tmp_path / "b.bin").write_bytes(content)
        return export.load_exported(tmp_path / "b.bin")

    load(whole)
    for place in (60, len(whole) // 2, len(whole) - 1):  # header, weights, the last number
        with pytest.raises(ValueError, match="is damaged"):
            load(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(ValueError, match="is damaged"):
        load(whole[:-1])
    with pytest.raises(ValueError, match="has format 2"):
        load(whole[:8] + b"\2" + whole[9:])
    for content in (b"", b"BOOKLIVE", b"\0" * 100):
        with pytest.raises(ValueError, match="is not a model for the page"):
            load(content)


def captions(folder):
    """What the scores of a run say of its test set, and its sentences and references."""
    if not os.environ.get("MULTI30K_DIR"):
        pytest.skip("needs Multi30k: set MULTI30K_DIR")
    recorded = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    pairs = data.load_parallel(recorded["data"], recorded["src"], recorded["tgt"])
    return recorded, *zip(*pairs[recorded["split"]], strict=True)


def rounded(folder, file, sources, recorded):
    export.export_live(folder, file)
    found = export.load_exported(file).translate(
        list(sources), recorded["beam_size"], recorded["length_penalty"], attention=False
    )
    return [result.text for result in found]


def test_rounding_changes_few_translations(tmp_path):
    folder = find_run("multi30k-de-en")
    recorded, sources, _ = captions(folder)
    lines = (folder / "translations.jsonl").read_text(encoding="utf-8").splitlines()[::10]
    found = rounded(folder, tmp_path / "a.bin", sources[::10], recorded)
    same = sum(json.loads(a)["translation"] == b for a, b in zip(lines, found, strict=True))
    assert same >= 85


@pytest.mark.weekly  # the whole test set
def test_rounding_costs_no_more_than_0_2_bleu(tmp_path):
    folder = find_run("multi30k-de-en")
    recorded, sources, references = captions(folder)
    found = rounded(folder, tmp_path / "a.bin", sources, recorded)
    score = evaluation.score(found, list(references))
    print(f"rounded {score.bleu:.2f}, recorded {recorded['bleu']:.2f}")
    assert score.bleu == pytest.approx(recorded["bleu"], abs=0.2)


def test_the_page_counts_its_heads_and_its_lines():
    """book/translator.md: the number of heads, and an engine of a few hundred lines."""
    root = Path(__file__).resolve().parents[1]
    sizes = run_info("multi30k-de-en")["model"]
    attentions = sizes["n_encoder_layers"] + 2 * sizes["n_decoder_layers"]
    page = (root / "book" / "translator.md").read_text(encoding="utf-8")
    assert f"the model's {attentions * sizes['n_heads']} *heads*" in page
    engine = ("tensor", "tokenizer", "model_file", "transformer", "decoding")
    files = [root / "book" / "_static" / "live" / f"{name}.js" for name in engine]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 600
