"""`verify` holds a run to what its folder says: each claim is made false once."""

import json
import shutil

import pytest
from test_saved_scores import TRAIN

from transformer_lib.cli import main
from transformer_lib.config import ModelConfig, to_dict
from transformer_lib.data import load_parallel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs import checkpoint, checksums
from transformer_lib.runs.files import sha256, write_json
from transformer_lib.runs.verification import verify


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A finished run with the scores of its test set."""
    folder = tmp_path_factory.mktemp("verified") / "run"
    short = ["--max-len", "70", "--max-steps", "40"]
    assert main(["train", "--run", str(folder), *TRAIN, *short]) == 0
    common = ["--data", "mini", "--beam-size", "1", "--save"]
    assert main(["evaluate", "--run", str(folder), *common]) == 0
    return folder


@pytest.fixture
def folder(scored, tmp_path):
    return shutil.copytree(scored, tmp_path / "run")


def change(folder, name, edit):
    """Change a file as somebody would who writes a new list of checksums afterwards."""
    with checksums.changing(folder, [name]):
        path = folder / name
        path.write_text(edit(path.read_text()))


def failed(folder, **options):
    """What doesn't hold, in order."""
    return [str(finding) for finding in verify(folder, **options) if finding.holds is False]


def test_a_run_that_holds(folder, capsys):
    assert main(["verify", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(line.startswith("✓") for line in lines), lines
    assert "the same" in lines[2] and "BLEU on test" in lines[1]


def test_another_score_is_found_twice(folder, capsys):
    change(folder, "scores.json", lambda text: json.dumps(json.loads(text) | {"bleu": 41.0}))
    kept, again = failed(folder)
    assert kept.startswith("✗ 41.00 BLEU on test: the kept translations give ")
    assert again.endswith("41.00 is claimed")
    assert main(["verify", str(folder)]) == 1


def test_translations_that_the_model_does_not_write_are_found(folder):
    rows = [{"translation": english} for _, english in load_parallel("mini")["test"]]
    perfect = "".join(json.dumps(row) + "\n" for row in rows)
    change(folder, "translations.jsonl", lambda _: perfect)
    found = failed(folder)
    assert "the kept translations give 100.00" in found[0]
    assert f"0 of {len(rows)} come out the same" in found[1]


def test_scores_of_other_weights_are_found(folder):
    other = {"weights": sha256(b"others")}
    change(folder, "scores.json", lambda text: json.dumps(json.loads(text) | other))
    (found,) = failed(folder)
    assert "other weights" in found


def test_saving_that_was_interrupted_is_found(folder):
    (folder / "scores-validation.json").write_text((folder / "scores.json").read_text())
    assert failed(folder)[0].startswith("✗ scores-validation.json: not listed")


def test_every_file_that_was_changed_is_a_finding(folder, capsys):
    for name in ("metrics.jsonl", "translations.jsonl"):
        with (folder / name).open("a") as file:
            file.write("{}\n")
    assert main(["verify", str(folder)]) == 1
    said = capsys.readouterr()
    assert not said.err and [line.partition(" is ")[0] for line in said.out.splitlines()] == [
        "✗ metrics.jsonl", "✗ translations.jsonl"]


@pytest.mark.parametrize("key", ["weights", "beam_size", "sentences"])
def test_scores_that_say_too_little_are_named(folder, key):
    def without(text):
        return json.dumps({k: v for k, v in json.loads(text).items() if k != key})

    change(folder, "scores.json", without)
    _, found = verify(folder)
    assert found.holds is None and f"scores.json doesn't say its {key}, " in str(found)


def test_scores_of_another_split_without_their_translations_are_made_again(folder):
    common = ["--data", "mini", "--beam-size", "1", "--save", "--split", "validation"]
    assert main(["evaluate", "--run", str(folder), *common]) == 0
    assert len([*verify(folder)]) == 5  # its translations are compared, and not made again
    with checksums.changing(folder, ["translations-validation.jsonl"]):
        (folder / "translations-validation.jsonl").unlink()
    found = [str(finding) for finding in verify(folder)]
    assert len(found) == 5 and all(line.startswith("✓") for line in found), found
    assert "translated again: " in found[1] and found[1].endswith(" is claimed")
    change(folder, "scores-validation.json", lambda t: json.dumps(json.loads(t) | {"bleu": 41.0}))
    assert [*verify(folder)][1].holds is False


def test_counts_that_differ_are_found(folder):
    change(folder, "translations.jsonl", lambda text: "".join(text.splitlines(True)[:-2]))
    n = len(load_parallel("mini")["test"])
    (found,) = failed(folder)
    assert f"{n - 2} translations are kept for {n} sentences" in found
    change(folder, "scores.json", lambda text: json.dumps(json.loads(text) | {"sentences": n + 9}))
    (found,) = failed(folder)
    assert f"of {n + 9} sentences, but the data has {n}" in found


def test_what_cannot_be_looked_at_is_said(folder):
    def away(*_):
        raise ConnectionError("no mirror has it")

    found = [*verify(folder, load=away)]
    assert [finding.holds for finding in found] == [True, None]
    assert "its data isn't available (no mirror has it)" in str(found[1])
    (folder / checksums.NAME).unlink()
    (folder / "scores.json").unlink()
    assert [str(finding)[0] for finding in verify(folder)] == ["?", "?"]


RUN = pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])


@RUN
def test_a_listed_file_that_is_not_there_is_named(folder, name, capsys):
    (folder / name).unlink()
    assert main(["verify", str(folder)]) == 1
    assert f"✗ {name}: listed, but missing" in capsys.readouterr().out


@pytest.mark.parametrize("share", [None, 0, 0.5])
@RUN
def test_a_run_without_a_list_must_be_able_to_translate(folder, name, share, capsys):
    (folder / checksums.NAME).unlink()
    path = folder / name
    whole = path.read_bytes()
    if share is None:
        path.unlink()
    else:
        path.write_bytes(whole[: int(len(whole) * share)])
    assert main(["verify", str(folder)]) == 1
    said = capsys.readouterr()
    assert "✗ it can't translate: " in said.out and name in said.out and not said.err


def test_a_run_without_a_list_that_is_no_translator_cannot_be_tried(tmp_path, capsys):
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = LanguageModel(ModelConfig(20, **sizes))
    write_json(tmp_path / "config.json", {"model": to_dict(model.config)})
    checkpoint.save_weights(tmp_path / "model.safetensors", model.state_dict())
    assert main(["verify", str(tmp_path)]) == 0
    assert "? its model isn't a translator, so it can't be tried" in capsys.readouterr().out
    (tmp_path / "model.safetensors").write_bytes(b"{")
    assert main(["verify", str(tmp_path)]) == 1


@pytest.mark.parametrize(("loaded", "message"), [
    (None, "what load returned is None .*; expected a dictionary from split"),
    ({"test": "ab"}, r"what load returned\['test'\] is 'ab' \(str\); expected a list of"),
    ({"dev": []}, "what load returned has a split 'dev'"),
])
def test_data_that_is_no_data_is_named(folder, loaded, message):
    with pytest.raises((TypeError, ValueError), match=message):
        [*verify(folder, load=lambda *_: loaded)]
    found = [*verify(folder, load=lambda *_: {"train": []})]
    assert found[-1].holds is False and "the data has 0" in str(found[-1])


@pytest.mark.parametrize("content", ["[]", "{", "[3]", "[" * 9999])
def test_scores_that_cannot_be_read_do_not_hold(folder, content, capsys):
    change(folder, "scores.json", lambda _: content)
    assert main(["verify", str(folder)]) == 1
    said = capsys.readouterr()
    assert "✗ scores.json is damaged: it holds no scores" in said.out and not said.err


def test_a_config_that_cannot_be_read_is_named_without_a_list_too(folder):
    (folder / "checksums.json").unlink()
    (folder / "config.json").write_text("[]")
    (folder / "scores.json").unlink()  # whose translations would be made again, with the config
    with pytest.raises(ValueError, match="config.json is damaged"):
        list(verify(folder))


@pytest.mark.parametrize(("key", "value"), [
    ("bleu", "high"), ("sentences", "many"), ("sentences", 0), ("beam_size", 0), ("beam_size", 2.5),
    ("length_penalty", [1]), ("split", 3), ("src", None), ("data", ["mini"]),
])
def test_a_claim_of_another_kind_is_damage(folder, key, value):
    change(folder, "scores.json", lambda text: json.dumps(json.loads(text) | {key: value}))
    assert failed(folder)[0].startswith(f"✗ scores.json is damaged: its {key} is ")


@pytest.mark.parametrize("row", [{}, {"translation": 3}, {"translation": None}])
def test_a_kept_line_without_a_translation_is_named(folder, row):
    change(folder, "translations.jsonl", lambda text: json.dumps(row) + text[text.index("\n"):])
    assert failed(folder) == ["✗ translations.jsonl is damaged: line 1 has no translation"]


@pytest.mark.parametrize(("name", "content", "message"), [
    ("environment.json", "3", "it doesn't hold a JSON object"),
    ("shipping.json", "{", "it doesn't hold a JSON object"),
    ("metrics.jsonl", "{}\n[1]\n", "line 2 is not a JSON object"),
])
def test_what_a_run_without_a_list_cannot_read_is_named(folder, name, content, message):
    (folder / checksums.NAME).unlink()
    (folder / name).write_text(content)
    (folder / "scores.json").unlink()
    assert failed(folder) == [f"✗ {name} is damaged: {message}"]


def test_where_pairs_come_from_takes_three_names(folder):
    with pytest.raises(TypeError, match="load is the function .*; expected a function of"):
        verify(folder, load=lambda: {})
