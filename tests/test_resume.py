"""A run that is interrupted, in whatever way, ends as the run that never was."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from tiny_run import assert_same_run, contents, run

from transformer_lib import training
from transformer_lib.runs import checkpoint
from transformer_lib.runs import folder as run_folder
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.folder import RunFolder


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    run(folder)
    return folder


class Crash(Exception):
    pass


def before_step(monkeypatch, step, action):
    """Do something when the update of `step` is about to begin."""
    rate = training.learning_rate  # what every update asks for first

    def patched(config, now, d_model):
        if now == step:
            action()
        return rate(config, now, d_model)

    monkeypatch.setattr(training, "learning_rate", patched)


def crash():
    raise Crash


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_a_run_repeats_itself(unbroken, tmp_path):
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)
    assert len(contents(unbroken)) == 3 * 4 + 5  # three checkpoints, and not an empty comparison


@pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 9, 10, 12])
def test_a_crash_loses_nothing(unbroken, tmp_path, monkeypatch, step):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, step, crash)
        run(tmp_path)
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


@pytest.mark.parametrize("setting", [{"fast": True}, {"optimizer": "muon"}])
def test_other_ways_to_train_resume_as_well(tmp_path, monkeypatch, setting):
    run(tmp_path / "unbroken", **setting)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, 8, crash)
        run(tmp_path / "broken", **setting)
    run(tmp_path / "broken", **setting)
    assert_same_run(tmp_path / "broken", tmp_path / "unbroken")


@pytest.mark.parametrize("steps", [(1,), (5,), (8,), (9,), (12,), (3, 4, 7, 11)])
def test_ctrl_c_saves_and_loses_nothing(unbroken, tmp_path, monkeypatch, capsys, steps):
    """At odd steps no checkpoint is due: the extra one must not enter the final average."""
    for step in steps:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            before_step(patch, step, press_ctrl_c)
            run(tmp_path)
        assert checkpoint.checkpoints(tmp_path)[-1].name == f"step-{step:07d}"
        assert f"Stopped at step {step}; saved." in capsys.readouterr().out
    run(tmp_path)
    if steps != (12,):  # there, nothing was left to train
        assert f"Resuming {tmp_path} at step {steps[-1]}." in capsys.readouterr().out
    assert_same_run(tmp_path, unbroken)


def test_sigterm_saves_as_ctrl_c_does(unbroken, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        before_step(patch, 5, lambda: os.kill(os.getpid(), signal.SIGTERM))
        run(tmp_path)
    assert checkpoint.checkpoints(tmp_path)[-1].name == "step-0000005"
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


def test_a_second_ctrl_c_stops_at_once(tmp_path, monkeypatch):
    def twice():
        press_ctrl_c()
        press_ctrl_c()

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        before_step(patch, 5, twice)
        run(tmp_path)
    assert checkpoint.checkpoints(tmp_path)[-1].name == "step-0000004"


def test_a_checkpoint_that_may_not_be_read_is_no_full_disk(tmp_path, monkeypatch):
    run(tmp_path, max_steps=2)
    path = checkpoint.checkpoints(tmp_path)[-1] / "state.json"
    read = Path.read_bytes

    def refuse(self):
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OSError, match=f"^{path} cannot be read .*: change its permissions.$"):
        run(tmp_path, max_steps=2)


def test_signals_are_given_back(tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run(tmp_path, max_steps=1)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("name", ["save_weights", "load_weights", "write_json", "measure"])
def test_a_crash_after_the_last_step_loses_nothing(unbroken, tmp_path, monkeypatch, name):
    """Averaging, scoring and writing the result come after the last checkpoint."""

    def finish(*arguments):
        owner = {"write_json": run_folder, "measure": RunFolder}.get(name, checkpoint)
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *arguments: crash())
            whole(*arguments)

    whole = RunFolder.finish
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(RunFolder, "finish", finish)
        run(tmp_path)
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)
    assert (tmp_path / "environment.json").exists()


def test_a_crash_before_old_checkpoints_are_discarded_loses_nothing(
    unbroken, tmp_path, monkeypatch
):
    """Step 11, of an interruption, is still there at the end and must not enter the average."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        before_step(patch, 11, press_ctrl_c)
        run(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(checkpoint, "discard_all_but", lambda *_: crash())
        run(tmp_path)
    assert "step-0000011" in [path.name for path in checkpoint.checkpoints(tmp_path)]
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


def test_a_finished_run_is_only_read(unbroken, tmp_path):
    shutil.copytree(unbroken, tmp_path / "copy")
    written = (tmp_path / "copy" / "model.safetensors").stat().st_mtime_ns
    model, metrics = run(tmp_path / "copy")
    assert_same_run(tmp_path / "copy", unbroken)
    assert metrics == read_json_lines(unbroken / "metrics.jsonl")
    assert (tmp_path / "copy" / "model.safetensors").stat().st_mtime_ns == written
    stored = checkpoint.load_model(unbroken).state_dict()
    assert all(torch.equal(stored[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("stop", "cooldown", "steps", "allowed"),
    [(8, 4, 16, True), (9, 4, 16, False), (6, 4, 10, True), (7, 4, 10, False),
     (9, 0, 9, True), (10, 0, 9, False)],
)
def test_the_length_may_change_until_an_end_begins(
    tmp_path, monkeypatch, stop, cooldown, steps, allowed
):
    """The end of the old length or of the new, whichever is earlier, with its cooldown."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        before_step(patch, stop, press_ctrl_c)
        run(tmp_path, cooldown=cooldown)  # of 12 steps
    if allowed:
        run(tmp_path, cooldown=cooldown, max_steps=steps)
        assert checkpoint.checkpoints(tmp_path)[-1].name == f"step-{steps:07d}"
    else:
        where = f"from 12 to {steps} only up to step {min(12, steps) - cooldown}, "
        with pytest.raises(ValueError, match=where):
            run(tmp_path, cooldown=cooldown, max_steps=steps)
    run(tmp_path, cooldown=cooldown, max_steps=steps if allowed else 12)  # nothing was lost


def test_a_setting_that_an_older_run_did_not_record_had_its_default(unbroken, tmp_path):
    shutil.copytree(unbroken, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    del config["train"]["cooldown"], config["model"]["attention_dropout"]
    path.write_text(json.dumps(config))
    (tmp_path / "run" / "checksums.json").unlink()
    with pytest.raises(ValueError, match="cooldown = 0, not 1"):
        run(tmp_path / "run", cooldown=1)
    run(tmp_path / "run")


def test_more_steps_go_on_from_the_end(tmp_path, unbroken):
    run(tmp_path, max_steps=7)
    run(tmp_path)
    ours, theirs = contents(tmp_path), contents(unbroken)
    assert ours["config.json"] == theirs["config.json"]
    assert ours.keys() == theirs.keys()  # the checkpoint of step 7 is gone
    # What differs is the log: step 7 has an entry, and what follows counts from there.
    assert all(ours[n] == theirs[n] for n in ours if n.endswith(".safetensors"))


def test_remains_of_a_killed_save_are_ignored(unbroken, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, 7, crash)
        run(tmp_path)
    for name in ("partial", "old"):
        shutil.copytree(tmp_path / "checkpoints/step-0000006", tmp_path / "checkpoints" / name)
        (tmp_path / "checkpoints" / name / "model.safetensors").write_bytes(b"half")
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 6, "lo')
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


# ------------------------------------------------------------------------------------ full disks


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("No space left")]
)
@pytest.mark.parametrize("nth", [1, 2, 3, 5])
def test_a_full_disk_loses_nothing(unbroken, tmp_path, monkeypatch, nth, error):
    """Each checkpoint is three files: the disk is full half-way through the nth."""
    count, save = 0, checkpoint.save_file

    def fill(tensors, path):
        nonlocal count
        count += 1
        if count == nth:
            Path(path).write_bytes(b"half of it")
            raise error
        return save(tensors, path)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", fill)
        with pytest.raises(OSError) as raised:
            run(tmp_path)
    text = str(raised.value)
    assert text.startswith(f"the checkpoint of step {2 if nth < 4 else 4} could not be saved in")
    assert "No space left" in text and "Earlier checkpoints are intact; free" in text
    kept = checkpoint.checkpoints(tmp_path)
    assert [path.name for path in kept] == ["step-0000002"][: nth > 3]
    assert all(checkpoint.load_checkpoint(path)["step"] == 2 for path in kept)
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


@pytest.mark.parametrize("size", [400, 8_000])
def test_the_system_refusing_to_write_loses_nothing(unbroken, tmp_path, monkeypatch, size):
    """A limit on the size of files is what a test can set: 400 bytes hit metrics.jsonl first."""
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, 7, crash)
        run(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        with pytest.raises(OSError) as raised:
            run(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in str(raised.value) and "free some space" in str(raised.value)
    assert checkpoint.load_checkpoint(checkpoint.checkpoints(tmp_path)[-1])["step"] == 6
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


def test_a_full_disk_at_the_log_is_named(tmp_path, monkeypatch):
    run(tmp_path, max_steps=2)
    (tmp_path / "metrics.jsonl").unlink()
    # The finished run would only read; two more steps write.
    monkeypatch.setattr(run_folder, "write_json_lines", lambda *_: None)
    monkeypatch.setattr(RunFolder, "_read_log", lambda *_: None)  # /dev/full has no end
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="cannot write to .*No space left.*Earlier .* are intact"):
        run(tmp_path, max_steps=4)
    assert checkpoint.load_checkpoint(checkpoint.checkpoints(tmp_path)[-1])["step"] == 2


def test_a_checkpoint_that_cannot_be_deleted_is_named(unbroken, tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="cannot write to .* intact"):
        patch.setattr(checkpoint, "remove", lambda path: full(path) if path.is_dir() else None)
        run(tmp_path)
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write to .*file/run .*choose another run folder"):
        run(tmp_path / "file" / "run")


# --------------------------------------------------------------------------- other and damaged runs


def damage(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


def goes_on_from_the_one_before(folder, unbroken, capsys) -> str:
    """What is said of the newest checkpoint, from whose loss the run recovers."""
    newest = checkpoint.checkpoints(folder)[-1]
    capsys.readouterr()
    run(folder)
    said = capsys.readouterr().out
    assert said.count(f"the checkpoint {newest} is damaged (") == 1
    assert ": going on from the one before." in said
    assert f"Resuming {folder} at step 10." in said
    assert_same_run(folder, unbroken)
    return said


@pytest.mark.parametrize("keep", [0, 0.5, 0.999])
@pytest.mark.parametrize("name", ["model", "optimizer", "rng"])
def test_after_a_damaged_checkpoint_the_one_before_goes_on(unbroken, tmp_path, capsys, name, keep):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    damage(checkpoint.checkpoints(folder)[-1] / f"{name}.safetensors", keep)
    assert f"({name}.safetensors)" in goes_on_from_the_one_before(folder, unbroken, capsys)


@pytest.mark.parametrize("name", ["model", "optimizer", "rng"])
def test_a_missing_part_is_named(unbroken, tmp_path, capsys, name):
    shutil.copytree(unbroken, tmp_path / "run")
    (checkpoint.checkpoints(tmp_path / "run")[-1] / f"{name}.safetensors").unlink()
    assert name in goes_on_from_the_one_before(tmp_path / "run", unbroken, capsys)


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}", '{"step": "twelve"}', "\udcff"])
def test_a_damaged_state_is_named(unbroken, tmp_path, capsys, content):
    shutil.copytree(unbroken, tmp_path / "run")
    state = checkpoint.checkpoints(tmp_path / "run")[-1] / "state.json"
    state.write_bytes(content.encode(errors="surrogateescape"))
    goes_on_from_the_one_before(tmp_path / "run", unbroken, capsys)


def test_without_a_whole_checkpoint_nothing_is_trained_over_them(unbroken, tmp_path):
    shutil.copytree(unbroken, tmp_path / "run")
    for path in checkpoint.checkpoints(tmp_path / "run"):
        (path / "state.json").write_text("")
    before = sorted(path.name for path in (tmp_path / "run").rglob("*"))
    with pytest.raises(ValueError, match="no checkpoint .*run is intact: .*step-[^;]*, and there"):
        run(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").rglob("*")) == before


def test_a_checkpoint_that_the_average_needs_is_not_averaged_damaged(
    unbroken, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, 12, crash)
        run(tmp_path)
    path = tmp_path / "checkpoints" / "step-0000010" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="step-0000010 is damaged"):
        before_step(patch, 12, lambda: path.write_bytes(content))
        run(tmp_path)
    for name in ("step-0000010", "step-0000012"):  # as the message says
        shutil.rmtree(tmp_path / "checkpoints" / name)
    run(tmp_path)
    assert_same_run(tmp_path, unbroken)


@pytest.mark.parametrize("content", [None, b"", b"half of it"])
def test_a_damaged_result_is_averaged_again(unbroken, tmp_path, capsys, content):
    shutil.copytree(unbroken, tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    path.unlink() if content is None else path.write_bytes(content)
    capsys.readouterr()
    run(tmp_path / "run")
    said = capsys.readouterr().out
    assert "Resuming" not in said
    assert (f"{path} is damaged: it will be averaged again." in said) == (content is not None)
    assert_same_run(tmp_path / "run", unbroken)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_config_is_named(unbroken, tmp_path, content):
    shutil.copytree(unbroken, tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text(content)
    with pytest.raises(ValueError, match="config.json is damaged"):
        run(tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peak_lr": 1e-3}, "peak_lr = 0.005, not 0.001"),
        ({"d_ff": 48}, "d_ff = 32, not 48"),
        ({"seed": 1}, "seed = 0, not 1"),
        ({"betas": (0.9, 0.99)}, r"betas = \[0.9, 0.98\], not \[0.9, 0.99\]"),
        ({"accumulate": 2}, "accumulate x processes = 1, not 2"),
        ({"checkpoint_every": 3}, "checkpoint_every = 2, not 3"),
    ],
)
def test_other_settings_need_another_folder(unbroken, tmp_path, changes, message):
    shutil.copytree(unbroken, tmp_path / "run")
    with pytest.raises(ValueError, match=f"holds a run with {message}; choose a new run folder"):
        run(tmp_path / "run", **changes)
    assert_same_run(tmp_path / "run", unbroken)


def test_other_data_needs_another_folder(unbroken, tmp_path):
    from tiny_run import data

    shutil.copytree(unbroken, tmp_path / "run")
    pairs = dict(data()[0])
    pairs["train"] = pairs["train"][:-1]
    with pytest.raises(ValueError, match="holds a run with other sentence pairs or another token"):
        run(tmp_path / "run", pairs=pairs)
    assert_same_run(tmp_path / "run", unbroken)


def test_how_a_run_is_watched_may_change(unbroken, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Crash):
        before_step(patch, 7, crash)
        run(tmp_path)
    run(tmp_path, log_every=5, keep_checkpoints=2)
    ours, theirs = contents(tmp_path), contents(unbroken)
    assert ours["model.safetensors"] == theirs["model.safetensors"]
    assert ours["config.json"]["train"]["log_every"] == 5  # what was in force at the end


def test_a_recorded_run_is_not_overwritten(unbroken, tmp_path):
    """Recorded runs are kept without their checkpoints: training must not begin anew in them."""
    shutil.copytree(unbroken, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    before = contents(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a finished model without its checkpoints; choose"):
        run(tmp_path / "run")
    assert contents(tmp_path / "run") == before


# -------------------------------------------------------------------------------------- kill -9


KILLER = """
import os, random, signal, sys, time
from pathlib import Path

sys.path.insert(0, sys.argv[2])
from tiny_run import assert_same_run, run
from transformer_lib.runs import checkpoint

root, rng = Path(sys.argv[1]), random.Random(int(sys.argv[3]))
SETTINGS = dict(max_steps=25, checkpoint_every=1)


def start(folder):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run(folder, **SETTINGS)
            status = 0
        finally:
            os._exit(status)
    return child


run(root / "unbroken", **SETTINGS)  # here, so that the children find every module loaded
begin = time.monotonic()
assert os.waitpid(start(root / "timed"), 0)[1] == 0
whole = time.monotonic() - begin
kills = rounds = 0
while kills < 24:
    rounds += 1
    folder, newest, finished = root / f"round-{rounds}", 0, False
    while not finished:
        child = start(folder)
        time.sleep(rng.uniform(0, 0.8 * whole))
        os.kill(child, signal.SIGKILL)  # a child that has ended waits, and its number is not reused
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            kills += 1
        else:
            assert os.WEXITSTATUS(status) == 0, "a child failed"
            finished = True
        for path in checkpoint.checkpoints(folder):
            state = checkpoint.load_checkpoint(path)  # raises if it is not whole
        if checkpoint.checkpoints(folder):
            assert state["step"] >= newest, "a saved step was lost"
            newest = state["step"]
    assert_same_run(folder, root / "unbroken")
print(kills, "kills in", rounds, "runs")
"""


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_as_the_unbroken_one(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), str(Path(__file__).parent), "1"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    kills, *_ = done.stdout.splitlines()[-1].split()
    assert int(kills) >= 20
