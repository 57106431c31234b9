"""Files that are written whole or not at all, even if the power fails.

Everything that the library writes goes through `replacing`, or, for a log that grows, `append`.
The rules: a file is synced before it gets its name, so is a folder, and the folder around them is
synced afterwards; what is deleted is certain to lose its name before its content. A test checks
them at every point of a run, with whatever was not synced lost or torn.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transformer_lib.guards.checks import require_regular


@contextmanager
def replacing(path: str | Path, temporary: Path | None = None) -> Iterator[Path]:
    """A temporary name for a file or a folder; what the block writes there takes the place of
    `path` at the end, and is then certain to be on the disk; after an error it is removed.

    temporary: in the folder of `path`; by default its name with ".partial" after it. Write the
    files in a folder through `replacing`, too. A folder can't replace another: `remove` that first.
    Raises ValueError for a file if its name belongs to a folder, a link or a device.
    """
    path = Path(path)
    if temporary is None:
        require_replaceable(path)
    partial = temporary or path.with_name(f"{path.name}.partial")
    remove(partial)  # what a killed process left
    try:
        yield partial
        try:
            sync(partial)
            os.replace(partial, path)
        except FileNotFoundError:
            raise OSError(
                f"another process is writing {path} as well: wait for it, then look again."
            ) from None
        sync(path.parent)
    except BaseException:
        remove(partial)
        raise


def make_folder(path: str | Path) -> None:
    """Make a folder and those above it, certain to be on the disk: a lost folder takes what it
    holds with it."""
    path = Path(path)
    if not path.is_dir():
        make_folder(path.parent)
        with suppress(FileExistsError):  # another process was quicker
            os.mkdir(path)
        if not path.is_dir():
            link = path.is_symlink() and not path.exists()
            what = "a link to something that does not exist" if link else "a file, not a folder"
            raise NotADirectoryError(f"{path} is {what}")
        sync(path.parent)


def require_replaceable(path: str | Path) -> None:
    """Raise ValueError unless a file may be written under this name: only nothing or a regular file
    may be there. A link would be replaced instead of followed, and a device such as /dev/null would
    become a file for the whole machine."""
    path = Path(path)
    if path.is_symlink():
        raise ValueError(f"{path} is a link: give the name of the file itself, or remove the link.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file: choose another name.")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file."""
    with replacing(path) as partial, open(partial, "wb") as file:
        file.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: str | Path, value: object) -> None:
    """Write JSON that people can read. Raises ValueError for nan and inf, which JSON lacks."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_json_lines(path: str | Path, rows: Iterable) -> None:
    """Write one JSON value per line. Raises ValueError for nan and inf, as `write_json` does."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    write_text(path, "".join(lines))


def append_json_line(path: str | Path, row: object) -> None:
    """Add one JSON value to a file of them. It is certain to be on the disk only after `sync`."""
    line = json.dumps(row, allow_nan=False) + "\n"
    with open(path, "ab") as file:
        file.write(line.encode())


def read_json_lines(path: str | Path) -> list:
    """The values of a file of JSON lines; a last line cut short by an interruption is left out.

    Raises ValueError, with the line's number, for any other line that cannot be read.
    """
    rows, unreadable = readable_json_lines(path)
    if unreadable:
        raise ValueError(
            f"{path} is not a file of JSON lines, or is damaged: line {unreadable[0]} is not a "
            "JSON object; copy the file again, or take that line out."
        )
    return rows


def readable_json_lines(path: str | Path) -> tuple[list, list[int]]:
    """The objects of a file of JSON lines, and the numbers of the lines that cannot be read.

    A last line without a newline was being written when its process died: it counts as neither.
    """
    rows, unreadable = [], []
    require_regular(path)
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError
            rows.append(row)
        except ValueError:  # not JSON, or not UTF-8
            if number < len(lines):
                unreadable.append(number)
    return rows, unreadable


def sha256(content: bytes | str | Path) -> str:
    """SHA-256 of bytes, of a text in UTF-8 or of a file, as 64 hexadecimal digits."""
    if isinstance(content, Path):
        with open(content, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there. A folder gets the name "old" first, so that an
    interruption never leaves half of it under its own."""
    if not path.is_dir():
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    old = path.with_name("old")
    if path != old:
        shutil.rmtree(old, ignore_errors=True)
        os.replace(path, old)
        sync(path.parent)
    shutil.rmtree(old)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    # Windows can't open folders, and only syncs what is open for writing.
    try:
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except PermissionError:
        if os.name != "nt":
            raise
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
