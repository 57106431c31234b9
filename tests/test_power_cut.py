"""A power cut at any moment of a run, with what was not synced lost, torn or reordered.

A real run is recorded: every change that it makes to its folder, and every sync. Then a small model
of a disk replays each prefix of the record. What was synced is there; of what was not, each folder
keeps any number of its first changes, independently of the others, and each file keeps all of its
new bytes, none, half, or as many zeros. That is the method of ALICE (Pillai et al. 2014). Every
distinct state is written to a folder and the run started again in it.
"""

import builtins
import contextlib
import itertools
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from tiny_run import assert_same_run, run

from transformer_lib import load_pretrained
from transformer_lib.runs import checkpoint, checksums, export, files
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
    def __init__(self, tree=()):
        """tree: what is there at the start, and synced: path -> bytes, None for a folder."""
        self.root, self.saved = Folder(), 0
        self.root.change(("run", Folder()))  # the folder above is of no interest
        for path, content in sorted(dict(tree).items()):
            node = Folder() if content is None else File()
            if content is not None:
                node.synced = node.written = content
            self.above(path).change((path.name, node))
        for folder in (self.root, *self.folders()):
            folder.synced, folder.pending = dict(folder.names), []

    def folders(self):
        """Every folder below the one around the run."""
        waiting = [self.root]
        while waiting:
            inside = [n for n in waiting.pop().names.values() if isinstance(n, Folder)]
            yield from inside
            waiting += inside

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


def distinct_states(record, before=()):
    """(tree, newest step whose checkpoint was promised, how many changes were made) for each.

    before: the tree that was there when the recording began.
    """
    disk, seen = Disk(before), set()
    for number, change in enumerate([("saved", 0), *record]):
        disk.do(*change)
        for tree in disk.states():
            key = hash(tuple(sorted((str(path), content) for path, content in tree.items()
                                    if content is not None)))
            key = key, tuple(sorted(str(path) for path in tree)), disk.saved
            if key not in seen:
                seen.add(key)
                yield tree, disk.saved, number


def read_tree(folder: Path):
    """What is in a folder: path -> bytes, None for a folder."""
    return {
        path.relative_to(folder): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def record_of(folder: Path, action):
    """(what was in the folder, the changes that the action makes to it)."""
    before = read_tree(folder) if folder.exists() else {}
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder(folder, patch)
        action()
    return before, recorder.record


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
    _, record = record_of(folder, lambda: run(folder, **SETTINGS))
    return folder, [*record, ("saved", SETTINGS["max_steps"] + 1)]  # the finished run


def test_the_record_is_whole(recorded, tmp_path):
    """Played to its end with all that was written, it gives the folder that is there."""
    folder, record = recorded
    disk = Disk()
    for change in record:
        disk.do(*change)
    first = next(disk.states())
    everything = read_tree(folder)
    *_, last = disk.states()
    assert last == everything
    assert {path: content for path, content in first.items() if path.name != "old"
            and path.parent.name != "old"} == everything, "the end is not on the disk"
    assert sum(change[0] == "sync" for change in record) > 40


def test_no_cut_leaves_half_a_checkpoint_under_its_name(recorded):
    """Over all states: what is written gets its name last, and what is deleted loses it first."""
    held = [
        {path.name: {file.name for file in tree if file.parent == path}
         for path in tree if path.name.startswith("step-")}
        for tree, _, _ in distinct_states(recorded[1])
    ]
    whole = {path.name for path in checkpoint.checkpoints(recorded[0])[-1].iterdir()}
    assert len(whole) > 1 and sum(map(bool, held)) > 100
    assert not [state for state in held if any(files != whole for files in state.values())]


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


# ------------------------------------------------------------------- what happens to a run later on


def every(states, n, name=None):
    """Every n-th state and the last, so that a test stays short; n = 1 takes all.

    name: of a file; the first state with each of its contents is then among them, too.
    """
    states = list(states)
    if n == 1:
        return states
    contents = {}
    for state in states:
        tree = state[0]
        contents.setdefault((tree.get(Path(name or ".")), tree.get(Path(checksums.NAME))), state)
    return [*contents.values(), *states[::n], states[-1]] if name else [*states[::n], states[-1]]


def stopped_at(folder, step, how):
    """A run of this folder that ends after a step: by an error, or as SIGTERM ends it."""

    class Crash(Exception):
        pass

    def on_log(entry):
        if entry["step"] == step and "loss" in entry:
            if how == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                raise Crash

    with contextlib.suppress(Crash, KeyboardInterrupt):
        run(folder, on_log=on_log, **SETTINGS)


def damage_newest(folder):
    path = checkpoint.checkpoints(folder)[-1] / "state.json"
    path.write_bytes(path.read_bytes()[:-9])


def resumption(folder):
    stopped_at(folder, 3, "error")
    return record_of(folder, lambda: run(folder, **SETTINGS))


def damage_set_aside(folder):
    stopped_at(folder, 4, "error")
    damage_newest(folder)
    return record_of(folder, lambda: run(folder, **SETTINGS))


def stop_by_signal(folder):
    return record_of(folder, lambda: stopped_at(folder, 2, "signal"))


LATER = {function.__name__: function for function in (resumption, damage_set_aside, stop_by_signal)}


def cut_and_go_on(before, record, reference, tmp_path, settings, n, name=None):
    """Cut the power at these moments; the run then goes on, and is what it would have been."""
    states = every(distinct_states(record, before), n, name)
    assert states
    for number, (tree, _, at) in enumerate(states):
        folder = tmp_path / str(number)
        write_tree(folder, tree)
        try:
            run(folder, **settings)
            assert_same_run(folder, reference)
            assert not list(folder.glob("**/damaged-step-*")), "a dead checkpoint is left"
        except Exception as error:
            raise AssertionError(f"cut after change {at}: {sorted(map(str, tree))}") from error
        shutil.rmtree(folder)


@pytest.mark.parametrize("scene", LATER)
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.weekly), 25])
def test_a_cut_later_on_loses_nothing(scene, n, recorded, tmp_path):
    before, record = LATER[scene](tmp_path / "first")
    cut_and_go_on(before, record, recorded[0], tmp_path, SETTINGS, n)


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.weekly), 25])
def test_a_cut_while_a_run_is_made_longer(n, recorded, tmp_path):
    """Nothing is refused as damaged: what may have changed is not listed meanwhile."""
    folder, longer = tmp_path / "first", SETTINGS | {"max_steps": 6}
    run(folder, **SETTINGS)
    before, record = record_of(folder, lambda: run(folder, **longer))
    run(tmp_path / "whole", **longer)
    cut_and_go_on(before, record, tmp_path / "whole", tmp_path, longer, n, "config.json")


@pytest.mark.parametrize("n", [pytest.param(7, marks=pytest.mark.weekly), 100])
def test_a_second_cut_while_the_first_is_mended(n, recorded, tmp_path):
    reference, record = recorded
    for number, (tree, _, _) in enumerate(every(distinct_states(record), n)):
        folder = tmp_path / f"first-{number}"
        write_tree(folder, tree)
        again = record_of(folder, lambda folder=folder: run(folder, **SETTINGS))
        if len(again[1]) > 5:
            inner = tmp_path / f"second-{number}"
            inner.mkdir()
            cut_and_go_on(*again, reference, inner, SETTINGS, max(n // 3, 9))


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.weekly), 3])
def test_a_cut_while_scores_are_saved(n, recorded, tmp_path, capsys):
    """Old or new, both whole; or something is said, and the weights translate all the same."""
    folder = shutil.copytree(recorded[0], tmp_path / "run")

    def save(text):
        names = "translations.jsonl", "scores.json"
        with checksums.changing(folder, names):
            files.write_json_lines(folder / names[0], [{"index": 0, "translation": text}])
            known = files.sha256(folder / names[0])
            about = {"weights": files.sha256(folder / checksums.WEIGHTS), "translations": known}
            files.write_json(folder / names[1], about | {"bleu": float(len(text))})

    save("old")
    before, record = record_of(folder, lambda: save("newer"))
    silent = 0
    for number, (tree, _, at) in enumerate(every(distinct_states(record, before), n)):
        copy = tmp_path / str(number)
        write_tree(copy, tree)
        capsys.readouterr()
        load_pretrained(copy)  # refuses what contradicts its checksum
        said = capsys.readouterr().out
        texts = [row["translation"] for row in files.read_json_lines(copy / "translations.jsonl")]
        scored = json.loads((copy / "scores.json").read_text())["bleu"]
        listed = {"translations.jsonl", "scores.json"} <= checksums.read(copy).keys()
        if said:
            assert "not listed" in said or "scores of other" in said
        else:
            assert listed and scored == len(texts[0]), f"cut after change {at}: a silent mixture"
            silent += 1
    assert silent >= 2  # the first and the last


def test_a_cut_while_a_file_is_exported(recorded, tmp_path):
    """The old file, the new one, or none: never a part of one."""
    folder, out = recorded[0], tmp_path / "out" / "model.bin"
    (tmp_path / "out").mkdir()
    before, record = record_of(tmp_path / "out", lambda: export.export_live(folder, out))
    assert not before
    whole = out.read_bytes()
    for tree, _, _ in distinct_states(record):
        assert tree.get(Path("model.bin"), whole) == whole
