"""A run as one small file: what the command writes, what it costs, what is recorded of it."""

import json
import os
import re
from pathlib import Path

import pytest
from test_export import TEXTS, write_run

from transformer_lib import load_pretrained
from transformer_lib.cli import main
from transformer_lib.data import Pairs, load_parallel
from transformer_lib.runs import checksums, export, shipping
from transformer_lib.runs.files import sha256, write_json
from transformer_lib.runs.pretrained import find_run, results_dir

LIVE = Path(__file__).resolve().parents[1] / "book" / "_static" / "live"
PAIRS = Pairs(
    {
        "validation": [(TEXTS[0], TEXTS[2]), (TEXTS[1], TEXTS[3])],
        "test": [(TEXTS[1], TEXTS[3]), (TEXTS[0], TEXTS[2]), ("Gras", "Dogs")],
    },
    "made up",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run with random weights that says which data it is of."""
    monkeypatch.setattr(shipping.data, "load_parallel", lambda *_: PAIRS)
    folder = write_run(tmp_path / "run")
    about = json.loads((folder / "config.json").read_text())
    about["data"] = {"source": "made up", "src": "de", "tgt": "en"}
    write_json(folder / "config.json", about)
    checksums.write(folder, ["config.json", "model.safetensors", "tokenizer.json"])
    return folder


@pytest.mark.parametrize("run", ["multi30k-de-en", "multi30k-en-de"])
def test_the_command_writes_the_file_of_the_page(tmp_path, capsys, run):
    out = tmp_path / "shipped.bin"
    assert main(["export", run, "--out", str(out)]) == 0
    assert out.read_bytes() == (LIVE / f"{run}.bin").read_bytes()
    assert f"{out.stat().st_size:,} bytes" in capsys.readouterr().out


def test_it_goes_into_the_working_directory_unless_told(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    assert main(["export", str(folder)]) == 0
    assert export.load_exported("run.bin").model.config == load_pretrained(folder).model.config


def test_both_are_scored_and_the_run_keeps_it(folder, capsys):
    out = folder.parent / "a.bin"
    assert main(["export", str(folder), "--out", str(out), "--score", "--save"]) == 0
    said = capsys.readouterr().out
    found = json.loads((folder / "shipping.json").read_text())
    checksums.require(folder)
    assert "shipping.json" in checksums.read(folder)
    assert found["weights"] == sha256(folder / "model.safetensors")
    assert found["exported"] == sha256(out)
    assert found["bytes"]["exported"] == out.stat().st_size
    assert found["data"] == "made up" and found["milliseconds"]["int8"] > 0
    for split in shipping.SPLITS:
        scores = found[split]
        assert scores["sentences"] == len(PAIRS[split])
        line = f"{scores['same']} of {scores['sentences']} translations are the same"
        assert line in said and f"BLEU {scores['float32']['bleu']:.2f} in float32" in said
    # Each half is that translator's own: other weights in the file change its half alone.
    other = write_run(folder.parent / "other", norm_first=False)
    export.export_live(other, out)
    mixed = shipping.compare(folder, out)
    assert mixed["test"]["float32"] == found["test"]["float32"]
    assert mixed["test"]["same"] < found["test"]["same"] == 3


def test_a_record_of_other_weights_is_named(folder, capsys):
    write_json(folder / "shipping.json", {"weights": "0" * 64})
    load_pretrained(folder)
    assert "shipping.json holds scores of weights other than" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--save"], "--save keeps what --score finds"),
        (["--beam-size", "3"], "--beam-size is for --score"),
        (["--out", "."], "--out names a file"),
    ],
)
def test_what_makes_no_sense_is_said(folder, monkeypatch, capsys, extra, message):
    monkeypatch.chdir(folder.parent)
    assert main(["export", str(folder), *extra]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "shipping.json").exists()


def test_a_run_that_does_not_say_its_data_is_not_scored(tmp_path, capsys):
    run = write_run(tmp_path / "run")
    assert main(["export", str(run), "--out", str(tmp_path / "a.bin"), "--score"]) == 1
    assert "does not record its data" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(results_dir().glob("*/shipping.json")), ids=str)
def test_what_is_recorded_is_of_what_is_shipped(path):
    found, recorded = json.loads(path.read_text()), json.loads(
        (path.parent / "scores.json").read_text())
    assert found["weights"] == sha256(path.parent / "model.safetensors")
    assert found["exported"] == sha256(LIVE / f"{path.parent.name}.bin")
    assert found["test"]["float32"]["bleu"] == pytest.approx(recorded["bleu"], abs=0.1)
    assert found["test"]["sentences"] == recorded["sentences"]


def records():
    kept = json.loads((LIVE / "examples.json").read_text(encoding="utf-8"))
    return kept["examples"] + kept["pages"]


def test_a_chapter_opens_without_the_weights():
    """What a small translator shows at first is recorded, so a phone need not load 3 MB for it."""
    shown = {
        text for path in LIVE.parents[1].glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
        for code in ["".join(cell["source"])] if '"translator_mini"' in code
        for text in re.findall(r'\btext="([^"]+)"', code)
    }
    assert shown and shown <= {one["sentence"] for one in records()}


def test_the_file_of_the_page_translates_as_the_run_does():
    """The captions that are recorded with the page, as it shows them before the file is loaded."""
    recorded = records()
    texts = [example["sentence"] for example in recorded if example["inDomain"]]
    exact = load_pretrained("multi30k-de-en").translate(texts)
    rounded = export.load_exported(LIVE / "multi30k-de-en.bin").translate(texts)
    for a, b in zip(exact, rounded, strict=True):
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=0.02)


@pytest.mark.skipif(not os.environ.get("MULTI30K_DIR"), reason="needs Multi30k: set MULTI30K_DIR")
def test_the_file_of_the_page_translates_the_first_sentences_as_recorded():
    folder = find_run("multi30k-de-en")
    lines = (folder / "translations.jsonl").read_text(encoding="utf-8").splitlines()[:20]
    texts = [source for source, _ in load_parallel("multi30k")["test"][:20]]
    found = export.load_exported(LIVE / "multi30k-de-en.bin").translate(texts, attention=False)
    same = sum(
        t.text == json.loads(line)["translation"] for t, line in zip(found, lines, strict=True)
    )
    assert same >= 18
