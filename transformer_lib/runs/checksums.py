"""What the files of a run should hold: checksums.json, a SHA-256 for each.

A file that is about to change is taken out of the list first and listed again afterwards, so that
an interruption between the two leaves a file without a checksum, never one that contradicts it.
A folder without the list still loads, and nothing in it is compared. A file that grows while it is
read has a SHA-256 in each of its lines instead.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_lib.guards.checks import require_regular
from transformer_lib.runs.files import readable_json_lines, sha256, write_json, write_json_lines
from transformer_lib.runs.lock import RunLock

NAME = "checksums.json"
WEIGHTS = "model.safetensors"


def read(folder: str | Path) -> dict[str, str] | None:
    """File name -> SHA-256; None for a folder without the list. ValueError when the list is
    damaged, or the folder does not exist."""
    path = Path(folder) / NAME
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {folder}: give the folder of a run.")
    if not path.exists():
        return None
    require_regular(path)
    try:
        found = json.loads(path.read_bytes())
        if found["sha256"] == _own(found["files"]):
            return found["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ValueError(
        f"{path} is damaged; copy it again, or delete it: then nothing in {folder} is compared."
    )


def write(
    folder: str | Path, names: Iterable[str], known: Mapping[str, str] | None = None
) -> None:
    """List these files, or those of them that exist, and no others.

    known: name -> SHA-256 of files that are listed with it, without reading them again: one that
    was damaged in the meantime must still be noticed.
    """
    found = dict(known or {})
    for name in names:
        if name not in found and (path := Path(folder) / name).exists():
            found[name] = sha256(path)
    _write(folder, {name: found[name] for name in sorted(found)})


@contextmanager
def changing(folder: str | Path, names: Iterable[str]) -> Iterator[None]:
    """Around a block that writes these files, in a folder that has a list.

    Holds the run's lock meanwhile. If the block fails, what it has not changed stays listed.
    Raises RuntimeError, naming the holder, when another process is writing to the folder.
    """
    names = set(names)
    with RunLock(Path(folder)):
        before = read(folder)
        if before is None:
            yield
            return
        others = {name: known for name, known in before.items() if name not in names}
        if names & before.keys():
            _write(folder, others)
        try:
            yield
        except BaseException:
            with suppress(OSError):  # the error that brought us here matters more
                _write(folder, others | _unchanged(folder, before, names))
            raise
        write(folder, names, others)


def _unchanged(folder: str | Path, listed: dict[str, str], names: set[str]) -> dict[str, str]:
    """The entries for these names, if their files still hold what is listed."""
    paths = {name: Path(folder) / name for name in names & listed.keys()}
    return {
        name: listed[name]
        for name, path in paths.items()
        if path.exists() and sha256(path) == listed[name]
    }


def unlisted(folder: str | Path) -> list[str]:
    """Scores and translations in the folder that its list does not name.

    An interruption while they were being saved leaves them that way; they may not belong together.
    """
    listed = read(folder)
    if listed is None:
        return []
    patterns = ("scores*.json", "translations*.jsonl", "shipping.json")
    found = {path.name for pattern in patterns for path in Path(folder).glob(pattern)}
    return sorted(found - listed.keys())


def differing(folder: str | Path, *names: str) -> list[str]:
    """The listed files, or those of `names` among them, that don't hold what they should.

    A missing file is not reported here: whatever needs it will say so.
    """
    known = read(folder) or {}
    paths = {name: Path(folder) / name for name in known if not names or name in names}
    for path in paths.values():
        require_regular(path)
    return [name for name, path in paths.items() if path.exists() and sha256(path) != known[name]]


def require(folder: str | Path, *names: str) -> None:
    """Raise ValueError, naming the file, if one that is listed changed since it was written."""
    if wrong := differing(folder, *names):
        raise ValueError(
            f"{Path(folder) / wrong[0]} is damaged or was changed: it is not the file that "
            f"{NAME} lists. Copy it again. If you changed it yourself, delete {NAME}: then nothing "
            "is compared."
        )


def write_lines(path: str | Path, rows: Iterable[dict]) -> None:
    """Write a JSON object and its SHA-256 per line."""
    write_json_lines(path, [row | {"sha256": _own(row)} for row in rows])


def read_lines(path: str | Path, names: Iterable[str]) -> list[dict]:
    """The rows that `write_lines` wrote, each with these names.

    Raises ValueError, with its number, for a line that doesn't hold what was written.
    """
    path, names = Path(path), set(names)
    rows, wrong = readable_json_lines(path)
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):  # a complete file ends with a newline
        wrong.append(content.count(b"\n") + 1)
    for number, row in enumerate(rows, start=1):
        if row.pop("sha256", None) != _own(row) or row.keys() != names:
            wrong.append(number)
    if wrong:
        raise ValueError(
            f"{path} is damaged: line {min(wrong)} is not as it was written. Copy the file again, "
            "or delete it: the run goes on without it."
        )
    return rows


def _write(folder: str | Path, files: dict[str, str]) -> None:
    write_json(Path(folder) / NAME, {"files": files, "sha256": _own(files)})


def _own(value: dict) -> str:
    return sha256(json.dumps(value, sort_keys=True))
