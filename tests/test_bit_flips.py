"""One flipped bit, anywhere in a run folder or in results/: it is said, or it is undone."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny_run import TRAIN, assert_same_run, run

from recordings import checksums as listing
from transformer_lib import load_pretrained
from transformer_lib.runs import checksums, download, pretrained
from transformer_lib.runs.files import read_json_lines, sha256

ROOT = Path(__file__).resolve().parents[1]



class Crash(Exception):
    pass


def crash_at(step):
    def on_log(entry):
        if entry["step"] == step:
            raise Crash

    return on_log


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    run(folder)
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Stopped by a crash at step 9: the newest checkpoint is that of step 8."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Crash):
        run(folder, on_log=crash_at(9))
    return folder


def flip(path: Path, bit: int):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def places(path: Path, n: int) -> list[int]:
    """The first bit, the last, and n - 2 between them."""
    bits, rng = 8 * path.stat().st_size, random.Random(path.name)
    return sorted({0, bits - 1, *(rng.randrange(bits) for _ in range(n - 2))})


def every_flip(folder: Path, n: int):
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for bit in places(path, 4 * n if path.name == "state.json" else n):
            yield path.relative_to(folder), bit


def outcome(folder: Path, capsys) -> str:
    """All that is said when a run is started again and its model is loaded."""
    capsys.readouterr()
    try:
        run(folder)
        load_pretrained(folder)
        error = ""
    except (ValueError, OSError) as raised:
        error = str(raised)
    return capsys.readouterr().out + error


# Bits in each file of a folder.
FEW_OR_MANY = [2, pytest.param(8, marks=pytest.mark.weekly)]


@pytest.mark.parametrize("n", FEW_OR_MANY)
@pytest.mark.parametrize("which", ["finished", "stopped"])
def test_a_flipped_bit_in_a_run_folder_is_not_silent(which, n, request, finished, tmp_path, capsys):
    folder, flips = request.getfixturevalue(which), 0
    for name, bit in every_flip(folder, n):
        copy = tmp_path / "run"
        shutil.copytree(folder, copy)
        flip(copy / name, bit)
        said = outcome(copy, capsys)
        if "damaged" not in said and "not a readable" not in said:
            # metrics.jsonl behind the newest checkpoint is written again in any case.
            assert name.name == "metrics.jsonl" and which == "stopped", (name, bit, said)
            assert_same_run(copy, finished)
        assert name.name in said or str(name.parent) in said or name.name == "metrics.jsonl"
        shutil.rmtree(copy)
        flips += 1
    assert flips >= 15 * n


def test_weights_that_are_not_finite_are_refused(finished, tmp_path):
    for value in (torch.nan, torch.inf):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished, tmp_path / "run")
        (tmp_path / "run" / "checksums.json").unlink()  # the list may be deleted
        path = tmp_path / "run" / "model.safetensors"
        assert load_pretrained(tmp_path / "run")
        from safetensors.torch import load_file

        weights = load_file(path)
        name = sorted(weights)[3]
        weights[name].view(-1)[1] = value
        save_file(weights, path)
        message = rf"model.safetensors is damaged: {name} holds numbers that are not finite"
        with pytest.raises(ValueError, match=message):
            load_pretrained(tmp_path / "run")

def test_a_list_that_was_changed_is_named(finished, tmp_path):
    """Else an entry could go, and with it the comparison of its file."""
    folder = shutil.copytree(finished, tmp_path / "run")
    path = folder / checksums.NAME
    held = json.loads(path.read_text())
    del held["files"][checksums.WEIGHTS]
    path.write_text(json.dumps(held))
    for load in (checksums.read, load_pretrained):
        with pytest.raises(ValueError, match="checksums.json is damaged"):
            load(folder)


def test_scores_of_other_weights_are_named(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    scores = tmp_path / "run" / "scores-validation.json"
    scores.write_text(json.dumps({"length_penalty": 1, "weights": 64 * "0"}))
    load_pretrained(tmp_path / "run")
    assert f"{scores} holds scores of weights other than" in capsys.readouterr().out
    weights = sha256(tmp_path / "run" / "model.safetensors")
    scores.write_text(json.dumps({"length_penalty": 1, "weights": weights}))
    checksums.write(tmp_path / "run", {*checksums.read(tmp_path / "run"), scores.name})
    load_pretrained(tmp_path / "run")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("penalty", ["NaN", "1e9", '"x"', '"1"', "true", "[]"])
def test_a_length_penalty_that_is_none_is_named(finished, tmp_path, penalty):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "scores-validation.json").write_text(f'{{"length_penalty": {penalty}}}')
    with pytest.raises(ValueError, match="length_penalty should be a number from -100 to 100"):
        load_pretrained(folder)


# ---- the log ------------------------------------------------------------------------------------


def test_a_log_with_a_damaged_line_keeps_the_others_and_says_so(finished, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(finished, copy)
    log = copy / "metrics.jsonl"
    lines = log.read_bytes().split(b"\n")
    lines[2] = b'{"step": 6, \xff'
    log.write_bytes(b"\n".join(lines))
    before = log.read_bytes()
    _, metrics = run(copy)
    said = capsys.readouterr().out
    assert f"{log} is damaged (line 3 is not a JSON object)" in said
    assert f"keeps every entry that can be read ({len(metrics)})" in said
    assert len(metrics) == len(read_json_lines(finished / "metrics.jsonl")) - 1
    assert (copy / "metrics.damaged.jsonl").read_bytes() == before


def test_a_log_that_lost_entries_says_so(stopped, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(stopped, copy)
    log = copy / "metrics.jsonl"
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    before = log.read_bytes()
    run(copy)
    assert f"{log} is damaged (entries missing: 1)" in capsys.readouterr().out
    assert (copy / "metrics.damaged.jsonl").read_bytes() == before


def test_the_entries_behind_a_checkpoint_are_written_again_in_silence(
    stopped, finished, tmp_path, capsys
):
    shutil.copytree(stopped, tmp_path / "run")
    capsys.readouterr()
    run(tmp_path / "run")
    assert "damaged" not in capsys.readouterr().out
    assert_same_run(tmp_path / "run", finished)
    assert TRAIN["max_steps"] == 12


# ---- results/ -----------------------------------------------------------------------------------


def test_the_lists_in_results_are_up_to_date():
    message = "look at the changes, then run recordings/checksums.py"
    assert listing.problems() == [], message
    assert download.shipped() == listing.shipped(), message


@pytest.mark.parametrize("n", FEW_OR_MANY)
def test_a_flipped_bit_in_results_is_not_silent(n, tmp_path, monkeypatch, capsys):
    results = tmp_path / "results"
    shutil.copytree(listing.RESULTS, results)
    for folder, names in listing.lists(results).items():
        for name in [*names, checksums.NAME]:
            path = folder / name
            for bit in places(path, n):
                flip(path, bit)
                if bit == 0 and name != checksums.NAME:
                    assert listing.problems(results)
                if path.name != checksums.WEIGHTS:  # those are compared when they are loaded
                    pretrained._compared.clear()
                    monkeypatch.setenv("RESULTS_DIR", str(results))
                    capsys.readouterr()
                    pretrained.results_dir()
                    assert f"{path} is damaged" in capsys.readouterr().out
                if folder != results:
                    with pytest.raises(ValueError, match=f"{name} is damaged"):
                        pretrained.find_run(folder if bit % 2 else folder.name)
                flip(path, bit)
    assert listing.problems(results) == []


def test_loading_compares_the_files(monkeypatch):
    asked = []
    monkeypatch.setattr(checksums, "require", lambda folder: asked.append(folder))
    load_pretrained("multi30k-de-en")
    assert asked == [pretrained.results_dir() / "multi30k-de-en"]
