"""The command line, as a stranger uses it: commands, help, exit codes, one line for an error."""

import dataclasses
import io
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import torch

from transformer_lib import ModelConfig, TrainConfig, data
from transformer_lib.cli import in_words, main
from transformer_lib.cli.options import HELP, NOT_OFFERED, parsers
from transformer_lib.cli.training import recipe_options
from transformer_lib.corpora import hub
from transformer_lib.evaluation import lowercased_tokenised_bleu, score
from transformer_lib.runs import checkpoint, checksums
from transformer_lib.runs.files import sha256
from transformer_lib.tokenization import train_tokenizer
from transformer_lib.translator import Translation

ROOT = Path(__file__).resolve().parents[1]
TINY = (
    "--vocab-size 200 --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 "
    "--max-len 150 --max-tokens 400 --max-steps 6 --checkpoint-every 2 --keep-checkpoints 3 "
    "--average 2 --log-every 2 --no-validation-bleu --device cpu --no-progress"
).split()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path_factory):
    """No data set of this machine, no network, no recorded run, and nothing written here."""

    def no_network(name, *_):
        raise ConnectionError(f"{name} is neither on the hub nor in its cache")

    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    monkeypatch.setattr(hub, "load", no_network)
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path_factory.mktemp("results")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert main(["train", "--data", "mini", "--run", str(folder), *TINY]) == 0
    return folder


def fails(capsys, arguments, code=1) -> str:
    """The error of a command: one line, and no traceback."""
    capsys.readouterr()
    try:
        given = main(arguments)
    except SystemExit as end:
        given = end.code
    error = capsys.readouterr().err
    assert given == code
    assert "Traceback" not in error
    if code == 1:
        assert error.startswith("error: ") and error.count("\n") == 1
    return error


# ------------------------------------------------------------------------------------------ train


def test_train_says_what_it_does_and_the_same_command_does_nothing_more(tmp_path, capsys):
    command = ["train", "--data", "mini", "--run", str(tmp_path / "run"), *TINY]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "mini corpus (not Multi30k)" in said and "200 tokens" in said and "Done: {" in said
    assert f"translate --run {tmp_path / 'run'}" in said
    log = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert main(command) == 0
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == log
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["model"]["d_ff"] == 16 and about["train"]["max_steps"] == 6
    assert about["data"]["source"] == "mini"


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(tmp_path, trained):
    """The real thing: a process of its own, stopped from outside."""
    command = [sys.executable, "-m", "transformer_lib", "train", "--data", "mini"]
    command += ["--run", str(tmp_path / "run"), *TINY, "--max-steps", "100000"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as process:
        try:
            log = tmp_path / "run" / "metrics.jsonl"
            while process.poll() is None and not (log.exists() and log.stat().st_size):
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            said, error = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, error
    assert "Stopped at step" in said and "saved" in said
    assert "Traceback" not in error
    newest = checkpoint.checkpoints(tmp_path / "run")[-1]
    assert f"Stopped at step {checkpoint.step_of(newest)};" in said
    end = str(checkpoint.step_of(newest) + 2)
    assert main(command[3:-1] + [end]) == 0
    assert checkpoint.step_of(checkpoint.checkpoints(tmp_path / "run")[-1]) == int(end)


def test_auto_without_multi30k_takes_mini_and_says_so(capsys, tmp_path):
    assert main(["train", *TINY, "--run", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "Multi30k is not available" in said and "mini corpus (not Multi30k)" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "mini", "--src", "fr"], "the mini corpus has 'de' and 'en', not 'fr'"),
        (["--data", "multi30k"], "neither on the hub nor in its cache"),
        (["--data", "./nowhere"], "there is no folder ./nowhere"),
        (["--data", "mini", "--max-steps", "0"], "max_steps is 0; it must be at least 1"),
        (
            ["--data", "mini", "--d-model", "18"],
            "not divisible by n_heads|must be even|even d_model",
        ),
        (["--data", "mini", "--norm", "group"], "norm is 'group'; it must be one of"),
        (["--data", "mini", "--run", "/dev/null/run"], "cannot write to /dev/null/run"),
        (
            ["--data", "mini", "--device", "gpu"],
            "device is 'gpu'; it must be 'auto', 'cpu', 'cuda'",
        ),
        (["--like", "nothing"], "there is no trained run 'nothing'"),
    ],
)
def test_train_fails_with_one_clear_line(capsys, arguments, message):
    sizes = [*TINY, "--n-heads", "4"] if "--d-model" in arguments else TINY
    assert re.search(message, fails(capsys, ["train", *sizes, *arguments]))


def test_a_missing_gpu_is_one_clear_line(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    error = fails(capsys, ["train", "--data", "mini", *TINY, "--device", "cuda"])
    assert "there is no GPU here" in error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (IsADirectoryError(21, "Is a directory", "/a"), "/a is a folder; give the name of a file."),
        (FileNotFoundError(2, "No such file", "/a"), "/a does not exist; check the name."),
        (PermissionError(13, "Denied", "/a"), "/a is not accessible; change its permissions, or"),
        (OSError(5, "I/O error", "/a"), "/a cannot be used (I/O error)."),
        (OSError("could not write /a\n(full)"), "could not write /a (full)"),
        (OSError(28, "No space left"), "the output could not be written (No space left)"),
        (ConnectionRefusedError(111, "Refused"), "[Errno 111] Refused"),
        (ValueError("[Errno 5] quoted"), "[Errno 5] quoted"),
        (ValueError("two\nlines"), "two lines"),
    ],
)
def test_the_operating_systems_errors_say_which_file_and_what_to_do(error, said):
    assert in_words(error).startswith(said)


def test_a_name_that_the_locale_cannot_read_is_named_before_anything_is_made(tmp_path):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "transformer_lib", "train", "--data", "dätä", "--run", "runs/new"],
        env=os.environ | plain | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, encoding="utf-8",
    )
    assert done.returncode == 2 and "set PYTHONUTF8=1" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_an_empty_file_and_a_damaged_line_are_named(capsys, tmp_path):
    (tmp_path / "train.jsonl").write_text("")
    assert "train.jsonl is empty" in fails(capsys, ["train", "--data", str(tmp_path), *TINY])
    (tmp_path / "train.jsonl").write_text('{"de": "a", "en": "b"}\n{"de": "a"}\n')
    error = fails(capsys, ["train", "--data", str(tmp_path), *TINY])
    assert "train.jsonl, line 2: no 'en'" in error
    (tmp_path / "train.jsonl").rename(tmp_path / "test.jsonl")
    (tmp_path / "test.jsonl").write_text('{"de": "a", "en": "b"}\n')
    error = fails(capsys, ["train", "--data", str(tmp_path), *TINY])
    assert "there are no train pairs to train on" in error and "has test; give it a split" in error


@pytest.mark.parametrize(("part", "name", "value", "said"), [
    ("model", "foo", 1, "config.json has unknown fields ['foo']; ModelConfig knows"),
    ("model", "d_model", "16", "config.json does not make a ModelConfig: d_model is '16' (str)"),
    ("data", "vocab_size", "x", "config.json is damaged: 'vocab_size' of its 'data' is 'x'"),
    ("data", "source", 5, "config.json is damaged: 'source' of its 'data' is 5"),
])
def test_a_recipe_with_a_wrong_value_is_one_clear_line(
    trained, tmp_path, capsys, part, name, value, said
):
    config = json.loads((trained / "config.json").read_text())
    config[part][name] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    error = fails(capsys, ["train", "--like", str(tmp_path), "--run", str(tmp_path / "new")])
    assert said in error


@pytest.mark.parametrize("lost", ["source", "src", "tgt"])
def test_a_run_without_its_whole_recipe_cannot_be_repeated(trained, tmp_path, capsys, lost):
    config = json.loads((trained / "config.json").read_text())
    del config["data"][lost]
    (tmp_path / "config.json").write_text(json.dumps(config))
    error = fails(capsys, ["train", "--like", str(tmp_path), "--run", str(tmp_path / "new")])
    assert "its config.json holds no recipe" in error


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--dropout", "0.5"], "dropout = 0.3, not 0.5"),
        (["--tgt", "de", "--src", "en"], "src = 'de', not 'en'"),
        (["--vocab-size", "300"], "vocab_size = 200, not 300"),
        (["--tokenizer", "word"], "tokenizer = 'bpe', not 'word'"),
    ],
)
def test_other_settings_in_the_same_folder_are_named(capsys, trained, changes, message):
    error = fails(capsys, ["train", "--data", "mini", "--run", str(trained), *TINY, *changes])
    assert message in error and "choose a new run folder" in error


def test_like_repeats_a_recorded_run(trained, tmp_path, monkeypatch, capsys):
    """A recorded run has no checkpoints; its config.json alone is the recipe."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    (tmp_path / "recorded").mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors", "metrics.jsonl"):
        (tmp_path / "recorded" / name).write_bytes((trained / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--like", "recorded"]) == 0
    repeated = tmp_path / "runs" / "recorded"
    for name in ("tokenizer.json", "model.safetensors"):
        assert (repeated / name).read_bytes() == (trained / name).read_bytes()
    now, then = (json.loads((run / "config.json").read_text()) for run in (repeated, trained))
    assert now["train"].pop("device") == "auto" and then["train"].pop("device") == "cpu"
    assert now == then
    # What is given on the command line comes before the recipe.
    assert main(["train", "--like", "recorded", "--seed", "1", "--run", "other"]) == 0
    other = json.loads((tmp_path / "other" / "config.json").read_text())
    assert other["train"]["seed"] == 1 and other["model"]["d_ff"] == 16
    # Two processes would share the batches of an update; one batch cannot be shared.
    monkeypatch.setenv("WORLD_SIZE", "2")
    error = fails(capsys, ["train", "--like", "recorded"])
    assert "used 1 batches for an update; 2 processes cannot share them" in error


def test_a_recipe_leaves_device_and_precision_to_the_machine(trained, tmp_path):
    about = json.loads((trained / "config.json").read_text())
    about["train"] |= {"precision": "bf16", "device": "cuda:1"}
    (tmp_path / "config.json").write_text(json.dumps(about))
    options = recipe_options(str(tmp_path), own_batches=False)
    assert options["precision"] == "auto" and options["device"] == "auto"


# -------------------------------------------------------------------------------------- translate


def test_translate_arguments_and_lines_alike(trained, capsys, monkeypatch):
    texts = ["Ein Mann schläft.", "Zwei Hunde spielen."]
    assert main(["translate", "--run", str(trained), *texts]) == 0
    from_arguments = capsys.readouterr().out
    assert from_arguments.count("\n") == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(texts) + "\n"))
    assert main(["translate", "--run", str(trained)]) == 0
    assert capsys.readouterr().out == from_arguments


def test_an_empty_line_stays_an_empty_line(trained, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ein Mann schläft.\n\n  \nEin Hund.\n"))
    assert main(["translate", "--run", str(trained)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[1:3] == ["", ""]
    assert main(["translate", "--run", str(trained), "Ein Hund."]) == 0
    assert lines[3].startswith(capsys.readouterr().out.strip()[:20])


def test_translate_fails_with_one_clear_line(trained, capsys, monkeypatch, tmp_path):
    for empty in ("", "\n \n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(empty))
        error = fails(capsys, ["translate", "--run", str(trained)])
        assert "nothing to translate: give sentences" in error
    assert "no trained run 'large'" in fails(capsys, ["translate", "--run", "large", "Hund"])
    long = fails(capsys, ["translate", "--run", str(trained), "Hund " * 200])
    assert "longer than the model's 150" in long
    beam = fails(capsys, ["translate", "--run", "large", "--beam-size", "0", "Hund"], code=2)
    assert "argument --beam-size: '0' is not a whole number of at least 1" in beam
    names = ("config.json", "tokenizer.json", "model.safetensors")
    for name in names:
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    for name in names:
        (tmp_path / name).write_bytes((trained / name).read_bytes()[:-200])
        error = fails(capsys, ["translate", "--run", str(tmp_path), "Hund"])
        assert name in error and ("damaged" in error or "not a readable" in error)
        (tmp_path / name).write_bytes((trained / name).read_bytes())


def test_an_interruption_has_its_exit_code(trained, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("transformer_lib.translator.Translator.translate", interrupted)
    assert main(["translate", "--run", str(trained), "Hund"]) == 130
    assert capsys.readouterr().err == ""


def test_an_interruption_while_modules_are_loaded_has_its_exit_code(monkeypatch):
    class Interrupted(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "transformer_lib.cli", Interrupted("transformer_lib.cli"))
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("transformer_lib", run_name="__main__")
    assert stop.value.code == 130


def command(*arguments):
    line = [sys.executable, "-m", "transformer_lib", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment.pop("PYTHONUNBUFFERED", None)  # what is printed must be flushed by the command
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(line, env=environment, **pipes)


def test_a_pipe_is_answered_line_by_line(trained):
    """The answer to the first line is read before the second is written."""
    with command("translate", "--run", trained, "--beam-size", "1") as process:
        try:
            answers = []
            for text in ("Ein Mann schläft.", "Zwei Hunde spielen."):
                process.stdin.write(f"{text}\n".encode())
                process.stdin.flush()
                answers.append(process.stdout.readline())  # would wait for ever
            rest, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert all(answer.endswith(b"\n") for answer in answers) and rest == error == b""
    assert process.returncode == 0


def test_a_bad_line_is_named_and_the_others_are_translated(trained, capsys, monkeypatch):
    texts = [b"Ein Hund.", b"Ein \xff Mann.", b"", b"Hund " * 200, b"Ein Mann."]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(texts))))
    capsys.readouterr()
    assert main(["translate", "--run", str(trained)]) == 1
    said = capsys.readouterr()
    out, errors = said.out.splitlines(), said.err.splitlines()
    assert [bool(line) for line in out] == [True, False, False, False, True]
    assert errors[0].startswith("error: line 2: 'Ein \ufffd Mann.' is not valid UTF-8")
    assert errors[1].startswith("error: line 4: a sentence of ") and len(errors) == 2
    for text, line in ((texts[0], out[0]), (texts[-1], out[-1])):
        assert main(["translate", "--run", str(trained), text.decode()]) == 0
        assert capsys.readouterr().out == line + "\n"


def test_nobody_reading_on_is_no_error(trained):
    """As in `translate | head -1`."""
    with command("translate", "--run", trained, "--beam-size", "1") as process:
        try:
            process.stdin.write(b"Ein Hund.\n")
            process.stdin.flush()
            assert process.stdout.readline()
            process.stdout.close()
            process.stdin.write(b"Ein Mann.\n" * 3)
            process.stdin.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 141
        finally:
            process.kill()


def test_a_closed_input_is_an_empty_one(trained, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    error = fails(capsys, ["translate", "--run", str(trained)])
    assert "nothing to translate" in error


@pytest.mark.parametrize(("arguments", "message"), [
    (["train", "--data", ""], "argument --data: it is empty"),
    (["train", "--run-dir", " "], "argument --run/--run-dir: it is empty"),
    (["translate", "--run", "", "x"], "argument --run: it is empty"),
])
def test_an_empty_name_is_wrong_usage(arguments, message, capsys):
    assert message in fails(capsys, arguments, code=2)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--eps", "0"], "eps is 0.0; it must be above 0"),
    (["--betas", "0.9", "1.0"], r"betas is \(0.9, 1.0\); it must be 2 numbers, each"),
    (["--seed", str(2**70)], "seed is .* below 9,223"),
    (["--device", "meta"], "device is 'meta', which holds no numbers"),
    (["--peak-lr", "nan"], "peak_lr is nan"),
])
def test_settings_that_train_nothing_are_named(arguments, message, capsys, tmp_path):
    error = fails(capsys, ["train", "--data", "mini", "--run", str(tmp_path), *TINY, *arguments])
    assert re.search(message, error)


# --------------------------------------------------------------------------------------- evaluate


def test_a_folder_that_cannot_keep_scores_is_named_before_they_are_made(
    trained, capsys, monkeypatch
):
    def full(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    monkeypatch.setattr("transformer_lib.translator.Translator.translate", None)
    error = fails(capsys, ["evaluate", "--run", str(trained), "--save"])
    assert f"--save cannot write to {trained} (Read-only file system)" in error


def test_evaluate_scores_the_run_on_its_own_data(trained, capsys):
    assert main(["evaluate", "--run", str(trained), "--beam-size", "1", "--save"]) == 0
    said = capsys.readouterr().out
    scores = json.loads((trained / "scores.json").read_text())
    lines = (trained / "translations.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    pairs = data.load_parallel("mini")["test"]
    assert [row["index"] for row in rows] == list(range(len(pairs)))
    hypotheses, references = [row["translation"] for row in rows], [target for _, target in pairs]
    expected = score(hypotheses, references)
    older = lowercased_tokenised_bleu(hypotheses, references, "en")
    assert scores["lowercased_tokenised_bleu"] == older
    assert scores["bleu"] == expected.bleu and f"{expected.bleu:.2f}" in said
    assert scores["signature"] == expected.signature and expected.signature in said
    assert (scores["data"], scores["src"], scores["tgt"]) == ("mini", "de", "en")
    assert (scores["split"], scores["sentences"], scores["beam_size"]) == ("test", len(pairs), 1)
    assert scores["weights"] == sha256(trained / "model.safetensors")
    listed = checksums.read(trained)
    assert {"scores.json", "translations.jsonl", "model.safetensors"} <= listed.keys()
    checksums.require(trained)


def test_another_split_does_not_overwrite_the_test_scores(trained, capsys):
    with checksums.changing(trained, ["scores.json"]):
        (trained / "scores.json").write_text("kept")
    command = ["evaluate", "--run", str(trained), "--beam-size", "1", "--split", "validation"]
    assert main([*command, "--save"]) == 0
    assert (trained / "scores.json").read_text() == "kept"
    assert json.loads((trained / "scores-validation.json").read_text())["split"] == "validation"
    assert (trained / "translations-validation.jsonl").exists()


def test_a_length_penalty_is_chosen_on_validation_and_kept(trained, capsys, monkeypatch):
    """What is translated is made up: only penalty 2 gives what the references say."""
    used, references = [], dict(data.load_parallel("mini")["validation"])

    def translate(self, texts, beam_size=5, length_penalty=None, **_):
        used.append(self.length_penalty if length_penalty is None else length_penalty)
        right = [references.get(text, text) for text in texts]
        written = right if used[-1] == 2 else [text[:9] for text in right]
        return [Translation(text, [], [], None, -1.0) for text in written]

    monkeypatch.setattr("transformer_lib.translator.Translator.translate", translate)
    evaluate = ["evaluate", "--run", str(trained), "--save"]
    error = fails(capsys, [*evaluate, "--length-penalty", "1", "2"])
    assert "2 length penalties on the test set" in error and "--split validation" in error
    assert main(evaluate) == 0
    choose = [*evaluate, "--split", "validation", "--length-penalty", "1", "2", "3"]
    assert main(choose) == main(evaluate) == main(["translate", "--run", str(trained), "Hund"]) == 0
    assert used == [1, 1, 2, 3, 2, 2]
    on_validation, on_test = (
        json.loads((trained / f"{name}.json").read_text())
        for name in ("scores-validation", "scores")
    )
    assert (on_validation["length_penalty"], on_test["length_penalty"]) == (2, 2)
    assert on_validation["bleu"] == pytest.approx(100)
    tried = on_validation["length_penalties_tried"]
    assert [row["length_penalty"] for row in tried] == [1, 2, 3]
    assert max(row["bleu"] for row in tried) == on_validation["bleu"] == tried[1]["bleu"]
    assert "length_penalties_tried" not in on_test


@pytest.fixture
def multi30k_run(trained, tmp_path, monkeypatch):
    """A run trained on what stands in for Multi30k here, with the data set gone afterwards."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for split, rows in data.load_parallel("mini").items():
        text = "".join(json.dumps({"de": de, "en": en}) + "\n" for de, en in rows[:20])
        (folder / f"{split}.jsonl").write_text(text)
    monkeypatch.setenv("MULTI30K_DIR", str(folder))
    assert main(["train", "--run", str(tmp_path / "run"), *TINY, "--vocab-size", "120"]) == 0
    return tmp_path / "run"


def test_a_run_on_multi30k_is_never_scored_on_mini(multi30k_run, capsys, monkeypatch):
    evaluate = ["evaluate", "--run", str(multi30k_run), "--beam-size", "1"]
    for extra in ([], ["--data", "auto"]):
        assert main(evaluate + extra) == 0
        assert "Multi30k from MULTI30K_DIR" in capsys.readouterr().out
    monkeypatch.delenv("MULTI30K_DIR")
    for extra in ([], ["--data", "auto"], ["--save"]):
        error = fails(capsys, evaluate + extra)
        assert "neither on the hub nor in its cache" in error
    assert not (multi30k_run / "scores.json").exists()
    # Who asks for it by name gets it, but not as the score of this run.
    assert main([*evaluate, "--data", "mini"]) == 0
    assert "mini corpus (not Multi30k)" in capsys.readouterr().out
    error = fails(capsys, [*evaluate, "--data", "mini", "--save"])
    assert "on its own data, but this is different data (source mini, not multi30k)" in error
    assert not (multi30k_run / "scores.json").exists()


def test_scores_are_replaced_whole_or_not_at_all(trained, monkeypatch, capsys):
    evaluate = ["evaluate", "--run", str(trained), "--beam-size", "1", "--save"]
    assert main(evaluate) == 0
    before = (trained / "translations.jsonl").read_text()
    dumps, rows = json.dumps, []

    def full(value, **options):
        rows.append(value)
        if len(rows) == 5:
            raise OSError("No space left on device")
        return dumps(value, **options)

    monkeypatch.setattr("transformer_lib.runs.files.json.dumps", full)
    assert "No space left" in fails(capsys, evaluate)
    assert (trained / "translations.jsonl").read_text() == before


@pytest.mark.parametrize(
    "arguments", [["train", "--tgt", "de"], ["train", "--src", "en"], ["evaluate", "--src", "en"]]
)
def test_a_language_is_not_translated_into_itself(arguments, trained, tmp_path, capsys):
    evaluate = ["--run", str(trained), "--beam-size", "1"]
    train = [*TINY, "--data", "mini", "--run", str(tmp_path)]
    arguments = arguments + (evaluate if arguments[0] == "evaluate" else train)
    error = fails(capsys, arguments)
    assert "source and target are both" in error and "--src en --tgt de" in error


@pytest.mark.parametrize("tgt", ["de", "fr"])
def test_a_run_is_not_scored_on_what_it_writes(trained, capsys, tgt):
    command = ["evaluate", "--run", str(trained), "--data", "mini", "--src", "en", "--tgt", tgt]
    assert f"translates de to en, not en to {tgt}: leave out --src" in fails(capsys, command)


def test_a_pipe_that_is_not_utf8_is_read_as_utf8(trained, monkeypatch, capsys):
    """As on Windows, where a pipe has the encoding of the country."""
    seen = []

    def translate(self, texts, *_, **__):
        seen.extend(texts)
        return [Translation("ě", [], [], None, -1.0) for _ in texts]

    monkeypatch.setattr("transformer_lib.translator.Translator.translate", translate)
    written = io.BytesIO()
    text = "\ufeffein Mädchen\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), "cp1252"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    assert main(["translate", "--run", str(trained)]) == 0
    sys.stdout.flush()
    assert seen == ["ein Mädchen"] and written.getvalue().decode() == "ě\n"


def test_translations_that_nobody_gets_are_no_success(trained, capsys, monkeypatch):
    command = ["translate", "--run", str(trained), "--beam-size", "1", "Hund"]
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert "standard output is closed: send it to a file" in fails(capsys, command)
    if not Path("/dev/full").exists():
        return
    with monkeypatch.context() as full, open("/dev/full", "w") as nowhere:
        full.setattr(sys, "stdout", nowhere)
        assert "could not be written (No space left on device): send it" in fails(capsys, command)


def test_text_that_is_not_utf8_is_named(trained, capsys):
    error = fails(capsys, ["translate", "--run", str(trained), "Zwei \udcff Hunde"])
    assert "'Zwei \ufffd Hunde' is not valid UTF-8 text (it may be Latin-1 or" in error


@pytest.mark.parametrize("penalty", ["nan", "500", "-inf"])
def test_a_length_penalty_out_of_bounds_is_named(trained, capsys, penalty):
    error = fails(capsys, ["translate", "--run", "large", f"--length-penalty={penalty}", "x"], 2)
    assert f"argument --length-penalty: {penalty!r} is not a number from -100 to 100" in error


@pytest.mark.parametrize(("arguments", "message", "code"), [
    (["--d-model", "30"], "d_model 30 is not divisible by n_heads 4", 1),
    (["--positional", "sinus"], "positional is 'sinus'", 1),
    (["--device", "tpu"], "device is 'tpu'", 1),
    (["--vocab-size", "4"], "argument --vocab-size: '4' is not a whole number from 5", 2),
])
def test_what_is_refused_is_refused_before_the_data_are_read(
    arguments, message, code, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("transformer_lib.data.load_parallel", None)
    train = ["train", "--data", "mini", "--run", str(tmp_path), *TINY, "--n-heads", "4"]
    assert message in fails(capsys, [*train, *arguments], code)


@pytest.mark.parametrize("arguments", [["--device", "tpu"], ["--length-penalty", "1", "2"]])
def test_nothing_is_read_to_be_scored_in_vain(trained, arguments, capsys, monkeypatch):
    monkeypatch.setattr("transformer_lib.data.load_parallel", None)
    assert "error" in fails(capsys, ["evaluate", "--run", str(trained), *arguments])


@pytest.mark.parametrize("arguments", ["train", ["translate", 3]])
def test_the_arguments_are_a_list_of_texts(arguments):
    with pytest.raises(TypeError, match="main: arguments is .* expected a list of strings"):
        main(arguments)


def test_like_leaves_the_batches_to_whoever_gives_them(trained, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="Start fewer processes, or give --accumulate"):
        recipe_options(str(trained), own_batches=False)
    assert recipe_options(str(trained), own_batches=True)["accumulate"] == 1


def test_a_run_that_does_not_say_its_data_is_not_guessed(trained, tmp_path, capsys):
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    about = json.loads((trained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({"model": about["model"]}))
    error = fails(capsys, ["evaluate", "--run", str(tmp_path)])
    assert "does not record its data (source, src, tgt); say which with --data, --src" in error
    given = ["--data", "mini", "--src", "de", "--tgt", "en", "--beam-size", "1"]
    assert main(["evaluate", "--run", str(tmp_path), *given]) == 0
    assert "holds no recipe" in fails(capsys, ["train", "--like", str(tmp_path)])
    about["data"]["source"] = str(tmp_path / "gone")
    (tmp_path / "config.json").write_text(json.dumps(about))
    error = fails(capsys, ["evaluate", "--run", str(tmp_path)])
    assert re.search("config.json names .*gone as its data: there is no .* Or give --da", error)
    error = fails(capsys, ["train", "--like", str(tmp_path), "--run", str(tmp_path / "again")])
    assert re.search("config.json names .*gone as its data: there is no .* Or give --da", error)
    other = ["--data", str(tmp_path / "lost"), "--run", str(tmp_path / "again")]
    assert "names" not in fails(capsys, ["train", "--like", str(tmp_path), *other])


# ---------------------------------------------------------------------------------- help and usage


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export"])
def test_help_has_examples_that_work_as_written(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    examples = [line.strip() for line in said.split("examples:")[1].splitlines() if "-m" in line]
    assert len(examples) >= 2
    for line in examples:
        import shlex

        words = shlex.split(line, comments=True)
        parsers()[0].parse_args(words[words.index("transformer_lib") + 1 :])


def test_every_setting_is_explained(capsys):
    fields = [*dataclasses.fields(ModelConfig), *dataclasses.fields(TrainConfig)]
    assert set(HELP) == {field.name for field in fields} - NOT_OFFERED | {"eps"}
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--warmup X updates at the start, over which the learning rate rises (default: 2" in said
    assert "--d-model X D: width of every token's vector (default: 128)" in said


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train", "--max-steps", "many"],
        ["train", "--fly"],
        ["evaluate", "--split", "all"],
    ],
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    assert "usage: python -m transformer_lib" in fails(capsys, arguments, code=2)


@pytest.mark.parametrize("command", ["train", "translate", "evaluate", "export", "verify"])
def test_each_command_answers_for_an_option_that_it_does_not_have(command, capsys):
    said = fails(capsys, [command, "--fly", "5"], code=2)
    assert said.count("usage:") == 1 and f"usage: python -m transformer_lib {command} " in said
    assert f"{command}: error: unrecognized arguments: --fly" in said


def test_an_empty_folder_is_no_run(capsys, tmp_path):
    for command in (["verify", str(tmp_path)], ["export", str(tmp_path)],
                    ["translate", "Hallo", "--run", str(tmp_path)],
                    ["evaluate", "--run", str(tmp_path)]):
        assert f"the folder {tmp_path} has no config.json, so it holds no trained run" in fails(
            capsys, command)


def test_the_commands_are_listed(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert all(f"  {name} " in said for name in ("train", "translate", "evaluate", "export"))


def test_a_tokenizer_learned_again_is_the_same():
    """What `--like` and torchrun rely on."""
    texts = [text for pair in data.load_parallel("mini")["train"][:500] for text in pair]
    for kind in ("bpe", "word"):
        assert (
            train_tokenizer(texts, 300, kind).to_str() == train_tokenizer(texts, 300, kind).to_str()
        )


def test_with_a_closed_stderr_nothing_is_said_among_translations(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["translate", "--run", "nowhere", "Hund"]) == 1
    assert capsys.readouterr().out == ""
