"""What a run keeps besides its training: scores, translations, exported files. They change as a
whole or not at all, stay listed whatever happens to the run, and replace nothing else."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from transformer_lib import load_pretrained
from transformer_lib.cli import main
from transformer_lib.cli.options import require_writable
from transformer_lib.runs import checkpoint, checksums, files
from transformer_lib.runs.export import export_live
from transformer_lib.runs.files import sha256
from transformer_lib.runs.lock import RunLock

TRAIN = (
    "--data mini --vocab-size 200 --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 "
    "--n-decoder-layers 1 --max-len 150 --max-tokens 400 --checkpoint-every 2 --keep-checkpoints 3 "
    "--average 2 --no-validation-bleu --validate-every 100 --device cpu --no-progress"
).split()
NAMES = ("scores-validation.json", "translations-validation.jsonl")


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A finished run with the scores of its validation set."""
    folder = tmp_path_factory.mktemp("scored") / "run"
    assert train(folder) == 0
    assert main(evaluate(folder)) == 0
    return folder


@pytest.fixture
def folder(scored, tmp_path):
    return shutil.copytree(scored, tmp_path / "run")


def train(folder, steps=6):
    return main(["train", "--run", str(folder), *TRAIN, "--max-steps", str(steps)])


def evaluate(folder, beam_size=1):
    common = ["--split", "validation", "--beam-size", str(beam_size), "--data", "mini", "--save"]
    return ["evaluate", "--run", str(folder), *common]


def fit(folder):
    """Whether scores and translations are of one another, and listed as they are."""
    about = json.loads((folder / NAMES[0]).read_text())
    listed = checksums.read(folder)
    return (
        about["translations"] == sha256(folder / NAMES[1]) == listed[NAMES[1]]
        and listed[NAMES[0]] == sha256(folder / NAMES[0])
        and not checksums.unlisted(folder)
    )


def test_two_that_save_at_once_do_not_mix(folder, capsys):
    """The second is refused by name, and nothing of it is left."""
    with RunLock(folder):
        other = subprocess.run(
            [sys.executable, "-m", "transformer_lib", *evaluate(folder, 2)],
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert other.returncode == 1 and "Traceback" not in other.stderr
    assert f"is in use: process {os.getpid()}" in other.stderr
    assert fit(folder) and json.loads((folder / NAMES[0]).read_text())["beam_size"] == 1
    assert main(evaluate(folder, 2)) == 0 and fit(folder)
    assert not (folder / "lock").exists()


@pytest.mark.parametrize("written", [0, 1, 2])
def test_an_error_while_saving_leaves_what_was_there_listed(folder, monkeypatch, written):
    """As on a full disk: after so many files, the next write fails."""
    from transformer_lib.cli import evaluation

    before, count = checksums.read(folder), [0]

    def full(function):
        def write(*given):
            count[0] += 1
            if count[0] > written:
                raise OSError("No space left on device")
            return function(*given)

        return write

    for name in ("write_json_lines", "write_json"):
        monkeypatch.setattr(evaluation, name, full(getattr(evaluation, name)))
    assert main(evaluate(folder, 2)) == (0 if written == 2 else 1)
    listed = checksums.read(folder)
    assert set(before) - set(NAMES) <= set(listed)
    for name in set(listed) - {"checksums.json"}:
        assert listed[name] == sha256(folder / name)  # never one that contradicts its file
    if written != 1:
        assert fit(folder)
    else:  # new translations, old scores
        assert checksums.unlisted(folder) == [NAMES[1]]


def test_new_translations_next_to_old_scores_are_named(folder, capsys):
    (folder / NAMES[1]).write_text('{"index": 0}\n')
    checksums.write(folder, list(checksums.read(folder)))  # as if both were meant
    load_pretrained(folder)
    assert f"{NAMES[0]} holds scores of weights other" in capsys.readouterr().out


def test_what_no_list_names_is_named(folder, capsys):
    listed = checksums.read(folder)
    checksums.write(folder, [name for name in listed if name != NAMES[0]])
    load_pretrained(folder)
    assert f"{NAMES[0]} in {folder} is not listed in checksums.json" in capsys.readouterr().out


def damage_last_state(folder):
    path = checkpoint.checkpoints(folder)[-1] / "state.json"
    path.write_bytes(path.read_bytes().replace(b"step", b"stEp", 1))


@pytest.mark.parametrize("how", ["repaired", "longer"])
def test_scores_stay_listed_when_the_run_goes_on(folder, capsys, how):
    """So that a bit that flips later is still named."""
    if how == "repaired":
        damage_last_state(folder)
    assert train(folder, 8 if how == "longer" else 6) == 0
    assert set(NAMES) <= checksums.read(folder).keys()
    said = capsys.readouterr().out
    assert ("the scores of other weights" in said) is (how == "longer")
    path = folder / NAMES[0]
    path.write_bytes(path.read_bytes().replace(b"1", b"9", 1))
    with pytest.raises(ValueError, match="scores-validation.json is damaged or was changed"):
        load_pretrained(folder)


def test_a_bit_that_flipped_before_the_run_went_on_is_still_named(folder):
    """The list is copied, not made again from what is there now."""
    damage_last_state(folder)
    path = folder / NAMES[0]
    path.write_bytes(path.read_bytes().replace(b"1", b"9", 1))
    train(folder)
    with pytest.raises(ValueError, match="scores-validation.json is damaged or was changed"):
        load_pretrained(folder)


def test_a_checkpoint_set_aside_is_gone_once_the_run_has_ended(folder):
    dead = folder / "checkpoints" / "damaged-step-0000006"
    shutil.copytree(checkpoint.checkpoints(folder)[-1], dead)
    assert train(folder) == 0
    assert not dead.exists()


# ---- what a name may replace ---------------------------------------------------------------------


def refused(folder, out, message):
    before = sha256(folder / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        export_live(folder, out)
    assert main(["export", str(folder), "--out", str(out)]) == 1
    assert sha256(folder / "model.safetensors") == before and load_pretrained(folder)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "config.json", "checksums.json", NAMES[0]]
)
def test_an_export_replaces_no_file_of_the_run(folder, name):
    refused(folder, folder / name, "is one of the run's own files: choose another name")
    refused(folder, folder / ".." / "run" / name, "is one of the run's own files")


def test_an_export_replaces_nothing_but_an_export(folder, tmp_path):
    """Nor a checkpoint of the run, nor a file of another run or of somebody's own."""
    state = checkpoint.checkpoints(folder)[-1] / "state.json"
    other = shutil.copytree(folder, tmp_path / "other") / NAMES[0]
    mine = tmp_path / "thesis.txt"
    mine.write_text("months of work")
    for path in (state, other, mine):
        before = path.read_bytes()
        refused(folder, path, "already exists, and is not an exported model: choose another name")
        assert path.read_bytes() == before
    mine.write_bytes(b"")  # as `mktemp` leaves it
    export_live(folder, mine)


def test_two_may_ask_at_once_whether_they_can_save(folder, monkeypatch):
    """A trial file of one name would be removed under the other's hands."""
    asked = []

    def both(path):
        if not asked:
            asked.append(path)
            require_writable(folder)
        return real(path)

    real = os.unlink
    monkeypatch.setattr(os, "unlink", both)
    before = sorted(folder.iterdir())
    require_writable(folder)
    assert sorted(folder.iterdir()) == before


def test_two_that_write_one_file_are_told_so(tmp_path):
    """The first to end takes the temporary name away from the other."""
    path = tmp_path / "model.bin"
    with pytest.raises(OSError, match="another process is writing .* as well: wait"):
        with files.replacing(path) as partial:
            partial.write_bytes(b"one")
            files.write_bytes(path, b"two")
    assert path.read_bytes() == b"two" and [*tmp_path.iterdir()] == [path]


def test_an_export_replaces_no_link_and_no_device(folder, tmp_path):
    target, link = tmp_path / "target.bin", tmp_path / "link.bin"
    target.write_bytes(b"mine")
    link.symlink_to(target)
    refused(folder, link, "is a link")
    assert target.read_bytes() == b"mine" and link.is_symlink()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # as a device: something that is there and is no regular file
    refused(folder, pipe, "is not a regular file")
    export_live(folder, tmp_path / "new.bin")
    export_live(folder, tmp_path / "new.bin")  # an export may be written again


WRITERS = {
    "bytes": lambda path: files.write_bytes(path, b"x"),
    "text": lambda path: files.write_text(path, "x"),
    "json": lambda path: files.write_json(path, {}),
    "lines": lambda path: files.write_json_lines(path, [{}]),
    "lines with sums": lambda path: checksums.write_lines(path, [{}]),
    "weights": lambda path: checkpoint.save_weights(path, {"w": torch.zeros(2)}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_nothing_that_writes_replaces_what_is_no_file(tmp_path, write):
    """Devices above all: as root, /dev/null would become a file for the whole machine."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"mine")
    link.symlink_to(target)
    os.mkfifo(pipe)  # as a device: something that is there and is no regular file
    for path, message in ((link, "is a link"), (pipe, "regular file"), (tmp_path, "a folder")):
        with pytest.raises(ValueError, match=message):
            write(path)
    assert link.is_symlink() and pipe.is_fifo() and target.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]
    write(target)
    assert target.read_bytes() != b"mine"


# ---- a config.json changed by hand ---------------------------------------------------------------


@pytest.mark.parametrize("part", ["data", "train", "model"])
@pytest.mark.parametrize("value", [3, [], "x"])
def test_a_config_of_the_wrong_kind_is_named(folder, part, value, capsys):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {part: value}))
    (folder / "checksums.json").unlink()
    for command in (evaluate(folder), ["train", "--like", str(folder), "--run", str(folder / "n")]):
        capsys.readouterr()
        assert main(command) == 1
        error = capsys.readouterr().err
        assert error.startswith("error: ") and f"{part!r}" in error and len(error.split("\n")) == 2


def test_sizes_that_no_machine_holds_are_named(folder, capsys):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["model"]["n_encoder_layers"] = 10**9
    path.write_text(json.dumps(config))
    (folder / "checksums.json").unlink()
    assert main(["translate", "--run", str(folder), "Hund"]) == 1
    assert "n_encoder_layers is 1000000000; it must be" in capsys.readouterr().err
    command = ["train", "--data", "mini", "--run", str(folder / "n"), "--vocab-size", str(2**31)]
    with pytest.raises(SystemExit, match="2"):
        main(command)
    error = capsys.readouterr().err
    assert "--vocab-size: '2147483648' is not" in error and "to 1,000,000" in error

