"""A power cut at any moment of a run, with what was not synced lost, torn or reordered.

A real run is recorded: every change that it makes to its folder, and every sync. Then a small model
of a disk replays each prefix of the record. What was synced is there; of what was not, each folder
keeps any number of its first changes, independently of the others, and each file keeps all of its
new bytes, none, half, or as many zeros. That is the method of ALICE (Pillai et al. 2014). Every
distinct state is written to a folder and the run started again in it.
"""

import builtins
import itertools
import os
import shutil
from pathlib import Path

import pytest
from tiny_run import assert_same_run, run

from transformer_lib.runs import checkpoint, files
from transformer_lib.runs.folder import RunFolder

SETTINGS = dict(
    max_steps=4, checkpoint_every=1, keep_checkpoints=2, average=2, log_every=1, validate_every=4
)


# ------------------------------------------------------------------------------------- the recorder


class Recorder:
    """The changes under `root`, in their order: (what, path, ...)."""

    def __init__(self, root: Path, monkeypatch):
        self.root, self.record = root, []
        self.real = {name: getattr(os, name) for name in ("mkdir", "replace", "unlink", "fsync")}
        opened = os.open
        handles = {}

        def open_handle(path, *arguments, **options):
            handle = opened(path, *arguments, **options)
            handles[handle] = path
            return handle

        monkeypatch.setattr(os, "open", open_handle)
        monkeypatch.setattr(os, "mkdir", self.recorded("mkdir"))
        monkeypatch.setattr(os, "replace", self.recorded("replace"))
        monkeypatch.setattr(os, "unlink", self.recorded("unlink"))
        monkeypatch.setattr(os, "fsync", lambda handle: self.sync(handles[handle], handle))
        monkeypatch.setattr(shutil, "rmtree", self.rmtree)
        for module in (files, checkpoint):
            monkeypatch.setattr(module, "open", self.open, raising=False)
        save = RunFolder.save

        def save_and_note(folder, step, state):
            save(folder, step, state)
            self.record.append(("saved", step))

        monkeypatch.setattr(RunFolder, "save", save_and_note)

    def note(self, what: str, *paths, **more):
        paths = [Path(path) for path in paths]
        if paths[0] == self.root or self.root in paths[0].parents:
            if paths[0].name != "lock":  # it is free whether it is there or not
                self.record.append((what, *(path.relative_to(self.root) for path in paths), more))

    def recorded(self, what: str):
        real = self.real[what]

        def function(*paths, **options):
            real(*paths, **options)
            self.note(what, *paths[: 2 if what == "replace" else 1])

        return function

    def sync(self, path, handle):
        self.real["fsync"](handle)
        self.note("sync", path)

    def rmtree(self, path, ignore_errors=False):
        if Path(path).is_dir():
            for child in sorted(Path(path).iterdir()):
                self.rmtree(child) if child.is_dir() else os.unlink(child)
            os.rmdir(path)
            self.note("unlink", path)
        elif not ignore_errors:
            raise FileNotFoundError(path)

    def open(self, path, mode="r", **options):
        new = "w" in mode or not Path(path).exists()
        before = b"" if new else Path(path).read_bytes()
        file = builtins.open(path, mode, **options)
        if mode.strip("b") in ("w", "a"):
            if new:
                self.note("create", path)
            close = file.close

            def close_and_note():
                if not file.closed:
                    close()
                    self.note("write", path, before=before, after=Path(path).read_bytes())

            return Closing(file, close_and_note)
        return file


class Closing:
    """A file whose end is noted."""

    def __init__(self, file, close):
        self.file, self.write, self.close = file, file.write, close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ----------------------------------------------------------------------------- the model of a disk


class File:
    def __init__(self):
        self.synced = self.written = b""

    def versions(self):
        """What the disk may hold: a torn write keeps half of what is new, or zeros."""
        old, new = self.synced, self.written
        if old == new:
            return [new]
        kept = len(old) if new.startswith(old) else 0
        half = new[: kept + (len(new) - kept) // 2]
        return [new, old, half, new[:kept] + bytes(len(new) - kept)]


class Folder:
    def __init__(self):
        self.synced, self.pending, self.names = {}, [], {}

    def change(self, *changes):
        """Names that come (a node) and go (None), at once."""
        self.pending.append(changes)
        apply(self.names, changes)

    def versions(self):
        for n in range(len(self.pending) + 1):
            names = dict(self.synced)
            for changes in self.pending[:n]:
                apply(names, changes)
            yield names


def apply(names, changes):
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    def __init__(self):
        self.root, self.saved = Folder(), 0
        self.root.change(("run", Folder()))  # the folder above is of no interest
        self.root.synced = dict(self.root.names)
        self.root.pending = []

    def find(self, path: Path):
        node = self.root
        for part in ("run", *path.parts):
            node = node.names[part]
        return node

    def above(self, path: Path):
        return self.find(path.parent) if path.parts else self.root

    def do(self, what, *arguments):
        if what == "saved":
            self.saved = arguments[0]
            return
        *paths, more = arguments
        folder, name = self.above(paths[0]), paths[0].name
        if what == "sync":
            node = self.find(paths[0])
            if isinstance(node, File):
                node.synced = node.written
            else:
                node.synced, node.pending = dict(node.names), []
        elif what == "write":
            self.find(paths[0]).written = more["after"]
        elif what == "replace":
            folder.change((paths[1].name, folder.names[name]), (name, None))
        elif paths[0].parts:  # the run folder itself is there from the start
            new = {"mkdir": Folder, "create": File, "unlink": lambda: None}[what]
            folder.change((name, new()))

    def states(self):
        """Every tree that may be found after a cut now: path -> bytes, None for a folder."""
        folders, loose = [], []

        def walk(node):
            for child in [*node.names.values(), *node.synced.values()]:
                if isinstance(child, Folder) and child not in folders:
                    folders.append(child)
                    walk(child)
                elif isinstance(child, File) and child not in loose and len(child.versions()) > 1:
                    loose.append(child)

        walk(self.root)
        for names in itertools.product(*(list(folder.versions()) for folder in folders)):
            # All unsynced files fare alike: there is hardly ever more than one.
            for fate in range(4 if loose else 1):
                yield self.tree(dict(zip(map(id, folders), names, strict=True)), fate)

    def tree(self, names, fate):
        found = {}

        def walk(folder, path):
            for name, node in names[id(folder)].items():
                if isinstance(node, Folder):
                    found[path / name] = None
                    walk(node, path / name)
                else:
                    versions = node.versions()
                    found[path / name] = versions[fate % len(versions)]

        walk(self.find(Path()), Path())
        return found


def distinct_states(record):
    """(tree, newest step whose checkpoint was promised, how many changes were made) for each."""
    disk, seen = Disk(), set()
    for number, change in enumerate([("saved", 0), *record]):
        disk.do(*change)
        for tree in disk.states():
            key = hash(tuple(sorted((str(path), content) for path, content in tree.items()
                                    if content is not None)))
            key = key, tuple(sorted(str(path) for path in tree)), disk.saved
            if key not in seen:
                seen.add(key)
                yield tree, disk.saved, number


def write_tree(folder: Path, tree):
    folder.mkdir()
    for path, content in sorted(tree.items()):
        if content is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


# --------------------------------------------------------------------------------------- the tests


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A finished run, and the record of it."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder(folder, patch)
        run(folder, **SETTINGS)
    recorder.record.append(("saved", SETTINGS["max_steps"] + 1))  # the finished run
    return folder, recorder.record


def test_the_record_is_whole(recorded, tmp_path):
    """Played to its end with all that was written, it gives the folder that is there."""
    folder, record = recorded
    disk = Disk()
    for change in record:
        disk.do(*change)
    first = next(disk.states())
    everything = {
        path.relative_to(folder): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }
    *_, last = disk.states()
    assert last == everything
    assert {path: content for path, content in first.items() if path.name != "old"
            and path.parent.name != "old"} == everything, "the end is not on the disk"
    assert sum(change[0] == "sync" for change in record) > 40


def resume_each(states, reference, tmp_path, capsys):
    for number, (tree, saved, at) in enumerate(states):
        folder = tmp_path / str(number)
        write_tree(folder, tree)
        capsys.readouterr()
        try:
            run(folder, **SETTINGS)
            said = capsys.readouterr().out
            if saved > SETTINGS["max_steps"]:
                assert "Resuming" not in said and "damaged" not in said, "a finished run"
            resumed = SETTINGS["max_steps"]
            if "Resuming" in said:
                resumed = int(said.split(" at step ")[1].split(".")[0])
            elif not any(path.name.startswith("step-") for path in tree):
                resumed = 0
            assert resumed >= min(saved, SETTINGS["max_steps"]), "a saved step was lost"
            assert_same_run(folder, reference)
        except Exception as error:
            held = sorted(map(str, tree))
            raise AssertionError(f"cut after change {at}, step {saved}: {held}") from error
        shutil.rmtree(folder)


def test_a_power_cut_loses_nothing(recorded, tmp_path, capsys):
    """Every twentieth state, and those with the least left of each promise; the next takes all."""
    reference, record = recorded
    states = list(distinct_states(record))
    assert len(states) > 300
    poorest = {}  # by promise
    for state in sorted(states, key=lambda state: -len(state[0])):
        poorest[state[1]] = state
    poorest = [*poorest.values()]
    resume_each(poorest + states[::20], reference, tmp_path, capsys)


@pytest.mark.weekly
def test_no_power_cut_loses_anything(recorded, tmp_path, capsys):
    reference, record = recorded
    resume_each(distinct_states(record), reference, tmp_path, capsys)
