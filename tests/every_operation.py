"""A run that fails, or dies, at any one of the changes that it makes to its folder.

`python tests/every_operation.py fail|kill [EVERY]` counts the changes of a whole run: files opened
for writing, writes, syncs, renames, deletions, folders. Then it makes one run for each, or for each
EVERYth, that stops there. `fail`: the disk is full, or has an I/O error. `kill`: SIGKILL before the
change, and in the middle of a write, with half of it or with zeros behind the half on the disk. The
same command again must end as the run that nothing happened to. It prints what happened how often,
as JSON.
"""

import builtins
import collections
import contextlib
import errno
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import torch
from tiny_run import contents, run

from transformer_lib.runs import checkpoint, files

SETTINGS = dict(
    max_steps=5, checkpoint_every=1, keep_checkpoints=2, average=2, log_every=1, validate_every=5
)
WORDS = ("Earlier checkpoints are intact", "Files saved earlier are untouched")


class Changes:
    """Counts the changes under a folder; at number `at` it calls `then`, with what would write half
    of what was to be written and the like of it in zeros (None where nothing was to be written).
    """

    def __init__(self, root: Path):
        self.root, self.at, self.then = str(root), None, None
        self.writes, self.n, self.paths = [], 0, {}
        for name in ("mkdir", "replace", "unlink", "rmdir", "truncate"):
            setattr(os, name, self.counted(getattr(os, name)))
        self.open_handle, self.write_handle, self.sync_handle = os.open, os.write, os.fsync
        os.open, os.write, os.fsync = self.opened, self.written, self.synced
        shutil.rmtree = self.rmtree
        files.open = checkpoint.open = self.open

    def one(self, path, torn=None):
        if str(path).startswith(self.root):
            self.n += 1
            if torn:
                self.writes.append(self.n)
            if self.n == self.at:
                self.then(torn)

    def counted(self, real):
        def function(path, *arguments, **options):
            self.one(self.paths.get(path, path))
            return real(path, *arguments, **options)

        return function

    def opened(self, path, flags, *arguments, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self.one(path)
        handle = self.open_handle(path, flags, *arguments, **options)
        self.paths[handle] = str(path)
        return handle

    def written(self, handle, data):
        half = data[: len(data) // 2]
        self.one(self.paths.get(handle, ""), lambda rest: self.write_handle(handle, half))
        return self.write_handle(handle, data)

    def synced(self, handle):
        self.one(self.paths.get(handle, ""))
        self.sync_handle(handle)

    def rmtree(self, path, ignore_errors=False, **_):
        with contextlib.suppress(FileNotFoundError) if ignore_errors else contextlib.nullcontext():
            for child in sorted(Path(path).iterdir()):
                self.rmtree(child) if child.is_dir() else os.unlink(child)
            os.rmdir(path)

    def open(self, path, mode="r", **options):
        if not set(mode) & set("wa"):
            return builtins.open(path, mode, **options)
        self.one(path)
        file = builtins.open(path, mode, **options)
        write = file.write

        def counted(data):
            def torn(rest):
                write(data[: len(data) // 2] + rest * (len(data) - len(data) // 2))
                file.flush()

            self.one(path, torn)
            return write(data)

        return Written(file, counted)


class Written:
    """A file whose `write` is another."""

    def __init__(self, file, write):
        self.file, self.write = file, write

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def quietly(folder) -> BaseException | None:
    """Train in the folder; returns what was raised."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            run(folder, **SETTINGS)
        except BaseException as error:
            return error
    return None


def refuse(number: int):
    def then(torn):
        if torn:
            torn(b"")
        raise OSError(number, os.strerror(number))

    return then


def die(rest):
    def then(torn):
        if torn and rest is not None:
            torn(rest)
        os.kill(os.getpid(), signal.SIGKILL)

    return then


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def main(what: str, every: int = 1) -> dict:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        unbroken, folder = Path(root) / "unbroken", Path(root) / "run"
        quietly(unbroken)
        expected, known = contents(unbroken), names(unbroken)
        changes, tally = Changes(folder), collections.Counter()
        quietly(folder)
        total = changes.n
        if what == "fail":
            faults = [(errno.errorcode[number], refuse(number))
                      for number in (errno.ENOSPC, errno.EIO)]
            cases = [(at, *fault) for at in range(1, total + 1) for fault in faults]
        else:
            cases = [(at, "killed before", die(None)) for at in range(1, total + 1)]
            for rest, content in (("half of it", b""), ("zeros behind", b"\0")):
                cases += [(at, f"killed in a write, {rest}", die(content)) for at in changes.writes]
        tally["changes"] = total
        for at, label, then in cases[::every]:
            shutil.rmtree(folder, ignore_errors=True)
            changes.n, changes.at, changes.then = 0, at, then
            tally[label] += 1
            if what == "fail":
                error = quietly(folder)
                if error is None:
                    tally["went on"] += 1
                elif isinstance(error, OSError) and any(words in str(error) for words in WORDS):
                    tally["said"] += 1
                else:
                    tally[f"OTHER WORDS at {at}: {error!r}"] += 1
            else:
                child = os.fork()
                if not child:
                    quietly(folder)
                    os._exit(0)
                tally["died"] += os.WIFSIGNALED(os.waitpid(child, 0)[1])
            changes.at = None
            error = quietly(folder)
            if error is not None:
                tally[f"LOST at {at}, {label}: {error!r}"] += 1
            elif contents(folder) != expected:
                tally[f"DIFFERENT at {at}, {label}"] += 1
            elif left := names(folder) - known:
                tally[f"LEFT OVER at {at}, {label}: {sorted(left)}"] += 1
            else:
                tally["resumed, equal bit for bit, nothing left over"] += 1
            if tally["resumed, equal bit for bit, nothing left over"] % 50 == 0:
                print(json.dumps(tally), file=sys.stderr, flush=True)
    return tally


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:]))))
