"""One run, one process: the second is told who holds the folder, and death frees it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_run import assert_same_run, run

from transformer_lib.runs import lock
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.lock import RunLock

HOLD = """
import sys, time
from transformer_lib.runs.lock import RunLock

RunLock(sys.argv[1]).acquire()
print("held", flush=True)
time.sleep(100)
"""
TRAIN = """
import sys
sys.path.insert(0, sys.argv[2])
from tiny_run import run

def slowly(entry):
    if entry["step"] == 6:
        print("under way", flush=True)
        sys.stdin.readline()

run(sys.argv[1], on_log=slowly)
"""


def start(code, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    for line in process.stdout:
        if line.strip() in ("held", "under way"):
            return process
    raise AssertionError("the other process failed")


def test_the_second_is_told_who_holds_it_and_the_first_is_not_disturbed(tmp_path):
    folder = tmp_path / "run"
    first = start(TRAIN, folder, Path(__file__).parent)
    with pytest.raises(RuntimeError) as raised:
        run(folder)
    text = str(raised.value)
    holder = f"process {first.pid} on {os.uname().nodename}, since"
    assert text.startswith(f"{folder} is in use: {holder}")
    assert "choose another run folder" in text
    first.communicate("go on\n", timeout=120)
    assert first.returncode == 0
    alone = start(TRAIN, tmp_path / "alone", Path(__file__).parent)  # fresh as the first was
    alone.communicate("go on\n", timeout=120)
    assert_same_run(folder, tmp_path / "alone")  # no entry of metrics.jsonl twice, no lock left
    steps = [entry["step"] for entry in read_json_lines(folder / "metrics.jsonl")]
    assert steps == [3, 6, 6, 9, 12, 12, 12]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_death_frees_the_lock(tmp_path, number):
    holder = start(HOLD, tmp_path)
    with pytest.raises(RuntimeError, match=f"process {holder.pid} on"):
        RunLock(tmp_path).acquire()
    holder.send_signal(number)
    holder.wait()
    again = RunLock(tmp_path)
    again.acquire()
    assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    again.release()
    assert list(tmp_path.iterdir()) == []


def test_an_error_frees_the_lock(tmp_path):
    def fail(entry):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, on_log=fail)
    assert not (tmp_path / "lock").exists()
    run(tmp_path)


def test_a_lock_that_is_released_while_another_waits_to_take_it_is_taken_anew(
    tmp_path, monkeypatch
):
    """The other has opened the file, which then loses its name: its lock would be of no use."""
    first, second = RunLock(tmp_path), RunLock(tmp_path)
    first.acquire()
    real, calls = lock._lock, []

    def late(handle):
        if not calls:
            first.release()
        calls.append(handle)
        real(handle)

    monkeypatch.setattr(lock, "_lock", late)
    second.acquire()
    assert len(calls) == 2
    with pytest.raises(RuntimeError, match="in use"):
        RunLock(tmp_path).acquire()
    second.release()


def test_where_there_are_no_locks_a_line_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    run(tmp_path, max_steps=1)
    said = capsys.readouterr().out
    assert f"{tmp_path} cannot be locked (this system has no file locks): make sure" in said


def test_windows_locks_a_byte_behind_the_text(tmp_path, monkeypatch):
    class Msvcrt:
        LK_NBLCK, locked = 2, []

        @classmethod
        def locking(cls, handle, mode, size):
            place = os.lseek(handle, 0, os.SEEK_CUR)
            if cls.locked:
                raise OSError(errno.EACCES, "Permission denied")
            cls.locked.append((mode, place, size))

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt)
    RunLock(tmp_path).acquire()
    assert Msvcrt.locked == [(2, 2**30, 1)]
    with pytest.raises(RuntimeError, match=f"process {os.getpid()} on"):
        RunLock(tmp_path).acquire()


def test_a_finished_run_needs_no_lock_where_nothing_may_be_written(tmp_path, monkeypatch):
    run(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    opened = os.open

    def read_only(path, flags, *more, **options):
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", read_only)
    _, metrics = run(tmp_path)
    assert metrics == read_json_lines(tmp_path / "metrics.jsonl")
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


@pytest.mark.weekly
def test_under_torchrun_the_first_process_holds_it(tmp_path):
    from test_distributed import two_processes

    holder = RunLock(tmp_path / "run")
    (tmp_path / "run").mkdir()
    holder.acquire()
    begin = time.monotonic()
    done = two_processes(tmp_path / "run", max_steps=2)
    assert done.returncode != 0 and time.monotonic() - begin < 120
    assert f"is in use: process {os.getpid()} on" in done.stderr
    holder.release()
    done = two_processes(tmp_path / "run", max_steps=2)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (tmp_path / "run" / "lock").exists()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    """The file behind it would be overwritten."""
    target = tmp_path / "precious"
    target.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").symlink_to(target)
    with pytest.raises(RuntimeError, match="lock is a link: remove it"):
        RunLock(tmp_path / "run").acquire()
    assert target.read_text() == "mine"
